package ptx

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/swizzle-rt/swizzle/backends/checkers"
)

var exhaustive = flag.Bool("exhaustive", false, "assemble every kernel for every architecture")

// assembled is what ptxas says of a kernel.
type assembled struct {
	cubin             string // file
	registers, shared int
}

var (
	usedRegisters = regexp.MustCompile(`Used (\d+) registers`)
	usedShared    = regexp.MustCompile(`(\d+) bytes smem`)
)

// assemble runs ptxas, which must have nothing to complain of: no spill, no warning.
func assemble(t testing.TB, arch string, text []byte) (*assembled, error) {
	t.Helper()
	ptxas := checkers.Need(t, "ptxas")
	dir := t.TempDir()
	source := filepath.Join(dir, "kernel.ptx")
	if err := os.WriteFile(source, text, 0o666); err != nil {
		return nil, err
	}
	a := &assembled{cubin: filepath.Join(dir, "kernel.cubin")}
	out, err := exec.Command(ptxas, "-arch", arch, "-v", "-warn-spills", "-Werror", "-o", a.cubin, source).CombinedOutput()
	if err != nil {
		return nil, fmt.Errorf("ptxas: %w\n%s\n%s", err, out, number(text))
	}
	find := func(r *regexp.Regexp) int {
		n := 0
		if m := r.FindSubmatch(out); m != nil {
			n, _ = strconv.Atoi(string(m[1]))
		}
		return n
	}
	a.registers, a.shared = find(usedRegisters), find(usedShared)
	return a, nil
}

// number returns the first lines of a text with their numbers.
func number(text []byte) string {
	var b strings.Builder
	for n, line := range bytes.Split(text, []byte("\n")) {
		if n == 400 {
			break
		}
		fmt.Fprintf(&b, "%4d %s\n", n+1, line)
	}
	return b.String()
}

var opcode = regexp.MustCompile(`(?m)^\s+/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P\w+ )?([A-Z0-9_.]+)`)

// opcodes counts the machine instructions of a cubin.
func opcodes(t testing.TB, cubin string) map[string]int {
	t.Helper()
	checkers.Need(t, "nvdisasm") // cuobjdump runs it
	out, err := exec.Command(checkers.Need(t, "cuobjdump"), "-sass", cubin).CombinedOutput()
	if err != nil {
		t.Fatalf("cuobjdump: %v\n%s", err, out)
	}
	count := map[string]int{}
	for _, m := range opcode.FindAllStringSubmatch(string(out), -1) {
		count[m[1]]++
	}
	return count
}

// has reports how many of the instructions have a name that starts so.
func has(count map[string]int, prefix string) int {
	n := 0
	for name, c := range count {
		if strings.HasPrefix(name, prefix) {
			n += c
		}
	}
	return n
}

// each calls f for 0 … n−1 on all cores.
func each(n int, f func(i int)) {
	var wg sync.WaitGroup
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				f(i)
			}
		})
	}
	for i := range n {
		next <- i
	}
	close(next)
	wg.Wait()
}
