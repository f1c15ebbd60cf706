package layout

import (
	"fmt"
	"math/bits"
)

// A Swizzle moves offsets by exclusive or: B bits from M+S up (Y) are added,
// without carry, to the B bits from M up (Z); a negative S takes Y from M and
// changes Z at M−S. In bits, for Swizzle{2, 4, 3}:
//
//	… Y Y . Z Z . . . .
//	  8 7   5 4 3 2 1 0
//
// Y and Z do not overlap because |S| ≥ B, so a swizzle is its own inverse and permutes
// every aligned block of 2^(M+B) offsets (2^(M−S+B) if S is negative).
// It is CuTe's Swizzle<B,M,S>. The zero Swizzle, and any with B = 0, moves nothing.
type Swizzle struct{ B, M, S int }

// Validate reports a swizzle with negative B or M, |S| < B, or bits beyond 48.
func (s Swizzle) Validate() error {
	switch {
	case s.B < 0 || s.M < 0:
		return fmt.Errorf("layout: %v: B and M must not be negative", s)
	case s.S < s.B && -s.S < s.B:
		return fmt.Errorf("layout: %v: |S| must be at least B", s)
	case s.B > 48 || s.M > 48 || s.S > 48 || s.S < -48 || s.M+max(s.S, -s.S)+s.B > 48:
		return fmt.Errorf("layout: %v: needs bits beyond 48", s)
	}
	return nil
}

// Apply returns where the swizzle moves offset x. Apply(Apply(x)) = x.
func (s Swizzle) Apply(x int) int {
	y := x & ((1<<s.B - 1) << (s.M + max(s.S, 0)))
	if s.S < 0 {
		return x ^ y<<-s.S
	}
	return x ^ y>>s.S
}

// block returns the number of offsets in the smallest aligned blocks that s maps
// onto themselves.
func (s Swizzle) block() int {
	if s.B == 0 {
		return 1
	}
	return 1 << (s.M + max(-s.S, 0) + s.B)
}

// Swizzled is a layout whose offsets are moved by a swizzle. The algebra's
// operations act on its Layout alone.
type Swizzled struct {
	Layout
	Swizzle
}

// Offset returns the swizzled offset of a coordinate.
func (l Swizzled) Offset(coord ...int) int { return l.Apply(l.Layout.Offset(coord...)) }

// At returns the swizzled offset of coordinate number i.
func (l Swizzled) At(i int) int { return l.Apply(l.Layout.At(i)) }

// Cosize returns the allocation that l needs: its layout's, in whole blocks of
// its swizzle.
func (l Swizzled) Cosize() int {
	b := l.block()
	return (l.Layout.Cosize() + b - 1) / b * b
}

// Equal reports whether l and m have equal layouts and the same swizzle.
func (l Swizzled) Equal(m Swizzled) bool {
	return l.Layout.Equal(m.Layout) && l.Swizzle == m.Swizzle
}

// ForRows returns the swizzle, of byte offsets, for a tile in shared memory with
// rows of rowBytes bytes, one after the other and the first at a multiple of 128
// bytes. It makes free of conflicts
//   - ldmatrix: the same 16-byte chunk of any eight rows that follow each other;
//   - copies of 16 bytes a lane: any eight chunks that share an aligned 128 bytes;
//
// and it never moves a chunk out of its row. Rows must be whole chunks.
//
// With q chunks in a row and g = gcd(q, 8), every (8/g)-th row starts at the
// same place of a 128-byte line, so g of eight rows meet in each bank group. Their
// line numbers differ by multiples of q/g, odd once its factors of two are
// shifted away; so log₂ g bits of the line number tell the g rows apart and are
// added to the chunk. For rows of a power of two this is
// chunk ^= row/(8/g) mod g.
func ForRows(rowBytes int) (Swizzle, error) {
	if rowBytes < 16 || rowBytes > maxOffset || rowBytes%16 != 0 {
		return Swizzle{}, fmt.Errorf("layout: rows of %d bytes: want a positive multiple of 16", rowBytes)
	}
	twos := bits.TrailingZeros(uint(rowBytes / 16))
	if twos == 0 {
		return Swizzle{}, nil
	}
	return Swizzle{B: min(twos, 3), M: 4, S: max(twos, 3)}, nil
}
