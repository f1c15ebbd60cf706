package sim

import (
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

func instr(opcode string, ops ...operand.Op) *ir.Instruction {
	name, suffixes, _ := strings.Cut(opcode, ".")
	i := &ir.Instruction{Opcode: name, Operands: ops}
	if suffixes != "" {
		i.Suffixes = strings.Split(suffixes, ".")
	}
	if strings.HasPrefix(name, "J") {
		i.IsBranch = true
	}
	return i
}

func function(nodes ...ir.Node) *ir.Function {
	f := ir.NewFunction("kernel")
	f.Nodes = nodes
	return f
}

func mem(base reg.Register, disp int) operand.Mem { return operand.Mem{Base: base, Disp: disp} }

func TestArgsLayout(t *testing.T) {
	var a kernel.Args
	for _, c := range []struct {
		name      string
		got, want uintptr
	}{
		{"Int", intsOffset, unsafe.Offsetof(a.Int)},
		{"F32", floatsOffset, unsafe.Offsetof(a.F32)},
		{"Scratch", scratchOffset, unsafe.Offsetof(a.Scratch)},
		{"size", argsSize, unsafe.Sizeof(a)},
		{"buffers", buffers, kernel.Buffers},
		{"ints", ints, kernel.Ints},
		{"floats", floats, kernel.Floats},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, runtime/kernel has %d", c.name, c.got, c.want)
		}
	}
}

// TestABI computes dst[i] = src[i] · f + table[i] for the tiles lo … hi−1 of 8 floats, and uses every part of the ABI.
func TestABI(t *testing.T) {
	table := ir.NewStaticGlobal("table")
	for i := range 8 {
		table.Append(operand.F32(float32(i) / 2))
	}
	lo, hi := operand.NewParamAddr("lo", 8), operand.NewParamAddr("hi", 16)
	f := function(
		instr("MOVQ", operand.NewParamAddr("a", 0), reg.RAX),
		instr("MOVQ", mem(reg.RAX, 0), reg.RSI),
		instr("MOVQ", mem(reg.RAX, 8), reg.RDI),
		instr("VBROADCASTSS", mem(reg.RAX, 192+4), reg.Y0),
		instr("MOVQ", lo, reg.RCX),
		instr("MOVQ", mem(reg.RAX, 208), reg.R8),
		ir.Label("loop"),
		instr("CMPQ", reg.RCX, hi),
		instr("JGE", operand.LabelRef("done")),
		instr("MOVQ", reg.RCX, reg.RDX),
		instr("SHLQ", operand.U8(5), reg.RDX),
		instr("VMULPS", operand.Mem{Base: reg.RSI, Index: reg.RDX, Scale: 1}, reg.Y0, reg.Y1),
		instr("VADDPS", table.Base(), reg.Y1, reg.Y1),
		instr("VMOVUPS", reg.Y1, mem(reg.R8, 0)),
		instr("VMOVUPS", mem(reg.R8, 0), reg.Y2),
		instr("VMOVUPS", reg.Y2, operand.NewStackAddr(0)),
		instr("VMOVUPS", operand.NewStackAddr(0), reg.Y3),
		instr("VMOVUPS", reg.Y3, operand.Mem{Base: reg.RDI, Index: reg.RDX, Scale: 1}),
		instr("INCQ", reg.RCX),
		instr("JMP", operand.LabelRef("loop")),
		ir.Label("done"),
		instr("VZEROUPPER"),
		instr("RET"),
	)
	f.LocalSize = 32
	m, err := New(f, "avx2", table)
	if err != nil {
		t.Fatal(err)
	}
	src, dst := make([]byte, 96), make([]byte, 96)
	for i := range 24 {
		putFloat(src, i, float32(i))
	}
	a := &Args{Scratch: 32}
	a.Buf[0], a.Buf[1] = Buffer{Data: src}, Buffer{Data: dst, Writable: true}
	a.F32[1] = 3
	for range 2 { // the second run starts afresh
		clear(dst)
		if err := m.Run(a, 1, 3); err != nil {
			t.Fatal(err)
		}
		for i := range 24 {
			want := float32(3*i) + float32(i%8)/2
			if i < 8 {
				want = 0
			}
			if got := getFloat(dst, i); got != want {
				t.Errorf("element %d is %v, want %v", i, got, want)
			}
		}
	}
}

func putFloat(p []byte, i int, x float32) {
	b := math.Float32bits(x)
	p[4*i], p[4*i+1], p[4*i+2], p[4*i+3] = byte(b), byte(b>>8), byte(b>>16), byte(b>>24)
}

func getFloat(p []byte, i int) float32 {
	return math.Float32frombits(uint32(p[4*i]) | uint32(p[4*i+1])<<8 | uint32(p[4*i+2])<<16 | uint32(p[4*i+3])<<24)
}

// entry loads the pointers of the buffers 0 and 1 into SI and DI.
func entry(nodes ...ir.Node) *ir.Function {
	return function(append([]ir.Node{
		instr("MOVQ", operand.NewParamAddr("a", 0), reg.RAX),
		instr("MOVQ", mem(reg.RAX, 0), reg.RSI),
		instr("MOVQ", mem(reg.RAX, 8), reg.RDI),
	}, nodes...)...)
}

// TestFaults runs kernels with buffer 0 of 40 bytes, read-only, buffer 1 of 40 bytes, and no others.
func TestFaults(t *testing.T) {
	upper, ret := instr("VZEROUPPER"), instr("RET")
	for _, c := range []struct {
		name string
		arch string
		fn   *ir.Function
		want string // in the error of New or Run; empty for none
	}{
		{"no fault", "avx2", entry(upper, ret), ""},
		{"read within the tail", "avx2", entry(instr("VMOVUPS", mem(reg.RSI, 32), reg.Y0), upper, ret), ""},
		{"read past the tail", "avx2", entry(instr("VMOVUPS", mem(reg.RSI, 33), reg.Y0), upper, ret), "instruction 3, VMOVUPS 33(SI), Y0: reads 32 bytes at buffer 0+33"},
		{"read before", "avx2", entry(instr("VMOVUPS", mem(reg.RSI, -1), reg.Y0), upper, ret), "reads 32 bytes at buffer 0-1"},
		{"write to the end", "avx2", entry(instr("MOVQ", reg.RAX, mem(reg.RDI, 32)), ret), ""},
		{"write into the tail", "avx2", entry(instr("MOVQ", reg.RAX, mem(reg.RDI, 33)), ret), "writes 8 bytes at buffer 1+33"},
		{"write to read-only", "avx2", entry(instr("MOVQ", reg.RAX, mem(reg.RSI, 0)), ret), "buffer 0+0 (address 0x1800000000), which is read-only"},
		{"write to the arguments", "avx2", entry(instr("MOVQ", reg.RAX, mem(reg.RAX, 0)), ret), "args+0"},
		{"nil buffer", "avx2", entry(instr("MOVQ", mem(reg.RAX, 16), reg.RCX), instr("MOVQ", mem(reg.RCX, 8), reg.RCX), ret), "address 0x8, which is in no region"},
		{"no scratch", "avx2", entry(instr("MOVQ", mem(reg.RAX, 208), reg.RCX), instr("MOVB", reg.AL, mem(reg.RCX, 0)), ret), "writes 1 bytes at address 0x0"},
		{"frame overrun", "avx2", entry(instr("MOVQ", reg.RAX, operand.NewStackAddr(0)), ret), "local variables+0"},
		{"misaligned", "avx2", entry(instr("VMOVAPS", mem(reg.RSI, 16), reg.Y0), upper, ret), "not a multiple of 32"},
		{"undefined general", "avx2", entry(instr("ADDQ", reg.RAX, reg.RBX), ret), "reads BX, which is not defined"},
		{"undefined part", "avx2", entry(instr("MOVB", reg.AL, reg.BL), instr("MOVL", reg.EBX, reg.ECX), ret), "reads BX, which is not defined"},
		{"defined part", "avx2", entry(instr("MOVB", reg.AL, reg.BL), instr("MOVBLZX", reg.BL, reg.ECX), ret), ""},
		{"undefined index", "avx2", entry(instr("LEAQ", operand.Mem{Base: reg.RAX, Index: reg.R9, Scale: 2}, reg.RCX), ret), "reads R9"},
		{"undefined vector", "avx2", entry(instr("VADDPS", reg.Y0, reg.Y1, reg.Y2), upper, ret), "reads vector register 1"},
		{"undefined accumulator", "avx2", entry(instr("VXORPS", reg.Y0, reg.Y0, reg.Y0), instr("VFMADD231PS", reg.Y0, reg.Y0, reg.Y2), upper, ret), "reads vector register 2"},
		{"zero idiom", "avx2", entry(instr("VPXOR", reg.Y0, reg.Y0, reg.Y1), instr("XORL", reg.EBX, reg.EBX), upper, ret), ""},
		{"ones idiom", "avx512vnni", entry(instr("VPTERNLOGD", operand.U8(255), reg.Z0, reg.Z0, reg.Z0), upper, ret), ""},
		{"zero idiom, merging", "avx512vnni", entry(instr("KXNORW", reg.K1, reg.K1, reg.K1), instr("VPXORD", reg.Z0, reg.Z0, reg.K1, reg.Z1), upper, ret), "reads vector register"},
		{"undefined mask", "avx512vnni", entry(instr("KORW", reg.K1, reg.K2, reg.K3), ret), "which is not defined"},
		{"undefined write mask", "avx512vnni", entry(instr("VMOVDQU32.Z", mem(reg.RSI, 0), reg.K1, reg.Z0), upper, ret), "reads mask K1"},
		{"K0 as write mask", "avx512vnni", entry(instr("VMOVDQU32.Z", mem(reg.RSI, 0), reg.K0, reg.Z0), upper, ret), "K0"},
		{"undefined flags", "avx2", entry(instr("SETEQ", reg.CL), ret), "reads a flag"},
		{"flags after IMUL", "avx2", entry(instr("IMULQ", reg.RAX, reg.RAX), instr("SETEQ", reg.CL), ret), "reads a flag"},
		{"carry after INC", "avx2", entry(instr("INCQ", reg.RAX), instr("SETCS", reg.CL), ret), "reads a flag"},
		{"zero after INC", "avx2", entry(instr("INCQ", reg.RAX), instr("SETEQ", reg.CL), ret), ""},
		{"dirty upper half", "avx2", entry(instr("VMOVUPS", mem(reg.RSI, 0), reg.Y0), ret), "VZEROUPPER"},
		{"clean with XMM", "avx2", entry(instr("VMOVUPS", mem(reg.RSI, 0), reg.X0), ret), ""},
		{"EVEX register", "avx2", entry(instr("VMOVUPS", mem(reg.RSI, 0), reg.Y16), upper, ret), "needs AVX-512"},
		{"EVEX width", "avxvnni", entry(instr("VMOVUPS", mem(reg.RSI, 0), reg.Z0), upper, ret), "needs AVX-512"},
		{"EVEX opcode", "avx2", entry(instr("VMOVDQU32", mem(reg.RSI, 0), reg.Y0), upper, ret), "needs AVX-512"},
		{"EVEX form", "avx2", entry(instr("VPSRLD", operand.U8(3), mem(reg.RSI, 0), reg.Y0), upper, ret), "needs AVX-512"},
		{"VPDPBUSD as EVEX", "avxvnni", entry(instr("VPDPBUSD", reg.Y0, reg.Y0, reg.Y0), upper, ret), "needs AVX-512"},
		{"VEX VPDPBUSD without AVX-VNNI", "avx2", entry(instr("LONG", operand.U32(0x507DE2C4)), instr("BYTE", operand.U8(0xC0)), upper, ret), "under avxvnni only"},
		{"other bytes", "avxvnni", entry(instr("BYTE", operand.U8(0x90)), upper, ret), "not the three-byte VEX"},
		{"legacy SSE", "avx2", entry(instr("MOVUPS", mem(reg.RSI, 0), reg.X0), upper, ret), "legacy SSE"},
		{"legacy SSE move", "avx2", entry(instr("MOVQ", reg.RAX, reg.X0), upper, ret), "legacy SSE"},
		{"two memory operands", "avx2", entry(instr("MOVQ", mem(reg.RSI, 0), mem(reg.RDI, 0)), ret), "two operands in memory"},
		{"double shift", "avx2", entry(instr("SHLQ", operand.U8(3), reg.RAX, reg.RAX), ret), "form with 3 operands"},
		{"BMI2", "avx512vnni", entry(instr("SHLXQ", reg.RAX, reg.RAX, reg.RCX), ret), "SHLXQ is not implemented"},
		{"call", "avx2", entry(instr("CALL", operand.LabelRef("f")), ret), "CALL is not implemented"},
		{"BP", "avx2", entry(instr("MOVQ", reg.RAX, reg.RBP), ret), "uses BP"},
		{"SP", "avx2", entry(instr("MOVQ", mem(reg.RSP, 0), reg.RBX), ret), "uses SP"},
		{"virtual register", "avx2", entry(instr("MOVQ", reg.RAX, reg.NewVirtual(1, reg.KindGP, reg.S64)), ret), "not allocated"},
		{"no such symbol", "avx2", entry(instr("VMOVUPS", operand.NewDataAddr(operand.NewStaticSymbol("x"), 0), reg.Y0), upper, ret), "no data for symbol x<>"},
		{"no such label", "avx2", entry(instr("JMP", operand.LabelRef("x")), ret), "no label x"},
		{"no RET", "avx2", entry(instr("INCQ", reg.RAX)), "past its last instruction"},
		{"endless loop", "avx2", entry(ir.Label("l"), instr("JMP", operand.LabelRef("l"))), "not returned after"},
		{"division by zero", "avx2", entry(instr("XORL", reg.EDX, reg.EDX), instr("XORL", reg.ECX, reg.ECX), instr("DIVQ", reg.RCX), ret), "quotient does not fit"},
		{"gather onto its index", "avx2", entry(instr("VPXOR", reg.Y0, reg.Y0, reg.Y0), instr("VPGATHERDD", reg.Y1, operand.Mem{Base: reg.RSI, Index: reg.Y0, Scale: 4}, reg.Y0), upper, ret), "must differ"},
		{"suffix", "avx512vnni", entry(instr("VADDPS.RN_SAE", reg.Z0, reg.Z0, reg.Z0), upper, ret), "suffix RN_SAE"},
		{"architecture", "sse", entry(ret), `architecture "sse"`},
	} {
		t.Run(c.name, func(t *testing.T) {
			a := &Args{}
			a.Buf[0] = Buffer{Data: make([]byte, 40)}
			a.Buf[1] = Buffer{Data: make([]byte, 40), Writable: true}
			m, err := New(c.fn, c.arch)
			if err == nil {
				m.limit = 1000
				err = m.Run(a, 0, 1)
			}
			switch {
			case c.want == "" && err != nil:
				t.Errorf("error: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("error %v, want one with %q", err, c.want)
			}
		})
	}
}

// TestSuppressedFaults reads and writes past buffers of 40 bytes under masks that exclude what lies outside.
func TestSuppressedFaults(t *testing.T) {
	k := func(bits int64) *ir.Instruction { return instr("MOVL", operand.I64(bits), reg.ECX) }
	for _, c := range []struct {
		name  string
		mask  int64
		fault bool
	}{
		{"10 of 16", 0x03FF, false},
		{"11 of 16", 0x07FF, true},
		{"none", 0, false},
	} {
		m, err := New(entry(
			k(c.mask), instr("KMOVW", reg.ECX, reg.K1),
			instr("VMOVDQU32.Z", mem(reg.RSI, 0), reg.K1, reg.Z0),
			instr("VPADDD.Z", mem(reg.RSI, 0), reg.Z0, reg.K1, reg.Z0),
			instr("VMOVDQU32", reg.Z0, reg.K1, mem(reg.RDI, 0)),
			instr("VZEROUPPER"), instr("RET"),
		), "avx512vnni")
		if err != nil {
			t.Fatal(err)
		}
		a := &Args{}
		a.Buf[0] = Buffer{Data: make([]byte, 40)}
		a.Buf[1] = Buffer{Data: make([]byte, 40), Writable: true}
		for i := range a.Buf[0].Data {
			a.Buf[0].Data[i] = 1
		}
		if err := m.Run(a, 0, 1); (err != nil) != c.fault {
			t.Errorf("%s: error %v", c.name, err)
		}
		for i, b := range a.Buf[1].Data {
			want := byte(0)
			if c.mask>>(i/4)&1 != 0 {
				want = 2
			}
			if b != want {
				t.Errorf("%s: byte %d is %d, want %d", c.name, i, b, want)
			}
		}
	}
}

// TestUndefinedMemory checks that the tail of a buffer is NaN in every float format.
func TestUndefinedMemory(t *testing.T) {
	m, err := New(entry(
		instr("VMOVUPS", mem(reg.RSI, 32), reg.Y0),
		instr("VCMPPS", operand.U8(3), reg.Y0, reg.Y0, reg.Y0), // unordered
		instr("VMOVUPS", reg.Y0, mem(reg.RDI, 0)),
		instr("VZEROUPPER"), instr("RET"),
	), "avx2")
	if err != nil {
		t.Fatal(err)
	}
	a := &Args{}
	a.Buf[0] = Buffer{Data: make([]byte, 36)}
	a.Buf[1] = Buffer{Data: make([]byte, 32), Writable: true}
	if err := m.Run(a, 0, 1); err != nil {
		t.Fatal(err)
	}
	for i, b := range a.Buf[1].Data {
		want := byte(0xFF)
		if i < 4 {
			want = 0
		}
		if b != want {
			t.Errorf("byte %d is %#x, want %#x", i, b, want)
		}
	}
}

// TestFusedMultiplyAdd compares with exact cases where rounding twice goes wrong.
func TestFusedMultiplyAdd(t *testing.T) {
	ldexp := func(x float64, e int) float32 { return float32(math.Ldexp(x, e)) }
	for _, c := range []struct {
		name          string
		a, b, c, want float32
	}{
		{"half up by a tiny product", ldexp(1, -60), ldexp(1, -60), 1, 1},
		{"tie decided by the product", 1 + ldexp(1, -23), 1 + ldexp(1, -23), ldexp(1, -100), 1 + ldexp(1, -22)},
		{"just above a tie", 1, ldexp(1, -24) + ldexp(1, -47), 1, 1 + ldexp(1, -23)},
		{"just below a tie", ldexp(1, -24), 1 - ldexp(1, -24), 1, 1},
		{"tie broken far below float64", 1 + ldexp(1, -12), 1 + ldexp(1, -12), ldexp(-1, -100), 1 + ldexp(1, -11)},
		{"tie broken upwards", 1 + ldexp(1, -12), 1 + ldexp(1, -12), ldexp(1, -100), 1 + ldexp(1, -11) + ldexp(1, -23)},
		{"subnormal", ldexp(1, -75), ldexp(1, -75), ldexp(1, -149), ldexp(1, -148)},
		{"cancellation", 1 + ldexp(1, -23), 1 - ldexp(1, -23), -1, -ldexp(1, -46)},
	} {
		if got := fusedMultiplyAdd(c.a, c.b, c.c); got != c.want {
			t.Errorf("%s: %x·%x+%x is %x, want %x", c.name, c.a, c.b, c.c, got, c.want)
		}
	}
}
