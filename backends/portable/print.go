package portable

import (
	"fmt"
	"go/token"
	"go/types"
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"

	"github.com/swizzle-rt/swizzle/ir"
)

const (
	kernelPath = "github.com/swizzle-rt/swizzle/runtime/kernel"
	lanePath   = kernelPath + "/lane"
)

// printer writes a planned kernel as Go. Names: v a value, w a varying value's entries by lane, t a tile coordinate, n and f
// integer and float parameters, p a buffer, s a shared array, r a register tile, l the lane.
type printer struct {
	*plan
	out    *[]jen.Code // the block being written
	run    *run        // the lane loop being written
	local  map[*ir.Value]bool
	laneOp bool // the lane loop has named its lane

	// What the function must declare.
	params map[*ir.Param]bool
	shared map[*ir.Array]bool
	tiles  map[int64]bool
	err    error
}

// expr is a Go expression; one that is not an atom needs parentheses beside an operator.
type expr struct {
	code *jen.Statement
	atom bool
	size int // operations
}

// longest is the number of operations that an expression may have before it gets a name.
const longest = 8

func (p *printer) fail(format string, args ...any) {
	if p.err == nil {
		p.err = &ir.Error{Kernel: p.k.Name, Msg: fmt.Sprintf(format, args...)}
	}
}

func (p *printer) add(c *jen.Statement) { *p.out = append(*p.out, c) }

// in collects what f writes.
func (p *printer) in(f func()) []jen.Code {
	outer := p.out
	var block []jen.Code
	p.out = &block
	f()
	p.out = outer
	return block
}

// function returns the kernel as a Go function.
func (p *printer) function(symbol string) *jen.Statement {
	tile := p.in(func() { p.steps(p.body) })
	var head []jen.Code
	declare := func(c *jen.Statement) { head = append(head, c) }
	declare(jen.If(jen.Id("lo").Op(">=").Id("hi")).Block(jen.Return()))
	for _, q := range p.k.Params {
		if !p.params[q] {
			continue
		}
		switch q.Kind {
		case ir.Buffer:
			declare(jen.Id(paramName(q)).Op(":=").Id("a").Dot("Buf").Index(jen.Lit(q.Slot)))
		case ir.Integer:
			declare(jen.Id(paramName(q)).Op(":=").Int().Call(jen.Id("a").Dot("Int").Index(jen.Lit(q.Slot))))
		case ir.Float:
			declare(jen.Id(paramName(q)).Op(":=").Id("a").Dot("F32").Index(jen.Lit(q.Slot)))
		}
	}
	for _, s := range p.k.Shared {
		if p.shared[s] {
			declare(jen.Id(name("s", s.Name)).Op(":=").Qual("unsafe", "Add").Call(jen.Id("a").Dot("Scratch"), jen.Lit(s.Offset)))
		}
	}
	for _, r := range p.k.Regs {
		switch {
		case !p.read[r]:
		case r.Span == ir.Varying:
			declare(jen.Var().Id(name("r", r.Name)).Index(jen.Lit(r.Len)).Index(jen.Lit(p.k.Lanes)).Id(goType(r.Type)))
		default:
			declare(jen.Var().Id(name("r", r.Name)).Index(jen.Lit(r.Len)).Id(goType(r.Type)))
		}
	}
	for t := ir.F32; t <= ir.Index; t++ {
		var ids []int
		for v := range p.arrays {
			if v.Type == t {
				ids = append(ids, v.ID)
			}
		}
		slices.Sort(ids)
		var names []jen.Code
		for _, id := range ids {
			names = append(names, jen.Id(fmt.Sprintf("w%d", id)))
		}
		if len(names) > 0 {
			declare(jen.Var().List(names...).Index(jen.Lit(p.k.Lanes)).Id(goType(t)))
		}
	}
	head = append(head, p.grid(tile)...)
	return jen.Comment("//go:nocheckptr").Line().
		Func().Id(symbol).Params(jen.Id("a").Op("*").Qual(kernelPath, "Args"), jen.List(jen.Id("lo"), jen.Id("hi")).Int()).Block(head...)
}

// grid loops over the tiles: coordinates come from lo by division and then step like an odometer.
func (p *printer) grid(tile []jen.Code) []jen.Code {
	var head []jen.Code
	last := len(p.k.Grid) - 1
	count := func(d int) string { return fmt.Sprintf("tiles%d", d) }
	rest := jen.Id("lo")
	for d, axis := range p.k.Grid {
		t := jen.Id(tileName(d))
		if d == last {
			head = append(head, t.Op(":=").Add(rest))
			break
		}
		head = append(head, jen.Id(count(d)).Op(":=").Int().Call(jen.Parens(jen.Id("a").Dot("Int").Index(jen.Lit(axis.Extent.Slot)).Op("+").Lit(axis.Tile-1)).Op("/").Lit(axis.Tile)))
		head = append(head, t.Op(":=").Add(rest).Op("%").Id(count(d)))
		rest = rest.Clone().Op("/").Id(count(d))
	}
	var step []jen.Code
	for d := last; d >= 0; d-- {
		next := []jen.Code{jen.Id(tileName(d)).Op("++")}
		if d < last {
			next = append(next, jen.If(jen.Id(tileName(d)).Op("==").Id(count(d))).Block(append([]jen.Code{jen.Id(tileName(d)).Op("=").Lit(0)}, step...)...))
		}
		step = next
	}
	if last >= 0 && !p.tiles[int64(last)] {
		tile = append([]jen.Code{jen.Id("_").Op("=").Id(tileName(last))}, tile...)
	}
	return append(head, jen.For(jen.Empty(), jen.Id("lo").Op("<").Id("hi"), jen.Id("lo").Op("++")).Block(append(tile, step...)...))
}

func (p *printer) steps(body []step) {
	for _, s := range body {
		switch {
		case s.run != nil:
			p.lanes(s.run)
		case s.instr != nil:
			p.uniform(s.instr)
		case s.loop != nil:
			f := s.loop
			v := valueName(f.Var)
			p.add(jen.For(
				jen.Id(v).Op(":=").Add(p.expr(f.Lo).code),
				jen.Id(v).Op("<").Add(p.wrap(p.expr(f.Hi))),
				jen.Id(v).Op("+=").Lit(f.Step),
			).Block(p.in(func() { p.steps(s.body) })...))
		case s.branch != nil:
			c := jen.If(p.expr(s.branch.Cond).code).Block(p.in(func() { p.steps(s.body) })...)
			if len(s.other) > 0 {
				c.Else().Block(p.in(func() { p.steps(s.other) })...)
			}
			p.add(c)
		}
	}
}

// lanes writes a run.
func (p *printer) lanes(r *run) {
	p.run, p.local, p.laneOp = r, map[*ir.Value]bool{}, false
	body := p.in(func() {
		for _, i := range r.instrs {
			p.varying(i)
		}
	})
	loop := jen.Range().Lit(p.k.Lanes)
	if p.laneOp {
		loop = jen.Id("l").Op(":=").Add(loop)
	}
	p.add(jen.For(loop).Block(body...))
	p.run, p.local = nil, nil
}

// lane names the lane.
func (p *printer) lane() *jen.Statement {
	p.laneOp = true
	return jen.Id("l")
}

// varying writes an instruction inside the lane loop.
func (p *printer) varying(i *ir.Instr) {
	switch i.Op {
	case ir.OpStore:
		p.store(i)
		return
	case ir.OpSet:
		v := p.expr(i.Args[1]).code
		p.add(p.register(i).Index(p.lane()).Op("=").Add(v))
		return
	}
	if !lazy(i) {
		p.define(i, func(v *ir.Value) bool { return p.run.demand[v] > 0 || p.arrays[v] })
	}
	for _, v := range i.Results {
		if !p.arrays[v] {
			continue
		}
		var e *jen.Statement
		switch {
		case p.local[v]:
			e = jen.Id(valueName(v))
		case p.run.demand[v] > 0:
			e = p.name(v, p.compute(v).code)
		default:
			e = p.compute(v).code
		}
		p.add(jen.Id(arrayName(v)).Index(p.lane()).Op("=").Add(e))
	}
}

// uniform writes an instruction outside lane loops.
func (p *printer) uniform(i *ir.Instr) {
	switch {
	case i.Op == ir.OpStore:
		p.store(i)
	case i.Op == ir.OpSet:
		v := p.expr(i.Args[1]).code
		p.add(p.register(i).Op("=").Add(v))
	case !lazy(i):
		p.define(i, func(v *ir.Value) bool { return p.live[v] })
	default:
		for _, v := range i.Results {
			if _, ok := p.constant(v); p.live[v] && !ok && p.uses[v] != 1 {
				p.name(v, p.compute(v).code)
			}
		}
	}
}

// define gives names to those results of an instruction that stands where it must be executed.
func (p *printer) define(i *ir.Instr, used func(*ir.Value) bool) {
	if i.Op != ir.OpLoad || i.Args[1] == nil {
		for _, v := range i.Results {
			if used(v) {
				p.name(v, p.compute(v).code)
			}
		}
		return
	}
	mask := p.expr(i.Args[1]).code
	var read []jen.Code
	for n, v := range i.Results {
		if used(v) {
			p.add(jen.Var().Id(valueName(v)).Id(goType(v.Type)))
			read = append(read, jen.Id(valueName(v)).Op("=").Add(p.load(i, n)))
			if p.local != nil {
				p.local[v] = true
			}
		}
	}
	p.add(jen.If(mask).Block(read...))
}

// name declares v and returns its name.
func (p *printer) name(v *ir.Value, code *jen.Statement) *jen.Statement {
	p.add(jen.Id(valueName(v)).Op(":=").Add(code))
	if p.local != nil {
		p.local[v] = true
	}
	return jen.Id(valueName(v))
}

// store writes a store, one assignment for each element.
func (p *printer) store(i *ir.Instr) {
	var write []jen.Code
	for n, v := range i.Args[2:] {
		write = append(write, jen.Op("*").Parens(jen.Op("*").Id(cellType(i.Mem.Type))).Parens(p.address(i, n)).Op("=").Add(p.narrow(i.Mem.Type, v)))
	}
	if i.Args[1] == nil {
		*p.out = append(*p.out, write...)
		return
	}
	p.add(jen.If(p.expr(i.Args[1]).code).Block(write...))
}

// register returns the element of a register tile.
func (p *printer) register(i *ir.Instr) *jen.Statement {
	if c, ok := p.constant(i.Args[0]); ok && (c < 0 || c >= int64(i.Reg.Len)) {
		p.fail("%s: element %d of the register tile %s, which has %d", i.Pos, c, i.Reg.Name, i.Reg.Len)
	}
	return jen.Id(name("r", i.Reg.Name)).Index(p.expr(i.Args[0]).code)
}

// address returns a pointer to element n of an access.
func (p *printer) address(i *ir.Instr, n int) *jen.Statement {
	m := i.Mem
	var base string
	if m.Param != nil {
		p.params[m.Param] = true
		base = paramName(m.Param)
	} else {
		p.shared[m.Array] = true
		base = name("s", m.Array.Name)
	}
	v, c := p.split(i.Args[0])
	size := m.Type.Bytes()
	at := int(c+int64(n)) * size
	if v == nil {
		return jen.Qual("unsafe", "Add").Call(jen.Id(base), jen.Lit(at))
	}
	e := p.expr(v)
	code := e.code
	if size > 1 {
		code = p.wrap(e).Op("*").Lit(size)
	}
	switch {
	case at > 0:
		code = code.Op("+").Lit(at)
	case at < 0:
		code = code.Op("-").Lit(-at)
	}
	return jen.Qual("unsafe", "Add").Call(jen.Id(base), code)
}

// load returns element n of a load, widened.
func (p *printer) load(i *ir.Instr, n int) *jen.Statement {
	t := i.Mem.Type
	cell := jen.Op("*").Parens(jen.Op("*").Id(cellType(t))).Parens(p.address(i, n))
	switch t {
	case ir.I8:
		return jen.Int32().Call(jen.Int8().Call(cell))
	case ir.I16:
		return jen.Int32().Call(jen.Int16().Call(cell))
	case ir.U8:
		return jen.Int32().Call(cell)
	case ir.F16:
		return jen.Qual(lanePath, "F16ToF32").Call(cell)
	case ir.BF16:
		return jen.Qual(lanePath, "BF16ToF32").Call(cell)
	}
	return cell
}

// narrow returns the value as it is stored in elements of type t.
func (p *printer) narrow(t ir.Type, v *ir.Value) *jen.Statement {
	if c, ok := p.constant(v); ok {
		switch t {
		case ir.I8, ir.U8:
			return jen.Lit(int(uint8(c)))
		case ir.I16:
			return jen.Lit(int(uint16(c)))
		}
	}
	e := p.expr(v).code
	switch t {
	case ir.I8, ir.U8:
		return jen.Uint8().Call(e)
	case ir.I16:
		return jen.Uint16().Call(e)
	case ir.F16:
		return jen.Qual(lanePath, "F32ToF16").Call(e)
	case ir.BF16:
		return jen.Qual(lanePath, "F32ToBF16").Call(e)
	}
	return e
}

// cellType is the Go type of an element in memory.
func cellType(t ir.Type) string {
	switch t {
	case ir.I8, ir.U8:
		return "uint8"
	case ir.I16, ir.F16, ir.BF16:
		return "uint16"
	}
	return goType(t)
}

// goType is the Go type of a value.
func goType(t ir.Type) string {
	switch t {
	case ir.F32:
		return "float32"
	case ir.I32:
		return "int32"
	case ir.Bool:
		return "bool"
	case ir.Index:
		return "int"
	}
	return "uint32"
}

func valueName(v *ir.Value) string { return fmt.Sprintf("v%d", v.ID) }
func arrayName(v *ir.Value) string { return fmt.Sprintf("w%d", v.ID) }
func tileName(axis int) string     { return fmt.Sprintf("t%d", axis) }

func paramName(p *ir.Param) string { return name([]string{"p", "n", "f"}[p.Kind], p.Name) }

// name makes a Go identifier that is no keyword and hides nothing of Go's.
func name(prefix, s string) string {
	id := prefix + strings.Map(func(r rune) rune {
		if r == '_' || r < 128 && (token.IsIdentifier("x"+string(r))) {
			return r
		}
		return '_'
	}, s)
	if token.IsKeyword(id) || types.Universe.Lookup(id) != nil {
		id += "_"
	}
	return id
}
