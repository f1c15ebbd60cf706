package mathx

import (
	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/canon"
)

// Exp is canon.Exp.
func Exp(x *ir.Value) *ir.Value {
	b := x.Builder()
	top := b.F32(canon.ExpMax)
	y := exp(top.Lt(x).Select(top, x))
	return x.Lt(canon.ExpMin).Select(b.F32(0), y)
}

// ExpCut is canon.Exp for x ≤ 0 or NaN, but +0 below cut, which is at least canon.ExpMin.
func ExpCut(x *ir.Value, cut float32) *ir.Value {
	y := exp(x)
	return x.Lt(cut).Select(x.Builder().F32(0), y)
}

// exp is Exp between its limits, and NaN for NaN.
func exp(c *ir.Value) *ir.Value {
	t := c.Mul(canon.ExpLog2E).Add(canon.ExpMagic)
	n := t.Sub(canon.ExpMagic)
	r := c.Sub(n.Mul(canon.Ln2Hi))
	r = r.Sub(n.Mul(canon.Ln2Lo))
	p := poly(r, canon.ExpC6, canon.ExpC5, canon.ExpC4, canon.ExpC3, canon.ExpC2, 1, 1)
	return p.Mul(t.As(ir.U32).Shl(23).As(ir.F32))
}

// Log is canon.Log.
func Log(x *ir.Value) *ir.Value {
	b := x.Builder()
	u := x.As(ir.U32)
	e := u.As(ir.I32).Sub(canon.LogSplit).Shr(23)
	n := e.Add(canon.MagicBits).As(ir.F32).Sub(canon.Magic)
	f := u.Sub(e.As(ir.U32).Shl(23)).As(ir.F32).Sub(float32(1))
	z := f.Mul(f)
	p := poly(f, canon.LogC7, canon.LogC6, canon.LogC5, canon.LogC4, canon.LogC3, canon.LogC2, canon.LogC1, canon.LogC0)
	y := z.Mul(p).Add(n.Mul(canon.Ln2Lo))
	y = f.Add(y)
	y = y.Add(n.Mul(canon.Ln2Hi))
	a := magnitude(x)
	y = a.Lt(b.U32(infBits)).Select(y, x)
	y = x.Lt(b.F32(0)).Select(nan(b), y)
	return a.Lt(b.U32(minimum)).Select(b.Const(ir.F32, 0xFF800000), y)
}

// Rcp is canon.Rcp.
func Rcp(x *ir.Value) *ir.Value {
	b := x.Builder()
	y := RcpNormal(x)
	a, s := magnitude(x), sign(x)
	y = b.F32(canon.RcpMax).Lt(a.As(ir.F32)).Select(s.As(ir.F32), y)
	return a.Lt(b.U32(minimum)).Select(s.Or(infBits).As(ir.F32), y)
}

// RcpNormal is Rcp for 2⁻¹²⁶ ≤ |x| ≤ 2¹²⁶ and NaN; elsewhere it gives any bits.
func RcpNormal(x *ir.Value) *ir.Value {
	b := x.Builder()
	y := b.U32(canon.RcpGuess).Sub(x.As(ir.U32)).As(ir.F32)
	p := poly(x.Mul(y), canon.RcpC2, canon.RcpC1, canon.RcpC0)
	y = y.Mul(p)
	return y.Mul(b.F32(2).Sub(x.Mul(y)))
}

// Rsqrt is canon.Rsqrt.
func Rsqrt(x *ir.Value) *ir.Value {
	b := x.Builder()
	u := x.As(ir.U32)
	y := b.U32(canon.RsqrtGuess).Sub(u.Shr(1)).As(ir.F32)
	q := x.Mul(y).Mul(y)
	p := q.Add(canon.RsqrtC1).Mul(q).Add(canon.RsqrtC0)
	y = y.Mul(p)
	v := x.Mul(y).Mul(y)
	y = y.Mul(b.F32(canon.RsqrtC).Sub(v))
	y = u.Eq(infBits).Select(b.F32(0), y)
	y = x.Lt(b.F32(0)).Select(nan(b), y)
	return magnitude(x).Lt(b.U32(minimum)).Select(b.Const(ir.F32, infBits), y)
}

// Tanh is canon.Tanh.
func Tanh(x *ir.Value) *ir.Value {
	b := x.Builder()
	a := magnitude(x).As(ir.F32)
	top := b.F32(canon.TanhMax)
	a = top.Lt(a).Select(top, a)
	t := a.Mul(canon.TanhScale).Add(canon.ExpMagic)
	n := t.Sub(canon.ExpMagic)
	r := a.Add(n.Mul(canon.TanhLn2Hi))
	r = r.Add(n.Mul(canon.TanhLn2Lo))
	p := poly(r, canon.TanhC5, canon.TanhC4, canon.TanhC3, canon.TanhC2, canon.TanhC1, 2).Mul(r)
	s := t.As(ir.U32).Shl(23).As(ir.F32)
	w := b.F32(1).Sub(s).Add(s.Mul(p))
	y := w.Mul(RcpNormal(b.F32(2).Sub(w)))
	return y.As(ir.U32).Or(sign(x)).As(ir.F32)
}

// Sigmoid is canon.Sigmoid.
func Sigmoid(x *ir.Value) *ir.Value { return RcpNormal(x.Builder().F32(1).Add(Exp(neg(x)))) }

// SiLU is canon.SiLU.
func SiLU(x *ir.Value) *ir.Value { return x.Mul(Sigmoid(x)) }

// GELU is canon.GELU.
func GELU(x *ir.Value) *ir.Value {
	b := x.Builder()
	t := x.Mul(b.F32(canon.GELUA0).Add(b.F32(canon.GELUA1).Mul(x.Mul(x))))
	return x.Mul(RcpNormal(b.F32(1).Add(Exp(t))))
}
