package ir_test

import (
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// here returns the line of the caller.
func here() int {
	_, _, line, _ := runtime.Caller(1)
	return line
}

// Every illegal call is an error at the line of the schedule that makes it.
func TestBuildErrors(t *testing.T) {
	type mem = ir.Memory
	for _, c := range []struct {
		want string
		line int
		f    func(b *ir.Builder)
	}{
		{"argument 2 of add.f32 is i32", here(), func(b *ir.Builder) { b.F32(1).Add(b.I32(1)) }},
		{"operand 1 (int) beside f32", here(), func(b *ir.Builder) { b.F32(1).Add(1) }},
		{"4294967296 is no u32", here(), func(b *ir.Builder) { b.U32(1).Add(1 << 32) }},
		{"no such operation on f32", here(), func(b *ir.Builder) { b.F32(1).Xor(b.F32(1)) }},
		{"no such comparison of i32", here(), func(b *ir.Builder) { b.I32(1).Le(2) }},
		{"argument 2 of min.i32 is u32", here(), func(b *ir.Builder) { b.I32(1).Min(b.U32(2)) }},
		{"argument 1 of min.i32 is u32", here(), func(b *ir.Builder) { b.U32(1).Min(b.U32(2)) }},
		{"div.index of 4 and 0", here(), func(b *ir.Builder) { b.Idx(4).Div(0) }},
		{"div.index of -4 and 2", here(), func(b *ir.Builder) { b.Idx(-4).Div(2) }},
		{"argument 1 of and.bool is f32", here(), func(b *ir.Builder) { b.F32(1).AndB(b.F32(1)) }},
		{"argument 3 of select is f32", here(), func(b *ir.Builder) { b.Lane().Lt(1).Select(b.I32(1), b.F32(1)) }},
		{"argument 2 of select is index", here(), func(b *ir.Builder) { b.Lane().Lt(1).Select(b.Lane(), b.Lane()) }},
		{"cast from bool to f32", here(), func(b *ir.Builder) { b.Lane().Lt(1).As(ir.F32) }},
		{"cast from f32 to i8", here(), func(b *ir.Builder) { b.F32(1).As(ir.I8) }},
		{"argument 1 of f32.i32 is u32", here(), func(b *ir.Builder) { b.U32(1).ToF32() }},
		{"constant of type f16", here(), func(b *ir.Builder) { b.Const(ir.F16, 1) }},
		{"bound 256 of unsigned bytes", here(), func(b *ir.Builder) { b.Dot4US(b.Const(ir.U8x4, 0), b.Const(ir.I8x4, 0), b.I32(0), 256) }},
		{"argument 1 of dot4.u8s8 is i8x4", here(), func(b *ir.Builder) { b.Dot4US(b.Const(ir.I8x4, 0), b.Const(ir.I8x4, 0), b.I32(0), 9) }},
		{"argument 1 of lookup16 is i8x4", here(), func(b *ir.Builder) { b.Lookup16(b.Const(ir.I8x4, 0), [16]byte{}) }},
		{"shuffle by 8 of 8 lanes", here(), func(b *ir.Builder) { b.F32(1).ShuffleXor(8) }},
		{"lane 8 of 8", here(), func(b *ir.Builder) { b.F32(1).ReadLane(8) }},
		{"argument 1 of fold.add.f32 is u32", here(), func(b *ir.Builder) { b.U32(1).FoldAdd() }},
		{"argument 1 of fold.max.f32 is i32", here(), func(b *ir.Builder) { b.I32(1).FoldMax() }},

		{"two parameters or shared arrays are named x", here(), func(b *ir.Builder) { b.In("x", ir.F32); b.Float("x") }},
		{"two parameters or shared arrays are named x", here(), func(b *ir.Builder) { b.In("x", ir.F32); b.Shared("x", ir.F32, 1) }},
		{`"a.b" is no name`, here(), func(b *ir.Builder) { b.In("a.b", ir.F32) }},
		{"buffer x of type bool", here(), func(b *ir.Builder) { b.In("x", ir.Bool) }},
		{"shared array x of 0 × f32", here(), func(b *ir.Builder) { b.Shared("x", ir.F32, 0) }},
		{"register tile x of [-1 -1]", here(), func(b *ir.Builder) { b.Reg("x", ir.F32, -1, -1) }},
		{"register tile x of [99999 99999]", here(), func(b *ir.Builder) { b.Reg("x", ir.F32, 99999, 99999) }},
		{`register tile "x" of [] × f32`, here(), func(b *ir.Builder) { b.Reg("x", ir.F32) }},
		{`register tile "x" of [1] × f16`, here(), func(b *ir.Builder) { b.Reg("x", ir.F16, 1) }},
		{"register tile x twice", here(), func(b *ir.Builder) { b.Reg("x", ir.F32, 1); b.UniformReg("x", ir.F32, 1) }},
		{"a grid axis takes an integer parameter", here(), func(b *ir.Builder) { b.Tiles(b.Idx(4), 1) }},
		{"and a positive tile", here(), func(b *ir.Builder) { b.Tiles(b.Int("n"), 0) }},

		{"register tile x has 2 axes, not 1", here(), func(b *ir.Builder) { b.Reg("x", ir.F32, 2, 2).At(1) }},
		{"the index of a register tile is not constant", here(), func(b *ir.Builder) { b.Reg("x", ir.F32, 2).At(b.Lane()) }},
		{"i32 set in a register tile of f32", here(), func(b *ir.Builder) { b.Reg("x", ir.F32, 2).Set(b.I32(0), 0) }},
		{"set in a register tile of varying f32", here(), func(b *ir.Builder) { b.Reg("x", ir.F32, 2).Fill(b.I32(0)) }},
		{"varying value set in the uniform register tile x", here(), func(b *ir.Builder) { b.UniformReg("x", ir.I32, 2).Set(b.Lane().FromIndex(), 0) }},
		{"f32 where an index is needed", here(), func(b *ir.Builder) { b.Reg("x", ir.F32, 2).At(b.F32(0)) }},

		{"loop step 0", here(), func(b *ir.Builder) { b.For(0, 1, 0, func(*ir.Value) {}) }},
		{"a loop bound varies between lanes", here(), func(b *ir.Builder) { b.For(0, b.Lane(), 1, func(*ir.Value) {}) }},
		{"a branch takes a uniform bool, not a varying bool", here(), func(b *ir.Builder) { b.If(b.Lane().Lt(1), func() {}) }},
		{"a branch takes a uniform bool, not a block f32", here(), func(b *ir.Builder) { b.If(b.F32(1), func() {}) }},

		{"access of 3 elements", here(), func(b *ir.Builder) { b.LoadN(b.In("x", ir.F32), 3, 0, nil) }},
		{"x as bool", here(), func(b *ir.Builder) { b.Load(b.In("x", ir.F32).As(ir.Bool), 0) }},
		{"mask of type f32", here(), func(b *ir.Builder) { b.LoadMasked(b.In("x", ir.F32), 0, b.F32(1)) }},
		{"access to no memory", here(), func(b *ir.Builder) { b.Load(mem{}, 0) }},
		{"load from the output x", here(), func(b *ir.Builder) { b.Load(b.Out("x", ir.F32), 0) }},
		{"store to the input x", here(), func(b *ir.Builder) { b.Store(b.In("x", ir.F32), 0, b.F32(1)) }},
		{"f32 stored to x as i8", here(), func(b *ir.Builder) { b.Store(b.Out("x", ir.F32).As(ir.I8), 0, b.F32(1)) }},
		{"prefetch takes 1 memories, not 0", here(), func(b *ir.Builder) { b.Prefetch(mem{}, 0) }},
		{"an asynchronous copy goes from a buffer to a shared array", here(), func(b *ir.Builder) { x := b.In("x", ir.F32); b.AsyncCopy(x, 0, x, 0, nil) }},
		{"argument 3 of async.copy is f32", here(), func(b *ir.Builder) { b.AsyncCopy(b.Shared("s", ir.F32, 4), 0, b.In("x", ir.F32), 0, b.F32(0)) }},
		{"load from the output x", here(), func(b *ir.Builder) { b.AsyncCopy(b.Shared("s", ir.F32, 4), 0, b.Out("x", ir.F32), 0, nil) }},
		{"async.wait of -1", here(), func(b *ir.Builder) { b.AsyncWait(-1) }},
		{"ldmatrix reads 1, 2 or 4 matrices", here(), func(b *ir.Builder) { b.LdMatrix(b.Shared("s", ir.I8, 4), 1, b.Lane()) }},
		{"m8n8k16.s8 takes 1 registers, not 0", here(), func(b *ir.Builder) { b.MMA(target.M8N8K16S8, nil, nil, nil) }},
		{"m8n8k16.s8 takes i8x4, not f32", here(), func(b *ir.Builder) { b.MMA(target.M8N8K16S8, []*ir.Value{b.F32(1)}, nil, nil) }},
		{"register 2 of 2", here(), func(b *ir.Builder) { b.FragCoord(target.M8N8K16S8, 2) }},
		{"no tile of 5", here(), func(b *ir.Builder) { b.Fail("no tile of %d", 5) }},
	} {
		k, err := ir.Build("bad", 8, 1, c.f)
		var e *ir.Error
		if k != nil || !errors.As(err, &e) || !strings.Contains(e.Msg, c.want) || e.Kernel != "bad" || e.Pos != (ir.Pos{File: "build_test.go", Line: c.line}) {
			t.Errorf("line %d: got %v, want %q", c.line, err, c.want)
		}
	}
	for _, c := range []struct {
		name          string
		lanes, groups int
	}{{"k", 0, 1}, {"k", 4, 1}, {"k", 64, 1}, {"k", 8, 0}, {"k", 32, 33}, {"", 8, 1}, {"a b", 8, 1}, {"1", 8, 1}} {
		if _, err := ir.Build(c.name, c.lanes, c.groups, func(b *ir.Builder) {}); err == nil {
			t.Errorf("%v is accepted", c)
		}
	}
}

// A panic of the schedule itself is no error of the kernel.
func TestBuildPanics(t *testing.T) {
	defer func() {
		if recover() != "mine" {
			t.Error("the panic is lost")
		}
	}()
	_, _ = ir.Build("k", 8, 1, func(*ir.Builder) { panic("mine") })
}

// Index arithmetic on constants leaves no instruction.
func TestBuildFolds(t *testing.T) {
	_, err := ir.Build("k", 8, 1, func(b *ir.Builder) {
		x := b.Lane()
		for n, v := range []*ir.Value{x.Add(0), b.Idx(0).Add(x), x.Sub(0), x.Mul(1), b.Idx(1).Mul(x), x.Div(1), x.Xor(0), x.Shl(0), x.Shr(0)} {
			if v != x {
				t.Errorf("case %d is not the value itself", n)
			}
		}
		for n, c := range []struct {
			v    *ir.Value
			want int64
		}{
			{b.Idx(7).Add(5), 12}, {b.Idx(7).Sub(9), -2}, {b.Idx(7).Mul(3), 21}, {b.Idx(7).Div(2), 3}, {b.Idx(7).Mod(4), 3},
			{b.Idx(7).Min(4), 4}, {b.Idx(7).Max(9), 9}, {b.Idx(6).And(3), 2}, {b.Idx(6).Xor(3), 5}, {b.Idx(3).Shl(4), 48}, {b.Idx(48).Shr(4), 3},
			{b.Idx(1).Lt(2), 1}, {b.Idx(2).Le(1), 0}, {b.Idx(2).Eq(2), 1}, {x.Mul(0), 0}, {b.Idx(0).Mul(x), 0},
			{b.I32(-1), -1}, {b.I32(-1).As(ir.U32), 0xFFFFFFFF}, {b.F32(1).As(ir.I32), 0x3F800000}, {b.U32(1 << 31).As(ir.I32), -1 << 31},
		} {
			if got, ok := c.v.Const(); !ok || got != c.want {
				t.Errorf("case %d: %d, %v, want %d", n, got, ok, c.want)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSpans(t *testing.T) {
	_, err := ir.Build("k", 32, 2, func(b *ir.Builder) {
		in, io := b.In("in", ir.I32), b.InOut("io", ir.I32)
		lane, group, tile := b.Lane(), b.Group(), b.Tiles(b.Int("n"), 1)
		s := b.Shared("s", ir.I32, 4)
		for n, c := range []struct {
			v    *ir.Value
			want ir.Span
		}{
			{tile, ir.Block}, {group, ir.Group}, {lane, ir.Varying}, {tile.Add(group), ir.Group}, {group.Add(lane), ir.Varying},
			{b.Load(in, tile), ir.Block}, {b.Load(in, group), ir.Group}, {b.Load(in, lane), ir.Varying},
			{b.LoadMasked(in, tile, lane.Lt(3)), ir.Varying}, {b.Load(io, tile), ir.Group}, {b.Load(s, 0), ir.Group},
			{b.Load(in, lane).FoldAdd(), ir.Group}, {b.Load(in, tile).ReadLane(0), ir.Group}, {b.Load(in, tile).ShuffleXor(1), ir.Block},
			{lane.Lt(1).Select(b.I32(0), b.I32(1)), ir.Varying}, {b.UniformReg("u", ir.F32, 1).At(0), ir.Group}, {b.Reg("r", ir.F32, 1).At(0), ir.Varying},
		} {
			if c.v.Span != c.want {
				t.Errorf("case %d is %s, want %s", n, c.v.Span, c.want)
			}
		}
		b.For(tile, group, 1, func(i *ir.Value) {
			if i.Span != ir.Group {
				t.Errorf("loop variable is %s", i.Span)
			}
		})
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestSharedOffsets(t *testing.T) {
	k, err := ir.Build("k", 8, 1, func(b *ir.Builder) {
		b.Shared("a", ir.I8, 1)
		b.Shared("b", ir.F32, 17)
		b.Shared("c", ir.F16, 2)
	})
	if err != nil {
		t.Fatal(err)
	}
	if a := k.Shared; a[0].Offset != 0 || a[1].Offset != 64 || a[2].Offset != 192 || k.SharedBytes() != 196 {
		t.Errorf("offsets %d %d %d, %d bytes", a[0].Offset, a[1].Offset, a[2].Offset, k.SharedBytes())
	}
}
