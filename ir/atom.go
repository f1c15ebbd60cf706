package ir

// Atom is a matrix instruction C = A·B + C of one lane group: its shape, its register types and which element each lane's
// register holds. Instances are data of ir/target.
type Atom struct {
	Name    string
	M, N, K int
	A, B, C Fragment
}

// Fragment describes how one operand is spread over the lanes: Regs registers of Type a lane; a packed register holds
// several elements. Coord gives the row and the column of element e of register r in a lane; for B that is (k, n).
type Fragment struct {
	Type  Type
	Regs  int
	Coord func(lane, reg, elem int) (row, col int)
}

// Elems returns how many elements one register holds.
func (f Fragment) Elems() int {
	if f.Type == I8x4 || f.Type == U8x4 {
		return 4
	}
	return 1
}
