package ptx

import (
	"bytes"
	"fmt"
	"math/bits"
	"strings"

	"github.com/swizzle-rt/swizzle/ir"
)

// class is a kind of registers. All words of 32 bits, floats too, are untyped registers of one class.
type class int

const (
	word class = iota
	wide
	pred
	half
	classes
)

var (
	letter   = [classes]string{"%r", "%d", "%p", "%h"}
	declared = [classes]string{".b32", ".b64", ".pred", ".b16"}
)

func classOf(t ir.Type) class {
	switch t {
	case ir.Index:
		return wide
	case ir.Bool:
		return pred
	}
	return word
}

// shared is the name of the block's shared memory.
const shared = "s"

// printer writes a lowered kernel. What is the same for the whole kernel (addresses of buffers, the lane's number) is
// computed at its entry, once something needs it.
type printer struct {
	k     *ir.Kernel
	model model
	tiles int
	*plan

	entry, body bytes.Buffer
	out         *bytes.Buffer // one of the two
	atEntry     map[string]string
	count       [classes]int // registers so far
	labels      int

	reg      map[*ir.Value]string
	elements map[element]string
	loops    map[*ir.Value]*ir.For // by variable
	divisors map[*ir.Value]int     // factors of two, see divisor
	scope    *scope

	at  *ir.Instr
	err error
}

func newPrinter(k *ir.Kernel, m model) *printer {
	p := &printer{k: k, model: m, tiles: 1, plan: newPlan(k.Body), atEntry: map[string]string{}, reg: map[*ir.Value]string{}, elements: map[element]string{},
		loops: map[*ir.Value]*ir.For{}, divisors: map[*ir.Value]int{}}
	if independent(k) {
		p.tiles = warpTiles
	}
	p.out = &p.body
	return p
}

func (p *printer) threads() int { return p.k.Groups * p.k.Lanes * p.tiles }

func (p *printer) fail(format string, args ...any) {
	if p.err != nil {
		return
	}
	e := &ir.Error{Kernel: p.k.Name, Msg: fmt.Sprintf(format, args...)}
	if p.at != nil {
		e.Pos, e.Stmt = p.at.Pos, ir.Format(p.k, p.at)
	}
	p.err = e
}

// scope remembers what was computed on the way in the blocks that are open.
type scope struct {
	known map[any]string
	outer *scope
}

func (p *printer) find(key any) (string, bool) {
	for s := p.scope; s != nil; s = s.outer {
		if r, ok := s.known[key]; ok {
			return r, true
		}
	}
	return "", false
}

// once returns the register that holds what make computes, in an open block if that was done there.
func (p *printer) once(key any, c class, make func(dst string)) string {
	if r, ok := p.find(key); ok {
		return r
	}
	r := p.fresh(c)
	make(r)
	p.scope.known[key] = r
	return r
}

// first is once at the kernel's entry.
func (p *printer) first(key string, c class, make func(dst string)) string {
	if r, ok := p.atEntry[key]; ok {
		return r
	}
	outer := p.out
	p.out = &p.entry
	r := p.fresh(c)
	make(r)
	p.out = outer
	p.atEntry[key] = r
	return r
}

func (p *printer) fresh(c class) string {
	p.count[c]++
	return fmt.Sprint(letter[c], p.count[c])
}

// ins writes an instruction; its guard, if there is one, comes before the op.
func (p *printer) ins(op string, args ...string) {
	p.out.WriteString(op)
	for n, a := range args {
		p.out.WriteByte(" ,"[min(n, 1)])
		p.out.WriteString(a)
	}
	p.out.WriteString(";\n")
}

func (p *printer) label() string {
	p.labels++
	return fmt.Sprint("L", p.labels)
}

func (p *printer) place(label string) { fmt.Fprintf(p.out, "%s:\n", label) }

// kernel writes the entry and the body.
func (p *printer) kernel() {
	p.grid()
	p.block(p.k.Body)
	p.ins("ret")
}

// module returns the PTX of the kernel.
func (p *printer) module(o Options) []byte {
	var b bytes.Buffer
	if o.Header != "" {
		fmt.Fprintf(&b, "// %s\n", o.Header)
	}
	fmt.Fprintf(&b, ".version %s\n.target %s\n.address_size 64\n.visible .entry %s(", p.model.version, o.Arch, o.Symbol)
	for n, q := range p.k.Params {
		if n > 0 {
			b.WriteByte(',')
		}
		fmt.Fprintf(&b, ".param %s %s", []string{".u64", ".s64", ".f32"}[q.Kind], paramName(n))
	}
	b.WriteString(")\n")
	if p.threads() > anyRegisters {
		fmt.Fprintf(&b, ".reqntid %d\n", p.threads())
	}
	b.WriteString("{\n")
	for c, n := range p.count {
		if n > 0 {
			fmt.Fprintf(&b, ".reg %s %s<%d>;\n", declared[c], letter[c], n+1)
		}
	}
	if n := p.k.SharedBytes(); n > 0 {
		fmt.Fprintf(&b, ".shared .align 128 .b8 %s[%d];\n", shared, n)
	}
	b.Write(p.entry.Bytes())
	b.Write(p.body.Bytes())
	b.WriteString("}\n")
	return b.Bytes()
}

// anyRegisters is the number of threads up to which a block has registers enough whatever the kernel needs, 255 a thread.
// Larger blocks tell the assembler their size; it then tends to spill a register or two for the sake of occupancy.
const anyRegisters = registers / (maxRegisters + 1)

func paramName(n int) string { return fmt.Sprint("a", n) }

// ---- control

// block writes statements.
func (p *printer) block(body []ir.Stmt) {
	p.scope = &scope{map[any]string{}, p.scope}
	for _, s := range body {
		switch s := s.(type) {
		case *ir.Instr:
			p.at = s
			p.instr(s)
		case *ir.For:
			p.loop(s)
		case *ir.If:
			p.branch(s)
		}
	}
	p.scope = p.scope.outer
}

func (p *printer) loop(f *ir.For) {
	lo, isLo := constant(f.Lo)
	hi, isHi := constant(f.Hi)
	if isLo && isHi && lo >= hi {
		return
	}
	p.loops[f.Var] = f
	v, bound, more := p.dst(f.Var), p.index(f.Hi), p.fresh(pred)
	p.ins("mov.b64", v, p.index(f.Lo))
	end := ""
	if !isLo || !isHi { // it may not run at all
		end = p.label()
		p.ins("setp.ge.s64", more, v, bound)
		p.ins("@"+more+" bra.uni", end)
	}
	top := p.label()
	p.place(top)
	p.block(f.Body)
	p.ins("add.s64", v, v, fmt.Sprint(f.Step))
	p.ins("setp.lt.s64", more, v, bound)
	p.ins("@"+more+" bra.uni", top)
	if end != "" {
		p.place(end)
	}
}

func (p *printer) branch(s *ir.If) {
	c := p.bool(s.Cond)
	other := p.label()
	if len(s.Then) == 0 {
		p.ins("@"+c+" bra.uni", other)
		p.block(s.Else)
		p.place(other)
		return
	}
	p.ins("@!"+c+" bra.uni", other)
	p.block(s.Then)
	if len(s.Else) > 0 {
		end := p.label()
		p.ins("bra.uni", end)
		p.place(other)
		p.block(s.Else)
		other = end
	}
	p.place(other)
}

// ---- operands

// origin returns the value of which v is another name: casts, and what is the same in all lanes read from another lane.
func origin(v *ir.Value) *ir.Value {
	for v.Def != nil && sameBits(v.Def) {
		v = v.Def.Args[0]
	}
	return v
}

// sameBits reports whether the instruction's result has the bits of its argument.
func sameBits(i *ir.Instr) bool {
	switch i.Op {
	case ir.OpCast:
		return true
	case ir.OpShuffleXor, ir.OpReadLane, ir.OpFoldMaxU:
		return i.Args[0].Span != ir.Varying
	}
	return false
}

func constant(v *ir.Value) (int64, bool) { return origin(v).Const() }

// imm prints an integer constant.
func imm(c int64) string {
	if -4096 < c && c < 4096 {
		return fmt.Sprint(c)
	}
	if c < 0 {
		return fmt.Sprintf("-0x%X", uint64(-c))
	}
	return fmt.Sprintf("0x%X", c)
}

// dst returns the register for a result: a new one, or that of the element that it will be.
func (p *printer) dst(v *ir.Value) string {
	r := ""
	if e, ok := p.target[v]; ok {
		r = p.element(e)
	} else {
		r = p.fresh(classOf(v.Type))
	}
	p.reg[v] = r
	return r
}

// element returns the register of an element of a register tile.
func (p *printer) element(e element) string {
	r, ok := p.elements[e]
	if !ok {
		r = p.fresh(word)
		p.elements[e] = r
	}
	return r
}

// bits returns a word as an operand of any type but float: a register or an integer.
func (p *printer) bits(v *ir.Value) string {
	if c, ok := constant(v); ok {
		if n := int32(c); -4096 < n && n < 4096 {
			return fmt.Sprint(n)
		}
		return fmt.Sprintf("0x%X", uint32(c))
	}
	return p.word(v)
}

// float returns an operand of a float instruction.
func (p *printer) float(v *ir.Value) string {
	if c, ok := constant(v); ok {
		return fmt.Sprintf("0f%08X", uint32(c))
	}
	return p.word(v)
}

// word returns the register of a word.
func (p *printer) word(v *ir.Value) string {
	v = origin(v)
	if c, ok := v.Const(); ok {
		return p.once(uint32(c), word, func(d string) { p.ins("mov.b32", d, fmt.Sprintf("0x%X", uint32(c))) })
	}
	if v.Def != nil && v.Def.Op == ir.OpFloatParam {
		return p.param(ir.Float, v.Def.Imm)
	}
	return p.value(v)
}

// index returns an index as a register or an integer.
func (p *printer) index(v *ir.Value) string {
	if c, ok := v.Const(); ok {
		return imm(c)
	}
	if v.Def == nil {
		return p.value(v)
	}
	switch i := v.Def; i.Op {
	case ir.OpLane:
		return p.first("lane64", wide, func(d string) { p.ins("cvt.u64.u32", d, p.lane()) })
	case ir.OpGroup:
		return p.group()
	case ir.OpTile:
		return p.tile(int(i.Imm))
	case ir.OpIntParam:
		return p.param(ir.Integer, i.Imm)
	case ir.OpFragCoord:
		return p.coordinate(v)
	case ir.OpAddX:
		if x, c := split(v); x != v {
			return p.once(v, wide, func(d string) { p.ins("add.s64", d, p.index(x), imm(c)) })
		}
	}
	return p.value(v)
}

// bool returns the register of a condition.
func (p *printer) bool(v *ir.Value) string {
	if c, ok := v.Const(); ok {
		return p.once(c != 0, pred, func(d string) { p.ins("setp.ne.s32", d, imm(c), "0") })
	}
	return p.value(v)
}

func (p *printer) value(v *ir.Value) string {
	r, ok := p.reg[v]
	if !ok {
		p.fail("value %%%d is not defined", v.ID)
	}
	return r
}

// split returns an index as a sum of a variable part, nil for none, and a constant.
func split(v *ir.Value) (*ir.Value, int64) {
	if c, ok := v.Const(); ok {
		return nil, c
	}
	if v.Def != nil && v.Def.Op == ir.OpAddX {
		if c, ok := v.Def.Args[1].Const(); ok {
			return v.Def.Args[0], c
		}
	}
	return v, 0
}

// ---- what is the same for the whole kernel

// param returns the register of a parameter.
func (p *printer) param(kind ir.ParamKind, slot int64) string {
	for n, q := range p.k.Params {
		if q.Kind != kind || int64(q.Slot) != slot {
			continue
		}
		c, op := wide, "ld.param.b64"
		if kind == ir.Float {
			c, op = word, "ld.param.b32"
		}
		return p.first(paramName(n), c, func(d string) {
			p.ins(op, d, "["+paramName(n)+"]")
			if kind == ir.Buffer {
				p.ins("cvta.to.global.u64", d, d)
			}
		})
	}
	p.fail("no parameter has slot %d", slot)
	return ""
}

func (p *printer) lane() string {
	return p.first("lane", word, func(d string) {
		p.ins("mov.u32", d, "%tid.x")
		p.ins("and.b32", d, d, "31")
	})
}

// warp is the number of the warp in its block. It is read from a lane so that the assembler sees that lanes agree.
func (p *printer) warp() string {
	return p.first("warp", word, func(d string) {
		p.ins("mov.u32", d, "%tid.x")
		p.ins("shr.u32", d, d, "5")
		p.ins("shfl.sync.idx.b32", d, d, "0", "31", "-1")
	})
}

func (p *printer) group() string {
	if p.k.Groups == 1 {
		return p.first("group", wide, func(d string) { p.ins("mov.b64", d, "0") })
	}
	return p.first("group", wide, func(d string) { p.ins("cvt.u64.u32", d, p.warp()) })
}

// leader holds in one lane of each group.
func (p *printer) leader() string {
	return p.first("leader", pred, func(d string) { p.ins("setp.eq.s32", d, p.lane(), "0") })
}

// base is the address of shared memory.
func (p *printer) base() string {
	return p.first("shared", word, func(d string) { p.ins("mov.u32", d, shared) })
}

// flat is the number of the tile in the grid.
func (p *printer) flat() string {
	return p.first("flat", word, func(d string) {
		p.ins("mov.u32", d, "%ctaid.x")
		if p.tiles > 1 {
			w := p.warp()
			p.ins("mad.lo.u32", d, d, fmt.Sprint(p.tiles), w)
		}
	})
}

// grid leaves the kernel where the tile is beyond the last.
func (p *printer) grid() {
	p.first("grid", pred, func(d string) {
		flat := p.flat()
		switch len(p.k.Grid) {
		case 0:
			p.ins("setp.ge.u32", d, flat, "1")
		case 1:
			p.ins("setp.ge.u32", d, flat, p.extent(0))
		default:
			all, t := p.fresh(wide), p.fresh(wide)
			p.ins("mul.wide.u32", all, p.extent(0), p.extent(1))
			for axis := 2; axis < len(p.k.Grid); axis++ {
				p.ins("cvt.u64.u32", t, p.extent(axis))
				p.ins("mul.lo.s64", all, all, t)
			}
			p.ins("cvt.u64.u32", t, flat)
			p.ins("setp.ge.u64", d, t, all)
		}
		p.ins("@" + d + " ret")
	})
}

// extent is the number of tiles along an axis.
func (p *printer) extent(axis int) string {
	return p.first(fmt.Sprint("extent", axis), word, func(d string) {
		a := p.k.Grid[axis]
		n := p.param(ir.Integer, int64(a.Extent.Slot))
		if a.Tile > 1 {
			t := p.fresh(wide)
			p.ins("add.s64", t, n, fmt.Sprint(a.Tile-1))
			if s, ok := shiftOf(int64(a.Tile)); ok {
				p.ins("shr.u64", t, t, fmt.Sprint(s))
			} else {
				p.ins("div.u64", t, t, fmt.Sprint(a.Tile))
			}
			n = t
		}
		p.ins("cvt.u32.u64", d, n)
	})
}

// rest is the number of the tile divided by the extents of the axes before.
func (p *printer) rest(axis int) string {
	if axis == 0 {
		return p.flat()
	}
	return p.first(fmt.Sprint("rest", axis), word, func(d string) { p.ins("div.u32", d, p.rest(axis-1), p.extent(axis-1)) })
}

// tile is the tile's coordinate along an axis.
func (p *printer) tile(axis int) string {
	return p.first(fmt.Sprint("tile", axis), wide, func(d string) {
		at := p.rest(axis)
		if axis < len(p.k.Grid)-1 {
			t := p.fresh(word)
			p.ins("mul.lo.u32", t, p.rest(axis+1), p.extent(axis))
			p.ins("sub.u32", t, at, t)
			at = t
		}
		p.ins("cvt.u64.u32", d, at)
	})
}

// shiftOf returns the logarithm of a power of two.
func shiftOf(c int64) (int, bool) {
	return bits.TrailingZeros64(uint64(c)), c > 0 && c&(c-1) == 0
}

func list(regs []string) string { return "{" + strings.Join(regs, ",") + "}" }
