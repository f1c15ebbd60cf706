package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/swizzle-rt/swizzle/generated"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

type kernelsShowCmd struct {
	Op string `arg:"" help:"Op, such as rmsnorm, or a kernel's whole name."`
	kernelFilter
	Layout bool   `help:"Draw the kernels' tiles in shared memory in place of the text."`
	SVG    string `name:"svg" placeholder:"FILE" help:"Write the drawing as an SVG picture."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Help gives the examples of --help.
func (*kernelsShowCmd) Help() string {
	return `Examples:

    swizzle kernels show rmsnorm
    swizzle kernels show gemm_q8_0 --arch avx2
    swizzle kernels show gemm_q8_0 --target ptx --arch sm_86 --config m64n64

Without --target, --arch or --config it shows the kernels that run on this CPU. The text is in the kernel language, then as the target has it if this program holds that; below stand the configs that were tried and rejected, and why.`
}

// shownKernel is what kernels show --json prints.
type shownKernel struct {
	Kernels  []kernelText       `json:"kernels"`
	Tiles    []kernel.Tile      `json:"tiles"` // in shared memory
	Rejected []kernel.Rejection `json:"rejected"`
}

type kernelText struct {
	Name   string `json:"name"`
	Target string `json:"target"`
	Source string `json:"source"`
	IR     string `json:"ir"`
	File   string `json:"file"`            // below generated/
	Text   string `json:"text,omitempty"`  // of the file, if it is text and this program holds it
	Bytes  int    `json:"bytes,omitempty"` // of what the file holds if it is no text
	// Figure is what NVIDIA's assembler makes of a PTX kernel.
	Figure *kernel.Figure `json:"figure,omitempty"`
}

// Run prints the kernels' texts.
func (c *kernelsShowCmd) Run() error {
	out, err := c.find()
	if err != nil {
		return err
	}
	if c.Layout || c.SVG != "" {
		if len(out.Tiles) == 0 {
			return fmt.Errorf("%s stages no tile under a swizzle; swizzle kernels report --layout draws the usual ones", c.Op)
		}
		if c.SVG != "" {
			if err := writeBankSVG(c.SVG, out.Tiles); err != nil {
				return err
			}
		}
	}
	switch {
	case c.JSON:
		return printJSON(out)
	case c.Layout:
		return printBanks(out.Tiles)
	}
	_, err = fmt.Print(out)
	return err
}

// find gathers the kernels, their tiles and the rejected configs.
func (c *kernelsShowCmd) find() (*shownKernel, error) {
	all, err := newCatalog()
	if err != nil {
		return nil, err
	}
	report, err := kernel.ReadReport(generated.Files)
	if err != nil {
		return nil, err
	}
	wanted := c.kernelFilter
	op := c.Op
	match := func(n kernel.Name) bool { return n.Op == op && wanted.match(n, all.targets[n.Arch]) }
	if i := slices.IndexFunc(all.kernels, func(k kernel.Kernel) bool { return k.Name.String() == c.Op }); i >= 0 {
		name := all.kernels[i].Name
		op, wanted.Arch, wanted.Config = name.Op, name.Arch, name.Config
	} else if wanted == (kernelFilter{}) {
		chosen, err := chosenKernels()
		if err != nil {
			return nil, err
		}
		match = func(n kernel.Name) bool { return n.Op == op && chosen[n] }
	}
	out := &shownKernel{Tiles: []kernel.Tile{}, Rejected: []kernel.Rejection{}}
	for _, k := range all.kernels {
		if !match(k.Name) {
			continue
		}
		text, err := newKernelText(&k, all.entries[k.Name.String()])
		if err != nil {
			return nil, err
		}
		for _, a := range report.Kernels {
			if f, ok := a.On[k.Name.Arch]; ok && a.Kernel == k.Name.Entry() {
				text.Figure = &f
			}
		}
		out.Kernels = append(out.Kernels, text)
	}
	for _, r := range report.Rejected {
		if r.Op == op && wanted.match(kernel.Name{Op: r.Op, Config: r.Config, Arch: r.Arch}, all.targets[r.Arch]) {
			out.Rejected = append(out.Rejected, r)
		}
	}
	if len(out.Kernels) == 0 {
		return nil, noKernel(all, op, wanted, out.Rejected)
	}
	for _, t := range report.Tiles {
		if slices.ContainsFunc(out.Kernels, func(k kernelText) bool { return slices.Contains(t.Kernels, k.Name) }) {
			out.Tiles = append(out.Tiles, t)
		}
	}
	return out, nil
}

func newKernelText(k *kernel.Kernel, e kernel.Entry) (kernelText, error) {
	t := kernelText{Name: k.Name.String(), Target: e.Target(), Source: k.Source, File: e.File}
	var err error
	if t.IR, err = k.IR(generated.Files); err != nil {
		return t, err
	}
	if t.Text, err = e.Text(generated.Files); errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	if !utf8.ValidString(t.Text) || strings.ContainsRune(t.Text, 0) {
		t.Text, t.Bytes = "", len(t.Text)
	}
	return t, err
}

// noKernel is the error of an op without a kernel that was asked for: why, or which there are.
func noKernel(all *catalog, op string, wanted kernelFilter, rejected []kernel.Rejection) error {
	var ofOp []kernel.Name
	for _, k := range all.kernels {
		if k.Name.Op == op {
			ofOp = append(ofOp, k.Name)
		}
	}
	if len(ofOp) == 0 {
		return unknownOp(op)
	}
	missed := "that runs on this CPU"
	if wanted != (kernelFilter{}) {
		missed = "with " + wanted.String()
	}
	if len(rejected) > 0 {
		r := rejected[0]
		err := fmt.Errorf("op %s has no kernel %s: the generator rejected config %s for %s: %s", op, missed, r.Config, r.Arch, r.Message)
		if r.Nearest != "" {
			err = fmt.Errorf("%w; the nearest config that there is: %s", err, r.Nearest)
		}
		return err
	}
	return fmt.Errorf("op %s has no kernel %s; %s", op, missed, wanted.alternatives(ofOp, all.targets))
}

// String returns the texts one after the other, with comments between them.
func (s *shownKernel) String() string {
	var b strings.Builder
	for i, k := range s.Kernels {
		if i > 0 {
			b.WriteByte('\n')
		}
		fmt.Fprintf(&b, "// %s, from ir/ops/%s\n", k.Name, k.Source)
		if f := k.Figure; f != nil {
			fmt.Fprintf(&b, "// %d registers a thread, %d instructions, %d blocks a multiprocessor, limited by %s\n", f.Registers, f.Instructions, f.Blocks, f.Limit)
		}
		b.WriteString(k.IR)
		if k.Text != "" {
			fmt.Fprintf(&b, "\n// generated/%s\n%s", k.File, k.Text)
		}
		if k.Bytes > 0 {
			fmt.Fprintf(&b, "\n// generated/%s holds %d bytes that are no text\n", k.File, k.Bytes)
		}
	}
	for _, r := range s.Rejected {
		fmt.Fprintf(&b, "\nrejected: %s\n  %s %s\n", kernel.Name{Op: r.Op, Config: r.Config, Arch: r.Arch}, r.Line, r.Message)
		if r.Nearest != "" {
			fmt.Fprintf(&b, "  the nearest config that there is: %s\n", r.Nearest)
		}
	}
	return b.String()
}
