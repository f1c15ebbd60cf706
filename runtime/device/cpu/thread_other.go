//go:build !amd64 && !arm64

package cpu

const defaultFloatControl = 0

func setFloatControl(uint32) {}

func floatControl() uint32 { return defaultFloatControl }

func pause() {}
