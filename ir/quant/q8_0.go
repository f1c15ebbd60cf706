package quant

import "github.com/swizzle-rt/swizzle/ir"

// Q8_0 has blocks of 32: f16 d, 32 signed bytes; the value is d·q. The record holds two blocks: codes with their sign bit
// flipped (q + 128) of the first and of the second, then the scales of both.
func Q8_0() *Format {
	f := &Format{Name: "q8_0", Block: 32, BlockBytes: 34, Span: 64, Record: 1088, UMax: 255, Bias: 128, Scales: []int{0}, Value: linear}
	f.Moves = []Move{
		{From: 2, To: 0, Words: 8, Stride: 512, Xor: 0x80808080},
		{From: 0, To: 1024, Words: 1, Stride: 32, Half: true},
	}
	f.PackBlock = packMoves(f.Moves)
	f.Sub = func(block []byte, _ int) Sub32 {
		s := Sub32{Sc: ones, W: halfFloat(block, 0)}
		for j := range s.Code {
			s.Code[j] = int32(int8(block[2+j]))
		}
		return s
	}
	f.Part, f.Open = f.Span/32, whole(func(load Load) Record {
		return Record{
			Code:  func(i, g int) *ir.Value { return load(ir.U8x4, 512*i+64*g) },
			Scale: func(i int) *ir.Value { return load(ir.F16, 1024+32*i) },
		}
	})
	f.At = func(load LoadAt, i *ir.Value) Block {
		return Block{
			Code: func(t *ir.Value) (lo, hi *ir.Value) {
				at := i.Mul(8).Add(t)
				return load(ir.U8x4, 0, at), load(ir.U8x4, 0, at.Add(4))
			},
			Scale: load(ir.F16, 1024, i),
		}
	}
	return f
}

// low and high are the nibbles of every byte of a word.
func low(w *ir.Value) *ir.Value  { return w.As(ir.U32).And(0x0F0F0F0F).As(ir.U8x4) }
func high(w *ir.Value) *ir.Value { return w.As(ir.U32).Shr(4).And(0x0F0F0F0F).As(ir.U8x4) }

// nibble gives word g of a 32-block whose four words start at byte at: g in the low nibbles of word g, g + 4 in the high ones.
func nibble(load Load, at, g int) *ir.Value {
	v := load(ir.U8x4, at+64*(g%4))
	if g < 4 {
		return low(v)
	}
	return high(v)
}
