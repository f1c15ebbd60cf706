package portable

import (
	"slices"

	"github.com/swizzle-rt/swizzle/ir"
)

// A step is what the printed function executes in order: a uniform instruction, a loop over the lanes, a loop or a branch.
type step struct {
	instr  *ir.Instr // uniform
	run    *run
	loop   *ir.For
	branch *ir.If
	body   []step // of the loop, or where the branch is taken
	other  []step // where it is not
}

// run is a straight line of varying instructions, printed as one loop over the lanes.
type run struct {
	instrs []*ir.Instr
	loads  map[string]bool // names of memory
	stores map[string]bool
	demand map[*ir.Value]int // how often the printed loop names each varying value
}

// plan says how a kernel's values become Go.
type plan struct {
	k       *ir.Kernel
	body    []step
	alias   map[*ir.Value]*ir.Value // a register read stands for the value set earlier in its run
	dead    map[*ir.Instr]bool      // register writes that a later one in the run supersedes
	read    map[*ir.Reg]bool        // registers that are still read
	live    map[*ir.Value]bool
	home    map[*ir.Value]*run // the run that defines a varying value
	arrays  map[*ir.Value]bool // varying values kept as one entry a lane, since other runs or lanes use them
	uses    map[*ir.Value]int  // of uniform values by uniform steps of the same block; more than 1 for any other use
	blockOf map[*ir.Value]int  // of uniform values
	blocks  int
}

// newPlan groups the kernel's statements into steps and finds out which values cross between them.
func newPlan(k *ir.Kernel) *plan {
	p := &plan{
		k: k, alias: map[*ir.Value]*ir.Value{}, dead: map[*ir.Instr]bool{}, read: map[*ir.Reg]bool{}, live: map[*ir.Value]bool{},
		home: map[*ir.Value]*run{}, arrays: map[*ir.Value]bool{}, uses: map[*ir.Value]int{}, blockOf: map[*ir.Value]int{},
	}
	p.body = p.group(k.Body)
	p.forward(p.body)
	p.mark(p.body)
	p.body = p.sweep(p.body)
	p.cross(p.body)
	p.count(p.body)
	return p
}

// use resolves aliases.
func (p *plan) use(v *ir.Value) *ir.Value {
	for p.alias[v] != nil {
		v = p.alias[v]
	}
	return v
}

// leaf reports ops that are printed in place: constants, parameters, coordinates.
func leaf(op ir.Op) bool {
	switch op {
	case ir.OpConst, ir.OpLane, ir.OpGroup, ir.OpTile, ir.OpIntParam, ir.OpFloatParam:
		return true
	}
	return false
}

// reduces reports ops that make a uniform value of all lanes.
func reduces(op ir.Op) bool {
	switch op {
	case ir.OpReadLane, ir.OpFoldAddF, ir.OpFoldAddI, ir.OpFoldMaxU, ir.OpFoldMaxF:
		return true
	}
	return false
}

// exchanges reports ops that read other lanes.
func exchanges(op ir.Op) bool { return op == ir.OpShuffleXor || op == ir.OpPackLanes4 }

// varying reports whether the instruction does something else in each lane.
func varying(i *ir.Instr) bool {
	if len(i.Results) > 0 {
		return i.Results[0].Span == ir.Varying
	}
	if i.Op == ir.OpSet {
		return i.Reg.Span == ir.Varying
	}
	return slices.ContainsFunc(i.Args, func(v *ir.Value) bool { return v != nil && v.Span == ir.Varying })
}

// group makes the steps of a block. Uniform instructions go before the run that is being collected, since they can't depend
// on it except through memory and through reductions; those end the run.
func (p *plan) group(body []ir.Stmt) []step {
	var out []step
	var pending *run
	flush := func() {
		if pending != nil {
			out = append(out, step{run: pending})
			pending = nil
		}
	}
	for _, s := range body {
		switch s := s.(type) {
		case *ir.For:
			flush()
			out = append(out, step{loop: s, body: p.group(s.Body)})
		case *ir.If:
			flush()
			out = append(out, step{branch: s, body: p.group(s.Then), other: p.group(s.Else)})
		case *ir.Instr:
			switch {
			case leaf(s.Op) || s.Op == ir.OpPrefetch:
				continue
			case s.Op == ir.OpBarrier:
				flush()
				continue
			case reduces(s.Op) || exchanges(s.Op):
				if pending != nil && p.home[s.Args[0]] == pending {
					flush()
				}
			}
			if varying(s) {
				if pending == nil {
					pending = &run{loads: map[string]bool{}, stores: map[string]bool{}, demand: map[*ir.Value]int{}}
				}
				pending.add(s)
				for _, v := range s.Results {
					p.home[v] = pending
				}
				continue
			}
			if pending != nil && (s.Op == ir.OpLoad && pending.stores[s.Mem.Name()] ||
				s.Op == ir.OpStore && (pending.stores[s.Mem.Name()] || pending.loads[s.Mem.Name()])) {
				flush()
			}
			out = append(out, step{instr: s})
		}
	}
	flush()
	return out
}

func (r *run) add(i *ir.Instr) {
	r.instrs = append(r.instrs, i)
	switch i.Op {
	case ir.OpLoad:
		r.loads[i.Mem.Name()] = true
	case ir.OpStore:
		r.stores[i.Mem.Name()] = true
	}
}

// place is an element of a register tile: of a constant index, or of a value that is the same wherever it is used.
type place struct {
	reg   *ir.Reg
	at    int64
	index *ir.Value
}

func (p *plan) place(i *ir.Instr) place {
	if c, ok := p.constant(i.Args[0]); ok {
		return place{reg: i.Reg, at: c}
	}
	return place{reg: i.Reg, index: p.use(i.Args[0])}
}

// forward replaces register reads by the value set before in the same run, and drops writes that nobody reads.
func (p *plan) forward(body []step) {
	p.forwardRuns(body)
	p.eachRun(body, func(r *run) {
		for _, i := range r.instrs {
			if i.Op == ir.OpGet && p.alias[i.Results[0]] == nil {
				p.read[i.Reg] = true
			}
		}
	})
	p.eachUniform(body, func(i *ir.Instr) {
		if i.Op == ir.OpGet {
			p.read[i.Reg] = true
		}
	})
}

func (p *plan) forwardRuns(body []step) {
	p.eachRun(body, func(r *run) {
		value := map[place]*ir.Value{}
		last := map[place]*ir.Instr{}
		for _, i := range r.instrs {
			if i.Reg == nil {
				continue
			}
			at := p.place(i)
			if i.Op == ir.OpGet {
				if v := value[at]; v != nil {
					p.alias[i.Results[0]] = v
					continue
				}
				for x := range last {
					if x.reg == i.Reg {
						delete(last, x)
					}
				}
				value[at] = i.Results[0]
				continue
			}
			for x := range value {
				if x.reg == i.Reg && (x.index != nil || at.index != nil) {
					delete(value, x) // perhaps the same element
				}
			}
			value[at] = p.use(i.Args[1])
			if i := last[at]; i != nil {
				p.dead[i] = true
			}
			last[at] = i
		}
	})
}

func (p *plan) eachRun(body []step, f func(*run)) {
	for _, s := range body {
		if s.run != nil {
			f(s.run)
		}
		p.eachRun(s.body, f)
		p.eachRun(s.other, f)
	}
}

func (p *plan) eachUniform(body []step, f func(*ir.Instr)) {
	for _, s := range body {
		if s.instr != nil {
			f(s.instr)
		}
		p.eachUniform(s.body, f)
		p.eachUniform(s.other, f)
	}
}

// needed reports whether the instruction does anything that is seen.
func (p *plan) needed(i *ir.Instr) bool {
	switch {
	case p.dead[i] || i.Op == ir.OpSet && !p.read[i.Reg]:
		return false
	case len(i.Results) == 0:
		return true
	}
	return slices.ContainsFunc(i.Results, func(v *ir.Value) bool { return p.live[v] && p.alias[v] == nil })
}

// operands returns the values that the printed instruction names: of a memory access the variable part of its index.
// Constants are printed in place.
func (p *plan) operands(i *ir.Instr) []*ir.Value {
	var list []*ir.Value
	for n, v := range i.Args {
		if n == 0 && (i.Op == ir.OpLoad || i.Op == ir.OpStore) {
			v, _ = p.split(v)
		}
		if _, ok := p.constant(v); !ok && v != nil {
			list = append(list, p.use(v))
		}
	}
	return list
}

// split returns an index as a variable part, nil for none, and a constant.
func (p *plan) split(v *ir.Value) (*ir.Value, int64) {
	v = p.use(v)
	if c, ok := p.constant(v); ok {
		return nil, c
	}
	if v.Def != nil && v.Def.Op == ir.OpAddX {
		if c, ok := p.constant(v.Def.Args[1]); ok {
			return p.use(v.Def.Args[0]), c
		}
	}
	return v, 0
}

// mark walks backwards from what is needed to what it uses, and reports whether the block has anything that is needed.
func (p *plan) mark(body []step) bool {
	any := false
	use := func(v *ir.Value) {
		if _, ok := p.constant(v); !ok {
			p.live[p.use(v)] = true
		}
	}
	instr := func(i *ir.Instr) {
		if p.needed(i) {
			any = true
			for _, v := range p.operands(i) {
				p.live[v] = true
			}
		}
	}
	for n := len(body) - 1; n >= 0; n-- {
		s := body[n]
		other, inner := p.mark(s.other), p.mark(s.body)
		switch {
		case s.instr != nil:
			instr(s.instr)
		case s.run != nil:
			for m := len(s.run.instrs) - 1; m >= 0; m-- {
				instr(s.run.instrs[m])
			}
		case s.loop != nil && inner:
			any = true
			use(s.loop.Lo)
			use(s.loop.Hi)
		case s.branch != nil && (inner || other):
			any = true
			use(s.branch.Cond)
		}
	}
	return any
}

// sweep drops what mark has not reached.
func (p *plan) sweep(body []step) []step {
	var out []step
	for _, s := range body {
		switch {
		case s.instr != nil && !p.needed(s.instr):
			continue
		case s.run != nil:
			s.run.instrs = slices.DeleteFunc(s.run.instrs, func(i *ir.Instr) bool { return !p.needed(i) })
			if len(s.run.instrs) == 0 {
				continue
			}
		case s.loop != nil || s.branch != nil:
			s.body, s.other = p.sweep(s.body), p.sweep(s.other)
			if len(s.body)+len(s.other) == 0 {
				continue
			}
		}
		out = append(out, s)
	}
	return out
}

// cross finds the varying values that must be arrays.
func (p *plan) cross(body []step) {
	p.eachRun(body, func(r *run) {
		for _, i := range r.instrs {
			for _, v := range p.operands(i) {
				if v.Span != ir.Varying || v.Def.Op == ir.OpLane {
					continue
				}
				if exchanges(i.Op) || p.home[v] != r && !p.cheap(v) {
					p.arrays[v] = true
				}
			}
		}
	})
	p.eachUniform(body, func(i *ir.Instr) {
		if !reduces(i.Op) {
			return
		}
		for _, v := range p.operands(i) {
			if v.Span == ir.Varying {
				p.arrays[v] = true
			}
		}
	})
}

// cheap reports whether a run may compute v again from the lane's number and uniform values.
func (p *plan) cheap(v *ir.Value) bool { return p.weight(v) <= 3 }

func (p *plan) weight(v *ir.Value) int {
	v = p.use(v)
	if v.Span != ir.Varying || v.Def.Op == ir.OpLane {
		return 0
	}
	if !v.Def.Op.Info().Pure || exchanges(v.Def.Op) {
		return 100
	}
	w := 1
	for _, a := range v.Def.Args {
		w += p.weight(a)
		if w > 3 {
			break
		}
	}
	return w
}

// lazy reports whether v may be computed where it is used instead of where it stands: it depends on nothing that changes.
func lazy(i *ir.Instr) bool {
	return i.Op.Info().Pure && !reduces(i.Op) ||
		i.Op == ir.OpLoad && i.Args[1] == nil && i.Mem.Param != nil && i.Mem.Param.Access == ir.In
}

// count fills the uses of values, from which the printer decides what gets a name.
func (p *plan) count(body []step) {
	p.blocks++
	block := p.blocks
	uniform := func(v *ir.Value, n int) {
		if p.blockOf[v] != block {
			n += 2 // of an outer block: named, so that a loop doesn't repeat it
		}
		p.uses[v] += n
	}
	for _, s := range body {
		switch {
		case s.instr != nil:
			for _, v := range p.operands(s.instr) {
				uniform(v, 1)
			}
			for _, v := range s.instr.Results {
				p.blockOf[v] = block
			}
		case s.run != nil:
			for _, i := range s.run.instrs {
				statement := !lazy(i) || slices.ContainsFunc(i.Results, func(v *ir.Value) bool { return p.arrays[v] })
				if statement {
					for _, v := range p.operands(i) {
						p.demand(s.run, v)
					}
				}
			}
		case s.loop != nil:
			uniform(p.use(s.loop.Lo), 1)
			uniform(p.use(s.loop.Hi), 2) // evaluated in every iteration
		case s.branch != nil:
			uniform(p.use(s.branch.Cond), 1)
		}
		p.count(s.body)
		p.count(s.other)
	}
}

// demand counts a use of v in the run and, the first time, those of what the run computes for it.
func (p *plan) demand(r *run, v *ir.Value) {
	if v.Span != ir.Varying {
		p.uses[v] += 2 // named, so that it is not computed in every lane
		return
	}
	r.demand[v]++
	if r.demand[v] > 1 || v.Def.Op == ir.OpLane {
		return
	}
	if !p.arrays[v] && (p.home[v] != r || lazy(v.Def)) {
		for _, a := range p.operands(v.Def) {
			p.demand(r, a)
		}
	}
}

// constant returns the bits of v if it is known before the kernel runs.
func (p *plan) constant(v *ir.Value) (int64, bool) {
	v = p.use(v)
	if v == nil || v.Def == nil || len(v.Def.Args) > 3 {
		return 0, false
	}
	i := v.Def
	if i.Op == ir.OpConst {
		return i.Imm, true
	}
	if i.Op == ir.OpGroup {
		return 0, true
	}
	if i.Op == ir.OpShl || i.Op == ir.OpShrU {
		if n, ok := p.constant(i.Args[1]); ok && uint32(n) > 31 {
			return 0, true
		}
	}
	info := i.Op.Info()
	if info.Lane == nil && info.Index == nil && i.Op != ir.OpToIndex && i.Op != ir.OpFromIndex {
		return 0, false
	}
	var c [3]int64
	for n, a := range i.Args {
		x, ok := p.constant(a)
		if !ok {
			return 0, false
		}
		c[n] = x
	}
	switch {
	case info.Lane != nil:
		return int64(info.Lane(uint32(c[0]), uint32(c[1]), uint32(c[2]))), true
	case i.Op == ir.OpToIndex:
		return int64(int32(c[0])), true
	case i.Op == ir.OpFromIndex:
		return int64(uint32(c[0])), true
	case (i.Op == ir.OpDivX || i.Op == ir.OpModX) && c[1] < 1:
		return 0, false
	}
	return info.Index(c[0], c[1]), true
}
