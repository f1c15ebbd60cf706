package interp

import (
	"math"

	"github.com/swizzle-rt/swizzle/ir"
)

// exec runs one instruction for the active lane groups.
func (m *machine) exec(i *ir.Instr, active []bool) {
	for _, on := range active {
		if on {
			m.report.Instrs++
			m.byOp[i.Op]++
		}
	}
	info := i.Op.Info()
	switch {
	case info.Lane != nil:
		m.laneOp(i, info, active)
		return
	case info.Index != nil:
		m.indexOp(i, info, active)
		return
	}
	switch i.Op {
	case ir.OpConst:
		s := m.slot(i.Results[0])
		if s.x != nil {
			s.x[0] = i.Imm
		} else {
			s.u[0] = uint32(i.Imm)
		}
	case ir.OpLane:
		s := m.slot(i.Results[0])
		for n := range s.x {
			s.x[n] = int64(n % m.lanes)
		}
	case ir.OpGroup:
		s := m.slot(i.Results[0])
		for g := range s.x {
			s.x[g] = int64(g)
		}
	case ir.OpTile:
		m.slot(i.Results[0]).x[0] = m.tile[i.Imm]
	case ir.OpIntParam:
		m.slot(i.Results[0]).x[0] = m.args.Ints[i.Imm]
	case ir.OpFloatParam:
		m.slot(i.Results[0]).u[0] = math.Float32bits(m.args.Floats[i.Imm])
	case ir.OpToIndex:
		m.each(i.Results[0], active, func(g, l, at int) { m.slot(i.Results[0]).x[at] = int64(int32(m.word(i.Args[0], g, l))) })
	case ir.OpFromIndex:
		m.each(i.Results[0], active, func(g, l, at int) { m.slot(i.Results[0]).u[at] = uint32(m.index(i.Args[0], g, l)) })
	case ir.OpLookup16:
		m.each(i.Results[0], active, func(g, l, at int) {
			v, r := m.word(i.Args[0], g, l), uint32(0)
			for b := 0; b < 32; b += 8 {
				n := v >> b & 0xFF
				if n > 15 {
					m.fail("lookup of %d in 16 entries", n)
				}
				r |= uint32(i.Table[n]) << b
			}
			m.slot(i.Results[0]).u[at] = r
		})
	case ir.OpPackLanes4, ir.OpShuffleXor, ir.OpReadLane, ir.OpFoldAddF, ir.OpFoldAddI, ir.OpFoldMaxU, ir.OpFoldMaxF:
		m.crossLane(i, active)
	case ir.OpGet, ir.OpSet:
		m.register(i, active)
	case ir.OpLoad:
		m.load(i, active)
	case ir.OpStore:
		m.store(i, active)
	case ir.OpPrefetch:
	case ir.OpBarrier:
		m.barrier(active)
	case ir.OpAsyncCopy, ir.OpAsyncCommit, ir.OpAsyncWait:
		m.asynchronous(i, active)
	case ir.OpLdMatrix:
		m.ldMatrix(i, active)
	case ir.OpMMA:
		m.mma(i, active)
	case ir.OpFragCoord:
		for n := range 2 {
			s := m.slot(i.Results[n])
			m.each(i.Results[n], active, func(g, l, at int) {
				row, col := i.Atom.C.Coord(l, int(i.Imm), 0)
				s.x[at] = int64([2]int{row, col}[n])
			})
		}
	default:
		m.fail("no meaning for %s", i.Op)
	}
}

// rows calls f for every run of entries of a value's slot that belongs to an active group: n of them from at on, those of
// lanes 0 … n−1 of group g.
func (m *machine) rows(s ir.Span, active []bool, f func(g, at, n int)) {
	if s == ir.Block {
		f(0, 0, 1)
		return
	}
	for g, on := range active {
		switch {
		case !on:
		case s == ir.Group:
			f(g, g, 1)
		default:
			f(g, g*m.lanes, m.lanes)
		}
	}
}

// each calls f for every entry of v's slot that belongs to an active group.
func (m *machine) each(v *ir.Value, active []bool, f func(g, l, at int)) {
	m.rows(v.Span, active, func(g, at, n int) {
		for l := range n {
			f(g, l, at+l)
		}
	})
}

func (m *machine) laneOp(i *ir.Instr, info *ir.Info, active []bool) {
	check := i.Op == ir.OpFMAExact || i.Op == ir.OpToF32 || i.Op == ir.OpDot4US || i.Op == ir.OpDot4SS
	dst := m.slot(i.Results[0]).u
	m.rows(i.Results[0].Span, active, func(g, at, n int) {
		src := [3][]uint32{zero[:], zero[:], zero[:]}
		var step [3]int
		for k, v := range i.Args {
			gs, ls := m.strides(v.Span)
			src[k], step[k] = m.slot(v).u[g*gs:], ls
		}
		a, b, c := src[0], src[1], src[2]
		for l := range n {
			x, y, z := a[l*step[0]], b[l*step[1]], c[l*step[2]]
			if check {
				m.promise(i, x, y, l)
			}
			dst[at+l] = info.Lane(x, y, z)
		}
	})
}

var zero [1]uint32

// promise proves what the op's row in the table demands of its operands.
func (m *machine) promise(i *ir.Instr, a, b uint32, lane int) {
	switch i.Op {
	case ir.OpFMAExact:
		if !ir.ExactProduct(a, b) {
			m.fail("lane %d: %v · %v is not exact in float32", lane, math.Float32frombits(a), math.Float32frombits(b))
		}
	case ir.OpToF32:
		if !ir.ExactInt(a) {
			m.fail("lane %d: %d has more than 24 bits", lane, int32(a))
		}
	case ir.OpDot4US:
		for s := 0; s < 32; s += 8 {
			if int64(a>>s&0xFF) > i.Imm {
				m.fail("lane %d: byte %d is above the stated bound %d", lane, a>>s&0xFF, i.Imm)
			}
		}
	case ir.OpDot4SS:
		for s := 0; s < 32; s += 8 {
			if b>>s&0xFF == 0x80 {
				m.fail("lane %d: second operand holds −128", lane)
			}
		}
	}
}

func (m *machine) indexOp(i *ir.Instr, info *ir.Info, active []bool) {
	r := i.Results[0]
	s := m.slot(r)
	m.each(r, active, func(g, l, at int) {
		a, b := m.index(i.Args[0], g, l), m.index(i.Args[1], g, l)
		if (i.Op == ir.OpDivX || i.Op == ir.OpModX) && (b <= 0 || a < 0) {
			m.fail("lane %d: %s of %d and %d", l, i.Op, a, b)
		}
		v := info.Index(a, b)
		if s.x != nil {
			s.x[at] = v
		} else {
			s.u[at] = uint32(v)
		}
	})
}

func (m *machine) crossLane(i *ir.Instr, active []bool) {
	r := m.slot(i.Results[0]).u
	gs, ls := m.strides(i.Results[0].Span)
	in := m.words[:m.lanes]
	for g, on := range active {
		if !on && i.Results[0].Span != ir.Block {
			continue
		}
		for l := range in {
			in[l] = m.word(i.Args[0], g, l)
		}
		for l := range m.lanes {
			var v uint32
			switch i.Op {
			case ir.OpPackLanes4:
				q := l &^ 3
				v = in[q]&0xFF | in[q+1]&0xFF<<8 | in[q+2]&0xFF<<16 | in[q+3]<<24
			case ir.OpShuffleXor:
				v = in[l^int(i.Imm)]
			case ir.OpReadLane:
				v = in[i.Imm]
			default:
				if l == 0 {
					fold(i.Op, in)
				}
				v = in[0]
			}
			r[g*gs+l*ls] = v
		}
	}
}

// fold leaves the reduction of v in v[0].
func fold(op ir.Op, v []uint32) {
	f := func(x uint32) float32 { return math.Float32frombits(x) }
	if op == ir.OpFoldMaxF {
		top := math.Float32bits(float32(math.Inf(-1)))
		for _, x := range v {
			if f(x) > f(top) {
				top = x
			}
		}
		v[0] = top
		return
	}
	for s := len(v) / 2; s > 0; s /= 2 {
		for l := range s {
			switch op {
			case ir.OpFoldAddF:
				v[l] = math.Float32bits(f(v[l]) + f(v[l+s]))
			case ir.OpFoldAddI:
				v[l] += v[l+s]
			case ir.OpFoldMaxU:
				v[l] = max(v[l], v[l+s])
			}
		}
	}
}

func (m *machine) register(i *ir.Instr, active []bool) {
	t := m.regs[i.Reg]
	w := m.width(i.Reg.Span)
	gs, ls := m.strides(i.Reg.Span)
	element := func(g int) int {
		x := m.index(i.Args[0], g, 0)
		if x < 0 || x >= int64(i.Reg.Len) {
			m.fail("element %d of the register tile %s, which has %d", x, i.Reg.Name, i.Reg.Len)
		}
		return int(x)
	}
	for g, on := range active {
		if !on {
			continue
		}
		e := element(g)
		set := &t.set[e*m.groups+g]
		if i.Op == ir.OpGet && !*set {
			m.fail("element %d of the register tile %s is read before it is set", e, i.Reg.Name)
		}
		for l := range m.lanes {
			at := e*w + g*gs + l*ls
			if i.Op == ir.OpGet {
				m.slot(i.Results[0]).u[g*gs+l*ls] = t.u[at]
			} else {
				t.u[at] = m.word(i.Args[1], g, l)
			}
			if ls == 0 {
				break
			}
		}
		if i.Op == ir.OpSet {
			*set = true
		}
	}
}

// warp fails unless lane groups have the 32 lanes that the instruction is made for.
func (m *machine) warp(i *ir.Instr) {
	if m.lanes != 32 {
		m.fail("%s with %d lanes, it takes 32", i.Op, m.lanes)
	}
}

// mma multiplies the atom's integer matrices; float atoms have no canonical order.
func (m *machine) mma(i *ir.Instr, active []bool) {
	a := i.Atom
	m.warp(i)
	if a.C.Type != ir.I32 {
		m.fail("%s accumulates in %s, whose order is not canonical", a.Name, a.C.Type)
	}
	byteOf := func(t ir.Type, w uint32, e int) int32 {
		if t == ir.U8x4 {
			return int32(uint8(w >> (8 * e)))
		}
		return int32(int8(w >> (8 * e)))
	}
	for g, on := range active {
		if !on {
			continue
		}
		A, B, C := make([]int32, a.M*a.K), make([]int32, a.K*a.N), make([]int32, a.M*a.N)
		for l := range m.lanes {
			for r := range a.A.Regs {
				for e := range a.A.Elems() {
					row, col := a.A.Coord(l, r, e)
					A[row*a.K+col] = byteOf(a.A.Type, m.word(i.Args[r], g, l), e)
				}
			}
			for r := range a.B.Regs {
				for e := range a.B.Elems() {
					row, col := a.B.Coord(l, r, e)
					B[row*a.N+col] = byteOf(a.B.Type, m.word(i.Args[a.A.Regs+r], g, l), e)
				}
			}
			for r := range a.C.Regs {
				row, col := a.C.Coord(l, r, 0)
				C[row*a.N+col] = int32(m.word(i.Args[a.A.Regs+a.B.Regs+r], g, l))
			}
		}
		for l := range m.lanes {
			for r := range a.C.Regs {
				row, col := a.C.Coord(l, r, 0)
				sum := C[row*a.N+col]
				for k := range a.K {
					sum += A[row*a.K+k] * B[k*a.N+col]
				}
				m.slot(i.Results[r]).u[g*m.lanes+l] = uint32(sum)
			}
		}
	}
}
