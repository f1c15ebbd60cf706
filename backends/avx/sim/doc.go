// Package sim executes the instruction list of a kernel that avo has compiled, so that kernels for an instruction set that the
// machine at hand lacks are proved on it all the same, and faults that hardware hides are seen on any machine.
//
// What hardware would not tell is an error here: an access outside a buffer, a write to a buffer that is only read, the use of
// a register, flag or mask that was never written, an EVEX encoding under a VEX target, a legacy SSE instruction, a use of BP
// or SP, an upper half left dirty at RET. Bytes that may be read but have no defined contents (a buffer's tail up to the next
// multiple of 64 bytes, scratch, the frame) hold a pattern that is a NaN as float32 and as float16.
//
// The semantics are those of the Intel 64 and IA-32 Architectures Software Developer's Manual, volume 2, with MXCSR at its
// default: round to nearest even, no flushing of subnormals, exceptions masked. The tests compare every instruction form with
// the hardware.
package sim
