// Package portable prints kernels as plain Go: the fallback for every GOARCH, the check that tuned kernels run against, and
// the template for a new backend.
//
// A straight line of varying instructions becomes one loop over the lanes with scalar locals; a value that another lane or
// another such loop uses becomes an array with an entry a lane. Uniform values are Go scalars. Memory is read and written
// through unsafe pointers without alignment, in the machine's byte order, which must be little-endian. Buffers of one call
// don't overlap unless they are the same parameter.
package portable

import (
	"fmt"

	"github.com/dave/jennifer/jen"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/lower"
	"github.com/swizzle-rt/swizzle/ir/target"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// Arch is the backend's name in kernel names.
const Arch = "portable"

// Caps returns what portable Go can do: every op but those of matrix units and asynchronous copies.
func Caps() *target.Caps {
	c := &target.Caps{Arch: Arch, Family: target.CPU, Native: map[ir.Op]bool{}, DotUMax: 255, Shared: kernel.ScratchBytes, Threads: 32}
	for _, op := range ir.Ops() {
		switch op {
		case ir.OpAsyncCopy, ir.OpAsyncCommit, ir.OpAsyncWait, ir.OpLdMatrix, ir.OpMMA, ir.OpFragCoord:
		default:
			c.Native[op] = true
		}
	}
	return c
}

// Emit returns the kernel as a Go function of type kernel.Func with that name, a pragma before it. It takes the kernel as
// the schedule built it and lowers it itself: long unrolled loops stay loops.
func Emit(k *ir.Kernel, symbol string) (*jen.Statement, error) {
	if err := check(k); err != nil {
		return nil, err
	}
	k, err := lower.Run(k, passes)
	if err != nil {
		return nil, err
	}
	p := &printer{plan: newPlan(k), params: map[*ir.Param]bool{}, shared: map[*ir.Array]bool{}, tiles: map[int64]bool{}}
	f := p.function(symbol)
	if p.err != nil {
		return nil, p.err
	}
	return f, nil
}

var passes = []lower.Pass{
	{Name: "unroll", Run: unroll},
	{Name: "share", Run: lower.Share},
}

func check(k *ir.Kernel) error {
	fail := func(pos ir.Pos, stmt, format string, args ...any) error {
		return &ir.Error{Kernel: k.Name, Pos: pos, Stmt: stmt, Msg: fmt.Sprintf(format, args...)}
	}
	if k.Groups != 1 || k.Lanes < 4 || k.Lanes&(k.Lanes-1) != 0 {
		return fail(ir.Pos{}, "", "%d groups of %d lanes; a CPU kernel has one group of 8, 16 or 32", k.Groups, k.Lanes)
	}
	if n := k.SharedBytes(); n > kernel.ScratchBytes {
		return fail(ir.Pos{}, "", "%d bytes of shared arrays; a worker has %d", n, kernel.ScratchBytes)
	}
	var err error
	caps := Caps()
	ir.Walk(k.Body, func(s ir.Stmt) {
		if i, ok := s.(*ir.Instr); ok && err == nil && !caps.Has(i.Op) {
			err = fail(i.Pos, ir.Format(k, i), "portable Go has no %s", i.Op)
		}
	})
	return err
}
