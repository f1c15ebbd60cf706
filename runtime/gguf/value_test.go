package gguf

import (
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// everyValue sets a key of every type, at extremes.
func everyValue(w *Writer) {
	w.Set("u8", uint8(255))
	w.Set("i8", int8(-128))
	w.Set("u16", uint16(65535))
	w.Set("i16", int16(-32768))
	w.Set("u32", uint32(math.MaxUint32))
	w.Set("i32", int32(math.MinInt32))
	w.Set("u64", uint64(math.MaxUint64))
	w.Set("i64", int64(math.MinInt64))
	w.Set("i8+", int8(127))
	w.Set("i16+", int16(32767))
	w.Set("i32+", int32(math.MaxInt32))
	w.Set("i64+", int64(math.MaxInt64))
	w.Set("f32", float32(math.SmallestNonzeroFloat32))
	w.Set("f64", math.Pi)
	w.Set("inf", float32(math.Inf(-1)))
	w.Set("nan", float32(math.NaN()))
	w.Set("true", true)
	w.Set("false", false)
	w.Set("text", "π")
	w.Set("empty", "")
	w.Set("raw", "a\x1b[2J\n\xff\u202e")
	w.Set("long", strings.Repeat("ab", 128)+"é")
	w.Set("u8s", []uint8{0, 255})
	w.Set("i8s", []int8{-128, 127})
	w.Set("u16s", []uint16{65535})
	w.Set("i16s", []int16{-32768, 32767})
	w.Set("u32s", []uint32{0, math.MaxInt32})
	w.Set("u32s too large", []uint32{1, math.MaxInt32 + 1})
	w.Set("u32s all ones", []uint32{math.MaxUint32})
	w.Set("i32s", []int32{math.MinInt32, math.MaxInt32})
	w.Set("u64s", []uint64{math.MaxInt32})
	w.Set("u64s too large", []uint64{math.MaxUint64})
	w.Set("i64s", []int64{math.MinInt32, math.MaxInt32})
	w.Set("i64s too small", []int64{math.MinInt32 - 1})
	w.Set("f32s", []float32{1.5, float32(math.Copysign(0, -1)), float32(math.Inf(1))})
	w.Set("f64s", []float64{1})
	w.Set("bools", []bool{true, false})
	w.Set("texts", []string{"a", "", "\x00", "ü"})
	w.Set("none", []string{})
	w.Set("no ints", []int32{})
	w.Set("many", []int16{1, 2, 3, 4, 5, 6, 7, 8, 9, 10})
}

func TestValueString(t *testing.T) {
	f := mustParse(t, build(t, everyValue))
	want := map[string]string{
		"u8": "255", "i8": "-128", "u16": "65535", "i16": "-32768", "u32": "4294967295", "i32": "-2147483648",
		"u64": "18446744073709551615", "i64": "-9223372036854775808",
		"i8+": "127", "i16+": "32767", "i32+": "2147483647", "i64+": "9223372036854775807",
		"f32": "1e-45", "f64": "3.141592653589793", "inf": "-Inf", "nan": "NaN", "true": "true", "false": "false",
		"text": `"π"`, "empty": `""`, "raw": `"a\x1b[2J\n\xff\u202e"`, "long": `"` + strings.Repeat("ab", 128) + `"… (258 bytes)`,
		"u8s": "[0, 255]", "i8s": "[-128, 127]", "u16s": "[65535]", "i16s": "[-32768, 32767]",
		"u32s": "[0, 2147483647]", "u32s too large": "[1, 2147483648]", "u32s all ones": "[4294967295]", "i32s": "[-2147483648, 2147483647]",
		"u64s": "[2147483647]", "u64s too large": "[18446744073709551615]", "i64s": "[-2147483648, 2147483647]", "i64s too small": "[-2147483649]",
		"f32s": "[1.5, -0, +Inf]", "f64s": "[1]", "bools": "[true, false]", "texts": `["a", "", "\x00", "ü"]`,
		"none": "[]", "no ints": "[]", "many": "[1, 2, 3, 4, 5, 6, 7, 8, … 10 in all]",
	}
	got := make(map[string]string)
	for _, key := range f.Keys() {
		v, _ := f.Value(key)
		got[key] = v.String()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if _, ok := f.Value("absent"); ok {
		t.Error("an absent key has a value")
	}
}

func TestQuoteCutsAtRune(t *testing.T) {
	for _, test := range []struct {
		text  string
		limit int
		want  string
	}{
		{"abc", 3, `"abc"`},
		{"abcd", 3, `"abc"… (4 bytes)`},
		{"abé", 3, `"ab"… (4 bytes)`},
		{"a€b", 3, `"a"… (5 bytes)`},
		{"\x80\x80\x80\x80\x80\x80\x80", 6, `"\x80\x80"… (7 bytes)`},
	} {
		if got := quote(test.text, test.limit); got != test.want {
			t.Errorf("quote(%q, %d) = %s, want %s", test.text, test.limit, got, test.want)
		}
	}
}

func TestAccessors(t *testing.T) {
	f := mustParse(t, build(t, everyValue))
	call := map[string]func(key string) (any, bool, error){
		"String":  func(key string) (any, bool, error) { return boxed(f.String(key)) },
		"Uint":    func(key string) (any, bool, error) { return boxed(f.Uint(key)) },
		"Float":   func(key string) (any, bool, error) { return boxed(f.Float(key)) },
		"Bool":    func(key string) (any, bool, error) { return boxed(f.Bool(key)) },
		"Strings": func(key string) (any, bool, error) { return boxed(f.Strings(key)) },
		"Floats":  func(key string) (any, bool, error) { return boxed(f.Floats(key)) },
		"Ints":    func(key string) (any, bool, error) { return boxed(f.Ints(key)) },
	}
	for _, test := range []struct {
		method, key string
		want        any // nil if an error is expected
		err         string
	}{
		{"String", "text", "π", ""},
		{"String", "empty", "", ""},
		{"String", "raw", "a\x1b[2J\n\xff\u202e", ""},
		{"String", "u32", nil, "type uint32, expected a string"},
		{"String", "texts", nil, "type array of 4 string, expected a string"},
		{"Uint", "u8", uint64(255), ""},
		{"Uint", "u16", uint64(65535), ""},
		{"Uint", "u32", uint64(math.MaxUint32), ""},
		{"Uint", "u64", uint64(math.MaxUint64), ""},
		{"Uint", "i8+", uint64(127), ""},
		{"Uint", "i16+", uint64(32767), ""},
		{"Uint", "i32+", uint64(math.MaxInt32), ""},
		{"Uint", "i64+", uint64(math.MaxInt64), ""},
		{"Uint", "i8", nil, "-128, expected an integer that is not negative"},
		{"Uint", "i64", nil, "-9223372036854775808, expected an integer that is not negative"},
		{"Uint", "f32", nil, "type float32, expected an integer"},
		{"Uint", "true", nil, "type bool, expected an integer"},
		{"Uint", "u32s", nil, "type array of 2 uint32, expected an integer"},
		{"Float", "f32", math.SmallestNonzeroFloat32, ""},
		{"Float", "f64", math.Pi, ""},
		{"Float", "inf", math.Inf(-1), ""},
		{"Float", "u32", nil, "type uint32, expected a float32 or float64"},
		{"Bool", "true", true, ""},
		{"Bool", "false", false, ""},
		{"Bool", "u8", nil, "type uint8, expected a bool"},
		{"Strings", "texts", []string{"a", "", "\x00", "ü"}, ""},
		{"Strings", "none", []string{}, ""},
		{"Strings", "text", nil, "type string, expected an array of strings"},
		{"Strings", "u8s", nil, "type array of 2 uint8, expected an array of strings"},
		{"Floats", "f32s", []float32{1.5, float32(math.Copysign(0, -1)), float32(math.Inf(1))}, ""},
		{"Floats", "f64s", nil, "type array of 1 float64, expected an array of float32"},
		{"Floats", "u8s", nil, "type array of 2 uint8, expected an array of float32"},
		{"Ints", "u8s", []int32{0, 255}, ""},
		{"Ints", "i8s", []int32{-128, 127}, ""},
		{"Ints", "u16s", []int32{65535}, ""},
		{"Ints", "i16s", []int32{-32768, 32767}, ""},
		{"Ints", "u32s", []int32{0, math.MaxInt32}, ""},
		{"Ints", "i32s", []int32{math.MinInt32, math.MaxInt32}, ""},
		{"Ints", "u64s", []int32{math.MaxInt32}, ""},
		{"Ints", "i64s", []int32{math.MinInt32, math.MaxInt32}, ""},
		{"Ints", "no ints", []int32{}, ""},
		{"Ints", "u32s too large", nil, "element 1 is 2147483648, expected an integer that fits an int32"},
		{"Ints", "u32s all ones", nil, "element 0 is 4294967295, expected an integer that fits an int32"},
		{"Ints", "u64s too large", nil, "element 0 is 18446744073709551615, expected an integer that fits an int32"},
		{"Ints", "i64s too small", nil, "element 0 is -2147483649, expected an integer that fits an int32"},
		{"Ints", "bools", nil, "type array of 2 bool, expected an array of integers"},
	} {
		got, ok, err := call[test.method](test.key)
		if !ok {
			t.Errorf("%s(%q): key is not there", test.method, test.key)
		}
		if test.want == nil {
			prefix := `test.gguf: key "` + test.key + `": offset `
			if err == nil || !strings.HasPrefix(err.Error(), prefix) || !strings.HasSuffix(err.Error(), ": "+test.err) {
				t.Errorf("%s(%q): error %v, want %sN: %s", test.method, test.key, err, prefix, test.err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s(%q): %v", test.method, test.key, err)
		}
		if diff := cmp.Diff(test.want, got); diff != "" {
			t.Errorf("%s(%q) (-want +got):\n%s", test.method, test.key, diff)
		}
	}
	for method, f := range call {
		if _, ok, err := f("absent"); ok || err != nil {
			t.Errorf("%s of an absent key: %v, %v", method, ok, err)
		}
	}
}

func boxed[T any](v T, ok bool, err error) (any, bool, error) { return v, ok, err }

// TestStringsOutlive checks that strings don't refer to the file.
func TestStringsOutlive(t *testing.T) {
	data := build(t, everyValue)
	f := mustParse(t, data)
	text, _, _ := f.String("text")
	texts, _, _ := f.Strings("texts")
	clear(data)
	if diff := cmp.Diff([]string{"a", "", "\x00", "ü", "π"}, append(texts, text)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
