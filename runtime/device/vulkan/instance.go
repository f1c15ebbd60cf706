package vulkan

import (
	"errors"
	"fmt"
	"sync"
	"unsafe"
)

// Options say how to open Vulkan.
type Options struct {
	// Validate loads the Khronos validation layer, which must be installed; what it reports, warnings too, becomes the error of
	// the call during which it does.
	Validate bool
}

// Instance is an open Vulkan loader. Which drivers it finds is for its environment to say, VK_DRIVER_FILES for one.
type Instance struct {
	commands
	handle     pointer
	messengers messengerCommands
	messenger  handle

	mu       sync.Mutex
	messages []error
}

const apiVersion = 1<<22 | 3<<12 // 1.3: the highest version whose behaviour the package knows

// Open opens the loader and its drivers.
func Open(o Options) (*Instance, error) {
	addr, err := loadLoader()
	if err != nil {
		return nil, err
	}
	var lookup func(i pointer, name *byte) uintptr
	bind(&lookup, addr)
	var global globalCommands
	if err := bindAll(&global, lookup, 0); err != nil {
		return nil, err
	}
	i := new(Instance)
	info := &instanceInfo{chain: chain{typ: typeInstance}, app: &applicationInfo{chain: chain{typ: typeApplicationInfo}, apiVersion: apiVersion}}
	var messenger *messengerInfo
	if o.Validate {
		layer, extension := cString("VK_LAYER_KHRONOS_validation"), cString("VK_EXT_debug_utils")
		info.layers, info.layer, info.extensions, info.extension = 1, &layer, 1, &extension
		const warning, failure, validation = 0x100, 0x1000, 2
		messenger = &messengerInfo{chain: chain{typ: typeMessenger}, severity: warning | failure, kind: validation, callback: newCallback(i.message)}
		info.next = address(messenger) // for the calls that make and destroy the instance itself
	}
	if err := i.check("vkCreateInstance", global.CreateInstance(address(info), nil, address(&i.handle))); err != nil {
		return nil, err
	}
	if err := bindAll(&i.commands, lookup, i.handle); err != nil {
		return nil, err
	}
	if o.Validate {
		if err := bindAll(&i.messengers, lookup, i.handle); err != nil {
			i.DestroyInstance(i.handle, nil)
			return nil, err
		}
		r := i.messengers.CreateDebugUtilsMessengerEXT(i.handle, address(messenger), nil, address(&i.messenger))
		if err := i.check("vkCreateDebugUtilsMessengerEXT", r); err != nil {
			i.DestroyInstance(i.handle, nil)
			return nil, err
		}
	}
	return i, nil
}

// Close closes the loader; all devices must be closed.
func (i *Instance) Close() error {
	if i.messenger != 0 {
		i.messengers.DestroyDebugUtilsMessengerEXT(i.handle, i.messenger, nil)
	}
	i.DestroyInstance(i.handle, nil)
	return i.check("vkDestroyInstance", 0)
}

// message takes a message of the validation layer, on the thread of whichever call brings it about.
func (i *Instance) message(text string) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.messages = append(i.messages, errors.New(text))
}

// check returns the error of a call: its result, and what the validation layer has said since the last check.
func (i *Instance) check(call string, r Result) error {
	i.mu.Lock()
	defer i.mu.Unlock()
	list := i.messages
	i.messages = nil
	if r != 0 {
		list = append([]error{r}, list...)
	}
	if len(list) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", call, errors.Join(list...))
}

// enumerate calls a command that fills a list, after asking it for the length.
func enumerate[T any](call func(count, list address) Result) ([]T, Result) {
	var n uint32
	if r := call(address(&n), nil); r != 0 || n == 0 {
		return nil, r
	}
	list := make([]T, n)
	r := call(address(&n), address(unsafe.SliceData(list)))
	return list[:n], r
}

// Devices describes the devices, in the loader's order.
func (i *Instance) Devices() ([]*Info, error) {
	list, r := enumerate[pointer](func(count, list address) Result { return i.EnumeratePhysicalDevices(i.handle, count, list) })
	if err := i.check("vkEnumeratePhysicalDevices", r); err != nil {
		return nil, err
	}
	var infos []*Info
	for _, p := range list {
		info, err := i.describe(p)
		if err != nil {
			return nil, err
		}
		infos = append(infos, info)
	}
	return infos, nil
}
