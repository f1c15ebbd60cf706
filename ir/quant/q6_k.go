package quant

import "github.com/swizzle-rt/swizzle/ir"

// Q6K has superblocks of 256: 128 bytes ql, 64 bytes qh, 16 signed scales, f16 d. Of each 128 elements, 32-block i (0 … 3)
// takes its low nibbles from ql[32·(i mod 2) …], the low half of the bytes for i < 2, the high half else, and two bits from
// qh at bit 2i; the value is (d·sc)·(q − 32), a scale for every 16. The record holds the words of ql, of qh, the scales as
// bytes per row, d.
func Q6K() *Format {
	f := &Format{Name: "q6_k", Block: 256, BlockBytes: 210, Span: 256, Record: 3392, UMax: 63, Bias: 32, Halves: true, Scales: []int{208}, Value: linear}
	f.Moves = []Move{
		{From: 0, To: 0, Words: 32},
		{From: 128, To: 2048, Words: 16},
		{From: 192, To: 3072, Words: 16, Byte: true},
		{From: 208, To: 3328, Words: 1, Half: true},
	}
	f.PackBlock = packMoves(f.Moves)
	f.Sub = func(block []byte, i int) Sub32 {
		s := Sub32{W: halfFloat(block, 208), Sc: [2]int32{int32(int8(block[192+2*i])), int32(int8(block[192+2*i+1]))}}
		h, q := i/4, i%4
		for j := range 32 {
			lo := int32(block[64*h+32*(q%2)+j]>>(4*(q/2))) & 15
			hi := int32(block[128+32*h+j]>>(2*q)) & 3
			s.Code[j] = lo | hi<<4 - 32
		}
		return s
	}
	f.Part, f.Open = 4, func(load LoadAt, half *ir.Value) Record {
		zero, fours, twos, scales := half.Builder().Idx(0), half.Mul(16), half.Mul(8), half.Mul(8)
		return Record{
			Code: func(i, g int) *ir.Value {
				v := load(ir.U8x4, 512*(i%2)+64*g, fours)
				two := load(ir.U8x4, 2048+64*g, twos).As(ir.U32)
				if i < 2 {
					v = low(v)
				} else {
					v = high(v)
				}
				switch i {
				case 0:
					two = two.And(0x03030303).Shl(4)
				case 1:
					two = two.And(0x0C0C0C0C).Shl(2)
				case 2:
					two = two.And(0x30303030)
				case 3:
					two = two.And(0xC0C0C0C0).Shr(2)
				}
				return v.As(ir.U32).Or(two).As(ir.U8x4)
			},
			Scale: func(int) *ir.Value { return load(ir.F16, 3328, zero) },
			Half:  func(i, h int) *ir.Value { return load(ir.I8, 3072+32*i+16*h, scales) },
		}
	}
	f.At = func(load LoadAt, i *ir.Value) Block {
		h, q := i.Shr(2).Mul(8), i.And(3)
		half, pair := number(q.Shr(1).Mul(4)), number(q.Mul(2))
		word := func(t *ir.Value) *ir.Value {
			four := load(ir.U8x4, 0, h.Mul(2).Add(q.And(1).Mul(8)).Add(t)).As(ir.U32).Shr(half).And(0x0F0F0F0F)
			two := load(ir.U8x4, 2048, h.Add(t)).As(ir.U32).Shr(pair).And(0x03030303).Shl(4)
			return four.Or(two).As(ir.U8x4)
		}
		return Block{
			Code:  func(t *ir.Value) (lo, hi *ir.Value) { return word(t), word(t.Add(4)) },
			Scale: load(ir.F16, 3328, i.Builder().Idx(0)),
			Half:  [2]*ir.Value{load(ir.I8, 3072, i.Mul(2)), load(ir.I8, 3072, i.Mul(2).Add(1))},
		}
	}
	return f
}
