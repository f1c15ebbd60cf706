package swizzle_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const modulePath = "github.com/swizzle-rt/swizzle"

// A part is a set of packages and what they may import: paths below the module, of which "x/..." is x and all below it.
// docs/architecture.md shows the parts as a picture.
type part struct {
	packages string
	imports  []string // packages of the module
	std      bool     // beside them the standard library only
}

// parts holds the arrows. The first part that has a package counts.
var parts = []part{
	// The compiler half: the language, then what is built on it.
	{"ir", nil, true},
	{"ir/layout", nil, true},
	{"ir/canon", nil, true},
	{"ir/target", []string{"ir"}, true},
	{"ir/verify", []string{"ir", "ir/target", "ir/layout", "ir/canon"}, true},
	{"ir/interp", []string{"ir", "ir/target", "ir/layout", "ir/canon"}, true},
	{"ir/random", []string{"ir", "ir/interp"}, true},
	{"ir/lower", []string{"ir"}, true},
	{"ir/mathx", []string{"ir", "ir/canon"}, true},
	{"ir/tile", []string{"ir", "ir/layout"}, true},
	{"ir/quant", []string{"ir", "ir/canon"}, true},
	{"ir/ops", []string{"ir", "ir/layout", "ir/canon", "ir/target", "ir/mathx", "ir/tile", "ir/quant"}, true},
	// A backend knows no op. Of the runtime it takes the kernels' argument block, which it prints accesses to.
	{"backends/...", []string{"ir", "ir/target", "ir/lower", "ir/verify", "runtime/kernel"}, false},
	{"gen/...", []string{"ir/...", "backends/...", "runtime/kernel"}, false},
	{"cmd/swizzlegen", []string{"gen/...", "ir/ops"}, false},

	// What joins the halves: files, and the package that they import.
	{"runtime/kernel/...", nil, true},
	{"generated/...", []string{"runtime/kernel/..."}, true},

	// The runtime half.
	{"runtime/device/...", []string{"runtime/device/..."}, false},
	{"runtime/dispatch", []string{"runtime/kernel", "runtime/device/..."}, false},
	{"runtime/...", []string{"runtime/...", "ir/canon", "ir/layout"}, false},
	{"serve/...", []string{"serve/...", "runtime/..."}, false},
	{"cmd/swizzle", []string{"generated/...", "serve/...", "runtime/...", "ir/canon", "ir/layout"}, false},
}

// product is the program that users run; nothing of these is linked into it.
const product = "cmd/swizzle"

var notInProduct = []string{
	modulePath + "/gen/...", modulePath + "/backends/...", modulePath + "/ir/ops", modulePath + "/ir",
	"github.com/mmcloughlin/avo/...", "github.com/dave/jennifer/...", "golang.org/x/tools/...",
}

// node is what "go list" tells of a package without its tests.
type node struct {
	ImportPath string
	Standard   bool
	Imports    []string
	CgoFiles   []string
	Module     *struct{ Main bool }
}

type graph map[string]*node

// listGraph lists the module's packages and all that they import, as built for a system with cgo available.
func listGraph(platform string) (graph, error) {
	cmd := exec.Command("go", "list", "-e", "-deps", "-json=ImportPath,Standard,Imports,CgoFiles,Module", "./...")
	goos, goarch, _ := strings.Cut(platform, "/")
	cmd.Env = append(os.Environ(), "GOOS="+goos, "GOARCH="+goarch, "CGO_ENABLED=1")
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list for %s: %w", platform, err)
	}
	g := graph{}
	d := json.NewDecoder(strings.NewReader(string(out)))
	for {
		n := new(node)
		if err := d.Decode(n); errors.Is(err, io.EOF) {
			return g, nil
		} else if err != nil {
			return nil, fmt.Errorf("go list for %s: %w", platform, err)
		}
		g[n.ImportPath] = n
	}
}

// matches reports whether the package is one that the pattern stands for.
func matches(pattern, path string) bool {
	if base, ok := strings.CutSuffix(pattern, "/..."); ok {
		return path == base || strings.HasPrefix(path, base+"/")
	}
	return path == pattern
}

func matchesAny(patterns []string, path string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, path) })
}

// forbidden returns every import of the module's packages that no arrow allows, and every use of cgo.
func (g graph) forbidden() []string {
	var list []string
	for _, path := range slices.Sorted(maps.Keys(g)) {
		n := g[path]
		// purego has files for programs that use cgo; without it they are left out.
		if !n.Standard && len(n.CgoFiles) > 0 && !strings.HasPrefix(path, "github.com/ebitengine/purego/") {
			list = append(list, fmt.Sprintf("%s uses cgo: %s", path, strings.Join(n.CgoFiles, ", ")))
		}
		name, ok := strings.CutPrefix(path, modulePath+"/")
		if n.Module == nil || !n.Module.Main || !ok {
			continue
		}
		i := slices.IndexFunc(parts, func(p part) bool { return matches(p.packages, name) })
		if i < 0 {
			list = append(list, name+" belongs to no part")
			continue
		}
		for _, to := range n.Imports {
			inner, ours := strings.CutPrefix(to, modulePath+"/")
			standard := g[to] == nil || g[to].Standard // "C" and "unsafe" have no entry of their own everywhere
			switch {
			case ours && !matchesAny(parts[i].imports, inner):
				list = append(list, fmt.Sprintf("%s → %s", name, inner))
			case !ours && !standard && parts[i].std:
				list = append(list, fmt.Sprintf("%s → %s: only the standard library is allowed", name, to))
			}
		}
	}
	return list
}

// linked returns, for each package that the product must not link, the shortest chain of imports that leads to it.
func (g graph) linked() []string {
	var list []string
	from := map[string]string{modulePath + "/" + product: ""}
	for queue := []string{modulePath + "/" + product}; len(queue) > 0; queue = queue[1:] {
		path := queue[0]
		if matchesAny(notInProduct, path) {
			chain := ""
			for p := path; p != ""; p = from[p] {
				if chain != "" {
					chain = " → " + chain
				}
				chain = strings.TrimPrefix(p, modulePath+"/") + chain
			}
			list = append(list, chain)
			continue // what lies behind it is linked because of it
		}
		if g[path] == nil {
			continue
		}
		for _, to := range g[path].Imports {
			if _, seen := from[to]; !seen {
				from[to] = path
				queue = append(queue, to)
			}
		}
	}
	return list
}

// The arrows between the module's packages, test files aside, hold on every system.
func TestDependencies(t *testing.T) {
	for _, platform := range []string{"linux/amd64", "linux/arm64", "darwin/arm64", "windows/amd64"} {
		g, err := listGraph(platform)
		if err != nil {
			t.Fatal(err)
		}
		if g[modulePath+"/ir"] == nil || g[modulePath+"/"+product] == nil {
			t.Fatalf("%s: go list doesn't list the module's packages", platform)
		}
		for _, edge := range g.forbidden() {
			t.Errorf("%s: %s", platform, edge)
		}
		for _, chain := range g.linked() {
			t.Errorf("%s: the product links %s", platform, chain)
		}
	}
}

func TestForbidden(t *testing.T) {
	const avo = "github.com/mmcloughlin/avo/x86"
	for _, c := range []struct {
		name   string
		from   string
		to     []string
		want   []string
		linked []string
	}{
		{"nothing", "ir", []string{"fmt"}, nil, nil},
		{"allowed", "ir/verify", []string{modulePath + "/ir", modulePath + "/ir/target"}, nil, nil},
		{"against the arrow", "ir", []string{modulePath + "/ir/lower"}, []string{"ir → ir/lower"}, nil},
		{"two", "runtime/model", []string{modulePath + "/ir", modulePath + "/ir/canon", modulePath + "/generated/avx"}, []string{"runtime/model → ir", "runtime/model → generated/avx"}, nil},
		{"a library", "ir/canon", []string{avo}, []string{"ir/canon → " + avo + ": only the standard library is allowed"}, nil},
		{"a library where they are free", "backends/avx", []string{avo}, nil, nil},
		{"a backend that knows an op", "backends/avx/sim", []string{modulePath + "/ir/ops"}, []string{"backends/avx/sim → ir/ops"}, nil},
		{"a new package", "tools/x", nil, []string{"tools/x belongs to no part"}, nil},
		{"kernels' package first", "runtime/kernel/lane", []string{modulePath + "/runtime/gguf"}, []string{"runtime/kernel/lane → runtime/gguf"}, nil},
		{"generator in the product", "cmd/swizzle", []string{modulePath + "/gen"}, []string{"cmd/swizzle → gen"}, []string{"cmd/swizzle → gen"}},
		{"library in the product", "cmd/swizzle", []string{avo}, nil, []string{"cmd/swizzle → " + avo}},
		{"a name that only begins alike", "generators", nil, []string{"generators belongs to no part"}, nil},
	} {
		g := graph{
			avo:   {ImportPath: avo},
			"fmt": {ImportPath: "fmt", Standard: true},
		}
		path := modulePath + "/" + c.from
		g[path] = &node{ImportPath: path, Imports: c.to, Module: &struct{ Main bool }{true}}
		if got := g.forbidden(); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
		if got := g.linked(); !slices.Equal(got, c.linked) {
			t.Errorf("%s: linked %q, want %q", c.name, got, c.linked)
		}
	}
	g := graph{
		modulePath + "/" + product:           {Imports: []string{modulePath + "/serve"}},
		modulePath + "/serve":                {Imports: []string{"golang.org/x/tools/txtar"}},
		"golang.org/x/tools/txtar":           {CgoFiles: []string{"a.go"}},
		"example.org/other/cmd/swizzle/main": {CgoFiles: []string{"b.go"}, Standard: true},
	}
	if got, want := g.linked(), []string{"cmd/swizzle → serve → golang.org/x/tools/txtar"}; !slices.Equal(got, want) {
		t.Errorf("linked %q, want %q", got, want)
	}
	if got, want := g.forbidden(), []string{"golang.org/x/tools/txtar uses cgo: a.go"}; !slices.Equal(got, want) {
		t.Errorf("cgo: %q, want %q", got, want)
	}
}
