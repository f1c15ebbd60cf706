package portable

import (
	"fmt"
	"math/bits"

	"github.com/dave/jennifer/jen"

	"github.com/swizzle-rt/swizzle/ir"
)

// expr returns v as a Go expression. A value that is named more than once in a lane loop, or has grown long, gets a name.
func (p *printer) expr(v *ir.Value) expr {
	v = p.use(v)
	if c, ok := p.constant(v); ok {
		return expr{code: literal(v.Type, c), atom: true}
	}
	if v.Def == nil { // a loop's variable
		return atom(jen.Id(valueName(v)))
	}
	switch v.Def.Op {
	case ir.OpLane:
		return atom(p.lane())
	case ir.OpTile:
		p.tiles[v.Def.Imm] = true
		return atom(jen.Id(tileName(int(v.Def.Imm))))
	case ir.OpIntParam, ir.OpFloatParam:
		return atom(jen.Id(paramName(p.param(v.Def))))
	}
	if v.Span != ir.Varying {
		if !lazy(v.Def) || p.uses[v] != 1 {
			return atom(jen.Id(valueName(v)))
		}
		return p.compute(v)
	}
	switch {
	case p.local[v]:
		return atom(jen.Id(valueName(v)))
	case p.arrays[v]:
		return atom(jen.Id(arrayName(v)).Index(p.lane()))
	}
	e := p.compute(v)
	if p.run.demand[v] > 1 || e.size > longest {
		return atom(p.name(v, e.code))
	}
	return e
}

func (p *printer) param(i *ir.Instr) *ir.Param {
	kind := ir.Integer
	if i.Op == ir.OpFloatParam {
		kind = ir.Float
	}
	for _, q := range p.k.Params {
		if q.Kind == kind && int64(q.Slot) == i.Imm {
			p.params[q] = true
			return q
		}
	}
	p.fail("%s: no parameter has slot %d", i.Pos, i.Imm)
	return &ir.Param{Kind: kind}
}

func atom(c *jen.Statement) expr { return expr{code: c, atom: true} }

// wrap returns the expression as an operand.
func (p *printer) wrap(e expr) *jen.Statement {
	if e.atom {
		return e.code
	}
	return jen.Parens(e.code)
}

// literal returns a constant with its type.
func literal(t ir.Type, c int64) *jen.Statement {
	switch t {
	case ir.F32:
		return jen.Qual("math", "Float32frombits").Call(jen.Id(fmt.Sprintf("0x%08X", uint32(c))))
	case ir.I32:
		return jen.Lit(int32(c))
	case ir.Bool:
		return jen.Lit(c != 0)
	case ir.Index:
		return jen.Lit(int(c))
	}
	return jen.Uint32().Call(jen.Id(fmt.Sprintf("0x%X", uint32(c))))
}

// operand returns v beside an operator whose other operand gives the type.
func (p *printer) operand(v *ir.Value) expr {
	v = p.use(v)
	if c, ok := p.constant(v); ok {
		switch v.Type {
		case ir.I32:
			return atom(jen.Lit(int(int32(c))))
		case ir.U32:
			return atom(jen.Id(fmt.Sprintf("0x%X", uint32(c))))
		}
	}
	return p.expr(v)
}

var infix = map[ir.Op]string{
	ir.OpAddX: "+", ir.OpSubX: "-", ir.OpMulX: "*", ir.OpDivX: "/", ir.OpModX: "%", ir.OpAndX: "&", ir.OpXorX: "^",
	ir.OpLtX: "<", ir.OpLeX: "<=", ir.OpEqX: "==",
	ir.OpAddF: "+", ir.OpSubF: "-", ir.OpLtF: "<", ir.OpLeF: "<=", ir.OpEqF: "==",
	ir.OpAddI: "+", ir.OpSubI: "-", ir.OpMulI: "*", ir.OpAnd: "&", ir.OpOr: "|", ir.OpXor: "^",
	ir.OpLtI: "<", ir.OpLtU: "<", ir.OpEqI: "==",
	ir.OpAndB: "&&", ir.OpOrB: "||",
}

var called = map[ir.Op]string{
	ir.OpMinX: "min", ir.OpMaxX: "max", ir.OpMinI: "min", ir.OpMaxI: "max", ir.OpMaxU: "max",
}

var helper = map[ir.Op]string{
	ir.OpSelect: "Select", ir.OpDot4US: "Dot4US", ir.OpDot4SS: "Dot4SS",
	ir.OpFoldAddF: "FoldAddF32", ir.OpFoldAddI: "FoldAddI32", ir.OpFoldMaxU: "FoldMaxU32", ir.OpFoldMaxF: "FoldMaxF32",
}

// compute returns the expression that defines v.
func (p *printer) compute(v *ir.Value) expr {
	i := v.Def
	size := 1
	arg := func(n int) *jen.Statement {
		e := p.expr(i.Args[n])
		size += e.size
		return e.code
	}
	operand := func(n int) *jen.Statement {
		e := p.operand(i.Args[n])
		size += e.size
		return p.wrap(e)
	}
	done := func(c *jen.Statement, atom bool) expr { return expr{c, atom, size} }

	if e, ok := p.power(i, operand, done); ok {
		return e
	}
	if op := infix[i.Op]; op != "" {
		return done(operand(0).Op(op).Add(operand(1)), false)
	}
	if f := called[i.Op]; f != "" {
		x := p.operand(i.Args[0]).code
		return done(jen.Id(f).Call(x, operand(1)), true)
	}
	switch i.Op {
	case ir.OpMulF:
		return done(jen.Float32().Call(operand(0).Op("*").Add(operand(1))), true)
	case ir.OpFMAExact:
		product := jen.Float32().Call(operand(0).Op("*").Add(operand(1)))
		return done(product.Op("+").Add(operand(2)), false)
	case ir.OpShlX, ir.OpShrX:
		return done(operand(0).Op(map[ir.Op]string{ir.OpShlX: "<<", ir.OpShrX: ">>"}[i.Op]).Add(p.count6(i.Args[1], operand)), false)
	case ir.OpShl, ir.OpShrU, ir.OpShrI:
		return p.shift(v, operand, done)
	case ir.OpNotB:
		return done(jen.Op("!").Add(operand(0)), true)
	case ir.OpCast:
		return done(cast(p.use(i.Args[0]).Type, v.Type, arg(0)), true)
	case ir.OpToF32:
		return done(jen.Float32().Call(arg(0)), true)
	case ir.OpToIndex:
		return done(jen.Int().Call(arg(0)), true)
	case ir.OpFromIndex:
		return done(jen.Int32().Call(arg(0)), true)
	case ir.OpSelect, ir.OpDot4US, ir.OpDot4SS:
		return done(jen.Qual(lanePath, helper[i.Op]).Call(arg(0), arg(1), arg(2)), true)
	case ir.OpLookup16:
		return done(jen.Qual(lanePath, "Lookup16").Call(jen.Id(tableLiteral(i.Table)), arg(0)), true)
	case ir.OpShuffleXor:
		x := p.use(i.Args[0])
		if p.same(x) {
			return p.expr(x)
		}
		return done(jen.Id(arrayName(x)).Index(p.lane().Op("^").Lit(int(i.Imm))), true)
	case ir.OpPackLanes4:
		x := p.use(i.Args[0])
		if p.same(x) {
			return done(jen.Uint32().Call(jen.Uint8().Call(p.byteOperand(x))).Op("*").Id("0x01010101"), false)
		}
		return done(jen.Qual(lanePath, "Pack4").Call(jen.Id(arrayName(x)).Index(p.lane().Op("&^").Lit(3), jen.Empty())), true)
	case ir.OpReadLane:
		x := p.use(i.Args[0])
		if p.same(x) {
			return p.expr(x)
		}
		return done(jen.Id(arrayName(x)).Index(jen.Lit(int(i.Imm))), true)
	case ir.OpFoldAddF, ir.OpFoldAddI, ir.OpFoldMaxU, ir.OpFoldMaxF:
		return done(jen.Qual(lanePath, helper[i.Op]).Call(p.spread(i, i.Args[0]).Index(jen.Empty(), jen.Empty())), true)
	case ir.OpGet:
		r := p.register(i)
		if i.Reg.Span == ir.Varying {
			r = r.Index(p.lane())
		}
		return done(r, true)
	case ir.OpLoad:
		for n, r := range i.Results {
			if r == v {
				return done(p.load(i, n), true)
			}
		}
	}
	p.fail("%s: %s has no portable form", i.Pos, i.Op)
	return done(jen.Lit(0), true)
}

// power prints products, quotients and remainders of indices by powers of two as shifts and masks; quotients and remainders
// are of non-negative indices.
func (p *printer) power(i *ir.Instr, operand func(int) *jen.Statement, done func(*jen.Statement, bool) expr) (expr, bool) {
	if i.Op != ir.OpDivX && i.Op != ir.OpModX {
		return expr{}, false
	}
	c, ok := p.constant(i.Args[1])
	if !ok || c < 1 || c&(c-1) != 0 {
		return expr{}, false
	}
	if i.Op == ir.OpDivX {
		return done(operand(0).Op(">>").Lit(bits.TrailingZeros64(uint64(c))), false), true
	}
	return done(operand(0).Op("&").Lit(int(c-1)), false), true
}

// count6 returns a shift count of an index, which counts modulo 64.
func (p *printer) count6(v *ir.Value, operand func(int) *jen.Statement) *jen.Statement {
	if c, ok := p.constant(v); ok {
		return jen.Lit(int(c & 63))
	}
	return jen.Parens(operand(1).Op("&").Lit(63))
}

// shift prints the shifts of 32-bit integers, whose counts are unsigned and not reduced, as Go's are.
func (p *printer) shift(v *ir.Value, operand func(int) *jen.Statement, done func(*jen.Statement, bool) expr) expr {
	i := v.Def
	var by *jen.Statement
	if c, ok := p.constant(i.Args[1]); ok {
		by = jen.Lit(int(min(uint32(c), 31)))
	} else if by = operand(1); p.use(i.Args[1]).Type == ir.I32 {
		by = jen.Uint32().Call(by)
	}
	// The type that is shifted: left any, right by the op's sign.
	as := v.Type
	switch i.Op {
	case ir.OpShrU:
		as = ir.U32
	case ir.OpShrI:
		as = ir.I32
	}
	x := p.wrap(p.expr(i.Args[0]))
	op := ">>"
	if i.Op == ir.OpShl {
		op = "<<"
	}
	if as == v.Type {
		return done(x.Op(op).Add(by), false)
	}
	return done(jen.Id(goType(v.Type)).Call(jen.Id(goType(as)).Call(x).Op(op).Add(by)), true)
}

// same reports whether all lanes have one value: a constant may have been made by varying instructions.
func (p *printer) same(v *ir.Value) bool {
	_, constant := p.constant(v)
	return constant || v.Span != ir.Varying
}

// byteOperand returns an integer that uint8 may be applied to.
func (p *printer) byteOperand(v *ir.Value) *jen.Statement {
	if c, ok := p.constant(v); ok {
		return jen.Lit(int(uint8(c)))
	}
	return p.expr(v).code
}

// spread returns the array of a value's lanes, made on the spot for a uniform one.
func (p *printer) spread(i *ir.Instr, v *ir.Value) *jen.Statement {
	v = p.use(v)
	if !p.same(v) {
		return jen.Id(arrayName(v))
	}
	array := arrayName(i.Results[0])
	e := p.expr(v).code
	p.add(jen.Var().Id(array).Index(jen.Lit(p.k.Lanes)).Id(goType(v.Type)))
	p.add(jen.For(jen.Id("l").Op(":=").Range().Id(array)).Block(jen.Id(array).Index(jen.Id("l")).Op("=").Add(e)))
	return jen.Id(array)
}

// cast reads the bits of x as another type.
func cast(from, to ir.Type, x *jen.Statement) *jen.Statement {
	a, b := goType(from), goType(to)
	switch {
	case a == b:
		return jen.Parens(x)
	case from == ir.F32:
		x = jen.Qual("math", "Float32bits").Call(x)
		a = "uint32"
	case to == ir.F32 && a != "uint32":
		x = jen.Uint32().Call(x)
	}
	switch {
	case to == ir.F32:
		return jen.Qual("math", "Float32frombits").Call(x)
	case a != b:
		return jen.Id(b).Call(x)
	}
	return x
}

func tableLiteral(t *[16]byte) string {
	s := `"`
	for _, b := range t {
		s += fmt.Sprintf(`\x%02x`, b)
	}
	return s + `"`
}
