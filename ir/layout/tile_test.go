package layout

import "testing"

// TestTile compares with figures that were counted by hand or by another program.
func TestTile(t *testing.T) {
	type counts struct{ plain, padded, swizzled int } // wavefronts of 4
	for _, test := range []struct {
		name             string
		tile             Tile
		padded, bytes    int
		ldmatrix, copies counts
	}{
		{"64x64 f16", Tile{64, 128}, 9216, 8192, counts{32, 4, 4}, counts{4, 4, 4}},
		{"128x64 f16", Tile{128, 128}, 18432, 16384, counts{32, 4, 4}, counts{4, 4, 4}},
		{"128x128 f16", Tile{128, 256}, 34816, 32768, counts{32, 4, 4}, counts{4, 4, 4}},
		// A row of ten chunks is padded to eleven: of the first four phases of eight chunks three cross the padding, and the
		// chunks at their ends are eight apart.
		{"64x80 f16", Tile{64, 160}, 11264, 10240, counts{8, 4, 4}, counts{4, 7, 4}},
		{"64x64 s8", Tile{64, 64}, 5120, 4096, counts{16, 4, 4}, counts{4, 8, 4}},
	} {
		if err := test.tile.Validate(); err != nil {
			t.Error(err)
		}
		plain, padded, swizzled := test.tile.Plain(), test.tile.Padded(), test.tile.Swizzled()
		if p, s := test.tile.Bytes(padded), test.tile.Bytes(swizzled); p != test.padded || s != test.bytes || s != test.tile.Bytes(plain) {
			t.Errorf("%s: %d bytes padded, %d swizzled, want %d and %d", test.name, p, s, test.padded, test.bytes)
		}
		count := func(f func(Swizzled) (int, int)) (c counts) {
			for l, n := range map[*Swizzled]*int{&plain: &c.plain, &padded: &c.padded, &swizzled: &c.swizzled} {
				w, ideal := f(*l)
				if ideal != 4 {
					t.Errorf("%s: %v: %d wavefronts without conflicts, want 4", test.name, l, ideal)
				}
				*n = w
			}
			return c
		}
		if got := count(test.tile.LdMatrix); got != test.ldmatrix {
			t.Errorf("%s: ldmatrix takes %+v wavefronts, want %+v", test.name, got, test.ldmatrix)
		}
		if got := count(test.tile.Copies); got != test.copies {
			t.Errorf("%s: copies take %+v wavefronts, want %+v", test.name, got, test.copies)
		}
	}
}

// Tiles of fewer rows and bytes than an access has lanes for.
func TestSmallTile(t *testing.T) {
	for rows := 1; rows <= 20; rows++ {
		for rowBytes := 16; rowBytes <= 144; rowBytes += 16 {
			tile := Tile{rows, rowBytes}
			l := tile.Swizzled()
			if w, ideal := tile.LdMatrix(l); w != ideal || ideal < 1 || ideal > 4 {
				t.Errorf("%+v: ldmatrix in %d wavefronts of %d", tile, w, ideal)
			}
			if w, ideal := tile.Copies(l); w != ideal || ideal < 1 || ideal > 4 {
				t.Errorf("%+v: copies in %d wavefronts of %d", tile, w, ideal)
			}
		}
	}
	if w, ideal := (Tile{3, 16}).LdMatrix(Tile{3, 16}.Plain()); w != 1 || ideal != 1 {
		t.Errorf("three rows: %d wavefronts of %d", w, ideal)
	}
}

func TestTileValidate(t *testing.T) {
	for _, tile := range []Tile{{}, {0, 16}, {-1, 16}, {1, 0}, {1, -16}, {1, 8}, {1, 40}, {1 << 60, 16}} {
		if tile.Validate() == nil {
			t.Errorf("%+v is valid", tile)
		}
	}
}

func TestBankGroup(t *testing.T) {
	for address, want := range map[int]int{0: 0, 15: 0, 16: 1, 127: 7, 128: 0, 176: 3} {
		if got := BankGroup(address); got != want {
			t.Errorf("address %d is in group %d, want %d", address, got, want)
		}
	}
}
