package avx

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
	"github.com/swizzle-rt/swizzle/ir/lower"
)

// q8Tile is the Q8_0 tile of 16 rows and mt tokens, il of them interleaved. Weights lie in blocks of 16 rows × 32 k: eight
// groups of four bytes a row, biased by 128, then 16 scales. Activations lie in records of four tokens × 32 k: the bytes,
// then d, σ, −Σ of the block and −Σ of its first half for each token.
func q8Tile(lanes, mt, il int) func(b *ir.Builder) {
	return func(b *ir.Builder) {
		n, m, nb := b.Int("n"), b.Int("m"), b.Int("nb")
		row, col := b.Tiles(n, lanes), b.Tiles(m, mt)
		w, a, out := b.In("w", ir.U8x4), b.In("a", ir.I8x4), b.InOut("out", ir.F32)
		acc := b.Reg("acc", ir.F32, mt)
		record := func(token int, blk *ir.Value) *ir.Value {
			return col.Mul(mt / 4).Add(token / 4).Mul(nb).Add(blk).Mul(48)
		}
		at := func(token int) *ir.Value { return col.Mul(mt).Add(token).Mul(n).Add(row.Mul(lanes)).Add(b.Lane()) }
		for t := range mt {
			b.Store(out, at(t), b.F32(0))
		}
		b.For(0, nb, 8, func(seg *ir.Value) {
			for t := range mt {
				acc.Set(b.F32(0), t)
			}
			b.For(seg, seg.Add(8).Min(nb), 1, func(blk *ir.Value) {
				tile := row.Mul(nb).Add(blk).Mul(9 * lanes)
				var ws [8]*ir.Value
				for g := range ws {
					ws[g] = b.Load(w, tile.Add(g*lanes).Add(b.Lane()))
				}
				dw := b.Load(w.As(ir.F32), tile.Add(8*lanes).Add(b.Lane()))
				for t := 0; t < mt; t += il {
					id := make([]*ir.Value, il)
					for j := range id {
						id[j] = b.Load(a.As(ir.I32), record(t+j, blk).Add(40+(t+j)%4)).Shl(7)
					}
					for g := range ws {
						for j := range id {
							id[j] = b.Dot4US(ws[g], b.Load(a, record(t+j, blk).Add((t+j)%4*8+g)), id[j], 255)
						}
					}
					for j := range id {
						d := b.Load(a.As(ir.F32), record(t+j, blk).Add(32+(t+j)%4))
						acc.Add(id[j].ToF32().Mul(dw.Mul(d)), t+j)
					}
				}
			})
			for t := range mt {
				b.Store(out, at(t), b.Load(out, at(t)).Add(acc.At(t)))
			}
		})
	}
}

func q8Args(r *rand.Rand, lanes, n, m, nb int) interp.Args {
	w := make([]byte, n/lanes*nb*9*lanes*4)
	for t := 0; t < len(w); t += 36 * lanes {
		for i := range 32 * lanes {
			w[t+i] = byte(1 + r.IntN(255))
		}
		for i := range lanes {
			binary.LittleEndian.PutUint32(w[t+32*lanes+4*i:], math.Float32bits(r.Float32()*0.01))
		}
	}
	a := make([]byte, m/4*nb*192)
	for t := 0; t < len(a); t += 192 {
		for i := range 4 {
			sum := int32(0)
			for k := range 32 {
				v := int8(r.IntN(255) - 127)
				a[t+32*i+k] = byte(v)
				sum += int32(v)
			}
			binary.LittleEndian.PutUint32(a[t+128+4*i:], math.Float32bits(r.Float32()*0.01))
			binary.LittleEndian.PutUint32(a[t+160+4*i:], uint32(-sum))
		}
	}
	return interp.Args{Ints: []int64{int64(n), int64(m), int64(nb)}, Buffers: [][]byte{w, a, make([]byte, 4*n*m)}}
}

func buildLowered(t testing.TB, name string, lanes int, f func(b *ir.Builder)) *ir.Kernel {
	t.Helper()
	k, err := ir.Build(name, lanes, 1, f)
	if err == nil {
		k, err = lower.Run(k, lower.CPU)
	}
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func (p *program) addTiles(t *testing.T) {
	t.Helper()
	r := rand.New(rand.NewPCG(5, 6))
	for _, arch := range supported() {
		lanes, mt := 16, 4 // two registers a value: in slices
		if arch == "avx512vnni" {
			mt = 12
		}
		p.add(t, buildLowered(t, "q8", lanes, q8Tile(lanes, mt, 2)), arch, q8Args(r, lanes, 2*lanes, 2*mt, 11))
	}
}

// BenchmarkTile reports the speed of the Q8_0 tile beside that of VPDPBUSD alone.
func BenchmarkTile(b *testing.B) {
	if !slices.Contains(supported(), "avx512vnni") {
		b.Skip("this CPU has no AVX-512 VNNI")
	}
	p := newProgram(b)
	r := rand.New(rand.NewPCG(7, 8))
	const n, m, nb = 3072, 48, 32
	configs := []struct{ lanes, mt, il int }{{16, 12, 1}, {16, 12, 2}, {16, 12, 4}, {32, 4, 2}}
	for _, c := range configs {
		p.add(b, buildLowered(b, "q8", c.lanes, q8Tile(c.lanes, c.mt, c.il)), "avx512vnni", q8Args(r, c.lanes, n, m, nb))
	}
	const rounds, chains = 1000, 16
	peak := buildLowered(b, "peak", 16, func(b *ir.Builder) {
		n := b.Int("n")
		b.Tiles(n, 1)
		in, out := b.In("in", ir.U8x4), b.Out("out", ir.I32)
		x := b.Load(in, b.Lane())
		acc := b.Reg("acc", ir.I32, chains)
		for i := range chains {
			acc.Set(b.I32(0), i)
		}
		b.For(0, rounds, 1, func(*ir.Value) {
			for i := range chains {
				acc.Set(b.Dot4US(x, x.As(ir.I8x4), acc.At(i), 255), i)
			}
		})
		for i := range chains {
			b.Store(out, b.Lane().Add(16*i), acc.At(i))
		}
	})
	p.add(b, peak, "avx512vnni", interp.Args{Ints: []int64{1}, Buffers: [][]byte{make([]byte, 64), make([]byte, 64*chains)}})
	p.build(b)
	var jobs []job
	for i, s := range p.call {
		x := p.runs[i].args
		jobs = append(jobs, job{Symbol: s, Buffers: x.Buffers, Ints: x.Ints, Hi: p.runs[i].hi, Repeat: 200})
	}
	replies := p.execute(b, jobs)
	top := 2 * 64 * chains * rounds / replies[len(configs)].Seconds / 1e9
	for i, c := range configs {
		gops := 2 * n * m * nb * 32 / replies[i].Seconds / 1e9
		b.Logf("%d rows × %d tokens, %d interleaved: %.0f GOPS of %.0f, %.0f %%", c.lanes, c.mt, c.il, gops, top, 100*gops/top)
	}
}
