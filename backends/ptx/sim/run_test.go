package sim_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swizzle-rt/swizzle/backends/ptx/sim"
)

// kernel makes a module of one kernel: in and out are buffers, n is an integer. Its registers are declared, in %r0 is the
// thread's number, in %d0 and %d1 are the addresses of in and out and of their words for this thread in %d2 and %d3.
func kernel(target, body string) string {
	return fmt.Sprintf(`.version 8.0
.target %s
.address_size 64
.visible .entry k(.param .u64 in, .param .u64 out, .param .u32 n)
{
.reg .b32 %%r<40>;
.reg .b64 %%d<20>;
.reg .b16 %%h<9>;
.reg .pred %%p<9>;
.shared .align 16 .b8 s[1024];
.shared .align 4 .u32 u[2];
ld.param.u64 %%d0, [in];
ld.param.u64 %%d1, [out];
mov.u32 %%r0, %%tid.x;
mul.wide.u32 %%d2, %%r0, 4;
add.s64 %%d3, %%d1, %%d2;
add.s64 %%d2, %%d0, %%d2;
%s
ret;
}
`, target, body)
}

// device is what a kernel of that shape is run on.
type device struct {
	in, out     *sim.Buffer
	n           uint64
	grid, block int
	seed        uint64
}

func newDevice(in, out int) *device {
	d := &device{in: &sim.Buffer{Name: "in", Data: make([]byte, in), ReadOnly: true}, out: &sim.Buffer{Name: "out", Data: make([]byte, out)}, grid: 1, block: 32}
	for n := range in / 4 {
		binary.LittleEndian.PutUint32(d.in.Data[4*n:], uint32(n)*0x01010101)
	}
	sim.Place(d.in, d.out)
	return d
}

func (d *device) run(text string) (*sim.Report, error) {
	m, err := sim.Parse([]byte(text))
	if err != nil {
		return nil, err
	}
	e, err := m.Entry("k")
	if err != nil {
		return nil, err
	}
	return e.Run(&sim.Launch{Grid: d.grid, Block: d.block, Params: []uint64{d.in.Addr, d.out.Addr, d.n}, Memory: []*sim.Buffer{d.out, d.in}, Seed: d.seed, Steps: 1e6})
}

func (d *device) word(n int) uint32 { return binary.LittleEndian.Uint32(d.out.Data[4*n:]) }

// What a kernel does wrong is found, at its line and thread.
func TestFaults(t *testing.T) {
	const two, three = 64, 96
	for _, c := range []struct {
		name   string
		block  int // 32 if 0
		grid   int
		body   string
		want   string
		thread int // that the error names
	}{
		{"unwritten register", 0, 0, "add.u32 %r1, %r0, %r2;", "a register is read before it is written", 0},
		{"unwritten in some lanes", 0, 0, "setp.lt.u32 %p1, %r0, 30;\n@%p1 mov.b32 %r1, 1;\nst.global.b32 [%d3], %r1;", "a register is read before it is written", 30},
		{"unwritten guard", 0, 0, "@%p1 mov.b32 %r1, 1;", "the guard is read before it is written", 0},
		{"division by zero", 0, 0, "xor.b32 %r1, %r0, 5;\ndiv.u32 %r2, 7, %r1;", "division by zero", 5},

		{"load past the slack", 0, 0, "ld.global.b32 %r1, [%d0+128];", "load from byte 128 of in, which has 100 bytes", 0},
		{"load far past", 0, 0, "ld.global.b32 %r1, [%d0+1000000];", "load from byte 1000000 of in", 0},
		{"load before", 0, 0, "ld.global.b32 %r1, [%d0-4];", "load from byte -4 of in", 0},
		{"vector across the slack", 0, 0, "ld.global.v4.b32 {%r1,%r2,%r3,%r4}, [%d0+128];", "load from byte 128 of in", 0},
		{"store into the slack", 0, 0, "add.s64 %d5, %d3, 4;\nst.global.b32 [%d5], %r0;", "store to byte 128 of out, which has 128 bytes", 31},
		{"store to an input", 0, 0, "st.global.b32 [%d2], %r0;", "store to in, which is read-only", 0},
		{"no buffer", 0, 0, "mov.b64 %d5, 16;\nld.global.b32 %r1, [%d5];", "address 0x10 belongs to nothing", 0},
		{"misaligned", 0, 0, "ld.global.b32 %r1, [%d2+2];", "byte 2 of in is not a multiple of 4", 0},
		{"misaligned vector", 0, 0, "ld.global.v2.b32 {%r1,%r2}, [%d2];", "byte 4 of in is not a multiple of 8", 1},
		{"past the array", 0, 0, "st.shared.b32 [s+1024], %r0;", "store to byte 1024 of s", 0},
		{"between arrays", 0, 0, "st.shared.b32 [u+8], %r0;", "store to byte 8 of u", 0},
		{"array without its address", 0, 0, "shl.b32 %r1, %r0, 2;\nst.shared.b32 [%r1], %r0;", "of s, which has", 0},
		{"undefined shared memory", 0, 0, "shl.b32 %r1, %r0, 2;\nmov.u32 %r2, s;\nadd.u32 %r1, %r1, %r2;\nsetp.lt.u32 %p1, %r0, 20;\n@%p1 st.shared.b32 [%r1], %r0;\nld.shared.b32 %r3, [%r1];",
			"load of byte 80 of s, which the block has not written", 20},
		{"shared memory of another block", 0, 2, "mov.u32 %r4, %ctaid.x;\nsetp.eq.u32 %p1, %r4, 0;\nshl.b32 %r1, %r0, 2;\nmov.u32 %r2, s;\nadd.u32 %r1, %r1, %r2;\n@%p1 st.shared.b32 [%r1], %r0;\nld.shared.b32 %r3, [%r1];",
			"which the block has not written", 0},

		{"lanes race", 0, 0, "st.global.b32 [%d1], %r0;", "stores to byte 0 of out other bits than thread 0 by the same instruction", 1},
		{"warps race", two, 0, "and.b32 %r1, %r0, 31;\nmul.wide.u32 %d5, %r1, 4;\nadd.s64 %d5, %d1, %d5;\nst.global.b32 [%d5], %r1;", "race: write of byte 0 of out, written by thread 0", 32},
		{"blocks race", 0, 2, "st.global.b32 [%d3], %r0;", "race: write of byte 0 of out, written by thread 0 of another block", 0},
		{"a block reads what another wrote", 0, 2, "mov.u32 %r4, %ctaid.x;\nsetp.eq.u32 %p1, %r4, 0;\n@%p1 st.global.b32 [%d3], %r0;\n@!%p1 ld.global.b32 %r1, [%d3];", "race: read of byte 0 of out, written by thread 0 of another block", 0},
		{"a block writes what another read", 0, 3, "mov.u32 %r4, %ctaid.x;\nsetp.eq.u32 %p1, %r4, 2;\n@%p1 st.global.b32 [%d3], %r0;\n@!%p1 ld.global.b32 %r1, [%d3];", "race: write of byte 0 of out, read by several blocks", 0},
		{"a warp writes what another read", two, 0, "setp.lt.u32 %p1, %r0, 32;\n@%p1 ld.global.b32 %r1, [%d1];\n@!%p1 st.global.b32 [%d1], 5;", "race: write of byte 0 of out, read by several lanes of warp 0", 32},
		{"a warp writes what several read", three, 0, "setp.lt.u32 %p1, %r0, 64;\n@%p1 ld.global.b32 %r1, [%d1];\n@!%p1 st.global.b32 [%d1], 5;", "race: write of byte 0 of out, read by several warps", 64},
		{"lanes of a warp without a barrier", 0, 0, "st.global.b32 [%d3], %r0;\nld.global.b32 %r1, [%d1];", "race: read of byte 0 of out, written by thread 0", 1},
		{"bytes of a word", 0, 0, "cvt.u64.u32 %d5, %r0;\nadd.s64 %d5, %d1, %d5;\nst.global.u8 [%d5], %r0;\nld.global.b32 %r1, [%d3];", "race: read of byte 1 of out, written by thread 1", 0},
		{"what the read-only path read is written", 0, 0, "ld.global.nc.b32 %r1, [%d3];\nbar.sync 0;\nst.global.b32 [%d3], %r0;", "race: write of byte 0 of out, read by ld.global.nc", 0},
		{"the read-only path reads what was written", 0, 0, "st.global.b32 [%d3], %r0;\nbar.sync 0;\nld.global.nc.b32 %r1, [%d3];", "race: read of byte 0 of out, written by thread 0", 0},

		{"barrier in a branch", 0, 0, "setp.lt.u32 %p1, %r0, 7;\n@%p1 bra L;\nbar.sync 0;\nL:", "only 25 of the warp's lanes reach the barrier", 0},
		{"barrier for one warp", two, 0, "setp.lt.u32 %p1, %r0, 32;\n@%p1 bra L;\nbar.sync 0;\nL:", "warp 1 is at the barrier, but warp 0 has ended", -1},
		{"barrier for some lanes", 0, 0, "setp.lt.u32 %p1, %r0, 7;\n@%p1 bar.sync 0;", "only 7 of the warp's lanes reach the barrier", 7},
		{"barrier after lanes have left", two, 0, "setp.eq.u32 %p1, %r0, 40;\n@%p1 ret;\nbar.sync 0;", "only 31 of the warp's lanes reach the barrier", 40},
		{"different barriers", two, 0, "setp.lt.u32 %p1, %r0, 32;\n@%p1 bra L;\nbar.sync 0;\nbra M;\nL: bar.sync 0;\nM:", "is at that of line", -1},
		{"branch said to be uniform", 0, 0, "setp.lt.u32 %p1, %r0, 7;\n@%p1 bra.uni L;\nL:", "bra.uni is taken by 7 of 32 lanes", 0},
		{"endless loop", 0, 0, "L: bra L;", "the limit of instructions is reached", -1},

		{"shuffle in part of a warp", 0, 0, "setp.lt.u32 %p1, %r0, 8;\n@%p1 shfl.sync.bfly.b32 %r1, %r0, 1, 31, -1;", "the mask is 0xffffffff, executing are 0x000000ff", 0},
		{"shuffle with a lane that isn't named", 0, 0, "shfl.sync.bfly.b32 %r1, %r0, 1, 31, 0xFFFF;", "the mask is", 0},
		{"shuffle from a lane outside", 0, 0, "setp.lt.u32 %p1, %r0, 8;\n@%p1 shfl.sync.bfly.b32 %r1, %r0, 8, 31, 0xFF;", "reads lane 8, which does not take part", 0},
		{"matrices in part of a warp", 0, 0, "mov.u32 %r1, s;\nsetp.lt.u32 %p1, %r0, 8;\n@%p1 ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1];", "executed by 8 lanes; all 32 are needed", 8},
		{"matrices in a short warp", 16, 0, "mov.u32 %r1, s;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1];", "executed by 16 lanes", 16},
		{"misaligned row", 0, 0, "mov.u32 %r1, s;\nst.shared.b32 [s], 1;\nadd.u32 %r1, %r1, 8;\nldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r2}, [%r1];", "byte 8 of s is not a multiple of 16", 0},

		{"copy read early", 0, 0, copyWords + "ld.shared.b32 %r3, [%r1];", "read of byte 0 of s, to which an asynchronous copy is under way", 0},
		{"copy read after another wait", 0, 0, copyWords + "cp.async.commit_group;\ncp.async.wait_group 1;\nbar.sync 0;\nld.shared.b32 %r3, [%r1];", "to which an asynchronous copy is under way", 0},
		{"copy not committed", 0, 0, copyWords + "cp.async.wait_group 0;\nbar.sync 0;\nld.shared.b32 %r3, [%r1];", "to which an asynchronous copy is under way", 0},
		{"copy without a barrier", 0, 0, copyWords + "cp.async.commit_group;\ncp.async.wait_group 0;\nxor.b32 %r3, %r0, 1;\nshl.b32 %r3, %r3, 4;\nadd.u32 %r3, %r3, %r2;\nld.shared.b32 %r3, [%r3];", "race: read of byte 16 of s, written by thread 1", 0},
		{"copy never waited for", 0, 0, copyWords + "cp.async.commit_group;\nbar.sync 0;", "32 copies were not waited for", 0},
		{"copies to one place", 0, 0, "mov.u32 %r1, s;\ncp.async.cg.shared.global [%r1], [%d0], 16;", "write of byte 0 of s, to which an asynchronous copy is under way", 1},
		{"copy to an odd place", 0, 0, "mov.u32 %r1, s;\nadd.u32 %r1, %r1, 4;\ncp.async.cg.shared.global [%r1], [%d0], 16;", "byte 4 of s is not a multiple of 16", 0},
		{"copy of too much", 0, 0, "mov.u32 %r1, s;\nmov.b32 %r2, 17;\ncp.async.cg.shared.global [%r1], [%d0], 16, %r2;", "reads 17 bytes for a copy of 16", 0},
		{"copy from outside", 0, 0, "mov.u32 %r1, s;\ncp.async.cg.shared.global [%r1], [%d0+128], 16;", "load from byte 128 of in", 0},
	} {
		d := newDevice(100, 128)
		d.block, d.grid = max(c.block, 0), max(c.grid, 1)
		if c.block == 0 {
			d.block = 32
		}
		if strings.Contains(c.body, "cp.async") && !strings.Contains(c.name, "outside") {
			d = newDevice(512, 128)
		}
		r, err := d.run(kernel("sm_80", c.body))
		var e *sim.Error
		if r != nil || !errors.As(err, &e) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.want)
		} else if e.Thread != c.thread || e.Line < 18 {
			t.Errorf("%s: %v names thread %d and line %d, want thread %d", c.name, err, e.Thread, e.Line, c.thread)
		}
	}
}

// copyWords copies 16 bytes a lane into s and leaves the address of the lane's part in %r1.
const copyWords = "shl.b32 %r1, %r0, 4;\ncvt.u64.u32 %d5, %r1;\nadd.s64 %d5, %d0, %d5;\nmov.u32 %r2, s;\nadd.u32 %r1, %r1, %r2;\ncp.async.cg.shared.global [%r1], [%d5], 16;\n"

// What looks like those faults and isn't one runs.
func TestNoFaults(t *testing.T) {
	for _, c := range []struct {
		name  string
		block int
		body  string
		want  func(thread int) uint32 // what out holds, nil for anything
	}{
		{"load from the slack", 32, "ld.global.b32 %r1, [%d0+124];\nst.global.b32 [%d3], %r1;", func(int) uint32 { return 0xFFFFFFFF }},
		{"load across the end", 32, "ld.global.v2.b32 {%r1,%r2}, [%d0+96];\nadd.u32 %r1, %r1, %r2;\nst.global.b32 [%d3], %r1;", func(int) uint32 { return 24*0x01010101 - 1 }},
		{"all lanes store the same", 32, "st.global.b32 [%d1], 7;", nil},
		{"a lane reads what it wrote", 64, "st.global.b32 [%d3], %r0;\nld.global.b32 %r1, [%d3];\nadd.u32 %r1, %r1, 1;\nst.global.b32 [%d3], %r1;", func(n int) uint32 { return uint32(n) + 1 }},
		{"neighbours after a barrier", 64, "st.global.b32 [%d3], %r0;\nbar.sync 0;\nxor.b32 %r1, %r0, 33;\nmul.wide.u32 %d5, %r1, 4;\nadd.s64 %d5, %d5, %d1;\nld.global.b32 %r1, [%d5];\nbar.sync 0;\nst.global.b32 [%d3], %r1;",
			func(n int) uint32 { return uint32(n) ^ 33 }},
		{"neighbours of the warp after its barrier", 32, "st.global.b32 [%d3], %r0;\nbar.warp.sync -1;\nxor.b32 %r1, %r0, 3;\nmul.wide.u32 %d5, %r1, 4;\nadd.s64 %d5, %d5, %d1;\nld.global.b32 %r1, [%d5];\nbar.warp.sync 0xFFFFFFFF;\nst.global.b32 [%d3], %r1;",
			func(n int) uint32 { return uint32(n) ^ 3 }},
		{"halves of a word", 32, "mul.wide.u32 %d5, %r0, 2;\nadd.s64 %d5, %d5, %d1;\nst.global.b16 [%d5], %r0;", nil},
		{"lanes part and meet", 32, "mov.b32 %r1, 1;\nsetp.lt.u32 %p1, %r0, 7;\n@%p1 bra A;\nmov.b32 %r1, 2;\nsetp.lt.u32 %p2, %r0, 20;\n@%p2 bra B;\nmov.b32 %r1, 3;\nbra B;\nA: add.u32 %r1, %r1, 10;\nB: bar.sync 0;\nst.global.b32 [%d3], %r1;",
			func(n int) uint32 {
				switch {
				case n < 7:
					return 11
				case n < 20:
					return 2
				}
				return 3
			}},
		{"loops of different lengths", 64, "mov.b32 %r1, 0;\nmov.b32 %r2, 0;\nL: add.u32 %r2, %r2, %r1;\nadd.u32 %r1, %r1, 1;\nsetp.le.u32 %p1, %r1, %r0;\n@%p1 bra L;\nbar.sync 0;\nst.global.b32 [%d3], %r2;",
			func(n int) uint32 { return uint32(n * (n + 1) / 2) }},
		{"lanes leave one by one", 40, "st.global.b32 [%d3], %r0;\nsetp.lt.u32 %p1, %r0, 9;\n@%p1 exit;\nadd.u32 %r1, %r0, 100;\nst.global.b32 [%d3], %r1;", func(n int) uint32 {
			if n < 9 {
				return uint32(n)
			}
			return uint32(n) + 100
		}},
		{"copy with zeros", 32, "and.b32 %r3, %r0, 16;\n" + strings.Replace(copyWords, "16;\n", "16, %r3;\n", 1) + "cp.async.wait_all;\nld.shared.v2.b64 {%d6,%d7}, [%r1];\nmov.b64 {%r4,%r5}, %d7;\nst.global.b32 [%d3], %r5;",
			func(n int) uint32 {
				if n < 16 {
					return 0
				}
				return uint32(4*n+3) * 0x01010101
			}},
		{"bytes", 32, "cvt.u64.u32 %d5, %r0;\nadd.s64 %d5, %d5, %d0;\nld.global.nc.s8 %r1, [%d5+3];\nld.global.u8 %d6, [%d5+3];\nld.global.s16 %h1, [%d0+62];\ncvt.u32.u64 %r2, %d6;\nmov.b32 {%h2,%h3}, %r2;\nmov.b32 %r2, {%h2,%h1};\nadd.u32 %r1, %r1, %r2;\nst.global.b32 [%d3], %r1;",
			func(n int) uint32 { return 2*uint32((n+3)/4) + 0x0F0F0000 }},
		{"special registers", 64, "mov.u32 %r1, %laneid;\nmov.u32 %r2, %ntid.x;\nmad.lo.u32 %r1, %r2, 100, %r1;\nmov.b32 %r2, %nctaid.x;\nmad.lo.u32 %r1, %r2, 10000, %r1;\nld.param.u32 %r2, [n];\nadd.u32 %r1, %r1, %r2;\nprefetch.global.L2 [%d0+5000];\nst.global.b32 [%d3], %r1;",
			func(n int) uint32 { return 10000 + 6400 + uint32(n%32) + 9 }},
		{"shuffles", 32, "shfl.sync.idx.b32 %r1, %r0, 5, 31, -1;\nshfl.sync.up.b32 %r2, %r0, 1, 0, -1;\nmad.lo.u32 %r1, %r2, 100, %r1;\nshfl.sync.down.b32 %r2, %r0, 3, 31, -1;\nmad.lo.u32 %r1, %r2, 10000, %r1;\nshfl.sync.bfly.b32 %r2, %r0, 9, 0x1807, -1;\nmad.lo.u32 %r1, %r2, 1000000, %r1;\nst.global.b32 [%d3], %r1;",
			func(n int) uint32 {
				up, down, x := max(n-1, 0), n+3, n^9
				if down > 31 {
					down = n
				}
				if x > n&24|7 {
					x = n
				}
				return uint32(5 + 100*up + 10000*down + 1000000*x)
			}},
	} {
		for seed := range uint64(3) {
			d := newDevice(100, 256)
			if strings.Contains(c.body, "cp.async") {
				d = newDevice(512, 256)
			}
			d.block, d.n, d.seed = c.block, 9, seed
			if _, err := d.run(kernel("sm_80", c.body)); err != nil {
				t.Errorf("%s: %v", c.name, err)
				continue
			}
			for n := range c.block {
				if c.want != nil && d.word(n) != c.want(n) {
					t.Errorf("%s: thread %d leaves %d, want %d", c.name, n, d.word(n), c.want(n))
					break
				}
			}
		}
	}
}

// Shared and global traffic of one access by a warp, %r1 holding the lane's offset.
func TestTraffic(t *testing.T) {
	shared := func(op, offset string) string {
		return offset + "\nmov.u32 %r2, s;\nadd.u32 %r1, %r1, %r2;\n" + op
	}
	global := func(op, offset string) string {
		return offset + "\ncvt.u64.u32 %d5, %r1;\nadd.s64 %d5, %d5, %d0;\n" + op
	}
	zeros := "mov.b32 %r8, 0;\nmov.b32 %r9, 0;\nmov.b32 %r10, 0;\nmov.b32 %r11, 0;\n"
	for _, c := range []struct {
		name, body string
		want       sim.Traffic
	}{
		{"words in a row", shared("st.shared.b32 [%r1], %r0;", "shl.b32 %r1, %r0, 2;"), sim.Traffic{SharedWavefronts: 1, SharedIdeal: 1}},
		{"words two apart", shared("st.shared.b32 [%r1], %r0;", "shl.b32 %r1, %r0, 3;"), sim.Traffic{SharedWavefronts: 2, SharedIdeal: 1}},
		{"words eight apart", shared("st.shared.b32 [%r1], %r0;", "shl.b32 %r1, %r0, 5;"), sim.Traffic{SharedWavefronts: 8, SharedIdeal: 1}},
		{"one word", "st.shared.b32 [s], 1;", sim.Traffic{SharedWavefronts: 1, SharedIdeal: 1}},
		{"halves in a row", shared("st.shared.b16 [%r1], %r0;", "shl.b32 %r1, %r0, 1;"), sim.Traffic{SharedWavefronts: 1, SharedIdeal: 1}},
		{"pairs in a row", zeros + shared("st.shared.v2.b32 [%r1], {%r8,%r9};", "shl.b32 %r1, %r0, 3;"), sim.Traffic{SharedWavefronts: 2, SharedIdeal: 2}},
		{"pairs two apart", zeros + shared("st.shared.v2.b32 [%r1], {%r8,%r9};", "shl.b32 %r1, %r0, 4;"), sim.Traffic{SharedWavefronts: 4, SharedIdeal: 2}},
		{"fours in a row", zeros + shared("st.shared.v4.b32 [%r1], {%r8,%r9,%r10,%r11};", "shl.b32 %r1, %r0, 4;"), sim.Traffic{SharedWavefronts: 4, SharedIdeal: 4}},
		{"fours of eight lanes", zeros + shared("setp.lt.u32 %p1, %r0, 8;\n@%p1 st.shared.v4.b32 [%r1], {%r8,%r9,%r10,%r11};", "shl.b32 %r1, %r0, 7;"), sim.Traffic{SharedWavefronts: 8, SharedIdeal: 1}},
		{"global words", global("ld.global.b32 %r1, [%d5];", "shl.b32 %r1, %r0, 2;"), sim.Traffic{GlobalSectors: 4, GlobalIdeal: 4}},
		{"global words far apart", global("ld.global.b32 %r1, [%d5];", "shl.b32 %r1, %r0, 5;"), sim.Traffic{GlobalSectors: 32, GlobalIdeal: 4}},
		{"one global word", "ld.global.b32 %r1, [%d0];", sim.Traffic{GlobalSectors: 1, GlobalIdeal: 1}},
		{"global words off a sector", global("ld.global.b32 %r1, [%d5+16];", "shl.b32 %r1, %r0, 2;"), sim.Traffic{GlobalSectors: 5, GlobalIdeal: 4}},
		{"global words backwards", global("ld.global.b32 %r1, [%d5];", "sub.u32 %r1, 31, %r0;\nshl.b32 %r1, %r1, 2;"), sim.Traffic{GlobalSectors: 4, GlobalIdeal: 4}},
		{"global bytes", global("ld.global.u8 %r1, [%d5];", "mov.b32 %r1, %r0;"), sim.Traffic{GlobalSectors: 1, GlobalIdeal: 1}},
		{"copy", copyWords + "cp.async.wait_all;", sim.Traffic{SharedWavefronts: 4, SharedIdeal: 4, GlobalSectors: 16, GlobalIdeal: 16}},
	} {
		d := newDevice(1024, 128)
		r, err := d.run(kernel("sm_80", c.body))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if diff := cmp.Diff(c.want, r.Traffic); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.name, diff)
		}
		if len(r.Accesses) != 1 || r.Accesses[0].Traffic != r.Traffic || r.Accesses[0].Runs != 1 {
			t.Errorf("%s: accesses %+v", c.name, r.Accesses)
		}
	}
}

// The seed changes the order of warps and blocks, and each order is the same every time.
func TestOrder(t *testing.T) {
	body := "mov.u32 %r1, %ctaid.x;\nsetp.lt.u32 %p1, %r0, 500;\n@%p1 bra L;\nL:\nld.global.b32 %r1, [%d0+4096];"
	seen := map[string]bool{}
	for seed := range uint64(20) {
		var text [2]string
		for n := range text {
			d := newDevice(4, 4)
			d.block, d.grid, d.seed = 128, 4, seed
			_, err := d.run(kernel("sm_80", body))
			if err == nil {
				t.Fatal("no fault")
			}
			text[n] = err.Error()
		}
		if text[0] != text[1] {
			t.Errorf("seed %d: %s, then %s", seed, text[0], text[1])
		}
		seen[text[0]] = true
	}
	if len(seen) < 5 {
		t.Errorf("only %d orders in 20 seeds", len(seen))
	}
}

func TestLaunch(t *testing.T) {
	text := strings.Replace(kernel("sm_80", ""), "\n{", "\n.maxntid 64, 1, 1 .minnctapersm 2\n{", 1)
	m, err := sim.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	e := m.Entries()[0]
	if diff := cmp.Diff([]sim.Param{{"in", 8}, {"out", 8}, {"n", 4}}, e.Params); diff != "" {
		t.Error(diff)
	}
	a, b := &sim.Buffer{Name: "a", Data: make([]byte, 100)}, &sim.Buffer{Name: "b", Data: make([]byte, 100)}
	sim.Place(a, b)
	good := sim.Launch{Grid: 1, Block: 64, Params: []uint64{a.Addr, b.Addr, 1}, Memory: []*sim.Buffer{b, a}}
	if _, err := e.Run(&good); err != nil {
		t.Error(err)
	}
	for _, c := range []struct {
		want   string
		change func(l *sim.Launch)
	}{
		{"-1 blocks", func(l *sim.Launch) { l.Grid = -1 }},
		{"0 threads", func(l *sim.Launch) { l.Block = 0 }},
		{"65 threads", func(l *sim.Launch) { l.Block = 65 }},
		{"2 parameters; the kernel has 3", func(l *sim.Launch) { l.Params = l.Params[:2] }},
		{"parameter n has 4 bytes", func(l *sim.Launch) { l.Params = []uint64{1, 2, 1 << 32} }},
		{"buffers a and b overlap", func(l *sim.Launch) {
			l.Memory = []*sim.Buffer{a, {Name: "b", Addr: a.Addr + 64, Data: make([]byte, 4)}}
		}},
		{"buffer z is at 0x0", func(l *sim.Launch) { l.Memory = []*sim.Buffer{{Name: "z"}} }},
		{"buffer z is at 0x44", func(l *sim.Launch) { l.Memory = []*sim.Buffer{{Name: "z", Addr: 0x44}} }},
	} {
		l := good
		c.change(&l)
		if _, err := e.Run(&l); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	if r, err := e.Run(&sim.Launch{Grid: 0, Block: 64, Params: good.Params}); err != nil || r.Instrs != 0 {
		t.Errorf("an empty grid: %v", err)
	}
	if _, err := m.Entry("x"); err == nil {
		t.Error("an entry that isn't there is found")
	}
}

// Buffers may end anywhere; what a store leaves is exact.
func TestExactStores(t *testing.T) {
	d := newDevice(4, 7)
	if _, err := d.run(kernel("sm_80", "st.global.u8 [%d1+6], 5;\nst.global.b16 [%d1+4], 0x0102;\nst.global.b32 [%d1], -1;")); err != nil {
		t.Fatal(err)
	}
	if want := []byte{255, 255, 255, 255, 2, 1, 5}; !bytes.Equal(d.out.Data, want) {
		t.Errorf("% X, want % X", d.out.Data, want)
	}
}
