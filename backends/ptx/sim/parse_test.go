package sim_test

import (
	"encoding/binary"
	"os"
	"strings"
	"testing"

	"github.com/swizzle-rt/swizzle/backends/ptx/sim"
)

// What is not PTX, not known or of the wrong type is refused at its line.
func TestRefused(t *testing.T) {
	for _, c := range []struct{ line, want string }{
		{"frob.b32 %r1, %r2;", "unknown instruction frob.b32"},
		{"add.f32 %r1, %r2, %r3;", "unknown instruction add.f32"},
		{"add.rn.ftz.f32 %r1, %r2, %r3;", "unknown instruction add.rn.ftz.f32"},
		{"mul.rz.f32 %r1, %r2, %r3;", "unknown instruction"},
		{"fma.rn.sat.f32 %r1, %r2, %r3, %r4;", "unknown instruction"},
		{"ex2.approx.f32 %r1, %r2;", "unknown instruction"},
		{"cvt.f32.s32 %r1, %r2;", "unknown instruction"},
		{"cvt.b32.u8 %r1, %r2;", "unknown instruction"},
		{"ld.global.cv.b32 %r1, [%d1];", "unknown instruction"},
		{"ld.b32 %r1, [%d1];", "unknown instruction"},
		{"ld.global.v8.b32 %r1, [%d1];", "unknown instruction"},
		{"ld.global.v4.b64 {%d1,%d2,%d3,%d4}, [%d1];", "unknown instruction"},
		{"ld.shared.nc.b32 %r1, [%r1];", "unknown instruction"},
		{"st.param.b32 [n], %r1;", "unknown instruction"},
		{"st.global.nc.b32 [%d1], %r1;", "unknown instruction"},
		{"mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%r1}, {%r1}, {%r1}, {%r1};", "unknown instruction"},
		{"mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.s8.s32 {%r1}, {%r1}, {%r1}, {%r1};", "unknown instruction"},
		{"mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%r1}, {%r1}, {%r1}, {%r1};", "a vector of 1 where a vector of 4 is expected"},
		{"ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1}, [%r1];", "where a vector of 2 is expected"},
		{"ldmatrix.sync.aligned.m8n8.x3.shared.b16 {%r1,%r2,%r3}, [%r1];", "unknown instruction"},
		{"shfl.bfly.b32 %r1, %r2, 1, 31;", "unknown instruction"},
		{"cp.async.cg.shared.global [%r1], [%d1], 8;", "copies of 16 bytes"},
		{"cp.async.bulk.shared.global [%r1], [%d1], 16;", "unknown instruction"},
		{"bar.sync 1;", "barrier 0"},
		{"bar.warp.sync 15;", "mask of all lanes"},
		{"bar.red.or.pred %p1, 0, %p1;", "unknown instruction"},

		{"add.u32 %r1, %r2;", "2 operands, 3 are expected"},
		{"add.u32 %r1, %r2, %r3, %r4;", "4 operands, 3 are expected"},
		{"ret 1;", "1 operands, 0 are expected"},
		{"add.u32 %r1, %r2, %x;", "%x is not declared"},
		{"add.u32 %r1, %r2, %r40;", "%r40 is not declared"},
		{"add.u32 %r1, %r2, %r01;", "%r01 is not declared"},
		{"add.u32 %r1, %r2, %d1;", "%d1: a .b64 register where .u32 is needed"},
		{"add.u64 %d1, %d2, %r1;", "a .b32 register where .u64 is needed"},
		{"add.u32 %r1, %r2, %p1;", "a .pred register where .u32 is needed"},
		{"add.rn.f32 %f1, %u1, %f1;", "%u1: a .u32 register where .f32 is needed"},
		{"add.u32 %f1, %u1, %u1;", "%f1: a .f32 register where .u32 is needed"},
		{"cvt.u16.u32 %h1, %h2;", "a .b16 register where .u32 is needed"},
		{"shl.b64 %d1, %d2, %d3;", "a .b64 register where .u32 is needed"},
		{"ld.global.b64 %r1, [%d1];", "a .b32 register where .b64 is needed"},
		{"ld.global.b32 %r1, [%r2];", "a .b32 register where .u64 is needed"},
		{"ld.shared.b32 %r1, [%d2];", "a .b64 register where .u32 is needed"},
		{"ld.global.b32 %r1, [s];", "s is not declared"},
		{"ld.global.v2.b32 %r1, [%d1];", "%r1 where a vector of 2 is expected"},
		{"ld.global.v2.b32 {%r1,%r1}, [%d1];", "two elements go to %r1"},
		{"ld.global.b32 %r1, %d1;", "%d1 where an address is expected"},
		{"ld.param.u32 %r1, [in];", "parameter in has 8 bytes"},
		{"ld.param.u32 %r1, [m];", "a parameter's name"},
		{"mov.b64 {%r1,%r1}, %d1;", "both halves go to the same register"},
		{"mov.b32 {%r1,%r2}, %d1;", "where .b32 is needed"},
		{"mov.b64 {%r1,%r2,%r3}, %d1;", "two halves"},
		{"mov.u32 %r1, %tid.y;", "%tid.y is not declared"},
		{"mov.u64 %d1, %tid.x;", "has the type .u32"},
		{"and.b32 %r1, %tid.x, 31;", "%tid.x is not declared"},
		{"add.u32 %r1, %r2, 0x100000000;", "a literal of more than 32 bits"},
		{"add.u32 %r1, %r2, -2147483649;", "a literal of more than 32 bits"},
		{"add.u32 %r1, %r2, 0f3F800000;", "a literal where .u32 is expected"},
		{"add.rn.f32 %r1, %r2, 1;", "a literal where .f32 is expected"},
		{"add.rn.f32 %r1, %r2, 1.5;", "number 1.5; supported are integers"},
		{"add.u32 %r1, %r2, 08;", "number 08"},
		{"add.u32 5, %r2, %r1;", "a literal where a register is expected"},
		{"@%r1 add.u32 %r1, %r2, %r1;", "guard %r1 is not a predicate"},
		{"@%q add.u32 %r1, %r2, %r1;", "%q is not declared"},
		{"bra NOWHERE;", "no label NOWHERE"},
		{"bra 5;", "a label is expected"},
		{"L: L: ret;", "label L is defined twice"},
		{"add.u32 %r1, %r2, %r3", `"ret" where ',' is expected`},
		{"add.u32 %r1 %r2, %r3;", `"%r2" where ',' is expected`},
		{"add.u32 %r1, [%r2+0f3F800000], %r3;", "an integer is expected"},
		{"add.u32 %r1, #, %r3;", "unexpected character '#'"},
		{"/* ret;", "comment has no end"},
		{"{ .reg .b32 %z; }", `"{" where a name is expected`},

		{".reg .b8 %z;", `registers of type ".b8"`},
		{".reg .f64 %z;", `registers of type ".f64"`},
		{".reg .b32 %u1;", "register %u1 is declared twice"},
		{".reg .b32 %r<9>;", "registers %r are declared twice"},
		{".reg .b32 %r3;", "register %r3 is declared twice"},
		{".local .b8 x[4];", ".local"},
		{".shared .align 3 .b8 x[4];", "alignment of 3"},
		{".shared .b8 s[4];", "array s is declared twice"},
		{".shared .b8 x[49153];", "number up to 49152"},
		{".shared .b32 x[12000];\n.shared .b32 y[12000];", "96000 bytes of shared memory; a block has 49152"},
	} {
		text := strings.Replace(kernel("sm_80", ".reg .u32 %u1;\n.reg .f32 %f1;\n"+c.line), ".shared .align 16 .b8 s[1024];\n.shared .align 4 .u32 u[2];", ".shared .b8 s[0];", 1)
		_, err := sim.Parse([]byte(text))
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "line ") {
			t.Errorf("%s: got %v, want %q", c.line, err, c.want)
		}
	}
	whole := kernel("sm_80", "ret;")
	for _, c := range []struct{ old, new, want string }{
		{".version 8.0\n", "", `line 1: ".target" where .version is expected`},
		{".version 8.0", ".version x", "version"},
		{"sm_80", "compute_80", "target"},
		{".address_size 64", ".address_size 32", "addresses of"},
		{".visible .entry", ".func", "supported is .entry"},
		{".param .u32 n", ".param .u8 n", "parameter of type"},
		{"ret;\n}", "\n}", ""},
		{"ret;\nret;\n}", "@%p1 ret;\n}", "the end is reached without ret"},
		{"ret;\nret;\n}", "}", "the end is reached without ret"},
		{"ret;\nret;\n}", "ret;\nL:}", "label L stands before no instruction"},
		{"\n{", "\n.reqntid 0\n{", "blocks of 0 threads"},
		{"\n{", "\n.reqntid 64,32\n{", "blocks of 2048 threads"},
		{"\n{", "\n.pragma\n{", "supported are .reqntid"},
		{"}", "} x", "supported is .entry"},
		{"ret;\n}", "ret;", "the end of the text"},
	} {
		_, err := sim.Parse([]byte(strings.Replace(whole, c.old, c.new, 1)))
		switch {
		case c.want == "" && err != nil, c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%q → %q: got %v, want %q", c.old, c.new, err, c.want)
		}
	}
	if _, err := sim.Parse([]byte(whole + whole[strings.Index(whole, ".visible"):])); err == nil || !strings.Contains(err.Error(), "entry k is defined twice") {
		t.Errorf("got %v", err)
	}
	if _, err := sim.Parse([]byte(kernel("sm_75", "cp.async.commit_group;"))); err == nil || !strings.Contains(err.Error(), "needs sm_80") {
		t.Errorf("got %v", err)
	}
}

// Blanks, comments and the forms of numbers.
func TestSyntax(t *testing.T) {
	d := newDevice(4, 256)
	_, err := d.run(kernel("sm_80", "// a comment\n/* over\nlines */ L1:\tmov.b32 %r1 , 0x1F; mov.b32 %r2,037;mov.b32\n%r3, 0b11111;\nmov.b32 %r4, 31U; add.u32 %r1, %r1, %r2; add.u32 %r1, %r1, %r3;\n"+
		"add.u32 %r1, %r1, %r4; add.u32 %r1, %r1, -4; add.s64 %d3, %d3, 128; st.global.b32 [%d3+-128], %r1; st.global.b32 [ %d3 - 0 ], %r1;"))
	if err != nil {
		t.Fatal(err)
	}
	for n := range 64 {
		if d.word(n) != 120 {
			t.Errorf("word %d is %d", n, d.word(n))
		}
	}
}

// No text panics, hangs or takes much memory, read or run.
func FuzzText(f *testing.F) {
	gemm, err := os.ReadFile("testdata/gemm.ptx")
	if err != nil {
		f.Fatal(err)
	}
	f.Add(gemm)
	for _, body := range []string{copyWords + "cp.async.wait_all;", "L: bra L;", ".shared .b8 odd[5];\nst.shared.b8 [odd+4], 1;\nst.shared.b32 [odd+1], 1;", "shfl.sync.up.b32 %r1, %r0, 1, 0, -1;",
		"ld.global.v4.b32 {%r1,%r2,%r3,%r4}, [%d0-16];\nst.global.v2.b64 [%d1], {%d1,%d2};", "mov.b32 {%h1,%h2}, %r0;\ncvt.s8.s64 %h1, %d1;\nselp.b16 %h2, 1, %h1, %p1;",
		"ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r1,%r2,%r3,%r4}, [%r0];\nbar.warp.sync -1;\nprefetch.global.L1 [%d0];"} {
		f.Add([]byte(kernel("sm_80", body)))
	}
	for _, c := range cases() {
		f.Add([]byte(header + c.entry(0)))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		m, err := sim.Parse(text)
		if err != nil {
			return
		}
		for _, e := range m.Entries() {
			b := &sim.Buffer{Name: "b", Data: make([]byte, 1000)}
			sim.Place(b)
			for n := range b.Data {
				b.Data[n] = byte(n)
			}
			l := &sim.Launch{Grid: 2, Block: max(e.Threads, 1), Memory: []*sim.Buffer{b}, Seed: uint64(len(text)), Steps: 3000}
			if e.Threads == 0 {
				l.Block = 40
			}
			for _, p := range e.Params {
				v := b.Addr
				if p.Bytes == 4 {
					v = uint64(binary.LittleEndian.Uint32(b.Data[4*(len(l.Params)%9):]))
				}
				l.Params = append(l.Params, v)
			}
			if r, err := e.Run(l); (r == nil) == (err == nil) {
				t.Fatal("no report and no error, or both")
			}
		}
	})
}
