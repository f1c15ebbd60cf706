package quant

import "github.com/swizzle-rt/swizzle/ir"

// Q4K has superblocks of 256: f16 d and dmin, 12 bytes of eight 6-bit scales sc and minimums mn, 128 bytes of nibbles. Of
// each 64 elements the first 32 are low nibbles, the next 32 high ones. The value is (d·sc)·q − dmin·mn. The record holds
// one superblock: words, sc as bytes per row, mn as bytes per row, d, dmin.
func Q4K() *Format {
	f := &Format{Name: "q4_k", Block: 256, BlockBytes: 144, Span: 256, Record: 2368, UMax: 15, Min: true, Scales: []int{0, 2}}
	f.Value = kMinValue
	f.Moves = []Move{
		{From: 16, To: 0, Words: 32},
		{From: 0, To: 2304, Words: 2, Half: true},
	}
	f.PackBlock, f.PackRest = packScales6(f.Moves, 2048), packRest6(2048)
	f.Sub = func(block []byte, i int) Sub32 {
		s := kScales(block, i)
		for j := range 32 {
			s.Code[j] = int32(block[16+32*(i/2)+j]>>(4*(i%2))) & 15
		}
		return s
	}
	f.Part, f.Open = 2, func(load LoadAt, pair *ir.Value) Record { return openPair(load, 2048, pair) }
	f.At = func(load LoadAt, i *ir.Value) Block {
		r := scales6(load, 2048, i)
		r.Code = func(t *ir.Value) (lo, hi *ir.Value) { return kNibbles(load, i, t) }
		return r
	}
	return f
}

// kMinValue is (d·sc)·q − dmin·mn; Sub32's W and M hold both products, which are exact.
func kMinValue(s Sub32, i int) float32 { return float32(s.W*float32(s.Code[i])) - s.M }

// scale6 unpacks 6-bit scale and minimum j (0 … 7) of the 12 bytes q of Q4_K and Q5_K.
func scale6(q []byte, j int) (sc, mn byte) {
	if j < 4 {
		return q[j] & 63, q[j+4] & 63
	}
	return q[j+4]&15 | q[j-4]>>6<<4, q[j+4]>>4 | q[j]>>6<<4
}

func kScales(block []byte, i int) Sub32 {
	sc, mn := scale6(block[4:16], i)
	return Sub32{Sc: ones, W: float32(halfFloat(block, 0) * float32(sc)), M: float32(halfFloat(block, 2) * float32(mn))}
}

// packScales6 performs the moves and spreads the 6-bit scales into bytes: eight vectors of sc, one byte a row, at byte at,
// then eight of mn.
func packScales6(moves []Move, at int) func(record, block []byte, n, r int) {
	words := packMoves(moves)
	return func(record, block []byte, n, r int) {
		words(record, block, n, r)
		for j := range 8 {
			sc, mn := scale6(block[4:16], j)
			record[at+16*j+r], record[at+128+16*j+r] = sc, mn
		}
	}
}

// packRest6 is the part of packScales6 that spreads the scales, as IR.
func packRest6(at int) func(b *ir.Builder, rows, packed ir.Memory, block, record, row, mask *ir.Value, n int) {
	return func(b *ir.Builder, rows, packed ir.Memory, block, record, row, mask *ir.Value, _ int) {
		q := func(j int) *ir.Value { return b.LoadMasked(rows.As(ir.U8), block.Add(4+j), mask) }
		for j := range 8 {
			var sc, mn *ir.Value
			if j < 4 {
				sc, mn = q(j).And(63), q(j+4).And(63)
			} else {
				sc = q(j + 4).And(15).Or(q(j - 4).Shr(6).Shl(4))
				mn = q(j + 4).Shr(4).Or(q(j).Shr(6).Shl(4))
			}
			b.StoreMasked(packed.As(ir.U8), record.Add(at+16*j).Add(row), sc, mask)
			b.StoreMasked(packed.As(ir.U8), record.Add(at+128+16*j).Add(row), mn, mask)
		}
	}
}
