package template

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"
)

// tupleKey is the hash key of a tuple: its items' keys, typed and with lengths.
type tupleKey string

// hashKey returns a comparable Go value that is the same for equal values, or an
// error for a value that cannot be a dict's key.
func (r *render) hashKey(v value) (any, error) {
	switch v := v.(type) {
	case string:
		return v, r.spend(len(v) / 32)
	case markup:
		return string(v), r.spend(len(v) / 32)
	case bool, int64:
		n, _ := integer(v)
		return n, nil
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v), nil
		}
		return v, nil
	case nil, bigInt, undefined, *iterator, *namespace, *function, *macro, *loop:
		return v, nil
	case tuple:
		if err := r.enter(); err != nil {
			return nil, err
		}
		defer r.leave()
		var key strings.Builder
		for _, item := range v {
			k, err := r.hashKey(item)
			if err != nil {
				return nil, err
			}
			var part string
			switch k.(type) {
			case *iterator, *namespace, *function, *macro, *loop:
				part = fmt.Sprintf("%T %p", k, k)
			default:
				part = fmt.Sprintf("%T %v", k, k)
			}
			if err := r.grow(32 + 4*len(part)); err != nil {
				return nil, err
			}
			fmt.Fprintf(&key, "%d:%s", len(part), part)
		}
		return tupleKey(key.String()), nil
	}
	return nil, fmt.Errorf("%s cannot be a dict's key", typeName(v))
}

// equal is Python's ==.
func (r *render) equal(a, b value) (bool, error) {
	if err := r.enter(); err != nil {
		return false, err
	}
	defer r.leave()
	if s, ok := text(a); ok {
		t, ok := text(b)
		if !ok || len(s) != len(t) {
			return false, nil
		}
		return s == t, r.spend(len(s) / 32)
	}
	if x, ok := number(a); ok {
		if m, ok := integer(a); ok {
			if n, ok := integer(b); ok {
				return m == n, nil
			}
		}
		y, ok := number(b)
		return ok && x == y, nil
	}
	switch a := a.(type) {
	case undefined:
		_, ok := b.(undefined)
		return ok, nil
	case *list:
		b, ok := b.(*list)
		if !ok {
			return false, nil
		}
		return r.equalItems(a.items, b.items)
	case tuple:
		b, ok := b.(tuple)
		if !ok {
			return false, nil
		}
		return r.equalItems(a, b)
	case *dict:
		b, ok := b.(*dict)
		if !ok || len(a.keys) != len(b.keys) {
			return false, nil
		}
		for hash, i := range a.index {
			w, ok := b.get(hash)
			if !ok {
				return false, nil
			}
			if same, err := r.equal(a.vals[i], w); err != nil || !same {
				return false, err
			}
		}
		return true, nil
	}
	if _, ok := b.(tuple); ok {
		return false, nil // a tuple is not comparable in Go
	}
	return a == b, nil
}

func (r *render) equalItems(a, b []value) (bool, error) {
	if len(a) != len(b) {
		return false, nil
	}
	for i := range a {
		if same, err := r.equal(a[i], b[i]); err != nil || !same {
			return false, err
		}
	}
	return true, nil
}

// order is Python's ordering: negative where a < b, positive where a > b. Where
// a NaN is involved nothing holds, and ok is false.
func (r *render) order(a, b value) (c int, ok bool, err error) {
	if err := r.enter(); err != nil {
		return 0, false, err
	}
	defer r.leave()
	for _, v := range []value{a, b} {
		if u, missing := v.(undefined); missing {
			return 0, false, u.err()
		}
	}
	if s, ok := text(a); ok {
		if t, ok := text(b); ok {
			return strings.Compare(s, t), true, r.spend(min(len(s), len(t)) / 32)
		}
	}
	if x, ok := number(a); ok {
		if m, ok := integer(a); ok {
			if n, ok := integer(b); ok {
				return cmp.Compare(m, n), true, nil
			}
		}
		if y, ok := number(b); ok {
			return cmp.Compare(x, y), x == x && y == y, nil
		}
	}
	x, isList, okA := sequence(a)
	y, list, okB := sequence(b)
	if !okA || !okB || isList != list {
		return 0, false, fmt.Errorf("cannot order %s and %s", typeName(a), typeName(b))
	}
	for i := range min(len(x), len(y)) {
		same, err := r.equal(x[i], y[i])
		if err != nil {
			return 0, false, err
		}
		if !same {
			return r.order(x[i], y[i])
		}
	}
	return cmp.Compare(len(x), len(y)), true, nil
}

// sortBy sorts items stably by the keys, which it permutes too.
func (r *render) sortBy(items, keys []value, reverse bool) error {
	if err := r.grow(24 * len(items)); err != nil {
		return err
	}
	perm := make([]int, len(items))
	for i := range perm {
		perm[i] = i
	}
	var failed error
	slices.SortStableFunc(perm, func(i, j int) int {
		if failed != nil {
			return 0
		}
		c, _, err := r.order(keys[i], keys[j])
		if err != nil {
			failed = err
		}
		if reverse {
			return -c
		}
		return c
	})
	if failed != nil {
		return failed
	}
	old := slices.Clone(items)
	for i, k := range perm {
		items[i] = old[k]
	}
	return nil
}

// contains is Python's "x in v".
func (r *render) contains(v, x value) (bool, error) {
	switch v := v.(type) {
	case string, markup:
		s, _ := text(v)
		sub, ok := text(x)
		if !ok {
			return false, fmt.Errorf(`"in" a string needs a string on its left, got %s`, typeName(x))
		}
		return strings.Contains(s, sub), r.spend(len(s) / 32)
	case *dict:
		hash, err := r.hashKey(x)
		if err != nil {
			return false, err
		}
		_, ok := v.get(hash)
		return ok, nil
	}
	items, _, ok := sequence(v)
	if !ok {
		var err error
		if items, err = r.items(v); err != nil {
			return false, err
		}
	}
	for _, item := range items {
		if same, err := r.equal(item, x); err != nil || same {
			return same, err
		}
	}
	return false, nil
}
