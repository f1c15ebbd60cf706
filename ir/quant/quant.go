// Package quant holds the weight formats, one file each: the GGUF block, its decoding as scalar Go and as IR, and the
// packed layout that every kernel of the format reads, on every device.
//
// A packed matrix consists of tiles of 16 rows. A tile is a run of records; a record holds Span consecutive k of its 16 rows
// and starts on a 64-byte boundary. Within a record the words of the GGUF block are interleaved by row: word w of row r lies
// at 4·(16·w + r), so that a vector of lanes = rows is one contiguous load. Rows beyond the matrix and blocks beyond a row
// are zero.
package quant

import (
	"encoding/binary"
	"math"

	"github.com/swizzle-rt/swizzle/ir"
)

// Rows is the number of rows in a packed tile.
const Rows = 16

// Format is a quantized weight format whose blocks are multiples of 32 elements.
type Format struct {
	Name       string // as in op names: q8_0
	Block      int    // elements in a GGUF block
	BlockBytes int    // its size
	Span       int    // elements of k in a packed record, a multiple of Block
	Record     int    // bytes of a record, a multiple of 64
	UMax       int    // largest unsigned code
	Bias       int    // the signed code is the unsigned one less Bias
	Halves     bool   // scales change every 16 elements: isum = sc₀·dot₀ + sc₁·dot₁
	Min        bool   // a minimum is subtracted (or, in Q4_1, added)
	Plus       bool   // the minimum is added

	// Sub decodes 32-block i of a GGUF block for reference: signed codes, the integer sub-scales of its halves (1 where the
	// format has none), the float scale w and the minimum m of numerics rule 11.
	Sub func(block []byte, i int) Sub32
	// Value dequantises one element by rule 11's last line.
	Value func(s Sub32, i int) float32
	// PackBlock is the scalar reference of packing: it puts GGUF block n of a record's row r in place.
	PackBlock func(record, block []byte, n, r int)
	// Scales lists the byte offsets of the f16 scales within a GGUF block, for the check of rule 14.
	Scales []int

	// Moves describes PackBlock for the generated pack kernel.
	Moves []Move

	// Open decodes part number part of a record: Part of its 32-blocks, which lie alike in every part, so that a loop over
	// parts stays rolled.
	Open func(load LoadAt, part *ir.Value) Record
	Part int
	// At gives 32-block i of a record, i an index value.
	At func(load LoadAt, i *ir.Value) Block
	// PackRest, where set, is what Moves leave of PackBlock in the generated pack kernel: block is the index of the first
	// byte of the lane's GGUF block in rows, n its number in the record.
	PackRest func(b *ir.Builder, rows, packed ir.Memory, block, record, row, mask *ir.Value, n int)
}

// Sub32 is a decoded 32-block of one row.
type Sub32 struct {
	Code [32]int32 // true signed codes
	Sc   [2]int32  // integer scales of the two halves
	W    float32   // float scale
	M    float32   // minimum
}

// Load loads one element of a row of a record: that of type t of a vector of all rows that starts at byte at.
type Load func(t ir.Type, at int) *ir.Value

// Record gives the IR values of 32-block i of a part of a row's record, i constant.
type Record struct {
	Code  func(i, g int) *ir.Value // U8x4: unsigned codes of k = 4g … 4g+3
	Scale func(i int) *ir.Value    // F32: w
	Half  func(i, h int) *ir.Value // I32: integer scale of half h, of formats with Halves
	Min   func(i int) *ir.Value    // F32: m, of formats with Min
}

// Move copies part of a GGUF block to a record, lane = row: Words words of four bytes from byte From, word w to byte
// To + 64·w + 4·row; or, where Half is set, Words half-words (f16) to To + 32·w + 2·row; or bytes where Byte is set, to
// To + 16·w + row. Xor flips bits of every word. Block n of the record adds n·Stride to To.
type Move struct {
	From, To, Words, Stride int
	Half, Byte              bool
	Xor                     uint32
}

// Formats returns every format, in order of name.
func Formats() []*Format {
	return []*Format{Q4_0(), Q4_1(), Q4K(), Q5_0(), Q5_1(), Q5K(), Q6K(), Q8_0()}
}

// Records returns how many records a row of k elements takes.
func (f *Format) Records(k int) int { return (k + f.Span - 1) / f.Span }

// TileBytes returns the size of a packed tile of rows of k elements.
func (f *Format) TileBytes(k int) int { return f.Records(k) * f.Record }

// PackedBytes returns the size of a packed matrix of n rows of k elements.
func (f *Format) PackedBytes(n, k int) int { return (n + Rows - 1) / Rows * f.TileBytes(k) }

// RowBytes returns the size of a GGUF row of k elements.
func (f *Format) RowBytes(k int) int { return k / f.Block * f.BlockBytes }

// Pack is the scalar reference of the pack kernel: n GGUF rows of k elements to tiles.
func (f *Format) Pack(rows []byte, n, k int) []byte {
	out := make([]byte, f.PackedBytes(n, k))
	per := f.Span / f.Block
	for r := range n {
		for blk := range k / f.Block {
			record := out[r/Rows*f.TileBytes(k)+blk/per*f.Record:][:f.Record]
			block := rows[r*f.RowBytes(k)+blk*f.BlockBytes:][:f.BlockBytes]
			f.PackBlock(record, block, blk%per, r%Rows)
		}
	}
	return out
}

// Row dequantises a GGUF row, element by element.
func (f *Format) Row(row []byte, k int) []float32 {
	out := make([]float32, 0, k)
	for blk := range k / f.Block {
		for i := range f.Block / 32 {
			s := f.Sub(row[blk*f.BlockBytes:][:f.BlockBytes], i)
			for j := range 32 {
				out = append(out, f.Value(s, j))
			}
		}
	}
	return out
}

// packMoves performs the moves of one block: what every PackBlock is.
func packMoves(moves []Move) func(record, block []byte, n, r int) {
	return func(record, block []byte, n, r int) {
		for _, m := range moves {
			to := m.To + n*m.Stride
			for w := range m.Words {
				switch {
				case m.Half:
					copy(record[to+32*w+2*r:][:2], block[m.From+2*w:])
				case m.Byte:
					record[to+16*w+r] = block[m.From+w]
				default:
					v := binary.LittleEndian.Uint32(block[m.From+4*w:]) ^ m.Xor
					binary.LittleEndian.PutUint32(record[to+64*w+4*r:], v)
				}
			}
		}
	}
}

// halfFloat reads the f16 at byte at.
func halfFloat(b []byte, at int) float32 {
	h := binary.LittleEndian.Uint16(b[at:])
	sign, exp, frac := uint32(h>>15)<<31, uint32(h>>10&31), uint32(h&1023)
	switch exp {
	case 0:
		v := float32(float32(frac) * (1.0 / (1 << 24)))
		return math.Float32frombits(math.Float32bits(v) | sign)
	case 31:
		return math.Float32frombits(sign | 0x7F800000 | frac<<13)
	}
	return math.Float32frombits(sign | (exp+112)<<23 | frac<<13)
}

// linear is Value for scales without a minimum: (d·sc)·q.
func linear(s Sub32, i int) float32 {
	return float32(float32(s.W*float32(s.Sc[i/16])) * float32(s.Code[i]))
}

// ones are the sub-scales of formats without them.
var ones = [2]int32{1, 1}
