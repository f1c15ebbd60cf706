//go:build amd64 || arm64

package cpu

// setFloatControl sets the floating-point control register of the current thread: MXCSR on amd64, FPCR on arm64.
//
//go:noescape
func setFloatControl(v uint32)

// floatControl returns the floating-point control register of the current thread. The tests look through it.
func floatControl() uint32

// pause tells the processor that the thread is spinning. It takes some tens of nanoseconds at most.
func pause()
