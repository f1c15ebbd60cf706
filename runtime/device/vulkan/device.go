package vulkan

import (
	"errors"
	"fmt"
	"math"
	"sync"
	"unsafe"
)

// Device is a device in use, with one queue. Its methods and those of what it makes may be called by several goroutines, but
// for those of one Pipeline; the device runs one thing at a time.
type Device struct {
	Info     *Info
	instance *Instance
	handle   pointer
	memory   memoryProperties

	mu      sync.Mutex // guards the queue and the command buffer
	queue   pointer
	pool    handle
	command pointer
}

// NewDevice starts a device of [Instance.Devices].
func (i *Instance) NewDevice(info *Info) (*Device, error) {
	if info.API[0] == 1 && info.API[1] < 1 {
		return nil, fmt.Errorf("%s: Vulkan %d.%d; 1.1 is needed", info.Name, info.API[0], info.API[1])
	}
	family, err := i.queueFamily(info)
	if err != nil {
		return nil, err
	}
	d := &Device{Info: info, instance: i}
	priority := float32(1)
	create := &deviceInfo{chain: chain{typeDevice, address(&info.enable().all)}, queues: 1,
		queue: &queueInfo{chain: chain{typ: typeQueue}, family: family, count: 1, priority: &priority}}
	var names []*byte
	for _, e := range info.extensions {
		names = append(names, cString(e))
	}
	create.extensions, create.extension = uint32(len(names)), unsafe.SliceData(names)
	if err := i.check("vkCreateDevice", i.CreateDevice(info.physical, address(create), nil, address(&d.handle))); err != nil {
		return nil, err
	}
	i.GetDeviceQueue(d.handle, family, 0, address(&d.queue))
	i.GetPhysicalDeviceMemoryProperties(info.physical, address(&d.memory))
	if err := d.newCommand(family); err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return d, nil
}

func (d *Device) newCommand(family uint32) error {
	i := d.instance
	r := i.CreateCommandPool(d.handle, address(&commandPoolInfo{chain: chain{typ: typeCommandPool}, family: family}), nil, address(&d.pool))
	if err := i.check("vkCreateCommandPool", r); err != nil {
		return err
	}
	r = i.AllocateCommandBuffers(d.handle, address(&commandBuffersInfo{chain: chain{typ: typeCommandBuffers}, pool: d.pool, count: 1}), address(&d.command))
	return i.check("vkAllocateCommandBuffers", r)
}

// Close stops the device; what it made must be closed.
func (d *Device) Close() error {
	i := d.instance
	i.DestroyCommandPool(d.handle, d.pool, nil)
	i.DestroyDevice(d.handle, nil)
	return i.check("vkDestroyDevice", 0)
}

// Buffer is memory of a device that the host sees, too.
type Buffer struct {
	device *Device
	buffer handle
	memory handle
	data   []byte
}

// NewBuffer allocates a buffer of at least one byte. Its contents are undefined.
func (d *Device) NewBuffer(size int) (*Buffer, error) {
	if size < 1 || size > math.MaxInt32 {
		return nil, fmt.Errorf("buffer of %d bytes; 1 … 2³¹−1 are possible", size)
	}
	i, b := d.instance, &Buffer{device: d}
	r := i.CreateBuffer(d.handle, address(&bufferInfo{chain: chain{typ: typeBuffer}, size: uint64(size), usage: usageStorage}), nil, address(&b.buffer))
	if err := i.check("vkCreateBuffer", r); err != nil {
		return nil, err
	}
	if err := b.allocate(size); err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

func (b *Buffer) allocate(size int) error {
	d, i := b.device, b.device.instance
	need := new(memoryRequirements)
	i.GetBufferMemoryRequirements(d.handle, b.buffer, address(need))
	typ := -1
	for n, t := range d.memory.types[:min(d.memory.count, 32)] {
		const want = memoryVisible | memoryCoherent
		if typ < 0 && need.types>>n&1 != 0 && t.flags&want == want {
			typ = n
		}
	}
	if typ < 0 {
		return fmt.Errorf("%s: no memory that the host sees", d.Info.Name)
	}
	r := i.AllocateMemory(d.handle, address(&allocationInfo{chain: chain{typ: typeAllocation}, size: need.size, typ: uint32(typ)}), nil, address(&b.memory))
	if err := i.check("vkAllocateMemory", r); err != nil {
		return fmt.Errorf("%d bytes: %w", size, err)
	}
	if err := i.check("vkBindBufferMemory", i.BindBufferMemory(d.handle, b.buffer, b.memory, 0)); err != nil {
		return err
	}
	var data address
	if err := i.check("vkMapMemory", i.MapMemory(d.handle, b.memory, 0, wholeSize, 0, address(&data))); err != nil {
		return err
	}
	b.data = unsafe.Slice((*byte)(data), size)
	return nil
}

// Bytes returns the contents. They may be used while no pipeline runs that uses the buffer, until it is closed.
func (b *Buffer) Bytes() []byte { return b.data }

// Close frees the buffer.
func (b *Buffer) Close() error {
	i := b.device.instance
	b.data = nil
	i.DestroyBuffer(b.device.handle, b.buffer, nil)
	i.FreeMemory(b.device.handle, b.memory, nil)
	return i.check("vkFreeMemory", 0)
}
