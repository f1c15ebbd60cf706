// Package tile helps schedules for GPUs to stage tiles of matrices through shared memory under an XOR swizzle.
package tile

import (
	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/layout"
)

// Stage is a shared tile of Rows rows of RowBytes bytes, several times over for a pipeline, swizzled so that the eight rows
// of an ldmatrix phase lie in different banks.
type Stage struct {
	b        *ir.Builder
	mem      ir.Memory
	swizzle  layout.Swizzle // of byte addresses
	rows     int
	rowBytes int
}

// NewStage declares the shared array. plain leaves the swizzle out.
func NewStage(b *ir.Builder, name string, rows, rowBytes, stages int, plain bool) *Stage {
	s, err := layout.ForRows(rowBytes)
	if err != nil {
		b.Fail("stage %s: %v", name, err)
	}
	if plain {
		s = layout.Swizzle{}
	}
	return &Stage{b, b.Shared(name, ir.I8x4, rows*rowBytes/4*stages), s, rows, rowBytes}
}

// at returns the word index of a byte of a row in a stage.
func (s *Stage) at(stage, row, byteInRow *ir.Value) *ir.Value {
	a := stage.Mul(s.rows).Add(row).Mul(s.rowBytes).Add(byteInRow)
	if s.swizzle.B > 0 {
		a = a.Xor(a.And((1<<s.swizzle.B - 1) << (s.swizzle.M + s.swizzle.S)).Shr(s.swizzle.S))
	}
	return a.Shr(2)
}

// Copy starts asynchronous copies of a tile, 16 bytes a lane and turn: row r of the tile from byte first of row
// origin + r of src, rows of stride bytes; zeros for rows from limit on and for bytes from width on.
func (s *Stage) Copy(groups int, stage *ir.Value, src ir.Memory, origin, limit, first, width, stride *ir.Value) {
	b := s.b
	lanes := groups * b.Lanes()
	chunks := s.rowBytes / 16
	thread := b.Group().Mul(b.Lanes()).Add(b.Lane())
	for turn := 0; turn < s.rows*chunks; turn += lanes {
		n := thread.Add(turn)
		row, at := n.Div(chunks), n.Mod(chunks).Mul(16)
		from := first.Add(at)
		mask := origin.Add(row).Lt(limit).AndB(from.Lt(width))
		b.AsyncCopy(s.mem, s.at(stage, row, at), src.As(ir.I8), origin.Add(row).Mul(stride).Add(from), mask)
	}
}

// LoadA returns the registers of a 16 × 32 byte operand A: rows from row on, bytes from at on.
func (s *Stage) LoadA(stage, row *ir.Value, at int) []*ir.Value {
	l := s.b.Lane()
	return s.b.LdMatrix(s.mem, 4, s.at(stage, row.Add(l.And(15)), l.Shr(4).Mul(16).Add(at)))
}

// LoadB returns the registers of a 32 × 8 operand B, whose columns are the tile's rows: rows from row on, bytes from at on.
func (s *Stage) LoadB(stage, row *ir.Value, at int) []*ir.Value {
	l := s.b.Lane()
	return s.b.LdMatrix(s.mem, 2, s.at(stage, row.Add(l.And(7)), l.Shr(3).And(1).Mul(16).Add(at)))
}
