package verify

import (
	"slices"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// Pressure estimates the registers that a lowered kernel needs: the largest number of vector registers and of general
// registers that are live at the same time.
//
// A varying word takes Lanes·32/VecBits vector registers (one where that is below one or VecBits is 0), and so does an
// element of a varying register tile that is read later; a uniform word takes one, equal in all lanes. Masks take none where
// vectors have 512 bits (they have registers of their own) or VecBits is 0. An index takes a general register, the lane's
// part of a varying one being folded into addresses. What can be an operand in memory takes none: constants, and words of
// buffers that nothing writes; nor does what was read of an element while the element itself is live. Each buffer takes a
// general register for its address.
//
// It goes by the order of the statements. A backend may need fewer, computing values where they are used, and needs more for
// what it expands an op into.
func Pressure(k *ir.Kernel, c *target.Caps) (vectors, gprs int) {
	p := newPressure(k, c, true)
	p.body(k.Body)
	return p.most[vector], p.most[general] + buffers(k)
}

// tilePressure counts the elements of register tiles alone: no order of statements needs fewer vector registers.
func tilePressure(k *ir.Kernel, c *target.Caps) int {
	p := newPressure(k, c, false)
	p.body(k.Body)
	return p.most[vector]
}

func buffers(k *ir.Kernel) int {
	used := map[*ir.Param]bool{}
	ir.Walk(k.Body, func(s ir.Stmt) {
		if i, ok := s.(*ir.Instr); ok {
			used[i.Mem.Param], used[i.Mem2.Param] = true, true
		}
	})
	delete(used, nil)
	return len(used)
}

const (
	vector = iota
	general
	classes
)

// pressure walks a kernel backwards. It numbers what can be live: values by their ids, then the elements of register tiles.
type pressure struct {
	k       *ir.Kernel
	element map[*ir.Reg]int // number of a tile's first element
	cost    [][classes]int  // registers that a number takes
	home    []int           // the number itself; of what was read of an element, the element
	live    []bool
	held    []int // live numbers that have this home: they share its registers
	now     [classes]int
	most    [classes]int
}

// newPressure numbers the kernel's values and elements; without values those cost nothing.
func newPressure(k *ir.Kernel, c *target.Caps, values bool) *pressure {
	p := &pressure{k: k, element: map[*ir.Reg]int{}}
	n := k.Values()
	for _, r := range k.Regs {
		p.element[r] = n
		n += r.Len
	}
	p.cost, p.home, p.live, p.held = make([][classes]int, n), make([]int, n), make([]bool, n), make([]int, n)
	for i := range p.home {
		p.home[i] = i
	}
	for _, r := range k.Regs {
		for e := range r.Len {
			p.cost[p.element[r]+e] = cost(k, c, r.Type, r.Span)
		}
	}
	if !values {
		return p
	}
	ir.Walk(k.Body, func(s ir.Stmt) {
		switch s := s.(type) {
		case *ir.For:
			p.cost[s.Var.ID] = cost(k, c, s.Var.Type, s.Var.Span)
		case *ir.Instr:
			for _, r := range s.Results {
				if !inMemory(s) {
					p.cost[r.ID] = cost(k, c, r.Type, r.Span)
				}
			}
			if e, ok := p.elementOf(s); ok && s.Op == ir.OpGet {
				p.home[s.Results[0].ID] = e
			}
		}
	})
	return p
}

// inMemory reports whether the results can be operands in memory wherever they are used: constants, and words of buffers
// that nothing writes.
func inMemory(i *ir.Instr) bool {
	return i.Op == ir.OpConst || i.Op == ir.OpFloatParam ||
		i.Op == ir.OpLoad && i.Args[1] == nil && i.Mem.Type.Bytes() == 4 && i.Mem.Param != nil && i.Mem.Param.Access == ir.In
}

// cost returns the registers that a value takes.
func cost(k *ir.Kernel, c *target.Caps, t ir.Type, s ir.Span) (r [classes]int) {
	switch {
	case t == ir.Index, t == ir.Bool && s != ir.Varying:
		r[general] = 1
	case t == ir.Bool && (c.VecBits == 0 || c.VecBits >= 512): // a mask register
	case s != ir.Varying || c.VecBits == 0:
		r[vector] = 1
	default:
		r[vector] = max(1, k.Lanes*32/c.VecBits)
	}
	return r
}

// elementOf returns the number of the element that a Get or Set names by a constant.
func (p *pressure) elementOf(i *ir.Instr) (int, bool) {
	if i.Reg == nil {
		return 0, false
	}
	x, ok := i.Args[0].Const()
	if !ok || x < 0 || x >= int64(i.Reg.Len) {
		return 0, false
	}
	return p.element[i.Reg] + int(x), true
}

func (p *pressure) set(n int, live bool) {
	if p.live[n] == live {
		return
	}
	p.live[n] = live
	h := p.home[n]
	step := 1
	if !live {
		step = -1
	}
	before := p.held[h]
	p.held[h] += step
	if before == 0 || p.held[h] == 0 {
		for c := range p.now {
			p.now[c] += step * p.cost[h][c]
		}
	}
}

func (p *pressure) note() {
	for c, n := range p.now {
		p.most[c] = max(p.most[c], n)
	}
}

func (p *pressure) use(vs ...*ir.Value) {
	for _, v := range vs {
		if v != nil {
			p.set(v.ID, true)
		}
	}
}

// restore makes exactly these numbers live.
func (p *pressure) restore(live []bool) {
	for n, l := range live {
		p.set(n, l)
	}
}

// join makes these numbers live too and reports whether one was not.
func (p *pressure) join(live []bool) bool {
	grown := false
	for n, l := range live {
		if l && !p.live[n] {
			p.set(n, true)
			grown = true
		}
	}
	return grown
}

func (p *pressure) body(body []ir.Stmt) {
	for _, s := range slices.Backward(body) {
		switch s := s.(type) {
		case *ir.Instr:
			p.instr(s)
		case *ir.For:
			p.loop(s)
		case *ir.If:
			out := slices.Clone(p.live)
			p.body(s.Then)
			then := slices.Clone(p.live)
			p.restore(out)
			p.body(s.Else)
			p.join(then)
			p.use(s.Cond)
			p.note()
		}
	}
}

func (p *pressure) instr(i *ir.Instr) {
	for _, r := range i.Results { // an unused one takes a register too
		p.set(r.ID, true)
	}
	p.note()
	for _, r := range i.Results {
		p.set(r.ID, false)
	}
	e, constant := p.elementOf(i)
	switch {
	case i.Op == ir.OpSet && constant:
		p.set(e, false)
	case i.Op == ir.OpGet && constant:
		p.set(e, true)
	case i.Op == ir.OpGet: // not lowered: any element
		for e := range i.Reg.Len {
			p.set(p.element[i.Reg]+e, true)
		}
	}
	p.use(i.Args...)
	p.note()
}

// loop repeats the body until what is live at its end is what is live at its head or after the loop.
func (p *pressure) loop(f *ir.For) {
	out := slices.Clone(p.live)
	p.use(f.Var, f.Hi)
	for {
		end := slices.Clone(p.live)
		p.note()
		p.body(f.Body)
		head := slices.Clone(p.live)
		p.restore(end)
		if !p.join(head) {
			break
		}
	}
	p.set(f.Var.ID, false)
	p.join(out) // the body may never run
	p.use(f.Lo, f.Hi)
	p.note()
}
