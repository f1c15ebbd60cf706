package layout

import (
	"slices"
	"strings"
	"testing"
)

// small returns layouts of up to three modes, compact and not, with extents of 1,
// strides of 0, gaps and overlaps.
func small() []Layout {
	modes := []mode{{1, 0, 0}, {1, 5, 0}, {2, 1, 0}, {2, 3, 0}, {3, 0, 0}, {3, 2, 0}, {4, 1, 0}, {4, 2, 0}, {4, 6, 0}, {6, 1, 0}, {6, 4, 0}, {8, 12, 0}}
	layouts := []Layout{{}}
	for _, a := range modes {
		layouts = append(layouts, Layout{}.append(a.extent, a.stride))
		for _, b := range modes {
			two := Layout{[]int{a.extent, b.extent}, []int{a.stride, b.stride}}
			layouts = append(layouts, two)
			for _, c := range modes[2:8] {
				layouts = append(layouts, Layout{[]int{a.extent, b.extent, c.extent}, []int{a.stride, b.stride, c.stride}})
			}
		}
	}
	for _, shape := range [][]int{{7}, {8, 128}, {3, 5, 7}, {2, 1, 4, 3}} {
		layouts = append(layouts, RowMajor(shape...), ColMajor(shape...))
	}
	return layouts
}

func TestNew(t *testing.T) {
	for _, test := range []struct {
		shape, stride []int
		err           string
	}{
		{nil, nil, ""},
		{[]int{8, 128}, []int{128, 1}, ""},
		{[]int{1}, []int{1 << 60}, ""},
		{[]int{1 << 48}, []int{1}, ""},
		{[]int{8}, []int{1, 1}, "1 extents but 2 strides"},
		{[]int{8, 0}, []int{1, 1}, "extent 0 of mode 1"},
		{[]int{-1}, []int{1}, "extent -1 of mode 0"},
		{[]int{2}, []int{-1}, "stride -1 of mode 0"},
		{[]int{1 << 24, 1<<24 + 1}, []int{0, 0}, "coordinates at mode 1"},
		{[]int{2, 2}, []int{1, 1 << 48}, "offset exceeds 2^48 at mode 1"},
		{[]int{1 << 40}, []int{1 << 40}, "offset exceeds 2^48 at mode 0"},
	} {
		l, err := New(test.shape, test.stride)
		if test.err == "" {
			if err != nil || !slices.Equal(l.Shape, test.shape) || !slices.Equal(l.Stride, test.stride) {
				t.Errorf("New(%v, %v) = %v, %v", test.shape, test.stride, l, err)
			}
		} else if err == nil || !strings.Contains(err.Error(), test.err) {
			t.Errorf("New(%v, %v): error %v, want %q", test.shape, test.stride, err, test.err)
		}
	}
}

func TestNewCopies(t *testing.T) {
	shape := []int{2, 3}
	l := must(New(shape, shape))
	shape[0] = 9
	if l.Shape[0] != 2 || l.Stride[0] != 2 {
		t.Errorf("layout changed with the caller's slice: %v", l)
	}
}

func TestMajor(t *testing.T) {
	for _, test := range []struct {
		l    Layout
		text string
	}{
		{RowMajor(8, 128), "(8,128):(128,1)"},
		{ColMajor(8, 128), "(8,128):(1,8)"},
		{RowMajor(2, 3, 5), "(2,3,5):(15,5,1)"},
		{RowMajor(), "():()"},
	} {
		if test.l.String() != test.text {
			t.Errorf("got %v, want %s", test.l, test.text)
		}
		if test.l.Cosize() != test.l.Size() {
			t.Errorf("%v: cosize %d, size %d", test.l, test.l.Cosize(), test.l.Size())
		}
	}
	if got := RowMajor(8, 128).Offset(2, 5); got != 261 {
		t.Errorf("offset of (2,5) is %d, want 261", got)
	}
	for _, shape := range [][]int{{0}, {-2, 3}, {1 << 30, 1 << 30}} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("RowMajor(%v) accepted", shape)
				}
			}()
			RowMajor(shape...)
		}()
	}
}

// offsets returns At of every index, after checking it against Offset and Coord.
func offsets(t *testing.T, l Layout) []int {
	t.Helper()
	v := make([]int, l.Size())
	for i := range v {
		v[i] = l.At(i)
		if got := l.Offset(l.Coord(i)...); got != v[i] {
			t.Fatalf("%v: At(%d) = %d, Offset(Coord) = %d", l, i, v[i], got)
		}
	}
	if got := slices.Max(v) + 1; got != l.Cosize() {
		t.Fatalf("%v: cosize %d, largest offset + 1 is %d", l, l.Cosize(), got)
	}
	return v
}

func checkCoalesce(t *testing.T, l Layout) {
	t.Helper()
	c := l.Coalesce()
	if !slices.Equal(offsets(t, c), offsets(t, l)) {
		t.Errorf("coalesce %v: %v is another function", l, c)
	}
	for i, n := range c.Shape {
		if n == 1 || i > 0 && c.Stride[i] == c.Shape[i-1]*c.Stride[i-1] {
			t.Errorf("coalesce %v: %v has a mode too many", l, c)
		}
	}
}

func checkInverse(t *testing.T, l Layout) {
	t.Helper()
	sorted := offsets(t, l)
	slices.Sort(sorted)
	bijective := slices.Equal(sorted, offsets(t, ColMajor(l.Size())))
	inv, err := l.Inverse()
	if bijective != (err == nil) {
		t.Fatalf("%v: bijective is %v, inverse %v, %v", l, bijective, inv, err)
	}
	if err != nil {
		return
	}
	for i := range l.Size() {
		if inv.At(l.At(i)) != i || l.At(inv.At(i)) != i {
			t.Fatalf("%v: inverse %v fails at %d", l, inv, i)
		}
	}
}

// checkComplement reports whether l has a complement.
func checkComplement(t *testing.T, l Layout, n int) bool {
	t.Helper()
	c, err := l.Complement(n)
	if err != nil {
		return false
	}
	var sums []int
	for _, a := range offsets(t, l) {
		for _, b := range offsets(t, c) {
			sums = append(sums, a+b)
		}
	}
	slices.Sort(sums)
	for i, s := range sums {
		if s != i {
			t.Fatalf("%v with its complement %v in %d reaches %v", l, c, n, sums)
		}
	}
	if len(sums) < n {
		t.Fatalf("%v with its complement %v reaches %d offsets for %d", l, c, len(sums), n)
	}
	return true
}

// checkCompose reports whether a∘b exists.
func checkCompose(t *testing.T, a, b Layout) bool {
	t.Helper()
	r, err := a.Compose(b)
	if err != nil {
		return false
	}
	if r.Size() != b.Size() {
		t.Fatalf("%v ∘ %v = %v: size %d, want %d", a, b, r, r.Size(), b.Size())
	}
	offsets(t, r)
	for i := range b.Size() {
		if r.At(i) != a.At(b.At(i)) {
			t.Fatalf("%v ∘ %v = %v: at %d %d, want %d", a, b, r, i, r.At(i), a.At(b.At(i)))
		}
	}
	return true
}

func TestAlgebra(t *testing.T) {
	layouts := small()
	complements := 0
	for _, l := range layouts {
		checkCoalesce(t, l)
		checkInverse(t, l)
		for _, n := range []int{1, 7, 48} {
			if checkComplement(t, l, n) {
				complements++
			}
		}
	}
	if complements < 100 {
		t.Errorf("only %d complements exist", complements)
	}
}

func TestComposeLaw(t *testing.T) {
	layouts := small()
	exist := 0
	for i := 0; i < len(layouts); i += 3 {
		for j := 0; j < len(layouts); j += 2 {
			if checkCompose(t, layouts[i], layouts[j]) {
				exist++
			}
		}
	}
	if exist < 2000 {
		t.Errorf("only %d compositions exist", exist)
	}
}

func TestCompose(t *testing.T) {
	for _, test := range []struct{ a, b, want string }{
		{"(8,128):(128,1)", "(4,8):(2,8)", "(4,8):(256,1)"},
		{"(20):(2)", "(5,4):(4,1)", "(5,4):(8,2)"},
		{"(10,2):(16,4)", "(5,4):(1,5)", "(5,2,2):(16,80,4)"}, // the 4 runs through both modes
		{"(6,2):(1,100)", "(2):(4)", "(2):(4)"},               // 4 does not divide 6, but stays below it
		{"(4,6):(3,16)", "(1,3):(9,0)", "(1,3):(0,0)"},
		{"(4,4):(1,8)", "(2,2):(3,3)", ""},                // 3+3 carries
		{"(4,4):(1,8)", "(3):(2)", ""},                    // 0, 2, then 8
		{"(6,4):(1,8)", "(4,2):(3,1)", "(2,2,2):(3,8,1)"}, // 3+1 does not carry
		{"(4,4):(1,8)", "(17):(1)", ""},                   // beyond
		{"(4,6,8):(2,3,5)", "(6):(12)", "(2,3):(9,5)"},
		{"(6,4):(1,8)", "(4,2):(3,3)", ""}, // 3+3 carries
		{"(4,6,8):(2,3,5)", "(6):(1)", ""}, // 6 elements through a mode of 4
		{"():()", "(2):(0)", "(2):(0)"},
		{"():()", "(2):(1)", ""},
	} {
		a, b := must(Parse(test.a)), must(Parse(test.b))
		got, err := a.Compose(b)
		switch {
		case test.want == "" && err == nil:
			t.Errorf("%v ∘ %v = %v, want an error", a, b, got)
		case test.want != "" && (err != nil || got.String() != test.want):
			t.Errorf("%v ∘ %v = %v, %v, want %s", a, b, got, err, test.want)
		}
		checkCompose(t, a, b)
	}
}

func TestComplement(t *testing.T) {
	for _, test := range []struct {
		l    string
		n    int
		want string
	}{
		{"(4):(1)", 24, "(6):(4)"},
		{"(6):(4)", 24, "(4):(1)"},
		{"(4,6):(1,4)", 24, "():()"},
		{"(4):(2)", 24, "(2,3):(1,8)"},
		{"(4,2):(6,1)", 24, "(3):(2)"},
		{"(2,1,2):(1,9,6)", 24, "(3,2):(2,12)"},
		{"(4):(2)", 17, "(2,3):(1,8)"}, // the third 8 reaches 24
		{"(4):(2)", 1, "(2):(1)"},
		{"():()", 5, "(5):(1)"},
		{"(2):(0)", 5, ""},      // twice at 0
		{"(4,4):(1,2)", 16, ""}, // 2 is reached twice
		{"(2,2):(2,3)", 16, ""}, // 0, 2, 3, 5
		{"(2):(1)", 0, ""},
		{"(2):(1)", 1 << 49, ""},
	} {
		l := must(Parse(test.l))
		got, err := l.Complement(test.n)
		switch {
		case test.want == "" && err == nil:
			t.Errorf("complement of %v in %d is %v, want an error", l, test.n, got)
		case test.want != "" && (err != nil || got.String() != test.want):
			t.Errorf("complement of %v in %d is %v, %v, want %s", l, test.n, got, err, test.want)
		}
	}
}

func TestDivide(t *testing.T) {
	for _, l := range small() {
		for _, extent := range []int{1, 2, 3} {
			tile := slices.Repeat([]int{extent}, l.Rank())
			d, err := l.Divide(tile...)
			divides := !slices.ContainsFunc(l.Shape, func(n int) bool { return n%extent != 0 })
			if divides != (err == nil) {
				t.Fatalf("divide %v by %v: %v", l, tile, err)
			}
			if err != nil {
				continue
			}
			covered := map[int]bool{}
			within, tiles := ColMajor(tile...), ColMajor(d.Shape[l.Rank():]...)
			for i := range tiles.Size() {
				for j := range within.Size() {
					w, c := within.Coord(j), tiles.Coord(i)
					whole := make([]int, l.Rank())
					for k := range whole {
						whole[k] = extent*c[k] + w[k]
					}
					if got, want := d.Offset(append(w, c...)...), l.Offset(whole...); got != want {
						t.Fatalf("%v divided by %v is %v: %v of tile %v at %d, want %d", l, tile, d, w, c, got, want)
					}
					covered[ColMajor(l.Shape...).Offset(whole...)] = true
				}
			}
			if len(covered) != l.Size() {
				t.Fatalf("%v divided by %v covers %d coordinates", l, tile, len(covered))
			}
		}
	}
	for _, tile := range [][]int{{2}, {2, 0}, {2, -1}, {16, 1}, {2, 2, 2}} {
		if d, err := RowMajor(8, 128).Divide(tile...); err == nil {
			t.Errorf("(8,128) divided by %v: %v", tile, d)
		}
	}
}

func TestPermute(t *testing.T) {
	l := RowMajor(2, 3, 5)
	p, err := l.Permute(2, 0, 1)
	if err != nil {
		t.Fatal(err)
	}
	for i := range l.Size() {
		c := l.Coord(i)
		if p.Offset(c[2], c[0], c[1]) != l.Offset(c...) {
			t.Fatalf("%v permuted to %v differs at %v", l, p, c)
		}
	}
	for _, order := range [][]int{{}, {0, 1}, {0, 1, 1}, {0, 1, 3}, {-1, 0, 1}, {0, 1, 2, 2}} {
		if p, err := l.Permute(order...); err == nil {
			t.Errorf("permuted by %v: %v", order, p)
		}
	}
}

func TestParse(t *testing.T) {
	for _, l := range small() {
		got, err := Parse(l.String())
		if err != nil || !got.Equal(l) {
			t.Errorf("%v parsed as %v, %v", l, got, err)
		}
	}
	for _, text := range []string{
		"", ":", "8:1", "(8)", "(8):", "(8):(1", "8):(1)", "(8):(1) ", "( 8):(1)", "(08):(1)", "(+8):(1)", "(8,):(1,)",
		"(8):(1):(1)", "(8):(-1)", "(0):(1)", "(8,2):(1)", "(99999999999999999999):(1)", "(8):(x)", "():(1)",
	} {
		if l, err := Parse(text); err == nil {
			t.Errorf("%q parsed as %v", text, l)
		} else if !strings.Contains(err.Error(), "parse") {
			t.Errorf("%q: error without context: %v", text, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, l := range small()[:20] {
		f.Add(l.String())
		f.Add("Sw<3,4,-3> o " + l.String())
	}
	f.Add("(281474976710656,2):(1,1)")
	f.Add("Sw<0,0,0> o (1):(1)")
	f.Fuzz(func(t *testing.T, text string) {
		l, err := ParseSwizzled(text)
		if err != nil {
			return
		}
		if l.String() != text {
			t.Errorf("%q printed as %q", text, l)
		}
		if l.Size() < 1 || l.Cosize() < 1 || l.Coalesce().Size() != l.Size() {
			t.Errorf("%v: size %d, cosize %d", l, l.Size(), l.Cosize())
		}
		last := l.Layout.At(l.Size() - 1)
		if last+1 != l.Layout.Cosize() {
			t.Errorf("%v: last offset %d, cosize %d", l, last, l.Layout.Cosize())
		}
		if got := l.Apply(l.Apply(last)); got != last {
			t.Errorf("%v: twice applied to %d: %d", l.Swizzle, last, got)
		}
	})
}

// FuzzAlgebra reads two layouts from bytes, one mode from two: extents 1 to 8,
// strides 0 to 31.
func FuzzAlgebra(f *testing.F) {
	f.Add([]byte{7, 1, 3, 8}, []byte{1, 2}, 40)
	f.Add([]byte{3, 4, 3, 1}, []byte{1, 1, 1, 4, 1, 2}, 1)
	f.Add([]byte{}, []byte{5, 0}, 9)
	f.Fuzz(func(t *testing.T, first, second []byte, n int) {
		read := func(data []byte) Layout {
			var l Layout
			for ; len(data) >= 2 && l.Rank() < 4; data = data[2:] {
				l = l.append(int(data[0]%8)+1, int(data[1]%32))
			}
			return l
		}
		a, b := read(first), read(second)
		checkCoalesce(t, a)
		checkInverse(t, a)
		checkComplement(t, a, 1+(n&63))
		checkCompose(t, a, b)
		if got, err := Parse(a.String()); err != nil || !got.Equal(a) {
			t.Errorf("%v parsed as %v, %v", a, got, err)
		}
	})
}
