package main

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/zeebo/blake3"

	"github.com/swizzle-rt/swizzle/generated"
	"github.com/swizzle-rt/swizzle/generated/avx"
	"github.com/swizzle-rt/swizzle/generated/portable"
	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/dispatch"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// kernels returns every kernel of this build.
func kernels() []kernel.Kernel {
	return slices.Concat(portable.Kernels(), avx.Kernels())
}

type kernelsCmd struct {
	List  kernelsListCmd  `cmd:"" help:"List the kernels of this build."`
	Show  kernelsShowCmd  `cmd:"" help:"Show a kernel's text."`
	Check kernelsCheckCmd `cmd:"" help:"Check that every instruction set of this CPU computes the same bits."`

	Explain kernelsExplainCmd `cmd:"" help:"Show which kernels run for an op and shape, and why."`
	Bench   kernelsBenchCmd   `cmd:"" help:"Time the kernels of ops."`
}

// Help gives the examples of --help.
func (*kernelsCmd) Help() string {
	return `Examples:

    swizzle kernels list --arch avx2
    swizzle kernels show rmsnorm
    swizzle kernels check
    swizzle kernels explain gemm_q8_0 --m 12 --n 1024 --k 3072
    swizzle kernels bench gemm_q8_0`
}

// kernelFilter chooses kernels.
type kernelFilter struct {
	Arch   string `placeholder:"ARCH" help:"Only this architecture: portable, avx2, avxvnni or avx512vnni."`
	Config string `placeholder:"CONFIG" help:"Only this config."`
}

func (f *kernelFilter) match(n kernel.Name) bool {
	return (f.Arch == "" || f.Arch == n.Arch) && (f.Config == "" || f.Config == n.Config)
}

// chosenISA returns the instruction set of SWIZZLE_ISA, or the best of this CPU.
func chosenISA() (cpu.ISA, error) {
	isa, err := cpu.Choose(cpu.Detect(), os.Getenv("SWIZZLE_ISA"))
	if err != nil {
		return "", fmt.Errorf("SWIZZLE_ISA: %w", err)
	}
	return isa, nil
}

// chosenKernels returns the names of the kernels that run on this CPU.
func chosenKernels() (map[kernel.Name]bool, error) {
	isa, err := chosenISA()
	if err != nil {
		return nil, err
	}
	chosen := map[kernel.Name]bool{}
	for _, k := range dispatch.New(kernels(), isa).All() {
		chosen[k.Name] = true
	}
	return chosen, nil
}

type kernelsListCmd struct {
	kernelFilter
	JSON bool `name:"json" help:"Print JSON."`
}

// listedKernel is an element of what kernels list --json prints.
type listedKernel struct {
	Name    string `json:"name"`
	Op      string `json:"op"`
	Config  string `json:"config"`
	Arch    string `json:"arch"`
	Source  string `json:"source"`
	Pack    string `json:"pack,omitempty"`
	Scratch int    `json:"scratch_bytes"`
	BLAKE3  string `json:"blake3"` // of the generated file
	Chosen  bool   `json:"chosen"` // runs on this CPU
}

// Run lists the kernels.
func (c *kernelsListCmd) Run() error {
	chosen, err := chosenKernels()
	if err != nil {
		return err
	}
	manifest, err := kernel.ReadManifest(generated.Files)
	if err != nil {
		return err
	}
	sums := map[string]string{}
	for _, e := range manifest.Kernels {
		sums[e.Name] = e.BLAKE3
	}
	list := []listedKernel{}
	for _, k := range sorted(kernels()) {
		if c.match(k.Name) {
			name := k.Name.String()
			list = append(list, listedKernel{name, k.Name.Op, k.Name.Config, k.Name.Arch, k.Source, k.Pack, k.Shared, sums[name], chosen[k.Name]})
		}
	}
	if c.JSON {
		return printJSON(list)
	}
	rows := [][]string{{"OP", "CONFIG", "ARCH", "WEIGHTS FROM", "SCRATCH", "CHOSEN HERE"}}
	for _, k := range list {
		mark := ""
		if k.Chosen {
			mark = "yes"
		}
		rows = append(rows, []string{k.Op, k.Config, k.Arch, k.Pack, formatBytes(uint64(k.Scratch)), mark})
	}
	return printTable(rows)
}

// sorted sorts kernels by op, architecture and config.
func sorted(list []kernel.Kernel) []kernel.Kernel {
	slices.SortFunc(list, func(a, b kernel.Kernel) int {
		return cmp.Or(cmp.Compare(a.Name.Op, b.Name.Op), cmp.Compare(a.Name.Arch, b.Name.Arch), cmp.Compare(a.Name.Config, b.Name.Config))
	})
	return list
}

type kernelsShowCmd struct {
	Op string `arg:"" help:"Op, such as rmsnorm, or a kernel's whole name."`
	kernelFilter
	JSON bool `name:"json" help:"Print JSON."`
}

// Help gives the examples of --help.
func (*kernelsShowCmd) Help() string {
	return `Examples:

    swizzle kernels show rmsnorm
    swizzle kernels show gemm_q8_0 --arch avx2

Without --arch or --config it shows the kernels that run on this CPU. The text is in the kernel language; below it stand the configs that were tried and rejected, and why.`
}

// shownKernel is what kernels show --json prints.
type shownKernel struct {
	Kernels  []kernelText       `json:"kernels"`
	Rejected []kernel.Rejection `json:"rejected"`
}

type kernelText struct {
	Name   string `json:"name"`
	Source string `json:"source"`
	IR     string `json:"ir"`
}

// Run prints the kernels' texts.
func (c *kernelsShowCmd) Run() error {
	chosen, err := chosenKernels()
	if err != nil {
		return err
	}
	out := shownKernel{Rejected: []kernel.Rejection{}}
	known := map[string]bool{}
	op := c.Op
	for _, k := range sorted(kernels()) {
		known[k.Name.Op] = true
		whole := k.Name.String() == c.Op
		if whole {
			op = k.Name.Op
		}
		byDefault := c.kernelFilter == kernelFilter{} && chosen[k.Name]
		if !whole && (k.Name.Op != c.Op || !byDefault && (c.kernelFilter == kernelFilter{} || !c.match(k.Name))) {
			continue
		}
		text, err := k.IR(generated.Files)
		if err != nil {
			return err
		}
		out.Kernels = append(out.Kernels, kernelText{k.Name.String(), k.Source, text})
	}
	if len(out.Kernels) == 0 {
		if !known[c.Op] {
			return unknownOp(c.Op)
		}
		return fmt.Errorf("op %s has no kernel of arch %q and config %q; swizzle kernels list shows all", c.Op, c.Arch, c.Config)
	}
	report, err := kernel.ReadReport(generated.Files)
	if err != nil {
		return err
	}
	for _, r := range report.Rejected {
		if r.Op == op && c.match(kernel.Name{Op: r.Op, Config: r.Config, Arch: r.Arch}) {
			out.Rejected = append(out.Rejected, r)
		}
	}
	if c.JSON {
		return printJSON(out)
	}
	var b strings.Builder
	for i, k := range out.Kernels {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "// %s, from ir/ops/%s\n%s", k.Name, k.Source, k.IR)
	}
	for _, r := range out.Rejected {
		fmt.Fprintf(&b, "\nrejected: %s\n  %s %s\n", kernel.Name{Op: r.Op, Config: r.Config, Arch: r.Arch}, r.Line, r.Message)
	}
	_, err = fmt.Print(b.String())
	return err
}

// unknownOp is the error of an op that no kernel of this build has.
func unknownOp(op string) error {
	var ops []string
	for _, k := range kernels() {
		ops = append(ops, k.Name.Op)
	}
	slices.Sort(ops)
	return fmt.Errorf("no op %q; there are %s", op, strings.Join(slices.Compact(ops), ", "))
}

// checkRecords compares the kernels of this build with the manifest, and the manifest with its own hash. Of each op one
// kernel must have its text.
func checkRecords() (*kernel.Manifest, error) {
	m, err := kernel.ReadManifest(generated.Files)
	if err != nil {
		return nil, err
	}
	set := blake3.New()
	listed, linked, shown := map[string]bool{}, map[string]bool{}, map[string]bool{}
	for _, e := range m.Kernels {
		fmt.Fprintf(set, "%s %s\n", e.Name, e.BLAKE3)
		listed[e.Name] = true
	}
	if sum := hex.EncodeToString(set.Sum(nil)); sum != m.Set {
		return nil, fmt.Errorf("manifest: its entries have the BLAKE3 %s, but it says %s", sum, m.Set)
	}
	var errs []error
	for _, k := range kernels() {
		name := k.Name.String()
		linked[k.Name.Arch] = true
		if !listed[name] {
			errs = append(errs, fmt.Errorf("kernel %s is not in the manifest", name))
		}
		delete(listed, name)
		if shown[k.Name.Op] {
			continue
		}
		shown[k.Name.Op] = true
		if _, err := k.IR(generated.Files); err != nil {
			errs = append(errs, err)
		}
	}
	for name := range listed { // another GOARCH's are not in this build
		if n, err := kernel.ParseName(name); err != nil || linked[n.Arch] {
			errs = append(errs, fmt.Errorf("kernel %s of the manifest is not in this build", name))
		}
	}
	return m, errors.Join(errs...)
}
