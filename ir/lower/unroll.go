package lower

import (
	"fmt"

	"github.com/swizzle-rt/swizzle/ir"
)

// Unroll replaces every loop marked so by copies of its body with the variable constant, and folds index arithmetic on
// constants, so that register tiles are addressed by constants afterwards. Anything else there is an error, never a spill.
func Unroll(k *ir.Kernel) (*ir.Kernel, error) {
	u := &unroller{rewriter: rewrite(k)}
	u.body(k.Body, &u.to.Body)
	if u.err != nil {
		return nil, u.err
	}
	return u.to, nil
}

type unroller struct {
	*rewriter
	n   int // statements so far
	err error
}

// maxStatements ends unrolling that went astray; assembly bodies of more than a few thousand are of no use.
const maxStatements = 1 << 18

func (u *unroller) body(body []ir.Stmt, out *[]ir.Stmt) {
	for _, s := range body {
		switch s := s.(type) {
		case *ir.Instr:
			u.instr(s, out)
		case *ir.For:
			if s.Unroll {
				u.unroll(s, out)
				continue
			}
			n := u.loop(s)
			u.body(s.Body, &n.Body)
			*out = append(*out, n)
		case *ir.If:
			if c, ok := u.use(s.Cond).Const(); ok { // decided by unrolling
				if c != 0 {
					u.body(s.Then, out)
				} else {
					u.body(s.Else, out)
				}
				continue
			}
			n := u.branch(s)
			u.body(s.Then, &n.Then)
			u.body(s.Else, &n.Else)
			*out = append(*out, n)
		}
	}
}

func (u *unroller) unroll(f *ir.For, out *[]ir.Stmt) {
	lo, ok1 := u.use(f.Lo).Const()
	hi, ok2 := u.use(f.Hi).Const()
	if !ok1 || !ok2 {
		u.fail(f.Pos, "", "the bounds of an unrolled loop are not constant")
		return
	}
	for i := lo; i < hi && u.err == nil; i += int64(f.Step) {
		if u.n++; u.n > maxStatements {
			u.fail(f.Pos, "", "more than %d statements after unrolling", maxStatements)
		}
		u.sub[f.Var] = u.constant(out, ir.Index, i, f.Pos)
		u.body(f.Body, out)
	}
}

func (u *unroller) instr(i *ir.Instr, out *[]ir.Stmt) {
	u.n++
	n := u.copy(i)
	if len(i.Results) == 1 {
		if v := fold(n); v != nil {
			u.sub[i.Results[0]] = v
			return
		}
		if bits, ok := foldConst(n); ok {
			u.sub[i.Results[0]] = u.constant(out, i.Results[0].Type, bits, i.Pos)
			return
		}
	}
	if n.Reg != nil {
		if x, ok := n.Args[0].Const(); !ok {
			u.fail(i.Pos, ir.Format(u.from, i), "the register tile %s is addressed by a value that is not constant after unrolling", i.Reg.Name)
		} else if x < 0 || x >= int64(i.Reg.Len) {
			u.fail(i.Pos, ir.Format(u.from, i), "element %d of the register tile %s, which has %d", x, i.Reg.Name, i.Reg.Len)
		}
	}
	*out = append(*out, n)
}

func (u *unroller) fail(pos ir.Pos, stmt, format string, args ...any) {
	if u.err == nil {
		u.err = &ir.Error{Kernel: u.from.Name, Pos: pos, Stmt: stmt, Msg: fmt.Sprintf(format, args...)}
	}
}

// fold returns the argument that an index instruction equals, if any: x + 0, x − 0, x · 1, x / 1.
func fold(i *ir.Instr) *ir.Value {
	if i.Op.Info().Index == nil {
		return nil
	}
	x, y := i.Args[0], i.Args[1]
	c, isX := x.Const()
	d, isY := y.Const()
	switch i.Op {
	case ir.OpAddX:
		if isY && d == 0 {
			return x
		}
		if isX && c == 0 {
			return y
		}
	case ir.OpSubX, ir.OpXorX, ir.OpShlX, ir.OpShrX:
		if isY && d == 0 {
			return x
		}
	case ir.OpMulX:
		if isY && d == 1 {
			return x
		}
		if isX && c == 1 {
			return y
		}
	case ir.OpDivX:
		if isY && d == 1 {
			return x
		}
	}
	return nil
}

// foldConst evaluates an index instruction on constants.
func foldConst(i *ir.Instr) (int64, bool) {
	f := i.Op.Info().Index
	if f == nil {
		return 0, false
	}
	c, ok1 := i.Args[0].Const()
	d, ok2 := i.Args[1].Const()
	if i.Op == ir.OpMulX && (ok1 && c == 0 || ok2 && d == 0) {
		return 0, true
	}
	if !ok1 || !ok2 || (i.Op == ir.OpDivX || i.Op == ir.OpModX) && d <= 0 {
		return 0, false
	}
	return f(c, d), true
}
