package avx

import (
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
	"github.com/mmcloughlin/avo/x86"

	"github.com/swizzle-rt/swizzle/ir"
)

// bytesAt returns the byte address of element n of an access whose uniform index is p.
func (g *gen) bytesAt(m ir.Memory, p poly, n int) poly {
	size := int64(m.Type.Bytes())
	return g.base(m).add(p.scale(size)).add(constant(int64(n) * size))
}

// load prints a load or leaves it to the instruction that uses it.
func (g *gen) load(i *ir.Instr) {
	x, mask := g.val(i.Args[0]).x, i.Args[1]
	steady := i.Mem.Param != nil && i.Mem.Param.Access == ir.In
	for n, r := range i.Results {
		v := g.val(r)
		at := g.bytesAt(i.Mem, x.p, n)
		switch {
		case r.Span != ir.Varying && mask == nil:
			if g.folds[r.ID] {
				v.mem = &memory{at: &at}
				continue
			}
			v.vec = []reg.VecVirtual{g.vec()}
			a := g.address(at)
			g.steady = steady
			g.loadUniform(i.Mem.Type, a, v.vec[0])
			g.steady = false
		case r.Span != ir.Varying:
			v.vec = []reg.VecVirtual{g.vec()}
			a := g.address(at)
			skip := g.newLabel("masked")
			g.zero(v.vec[0])
			g.branchUnless(mask, skip)
			g.loadUniform(i.Mem.Type, a, v.vec[0])
			g.label(skip)
		case x.contiguous() && (mask == nil || g.arch.evex || i.Mem.Type.Bytes() == 4):
			at = at.add(constant(x.lanes[0] * int64(i.Mem.Type.Bytes())))
			if g.folds[r.ID] && mask == nil {
				v.mem = &memory{at: &at, lanewise: true}
				continue
			}
			v.vec = g.loadLanes(i.Mem.Type, at, mask, steady)
		default:
			v.vec = g.gather(i.Mem, x, n, mask)
		}
	}
}

// loadUniform sets dst to the element at m in every lane.
func (g *gen) loadUniform(t ir.Type, m operand.Mem, dst reg.VecVirtual) {
	switch t {
	case ir.I8:
		g.put(x86.VPBROADCASTB(m, dst))
		g.put(x86.VPSRAD(operand.U8(24), dst, dst))
	case ir.U8:
		g.put(x86.VPBROADCASTB(m, dst))
		g.put(x86.VPSRLD(operand.U8(24), dst, dst))
	case ir.I16:
		g.put(x86.VPBROADCASTW(m, dst))
		g.put(x86.VPSRAD(operand.U8(16), dst, dst))
	case ir.BF16:
		g.put(x86.VPBROADCASTW(m, dst))
		g.put(x86.VPSLLD(operand.U8(16), dst, dst))
	case ir.F16:
		g.put(x86.VPBROADCASTW(m, g.half(dst)))
		g.put(x86.VCVTPH2PS(g.half(dst), dst))
	default:
		g.broadcast(m, dst)
	}
}

// widen is the instruction that loads consecutive narrow elements into 32-bit lanes.
var widen = map[ir.Type]struct {
	plain  ctor
	masked ctor
}{
	ir.I8:   {x86.VPMOVSXBD, zeroing(x86.VPMOVSXBD_Z)},
	ir.U8:   {x86.VPMOVZXBD, zeroing(x86.VPMOVZXBD_Z)},
	ir.I16:  {x86.VPMOVSXWD, zeroing(x86.VPMOVSXWD_Z)},
	ir.BF16: {x86.VPMOVZXWD, zeroing(x86.VPMOVZXWD_Z)},
	ir.F16:  {x86.VCVTPH2PS, zeroing(x86.VCVTPH2PS_Z)},
}

// loadLanes loads consecutive elements, one a lane, where the mask, if any, holds.
func (g *gen) loadLanes(t ir.Type, at poly, mask *ir.Value, steady bool) []reg.VecVirtual {
	out := make([]reg.VecVirtual, g.parts)
	var m []reg.Register
	if mask != nil {
		m = g.mask(mask)
	}
	for p := range out {
		out[p] = g.vec()
		a := g.address(at).Offset(p * g.per * t.Bytes())
		g.steady = steady && mask == nil
		switch {
		case t.Bytes() == 4 && mask == nil:
			g.put(x86.VMOVUPS(a, out[p]))
		case t.Bytes() == 4 && g.arch.evex:
			g.put(x86.VMOVUPS_Z(a, m[p], out[p]))
		case t.Bytes() == 4:
			g.put(x86.VPMASKMOVD(a, m[p], out[p]))
		case mask == nil:
			g.put(widen[t].plain(a, out[p]))
		default:
			g.put(widen[t].masked(a, m[p], out[p]))
		}
		g.steady = false
		if t == ir.BF16 {
			g.put(x86.VPSLLD(operand.U8(16), out[p], out[p]))
		}
	}
	return out
}

// gather loads an element for each lane from any place. Narrow elements come in the aligned word that holds them, which is
// readable because its buffer is readable up to the next 64-byte multiple.
func (g *gen) gather(m ir.Memory, x index, n int, mask *ir.Value) []reg.VecVirtual {
	size := m.Type.Bytes()
	var masks []reg.Register
	if mask != nil {
		masks = g.mask(mask)
	}
	var base operand.Mem
	var offset []reg.VecVirtual // in elements of 4 bytes, in bytes otherwise
	if size == 4 {
		base = g.address(g.bytesAt(m, x.p, n))
		offset = g.offsets(x)
	} else {
		base, offset = g.narrowOffsets(m, x, n)
	}
	if base.Index != nil {
		r := g.gp()
		g.put(x86.LEAQ(base, r))
		base = operand.Mem{Base: r}
	}
	base.Scale = uint8(1)
	if size == 4 {
		base.Scale = 4
	}
	out := make([]reg.VecVirtual, g.parts)
	for p := range out {
		out[p] = g.vec()
		g.zero(out[p])
		a := base
		a.Index = offset[p]
		if size < 4 {
			w := g.vec()
			g.put(g.arch.and(g.splat(^uint32(3)), offset[p], w))
			a.Index = w
		}
		k := g.newMask()
		switch {
		case mask != nil && g.arch.evex:
			g.put(x86.KMOVW(masks[p], k))
		case mask != nil:
			g.move(masks[p], k)
		default:
			g.allLanes(k)
		}
		if g.arch.evex {
			i, err := x86.VPGATHERDD(a, k, out[p])
			if err == nil {
				i.Outputs = append(i.Outputs, k) // cleared lane by lane
			}
			g.put(i, err)
		} else {
			g.put(x86.VPGATHERDD(k, a, out[p]))
		}
		if size < 4 {
			out[p] = g.extract(m.Type, out[p], offset[p])
		}
	}
	return out
}

// narrowOffsets returns a base aligned to 64 bytes from the start of the memory and byte offsets from it.
func (g *gen) narrowOffsets(m ir.Memory, x index, n int) (operand.Mem, []reg.VecVirtual) {
	size := int64(m.Type.Bytes())
	lanes := g.times64(index{lanes: x.lanes, vec: x.vec}, constant(size))
	at := x.p.scale(size).add(constant(int64(n) * size))
	if at.isConst() {
		lanes = g.laneMap(lanes, func(_ int, c int64) int64 { return c + at.c })
		return g.address(g.base(m)), g.offsets(lanes)
	}
	high := g.scalarOp(ir.OpAndX, at, constant(^63))
	low := at.sub(high)
	return g.address(g.base(m).add(high)), g.vec32(index{low, lanes.lanes, lanes.vec})
}

// extract widens the narrow element at byte offset mod 4 of each word.
func (g *gen) extract(t ir.Type, word, offset reg.VecVirtual) reg.VecVirtual {
	by, r := g.vec(), g.vec()
	g.put(x86.VPSLLD(operand.U8(3), offset, by)) // VPSRLVD takes all bits of the count
	g.put(g.arch.and(g.splat(31), by, by))
	g.put(x86.VPSRLVD(by, word, r))
	switch t {
	case ir.I8, ir.U8:
		g.put(x86.VPSLLD(operand.U8(24), r, r))
		if t == ir.I8 {
			g.put(x86.VPSRAD(operand.U8(24), r, r))
		} else {
			g.put(x86.VPSRLD(operand.U8(24), r, r))
		}
	case ir.I16:
		g.put(x86.VPSLLD(operand.U8(16), r, r))
		g.put(x86.VPSRAD(operand.U8(16), r, r))
	case ir.BF16:
		g.put(x86.VPSLLD(operand.U8(16), r, r))
	case ir.F16:
		h := g.vec()
		g.lowWords(r, h)
		out := g.vec()
		g.put(x86.VCVTPH2PS(g.half(h), out))
		return out
	}
	return r
}

// lowWords packs the low 16 bits of v's lanes into the low half of dst.
func (g *gen) lowWords(v, dst reg.VecVirtual) {
	if g.arch.evex {
		g.put(x86.VPMOVDW(v, g.half(dst)))
		return
	}
	g.put(x86.VPSHUFB(g.shuffleBytes(0, 1, 4, 5, 8, 9, 12, 13), v, dst))
	g.put(x86.VPERMQ(operand.U8(0x08), dst, dst))
}

// shuffleBytes returns a VPSHUFB control for each 128 bits: the bytes given, then zeros.
func (g *gen) shuffleBytes(from ...byte) operand.Mem {
	w := make([]uint32, g.per)
	for l := range w {
		for b := range 4 {
			c := uint32(0x80)
			if n := l%4*4 + b; n < len(from) {
				c = uint32(from[n])
			}
			w[l] |= c << (8 * b)
		}
	}
	return g.data.words(w)
}

// store prints a store.
func (g *gen) store(i *ir.Instr) {
	x, mask := g.val(i.Args[0]).x, i.Args[1]
	t := i.Mem.Type
	if mask == nil && len(i.Args) == 2+4 && x.stride() >= 4 && (t.Bytes() == 4 || t == ir.F16) {
		g.storeFours(i.Mem, x, i.Args[2:])
		return
	}
	scratch := g.scratch
	for n, v := range i.Args[2:] {
		g.scratch = scratch // one element after the other takes the same part of the frame
		at := g.bytesAt(i.Mem, x.p, n)
		uniform := x.uniform() && v.Span != ir.Varying && (mask == nil || mask.Span != ir.Varying)
		switch {
		case uniform:
			r := g.narrow(t, g.in(v, 0))
			a := g.address(at)
			skip := ""
			if mask != nil {
				skip = g.newLabel("masked")
				g.branchUnless(mask, skip)
			}
			g.storeOne(t, r, a)
			if mask != nil {
				g.label(skip)
			}
		case x.contiguous() && (mask == nil || g.arch.evex || t.Bytes() == 4):
			at = at.add(constant(x.lanes[0] * int64(t.Bytes())))
			g.storeLanes(t, at, v, mask)
		default:
			g.scatter(i.Mem, x, n, v, mask)
		}
	}
}

// storeFours stores four consecutive elements a lane, lanes a constant distance apart: the vectors are transposed in
// registers, and each lane's four elements go out at once.
func (g *gen) storeFours(m ir.Memory, x index, vs []*ir.Value) {
	size := m.Type.Bytes()
	pair := func(op ctor, a, b reg.VecVirtual, view func(reg.VecVirtual) reg.Register) reg.VecVirtual {
		d := g.vec()
		g.put(op(view(b), view(a), view(d)))
		return d
	}
	whole := func(v reg.VecVirtual) reg.Register { return v }
	for p := range g.parts {
		at := g.address(g.bytesAt(m, x.p, 0))
		lane := func(l int) operand.Mem { return at.Offset(int(laneAt(x, p*g.per+l)) * size) }
		var in [4]reg.VecVirtual
		for n, v := range vs {
			in[n] = g.in(v, p)
		}
		if size == 4 {
			a, b := pair(x86.VUNPCKLPS, in[0], in[1], whole), pair(x86.VUNPCKHPS, in[0], in[1], whole)
			c, d := pair(x86.VUNPCKLPS, in[2], in[3], whole), pair(x86.VUNPCKHPS, in[2], in[3], whole)
			for j, v := range [...]reg.VecVirtual{
				pair(x86.VUNPCKLPD, a, c, whole), pair(x86.VUNPCKHPD, a, c, whole), pair(x86.VUNPCKLPD, b, d, whole), pair(x86.VUNPCKHPD, b, d, whole),
			} {
				g.put(x86.VMOVUPS(v.AsX(), lane(j)))
				for q := 1; q < g.per/4; q++ {
					if g.arch.evex {
						g.put(x86.VEXTRACTF32X4(operand.U8(q), v, lane(4*q+j)))
					} else {
						g.put(x86.VEXTRACTF128(operand.U8(q), v, lane(4*q+j)))
					}
				}
			}
			continue
		}
		for n, v := range in {
			in[n] = g.vec()
			g.put(x86.VCVTPS2PH(operand.U8(0), v, g.half(in[n])))
		}
		a, b := pair(x86.VPUNPCKLWD, in[0], in[1], g.half), pair(x86.VPUNPCKHWD, in[0], in[1], g.half)
		c, d := pair(x86.VPUNPCKLWD, in[2], in[3], g.half), pair(x86.VPUNPCKHWD, in[2], in[3], g.half)
		for j, v := range [...]reg.VecVirtual{
			pair(x86.VPUNPCKLDQ, a, c, g.half), pair(x86.VPUNPCKHDQ, a, c, g.half), pair(x86.VPUNPCKLDQ, b, d, g.half), pair(x86.VPUNPCKHDQ, b, d, g.half),
		} {
			for q := range g.per / 8 {
				if q > 0 {
					h := g.vec()
					g.put(x86.VEXTRACTI128(operand.U8(q), v.AsY(), h.AsX()))
					v = h
				}
				g.put(x86.VMOVQ(v.AsX(), lane(8*q+2*j)))
				g.put(x86.VPEXTRQ(operand.U8(1), v.AsX(), lane(8*q+2*j+1)))
			}
		}
	}
}

// narrow returns v's lanes as the low bits of t.
func (g *gen) narrow(t ir.Type, v reg.VecVirtual) reg.VecVirtual {
	switch t {
	case ir.BF16:
		return g.roundBF16(v)
	case ir.F16:
		h, r := g.vec(), g.vec()
		g.put(x86.VCVTPS2PH(operand.U8(0), v, g.half(h)))
		g.put(x86.VPMOVZXWD(g.half(h), r))
		return r
	}
	return v
}

// roundBF16 returns the bits of v rounded to nearest even to bfloat16, NaN quieted.
func (g *gen) roundBF16(v reg.VecVirtual) reg.VecVirtual {
	high, r, nan, out := g.vec(), g.vec(), g.vec(), g.vec()
	g.put(x86.VPSRLD(operand.U8(16), v, high))
	g.put(g.arch.and(g.splat(1), high, r))
	g.put(x86.VPADDD(g.splat(0x7FFF), r, r))
	g.put(x86.VPADDD(r, v, r))
	g.put(x86.VPSRLD(operand.U8(16), r, r))
	g.put(g.arch.or(g.splat(0x40), high, nan))
	m := g.newMask()
	g.compare(cmpUnordF, v, v, false, m)
	if g.arch.evex {
		g.blend(x86.VPBLENDMD, nan, r, m, out)
	} else {
		g.put(x86.VBLENDVPS(m, nan, r, out))
	}
	return out
}

// storeOne stores the element in lane 0.
func (g *gen) storeOne(t ir.Type, v reg.VecVirtual, a operand.Mem) {
	switch t.Bytes() {
	case 1:
		g.put(x86.VPEXTRB(operand.U8(0), v.AsX(), a))
	case 2:
		g.put(x86.VPEXTRW(operand.U8(0), v.AsX(), a))
	default:
		g.put(x86.VMOVD(v.AsX(), a))
	}
}

// storeLanes stores consecutive elements, one a lane, where the mask, if any, holds.
func (g *gen) storeLanes(t ir.Type, at poly, v, mask *ir.Value) {
	var m []reg.Register
	if mask != nil {
		m = g.mask(mask)
	}
	for p := range g.parts {
		r := g.in(v, p)
		a := g.address(at).Offset(p * g.per * t.Bytes())
		if t == ir.BF16 {
			r = g.roundBF16(r)
		}
		switch {
		case t.Bytes() == 4 && mask == nil:
			g.put(x86.VMOVUPS(r, a))
		case t.Bytes() == 4 && g.arch.evex:
			g.put(x86.VMOVUPS(r, m[p], a))
		case t.Bytes() == 4:
			g.put(x86.VPMASKMOVD(r, m[p], a))
		case t == ir.F16 && mask == nil:
			g.put(x86.VCVTPS2PH(operand.U8(0), r, a))
		case t == ir.F16:
			g.put(x86.VCVTPS2PH(operand.U8(0), r, m[p], a))
		case g.arch.evex && t.Bytes() == 1 && mask == nil:
			g.put(x86.VPMOVDB(r, a))
		case g.arch.evex && t.Bytes() == 1:
			g.put(x86.VPMOVDB(r, m[p], a))
		case g.arch.evex && mask == nil:
			g.put(x86.VPMOVDW(r, a))
		case g.arch.evex:
			g.put(x86.VPMOVDW(r, m[p], a))
		case t.Bytes() == 2:
			w := g.vec()
			g.lowWords(r, w)
			g.put(x86.VMOVUPS(w.AsX(), a))
		default: // four bytes of each half, then both together
			w, h := g.vec(), g.vec()
			g.put(x86.VPSHUFB(g.shuffleBytes(0, 4, 8, 12), r, w))
			g.put(x86.VEXTRACTI128(operand.U8(1), w, h.AsX()))
			g.put(x86.VPUNPCKLDQ(h.AsX(), w.AsX(), w.AsX()))
			g.put(x86.VMOVQ(w.AsX(), a))
		}
	}
}

// scatter stores lane by lane through the stack, in lane order; words go by VPSCATTERDD where there is one.
func (g *gen) scatter(m ir.Memory, x index, n int, v, mask *ir.Value) {
	t := m.Type
	size := t.Bytes()
	var masks []reg.Register
	if mask != nil {
		masks = g.mask(mask)
	}
	base := g.address(g.bytesAt(m, x.p, n))
	if base.Index != nil {
		r := g.gp()
		g.put(x86.LEAQ(base, r))
		base = operand.Mem{Base: r}
	}
	offset := g.offsets(x)
	vals := make([]reg.VecVirtual, g.parts)
	for p := range vals {
		vals[p] = g.narrow(t, g.in(v, p))
	}
	if g.arch.evex && size == 4 {
		for p := range g.parts {
			k := g.newMask()
			if mask != nil {
				g.put(x86.KMOVW(masks[p], k))
			} else {
				g.allLanes(k)
			}
			a := base
			a.Index, a.Scale = offset[p], 4
			i, err := x86.VPSCATTERDD(vals[p], k, a)
			if err == nil {
				i.Inputs = append(i.Inputs, k, vals[p])
				i.Outputs = append(i.Outputs, k)
			}
			g.put(i, err)
		}
		return
	}
	from, to := g.toStack(vals), g.toStack(offset)
	for p := range g.parts {
		var bits reg.GPVirtual
		if mask != nil {
			bits = g.maskBits(masks[p])
		}
		for l := range g.per {
			skip := ""
			if mask != nil {
				skip = g.newLabel("masked")
				g.put(x86.BTL(operand.U8(l), bits.As32()))
				g.put(x86.JCC(operand.LabelRef(skip)))
			}
			at := 4 * (p*g.per + l)
			o, w := g.gp(), g.gp()
			g.put(x86.MOVLQSX(to.Offset(at), o))
			g.put(x86.MOVL(from.Offset(at), w.As32()))
			a := base
			a.Index, a.Scale = o, uint8(size)
			switch size {
			case 1:
				g.put(x86.MOVB(w.As8(), a))
			case 2:
				g.put(x86.MOVW(w.As16(), a))
			default:
				g.put(x86.MOVL(w.As32(), a))
			}
			if mask != nil {
				g.label(skip)
			}
		}
	}
}
