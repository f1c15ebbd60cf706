package quant

import "github.com/swizzle-rt/swizzle/ir"

// LoadAt loads one element of a row of a record: that of type t of vector vec, counted from the vector of all rows that
// starts at byte at.
type LoadAt func(t ir.Type, at int, vec *ir.Value) *ir.Value

// LoaderAt returns a LoadAt of row of the record whose first byte is at index record of packed. Both may differ between
// lanes.
func LoaderAt(b *ir.Builder, packed ir.Memory, record, row *ir.Value) LoadAt {
	return func(t ir.Type, at int, vec *ir.Value) *ir.Value {
		shift := 0
		for 1<<shift < t.Bytes() {
			shift++
		}
		offset := at >> shift
		for vec.Def != nil && vec.Def.Op == ir.OpAddX { // constants last: loads share the rest of their addresses
			c, ok := vec.Def.Args[1].Const()
			if !ok {
				break
			}
			vec, offset = vec.Def.Args[0], offset+int(c)*Rows
		}
		return b.Load(packed.As(t), record.Shr(shift).Add(row).Add(vec.Mul(Rows)).Add(offset))
	}
}

// Block gives the IR values of one 32-block of a row, for schedules whose loops over blocks stay rolled.
type Block struct {
	// Code returns words t and t + 4 of the codes (U8x4: unsigned codes of four k from 4t and from 16 + 4t on), t an index
	// of 0 … 3 that may differ between lanes.
	Code  func(t *ir.Value) (lo, hi *ir.Value)
	Scale *ir.Value    // F32: w
	Half  [2]*ir.Value // I32: integer scales of the halves, of formats with Halves
	Min   *ir.Value    // F32: m, of formats with Min
}

// nibbles returns a Block.Code for four words of nibbles from vector first of byte at on, as [nibble] finds them.
func nibbles(load LoadAt, at int, first *ir.Value) func(t *ir.Value) (lo, hi *ir.Value) {
	return func(t *ir.Value) (lo, hi *ir.Value) {
		v := load(ir.U8x4, at, first.Add(t))
		return low(v), high(v)
	}
}

// fifths puts the fifth bits of block i, which lie at byte at, on top of nibbles.
func fifths(load LoadAt, at int, i *ir.Value, nibbles func(t *ir.Value) (lo, hi *ir.Value)) func(t *ir.Value) (lo, hi *ir.Value) {
	bits := load(ir.U32, at, i)
	return func(t *ir.Value) (lo, hi *ir.Value) {
		lo, hi = nibbles(t)
		h := bits.Shr(number(t))
		lo = lo.As(ir.U32).Or(h.And(0x01010101).Shl(4)).As(ir.U8x4)
		hi = hi.As(ir.U32).Or(h.And(0x10101010)).As(ir.U8x4)
		return lo, hi
	}
}

// kNibbles returns words t and t + 4 of block i of a superblock: of each 64 elements the first 32 lie in low nibbles,
// the others in high ones.
func kNibbles(load LoadAt, i, t *ir.Value) (lo, hi *ir.Value) {
	at, shift := i.Shr(1).Mul(8).Add(t), number(i.And(1).Mul(4))
	word := func(at *ir.Value) *ir.Value {
		return load(ir.U8x4, 0, at).As(ir.U32).Shr(shift).And(0x0F0F0F0F).As(ir.U8x4)
	}
	return word(at), word(at.Add(4))
}

// scales6 gives scale and minimum of block i: eight vectors of sc at byte at, eight of mn, d, dmin.
func scales6(load LoadAt, at int, i *ir.Value) Block {
	zero := i.Builder().Idx(0)
	return Block{
		Scale: load(ir.F16, at+256, zero).Mul(load(ir.U8, at, i).ToF32()),
		Min:   load(ir.F16, at+288, zero).Mul(load(ir.U8, at+128, i).ToF32()),
	}
}

// whole makes Open of formats whose records have one part.
func whole(open func(load Load) Record) func(load LoadAt, part *ir.Value) Record {
	return func(load LoadAt, part *ir.Value) Record {
		zero := part.Builder().Idx(0)
		return open(func(t ir.Type, at int) *ir.Value { return load(t, at, zero) })
	}
}

// openPair opens two 32-blocks of Q4_K and Q5_K: nibbles from the start of the record, low ones first, and at byte at the
// scales as [scales6] finds them: w = d·sc and m = dmin·mn, both exact (11 + 6 bits).
func openPair(load LoadAt, at int, pair *ir.Value) Record {
	zero, words, scales := pair.Builder().Idx(0), pair.Mul(8), pair.Mul(2)
	return Record{
		Code: func(i, g int) *ir.Value {
			v := load(ir.U8x4, 64*g, words)
			if i == 0 {
				return low(v)
			}
			return high(v)
		},
		Scale: func(i int) *ir.Value { return load(ir.F16, at+256, zero).Mul(load(ir.U8, at+16*i, scales).ToF32()) },
		Min:   func(i int) *ir.Value { return load(ir.F16, at+288, zero).Mul(load(ir.U8, at+128+16*i, scales).ToF32()) },
	}
}

// number returns an index as U32, for shifts.
func number(x *ir.Value) *ir.Value {
	if c, ok := x.Const(); ok {
		return x.Builder().U32(uint32(c))
	}
	return x.FromIndex().As(ir.U32)
}
