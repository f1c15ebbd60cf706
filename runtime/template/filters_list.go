package template

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// endFilter is first or last.
func endFilter(last bool) filterFunc {
	return func(r *render, in value, a args) (value, error) {
		if p := a.bind(0); p.err != nil {
			return nil, p.err
		}
		if it, ok := in.(*iterator); ok && it.once && !last { // the rest stays
			if len(it.items) == 0 {
				return undefined("the sequence is empty"), nil
			}
			v := it.items[0]
			it.items = it.items[1:]
			return v, nil
		}
		items, err := r.items(in)
		if err != nil {
			return nil, err
		}
		switch {
		case len(items) == 0:
			return undefined("the sequence is empty"), nil
		case last:
			return items[len(items)-1], nil
		}
		return items[0], nil
	}
}

func filterList(r *render, in value, a args) (value, error) {
	items, err := r.items(in)
	return &list{items}, err
}

func filterItems(r *render, in value, a args) (value, error) {
	switch v := in.(type) {
	case undefined:
		return generator(nil), nil
	case *dict:
		return generator(v.pairs()), r.grow(pairBytes * len(v.keys))
	}
	return nil, fmt.Errorf("expected a dict, got %s", typeName(in))
}

func filterJoin(r *render, in value, a args) (value, error) {
	p := a.bind(0, "d", "attribute")
	if p.err != nil {
		return nil, p.err
	}
	sep, err := r.str(p.value(0, ""))
	if err != nil {
		return nil, err
	}
	items, err := r.items(in)
	if err != nil {
		return nil, err
	}
	if p.optional(1) {
		if items, err = r.keys(items, p.vals[1], true); err != nil {
			return nil, err
		}
	}
	return r.join(items, sep)
}

// path looks up an attribute like "a.b.0", part by part.
func (r *render) path(v, attr value) (value, error) {
	s, ok := text(attr)
	if !ok {
		return r.item(v, attr)
	}
	for part := range strings.SplitSeq(s, ".") {
		if err := r.spend(1); err != nil {
			return nil, err
		}
		var key value = part
		if n, err := strconv.ParseUint(part, 10, 63); err == nil {
			key = int64(n)
		}
		var err error
		if v, err = r.item(v, key); err != nil {
			return nil, err
		}
	}
	return v, nil
}

// keys returns the attribute of each item, or the items for none; strings are
// lowered unless caseSensitive.
func (r *render) keys(items []value, attr value, caseSensitive bool) ([]value, error) {
	if err := r.grow(16 * len(items)); err != nil {
		return nil, err
	}
	keys := make([]value, len(items))
	for i, item := range items {
		if err := r.spend(1); err != nil {
			return nil, err
		}
		key := item
		if attr != nil {
			var err error
			if key, err = r.path(item, attr); err != nil {
				return nil, err
			}
		}
		if s, ok := text(key); ok && !caseSensitive {
			if err := r.grow(len(s)); err != nil {
				return nil, err
			}
			key = strings.ToLower(s)
		}
		keys[i] = key
	}
	return keys, nil
}

func filterSort(r *render, in value, a args) (value, error) {
	p := a.bind(0, "reverse", "case_sensitive", "attribute")
	if p.err != nil {
		return nil, p.err
	}
	items, err := r.items(in)
	if err != nil {
		return nil, err
	}
	attrs := []value{p.value(2, nil)}
	if s, ok := text(attrs[0]); ok {
		if err := r.grow(80 * strings.Count(s, ",")); err != nil {
			return nil, err
		}
		attrs = attrs[:0]
		for part := range strings.SplitSeq(s, ",") {
			attrs = append(attrs, part)
		}
	}
	if err := r.growTimes(int64(len(items)), 48+16*len(attrs)); err != nil {
		return nil, err
	}
	keys := make([]value, len(items))
	for i := range keys {
		keys[i] = make(tuple, len(attrs))
	}
	for k, attr := range attrs {
		column, err := r.keys(items, attr, p.truth(1, false))
		if err != nil {
			return nil, err
		}
		for i, key := range column {
			keys[i].(tuple)[k] = key
		}
	}
	return &list{items}, r.sortBy(items, keys, p.truth(0, false))
}

func filterDictSort(r *render, in value, a args) (value, error) {
	p := a.bind(0, "case_sensitive", "by", "reverse")
	by := p.text(1, "key")
	if p.err != nil {
		return nil, p.err
	}
	d, ok := in.(*dict)
	if !ok {
		return nil, fmt.Errorf("expected a dict, got %s", typeName(in))
	}
	column := d.keys
	switch by {
	case "key":
	case "value":
		column = d.vals
	default:
		return nil, fmt.Errorf(`by %q: expected "key" or "value"`, by)
	}
	keys, err := r.keys(column, nil, p.truth(0, false))
	if err != nil {
		return nil, err
	}
	if err := r.grow(pairBytes * len(keys)); err != nil {
		return nil, err
	}
	pairs := d.pairs()
	return &list{pairs}, r.sortBy(pairs, keys, p.truth(2, false))
}

func filterUnique(r *render, in value, a args) (value, error) {
	p := a.bind(0, "case_sensitive", "attribute")
	if p.err != nil {
		return nil, p.err
	}
	items, err := r.items(in)
	if err != nil {
		return nil, err
	}
	keys, err := r.keys(items, p.value(1, nil), p.truth(0, false))
	if err != nil {
		return nil, err
	}
	seen := newDict()
	var out []value
	for i, item := range items {
		before := len(seen.keys)
		if err := r.setItem(seen, keys[i], nil); err != nil {
			return nil, err
		}
		if len(seen.keys) > before {
			out = append(out, item)
		}
	}
	return generator(out), nil
}

// extremeFilter is max or min.
func extremeFilter(largest bool) filterFunc {
	return func(r *render, in value, a args) (value, error) {
		p := a.bind(0, "case_sensitive", "attribute")
		if p.err != nil {
			return nil, p.err
		}
		items, err := r.items(in)
		if err != nil {
			return nil, err
		}
		if len(items) == 0 {
			return undefined("the sequence is empty"), nil
		}
		keys, err := r.keys(items, p.value(1, nil), p.truth(0, false))
		if err != nil {
			return nil, err
		}
		best := 0
		for i := 1; i < len(keys); i++ {
			c, ok, err := r.order(keys[i], keys[best])
			if err != nil {
				return nil, err
			}
			if ok && (largest && c > 0 || !largest && c < 0) {
				best = i
			}
		}
		return items[best], nil
	}
}

func filterSum(r *render, in value, a args) (value, error) {
	p := a.bind(0, "attribute", "start")
	if p.err != nil {
		return nil, p.err
	}
	items, err := r.items(in)
	if err != nil {
		return nil, err
	}
	if p.optional(0) {
		if items, err = r.keys(items, p.vals[0], true); err != nil {
			return nil, err
		}
	}
	total := p.value(1, int64(0))
	if _, ok := text(total); ok {
		return nil, errors.New("strings are joined, not summed")
	}
	for _, item := range items {
		if err := r.spend(1); err != nil {
			return nil, err
		}
		if total, err = r.binary("+", total, item); err != nil {
			return nil, err
		}
	}
	return total, nil
}

func filterBatch(r *render, in value, a args) (value, error) {
	p := a.bind(1, "linecount", "fill_with")
	size := p.int(0, 1)
	if p.err != nil {
		return nil, p.err
	}
	if size < 1 {
		return nil, fmt.Errorf("linecount %d: expected at least 1", size)
	}
	items, err := r.items(in)
	if err != nil {
		return nil, err
	}
	var rows []value
	for len(items) > 0 {
		if err := r.grow(48); err != nil {
			return nil, err
		}
		n := int(min(size, int64(len(items))))
		row := items[:n:n]
		items = items[n:]
		if missing := size - int64(n); missing > 0 && p.optional(1) {
			if err := r.growTimes(size, 16); err != nil {
				return nil, err
			}
			for range missing {
				row = append(row, p.vals[1])
			}
		}
		rows = append(rows, &list{row})
	}
	return generator(rows), nil
}

// filterGroupBy gives pairs of a key and the list of the items that have it.
func filterGroupBy(r *render, in value, a args) (value, error) {
	p := a.bind(1, "attribute", "default", "case_sensitive")
	if p.err != nil {
		return nil, p.err
	}
	items, err := r.items(in)
	if err != nil {
		return nil, err
	}
	names, err := r.keys(items, p.vals[0], true)
	if err != nil {
		return nil, err
	}
	for i, name := range names {
		if _, missing := name.(undefined); missing && p.optional(1) {
			names[i] = p.vals[1]
		}
	}
	keys, err := r.keys(names, nil, p.truth(2, false))
	if err != nil {
		return nil, err
	}
	if err := r.grow(128 * len(items)); err != nil {
		return nil, err
	}
	rows := make([]value, len(items)) // item, its name, its key
	for i, item := range items {
		rows[i] = tuple{item, names[i], keys[i]}
	}
	if err := r.sortBy(rows, keys, false); err != nil {
		return nil, err
	}
	var groups []value
	var group *list
	for i, row := range rows {
		row := row.(tuple)
		same := false
		if i > 0 {
			if same, err = r.equal(rows[i-1].(tuple)[2], row[2]); err != nil {
				return nil, err
			}
		}
		if !same {
			group = &list{}
			groups = append(groups, tuple{row[1], group})
		}
		group.items = append(group.items, row[0])
	}
	return &list{groups}, nil
}

// filterMap applies a filter to each item, or looks up an attribute of each.
func filterMap(r *render, in value, a args) (value, error) {
	if !truth(in) { // none too has no items here
		return generator(nil), nil
	}
	items, err := r.items(in)
	if err != nil {
		return nil, err
	}
	if len(a.pos) == 0 {
		p := a.bind(0, "attribute", "default")
		if !p.given[0] {
			p.fail("expected a filter's name or an attribute")
		}
		if p.err != nil {
			return nil, p.err
		}
		vals, err := r.keys(items, p.vals[0], true)
		if err != nil {
			return nil, err
		}
		for i, v := range vals {
			if _, missing := v.(undefined); missing && p.optional(1) {
				vals[i] = p.vals[1]
			}
		}
		return generator(vals), nil
	}
	name, _ := text(a.pos[0])
	fn := filterByName(name)
	if fn == nil {
		return nil, fmt.Errorf("no filter is named %q", name)
	}
	rest := args{pos: a.pos[1:], kw: a.kw}
	for i, item := range items {
		if err := r.enter(); err != nil {
			return nil, err
		}
		items[i], err = fn(r, item, rest)
		r.leave()
		if err != nil {
			return nil, fmt.Errorf("filter %s: %w", name, err)
		}
	}
	return generator(items), nil
}

// selectFilter is select, reject, selectattr or rejectattr: it keeps the items
// for which a test holds, or does not.
func selectFilter(want, attr bool) filterFunc {
	return func(r *render, in value, a args) (value, error) {
		if !truth(in) { // none too has no items here
			return generator(nil), nil
		}
		items, err := r.items(in)
		if err != nil {
			return nil, err
		}
		vals := items
		if attr {
			if len(a.pos) == 0 {
				return nil, errors.New("expected an attribute's name")
			}
			if vals, err = r.keys(items, a.pos[0], true); err != nil {
				return nil, err
			}
			a.pos = a.pos[1:]
		}
		test := func(r *render, in value, a args) (bool, error) { return truth(in), nil }
		if len(a.pos) > 0 {
			name, _ := text(a.pos[0])
			if test = testByName(name); test == nil {
				return nil, fmt.Errorf("no test is named %q", name)
			}
			a.pos = a.pos[1:]
		}
		var kept []value
		for i, item := range items {
			if err := r.spend(1); err != nil {
				return nil, err
			}
			ok, err := test(r, vals[i], a)
			if err != nil {
				return nil, err
			}
			if ok == want {
				kept = append(kept, item)
			}
		}
		return generator(kept), nil
	}
}
