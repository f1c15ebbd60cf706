// Package shim executes printed Metal kernels on a CPU, for tests. Clang compiles the text as C++, with headers that stand for
// Metal's standard library: a GPU thread is a fiber, and threads take turns at barriers and simdgroup operations only. Every
// case runs in three orders of threads and threadgroups, so that a missing barrier shows as different results.
// Accesses out of bounds, stores to what is read only, overflow of indices, barriers and shuffles that not all threads reach
// are errors.
//
// What it can't show: how Apple's compiler reads the text, how a GPU orders memory, whether it flushes subnormals, and how long
// anything takes.
package shim

import (
	"bytes"
	"context"
	"embed"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

//go:embed cpp
var sources embed.FS

// Compiler is the command that the package runs.
const Compiler = "clang++-19"

// Kernel is a printed kernel.
type Kernel struct {
	Symbol string
	Text   []byte
}

// Toolchain compiles kernels in a folder of its own.
type Toolchain struct {
	dir    string
	runner func() error // compiles the runner, once
}

// New returns a toolchain that keeps its files in dir, or an error that wraps [exec.ErrNotFound] where there is no compiler.
func New(dir string) (*Toolchain, error) {
	if _, err := exec.LookPath(Compiler); err != nil {
		return nil, fmt.Errorf("run Metal kernels on the CPU: %w", err)
	}
	err := fs.WalkDir(sources, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		to := filepath.Join(dir, filepath.FromSlash(path))
		if d.IsDir() {
			return os.MkdirAll(to, 0o777)
		}
		text, err := sources.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, text, 0o666)
	})
	if err != nil {
		return nil, fmt.Errorf("write the shim: %w", err)
	}
	t := &Toolchain{dir: dir}
	t.runner = sync.OnceValue(func() error {
		return t.compile("-std=c++17", "-c", "-O2", "-o", t.path("runner.o"), t.path("cpp", "run", "runner.cpp"))
	})
	return t, nil
}

func (t *Toolchain) path(elem ...string) string {
	return filepath.Join(append([]string{t.dir}, elem...)...)
}

// compile runs the compiler.
func (t *Toolchain) compile(args ...string) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	defer cancel()
	args = append([]string{"-Wall", "-Wextra", "-Werror", "-fno-exceptions", "-fno-rtti", "-U_FORTIFY_SOURCE"}, args...)
	if out, err := exec.CommandContext(ctx, Compiler, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%.4000s", Compiler, err, out)
	}
	return nil
}

// unit writes a translation unit of the kernels, each in a namespace of its own, and what after prints.
func (t *Toolchain) unit(name string, kernels []Kernel, after func(text *strings.Builder) error) (file string, err error) {
	var text strings.Builder
	text.WriteString("#include <metal_stdlib>\n")
	for n, k := range kernels {
		include := fmt.Sprintf("%s_%d.metal", name, n)
		// The address space threadgroup is a macro, and would be one within the attribute of that name.
		body := bytes.ReplaceAll(k.Text, []byte("[[threadgroup("), []byte("[[threadgroup_memory("))
		if err := os.WriteFile(t.path(include), body, 0o666); err != nil {
			return "", err
		}
		fmt.Fprintf(&text, "namespace k%d {\n#include \"%s\"\n}\n#undef F\n#undef U\n", n, include)
	}
	if err := after(&text); err != nil {
		return "", err
	}
	file = t.path(name + ".cpp")
	return file, os.WriteFile(file, []byte(text.String()), 0o666)
}

// What Metal accepts and clang warns of.
var quiet = []string{"-Wno-unknown-pragmas", "-Wno-unknown-attributes", "-Wno-unused", "-Wno-unused-parameter", "-Wno-parentheses", "-Wno-tautological-compare"}

// Check parses the kernels as C++ for OpenCL, whose address spaces are Metal's, and returns what the compiler refuses. name is
// that of the files.
func (t *Toolchain) Check(name string, kernels []Kernel) error {
	file, err := t.unit(name+"_check", kernels, func(*strings.Builder) error { return nil })
	if err != nil {
		return fmt.Errorf("check address spaces of %s: %w", name, err)
	}
	args := append([]string{"-x", "clcpp", "-cl-std=clc++2021", "-cl-no-stdinc", "-target", "spir64-unknown-unknown", "-fsyntax-only", "-isystem", t.path("cpp", "check")}, quiet...)
	if err := t.compile(append(args, file)...); err != nil {
		return fmt.Errorf("check address spaces of %s: %w", name, err)
	}
	return nil
}

// Program runs some kernels.
type Program struct {
	file   string
	number map[string]int // by symbol
}

// Build compiles the kernels, as one translation unit, into a program. name is that of its files.
func (t *Toolchain) Build(name string, kernels []Kernel) (*Program, error) {
	fail := func(err error) (*Program, error) { return nil, fmt.Errorf("build %s: %w", name, err) }
	if err := t.runner(); err != nil {
		return fail(err)
	}
	p := &Program{t.path(name), map[string]int{}}
	file, err := t.unit(name, kernels, func(text *strings.Builder) error {
		var table strings.Builder
		for n, k := range kernels {
			if _, twice := p.number[k.Symbol]; twice {
				return fmt.Errorf("two kernels are named %s", k.Symbol)
			}
			p.number[k.Symbol] = n
			s, err := parse(k.Text)
			if err != nil {
				return err
			}
			if s.symbol != k.Symbol {
				return fmt.Errorf("kernel %s is named %s in its text", k.Symbol, s.symbol)
			}
			if err := s.launcher(text, n); err != nil {
				return err
			}
			fmt.Fprintf(&table, "{\"%s\", %d, sizeof(k%d::Args), launch%d},\n", k.Symbol, s.argsIndex(), n, n)
		}
		fmt.Fprintf(text, "const shim::Kernel shim::kernels[] = {\n%s};\nconst unsigned shim::kernelCount = %d;\n", table.String(), len(kernels))
		return nil
	})
	if err != nil {
		return fail(err)
	}
	args := append([]string{"-std=c++17", "-O1", "-ffp-contract=off", "-fsigned-char", "-isystem", t.path("cpp", "run"),
		"-fsanitize=signed-integer-overflow,integer-divide-by-zero,bounds,alignment,shift", "-fsanitize-trap=all"}, quiet...)
	if err := t.compile(append(args, "-o", p.file, file, t.path("runner.o"))...); err != nil {
		return fail(err)
	}
	return p, nil
}

// Case is a launch of a kernel.
type Case struct {
	Symbol        string
	Threads       int // in a threadgroup
	Shared        int // bytes of threadgroup memory
	Width, Height int // of the grid in threadgroups
	Buffers       []Buffer
	Ints          []int32 // parameters by slot
	Floats        []float32
}

// Buffer is an argument of a launch.
type Buffer struct {
	Contents []byte
	Writable bool
}

// Result is what one order of a case did: an error, or the contents of the buffers.
type Result struct {
	Order   string
	Buffers [][]byte
	Err     error
}

// Orders are the orders of threads and threadgroups that a case runs in.
var Orders = []string{"forward", "reverse", "shuffled"}

// Run runs the cases and returns a result for each order of each.
func (p *Program) Run(cases []Case) ([][]Result, error) {
	var in bytes.Buffer
	word := func(n int) { in.Write(binary.LittleEndian.AppendUint32(nil, uint32(n))) }
	padded := func(b []byte) {
		word(len(b))
		in.Write(b)
		in.Write(make([]byte, -len(b)&3))
	}
	for _, c := range cases {
		n, ok := p.number[c.Symbol]
		if !ok {
			return nil, fmt.Errorf("run %s: the program has no such kernel", c.Symbol)
		}
		for _, x := range []int{n, c.Threads, c.Shared, c.Width, c.Height, len(c.Buffers) + 1} {
			word(x)
		}
		for slot, b := range c.Buffers {
			word(slot)
			if b.Writable {
				word(1)
			} else {
				word(0)
			}
			padded(b.Contents)
		}
		var args []byte
		for _, n := range c.Ints {
			args = binary.LittleEndian.AppendUint32(args, uint32(n))
		}
		for _, f := range c.Floats {
			args = binary.LittleEndian.AppendUint32(args, math.Float32bits(f))
		}
		word(argsBuffer)
		word(0)
		padded(binary.LittleEndian.AppendUint32(args, 0)) // +0
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.file)
	cmd.Stdin = &in
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("run %s: %w: %s", filepath.Base(p.file), err, stderr.String())
	}
	return results(cases, out)
}

// argsBuffer is the index of the parameters.
const argsBuffer = 12

var errShort = errors.New("the program's output is too short")

// results reads the program's output.
func results(cases []Case, out []byte) ([][]Result, error) {
	take := func(n int) ([]byte, error) {
		full := (n + 3) &^ 3
		if n < 0 || full > len(out) {
			return nil, errShort
		}
		b := out[:n:n]
		out = out[full:]
		return b, nil
	}
	var all [][]Result
	for _, c := range cases {
		var list []Result
		for _, order := range Orders {
			r := Result{Order: order}
			b, err := take(4)
			if err != nil {
				return nil, err
			}
			if n := int(binary.LittleEndian.Uint32(b)); n > 0 {
				if n > len(out) {
					return nil, errShort
				}
				r.Err = errors.New(string(out[:n]))
				out = out[n:]
				list = append(list, r)
				continue
			}
			for _, b := range c.Buffers {
				contents := b.Contents
				if b.Writable {
					if contents, err = take(len(contents)); err != nil {
						return nil, err
					}
				}
				r.Buffers = append(r.Buffers, contents)
			}
			list = append(list, r)
		}
		all = append(all, list)
	}
	return all, nil
}
