// Package interp executes a kernel exactly as package ir defines it. It is the living definition of the language: every
// backend is tested against it for equal bits.
//
// While it runs it proves what kernels promise: indices in range, exact products and conversions, register tiles set before
// they are read, barriers reached by the whole block, no two lanes touching one cell of memory between barriers unless
// both read. It counts shared-memory wavefronts, global sectors, barriers and instructions.
package interp

import (
	"fmt"
	"slices"

	"github.com/swizzle-rt/swizzle/ir"
)

// Args are the values of a kernel's parameters by slot. Buffers are exact: a load may reach to the next multiple of 64
// bytes and then sees unspecified bits, a store may not.
type Args struct {
	Buffers [][]byte
	Ints    []int64
	Floats  []float32
}

// Report counts what a run did. Unaligned counts, by lane, the loads and stores of two or four elements that don't start at a
// multiple of as many: a GPU takes those one element at a time. Wavefronts and sectors are those of one GPU warp access: the number of passes over 32 banks
// of 4 bytes, and of distinct 32-byte sectors, beside the least possible for the bytes asked for.
type Report struct {
	Instrs                        int64 // instructions, one per active lane group
	Barriers                      int64
	SharedWavefronts, SharedIdeal int64
	GlobalSectors, GlobalIdeal    int64
	AsyncCopies, Unaligned        int64
	ByOp                          map[ir.Op]int64
}

// Tiles returns the number of tiles of the kernel's grid for these integer parameters; a kernel without axes has one.
func Tiles(k *ir.Kernel, ints []int64) int64 {
	n := int64(1)
	for _, d := range k.Grid {
		n *= axis(d, ints)
	}
	return n
}

func axis(d ir.Dim, ints []int64) int64 {
	t := int64(d.Tile)
	return (ints[d.Extent.Slot] + t - 1) / t
}

// Run executes every tile of the grid, in order.
func Run(k *ir.Kernel, a Args) (*Report, error) {
	if err := checkArgs(k, a); err != nil {
		return nil, err
	}
	return run(k, a, 0, Tiles(k, a.Ints))
}

// RunTiles executes the tiles lo … hi−1 of the flattened grid.
func RunTiles(k *ir.Kernel, a Args, lo, hi int64) (*Report, error) {
	if err := checkArgs(k, a); err != nil {
		return nil, err
	}
	if n := Tiles(k, a.Ints); lo < 0 || hi > n {
		return nil, fmt.Errorf("kernel %s: tiles %d … %d of %d", k.Name, lo, hi-1, n)
	}
	return run(k, a, lo, hi)
}

func run(k *ir.Kernel, a Args, lo, hi int64) (r *Report, err error) {
	m := newMachine(k, a)
	defer func() {
		if p := recover(); p != nil {
			e, ok := p.(*ir.Error)
			if !ok {
				panic(p)
			}
			r, err = nil, e
		}
	}()
	for t := lo; t < hi; t++ {
		m.startTile(t)
		m.run(k.Body, m.all)
		m.endTile()
	}
	for o, n := range m.byOp {
		if n > 0 {
			m.report.ByOp[ir.Op(o)] = n
		}
	}
	return m.report, nil
}

// slot holds a value: one entry if uniform over the block, one per group, or one per lane.
type slot struct {
	u []uint32
	x []int64 // of Index values
}

type machine struct {
	k      *ir.Kernel
	args   Args
	lanes  int
	groups int
	tile   []int64 // coordinates
	vals   []slot
	regs   map[*ir.Reg]*regTile
	mem    map[any]*memory // by *ir.Param or *ir.Array
	all    []bool
	async  []asyncState
	epoch  int64 // counts barriers and tiles
	tileID int64
	report *Report
	byOp   [256]int64
	words  [32]uint32 // scratch, one per lane
	where  [32]int
	at     *ir.Instr
}

type regTile struct {
	u   []uint32
	set []bool // by element and group
}

func newMachine(k *ir.Kernel, a Args) *machine {
	m := &machine{k: k, args: a, lanes: k.Lanes, groups: k.Groups, vals: make([]slot, k.Values()), regs: map[*ir.Reg]*regTile{}, mem: map[any]*memory{}}
	m.report = &Report{ByOp: map[ir.Op]int64{}}
	m.all = make([]bool, k.Groups)
	for i := range m.all {
		m.all[i] = true
	}
	m.tile = make([]int64, len(k.Grid))
	for _, r := range k.Regs {
		m.regs[r] = &regTile{make([]uint32, r.Len*m.width(r.Span)), make([]bool, r.Len*k.Groups)}
	}
	for _, p := range k.Params {
		if p.Kind == ir.Buffer {
			m.mem[p] = &memory{data: a.Buffers[p.Slot]}
		}
	}
	m.async = make([]asyncState, k.Groups)
	ir.Walk(k.Body, func(s ir.Stmt) {
		switch s := s.(type) {
		case *ir.For:
			m.define(s.Var)
		case *ir.Instr:
			for _, r := range s.Results {
				m.define(r)
			}
		}
	})
	return m
}

func (m *machine) width(s ir.Span) int {
	switch s {
	case ir.Block:
		return 1
	case ir.Group:
		return m.groups
	}
	return m.groups * m.lanes
}

// strides returns how far the group and the lane move in a slot of that span.
func (m *machine) strides(s ir.Span) (group, lane int) {
	switch s {
	case ir.Block:
		return 0, 0
	case ir.Group:
		return 1, 0
	}
	return m.lanes, 1
}

func checkArgs(k *ir.Kernel, a Args) error {
	var n [3]int
	for _, p := range k.Params {
		n[p.Kind] = max(n[p.Kind], p.Slot+1)
	}
	if len(a.Buffers) < n[ir.Buffer] || len(a.Ints) < n[ir.Integer] || len(a.Floats) < n[ir.Float] {
		return fmt.Errorf("kernel %s: %d buffers, %d integers and %d floats given, %d, %d and %d needed", k.Name,
			len(a.Buffers), len(a.Ints), len(a.Floats), n[ir.Buffer], n[ir.Integer], n[ir.Float])
	}
	return nil
}

func (m *machine) startTile(t int64) {
	m.tileID = t
	for i, d := range m.k.Grid {
		n := axis(d, m.args.Ints)
		m.tile[i] = t % n
		t /= n
	}
	for _, a := range m.k.Shared {
		m.mem[a] = &memory{data: make([]byte, a.Bytes()), undefined: slices.Repeat([]bool{true}, a.Bytes())}
	}
	for _, r := range m.regs {
		clear(r.set)
	}
	m.epoch++
}

func (m *machine) endTile() {
	for g := range m.async {
		if n := m.async[g].pending(); n > 0 {
			m.fail("%d asynchronous copies are still pending at the end of the tile", n)
		}
	}
}

func (m *machine) fail(format string, args ...any) {
	e := &ir.Error{Kernel: m.k.Name, Msg: fmt.Sprintf(format, args...)}
	if m.at != nil {
		e.Pos, e.Stmt = m.at.Pos, ir.Format(m.k, m.at)
	}
	panic(e)
}

// run executes the statements for the active lane groups.
func (m *machine) run(body []ir.Stmt, active []bool) {
	for _, s := range body {
		switch s := s.(type) {
		case *ir.Instr:
			m.at = s
			m.exec(s, active)
		case *ir.For:
			m.loop(s, active)
		case *ir.If:
			m.branch(s, active)
		}
	}
}

func (m *machine) loop(f *ir.For, active []bool) {
	now := append([]bool(nil), active...)
	i := make([]int64, m.groups)
	gs, _ := m.strides(f.Var.Span)
	v := m.slot(f.Var)
	for g := range i {
		i[g] = m.index(f.Lo, g, 0)
	}
	for {
		any := false
		for g := range now {
			now[g] = now[g] && i[g] < m.index(f.Hi, g, 0)
			if now[g] {
				any = true
				v.x[g*gs] = i[g]
			}
			i[g] += int64(f.Step)
		}
		if !any {
			return
		}
		m.run(f.Body, now)
	}
}

func (m *machine) branch(s *ir.If, active []bool) {
	then, other := make([]bool, m.groups), make([]bool, m.groups)
	anyThen, anyElse := false, false
	for g, on := range active {
		if !on {
			continue
		}
		if m.word(s.Cond, g, 0) != 0 {
			then[g], anyThen = true, true
		} else {
			other[g], anyElse = true, true
		}
	}
	if anyThen {
		m.run(s.Then, then)
	}
	if anyElse {
		m.run(s.Else, other)
	}
}

// define makes the storage of a value.
func (m *machine) define(v *ir.Value) {
	s := &m.vals[v.ID]
	if v.Type == ir.Index {
		s.x = make([]int64, m.width(v.Span))
	} else {
		s.u = make([]uint32, m.width(v.Span))
	}
}

func (m *machine) slot(v *ir.Value) *slot { return &m.vals[v.ID] }

func (m *machine) word(v *ir.Value, g, l int) uint32 {
	gs, ls := m.strides(v.Span)
	return m.slot(v).u[g*gs+l*ls]
}

func (m *machine) index(v *ir.Value, g, l int) int64 {
	gs, ls := m.strides(v.Span)
	return m.slot(v).x[g*gs+l*ls]
}
