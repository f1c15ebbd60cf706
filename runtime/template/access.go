package template

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

// attribute is obj.name: a method or attribute first, then a dict's entry. What
// does not exist is undefined.
func (r *render) attribute(obj value, name string) (value, error) {
	if u, ok := obj.(undefined); ok {
		return nil, u.err()
	}
	if v, ok := r.member(obj, name); ok {
		return v, nil
	}
	if d, ok := obj.(*dict); ok {
		if v, ok := d.get(name); ok {
			return v, nil
		}
	}
	return noElement(obj, name), nil
}

// item is obj[key]: an entry or element first, then a method or attribute.
func (r *render) item(obj, key value) (value, error) {
	switch obj := obj.(type) {
	case undefined:
		return nil, obj.err()
	case *dict:
		switch key.(type) {
		case *list, *dict: // no keys
		default:
			hash, err := r.hashKey(key)
			if err != nil {
				return nil, err
			}
			if v, ok := obj.get(hash); ok {
				return v, nil
			}
		}
	case *list:
		if i, ok := index(key, len(obj.items)); ok {
			return obj.items[i], nil
		}
	case tuple:
		if i, ok := index(key, len(obj)); ok {
			return obj[i], nil
		}
	case string, markup:
		s, _ := text(obj)
		if _, ok := integer(key); ok {
			if err := r.spend(len(s) / 8); err != nil {
				return nil, err
			}
			if i, ok := index(key, utf8.RuneCountInString(s)); ok {
				from := runeOffset(s, i)
				_, n := utf8.DecodeRuneInString(s[from:])
				return s[from : from+n], nil
			}
		}
	}
	name, ok := text(key)
	if ok {
		if v, ok := r.member(obj, name); ok {
			return v, nil
		}
	} else if n, ok := integer(key); ok {
		name = strconv.FormatInt(n, 10)
	} else {
		name = typeName(key)
	}
	return noElement(obj, name), nil
}

func noElement(obj value, name string) undefined {
	if len(name) > maxName {
		name = name[:maxName] + "..."
	}
	return undefined(fmt.Sprintf("%s has no attribute or element %q", typeName(obj), name))
}

// index resolves an index that may count from the end.
func index(key value, n int) (int, bool) {
	i, ok := integer(key)
	if i < 0 {
		i += int64(n)
	}
	return int(i), ok && i >= 0 && i < int64(n)
}

// runeOffset is the offset of the character with index i.
func runeOffset(s string, i int) int {
	for at := range s {
		if i == 0 {
			return at
		}
		i--
	}
	return len(s)
}

// member returns a method or a built-in attribute.
func (r *render) member(obj value, name string) (value, bool) {
	switch obj := obj.(type) {
	case string:
		return stringMethod(obj, name)
	case markup:
		return stringMethod(string(obj), name)
	case *list:
		return listMethod(obj, name)
	case tuple:
		return sequenceMethod(obj, name)
	case *dict:
		return dictMethod(obj, name)
	case *namespace:
		return obj.attrs.get(name)
	case *loop:
		return obj.member(name)
	case *macro:
		if name == "name" {
			return obj.def.name, true
		}
	}
	return nil, false
}

func (l *loop) member(name string) (value, bool) {
	i, n := int64(l.index), int64(len(l.items))
	switch name {
	case "index":
		return i + 1, true
	case "index0":
		return i, true
	case "revindex":
		return n - i, true
	case "revindex0":
		return n - i - 1, true
	case "first":
		return i == 0, true
	case "last":
		return i == n-1, true
	case "length":
		return n, true
	case "depth":
		return int64(1), true
	case "depth0":
		return int64(0), true
	case "previtem":
		if i == 0 {
			return undefined("there is no previous item"), true
		}
		return l.items[i-1], true
	case "nextitem":
		if i == n-1 {
			return undefined("there is no next item"), true
		}
		return l.items[i+1], true
	case "cycle":
		return &function{name, func(r *render, a args) (value, error) {
			if len(a.pos) == 0 || len(a.kw) > 0 {
				return nil, fmt.Errorf("expected items to cycle through")
			}
			return a.pos[l.index%len(a.pos)], nil
		}}, true
	case "changed":
		return &function{name, func(r *render, a args) (value, error) {
			same, err := r.equalItems(l.changed, a.pos)
			same = same && l.changed != nil
			l.changed = append(tuple{}, a.pos...)
			return !same, err
		}}, true
	}
	return nil, false
}

// slice is obj[start:stop:step].
func (r *render) slice(obj value, bounds [3]value) (value, error) {
	if u, ok := obj.(undefined); ok {
		return nil, u.err()
	}
	for _, b := range bounds {
		if _, ok := integer(b); !ok && b != nil {
			return nil, fmt.Errorf("slice: expected integers, got %s", typeName(b))
		}
	}
	step := int64(1)
	if n, ok := integer(bounds[2]); ok {
		step = n
	}
	if step == 0 {
		return nil, fmt.Errorf("slice: the step is zero")
	}
	if s, ok := text(obj); ok {
		return r.sliceText(s, bounds, step)
	}
	items, isList, ok := sequence(obj)
	if !ok {
		return nil, fmt.Errorf("%s cannot be sliced", typeName(obj))
	}
	start, n := sliceRange(bounds, step, len(items))
	if err := r.growTimes(int64(n), 16); err != nil {
		return nil, err
	}
	out := make([]value, n)
	for i := range out {
		out[i] = items[start+int64(i)*step]
	}
	if isList {
		return &list{out}, nil
	}
	return tuple(out), nil
}

func (r *render) sliceText(s string, bounds [3]value, step int64) (value, error) {
	if err := r.spend(len(s) / 8); err != nil {
		return nil, err
	}
	start, n := sliceRange(bounds, step, utf8.RuneCountInString(s))
	if step == 1 {
		s = s[runeOffset(s, int(start)):]
		return s[:runeOffset(s, n)], nil
	}
	if err := r.growTimes(int64(len(s)+2*n), 4); err != nil {
		return nil, err
	}
	chars := []rune(s)
	out := make([]rune, n)
	for i := range out {
		out[i] = chars[start+int64(i)*step]
	}
	return string(out), nil
}

// sliceRange returns the first index of a slice of n elements and how many it takes.
func sliceRange(bounds [3]value, step int64, n int) (start int64, count int) {
	size := int64(n)
	lo, hi := int64(0), size // what a bound is clamped to
	if step < 0 {
		lo, hi = -1, size-1
	}
	clamp := func(v value, def int64) int64 {
		i, ok := integer(v)
		if !ok {
			return def
		}
		if i < 0 {
			i = max(i+size, lo)
		}
		return min(i, hi)
	}
	start, stop := clamp(bounds[0], lo), clamp(bounds[1], hi)
	if step < 0 {
		start, stop = clamp(bounds[0], hi), clamp(bounds[1], lo)
		if start <= stop {
			return 0, 0
		}
		// Steps beyond the size take one element; this also keeps -step in range.
		step = max(step, -size-1)
		return start, int((start - stop - step - 1) / -step)
	}
	if start >= stop {
		return 0, 0
	}
	step = min(step, size+1)
	return start, int((stop - start + step - 1) / step)
}
