package conform

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"testing"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/ops"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// A stage is memory in which kernels run one after the other.
type stage struct {
	buffers [kernel.Buffers]arena
	scratch arena
	args    kernel.Args
}

func newStage(t testing.TB) *stage {
	s := new(stage)
	t.Cleanup(func() {
		for i := range s.buffers {
			if err := s.buffers[i].free(); err != nil {
				t.Error(err)
			}
		}
		if err := s.scratch.free(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// span is the tiles from lo to hi−1, the argument of one call.
type span struct{ lo, hi int }

// whole runs the grid in one call.
func whole(tiles int) []span { return []span{{0, tiles}} }

// scattered cuts the grid at random places and shuffles the calls; one of them is empty.
func scattered(seed uint64) func(tiles int) []span {
	return func(tiles int) []span {
		r := rand.New(rand.NewPCG(seed, 1))
		empty := r.IntN(tiles + 1)
		calls := []span{{empty, empty}}
		for lo := 0; lo < tiles; {
			hi := lo + 1 + r.IntN(min(4, tiles-lo))
			calls = append(calls, span{lo, hi})
			lo = hi
		}
		r.Shuffle(len(calls), func(i, j int) { calls[i], calls[j] = calls[j], calls[i] })
		return calls
	}
}

// singly runs one tile a call, the last one first.
func singly(tiles int) []span {
	var calls []span
	for n := tiles; n > 0; n-- {
		calls = append(calls, span{n - 1, n})
	}
	return calls
}

// set places the case's buffers and fills the argument block. Slots that the kernel doesn't name get nil pointers and
// numbers that would lead far away.
func (s *stage) set(k *kernel.Kernel, c *ops.Case, p placement) error {
	s.args = kernel.Args{}
	for i := range s.args.Int {
		s.args.Int[i] = -0x5A5A5A5A5A5A5A5A
	}
	for i := range s.args.F32 {
		s.args.F32[i] = 1e30
	}
	for _, q := range k.Params {
		var known bool
		switch q.Kind {
		case kernel.Buffer:
			var content []byte
			content, known = c.Buf[q.Name]
			t, ok := ir.ParseType(q.Type)
			if !ok {
				return fmt.Errorf("parameter %s has the type %q", q.Name, q.Type)
			}
			var err error
			if s.args.Buf[q.Slot], err = s.buffers[q.Slot].place(content, p, t.Bytes()); err != nil {
				return err
			}
		case kernel.Int:
			s.args.Int[q.Slot], known = c.Int[q.Name]
		case kernel.Float:
			s.args.F32[q.Slot], known = c.Float[q.Name]
		}
		if !known {
			return fmt.Errorf("the case has no value for parameter %s", q.Name)
		}
	}
	return nil
}

// lend gives the calls that follow scratch with undefined contents, as much as the kernel asks for.
func lend(k *kernel.Kernel, a *kernel.Args, scratch *arena, p placement) (err error) {
	if k.Shared == 0 {
		a.Scratch = nil
		return nil
	}
	if p != onHeap {
		p = atEnd
	}
	a.Scratch, err = scratch.place(bytes.Repeat(canary[:line], (k.Shared+line-1)/line), p, line)
	return err
}

// run runs the kernel's tiles in the given calls on the case, placed so, and returns an error unless the outputs are as
// expected and nothing else has changed.
func (s *stage) run(k *kernel.Kernel, c *ops.Case, p placement, calls func(tiles int) []span) error {
	if err := s.set(k, c, p); err != nil {
		return err
	}
	for _, t := range calls(k.Tiles(&s.args)) {
		if err := lend(k, &s.args, &s.scratch, p); err != nil {
			return err
		}
		if err := s.call(k, t); err != nil {
			return err
		}
	}
	return s.compare(k, c)
}

// call makes one call and turns faults into errors.
func (s *stage) call(k *kernel.Kernel, t span) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("tiles %d to %d: %w", t.lo, t.hi, s.fault(k, p))
		}
	}()
	before := s.args
	k.Func(&s.args, t.lo, t.hi)
	if s.args != before {
		return errors.New("the kernel changed its argument block")
	}
	if k.Shared > 0 {
		if err := s.scratch.intact(); err != nil {
			return fmt.Errorf("scratch: %w", err)
		}
	}
	return nil
}

// fault describes what a kernel panicked with.
func (s *stage) fault(k *kernel.Kernel, p any) error {
	err, ok := p.(error)
	if !ok {
		return fmt.Errorf("panic: %v", p)
	}
	var at interface{ Addr() uintptr }
	if !errors.As(err, &at) {
		return fmt.Errorf("panic: %w", err)
	}
	for _, q := range k.Params {
		if q.Kind != kernel.Buffer {
			continue
		}
		if i, near := s.buffers[q.Slot].where(at.Addr()); near {
			return fmt.Errorf("fault at byte %d of %s, which has %d: %w", i, q.Name, s.buffers[q.Slot].n, err)
		}
	}
	if i, near := s.scratch.where(at.Addr()); near {
		return fmt.Errorf("fault at byte %d of scratch, of which it asked for %d: %w", i, k.Shared, err)
	}
	return fmt.Errorf("fault at %#x: %w", at.Addr(), err)
}

// compare holds the buffers to what the case expects.
func (s *stage) compare(k *kernel.Kernel, c *ops.Case) error {
	for _, q := range k.Params {
		if q.Kind != kernel.Buffer {
			continue
		}
		a := &s.buffers[q.Slot]
		if err := a.intact(); err != nil {
			return fmt.Errorf("%s: %w", q.Name, err)
		}
		want, output := c.Want[q.Name]
		if output != (q.Access != "in") {
			return fmt.Errorf("parameter %s is %s; the case expects contents: %v", q.Name, q.Access, output)
		}
		if !output {
			if !bytes.Equal(a.buffer(), c.Buf[q.Name]) {
				return fmt.Errorf("%s, an input, was written", q.Name)
			}
			continue
		}
		t, _ := ir.ParseType(q.Type) // set has parsed it
		if err := ops.Compare(t, a.buffer(), want); err != nil {
			return fmt.Errorf("%s: %w", q.Name, err)
		}
	}
	return nil
}
