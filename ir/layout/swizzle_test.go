package layout

import (
	"fmt"
	"testing"
)

func TestSwizzle(t *testing.T) {
	for _, test := range []struct {
		s       Swizzle
		x, want int
	}{
		{Swizzle{3, 4, 3}, 0b1010_0000000, 0b1011_0100000 &^ 0b0001_0000000}, // row 2 of 128 bytes: chunk 0 to 2
		{Swizzle{3, 4, 3}, 128 + 16, 128},
		{Swizzle{2, 4, 3}, 0b110110101, 0b110000101},
		{Swizzle{1, 0, -1}, 1, 3},
		{Swizzle{}, 12345, 12345},
		{Swizzle{0, 4, 3}, 12345, 12345},
	} {
		if got := test.s.Apply(test.x); got != test.want {
			t.Errorf("%v.Apply(%b) = %b, want %b", test.s, test.x, got, test.want)
		}
	}
}

// TestSwizzleLaws checks, for every small swizzle, that it is its own inverse,
// the definition bit by bit, and that it maps each of its blocks onto itself.
func TestSwizzleLaws(t *testing.T) {
	for b := range 4 {
		for m := range 5 {
			for shift := -5; shift <= 5; shift++ {
				s := Swizzle{b, m, shift}
				if err := s.Validate(); err != nil {
					if shift >= b || -shift >= b {
						t.Errorf("%v: %v", s, err)
					}
					continue
				}
				for x := range 1 << 13 {
					y := s.Apply(x)
					if s.Apply(y) != x {
						t.Fatalf("%v: %d goes to %d and back to %d", s, x, y, s.Apply(y))
					}
					if x/s.block() != y/s.block() {
						t.Fatalf("%v: %d leaves its block of %d to %d", s, x, s.block(), y)
					}
					want := x
					for k := range b {
						from, to := m+k+max(shift, 0), m+k-min(shift, 0)
						want ^= x >> from & 1 << to
					}
					if y != want {
						t.Fatalf("%v.Apply(%b) = %b, want %b", s, x, y, want)
					}
				}
			}
		}
	}
}

func TestSwizzleValidate(t *testing.T) {
	const huge = int(^uint(0) >> 1)
	for _, s := range []Swizzle{{-1, 0, 3}, {3, -1, 3}, {3, 4, 2}, {3, 4, -2}, {1, 0, 0}, {20, 20, 20}, {0, huge, 0}, {0, 0, huge}, {0, 0, -huge - 1}, {huge, 0, huge}, {1, 0, 48}} {
		if s.Validate() == nil {
			t.Errorf("%v is valid", s)
		}
	}
	for _, s := range []Swizzle{{}, {0, 4, 3}, {3, 4, 3}, {3, 4, -3}, {5, 2, 5}, {1, 0, 47}, {16, 16, 16}} {
		if err := s.Validate(); err != nil {
			t.Error(err)
		}
	}
}

func TestSwizzled(t *testing.T) {
	l := Swizzled{RowMajor(8, 128), Swizzle{3, 4, 3}}
	for row := range 8 {
		for col := range 128 {
			want := row*128 + (col/16^row)*16 + col%16
			if got := l.Offset(row, col); got != want {
				t.Fatalf("%v: (%d,%d) at %d, want %d", l, row, col, got, want)
			}
			if got := l.At(row + 8*col); got != want {
				t.Fatalf("%v: At(%d) = %d, want %d", l, row+8*col, got, want)
			}
		}
	}
	for _, test := range []struct {
		l    Swizzled
		want int
	}{
		{Swizzled{RowMajor(8, 128), Swizzle{3, 4, 3}}, 1024},
		{Swizzled{RowMajor(3, 5), Swizzle{}}, 15},
		{Swizzled{RowMajor(3, 5), Swizzle{0, 4, 3}}, 15},
		{Swizzled{RowMajor(3, 5), Swizzle{1, 2, 2}}, 16},
		{Swizzled{RowMajor(3, 5), Swizzle{2, 1, -3}}, 64},
	} {
		if got := test.l.Cosize(); got != test.want {
			t.Errorf("%v: cosize %d, want %d", test.l, got, test.want)
		}
		seen := map[int]bool{}
		for i := range test.l.Size() {
			at := test.l.At(i)
			if at >= test.l.Cosize() || seen[at] {
				t.Errorf("%v: index %d at %d", test.l, i, at)
			}
			seen[at] = true
		}
	}
}

func TestParseSwizzled(t *testing.T) {
	for _, l := range []Swizzled{{}, {RowMajor(8, 128), Swizzle{}}, {RowMajor(8, 128), Swizzle{3, 4, 3}}, {ColMajor(2, 3), Swizzle{1, 0, -4}}, {RowMajor(4), Swizzle{0, 4, 3}}} {
		if got, err := ParseSwizzled(l.String()); err != nil || !got.Equal(l) {
			t.Errorf("%v parsed as %v, %v", l, got, err)
		}
		if got, err := ParseSwizzle(l.Swizzle.String()); err != nil || got != l.Swizzle {
			t.Errorf("%v parsed as %v, %v", l.Swizzle, got, err)
		}
	}
	if got := (Swizzled{RowMajor(8, 128), Swizzle{3, 4, 3}}).String(); got != "Sw<3,4,3> o (8,128):(128,1)" {
		t.Errorf("printed as %q", got)
	}
	for _, text := range []string{"Sw<3,4,3>", "Sw<3,4,3> (8):(1)", "Sw<3,4> o (8):(1)", "Sw<3,4,2> o (8):(1)", "Sw<0,0,0> o (8):(1)", "Sw<3,4,3> o ", "Sw<3, 4,3> o (8):(1)", "sw<3,4,3> o (8):(1)"} {
		if l, err := ParseSwizzled(text); err == nil {
			t.Errorf("%q parsed as %v", text, l)
		}
	}
}

func TestForRows(t *testing.T) {
	for _, test := range []struct {
		bytes int
		want  Swizzle
	}{
		{16, Swizzle{}}, {32, Swizzle{1, 4, 3}}, {64, Swizzle{2, 4, 3}}, {128, Swizzle{3, 4, 3}}, {256, Swizzle{3, 4, 4}},
		{512, Swizzle{3, 4, 5}}, {48, Swizzle{}}, {160, Swizzle{1, 4, 3}}, {192, Swizzle{2, 4, 3}}, {384, Swizzle{3, 4, 3}},
	} {
		if got, err := ForRows(test.bytes); err != nil || got != test.want {
			t.Errorf("ForRows(%d) = %v, %v, want %v", test.bytes, got, err, test.want)
		}
	}
	for _, n := range []int{0, -16, 8, 100, 1 << 60} {
		if s, err := ForRows(n); err == nil {
			t.Errorf("ForRows(%d) = %v", n, s)
		}
	}
}

// tile is a tile of bytes in shared memory; at gives the address of a byte.
type tile struct {
	rows, rowBytes int
	at             func(row, col int) int
}

func swizzledTile(t *testing.T, rows, rowBytes int) tile {
	t.Helper()
	s, err := ForRows(rowBytes)
	if err != nil {
		t.Fatal(err)
	}
	l := Swizzled{RowMajor(rows, rowBytes), s}
	if l.Cosize() != rows*rowBytes {
		t.Fatalf("%v needs %d bytes, not %d", l, l.Cosize(), rows*rowBytes)
	}
	return tile{rows, rowBytes, func(row, col int) int { return l.Offset(row, col) }}
}

func pitchedTile(rows, rowBytes, pitch int) tile {
	l := Layout{[]int{rows, rowBytes}, []int{pitch, 1}}
	return tile{rows, rowBytes, func(row, col int) int { return l.Offset(row, col) }}
}

// ldmatrix returns the wavefronts of the worst ldmatrix.x4 of a tile, whose lanes
// 8i to 8i+7 address eight rows of matrix i: two by two matrices, one
// below the other first.
func (t tile) ldmatrix() int {
	worst := 0
	for row := 0; row+16 <= t.rows; row++ {
		for col := 0; col < t.rowBytes; col += 16 {
			var a [32]int
			for lane := range a {
				a[lane] = t.at(row+lane%16, (col+lane/16*16)%t.rowBytes)
			}
			w, _ := Conflicts(a[:], 16)
			worst = max(worst, w)
		}
	}
	return worst
}

// copies returns the wavefronts of the worst copy of 512 bytes, 16 a lane, into
// the tile in the order of its rows.
func (t tile) copies() int {
	worst := 0
	for start := 0; start < t.rows*t.rowBytes; start += 512 {
		var a [32]int
		for lane := range a {
			b := (start + 16*lane) % (t.rows * t.rowBytes)
			a[lane] = t.at(b/t.rowBytes, b%t.rowBytes)
		}
		w, _ := Conflicts(a[:], 16)
		worst = max(worst, w)
	}
	return worst
}

// columns returns the wavefronts of the worst read of one 4-byte column by 32
// lanes, a row each.
func (t tile) columns() int {
	worst := 0
	for col := 0; col < t.rowBytes; col += 4 {
		var a [32]int
		for lane := range a {
			a[lane] = t.at(lane, col)
		}
		w, _ := Conflicts(a[:], 4)
		worst = max(worst, w)
	}
	return worst
}

// TestForRowsFree counts every ldmatrix and copy of tiles of every row length up
// to 1024 bytes, and checks that the swizzle keeps each byte in its row.
func TestForRowsFree(t *testing.T) {
	for rowBytes := 16; rowBytes <= 1024; rowBytes += 16 {
		s := swizzledTile(t, 48, rowBytes)
		if got := s.ldmatrix(); got != 4 {
			t.Errorf("rows of %d bytes: ldmatrix.x4 in %d wavefronts", rowBytes, got)
		}
		if got := s.copies(); got != 4 {
			t.Errorf("rows of %d bytes: copy in %d wavefronts", rowBytes, got)
		}
		for row := range s.rows {
			for col := range rowBytes {
				if s.at(row, col)/rowBytes != row {
					t.Fatalf("rows of %d bytes: byte (%d,%d) is moved to row %d", rowBytes, row, col, s.at(row, col)/rowBytes)
				}
			}
		}
	}
}

// TestRowFormula checks that the choice by row number, chunk ^= row/(8/g) mod g
// with g = gcd(chunks, 8), is as free of conflicts, and that ForRows is the same
// map where rows are a power of two.
func TestRowFormula(t *testing.T) {
	for rowBytes := 16; rowBytes <= 1024; rowBytes += 16 {
		chunks := rowBytes / 16
		g := 1
		for g < 8 && chunks%(2*g) == 0 {
			g *= 2
		}
		byRow := tile{48, rowBytes, func(row, col int) int {
			return row*rowBytes + (col/16^row/(8/g)%g)*16 + col%16
		}}
		if got := byRow.ldmatrix(); got != 4 {
			t.Errorf("rows of %d bytes: ldmatrix.x4 in %d wavefronts", rowBytes, got)
		}
		if chunks&(chunks-1) != 0 {
			continue
		}
		s := swizzledTile(t, 48, rowBytes)
		for row := range 48 {
			for col := range rowBytes {
				if s.at(row, col) != byRow.at(row, col) {
					t.Fatalf("rows of %d bytes: (%d,%d) at %d, by row %d", rowBytes, row, col, s.at(row, col), byRow.at(row, col))
				}
			}
		}
	}
}

// TestSavings compares swizzled tiles with 16 bytes of padding a row, the usual
// cure for bank conflicts: padding is 16/(row+16) of the padded tile.
func TestSavings(t *testing.T) {
	for _, test := range []struct {
		name             string
		rows, cols, size int
		plain            int // wavefronts of ldmatrix.x4 without either
		padded, swizzled int // bytes
		saved            string
		paddedCopies     int // wavefronts of copies into the padded tile
	}{
		{"64x64 f16", 64, 64, 2, 32, 9216, 8192, "-11.1 %", 4},
		{"128x64 f16", 128, 64, 2, 32, 18432, 16384, "-11.1 %", 4},
		{"128x128 f16", 128, 128, 2, 32, 34816, 32768, "-5.9 %", 4},
		{"64x80 f16", 64, 80, 2, 8, 11264, 10240, "-9.1 %", 0},
		{"64x64 s8", 64, 64, 1, 16, 5120, 4096, "-20.0 %", 8},
	} {
		rowBytes := test.cols * test.size
		plain := pitchedTile(test.rows, rowBytes, rowBytes)
		padded := pitchedTile(test.rows, rowBytes, rowBytes+16)
		swizzled := swizzledTile(t, test.rows, rowBytes)
		if got := test.rows * (rowBytes + 16); got != test.padded {
			t.Errorf("%s: padded to %d bytes, want %d", test.name, got, test.padded)
		}
		if got := test.rows * rowBytes; got != test.swizzled {
			t.Errorf("%s: %d bytes, want %d", test.name, got, test.swizzled)
		}
		saved := fmt.Sprintf("%.1f %%", float64(100*(float64(test.swizzled)/float64(test.padded)-1)))
		if saved != test.saved {
			t.Errorf("%s: saves %s, want %s", test.name, saved, test.saved)
		}
		if got := plain.ldmatrix(); got != test.plain {
			t.Errorf("%s: plain ldmatrix.x4 in %d wavefronts, want %d", test.name, got, test.plain)
		}
		if p, s := padded.ldmatrix(), swizzled.ldmatrix(); p != 4 || s != 4 {
			t.Errorf("%s: ldmatrix.x4 in %d wavefronts padded, %d swizzled", test.name, p, s)
		}
		if got := padded.copies(); test.paddedCopies != 0 && got != test.paddedCopies {
			t.Errorf("%s: copies into the padded tile in %d wavefronts, want %d", test.name, got, test.paddedCopies)
		}
		if got := swizzled.copies(); got != 4 {
			t.Errorf("%s: copies in %d wavefronts", test.name, got)
		}
	}
}

// TestColumnWalk shows what a swizzle of 16-byte chunks does not cure, and that
// one of words does.
func TestColumnWalk(t *testing.T) {
	if got := pitchedTile(64, 128, 128).columns(); got != 32 {
		t.Errorf("plain: %d wavefronts", got)
	}
	if got := swizzledTile(t, 64, 128).columns(); got != 4 {
		t.Errorf("swizzled by chunks: %d wavefronts", got)
	}
	words := Swizzled{RowMajor(64, 128), Swizzle{5, 2, 5}}
	if got := (tile{64, 128, func(row, col int) int { return words.Offset(row, col) }}).columns(); got != 1 {
		t.Errorf("swizzled by words: %d wavefronts", got)
	}
}

func TestConflicts(t *testing.T) {
	lanes := func(n int, f func(lane int) int) []int {
		a := make([]int, n)
		for i := range a {
			a[i] = f(i)
		}
		return a
	}
	for _, test := range []struct {
		name              string
		addresses         []int
		width             int
		wavefronts, ideal int
	}{
		{"contiguous words", lanes(32, func(i int) int { return 4 * i }), 4, 1, 1},
		{"one word", lanes(32, func(int) int { return 64 }), 4, 1, 1},
		{"bytes of eight words", lanes(32, func(i int) int { return i }), 1, 1, 1},
		{"halves", lanes(32, func(i int) int { return 2 * i }), 2, 1, 1},
		{"every second word", lanes(32, func(i int) int { return 8 * i }), 4, 2, 1},
		{"one bank", lanes(32, func(i int) int { return 128 * i }), 4, 32, 1},
		{"odd pitch", lanes(32, func(i int) int { return 132 * i }), 4, 1, 1},
		{"contiguous 8", lanes(32, func(i int) int { return 8 * i }), 8, 2, 2},
		{"every second 8", lanes(32, func(i int) int { return 16 * i }), 8, 4, 2},
		{"contiguous 16", lanes(32, func(i int) int { return 16 * i }), 16, 4, 4},
		{"one bank group", lanes(32, func(i int) int { return 128 * i }), 16, 32, 4},
		{"one matrix", lanes(8, func(i int) int { return 16 * i }), 16, 1, 1},
		{"inactive lanes", lanes(32, func(i int) int { return 128*i - 2048 }), 4, 16, 1},
		{"inactive phases", lanes(32, func(i int) int { return 16*i - 256 }), 16, 2, 2},
		{"no lanes", nil, 4, 0, 0},
	} {
		w, i := Conflicts(test.addresses, test.width)
		if w != test.wavefronts || i != test.ideal {
			t.Errorf("%s: %d wavefronts, ideal %d; want %d, %d", test.name, w, i, test.wavefronts, test.ideal)
		}
	}
	addresses := lanes(32, func(i int) int { return 4 * i })
	if n := testing.AllocsPerRun(10, func() { Conflicts(addresses, 4) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
