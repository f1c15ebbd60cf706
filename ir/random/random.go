// Package random makes random legal kernels, for tests of whatever reads, rewrites or prints kernels. They use loops,
// branches, register tiles, shared memory, masks and every op that a CPU has, keep all that kernels promise, and store
// much of what they compute.
package random

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
)

const (
	inputs = 96 // elements of each input
	cells  = 4  // elements of an output that a lane, or a group, has to itself
)

// Kernel makes a kernel of about size statements, the same for the same choices of r.
func Kernel(r *rand.Rand, lanes, groups, size int) *ir.Kernel {
	k, err := ir.Build("random", lanes, groups, func(b *ir.Builder) {
		g := &maker{b: b, r: r, groups: groups, left: size}
		g.declare()
		g.block(0)
		g.results()
	})
	if err != nil {
		panic(fmt.Sprintf("random kernel: %v", err))
	}
	return k
}

// Args makes arguments for a kernel of this package.
func Args(r *rand.Rand, k *ir.Kernel) interp.Args {
	const n = 3 // tiles, below
	a := interp.Args{Ints: []int64{n*2 - 1}, Floats: []float32{r.Float32()}}
	f := make([]byte, 4*inputs)
	for i := range inputs {
		binary.LittleEndian.PutUint32(f[4*i:], math.Float32bits(float(r)))
	}
	w := make([]byte, 4*inputs)
	for i := range w {
		w[i] = byte(r.Uint32())
	}
	lane := n * k.Groups * k.Lanes * cells * 4
	group := n * k.Groups * cells * 4
	a.Buffers = [][]byte{f, w, make([]byte, lane), make([]byte, lane), make([]byte, group)}
	return a
}

func float(r *rand.Rand) float32 {
	special := []float32{0, float32(math.Copysign(0, -1)), 1, -1, float32(math.Inf(1)), float32(math.NaN()), math.SmallestNonzeroFloat32, math.MaxFloat32}
	if r.IntN(8) == 0 {
		return special[r.IntN(len(special))]
	}
	return float32(r.NormFloat64())
}

// maker writes one kernel. pool holds the values that may be used; indices in it are never negative.
type maker struct {
	b      *ir.Builder
	r      *rand.Rand
	groups int
	left   int
	pool   map[ir.Type][]*ir.Value
	tiles  []ir.Tile

	floats, words, out, inout, uniform, shared ir.Memory
	own, ownGroup                              *ir.Value // first cell of the lane and of the group
	parted                                     bool      // the lane groups may have parted
}

var words = []ir.Type{ir.F32, ir.I32, ir.U32, ir.I8x4, ir.U8x4}

func (g *maker) declare() {
	b := g.b
	g.floats, g.words = b.In("floats", ir.F32), b.In("words", ir.U32)
	g.out, g.inout, g.uniform = b.Out("out", ir.F32), b.InOut("inout", ir.U32), b.Out("uniform", ir.F32)
	tile := b.Tiles(b.Int("n"), 2)
	scale := b.Float("scale")
	g.shared = b.Shared("exchange", ir.U32, g.groups*b.Lanes())
	lane, group := b.Lane(), b.Group()
	g.ownGroup = tile.Mul(g.groups).Add(group).Mul(cells)
	g.own = tile.Mul(g.groups).Add(group).Mul(b.Lanes()).Add(lane).Mul(cells)
	g.pool = map[ir.Type][]*ir.Value{ir.Index: {tile, lane, group, b.Idx(3)}, ir.F32: {scale, b.F32(1.5)}}
	for range 2 {
		g.load()
	}
	g.pool[ir.I32] = []*ir.Value{lane.FromIndex(), b.I32(-7)}
	g.pool[ir.U32] = append(g.pool[ir.U32], b.U32(0x80000001))
	g.pool[ir.I8x4] = []*ir.Value{g.value(ir.U32).As(ir.I8x4)}
	g.pool[ir.U8x4] = []*ir.Value{g.value(ir.U32).As(ir.U8x4)}
	g.pool[ir.Bool] = []*ir.Value{lane.Lt(5), tile.Eq(1), group.Lt(1)}
	for n, t := range words {
		tile := b.Reg("r"+t.String(), t, 1+g.r.IntN(4))
		tile.Fill(g.value(t))
		g.tiles = append(g.tiles, tile)
		if n < 2 {
			u := b.UniformReg("u"+t.String(), t, 2)
			u.Fill(b.Const(t, int64(n)))
			g.tiles = append(g.tiles, u)
		}
	}
}

// value picks a value of the type; the later ones more often.
func (g *maker) value(t ir.Type) *ir.Value {
	p := g.pool[t]
	n := g.r.IntN(len(p))
	return p[max(n, g.r.IntN(len(p)))]
}

// narrow picks a value that is the same for as many lanes as the span says, or nil.
func (g *maker) narrow(t ir.Type, s ir.Span) *ir.Value {
	for range 20 {
		if v := g.value(t); v.Span <= s {
			return v
		}
	}
	return nil
}

func (g *maker) add(vs ...*ir.Value) {
	for _, v := range vs {
		g.pool[v.Type] = append(g.pool[v.Type], v)
	}
}

// scope runs f; values made in it are forgotten after.
func (g *maker) scope(f func()) {
	n := map[ir.Type]int{}
	for t, p := range g.pool {
		n[t] = len(p)
	}
	parted := g.parted
	f()
	g.parted = parted
	for t := range g.pool {
		g.pool[t] = g.pool[t][:n[t]]
	}
}

func (g *maker) block(depth int) {
	for n := 3 + g.r.IntN(12); n > 0 && g.left > 0; n-- {
		g.left--
		g.stmt(depth)
	}
}

func (g *maker) stmt(depth int) {
	c := g.r.IntN(20)
	switch {
	case c < 2 && depth < 3:
		g.loop(depth)
	case c == 2 && depth < 3:
		g.scope(func() {
			g.b.Unroll(1+g.r.IntN(4), func(i *ir.Value) { g.add(i); g.block(depth + 1) })
		})
	case c == 3 && depth < 3:
		g.branch(depth)
	case c < 6:
		g.load()
	case c < 8:
		g.store()
	case c < 11:
		g.tile()
	case c == 11 && !g.parted:
		g.exchange()
	case c == 12 && !g.parted:
		g.cross()
	default:
		g.arith()
	}
}

func (g *maker) loop(depth int) {
	var lo, hi any = g.r.IntN(3), g.r.IntN(5)
	s := ir.Block
	if v := g.narrow(ir.Index, ir.Group); v != nil && g.r.IntN(2) == 0 {
		hi, s = v.Mod(4), v.Span
	}
	g.scope(func() {
		g.parted = g.parted || s != ir.Block
		g.b.For(lo, hi, 1+g.r.IntN(2), func(i *ir.Value) { g.add(i); g.block(depth + 1) })
	})
}

func (g *maker) branch(depth int) {
	c := g.narrow(ir.Bool, ir.Group)
	if c == nil {
		return
	}
	arm := func() {
		g.scope(func() { g.parted = g.parted || c.Span != ir.Block; g.block(depth + 1) })
	}
	if g.r.IntN(2) == 0 {
		g.b.If(c, arm)
	} else {
		g.b.IfElse(c, arm, arm)
	}
}

// mask returns a condition or, mostly, nil.
func (g *maker) mask() *ir.Value {
	if g.r.IntN(3) > 0 {
		return nil
	}
	return g.value(ir.Bool)
}

func (g *maker) load() {
	n := []int{1, 2, 4}[g.r.IntN(3)]
	x := g.value(ir.Index).Mod(inputs - 4)
	switch g.r.IntN(4) {
	case 0:
		g.add(g.b.LoadN(g.floats, n, x, g.maskOnce())...)
		g.add(g.b.LoadN(g.words, n, x, g.maskOnce())...)
	case 1:
		t := []ir.Type{ir.I8, ir.U8, ir.I16}[g.r.IntN(3)]
		g.add(g.b.LoadN(g.words.As(t), n, x, g.maskOnce())...)
		g.add(g.b.LoadN(g.words.As(ir.BF16), n, x, nil)...)
	case 2:
		g.add(g.b.Load(g.inout, g.own.Add(g.r.IntN(cells))))
	default:
		g.b.Prefetch(g.words, x)
		g.add(g.b.LoadN(g.words, n, x, nil)...)
	}
}

// maskOnce is mask where there may be no condition yet.
func (g *maker) maskOnce() *ir.Value {
	if len(g.pool[ir.Bool]) == 0 {
		return nil
	}
	return g.mask()
}

func (g *maker) store() {
	at := g.own.Add(g.r.IntN(cells))
	switch g.r.IntN(5) {
	case 0:
		g.b.StoreN(g.out, at, g.mask(), g.value(ir.F32))
	case 1:
		g.b.StoreN(g.inout, at, g.mask(), g.value(ir.U32))
	case 2:
		t := []ir.Type{ir.I8, ir.U8, ir.I16}[g.r.IntN(3)]
		g.b.StoreN(g.inout.As(t), g.own.Mul(4/t.Bytes()).Add(g.r.IntN(2)), g.mask(), g.value(ir.I32))
	case 3:
		g.b.StoreN(g.out, g.own, g.mask(), g.value(ir.F32), g.value(ir.F32), g.value(ir.F32), g.value(ir.F32))
	default:
		if v := g.narrow(ir.F32, ir.Group); v != nil {
			g.b.Store(g.uniform, g.ownGroup.Add(g.r.IntN(cells)), v)
		}
	}
}

// tile reads, sets or adds to an element of a register tile, by a constant or the variable of an unrolled loop.
func (g *maker) tile() {
	t := g.tiles[g.r.IntN(len(g.tiles))]
	at := func(f func(i any)) {
		if g.r.IntN(2) == 0 {
			f(g.r.IntN(t.Reg.Len))
			return
		}
		g.b.Unroll(1+g.r.IntN(t.Reg.Len), func(i *ir.Value) { f(i) })
	}
	switch v := g.narrow(t.Reg.Type, t.Reg.Span); {
	case g.r.IntN(3) == 0:
		g.add(t.At(g.r.IntN(t.Reg.Len)))
	case v == nil:
	case g.r.IntN(2) == 0:
		at(func(i any) { t.Set(v, i) })
	case t.Reg.Type == ir.F32 || t.Reg.Type == ir.I32 || t.Reg.Type == ir.U32:
		at(func(i any) { t.Add(v, i) })
	}
}

// exchange passes words between all lanes of the block through shared memory.
func (g *maker) exchange() {
	b := g.b
	b.Store(g.shared, b.Group().Mul(b.Lanes()).Add(b.Lane()), g.value(ir.U32))
	b.Barrier()
	g.add(b.Load(g.shared, g.value(ir.Index).Mod(g.groups*b.Lanes())))
	b.Barrier()
}

func (g *maker) cross() {
	switch g.r.IntN(7) {
	case 0:
		g.add(g.value(ir.I32).PackLanes4())
	case 1:
		g.add(g.value(words[g.r.IntN(len(words))]).ShuffleXor(1 + g.r.IntN(g.b.Lanes()-1)))
	case 2:
		g.add(g.value(words[g.r.IntN(len(words))]).ReadLane(g.r.IntN(g.b.Lanes())))
	case 3:
		if g.b.Lanes() == 32 {
			g.add(g.value(ir.F32).FoldAdd())
		}
	case 4:
		g.add(g.value(ir.I32).FoldAdd())
	case 5:
		g.add(g.value(ir.U32).FoldMax())
	default:
		g.add(g.value(ir.F32).FoldMax())
	}
}

func (g *maker) arith() {
	b := g.b
	x, i, f := g.value(ir.Index), g.value(ir.I32), g.value(ir.F32)
	low := func() *ir.Value { return g.value(ir.U32).And(0x7F7F7F7F) }
	small := func() *ir.Value { return g.value(ir.I32).And(0xFFF).ToF32() }
	switch g.r.IntN(18) {
	case 0:
		g.add(x.Add(g.value(ir.Index)).Mod(1009))
	case 1:
		g.add(x.Mul(g.value(ir.Index)).Mod(1009))
	case 2:
		g.add(x.Div(1+g.r.IntN(9)), x.Shr(1), x.And(g.r.IntN(64)), x.Mod(7))
	case 3:
		g.add(x.Min(g.value(ir.Index)), x.Max(g.value(ir.Index)), x.Xor(g.r.IntN(8)).Mod(1009), x.Shl(2).Mod(1009))
	case 4:
		g.add(x.Lt(g.value(ir.Index)), x.Le(g.r.IntN(9)), x.Eq(2))
	case 5:
		g.add(x.FromIndex(), i.And(0xFF).ToIndex())
	case 6:
		g.add(f.Add(g.value(ir.F32)), f.Sub(g.value(ir.F32)))
	case 7:
		g.add(f.Mul(g.value(ir.F32)))
	case 8:
		g.add(b.FMAExact(small(), small(), f))
	case 9:
		g.add(f.Lt(g.value(ir.F32)), f.Le(g.value(ir.F32)), f.Eq(g.value(ir.F32)))
	case 10:
		g.add(i.Add(g.value(ir.I32)), i.Sub(g.r.IntN(99)), i.Mul(g.value(ir.I32)), i.Min(3), i.Max(g.value(ir.I32)))
	case 11:
		u := g.value(ir.U32)
		g.add(u.Or(g.value(ir.U32)), u.Xor(g.value(ir.U32)), u.Shl(g.value(ir.U32).And(63)), u.Shr(g.r.IntN(40)), u.Max(7))
		g.add(i.Shr(g.r.IntN(40)))
	case 12:
		g.add(i.Lt(g.value(ir.I32)), g.value(ir.U32).Lt(g.value(ir.U32)), i.Eq(0))
	case 13:
		c := g.value(ir.Bool)
		g.add(c.AndB(g.value(ir.Bool)), c.OrB(g.value(ir.Bool)), c.Not())
	case 14:
		t := words[g.r.IntN(len(words))]
		c, yes := g.value(ir.Bool), g.value(t)
		g.add(c.Select(yes, g.value(t)), c.Select(yes, g.value(t))) // alike but for the last argument
	case 15:
		v := g.value(words[g.r.IntN(len(words))])
		g.add(v.As(words[g.r.IntN(len(words))]))
	case 16:
		if g.r.IntN(2) == 0 {
			g.add(b.Dot4US(low().As(ir.U8x4), g.value(ir.I8x4), i, 127))
		} else {
			g.add(b.Dot4US(g.value(ir.U8x4), g.value(ir.I8x4), i, 255))
		}
		g.add(b.Dot4SS(g.value(ir.I8x4), low().As(ir.I8x4), i))
	default:
		var table [16]byte
		codes := g.value(ir.U32).And(0x0F0F0F0F).As(ir.U8x4)
		for range 2 {
			for n := range table {
				table[n] = byte(g.r.Uint32())
			}
			g.add(b.Lookup16(codes, table))
		}
	}
}

// results stores a value of each type and every register element.
func (g *maker) results() {
	b := g.b
	b.Store(g.out, g.own, g.value(ir.F32))
	b.Store(g.out, g.own.Add(1), g.value(ir.I32).As(ir.F32))
	b.Store(g.inout, g.own.Add(2), g.value(ir.Index).FromIndex().As(ir.U32))
	for _, t := range g.tiles {
		b.Unroll(t.Reg.Len, func(i *ir.Value) {
			at := g.own.Add(3)
			b.Store(g.inout, at, b.Load(g.inout, at).Mul(31).Add(t.At(i).As(ir.U32)))
		})
	}
}
