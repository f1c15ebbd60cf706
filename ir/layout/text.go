package layout

import (
	"fmt"
	"strconv"
	"strings"
)

// String returns the text form, such as "(8,128):(128,1)". [Parse] reads it.
func (l Layout) String() string {
	b := appendTuple(nil, l.Shape)
	b = append(b, ':')
	return string(appendTuple(b, l.Stride))
}

func appendTuple(b []byte, v []int) []byte {
	b = append(b, '(')
	for i, x := range v {
		if i > 0 {
			b = append(b, ',')
		}
		b = strconv.AppendInt(b, int64(x), 10)
	}
	return append(b, ')')
}

// Parse reads the text form of a layout. Only what [Layout.String] writes is
// accepted.
func Parse(text string) (Layout, error) {
	shape, stride, ok := strings.Cut(text, ":")
	if !ok {
		return Layout{}, fmt.Errorf("layout: parse %q: want (extents):(strides)", text)
	}
	s, err := parseTuple(shape, "(", ")")
	if err != nil {
		return Layout{}, fmt.Errorf("layout: parse %q: shape: %w", text, err)
	}
	d, err := parseTuple(stride, "(", ")")
	if err != nil {
		return Layout{}, fmt.Errorf("layout: parse %q: stride: %w", text, err)
	}
	l, err := New(s, d)
	if err != nil {
		return Layout{}, fmt.Errorf("parse %q: %w", text, err)
	}
	return l, nil
}

// parseTuple reads decimal numbers with commas between them, and open and end
// around them.
func parseTuple(text, open, end string) ([]int, error) {
	inner, ok := strings.CutPrefix(text, open)
	if !ok {
		return nil, fmt.Errorf("%q does not start with %q", text, open)
	}
	inner, ok = strings.CutSuffix(inner, end)
	if !ok {
		return nil, fmt.Errorf("%q does not end with %q", text, end)
	}
	if inner == "" {
		return nil, nil
	}
	var v []int
	for field := range strings.SplitSeq(inner, ",") {
		x, err := strconv.Atoi(field)
		if err != nil || strconv.Itoa(x) != field {
			return nil, fmt.Errorf("%q is not a decimal number", field)
		}
		v = append(v, x)
	}
	return v, nil
}

// String returns the text form, such as "Sw<3,4,3>". [ParseSwizzle] reads it.
func (s Swizzle) String() string { return fmt.Sprintf("Sw<%d,%d,%d>", s.B, s.M, s.S) }

// ParseSwizzle reads the text form of a swizzle. Only what [Swizzle.String]
// writes is accepted.
func ParseSwizzle(text string) (Swizzle, error) {
	v, err := parseTuple(text, "Sw<", ">")
	if err != nil {
		return Swizzle{}, fmt.Errorf("layout: parse swizzle %q: %w", text, err)
	}
	if len(v) != 3 {
		return Swizzle{}, fmt.Errorf("layout: parse swizzle %q: %d numbers, want 3", text, len(v))
	}
	s := Swizzle{v[0], v[1], v[2]}
	if err := s.Validate(); err != nil {
		return Swizzle{}, fmt.Errorf("parse swizzle %q: %w", text, err)
	}
	return s, nil
}

// compose stands between a swizzle and the layout it follows.
const compose = " o "

// String returns the text form, such as "Sw<3,4,3> o (8,128):(128,1)", or the
// layout's alone if the swizzle is zero. [ParseSwizzled] reads it.
func (l Swizzled) String() string {
	if l.Swizzle == (Swizzle{}) {
		return l.Layout.String()
	}
	return l.Swizzle.String() + compose + l.Layout.String()
}

// ParseSwizzled reads the text form of a swizzled layout. Only what
// [Swizzled.String] writes is accepted.
func ParseSwizzled(text string) (Swizzled, error) {
	var l Swizzled
	var err error
	plain := text
	if swizzle, rest, ok := strings.Cut(text, compose); ok {
		plain = rest
		if l.Swizzle, err = ParseSwizzle(swizzle); err != nil {
			return Swizzled{}, err
		}
		if l.Swizzle == (Swizzle{}) {
			return Swizzled{}, fmt.Errorf("layout: parse %q: a zero swizzle is not written", text)
		}
	}
	if l.Layout, err = Parse(plain); err != nil {
		return Swizzled{}, err
	}
	return l, nil
}
