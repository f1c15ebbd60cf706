package msl

import (
	"fmt"
	"math"
	"math/bits"
	"slices"

	"github.com/swizzle-rt/swizzle/ir"
)

// expr is an expression that has not been printed yet.
type expr struct {
	text  string
	level int     // of its operator
	size  int     // operations
	reads []place // that it reads when it is evaluated

	sum, addend string // of "sum+addend" where sum is an element of a register tile
}

// Levels of operators. Operands of others than sums and products stand in parentheses whatever binds tighter.
const (
	loose = iota
	additive
	multiplicative
	atomic
)

func atom(text string) expr { return expr{text: text, level: atomic} }

// left returns the expression as left operand of an operator of that level, right as the right one.
func (e expr) left(level int) string {
	if level == loose {
		level = atomic
	}
	if e.level < level {
		return "(" + e.text + ")"
	}
	return e.text
}

func (e expr) right(level int) string {
	if level != loose {
		level++
	}
	return e.left(level)
}

// value returns v where it is used: held expressions are used up.
func (p *printer) value(v *ir.Value) expr {
	if c, ok := constant(v); ok {
		return p.literal(v, c)
	}
	if e, ok := p.held[v]; ok {
		delete(p.held, v)
		return e
	}
	if n, ok := p.named[v]; ok {
		return atom(n)
	}
	switch i := v.Def; i.Op {
	case ir.OpLane:
		return p.needed("l")
	case ir.OpGroup:
		if p.k.Groups == 1 {
			return atom("0")
		}
		return p.needed("w")
	case ir.OpTile:
		return p.needed(tileName(int(i.Imm)))
	case ir.OpIntParam:
		return atom(fmt.Sprintf("a.n%d", i.Imm))
	case ir.OpFloatParam:
		return atom(fmt.Sprintf("a.f%d", i.Imm))
	}
	p.fail(v.Def, "value %%%d has no definition before its use", v.ID)
	return atom("0")
}

// leaf reports ops that are printed where they are used.
func leaf(op ir.Op) bool {
	switch op {
	case ir.OpConst, ir.OpLane, ir.OpGroup, ir.OpTile, ir.OpIntParam, ir.OpFloatParam:
		return true
	}
	return false
}

func (p *printer) needed(name string) expr {
	p.needs[name] = true
	return atom(name)
}

// literal returns a constant.
func (p *printer) literal(v *ir.Value, c int64) expr {
	switch v.Type {
	case ir.Bool:
		return atom(fmt.Sprint(c != 0))
	case ir.Index:
		switch {
		case c != int64(int32(c)):
			p.fail(v.Def, "index %d has more than 32 bits", c)
		case c == math.MinInt32:
			return atom("int(0x80000000)")
		case c < 0:
			return expr{text: fmt.Sprint(c)}
		}
		return atom(fmt.Sprint(c))
	case ir.F32:
		switch w := uint32(c); w {
		case 0:
			return p.needed("z")
		case 1 << 31:
			p.needed("z")
			return atom("F(U(z)^0x80000000)")
		default:
			return atom(fmt.Sprintf("F(0x%X)", w))
		}
	}
	if w := uint32(c); w >= 1024 {
		return atom(fmt.Sprintf("0x%Xu", w))
	}
	return atom(fmt.Sprintf("%du", uint32(c)))
}

var infix = map[ir.Op]struct {
	op    string
	level int
}{
	ir.OpAddX: {"+", additive}, ir.OpSubX: {"-", additive}, ir.OpMulX: {"*", multiplicative},
	ir.OpDivX: {"/", loose}, ir.OpModX: {"%", loose}, ir.OpAndX: {"&", loose}, ir.OpXorX: {"^", loose},
	ir.OpLtX: {"<", loose}, ir.OpLeX: {"<=", loose}, ir.OpEqX: {"==", loose},
	ir.OpAddF: {"+", additive}, ir.OpSubF: {"-", additive}, ir.OpMulF: {"*", multiplicative},
	ir.OpLtF: {"<", loose}, ir.OpLeF: {"<=", loose}, ir.OpEqF: {"==", loose},
	ir.OpAddI: {"+", additive}, ir.OpSubI: {"-", additive}, ir.OpMulI: {"*", multiplicative},
	ir.OpAnd: {"&", loose}, ir.OpOr: {"|", loose}, ir.OpXor: {"^", loose},
	ir.OpLtU: {"<", loose}, ir.OpEqI: {"==", loose}, ir.OpAndB: {"&&", loose}, ir.OpOrB: {"||", loose},
}

// calls has ops printed as calls.
var calls = map[ir.Op]string{
	ir.OpMinX: "min(%[1]s,%[2]s)", ir.OpMaxX: "max(%[1]s,%[2]s)", ir.OpMaxU: "max(%[1]s,%[2]s)",
	ir.OpMinI: "uint(min(int(%[1]s),int(%[2]s)))", ir.OpMaxI: "uint(max(int(%[1]s),int(%[2]s)))",
	ir.OpToIndex: "int(%[1]s)", ir.OpFromIndex: "uint(%[1]s)", ir.OpToF32: "float(int(%[1]s))",
	ir.OpFMAExact: "fma(%[1]s,%[2]s,%[3]s)",
}

// helped has ops printed as calls of helpers.
var helped = map[ir.Op]string{
	ir.OpDot4US: "dotus", ir.OpDot4SS: "dotss", ir.OpShl: "shl", ir.OpShrU: "shr", ir.OpShrI: "sar",
	ir.OpFoldAddF: "sum", ir.OpFoldAddI: "sum", ir.OpFoldMaxU: "maxu", ir.OpFoldMaxF: "maxf",
}

// operands collects the arguments of an expression.
type operands struct {
	p     *printer
	args  []*ir.Value
	size  int
	reads []place
}

func (o *operands) use(v *ir.Value) expr {
	e := o.p.value(v)
	o.size += e.size
	for _, r := range e.reads {
		if !slices.Contains(o.reads, r) {
			o.reads = append(o.reads, r)
		}
	}
	return e
}

func (o *operands) arg(n int) expr { return o.use(o.args[n]) }

func (o *operands) expr(level int, format string, args ...any) expr {
	return expr{text: fmt.Sprintf(format, args...), level: level, size: o.size + 1, reads: o.reads}
}

// compute returns the expression that an instruction with one result stands for.
func (p *printer) compute(i *ir.Instr) expr {
	o := &operands{p: p, args: i.Args}
	if e, ok := p.byConstant(i, o); ok {
		return e
	}
	if f, ok := infix[i.Op]; ok {
		x, y := o.arg(0), o.arg(1)
		e := o.expr(f.level, "%s%s%s", x.left(f.level), f.op, y.right(f.level))
		if i.Op == ir.OpAddF || i.Op == ir.OpAddI {
			if d := i.Args[0].Def; d != nil && d.Op == ir.OpGet && len(x.reads) > 0 {
				e.sum, e.addend = x.text, y.text
			}
		}
		return e
	}
	var list []any
	if calls[i.Op] != "" || helped[i.Op] != "" {
		for n := range i.Args {
			list = append(list, o.arg(n).text)
		}
		if f := calls[i.Op]; f != "" {
			return o.expr(atomic, f, list...)
		}
		return o.expr(atomic, p.helper(helped[i.Op])+"("+[]string{"%s", "%s,%s", "%s,%s,%s"}[len(list)-1]+")", list...)
	}
	switch i.Op {
	case ir.OpLtI:
		return o.expr(loose, "int(%s)<int(%s)", o.arg(0).text, o.arg(1).text)
	case ir.OpNotB:
		return o.expr(atomic, "!%s", o.arg(0).left(atomic))
	case ir.OpSelect:
		return o.expr(loose, "%s?%s:%s", o.arg(0).left(atomic), o.arg(1).left(additive), o.arg(2).left(additive))
	case ir.OpCast:
		from, to := typeName(i.Args[0].Type), typeName(i.Results[0].Type)
		switch e := o.arg(0); {
		case from == to:
			return e
		case to == "float":
			return o.expr(atomic, "F(%s)", e.text)
		default:
			return o.expr(atomic, "U(%s)", e.text)
		}
	case ir.OpLookup16:
		n, ok := p.table[*i.Table]
		if !ok {
			n = len(p.table)
			p.table[*i.Table] = n
		}
		return o.expr(atomic, "%s(T%d,%s)", p.helper("look"), n, o.arg(0).text)
	case ir.OpPackLanes4:
		p.needs["l"] = true
		return o.expr(atomic, "%s(%s,l)", p.helper("pack"), o.arg(0).text)
	case ir.OpShuffleXor:
		return o.expr(atomic, "simd_shuffle_xor(%s,%d)", o.arg(0).text, i.Imm)
	case ir.OpReadLane:
		return o.expr(atomic, "simd_broadcast(%s,%d)", o.arg(0).text, i.Imm)
	case ir.OpGet:
		at := p.elementOf(i, o)
		o.reads = append(o.reads, i.Reg)
		return o.expr(atomic, "%s", at)
	}
	p.fail(i, "%s has no form in Metal", i.Op)
	return atom("0")
}

// byConstant prints what is shorter or cheaper with a constant as second operand: shifts, quotients and remainders by powers
// of two (of indices that are not negative), sums with negative indices.
func (p *printer) byConstant(i *ir.Instr, o *operands) (expr, bool) {
	if len(i.Args) != 2 {
		return expr{}, false
	}
	c, ok := constant(i.Args[1])
	if !ok {
		return expr{}, false
	}
	power := c > 0 && c&(c-1) == 0
	switch i.Op {
	case ir.OpAddX:
		if math.MinInt32 < c && c < 0 {
			return o.expr(additive, "%s-%d", o.arg(0).left(additive), -c), true
		}
	case ir.OpShlX:
		if c &= 63; c > 30 {
			p.fail(i, "index shifted left by %d", c)
		}
		return o.expr(multiplicative, "%s*%d", o.arg(0).left(multiplicative), int64(1)<<(c&31)), true
	case ir.OpShrX:
		if c &= 63; c > 31 {
			return atom("0"), true
		}
		return o.expr(loose, "%s>>%d", o.arg(0).left(atomic), c), true
	case ir.OpDivX:
		if power {
			return o.expr(loose, "%s>>%d", o.arg(0).left(atomic), bits.TrailingZeros64(uint64(c))), true
		}
	case ir.OpModX:
		if power {
			return o.expr(loose, "%s&%d", o.arg(0).left(atomic), c-1), true
		}
	case ir.OpShl, ir.OpShrU:
		if uint32(c) > 31 {
			return atom("0u"), true
		}
		return o.expr(loose, "%s%s%d", o.arg(0).left(atomic), map[ir.Op]string{ir.OpShl: "<<", ir.OpShrU: ">>"}[i.Op], c), true
	case ir.OpShrI:
		return o.expr(atomic, "uint(int(%s)>>%d)", o.arg(0).text, min(uint32(c), 31)), true
	}
	return expr{}, false
}
