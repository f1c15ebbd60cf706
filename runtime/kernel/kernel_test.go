package kernel

import (
	"testing"
	"unsafe"
)

// Assembly reads Args by these offsets.
func TestArgsOffsets(t *testing.T) {
	var a Args
	for _, c := range []struct {
		name string
		got  uintptr
		want uintptr
	}{
		{"Int", unsafe.Offsetof(a.Int), 96},
		{"F32", unsafe.Offsetof(a.F32), 192},
		{"Scratch", unsafe.Offsetof(a.Scratch), 208},
	} {
		if c.got != c.want {
			t.Errorf("%s lies at %d, assembly expects %d", c.name, c.got, c.want)
		}
	}
}

func TestParseName(t *testing.T) {
	n, err := ParseName("gemm_q8_0__m12k2__avx2")
	if err != nil || n != (Name{"gemm_q8_0", "m12k2", "avx2"}) || n.String() != "gemm_q8_0__m12k2__avx2" {
		t.Fatalf("got %v, %v", n, err)
	}
	if v, ok := n.Param("m"); v != 12 || !ok {
		t.Errorf("m = %d, %v", v, ok)
	}
	if _, ok := n.Param("x"); ok {
		t.Error("x is there")
	}
	for _, bad := range []string{"", "a", "a__b", "a__any", "a____avx2", "a__12__avx2", "a__m__avx2", "a__m1m2__avx2", "a__M1__avx2", "__any__avx2", "a__any__"} {
		if _, err := ParseName(bad); err == nil {
			t.Errorf("%q is accepted", bad)
		}
	}
}
