//go:build !linux || !amd64 || static

package conform

var vulkanDevices []*device
