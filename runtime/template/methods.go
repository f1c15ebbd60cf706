package template

import (
	"errors"
	"fmt"
	"slices"
)

// method makes a bound method with the named parameters.
func method(name string, required int, names []string, call func(r *render, p *params) (value, error)) (value, bool) {
	return &function{name, func(r *render, a args) (value, error) {
		p := a.bind(required, names...)
		if p.err != nil {
			return nil, p.err
		}
		v, err := call(r, p)
		if p.err != nil {
			return nil, p.err
		}
		return v, err
	}}, true
}

func sequenceMethod(v value, name string) (value, bool) {
	switch name {
	case "index", "count":
	default:
		return nil, false
	}
	return method(name, 1, []string{"value"}, func(r *render, p *params) (value, error) {
		items, _, _ := sequence(v)
		n := int64(0)
		for i, item := range items {
			same, err := r.equal(item, p.vals[0])
			if err != nil {
				return nil, err
			}
			if same && name == "index" {
				return int64(i), nil
			}
			if same {
				n++
			}
		}
		if name == "index" {
			return nil, errors.New("the value is not in the list")
		}
		return n, nil
	})
}

func listMethod(l *list, name string) (value, bool) {
	switch name {
	case "append":
		return method(name, 1, []string{"value"}, func(r *render, p *params) (value, error) {
			l.items = append(l.items, p.vals[0])
			return nil, r.grow(64)
		})
	case "extend":
		return method(name, 1, []string{"values"}, func(r *render, p *params) (value, error) {
			items, err := r.items(p.vals[0])
			if err == nil {
				err = r.grow(64 * len(items))
			}
			if err == nil {
				l.items = append(l.items, items...)
			}
			return nil, err
		})
	case "insert":
		return method(name, 2, []string{"index", "value"}, func(r *render, p *params) (value, error) {
			i, n := p.int(0, 0), int64(len(l.items))
			if i < 0 {
				i = max(i+n, 0)
			}
			l.items = slices.Insert(l.items, int(min(i, n)), p.vals[1])
			return nil, r.grow(32 + 16*len(l.items))
		})
	case "pop":
		return method(name, 0, []string{"index"}, func(r *render, p *params) (value, error) {
			i, ok := index(p.int(0, -1), len(l.items))
			if !ok {
				return nil, errors.New("the list has no such index")
			}
			v := l.items[i]
			l.items = slices.Delete(l.items, i, i+1)
			return v, r.spend(len(l.items) - i)
		})
	case "remove":
		return method(name, 1, []string{"value"}, func(r *render, p *params) (value, error) {
			for i, item := range l.items {
				same, err := r.equal(item, p.vals[0])
				if err != nil {
					return nil, err
				}
				if same {
					l.items = slices.Delete(l.items, i, i+1)
					return nil, nil
				}
			}
			return nil, errors.New("the value is not in the list")
		})
	case "reverse":
		return method(name, 0, nil, func(r *render, p *params) (value, error) {
			slices.Reverse(l.items)
			return nil, r.spend(len(l.items))
		})
	case "clear":
		return method(name, 0, nil, func(r *render, p *params) (value, error) {
			l.items = nil
			return nil, nil
		})
	case "copy":
		return method(name, 0, nil, func(r *render, p *params) (value, error) {
			items, err := r.items(l)
			return &list{items}, err
		})
	}
	return sequenceMethod(l, name)
}

func dictMethod(d *dict, name string) (value, bool) {
	switch name {
	case "get", "setdefault":
		return method(name, 1, []string{"key", "default"}, func(r *render, p *params) (value, error) {
			hash, err := r.hashKey(p.vals[0])
			if err != nil {
				return nil, err
			}
			if v, ok := d.get(hash); ok {
				return v, nil
			}
			def := p.value(1, nil)
			if name == "setdefault" {
				return def, r.setItem(d, p.vals[0], def)
			}
			return def, nil
		})
	case "items", "keys", "values":
		return method(name, 0, nil, func(r *render, p *params) (value, error) {
			if err := r.grow(pairBytes * len(d.keys)); err != nil {
				return nil, err
			}
			view := &iterator{name: "dict_" + name}
			switch name {
			case "items":
				view.items = d.pairs()
			case "keys":
				view.items = slices.Clone(d.keys)
			case "values":
				view.items = slices.Clone(d.vals)
			}
			return view, nil
		})
	case "pop":
		return method(name, 1, []string{"key", "default"}, func(r *render, p *params) (value, error) {
			hash, err := r.hashKey(p.vals[0])
			if err != nil {
				return nil, err
			}
			v, ok := d.get(hash)
			if !ok && !p.given[1] {
				return nil, errors.New("the dict has no such key")
			}
			if !ok {
				return p.vals[1], nil
			}
			d.remove(hash)
			return v, r.spend(len(d.keys))
		})
	case "update":
		return &function{name, func(r *render, a args) (value, error) {
			return nil, r.updateDict(d, a)
		}}, true
	case "clear":
		return method(name, 0, nil, func(r *render, p *params) (value, error) {
			*d = *newDict()
			return nil, nil
		})
	case "copy":
		return method(name, 0, nil, func(r *render, p *params) (value, error) {
			out := newDict()
			return out, r.updateDict(out, args{pos: []value{d}})
		})
	}
	return nil, false
}

// updateDict adds the entries of a dict or of a list of pairs, and keyword arguments.
func (r *render) updateDict(d *dict, a args) error {
	if len(a.pos) > 1 {
		return fmt.Errorf("takes at most one positional argument, got %d", len(a.pos))
	}
	for _, arg := range a.pos {
		if ns, ok := arg.(*namespace); ok {
			arg = ns.attrs
		}
		if from, ok := arg.(*dict); ok {
			if err := r.grow(pairBytes * len(from.keys)); err != nil {
				return err
			}
			arg = &iterator{items: from.pairs()}
		}
		pairs, err := r.items(arg)
		if err != nil {
			return err
		}
		for _, pair := range pairs {
			kv, err := r.items(pair)
			if err != nil {
				return err
			}
			if len(kv) != 2 {
				return fmt.Errorf("expected pairs of key and value, got %d items", len(kv))
			}
			if err := r.setItem(d, kv[0], kv[1]); err != nil {
				return err
			}
		}
	}
	for _, kw := range a.kw {
		if err := r.setItem(d, kw.name, kw.val); err != nil {
			return err
		}
	}
	return nil
}
