package quant

import (
	"encoding/binary"

	"github.com/swizzle-rt/swizzle/ir"
)

// Q5_0 has blocks of 32: f16 d, 32 bits of which bit j is the fifth bit of element j, 16 bytes as in Q4_0; the value is
// d·(q − 16). The record holds two blocks: the words of both, the fifth bits of both, the scales of both. Packing orders the
// fifth bits so that bit g of byte b belongs to element 4g + b: a shift and a mask put those of word g in place.
func Q5_0() *Format {
	f := &Format{Name: "q5_0", Block: 32, BlockBytes: 22, Span: 64, Record: 704, UMax: 31, Bias: 16, Scales: []int{0}, Value: linear}
	f.Moves = []Move{
		{From: 6, To: 0, Words: 4, Stride: 256},
		{From: 0, To: 640, Words: 1, Stride: 32, Half: true},
	}
	f.PackBlock, f.PackRest = packFifth(f.Moves, 2, 512, 64), packFifthIR(2, 512, 64)
	f.Sub = func(block []byte, _ int) Sub32 {
		s := Sub32{Sc: ones, W: halfFloat(block, 0)}
		for j, c := range codes5(block[2:]) {
			s.Code[j] = c - 16
		}
		return s
	}
	f.Part, f.Open = f.Span/32, whole(func(load Load) Record {
		return Record{
			Code:  func(i, g int) *ir.Value { return fifth(load, 256*i, 512+64*i, g) },
			Scale: func(i int) *ir.Value { return load(ir.F16, 640+32*i) },
		}
	})
	f.At = func(load LoadAt, i *ir.Value) Block {
		return Block{Code: fifths(load, 512, i, nibbles(load, 0, i.Mul(4))), Scale: load(ir.F16, 640, i)}
	}
	return f
}

// Q5_1 has blocks of 32: f16 d, f16 m, then as Q5_0; the value is d·q + m. The record holds one block: words, fifth bits,
// scales, minimums.
func Q5_1() *Format {
	f := &Format{Name: "q5_1", Block: 32, BlockBytes: 24, Span: 32, Record: 384, UMax: 31, Min: true, Plus: true, Scales: []int{0, 2}}
	f.Value = func(s Sub32, i int) float32 { return linear(s, i) + s.M }
	f.Moves = []Move{
		{From: 8, To: 0, Words: 4},
		{From: 0, To: 320, Words: 2, Half: true},
	}
	f.PackBlock, f.PackRest = packFifth(f.Moves, 4, 256, 0), packFifthIR(4, 256, 0)
	f.Sub = func(block []byte, _ int) Sub32 {
		return Sub32{Sc: ones, W: halfFloat(block, 0), M: halfFloat(block, 2), Code: codes5(block[4:])}
	}
	f.Part, f.Open = f.Span/32, whole(func(load Load) Record {
		return Record{
			Code:  func(_, g int) *ir.Value { return fifth(load, 0, 256, g) },
			Scale: func(int) *ir.Value { return load(ir.F16, 320) },
			Min:   func(int) *ir.Value { return load(ir.F16, 352) },
		}
	})
	f.At = func(load LoadAt, i *ir.Value) Block {
		return Block{Code: fifths(load, 256, i, nibbles(load, 0, i.Mul(4))), Scale: load(ir.F16, 320, i), Min: load(ir.F16, 352, i)}
	}
	return f
}

// codes5 decodes the fifth bits and the nibbles after them.
func codes5(b []byte) (code [32]int32) {
	bits := binary.LittleEndian.Uint32(b)
	for j := range 16 {
		code[j] = int32(b[4+j]&15) | int32(bits>>j&1)<<4
		code[j+16] = int32(b[4+j]>>4) | int32(bits>>(j+16)&1)<<4
	}
	return code
}

// packFifth performs the moves and puts the fifth bits, which lie at byte from of the block, at byte to + n·stride of the
// record.
func packFifth(moves []Move, from, to, stride int) func(record, block []byte, n, r int) {
	words := packMoves(moves)
	return func(record, block []byte, n, r int) {
		words(record, block, n, r)
		bits, out := binary.LittleEndian.Uint32(block[from:]), uint32(0)
		for j := range 32 {
			out |= bits >> j & 1 << (8*(j%4) + j/4)
		}
		binary.LittleEndian.PutUint32(record[to+n*stride+4*r:], out)
	}
}

// packFifthIR is that as IR. The product with 2⁰ + 2⁷ + 2¹⁴ + 2²¹ moves bit b of four to bit 0 of byte b.
func packFifthIR(from, to, stride int) func(b *ir.Builder, rows, packed ir.Memory, block, record, row, mask *ir.Value, n int) {
	return func(b *ir.Builder, rows, packed ir.Memory, block, record, row, mask *ir.Value, n int) {
		bits := b.LoadMasked(rows, block.Add(from), mask).As(ir.U32)
		for i := 1; i < 4; i++ {
			bits = bits.Or(b.LoadMasked(rows, block.Add(from+i), mask).As(ir.U32).Shl(8 * i))
		}
		out := b.U32(0)
		for g := range 8 {
			out = out.Or(bits.Shr(4 * g).And(15).Mul(0x204081).And(0x01010101).Shl(g))
		}
		b.StoreMasked(packed.As(ir.U32), record.Shr(2).Add((to+n*stride)/4).Add(row), out, mask)
	}
}

// fifth gives word g of a 32-block whose nibbles start at byte at and whose fifth bits lie at byte bits.
func fifth(load Load, at, bits, g int) *ir.Value {
	h := load(ir.U32, bits).And(0x01010101 << g)
	if g < 4 {
		h = h.Shl(4 - g)
	} else {
		h = h.Shr(g - 4)
	}
	return nibble(load, at, g).As(ir.U32).Or(h).As(ir.U8x4)
}
