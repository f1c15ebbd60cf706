// Package tile helps schedules for GPUs to stage tiles of matrices through shared memory under an XOR swizzle.
package tile

import (
	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/layout"
)

// Stage is a shared tile of rows of a number of bytes, several times over for a pipeline, swizzled so that the eight rows of
// an ldmatrix phase lie in different banks.
type Stage struct {
	b        *ir.Builder
	Memory   ir.Memory      // words
	Words    int            // of one stage
	swizzle  layout.Swizzle // of byte addresses
	rowBytes int
}

// NewStage declares the shared array, of so many tiles. plain leaves the swizzle out.
func NewStage(b *ir.Builder, name string, t layout.Tile, stages int, plain bool) *Stage {
	s, err := layout.ForRows(t.RowBytes)
	if err != nil {
		b.Fail("stage %s: %v", name, err)
	}
	if plain {
		s = layout.Swizzle{}
	}
	words := t.Rows * t.RowBytes / 4
	return &Stage{b, b.Shared(name, ir.I8x4, words*stages), words, s, t.RowBytes}
}

// At returns the word index, within a stage, of a byte of a row.
func (s *Stage) At(row, byteInRow *ir.Value) *ir.Value {
	a := row.Mul(s.rowBytes).Add(byteInRow)
	if s.swizzle.B > 0 {
		a = a.Xor(a.And((1<<s.swizzle.B - 1) << (s.swizzle.M + s.swizzle.S)).Shr(s.swizzle.S))
	}
	return a.Shr(2)
}

// OperandB returns the word index, within a stage, that each lane gives to LdMatrix (x4) for operand B of two 32 × 8
// products, whose columns are rows 0 … 15: the result is the two registers of the first eight rows, then those of the
// others, of bytes 0 … 31. Of rows from a multiple of eight on, the index is that many rows further.
func (s *Stage) OperandB() *ir.Value {
	l := s.b.Lane()
	return s.At(l.And(7).Add(l.Shr(4).Mul(8)), l.Shr(3).And(1).Mul(16))
}

// Transfer is a number of asynchronous copies of 16 bytes from a buffer to shared memory, spread over all lanes of the block.
// Its addresses are computed where it is made: outside of loops.
type Transfer struct {
	b        *ir.Builder
	dst, src ir.Memory
	groups   int
	turns    []turn
}

// turn is one copy of each lane of the first groups.
type turn struct {
	groups int
	Chunk
}

// Chunk says what a lane copies: to a word of shared memory from an element of a buffer, where Mask holds and K is below the
// limit that Start is given, zeros elsewhere.
type Chunk struct{ To, From, Mask, K *ir.Value }

// NewTransfer makes a transfer of a number of chunks, a multiple of the lanes of a group, by all groups of the block: in each
// turn, lane thread of the block copies one.
func NewTransfer(b *ir.Builder, dst, src ir.Memory, chunks, groups int, chunk func(turn int, thread *ir.Value) Chunk) *Transfer {
	t := &Transfer{b: b, dst: dst, src: src, groups: groups}
	if chunks%b.Lanes() != 0 {
		b.Fail("%d copies by groups of %d lanes", chunks, b.Lanes())
	}
	thread := b.Group().Mul(b.Lanes()).Add(b.Lane())
	for left := chunks / b.Lanes(); left > 0; left -= groups {
		n := len(t.turns)
		t.turns = append(t.turns, turn{min(left, groups), chunk(n, thread)})
	}
	return t
}

// Start starts the copies, to words and from elements further on.
func (t *Transfer) Start(to, from, limit *ir.Value) {
	b := t.b
	for _, c := range t.turns {
		part := func() { b.AsyncCopy(t.dst, c.To.Add(to), t.src, c.From.Add(from), c.Mask.AndB(c.K.Lt(limit))) }
		if c.groups < t.groups {
			b.If(b.Group().Lt(c.groups), part)
		} else {
			part()
		}
	}
}
