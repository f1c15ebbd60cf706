package ops

import (
	"encoding/binary"
	"fmt"

	"github.com/swizzle-rt/swizzle/ir"
)

// Compare returns the first difference of two contents of a buffer of that element type, or nil. Bits must be equal; all
// NaN of a float type are one (numerics rule 6).
func Compare(t ir.Type, got, want []byte) error {
	if len(got) != len(want) {
		return fmt.Errorf("%d bytes, want %d", len(got), len(want))
	}
	size := t.Bytes()
	for i := 0; i+size <= len(want); i += size {
		g, w := element(got[i:], size), element(want[i:], size)
		if g == w || isNaN(t, g) && isNaN(t, w) {
			continue
		}
		return fmt.Errorf("element %d (%s) is %0*X, want %0*X", i/size, t, 2*size, g, 2*size, w)
	}
	return nil
}

func element(b []byte, size int) uint32 {
	switch size {
	case 1:
		return uint32(b[0])
	case 2:
		return uint32(binary.LittleEndian.Uint16(b))
	}
	return binary.LittleEndian.Uint32(b)
}

func isNaN(t ir.Type, bits uint32) bool {
	switch t {
	case ir.F32:
		return bits&0x7FFFFFFF > 0x7F800000
	case ir.F16:
		return bits&0x7FFF > 0x7C00
	case ir.BF16:
		return bits&0x7FFF > 0x7F80
	}
	return false
}
