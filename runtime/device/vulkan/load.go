//go:build linux && (amd64 || arm64) && !static

package vulkan

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"
)

// loadLoader opens the Vulkan loader and returns the address of vkGetInstanceProcAddr.
func loadLoader() (uintptr, error) {
	lib, err := purego.Dlopen("libvulkan.so.1", purego.RTLD_NOW|purego.RTLD_GLOBAL)
	if err != nil {
		return 0, fmt.Errorf("load Vulkan: %w", err)
	}
	return purego.Dlsym(lib, "vkGetInstanceProcAddr")
}

// bind makes the function that fn points to call the C function at addr.
func bind(fn any, addr uintptr) { purego.RegisterFunc(fn, addr) }

// newCallback returns a C function that hands the message of a VkDebugUtilsMessengerCallbackDataEXT to f. It lives as long as
// the process.
func newCallback(f func(message string)) uintptr {
	return purego.NewCallback(func(_ purego.CDecl, _, _ uint32, data *messengerData, _ unsafe.Pointer) uintptr {
		f(goString(data.message))
		return 0
	})
}
