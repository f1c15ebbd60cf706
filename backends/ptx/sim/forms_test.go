package sim_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/swizzle-rt/swizzle/backends/checkers"
	"github.com/swizzle-rt/swizzle/backends/ptx/sim"
)

const header = ".version 8.0\n.target sm_90\n.address_size 64\n"

// A case is an instruction on operands that lie in registers of these classes (r 32 bits, d 64, h 16, p predicate; #
// stands for a literal), and its result.
type formCase struct {
	op      string
	classes string // of the result, then of the sources
	want    uint64
	args    []uint64
}

const minus = math.MaxUint64 // −1

func cases() []formCase {
	f := func(x float32) uint64 { return uint64(math.Float32bits(x)) }
	c := func(op, classes string, want uint64, args ...uint64) formCase {
		return formCase{op, classes, want, args}
	}
	const inf, nan, sub = 0x7F800000, 0x7FFFFFFF, 1
	return []formCase{
		c("add.u32", "rrr", 1, 0xFFFFFFFF, 2),
		c("add.s32", "rr#", 0x80000000, 0x7FFFFFFF, 1),
		c("add.s64", "ddd", 0x100000001, 0xFFFFFFFF, 2),
		c("add.u64", "dd#", 0, minus, 1),
		c("sub.u32", "rrr", 0xFFFFFFFF, 1, 2),
		c("sub.s64", "ddd", minus, 1, 2),
		c("mul.lo.u32", "rrr", 0xFFFE0001, 0xFFFF, 0xFFFF),
		c("mul.lo.s32", "rrr", 6, 0xFFFFFFFE, 0xFFFFFFFD),
		c("mul.lo.s64", "ddd", 0xFFFFFFFE00000001, 0xFFFFFFFF, 0xFFFFFFFF),
		c("mul.hi.u32", "rrr", 0xFFFFFFFE, 0xFFFFFFFF, 0xFFFFFFFF),
		c("mul.hi.s32", "rrr", 0, 0xFFFFFFFF, 0xFFFFFFFF),
		c("mul.hi.u64", "ddd", minus-1, minus, minus),
		c("mul.wide.u32", "drr", 0xFFFFFFFE00000001, 0xFFFFFFFF, 0xFFFFFFFF),
		c("mul.wide.s32", "drr", minus-1, 0xFFFFFFFF, 2),
		c("mad.lo.u32", "rrrr", 17, 3, 4, 5),
		c("mad.lo.s64", "dddd", 1, minus, 4, 5),
		c("mad.wide.u32", "drrd", 0x200000005, 0xFFFFFFFF, 2, 7),
		c("mad.wide.s32", "drrd", 5, 0xFFFFFFFF, 2, 7),
		c("div.u32", "rrr", 0x7FFFFFFC, 0xFFFFFFF9, 2),
		c("div.s32", "rrr", 0xFFFFFFFD, 0xFFFFFFF9, 2), // toward zero
		c("rem.s32", "rrr", 0xFFFFFFFF, 0xFFFFFFF9, 2),
		c("rem.u32", "rrr", 1, 0xFFFFFFF9, 2),
		c("div.u64", "ddd", 0x5555555555555555, minus, 3),
		c("div.s64", "ddd", minus-2, minus-6, 2),
		c("rem.s64", "ddd", minus, minus-6, 2),
		c("rem.u64", "ddd", 6, 1000000000006, 1000000),
		c("min.u32", "rrr", 1, 1, 0xFFFFFFFF), c("min.s32", "rrr", 0xFFFFFFFF, 1, 0xFFFFFFFF),
		c("max.u32", "rrr", 0xFFFFFFFF, 1, 0xFFFFFFFF), c("max.s32", "rrr", 1, 1, 0xFFFFFFFF),
		c("min.s64", "ddd", minus, 1, minus), c("max.s64", "ddd", 1, 1, minus),
		c("min.u64", "ddd", 1, 1, minus), c("max.u64", "ddd", minus, 1, minus),
		c("neg.s32", "rr", 0x80000000, 0x80000000), c("neg.s64", "dd", minus, 1),
		c("abs.s32", "rr", 5, 0xFFFFFFFB),

		c("and.b32", "rrr", 0x88, 0xCC, 0xAA), c("or.b32", "rrr", 0xEE, 0xCC, 0xAA), c("xor.b32", "rr#", 0x66, 0xCC, 0xAA),
		c("not.b32", "rr", 0xFFFFFF33, 0xCC), c("not.b64", "dd", minus-0xCC, 0xCC),
		c("and.b64", "ddd", 0x8800000000, 0xCC00000000, 0xAA00000000), c("or.b64", "ddd", 3, 1, 2), c("xor.b64", "ddd", 2, 1, 3),
		c("and.pred", "ppp", 0, 1, 0), c("or.pred", "ppp", 1, 1, 0), c("xor.pred", "ppp", 0, 1, 1), c("not.pred", "pp", 0, 1), c("mov.pred", "pp", 1, 1),
		c("shl.b32", "rrr", 0x80000000, 1, 31), c("shl.b32", "rrr", 0, 1, 32), c("shl.b32", "rrr", 0, 1, 0xFFFFFFFF), // clamped
		c("shr.u32", "rrr", 1, 0x80000000, 31), c("shr.b32", "rrr", 0, 0x80000000, 40),
		c("shr.s32", "rr#", 0xFFFFFFFF, 0x80000000, 31), c("shr.s32", "rrr", 0xFFFFFFFF, 0x80000000, 99), c("shr.s32", "rrr", 0, 0x7FFFFFFF, 99),
		c("shl.b64", "ddr", 1<<63, 1, 63), c("shl.b64", "dd#", 0, 1, 64), c("shr.u64", "ddr", 1, 1<<63, 63), c("shr.b64", "ddr", 0, 1<<63, 200),
		c("shr.s64", "ddr", minus, 1<<63, 64),
		c("shf.l.wrap.b32", "rrrr", 0xBBCCDD11, 0x11223344, 0xAABBCCDD, 8), c("shf.l.wrap.b32", "rrrr", 0xBBCCDD11, 0x11223344, 0xAABBCCDD, 40),
		c("shf.l.clamp.b32", "rrrr", 0x11223344, 0x11223344, 0xAABBCCDD, 40),
		c("shf.r.wrap.b32", "rrrr", 0xDD112233, 0x11223344, 0xAABBCCDD, 8), c("shf.r.clamp.b32", "rrrr", 0xAABBCCDD, 0x11223344, 0xAABBCCDD, 32),

		c("bfe.u32", "rrrr", 0xBC, 0xABCD, 4, 8), c("bfe.u32", "rrrr", 0xA, 0xABCD, 12, 0xFF), c("bfe.u32", "rrrr", 0, 0xABCD, 0, 0), c("bfe.u32", "rrrr", 0, 0xABCD, 70, 8),
		c("bfe.s32", "rrrr", 0xFFFFFFBC, 0xABCD, 4, 8), c("bfe.s32", "rrrr", 0xD, 0xABCD, 0, 5), c("bfe.s32", "rrrr", 0, 0xFFFFFFFF, 3, 0),
		c("bfe.s32", "rrrr", 0xFFFFFFFF, 0x80000000, 31, 5), c("bfe.s32", "rrrr", 0xFFFFFFFF, 0x80000000, 50, 5), c("bfe.s32", "rrrr", 0xABCD, 0xABCD, 0, 32),
		c("bfi.b32", "rrrrr", 0x1111CD11, 0xABCD, 0x11111111, 8, 8), c("bfi.b32", "rrrrr", 0xCD111111, 0xABCD, 0x11111111, 24, 200),
		c("bfi.b32", "rrrrr", 0x11111111, 0xABCD, 0x11111111, 40, 8), c("bfi.b32", "rrrrr", 0x11111111, 0xABCD, 0x11111111, 8, 0),
		c("prmt.b32", "rrrr", 0x77665544, 0x33221100, 0x77665544, 0x7654), c("prmt.b32", "rrr#", 0x00112233, 0x33221100, 0x77665544, 0x0123),
		c("prmt.b32", "rrrr", 0x0000FF80, 0x00008000, 0, 0x8891), c("prmt.b32", "rrrr", 0x00000011, 0x33221100, 0, 0xFFFF4441),
		c("lop3.b32", "rrrr#", 0x80, 0xF0, 0xCC, 0xAA, 0x80), c("lop3.b32", "rrrr#", 0x96, 0xF0, 0xCC, 0xAA, 0x96), c("lop3.b32", "rrrr#", 0xFFFFFFFF, 1, 2, 3, 0xFF),
		c("popc.b32", "rr", 9, 0x80FF0000), c("clz.b32", "rr", 32, 0), c("clz.b32", "rr", 7, 0x01000000),

		c("dp4a.u32.u32", "rrrr", 4*255*255+1, 0xFFFFFFFF, 0xFFFFFFFF, 1), c("dp4a.s32.s32", "rrrr", 5, 0xFFFFFFFF, 0xFFFFFFFF, 1),
		c("dp4a.u32.s32", "rrrr", 0xFFFFFC05, 0xFFFFFFFF, 0xFFFFFFFF, 1), c("dp4a.s32.u32", "rrrr", 0xFFFFFC05, 0xFFFFFFFF, 0xFFFFFFFF, 1),
		c("dp4a.s32.s32", "rrrr", 0x8000FFFF, 0x80808080, 0x80808080, 0x7FFFFFFF), // wraps

		c("mov.b32", "rr", 0xDEADBEEF, 0xDEADBEEF), c("mov.u64", "dd", minus, minus), c("mov.b16", "hh", 0xBEEF, 0xBEEF), c("mov.b32", "r#", 7, 7),
		c("selp.b32", "rrrp", 1, 1, 2, 1), c("selp.b32", "r##p", 2, 1, 2, 0), c("selp.f32", "rrrp", f(1), f(1), f(2), 1), c("selp.b64", "dddp", minus, 2, minus, 0),

		c("setp.lt.s32", "prr", 1, 0xFFFFFFFF, 0), c("setp.lt.u32", "prr", 0, 0xFFFFFFFF, 0), c("setp.lo.u32", "prr", 1, 0, 1), c("setp.hs.u32", "prr", 1, 1, 1),
		c("setp.ge.s64", "pdd", 0, minus, 0), c("setp.gt.u64", "pdd", 1, minus, 0), c("setp.eq.b64", "pdd", 1, minus, minus), c("setp.ne.s32", "pr#", 1, 2, 0),
		c("setp.lt.f32", "prr", 0, nan, f(1)), c("setp.ne.f32", "prr", 0, nan, f(1)), c("setp.neu.f32", "prr", 1, nan, f(1)), c("setp.ltu.f32", "prr", 1, nan, f(1)),
		c("setp.geu.f32", "prr", 0, f(-1), f(1)), c("setp.eq.f32", "prr", 1, 0x80000000, 0), c("setp.le.f32", "prr", 1, f(-2), f(1)), c("setp.gt.f32", "prr", 1, inf, f(3e38)),
		c("setp.num.f32", "prr", 1, 0, 0), c("setp.nan.f32", "prr", 1, 0, nan), c("setp.lt.f32", "prr", 1, 0, sub), c("setp.equ.f32", "prr", 1, nan, nan),

		c("add.rn.f32", "rrr", f(3), f(1), f(2)), c("add.rn.f32", "rrr", nan, inf, inf|1<<31), c("add.rn.f32", "rrr", 0, f(1), f(-1)),
		c("add.rn.f32", "rrr", nan, 0xFFC12345, f(1)), c("add.rn.f32", "rrr", 2, sub, sub), c("add.rn.f32", "rrr", f(0x1p24), f(0x1p24), f(1)), // tie to even
		c("add.rn.f32", "rrr", f(0x1p24+4), f(0x1p24+2), f(1)), c("sub.rn.f32", "rrr", 0x007FFFFF, 0x00800000, sub), c("sub.rn.f32", "rrr", 0x80000000, 0x80000000, 0),
		c("mul.rn.f32", "rrr", 0x00400000, 0x00800000, f(0.5)), c("mul.rn.f32", "rrr", nan, 0, inf), c("mul.rn.f32", "rrr", inf, f(3e38), f(3e38)),
		c("mul.rn.f32", "rrr", 0x80000000, sub|1<<31, sub),
		c("fma.rn.f32", "rrrr", f(0x1p-46), f(1+0x1p-23), f(1+0x1p-23), f(-1-0x1p-22)), c("fma.rn.f32", "rrrr", nan, inf, 0, f(1)),
		// 1 + 2⁻²³ + 2⁻²⁴ − 2⁻⁷⁰ is just below a tie: by way of float64 it would be rounded up.
		c("fma.rn.f32", "rrrr", f(1+0x1p-23), f(1+0x1p-23), f(0x1p-24-0x1p-47), f(1+0x1p-23)),

		c("cvt.rn.f32.s32", "rr", f(-1), 0xFFFFFFFF), c("cvt.rn.f32.s32", "rr", f(0x1p24), 0x1000001), c("cvt.rn.f32.u32", "rr", f(0x1p32), 0xFFFFFFFF),
		c("cvt.f32.f16", "rh", f(1), 0x3C00), c("cvt.f32.f16", "rh", 0xB3800000, 0x8001), c("cvt.f32.f16", "rh", inf, 0x7C00), c("cvt.f32.f16", "rh", nan, 0x7E01),
		c("cvt.f32.f16", "rh", f(65504), 0x7BFF), c("cvt.f32.f16", "rh", 0x80000000, 0x8000),
		c("cvt.rn.f16.f32", "hr", 0x3C00, f(1)), c("cvt.rn.f16.f32", "hr", 0x7C00, f(65520)), c("cvt.rn.f16.f32", "hr", 0x7BFF, f(65519)), c("cvt.rn.f16.f32", "hr", 0x7FFF, 0xFFC00000),
		c("cvt.rn.f16.f32", "hr", 0x8000, f(-0x1p-25)), c("cvt.rn.f16.f32", "hr", 1, f(0x1p-25+0x1p-40)), c("cvt.rn.f16.f32", "hr", 2, f(3*0x1p-25)),
		c("cvt.rn.f16.f32", "hr", 0x400, f(0x1p-14-0x1p-26)), c("cvt.rn.f16.f32", "hr", 0x3C00, f(1+0x1p-11)), c("cvt.rn.f16.f32", "hr", 0x3C02, f(1+3*0x1p-11)),
		c("cvt.s64.s32", "dr", minus, 0xFFFFFFFF), c("cvt.u64.u32", "dr", 0xFFFFFFFF, 0xFFFFFFFF), c("cvt.u32.u64", "rd", 0x9ABCDEF0, 0x123456789ABCDEF0),
		c("cvt.s32.s64", "rd", 0xFFFFFFFF, minus), c("cvt.s32.s8", "rr", 0xFFFFFF80, 0x180), c("cvt.u32.u8", "rr", 0x80, 0x180), c("cvt.s32.s16", "rh", 0xFFFF8000, 0x8000),
		c("cvt.u32.u16", "rh", 0x8000, 0x8000), c("cvt.u16.u32", "hr", 0x5678, 0x12345678), c("cvt.s8.s32", "rr", 0xFFFFFF80, 0x1280), c("cvt.u8.u32", "rr", 0x80, 0x1280),
		c("cvt.s8.s32", "hr", 0xFF80, 0x1280), c("cvt.s8.s64", "rd", 0xFFFFFFFF, 0xFF), c("cvt.s64.s8", "dr", minus, 0xFF), c("cvt.u64.s32", "dr", minus, 0xFFFFFFFF),
	}
}

// register returns the name of register n of a class, the type it is moved by and its size.
func register(class byte, n int) (name, typ string, bytes int) {
	switch class {
	case 'd':
		return fmt.Sprintf("%%d%d", n), "b64", 8
	case 'h':
		return fmt.Sprintf("%%h%d", n), "b16", 2
	case 'p':
		return fmt.Sprintf("%%p%d", n), "pred", 4
	}
	return fmt.Sprintf("%%r%d", n), "b32", 4
}

// entry prints a kernel that stores the result of the case.
func (c formCase) entry(n int) string {
	var b strings.Builder
	fmt.Fprintf(&b, ".visible .entry k%d(.param .u64 out)\n{\n.reg .b32 %%r<9>;\n.reg .b64 %%d<9>;\n.reg .b16 %%h<9>;\n.reg .pred %%p<9>;\n", n)
	d, typ, _ := register(c.classes[0], 0)
	args := []string{d}
	for i, v := range c.args {
		name, typ, bytes := register(c.classes[i+1], i+1)
		switch {
		case c.classes[i+1] == '#':
			name = fmt.Sprintf("0x%X", v)
		case typ == "pred":
			fmt.Fprintf(&b, "setp.ne.s32 %s, %d, 0;\n", name, v)
		default:
			fmt.Fprintf(&b, "mov.b%d %s, 0x%X;\n", 8*bytes, name, v)
		}
		args = append(args, name)
	}
	fmt.Fprintf(&b, "%s %s;\n", c.op, strings.Join(args, ", "))
	if typ == "pred" {
		fmt.Fprintf(&b, "selp.b32 %%r0, 1, 0, %s;\n", d)
		d, typ = "%r0", "b32"
	}
	fmt.Fprintf(&b, "ld.param.u64 %%d8, [out];\nst.global.%s [%%d8], %s;\nret;\n}\n", typ, d)
	return b.String()
}

func TestForms(t *testing.T) {
	list := cases()
	var text strings.Builder
	text.WriteString(header)
	for n, c := range list {
		text.WriteString(c.entry(n))
	}
	m, err := sim.Parse([]byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	for n, c := range list {
		out := &sim.Buffer{Name: "out", Data: make([]byte, 8)}
		sim.Place(out)
		e, err := m.Entry(fmt.Sprint("k", n))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.Run(&sim.Launch{Grid: 1, Block: 1, Params: []uint64{out.Addr}, Memory: []*sim.Buffer{out}}); err != nil {
			t.Errorf("%s %X: %v", c.op, c.args, err)
			continue
		}
		if got := binary.LittleEndian.Uint64(out.Data); got != c.want {
			t.Errorf("%s %X = %X, want %X", c.op, c.args, got, c.want)
		}
	}
	assemble(t, "sm_90", text.String())
}

// assemble fails unless NVIDIA's assembler takes the text. Without one the test ends here.
func assemble(t *testing.T, arch, text string) {
	t.Helper()
	ptxas := checkers.Need(t, "ptxas")
	file := filepath.Join(t.TempDir(), "text.ptx")
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(ptxas, "-arch", arch, "-O0", "-o", filepath.Join(filepath.Dir(file), "cubin"), file).CombinedOutput(); err != nil {
		t.Errorf("ptxas: %v\n%s", err, out)
	}
}
