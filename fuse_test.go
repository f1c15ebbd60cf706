package swizzle_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/build"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A compiler may fuse a float product with a sum that uses it, and then the bits differ between architectures; only an
// explicit conversion of the product forbids it. So every float product of the module must stand directly inside a
// conversion, float32(x*y) + z. This test checks all hand-written files, those for other systems and architectures too.
func TestNoFusedProducts(t *testing.T) {
	m, err := listModule()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range m.packages {
		for _, f := range m.products(p) {
			t.Error(f)
		}
	}
	for _, e := range m.errs {
		t.Error(e)
	}
}

// listed is what "go list" tells of a package.
type listed struct {
	ImportPath     string
	Dir            string
	Export         string
	GoFiles        []string
	IgnoredGoFiles []string
	Module         *struct{ Main bool }
}

// module type-checks the packages of this module. Other packages come from the export data of the build cache.
type module struct {
	fset     *token.FileSet
	packages []*listed // of this module, dependencies first
	files    map[string]*ast.File
	types    map[string]*types.Package // those of this module
	errs     []error                   // type errors in files of this system and architecture
	external types.Importer
}

func listModule() (*module, error) {
	cmd := exec.Command("go", "list", "-e", "-export", "-deps", "-json=ImportPath,Dir,Export,GoFiles,IgnoredGoFiles,Module", "./...")
	out, err := cmd.Output() // packages that don't compile make it fail, but are listed
	if err != nil && len(out) == 0 {
		return nil, fmt.Errorf("go list: %w", err)
	}
	m := &module{fset: token.NewFileSet(), files: map[string]*ast.File{}, types: map[string]*types.Package{}}
	export := map[string]string{}
	d := json.NewDecoder(strings.NewReader(string(out)))
	for {
		p := new(listed)
		if err := d.Decode(p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			return nil, fmt.Errorf("go list: %w", err)
		}
		if p.Module != nil && p.Module.Main {
			m.packages = append(m.packages, p)
		}
		export[p.ImportPath] = p.Export
	}
	m.external = importer.ForCompiler(m.fset, "gc", func(path string) (io.ReadCloser, error) {
		if export[path] == "" {
			return nil, fmt.Errorf("no export data of %s", path)
		}
		return os.Open(export[path])
	})
	return m, nil
}

// Import implements types.Importer.
func (m *module) Import(path string) (*types.Package, error) {
	if p := m.types[path]; p != nil {
		return p, nil
	}
	return m.external.Import(path)
}

// check type-checks files of one package as far as possible.
func (m *module) check(path string, names []string, report func(error)) (*types.Package, *types.Info) {
	var files []*ast.File
	for _, name := range names {
		f := m.files[name]
		if f == nil {
			var err error
			if f, err = parser.ParseFile(m.fset, name, nil, parser.ParseComments|parser.SkipObjectResolution); err != nil {
				report(err)
			}
			m.files[name] = f
		}
		if f != nil {
			files = append(files, f)
		}
	}
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	conf := types.Config{Importer: m, Error: report, FakeImportC: true}
	p, _ := conf.Check(path, m.fset, files, info)
	return p, info
}

// products returns a complaint for each float product in p outside a conversion.
func (m *module) products(p *listed) []string {
	var all, list []string
	for _, name := range append(p.GoFiles, p.IgnoredGoFiles...) {
		if !strings.HasSuffix(name, "_test.go") {
			all = append(all, name)
		}
	}
	done := map[string]bool{}
	lint := func(names []string, report func(error)) *types.Package {
		if !slices.ContainsFunc(names, func(n string) bool { return !done[n] }) {
			return nil
		}
		var paths []string
		for _, n := range names {
			paths = append(paths, filepath.Join(p.Dir, n))
		}
		checked, info := m.check(p.ImportPath, paths, report)
		for i, n := range names {
			if f := m.files[paths[i]]; f != nil && !done[n] && !ast.IsGenerated(f) {
				for _, pos := range unguarded(f, info) {
					list = append(list, fmt.Sprintf("%s: float product outside a conversion", m.fset.Position(pos)))
				}
			}
			done[n] = true
		}
		return checked
	}
	m.types[p.ImportPath] = lint(p.GoFiles, func(err error) { m.errs = append(m.errs, err) })
	quiet := func(error) {} // files for others may import what has no export data here
	for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/arm64", "darwin/amd64", "windows/amd64", "windows/arm64", "linux/riscv64"} {
		c := build.Default
		c.GOOS, c.GOARCH, _ = strings.Cut(platform, "/")
		var names []string
		for _, n := range all {
			if ok, err := c.MatchFile(p.Dir, n); ok && err == nil {
				names = append(names, n)
			}
		}
		lint(names, quiet)
	}
	for _, n := range all { // programs outside the build
		lint([]string{n}, quiet)
	}
	return list
}

// unguarded returns the positions of the float products of f that are not the operand of a conversion.
func unguarded(f *ast.File, info *types.Info) []token.Pos {
	var list []token.Pos
	guarded := map[ast.Expr]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if len(n.Args) == 1 && info.Types[n.Fun].IsType() && isFloat(info.Types[n.Fun].Type) {
				guarded[ast.Unparen(n.Args[0])] = true
			}
		case *ast.BinaryExpr:
			if tv := info.Types[n]; n.Op == token.MUL && tv.Value == nil && isFloat(tv.Type) && !guarded[n] {
				list = append(list, n.OpPos)
			}
		case *ast.AssignStmt:
			if n.Tok == token.MUL_ASSIGN && isFloat(info.Types[n.Lhs[0]].Type) {
				list = append(list, n.TokPos)
			}
		}
		return true
	})
	return list
}

// isFloat reports whether values of type t may be floating-point or complex numbers.
func isFloat(t types.Type) bool {
	switch t := t.(type) {
	case nil:
		return false
	case *types.TypeParam:
		return isFloat(t.Constraint())
	}
	switch u := t.Underlying().(type) {
	case *types.Basic:
		return u.Info()&(types.IsFloat|types.IsComplex) != 0
	case *types.Interface:
		for i := range u.NumEmbeddeds() {
			if isFloat(u.EmbeddedType(i)) {
				return true
			}
		}
	case *types.Union:
		for i := range u.Len() {
			if isFloat(u.Term(i).Type()) {
				return true
			}
		}
	}
	return false
}

func TestUnguarded(t *testing.T) {
	for _, c := range []struct {
		body string
		want int
	}{
		{"_ = x*y", 1},
		{"_ = x*y + x", 1},
		{"_ = float32(x*y) + x", 0},
		{"_ = float32((x*y)) + x", 0},
		{"_ = float32(-(x*y))", 1},
		{"_ = float32(x*y + x)", 1},
		{"_ = float32(x*y*x)", 1},
		{"_ = float32(float32(x*y)*x)", 0},
		{"x *= y", 1},
		{"i *= i; _ = i*i", 0},
		{"_ = d * float64(x)", 1},
		{"_ = float64(d*d) + float64(x*y)", 0},
		{"_ = int(d*d)", 1},
		{"_ = 2 * x", 1},
		{"_ = x + 2*3.5", 0},
		{"const c = 1.5; _ = c*c*x", 1},
		{"_ = m*m", 1},
		{"_ = meters(m*m) + m", 0},
		{"_ = z*z", 1},
		{"_ = x / y", 0},
		{"_ = square(x)", 0},
	} {
		src := "package p\ntype meters float64\n" +
			"func square[T ~float32 | ~int](v T) T { return T(v*v) }\n" +
			"func f(x, y float32, d float64, i int, m meters, z complex128) {\n" + c.body + "\n}\n"
		fset := token.NewFileSet()
		f, err := parser.ParseFile(fset, "p.go", src, 0)
		if err != nil {
			t.Fatal(err)
		}
		info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
		if _, err := new(types.Config).Check("p", fset, []*ast.File{f}, info); err != nil {
			t.Fatalf("%s: %v", c.body, err)
		}
		if got := len(unguarded(f, info)); got != c.want {
			t.Errorf("%s: %d complaints, want %d", c.body, got, c.want)
		}
	}
	generic := "package p\nfunc f[T ~float32 | ~int](v T) T { return v*v }\n"
	fset := token.NewFileSet()
	f, _ := parser.ParseFile(fset, "p.go", generic, 0)
	info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
	if _, err := new(types.Config).Check("p", fset, []*ast.File{f}, info); err != nil || len(unguarded(f, info)) != 1 {
		t.Errorf("a generic product: %v", err)
	}
}
