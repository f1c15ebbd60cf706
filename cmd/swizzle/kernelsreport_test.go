package main

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/swizzle-rt/swizzle/ir/layout"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

func TestKernelsReport(t *testing.T) {
	text := ok(t, "", "kernels", "report")
	for tile, want := range map[string]string{
		"64×80 f16": "11264 B 10240 B −9.1 % = −16/176 8 4 4 of 4", "64×64 f16": "9216 B 8192 B −11.1 % = −16/144 32 4 4 of 4",
		"128×64 f16": "18432 B 16384 B −11.1 %", "64×64 s8": "5120 B 4096 B −20.0 % = −16/80 16 4 4 of 4 4 8 4 of 4", "128×128 f16": "34816 B 32768 B −5.9 %",
	} {
		found := false
		for line := range strings.Lines(text) {
			words := strings.Join(strings.Fields(line), " ")
			found = found || strings.HasPrefix(words, tile+" ") && strings.Contains(words, want)
		}
		if !found {
			t.Errorf("no line of %s with %q in\n%s", tile, want, text)
		}
	}
	if !strings.Contains(text, "sm_75") || !strings.Contains(text, "1 → 2") {
		t.Errorf("no occupancy in\n%s", text)
	}
	picture := filepath.Join(t.TempDir(), "tiles.svg")
	got := decode[kernelsReport](t, ok(t, "", "kernels", "report", "--json", "--svg", picture))
	if len(got.Tiles) < 6 || got.Block.Threads != 128 || got.Rejected == nil || len(got.Kernels) < 50 || !strings.Contains(text, "\n"+got.Kernels[0].Kernel+" ") {
		t.Errorf("%+v", got)
	}
	for _, x := range got.Tiles {
		if x.Formula == "16/176" && (x.Saved < 0.0909 || x.Saved > 0.0910) {
			t.Errorf("%s saves %v = %s", &x.Tile, x.Saved, x.Formula)
		}
	}
	svg, err := os.ReadFile(picture)
	if err != nil {
		t.Fatal(err)
	}
	elements := map[string]int{}
	for d := xml.NewDecoder(strings.NewReader(string(svg))); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		if e, ok := token.(xml.StartElement); ok {
			elements[e.Name.Local]++
		}
	}
	cells := 1 // and the background
	for _, x := range got.Tiles {
		cells += 8 * (3*x.RowBytes/16 + 1)
	}
	if elements["svg"] != 1 || elements["rect"] != cells {
		t.Errorf("the picture has %v, want %d rectangles", elements, cells)
	}
	bad := swizzle(t, "", "kernels", "report", "--svg", filepath.Join(picture, "x.svg"))
	if bad.status != statusFailure || bad.stdout != "" {
		t.Errorf("%+v", bad)
	}
	checkErrorLine(t, []string{"kernels", "report"}, bad.stderr, "--svg: ")
}

func testTile(rows, rowBytes int) kernel.Tile {
	swizzle, err := layout.ForRows(rowBytes)
	if err != nil {
		panic(err)
	}
	return kernel.Tile{
		Rows: rows, Cols: rowBytes, Type: "s8", RowBytes: rowBytes, Swizzle: swizzle.String(), PaddedBytes: rows * (rowBytes + 16), SwizzledBytes: rows * rowBytes,
		LdMatrix: kernel.Wavefronts{Ideal: 4, Plain: 8, Padded: 4, Swizzled: 4},
	}
}

func TestDrawBanks(t *testing.T) {
	const want = `
4×32 s8, rows of 32 bytes, Sw<1,4,3>: 128 bytes, padded 192: −33.3 % = −16/48
plain   padded    swizzled
 0 1     0 1 ·     0 1
 2 3     3 4 ·     2 3
 4 5     6 7 ·     4 5
 6 7     1 2 ·     6 7
8       4         4       wavefronts of the worst ldmatrix.x4 (ideal: 4)
`
	got, err := drawBanks([]kernel.Tile{testTile(4, 32)}, false)
	if err != nil || got != strings.Join(bankLegend[:], "\n")+"\nA dot is padding.\n"+want {
		t.Errorf("%v\n%s", err, got)
	}
	coloured, err := drawBanks([]kernel.Tile{testTile(4, 32)}, true)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range bankColours {
		coloured = strings.ReplaceAll(coloured, "\x1b[38;5;16;48;5;"+strconv.Itoa(c.terminal)+"m "+strconv.Itoa(i)+"\x1b[0m", " "+strconv.Itoa(i))
		coloured = strings.ReplaceAll(coloured, "\x1b[38;5;15;48;5;"+strconv.Itoa(c.terminal)+"m "+strconv.Itoa(i)+"\x1b[0m", " "+strconv.Itoa(i))
	}
	if coloured != got {
		t.Errorf("without its colours:\n%q", coloured)
	}
	wide, err := drawBanks([]kernel.Tile{testTile(16, 1024)}, false)
	if err != nil || !strings.Contains(wide, " 7 …  ") || strings.Contains(wide, "·") {
		t.Errorf("%v\n%s", err, wide)
	}
	for _, bad := range []kernel.Tile{{}, {Rows: 8, RowBytes: 24}, {Rows: 8, RowBytes: 32, Swizzle: "Sw<"}} {
		if text, err := drawBanks([]kernel.Tile{bad}, false); err == nil {
			t.Errorf("%+v is drawn: %s", bad, text)
		}
		if _, err := bankSVG([]kernel.Tile{bad}); err == nil {
			t.Errorf("%+v has a picture", bad)
		}
	}
}

// Eight rows are all there is to see, and in the swizzled ones every column has eight bank groups.
func TestBankGridsRepeat(t *testing.T) {
	for rowBytes := 16; rowBytes <= 1024; rowBytes += 16 {
		tile := layout.Tile{Rows: 32, RowBytes: rowBytes}
		for _, l := range []layout.Swizzled{tile.Plain(), tile.Padded(), tile.Swizzled()} {
			for row := range 24 {
				for at := 0; at < rowBytes; at += 16 {
					if a, b := layout.BankGroup(l.Offset(row, at)), layout.BankGroup(l.Offset(row+8, at)); a != b {
						t.Fatalf("%v: byte %d is in group %d in row %d, %d eight rows below", l, at, a, row, b)
					}
				}
			}
		}
		x := testTile(32, rowBytes)
		grids, err := bankGrids(&x)
		if err != nil {
			t.Fatal(err)
		}
		for c := range min(rowBytes/16, gridChunks) {
			var groups []int
			for _, row := range grids[2].rows {
				groups = append(groups, row[c])
			}
			slices.Sort(groups)
			if !slices.Equal(groups, []int{0, 1, 2, 3, 4, 5, 6, 7}) {
				t.Fatalf("rows of %d bytes: column %d has the groups %v", rowBytes, c, groups)
			}
		}
	}
}

func TestKernelsShow(t *testing.T) {
	shown := decode[shownKernel](t, ok(t, "", "kernels", "show", "rmsnorm", "--target", "portable", "--json"))
	if len(shown.Kernels) != 1 || shown.Kernels[0].Target != "portable" || shown.Kernels[0].File != "portable/rmsnorm__any__portable.go" || shown.Tiles == nil {
		t.Errorf("%+v", shown)
	}
	// A GPU's kernel has the text of the architecture whose file serves it.
	for _, test := range [][3]string{
		{"sm_75", "ptx/gemm_q8_0__m64n64__sm_75.ptx", "mma.sync.aligned.m8n8k16"}, {"sm_80", "ptx/gemm_q8_0__m64n64__sm_80.ptx", "mma.sync.aligned.m16n8k32"},
		{"sm_86", "ptx/gemm_q8_0__m64n64__sm_80.ptx", "cp.async.cg.shared.global"},
	} {
		shown := decode[shownKernel](t, ok(t, "", "kernels", "show", "gemm_q8_0", "--target", "ptx", "--arch", test[0], "--config", "m64n64", "--json"))
		if len(shown.Kernels) != 1 {
			t.Fatalf("%d kernels for %s", len(shown.Kernels), test[0])
		}
		if k := shown.Kernels[0]; k.Figure == nil || k.Figure.Registers < 16 || k.Figure.Blocks < 1 || k.Figure.Limit == "" {
			t.Errorf("%s: %+v", k.Name, k.Figure)
		}
		if len(shown.Tiles) != 1 || shown.Tiles[0].RowBytes != 32 {
			t.Errorf("%s stages %+v", test[0], shown.Tiles)
		}
		if k := shown.Kernels[0]; k.File != test[1] || !strings.Contains(k.Text, test[2]) || !strings.Contains(k.IR, "kernel gemm_q8_0__m64n64") {
			t.Errorf("%s: %s from %s has no %s", test[0], k.Name, k.File, test[2])
		}
	}
	for _, test := range []struct {
		args []string
		want string
	}{
		{[]string{"rmsnorm", "--target", "ptx", "--arch", "sm_86", "--config", "g9"}, "op rmsnorm has no kernel with --target ptx --arch sm_86 --config g9; there are --target ptx --arch sm_86 --config any, g8"},
		{[]string{"rmsnorm", "--config", "m7"}, "op rmsnorm has no kernel with --config m7; there are --config any, g8"},
		{[]string{"rmsnorm", "--target", "ptc", "--arch", "sm_86"}, "msl, portable, ptx, spirv"},
		{[]string{"rmsnorm", "--target", "msl", "--arch", "sm_86"}, "; there are --target msl --arch metal3"},
		{[]string{"rmsnrm"}, `no op "rmsnrm", did you mean rmsnorm?`},
		{[]string{"attention"}, `no op "attention", did you mean attention_f16, attention_f32, attention_merge?`},
		{[]string{"nothing", "--arch", "sm_86"}, `no op "nothing"; there are `},
		{[]string{"rmsnorm", "--target", "portable", "--layout"}, "rmsnorm stages no tile under a swizzle; swizzle kernels report --layout draws the usual ones"},
	} {
		got := swizzle(t, "", append([]string{"kernels", "show"}, test.args...)...)
		if got.status != statusFailure || got.stdout != "" {
			t.Errorf("%q: %+v", test.args, got)
		}
		checkErrorLine(t, append([]string{"kernels", "show"}, test.args...), got.stderr, test.want)
	}
	none := swizzle(t, "", "kernels", "list", "--arch", "sm_86", "--config", "m7", "--json")
	if none.status != statusFailure || none.stdout != "" {
		t.Errorf("%+v", none)
	}
	checkErrorLine(t, []string{"kernels", "list"}, none.stderr, "no kernel with --arch sm_86 --config m7; there are --arch sm_86 --config any, ")
	for _, k := range decode[[]listedKernel](t, ok(t, "", "kernels", "list", "--json", "--target", "portable")) {
		if k.Target != "portable" || k.Arch != "portable" {
			t.Errorf("--target portable lists %+v", k)
		}
	}
}

func TestNoKernel(t *testing.T) {
	all := &catalog{
		kernels: []kernel.Kernel{{Name: kernel.Name{Op: "a", Config: "m1", Arch: "sm_86"}}, {Name: kernel.Name{Op: "a", Config: "m2", Arch: "sm_86"}}, {Name: kernel.Name{Op: "b", Config: "any", Arch: "portable"}}},
		targets: map[string]string{"sm_86": "ptx", "portable": "portable"},
	}
	rejected := []kernel.Rejection{{Op: "a", Config: "m9", Arch: "sm_86", Line: "a.go:7", Message: "needs 200 KiB of shared memory, the target has 99", Nearest: "m2"}}
	for _, test := range []struct {
		wanted   kernelFilter
		rejected []kernel.Rejection
		want     string
	}{
		{kernelFilter{Config: "m3"}, nil, "op a has no kernel with --config m3; there are --config m1, m2"},
		{kernelFilter{}, nil, "op a has no kernel that runs on this CPU; there are --arch sm_86"},
		{kernelFilter{Arch: "sm_86", Config: "m9"}, rejected, "op a has no kernel with --arch sm_86 --config m9: the generator rejected config m9 for sm_86: needs 200 KiB of shared memory, the target has 99; the nearest config that there is: m2"},
	} {
		if got := noKernel(all, "a", test.wanted, test.rejected).Error(); got != test.want {
			t.Errorf("%q, want %q", got, test.want)
		}
	}
	if got := (&shownKernel{Kernels: []kernelText{{Name: "a__m1__sm_86", Source: "a.go", IR: "kernel a {}\n", File: "ptx/a__m1__sm_86.ptx", Text: ".version 7.1\n"}}, Rejected: rejected}).String(); got !=
		"// a__m1__sm_86, from ir/ops/a.go\nkernel a {}\n\n// generated/ptx/a__m1__sm_86.ptx\n.version 7.1\n"+
			"\nrejected: a__m9__sm_86\n  a.go:7 needs 200 KiB of shared memory, the target has 99\n  the nearest config that there is: m2\n" {
		t.Errorf("%q", got)
	}
}
