// The runner executes kernels on cases that it reads from standard input and writes what they leave in their buffers.
//
// A case, in words of 4 bytes and little-endian: kernel, threads of a threadgroup, bytes of shared memory, width and height of
// the grid, number of buffers; for each of these index, 1 if it may be written, bytes, contents padded to a multiple of 4. The
// case runs three times, in three orders of threadgroups and threads. Answers, for each order: length of a message, which is
// empty if all went well, and the message; else the contents of the buffers that may be written, padded.
//
// A buffer ends at a guard after a multiple of 64 bytes, with 64 bytes of canary before; what may not be written is protected.
// Shared memory ends at a guard and starts undefined.
#include "shim.h"
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

namespace {

const unsigned simdWidth = 32, maxThreads = 1024, maxBuffers = 31, maxShared = 32 << 10, stackBytes = 256 << 10;
const unsigned char canary = 0xA5;

jmp_buf failed;
char message[512];

[[noreturn]] void fail(const char *format, ...) {
	va_list args;
	va_start(args, format);
	vsnprintf(message, sizeof message, format, args);
	va_end(args);
	longjmp(failed, 1);
}

[[noreturn]] void die(const char *what) {
	fprintf(stderr, "shim: %s\n", what);
	exit(3);
}

// ---- threads

enum State { ready, atSimd, atBarrier, done };

struct Fiber {
	ucontext_t start;
	jmp_buf here;
	char *stack;
	bool begun;
	State state;
	int site;             // of the operation that it waits at
	unsigned operations;  // simdgroup operations so far
	unsigned given[2];    // words for the others, of even and of odd operations
};

Fiber fibers[maxThreads];
unsigned current;
jmp_buf scheduler;
const shim::Kernel *running;
const shim::Launch *launch;

// wait leaves the thread until the scheduler returns to it.
void wait(State s, int site) {
	Fiber &f = fibers[current];
	f.state = s;
	f.site = site;
	if (_setjmp(f.here) == 0) _longjmp(scheduler, 1);
}

// thread runs the kernel once for every threadgroup.
void thread() {
	for (;;) {
		running->call(*launch);
		wait(done, 0);
	}
}

void resume(unsigned n) {
	current = n;
	if (_setjmp(scheduler)) return;
	Fiber &f = fibers[n];
	if (f.begun) _longjmp(f.here, 1);
	f.begun = true;
	if (!f.stack) {
		void *p = mmap(nullptr, stackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if (p == MAP_FAILED) die("no memory for a stack");
		f.stack = static_cast<char *>(p);
	}
	getcontext(&f.start);
	f.start.uc_stack.ss_sp = f.stack;
	f.start.uc_stack.ss_size = stackBytes;
	f.start.uc_link = nullptr;
	makecontext(&f.start, thread, 0);
	setcontext(&f.start);
}

enum Order { forward, reverse, shuffled, orders };

uint32_t seed;
uint32_t random32() {
	seed = seed * 1664525 + 1013904223;
	return seed >> 8;
}

void arrange(unsigned *list, unsigned n, Order o) {
	for (unsigned i = 0; i < n; i++) list[i] = o == reverse ? n - 1 - i : i;
	if (o != shuffled) return;
	for (unsigned i = n; i > 1; i--) {
		unsigned j = random32() % i, t = list[i - 1];
		list[i - 1] = list[j];
		list[j] = t;
	}
}

// release frees the simdgroups whose threads have all come to one operation and reports whether there were any.
bool release(unsigned threads) {
	bool any = false;
	for (unsigned first = 0; first < threads; first += simdWidth) {
		unsigned waiting = 0;
		const Fiber *one = nullptr;
		for (unsigned i = first; i < first + simdWidth; i++) {
			if (fibers[i].state != atSimd) continue;
			waiting++;
			if (!one) one = &fibers[i];
			if (fibers[i].site != one->site || fibers[i].operations != one->operations)
				fail("threads %u and %u wait at different simdgroup operations", unsigned(one - fibers), i);
		}
		if (waiting == 0) continue;
		if (waiting < simdWidth) {
			for (unsigned i = first; i < first + simdWidth; i++)
				if (fibers[i].state != atSimd) fail("thread %u does not come to a simdgroup operation where others wait", i);
		}
		for (unsigned i = first; i < first + simdWidth; i++) fibers[i].state = ready;
		any = true;
	}
	return any;
}

void runGroup(const shim::Launch &l, unsigned threads, Order o) {
	launch = &l;
	for (unsigned i = 0; i < threads; i++) {
		fibers[i].state = ready;
		fibers[i].operations = 0;
	}
	unsigned list[maxThreads];
	for (;;) {
		arrange(list, threads, o);
		for (unsigned i = 0; i < threads; i++)
			if (fibers[list[i]].state == ready) resume(list[i]);
		if (release(threads)) continue;
		unsigned ended = 0;
		const Fiber *at = nullptr;
		for (unsigned i = 0; i < threads; i++) {
			if (fibers[i].state == done) {
				ended++;
				continue;
			}
			if (!at) at = &fibers[i];
			if (fibers[i].site != at->site) fail("threads %u and %u wait at different barriers", unsigned(at - fibers), i);
		}
		if (ended == threads) return;
		if (ended > 0) fail("%u of %u threads do not come to a barrier", ended, threads);
		for (unsigned i = 0; i < threads; i++) fibers[i].state = ready;
	}
}

// ---- memory

// An arena holds one buffer at a time, at its end, between guards.
struct Arena {
	static const size_t guard = 64 << 10;
	char *base = nullptr; // behind the guard in front
	size_t length = 0;
	char *data = nullptr;
	size_t size = 0;
	bool writable = true;

	static size_t round(size_t n, size_t to) { return (n + to - 1) / to * to; }

	void place(size_t n, size_t align) {
		size_t page = sysconf(_SC_PAGESIZE), want = round(round(n, align) + 64, page);
		if (base && !writable) mprotect(base, length, PROT_READ | PROT_WRITE);
		if (want > length) {
			if (base) munmap(base - guard, length + 2 * guard);
			void *p = mmap(nullptr, want + 2 * guard, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
			if (p == MAP_FAILED) die("no memory for a buffer");
			base = static_cast<char *>(p) + guard;
			length = want;
			if (mprotect(base, length, PROT_READ | PROT_WRITE)) die("memory can't be unprotected");
		}
		writable = true;
		size = n;
		data = base + length - round(n, align);
		memset(data - 64, canary, base + length - data + 64);
	}

	void protect() {
		writable = false;
		if (mprotect(base, length, PROT_READ)) die("memory can't be protected");
	}

	// check fails if a byte beside the contents has changed.
	void check(const char *name) const {
		for (const char *p = data - 64; p < base + length; p++) {
			if (p == data) p += size;
			if (p < base + length && (unsigned char)*p != canary) fail("a store to byte %ld of %s, which has %zu", long(p - data), name, size);
		}
	}

	bool near(const char *p) const { return base && p >= base - guard && p < base + length + guard; }
};

Arena buffers[maxBuffers], shared;

void onSignal(int number, siginfo_t *info, void *) {
	const char *at = static_cast<const char *>(info->si_addr);
	const char *where = "";
	char text[200];
	if (number == SIGSEGV || number == SIGBUS) {
		snprintf(text, sizeof text, " at address %p", (const void *)at);
		where = text;
		for (unsigned i = 0; i <= maxBuffers; i++) {
			const Arena &a = i < maxBuffers ? buffers[i] : shared;
			if (!a.near(at)) continue;
			if (i < maxBuffers)
				snprintf(text, sizeof text, " at byte %ld of buffer %u, which has %zu%s", long(at - a.data), i, a.size, a.writable ? "" : " and may not be written");
			else
				snprintf(text, sizeof text, " at byte %ld of threadgroup memory, which has %zu", long(at - a.data), a.size);
		}
	}
	const char *what = number == SIGILL || number == SIGTRAP ? "undefined behaviour (overflow, division by zero, array bounds or alignment)" : number == SIGFPE ? "division" : "fault";
	snprintf(message, sizeof message, "thread %u of threadgroup %u, %u: %s%s", current, launch->x, launch->y, what, where);
	longjmp(failed, 1);
}

void catchSignals() {
	static char stack[64 << 10];
	stack_t s = {};
	s.ss_sp = stack;
	s.ss_size = sizeof stack;
	if (sigaltstack(&s, nullptr)) die("no stack for signals");
	struct sigaction a = {};
	a.sa_sigaction = onSignal;
	a.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
	const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGTRAP, SIGFPE};
	for (int number : numbers) sigaction(number, &a, nullptr);
}

// ---- cases

uint32_t readWord(bool first = false) {
	uint32_t w;
	if (fread(&w, 1, 4, stdin) != 4) {
		if (first) exit(0);
		die("the input ends in a case");
	}
	return w;
}

size_t padded(size_t n) { return Arena::round(n, 4); }

void writeWord(uint32_t w) { fwrite(&w, 4, 1, stdout); }

struct Buffer {
	unsigned index;
	bool writable;
	size_t size;
	char *contents;
};

struct Case {
	unsigned threads, sharedBytes, width, height, count;
	Buffer buffer[maxBuffers];
};

void run(const Case &c, Order o) {
	shim::Launch l = {};
	for (unsigned i = 0; i < c.count; i++) {
		const Buffer &b = c.buffer[i];
		Arena &a = buffers[b.index];
		// The parameters end where their struct does; other buffers are readable up to a multiple of 64 bytes.
		a.place(b.size, b.index == running->argsIndex ? 4 : 64);
		memcpy(a.data, b.contents, b.size);
		if (!b.writable) a.protect();
		l.buffer[b.index] = a.data;
		if (b.index == running->argsIndex && b.size != running->argsSize) fail("%zu bytes of parameters; the kernel's have %u", b.size, running->argsSize);
	}
	unsigned groups = c.width * c.height;
	unsigned *list = static_cast<unsigned *>(malloc(groups * sizeof *list));
	seed = 12345;
	arrange(list, groups, o);
	l.width = c.width;
	l.height = c.height;
	for (unsigned i = 0; i < groups; i++) {
		l.x = list[i] % c.width;
		l.y = list[i] / c.width;
		if (c.sharedBytes > 0) {
			shared.place(c.sharedBytes, 16);
			memset(shared.data, o == forward ? 0xFF : 0x5A, c.sharedBytes);
			l.shared = shared.data;
		}
		runGroup(l, c.threads, o);
		if (c.sharedBytes > 0) shared.check("threadgroup memory");
	}
	free(list);
	for (unsigned i = 0; i < c.count; i++) {
		char name[20];
		snprintf(name, sizeof name, "buffer %u", c.buffer[i].index);
		buffers[c.buffer[i].index].check(name);
	}
}

} // namespace

namespace shim {

unsigned lane() { return current % simdWidth; }
unsigned simdgroup() { return current / simdWidth; }
void barrier(int site) { wait(atBarrier, site); }

unsigned exchange(unsigned v, unsigned from, int site) {
	Fiber &f = fibers[current];
	unsigned turn = f.operations++ % 2;
	f.given[turn] = v;
	wait(atSimd, site);
	if (from >= simdWidth) fail("thread %u reads lane %u of a simdgroup", current, from);
	return fibers[current / simdWidth * simdWidth + from].given[turn];
}

} // namespace shim

int main() {
	catchSignals();
	for (;;) {
		static Case c;
		unsigned number = readWord(true);
		c.threads = readWord();
		c.sharedBytes = readWord();
		c.width = readWord();
		c.height = readWord();
		c.count = readWord();
		if (number >= shim::kernelCount || c.threads % simdWidth || c.threads > maxThreads || c.sharedBytes > maxShared || c.count > maxBuffers) die("a case out of bounds");
		running = &shim::kernels[number];
		for (unsigned i = 0; i < c.count; i++) {
			Buffer &b = c.buffer[i];
			b.index = readWord();
			b.writable = readWord();
			b.size = readWord();
			b.contents = static_cast<char *>(malloc(padded(b.size) + 1));
			if (b.index >= maxBuffers || !b.contents || fread(b.contents, 1, padded(b.size), stdin) != padded(b.size)) die("a buffer out of bounds");
		}
		for (int o = forward; o < orders; o++) {
			message[0] = 0;
			if (setjmp(failed) == 0)
				run(c, Order(o));
			else
				for (Fiber &f : fibers) f.begun = false;
			size_t n = strlen(message);
			writeWord(n);
			fwrite(message, 1, n, stdout);
			if (n > 0) continue;
			for (unsigned i = 0; i < c.count; i++) {
				const Buffer &b = c.buffer[i];
				if (b.writable) fwrite(buffers[b.index].data, 1, padded(b.size), stdout);
			}
		}
		for (unsigned i = 0; i < c.count; i++) free(c.buffer[i].contents);
	}
}
