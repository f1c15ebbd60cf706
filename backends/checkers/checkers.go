// Package checkers finds the programs and drivers that tests check and run emitted kernels with. .ci/setup.sh installs them.
package checkers

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Names that [Find] knows beside those of programs.
const (
	Lavapipe    = "lavapipe"    // Mesa's Vulkan driver for CPUs: its ICD file
	SwiftShader = "swiftshader" // Google's Vulkan driver for CPUs: its ICD file
	Validation  = "validation"  // Khronos's validation layer of Vulkan: its manifest
)

// cuda are NVIDIA's programs, which .ci/gputools.sh puts into the cache folder.
var cuda = []string{"ptxas", "cuobjdump", "nvdisasm"}

// Find returns the path of a program, or of the file that names a driver or a layer; "" if it isn't there.
//
// NVIDIA's programs are looked for in $SWIZZLE_CUDA_BIN, then in the user's cache folder, whose version is the one that
// recorded figures hold for, then in $PATH. SwiftShader's ICD file is $SWIZZLE_SWIFTSHADER_ICD, that of the cache folder, or
// Chromium's.
func Find(name string) string {
	switch {
	case slices.Contains(cuda, name):
		for _, dir := range []string{os.Getenv("SWIZZLE_CUDA_BIN"), cached("cuda/nvidia/cu13/bin")} {
			if dir == "" {
				continue
			}
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return path
			}
		}
	case name == SwiftShader:
		return first(os.Getenv("SWIZZLE_SWIFTSHADER_ICD"), cached("swiftshader/vk_swiftshader_icd.json"), "/usr/lib/chromium/vk_swiftshader_icd.json")
	case name == Lavapipe:
		return first("/usr/share/vulkan/icd.d/lvp_icd*.json")
	case name == Validation:
		return first("/usr/share/vulkan/explicit_layer.d/VkLayer_khronos_validation.json")
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return ""
	}
	return path
}

// DeviceName returns what the name of the device of a Vulkan driver for CPUs contains.
func DeviceName(driver string) string {
	if driver == Lavapipe {
		return "llvmpipe"
	}
	return "SwiftShader"
}

// UseDrivers lets this process's Vulkan loader, which must not be open yet, find only those of the drivers that are here.
func UseDrivers(drivers ...string) error {
	var files []string
	for _, d := range drivers {
		if path := Find(d); path != "" {
			files = append(files, path)
		}
	}
	list := strings.Join(files, string(os.PathListSeparator))
	// The loader's name, and its older one.
	return errors.Join(os.Setenv("VK_DRIVER_FILES", list), os.Setenv("VK_ICD_FILENAMES", list))
}

// cached returns a path below the tools in the user's cache folder, or "" if the user has none.
func cached(path string) string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "swizzle/tools", filepath.FromSlash(path))
}

// first returns the first file that matches one of the patterns.
func first(patterns ...string) string {
	for _, p := range patterns {
		if files, err := filepath.Glob(p); err == nil && len(files) > 0 {
			return files[0]
		}
	}
	return ""
}

// Need returns what [Find] returns. Without it the test fails in CI, where CI=true, and is skipped elsewhere.
func Need(t testing.TB, name string) string {
	t.Helper()
	path := Find(name)
	switch {
	case path != "":
	case os.Getenv("CI") == "true":
		t.Fatalf("%s is not here; .ci/setup.sh installs it", name)
	default:
		t.Skipf("%s is not here; .ci/setup.sh installs it", name)
	}
	return path
}
