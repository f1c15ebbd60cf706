package lower

import (
	"sort"

	"github.com/swizzle-rt/swizzle/ir"
)

// Promote turns the elements of register tiles into values in straight-line code. Get and Set stay only where control flow
// meets: an element that a loop sets is read by Get where the body first needs it and written by Set at the body's end.
// It takes a kernel whose register indices are constant.
func Promote(k *ir.Kernel) (*ir.Kernel, error) {
	p := &promoter{rewrite(k)}
	env := newEnv(nil)
	p.body(k.Body, &p.to.Body, env)
	return p.to, nil
}

// element is one element of a register tile.
type element struct {
	reg *ir.Reg
	at  int64
}

// env knows the current value of elements; dirty ones are not in their register yet.
type env struct {
	value map[element]*ir.Value
	dirty map[element]bool
}

func newEnv(from *env) *env {
	e := &env{map[element]*ir.Value{}, map[element]bool{}}
	if from != nil {
		for k, v := range from.value {
			e.value[k] = v
		}
	}
	return e
}

type promoter struct{ *rewriter }

func (p *promoter) body(body []ir.Stmt, out *[]ir.Stmt, e *env) {
	for _, s := range body {
		switch s := s.(type) {
		case *ir.Instr:
			p.instr(s, out, e)
		case *ir.For:
			set := elementsSet(s.Body)
			p.flush(out, e, set)
			n := p.loop(s)
			in := newEnv(e)
			in.forget(set)
			p.body(s.Body, &n.Body, in)
			p.flush(&n.Body, in, set)
			*out = append(*out, n)
			e.forget(set)
		case *ir.If:
			set := elementsSet(s.Then)
			for x := range elementsSet(s.Else) {
				set[x] = true
			}
			p.flush(out, e, set)
			n := p.branch(s)
			for _, arm := range []struct {
				body []ir.Stmt
				out  *[]ir.Stmt
			}{{s.Then, &n.Then}, {s.Else, &n.Else}} {
				in := newEnv(e)
				p.body(arm.body, arm.out, in)
				p.flush(arm.out, in, set)
			}
			*out = append(*out, n)
			e.forget(set)
		}
	}
}

func (p *promoter) instr(i *ir.Instr, out *[]ir.Stmt, e *env) {
	switch i.Op {
	case ir.OpGet:
		x := elementOf(i)
		if v := e.value[x]; v != nil {
			p.sub[i.Results[0]] = v
			return
		}
		n := p.copy(i)
		*out = append(*out, n)
		e.value[x] = n.Results[0]
	case ir.OpSet:
		x := elementOf(i)
		e.value[x], e.dirty[x] = p.use(i.Args[1]), true
	default:
		*out = append(*out, p.copy(i))
	}
}

func elementOf(i *ir.Instr) element {
	c, _ := i.Args[0].Const()
	return element{i.Reg, c}
}

// forget drops what is known of elements that other control flow may have set.
func (e *env) forget(set map[element]bool) {
	for x := range set {
		delete(e.value, x)
		delete(e.dirty, x)
	}
}

// flush writes the dirty elements of set to their registers, in a fixed order.
func (p *promoter) flush(out *[]ir.Stmt, e *env, set map[element]bool) {
	var list []element
	for x := range e.dirty {
		if set[x] {
			list = append(list, x)
		}
	}
	number := map[*ir.Reg]int{}
	for n, r := range p.to.Regs {
		number[r] = n
	}
	sort.Slice(list, func(i, j int) bool {
		if list[i].reg != list[j].reg {
			return number[list[i].reg] < number[list[j].reg]
		}
		return list[i].at < list[j].at
	})
	for _, x := range list {
		at := p.constant(out, ir.Index, x.at, ir.Pos{})
		*out = append(*out, &ir.Instr{Op: ir.OpSet, Reg: x.reg, Args: []*ir.Value{at, e.value[x]}})
		delete(e.dirty, x)
	}
}

func elementsSet(body []ir.Stmt) map[element]bool {
	set := map[element]bool{}
	ir.Walk(body, func(s ir.Stmt) {
		if i, ok := s.(*ir.Instr); ok && i.Op == ir.OpSet {
			set[elementOf(i)] = true
		}
	})
	return set
}
