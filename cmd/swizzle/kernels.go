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

// kernels returns every kernel of this build that is for CPUs.
func kernels() []kernel.Kernel {
	return slices.Concat(portable.Kernels(), avx.Kernels())
}

// catalog is all that this build knows of kernels.
type catalog struct {
	kernels []kernel.Kernel         // for CPUs and GPUs, by op, architecture and config
	entries map[string]kernel.Entry // by name
	targets map[string]string       // by architecture
}

func newCatalog() (*catalog, error) {
	m, err := kernel.ReadManifest(generated.Files)
	if err != nil {
		return nil, err
	}
	gpu, err := m.GPU()
	if err != nil {
		return nil, err
	}
	c := &catalog{sorted(slices.Concat(kernels(), gpu)), map[string]kernel.Entry{}, map[string]string{}}
	for _, e := range m.Kernels {
		names, err := e.Names()
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			c.entries[n.String()] = e
			c.targets[n.Arch] = e.Target()
		}
	}
	return c, nil
}

type kernelsCmd struct {
	List   kernelsListCmd   `cmd:"" help:"List the kernels of this build."`
	Show   kernelsShowCmd   `cmd:"" help:"Show a kernel's text."`
	Report kernelsReportCmd `cmd:"" help:"Show what tiles in a GPU's shared memory cost."`
	Check  kernelsCheckCmd  `cmd:"" help:"Check that every instruction set of this CPU computes the same bits."`

	Explain kernelsExplainCmd `cmd:"" help:"Show which kernels run for an op and shape, and why."`
	Bench   kernelsBenchCmd   `cmd:"" help:"Time the kernels of ops."`
}

// Help gives the examples of --help.
func (*kernelsCmd) Help() string {
	return `Examples:

    swizzle kernels list --arch avx2
    swizzle kernels show gemm_q8_0 --target ptx --arch sm_86 --config m64n64
    swizzle kernels show rmsnorm
    swizzle kernels report
    swizzle kernels check
    swizzle kernels explain gemm_q8_0 --m 12 --n 1024 --k 3072
    swizzle kernels bench gemm_q8_0`
}

// kernelFilter chooses kernels.
type kernelFilter struct {
	Target string `placeholder:"TARGET" help:"Only this target: portable, avx, ptx, spirv or msl."`
	Arch   string `placeholder:"ARCH" help:"Only this architecture, such as avx2, sm_86, vk or metal3."`
	Config string `placeholder:"CONFIG" help:"Only this config."`
}

func (f *kernelFilter) match(n kernel.Name, target string) bool {
	return (f.Target == "" || f.Target == target) && (f.Arch == "" || f.Arch == n.Arch) && (f.Config == "" || f.Config == n.Config)
}

// String returns the flags as they are typed.
func (f kernelFilter) String() string {
	var flags []string
	for _, v := range [][2]string{{"--target", f.Target}, {"--arch", f.Arch}, {"--config", f.Config}} {
		if v[1] != "" {
			flags = append(flags, v[0]+" "+v[1])
		}
	}
	return strings.Join(flags, " ")
}

// alternatives says what a filter that none of the kernels matches may have in place of its first flag that leaves none.
func (f kernelFilter) alternatives(names []kernel.Name, targets map[string]string) string {
	flags := []struct {
		name, wanted string
		of           func(kernel.Name) string
	}{
		{"--target", f.Target, func(n kernel.Name) string { return targets[n.Arch] }},
		{"--arch", f.Arch, func(n kernel.Name) string { return n.Arch }},
		{"--config", f.Config, func(n kernel.Name) string { return n.Config }},
	}
	missed, before := flags[1], ""
	for _, flag := range flags {
		if flag.wanted == "" {
			continue
		}
		rest := slices.DeleteFunc(slices.Clone(names), func(n kernel.Name) bool { return flag.of(n) != flag.wanted })
		if len(rest) == 0 {
			missed = flag
			break
		}
		names = rest
		before += " " + flag.name + " " + flag.wanted
	}
	var choices []string
	for _, n := range names {
		choices = append(choices, missed.of(n))
	}
	slices.Sort(choices)
	return fmt.Sprintf("there are%s %s %s", before, missed.name, strings.Join(slices.Compact(choices), ", "))
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
	Op string `arg:"" optional:"" help:"Op, such as rmsnorm. Default: all."`
	kernelFilter
	JSON bool `name:"json" help:"Print JSON."`
}

// Help gives the examples of --help.
func (*kernelsListCmd) Help() string {
	return `Examples:

    swizzle kernels list
    swizzle kernels list rmsnorm
    swizzle kernels list --target ptx --arch sm_86
    swizzle kernels list --config m64n64 --json`
}

// listedKernel is an element of what kernels list --json prints.
type listedKernel struct {
	Name    string `json:"name"`
	Op      string `json:"op"`
	Config  string `json:"config"`
	Arch    string `json:"arch"`
	Target  string `json:"target"`
	Source  string `json:"source"`
	Pack    string `json:"pack,omitempty"`
	Scratch int    `json:"scratch_bytes"`     // on a GPU, of shared memory
	Threads int    `json:"threads,omitempty"` // of a GPU's block
	Tiles   int    `json:"tiles,omitempty"`   // that it computes
	File    string `json:"file"`              // below generated/
	BLAKE3  string `json:"blake3"`            // of the file
	Chosen  bool   `json:"chosen"`            // runs on this CPU
}

// Run lists the kernels.
func (c *kernelsListCmd) Run() error {
	chosen, err := chosenKernels()
	if err != nil {
		return err
	}
	all, err := newCatalog()
	if err != nil {
		return err
	}
	list := []listedKernel{}
	for _, k := range all.kernels {
		e := all.entries[k.Name.String()]
		if (c.Op == "" || c.Op == k.Name.Op) && c.match(k.Name, e.Target()) {
			list = append(list, listedKernel{k.Name.String(), k.Name.Op, k.Name.Config, k.Name.Arch, e.Target(), k.Source, k.Pack, k.Shared,
				e.Threads, e.Tiles, e.File, e.BLAKE3, chosen[k.Name]})
		}
	}
	if len(list) == 0 {
		var names []kernel.Name
		for _, k := range all.kernels {
			if c.Op == "" || c.Op == k.Name.Op {
				names = append(names, k.Name)
			}
		}
		if len(names) == 0 {
			return unknownOp(c.Op)
		}
		return fmt.Errorf("no kernel with %s; %s", c.kernelFilter, c.alternatives(names, all.targets))
	}
	if c.JSON {
		return printJSON(list)
	}
	rows := [][]string{{"OP", "CONFIG", "ARCH", "WEIGHTS FROM", "SCRATCH", "BLOCK", "CHOSEN HERE"}}
	for _, k := range list {
		block, mark := "", ""
		if k.Threads > 0 {
			block = fmt.Sprintf("%d lanes", k.Threads)
		}
		if k.Chosen {
			mark = "yes"
		}
		rows = append(rows, []string{k.Op, k.Config, k.Arch, k.Pack, formatBytes(uint64(k.Scratch)), block, mark})
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

// unknownOp is the error of an op that no kernel of this build has.
func unknownOp(op string) error {
	var ops []string
	for _, k := range kernels() {
		ops = append(ops, k.Name.Op)
	}
	slices.Sort(ops)
	ops = slices.Compact(ops)
	var similar []string
	for _, o := range ops {
		if op != "" && strings.HasPrefix(o, op) || edits(op, o) <= min(2, len(op)/3) {
			similar = append(similar, o)
		}
	}
	if len(similar) > 0 {
		return fmt.Errorf("no op %q, did you mean %s?", op, strings.Join(similar, ", "))
	}
	return fmt.Errorf("no op %q; there are %s", op, strings.Join(ops, ", "))
}

// edits returns how many bytes must be inserted, deleted or changed to make b of a (Levenshtein's distance).
func edits(a, b string) int {
	row := make([]int, len(b)+1) // distances from what has been read of a to the prefixes of b
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := diagonal
			if a[i] != b[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}

// checkRecords compares the kernels of this build with the manifest, and the manifest with its own hash. Those of GPUs must
// have the hashes that it says. Of each op one kernel must have its text.
func checkRecords() (*kernel.Manifest, error) {
	m, err := kernel.ReadManifest(generated.Files)
	if err != nil {
		return nil, err
	}
	set := blake3.New()
	listed, linked, shown := map[string]bool{}, map[string]bool{}, map[string]bool{}
	var errs []error
	for _, e := range m.Kernels {
		fmt.Fprintf(set, "%s %s\n", e.Name, e.BLAKE3)
		listed[e.Name] = true
		if e.Threads > 0 {
			errs = append(errs, checkModule(e))
		}
	}
	if sum := hex.EncodeToString(set.Sum(nil)); sum != m.Set {
		return nil, fmt.Errorf("manifest: its entries have the BLAKE3 %s, but it says %s", sum, m.Set)
	}
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

// checkModule compares a GPU's kernel with its hash.
func checkModule(e kernel.Entry) error {
	text, err := e.Text(generated.Files)
	if err != nil {
		return err
	}
	if sum := blake3.Sum256([]byte(text)); hex.EncodeToString(sum[:]) != e.BLAKE3 {
		return fmt.Errorf("kernel %s: %s has the BLAKE3 %x, the manifest says %s", e.Name, e.File, sum, e.BLAKE3)
	}
	return nil
}
