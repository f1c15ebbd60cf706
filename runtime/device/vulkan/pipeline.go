package vulkan

import (
	"errors"
	"fmt"
	"unsafe"
)

// Kernel is a compute shader to make a pipeline of. Storage buffers are bindings 0 … Buffers−1 of set 0. Specialisation
// constant 0 of the module, if it has one, becomes the number of lanes of each of its subgroups, all of them full, or 1 where
// the device promises none.
type Kernel struct {
	SPIRV         []byte
	Entry         string
	Threads       int // of a workgroup, fixed in the module
	Shared        int // bytes of a workgroup
	Buffers       int
	PushConstants int // bytes, a multiple of 4
}

// Pipeline is a kernel ready to run.
type Pipeline struct {
	device    *Device
	kernel    Kernel
	module    handle
	setLayout handle
	layout    handle
	pipeline  handle
	pool      handle
	set       handle
}

// NewPipeline compiles the kernel. What the device lacks is an error.
func (d *Device) NewPipeline(k Kernel) (*Pipeline, error) {
	if err := d.fits(k); err != nil {
		return nil, fmt.Errorf("%s: %s: %w", d.Info.Name, k.Entry, err)
	}
	m, err := parseModule(k.SPIRV, &d.Info.Features)
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", d.Info.Name, k.Entry, err)
	}
	m.control(d.Info.FloatControls)
	k.SPIRV = nil // not needed again
	p := &Pipeline{device: d, kernel: k}
	for _, step := range []func() error{func() error { return p.load(m) }, p.newLayout, p.compile, p.newSet} {
		if err := step(); err != nil {
			return nil, errors.Join(fmt.Errorf("%s: %w", k.Entry, err), p.Close())
		}
	}
	return p, nil
}

// fits compares what a kernel needs with the device's limits.
func (d *Device) fits(k Kernel) error {
	l := d.Info.Limits
	for _, c := range []struct {
		what      string
		need, has int
	}{{"threads", k.Threads, l.Threads}, {"bytes of shared memory", k.Shared, l.Shared}, {"buffers", k.Buffers, l.Buffers}, {"bytes of push constants", k.PushConstants, l.PushConstants}} {
		if c.need > c.has {
			return fmt.Errorf("%d %s needed, the device has %d", c.need, c.what, c.has)
		}
	}
	return nil
}

func (p *Pipeline) load(m *module) error {
	d, i := p.device, p.device.instance
	info := &shaderInfo{chain: chain{typ: typeShaderModule}, size: uintptr(4 * len(m.words)), code: unsafe.SliceData(m.words)}
	return i.check("vkCreateShaderModule", i.CreateShaderModule(d.handle, address(info), nil, address(&p.module)))
}

func (p *Pipeline) newLayout() error {
	d, i := p.device, p.device.instance
	bindings := make([]setBinding, p.kernel.Buffers)
	for n := range bindings {
		bindings[n] = setBinding{binding: uint32(n), typ: descriptorStorageBuffer, count: 1, stages: stageCompute}
	}
	set := &setLayoutInfo{chain: chain{typ: typeSetLayout}, count: uint32(len(bindings)), bindings: unsafe.SliceData(bindings)}
	if err := i.check("vkCreateDescriptorSetLayout", i.CreateDescriptorSetLayout(d.handle, address(set), nil, address(&p.setLayout))); err != nil {
		return err
	}
	layout := &pipelineLayoutInfo{chain: chain{typ: typePipelineLayout}, sets: 1, set: &p.setLayout}
	if n := p.kernel.PushConstants; n > 0 {
		layout.ranges, layout.push = 1, &pushRange{stages: stageCompute, size: uint32(n)}
	}
	return i.check("vkCreatePipelineLayout", i.CreatePipelineLayout(d.handle, address(layout), nil, address(&p.layout)))
}

func (p *Pipeline) compile() error {
	d, i := p.device, p.device.instance
	const fullSubgroups = 2
	info := &computePipelineInfo{chain: chain{typ: typeComputePipeline}, layout: p.layout, baseIndex: -1}
	info.stage = stageInfo{chain: chain{typ: typeStage}, stage: stageCompute, module: p.module, entry: cString(p.kernel.Entry)}
	lanes := uint32(1)
	if n := d.Info.Features.Subgroup; n > 0 && p.kernel.Threads%n == 0 {
		lanes = uint32(n)
		info.stage.flags = fullSubgroups
		info.stage.next = address(&requiredSubgroupSize{chain: chain{typ: typeRequiredSubgroupSize}, size: lanes})
	}
	info.stage.spec = &specialization{count: 1, entry: &specEntry{size: 4}, size: 4, data: &lanes}
	return i.check("vkCreateComputePipelines", i.CreateComputePipelines(d.handle, 0, 1, address(info), nil, address(&p.pipeline)))
}

func (p *Pipeline) newSet() error {
	d, i := p.device, p.device.instance
	if p.kernel.Buffers == 0 {
		return nil
	}
	pool := &descriptorPoolInfo{chain: chain{typ: typeDescriptorPool}, sets: 1, sizes: 1, size: &poolSize{descriptorStorageBuffer, uint32(p.kernel.Buffers)}}
	if err := i.check("vkCreateDescriptorPool", i.CreateDescriptorPool(d.handle, address(pool), nil, address(&p.pool))); err != nil {
		return err
	}
	set := &setAllocation{chain: chain{typ: typeSetAllocation}, pool: p.pool, count: 1, layout: &p.setLayout}
	return i.check("vkAllocateDescriptorSets", i.AllocateDescriptorSets(d.handle, address(set), address(&p.set)))
}

// Close frees the pipeline.
func (p *Pipeline) Close() error {
	d, i := p.device, p.device.instance
	i.DestroyDescriptorPool(d.handle, p.pool, nil)
	i.DestroyPipeline(d.handle, p.pipeline, nil)
	i.DestroyPipelineLayout(d.handle, p.layout, nil)
	i.DestroyDescriptorSetLayout(d.handle, p.setLayout, nil)
	i.DestroyShaderModule(d.handle, p.module, nil)
	return i.check("vkDestroyPipeline", 0)
}

// Binding is what a kernel sees as a buffer: Size bytes of Buffer from Offset on, a multiple of the device's
// Limits.OffsetAlignment.
type Binding struct {
	Buffer       *Buffer
	Offset, Size int
}

// Run runs x · y workgroups and waits for them.
func (p *Pipeline) Run(bindings []Binding, push []uint32, x, y int) error {
	if err := p.run(bindings, push, x, y); err != nil {
		return fmt.Errorf("%s: %w", p.kernel.Entry, err)
	}
	return nil
}

func (p *Pipeline) run(bindings []Binding, push []uint32, x, y int) error {
	d, i := p.device, p.device.instance
	l := d.Info.Limits
	switch {
	case len(bindings) != p.kernel.Buffers || 4*len(push) != p.kernel.PushConstants:
		return fmt.Errorf("%d buffers and %d bytes of push constants given, %d and %d needed", len(bindings), 4*len(push), p.kernel.Buffers, p.kernel.PushConstants)
	case x < 1 || y < 1 || x > l.Groups[0] || y > l.Groups[1]:
		return fmt.Errorf("%d × %d workgroups; 1 … %d × 1 … %d are possible", x, y, l.Groups[0], l.Groups[1])
	}
	writes := make([]writeSet, len(bindings))
	for n, b := range bindings {
		if b.Buffer == nil || b.Offset < 0 || b.Size < 1 || b.Size > len(b.Buffer.data)-b.Offset || b.Offset%l.OffsetAlignment != 0 || b.Size > l.BufferBytes {
			return fmt.Errorf("binding %d: %d bytes from %d on", n, b.Size, b.Offset)
		}
		writes[n] = writeSet{chain: chain{typ: typeWriteSet}, set: p.set, binding: uint32(n), count: 1, typ: descriptorStorageBuffer,
			buffer: &descriptorBuffer{b.Buffer.buffer, uint64(b.Offset), uint64(b.Size)}}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(writes) > 0 {
		i.UpdateDescriptorSets(d.handle, uint32(len(writes)), address(unsafe.SliceData(writes)), 0, nil)
	}
	if err := p.record(push, uint32(x), uint32(y)); err != nil {
		return err
	}
	submit := &submitInfo{chain: chain{typ: typeSubmit}, buffers: 1, buffer: &d.command}
	if err := i.check("vkQueueSubmit", i.QueueSubmit(d.queue, 1, address(submit), 0)); err != nil {
		return err
	}
	return i.check("vkQueueWaitIdle", i.QueueWaitIdle(d.queue))
}

// record writes the command buffer.
func (p *Pipeline) record(push []uint32, x, y uint32) error {
	d, i := p.device, p.device.instance
	const compute, once = 1, 1
	if err := i.check("vkResetCommandPool", i.ResetCommandPool(d.handle, d.pool, 0)); err != nil {
		return err
	}
	r := i.BeginCommandBuffer(d.command, address(&beginInfo{chain: chain{typ: typeBegin}, flags: once}))
	if err := i.check("vkBeginCommandBuffer", r); err != nil {
		return err
	}
	i.CmdBindPipeline(d.command, compute, p.pipeline)
	if p.set != 0 {
		i.CmdBindDescriptorSets(d.command, compute, p.layout, 0, 1, address(&p.set), 0, nil)
	}
	if len(push) > 0 {
		i.CmdPushConstants(d.command, p.layout, stageCompute, 0, uint32(4*len(push)), address(unsafe.SliceData(push)))
	}
	i.CmdDispatch(d.command, x, y, 1)
	const shaderWrite, hostRead, computeStage, hostStage = 0x40, 0x2000, 0x800, 0x4000
	seen := &memoryBarrier{chain{typ: typeMemoryBarrier}, shaderWrite, hostRead}
	i.CmdPipelineBarrier(d.command, computeStage, hostStage, 0, 1, address(seen), 0, nil, 0, nil)
	return i.check("vkEndCommandBuffer", i.EndCommandBuffer(d.command))
}
