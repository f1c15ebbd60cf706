// Package conform proves the generated kernels: it has nothing but tests, and is the only place where they join the
// compiler's half of the module, which knows what an op means, with the runtime's half, which calls kernels.
//
// Every kernel that this CPU can run is compared with its op's scalar reference, bit by bit: between inaccessible pages, in
// one call and in many, off the alignment of vectors, from several goroutines, under the race detector, and while the
// runtime traces, profiles and collects garbage. The files of generated/ are held to the list of ops, and their descriptors
// to the ops' IR. Kernels for instruction sets that the CPU lacks run in the simulator of backends/avx.
//
// Kernels of GPUs are executed as they are shipped, by what the manifest says of their launch, and compared in the same way:
// PTX in the simulator of backends/ptx, SPIR-V on lavapipe and on SwiftShader under the validation layer, Metal kernels
// compiled for the CPU by backends/msl/shim. NVIDIA's assembler takes every PTX kernel for every architecture that it serves.
// Kernels with faults are told apart by all of these, and accesses to shared memory are free of bank conflicts. What none of
// this shows: how fast a GPU runs them, and how it orders accesses to memory.
//
// The tests print how many cases each instruction set or device ran, and for how long. With -short they take one pattern of
// data a shape and leave out what takes long to compile; with -exhaustive they take many more shapes:
//
//	go test -v -run Reference ./gen/conform -exhaustive
//	go test -run '^$' -fuzz Kernels ./gen/conform
//	CGO_ENABLED=1 go test -race -short ./gen/conform
//	GOAMD64=v3 go test -short ./gen/conform
//	GOARCH=arm64 go test -short -exec qemu-aarch64-static ./gen/conform
package conform
