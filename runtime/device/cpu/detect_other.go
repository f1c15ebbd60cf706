//go:build !amd64

package cpu

// Detect reads the features of the machine. On this architecture only Portable has kernels.
func Detect() Features { return Features{} }
