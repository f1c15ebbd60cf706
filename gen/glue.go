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

// glue makes the Go files that are no kernels: per backend of CPUs the list of its kernels, and what is embedded.
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
	embed := []string{"manifest.json", "report.json", "ir/*.ir.gz"}
	for _, t := range targets {
		if done[t.Backend] {
			continue
		}
		done[t.Backend] = true
		if t.gpu() {
			embed = append(embed, t.Backend+"/*."+t.Ext)
			continue
		}
		for path, f := range registry(t, byBackend[t.Backend]) {
			if err := add(path, f); err != nil {
				return nil, err
			}
		}
	}
	return files, add("generated.go", embedded(embed))
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
	var body, values []jen.Code
	params := map[string]bool{}
	for _, k := range kernels {
		if !params[k.Op.Name] { // the same for all of its kernels
			params[k.Op.Name] = true
			body = append(body, jen.Id(k.Op.Name).Op(":=").Add(paramValues(k.IR)))
		}
		values = append(values, descriptor(k))
	}
	all := newFile(t.Backend)
	all.Add(list().Block(append(body, jen.Return(jen.Index().Qual(kernelPath, "Kernel").Custom(jen.Options{Open: "{", Close: "}", Separator: ",", Multi: true}, values...)))...))
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

// descriptor is the kernel as a composite literal without its type; the parameters are in a variable with the op's name.
func descriptor(k *Kernel) jen.Code {
	n := k.Name()
	fields := []any{
		"Name", jen.Qual(kernelPath, "Name").Add(values("Op", n.Op, "Config", n.Config, "Arch", n.Arch)),
		"Source", k.Op.Source, "Func", jen.Id(n.String()), "Params", jen.Id(n.Op),
	}
	if k.Op.Pack != "" {
		fields = append(fields, "Pack", k.Op.Pack)
	}
	if l := k.Op.Layout; l != nil {
		fields = append(fields, "Layout", jen.Qual(kernelPath, "Layout").Add(values("Rows", l.Rows, "Span", l.Span, "Record", l.Record, "Block", l.Block, "BlockBytes", l.BlockBytes)))
	}
	if n := k.IR.SharedBytes(); n > 0 {
		fields = append(fields, "Shared", n)
	}
	var grid []jen.Code
	for _, a := range axes(k.IR) {
		grid = append(grid, values("Slot", a.Slot, "Tile", a.Tile))
	}
	if len(grid) > 0 {
		fields = append(fields, "Grid", jen.Index().Qual(kernelPath, "Axis").Values(grid...))
	}
	return values(fields...)
}

// paramValues is a kernel's parameters as a composite literal.
func paramValues(k *ir.Kernel) *jen.Statement {
	var list []jen.Code
	for _, p := range params(k) {
		fields := []any{"Name", p.Name}
		switch p.Kind {
		case kernel.Buffer:
			fields = append(fields, "Slot", p.Slot, "Type", p.Type, "Access", p.Access)
		case kernel.Int:
			fields = append(fields, "Kind", jen.Qual(kernelPath, "Int"), "Slot", p.Slot)
		case kernel.Float:
			fields = append(fields, "Kind", jen.Qual(kernelPath, "Float"), "Slot", p.Slot)
		}
		list = append(list, jen.Line().Add(values(fields...)))
	}
	return jen.Index().Qual(kernelPath, "Param").Values(append(list, jen.Line())...)
}

// params describes a kernel's parameters.
func params(k *ir.Kernel) []kernel.Param {
	list := []kernel.Param{}
	for _, p := range k.Params {
		q := kernel.Param{Name: p.Name, Kind: kernel.Kind(p.Kind), Slot: p.Slot}
		if p.Kind == ir.Buffer {
			q.Type, q.Access = p.Type.String(), p.Access.String()
		}
		list = append(list, q)
	}
	return list
}

// axes describes a kernel's grid.
func axes(k *ir.Kernel) (list []kernel.Axis) {
	for _, a := range k.Grid {
		list = append(list, kernel.Axis{Slot: a.Extent.Slot, Tile: a.Tile})
	}
	return list
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

// embedded embeds the manifest, the report, the kernels' texts and the modules of GPUs.
func embedded(patterns []string) *jen.File {
	f := newFile("generated")
	f.PackageComment("Package generated embeds the records of the generated kernels, manifest.json, report.json and their text in ir/, and the\n" +
		"kernels of GPUs.")
	f.Anon("embed")
	f.Comment("Files holds them; package kernel reads the records.")
	f.Comment("//")
	f.Comment("//go:embed " + strings.Join(patterns, " "))
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
			entries = append(entries, "// "+strings.Join(names, " ")+"\n"+kernel.Distances(text))
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

// manifest lists the kernels. Kernels of an op have the same parameters, whatever runs them.
func manifest(kernels []*Kernel) (*kernel.Manifest, error) {
	m := &kernel.Manifest{Comment: header(""), Ops: map[string]kernel.Interface{}, Kernels: []kernel.Entry{}}
	set := blake3.New()
	for _, k := range kernels {
		op := kernel.Interface{Source: k.Op.Source, Pack: k.Op.Pack, Params: params(k.IR)}
		if k.Op.Layout != nil {
			l := kernel.Layout(*k.Op.Layout)
			op.Layout = &l
		}
		if known, ok := m.Ops[k.Op.Name]; ok && !slices.Equal(known.Params, op.Params) {
			return nil, fmt.Errorf("%s: kernel %s has the parameters %v, others of the op %v", k.Op.Source, k.Name(), op.Params, known.Params)
		}
		m.Ops[k.Op.Name] = op
		if !k.own() {
			continue
		}
		sum := blake3.Sum256(k.Text)
		e := kernel.Entry{Name: k.Name().String(), File: k.File, BLAKE3: hex.EncodeToString(sum[:])}
		if k.Target.gpu() {
			e.Serves, e.Threads, e.Tiles, e.Shared, e.Grid = k.served, k.Threads, k.Tiles, k.Shared, axes(k.IR)
		}
		m.Kernels = append(m.Kernels, e)
		fmt.Fprintf(set, "%s %s\n", e.Name, e.BLAKE3)
	}
	m.Set = hex.EncodeToString(set.Sum(nil))
	return m, nil
}

// records makes the manifest and the report.
func records(kernels []*Kernel, rejected []kernel.Rejection) ([]File, error) {
	m, err := manifest(kernels)
	if err != nil {
		return nil, err
	}
	staged, err := tiles(shapes, kernels)
	if err != nil {
		return nil, err
	}
	sass, err := assembled(kernels)
	if err != nil {
		return nil, err
	}
	r := kernel.Report{Comment: header(""), Block: block, Tiles: staged, Kernels: sass, Rejected: append([]kernel.Rejection{}, rejected...)}
	var files []File
	for path, v := range map[string]any{"manifest.json": m, "report.json": r} {
		var text bytes.Buffer
		enc := json.NewEncoder(&text)
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		files = append(files, File{path, breakLines(text.Bytes())})
	}
	return files, nil
}

// breakLines puts each member of the outermost JSON object, and each element and member of these, on a line of its own, so
// that a change of one is a change of one line.
func breakLines(text []byte) []byte {
	var out []byte
	depth := 0
	quoted, escaped := false, false
	for _, c := range text {
		out = append(out, c)
		switch {
		case escaped:
			escaped = false
		case quoted && c == '\\':
			escaped = true
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '}' || c == ']':
			depth--
		case c == '{' || c == '[':
			depth++
			fallthrough
		case c == ',':
			if depth <= 2 {
				out = append(out, '\n')
			}
		}
	}
	return out
}
