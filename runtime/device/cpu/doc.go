// Package cpu is the CPU as a compute device: which instruction sets its kernels may use, how many threads and how much
// memory the process may take, and the pool of worker threads that kernels run on.
package cpu
