// Package ir is the language that swizzle's kernels are written in.
//
// A kernel is written for one lane (SPMD, as in ISPC and CUDA). Levels of execution: a grid of tiles, each run by a block
// of G lane groups of L lanes. On GPUs L is 32 (a subgroup); on CPUs G is 1 and L is 8, 16 or 32.
//
// The form is structured: a block is a list of statements, each an instruction, a loop or a branch. An instruction takes
// values and defines values; a value is immutable and is computed where its instruction stands. Only register tiles, shared
// arrays and buffers can change. A value is uniform over the block, uniform over a lane group, or varying (one per lane).
// Control flow is uniform; lanes differ only by Select and by the masks of loads and stores.
//
// Every instruction has one row in the op table (optable.go): its signature and, for arithmetic, its meaning for one lane.
// The arithmetic is that of docs/numerics.md: float32 add, sub and mul, each rounded to nearest even, in the written order.
package ir
