package vulkan

import (
	"fmt"
	"slices"
	"unsafe"
)

// Info describes a device.
type Info struct {
	Name          string // of the device
	Driver        string // its name and version, as the driver writes them
	API           [2]int // version of Vulkan
	Vendor        uint32 // PCI number
	Limits        Limits
	Features      Features
	FloatControls FloatControls

	physical   pointer
	extensions []string // that the package makes use of
}

// Limits are those that decide which kernels run.
type Limits struct {
	Threads         int // lanes of a workgroup
	Shared          int // bytes of a workgroup
	Buffers         int // of a kernel
	PushConstants   int // bytes
	BufferBytes     int // most bytes of one binding
	Groups          [2]int
	OffsetAlignment int // of a binding in its buffer
}

// Features are those that modules may need.
type Features struct {
	Storage8, Storage16 bool // buffers of 8-bit and 16-bit elements
	IntegerDot          bool // dot products of packed bytes
	Shuffle             bool // shuffles in a subgroup
	// Subgroup is the number of lanes of subgroups that the device can be told to make, all of them full; 0 where it can't.
	Subgroup int
}

// FloatControls are what a module can ask of a device for 32-bit floats.
type FloatControls struct {
	PreserveSpecials   bool // signed zeros, infinities and NaNs
	PreserveSubnormals bool
	RoundNearest       bool // to nearest even
}

// known are the extensions that the package enables where a device has them; later versions of Vulkan have all of them built in.
var known = []string{"VK_KHR_8bit_storage", "VK_KHR_shader_float_controls", "VK_KHR_shader_integer_dot_product", "VK_EXT_subgroup_size_control"}

// featureChain is the list of structures by which features are asked for and enabled.
type featureChain struct {
	storage16 flags[[4]uint32]
	storage8  flags[[3]uint32]
	dot       flags[[1]uint32]
	sizes     flags[[2]uint32]
	all       features2
}

func newFeatureChain() *featureChain {
	f := new(featureChain)
	f.sizes.typ = typeSubgroupSizeControl
	f.dot.chain = chain{typeIntegerDot, address(&f.sizes)}
	f.storage8.chain = chain{typeStorage8, address(&f.dot)}
	f.storage16.chain = chain{typeStorage16, address(&f.storage8)}
	f.all.chain = chain{typeFeatures2, address(&f.storage16)}
	return f
}

// describe asks for all that Info holds.
func (i *Instance) describe(p pointer) (*Info, error) {
	extensions, r := enumerate[extensionProperties](func(count, list address) Result {
		return i.EnumerateDeviceExtensionProperties(p, nil, count, list)
	})
	if err := i.check("vkEnumerateDeviceExtensionProperties", r); err != nil {
		return nil, err
	}
	info := &Info{physical: p}
	for _, e := range extensions {
		if name := text(e.name[:]); slices.Contains(known, name) {
			info.extensions = append(info.extensions, name)
		}
	}

	sizes := &subgroupSizes{chain: chain{typ: typeSubgroupSizes}}
	subgroup := &subgroupProperties{chain: chain{typeSubgroup, address(sizes)}}
	controls := &floatControls{chain: chain{typeFloatControls, address(subgroup)}}
	driver := &driverProperties{chain: chain{typeDriver, address(controls)}}
	p2 := &properties2{chain: chain{typeProperties2, address(driver)}}
	i.GetPhysicalDeviceProperties2(p, address(p2))
	f := newFeatureChain()
	i.GetPhysicalDeviceFeatures2(p, address(&f.all))
	if err := i.check("vkGetPhysicalDeviceFeatures2", 0); err != nil {
		return nil, err
	}

	l := &p2.limits
	info.Name, info.Vendor = text(p2.name[:]), p2.vendor
	info.Driver = text(driver.name[:]) + " " + text(driver.info[:])
	info.API = [2]int{int(p2.api >> 22 & 0x7F), int(p2.api >> 12 & 0x3FF)}
	info.Limits = Limits{
		Threads: int(min(l.invocations, l.groupSize[0])), Shared: int(l.shared), Buffers: int(l.stageStorageBuffers), PushConstants: int(l.pushConstants),
		BufferBytes: int(l.storageBufferRange), Groups: [2]int{int(l.groups[0]), int(l.groups[1])}, OffsetAlignment: int(l.offsetAlignment),
	}
	const basic, shuffle = 0x01, 0x10
	info.Features = Features{
		Storage8: f.storage8.on[0] != 0, Storage16: f.storage16.on[0] != 0, IntegerDot: f.dot.on[0] != 0,
		Shuffle: subgroup.stages&stageCompute != 0 && subgroup.operations&(basic|shuffle) == basic|shuffle,
	}
	if f.sizes.on == [2]uint32{1, 1} && sizes.stages&stageCompute != 0 {
		info.Features.Subgroup = int(min(max(32, sizes.min), sizes.max)) // 32 lanes are a lane group
	}
	info.FloatControls = FloatControls{controls.specials[1] != 0, controls.preserve[1] != 0, controls.nearest[1] != 0}
	return info, nil
}

// enable returns the features of the device that the package makes use of, for vkCreateDevice: only structures with something
// on, since a device may not know the others.
func (info *Info) enable() *featureChain {
	f := newFeatureChain()
	var next address
	link := func(c *chain, on bool, value *uint32) {
		if on {
			*value, c.next, next = 1, next, address(c)
		}
	}
	link(&f.sizes.chain, info.Features.Subgroup > 0, &f.sizes.on[0])
	f.sizes.on[1] = f.sizes.on[0]
	link(&f.dot.chain, info.Features.IntegerDot, &f.dot.on[0])
	link(&f.storage8.chain, info.Features.Storage8, &f.storage8.on[0])
	link(&f.storage16.chain, info.Features.Storage16, &f.storage16.on[0])
	f.all.next = next
	return f
}

// queueFamily returns the first family of queues that compute.
func (i *Instance) queueFamily(info *Info) (uint32, error) {
	const compute = 2
	var n uint32
	i.GetPhysicalDeviceQueueFamilyProperties(info.physical, address(&n), nil)
	list := make([]queueFamily, n)
	i.GetPhysicalDeviceQueueFamilyProperties(info.physical, address(&n), address(unsafe.SliceData(list)))
	for family, q := range list[:n] {
		if q.flags&compute != 0 && q.count > 0 {
			return uint32(family), nil
		}
	}
	return 0, fmt.Errorf("%s: no queue computes", info.Name)
}
