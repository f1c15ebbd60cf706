// Package verify decides whether a kernel is legal on a target: types and spans, definitions before uses, uniform control
// flow around what a whole block does together, argument slots, shared memory, lanes, intrinsics and registers.
package verify

import (
	"errors"
	"fmt"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// Kernel returns all that is wrong with a kernel for a target, joined, each an *ir.Error with the source line and the
// statement, or nil. Of a lowered kernel, one without unrolled loops, the register tiles must fit in the vector registers;
// whether all the rest fits is for the backend to say, which orders it: [Pressure] is an estimate.
func Kernel(k *ir.Kernel, c *target.Caps) error {
	v := &verifier{k: k, c: c, defined: map[*ir.Value]bool{}, ids: map[int]bool{}, lowered: true}
	ir.Walk(k.Body, func(s ir.Stmt) {
		f, ok := s.(*ir.For)
		v.lowered = v.lowered && !(ok && f.Unroll)
	})
	v.shape()
	v.declarations()
	v.body(k.Body, false)
	if len(v.errs) == 0 && v.lowered && c.VecRegs > 0 {
		if n := tilePressure(k, c); n > c.VecRegs {
			v.fail(ir.Pos{}, nil, "%d vector registers needed for register tiles, %d available on %s", n, c.VecRegs, c.Arch)
		}
	}
	return errors.Join(v.errs...)
}

type verifier struct {
	k       *ir.Kernel
	c       *target.Caps
	defined map[*ir.Value]bool // in the open blocks
	ids     map[int]bool       // given to any value so far
	lowered bool
	errs    []error
}

func (v *verifier) fail(pos ir.Pos, i *ir.Instr, format string, args ...any) {
	e := &ir.Error{Kernel: v.k.Name, Pos: pos, Msg: fmt.Sprintf(format, args...)}
	if i != nil {
		e.Stmt = ir.Format(v.k, i)
	}
	v.errs = append(v.errs, e)
}

func (v *verifier) shape() {
	k, c := v.k, v.c
	switch {
	case k.Lanes != 8 && k.Lanes != 16 && k.Lanes != 32:
		v.fail(ir.Pos{}, nil, "%d lanes; 8, 16 or 32 are possible", k.Lanes)
	case c.Family == target.GPU && k.Lanes != 32:
		v.fail(ir.Pos{}, nil, "%d lanes; on a GPU a group has 32", k.Lanes)
	}
	switch {
	case k.Groups < 1:
		v.fail(ir.Pos{}, nil, "%d lane groups", k.Groups)
	case c.Family == target.CPU && k.Groups != 1:
		v.fail(ir.Pos{}, nil, "%d lane groups; on a CPU a block has one", k.Groups)
	case c.Threads > 0 && k.Lanes*k.Groups > c.Threads:
		v.fail(ir.Pos{}, nil, "%d lane groups of %d lanes, %s has %d lanes a block", k.Groups, k.Lanes, c.Arch, c.Threads)
	}
}

func (v *verifier) declarations() {
	k := v.k
	names := map[string]bool{}
	name := func(kind, name string) {
		if names[name] {
			v.fail(ir.Pos{}, nil, "%s %s: the name is taken", kind, name)
		}
		names[name] = true
	}
	var n [3]int
	for _, p := range k.Params {
		name("parameter", p.Name)
		if p.Slot != n[p.Kind] {
			v.fail(ir.Pos{}, nil, "parameter %s has slot %d, not %d", p.Name, p.Slot, n[p.Kind])
		}
		n[p.Kind]++
	}
	for _, l := range []struct {
		what string
		kind ir.ParamKind
		most int
	}{{"buffers", ir.Buffer, target.MaxBuffers}, {"integers", ir.Integer, target.MaxInts}, {"floats", ir.Float, target.MaxFloats}} {
		if n[l.kind] > l.most {
			v.fail(ir.Pos{}, nil, "%d %s, a kernel may have %d", n[l.kind], l.what, l.most)
		}
	}
	for _, d := range k.Grid {
		if d.Tile < 1 || d.Extent == nil || d.Extent.Kind != ir.Integer {
			v.fail(ir.Pos{}, nil, "a grid axis takes an integer parameter and a positive tile")
		}
	}
	end := 0
	for _, a := range k.Shared {
		name("array", a.Name)
		switch {
		case a.Len < 1 || a.Type.Bytes() == 0:
			v.fail(ir.Pos{}, nil, "array %s of %d × %s", a.Name, a.Len, a.Type)
		case a.Offset%64 != 0:
			v.fail(ir.Pos{}, nil, "array %s starts at byte %d, which is not a multiple of 64", a.Name, a.Offset)
		case a.Offset < end:
			v.fail(ir.Pos{}, nil, "array %s starts at byte %d, the one before ends at %d", a.Name, a.Offset, end)
		}
		end = a.Offset + a.Bytes()
	}
	if b := k.SharedBytes(); b > v.c.Shared {
		v.fail(ir.Pos{}, nil, "%d bytes of shared memory, %s has %d", b, v.c.Arch, v.c.Shared)
	}
	clear(names)
	for _, r := range k.Regs {
		name("register tile", r.Name)
		if r.Len < 1 || !r.Type.Word() || r.Span == ir.Block {
			v.fail(ir.Pos{}, nil, "register tile %s of %d × %s %s", r.Name, r.Len, r.Span, r.Type)
		}
	}
}

// body checks statements; split tells whether lane groups may have parted on the way here.
func (v *verifier) body(body []ir.Stmt, split bool) {
	var here []*ir.Value
	for _, s := range body {
		switch s := s.(type) {
		case *ir.Instr:
			v.instr(s, split)
			here = append(here, s.Results...)
			for n, r := range s.Results {
				v.define(r, s.Pos, s)
				if r.Def != s {
					v.fail(s.Pos, s, "result %d belongs to another statement", n)
				}
			}
		case *ir.For:
			v.stmt(s)
			v.use(s.Pos, nil, s.Lo, s.Hi)
			v.define(s.Var, s.Pos, nil)
			v.body(s.Body, split || spans(s.Lo, s.Hi) != ir.Block)
			delete(v.defined, s.Var)
		case *ir.If:
			v.stmt(s)
			v.use(s.Pos, nil, s.Cond)
			parts := split || spans(s.Cond) != ir.Block
			v.body(s.Then, parts)
			v.body(s.Else, parts)
		}
	}
	for _, d := range here {
		delete(v.defined, d)
	}
}

func spans(vs ...*ir.Value) ir.Span {
	s := ir.Block
	for _, v := range vs {
		if v != nil {
			s = max(s, v.Span)
		}
	}
	return s
}

// stmt checks a statement by itself.
func (v *verifier) stmt(s ir.Stmt) bool {
	err := ir.Check(v.k, s)
	if err != nil {
		v.errs = append(v.errs, err)
	}
	return err == nil
}

func (v *verifier) use(pos ir.Pos, i *ir.Instr, vs ...*ir.Value) {
	for _, a := range vs {
		if a != nil && !v.defined[a] {
			v.fail(pos, i, "value %%%d is not defined on every path to here", a.ID)
		}
	}
}

func (v *verifier) define(r *ir.Value, pos ir.Pos, i *ir.Instr) {
	if r == nil {
		return
	}
	if v.ids[r.ID] || r.ID < 0 || r.ID >= v.k.Values() {
		v.fail(pos, i, "value %%%d is defined twice or has a number that the kernel never gave out", r.ID)
	}
	v.ids[r.ID] = true
	v.defined[r] = true
}

func (v *verifier) instr(i *ir.Instr, split bool) {
	if !v.stmt(i) {
		return
	}
	v.use(i.Pos, i, i.Args...)
	op, c := i.Op, v.c
	if !c.Has(op) {
		v.fail(i.Pos, i, "%s has no %s", c.Arch, op)
	}
	if split && v.k.Groups > 1 && together(op) {
		v.fail(i.Pos, i, "%s where lane groups may have parted: a condition or a bound around it is uniform over a group only", op)
	}
	switch op {
	case ir.OpMMA, ir.OpFragCoord, ir.OpLdMatrix:
		if v.k.Lanes != 32 {
			v.fail(i.Pos, i, "%s needs 32 lanes, the kernel has %d", op, v.k.Lanes)
		}
	case ir.OpGet, ir.OpSet:
		if x, ok := i.Args[0].Const(); ok && (x < 0 || x >= int64(i.Reg.Len)) {
			v.fail(i.Pos, i, "element %d of the register tile %s, which has %d", x, i.Reg.Name, i.Reg.Len)
		} else if !ok && v.lowered {
			v.fail(i.Pos, i, "the register tile %s is addressed by a value that is not constant", i.Reg.Name)
		}
	}
	if i.Atom != nil && !atom(c, i.Atom) {
		v.fail(i.Pos, i, "%s has no atom %s", c.Arch, i.Atom.Name)
	}
}

func atom(c *target.Caps, a *ir.Atom) bool {
	for _, have := range c.Atoms {
		if have == a {
			return true
		}
	}
	return false
}

// together reports whether all lane groups of a block must execute the op together. Folds and shuffles stay within a group,
// but a target whose subgroups are not of 32 lanes runs them through shared memory.
func together(op ir.Op) bool {
	switch op {
	case ir.OpBarrier, ir.OpPackLanes4, ir.OpShuffleXor, ir.OpReadLane, ir.OpFoldAddF, ir.OpFoldAddI, ir.OpFoldMaxU, ir.OpFoldMaxF, ir.OpLdMatrix, ir.OpMMA:
		return true
	}
	return false
}
