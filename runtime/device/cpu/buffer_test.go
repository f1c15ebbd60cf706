package cpu

import (
	"math"
	"testing"
	"unsafe"
)

func TestAlloc(t *testing.T)   { testBuffer(t, Alloc) }
func TestReserve(t *testing.T) { testBuffer(t, Reserve) }

func testBuffer(t *testing.T, alloc func(int) (*Buffer, error)) {
	for _, n := range []int{0, 1, 63, 64, 65, 4096, hugePage - 1, hugePage, hugePage + 1, 3*hugePage + 4095} {
		b, err := alloc(n)
		if err != nil {
			t.Fatalf("Alloc(%d): %v", n, err)
		}
		data := b.Bytes()
		if len(data) != n || cap(data) != (n+63)/64*64 {
			t.Errorf("Alloc(%d): len %d, cap %d", n, len(data), cap(data))
		}
		if n > 0 && uintptr(unsafe.Pointer(&data[0]))%alignment != 0 {
			t.Errorf("Alloc(%d): at %p", n, &data[0])
		}
		for i, v := range data[:cap(data)] {
			if v != 0 {
				t.Fatalf("Alloc(%d): byte %d is %d", n, i, v)
			}
			data[:cap(data)][i] = 1
		}
		for range 2 {
			if err := b.Free(); err != nil {
				t.Errorf("free of %d bytes: %v", n, err)
			}
			if b.Bytes() != nil {
				t.Errorf("freed buffer of %d bytes has bytes", n)
			}
		}
	}
}

func TestAllocError(t *testing.T) {
	for _, n := range []int{-1, math.MinInt, math.MaxInt} {
		if b, err := Alloc(n); err == nil {
			t.Errorf("Alloc(%d) = %v, nil", n, b)
		}
	}
}
