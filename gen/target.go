package gen

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/dave/jennifer/jen"

	"github.com/swizzle-rt/swizzle/backends/avx"
	"github.com/swizzle-rt/swizzle/backends/portable"
	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/lower"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// A Target is one architecture of one backend.
type Target struct {
	Caps    *target.Caps
	Backend string // Go package of the kernels, a directory of generated/
	GOARCH  string // that the package's kernels are for; empty for any
	Ext     string // of a kernel's file
	// Total tells that the backend prints every kernel: what it rejects is an error.
	Total bool
	// Differs lists the ops whose printed form is not that of a lesser target that the same machines run. Kernels without any
	// of them are left to that target; nil leaves out none.
	Differs []ir.Op
	// Print prints a kernel that has been verified as built, as a function with that name; header is the file's first line.
	Print func(k *ir.Kernel, symbol, header string) ([]byte, error)
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
	return list
}

// Skip reports whether the unit's kernel is left to a lesser target.
func (t *Target) Skip(u Unit) (skip bool) {
	if t.Differs == nil {
		return false
	}
	defer func() {
		if recover() != nil {
			skip = false // making it will say why
		}
	}()
	k, err := u.Op.Kernel(u.Variant, t.Caps)
	if err != nil {
		return false // making it will say why
	}
	differs := false
	ir.Walk(k.Body, func(s ir.Stmt) {
		if i, ok := s.(*ir.Instr); ok {
			differs = differs || slices.Contains(t.Differs, i.Op)
		}
	})
	return !differs
}

func printGo(k *ir.Kernel, symbol, header string) ([]byte, error) {
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
	return text.Bytes(), nil
}

func avxTarget(arch string) *Target {
	return &Target{
		Caps: avx.Caps(arch), Backend: "avx", GOARCH: "amd64", Ext: "s",
		Print: func(k *ir.Kernel, symbol, header string) ([]byte, error) {
			k, err := lower.Run(k, lower.CPU)
			if err != nil {
				return nil, err
			}
			out, err := avx.Emit(k, avx.Options{Arch: arch, Symbol: symbol, Package: "avx", Header: header})
			if err != nil {
				return nil, err
			}
			return out.Asm, nil
		},
	}
}
