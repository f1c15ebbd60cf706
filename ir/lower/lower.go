// Package lower turns a kernel as written into one that a backend can print. A pass takes a kernel and returns a new one
// with the same meaning, bit for bit: the interpreter runs both in the tests.
package lower

import "github.com/swizzle-rt/swizzle/ir"

// Pass is a rewriting of kernels that keeps their meaning.
type Pass struct {
	Name string
	Run  func(*ir.Kernel) (*ir.Kernel, error)
}

// CPU is the list of passes for CPU backends, in order.
var CPU = []Pass{
	{"unroll", Unroll},
	{"share", Share},
	{"promote", Promote},
	{"prune", Prune},
}

// GPU is the list of passes for GPU backends, in order. Register tiles stay: they become local variables there.
var GPU = []Pass{
	{"unroll", Unroll},
	{"share", Share},
	{"prune", Prune},
}

// Run applies the passes in order.
func Run(k *ir.Kernel, passes []Pass) (*ir.Kernel, error) {
	for _, p := range passes {
		next, err := p.Run(k)
		if err != nil {
			return nil, err
		}
		k = next
	}
	return k, nil
}

// rewriter copies a kernel; sub maps old values to new ones, and a pass replaces the copy of what it changes.
type rewriter struct {
	from, to *ir.Kernel
	sub      map[*ir.Value]*ir.Value
}

func rewrite(k *ir.Kernel) *rewriter {
	to := &ir.Kernel{Name: k.Name, Lanes: k.Lanes, Groups: k.Groups, Grid: k.Grid, Params: k.Params, Shared: k.Shared, Regs: k.Regs}
	return &rewriter{k, to, map[*ir.Value]*ir.Value{}}
}

func (r *rewriter) use(v *ir.Value) *ir.Value {
	if v == nil {
		return nil
	}
	return r.sub[v]
}

// copy returns the instruction over the new values, with new results.
func (r *rewriter) copy(i *ir.Instr) *ir.Instr {
	n := *i
	n.Args = make([]*ir.Value, len(i.Args))
	for a, v := range i.Args {
		n.Args[a] = r.use(v)
	}
	n.Results = make([]*ir.Value, len(i.Results))
	for a, v := range i.Results {
		w := r.to.NewValue(v.Type, v.Span)
		w.Def = &n
		n.Results[a] = w
		r.sub[v] = w
	}
	return &n
}

// loop returns an empty copy of the loop, its variable new.
func (r *rewriter) loop(f *ir.For) *ir.For {
	n := *f
	n.Lo, n.Hi, n.Body = r.use(f.Lo), r.use(f.Hi), nil
	n.Var = r.to.NewValue(f.Var.Type, f.Var.Span)
	r.sub[f.Var] = n.Var
	return &n
}

func (r *rewriter) branch(s *ir.If) *ir.If {
	return &ir.If{Cond: r.use(s.Cond), Pos: s.Pos}
}

// constant appends an Index or Bool constant to a block.
func (r *rewriter) constant(out *[]ir.Stmt, t ir.Type, bits int64, pos ir.Pos) *ir.Value {
	v := r.to.NewValue(t, ir.Block)
	v.Def = &ir.Instr{Op: ir.OpConst, Imm: bits, Results: []*ir.Value{v}, Pos: pos}
	*out = append(*out, v.Def)
	return v
}
