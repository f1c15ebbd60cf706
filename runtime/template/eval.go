package template

import "fmt"

func (x *literal) eval(r *render, s *scope) (value, error) { return x.val, nil }

func (x *nameExpr) eval(r *render, s *scope) (value, error) { return s.lookup(x.name), nil }

func (r *render) evalAll(xs []expr, s *scope) ([]value, error) {
	if err := r.grow(32 + 16*len(xs)); err != nil {
		return nil, err
	}
	vals := make([]value, len(xs))
	for i, x := range xs {
		var err error
		if vals[i], err = r.eval(x, s); err != nil {
			return nil, err
		}
	}
	return vals, nil
}

func (x *sequenceExpr) eval(r *render, s *scope) (value, error) {
	items, err := r.evalAll(x.items, s)
	if err != nil {
		return nil, err
	}
	if x.tuple {
		return tuple(items), nil
	}
	return &list{items}, nil
}

func (x *dictExpr) eval(r *render, s *scope) (value, error) {
	d := newDict()
	for i := range x.keys {
		key, err := r.eval(x.keys[i], s)
		if err != nil {
			return nil, err
		}
		val, err := r.eval(x.vals[i], s)
		if err != nil {
			return nil, err
		}
		if err := r.setItem(d, key, val); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// What an entry of a dict takes, and what it takes in a list of pairs.
const (
	entryBytes = 160
	pairBytes  = 80
)

// setItem binds a key of a dict.
func (r *render) setItem(d *dict, key, val value) error {
	hash, err := r.hashKey(key)
	if err != nil {
		return err
	}
	if err := r.grow(entryBytes); err != nil {
		return err
	}
	d.set(hash, key, val)
	return nil
}

func (x *attrExpr) eval(r *render, s *scope) (value, error) {
	obj, err := r.eval(x.obj, s)
	if err != nil {
		return nil, err
	}
	return r.attribute(obj, x.name)
}

func (x *itemExpr) eval(r *render, s *scope) (value, error) {
	obj, err := r.eval(x.obj, s)
	if err != nil {
		return nil, err
	}
	key, err := r.eval(x.key, s)
	if err != nil {
		return nil, err
	}
	return r.item(obj, key)
}

func (x *sliceExpr) eval(r *render, s *scope) (value, error) {
	obj, err := r.eval(x.obj, s)
	if err != nil {
		return nil, err
	}
	var bounds [3]value
	for i, b := range []expr{x.start, x.stop, x.step} {
		if b == nil {
			continue
		}
		if bounds[i], err = r.eval(b, s); err != nil {
			return nil, err
		}
	}
	return r.slice(obj, bounds)
}

func (x *callExpr) eval(r *render, s *scope) (value, error) {
	fn, err := r.eval(x.fn, s)
	if err != nil {
		return nil, err
	}
	a, err := r.evalArgs(x.args, s)
	if err != nil {
		return nil, err
	}
	return r.call(fn, a)
}

// call calls a function or macro.
func (r *render) call(fn value, a args) (value, error) {
	switch fn := fn.(type) {
	case *function:
		v, err := fn.call(r, a)
		if err != nil {
			if _, raised := err.(*RaiseError); !raised {
				err = fmt.Errorf("%s: %w", fn.name, err)
			}
			return nil, err
		}
		return v, nil
	case *macro:
		return r.invoke(fn, a)
	case undefined:
		return nil, fn.err()
	}
	return nil, fmt.Errorf("%s cannot be called", typeName(fn))
}

func (x *filterExpr) eval(r *render, s *scope) (value, error) {
	in, err := r.eval(x.in, s)
	if err != nil {
		return nil, err
	}
	return x.apply(r, in, s)
}

func (x *filterExpr) apply(r *render, in value, s *scope) (value, error) {
	if x.fn == nil {
		return nil, fmt.Errorf("no filter is named %q", x.name)
	}
	a, err := r.evalArgs(x.args, s)
	if err != nil {
		return nil, err
	}
	v, err := x.fn(r, in, a)
	if err != nil {
		return nil, fmt.Errorf("filter %s: %w", x.name, err)
	}
	return v, nil
}

func (x *testExpr) eval(r *render, s *scope) (value, error) {
	in, err := r.eval(x.in, s)
	if err != nil {
		return nil, err
	}
	if x.fn == nil {
		return nil, fmt.Errorf("no test is named %q", x.name)
	}
	a, err := r.evalArgs(x.args, s)
	if err != nil {
		return nil, err
	}
	ok, err := x.fn(r, in, a)
	if err != nil {
		return nil, fmt.Errorf("test %s: %w", x.name, err)
	}
	return ok, nil
}

func (x *notExpr) eval(r *render, s *scope) (value, error) {
	v, err := r.eval(x.x, s)
	return !truth(v), err
}

func (x *signExpr) eval(r *render, s *scope) (value, error) {
	v, err := r.eval(x.x, s)
	if err != nil {
		return nil, err
	}
	if f, ok := v.(float64); ok {
		if x.neg {
			f = -f
		}
		return f, nil
	}
	if n, ok := integer(v); ok {
		if x.neg {
			return subInt(0, n)
		}
		return n, nil
	}
	if u, ok := v.(undefined); ok {
		return nil, u.err()
	}
	return nil, fmt.Errorf("a sign needs a number, got %s", typeName(v))
}

func (x *binaryExpr) eval(r *render, s *scope) (value, error) {
	a, err := r.eval(x.l, s)
	if err != nil {
		return nil, err
	}
	b, err := r.eval(x.r, s)
	if err != nil {
		return nil, err
	}
	return r.binary(x.op, a, b)
}

func (x *concatExpr) eval(r *render, s *scope) (value, error) {
	b := &buffer{r: r}
	for _, part := range x.parts {
		v, err := r.eval(part, s)
		if err != nil {
			return nil, err
		}
		text, err := r.str(v)
		if err != nil {
			return nil, err
		}
		if err := b.write(text); err != nil {
			return nil, err
		}
	}
	return b.text.String(), nil
}

func (x *compareExpr) eval(r *render, s *scope) (value, error) {
	a, err := r.eval(x.first, s)
	if err != nil {
		return nil, err
	}
	for i, op := range x.ops {
		b, err := r.eval(x.rest[i], s)
		if err != nil {
			return nil, err
		}
		ok, err := r.compare(op, a, b)
		if err != nil || !ok {
			return false, err
		}
		a = b
	}
	return true, nil
}

func (r *render) compare(op string, a, b value) (bool, error) {
	switch op {
	case "==":
		return r.equal(a, b)
	case "!=":
		same, err := r.equal(a, b)
		return !same, err
	case "in":
		return r.contains(b, a)
	case "not in":
		in, err := r.contains(b, a)
		return !in, err
	}
	c, ok, err := r.order(a, b)
	if err != nil || !ok {
		return false, err
	}
	switch op {
	case "<":
		return c < 0, nil
	case "<=":
		return c <= 0, nil
	case ">":
		return c > 0, nil
	}
	return c >= 0, nil
}

func (x *logicExpr) eval(r *render, s *scope) (value, error) {
	l, err := r.eval(x.l, s)
	if err != nil || truth(l) == x.or {
		return l, err
	}
	return r.eval(x.r, s)
}

func (x *condExpr) eval(r *render, s *scope) (value, error) {
	test, err := r.eval(x.test, s)
	if err != nil {
		return nil, err
	}
	if truth(test) {
		return r.eval(x.then, s)
	}
	if x.alt == nil {
		return undefined("a condition without else was false"), nil
	}
	return r.eval(x.alt, s)
}
