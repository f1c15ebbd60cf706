package ir

// Builder returns the builder that made the value; macros over values write to it.
func (v *Value) Builder() *Builder { return v.b }

// binary picks the op for v's type and appends it.
func (v *Value) binary(o any, f, n, x Op) *Value {
	w := v.b.operand(o, v.Type)
	var op Op
	switch v.Type {
	case F32:
		op = f
	case I32, U32:
		op = n
	case Index:
		op = x
	}
	if op == opInvalid {
		v.b.fail("no such operation on %s", v.Type)
	}
	return v.b.pure(&Instr{Op: op, Args: []*Value{v, w}}, v.Type)
}

func (v *Value) compare(o any, f, i, u, x Op) *Value {
	w := v.b.operand(o, v.Type)
	op := map[Type]Op{F32: f, I32: i, U32: u, Index: x}[v.Type]
	if op == opInvalid {
		v.b.fail("no such comparison of %s", v.Type)
	}
	return v.b.pure(&Instr{Op: op, Args: []*Value{v, w}}, Bool)
}

// Add returns v + o. An operand is a value of the same type or a Go constant: int for integers and indices, float32 for floats.
func (v *Value) Add(o any) *Value { return v.binary(o, OpAddF, OpAddI, OpAddX) }

// Sub returns v − o.
func (v *Value) Sub(o any) *Value { return v.binary(o, OpSubF, OpSubI, OpSubX) }

// Mul returns v · o.
func (v *Value) Mul(o any) *Value { return v.binary(o, OpMulF, OpMulI, OpMulX) }

// Div returns v / o of indices, both non-negative.
func (v *Value) Div(o any) *Value { return v.binary(o, opInvalid, opInvalid, OpDivX) }

// Mod returns v mod o of indices, both non-negative.
func (v *Value) Mod(o any) *Value { return v.binary(o, opInvalid, opInvalid, OpModX) }

// And returns the bitwise and of integers or indices.
func (v *Value) And(o any) *Value { return v.binary(o, opInvalid, OpAnd, OpAndX) }

// Or returns the bitwise or.
func (v *Value) Or(o any) *Value { return v.binary(o, opInvalid, OpOr, opInvalid) }

// Xor returns the bitwise exclusive or of integers or indices.
func (v *Value) Xor(o any) *Value { return v.binary(o, opInvalid, OpXor, OpXorX) }

// Shl returns v shifted left by o, which is of v's type.
func (v *Value) Shl(o any) *Value { return v.binary(o, opInvalid, OpShl, OpShlX) }

// Shr returns v shifted right: U32 and non-negative indices with zeros, I32 with its sign.
func (v *Value) Shr(o any) *Value {
	if v.Type == I32 {
		return v.binary(o, opInvalid, OpShrI, opInvalid)
	}
	return v.binary(o, opInvalid, OpShrU, OpShrX)
}

// Min returns the smaller of two I32 or two indices.
func (v *Value) Min(o any) *Value { return v.binary(o, opInvalid, OpMinI, OpMinX) }

// Max returns the larger of two I32, two U32 or two indices.
func (v *Value) Max(o any) *Value {
	if v.Type == U32 {
		return v.binary(o, opInvalid, OpMaxU, opInvalid)
	}
	return v.binary(o, opInvalid, OpMaxI, OpMaxX)
}

// Lt returns v < o.
func (v *Value) Lt(o any) *Value { return v.compare(o, OpLtF, OpLtI, OpLtU, OpLtX) }

// Gt returns v > o.
func (v *Value) Gt(o any) *Value { return v.b.operand(o, v.Type).Lt(v) }

// Le returns v ≤ o of floats or indices.
func (v *Value) Le(o any) *Value { return v.compare(o, OpLeF, opInvalid, opInvalid, OpLeX) }

// Eq returns v = o.
func (v *Value) Eq(o any) *Value { return v.compare(o, OpEqF, OpEqI, OpEqI, OpEqX) }

// AndB returns whether both hold.
func (v *Value) AndB(o *Value) *Value {
	return v.b.pure(&Instr{Op: OpAndB, Args: []*Value{v, o}}, Bool)
}

// OrB returns whether either holds.
func (v *Value) OrB(o *Value) *Value {
	return v.b.pure(&Instr{Op: OpOrB, Args: []*Value{v, o}}, Bool)
}

// Not returns the negation of a Bool.
func (v *Value) Not() *Value { return v.b.pure(&Instr{Op: OpNotB, Args: []*Value{v}}, Bool) }

// Select returns yes where the condition v holds, else no; both have one type.
func (v *Value) Select(yes, no *Value) *Value {
	return v.b.pure(&Instr{Op: OpSelect, Args: []*Value{v, yes, no}}, yes.Type)
}

// As returns the same 32 bits as another type.
func (v *Value) As(t Type) *Value {
	if v.Type == t {
		return v
	}
	if !v.Type.Word() || !t.Word() {
		v.b.fail("cast from %s to %s", v.Type, t)
	}
	if c, ok := v.Const(); ok {
		return v.b.Const(t, c)
	}
	return v.b.pure(&Instr{Op: OpCast, Args: []*Value{v}}, t)
}

// ToF32 returns an I32 of magnitude below 2²⁴ as a float, exactly.
func (v *Value) ToF32() *Value { return v.b.pure(&Instr{Op: OpToF32, Args: []*Value{v}}, F32) }

// ToIndex returns an I32 as an index.
func (v *Value) ToIndex() *Value { return v.b.pure(&Instr{Op: OpToIndex, Args: []*Value{v}}, Index) }

// FromIndex returns the low 32 bits of an index as an I32.
func (v *Value) FromIndex() *Value {
	return v.b.pure(&Instr{Op: OpFromIndex, Args: []*Value{v}}, I32)
}

// FMAExact returns a · b + c where a · b is exact in float32 (docs/numerics.md, exact products); a backend may fuse it.
func (b *Builder) FMAExact(x, y, c *Value) *Value {
	return b.pure(&Instr{Op: OpFMAExact, Args: []*Value{x, y, c}}, F32)
}

// Dot4US returns acc + Σ uᵢ·sᵢ over the four bytes of u, unsigned and at most umax, and s, signed.
func (b *Builder) Dot4US(u, s, acc *Value, umax int) *Value {
	if umax < 1 || umax > 255 {
		b.fail("bound %d of unsigned bytes", umax)
	}
	return b.pure(&Instr{Op: OpDot4US, Args: []*Value{u, s, acc}, Imm: int64(umax)}, I32)
}

// Dot4SS returns acc + Σ xᵢ·yᵢ over four signed bytes; no yᵢ is −128.
func (b *Builder) Dot4SS(x, y, acc *Value) *Value {
	return b.pure(&Instr{Op: OpDot4SS, Args: []*Value{x, y, acc}}, I32)
}

// Lookup16 replaces each byte of v, 0 … 15, by table's entry.
func (b *Builder) Lookup16(v *Value, table [16]byte) *Value {
	return b.pure(&Instr{Op: OpLookup16, Args: []*Value{v}, Table: &table}, I8x4)
}

// PackLanes4 returns the low bytes of four neighbouring lanes as one word, in all four.
func (v *Value) PackLanes4() *Value {
	w := v.b.pure(&Instr{Op: OpPackLanes4, Args: []*Value{v}}, I8x4)
	return w
}

// ShuffleXor returns the value of lane l xor mask.
func (v *Value) ShuffleXor(mask int) *Value {
	if mask < 1 || mask >= v.b.k.Lanes {
		v.b.fail("shuffle by %d of %d lanes", mask, v.b.k.Lanes)
	}
	return v.b.pure(&Instr{Op: OpShuffleXor, Args: []*Value{v}, Imm: int64(mask)}, v.Type)
}

// ReadLane returns lane n's value, uniform.
func (v *Value) ReadLane(n int) *Value {
	if n < 0 || n >= v.b.k.Lanes {
		v.b.fail("lane %d of %d", n, v.b.k.Lanes)
	}
	return v.reduce(OpReadLane, int64(n))
}

func (v *Value) reduce(op Op, imm int64) *Value {
	i := &Instr{Op: op, Args: []*Value{v}, Imm: imm}
	if err := checkArgs(i); err != "" {
		v.b.fail("%s", err)
	}
	return v.b.emit(i, v.Type, Group)
}

// FoldAdd returns the sum over the lanes, folded by strides L/2 … 1 (docs/numerics.md, rows), uniform. F32 or I32.
func (v *Value) FoldAdd() *Value {
	if v.Type == I32 {
		return v.reduce(OpFoldAddI, 0)
	}
	return v.reduce(OpFoldAddF, 0)
}

// FoldMax returns the maximum over the lanes, uniform. U32 or F32; NaN never enters.
func (v *Value) FoldMax() *Value {
	if v.Type == U32 {
		return v.reduce(OpFoldMaxU, 0)
	}
	return v.reduce(OpFoldMaxF, 0)
}

// ---- memory

// Load reads one element; it widens to [Type.Reg].
func (b *Builder) Load(m Memory, index any) *Value { return b.LoadN(m, 1, index, nil)[0] }

// LoadMasked reads one element where the mask holds, +0 elsewhere.
func (b *Builder) LoadMasked(m Memory, index any, mask *Value) *Value {
	return b.LoadN(m, 1, index, mask)[0]
}

// LoadN reads n (1, 2 or 4) consecutive elements; mask may be nil.
func (b *Builder) LoadN(m Memory, n int, index any, mask *Value) []*Value {
	x := b.Idx(index)
	b.checkAccess(m, n, mask)
	if m.Param != nil && m.Param.Access == Out {
		b.fail("load from the output %s", m.Name())
	}
	args := []*Value{x, mask}
	return b.emitN(&Instr{Op: OpLoad, Args: args, Mem: m, Imm: int64(n)}, n, m.Type.Reg(), loadSpan(m, args))
}

// LoadIndex reads one I32 element as an index.
func (b *Builder) LoadIndex(m Memory, index any) *Value { return b.Load(m, index).ToIndex() }

// Store writes one element; the value's low bits, or F32 rounded to nearest even to F16 or BF16.
func (b *Builder) Store(m Memory, index any, v *Value) { b.StoreN(m, index, nil, v) }

// StoreMasked writes one element where the mask holds.
func (b *Builder) StoreMasked(m Memory, index any, v, mask *Value) { b.StoreN(m, index, mask, v) }

// StoreN writes 1, 2 or 4 consecutive elements; mask may be nil.
func (b *Builder) StoreN(m Memory, index any, mask *Value, vs ...*Value) {
	x := b.Idx(index)
	b.checkAccess(m, len(vs), mask)
	if m.Param != nil && m.Param.Access == In {
		b.fail("store to the input %s", m.Name())
	}
	for _, v := range vs {
		if v.Type != m.Type.Reg() {
			b.fail("%s stored to %s as %s", v.Type, m.Name(), m.Type)
		}
	}
	b.do(&Instr{Op: OpStore, Args: append([]*Value{x, mask}, vs...), Mem: m, Imm: int64(len(vs))})
}

func (b *Builder) checkAccess(m Memory, n int, mask *Value) {
	if m.Param == nil && m.Array == nil {
		b.fail("access to no memory")
	}
	if n != 1 && n != 2 && n != 4 {
		b.fail("access of %d elements; 1, 2 or 4 are possible", n)
	}
	if m.Type.Bytes() == 0 {
		b.fail("%s as %s", m.Name(), m.Type)
	}
	if mask != nil && mask.Type != Bool {
		b.fail("mask of type %s", mask.Type)
	}
}

// Prefetch hints that the element will be loaded soon.
func (b *Builder) Prefetch(m Memory, index any) {
	b.do(&Instr{Op: OpPrefetch, Args: []*Value{b.Idx(index)}, Mem: m})
}

// Barrier waits for all lanes of the block.
func (b *Builder) Barrier() { b.do(&Instr{Op: OpBarrier}) }

// AsyncCopy copies 16 bytes from src to the shared array dst, zeros where mask is false; it lands at wait + barrier.
func (b *Builder) AsyncCopy(dst Memory, to any, src Memory, from any, mask *Value) {
	if dst.Array == nil || src.Param == nil {
		b.fail("an asynchronous copy goes from a buffer to a shared array")
	}
	b.do(&Instr{Op: OpAsyncCopy, Args: []*Value{b.Idx(to), b.Idx(from), mask}, Mem: dst, Mem2: src})
}

// AsyncCommit closes a group of asynchronous copies.
func (b *Builder) AsyncCommit() { b.do(&Instr{Op: OpAsyncCommit}) }

// AsyncWait waits until at most n groups of asynchronous copies are pending.
func (b *Builder) AsyncWait(n int) { b.do(&Instr{Op: OpAsyncWait, Imm: int64(n)}) }

// LdMatrix reads n (1, 2 or 4) matrices of 8 rows × 16 bytes from shared memory; each lane gives a row's index (see the op table).
func (b *Builder) LdMatrix(m Memory, n int, index *Value) []*Value {
	if m.Array == nil || m.Type.Bytes() != 4 || n != 1 && n != 2 && n != 4 {
		b.fail("ldmatrix reads 1, 2 or 4 matrices of a shared array of words")
	}
	return b.emitN(&Instr{Op: OpLdMatrix, Args: []*Value{b.Idx(index)}, Mem: m, Imm: int64(n)}, n, m.Type, Varying)
}

// MMA returns the registers of A·B + C.
func (b *Builder) MMA(a *Atom, x, y, c []*Value) []*Value {
	for _, f := range []struct {
		v []*Value
		f Fragment
	}{{x, a.A}, {y, a.B}, {c, a.C}} {
		if len(f.v) != f.f.Regs {
			b.fail("%s takes %d registers, not %d", a.Name, f.f.Regs, len(f.v))
		}
		for _, v := range f.v {
			if v.Type != f.f.Type {
				b.fail("%s takes %s, not %s", a.Name, f.f.Type, v.Type)
			}
		}
	}
	args := append(append(append([]*Value{}, x...), y...), c...)
	return b.emitN(&Instr{Op: OpMMA, Args: args, Atom: a}, a.C.Regs, a.C.Type, Varying)
}

// FragCoord returns the row and the column that register i of the atom's C holds in this lane.
func (b *Builder) FragCoord(a *Atom, i int) (row, col *Value) {
	if i < 0 || i >= a.C.Regs {
		b.fail("register %d of %d", i, a.C.Regs)
	}
	r := b.emitN(&Instr{Op: OpFragCoord, Atom: a, Imm: int64(i)}, 2, Index, Varying)
	return r[0], r[1]
}
