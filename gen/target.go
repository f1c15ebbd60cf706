package gen

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"

	"github.com/dave/jennifer/jen"

	"github.com/swizzle-rt/swizzle/backends/avx"
	"github.com/swizzle-rt/swizzle/backends/msl"
	"github.com/swizzle-rt/swizzle/backends/portable"
	"github.com/swizzle-rt/swizzle/backends/ptx"
	"github.com/swizzle-rt/swizzle/backends/spirv"
	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/lower"
	"github.com/swizzle-rt/swizzle/ir/target"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// A Target is one architecture of one backend.
type Target struct {
	Caps    *target.Caps
	Backend string // a directory of generated/; for CPUs, also the Go package of the kernels
	GOARCH  string // that the package's kernels are for; empty for any
	Ext     string // of a kernel's file
	// Total tells that the backend prints every kernel: what it rejects is an error.
	Total bool
	// Differs lists the ops for whose sake the target has kernels beside those of a lesser target that the same machines run.
	// Kernels without any of them are left to that target; nil leaves out none.
	Differs []ir.Op
	// Below is that lesser target of a GPU. Where both print the same, too, its file serves both.
	Below *Target
	// Print prints a kernel that has been verified as built, with a function of that name; header goes into the file's first bytes.
	Print func(k *ir.Kernel, symbol, header string) (*Printed, error)
}

// Printed is a kernel's file and, for a GPU, how to launch it.
type Printed struct {
	Text    []byte
	Threads int // lanes of a block
	Tiles   int // tiles of the grid that a block computes
	Shared  int // bytes of shared memory of a block
}

// Targets returns every target, the portable one first.
func Targets() []*Target {
	list := []*Target{{Caps: portable.Caps(), Backend: "portable", Ext: "go", Total: true, Print: printGo}}
	for _, arch := range avx.Arches() {
		t := avxTarget(arch)
		if arch == "avxvnni" { // avx2 with another dot product
			t.Differs = []ir.Op{ir.OpDot4US, ir.OpDot4SS}
		}
		list = append(list, t)
	}
	var below *Target
	for _, arch := range ptx.Arches() { // each runs what is for an older one
		below = &Target{Caps: ptx.Caps(arch), Backend: "ptx", Ext: "ptx", Below: below, Print: printPTX(arch)}
		list = append(list, below)
	}
	below = nil
	for _, arch := range spirv.Arches() { // each runs what is for a lesser one
		below = &Target{Caps: spirv.Caps(arch), Backend: "spirv", Ext: "spv", Below: below, Print: printSPIRV(arch)}
		if arch == "vkdot" { // what else it has, narrow memory and a fold once a row, is worth no module of its own
			below.Differs = []ir.Op{ir.OpDot4US, ir.OpDot4SS, ir.OpShuffleXor}
		}
		list = append(list, below)
	}
	for _, arch := range msl.Arches() {
		list = append(list, &Target{Caps: msl.Caps(arch), Backend: "msl", Ext: "metal", Print: printMSL(arch)})
	}
	return list
}

// gpu reports whether the target is one of GPUs.
func (t *Target) gpu() bool { return t.Caps.Family == target.GPU }

// symbol is the name of a kernel's function.
func (t *Target) symbol(n kernel.Name) string {
	if t.gpu() {
		return n.Entry()
	}
	return n.String()
}

// Skip reports whether the unit is no kernel of the target, but left to a lesser one.
func (t *Target) Skip(u Unit) (skip bool) {
	if t.gpu() || t.Differs == nil {
		return false
	}
	defer func() {
		if recover() != nil {
			skip = false // making it will say why
		}
	}()
	k, err := u.Op.Kernel(u.Variant, t.Caps)
	return err == nil && !t.differs(k)
}

// differs reports whether the kernel has an op of Differs.
func (t *Target) differs(k *ir.Kernel) (has bool) {
	ir.Walk(k.Body, func(s ir.Stmt) {
		i, ok := s.(*ir.Instr)
		has = has || ok && slices.Contains(t.Differs, i.Op)
	})
	return has
}

func printGo(k *ir.Kernel, symbol, header string) (*Printed, error) {
	code, err := portable.Emit(k, symbol)
	if err != nil {
		return nil, err
	}
	f := jen.NewFile("portable")
	f.HeaderComment(header)
	f.ImportNames(map[string]string{kernelPath: "kernel", kernelPath + "/lane": "lane"})
	f.Add(code)
	var text bytes.Buffer
	if err := f.Render(&text); err != nil {
		return nil, fmt.Errorf("kernel %s: %w", k.Name, err)
	}
	return &Printed{Text: text.Bytes()}, nil
}

func avxTarget(arch string) *Target {
	return &Target{
		Caps: avx.Caps(arch), Backend: "avx", GOARCH: "amd64", Ext: "s",
		Print: func(k *ir.Kernel, symbol, header string) (*Printed, error) {
			k, err := lower.Run(k, lower.CPU)
			if err != nil {
				return nil, err
			}
			out, err := avx.Emit(k, avx.Options{Arch: arch, Symbol: symbol, Package: "avx", Header: header})
			if err != nil {
				return nil, err
			}
			return &Printed{Text: out.Asm}, nil
		},
	}
}

func printPTX(arch string) func(k *ir.Kernel, symbol, header string) (*Printed, error) {
	return func(k *ir.Kernel, symbol, header string) (*Printed, error) {
		out, err := ptx.Emit(k, ptx.Options{Arch: arch, Symbol: symbol, Header: header})
		if err != nil {
			return nil, err
		}
		return &Printed{out.Text, out.Threads, out.Tiles, out.Shared}, nil
	}
}

func printSPIRV(arch string) func(k *ir.Kernel, symbol, header string) (*Printed, error) {
	return func(k *ir.Kernel, symbol, header string) (*Printed, error) {
		out, err := spirv.Emit(k, spirv.Options{Arch: arch, Symbol: symbol, Header: header})
		if err != nil {
			return nil, err
		}
		return &Printed{out.Text, out.Threads, out.Tiles, out.Shared}, nil
	}
}

func printMSL(arch string) func(k *ir.Kernel, symbol, header string) (*Printed, error) {
	return func(k *ir.Kernel, symbol, header string) (*Printed, error) {
		out, err := msl.Emit(k, msl.Options{Arch: arch, Symbol: symbol, Header: "// " + header})
		if err != nil {
			return nil, err
		}
		return &Printed{out.Text, out.Threads, out.Tiles, out.Shared}, nil
	}
}

// heading matches the lines of a PTX module that name an architecture.
var heading = regexp.MustCompile(`(?m)^\.(version|target) .*\n`)

// same reports whether two kernels differ by nothing but the architecture that they name.
func (p *Printed) same(q *Printed) bool {
	return p.Threads == q.Threads && p.Tiles == q.Tiles && p.Shared == q.Shared && bytes.Equal(heading.ReplaceAll(p.Text, nil), heading.ReplaceAll(q.Text, nil))
}
