package template

import (
	"errors"
	"fmt"
	"html"
	"math"
	"math/bits"
	"strings"
)

var errOverflow = errors.New("the result is beyond integers of 64 bits")

func addInt(a, b int64) (value, error) {
	if c := a + b; (c > a) == (b > 0) {
		return c, nil
	}
	return nil, errOverflow
}

func subInt(a, b int64) (value, error) {
	if c := a - b; (c < a) == (b > 0) {
		return c, nil
	}
	return nil, errOverflow
}

func mulInt(a, b int64) (value, error) {
	hi, lo := bits.Mul64(magnitude(a), magnitude(b))
	negative := (a < 0) != (b < 0)
	switch {
	case hi == 0 && lo <= math.MaxInt64 && negative:
		return -int64(lo), nil
	case hi == 0 && lo <= math.MaxInt64:
		return int64(lo), nil
	case hi == 0 && lo == 1<<63 && negative:
		return int64(math.MinInt64), nil
	}
	return nil, errOverflow
}

func magnitude(a int64) uint64 {
	if a < 0 {
		return -uint64(a)
	}
	return uint64(a)
}

func powInt(a, n int64) (value, error) {
	out := int64(1)
	for ; n > 0; n >>= 1 {
		if n&1 == 1 {
			v, err := mulInt(out, a)
			if err != nil {
				return nil, err
			}
			out = v.(int64)
		}
		if n > 1 {
			v, err := mulInt(a, a)
			if err != nil {
				return nil, err
			}
			a = v.(int64)
		}
	}
	return out, nil
}

// binary evaluates one of + - * / // % **.
func (r *render) binary(op string, a, b value) (value, error) {
	for _, v := range []value{a, b} {
		if u, ok := v.(undefined); ok {
			return nil, u.err()
		}
	}
	if s, ok := text(a); ok && op == "%" {
		values := []value{b}
		if t, ok := b.(tuple); ok {
			values = t
		}
		return r.formatPercent(s, values, b)
	}
	x, okX := number(a)
	y, okY := number(b)
	if !okX || !okY {
		return r.binarySequence(op, a, b)
	}
	m, okM := integer(a)
	n, okN := integer(b)
	if okM && okN {
		return binaryInt(op, m, n)
	}
	switch op {
	case "+":
		return x + y, nil
	case "-":
		return x - y, nil
	case "*":
		return float64(x * y), nil
	case "**":
		return powFloat(x, y)
	}
	if y == 0 {
		return nil, errors.New("division by zero")
	}
	if op == "/" {
		return x / y, nil
	}
	mod := math.Mod(x, y)
	if mod != 0 && (mod < 0) != (y < 0) {
		mod += y
	}
	if op == "%" {
		return mod, nil
	}
	return math.Round((x - mod) / y), nil
}

func powFloat(x, y float64) (value, error) {
	out := math.Pow(x, y)
	switch {
	case x == 0 && y < 0:
		return nil, errors.New("zero to a negative power")
	case math.IsNaN(out) && x == x && y == y:
		return nil, errors.New("the result is no real number")
	}
	return out, nil
}

func binaryInt(op string, m, n int64) (value, error) {
	switch op {
	case "+":
		return addInt(m, n)
	case "-":
		return subInt(m, n)
	case "*":
		return mulInt(m, n)
	case "**":
		if n < 0 {
			return powFloat(float64(m), float64(n))
		}
		return powInt(m, n)
	}
	if n == 0 {
		return nil, errors.New("division by zero")
	}
	if op == "/" {
		return float64(m) / float64(n), nil
	}
	if n == -1 { // the quotient of the least integer does not fit
		if op == "%" {
			return int64(0), nil
		}
		return subInt(0, m)
	}
	div, mod := m/n, m%n
	if mod != 0 && (mod < 0) != (n < 0) {
		div--
		mod += n
	}
	if op == "%" {
		return mod, nil
	}
	return div, nil
}

// binarySequence joins or repeats strings, lists and tuples.
func (r *render) binarySequence(op string, a, b value) (value, error) {
	switch op {
	case "+":
		s, okS := text(a)
		t, okT := text(b)
		if okS && okT {
			return r.concatText(a, b, s, t)
		}
		x, isList, okX := sequence(a)
		y, list2, okY := sequence(b)
		if okX && okY && isList == list2 {
			if err := r.grow(16 * (len(x) + len(y))); err != nil {
				return nil, err
			}
			joined := append(append(make([]value, 0, len(x)+len(y)), x...), y...)
			if isList {
				return &list{joined}, nil
			}
			return tuple(joined), nil
		}
	case "*":
		if n, ok := integer(b); ok {
			return r.repeat(a, n)
		}
		if n, ok := integer(a); ok {
			return r.repeat(b, n)
		}
	}
	return nil, fmt.Errorf("operator %s does not take %s and %s", op, typeName(a), typeName(b))
}

// concatText joins two strings; markup on one side escapes the other.
func (r *render) concatText(a, b value, s, t string) (value, error) {
	_, safeA := a.(markup)
	_, safeB := b.(markup)
	var err error
	if safeB && !safeA {
		s, err = r.escape(s)
	} else if safeA && !safeB {
		t, err = r.escape(t)
	}
	if err != nil {
		return nil, err
	}
	if err := r.grow(len(s) + len(t)); err != nil {
		return nil, err
	}
	if safeA || safeB {
		return markup(s + t), nil
	}
	return s + t, nil
}

// escape makes text safe for HTML.
func (r *render) escape(s string) (string, error) {
	special := 0
	for i := range len(s) {
		if strings.IndexByte(`&'<>"`, s[i]) >= 0 {
			special++
		}
	}
	if err := r.grow(len(s) + len("&#34;")*special); err != nil {
		return "", err
	}
	return html.EscapeString(s), nil
}

func (r *render) repeat(v value, n int64) (value, error) {
	n = max(n, 0)
	if s, ok := text(v); ok {
		if err := r.growTimes(n, len(s)); err != nil {
			return nil, err
		}
		if s == "" {
			n = 0
		}
		out := strings.Repeat(s, int(n))
		if _, safe := v.(markup); safe {
			return markup(out), nil
		}
		return out, nil
	}
	items, isList, ok := sequence(v)
	if !ok {
		return nil, fmt.Errorf("operator * does not take %s", typeName(v))
	}
	if err := r.growTimes(n, 16*len(items)); err != nil {
		return nil, err
	}
	var out []value
	if len(items) > 0 {
		out = make([]value, 0, int(n)*len(items))
		for range n {
			out = append(out, items...)
		}
	}
	if isList {
		return &list{out}, nil
	}
	return tuple(out), nil
}
