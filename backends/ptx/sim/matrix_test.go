package sim_test

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/swizzle-rt/swizzle/backends/ptx/sim"
)

// gemm runs testdata/gemm.ptx, with a swizzle mask and a change made to its text.
func gemm(t *testing.T, mask uint64, old, new string, seed uint64) (*sim.Report, error) {
	t.Helper()
	b, err := os.ReadFile("testdata/gemm.ptx")
	if err != nil {
		t.Fatal(err)
	}
	text := string(b)
	if !strings.Contains(text, old) {
		t.Fatalf("no %q in the text", old)
	}
	m, err := sim.Parse([]byte(strings.Replace(text, old, new, 1)))
	if err != nil {
		t.Fatal(err)
	}
	e, err := m.Entry("gemm")
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(seed, 1))
	bytesOf := func() []byte {
		b := make([]byte, 2048)
		for i := range b {
			b[i] = byte(r.Uint32())
		}
		return b
	}
	x, y, c := &sim.Buffer{Name: "a", Data: bytesOf(), ReadOnly: true}, &sim.Buffer{Name: "b", Data: bytesOf(), ReadOnly: true}, &sim.Buffer{Name: "c", Data: make([]byte, 1024)}
	sim.Place(x, y, c)
	report, err := e.Run(&sim.Launch{Grid: 1, Block: 64, Params: []uint64{x.Addr, y.Addr, c.Addr, mask}, Memory: []*sim.Buffer{x, y, c}, Seed: seed})
	if err != nil {
		return nil, err
	}
	for i := range 16 {
		for j := range 16 {
			want := int32(0)
			for k := range 128 {
				want += int32(int8(x.Data[128*i+k])) * int32(int8(y.Data[128*j+k]))
			}
			if got := int32(binary.LittleEndian.Uint32(c.Data[4*(16*i+j):])); got != want {
				return report, fmt.Errorf("c[%d][%d] = %d, want %d", i, j, got, want)
			}
		}
	}
	return report, nil
}

func TestGEMM(t *testing.T) {
	for seed := range uint64(4) {
		r, err := gemm(t, 7, "", "", seed)
		if err != nil {
			t.Fatal(err)
		}
		// Copies fill 16 rows of A and of B; per warp and step ldmatrix reads 4 and 2 matrices.
		if want := int64(2*16*128/128 + 2*4*(4+2)); r.SharedWavefronts != want || r.SharedIdeal != want {
			t.Errorf("%d wavefronts of %d, want %d", r.SharedWavefronts, r.SharedIdeal, want)
		}
		if r.Barriers != 1 || r.AsyncCopies != 256 || r.ByOp["mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32"] != 8 {
			t.Errorf("counted %+v", r)
		}
	}
	r, err := gemm(t, 0, "", "", 1)
	if err != nil {
		t.Fatal(err)
	}
	if want := r.SharedIdeal + 2*4*(4+2)*7; r.SharedWavefronts != want {
		t.Errorf("without swizzle %d wavefronts, want %d", r.SharedWavefronts, want)
	}
	text, err := os.ReadFile("testdata/gemm.ptx")
	if err != nil {
		t.Fatal(err)
	}
	assemble(t, "sm_80", string(text))
}

// Mistakes in staging and addressing are found.
func TestGEMMMutations(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{"bar.sync 0;", "", "race: read"},
		{"cp.async.wait_group 0;", "", "asynchronous copy is under way"},
		{"cp.async.wait_group 0;", "cp.async.wait_group 1;", "asynchronous copy is under way"},
		{"cp.async.commit_group;", "", "asynchronous copy is under way"},
		{"cp.async.wait_group 0;\nbar.sync 0;", "bar.sync 0;\ncp.async.wait_group 0;", "read of byte"},
		{"setp.lt.u32 %p1, %r5, 128;", "setp.lt.u32 %p1, %r5, 64;", "has not written"},
		{"xor.b32 %r6, %r6, %r7;", "", "want"},
		{"add.u32 %r8, %r3, %r7;", "add.u32 %r8, %r3, %r6;", "want"},
		{"shr.u32 %r11, %r2, 5;", "mov.b32 %r11, 0;", "race: write"},
		{"[%d4+512]", "[%d4+256]", "race: write"},
		{"row.col.s32.s8.s8.s32", "row.col.s32.s8.u8.s32", "want"},
		{"ldmatrix.sync.aligned.m8n8.x4.shared", "ldmatrix.sync.aligned.m8n8.x4.trans.shared", "want"},
		{"{%r24,%r25,%r26,%r27}, {%r28", "{%r24,%r26,%r25,%r27}, {%r28", "want"},
	} {
		for seed := range uint64(3) {
			if _, err := gemm(t, 7, c.old, c.new, seed); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q → %q: got %v, want %q", c.old, c.new, err, c.want)
			}
		}
	}
}

// Every integer matrix product against plain Go, by the fragments that the ISA tabulates.
func TestMatrixProducts(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 1))
	for _, c := range []struct {
		m, n, k, a, b, c int
		ta, tb           string
	}{{8, 8, 16, 1, 1, 2, "s8", "s8"}, {8, 8, 16, 1, 1, 2, "u8", "s8"}, {16, 8, 16, 2, 1, 4, "s8", "u8"}, {16, 8, 32, 4, 2, 4, "s8", "s8"}, {16, 8, 32, 4, 2, 4, "u8", "u8"}} {
		var body strings.Builder
		load := func(first, n, at int) string {
			var regs []string
			for i := range n {
				fmt.Fprintf(&body, "ld.global.b32 %%r%d, [%%d2+%d];\n", first+i, 128*(at+i))
				regs = append(regs, fmt.Sprint("%r", first+i))
			}
			return "{" + strings.Join(regs, ",") + "}"
		}
		a, b, acc := load(10, c.a, 0), load(20, c.b, c.a), load(30, c.c, c.a+c.b)
		fmt.Fprintf(&body, "mma.sync.aligned.m%dn%dk%d.row.col.s32.%s.%s.s32 %s, %s, %s, %s;\n", c.m, c.n, c.k, c.ta, c.tb, acc, a, b, acc)
		for i := range c.c {
			fmt.Fprintf(&body, "st.global.b32 [%%d3+%d], %%r%d;\n", 128*i, 30+i)
		}
		d := newDevice(128*(c.a+c.b+c.c), 128*c.c)
		for i := range d.in.Data {
			d.in.Data[i] = byte(r.Uint32())
			if r.IntN(3) == 0 {
				d.in.Data[i] = 0x80
			}
		}
		if _, err := d.run(kernel("sm_80", body.String())); err != nil {
			t.Fatal(err)
		}
		value := func(typ string, b byte) int32 {
			if typ == "u8" {
				return int32(b)
			}
			return int32(int8(b))
		}
		// The ISA gives the place of element i of a fragment; element i is byte i mod 4 of register i/4.
		var A [16][32]int32
		var B [32][8]int32
		for lane := range 32 {
			group, inGroup := lane>>2, lane%4
			for i := range 4 * c.a {
				row, col := group, inGroup*4+i&3
				switch {
				case c.m == 16 && c.k == 16 && i >= 4, c.k == 32 && !(i < 4 || i >= 8 && i < 12):
					row += 8
				}
				if c.k == 32 && i >= 8 {
					col += 16
				}
				A[row][col] = value(c.ta, d.in.Data[128*(i/4)+4*lane+i%4])
			}
			for i := range 4 * c.b {
				row := inGroup*4 + i&3
				if i >= 4 {
					row += 16
				}
				B[row][group] = value(c.tb, d.in.Data[128*(c.a+i/4)+4*lane+i%4])
			}
		}
		for lane := range 32 {
			for i := range c.c {
				row, col := lane>>2, lane%4*2+i&1
				if i >= 2 {
					row += 8
				}
				want := int32(binary.LittleEndian.Uint32(d.in.Data[128*(c.a+c.b+i)+4*lane:]))
				for k := range c.k {
					want += A[row][k] * B[k][col]
				}
				if got := int32(d.word(32*i + lane)); got != want {
					t.Fatalf("m%dn%dk%d %s %s: lane %d, element %d: %d, want %d", c.m, c.n, c.k, c.ta, c.tb, lane, i, got, want)
				}
			}
		}
	}
}

// ldmatrix gives the elements that the ISA tabulates, and one wavefront a matrix where rows lie in different banks.
func TestLoadMatrix(t *testing.T) {
	for _, c := range []struct {
		matrices int
		trans    string
		stride   int // bytes between rows
		want     int64
	}{{1, "", 16, 1}, {2, "", 16, 2}, {4, "", 16, 4}, {1, ".trans", 16, 1}, {2, ".trans", 16, 2}, {4, ".trans", 16, 4}, {1, "", 128, 8}, {1, ".trans", 80, 1}, {1, "", 64, 4}} {
		regs := []string{"%r10", "%r11", "%r12", "%r13"}[:c.matrices]
		var body strings.Builder
		for n := range 8 { // s[i] holds byte i of in
			fmt.Fprintf(&body, "ld.global.b32 %%r1, [%%d2+%d];\nshl.b32 %%r2, %%r0, 2;\nmov.u32 %%r3, s;\nadd.u32 %%r2, %%r2, %%r3;\nst.shared.b32 [%%r2+%d], %%r1;\n", 128*n, 128*n)
		}
		fmt.Fprintf(&body, "bar.sync 0;\nmad.lo.u32 %%r2, %%r0, %d, %%r3;\n", c.stride)
		fmt.Fprintf(&body, "ldmatrix.sync.aligned.m8n8.x%d%s.shared.b16 {%s}, [%%r2];\n", c.matrices, c.trans, strings.Join(regs, ","))
		for n, r := range regs {
			fmt.Fprintf(&body, "st.global.b32 [%%d3+%d], %s;\n", 128*n, r)
		}
		d := newDevice(1024, 512)
		for i := range d.in.Data {
			d.in.Data[i] = byte(i * 7 >> (i & 3))
		}
		r, err := d.run(kernel("sm_80", body.String()))
		if err != nil {
			t.Fatal(err)
		}
		if got := r.SharedWavefronts - 8; got != c.want {
			t.Errorf("%d matrices%s, rows %d apart: %d wavefronts, want %d", c.matrices, c.trans, c.stride, got, c.want)
		}
		for k := range c.matrices {
			for lane := range 32 {
				var want [2]uint32
				for i := range want {
					row, col := lane/4, lane%4*2+i
					if c.trans != "" {
						row, col = col, row
					}
					want[i] = uint32(binary.LittleEndian.Uint16(d.in.Data[c.stride*(8*k+row)+2*col:]))
				}
				if got := d.word(32*k + lane); got != want[0]|want[1]<<16 {
					t.Fatalf("%d matrices%s: matrix %d, lane %d: %08X, want %04X %04X", c.matrices, c.trans, k, lane, got, want[1], want[0])
				}
			}
		}
	}
}

// Lanes whose row is not used need a valid address on sm_75 only.
func TestUnusedRows(t *testing.T) {
	body := "shl.b32 %r1, %r0, 2;\nmov.u32 %r2, s;\nadd.u32 %r3, %r1, %r2;\nst.shared.b32 [%r3], 1;\nbar.sync 0;\nmad.lo.u32 %r1, %r0, 64, %r2;\nsetp.lt.u32 %p1, %r0, 8;\n" +
		"mad.lo.u32 %r3, %r0, 16, %r2;\n@!%p1 mov.b32 %r3, 0x10000;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r3];"
	if _, err := newDevice(4, 4).run(kernel("sm_80", body)); err != nil {
		t.Error(err)
	}
	if _, err := newDevice(4, 4).run(kernel("sm_75", body)); err == nil || !strings.Contains(err.Error(), "thread 8: load from") {
		t.Errorf("sm_75: %v", err)
	}
}
