package avx

import (
	"bytes"
	"fmt"
	"go/format"
	"regexp"
	"strings"

	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/gotypes"
	avo "github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/pass"
	"github.com/mmcloughlin/avo/printer"
	"github.com/mmcloughlin/avo/reg"

	"github.com/swizzle-rt/swizzle/ir"
)

// Options say how a kernel is printed.
type Options struct {
	Arch    string // one of Arches
	Symbol  string // name of the Go function
	Package string // of the stub
	Header  string // first lines of both files, as comments
	Doc     string // comment of the Go declaration; empty for one that names the kernel
}

// Output is a printed kernel.
type Output struct {
	Asm          []byte // Go assembly
	Stub         []byte // the Go file that declares the function
	Instructions int
	Vectors      int // vector registers that it uses
	VectorSpills int // vector values kept in the frame, none of them an element of a register tile
	Spills       int // general registers kept in the frame
	Frame        int // bytes
}

const (
	signature = "func(a *kernel.Args, lo int, hi int)"
	kernelPkg = "github.com/swizzle-rt/swizzle/runtime/kernel"
)

// Emit prints a lowered kernel: no loop is left to unroll and register tiles have constant indices. The function is
// func(a *kernel.Args, lo, hi int) and runs the tiles lo … hi−1 of the flattened grid.
//
// It refuses, with an [*ir.Error] that names the statement: lane counts other than 8, 16 and 32; more than one lane group;
// intrinsics without a row in the capability table; more instructions or registers than there are.
func Emit(k *ir.Kernel, o Options) (*Output, error) {
	f, err := compileBest(k, o.Arch, o.Symbol)
	if err != nil {
		return nil, err
	}
	out := &Output{Instructions: f.instructions, Vectors: f.vectors, VectorSpills: f.vectorSpills, Spills: f.spills, Frame: f.fn.LocalSize}
	if out.Asm, err = f.assembly(o.Header); err != nil {
		return nil, fmt.Errorf("kernel %s: %w", k.Name, err)
	}
	if out.Stub, err = stub(k, o); err != nil {
		return nil, fmt.Errorf("kernel %s: %w", k.Name, err)
	}
	return out, nil
}

// Function returns what Emit would print as avo has it, for simulation: registers are allocated, data holds the constants.
func Function(k *ir.Kernel, arch, symbol string) (fn *avo.Function, data *avo.Global, err error) {
	f, err := compileBest(k, arch, symbol)
	if err != nil {
		return nil, nil, err
	}
	return f.fn, f.data.g, nil
}

// plan is a way to print a kernel.
type plan struct {
	hoist  hoisting
	sliced bool // lanes that don't fit a register follow each other in slices
	spill  bool // vectors may spill
}

// compileBest follows the first plan that has enough registers: constants in registers, all lanes at once, nothing spilled,
// as far as possible.
func compileBest(k *ir.Kernel, name, symbol string) (*compiled, error) {
	a := findArch(name)
	if a == nil {
		return nil, fmt.Errorf("kernel %s: no architecture %q; there are %s", k.Name, name, strings.Join(Arches(), ", "))
	}
	canSlice := sliceable(k) && 32*k.Lanes > a.bits
	var plans []plan
	for _, sliced := range []bool{false, true} {
		if !sliced || canSlice {
			plans = append(plans, plan{hoist: hoistLoops, sliced: sliced}, plan{hoist: hoistNeeded, sliced: sliced}, plan{sliced: sliced})
		}
	}
	plans = append(plans, plan{sliced: canSlice, spill: true})
	var err error
	for _, p := range plans {
		var f *compiled
		if f, err = compile(k, a, symbol, p); err != nil {
			continue
		}
		if a.vnni && !a.evex {
			if err := encodeVEX(f.fn); err != nil {
				return nil, fmt.Errorf("kernel %s: %w", k.Name, err)
			}
		}
		return f, nil
	}
	return nil, err
}

// compiled is a function with allocated registers.
type compiled struct {
	fn      *avo.Function
	data    *data
	vectors int

	instructions         int
	spills, vectorSpills int
}

func compile(k *ir.Kernel, a *arch, symbol string, p plan) (f *compiled, err error) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*ir.Error)
			if !ok {
				panic(r)
			}
			f, err = nil, e
		}
	}()
	g := newGen(k, a, p)
	entry := g.out
	g.function()
	fn := avo.NewFunction(symbol)
	fn.Attributes = attr.NOSPLIT
	fn.LocalSize = (g.stack + 7) &^ 7
	depth := map[*avo.Instruction]int{}
	entry.flatten(fn, depth)
	f = &compiled{fn: fn, data: g.data}
	al := &allocator{fn: fn, regs: g.regs, vecRegs: a.vecRegs, depth: depth, width: g.width, last: p.spill, again: g.again, pinned: map[reg.ID]bool{}}
	for _, e := range g.elems {
		for _, r := range e {
			al.pinned[r.ID()] = true
		}
	}
	if err := al.run(); err != nil {
		g.at = g.origin[al.worst]
		g.fail("%v", err)
	}
	f.instructions = len(fn.Instructions())
	f.vectors, f.spills, f.vectorSpills = al.usedVectors, al.spills, al.vectorSpills
	return f, nil
}

func newGen(k *ir.Kernel, a *arch, p plan) *gen {
	g := &gen{k: k, arch: a, regs: reg.NewCollection(), out: &code{}, bases: map[any]*atom{}, vals: make([]val, k.Values()),
		uses: countUses(k), folds: make([]bool, k.Values()), elems: map[*ir.Reg][]reg.VecVirtual{},
		temps: map[*ir.Value]reg.VecVirtual{}, data: newData(), hoist: p.hoist, again: map[*avo.Instruction]bool{}, origin: map[*avo.Instruction]ir.Stmt{}}
	if k.Lanes != 8 && k.Lanes != 16 && k.Lanes != 32 {
		g.fail("%d lanes; 8, 16 and 32 are possible", k.Lanes)
	}
	if k.Groups != 1 {
		g.fail("%d lane groups; a CPU has one", k.Groups)
	}
	g.width = min(a.bits/8, 4*k.Lanes)
	g.per = g.width / 4
	g.lanes = k.Lanes
	if p.sliced {
		g.lanes = g.per
	}
	g.parts = g.lanes / g.per
	ir.Walk(k.Body, func(s ir.Stmt) {
		if i, ok := s.(*ir.Instr); ok && a.rows[i.Op].print == nil {
			g.at = s
			g.fail("%s has no instruction here", i.Op)
		}
	})
	g.at = nil
	g.findFolds(k.Body)
	return g
}

// columns matches the spaces that align operands.
var columns = regexp.MustCompile(`(?m)^(\t\S+) +`)

// assembly prints the function and its data.
func (f *compiled) assembly(header string) ([]byte, error) {
	sig, err := gotypes.ParseSignature("func(a uintptr, lo int, hi int)")
	if err != nil {
		return nil, err
	}
	f.fn.SetSignature(sig)
	file := avo.NewFile()
	file.Includes = []string{"textflag.h"}
	file.AddSection(f.fn)
	if len(f.data.g.Data) > 0 {
		file.AddSection(f.data.g)
	}
	if err := pass.RequiredISAExtensions(f.fn); err != nil {
		return nil, err
	}
	text, err := printer.NewGoAsm(printer.Config{Name: "x"}).Print(file)
	if err != nil {
		return nil, err
	}
	_, body, _ := bytes.Cut(text, []byte("\n")) // the generator's own warning
	body = bytes.ReplaceAll(body, []byte("func "+f.fn.Name+sig.String()), []byte("func "+f.fn.Name+strings.TrimPrefix(signature, "func")))
	var out bytes.Buffer
	out.WriteString(comment(header))
	out.WriteString("\n//go:build amd64\n")
	out.Write(columns.ReplaceAll(body, []byte("$1 "))) // which would be an eighth of the text
	return out.Bytes(), nil
}

// stub prints the Go declaration.
func stub(k *ir.Kernel, o Options) ([]byte, error) {
	doc := o.Doc
	if doc == "" {
		doc = fmt.Sprintf("%s runs the tiles lo … hi−1 of the kernel %s on %s.", o.Symbol, k.Name, o.Arch)
	}
	text := fmt.Sprintf("%s\n//go:build amd64\n\npackage %s\n\nimport %q\n\n%s//\n//go:noescape\nfunc %s(a *kernel.Args, lo, hi int)\n",
		comment(o.Header), o.Package, kernelPkg, comment(doc), o.Symbol)
	return format.Source([]byte(text))
}

// comment puts // before each line that doesn't have it.
func comment(text string) string {
	var s strings.Builder
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if !strings.HasPrefix(line, "//") {
			line = strings.TrimRight("// "+line, " ")
		}
		s.WriteString(line + "\n")
	}
	return s.String()
}
