// Package avx prints a lowered kernel as Go assembly for amd64 CPUs, through avo's instruction tables and printer.
//
// Three architectures share one printer: avx2 (AVX2, FMA, F16C), avxvnni (the same with VEX-encoded VPDPBUSD) and avx512vnni
// (AVX-512 F, BW, DQ, VL and VNNI). A varying value is L/8 YMM or L/16 ZMM registers, its parts; a uniform one is a single
// register with equal lanes, or an operand in memory. Uniform index values are polynomials over opaque 64-bit values until an
// address or a comparison needs them: products and sums that a loop doesn't change are computed before it, those that grow
// with it become pointers that the loop advances, constants and scales go into addressing modes.
//
// Statements are printed in their order. Register tiles, loop variables and accumulators are mutable virtual registers that
// are copied in and out; allocation merges the copies. Where registers are scarce constants go back to memory, then lanes that
// don't depend on each other are computed in slices of one register, then values spill to the frame or are loaded again, but
// never elements of register tiles or masks: a kernel that needs too many is an error that names a statement and the pressure.
//
// Varying index values have 32 bits a lane beside their uniform part: an index computed from lane data, and the operands of a
// varying division, remainder, minimum or bit operation, stay below 2³¹.
package avx
