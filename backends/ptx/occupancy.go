package ptx

// limits are what a multiprocessor and a block of an architecture have (CUDA C++ programming guide, technical
// specifications by compute capability; CUDA occupancy calculator).
type limits struct {
	warps, blocks int // at the same time
	shared        int // bytes
	block         int // bytes of shared memory that a block may have
	reserved      int // bytes of shared memory that the system takes of each block
	unit          int // shared memory is given out in multiples of this
}

var multiprocessors = map[string]limits{
	"sm_75":  {warps: 32, blocks: 16, shared: 64 << 10, block: 64 << 10, unit: 256},
	"sm_80":  {warps: 64, blocks: 32, shared: 164 << 10, block: 163 << 10, reserved: 1 << 10, unit: 128},
	"sm_86":  {warps: 48, blocks: 16, shared: 100 << 10, block: 99 << 10, reserved: 1 << 10, unit: 128},
	"sm_89":  {warps: 48, blocks: 24, shared: 100 << 10, block: 99 << 10, reserved: 1 << 10, unit: 128},
	"sm_90":  {warps: 64, blocks: 32, shared: 228 << 10, block: 227 << 10, reserved: 1 << 10, unit: 128},
	"sm_100": {warps: 64, blocks: 32, shared: 228 << 10, block: 227 << 10, reserved: 1 << 10, unit: 128},
	"sm_120": {warps: 48, blocks: 24, shared: 100 << 10, block: 99 << 10, reserved: 1 << 10, unit: 128},
}

// The same for all of them.
const (
	registers    = 65536 // of a multiprocessor, and the most that a block may have
	maxRegisters = 255   // of a thread
	registerUnit = 256   // registers are given out to warps in multiples of this
	warpUnit     = 4     // warps get registers from one of four parts of the multiprocessor
	warpThreads  = 32
)

// Occupancy returns how many blocks of a kernel a multiprocessor of the architecture runs at the same time, given the
// kernel's registers a thread, its threads and its bytes of shared memory (as ptxas -v prints them), and what limits
// them: "blocks", "warps", "registers" or "shared memory". Of equal limits the first named counts. A kernel that can't run at
// all has 0 blocks; so has an unknown architecture, with "architecture" as the limit.
func Occupancy(arch string, regs, threads, shared int) (blocks int, limiter string) {
	m, ok := multiprocessors[arch]
	if !ok {
		return 0, "architecture"
	}
	warps := (threads + warpThreads - 1) / warpThreads
	if threads < 1 || threads > maxThreads {
		return 0, "warps"
	}
	blocks, limiter = m.blocks, "blocks"
	limit := func(n int, what string) {
		if n < blocks {
			blocks, limiter = n, what
		}
	}
	limit(m.warps/warps, "warps")
	switch {
	case regs > maxRegisters:
		limit(0, "registers")
	case regs > 0:
		perWarp := roundUp(regs*warpThreads, registerUnit)
		limit(registers/perWarp/warpUnit*warpUnit/warps, "registers")
	}
	perBlock := roundUp(shared+m.reserved, m.unit)
	switch {
	case shared > m.block:
		limit(0, "shared memory")
	case perBlock > 0:
		limit(m.shared/perBlock, "shared memory")
	}
	return blocks, limiter
}

func roundUp(n, unit int) int { return (n + unit - 1) / unit * unit }
