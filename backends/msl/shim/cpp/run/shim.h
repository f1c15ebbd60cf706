// The runner, as kernels and the table of kernels see it.
#pragma once

namespace shim {

// Called by the running thread.
unsigned lane();
unsigned simdgroup();
void barrier(int site);
// exchange waits for the other threads of the simdgroup and returns what thread from of it gave.
unsigned exchange(unsigned v, unsigned from, int site);

// What a threadgroup is launched with.
struct Launch {
	char *buffer[31];
	char *shared;
	unsigned x, y, width, height; // of the threadgroup, of the grid
};

struct Kernel {
	const char *symbol;
	unsigned argsIndex, argsSize;
	void (*call)(const Launch &);
};

extern const Kernel kernels[];
extern const unsigned kernelCount;

} // namespace shim
