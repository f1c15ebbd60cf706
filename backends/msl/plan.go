package msl

import "github.com/swizzle-rt/swizzle/ir"

// A kind is the type through which memory is read and written.
type kind struct{ name, suffix string }

// The kinds, by type of element.
var (
	floats = kind{"float", "f"}
	words  = kind{"uint", "u"}
	shorts = kind{"short", "s"}
	halves = kind{"ushort", "h"}
	chars  = kind{"char", "c"}
	octets = kind{"uchar", "b"}
)

// place identifies what a kernel reads and writes: a *ir.Param, *ir.Array or *ir.Reg.
type place any

func placeOf(m ir.Memory) place {
	if m.Param != nil {
		return m.Param
	}
	return m.Array
}

// plan knows how values and memory are used.
type plan struct {
	k    *ir.Kernel
	once map[*ir.Value]bool // used once, in the block that defines it

	written map[place]bool
	seen    map[place]map[ir.Type]bool // element types that memory is seen as
	tiles   map[*ir.Reg]bool           // register tiles that are used
}

func newPlan(k *ir.Kernel) *plan {
	p := &plan{k: k, once: map[*ir.Value]bool{}, written: map[place]bool{}, seen: map[place]map[ir.Type]bool{}, tiles: map[*ir.Reg]bool{}}
	c := &counter{uses: map[*ir.Value]int{}, home: map[*ir.Value]int{}}
	c.block(k.Body)
	for v, n := range c.uses {
		p.once[v] = n == 1
	}
	ir.Walk(k.Body, func(s ir.Stmt) {
		if i, ok := s.(*ir.Instr); ok {
			p.accesses(i)
		}
	})
	return p
}

// counter counts uses; one from a block within the defining one counts as two.
type counter struct {
	uses   map[*ir.Value]int
	home   map[*ir.Value]int
	blocks int
}

func (c *counter) block(body []ir.Stmt) {
	c.blocks++
	here := c.blocks
	use := func(v *ir.Value) {
		if c.uses[v]++; c.home[v] != here {
			c.uses[v]++
		}
	}
	for _, s := range body {
		switch s := s.(type) {
		case *ir.Instr:
			for _, v := range s.Args {
				if v != nil {
					use(v)
				}
			}
			for _, v := range s.Results {
				c.home[v] = here
			}
		case *ir.For:
			use(s.Lo)
			use(s.Hi)
			use(s.Hi) // compared in every iteration
			c.block(s.Body)
		case *ir.If:
			use(s.Cond)
			c.block(s.Then)
			c.block(s.Else)
		}
	}
}

func (p *plan) accesses(i *ir.Instr) {
	see := func(m ir.Memory, write bool) {
		at := placeOf(m)
		if p.seen[at] == nil {
			p.seen[at] = map[ir.Type]bool{}
		}
		p.seen[at][m.Type] = true
		p.written[at] = p.written[at] || write
	}
	switch i.Op {
	case ir.OpLoad:
		see(i.Mem, false)
	case ir.OpStore:
		see(i.Mem, true)
	case ir.OpAsyncCopy:
		see(i.Mem, true)
		see(i.Mem2, false)
	case ir.OpGet, ir.OpSet:
		p.tiles[i.Reg] = true
	}
}

// kinds lists how memory is accessed, in a fixed order.
func (p *plan) kinds(m ir.Memory) []kind {
	used := map[kind]bool{}
	for t := range p.seen[placeOf(m)] {
		k, _ := p.kind(m.As(t))
		used[k] = true
	}
	var list []kind
	for _, k := range []kind{floats, words, shorts, halves, chars, octets} {
		if used[k] {
			list = append(list, k)
		}
	}
	return list
}

// base returns the kind that the name of memory stands for; other kinds have a suffix.
func (p *plan) base(m ir.Memory) kind {
	if list := p.kinds(m); len(list) > 0 {
		return list[0]
	}
	return words
}

// kind returns the type for accesses to memory as elements of m.Type, and whether they go byte by byte. Within written memory
// one type stands for all of its width.
func (p *plan) kind(m ir.Memory) (k kind, split bool) {
	at := placeOf(m)
	var four, other bool
	for t := range p.seen[at] {
		four = four || t.Bytes() == 4
		other = other || t.Bytes() == 4 && t != ir.F32
	}
	switch t := m.Type; {
	case t == ir.I8:
		return chars, false
	case t == ir.U8:
		return octets, false
	case t.Bytes() == 2 && p.written[at] && four:
		return octets, true
	case t == ir.I16:
		return shorts, false
	case t.Bytes() == 2:
		return halves, false
	case t == ir.F32 && !(p.written[at] && other):
		return floats, false
	}
	return words, false
}

// constant returns the bits of v if they are known before the kernel runs.
func constant(v *ir.Value) (int64, bool) {
	if v == nil || v.Def == nil {
		return 0, false
	}
	i := v.Def
	if i.Op == ir.OpConst {
		return i.Imm, true
	}
	info := i.Op.Info()
	convert := i.Op == ir.OpToIndex || i.Op == ir.OpFromIndex
	if info.Lane == nil && info.Index == nil && !convert {
		return 0, false
	}
	var c [3]int64
	for n, a := range i.Args {
		x, ok := constant(a)
		if !ok {
			return 0, false
		}
		c[n] = x
	}
	switch {
	case info.Lane != nil:
		return int64(info.Lane(uint32(c[0]), uint32(c[1]), uint32(c[2]))), true
	case i.Op == ir.OpToIndex:
		return int64(int32(c[0])), true
	case i.Op == ir.OpFromIndex:
		return int64(uint32(c[0])), true
	case (i.Op == ir.OpDivX || i.Op == ir.OpModX) && c[1] < 1:
		return 0, false
	}
	return info.Index(c[0], c[1]), true
}

// crosses reports ops that read other lanes: all lanes must execute them, so they stay where they are.
func crosses(op ir.Op) bool {
	switch op {
	case ir.OpPackLanes4, ir.OpShuffleXor, ir.OpReadLane, ir.OpFoldAddF, ir.OpFoldAddI, ir.OpFoldMaxU, ir.OpFoldMaxF:
		return true
	}
	return false
}
