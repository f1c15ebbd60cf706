package quant

import "github.com/swizzle-rt/swizzle/ir"

// Q4_0 has blocks of 32: f16 d, 16 bytes of which byte j holds elements j (low nibble) and j + 16; the value is d·(q − 8).
// The record holds two blocks: the words of the first and of the second, then the scales of both.
func Q4_0() *Format {
	f := &Format{Name: "q4_0", Block: 32, BlockBytes: 18, Span: 64, Record: 576, UMax: 15, Bias: 8, Scales: []int{0}, Value: linear}
	f.Moves = []Move{
		{From: 2, To: 0, Words: 4, Stride: 256},
		{From: 0, To: 512, Words: 1, Stride: 32, Half: true},
	}
	f.PackBlock = packMoves(f.Moves)
	f.Sub = func(block []byte, _ int) Sub32 {
		s := Sub32{Sc: ones, W: halfFloat(block, 0)}
		for j := range 16 {
			s.Code[j], s.Code[j+16] = int32(block[2+j]&15)-8, int32(block[2+j]>>4)-8
		}
		return s
	}
	f.Part, f.Open = f.Span/32, whole(func(load Load) Record {
		return Record{
			Code:  func(i, g int) *ir.Value { return nibble(load, 256*i, g) },
			Scale: func(i int) *ir.Value { return load(ir.F16, 512+32*i) },
		}
	})
	f.At = func(load LoadAt, i *ir.Value) Block {
		return Block{Code: nibbles(load, 0, i.Mul(4)), Scale: load(ir.F16, 512, i)}
	}
	return f
}
