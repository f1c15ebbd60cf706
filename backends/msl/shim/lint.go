package shim

import (
	"bytes"
	"errors"
	"fmt"
	"regexp"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/lower"
)

// The first lines of a file, comments apart.
var pragmas = []byte("#pragma METAL fp math_mode(safe)\n#pragma METAL fp contract(off)\n#include <metal_stdlib>\n")

var (
	// Functions and types whose results depend on the device, or that have no specified order.
	banned = regexp.MustCompile(`\b(simd_(sum|product|max|min|prefix_\w+|shuffle_(up|down|rotate_\w+))|quad_\w+|simdgroup_\w*matrix\w*|(half|bfloat)\d?\b|fast::\w+|precise::\w+|exp2?|log2?|r?sqrt|tanh|sin|cos|pow|dot|mad|fmin|fmax|clamp|saturate|atomic_\w+)\b`)
	fused  = regexp.MustCompile(`\bfma\(`)
	// Constants of floats are bit patterns.
	decimal = regexp.MustCompile(`\b\d+\.\d*|\b\d+f\b|\.\d`)
	zeros   = regexp.MustCompile(`\bF\((0x0*|0|0x80000000)u?\)`)
)

// Lint returns what is wrong with a kernel's text that execution doesn't show: the pragmas that keep a compiler from changing
// floats, attributes and types of buffers, functions that give other bits on other devices, fma where the kernel has no exact
// product, literal zeros. k is the kernel as built.
func Lint(k *ir.Kernel, text []byte) error {
	var errs []error
	fail := func(format string, args ...any) {
		errs = append(errs, fmt.Errorf("kernel %s: "+format, append([]any{k.Name}, args...)...))
	}
	start := text
	for bytes.HasPrefix(start, []byte("//")) {
		_, start, _ = bytes.Cut(start, []byte("\n"))
	}
	if !bytes.HasPrefix(start, pragmas) {
		fail("the file doesn't start with the pragmas of safe mathematics")
	}
	code := regexp.MustCompile(`//.*`).ReplaceAll(text, nil)
	for _, c := range []struct {
		pattern *regexp.Regexp
		what    string
	}{{banned, "gives other bits on other devices"}, {decimal, "is a float constant that is no bit pattern"}, {zeros, "is a zero that a compiler may fold; it is a parameter"}} {
		// The first lines hold the pragmas' words.
		if m := c.pattern.Find(bytes.Replace(code, pragmas, nil, 1)); m != nil {
			fail("%s %s", m, c.what)
		}
	}
	if exact, err := exactProducts(k); err != nil {
		fail("%w", err)
	} else if n := len(fused.FindAll(code, -1)); n > exact {
		fail("%d calls of fma for %d exact products", n, exact)
	}
	if s, err := parse(text); err != nil {
		fail("%w", err)
	} else {
		lintBuffers(k, s, fail)
	}
	return errors.Join(errs...)
}

// exactProducts counts what may be fused, after unrolling.
func exactProducts(k *ir.Kernel) (n int, err error) {
	k, err = lower.Run(k, lower.GPU)
	if err != nil {
		return 0, err
	}
	ir.Walk(k.Body, func(s ir.Stmt) {
		if i, ok := s.(*ir.Instr); ok && i.Op == ir.OpFMAExact {
			n++
		}
	})
	return n, nil
}

// lintBuffers compares the bindings with the kernel's parameters.
func lintBuffers(k *ir.Kernel, s *signature, fail func(format string, args ...any)) {
	bound := map[int]string{}
	for _, p := range s.params {
		if p.attribute != "buffer" {
			continue
		}
		if other, twice := bound[p.index]; twice {
			fail("%s and %s are both buffer %d", other, p.kind, p.index)
		}
		bound[p.index] = p.kind
		if p.index < 0 || p.index > maxBuffer {
			fail("buffer index %d; 0 … %d are possible", p.index, maxBuffer)
		}
	}
	if t := bound[argsBuffer]; t != "constant Args&" {
		fail("buffer %d is %q, not the parameters", argsBuffer, t)
	}
	n := 1
	for _, p := range k.Params {
		if p.Kind != ir.Buffer {
			continue
		}
		n++
		want := regexp.MustCompile(`^device \w+\*$`)
		if p.Access == ir.In {
			want = regexp.MustCompile(`^device const \w+\*$`)
		}
		if t := bound[p.Slot]; !want.MatchString(t) {
			fail("buffer %d, %s, is %q", p.Slot, p.Name, t)
		}
	}
	if len(bound) != n {
		fail("%d buffers are bound, want %d", len(bound), n)
	}
}
