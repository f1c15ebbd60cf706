package target

import "github.com/swizzle-rt/swizzle/ir"

// Atoms of NVIDIA's tensor cores for signed bytes (PTX ISA, mma.sync). In each a lane is g = lane / 4, t = lane mod 4; a
// register of A holds four neighbouring k of a row, one of B four neighbouring k of a column.

// M8N8K16S8 is mma.m8n8k16 for s8, from sm_75 on.
var M8N8K16S8 = &ir.Atom{
	Name: "m8n8k16.s8", M: 8, N: 8, K: 16,
	A: ir.Fragment{Type: ir.I8x4, Regs: 1, Coord: func(lane, _, elem int) (row, k int) { return lane / 4, 4*(lane%4) + elem }},
	B: ir.Fragment{Type: ir.I8x4, Regs: 1, Coord: func(lane, _, elem int) (k, col int) { return 4*(lane%4) + elem, lane / 4 }},
	C: ir.Fragment{Type: ir.I32, Regs: 2, Coord: func(lane, reg, _ int) (row, col int) { return lane / 4, 2*(lane%4) + reg }},
}

// M16N8K32S8 is mma.m16n8k32 for s8, from sm_80 on. Registers 1 and 3 of A lie 8 rows below, 2 and 3 of A and 1 of B 16 k
// further; registers 2 and 3 of C lie 8 rows below.
var M16N8K32S8 = &ir.Atom{
	Name: "m16n8k32.s8", M: 16, N: 8, K: 32,
	A: ir.Fragment{Type: ir.I8x4, Regs: 4, Coord: func(lane, reg, elem int) (row, k int) {
		return lane/4 + 8*(reg%2), 4*(lane%4) + 16*(reg/2) + elem
	}},
	B: ir.Fragment{Type: ir.I8x4, Regs: 2, Coord: func(lane, reg, elem int) (k, col int) {
		return 4*(lane%4) + 16*reg + elem, lane / 4
	}},
	C: ir.Fragment{Type: ir.I32, Regs: 4, Coord: func(lane, reg, _ int) (row, col int) {
		return lane/4 + 8*(reg/2), 2*(lane%4) + reg%2
	}},
}

// Atoms returns every atom, for [ir.Parse].
func Atoms() []*ir.Atom { return []*ir.Atom{M8N8K16S8, M16N8K32S8} }
