package avx

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/swizzle-rt/swizzle/backends/avx/sim"
	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// Every architecture, whatever this CPU has, gives the interpreter's bits in the simulator, which sees accesses and undefined
// values that hardware hides.
func TestSimulated(t *testing.T) {
	check := func(k *ir.Kernel, arch string, args interp.Args) {
		t.Helper()
		fn, data, err := Function(k, arch, "f")
		if err != nil {
			t.Errorf("%s: %v", arch, err)
			return
		}
		m, err := sim.New(fn, arch, data)
		if err != nil {
			t.Errorf("%s: %v", k.Name, err)
			return
		}
		a := sim.Args{Scratch: kernel.ScratchBytes}
		want := interp.Args{Ints: args.Ints, Floats: args.Floats}
		for n, b := range args.Buffers {
			a.Buf[n] = sim.Buffer{Data: bytes.Clone(b), Writable: true}
			want.Buffers = append(want.Buffers, bytes.Clone(b))
		}
		copy(a.Int[:], args.Ints)
		copy(a.F32[:], args.Floats)
		if err := m.Run(&a, 0, int(interp.Tiles(k, args.Ints))); err != nil {
			t.Errorf("%s on %s: %v", k.Name, arch, err)
			return
		}
		if _, err := interp.Run(k, want); err != nil {
			t.Fatal(err)
		}
		for _, q := range k.Params {
			if q.Kind == ir.Buffer {
				if d := differ(q.Type, want.Buffers[q.Slot], a.Buf[q.Slot].Data); d != "" {
					t.Errorf("%s, %d lanes, %s: buffer %s: %s", k.Name, k.Lanes, arch, q.Name, d)
				}
			}
		}
	}
	r := rand.New(rand.NewPCG(8, 9))
	for _, arch := range Arches() {
		for n, s := range append(memoryScenes(), append(crossLaneScenes(), controlScenes()...)...) {
			lanes := s.lanes[n%len(s.lanes)]
			k, err := ir.Build(s.name, lanes, 1, s.build)
			if err != nil {
				t.Fatal(err)
			}
			check(k, arch, s.args(r, lanes))
		}
		check(buildLowered(t, "q8", 16, q8Tile(16, 4, 2)), arch, q8Args(r, 16, 32, 4, 3))
	}
}
