package conform

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"unsafe"

	"github.com/swizzle-rt/swizzle/ir/ops"
	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/dispatch"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// memory returns n bytes that kernels may read as they may read buffers.
func memory(t testing.TB, n int) []byte {
	t.Helper()
	b, err := cpu.Alloc(n)
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func stored(t testing.TB, content []byte) []byte {
	m := memory(t, len(content))
	copy(m, content)
	return m
}

// floats are n ordinary numbers.
func floats(t testing.TB, n int, seed uint64) []byte {
	r := rand.New(rand.NewPCG(seed, 3))
	m := memory(t, 4*n)
	for i := range n {
		binary.LittleEndian.PutUint32(m[4*i:], math.Float32bits(float32(r.NormFloat64())))
	}
	return m
}

// arguments are a kernel's parameters by name: []byte, int or float32.
type arguments map[string]any

// call runs all tiles of a kernel.
func call(t testing.TB, k *kernel.Kernel, values arguments) {
	t.Helper()
	var a kernel.Args
	for _, p := range k.Params {
		switch v := values[p.Name].(type) {
		case []byte:
			a.Buf[p.Slot] = unsafe.Pointer(unsafe.SliceData(v))
		case int:
			a.Int[p.Slot] = int64(v)
		case float32:
			a.F32[p.Slot] = v
		default:
			t.Fatalf("%s: no value for %s", k.Name, p.Name)
		}
	}
	a.Scratch = unsafe.Pointer(unsafe.SliceData(memory(t, kernel.ScratchBytes)))
	k.Func(&a, 0, k.Tiles(&a))
}

// kernelOf returns the op's kernel of that config.
func kernelOf(t testing.TB, table *dispatch.Table, op, config string) *kernel.Kernel {
	t.Helper()
	k, err := table.Config(op, config)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// single returns the op under its config of one row a tile.
func single(t testing.TB, op string) *config {
	t.Helper()
	list := runnable(t)
	i := slices.IndexFunc(list, func(c *config) bool { return c.op.Name == op && c.variant.Rows == 1 })
	if i < 0 {
		t.Fatalf("%s has no config of one row", op)
	}
	return list[i]
}

// runsOf are runs of at most m rows for one kernel, and the first row of each is a multiple of four.
func runsOf(k dispatch.RowKernel, m int) []dispatch.Run {
	if k.Rows >= 4 {
		return []dispatch.Run{{Kernel: k.Kernel, First: 0, Rows: m / k.Rows * k.Rows}}
	}
	var runs []dispatch.Run
	for first := 0; first+k.Rows <= m; first += 4 {
		runs = append(runs, dispatch.Run{Kernel: k.Kernel, First: first, Rows: k.Rows})
	}
	return runs
}

// product is a problem for the GEMM of one format, on one instruction set.
type product struct {
	t       testing.TB
	prepare *kernel.Kernel // turns rows of f32 into the GEMM's activations
	x, w    []byte
	m, n, k int
}

// newProduct makes the problem. The activations are quantized or rounded by the instruction set's own kernel.
func newProduct(t testing.TB, table *dispatch.Table, c *config, m, n, k int) *product {
	k -= k % block(c.op)
	p := &product{t: t, x: floats(t, m*k, 1), m: m, n: n, k: k}
	p.w = stored(t, c.op.Case(c.variant, ops.Shape{1, n, k}, ops.NewData(ops.Random, 2)).Buf["w"])
	rounding := map[string]string{"gemm_f32": "r0", "gemm_f16": "r13", "gemm_bf16": "r16"}[c.op.Name]
	if rounding == "" {
		p.prepare = kernelOf(t, table, "quantize", "any")
	} else {
		p.prepare = kernelOf(t, table, "round", rounding)
	}
	return p
}

// row is one row of x.
func (p *product) row(i int) []byte { return p.x[4*i*p.k:][:4*p.k] }

// activations prepares rows of x; four rows take group bytes.
func (p *product) activations(x []byte) (act []byte, group int) {
	m := len(x) / 4 / p.k
	group = 16 * p.k
	if p.prepare.Name.Op == "quantize" {
		group = (p.k + 63) / 64 * 2 * 192
	}
	act = memory(p.t, (m+3)/4*group)
	call(p.t, p.prepare, arguments{"x": x, "act": act, "out": act, "m": m, "k": p.k})
	return act, group
}

// run computes the rows of the runs; other rows of the result stay zero.
func (p *product) run(x []byte, runs []dispatch.Run) []byte {
	act, group := p.activations(x)
	out := memory(p.t, len(x)/p.k*p.n)
	for _, r := range runs {
		a := act[r.First/4*group:]
		call(p.t, r.Kernel, arguments{"act": a, "x": a, "w": p.w, "out": out[4*r.First*p.n:],
			"m": r.Rows, "n": p.n, "k": p.k, "ldo": p.n, "add": 0})
	}
	return out
}

// A row of a product doesn't depend on the rows beside it, nor on the row tile, nor on the instruction set.
func TestRowsOfProducts(t *testing.T) {
	m, n, k := 37, 100, 832
	if testing.Short() {
		m, n, k = 13, 20, 320
	}
	for _, c := range runnable(t) {
		if !strings.HasPrefix(c.op.Name, "gemm_") || c.variant.Rows != 1 {
			continue
		}
		t.Run(c.op.Name, func(t *testing.T) {
			t.Parallel()
			var want []byte // rows computed alone, by the first instruction set
			for _, isa := range cpu.Detect().Available() {
				table := dispatch.New(kernels(), isa)
				rows, err := table.Rows(c.op.Name, "m")
				if err != nil {
					t.Fatal(err)
				}
				p := newProduct(t, table, c, m, n, k)
				var alone []byte
				for i := range m {
					alone = append(alone, p.run(p.row(i), rows.Cut(1, nil))...)
				}
				if want == nil {
					want = alone
				}
				equalRows(t, fmt.Sprintf("rows alone on %s", isa), alone, want, 4*n, 0, m)
				equalRows(t, fmt.Sprintf("all rows on %s", isa), p.run(p.x, rows.Cut(m, nil)), want, 4*n, 0, m)
				for _, tile := range rows {
					runs := runsOf(tile, m)
					got := p.run(p.x, runs)
					for _, r := range runs {
						equalRows(t, tile.Kernel.Name.String(), got, want, 4*n, r.First, r.Rows)
					}
				}
			}
		})
	}
}

// equalRows compares rows first … first+n−1 of size bytes.
func equalRows(t *testing.T, what string, got, want []byte, size, first, n int) {
	t.Helper()
	for i := first; i < first+n; i++ {
		if g, w := got[i*size:][:size], want[i*size:][:size]; !bytes.Equal(g, w) {
			t.Errorf("%s: row %d is not the row alone", what, i)
			return
		}
	}
}

// A row of attention doesn't depend on the rows beside it, nor on the row tile, nor on the instruction set.
func TestRowsOfAttention(t *testing.T) {
	const m, hd, last = 13, 48, 300
	for op, rounding := range map[string]string{"attention_f16": "r13", "attention_f32": "r0"} {
		for _, window := range []int{1 << 20, 50, 40} { // over both segments, over the bound, and past it for some rows
			t.Run(fmt.Sprintf("%s/%d", op, window), func(t *testing.T) {
				t.Parallel()
				c := single(t, op)
				cache := c.op.Case(c.variant, ops.Shape{1, 1, 1, hd, last, window}, ops.NewData(ops.Random, 3))
				q := floats(t, m*hd, 4)
				positions := memory(t, 4*m)
				for i := range m {
					binary.LittleEndian.PutUint32(positions[4*i:], uint32(last-m+1+i))
				}
				segments := int(cache.Int["segments"])
				var want [][]byte // of each row, by the first instruction set
				for _, isa := range cpu.Detect().Available() {
					table := dispatch.New(kernels(), isa)
					rows, err := table.Rows(op, "r")
					if err != nil {
						t.Fatal(err)
					}
					// attend returns, for each of n rows from first on, its partial results in every segment.
					attend := func(k *kernel.Kernel, first, n int) [][]byte {
						rounded := memory(t, (n+3)/4*16*hd)
						call(t, kernelOf(t, table, "round", rounding), arguments{"x": q[4*first*hd:], "out": rounded, "m": n, "k": hd})
						o, ml := memory(t, 4*segments*n*hd), memory(t, 8*segments*n)
						call(t, k, arguments{"q": rounded, "kcache": stored(t, cache.Buf["kcache"]), "vcache": stored(t, cache.Buf["vcache"]),
							"pages": stored(t, cache.Buf["pages"]), "position": positions[4*first:], "o": o, "ml": ml,
							"rows": n, "kv": 1, "segments": segments, "hd": hd, "window": window})
						results := make([][]byte, n)
						for s := range segments {
							for r := range n {
								results[r] = append(results[r], o[4*(s*n+r)*hd:][:4*hd]...)
								results[r] = append(results[r], ml[8*(s*n+r):][:8]...)
							}
						}
						return results
					}
					for i := range m {
						alone := attend(kernelOf(t, table, op, "r1"), i, 1)[0]
						if len(want) == i {
							want = append(want, alone)
						}
						if !bytes.Equal(alone, want[i]) {
							t.Fatalf("row %d alone differs on %s", i, isa)
						}
					}
					for _, tile := range rows {
						runs := []dispatch.Run{{Kernel: tile.Kernel, Rows: m}}
						if tile.Rows < 4 {
							runs = runsOf(tile, m)
						}
						for _, run := range runs {
							for i, got := range attend(run.Kernel, run.First, run.Rows) {
								if !bytes.Equal(got, want[run.First+i]) {
									t.Fatalf("%s: row %d is not the row alone", tile.Kernel.Name, run.First+i)
								}
							}
						}
					}
				}
				if bytes.Equal(want[0], make([]byte, len(want[0]))) {
					t.Error("every result is zero")
				}
			})
		}
	}
}
