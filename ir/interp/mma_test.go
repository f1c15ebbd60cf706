package interp_test

import (
	"math/rand/v2"
	"testing"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
	"github.com/swizzle-rt/swizzle/ir/layout"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// Every element of A, B and C is held by one register of one lane.
func TestAtomsCover(t *testing.T) {
	for _, a := range target.Atoms() {
		for name, f := range map[string]struct {
			ir.Fragment
			rows, cols int
		}{"A": {a.A, a.M, a.K}, "B": {a.B, a.K, a.N}, "C": {a.C, a.M, a.N}} {
			seen := map[[2]int]bool{}
			for lane := range 32 {
				for r := range f.Regs {
					for e := range f.Elems() {
						row, col := f.Coord(lane, r, e)
						if row < 0 || row >= f.rows || col < 0 || col >= f.cols || seen[[2]int{row, col}] {
							t.Fatalf("%s %s: lane %d register %d element %d is (%d, %d): outside or twice", a.Name, name, lane, r, e, row, col)
						}
						seen[[2]int{row, col}] = true
					}
				}
			}
			if len(seen) != f.rows*f.cols {
				t.Errorf("%s %s: %d of %d elements", a.Name, name, len(seen), f.rows*f.cols)
			}
		}
	}
}

// Spot checks against the figures of the PTX ISA.
func TestAtomCoords(t *testing.T) {
	a := target.M16N8K32S8
	for _, c := range []struct {
		name     string
		f        ir.Fragment
		l, r, e  int
		row, col int
	}{
		{"A", a.A, 0, 0, 3, 0, 3}, {"A", a.A, 5, 1, 0, 9, 4}, {"A", a.A, 31, 2, 1, 7, 29}, {"A", a.A, 31, 3, 3, 15, 31},
		{"B", a.B, 6, 0, 2, 10, 1}, {"B", a.B, 31, 1, 3, 31, 7},
		{"C", a.C, 7, 0, 0, 1, 6}, {"C", a.C, 7, 1, 0, 1, 7}, {"C", a.C, 7, 2, 0, 9, 6}, {"C", a.C, 31, 3, 0, 15, 7},
	} {
		if row, col := c.f.Coord(c.l, c.r, c.e); row != c.row || col != c.col {
			t.Errorf("%s: lane %d register %d element %d is (%d, %d), want (%d, %d)", c.name, c.l, c.r, c.e, row, col, c.row, c.col)
		}
	}
}

// A matrix product through shared memory, ldmatrix, two k steps of the atom and FragCoord equals the plain sums.
func TestMMA(t *testing.T) {
	for _, a := range target.Atoms() {
		const steps = 2
		K := steps * a.K
		r := rand.New(rand.NewPCG(3, uint64(a.K)))
		A, B := make([]byte, a.M*K), make([]byte, a.N*K) // rows of A, columns of B
		for i := range A {
			A[i] = byte(r.Uint32())
		}
		for i := range B {
			B[i] = byte(r.Uint32())
		}
		A[0], A[1], B[0], B[1] = 0x80, 0x80, 0x80, 0x80
		k := build(t, 32, 1, func(b *ir.Builder) {
			x, y, out := b.In("x", ir.I8x4), b.In("y", ir.I8x4), b.Out("out", ir.I32)
			lane := b.Lane()
			g, q := lane.Shr(2), lane.And(3)
			c := b.Reg("c", ir.I32, a.C.Regs)
			c.Fill(b.I32(-5))
			b.For(0, steps, 1, func(s *ir.Value) {
				// Register r of A is rows 8·(r mod 2) and words 4·(r / 2) on; of one register only, the first.
				var fa, fb, fc []*ir.Value
				for n := range a.A.Regs {
					fa = append(fa, b.Load(x, g.Add(8*(n%2)).Mul(K/4).Add(s.Mul(a.K/4)).Add(q).Add(4*(n/2))))
				}
				for n := range a.B.Regs {
					fb = append(fb, b.Load(y, g.Mul(K/4).Add(s.Mul(a.K/4)).Add(q).Add(4*n)))
				}
				for n := range a.C.Regs {
					fc = append(fc, c.At(n))
				}
				for n, v := range b.MMA(a, fa, fb, fc) {
					c.Set(v, n)
				}
			})
			for n := range a.C.Regs {
				row, col := b.FragCoord(a, n)
				b.Store(out, row.Mul(a.N).Add(col), c.At(n))
			}
		})
		out := make([]byte, 4*a.M*a.N)
		if _, err := interp.Run(k, interp.Args{Buffers: [][]byte{A, B, out}}); err != nil {
			t.Fatal(err)
		}
		for m := range a.M {
			for n := range a.N {
				want := int32(-5)
				for i := range K {
					want += int32(int8(A[m*K+i])) * int32(int8(B[n*K+i]))
				}
				if got := int32(word(out, m*a.N+n)); got != want {
					t.Fatalf("%s: (%d, %d) is %d, want %d", a.Name, m, n, got, want)
				}
			}
		}
	}
}

// ldmatrix gives the fragments of A and B that the atom wants, from swizzled rows of 128 bytes.
func TestLdMatrixFragments(t *testing.T) {
	a := target.M16N8K32S8
	swizzle, err := layout.ForRows(128)
	if err != nil {
		t.Fatal(err)
	}
	k := build(t, 32, 1, func(b *ir.Builder) {
		x, out := b.In("x", ir.I8x4), b.Out("out", ir.I8x4)
		s := b.Shared("s", ir.I8x4, 16*32)
		lane := b.Lane()
		at := func(row, chunk *ir.Value) *ir.Value { // of words
			return row.Mul(32).Add(chunk.Xor(row.And(1<<swizzle.B - 1)).Mul(4))
		}
		b.For(0, 16, 1, func(row *ir.Value) {
			b.Store(s, at(row, lane.Shr(2)).Add(lane.And(3)), b.Load(x, row.Mul(32).Add(lane)))
		})
		b.Barrier()
		// Matrices: rows 0–7 and 8–15 of chunk 2, then of chunk 3.
		for n, v := range b.LdMatrix(s, 4, at(lane.And(15), b.Idx(2).Add(lane.Shr(4)))) {
			b.Store(out, lane.Add(32*n), v)
		}
	})
	in, out := make([]byte, 16*128), make([]byte, 4*4*32)
	r := rand.New(rand.NewPCG(5, 5))
	for i := range in {
		in[i] = byte(r.Uint32())
	}
	report, err := interp.Run(k, interp.Args{Buffers: [][]byte{in, out}})
	if err != nil {
		t.Fatal(err)
	}
	if report.SharedWavefronts != report.SharedIdeal {
		t.Errorf("%d wavefronts, %d ideal", report.SharedWavefronts, report.SharedIdeal)
	}
	for lane := range 32 {
		for reg := range 4 {
			for e := range 4 {
				row, col := a.A.Coord(lane, reg, e)
				if got, want := out[4*(32*reg+lane)+e], in[128*row+32+col]; got != want {
					t.Fatalf("lane %d register %d byte %d is %02X, want %02X", lane, reg, e, got, want)
				}
			}
		}
	}
}
