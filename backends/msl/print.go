package msl

import (
	"fmt"
	"slices"
	"strings"

	"github.com/swizzle-rt/swizzle/ir"
)

// printer writes a kernel. Names: p a buffer, s a shared array and r a register tile, numbered in the kernel's order and followed
// by the letter of a kind where memory is seen as several; a the parameters; t a tile coordinate; l the lane, w the lane group;
// z +0; v a value.
type printer struct {
	*plan
	out *Output
	err error

	text  strings.Builder // of the block being written
	depth int
	names int                  // given out
	named map[*ir.Value]string // atoms
	held  map[*ir.Value]expr   // expressions that wait for their only use
	order []*ir.Value          // of held ones, those taken included
	needs map[string]bool      // helpers, and the names t0 …, l, w, z
	table map[[16]byte]int     // of lookups
	index map[place]int        // of arrays and register tiles
}

func newPrinter(k *ir.Kernel, out *Output) *printer {
	p := &printer{
		plan: newPlan(k), out: out, named: map[*ir.Value]string{}, held: map[*ir.Value]expr{},
		needs: map[string]bool{}, table: map[[16]byte]int{}, index: map[place]int{}, depth: 1,
	}
	for n, a := range k.Shared {
		p.index[a] = n
	}
	for n, r := range k.Regs {
		p.index[r] = n
	}
	return p
}

func (p *printer) fail(i *ir.Instr, format string, args ...any) {
	if p.err == nil {
		p.err = &ir.Error{Kernel: p.k.Name, Pos: i.Pos, Stmt: ir.Format(p.k, i), Msg: fmt.Sprintf(format, args...)}
	}
}

func (p *printer) line(format string, args ...any) {
	for range p.depth {
		p.text.WriteByte('\t')
	}
	fmt.Fprintf(&p.text, format, args...)
	p.text.WriteByte('\n')
}

// file returns the whole text.
func (p *printer) file(o Options) []byte {
	p.body(p.k.Body)
	body := p.text.String()
	p.text.Reset()
	p.depth = 1
	p.prologue()
	prologue := p.text.String()

	var s strings.Builder
	if o.Header != "" {
		fmt.Fprintln(&s, o.Header)
	}
	s.WriteString(preamble)
	s.WriteString("struct Args{\n")
	for _, kind := range []ir.ParamKind{ir.Integer, ir.Float} {
		for _, q := range p.k.Params {
			if q.Kind == kind {
				fmt.Fprintf(&s, "%s; // %s\n", map[ir.ParamKind]string{ir.Integer: "int n", ir.Float: "float f"}[kind]+fmt.Sprint(q.Slot), q.Name)
			}
		}
	}
	s.WriteString("float zero;\n};\n")
	for _, h := range helpers {
		if p.needs[h.name] {
			s.WriteString(h.text)
		}
	}
	tables := make([][16]byte, len(p.table))
	for t, n := range p.table {
		tables[n] = t
	}
	for n, t := range tables {
		fmt.Fprintf(&s, "constant uchar T%d[16]={%s};\n", n, strings.Trim(strings.ReplaceAll(fmt.Sprint(t), " ", ","), "[]"))
	}
	fmt.Fprintf(&s, "[[max_total_threads_per_threadgroup(%d)]] kernel void %s(\n", p.out.Threads, o.Symbol)
	for _, q := range p.k.Params {
		if q.Kind != ir.Buffer {
			continue
		}
		m := ir.Memory{Param: q}
		fmt.Fprintf(&s, "%s p%d[[buffer(%d)]], // %s\n", p.pointer(m, p.base(m)), q.Slot, q.Slot, q.Name)
	}
	fmt.Fprintf(&s, "constant Args&a[[buffer(%d)]],\n", argsIndex)
	if p.out.Shared > 0 {
		s.WriteString("threadgroup uint*S[[threadgroup(0)]],\n")
	}
	s.WriteString("uint3 B[[threadgroup_position_in_grid]],\nuint3 N[[threadgroups_per_grid]]")
	if p.needs["l"] {
		s.WriteString(",\nuint L[[thread_index_in_simdgroup]]")
	}
	if p.needs["w"] || p.out.Tiles > 1 {
		s.WriteString(",\nuint W[[simdgroup_index_in_threadgroup]]")
	}
	s.WriteString("){\n")
	s.WriteString(prologue)
	s.WriteString(body)
	s.WriteString("}\n")
	return []byte(s.String())
}

const preamble = `#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
#include <metal_stdlib>
using namespace metal;
#define F as_type<float>
#define U as_type<uint>
`

// prologue leaves blocks without a tile and declares what the body names.
func (p *printer) prologue() {
	block := "int(B.y*N.x+B.x)"
	if p.out.Tiles > 1 {
		block = fmt.Sprintf("%s*%d+int(W)", block, p.out.Tiles)
	}
	last := len(p.k.Grid) - 1
	if last < 0 {
		p.line("if(%s>0)return;", block)
	} else {
		p.line("int t=%s;", block)
	}
	for d, axis := range p.k.Grid {
		count := fmt.Sprintf("a.n%d", axis.Extent.Slot)
		if axis.Tile > 1 {
			count = fmt.Sprintf("(%s+%d)/%d", count, axis.Tile-1, axis.Tile)
		}
		switch used := p.needs[tileName(d)]; {
		case d == last:
			p.line("if(t>=%s)return;", count)
			if used {
				p.line("int t%d=t;", d)
			}
		case used:
			p.line("int n%d=%s,t%d=t%%n%d;t/=n%d;", d, count, d, d, d)
		default:
			p.line("t/=%s;", count)
		}
	}
	if p.needs["l"] {
		p.line("int l=int(L);")
	}
	if p.needs["w"] {
		p.line("int w=int(W);")
	}
	if p.needs["z"] {
		p.line("float z=a.zero;")
	}
	for _, q := range p.k.Params {
		if q.Kind == ir.Buffer {
			m := ir.Memory{Param: q}
			p.declareViews(m, p.memoryName(m), p.kinds(m))
		}
	}
	for _, a := range p.k.Shared {
		from := "S"
		if a.Offset > 0 {
			from = fmt.Sprintf("(S+%d)", a.Offset/4)
		}
		m := ir.Memory{Array: a}
		if list := p.kinds(m); len(list) > 0 {
			t := p.pointer(m, list[0])
			p.line("%s %s=(%s)%s;", t, p.memoryName(m), t, from)
			p.declareViews(m, p.memoryName(m), list)
		}
	}
	for n, r := range p.k.Regs {
		if p.tiles[r] {
			p.line("%s r%d[%d];", typeName(r.Type), n, r.Len)
		}
	}
}

// declareViews declares the pointers to memory of all kinds but the first, whose name stands for it.
func (p *printer) declareViews(m ir.Memory, name string, kinds []kind) {
	for n, k := range kinds {
		if n > 0 {
			t := p.pointer(m, k)
			p.line("%s %s%s=(%s)%s;", t, name, k.suffix, t, name)
		}
	}
}

// pointer returns the type of a pointer to memory of that kind.
func (p *printer) pointer(m ir.Memory, k kind) string { return space(m) + k.name + "*" }

// space returns the address space of memory, with what qualifies it.
func space(m ir.Memory) string {
	switch {
	case m.Array != nil:
		return "threadgroup "
	case m.Param.Access == ir.In:
		return "device const "
	}
	return "device "
}

func (p *printer) memoryName(m ir.Memory) string {
	if m.Array != nil {
		return fmt.Sprintf("s%d", p.index[m.Array])
	}
	return fmt.Sprintf("p%d", m.Param.Slot)
}

// view returns the name of the pointer to memory of that kind.
func (p *printer) view(m ir.Memory, k kind) string {
	if k == p.base(m) {
		return p.memoryName(m)
	}
	return p.memoryName(m) + k.suffix
}

// ---- statements

func (p *printer) body(body []ir.Stmt) {
	for _, s := range body {
		switch s := s.(type) {
		case *ir.Instr:
			p.instr(s)
		case *ir.For:
			p.loop(s)
		case *ir.If:
			cond := p.value(s.Cond).text
			p.flush(nil)
			p.line("if(%s){", cond)
			p.inner(s.Then)
			if len(s.Else) > 0 {
				p.line("}else{")
				p.inner(s.Else)
			}
			p.line("}")
		}
	}
}

func (p *printer) inner(body []ir.Stmt) {
	p.depth++
	p.body(body)
	p.depth--
}

func (p *printer) loop(f *ir.For) {
	lo, hi := p.value(f.Lo).text, p.value(f.Hi)
	p.flush(nil)
	v := p.newName()
	p.named[f.Var] = v
	step := fmt.Sprintf("%s+=%d", v, f.Step)
	if f.Step == 1 {
		step = v + "++"
	}
	p.line("for(int %s=%s;%s<%s;%s){", v, lo, v, hi.left(additive), step)
	p.inner(f.Body)
	p.line("}")
}

func (p *printer) instr(i *ir.Instr) {
	switch i.Op {
	case ir.OpLoad:
		p.load(i)
		return
	case ir.OpStore:
		p.store(i)
		return
	case ir.OpSet:
		p.set(i)
		return
	case ir.OpBarrier:
		p.flush(nil)
		p.line("threadgroup_barrier(mem_flags::mem_threadgroup);")
		return
	case ir.OpAsyncCopy:
		p.copy16(i)
		return
	case ir.OpPrefetch, ir.OpAsyncCommit, ir.OpAsyncWait:
		return // hints; plain copies have landed
	}
	v := i.Results[0]
	if _, ok := constant(v); ok || leaf(i.Op) {
		return
	}
	p.define(v, p.compute(i))
}

// longest is how many operations an expression may have before it gets a name.
const longest = 12

// define keeps an expression for its only use in this block, or gives it a name.
func (p *printer) define(v *ir.Value, e expr) {
	switch {
	case e.level == atomic && e.size == 0 && len(e.reads) == 0:
		p.named[v] = e.text
	case p.once[v] && e.size <= longest && !crosses(v.Def.Op):
		p.held[v] = e
		p.order = append(p.order, v)
	default:
		p.name(v, e)
	}
}

func (p *printer) newName() string {
	p.names++
	return fmt.Sprintf("v%d", p.names-1)
}

func (p *printer) name(v *ir.Value, e expr) {
	n := p.newName()
	p.line("%s %s=%s;", typeName(v.Type), n, e.text)
	p.named[v] = n
}

// flush names the held expressions that read a place which the next statement writes; nil stands for any place.
func (p *printer) flush(written place) {
	rest := p.order[:0]
	for _, v := range p.order {
		e, ok := p.held[v]
		if !ok {
			continue
		}
		if written == nil && len(e.reads) > 0 || slices.Contains(e.reads, written) {
			delete(p.held, v)
			p.name(v, e)
			continue
		}
		rest = append(rest, v)
	}
	p.order = rest
}

// set assigns an element of a register tile.
func (p *printer) set(i *ir.Instr) {
	to := p.elementOf(i, &operands{p: p, args: i.Args})
	e := p.value(i.Args[1])
	p.flush(i.Reg)
	if e.sum == to {
		p.line("%s+=%s;", to, e.addend)
		return
	}
	p.line("%s=%s;", to, e.text)
}

// elementOf returns an element of a register tile.
func (p *printer) elementOf(i *ir.Instr, o *operands) string {
	if x, ok := constant(i.Args[0]); ok && (x < 0 || x >= int64(i.Reg.Len)) {
		p.fail(i, "element %d of the register tile %s, which has %d", x, i.Reg.Name, i.Reg.Len)
	}
	return fmt.Sprintf("r%d[%s]", p.index[i.Reg], o.arg(0).text)
}

func typeName(t ir.Type) string {
	switch t {
	case ir.F32:
		return "float"
	case ir.Bool:
		return "bool"
	case ir.Index:
		return "int"
	}
	return "uint"
}

func tileName(axis int) string { return fmt.Sprintf("t%d", axis) }
