// Package tune measures which tiles are the fastest on a machine, and keeps the answers.
//
// An op such as a product has kernels for tiles of several heights, on several architectures. Which of them compute m rows
// soonest depends on the CPU and on the shape, so Measure times them all: cold weights, rounds in shuffled order, medians.
// A Profile holds the results for one device and one set of kernels, and gives dispatch a Choice. A choice changes speed
// alone: every kernel has passed a comparison of bits with the portable one before it is timed.
package tune
