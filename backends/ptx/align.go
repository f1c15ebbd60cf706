package ptx

import (
	"math/bits"

	"github.com/swizzle-rt/swizzle/ir"
)

// together reports whether the elements of an access are known to lie in one aligned vector. Buffers and shared arrays are
// aligned to 16 bytes at least.
func (p *printer) together(i *ir.Instr) bool {
	n, ok := shiftOf(i.Imm)
	return ok && p.divisor(i.Args[0]) >= n
}

// divisor returns a lower bound of the number of factors of two in an index, from constants alone: parameters, tiles and
// lanes may be odd.
func (p *printer) divisor(v *ir.Value) int {
	n, ok := p.divisors[v]
	if !ok {
		n = p.findDivisor(v)
		p.divisors[v] = n
	}
	return n
}

func (p *printer) findDivisor(v *ir.Value) int {
	if c, ok := v.Const(); ok {
		return twos(c)
	}
	if f := p.loops[v]; f != nil {
		return min(p.divisor(f.Lo), twos(int64(f.Step)))
	}
	if v.Def == nil {
		return 0
	}
	i := v.Def
	arg := func(n int) int { return p.divisor(i.Args[n]) }
	switch i.Op {
	case ir.OpAddX, ir.OpSubX, ir.OpXorX, ir.OpMinX, ir.OpMaxX, ir.OpModX:
		return min(arg(0), arg(1))
	case ir.OpMulX:
		return min(63, arg(0)+arg(1))
	case ir.OpAndX:
		return max(arg(0), arg(1))
	case ir.OpShlX, ir.OpShrX, ir.OpDivX:
		c, ok := i.Args[1].Const()
		n := int(c)
		if i.Op == ir.OpDivX {
			n, ok = shiftOf(c)
		}
		switch {
		case !ok:
			return 0
		case i.Op == ir.OpShlX:
			return min(63, arg(0)+n&63)
		}
		return max(0, arg(0)-n&63)
	case ir.OpFragCoord:
		n := 63
		for _, c := range coordinates(i, v) {
			n = min(n, twos(int64(c)))
		}
		return n
	}
	return 0
}

func twos(c int64) int { return min(63, bits.TrailingZeros64(uint64(c))) }
