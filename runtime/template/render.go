package template

import (
	"fmt"
	"time"
)

// render is one run of a template: what is left of its limits, and its output.
type render struct {
	lim    Limits
	steps  int
	memory int
	depth  int
	now    time.Time
	out    *buffer // where statements write now
	nested int     // captures of output in progress
}

// spend counts n steps beyond those of evaluating nodes.
func (r *render) spend(n int) error {
	if r.steps -= n; r.steps < 0 {
		return fmt.Errorf("the template runs too long: %w: %d steps", ErrLimit, r.lim.Steps)
	}
	return nil
}

// grow counts n bytes of memory about to be allocated.
func (r *render) grow(n int) error {
	if n < 0 || n > r.memory {
		return fmt.Errorf("the template builds values that are too large: %w: %d bytes of memory", ErrLimit, r.lim.Memory)
	}
	r.memory -= n
	return r.spend(n / 32)
}

// growTimes counts n copies of size bytes.
func (r *render) growTimes(n int64, size int) error {
	if n > 0 && size > 0 && n > int64(r.memory)/int64(size) {
		return r.grow(-1)
	}
	return r.grow(int(max(n, 0)) * size)
}

// enter counts a step and one level of nesting; leave ends the level.
func (r *render) enter() error {
	if r.depth++; r.depth > r.lim.Depth {
		r.depth--
		return fmt.Errorf("the template nests too deep: %w: %d levels", ErrLimit, r.lim.Depth)
	}
	if err := r.spend(1); err != nil {
		r.depth--
		return err
	}
	return nil
}

func (r *render) leave() { r.depth-- }

// write appends to the output or to the capture in progress.
func (r *render) write(s string) error {
	if r.nested == 0 && len(s) > r.lim.Output-r.out.text.Len() {
		return fmt.Errorf("the rendered text is too long: %w: %d bytes of output", ErrLimit, r.lim.Output)
	}
	return r.out.write(s)
}

// capture runs statements and returns what they write.
func (r *render) capture(body []stmt, s *scope) (string, flow, error) {
	outer := r.out
	r.out = &buffer{r: r}
	r.nested++
	f, err := r.execBody(body, s)
	out := r.out.text.String()
	r.nested--
	r.out = outer
	return out, f, err
}

// scope holds the variables of a block and leads to those around it.
type scope struct {
	vars  map[string]value
	outer *scope
}

func newScope(outer *scope) *scope { return &scope{outer: outer} }

func (s *scope) set(name string, v value) {
	if s.vars == nil {
		s.vars = map[string]value{}
	}
	s.vars[name] = v
}

func (s *scope) lookup(name string) value {
	for ; s != nil; s = s.outer {
		if v, ok := s.vars[name]; ok {
			return v
		}
	}
	if f := globalByName(name); f != nil {
		return f
	}
	return undefined(fmt.Sprintf("variable %q is undefined", name))
}

// at gives an error the place of the node, unless an inner node gave it one.
func (a at) wrap(err error) error {
	switch err.(type) {
	case nil, *posError, *RaiseError:
		return err
	}
	return &posError{int(a), err}
}

// eval evaluates one node.
func (r *render) eval(x expr, s *scope) (value, error) {
	if err := r.enter(); err != nil {
		return nil, at(x.pos()).wrap(err)
	}
	v, err := x.eval(r, s)
	r.leave()
	if err != nil {
		return nil, at(x.pos()).wrap(err)
	}
	return v, nil
}

func (r *render) execBody(body []stmt, s *scope) (flow, error) {
	for _, st := range body {
		if err := r.enter(); err != nil {
			return flowNext, at(st.pos()).wrap(err)
		}
		f, err := st.exec(r, s)
		r.leave()
		if err != nil {
			return flowNext, at(st.pos()).wrap(err)
		}
		if f != flowNext {
			return f, nil
		}
	}
	return flowNext, nil
}

func (st *dataStmt) exec(r *render, s *scope) (flow, error) {
	return flowNext, r.write(st.text)
}

func (st *printStmt) exec(r *render, s *scope) (flow, error) {
	v, err := r.eval(st.x, s)
	if err != nil {
		return flowNext, err
	}
	out, err := r.str(v)
	if err != nil {
		return flowNext, err
	}
	return flowNext, r.write(out)
}

func (st *ifStmt) exec(r *render, s *scope) (flow, error) {
	v, err := r.eval(st.test, s)
	if err != nil {
		return flowNext, err
	}
	if truth(v) {
		return r.execBody(st.then, s)
	}
	return r.execBody(st.alt, s)
}

// loop is the variable "loop" of a running for statement.
type loop struct {
	items   []value
	index   int // from 0
	changed tuple
}

func (st *forStmt) exec(r *render, s *scope) (flow, error) {
	iter, err := r.eval(st.iter, s)
	if err != nil {
		return flowNext, err
	}
	items, err := r.items(iter)
	if err != nil {
		return flowNext, at(st.iter.pos()).wrap(err)
	}
	if st.test != nil {
		kept := items[:0]
		for _, item := range items {
			inner := newScope(s)
			if err := r.assign(st.target, item, inner); err != nil {
				return flowNext, err
			}
			v, err := r.eval(st.test, inner)
			if err != nil {
				return flowNext, err
			}
			if truth(v) {
				kept = append(kept, item)
			}
		}
		items = kept
	}
	if len(items) == 0 {
		return r.execBody(st.alt, newScope(s))
	}
	l := &loop{items: items}
	for i, item := range items {
		if err := r.spend(1); err != nil {
			return flowNext, err
		}
		l.index = i
		inner := newScope(s)
		inner.set("loop", l)
		if err := r.assign(st.target, item, inner); err != nil {
			return flowNext, err
		}
		f, err := r.execBody(st.body, inner)
		if err != nil {
			return flowNext, err
		}
		if f == flowBreak {
			break
		}
	}
	return flowNext, nil
}

// assign binds a target in a scope, or sets an attribute of a namespace.
func (r *render) assign(t target, v value, s *scope) error {
	if t.parts != nil {
		items, err := r.items(v)
		if err != nil {
			return t.wrap(err)
		}
		if len(items) != len(t.parts) {
			return errorAt(t.pos(), "cannot unpack %d values into %d names", len(items), len(t.parts))
		}
		for i, part := range t.parts {
			if err := r.assign(part, items[i], s); err != nil {
				return err
			}
		}
		return nil
	}
	if t.attr == "" {
		s.set(t.name, v)
		return nil
	}
	ns, ok := s.lookup(t.name).(*namespace)
	if !ok {
		return errorAt(t.pos(), "cannot set attribute %q: %q is no namespace", t.attr, t.name)
	}
	ns.attrs.setString(t.attr, v)
	return nil
}

func (st *setStmt) exec(r *render, s *scope) (flow, error) {
	v, err := r.eval(st.val, s)
	if err != nil {
		return flowNext, err
	}
	return flowNext, r.assign(st.target, v, s)
}

func (st *setBlockStmt) exec(r *render, s *scope) (flow, error) {
	out, f, err := r.capture(st.body, newScope(s))
	if err != nil || f != flowNext {
		return f, err
	}
	v, err := r.filterBlock(st.filters, out, s)
	if err != nil {
		return flowNext, err
	}
	return flowNext, r.assign(st.target, v, s)
}

func (st *filterStmt) exec(r *render, s *scope) (flow, error) {
	out, f, err := r.capture(st.body, newScope(s))
	if err != nil || f != flowNext {
		return f, err
	}
	v, err := r.filterBlock(st.filters, out, s)
	if err != nil {
		return flowNext, err
	}
	if out, err = r.str(v); err != nil {
		return flowNext, err
	}
	return flowNext, r.write(out)
}

// filterBlock applies the filters of a block to its text in order.
func (r *render) filterBlock(filters []*filterExpr, text string, s *scope) (value, error) {
	var v value = text
	for _, f := range filters {
		var err error
		if v, err = f.apply(r, v, s); err != nil {
			return nil, f.wrap(err)
		}
	}
	return v, nil
}

func (st *macroStmt) exec(r *render, s *scope) (flow, error) {
	s.set(st.name, &macro{def: st, scope: s})
	return flowNext, nil
}

func (st *callStmt) exec(r *render, s *scope) (flow, error) {
	fn, err := r.eval(st.call.fn, s)
	if err != nil {
		return flowNext, err
	}
	a, err := r.evalArgs(st.call.args, s)
	if err != nil {
		return flowNext, err
	}
	caller := &macro{def: st.caller, scope: s}
	if m, ok := fn.(*macro); ok {
		fn = &macro{def: m.def, scope: m.scope, caller: caller}
	} else {
		a.kw = append(a.kw, namedValue{"caller", caller})
	}
	v, err := r.call(fn, a)
	if err != nil {
		return flowNext, st.call.wrap(err)
	}
	out, err := r.str(v)
	if err != nil {
		return flowNext, err
	}
	return flowNext, r.write(out)
}

func (st *withStmt) exec(r *render, s *scope) (flow, error) {
	inner := newScope(s)
	for i, t := range st.targets {
		v, err := r.eval(st.vals[i], s)
		if err != nil {
			return flowNext, err
		}
		inner.set(t.name, v)
	}
	return r.execBody(st.body, inner)
}

func (st *generationStmt) exec(r *render, s *scope) (flow, error) {
	return r.execBody(st.body, newScope(s))
}

func (st *loopStmt) exec(r *render, s *scope) (flow, error) { return st.flow, nil }

// invoke runs a macro: parameters come from positional arguments, then keyword
// arguments, then defaults; one without any of these is undefined.
func (r *render) invoke(m *macro, a args) (value, error) {
	s := newScope(m.scope)
	used := make(map[string]bool, len(a.kw))
	for i, name := range m.def.params {
		if i < len(a.pos) {
			s.set(name, a.pos[i])
			continue
		}
		if v, ok := a.keyword(name); ok {
			s.set(name, v)
			used[name] = true
			continue
		}
		var v value = undefined(fmt.Sprintf("parameter %q was not provided", name))
		if k := i - (len(m.def.params) - len(m.def.defaults)); k >= 0 {
			var err error
			if v, err = r.eval(m.def.defaults[k], s); err != nil {
				return nil, err
			}
		}
		s.set(name, v)
	}
	rest := newDict()
	for _, kw := range a.kw {
		if used[kw.name] {
			continue
		}
		if !m.def.kwargs {
			return nil, fmt.Errorf("macro %q takes no keyword argument %q", m.def.name, kw.name)
		}
		rest.setString(kw.name, kw.val)
	}
	extra := a.pos[min(len(m.def.params), len(a.pos)):]
	if len(extra) > 0 && !m.def.varargs {
		return nil, fmt.Errorf("macro %q takes %d arguments, got %d", m.def.name, len(m.def.params), len(a.pos))
	}
	if m.def.kwargs {
		s.set("kwargs", rest)
	}
	if m.def.varargs {
		s.set("varargs", tuple(extra))
	}
	if m.caller != nil {
		s.set("caller", m.caller)
	}
	out, _, err := r.capture(m.def.body, s)
	return out, err
}
