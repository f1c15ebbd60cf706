package gen

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dave/jennifer/jen"
	"github.com/zeebo/blake3"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/lower"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

const kernelPath = "github.com/swizzle-rt/swizzle/runtime/kernel"

// glue makes the Go files that are no kernels: per backend the list of its kernels, and the embedded records.
func glue(kernels []*Kernel, targets []*Target) ([]File, error) {
	byBackend := map[string][]*Kernel{}
	for _, k := range kernels {
		byBackend[k.Target.Backend] = append(byBackend[k.Target.Backend], k)
	}
	var files []File
	add := func(path string, f *jen.File) error {
		var text bytes.Buffer
		if err := f.Render(&text); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		files = append(files, File{path, text.Bytes()})
		return nil
	}
	done := map[string]bool{}
	for _, t := range targets {
		if done[t.Backend] {
			continue
		}
		done[t.Backend] = true
		for path, f := range registry(t, byBackend[t.Backend]) {
			if err := add(path, f); err != nil {
				return nil, err
			}
		}
	}
	return files, add("generated.go", embedded())
}

func newFile(pkg string) *jen.File {
	f := jen.NewFile(pkg)
	f.HeaderComment(header(""))
	f.ImportName(kernelPath, "kernel")
	return f
}

// registry makes a backend's list of kernels; one for a single GOARCH has none elsewhere.
func registry(t *Target, kernels []*Kernel) map[string]*jen.File {
	doc := fmt.Sprintf("Package %s holds the generated kernels of the backend of that name.", t.Backend)
	list := func() *jen.Statement {
		return jen.Comment("Kernels returns every kernel of the package, in order of architecture and name.").Line().
			Func().Id("Kernels").Params().Index().Qual(kernelPath, "Kernel")
	}
	var values []jen.Code
	for _, k := range kernels {
		values = append(values, descriptor(k))
	}
	all := newFile(t.Backend)
	all.Add(list().Block(jen.Return(jen.Index().Qual(kernelPath, "Kernel").Custom(jen.Options{Open: "{", Close: "}", Separator: ",", Multi: true}, values...))))
	if t.GOARCH == "" {
		all.PackageComment(doc)
		return map[string]*jen.File{t.Backend + "/kernels.go": all}
	}
	for _, k := range kernels { // assembly has its declarations here
		all.Comment("//go:noescape")
		all.Func().Id(k.Name().String()).Params(jen.Id("a").Op("*").Qual(kernelPath, "Args"), jen.List(jen.Id("lo"), jen.Id("hi")).Int())
	}
	none := newFile(t.Backend)
	none.HeaderComment("//go:build !" + t.GOARCH)
	none.Add(list().Block(jen.Return(jen.Nil())))
	about := newFile(t.Backend)
	about.PackageComment(doc)
	return map[string]*jen.File{
		t.Backend + "/doc.go":                      about,
		t.Backend + "/kernels_" + t.GOARCH + ".go": all,
		t.Backend + "/kernels_other.go":            none,
	}
}

// descriptor is the kernel as a composite literal without its type.
func descriptor(k *Kernel) jen.Code {
	n := k.Name()
	d := jen.Dict{
		jen.Id("Name"):   jen.Qual(kernelPath, "Name").Add(values("Op", n.Op, "Config", n.Config, "Arch", n.Arch)),
		jen.Id("Source"): jen.Lit(k.Op.Source),
		jen.Id("Func"):   jen.Id(n.String()),
	}
	if k.Op.Pack != "" {
		d[jen.Id("Pack")] = jen.Lit(k.Op.Pack)
	}
	if l := k.Op.Layout; l != nil {
		d[jen.Id("Layout")] = jen.Qual(kernelPath, "Layout").Add(values("Rows", l.Rows, "Span", l.Span, "Record", l.Record, "Block", l.Block, "BlockBytes", l.BlockBytes))
	}
	if n := k.IR.SharedBytes(); n > 0 {
		d[jen.Id("Shared")] = jen.Lit(n)
	}
	var params, grid []jen.Code
	for _, p := range k.IR.Params {
		var v *jen.Statement
		switch p.Kind {
		case ir.Buffer:
			v = values("Name", p.Name, "Slot", p.Slot, "Type", p.Type.String(), "Access", p.Access.String())
		case ir.Integer:
			v = values("Name", p.Name, "Kind", jen.Qual(kernelPath, "Int"), "Slot", p.Slot)
		case ir.Float:
			v = values("Name", p.Name, "Kind", jen.Qual(kernelPath, "Float"), "Slot", p.Slot)
		}
		params = append(params, jen.Line().Add(v))
	}
	for _, a := range k.IR.Grid {
		grid = append(grid, values("Slot", a.Extent.Slot, "Tile", a.Tile))
	}
	if len(params) > 0 {
		d[jen.Id("Params")] = jen.Index().Qual(kernelPath, "Param").Values(append(params, jen.Line())...)
	}
	if len(grid) > 0 {
		d[jen.Id("Grid")] = jen.Index().Qual(kernelPath, "Axis").Values(grid...)
	}
	return jen.Values(d)
}

// values is a composite literal on one line, of names and values in turn.
func values(fields ...any) *jen.Statement {
	var list []jen.Code
	for n := 0; n < len(fields); n += 2 {
		v, ok := fields[n+1].(*jen.Statement)
		if !ok {
			v = jen.Lit(fields[n+1])
		}
		list = append(list, jen.Id(fields[n].(string)).Op(":").Add(v))
	}
	return jen.Values(list...)
}

// embedded embeds the manifest, the report and the kernels' texts.
func embedded() *jen.File {
	f := newFile("generated")
	f.PackageComment("Package generated embeds the records of the generated kernels: manifest.json, report.json and their text in ir/.")
	f.Anon("embed")
	f.Comment("Files holds the records; package kernel reads them.")
	f.Comment("//")
	f.Comment("//go:embed manifest.json report.json ir/*.ir.gz")
	f.Var().Id("Files").Qual("embed", "FS")
	return f
}

// irFiles makes one file of kernel texts for each source file of ops. Kernels whose texts agree share one. The texts are of
// kernels as built, less what they compute twice or never use, and compressed: plain they would be most of generated/.
func irFiles(kernels []*Kernel) ([]File, error) {
	texts := map[string]map[string][]string{} // source → text → names
	for _, k := range kernels {
		short, err := lower.Run(k.IR, []lower.Pass{{Name: "share", Run: lower.Share}, {Name: "prune", Run: lower.Prune}})
		if err != nil {
			return nil, fmt.Errorf("kernel %s: %w", k.Name(), err)
		}
		short.Name = k.Op.Name + "__" + k.Variant.Config
		if texts[k.Op.Source] == nil {
			texts[k.Op.Source] = map[string][]string{}
		}
		names := texts[k.Op.Source]
		names[short.String()] = append(names[short.String()], k.Name().String())
	}
	var files []File
	for _, source := range slices.Sorted(maps.Keys(texts)) {
		var entries []string
		for text, names := range texts[source] {
			slices.Sort(names)
			entries = append(entries, "// "+strings.Join(names, " ")+"\n"+text)
		}
		slices.Sort(entries)
		text, err := compress(strings.Join(entries, "\n"), header(source))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", kernel.IRFile(source), err)
		}
		files = append(files, File{kernel.IRFile(source), text})
	}
	return files, nil
}

// compress returns the text as gzip with a comment, which stands readable in its first bytes, and without a time.
func compress(text, comment string) ([]byte, error) {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	z.Comment = comment
	if _, err := z.Write([]byte(text)); err != nil {
		return nil, err
	}
	if err := z.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// records makes the manifest and the report.
func records(kernels []*Kernel, rejected []kernel.Rejection) ([]File, error) {
	comment := marker + ". DO NOT EDIT."
	m := kernel.Manifest{Comment: comment, Kernels: []kernel.Entry{}}
	set := blake3.New()
	for _, k := range kernels {
		sum := blake3.Sum256(k.File.Text)
		e := kernel.Entry{Name: k.Name().String(), File: k.File.Path, BLAKE3: hex.EncodeToString(sum[:])}
		m.Kernels = append(m.Kernels, e)
		fmt.Fprintf(set, "%s %s\n", e.Name, e.BLAKE3)
	}
	m.Set = hex.EncodeToString(set.Sum(nil))
	r := kernel.Report{Comment: comment, Rejected: append([]kernel.Rejection{}, rejected...)}
	var files []File
	for path, v := range map[string]any{"manifest.json": m, "report.json": r} {
		text, err := json.MarshalIndent(v, "", " ")
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		files = append(files, File{path, append(text, '\n')})
	}
	return files, nil
}
