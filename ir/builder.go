package ir

import (
	"fmt"
	"math"
)

// Builder writes a kernel statement by statement. Its methods check types where they are called; an illegal call ends
// [Build] with an *Error that names the line of the schedule.
type Builder struct {
	k     *Kernel
	block *[]Stmt
}

// Build runs the schedule and returns its kernel, checked for types only; ir/verify checks the rest.
func Build(name string, lanes, groups int, schedule func(b *Builder)) (k *Kernel, err error) {
	k = &Kernel{Name: name, Lanes: lanes, Groups: groups}
	b := &Builder{k: k, block: &k.Body}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*Error)
			if !ok {
				panic(r)
			}
			k, err = nil, e
		}
	}()
	if msg := checkShape(k); msg != "" {
		b.fail("%s", msg)
	}
	schedule(b)
	return k, nil
}

func (b *Builder) fail(format string, args ...any) {
	panic(&Error{Kernel: b.k.Name, Pos: callerPos(), Msg: fmt.Sprintf(format, args...)})
}

// Fail ends the build: the schedule can't be made for this config.
func (b *Builder) Fail(format string, args ...any) { b.fail(format, args...) }

// Lanes returns L, the number of lanes in a group.
func (b *Builder) Lanes() int { return b.k.Lanes }

// ---- parameters

func (b *Builder) param(name string, kind ParamKind, t Type, a Access) *Param {
	b.newName(name)
	slot := 0
	for _, p := range b.k.Params {
		if p.Kind == kind {
			slot++
		}
	}
	p := &Param{Name: name, Kind: kind, Type: t, Access: a, Slot: slot}
	b.k.Params = append(b.k.Params, p)
	return p
}

// newName fails unless the name is one that text can hold and no parameter or shared array has it.
func (b *Builder) newName(name string) {
	if !validName(name) {
		b.fail("%q is no name: letters, digits and _, not starting with a digit", name)
	}
	if b.k.named(name) {
		b.fail("two parameters or shared arrays are named %s", name)
	}
}

// In declares a buffer that the kernel reads.
func (b *Builder) In(name string, t Type) Memory { return b.buffer(name, t, In) }

// Out declares a buffer that the kernel writes and doesn't read.
func (b *Builder) Out(name string, t Type) Memory { return b.buffer(name, t, Out) }

// InOut declares a buffer that the kernel reads and writes.
func (b *Builder) InOut(name string, t Type) Memory { return b.buffer(name, t, InOut) }

func (b *Builder) buffer(name string, t Type, a Access) Memory {
	if t.Bytes() == 0 {
		b.fail("buffer %s of type %s", name, t)
	}
	return Memory{Param: b.param(name, Buffer, t, a), Type: t}
}

// Int declares an integer parameter.
func (b *Builder) Int(name string) *Value {
	p := b.param(name, Integer, Index, In)
	return b.emit(&Instr{Op: OpIntParam, Imm: int64(p.Slot)}, Index, Block)
}

// Float declares a float parameter.
func (b *Builder) Float(name string) *Value {
	p := b.param(name, Float, F32, In)
	return b.emit(&Instr{Op: OpFloatParam, Imm: int64(p.Slot)}, F32, Block)
}

// Tiles adds an axis to the grid, ceil(extent/tile) tiles, and returns the tile's coordinate along it. The extent is an
// integer parameter. The first axis runs fastest.
func (b *Builder) Tiles(extent *Value, tile int) *Value {
	if extent.Def == nil || extent.Def.Op != OpIntParam || tile < 1 || tile > maxStep {
		b.fail("a grid axis takes an integer parameter and a positive tile")
	}
	for _, p := range b.k.Params {
		if p.Kind == Integer && int64(p.Slot) == extent.Def.Imm {
			b.k.Grid = append(b.k.Grid, Dim{p, tile})
		}
	}
	return b.emit(&Instr{Op: OpTile, Imm: int64(len(b.k.Grid) - 1)}, Index, Block)
}

// Shared declares a shared array of n elements.
func (b *Builder) Shared(name string, t Type, n int) Memory {
	if t.Bytes() == 0 || n < 1 {
		b.fail("shared array %s of %d × %s", name, n, t)
	}
	b.newName(name)
	a := &Array{Name: name, Type: t, Len: n, Offset: (b.k.SharedBytes() + 63) &^ 63}
	b.k.Shared = append(b.k.Shared, a)
	return Memory{Array: a, Type: t}
}

// Tile is a register tile with a shape; elements are addressed row-major.
type Tile struct {
	Reg   *Reg
	Shape []int
	b     *Builder
}

// Reg declares a register tile of varying elements, undefined at first.
func (b *Builder) Reg(name string, t Type, shape ...int) Tile { return b.reg(name, t, Varying, shape) }

// UniformReg declares a register tile of uniform elements.
func (b *Builder) UniformReg(name string, t Type, shape ...int) Tile {
	return b.reg(name, t, Group, shape)
}

func (b *Builder) reg(name string, t Type, s Span, shape []int) Tile {
	n := 1
	for _, d := range shape {
		if d < 1 || d > maxReg/n {
			b.fail("register tile %s of %v", name, shape)
		}
		n *= d
	}
	if !t.Word() || len(shape) == 0 || !validName(name) {
		b.fail("register tile %q of %v × %s", name, shape, t)
	}
	if b.k.reg(name) != nil {
		b.fail("register tile %s twice", name)
	}
	r := &Reg{Name: name, Type: t, Span: s, Len: n}
	b.k.Regs = append(b.k.Regs, r)
	return Tile{r, shape, b}
}

func (t Tile) index(at []any) *Value {
	if len(at) != len(t.Shape) {
		t.b.fail("register tile %s has %d axes, not %d", t.Reg.Name, len(t.Shape), len(at))
	}
	x := t.b.Idx(at[0])
	for i, a := range at[1:] {
		x = x.Mul(t.Shape[i+1]).Add(a)
	}
	return x
}

// At reads an element.
func (t Tile) At(at ...any) *Value {
	return t.b.emit(&Instr{Op: OpGet, Reg: t.Reg, Args: []*Value{t.index(at)}}, t.Reg.Type, t.Reg.Span)
}

// Set assigns an element; the coordinates come last.
func (t Tile) Set(v *Value, at ...any) {
	if v.Type != t.Reg.Type {
		t.b.fail("%s set in a register tile of %s", v.Type, t.Reg.Type)
	}
	if v.Span > t.Reg.Span {
		t.b.fail("varying value set in the uniform register tile %s", t.Reg.Name)
	}
	t.b.do(&Instr{Op: OpSet, Reg: t.Reg, Args: []*Value{t.index(at), v}})
}

// Add adds v to an element, v second.
func (t Tile) Add(v *Value, at ...any) { t.Set(t.At(at...).Add(v), at...) }

// Fill assigns v to every element.
func (t Tile) Fill(v *Value) {
	t.b.Unroll(t.Reg.Len, func(i *Value) {
		t.b.do(&Instr{Op: OpSet, Reg: t.Reg, Args: []*Value{i, v}})
	})
}

// ---- control

// For runs body for i = lo, lo+step, … below hi; bounds are Index values or integers.
func (b *Builder) For(lo, hi any, step int, body func(i *Value)) {
	l, h := b.Idx(lo), b.Idx(hi)
	b.loop(&For{Lo: l, Hi: h, Step: step}, body)
}

// Unroll runs body for i = 0 … n−1 with i constant.
func (b *Builder) Unroll(n int, body func(i *Value)) {
	b.loop(&For{Lo: b.Idx(0), Hi: b.Idx(n), Step: 1, Unroll: true}, body)
}

func (b *Builder) loop(f *For, body func(i *Value)) {
	f.Pos = callerPos()
	f.Var = b.k.NewValue(Index, max(f.Lo.Span, f.Hi.Span))
	f.Var.b = b
	if msg := checkLoop(f); msg != "" {
		b.fail("%s", msg)
	}
	b.in(&f.Body, func() { body(f.Var) })
	*b.block = append(*b.block, f)
}

// If runs then where the uniform condition holds.
func (b *Builder) If(cond *Value, then func()) { b.IfElse(cond, then, nil) }

// IfElse runs then where the uniform condition holds, else otherwise.
func (b *Builder) IfElse(cond *Value, then, otherwise func()) {
	if cond.Type != Bool || cond.Span == Varying {
		b.fail("a branch takes a uniform bool, not a %s %s; use Select", cond.Span, cond.Type)
	}
	s := &If{Cond: cond, Pos: callerPos()}
	b.in(&s.Then, then)
	if otherwise != nil {
		b.in(&s.Else, otherwise)
	}
	*b.block = append(*b.block, s)
}

// Interleave runs the parts, straight-line code independent of each other, and takes an instruction of each in turn: their
// latencies overlap.
func (b *Builder) Interleave(parts ...func()) {
	blocks := make([][]Stmt, len(parts))
	longest := 0
	for i, part := range parts {
		b.in(&blocks[i], part)
		longest = max(longest, len(blocks[i]))
	}
	for n := range longest {
		for _, block := range blocks {
			if n >= len(block) {
				continue
			}
			if _, ok := block[n].(*Instr); !ok {
				b.fail("interleaved code has a loop or a branch")
			}
			*b.block = append(*b.block, block[n])
		}
	}
}

func (b *Builder) in(block *[]Stmt, body func()) {
	outer := b.block
	b.block = block
	defer func() { b.block = outer }()
	body()
}

// ---- instructions

func (b *Builder) do(i *Instr) {
	if msg := checkInstr(b.k, i); msg != "" {
		b.fail("%s", msg)
	}
	i.Pos = callerPos()
	*b.block = append(*b.block, i)
}

func (b *Builder) emit(i *Instr, t Type, s Span) *Value { return b.emitN(i, 1, t, s)[0] }

func (b *Builder) emitN(i *Instr, n int, t Type, s Span) []*Value {
	for range n {
		v := b.k.NewValue(t, s)
		v.Def, v.b = i, b
		i.Results = append(i.Results, v)
	}
	b.do(i)
	return i.Results
}

func span(args ...*Value) Span {
	s := Block
	for _, a := range args {
		if a != nil {
			s = max(s, a.Span)
		}
	}
	return s
}

// Const returns the constant of that type and those bits.
func (b *Builder) Const(t Type, bits int64) *Value {
	if t != Index && !t.Word() && t != Bool {
		b.fail("constant of type %s", t)
	}
	return b.emit(&Instr{Op: OpConst, Imm: normal(t, bits)}, t, Block)
}

// F32 returns a float constant.
func (b *Builder) F32(x float32) *Value { return b.Const(F32, int64(math.Float32bits(x))) }

// I32 returns an integer constant.
func (b *Builder) I32(x int32) *Value { return b.Const(I32, int64(x)) }

// U32 returns an unsigned constant.
func (b *Builder) U32(x uint32) *Value { return b.Const(U32, int64(x)) }

// Idx returns x, an Index value or an int, as an Index value.
func (b *Builder) Idx(x any) *Value {
	switch x := x.(type) {
	case *Value:
		if x.Type != Index {
			b.fail("%s where an index is needed", x.Type)
		}
		return x
	case int:
		return b.Const(Index, int64(x))
	}
	b.fail("%T where an index is needed", x)
	return nil
}

// Lane returns the lane's number in its group.
func (b *Builder) Lane() *Value { return b.emit(&Instr{Op: OpLane}, Index, Varying) }

// Group returns the lane group's number in its block.
func (b *Builder) Group() *Value { return b.emit(&Instr{Op: OpGroup}, Index, Group) }

// pure appends a lane-wise instruction of the op table after checking its signature.
func (b *Builder) pure(i *Instr, result Type) *Value {
	if err := checkArgs(i); err != "" {
		b.fail("%s", err)
	}
	if v := b.fold(i); v != nil {
		return v
	}
	return b.emit(i, result, span(i.Args...))
}

// fold evaluates index arithmetic on constants, so that unrolled addresses become constants; x + 0 and x · 1 are x, and
// x · 0 and x mod 1 are 0.
func (b *Builder) fold(i *Instr) *Value {
	f := i.Op.Info().Index
	if f == nil || len(i.Args) != 2 {
		return nil
	}
	x, y := i.Args[0], i.Args[1]
	c, okX := x.Const()
	d, okY := y.Const()
	switch {
	case okX && okY:
		if (i.Op == OpDivX || i.Op == OpModX) && (c < 0 || d < 1) {
			b.fail("%s of %d and %d", i.Op, c, d)
		}
		t := Index
		if i.Op == OpLtX || i.Op == OpLeX || i.Op == OpEqX {
			t = Bool
		}
		return b.Const(t, f(c, d))
	case okY && (d == 0 && (i.Op == OpAddX || i.Op == OpSubX || i.Op == OpXorX || i.Op == OpShlX || i.Op == OpShrX) || d == 1 && (i.Op == OpMulX || i.Op == OpDivX)):
		return x
	case okX && (c == 0 && i.Op == OpAddX || c == 1 && i.Op == OpMulX):
		return y
	case i.Op == OpMulX && (okY && d == 0 || okX && c == 0), i.Op == OpModX && okY && d == 1:
		return b.Const(Index, 0)
	}
	return nil
}

// operand turns a Go constant into a value of the other operand's type.
func (b *Builder) operand(x any, t Type) *Value {
	switch x := x.(type) {
	case *Value:
		return x
	case int:
		switch t {
		case Index:
			return b.Const(Index, int64(x))
		case I32:
			if x < math.MinInt32 || x > math.MaxInt32 {
				b.fail("%d is no i32", x)
			}
			return b.Const(I32, int64(x))
		case U32:
			if x < 0 || x > math.MaxUint32 {
				b.fail("%d is no u32", x)
			}
			return b.Const(U32, int64(x))
		}
	case float32:
		if t == F32 {
			return b.F32(x)
		}
	}
	b.fail("operand %v (%T) beside %s", x, x, t)
	return nil
}
