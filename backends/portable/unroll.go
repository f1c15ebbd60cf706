package portable

import "github.com/swizzle-rt/swizzle/ir"

// unrolled is the number of instructions up to which a loop is unrolled. Longer ones stay loops: small code, and functions
// that the compiler still inlines helpers into.
const unrolled = 64

// unroll replaces short unrolled loops by copies of their bodies and makes plain loops of the others: portable Go may
// address register tiles by variables.
func unroll(k *ir.Kernel) (*ir.Kernel, error) {
	to := &ir.Kernel{Name: k.Name, Lanes: k.Lanes, Groups: k.Groups, Grid: k.Grid, Params: k.Params, Shared: k.Shared, Regs: k.Regs}
	u := &unroller{to, map[*ir.Value]*ir.Value{}}
	u.body(k.Body, &to.Body)
	return to, nil
}

type unroller struct {
	to  *ir.Kernel
	sub map[*ir.Value]*ir.Value
}

func (u *unroller) body(body []ir.Stmt, out *[]ir.Stmt) {
	for _, s := range body {
		switch s := s.(type) {
		case *ir.Instr:
			*out = append(*out, u.instr(s))
		case *ir.If:
			n := &ir.If{Cond: u.sub[s.Cond], Pos: s.Pos}
			u.body(s.Then, &n.Then)
			u.body(s.Else, &n.Else)
			*out = append(*out, n)
		case *ir.For:
			if lo, hi, ok := bounds(s); ok && s.Unroll && trips(s)*size(s.Body) <= unrolled {
				for x := lo; x < hi; x += int64(s.Step) {
					c := &ir.Instr{Op: ir.OpConst, Imm: x, Pos: s.Pos}
					u.sub[s.Var] = u.define(c, ir.Index, ir.Block)
					*out = append(*out, c)
					u.body(s.Body, out)
				}
				continue
			}
			n := &ir.For{Lo: u.sub[s.Lo], Hi: u.sub[s.Hi], Step: s.Step, Pos: s.Pos}
			n.Var = u.to.NewValue(s.Var.Type, s.Var.Span)
			u.sub[s.Var] = n.Var
			u.body(s.Body, &n.Body)
			*out = append(*out, n)
		}
	}
}

func (u *unroller) instr(i *ir.Instr) *ir.Instr {
	n := *i
	n.Args, n.Results = make([]*ir.Value, len(i.Args)), nil
	for a, v := range i.Args {
		n.Args[a] = u.sub[v]
	}
	for _, v := range i.Results {
		u.sub[v] = u.define(&n, v.Type, v.Span)
	}
	return &n
}

// define appends a result to the instruction.
func (u *unroller) define(i *ir.Instr, t ir.Type, s ir.Span) *ir.Value {
	v := u.to.NewValue(t, s)
	v.Def = i
	i.Results = append(i.Results, v)
	return v
}

func bounds(f *ir.For) (lo, hi int64, ok bool) {
	lo, ok1 := f.Lo.Const()
	hi, ok2 := f.Hi.Const()
	return lo, hi, ok1 && ok2
}

// trips returns how often an unrolled loop runs.
func trips(f *ir.For) int {
	lo, hi, _ := bounds(f)
	return max(0, int(hi-lo+int64(f.Step)-1)/f.Step)
}

// size returns the number of instructions after unrolling what is short enough.
func size(body []ir.Stmt) int {
	n := 0
	for _, s := range body {
		switch s := s.(type) {
		case *ir.Instr:
			if s.Op != ir.OpConst {
				n++
			}
		case *ir.If:
			n += size(s.Then) + size(s.Else)
		case *ir.For:
			n += size(s.Body) * max(1, unrolledTrips(s))
		}
	}
	return n
}

func unrolledTrips(f *ir.For) int {
	if _, _, ok := bounds(f); ok && f.Unroll {
		return trips(f)
	}
	return 1
}
