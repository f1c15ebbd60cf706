package avx

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	avo "github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/reg"
)

// allocator assigns registers by colouring the interference graph (Chaitin and Briggs): copies are merged first, general
// registers that don't fit spill to the frame. avo's own allocator neither merges nor spills, and its time grows with the
// square of the function.
type allocator struct {
	fn      *avo.Function
	regs    *reg.Collection
	vecRegs int
	depth   map[*avo.Instruction]int

	width int // bytes of a vector register

	last   bool            // nothing else is left to try: vectors other than pinned ones may spill
	pinned map[reg.ID]bool // elements of register tiles

	usedVectors  int
	spills       int
	vectorSpills int
	worst        *avo.Instruction // after which too many registers are live

	again map[*avo.Instruction]bool // instructions that may be repeated before each use instead

	slots   map[reg.ID]operand.Mem      // of spilled registers
	repeats map[reg.ID]*avo.Instruction // of those, the ones that have no slot
	reloads map[reg.ID]bool             // registers that hold a spilled value for one instruction

	nodes []reg.Register // physical general registers and all virtual ones
	num   map[reg.ID]int
	order []*avo.Instruction
	out   []bitset // live after each instruction
	adj   []bitset
	alias []int
	cost  []float64
}

type bitset []uint64

func newBitset(n int) bitset    { return make(bitset, (n+63)/64) }
func (b bitset) has(i int) bool { return b[i/64]>>(i%64)&1 != 0 }
func (b bitset) set(i int)      { b[i/64] |= 1 << (i % 64) }
func (b bitset) clear(i int)    { b[i/64] &^= 1 << (i % 64) }
func (b bitset) or(o bitset) bool {
	changed := false
	for i, w := range o {
		if b[i]|w != b[i] {
			b[i] |= w
			changed = true
		}
	}
	return changed
}

// each calls f for every member, in order.
func (b bitset) each(f func(i int)) {
	for n, w := range b {
		for ; w != 0; w &= w - 1 {
			f(64*n + bits.TrailingZeros64(w))
		}
	}
}

// run replaces the function's virtual registers by physical ones.
func (a *allocator) run() error {
	a.repeats = map[reg.ID]*avo.Instruction{}
	a.slots, a.reloads = map[reg.ID]operand.Mem{}, map[reg.ID]bool{}
	merge := true
	for {
		if err := a.liveness(); err != nil {
			return err
		}
		a.interference()
		if merge {
			a.coalesce()
		}
		colours, failed := a.colour()
		if len(failed) == 0 {
			return a.bind(colours)
		}
		spill := slices.DeleteFunc(failed, func(n int) bool {
			k := a.nodes[n].Kind()
			return k != reg.KindGP && (k != reg.KindVector || !a.last)
		})
		switch {
		case len(spill) > 0:
			for _, n := range spill {
				if a.kept(n) {
					return a.pressure()
				}
			}
			if err := a.spill(spill); err != nil {
				return err
			}
		case merge && a.last:
			merge = false // copies instead of fewer, longer ranges
		default:
			return a.pressure()
		}
	}
}

// kept reports whether the node must stay in a register: one that holds a spilled value for an instruction, or an element of
// a register tile.
func (a *allocator) kept(n int) bool {
	for v, r := range a.nodes {
		if a.find(v) == n && (a.reloads[r.ID()] || a.pinned[r.ID()]) {
			return true
		}
	}
	return false
}

// pressure describes where most vector or mask registers are live.
func (a *allocator) pressure() error {
	var most [4]int
	var at [4]*avo.Instruction
	for i, out := range a.out {
		var n [4]int
		out.each(func(v int) { n[a.nodes[v].Kind()]++ })
		for k := range n {
			if n[k] > most[k] {
				most[k], at[k] = n[k], a.order[i]
			}
		}
	}
	kind, name, have := reg.KindVector, "vector", a.vecRegs
	if most[reg.KindVector] < a.vecRegs && most[reg.KindOpmask] > 7 {
		kind, name, have = reg.KindOpmask, "mask", 7
	}
	a.worst = at[kind]
	return fmt.Errorf("%d %s registers are live at once (after a %s), there are %d", most[kind], name, a.worst.Opcode, have)
}

// number gives every register of the function a node.
func (a *allocator) number() {
	a.nodes, a.num = nil, map[reg.ID]int{}
	a.order = a.fn.Instructions()
	for _, i := range a.order {
		for _, r := range slices.Concat(i.Registers(), i.InputRegisters(), i.OutputRegisters()) {
			if _, ok := a.num[r.ID()]; !ok && r.Kind() != reg.KindPseudo {
				a.num[r.ID()] = len(a.nodes)
				a.nodes = append(a.nodes, r)
			}
		}
	}
}

func (a *allocator) members(rs []reg.Register) []int {
	var out []int
	for _, r := range rs {
		if n, ok := a.num[r.ID()]; ok {
			out = append(out, n)
		}
	}
	return out
}

// liveness computes which registers are live after each instruction.
func (a *allocator) liveness() error {
	for _, i := range a.fn.Instructions() {
		i.Succ, i.Pred = nil, nil
	}
	if err := pass.LabelTarget(a.fn); err != nil {
		return err
	}
	if err := pass.CFG(a.fn); err != nil {
		return err
	}
	a.number()
	n := len(a.order)
	at := make(map[*avo.Instruction]int, n)
	uses, defs := make([][]int, n), make([][]int, n)
	in := make([]bitset, n)
	a.out = make([]bitset, n)
	for k, i := range a.order {
		at[i] = k
		uses[k], defs[k] = a.members(i.InputRegisters()), a.members(i.OutputRegisters())
		in[k], a.out[k] = newBitset(len(a.nodes)), newBitset(len(a.nodes))
	}
	t := newBitset(len(a.nodes))
	for changed := true; changed; {
		changed = false
		for k := n - 1; k >= 0; k-- {
			for _, s := range a.order[k].Succ {
				if s != nil {
					a.out[k].or(in[at[s]])
				}
			}
			copy(t, a.out[k])
			for _, d := range defs[k] {
				t.clear(d)
			}
			for _, u := range uses[k] {
				t.set(u)
			}
			if in[k].or(t) {
				changed = true
			}
		}
	}
	return nil
}

// copied returns the two nodes of a register copy.
func (a *allocator) copied(i *avo.Instruction) (from, to int, ok bool) {
	switch i.Opcode {
	case "MOVQ", "VMOVDQA", "VMOVDQA64":
	default:
		return 0, 0, false
	}
	if len(i.Operands) != 2 {
		return 0, 0, false
	}
	x, ok1 := i.Operands[0].(reg.Register)
	y, ok2 := i.Operands[1].(reg.Register)
	if !ok1 || !ok2 || x.Kind() != y.Kind() || x.Kind() == reg.KindPseudo {
		return 0, 0, false
	}
	return a.num[x.ID()], a.num[y.ID()], true
}

// interference joins each defined register with those live after its definition, except the source of a copy.
func (a *allocator) interference() {
	n := len(a.nodes)
	a.adj, a.alias, a.cost = make([]bitset, n), make([]int, n), make([]float64, n)
	for v := range n {
		a.adj[v], a.alias[v] = newBitset(n), v
	}
	for k, i := range a.order {
		weight := math.Pow(8, float64(a.depth[i]))
		from, _, isCopy := a.copied(i)
		defs := a.members(i.OutputRegisters())
		for _, d := range defs {
			a.cost[d] += weight
			join := func(l int) {
				if l != d && !(isCopy && l == from) && a.nodes[l].Kind() == a.nodes[d].Kind() {
					a.adj[d].set(l)
					a.adj[l].set(d)
				}
			}
			a.out[k].each(join)
			for _, e := range defs {
				join(e)
			}
		}
		for _, u := range a.members(i.InputRegisters()) {
			a.cost[u] += weight
		}
	}
}

func (a *allocator) find(v int) int {
	for a.alias[v] != v {
		v = a.alias[v]
	}
	return v
}

func (a *allocator) physical(v int) bool { return a.nodes[v].ID().IsPhysical() }

// coalesce merges the two sides of copies that don't interfere, those in inner loops first.
func (a *allocator) coalesce() {
	var copies []int
	for k, i := range a.order {
		if _, _, ok := a.copied(i); ok {
			copies = append(copies, k)
		}
	}
	slices.SortStableFunc(copies, func(x, y int) int { return a.depth[a.order[y]] - a.depth[a.order[x]] })
	for _, k := range copies {
		from, to, _ := a.copied(a.order[k])
		x, y := a.find(from), a.find(to)
		if x == y || a.physical(x) || a.physical(y) || a.adj[x].has(y) || a.reloads[a.nodes[x].ID()] || a.reloads[a.nodes[y].ID()] {
			continue
		}
		a.alias[y] = x
		a.cost[x] += a.cost[y]
		a.adj[y].each(func(l int) {
			a.adj[l].clear(y)
			a.adj[l].set(x)
			a.adj[x].set(l)
		})
	}
}

// colours returns how many registers there are of a node's kind.
func (a *allocator) colours(v int) int {
	switch a.nodes[v].Kind() {
	case reg.KindGP:
		return gprs
	case reg.KindVector:
		return a.vecRegs
	}
	return 7
}

// general are the general registers in the order of use: no stack pointer, no frame pointer.
var general = [gprs]reg.Index{0, 1, 2, 3, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15}

// colour gives each node a register index and returns those that found none.
func (a *allocator) colour() (colours []int, failed []int) {
	n := len(a.nodes)
	degree := make([]int, n)
	var work []int
	for v := range n {
		if a.alias[v] != v {
			continue
		}
		for _, w := range a.adj[v] {
			degree[v] += bits.OnesCount64(w)
		}
		if !a.physical(v) {
			work = append(work, v)
		}
	}
	single := a.repeatable()
	keep := make([]bool, n)
	for v, r := range a.nodes {
		keep[a.find(v)] = keep[a.find(v)] || a.reloads[r.ID()] || a.pinned[r.ID()]
	}
	var stack []int
	for len(work) > 0 {
		pick := slices.IndexFunc(work, func(v int) bool { return degree[v] < a.colours(v) })
		if pick < 0 { // the cheapest to spill, in the hope that a register is left for it
			least := math.Inf(1)
			for k, v := range work {
				c := a.cost[v] / float64(degree[v])
				if single[v] != nil {
					c /= 2 // no store, no slot
				}
				if keep[v] {
					c = math.MaxFloat64
				}
				if c < least {
					pick, least = k, c
				}
			}
		}
		v := work[pick]
		work = slices.Delete(work, pick, pick+1)
		stack = append(stack, v)
		a.adj[v].each(func(l int) { degree[l]-- })
	}
	colours = make([]int, n)
	for v := range n {
		colours[v] = -1
		if a.physical(v) {
			colours[v] = int(a.nodes[v].(reg.Physical).PhysicalIndex())
		}
	}
	for _, v := range slices.Backward(stack) {
		var taken uint64
		a.adj[v].each(func(l int) {
			if c := colours[l]; c >= 0 {
				taken |= 1 << c
			}
		})
		for c := range a.colours(v) {
			switch a.nodes[v].Kind() {
			case reg.KindGP:
				c = int(general[c])
			case reg.KindOpmask:
				c++ // K0 stands for no mask
			}
			if taken>>c&1 == 0 {
				colours[v] = c
				break
			}
		}
		if colours[v] < 0 {
			failed = append(failed, v)
		}
	}
	return colours, failed
}

// repeatable returns, for each vector node that a single instruction defines, that instruction if it may be repeated.
func (a *allocator) repeatable() []*avo.Instruction {
	defs, single := make([]int, len(a.nodes)), make([]*avo.Instruction, len(a.nodes))
	for _, i := range a.order {
		for _, d := range a.members(i.OutputRegisters()) {
			d = a.find(d)
			if defs[d]++; defs[d] == 1 && a.again[i] && a.nodes[d].Kind() == reg.KindVector {
				single[d] = i
			} else {
				single[d] = nil
			}
		}
	}
	return single
}

// bind writes the physical registers into the instructions and drops copies of a register to itself.
func (a *allocator) bind(colours []int) error {
	a.fn.Allocation = reg.NewEmptyAllocation()
	used := uint64(0)
	for v, r := range a.nodes {
		if a.physical(v) {
			continue
		}
		c := colours[a.find(v)]
		p := reg.LookupPhysical(r.Kind(), reg.Index(c), reg.Spec(r.Mask()))
		if p == nil {
			return fmt.Errorf("no register %d of the kind of %s", c, r.Asm())
		}
		a.fn.Allocation[r.ID()] = p.ID()
		if r.Kind() == reg.KindVector {
			used |= 1 << c
		}
	}
	a.usedVectors = bits.OnesCount64(used)
	if err := pass.BindRegisters(a.fn); err != nil {
		return err
	}
	if err := pass.VerifyAllocation(a.fn); err != nil {
		return err
	}
	a.fn.Nodes = slices.DeleteFunc(a.fn.Nodes, func(n avo.Node) bool {
		i, ok := n.(*avo.Instruction)
		if !ok || len(i.Operands) != 2 {
			return false
		}
		switch i.Opcode {
		case "MOVQ", "VMOVDQA", "VMOVDQA64":
			return i.Operands[0] == i.Operands[1]
		}
		return false
	})
	return nil
}
