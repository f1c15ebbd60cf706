package ptx

import (
	"fmt"

	"github.com/swizzle-rt/swizzle/ir"
)

// form is the instruction of a lane-wise op, and what its operands are.
type form struct {
	name    string
	operand func(*printer, *ir.Value) string
}

// forms holds the ops that are one instruction. Products and sums of floats are rounded one by one: .rn keeps the assembler
// from fusing them. Shift counts of words are clamped by the instruction as the ops want it.
var forms = map[ir.Op]form{
	ir.OpAddX: {"add.s64", (*printer).index},
	ir.OpSubX: {"sub.s64", (*printer).index},
	ir.OpMulX: {"mul.lo.s64", (*printer).index},
	ir.OpDivX: {"div.u64", (*printer).index},
	ir.OpModX: {"rem.u64", (*printer).index},
	ir.OpMinX: {"min.s64", (*printer).index},
	ir.OpMaxX: {"max.s64", (*printer).index},
	ir.OpAndX: {"and.b64", (*printer).index},
	ir.OpXorX: {"xor.b64", (*printer).index},
	ir.OpLtX:  {"setp.lt.s64", (*printer).index},
	ir.OpLeX:  {"setp.le.s64", (*printer).index},
	ir.OpEqX:  {"setp.eq.s64", (*printer).index},

	ir.OpToIndex:   {"cvt.s64.s32", (*printer).word},
	ir.OpFromIndex: {"cvt.u32.u64", (*printer).wide},

	ir.OpAddF:     {"add.rn.f32", (*printer).float},
	ir.OpSubF:     {"sub.rn.f32", (*printer).float},
	ir.OpMulF:     {"mul.rn.f32", (*printer).float},
	ir.OpFMAExact: {"fma.rn.f32", (*printer).float},
	ir.OpLtF:      {"setp.lt.f32", (*printer).float},
	ir.OpLeF:      {"setp.le.f32", (*printer).float},
	ir.OpEqF:      {"setp.eq.f32", (*printer).float},

	ir.OpAddI: {"add.s32", (*printer).bits},
	ir.OpSubI: {"sub.s32", (*printer).bits},
	ir.OpMulI: {"mul.lo.s32", (*printer).bits},
	ir.OpAnd:  {"and.b32", (*printer).bits},
	ir.OpOr:   {"or.b32", (*printer).bits},
	ir.OpXor:  {"xor.b32", (*printer).bits},
	ir.OpShl:  {"shl.b32", (*printer).bits},
	ir.OpShrU: {"shr.u32", (*printer).bits},
	ir.OpShrI: {"shr.s32", (*printer).bits},
	ir.OpMinI: {"min.s32", (*printer).bits},
	ir.OpMaxI: {"max.s32", (*printer).bits},
	ir.OpMaxU: {"max.u32", (*printer).bits},
	ir.OpLtI:  {"setp.lt.s32", (*printer).bits},
	ir.OpLtU:  {"setp.lt.u32", (*printer).bits},
	ir.OpEqI:  {"setp.eq.s32", (*printer).bits},

	ir.OpAndB: {"and.pred", (*printer).bool},
	ir.OpOrB:  {"or.pred", (*printer).bool},
	ir.OpNotB: {"not.pred", (*printer).bool},

	ir.OpToF32:   {"cvt.rn.f32.s32", (*printer).word},
	ir.OpDot4US:  {"dp4a.u32.s32", (*printer).word},
	ir.OpDot4SS:  {"dp4a.s32.s32", (*printer).word},
	ir.OpBarrier: {"bar.sync 0", nil},
}

// instr writes an instruction.
func (p *printer) instr(i *ir.Instr) {
	if sameBits(i) {
		return
	}
	if p.power(i) {
		return
	}
	if f, ok := forms[i.Op]; ok {
		var args []string
		for _, v := range i.Args {
			args = append(args, f.operand(p, v))
		}
		for _, r := range i.Results {
			args = append([]string{p.dst(r)}, args...)
		}
		p.ins(f.name, args...)
		return
	}
	switch i.Op {
	case ir.OpConst, ir.OpLane, ir.OpGroup, ir.OpTile, ir.OpIntParam, ir.OpFloatParam, ir.OpFragCoord: // where they are used
	case ir.OpShlX, ir.OpShrX:
		p.shift(i)
	case ir.OpSelect:
		p.choose(i)
	case ir.OpLookup16:
		p.lookup(i)
	case ir.OpPackLanes4:
		p.pack(i)
	case ir.OpShuffleXor:
		v := p.word(i.Args[0])
		p.ins("shfl.sync.bfly.b32", p.dst(i.Results[0]), v, fmt.Sprint(i.Imm), "31", "-1")
	case ir.OpReadLane:
		v := p.word(i.Args[0])
		p.ins("shfl.sync.idx.b32", p.dst(i.Results[0]), v, fmt.Sprint(i.Imm), "31", "-1")
	case ir.OpFoldAddF, ir.OpFoldAddI, ir.OpFoldMaxU, ir.OpFoldMaxF:
		p.fold(i)
	case ir.OpGet:
		p.get(i)
	case ir.OpSet:
		p.set(i)
	case ir.OpLoad:
		p.load(i)
	case ir.OpStore:
		p.store(i)
	case ir.OpPrefetch:
		if i.Mem.Param != nil {
			p.ins("prefetch.global.L2", p.pointer(i.Mem, i.Args[0]).at(0))
		}
	case ir.OpAsyncCopy:
		p.copy16(i)
	case ir.OpAsyncCommit:
		if p.model.async {
			p.ins("cp.async.commit_group")
		}
	case ir.OpAsyncWait:
		if p.model.async {
			p.ins("cp.async.wait_group", fmt.Sprint(i.Imm))
		}
	case ir.OpLdMatrix:
		p.ldMatrix(i)
	case ir.OpMMA:
		p.mma(i)
	default:
		p.fail("PTX has no %s", i.Op)
	}
}

// wide returns the register of an index.
func (p *printer) wide(v *ir.Value) string {
	if c, ok := v.Const(); ok {
		return p.once(c, wide, func(d string) { p.ins("mov.b64", d, imm(c)) })
	}
	return p.index(v)
}

// power writes products, quotients and remainders of indices by powers of two as shifts and masks, and leaves sums with a
// constant to where they are used. Quotients and remainders are of numbers that are not negative.
func (p *printer) power(i *ir.Instr) bool {
	switch i.Op {
	case ir.OpAddX:
		x, _ := split(i.Results[0])
		return x != i.Results[0]
	case ir.OpMulX, ir.OpDivX, ir.OpModX:
	default:
		return false
	}
	x, y := i.Args[0], i.Args[1]
	c, ok := y.Const()
	if !ok && i.Op == ir.OpMulX {
		x, y = y, x
		c, ok = y.Const()
	}
	n, power := shiftOf(c)
	if !ok || !power {
		return false
	}
	a := p.index(x)
	switch d := p.dst(i.Results[0]); i.Op {
	case ir.OpMulX:
		p.ins("shl.b64", d, a, fmt.Sprint(n))
	case ir.OpDivX:
		p.ins("shr.u64", d, a, fmt.Sprint(n))
	default:
		p.ins("and.b64", d, a, imm(c-1))
	}
	return true
}

// shift writes a shift of an index, whose count is taken modulo 64.
func (p *printer) shift(i *ir.Instr) {
	x := p.index(i.Args[0])
	by := ""
	if c, ok := i.Args[1].Const(); ok {
		by = fmt.Sprint(c & 63)
	} else {
		by = p.fresh(word)
		p.ins("cvt.u32.u64", by, p.index(i.Args[1]))
		p.ins("and.b32", by, by, "63")
	}
	op := "shl.b64"
	if i.Op == ir.OpShrX {
		op = "shr.s64"
	}
	p.ins(op, p.dst(i.Results[0]), x, by)
}

func (p *printer) choose(i *ir.Instr) {
	c, yes, no := p.bool(i.Args[0]), p.bits(i.Args[1]), p.bits(i.Args[2])
	p.ins("selp.b32", p.dst(i.Results[0]), yes, no, c)
}

// lookup writes a table lookup. prmt picks four bytes of eight by the low three bits of a selector's four digits; the fourth
// bits, which would replicate signs, choose between the table's halves in a last prmt.
func (p *printer) lookup(i *ir.Instr) {
	v := p.word(i.Args[0])
	var table [4]string
	for n := range table {
		w := uint32(0)
		for b := range 4 {
			w |= uint32(i.Table[4*n+b]) << (8 * b)
		}
		table[n] = p.once(w, word, func(d string) { p.ins("mov.b32", d, fmt.Sprintf("0x%X", w)) })
	}
	sel, low, top, high := p.fresh(word), p.fresh(word), p.fresh(word), p.fresh(word)
	p.ins("shr.u32", sel, v, "4")
	p.ins("or.b32", sel, sel, v)
	p.ins("prmt.b32", sel, sel, sel, "0x20") // the four digits
	p.ins("and.b32", top, sel, "0x8888")
	p.ins("and.b32", sel, sel, "0x7777")
	p.ins("prmt.b32", low, table[0], table[1], sel)
	p.ins("prmt.b32", high, table[2], table[3], sel)
	p.ins("shr.u32", top, top, "1")
	p.ins("or.b32", top, top, "0x3210")
	p.ins("prmt.b32", p.dst(i.Results[0]), low, high, top)
}

func (p *printer) get(i *ir.Instr) {
	r, e := i.Results[0], p.element(elementOf(i))
	if p.alias[r] {
		p.reg[r] = e
		return
	}
	p.ins("mov.b32", p.dst(r), e)
}

func (p *printer) set(i *ir.Instr) {
	e, v := elementOf(i), origin(i.Args[1])
	if _, ok := p.target[v]; ok && p.target[v] == e {
		return
	}
	d, from := p.element(e), p.bits(v)
	if d != from {
		p.ins("mov.b32", d, from)
	}
}
