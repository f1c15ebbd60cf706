package avx

import (
	"fmt"

	avo "github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
	"github.com/mmcloughlin/avo/x86"

	"github.com/swizzle-rt/swizzle/ir"
)

// val is where a value lies.
type val struct {
	vec  []reg.VecVirtual // words: a register per part, one if uniform
	x    index            // indices
	mask []reg.Register   // Bools in mask or vector registers: a part each, one if uniform
	flag reg.GPVirtual    // uniform Bools as 0 or 1
	cond *cond            // uniform Bools that compare indices
	mem  *memory          // words that are read where they are used: constants, float parameters, folded loads
	sum  *wordSum         // dot products in progress

	scope *scope // where it is defined
}

// memory is a word operand in memory: one element for all lanes, or consecutive ones.
type memory struct {
	bits     *uint32 // of a constant
	slot     int     // of a float parameter, where bits and at are unset
	at       *poly   // byte address of a load
	lanewise bool    // consecutive elements, one a lane
}

func (g *gen) val(v *ir.Value) *val { return &g.vals[v.ID] }

func (g *gen) partsOf(v *ir.Value) int {
	if v.Span == ir.Varying {
		return g.parts
	}
	return 1
}

// zero clears r.
func (g *gen) zero(r reg.Register) { g.fresh(g.arch.xor(r, r, r)) }

// ones sets all bits of r.
func (g *gen) ones(r reg.Register) {
	if g.arch.evex {
		g.fresh(x86.VPTERNLOGD(operand.U8(0xFF), r, r, r))
	} else {
		g.fresh(x86.VPCMPEQD(r, r, r))
	}
}

// fresh appends an instruction whose result doesn't depend on the registers it reads.
func (g *gen) fresh(i *avo.Instruction, err error) {
	if err == nil {
		i.Inputs, i.CancellingInputs = nil, false
	}
	g.put(i, err)
}

// hoisted returns words in a register for the whole kernel, or for this statement where registers are scarce.
func (g *gen) hoisted(words []uint32) reg.VecVirtual {
	if g.hoist == hoistNone {
		r := g.vec()
		g.put(x86.VMOVUPS(g.data.words(words), r))
		return r
	}
	key := fmt.Sprint(words)
	root := g.scope.root()
	r, ok := root.vecs[key]
	if !ok {
		r = g.vec()
		root.vecs[key] = r
		g.within(root, func() { g.put(x86.VMOVUPS(g.data.words(words), r)) })
	}
	return r
}

// splat returns a full vector of equal words in memory.
func (g *gen) splat(w uint32) operand.Mem {
	words := make([]uint32, g.per)
	for i := range words {
		words[i] = w
	}
	return g.data.words(words)
}

// broadcast sets r to a word from memory in every lane.
func (g *gen) broadcast(m operand.Mem, r reg.Register) { g.put(x86.VBROADCASTSS(m, r)) }

// load sets r to a constant in every lane.
func (g *gen) constant(w uint32, r reg.Register) {
	switch {
	case w == 0:
		g.zero(r)
	case w == ^uint32(0):
		g.ones(r)
	case g.arch.evex:
		g.broadcast(g.data.words([]uint32{w}), r)
	default:
		g.put(x86.VMOVUPS(g.splat(w), r))
	}
}

// splatReg returns a new register with w in every lane.
func (g *gen) splatReg(w uint32) reg.VecVirtual {
	r := g.vec()
	g.constant(w, r)
	return r
}

// fromGP broadcasts the low 32 bits of a general register.
func (g *gen) fromGP(x reg.GPVirtual) reg.VecVirtual {
	r := g.vec()
	if g.arch.evex {
		g.put(x86.VPBROADCASTD(x.As32(), r))
	} else {
		g.put(x86.VMOVD(x.As32(), r.AsX()))
		g.put(x86.VPBROADCASTD(r.AsX(), r))
	}
	return r
}

// in returns part p of a word value in a register.
func (g *gen) in(v *ir.Value, p int) reg.VecVirtual {
	w := g.val(v)
	if w.sum != nil {
		g.finishSum(v)
	}
	if w.vec != nil {
		return w.vec[min(p, len(w.vec)-1)]
	}
	if w.mem == nil {
		g.fail("%%%d has no value here", v.ID)
	}
	if w.mem.lanewise {
		r := g.vec()
		g.put(x86.VMOVUPS(g.address(*w.mem.at).Offset(p*g.width), r))
		return r
	}
	if r, ok := g.temps[v]; ok {
		return r
	}
	if r := g.resident(w.mem); r != nil {
		return r
	}
	r := g.vec()
	g.temps[v] = r
	if w.mem.bits != nil {
		g.constant(*w.mem.bits, r)
	} else {
		g.broadcast(g.word(w.mem), r)
	}
	return r
}

// resident returns the register of a constant or parameter that stays in one.
func (g *gen) resident(m *memory) reg.VecVirtual {
	if m.at != nil || g.hoist != hoistLoops || g.out.depth < 2 {
		return nil
	}
	root := g.scope.root()
	key := fmt.Sprint("parameter ", m.slot)
	if m.bits != nil {
		key = fmt.Sprint("constant ", *m.bits)
	}
	r, ok := root.vecs[key]
	if !ok {
		r = g.vec()
		root.vecs[key] = r
		g.within(root, func() {
			if m.bits != nil {
				g.constant(*m.bits, r)
			} else {
				g.broadcast(g.word(m), r)
			}
		})
	}
	return r
}

// word returns the operand of a value that is one element in memory.
func (g *gen) word(m *memory) operand.Mem {
	switch {
	case m.bits != nil:
		return g.data.words([]uint32{*m.bits})
	case m.at != nil:
		return g.address(*m.at)
	}
	return operand.Mem{Base: g.args(), Disp: argFloats + 4*m.slot}
}

// src returns part p of a word value as a source that may be memory; bcst tells that it is one element for all lanes, which
// only EVEX encodings take.
func (g *gen) src(v *ir.Value, p int) (op operand.Op, bcst bool) {
	m := g.val(v).mem
	if m != nil && !m.lanewise {
		if r := g.resident(m); r != nil {
			return r, false
		}
	}
	switch {
	case m == nil:
	case m.lanewise:
		return g.address(*m.at).Offset(p * g.width), false
	case g.arch.evex:
		return g.word(m), true
	case m.bits != nil:
		return g.splat(*m.bits), false
	}
	return g.in(v, p), false
}

// inMemory reports whether src would give a memory operand.
func (g *gen) inMemory(v *ir.Value) bool {
	m := g.val(v).mem
	if m != nil && !m.lanewise && g.resident(m) != nil {
		return false
	}
	return m != nil && (m.lanewise || g.arch.evex || m.bits != nil)
}

// move copies a vector register; allocation merges the two where it can.
func (g *gen) move(from, to reg.Register) { g.put(g.arch.mov(from, to)) }

// countUses counts how often each value is used.
func countUses(k *ir.Kernel) []int {
	uses := make([]int, k.Values())
	count := func(v *ir.Value) {
		if v != nil {
			uses[v.ID]++
		}
	}
	ir.Walk(k.Body, func(s ir.Stmt) {
		switch s := s.(type) {
		case *ir.Instr:
			for _, a := range s.Args {
				count(a)
			}
		case *ir.For:
			count(s.Lo)
			count(s.Hi)
		case *ir.If:
			count(s.Cond)
		}
	})
	return uses
}

// findFolds marks the loads that can stand as a memory operand in their only use: an instruction of the same block that
// takes one, with no store to the same memory in between.
func (g *gen) findFolds(body []ir.Stmt) {
	type pending struct {
		mem  any
		cast *ir.Value // the load whose cast this is
	}
	loads := map[*ir.Value]pending{}
	for _, s := range body {
		switch s := s.(type) {
		case *ir.Instr:
			if s.Op == ir.OpLoad && s.Args[1] == nil && s.Mem.Type.Bytes() == 4 {
				for _, r := range s.Results {
					loads[r] = pending{mem: memoryKey(s.Mem)}
				}
				continue
			}
			if s.Op == ir.OpCast {
				if l, ok := loads[s.Args[0]]; ok && g.uses[s.Args[0].ID] == 1 {
					loads[s.Results[0]] = pending{l.mem, s.Args[0]}
				}
				continue
			}
			row := &g.arch.rows[s.Op]
			for _, n := range row.mem {
				a := s.Args[n]
				l, ok := loads[a]
				// One element for several parts is loaded once, into a register.
				once := g.parts == 1 || s.Results[0].Span != ir.Varying
				if ok && g.uses[a.ID] == 1 && (a.Span == ir.Varying || g.arch.evex && row.broadcasts && once || s.Op == ir.OpToIndex) {
					g.folds[a.ID] = true
					if l.cast != nil {
						g.folds[l.cast.ID] = true
					}
					break
				}
			}
			if s.Op == ir.OpStore {
				for v, l := range loads {
					if l.mem == memoryKey(s.Mem) {
						delete(loads, v)
					}
				}
			}
		case *ir.For:
			g.findFolds(s.Body)
			clear(loads)
		case *ir.If:
			g.findFolds(s.Then)
			g.findFolds(s.Else)
			clear(loads)
		}
	}
}

func memoryKey(m ir.Memory) any {
	if m.Param != nil {
		return m.Param
	}
	return m.Array
}
