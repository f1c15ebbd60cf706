package quant

import "github.com/swizzle-rt/swizzle/ir"

// Q5K has superblocks of 256: as Q4_K with 32 bytes qh before the nibbles; bit i of qh[l] is the fifth bit of element l of
// 32-block i. The record holds the words of Q4_K, the words of qh, then sc, mn, d, dmin.
func Q5K() *Format {
	f := &Format{Name: "q5_k", Block: 256, BlockBytes: 176, Span: 256, Record: 2880, UMax: 31, Min: true, Scales: []int{0, 2}}
	f.Value = kMinValue
	f.Moves = []Move{
		{From: 48, To: 0, Words: 32},
		{From: 16, To: 2048, Words: 8},
		{From: 0, To: 2816, Words: 2, Half: true},
	}
	f.PackBlock, f.PackRest = packScales6(f.Moves, 2560), packRest6(2560)
	f.Sub = func(block []byte, i int) Sub32 {
		s := kScales(block, i)
		for j := range 32 {
			s.Code[j] = int32(block[48+32*(i/2)+j]>>(4*(i%2)))&15 | int32(block[16+j]>>i&1)<<4
		}
		return s
	}
	f.At = func(load LoadAt, i *ir.Value) Block {
		r := scales6(load, 2560, i)
		bit := number(i)
		fifth := func(nibble, at *ir.Value) *ir.Value {
			h := load(ir.U8x4, 2048, at).As(ir.U32).Shr(bit).And(0x01010101).Shl(4)
			return nibble.As(ir.U32).Or(h).As(ir.U8x4)
		}
		r.Code = func(t *ir.Value) (lo, hi *ir.Value) {
			lo, hi = kNibbles(load, i, t)
			return fifth(lo, t), fifth(hi, t.Add(4))
		}
		return r
	}
	f.Part, f.Open = 2, func(load LoadAt, pair *ir.Value) Record {
		r := openPair(load, 2560, pair)
		nibble, zero := r.Code, pair.Builder().Idx(0)
		r.Code = func(i, g int) *ir.Value {
			h := load(ir.U8x4, 2048+64*g, zero).As(ir.U32).Shr(number(pair.Mul(2).Add(i))).And(0x01010101).Shl(4)
			return nibble(i, g).As(ir.U32).Or(h).As(ir.U8x4)
		}
		return r
	}
	return f
}
