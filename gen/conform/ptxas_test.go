package conform

import (
	"bytes"
	"debug/elf"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/swizzle-rt/swizzle/backends/checkers"
	"github.com/swizzle-rt/swizzle/backends/ptx"
	"github.com/swizzle-rt/swizzle/generated"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

var figures = flag.Bool("figures", false, "write backends/ptx/figures.json, what ptxas makes of the kernels")

// NVIDIA's assembler takes every PTX kernel for every architecture that it serves, without a warning or a spill; a block of
// it fits; its registers and instructions are those on record.
func TestPTXAssembles(t *testing.T) {
	if testing.Short() {
		t.Skip("assembles every kernel")
	}
	ptxas := checkers.Need(t, "ptxas")
	m := manifest(t)
	list, err := m.GPU()
	if err != nil {
		t.Fatal(err)
	}
	list = slices.DeleteFunc(list, func(k kernel.Kernel) bool { return !strings.HasPrefix(k.Launch.File, "ptx/") })
	got := map[string]map[string]ptx.Figure{}
	var mu sync.Mutex
	dir := t.TempDir()
	var workers sync.WaitGroup
	next := make(chan *kernel.Kernel)
	for w := range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for k := range next {
				f, err := assemble(ptxas, k, filepath.Join(dir, strconv.Itoa(w)))
				if err != nil {
					t.Errorf("%s: %v", k.Name, err)
					continue
				}
				mu.Lock()
				entry := k.Name.Entry()
				if got[entry] == nil {
					got[entry] = map[string]ptx.Figure{}
				}
				got[entry][k.Name.Arch] = f
				mu.Unlock()
			}
		})
	}
	for i := range list {
		next <- &list[i]
	}
	close(next)
	workers.Wait()
	t.Logf("%d kernels assembled from %d files", len(list), len(got))
	if *figures {
		if err := os.WriteFile("../../backends/ptx/figures.json", figuresText(got), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := ptx.Figures()
	if err != nil {
		t.Fatal(err)
	}
	wrong := 0
	for entry := range maps.Keys(want) {
		if !maps.Equal(got[entry], want[entry]) {
			t.Logf("%s: %v, on record are %v", entry, got[entry], want[entry])
			wrong++
		}
	}
	if wrong > 0 || len(want) != len(got) {
		t.Errorf("%d kernels of %d have other figures than on record, where %d are: make figures takes them anew", wrong, len(got), len(want))
	}
}

var (
	usedRegisters = regexp.MustCompile(`Used (\d+) registers`)
	usedShared    = regexp.MustCompile(`(\d+) bytes smem`)
)

// assemble assembles a kernel for its architecture and checks what of a multiprocessor a block takes.
func assemble(ptxas string, k *kernel.Kernel, base string) (f ptx.Figure, err error) {
	text, err := generated.Files.ReadFile(k.Launch.File)
	if err != nil {
		return f, err
	}
	if err := os.WriteFile(base+".ptx", text, 0o666); err != nil {
		return f, err
	}
	out, err := exec.Command(ptxas, "-arch", k.Name.Arch, "-v", "-warn-spills", "-Werror", "-o", base+".cubin", base+".ptx").CombinedOutput()
	if err != nil {
		return f, fmt.Errorf("ptxas: %w\n%s", err, out)
	}
	find := func(r *regexp.Regexp) (n int) {
		if m := r.FindSubmatch(out); m != nil {
			n, _ = strconv.Atoi(string(m[1])) // digits
		}
		return n
	}
	shared := find(usedShared)
	f.Registers = find(usedRegisters)
	if f.Instructions, err = instructions(base+".cubin", k.Name.Entry()); err != nil {
		return f, err
	}
	const reserved = 1024 // by the system, from sm_80 on
	if shared < k.Shared || shared > k.Shared+reserved {
		return f, fmt.Errorf("%d bytes of shared memory; the manifest says %d", shared, k.Shared)
	}
	if blocks, limiter := ptx.Occupancy(k.Name.Arch, f.Registers, k.Launch.Threads, shared); blocks < 1 {
		return f, fmt.Errorf("no block fits, for its %s: %d registers, %d threads, %d bytes of shared memory", limiter, f.Registers, k.Launch.Threads, shared)
	}
	return f, nil
}

// instructions counts those of a kernel in a cubin.
func instructions(cubin, entry string) (int, error) {
	f, err := elf.Open(cubin)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	s := f.Section(".text." + entry)
	if s == nil || s.Size%16 != 0 || s.Size == 0 {
		return 0, fmt.Errorf("%s has no code of %s", cubin, entry)
	}
	return int(s.Size / 16), nil
}

// figuresText is JSON with a line for each kernel.
func figuresText(figures map[string]map[string]ptx.Figure) []byte {
	var b bytes.Buffer
	for n, entry := range slices.Sorted(maps.Keys(figures)) {
		line, err := json.Marshal(figures[entry])
		if err != nil {
			panic(err) // numbers
		}
		fmt.Fprintf(&b, "%s\n%q:%s", []string{"{", ","}[min(n, 1)], entry, line)
	}
	b.WriteString("\n}\n")
	return b.Bytes()
}
