package layout

import "fmt"

// A Tile is a tile of a matrix in shared memory: Rows rows of RowBytes bytes, in
// chunks of 16 bytes. It can lie there in three ways, each a layout of bytes with
// coordinates (row, byte): plain, padded and swizzled.
type Tile struct{ Rows, RowBytes int }

const (
	chunk = 16 // bytes that a lane copies, and of a row of ldmatrix

	// Padding is what a padded row is longer by, in bytes: the usual cure for bank
	// conflicts, which is 16/(RowBytes+16) of the padded tile.
	Padding = chunk
)

// Validate reports a tile with no rows, and rows that are not whole chunks.
func (t Tile) Validate() error {
	if t.Rows < 1 || t.RowBytes < chunk || t.RowBytes%chunk != 0 || t.Rows > maxOffset/(t.RowBytes+Padding) {
		return fmt.Errorf("layout: tile of %d rows of %d bytes: want at least one row, and rows of a positive multiple of %d", t.Rows, t.RowBytes, chunk)
	}
	return nil
}

// Plain returns the tile with its rows one after the other.
func (t Tile) Plain() Swizzled { return Swizzled{Layout: t.pitch(t.RowBytes)} }

// Padded returns the tile with [Padding] behind each row.
func (t Tile) Padded() Swizzled { return Swizzled{Layout: t.pitch(t.RowBytes + Padding)} }

// Swizzled returns the plain tile under the swizzle of [ForRows]. It panics if
// Validate has an error.
func (t Tile) Swizzled() Swizzled {
	s, err := ForRows(t.RowBytes)
	if err != nil {
		panic(err)
	}
	return Swizzled{t.pitch(t.RowBytes), s}
}

// pitch returns the layout of rows that start bytes apart.
func (t Tile) pitch(bytes int) Layout {
	return Layout{[]int{t.Rows, t.RowBytes}, []int{bytes, 1}}
}

// Bytes returns what the tile takes under one of its layouts: rows times pitch,
// as tiles follow each other, so the last row's padding counts.
func (t Tile) Bytes(l Swizzled) int { return t.Rows * l.Stride[0] }

// LdMatrix returns the wavefronts of the worst ldmatrix.x4 that reads 16 rows by
// 32 bytes under one of the tile's layouts, and how many it would take without
// bank conflicts. Smaller tiles leave lanes out.
func (t Tile) LdMatrix(l Swizzled) (wavefronts, ideal int) {
	var worst access
	for row := 0; row < t.Rows; row += 16 {
		for at := 0; at < t.RowBytes; at += 2 * chunk {
			worst = worst.orWorse(t.warp(l, func(lane int) (int, int) { return row + lane%16, at + lane/16*chunk }))
		}
	}
	return worst.wavefronts, worst.ideal
}

// Copies returns the wavefronts of the worst store of a warp that fills the tile
// under one of its layouts, 16 bytes a lane and row by row, and how many it would
// take without bank conflicts.
func (t Tile) Copies(l Swizzled) (wavefronts, ideal int) {
	var worst access
	for first := 0; first < t.Rows*t.RowBytes; first += 32 * chunk {
		worst = worst.orWorse(t.warp(l, func(lane int) (int, int) {
			at := first + lane*chunk
			return at / t.RowBytes, at % t.RowBytes
		}))
	}
	return worst.wavefronts, worst.ideal
}

// warp counts an access of 16 bytes a lane; lanes outside the tile are left out.
func (t Tile) warp(l Swizzled, at func(lane int) (row, byteInRow int)) access {
	var addresses [32]int
	for lane := range addresses {
		row, b := at(lane)
		addresses[lane] = -1
		if row < t.Rows && b < t.RowBytes {
			addresses[lane] = l.Offset(row, b)
		}
	}
	var a access
	a.wavefronts, a.ideal = Conflicts(addresses[:], chunk)
	return a
}

// access is what an access costs.
type access struct{ wavefronts, ideal int }

// orWorse returns the one with the higher ratio of wavefronts to ideal ones, and of equal ones the first.
func (a access) orWorse(b access) access {
	if b.wavefronts*max(a.ideal, 1) > a.wavefronts*max(b.ideal, 1) {
		return b
	}
	return a
}

// BankGroup returns which eighth of the banks holds a chunk of 16 bytes at that
// byte address: group g is the banks 4g to 4g+3.
func BankGroup(address int) int { return address / chunk % (banks * bankBytes / chunk) }
