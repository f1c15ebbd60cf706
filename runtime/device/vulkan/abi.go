package vulkan

import (
	"fmt"
	"reflect"
	"unsafe"
)

// The structures and commands of the Vulkan API that the package uses, laid out as in C on 64-bit machines. Field names are
// short for those of the specification.

type (
	handle  = uint64  // of objects that belong to a device
	pointer = uintptr // of objects that the driver dispatches by
	address = unsafe.Pointer
)

// Values of VkStructureType.
const (
	typeApplicationInfo           = 0
	typeInstance                  = 1
	typeQueue                     = 2
	typeDevice                    = 3
	typeSubmit                    = 4
	typeAllocation                = 5
	typeBuffer                    = 12
	typeShaderModule              = 16
	typeStage                     = 18
	typeComputePipeline           = 29
	typePipelineLayout            = 30
	typeSetLayout                 = 32
	typeDescriptorPool            = 33
	typeSetAllocation             = 34
	typeWriteSet                  = 35
	typeCommandPool               = 39
	typeCommandBuffers            = 40
	typeBegin                     = 42
	typeMemoryBarrier             = 46
	typeFeatures2                 = 1000059000
	typeProperties2               = 1000059001
	typeStorage16                 = 1000083000
	typeSubgroup                  = 1000094000
	typeMessenger                 = 1000128004
	typeStorage8                  = 1000177000
	typeDriver                    = 1000196000
	typeFloatControls             = 1000197000
	typeSubgroupSizes             = 1000225000
	typeRequiredSubgroupSize      = 1000225001
	typeSubgroupSizeControl       = 1000225002
	typeIntegerDot                = 1000280000
	stageCompute                  = 0x20
	descriptorStorageBuffer       = 7
	usageStorage                  = 0x20
	wholeSize                     = ^uint64(0)
	memoryVisible, memoryCoherent = 2, 4
)

// chain starts every structure: its type and the next structure.
type chain struct {
	typ  uint32
	next address
}

type applicationInfo struct {
	chain
	_          *byte // name and version of the program
	_          uint32
	_          *byte // and of its engine
	_          uint32
	apiVersion uint32
}

type instanceInfo struct {
	chain
	flags      uint32
	app        *applicationInfo
	layers     uint32
	layer      **byte
	extensions uint32
	extension  **byte
}

type messengerInfo struct {
	chain
	flags, severity, kind uint32
	callback              uintptr
	user                  address
}

// messengerData starts like VkDebugUtilsMessengerCallbackDataEXT.
type messengerData struct {
	_       chain
	_       uint32
	_       *byte // name and number of the rule
	_       int32
	message *byte
}

type properties2 struct {
	chain
	api, driverVersion, vendor, device, kind uint32
	name                                     [256]byte
	cacheUUID                                [16]byte
	limits                                   limits
	sparse                                   [5]uint32
}

// limits is VkPhysicalDeviceLimits; fields without a name are of no use here.
type limits struct {
	_                   [28]byte
	storageBufferRange  uint32
	pushConstants       uint32
	_                   [40]byte
	stageStorageBuffers uint32
	_                   [136]byte
	shared              uint32
	groups              [3]uint32
	invocations         uint32
	groupSize           [3]uint32
	_                   [80]byte
	offsetAlignment     uint64
	_                   [168]byte
}

type driverProperties struct {
	chain
	id          uint32
	name, info  [256]byte
	conformance [4]byte
}

type floatControls struct {
	chain
	denormIndependence, roundingIndependence uint32
	// Each for 16, 32 and 64 bits.
	specials, preserve, flush, nearest, toZero [3]uint32
}

type subgroupProperties struct {
	chain
	size, stages, operations, quad uint32
}

type subgroupSizes struct {
	chain
	min, max, most, stages uint32
}

type features2 struct {
	chain
	core [55]uint32
}

// flags is a structure of features: VkBool32 values.
type flags[T any] struct {
	chain
	on T
}

type extensionProperties struct {
	name [256]byte
	_    uint32 // version
}

type queueFamily struct {
	flags, count, timestampBits uint32
	granularity                 [3]uint32
}

type memoryProperties struct {
	count uint32
	types [32]struct{ flags, heap uint32 }
	heaps uint32
	heap  [16]struct {
		size uint64
		_    uint32 // flags
	}
}

type queueInfo struct {
	chain
	_, family, count uint32 // flags first
	priority         *float32
}

type deviceInfo struct {
	chain
	_          uint32 // flags
	queues     uint32
	queue      *queueInfo
	layers     uint32
	layer      **byte
	extensions uint32
	extension  **byte
	features   address
}

type bufferInfo struct {
	chain
	flags          uint32
	size           uint64
	usage, sharing uint32
	families       uint32
	family         address
}

type memoryRequirements struct {
	size, alignment uint64
	types           uint32
}

type allocationInfo struct {
	chain
	size uint64
	typ  uint32
}

type shaderInfo struct {
	chain
	flags uint32
	size  uintptr
	code  *uint32
}

type setBinding struct {
	binding, typ, count, stages uint32
	_                           address // samplers
}

type setLayoutInfo struct {
	chain
	flags, count uint32
	bindings     *setBinding
}

type pushRange struct{ stages, _, size uint32 } // an offset between

type pipelineLayoutInfo struct {
	chain
	flags, sets uint32
	set         *handle
	ranges      uint32
	push        *pushRange
}

type specEntry struct {
	_, _ uint32 // number of the constant, offset of its value: 0
	size uintptr
}

type specialization struct {
	count uint32
	entry *specEntry
	size  uintptr
	data  *uint32
}

type requiredSubgroupSize struct {
	chain
	size uint32
}

type stageInfo struct {
	chain
	flags, stage uint32
	module       handle
	entry        *byte
	spec         *specialization
}

type computePipelineInfo struct {
	chain
	flags     uint32
	stage     stageInfo
	layout    handle
	base      handle
	baseIndex int32
}

type poolSize struct{ typ, count uint32 }

type descriptorPoolInfo struct {
	chain
	flags, sets, sizes uint32
	size               *poolSize
}

type setAllocation struct {
	chain
	pool   handle
	count  uint32
	layout *handle
}

type descriptorBuffer struct {
	buffer        handle
	offset, bytes uint64
}

type writeSet struct {
	chain
	set                          handle
	binding, element, count, typ uint32
	image                        address
	buffer                       *descriptorBuffer
	texel                        address
}

type commandPoolInfo struct {
	chain
	flags, family uint32
}

type commandBuffersInfo struct {
	chain
	pool         handle
	level, count uint32
}

type beginInfo struct {
	chain
	flags       uint32
	inheritance address
}

type memoryBarrier struct {
	chain
	from, to uint32
}

type submitInfo struct {
	chain
	waits    uint32
	wait     address
	waitMask address
	buffers  uint32
	buffer   *pointer
	signals  uint32
	signal   address
}

// globalCommands are looked up without an instance; a command is named vk and the field's name.
type globalCommands struct {
	CreateInstance func(info, allocator, instance address) Result
}

type messengerCommands struct {
	CreateDebugUtilsMessengerEXT  func(i pointer, info, allocator, messenger address) Result
	DestroyDebugUtilsMessengerEXT func(i pointer, messenger handle, allocator address)
}

type commands struct {
	DestroyInstance                        func(i pointer, allocator address)
	EnumeratePhysicalDevices               func(i pointer, count, list address) Result
	GetPhysicalDeviceProperties2           func(p pointer, properties address)
	GetPhysicalDeviceFeatures2             func(p pointer, features address)
	GetPhysicalDeviceMemoryProperties      func(p pointer, properties address)
	GetPhysicalDeviceQueueFamilyProperties func(p pointer, count, list address)
	EnumerateDeviceExtensionProperties     func(p pointer, layer, count, list address) Result
	CreateDevice                           func(p pointer, info, allocator, device address) Result
	DestroyDevice                          func(d pointer, allocator address)
	DeviceWaitIdle                         func(d pointer) Result
	GetDeviceQueue                         func(d pointer, family, index uint32, queue address)
	CreateBuffer                           func(d pointer, info, allocator, buffer address) Result
	DestroyBuffer                          func(d pointer, buffer handle, allocator address)
	GetBufferMemoryRequirements            func(d pointer, buffer handle, requirements address)
	AllocateMemory                         func(d pointer, info, allocator, memory address) Result
	FreeMemory                             func(d pointer, memory handle, allocator address)
	BindBufferMemory                       func(d pointer, buffer, memory handle, offset uint64) Result
	MapMemory                              func(d pointer, memory handle, offset, size uint64, flags uint32, data address) Result
	CreateShaderModule                     func(d pointer, info, allocator, module address) Result
	DestroyShaderModule                    func(d pointer, module handle, allocator address)
	CreateDescriptorSetLayout              func(d pointer, info, allocator, layout address) Result
	DestroyDescriptorSetLayout             func(d pointer, layout handle, allocator address)
	CreatePipelineLayout                   func(d pointer, info, allocator, layout address) Result
	DestroyPipelineLayout                  func(d pointer, layout handle, allocator address)
	CreateComputePipelines                 func(d pointer, cache handle, count uint32, info, allocator, pipeline address) Result
	DestroyPipeline                        func(d pointer, pipeline handle, allocator address)
	CreateDescriptorPool                   func(d pointer, info, allocator, pool address) Result
	DestroyDescriptorPool                  func(d pointer, pool handle, allocator address)
	AllocateDescriptorSets                 func(d pointer, info, set address) Result
	UpdateDescriptorSets                   func(d pointer, writes uint32, write address, copies uint32, copy address)
	CreateCommandPool                      func(d pointer, info, allocator, pool address) Result
	DestroyCommandPool                     func(d pointer, pool handle, allocator address)
	ResetCommandPool                       func(d pointer, pool handle, flags uint32) Result
	AllocateCommandBuffers                 func(d pointer, info, buffer address) Result
	BeginCommandBuffer                     func(c pointer, info address) Result
	EndCommandBuffer                       func(c pointer) Result
	CmdBindPipeline                        func(c pointer, point uint32, pipeline handle)
	CmdBindDescriptorSets                  func(c pointer, point uint32, layout handle, first, count uint32, set address, offsets uint32, offset address)
	CmdPushConstants                       func(c pointer, layout handle, stages, offset, size uint32, data address)
	CmdDispatch                            func(c pointer, x, y, z uint32)
	CmdPipelineBarrier                     func(c pointer, from, to, flags, memories uint32, memory address, buffers uint32, buffer address, images uint32, image address)
	QueueSubmit                            func(q pointer, count uint32, submit address, fence handle) Result
	QueueWaitIdle                          func(q pointer) Result
}

// bindAll binds the commands of a table.
func bindAll(table any, lookup func(i pointer, name *byte) uintptr, instance pointer) error {
	v := reflect.ValueOf(table).Elem()
	for n := range v.NumField() {
		name := "vk" + v.Type().Field(n).Name
		addr := lookup(instance, cString(name))
		if addr == 0 {
			return fmt.Errorf("load Vulkan: no command %s", name)
		}
		bind(v.Field(n).Addr().Interface(), addr)
	}
	return nil
}

func cString(s string) *byte { return &append([]byte(s), 0)[0] }

// goString copies a C string.
func goString(p *byte) string {
	if p == nil {
		return ""
	}
	n := 0
	for *(*byte)(unsafe.Add(address(p), n)) != 0 {
		n++
	}
	return string(unsafe.Slice(p, n))
}

// text returns the C string in an array.
func text(b []byte) string {
	for n, c := range b {
		if c == 0 {
			return string(b[:n])
		}
	}
	return string(b)
}

// Result is a VkResult other than VK_SUCCESS.
type Result int32

var results = map[Result]string{
	1: "VK_NOT_READY", 2: "VK_TIMEOUT", 5: "VK_INCOMPLETE",
	-1: "VK_ERROR_OUT_OF_HOST_MEMORY", -2: "VK_ERROR_OUT_OF_DEVICE_MEMORY", -3: "VK_ERROR_INITIALIZATION_FAILED", -4: "VK_ERROR_DEVICE_LOST",
	-5: "VK_ERROR_MEMORY_MAP_FAILED", -6: "VK_ERROR_LAYER_NOT_PRESENT", -7: "VK_ERROR_EXTENSION_NOT_PRESENT", -8: "VK_ERROR_FEATURE_NOT_PRESENT",
	-9: "VK_ERROR_INCOMPATIBLE_DRIVER", -10: "VK_ERROR_TOO_MANY_OBJECTS", -12: "VK_ERROR_FRAGMENTED_POOL", -13: "VK_ERROR_UNKNOWN",
	-1000069000: "VK_ERROR_OUT_OF_POOL_MEMORY", -1000012000: "VK_ERROR_INVALID_SHADER_NV",
}

func (r Result) Error() string {
	if name, ok := results[r]; ok {
		return name
	}
	return fmt.Sprintf("VkResult %d", int32(r))
}
