package sim

import (
	"fmt"
	"math/rand/v2"
)

// Buffer is global memory. Loads may reach to the next multiple of 64 bytes after its end, stores may not.
type Buffer struct {
	Name     string
	Data     []byte
	ReadOnly bool   // a store is an error
	Addr     uint64 // where it begins; [Place] chooses one
}

// Place gives buffers addresses: far from each other and aligned to 256 bytes and no better.
func Place(buffers ...*Buffer) {
	at := uint64(1) << 32
	for _, b := range buffers {
		b.Addr = at + 256
		at += (uint64(len(b.Data))>>32 + 1) << 32
	}
}

// Launch is one run of a kernel: Grid blocks of Block threads.
type Launch struct {
	Grid, Block int
	Params      []uint64 // bits of the parameters: addresses, integers, floats
	Memory      []*Buffer
	Seed        uint64 // of the order of warps and blocks; 0 is by their numbers
	Steps       int64  // most instructions of warps; 0 stands for 2³⁰
}

// Report counts what a run did.
type Report struct {
	Instrs      int64            // instructions of warps
	LaneInstrs  int64            // lanes that took part in them
	ByOp        map[string]int64 // Instrs by full opcode
	Barriers    int64            // by blocks
	AsyncCopies int64            // by lanes
	Traffic
	Accesses []Access // of the instructions that touch memory and ran, in order of the text
}

// Traffic counts accesses to memory by warps. A wavefront is one pass over the 32 banks of shared memory, of 4 bytes each: 32
// lanes at once where a lane has 4 bytes or less, 16 where it has 8, 8 where it has 16. A sector is 32 bytes of global memory.
// The ideal has no bank conflicts, or only the sectors that the bytes asked for fill.
type Traffic struct {
	SharedWavefronts, SharedIdeal int64
	GlobalSectors, GlobalIdeal    int64
}

func (t *Traffic) add(u Traffic) {
	t.SharedWavefronts += u.SharedWavefronts
	t.SharedIdeal += u.SharedIdeal
	t.GlobalSectors += u.GlobalSectors
	t.GlobalIdeal += u.GlobalIdeal
}

// Access is the traffic of one instruction of the text.
type Access struct {
	Line int
	Op   string
	Runs int64 // by warps
	Traffic
}

// Error is a fault that a run met.
type Error struct {
	Entry  string
	Line   int
	Instr  string
	Block  int
	Thread int // −1 where it is no single thread's
	Msg    string
}

func (e *Error) Error() string {
	who := fmt.Sprintf("block %d", e.Block)
	if e.Thread >= 0 {
		who += fmt.Sprintf(", thread %d", e.Thread)
	}
	return fmt.Sprintf("ptx: %s: line %d: %s: %s: %s", e.Entry, e.Line, e.Instr, who, e.Msg)
}

const maxRegisterBytes = 1 << 28 // of a block

// machine is a run.
type machine struct {
	*Entry
	launch *Launch
	order  *rand.Rand // nil for the order of numbers

	global []*region // by address
	shared []*region
	warps  []*warp
	block  int
	clock
	report Report
	runs   []int64 // of each instruction
	lanes  []int64
	moved  []Traffic
	steps  int64
}

// Run executes a launch. After an error, an *[Error] if the kernel made it, buffers hold what was stored until then.
func (e *Entry) Run(l *Launch) (*Report, error) {
	m, err := e.prepare(l)
	if err != nil {
		return nil, fmt.Errorf("ptx: launch %s: %w", e.Name, err)
	}
	blocks := m.permutation(l.Grid)
	for n := range l.Grid {
		m.block = n
		if blocks != nil {
			m.block = blocks[n]
		}
		if err := m.runBlock(); err != nil {
			return nil, err
		}
	}
	return m.finish(), nil
}

func (e *Entry) prepare(l *Launch) (*machine, error) {
	switch {
	case l.Grid < 0 || l.Grid > 1<<24:
		return nil, fmt.Errorf("%d blocks; there may be 0 … %d", l.Grid, 1<<24)
	case e.Threads != 0 && l.Block != e.Threads:
		return nil, fmt.Errorf("%d threads; the kernel requires %d", l.Block, e.Threads)
	case l.Block < 1 || l.Block > e.maxThreads:
		return nil, fmt.Errorf("%d threads; there may be 1 … %d", l.Block, e.maxThreads)
	case len(l.Params) != len(e.Params):
		return nil, fmt.Errorf("%d parameters; the kernel has %d", len(l.Params), len(e.Params))
	}
	for n, p := range e.Params {
		if p.Bytes == 4 && l.Params[n]>>32 != 0 {
			return nil, fmt.Errorf("parameter %s has 4 bytes", p.Name)
		}
	}
	count := (l.Block + 31) / 32
	if n := (e.slots[words]*128 + e.slots[longs]*256) * count; n > maxRegisterBytes {
		return nil, fmt.Errorf("registers of a block take %d bytes; supported are %d", n, maxRegisterBytes)
	}
	m := &machine{Entry: e, launch: l, steps: l.Steps}
	if m.steps == 0 {
		m.steps = 1 << 30
	}
	if l.Seed != 0 {
		m.order = rand.New(rand.NewPCG(l.Seed, 0))
	}
	if err := m.layout(); err != nil {
		return nil, err
	}
	m.runs, m.lanes, m.moved = make([]int64, len(e.code)), make([]int64, len(e.code)), make([]Traffic, len(e.code))
	for n := range count {
		m.warps = append(m.warps, newWarp(m, n))
	}
	return m, nil
}

// permutation returns an order of n things, nil for that of their numbers.
func (m *machine) permutation(n int) []int {
	if m.order == nil || n < 2 {
		return nil
	}
	return m.order.Perm(n)
}

func (m *machine) finish() *Report {
	r := &m.report
	r.ByOp = map[string]int64{}
	for n, in := range m.code {
		if m.runs[n] == 0 {
			continue
		}
		r.Instrs += m.runs[n]
		r.LaneInstrs += m.lanes[n]
		r.ByOp[in.op] += m.runs[n]
		if m.moved[n] != (Traffic{}) {
			r.Traffic.add(m.moved[n])
			r.Accesses = append(r.Accesses, Access{in.line, in.op, m.runs[n], m.moved[n]})
		}
	}
	return r
}
