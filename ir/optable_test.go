package ir_test

import (
	"math"
	"math/big"
	"strings"
	"testing"

	"github.com/swizzle-rt/swizzle/ir"
)

func TestOpTable(t *testing.T) {
	names := map[string]bool{}
	for _, o := range ir.Ops() {
		i := o.Info()
		if i.Name == "" || names[i.Name] || strings.Trim(i.Name, "abcdefghijklmnopqrstuvwxyz0123456789.") != "" {
			t.Errorf("op %d is named %q", o, i.Name)
		}
		names[i.Name] = true
		if got, ok := ir.ParseOp(i.Name); !ok || got != o {
			t.Errorf("ParseOp(%q) = %v, %v", i.Name, got, ok)
		}
		if i.Doc == "" {
			t.Errorf("%s: no doc", o)
		}
		if o == ir.OpMMA {
			continue // by its atom
		}
		args, results, ok := strings.Cut(i.Sig, ":")
		letters := strings.ReplaceAll(args, "?", "")
		if !ok || strings.Trim(letters+results, "fiusqbxnw") != "" || strings.Contains(args, "??") || strings.HasSuffix(args, "?") || strings.Contains(results, "?") {
			t.Errorf("%s: signature %q", o, i.Sig)
		}
		if i.Lane != nil && (i.Index != nil || len(letters) < 1 || len(letters) > 3 || len(results) != 1 || strings.Contains(i.Sig, "x") || !i.Pure) {
			t.Errorf("%s: lane-wise with signature %q, pure %v", o, i.Sig, i.Pure)
		}
		if i.Index != nil && (letters != "xx" || results != "x" && results != "b" || !i.Pure) {
			t.Errorf("%s: index arithmetic with signature %q, pure %v", o, i.Sig, i.Pure)
		}
		if i.Pure && results == "" && o != ir.OpConst { // whose type is free
			t.Errorf("%s: pure without a result", o)
		}
	}
	for _, o := range []ir.Op{ir.OpGet, ir.OpSet, ir.OpLoad, ir.OpStore, ir.OpPrefetch, ir.OpBarrier, ir.OpAsyncCopy, ir.OpAsyncCommit, ir.OpAsyncWait, ir.OpLdMatrix} {
		if o.Info().Pure {
			t.Errorf("%s is pure", o)
		}
	}
	if _, ok := ir.ParseOp(""); ok {
		t.Error("the empty name is an op")
	}
	if ir.Op(0).Info().Name != "" || ir.Op(255).Info().Name != "" {
		t.Error("no op has a name")
	}
}

const (
	nan    = 0x7FC00000
	inf    = 0x7F800000
	negInf = 0xFF800000
	neg0   = 0x80000000
	one    = 0x3F800000
	tiny   = 0x00000001 // smallest subnormal
	huge   = 0x7F7FFFFF
	minI   = 0x80000000
	maxI   = 0x7FFFFFFF
	all    = 0xFFFFFFFF
)

// The meaning of every lane-wise op where it is easy to get wrong.
func TestLane(t *testing.T) {
	seen := map[ir.Op]bool{}
	for _, c := range []struct {
		op            ir.Op
		a, b, c, want uint32
	}{
		{ir.OpAddF, one, tiny, 0, one}, {ir.OpAddF, neg0, neg0, 0, neg0}, {ir.OpAddF, neg0, 0, 0, 0}, {ir.OpAddF, inf, negInf, 0, nan},
		{ir.OpAddF, huge, huge, 0, inf}, {ir.OpAddF, tiny, tiny, 0, 2}, {ir.OpAddF, one, 0x33800000, 0, one}, {ir.OpAddF, 0x3F800001, 0x33800000, 0, 0x3F800002}, // ties to even
		{ir.OpSubF, one, one, 0, 0}, {ir.OpSubF, 0, 0, 0, 0}, {ir.OpSubF, neg0, 0, 0, neg0}, {ir.OpSubF, inf, inf, 0, nan},
		{ir.OpMulF, tiny, 0x3F000000, 0, 0}, {ir.OpMulF, 3, 0x3F000000, 0, 2}, {ir.OpMulF, neg0, one, 0, neg0}, {ir.OpMulF, inf, 0, 0, nan}, {ir.OpMulF, huge, 0x40000000, 0, inf},
		{ir.OpFMAExact, 0x40000000, 0x40400000, one, 0x40E00000}, {ir.OpFMAExact, one, nan, one, nan},
		{ir.OpLtF, neg0, 0, 0, 0}, {ir.OpLtF, nan, one, 0, 0}, {ir.OpLtF, one, nan, 0, 0}, {ir.OpLtF, negInf, inf, 0, 1},
		{ir.OpLeF, neg0, 0, 0, 1}, {ir.OpLeF, 0, neg0, 0, 1}, {ir.OpLeF, nan, nan, 0, 0}, {ir.OpLeF, inf, huge, 0, 0},
		{ir.OpEqF, neg0, 0, 0, 1}, {ir.OpEqF, nan, nan, 0, 0}, {ir.OpEqF, inf, inf, 0, 1},
		{ir.OpAddI, maxI, 1, 0, minI}, {ir.OpAddI, all, 1, 0, 0}, {ir.OpSubI, minI, 1, 0, maxI}, {ir.OpSubI, 0, 1, 0, all},
		{ir.OpMulI, minI, all, 0, minI}, {ir.OpMulI, 65536, 65536, 0, 0}, {ir.OpMulI, all, all, 0, 1},
		{ir.OpAnd, 0xF0F0, 0xFF00, 0, 0xF000}, {ir.OpOr, 0xF0F0, 0xFF00, 0, 0xFFF0}, {ir.OpXor, 0xF0F0, 0xFF00, 0, 0x0FF0},
		{ir.OpShl, 1, 31, 0, minI}, {ir.OpShl, 1, 32, 0, 0}, {ir.OpShl, 1, all, 0, 0}, {ir.OpShl, 3, 0, 0, 3},
		{ir.OpShrU, minI, 31, 0, 1}, {ir.OpShrU, all, 32, 0, 0}, {ir.OpShrU, all, all, 0, 0}, {ir.OpShrU, all, 0, 0, all},
		{ir.OpShrI, minI, 31, 0, all}, {ir.OpShrI, minI, 32, 0, all}, {ir.OpShrI, minI, all, 0, all}, {ir.OpShrI, maxI, 31, 0, 0}, {ir.OpShrI, minI, 0, 0, minI},
		{ir.OpMinI, minI, maxI, 0, minI}, {ir.OpMinI, all, 0, 0, all}, {ir.OpMaxI, minI, maxI, 0, maxI}, {ir.OpMaxI, all, 0, 0, 0}, {ir.OpMaxU, all, 0, 0, all}, {ir.OpMaxU, minI, maxI, 0, minI},
		{ir.OpLtI, minI, maxI, 0, 1}, {ir.OpLtI, 0, 0, 0, 0}, {ir.OpLtU, minI, maxI, 0, 0}, {ir.OpLtU, 0, all, 0, 1}, {ir.OpEqI, all, all, 0, 1}, {ir.OpEqI, 0, minI, 0, 0},
		{ir.OpAndB, 1, 1, 0, 1}, {ir.OpAndB, 1, 0, 0, 0}, {ir.OpOrB, 0, 1, 0, 1}, {ir.OpOrB, 0, 0, 0, 0}, {ir.OpNotB, 0, 0, 0, 1}, {ir.OpNotB, 1, 0, 0, 0},
		{ir.OpSelect, 1, 0x12345678, all, 0x12345678}, {ir.OpSelect, 0, 0x12345678, nan, nan}, {ir.OpCast, nan, 0, 0, nan},
		{ir.OpToF32, 0, 0, 0, 0}, {ir.OpToF32, all, 0, 0, 0xBF800000}, {ir.OpToF32, 1<<24 - 1, 0, 0, 0x4B7FFFFF},
		{ir.OpDot4US, 0xFFFFFFFF, 0x80808080, 0, 0xFFFE0200}, {ir.OpDot4US, 0xFFFFFFFF, 0x7F7F7F7F, 1, 4*255*127 + 1}, {ir.OpDot4US, 0x000000FF, 0x00000080, 0, 0xFFFF8080},
		{ir.OpDot4US, 0x01020304, 0x01010101, maxI, minI + 9},
		{ir.OpDot4SS, 0x80808080, 0x7F7F7F7F, 0, 0xFFFF0200}, {ir.OpDot4SS, 0x80808080, 0x81818181, 0, 4 * 128 * 127}, {ir.OpDot4SS, 0xFF000001, 0x02000003, 5, 6},
	} {
		seen[c.op] = true
		if got := c.op.Info().Lane(c.a, c.b, c.c); got != c.want && !(isNaN(got) && isNaN(c.want)) {
			t.Errorf("%s(%08X, %08X, %08X) = %08X, want %08X", c.op, c.a, c.b, c.c, got, c.want)
		}
	}
	for _, o := range ir.Ops() {
		if o.Info().Lane != nil && !seen[o] {
			t.Errorf("%s is not tested", o)
		}
	}
}

func isNaN(x uint32) bool { return x&maxI > inf }

func TestIndex(t *testing.T) {
	const top = math.MaxInt64
	seen := map[ir.Op]bool{}
	for _, c := range []struct {
		op         ir.Op
		a, b, want int64
	}{
		{ir.OpAddX, 1 << 40, 1, 1<<40 + 1}, {ir.OpSubX, 0, 1, -1}, {ir.OpMulX, 1 << 20, 1 << 20, 1 << 40}, {ir.OpDivX, 7, 2, 3}, {ir.OpModX, 7, 2, 1},
		{ir.OpMinX, -1, 0, -1}, {ir.OpMaxX, -1, 0, 0}, {ir.OpAndX, 6, 3, 2}, {ir.OpXorX, 6, 3, 5}, {ir.OpShlX, 1, 40, 1 << 40}, {ir.OpShrX, 1 << 40, 40, 1},
		{ir.OpLtX, -1, 0, 1}, {ir.OpLtX, 0, 0, 0}, {ir.OpLeX, 0, 0, 1}, {ir.OpLeX, top, 0, 0}, {ir.OpEqX, 1 << 32, 0, 0}, {ir.OpEqX, top, top, 1},
	} {
		seen[c.op] = true
		if got := c.op.Info().Index(c.a, c.b); got != c.want {
			t.Errorf("%s(%d, %d) = %d, want %d", c.op, c.a, c.b, got, c.want)
		}
	}
	for _, o := range ir.Ops() {
		if o.Info().Index != nil && !seen[o] {
			t.Errorf("%s is not tested", o)
		}
	}
}

func TestExactProduct(t *testing.T) {
	sample := []uint32{0, neg0, one, tiny, 2, 0x007FFFFF, 0x00800000, huge, inf, nan, 0x3F800001, 0x3FFFF000, 0x3FFFE000, 0x40400000, 0x20000000, 0x1FFFFFFF, 0x7F000000, 0x34000000}
	for _, x := range sample {
		for _, y := range sample {
			a, b := math.Float32frombits(x), math.Float32frombits(y)
			want := true
			if !math.IsNaN(float64(a)) && !math.IsNaN(float64(b)) && !math.IsInf(float64(a), 0) && !math.IsInf(float64(b), 0) {
				p := new(big.Float).SetPrec(60).Mul(big.NewFloat(float64(a)), big.NewFloat(float64(b)))
				f, acc := p.Float32()
				want = acc == big.Exact && !math.IsInf(float64(f), 0)
			}
			if got := ir.ExactProduct(x, y); got != want {
				t.Errorf("%08X · %08X: exact is %v, want %v", x, y, got, want)
			}
		}
	}
}

func TestExactInt(t *testing.T) {
	for n, want := range map[int32]bool{0: true, 1: true, -1: true, 1<<24 - 1: true, 1 << 24: false, -1<<24 + 1: true, -1 << 24: false, math.MaxInt32: false, math.MinInt32: false} {
		if got := ir.ExactInt(uint32(n)); got != want {
			t.Errorf("%d: %v", n, got)
		}
	}
}

func TestTypes(t *testing.T) {
	for ty := ir.F32; ty <= ir.BF16; ty++ {
		if got, ok := ir.ParseType(ty.String()); !ok || got != ty {
			t.Errorf("ParseType(%q) = %v, %v", ty, got, ok)
		}
		if ty.Word() != (ty.Bytes() == 4) || !ty.Reg().Word() && ty.Bytes() != 0 || ty.Reg().Reg() != ty.Reg() {
			t.Errorf("%s: %d bytes, register type %s", ty, ty.Bytes(), ty.Reg())
		}
	}
	if _, ok := ir.ParseType("invalid"); ok {
		t.Error("invalid is a type")
	}
	if s := ir.Type(99).String(); s != "type(99)" {
		t.Error(s)
	}
}
