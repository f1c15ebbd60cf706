package conform

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/zeebo/blake3"

	"github.com/swizzle-rt/swizzle/gen"
	"github.com/swizzle-rt/swizzle/generated"
	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
	"github.com/swizzle-rt/swizzle/ir/ops"
	irtarget "github.com/swizzle-rt/swizzle/ir/target"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// tree is the directory of generated files.
var tree = os.DirFS("../../generated")

func manifest(t testing.TB) *kernel.Manifest {
	t.Helper()
	m, err := kernel.ReadManifest(generated.Files)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// Every op under every config is there for every target, or the report says why not; and nothing else is there. No GPU is
// without an op.
func TestComplete(t *testing.T) {
	report, err := kernel.ReadReport(generated.Files)
	if err != nil {
		t.Fatal(err)
	}
	where := map[string]string{}
	note := func(name, place string) {
		if where[name] != "" {
			t.Errorf("%s is in %s and in %s", name, where[name], place)
		}
		where[name] = place
	}
	has := map[[2]string]bool{}
	for _, name := range generatedNames(t) {
		note(name.String(), "the manifest")
		has[[2]string{name.Op, name.Arch}] = true
	}
	for _, target := range gen.Targets() {
		for _, op := range names {
			if c := target.Caps; c.Family == irtarget.GPU && !has[[2]string{op, c.Arch}] {
				t.Errorf("%s has no kernel of %s", c.Arch, op)
			}
		}
	}
	for _, r := range report.Rejected {
		name := kernel.Name{Op: r.Op, Config: r.Config, Arch: r.Arch}
		note(name.String(), "the report")
		if r.Message == "" {
			t.Errorf("%s was rejected without a reason", name)
		}
	}
	for _, u := range units(t) {
		name := u.Name().String()
		if where[name] == "" {
			t.Errorf("%s was neither generated nor rejected", name)
		}
		delete(where, name)
	}
	for name, place := range where {
		t.Errorf("%s is in %s, but no op, config and target give it", name, place)
	}
}

// generatedNames lists the kernels of the manifest.
func generatedNames(t *testing.T) (list []kernel.Name) {
	for _, e := range manifest(t).Kernels {
		names, err := e.Names()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, names...)
	}
	return list
}

// The manifest's hashes are those of the files, no file is missing and none is left over, and what is embedded is what lies
// on disk.
func TestManifest(t *testing.T) {
	m := manifest(t)
	expected := map[string]bool{"generated.go": true, "manifest.json": true, "report.json": true}
	for _, target := range gen.Targets() {
		if target.Caps.Family == irtarget.GPU { // a list of kernels stands in the manifest
			continue
		}
		for _, glue := range []string{"doc.go", "kernels.go", "kernels_other.go", "kernels_" + target.GOARCH + ".go"} {
			if !strings.Contains(glue, "_.") && (target.GOARCH == "") == (glue == "kernels.go") {
				expected[target.Backend+"/"+glue] = true
			}
		}
	}
	set := blake3.New()
	for _, e := range m.Kernels {
		expected[e.File] = true
		base, _, _ := strings.Cut(path.Base(e.File), ".")
		name, err := kernel.ParseName(base)
		if err != nil || name.String() != e.Name {
			t.Errorf("%s lies in %s: %v", e.Name, e.File, err)
		}
		text, err := e.Text(tree)
		if err != nil {
			t.Error(err)
			continue
		}
		if sum := blake3.Sum256([]byte(text)); hex.EncodeToString(sum[:]) != e.BLAKE3 {
			t.Errorf("%s has the BLAKE3 %x, the manifest %s", e.File, sum, e.BLAKE3)
		}
		fmt.Fprintf(set, "%s %s\n", e.Name, e.BLAKE3)
	}
	if sum := hex.EncodeToString(set.Sum(nil)); sum != m.Set {
		t.Errorf("the set's BLAKE3 is %s, the manifest has %s", sum, m.Set)
	}
	for _, u := range units(t) {
		expected[kernel.IRFile(u.Op.Source)] = true
	}
	err := fs.WalkDir(tree, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		if !expected[name] {
			t.Errorf("%s belongs to no op", name)
		}
		delete(expected, name)
		if path.Ext(name) == ".go" || path.Ext(name) == ".s" {
			return nil
		}
		disk, err := fs.ReadFile(tree, name)
		if err != nil {
			return err
		}
		linked, err := fs.ReadFile(generated.Files, name)
		if err == nil && !bytes.Equal(disk, linked) {
			t.Errorf("%s is embedded with other contents", name)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
	for name := range expected {
		t.Errorf("%s is missing", name)
	}
}

// The descriptors are what the ops' IR says.
func TestDescriptors(t *testing.T) {
	registered := map[kernel.Name]*kernel.Kernel{}
	backends := map[string]bool{}
	gpu, err := manifest(t).GPU()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range append(kernels(), gpu...) {
		if registered[k.Name] != nil {
			t.Errorf("%s is registered twice", k.Name)
		}
		registered[k.Name] = &k
		backends[k.Name.Arch] = true
	}
	made := map[kernel.Name]bool{}
	for _, name := range generatedNames(t) {
		made[name] = true
	}
	for _, u := range units(t) {
		if !made[u.Name()] || !backends[u.Target.Caps.Arch] {
			continue
		}
		if u.Target.Below != nil && testing.Short() { // much like those of the target below
			delete(registered, u.Name())
			continue
		}
		k := registered[u.Name()]
		if k == nil {
			t.Errorf("%s is not registered", u.Name())
			continue
		}
		delete(registered, u.Name())
		built, err := u.Op.Kernel(u.Variant, u.Target.Caps)
		if err != nil {
			t.Fatal(err)
		}
		ignore := []string{"Func", "Launch"}
		if k.Launch != nil {
			ignore = append(ignore, "Shared") // with what the backend adds
		}
		if diff := cmp.Diff(describe(u, built), k, cmpopts.IgnoreFields(kernel.Kernel{}, ignore...), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: its descriptor is not what the op says (+):\n%s", u.Name(), diff)
		}
		if gpu := u.Target.Caps.Family == irtarget.GPU; gpu {
			if err := launchable(u, built, k); err != nil {
				t.Errorf("%s: %v", k.Name, err)
			}
		} else if k.Func == nil || k.Launch != nil || k.Shared > kernel.ScratchBytes {
			t.Errorf("%s: function %v, launch %v, %d bytes of scratch", k.Name, k.Func != nil, k.Launch, k.Shared)
		}
		c := u.Op.Case(u.Variant, u.Op.Shapes[0], ops.NewData(ops.Random, 1))
		var args kernel.Args
		var ints []int64
		for _, p := range built.Params {
			if p.Kind == ir.Integer {
				args.Int[p.Slot] = c.Int[p.Name]
				ints = append(ints, c.Int[p.Name])
			}
		}
		if got, want := k.Tiles(&args), interp.Tiles(built, ints); int64(got) != want {
			t.Errorf("%s has %d tiles for %v, the interpreter %d", k.Name, got, c.Int, want)
		}
	}
	for name := range registered {
		t.Errorf("%s is registered, but is no unit of the manifest", name)
	}
}

// launchable checks what a kernel's launch says against its IR and its target.
func launchable(u gen.Unit, built *ir.Kernel, k *kernel.Kernel) error {
	caps, l := u.Target.Caps, k.Launch
	switch {
	case k.Func != nil || l == nil:
		return fmt.Errorf("function %v, launch %v", k.Func != nil, l)
	case l.Tiles < 1 || l.Threads != l.Tiles*built.Lanes*built.Groups || l.Threads > caps.Threads:
		return fmt.Errorf("%d threads for %d tiles; the kernel has %d groups of %d lanes, a block up to %d threads", l.Threads, l.Tiles, built.Groups, built.Lanes, caps.Threads)
	case k.Shared < built.SharedBytes() || k.Shared > caps.Shared:
		return fmt.Errorf("%d bytes of shared memory; its arrays have %d, a block has %d", k.Shared, built.SharedBytes(), caps.Shared)
	case !strings.HasPrefix(l.File, u.Target.Backend+"/"+k.Name.Entry()+"__"):
		return fmt.Errorf("its file is %s", l.File)
	}
	return nil
}

// describe makes the descriptor of a kernel.
func describe(u gen.Unit, built *ir.Kernel) *kernel.Kernel {
	k := &kernel.Kernel{Name: u.Name(), Source: u.Op.Source, Pack: u.Op.Pack, Shared: built.SharedBytes()}
	if l := u.Op.Layout; l != nil {
		k.Layout = kernel.Layout(*l)
	}
	for _, p := range built.Params {
		q := kernel.Param{Name: p.Name, Kind: kernel.Kind(p.Kind), Slot: p.Slot}
		if p.Kind == ir.Buffer {
			q.Type, q.Access = p.Type.String(), p.Access.String()
		}
		k.Params = append(k.Params, q)
	}
	for _, d := range built.Grid {
		k.Grid = append(k.Grid, kernel.Axis{Slot: d.Extent.Slot, Tile: d.Tile})
	}
	return k
}

// The kernels' texts can be read, and say the same as the descriptors.
func TestTexts(t *testing.T) {
	if testing.Short() {
		t.Skip("reads every text")
	}
	seen := map[string]bool{}
	gpu, err := manifest(t).GPU()
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range append(kernels(), gpu...) {
		if seen[k.Name.Op+k.Name.Arch] {
			continue
		}
		seen[k.Name.Op+k.Name.Arch] = true
		text, err := k.IR(generated.Files)
		if err != nil {
			t.Error(err)
			continue
		}
		parsed, err := ir.Parse(text, irtarget.Atoms()...)
		if err != nil {
			t.Errorf("%s: %v", k.Name, err)
			continue
		}
		if parsed.Name != k.Name.Op+"__"+k.Name.Config || len(parsed.Params) != len(k.Params) || len(parsed.Grid) != len(k.Grid) {
			t.Errorf("%s has the text of %s with %d parameters and %d axes, not %d and %d", k.Name, parsed.Name,
				len(parsed.Params), len(parsed.Grid), len(k.Params), len(k.Grid))
		}
	}
}

var (
	vector     = regexp.MustCompile(`\b[XYZ][0-9]+\b`)
	frame      = regexp.MustCompile(`\bBP\b`)
	high       = regexp.MustCompile(`\b(Z[0-9]+|[XY](1[6-9]|[23][0-9])|K[0-7])\b`)
	extensions = map[string][]string{ // MMX+ stands for the prefetches, which every amd64 has
		"avx2":       {"AVX", "AVX2", "CMOV", "F16C", "FMA3", "MMX+"},
		"avxvnni":    {"AVX", "AVX2", "CMOV", "F16C", "FMA3", "MMX+", "AVXVNNI"},
		"avx512vnni": {"AVX", "AVX2", "CMOV", "F16C", "FMA3", "MMX+", "AVX512F", "AVX512BW", "AVX512DQ", "AVX512VL", "AVX512VNNI"},
	}
)

// Assembly leaves no upper half of a register dirty, has no legacy SSE instruction, which would be slow after AVX, uses the
// registers and extensions of its architecture only, and keeps its hands off the frame pointer.
func TestAssembly(t *testing.T) {
	files := 0
	for _, e := range manifest(t).Kernels {
		if path.Ext(e.File) != ".s" {
			continue
		}
		files++
		name, err := kernel.ParseName(e.Name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := fs.ReadFile(tree, e.File)
		if err != nil {
			t.Fatal(err)
		}
		for _, complaint := range faults(string(text), name.Arch) {
			t.Errorf("%s: %s", e.File, complaint)
		}
	}
	if files == 0 {
		t.Error("there is no assembly")
	}
}

// faults lists what is wrong with a file of assembly.
func faults(text, arch string) (list []string) {
	previous := ""
	returns := 0
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if needs, ok := strings.CutPrefix(line, "// Requires: "); ok {
			for _, x := range strings.Split(needs, ", ") {
				if !slices.Contains(extensions[arch], x) {
					list = append(list, "it requires "+x)
				}
			}
		}
		op, operands, _ := strings.Cut(line, " ")
		switch {
		case line == "" || strings.HasPrefix(line, "//") || strings.HasSuffix(line, ":"):
			continue
		case op == "TEXT":
			continue
		case op == "RET":
			returns++
			if previous != "VZEROUPPER" {
				list = append(list, "RET without VZEROUPPER")
			}
		case vector.MatchString(operands) && !strings.HasPrefix(op, "V") && !strings.HasPrefix(op, "K"):
			list = append(list, "legacy SSE: "+line)
		case arch != "avx512vnni" && high.MatchString(operands):
			list = append(list, "a register of AVX-512: "+line)
		case frame.MatchString(operands):
			list = append(list, "the frame pointer: "+line)
		}
		previous = line
	}
	if returns == 0 {
		list = append(list, "it never returns")
	}
	return list
}

func TestFaults(t *testing.T) {
	const head = "TEXT ·f(SB), NOSPLIT, $0-24\n"
	for _, c := range []struct {
		text, arch string
		want       int
	}{
		{head + "\tVADDPS X1, X2, X3\n\tVZEROUPPER\n\tRET\n", "avx2", 0},
		{head + "\tVADDPS X1, X2, X3\n\tRET\n", "avx2", 1},
		{head + "\tMOVQ AX, X1\n\tVZEROUPPER\n\tRET\n", "avx2", 1},
		{head + "\tVADDPS Y1, Y2, Y16\n\tVZEROUPPER\n\tRET\n", "avxvnni", 1},
		{head + "\tVADDPS Y1, Y2, Y16\n\tVZEROUPPER\n\tRET\n", "avx512vnni", 0},
		{head + "\tVPCMPD $1, Y1, Y2, K1\n\tVZEROUPPER\n\tRET\n", "avx2", 1},
		{"// Requires: AVX, BMI2\n" + head + "\tVZEROUPPER\n\tRET\n", "avx512vnni", 1},
		{head + "\tMOVQ BP, AX\n\tVZEROUPPER\n\tRET\n", "avx2", 1},
		{head + "\tVZEROUPPER\nend:\n\tRET\n\tJMP end\n", "avx2", 0},
		{head + "\tJMP f\n", "avx2", 1},
	} {
		if got := faults(c.text, c.arch); len(got) != c.want {
			t.Errorf("%s: %q, want %d\n%s", c.arch, got, c.want, c.text)
		}
	}
}
