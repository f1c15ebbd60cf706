package ops

import (
	"encoding/binary"
	"math"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/canon"
	"github.com/swizzle-rt/swizzle/ir/mathx"
)

// Quantized activations on CPUs: a record of 192 bytes holds 32 consecutive k of four rows, which is three cache lines read
// through one pointer:
//
//	bytes   0 … 127   four rows of 32 signed codes
//	bytes 128 … 143   f32 d of the four rows
//	bytes 144 … 159   f32 σ = float(Σa)·d
//	bytes 160 … 175   i32 −Σa over the 32 codes
//	bytes 176 … 191   i32 −Σa over the first 16
//
// Record (row group g, block kb) lies at 192·(g·blocks + kb); blocks is the number of 32-blocks of a row rounded up to even,
// the last one zero. The sums are negated so that a product with a bias starts from them by one shift.
const (
	actRecord = 192
	actRows   = 4
)

// actBlocks returns the number of 32-blocks that a row of k elements takes.
func actBlocks(k int) int { return (k + 63) / 64 * 2 }

func actBytes(m, k int) int { return (m + actRows - 1) / actRows * actBlocks(k) * actRecord }

// actBlocksIR is actBlocks of an index value.
func actBlocksIR(k *ir.Value) *ir.Value { return k.Add(63).Shr(6).Shl(1) }

// quantRow is a row of quantized activations for scalar references.
type quantRow struct {
	code  []int8
	d     []float32 // of each 32-block
	sigma []float32
	sum   [][2]int32 // of each half
}

// quantizeRow is rule 12 on a row, whose length is padded to a multiple of 64 by zeros.
func quantizeRow(x []float32) quantRow {
	n := actBlocks(len(x))
	x = append(append([]float32(nil), x...), make([]float32, 32*n-len(x))...)
	q := quantRow{make([]int8, 32*n), make([]float32, n), make([]float32, n), make([][2]int32, n)}
	for i := range n {
		q.d[i], q.sum[i][0], q.sum[i][1], q.sigma[i] = canon.QuantizeBlock(x[32*i:32*i+32], q.code[32*i:32*i+32])
	}
	return q
}

// put writes the row into its slots of the records.
func (q quantRow) put(act []byte, row int) {
	n := len(q.d)
	for i := range n {
		r := act[(row/actRows*n+i)*actRecord:]
		s := row % actRows
		for j := range 32 {
			r[32*s+j] = byte(q.code[32*i+j])
		}
		d, sigma := math.Float32bits(q.d[i]), math.Float32bits(q.sigma[i])
		if q.d[i] != q.d[i] {
			d, sigma = 0x7FC00000, 0x7FC00000 // one NaN, so that records compare as bytes
		}
		binary.LittleEndian.PutUint32(r[128+4*s:], d)
		binary.LittleEndian.PutUint32(r[144+4*s:], sigma)
		binary.LittleEndian.PutUint32(r[160+4*s:], uint32(-q.sum[i][0]-q.sum[i][1]))
		binary.LittleEndian.PutUint32(r[176+4*s:], uint32(-q.sum[i][0]))
	}
}

// quantizer writes the records of one row; kernels that end in quantized activations share it.
type quantizer struct {
	b    *ir.Builder
	act  ir.Memory
	base *ir.Value // index of the row's first record
	slot *ir.Value
	k    *ir.Value
}

func newQuantizer(b *ir.Builder, act ir.Memory, row, k *ir.Value) *quantizer {
	return &quantizer{b: b, act: act, base: row.Shr(2).Mul(actBlocksIR(k)), slot: row.And(3), k: k}
}

// block quantizes 32 lanes of x by rule 12 as block kb of the row.
func (q *quantizer) block(x, kb *ir.Value) {
	b := q.b
	zero := b.I32(0)
	amax := x.As(ir.U32).And(0x7FFFFFFF).FoldMax()
	small := amax.Lt(b.U32(0x26800000))
	huge := b.U32(0x5F7FFFFF).Lt(amax)
	d := amax.As(ir.F32).Mul(b.Const(ir.F32, 0x3C010204))
	code := mathx.RoundI32(x.Mul(mathx.RcpNormal(d))) // d is normal unless small or huge
	code = small.OrB(huge).Select(zero, code)
	nan := b.Const(ir.F32, 0x7FC00000)
	d = huge.Select(nan, small.Select(b.F32(0), d))
	// Both sums by one fold: that of the first 16 lanes counts in the upper half as well.
	both := code.Add(code.Shl(b.Lane().And(16).Add(16).FromIndex())).FoldAdd()
	sum := both.Shl(16).Shr(16)
	half := both.Sub(sum).Shr(16)
	sigma := huge.Select(nan, sum.ToF32().Mul(d))
	record := q.base.Add(kb)
	b.Store(q.act.As(ir.I8), record.Mul(actRecord).Add(q.slot.Mul(32)).Add(b.Lane()), code)
	word := record.Mul(actRecord / 4).Add(q.slot)
	b.Store(q.act.As(ir.F32), word.Add(32), d)
	b.Store(q.act.As(ir.F32), word.Add(36), sigma)
	b.Store(q.act.As(ir.I32), word.Add(40), zero.Sub(sum))
	b.Store(q.act.As(ir.I32), word.Add(44), zero.Sub(half))
}

// each runs f over the blocks of 32 of a row, padding included: elements first + lane, those that exist by a mask, which is
// nil where all do. f is straight-line code; wide targets have registers for two blocks at a time.
func (q *quantizer) each(wide bool, f func(first, mask *ir.Value) *ir.Value) {
	b := q.b
	whole := func(kb *ir.Value) func() {
		return func() { q.block(f(kb.Mul(32), nil), kb) }
	}
	pairs := q.k.Shr(6)
	if wide {
		b.For(0, pairs, 1, func(pair *ir.Value) { b.Interleave(whole(pair.Mul(2)), whole(pair.Mul(2).Add(1))) })
	} else {
		b.For(0, pairs.Mul(2), 1, func(kb *ir.Value) { whole(kb)() })
	}
	b.For(pairs.Mul(2), actBlocksIR(q.k), 1, func(kb *ir.Value) {
		first := kb.Mul(32)
		mask := first.Add(b.Lane()).Lt(q.k)
		q.block(mask.Select(f(first, mask), b.F32(0)), kb)
	})
}
