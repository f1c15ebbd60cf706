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
	f.Open = func(b *ir.Builder, packed ir.Memory, record, row *ir.Value) Record {
		return Record{
			Codes: func(i int) [8]*ir.Value { return words(b, packed, record, row, 512*i) },
			Scale: func(i int) *ir.Value { return halves(b, packed, record, row, 1024+32*i) },
		}
	}
	return f
}

// words loads the row's eight words from byte at of the record.
func words(b *ir.Builder, packed ir.Memory, record, row *ir.Value, at int) [8]*ir.Value {
	var w [8]*ir.Value
	for g := range w {
		w[g] = word(b, packed, record, row, at+64*g)
	}
	return w
}

// word loads the row's word from byte at of the record.
func word(b *ir.Builder, packed ir.Memory, record, row *ir.Value, at int) *ir.Value {
	return b.Load(packed.As(ir.U8x4), record.Shr(2).Add(at/4).Add(row))
}

// halves loads the row's f16 from byte at of the record.
func halves(b *ir.Builder, packed ir.Memory, record, row *ir.Value, at int) *ir.Value {
	return b.Load(packed.As(ir.F16), record.Shr(1).Add(at/2).Add(row))
}

// bytesOf loads the row's byte from byte at of the record.
func bytesOf(b *ir.Builder, packed ir.Memory, t ir.Type, record, row *ir.Value, at int) *ir.Value {
	return b.Load(packed.As(t), record.Add(at).Add(row))
}

// low and high are the nibbles of every byte of a word.
func low(w *ir.Value) *ir.Value { return w.As(ir.U32).And(0x0F0F0F0F).As(ir.U8x4) }
func high(w *ir.Value) *ir.Value {
	return w.As(ir.U32).Shr(4).And(0x0F0F0F0F).As(ir.U8x4)
}

// nibbles splits four words into eight: word g of the block in the low nibbles of word g, word g + 4 in the high ones.
func nibbles(b *ir.Builder, packed ir.Memory, record, row *ir.Value, at int) [8]*ir.Value {
	var w [8]*ir.Value
	for g := range 4 {
		v := word(b, packed, record, row, at+64*g)
		w[g], w[g+4] = low(v), high(v)
	}
	return w
}
