package gen

import (
	"fmt"
	"testing"
)

func TestTiles(t *testing.T) {
	list, err := tiles(shapes, nil)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"64×64 s8":    "5120 4096 20.0",
		"64×64 f16":   "9216 8192 11.1",
		"64×80 f16":   "11264 10240 9.1",
		"128×64 f16":  "18432 16384 11.1",
		"128×128 f16": "34816 32768 5.9",
	}
	for _, x := range list {
		if got := fmt.Sprintf("%d %d %.1f", x.PaddedBytes, x.SwizzledBytes, float64(100*x.Saved())); got != want[x.String()] {
			t.Errorf("%s: %s, want %s", &x, got, want[x.String()])
		}
		if x.LdMatrix.Swizzled != x.LdMatrix.Ideal || x.LdMatrix.Padded != x.LdMatrix.Ideal || x.LdMatrix.Plain <= x.LdMatrix.Ideal ||
			x.Copies.Swizzled != x.Copies.Ideal || x.Copies.Ideal != 4 {
			t.Errorf("%s: ldmatrix %+v, copies %+v", &x, x.LdMatrix, x.Copies)
		}
		for _, o := range x.Occupancy {
			if o.Swizzled < o.Padded {
				t.Errorf("%s: occupancy %+v", &x, o)
			}
		}
		delete(want, x.String())
	}
	if len(want) > 0 {
		t.Errorf("missing: %v", want)
	}
	occupancy := ""
	for _, o := range list[1].Occupancy {
		occupancy += fmt.Sprintf("%s %d %d, ", o.Arch, o.Padded, o.Swizzled)
	}
	if want := "sm_75 1 2, sm_80 4 4, sm_86 2 3, sm_89 2 3, sm_90 5 5, sm_100 5 5, sm_120 2 3, "; occupancy != want {
		t.Errorf("occupancy of %s: %s, want %s", &list[1], occupancy, want)
	}
	if _, err := tiles([]shape{{64, 3, "f16"}}, nil); err == nil {
		t.Error("rows of 6 bytes are accepted")
	}
}
