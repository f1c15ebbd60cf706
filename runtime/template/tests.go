package template

import (
	"errors"
	"fmt"
	"math"
)

// testFunc computes "in is test(args)".
type testFunc func(r *render, in value, a args) (bool, error)

// testByName returns a test, or nil.
func testByName(name string) testFunc {
	if is := kindTest(name); is != nil {
		return func(r *render, in value, a args) (bool, error) {
			return is(in), a.bind(0).err
		}
	}
	if op := comparison(name); op != "" {
		return func(r *render, in value, a args) (bool, error) {
			p := a.bind(1, "other")
			if p.err != nil {
				return false, p.err
			}
			return r.compare(op, in, p.vals[0])
		}
	}
	switch name {
	case "odd", "even":
		return func(r *render, in value, a args) (bool, error) {
			div, err := divisible(in, int64(2))
			return div == (name == "even"), errors.Join(err, a.bind(0).err)
		}
	case "divisibleby":
		return func(r *render, in value, a args) (bool, error) {
			p := a.bind(1, "num")
			if p.err != nil {
				return false, p.err
			}
			return divisible(in, p.vals[0])
		}
	case "sameas":
		return testSameAs
	case "lower", "upper":
		return func(r *render, in value, a args) (bool, error) {
			s, err := r.str(in)
			if err != nil {
				return false, err
			}
			return stringPredicate("is" + name)(s), r.spend(len(s) / 32)
		}
	case "filter":
		return func(r *render, in value, a args) (bool, error) {
			name, _ := text(in)
			return filterByName(name) != nil, nil
		}
	case "test":
		return func(r *render, in value, a args) (bool, error) {
			name, _ := text(in)
			return testByName(name) != nil, nil
		}
	}
	return nil
}

// comparison returns the operator of a test that compares, or "".
func comparison(name string) string {
	switch name {
	case "==", "eq", "equalto":
		return "=="
	case "!=", "ne":
		return "!="
	case "<", "lt", "lessthan":
		return "<"
	case "<=", "le":
		return "<="
	case ">", "gt", "greaterthan":
		return ">"
	case ">=", "ge":
		return ">="
	case "in":
		return "in"
	}
	return ""
}

// kindTest returns a test of what a value is, or nil.
func kindTest(name string) func(v value) bool {
	switch name {
	case "defined":
		return func(v value) bool { return !is[undefined](v) }
	case "undefined":
		return is[undefined]
	case "none":
		return func(v value) bool { return v == nil }
	case "boolean":
		return is[bool]
	case "true":
		return func(v value) bool { b, ok := v.(bool); return ok && b }
	case "false":
		return func(v value) bool { b, ok := v.(bool); return ok && !b }
	case "integer":
		return func(v value) bool { return is[int64](v) || is[bigInt](v) }
	case "float":
		return is[float64]
	case "number":
		return func(v value) bool { _, ok := number(v); return ok || is[bigInt](v) }
	case "string":
		return func(v value) bool { _, ok := text(v); return ok }
	case "mapping":
		return is[*dict]
	case "sequence":
		return func(v value) bool {
			switch v.(type) {
			case string, markup, *list, tuple, *dict, undefined:
				return true
			}
			return false
		}
	case "iterable":
		return func(v value) bool {
			switch v.(type) {
			case string, markup, *list, tuple, *dict, *iterator, *loop, undefined:
				return true
			}
			return false
		}
	case "callable":
		return func(v value) bool { return is[*function](v) || is[*macro](v) || is[undefined](v) }
	case "escaped":
		return is[markup]
	}
	return nil
}

func is[T any](v value) bool { _, ok := v.(T); return ok }

func divisible(v, by value) (bool, error) {
	if u, ok := v.(undefined); ok {
		return false, u.err()
	}
	x, okX := number(v)
	y, okY := number(by)
	if !okX || !okY {
		return false, fmt.Errorf("expected numbers, got %s and %s", typeName(v), typeName(by))
	}
	m, okM := integer(v)
	n, okN := integer(by)
	if okM && okN {
		if n == 0 {
			return false, errors.New("division by zero")
		}
		return m%n == 0, nil
	}
	if y == 0 {
		return false, errors.New("division by zero")
	}
	return math.Mod(x, y) == 0, nil
}

// testSameAs is Python's "is": the same object, or the same small value.
func testSameAs(r *render, in value, a args) (bool, error) {
	p := a.bind(1, "other")
	if p.err != nil {
		return false, p.err
	}
	if is[tuple](in) || is[tuple](p.vals[0]) {
		return false, nil // a tuple is not comparable in Go
	}
	return in == p.vals[0], r.spend(1)
}
