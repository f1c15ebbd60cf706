//go:build !linux || !(amd64 || arm64) || static

package vulkan

import (
	"errors"
	"fmt"
)

func loadLoader() (uintptr, error) {
	return 0, fmt.Errorf("load Vulkan: this program was built without it: %w", errors.ErrUnsupported)
}

func bind(any, uintptr) {}

func newCallback(func(string)) uintptr { return 0 }
