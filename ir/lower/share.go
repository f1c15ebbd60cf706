package lower

import "github.com/swizzle-rt/swizzle/ir"

// Share computes a pure expression once where an equal one dominates it, after bringing sums of indices into the form
// (… + variable) + constant, so that addresses that differ by a constant share their variable part.
func Share(k *ir.Kernel) (*ir.Kernel, error) {
	s := &sharer{rewriter: rewrite(k)}
	s.body(k.Body, &s.to.Body, nil)
	return s.to, nil
}

// key identifies a pure expression.
type key struct {
	op      ir.Op
	t       ir.Type
	imm     int64
	table   [16]byte
	atom    *ir.Atom
	a, b, c *ir.Value
}

type scope struct {
	seen  map[key][]*ir.Value
	outer *scope
}

func (s *scope) find(k key) []*ir.Value {
	for ; s != nil; s = s.outer {
		if v := s.seen[k]; v != nil {
			return v
		}
	}
	return nil
}

type sharer struct{ *rewriter }

func (s *sharer) body(body []ir.Stmt, out *[]ir.Stmt, outer *scope) {
	here := &scope{map[key][]*ir.Value{}, outer}
	for _, st := range body {
		switch st := st.(type) {
		case *ir.Instr:
			s.instr(st, out, here)
		case *ir.For:
			n := s.loop(st)
			s.body(st.Body, &n.Body, here)
			*out = append(*out, n)
		case *ir.If:
			n := s.branch(st)
			s.body(st.Then, &n.Then, here)
			s.body(st.Else, &n.Else, here)
			*out = append(*out, n)
		}
	}
}

func (s *sharer) instr(i *ir.Instr, out *[]ir.Stmt, here *scope) {
	if !i.Op.Info().Pure {
		*out = append(*out, s.copy(i))
		return
	}
	n := s.copy(i)
	s.reassociate(n, out, here)
	if v := fold(n); v != nil {
		s.sub[i.Results[0]] = v
		return
	}
	for r, v := range s.emit(n, out, here) {
		s.sub[i.Results[r]] = v
	}
}

// emit appends a pure instruction unless an equal one is in scope, and returns the values that stand for its results.
func (s *sharer) emit(n *ir.Instr, out *[]ir.Stmt, here *scope) []*ir.Value {
	k := key{op: n.Op, imm: n.Imm, atom: n.Atom}
	if len(n.Results) > 0 {
		k.t = n.Results[0].Type
	}
	if n.Table != nil {
		k.table = *n.Table
	}
	for a, v := range n.Args {
		switch a {
		case 0:
			k.a = v
		case 1:
			k.b = v
		case 2:
			k.c = v
		}
	}
	if v := here.find(k); v != nil {
		return v
	}
	here.seen[k] = n.Results
	*out = append(*out, n)
	return n.Results
}

// reassociate turns (x + c) + y into (x + y) + c and (x + c) + d into x + (c + d); index arithmetic is exact.
func (s *sharer) reassociate(n *ir.Instr, out *[]ir.Stmt, here *scope) {
	if n.Op != ir.OpAddX {
		return
	}
	x, c := split(n.Args[0])
	y, d := split(n.Args[1])
	if c == 0 && d == 0 || x == nil && y == nil {
		return
	}
	sum := x
	switch {
	case x == nil:
		sum = y
	case y != nil:
		add := &ir.Instr{Op: ir.OpAddX, Args: []*ir.Value{x, y}, Pos: n.Pos}
		v := s.to.NewValue(ir.Index, max(x.Span, y.Span))
		v.Def, add.Results = add, []*ir.Value{v}
		sum = s.emit(add, out, here)[0]
	}
	n.Args = []*ir.Value{sum, s.emit(s.index(c+d, n.Pos), out, here)[0]}
}

// split returns v as a variable part, nil for none, and a constant.
func split(v *ir.Value) (*ir.Value, int64) {
	if c, ok := v.Const(); ok {
		return nil, c
	}
	if v.Def != nil && v.Def.Op == ir.OpAddX {
		if c, ok := v.Def.Args[1].Const(); ok {
			return v.Def.Args[0], c
		}
	}
	return v, 0
}

// index makes an Index constant.
func (s *sharer) index(c int64, pos ir.Pos) *ir.Instr {
	v := s.to.NewValue(ir.Index, ir.Block)
	v.Def = &ir.Instr{Op: ir.OpConst, Imm: c, Results: []*ir.Value{v}, Pos: pos}
	return v.Def
}

// Prune drops pure instructions, loads and register reads whose results nobody uses, and loops and branches left empty.
func Prune(k *ir.Kernel) (*ir.Kernel, error) {
	used := map[*ir.Value]bool{}
	p := &pruner{rewrite(k), used}
	mark(k.Body, used)
	p.body(k.Body, &p.to.Body)
	return p.to, nil
}

type pruner struct {
	*rewriter
	used map[*ir.Value]bool
}

// mark walks backwards, so that a use is seen before its definition, and reports whether anything of the body is needed.
func mark(body []ir.Stmt, used map[*ir.Value]bool) bool {
	any := false
	for n := len(body) - 1; n >= 0; n-- {
		switch s := body[n].(type) {
		case *ir.Instr:
			if needed(s, used) {
				any = true
				for _, a := range s.Args {
					used[a] = true
				}
			}
		case *ir.For:
			if mark(s.Body, used) {
				any = true
				used[s.Lo], used[s.Hi] = true, true
			}
		case *ir.If:
			then, other := mark(s.Then, used), mark(s.Else, used)
			if then || other {
				any = true
				used[s.Cond] = true
			}
		}
	}
	return any
}

func needed(i *ir.Instr, used map[*ir.Value]bool) bool {
	if len(i.Results) == 0 {
		return true
	}
	for _, r := range i.Results {
		if used[r] {
			return true
		}
	}
	return false
}

func (p *pruner) body(body []ir.Stmt, out *[]ir.Stmt) {
	for _, s := range body {
		switch s := s.(type) {
		case *ir.Instr:
			if needed(s, p.used) {
				*out = append(*out, p.copy(s))
			}
		case *ir.For:
			n := p.loop(s)
			p.body(s.Body, &n.Body)
			if len(n.Body) > 0 {
				*out = append(*out, n)
			}
		case *ir.If:
			n := p.branch(s)
			p.body(s.Then, &n.Then)
			p.body(s.Else, &n.Else)
			if len(n.Then)+len(n.Else) > 0 {
				*out = append(*out, n)
			}
		}
	}
}
