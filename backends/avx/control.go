package avx

import (
	"math/bits"

	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
	"github.com/mmcloughlin/avo/x86"

	"github.com/swizzle-rt/swizzle/ir"
)

// function prints the loop over tiles lo … hi−1 around the kernel's body. Tile coordinates are found by division once and
// then stepped like an odometer.
func (g *gen) function() {
	entry := g.out
	root := newScope(nil, nil)
	g.scope = root
	count, rest := g.gp(), g.gp()
	lo := g.gp()
	g.put(x86.MOVQ(operand.NewParamAddr("lo", 8), lo))
	g.put(x86.MOVQ(operand.NewParamAddr("hi", 16), count))
	g.put(x86.SUBQ(lo, count))
	g.put(x86.JLE(operand.LabelRef("done")))
	g.put(x86.MOVQ(lo, rest))
	limits := make([]reg.GPVirtual, len(g.k.Grid))
	coords := make([]reg.GPVirtual, len(g.k.Grid))
	for i, d := range g.k.Grid {
		coords[i] = g.gp()
		if i == len(g.k.Grid)-1 {
			g.put(x86.MOVQ(rest, coords[i]))
			break
		}
		limits[i] = g.tileCount(d)
		q, m := g.divide(rest, limits[i])
		g.put(x86.MOVQ(m, coords[i]))
		rest = q
	}

	body := newScope(root, entry.nested(0))
	loop := entry.nested(1)
	g.scope, g.out = body, loop
	for i := range g.k.Grid {
		g.tiles = append(g.tiles, g.newAtom(coords[i]))
	}
	g.label("tile")
	if g.lanes < g.k.Lanes {
		g.slices()
	} else {
		g.block(g.k.Body)
	}
	g.at = nil
	g.put(x86.DECQ(count))
	g.put(x86.JEQ(operand.LabelRef("done")))
	for i := range g.k.Grid {
		g.put(x86.INCQ(coords[i]))
		if i == len(g.k.Grid)-1 {
			break
		}
		g.put(x86.CMPQ(coords[i], limits[i]))
		g.put(x86.JLT(operand.LabelRef("tile")))
		g.put(x86.XORQ(coords[i], coords[i]))
	}
	g.put(x86.JMP(operand.LabelRef("tile")))
	g.out = entry.nested(0)
	g.label("done")
	g.put(x86.VZEROUPPER())
	g.put(x86.RET())
}

// slices prints the body as a loop over slices of the lanes, for kernels that [sliceable] accepts.
func (g *gen) slices() {
	i := g.gp()
	outer := g.scope
	s := newScope(outer, g.out.nested(0))
	s.step = 1
	after := g.out
	head, body := g.out.nested(0), g.out.nested(1)
	s.latch = &code{depth: body.depth}
	g.out = head
	g.mov(0, i)
	g.scope, g.out = s, body
	s.v = g.newAtom(i)
	g.slice = s.v
	g.label("slice")
	g.block(g.k.Body)
	body.items = append(body.items, s.latch)
	g.put(x86.INCQ(i))
	g.put(x86.CMPQ(i, imm(int64(g.k.Lanes/g.lanes))))
	g.put(x86.JLT(operand.LabelRef("slice")))
	g.scope, g.out = outer, after
}

// sliceable reports whether the lanes of a kernel don't depend on each other, so that it may compute some after others: no
// lane reads another's value, none waits for what another has stored, and no store is one for all lanes.
func sliceable(k *ir.Kernel) bool {
	ok := true
	ir.Walk(k.Body, func(s ir.Stmt) {
		i, instr := s.(*ir.Instr)
		if !instr {
			return
		}
		switch i.Op {
		case ir.OpPackLanes4, ir.OpShuffleXor, ir.OpReadLane, ir.OpFoldAddF, ir.OpFoldAddI, ir.OpFoldMaxU, ir.OpFoldMaxF, ir.OpBarrier:
			ok = false
		case ir.OpStore:
			ok = ok && i.Args[0].Span == ir.Varying
		}
	})
	return ok
}

// tileCount returns the number of tiles along an axis.
func (g *gen) tileCount(d ir.Dim) reg.GPVirtual {
	n := g.intParam(int64(d.Extent.Slot))
	r := g.gp()
	g.put(x86.LEAQ(operand.Mem{Base: n.reg, Disp: d.Tile - 1}, r))
	if d.Tile&(d.Tile-1) == 0 {
		g.put(x86.SHRQ(operand.U8(bits.TrailingZeros(uint(d.Tile))), r))
		return r
	}
	t := g.gp()
	g.mov(int64(d.Tile), t)
	q, _ := g.divide(r, t)
	return q
}

func (g *gen) intParam(slot int64) *atom {
	return g.argument([2]any{"int", slot}, argInts+8*int(slot))
}

func (g *gen) block(body []ir.Stmt) {
	for _, s := range body {
		g.at = s
		switch s := s.(type) {
		case *ir.Instr:
			clear(g.temps)
			g.scratch = 0
			g.instr(s)
		case *ir.For:
			g.loop(s)
		case *ir.If:
			g.branch(s)
		}
	}
}

func (g *gen) instr(i *ir.Instr) {
	row := &g.arch.rows[i.Op]
	if row.print == nil {
		g.fail("%s has no instruction here", i.Op)
	}
	for _, r := range i.Results {
		g.val(r).scope = g.scope
	}
	row.print(g, i)
}

// loop prints a For. Its scope's pre and latch fill while the body is printed.
func (g *gen) loop(f *ir.For) {
	if f.Unroll {
		g.fail("a loop is left to unroll")
	}
	lo, hi := g.val(f.Lo).x.p, g.val(f.Hi).x.p
	outer := g.scope
	s := newScope(outer, g.out.nested(0))
	s.lo, s.step = lo, int64(f.Step)
	head := g.out.nested(0)
	bodyCode := g.out.nested(1)
	s.latch = &code{depth: bodyCode.depth}
	start, end := g.newLabel("loop"), g.newLabel("end")
	after := g.out

	g.scope, g.out = s, head // what head needs from outside goes to pre, in order with what the body adds
	v := g.gp()
	if lo.isConst() {
		g.mov(lo.c, v)
	} else {
		g.put(x86.MOVQ(g.index(lo), v))
	}
	var limit operand.Op
	if hi.isConst() && fits32(hi.c) {
		limit = imm(hi.c)
	} else {
		limit = g.index(hi)
	}
	if d := hi.sub(lo); !d.isConst() || d.c <= 0 {
		g.put(x86.CMPQ(v, limit))
		g.put(x86.JGE(operand.LabelRef(end)))
	}

	g.out = bodyCode
	s.v = g.newAtom(v)
	g.val(f.Var).x = index{p: s.v.poly()}
	g.label(start)
	g.block(f.Body)
	g.at = f
	bodyCode.items = append(bodyCode.items, s.latch)
	g.put(x86.ADDQ(imm(s.step), v))
	g.put(x86.CMPQ(v, limit))
	g.put(x86.JLT(operand.LabelRef(start)))
	g.scope, g.out = outer, after
	g.label(end)
}

// branch prints an If.
func (g *gen) branch(s *ir.If) {
	outer, after := g.scope, g.out
	pre := g.out.nested(0)
	otherwise, end := g.newLabel("else"), g.newLabel("end")
	g.scope = newScope(outer, pre)
	g.branchUnless(s.Cond, otherwise)
	g.scope = newScope(outer, pre)
	g.block(s.Then)
	if len(s.Else) > 0 {
		g.put(x86.JMP(operand.LabelRef(end)))
	}
	g.label(otherwise)
	g.scope = newScope(outer, pre)
	g.block(s.Else)
	if len(s.Else) > 0 {
		g.label(end)
	}
	g.scope, g.out = outer, after
}

// get copies an element of a register tile; allocation merges the copy where the element doesn't change before its uses end.
func (g *gen) get(i *ir.Instr) {
	e := g.element(i)
	g.each(i, func(p int, dst reg.VecVirtual) { g.move(e[p], dst) })
}

// set assigns an element of a register tile.
func (g *gen) set(i *ir.Instr) {
	e := g.element(i)
	for p := range e {
		g.accumulator(i.Args[1], p, e[p])
	}
}

// element returns the registers of the element of a register tile that i names.
func (g *gen) element(i *ir.Instr) []reg.VecVirtual {
	n, ok := i.Args[0].Const()
	if !ok || n < 0 || n >= int64(i.Reg.Len) {
		g.fail("the element of a register tile must be a constant below %d", i.Reg.Len)
	}
	per := 1
	if i.Reg.Span == ir.Varying {
		per = g.parts
	}
	e := g.elems[i.Reg]
	if e == nil {
		e = make([]reg.VecVirtual, per*i.Reg.Len)
		for p := range e {
			e[p] = g.vec()
		}
		g.elems[i.Reg] = e
	}
	return e[int(n)*per : int(n)*per+per]
}
