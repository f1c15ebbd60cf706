package template

import "fmt"

// maxKeywords bounds the keyword arguments of a call, which are searched in order.
const maxKeywords = 255

// args are the evaluated arguments of a call.
type args struct {
	pos []value
	kw  []namedValue
}

type namedValue struct {
	name string
	val  value
}

func (a args) keyword(name string) (value, bool) {
	for _, kw := range a.kw {
		if kw.name == name {
			return kw.val, true
		}
	}
	return nil, false
}

func (r *render) evalArgs(l argList, s *scope) (args, error) {
	var a args
	var err error
	if a.pos, err = r.evalAll(l.pos, s); err != nil {
		return a, err
	}
	for _, kw := range l.kw {
		v, err := r.eval(kw.val, s)
		if err != nil {
			return a, err
		}
		if err := a.addKeyword(kw.name, v); err != nil {
			return a, err
		}
	}
	if l.star != nil {
		v, err := r.eval(l.star, s)
		if err != nil {
			return a, err
		}
		items, err := r.items(v)
		if err != nil {
			return a, err
		}
		a.pos = append(a.pos, items...)
	}
	if l.starKW != nil {
		v, err := r.eval(l.starKW, s)
		if err != nil {
			return a, err
		}
		d, ok := v.(*dict)
		if !ok {
			return a, fmt.Errorf("**argument: expected a dict, got %s", typeName(v))
		}
		for i, key := range d.keys {
			name, ok := text(key)
			if !ok {
				return a, fmt.Errorf("**argument: expected keys that are strings, got %s", typeName(key))
			}
			if err := a.addKeyword(name, d.vals[i]); err != nil {
				return a, err
			}
		}
	}
	return a, nil
}

func (a *args) addKeyword(name string, v value) error {
	if len(a.kw) == maxKeywords {
		return fmt.Errorf("more than %d keyword arguments", maxKeywords)
	}
	if _, ok := a.keyword(name); ok {
		return fmt.Errorf("keyword argument %q is given twice", name)
	}
	a.kw = append(a.kw, namedValue{name, v})
	return nil
}

// params are arguments matched to a built-in function's parameters. Its methods
// record the first error in err, which the function checks once it has read them.
type params struct {
	names []string
	vals  []value
	given []bool
	err   error
}

// bind matches arguments to the named parameters; the first required ones must be given.
func (a args) bind(required int, names ...string) *params {
	p := &params{names: names, vals: make([]value, len(names)), given: make([]bool, len(names))}
	if len(a.pos) > len(names) {
		p.err = fmt.Errorf("takes at most %d arguments, got %d", len(names), len(a.pos))
		return p
	}
	for i, v := range a.pos {
		p.vals[i], p.given[i] = v, true
	}
next:
	for _, kw := range a.kw {
		for i, name := range names {
			if name == kw.name {
				if p.given[i] {
					p.fail("argument %q is given twice", name)
				}
				p.vals[i], p.given[i] = kw.val, true
				continue next
			}
		}
		p.fail("takes no argument %q", kw.name)
	}
	for i := range required {
		if !p.given[i] {
			p.fail("argument %q is missing", names[i])
		}
	}
	return p
}

func (p *params) fail(format string, args ...any) {
	if p.err == nil {
		p.err = fmt.Errorf(format, args...)
	}
}

// value returns parameter i, or def if it was not given.
func (p *params) value(i int, def value) value {
	if !p.given[i] {
		return def
	}
	return p.vals[i]
}

func (p *params) truth(i int, def bool) bool { return truth(p.value(i, def)) }

func (p *params) int(i int, def int64) int64 {
	n, ok := integer(p.value(i, def))
	if !ok {
		p.fail("argument %q: expected an integer, got %s", p.names[i], typeName(p.vals[i]))
	}
	return n
}

func (p *params) text(i int, def string) string {
	s, ok := text(p.value(i, def))
	if !ok {
		p.fail("argument %q: expected a string, got %s", p.names[i], typeName(p.vals[i]))
	}
	return s
}

// optional tells whether parameter i was given and is not none.
func (p *params) optional(i int) bool { return p.given[i] && p.vals[i] != nil }
