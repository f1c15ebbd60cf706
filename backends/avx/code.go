package avx

import (
	"fmt"
	"slices"

	"github.com/mmcloughlin/avo/attr"
	avo "github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"

	"github.com/swizzle-rt/swizzle/ir"
)

// code is a list of instructions, labels and nested lists. A nested list keeps its place open: what is appended to it later
// stands there.
type code struct {
	depth int // of loops around it
	items []any
}

func (c *code) nested(deeper int) *code {
	n := &code{depth: c.depth + deeper}
	c.items = append(c.items, n)
	return n
}

// flatten appends the nodes to fn and records the loop depth of each instruction.
func (c *code) flatten(fn *avo.Function, depth map[*avo.Instruction]int) {
	for _, i := range c.items {
		switch i := i.(type) {
		case *avo.Instruction:
			fn.AddInstruction(i)
			depth[i] = c.depth
		case avo.Label:
			fn.AddLabel(i)
		case *code:
			i.flatten(fn, depth)
		}
	}
}

// scope is a region of code that dominates what follows in it: the function, the body of a loop, a branch.
type scope struct {
	parent *scope
	depth  int
	pre    *code // in the parent's code, before this scope's loop or branch
	latch  *code // at the end of a loop's body
	v      *atom // a loop's variable
	lo     poly  // its first value
	step   int64
	polys  []poly                    // those that have a register, in order
	regs   map[string]reg.GPVirtual  // polynomials that have a register, by key
	vecs   map[string]reg.VecVirtual // derived vectors, by key
}

func newScope(parent *scope, pre *code) *scope {
	s := &scope{parent: parent, pre: pre, regs: map[string]reg.GPVirtual{}, vecs: map[string]reg.VecVirtual{}}
	if parent != nil {
		s.depth = parent.depth + 1
	}
	return s
}

func (s *scope) root() *scope {
	for s.parent != nil {
		s = s.parent
	}
	return s
}

// gen prints one kernel.
type gen struct {
	k       *ir.Kernel
	arch    *arch
	lanes   int // lanes that the code at hand computes: L, or a register's where it goes over slices
	width   int // bytes of a vector register in use
	per     int // lanes per register
	parts   int // registers of a varying value
	regs    *reg.Collection
	out     *code
	scope   *scope
	atoms   int
	labels  int
	bases   map[any]*atom // pointers and parameters that are loaded at entry
	vals    []val
	uses    []int
	folds   []bool // loads that are printed as an operand of their only use
	tiles   []*atom
	slice   *atom // number of the slice of lanes; nil where there is one
	elems   map[*ir.Reg][]reg.VecVirtual
	temps   map[*ir.Value]reg.VecVirtual // constants in a register, for the statement at hand
	data    *data
	hoist   hoisting
	stack   int // bytes of the frame that instructions address
	scratch int // bytes of it taken by the statement at hand
	at      ir.Stmt
	steady  bool                      // the load at hand reads memory that nothing writes
	again   map[*avo.Instruction]bool // instructions that give the same wherever they stand: constants and steady loads
	origin  map[*avo.Instruction]ir.Stmt
	n       int // instructions
}

// hoisting says which constants stay in a register for the whole kernel.
type hoisting uint8

const (
	hoistNone   hoisting = iota
	hoistNeeded          // those that instructions want in a register
	hoistLoops           // and operands of instructions in loops
)

// fail ends the printing of the kernel with an error at the statement at hand.
func (g *gen) fail(format string, args ...any) {
	e := &ir.Error{Kernel: g.k.Name, Msg: g.arch.name + ": " + fmt.Sprintf(format, args...)}
	switch s := g.at.(type) {
	case *ir.Instr:
		e.Pos, e.Stmt = s.Pos, ir.Format(g.k, s)
	case *ir.For:
		e.Pos = s.Pos
	case *ir.If:
		e.Pos = s.Pos
	}
	panic(e)
}

// put appends an instruction.
func (g *gen) put(i *avo.Instruction, err error) {
	if err != nil {
		g.fail("no such instruction: %v", err)
	}
	for _, isa := range i.ISA {
		if !slices.Contains(g.arch.isa, isa) {
			g.fail("%s needs %s", i.Opcode, isa)
		}
	}
	g.n++
	if g.n > maxInstructions {
		g.fail("more than %d instructions", maxInstructions)
	}
	g.origin[i] = g.at
	if g.steady || len(i.InputRegisters()) == 0 {
		g.again[i] = true
	}
	g.out.items = append(g.out.items, i)
}

func (g *gen) label(l string) { g.out.items = append(g.out.items, avo.Label(l)) }

func (g *gen) newLabel(prefix string) string {
	g.labels++
	return fmt.Sprintf("%s%d", prefix, g.labels)
}

func (g *gen) gp() reg.GPVirtual { return g.regs.GP64() }

// vec returns a new vector register of the kernel's width.
func (g *gen) vec() reg.VecVirtual {
	if g.width == 64 {
		return g.regs.ZMM()
	}
	return g.regs.YMM()
}

// half returns v's low half.
func (g *gen) half(v reg.VecVirtual) reg.Register {
	if g.width == 64 {
		return v.AsY()
	}
	return v.AsX()
}

// within runs f with its code placed in scope s, an enclosing one: before the loop or branch that leads from s to here.
func (g *gen) within(s *scope, f func()) {
	if s == g.scope {
		f()
		return
	}
	out, inner := g.out, g.scope
	c := g.scope
	for c.parent != s {
		c = c.parent
	}
	g.out, g.scope = c.pre, s
	f()
	g.out, g.scope = out, inner
}

// newAtom makes an atom of the current scope that lives in r.
func (g *gen) newAtom(r reg.GPVirtual) *atom {
	g.atoms++
	return &atom{id: g.atoms, scope: g.scope, reg: r}
}

// frame reserves bytes in the stack frame for the statement at hand.
func (g *gen) frame(bytes int) operand.Mem {
	m := operand.NewStackAddr(g.scratch)
	g.scratch += bytes
	g.stack = max(g.stack, g.scratch)
	return m
}

// data is a kernel's read-only data: constants, tables and lane vectors, each once.
type data struct {
	sym operand.Symbol
	at  map[string]int
	g   *avo.Global
}

func newData() *data {
	g := avo.NewStaticGlobal("data") // a file's own
	g.Attributes = attr.RODATA | attr.NOPTR
	return &data{g.Symbol, map[string]int{}, g}
}

// words returns the place of these words, aligned to their size from the start of the data.
func (d *data) words(w []uint32) operand.Mem {
	key := fmt.Sprint(w)
	at, ok := d.at[key]
	if !ok {
		size := 4 * len(w)
		at = (d.g.Size + size - 1) / size * size
		d.at[key] = at
		if len(w) == 1 {
			d.g.AddDatum(avo.NewDatum(at, operand.U32(w[0])))
		}
		for i := 0; i+1 < len(w); i += 2 {
			d.g.AddDatum(avo.NewDatum(at+4*i, operand.U64(uint64(w[i])|uint64(w[i+1])<<32)))
		}
	}
	return operand.NewDataAddr(d.sym, at)
}
