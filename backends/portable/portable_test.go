package portable

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"

	"github.com/dave/jennifer/jen"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
)

// A trial is a kernel with arguments. Every buffer of the kernel gets words of its own.
type trial struct {
	name   string
	kernel *ir.Kernel
	args   interp.Args
}

// emitted is a program that runs printed kernels on trials: it reads their numbers and arguments and writes the buffers.
type emitted struct {
	t       *testing.T
	dir     string
	overlay string
}

const emittedPackage = "./backends/portable/emitted" // exists in the overlay only

const runner = `package main

import (
	"encoding/binary"
	"io"
	"os"
	"unsafe"

	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

func main() {
	in, err := io.ReadAll(os.Stdin)
	if err != nil {
		panic(err)
	}
	word := func() int {
		n := binary.LittleEndian.Uint64(in)
		in = in[8:]
		return int(n)
	}
	scratch := make([]byte, kernel.ScratchBytes+64)
	for len(in) > 0 {
		a := new(kernel.Args)
		f := kernels[word()]
		a.Scratch = unsafe.Add(unsafe.Pointer(&scratch[0]), 1) // any alignment
		var bufs [][]byte
		for i := range word() {
			n := word()
			b := make([]byte, (n+63)&^63+64+1)
			for i := range b {
				b[i] = 0xA5
			}
			b = b[i&1:] // any alignment
			in = in[copy(b[:n], in):]
			a.Buf[i] = unsafe.Pointer(&b[0])
			bufs = append(bufs, b[:n])
		}
		for i := range word() {
			a.Int[i] = int64(word())
		}
		for i := range word() {
			w := uint32(word())
			a.F32[i] = *(*float32)(unsafe.Pointer(&w))
		}
		tiles := word()
		f(a, 0, tiles/3)
		f(a, tiles/3, tiles/3)
		f(a, tiles/3, tiles)
		for _, b := range bufs {
			os.Stdout.Write(b)
			for _, x := range b[len(b) : len(b)+8] {
				if x != 0xA5 {
					panic("a store went past the end of a buffer")
				}
			}
		}
	}
}
`

// compile writes the kernels' Go into a package of the repository that exists in a build overlay only.
func compile(t *testing.T, kernels []*ir.Kernel) *emitted {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatal(err)
		}
		t.Skip("needs the go command to compile what is printed")
	}
	f := jen.NewFile("main")
	var list []jen.Code
	for n, k := range kernels {
		symbol := fmt.Sprintf("kernel%d", n)
		code, err := Emit(k, symbol)
		if err != nil {
			t.Fatal(err)
		}
		f.Add(code)
		list = append(list, jen.Line().Id(symbol))
	}
	f.Var().Id("kernels").Op("=").Index().Qual(kernelPath, "Func").Values(list...)
	e := &emitted{t: t, dir: t.TempDir()}
	var src bytes.Buffer
	if err := f.Render(&src); err != nil {
		t.Fatal(err)
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	replace := map[string]string{}
	for file, text := range map[string][]byte{"main.go": []byte(runner), "kernels.go": src.Bytes()} {
		real := filepath.Join(e.dir, file)
		if err := os.WriteFile(real, text, 0o666); err != nil {
			t.Fatal(err)
		}
		replace[filepath.Join(root, emittedPackage, file)] = real
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		t.Fatal(err)
	}
	e.overlay = filepath.Join(e.dir, "overlay.json")
	if err := os.WriteFile(e.overlay, text, 0o666); err != nil {
		t.Fatal(err)
	}
	return e
}

// build compiles the program for an architecture and returns the binary's path and the assembly of the kernels.
func (e *emitted) build(name string, env ...string) (bin, asm string) {
	e.t.Helper()
	bin = filepath.Join(e.dir, name)
	cmd := exec.Command("go", "build", "-overlay", e.overlay, "-gcflags=-S", "-o", bin, emittedPackage)
	cmd.Dir = "../.."
	cmd.Env = append(os.Environ(), append([]string{"CGO_ENABLED=0"}, env...)...)
	out, err := cmd.CombinedOutput()
	if err != nil {
		e.t.Fatalf("go build %v: %v\n%.4000s", env, err, out)
	}
	return bin, string(out)
}

// run executes the trials and compares every buffer with the interpreter's.
func (e *emitted) run(bin string, number map[*ir.Kernel]int, trials []trial, want [][][]byte) {
	e.t.Helper()
	var in bytes.Buffer
	word := func(n int) { _ = binary.Write(&in, binary.LittleEndian, uint64(n)) }
	for _, x := range trials {
		word(number[x.kernel])
		word(len(x.args.Buffers))
		for _, b := range x.args.Buffers {
			word(len(b))
			in.Write(b)
		}
		word(len(x.args.Ints))
		for _, n := range x.args.Ints {
			word(int(n))
		}
		word(len(x.args.Floats))
		for _, f := range x.args.Floats {
			word(int(math.Float32bits(f)))
		}
		word(int(interp.Tiles(x.kernel, x.args.Ints)))
	}
	cmd := exec.Command(bin)
	cmd.Stdin = &in
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		e.t.Fatalf("%s: %v\n%s", filepath.Base(bin), err, stderr.String())
	}
	failed := 0
	for n, x := range trials {
		for b, w := range want[n] {
			got := out[:len(w)]
			out = out[len(w):]
			if at := differ(got, w, bufferType(x.kernel, b)); at >= 0 && failed < 10 {
				failed++
				e.t.Errorf("%s: buffer %d differs at byte %d: % x, want % x", x.name, b, at, got[at:min(at+8, len(got))], w[at:min(at+8, len(w))])
			}
		}
	}
}

func bufferType(k *ir.Kernel, slot int) ir.Type {
	for _, p := range k.Params {
		if p.Kind == ir.Buffer && p.Slot == slot {
			return p.Type
		}
	}
	return ir.Invalid
}

// differ returns the first byte where two buffers differ, −1 if none; all NaNs of F32 elements are one.
func differ(a, b []byte, t ir.Type) int {
	if t != ir.F32 {
		for i := range a {
			if a[i] != b[i] {
				return i
			}
		}
		return -1
	}
	for i := 0; i+4 <= len(a); i += 4 {
		x, y := binary.LittleEndian.Uint32(a[i:]), binary.LittleEndian.Uint32(b[i:])
		if x != y && !(isNaN(x) && isNaN(y)) {
			return i
		}
	}
	return -1
}

func isNaN(w uint32) bool { return w&0x7FFFFFFF > 0x7F800000 }

// expect runs the interpreter on copies of the arguments.
func expect(t *testing.T, trials []trial) [][][]byte {
	t.Helper()
	var want [][][]byte
	for _, x := range trials {
		a := x.args
		a.Buffers = nil
		for _, b := range x.args.Buffers {
			a.Buffers = append(a.Buffers, bytes.Clone(b))
		}
		if _, err := interp.Run(x.kernel, a); err != nil {
			t.Fatalf("%s: interpreter: %v", x.name, err)
		}
		want = append(want, a.Buffers)
	}
	return want
}

// fused finds fused multiply-adds in assembly.
var fused = regexp.MustCompile(`\b(VF(N?)M(ADD|SUB)\w*|FN?M(ADD|SUB)[SD])\b`)

func TestEmittedEqualsInterpreter(t *testing.T) {
	trials := opTrials(t)
	trials = append(trials, programTrials(t)...)
	trials = append(trials, randomTrials(t, 16)...)
	var kernels []*ir.Kernel
	number := map[*ir.Kernel]int{}
	for _, x := range trials {
		if _, ok := number[x.kernel]; !ok {
			number[x.kernel] = len(kernels)
			kernels = append(kernels, x.kernel)
		}
	}
	want := expect(t, trials)
	e := compile(t, kernels)

	bin, _ := e.build("native")
	e.run(bin, number, trials, want)
	_, asm := e.build("arm64", "GOOS=linux", "GOARCH=arm64")
	if m := fused.FindString(asm); m != "" || !strings.Contains(asm, "FMULS") {
		t.Errorf("arm64: found %q; no product may be fused", m)
	}
	if runtime.GOARCH == "amd64" {
		bin, asm = e.build("v3", "GOAMD64=v3")
		if m := fused.FindString(asm); m != "" || !strings.Contains(asm, "MULSS") {
			t.Errorf("GOAMD64=v3: found %q; no product may be fused", m)
		}
		if supportsV3() {
			e.run(bin, number, trials, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		name   string
		groups int
		build  func(b *ir.Builder)
		want   string
	}{
		{"async", 1, func(b *ir.Builder) {
			s := b.Shared("s", ir.U32, 64)
			b.AsyncCopy(s, 0, b.In("x", ir.U32), 0, nil)
		}, "async.copy"},
		{"groups", 2, func(b *ir.Builder) { b.Barrier() }, "2 groups"},
		{"shared", 1, func(b *ir.Builder) { b.Shared("s", ir.F32, 20000) }, "shared"},
	} {
		k, err := ir.Build(c.name, 16, c.groups, c.build)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Emit(k, "f"); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v does not mention %q", c.name, err, c.want)
		}
	}
}

func TestCapsCoverWhatIsPrinted(t *testing.T) {
	tried := map[ir.Op]bool{}
	for _, x := range append(opTrials(t), programTrials(t)...) {
		ir.Walk(x.kernel.Body, func(s ir.Stmt) {
			if i, ok := s.(*ir.Instr); ok {
				tried[i.Op] = true
			}
		})
	}
	for _, op := range ir.Ops() {
		if Caps().Has(op) && !tried[op] {
			t.Errorf("no test kernel has %s", op)
		}
	}
}

// ---- data

// extremes are words that are special as floats, integers or bytes.
var extremes = []uint32{
	0, 1, 0x80000000, 0x80000001, 0x7FFFFFFF, 0xFFFFFFFF, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00000, 0xFFC00001,
	0x7F7FFFFF, 0x00800000, 0x007FFFFF, 0x33800000, 0x477FE000, 0x47800000, 0x80808080, 0x7F7F7F7F, 0x81818181, 0x00FFFFFF, 31, 32, 33,
}

func words(r *rand.Rand, n int) []byte {
	b := make([]byte, 4*n)
	for i := range n {
		w := r.Uint32()
		switch r.IntN(4) {
		case 0:
			w = extremes[r.IntN(len(extremes))]
		case 1:
			w = math.Float32bits(float32(r.NormFloat64()))
		}
		binary.LittleEndian.PutUint32(b[4*i:], w)
	}
	return b
}

func mapWords(b []byte, f func(uint32) uint32) {
	for i := 0; i+4 <= len(b); i += 4 {
		binary.LittleEndian.PutUint32(b[i:], f(binary.LittleEndian.Uint32(b[i:])))
	}
}

func mustBuild(t *testing.T, name string, lanes int, f func(b *ir.Builder)) *ir.Kernel {
	t.Helper()
	k, err := ir.Build(strings.ReplaceAll(name, ".", "_"), lanes, 1, f)
	if err != nil {
		t.Fatal(err)
	}
	return k
}
