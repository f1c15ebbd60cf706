package quant

import "github.com/swizzle-rt/swizzle/ir"

// Q4_1 has blocks of 32: f16 d, f16 m, 16 bytes as in Q4_0; the value is d·q + m. The record holds one block: words,
// scales, minimums.
func Q4_1() *Format {
	f := &Format{Name: "q4_1", Block: 32, BlockBytes: 20, Span: 32, Record: 320, UMax: 15, Min: true, Plus: true, Scales: []int{0, 2}}
	f.Value = func(s Sub32, i int) float32 { return linear(s, i) + s.M }
	f.Moves = []Move{
		{From: 4, To: 0, Words: 4},
		{From: 0, To: 256, Words: 2, Half: true},
	}
	f.PackBlock = packMoves(f.Moves)
	f.Sub = func(block []byte, _ int) Sub32 {
		s := Sub32{Sc: ones, W: halfFloat(block, 0), M: halfFloat(block, 2)}
		for j := range 16 {
			s.Code[j], s.Code[j+16] = int32(block[4+j]&15), int32(block[4+j]>>4)
		}
		return s
	}
	f.Part, f.Open = f.Span/32, whole(func(load Load) Record {
		return Record{
			Code:  func(_, g int) *ir.Value { return nibble(load, 0, g) },
			Scale: func(int) *ir.Value { return load(ir.F16, 256) },
			Min:   func(int) *ir.Value { return load(ir.F16, 288) },
		}
	})
	f.At = func(load LoadAt, i *ir.Value) Block {
		return Block{Code: nibbles(load, 0, i.Mul(4)), Scale: load(ir.F16, 256, i), Min: load(ir.F16, 288, i)}
	}
	return f
}
