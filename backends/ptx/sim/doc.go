// Package sim executes the text of PTX kernels on a CPU, so that what backends/ptx prints is proved without a GPU.
//
// It reads the text alone and shares nothing with the printer. It knows the part of PTX that compute kernels of 32-bit
// words need; any other opcode, modifier or directive is an error. Semantics are those of the PTX ISA: float32 arithmetic
// is rounded to nearest even with subnormals kept, a NaN that is computed is 7FFFFFFF.
//
// What a GPU would not tell is an error that names the line, the instruction, the block and the thread:
//
//   - an operand whose declared type doesn't fit the instruction, and a register read in a lane that never wrote it;
//   - an access that is misaligned, outside of a buffer or of a shared array (loads may reach to the next multiple of 64
//     bytes of a buffer and find NaNs there), or of shared memory that the block has not written;
//   - a race: two threads that touch a byte, one of them writing, with no barrier between; in different blocks always;
//   - an asynchronous copy whose bytes are touched before its thread has waited for it, or never waited for;
//   - a barrier, matrix instruction or shuffle that some of the lanes it needs do not reach.
//
// # Order of execution
//
// The lanes of a warp run in lockstep, those at the lowest instruction first, until they meet again. A warp runs until a
// barrier stops it, then the next one of the block does; blocks run one after the other. [Launch.Seed] permutes both.
//
// # What is not modelled
//
// Time, caches, and more than one grid at a time. An asynchronous copy takes its bytes when it starts: that its source is
// changed before it lands goes unseen. Float matrix products are left out, since no order of their sums is specified.
package sim
