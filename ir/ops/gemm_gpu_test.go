package ops_test

import (
	"strings"
	"testing"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
	"github.com/swizzle-rt/swizzle/ir/lower"
	"github.com/swizzle-rt/swizzle/ir/ops"
	"github.com/swizzle-rt/swizzle/ir/target"
	"github.com/swizzle-rt/swizzle/ir/verify"
)

// gpus have no matrix instruction, the first one of NVIDIA's, or a later one.
var gpus = map[string]*target.Caps{"none": gpu(), "m8n8k16": gpu(target.M8N8K16S8), "m16n8k32": gpu(target.M16N8K32S8)}

// onGPUs runs f for every GPU schedule of every product, and for those with matrix instructions once for each.
func onGPUs(t *testing.T, f func(t *testing.T, op *ops.Op, v ops.Variant, k *ir.Kernel)) {
	for _, op := range append(ops.GEMM(), ops.GEMMFloat()...) {
		for name, c := range gpus {
			for _, v := range op.Variants(c) {
				k, err := op.Kernel(v, c)
				if err != nil {
					t.Fatal(err)
				}
				matrix := false
				ir.Walk(k.Body, func(s ir.Stmt) {
					i, ok := s.(*ir.Instr)
					matrix = matrix || ok && i.Op == ir.OpMMA
				})
				if !matrix && name != "none" {
					continue
				}
				t.Run(op.Name+"/"+v.Config+"/"+name, func(t *testing.T) {
					t.Parallel()
					if err := verify.Kernel(k, c); err != nil {
						t.Fatal(err)
					}
					low, err := lower.Run(k, lower.GPU)
					if err != nil {
						t.Fatal(err)
					}
					f(t, op, v, low)
				})
			}
		}
	}
}

// Any number of rows and columns and several rounds of segments give the reference's bits, whatever lies in activations
// beyond the last row.
func TestProductsOnGPUs(t *testing.T) {
	onGPUs(t, func(t *testing.T, op *ops.Op, v ops.Variant, k *ir.Kernel) {
		for i, s := range []ops.Shape{{5, 70, 256}, {66, 18, 256}, {2, 1, 2304}} {
			c := op.Case(v, s, ops.NewData(ops.Random, uint64(i)))
			poison(c, s[0])
			if _, err := run(k, c); err != nil {
				t.Errorf("shape %v: %v", s, err)
			}
		}
	})
}

// poison sets the bits of the activations' rows from m to the next multiple of four.
func poison(c *ops.Case, m int) {
	set := func(b []byte) {
		for i := range b {
			b[i] = 0xFF
		}
	}
	k := int(c.Int["k"])
	for s := m % 4; s%4 != 0; s++ {
		if x, ok := c.Buf["x"]; ok {
			for i := range k {
				set(x[16*(m/4*k+i)+4*s:][:4])
			}
			continue
		}
		const record = 192
		blocks := (k + 63) / 64 * 2
		for kb := range blocks {
			r := c.Buf["act"][record*(m/4*blocks+kb):][:record]
			set(r[32*s:][:32])
			for vector := 128; vector < record; vector += 16 {
				set(r[vector+4*s:][:4])
			}
		}
	}
}

// No access of shared memory has a bank conflict, and what is read and written of global memory fills its sectors, but for
// what the layouts cost.
func TestProductsMemory(t *testing.T) {
	onGPUs(t, func(t *testing.T, op *ops.Op, v ops.Variant, k *ir.Kernel) {
		c := op.Case(v, ops.Shape{16, 64, 256}, ops.NewData(ops.Random, 1))
		c.Int["ldo"] = c.Int["n"] // rows of the output that start with sectors
		var a interp.Args
		for _, p := range k.Params {
			switch p.Kind {
			case ir.Buffer:
				a.Buffers = append(a.Buffers, c.Buf[p.Name])
			case ir.Integer:
				a.Ints = append(a.Ints, c.Int[p.Name])
			}
		}
		r, err := interp.Run(k, a)
		if err != nil {
			t.Fatal(err)
		}
		if plain := strings.HasSuffix(v.Config, "s0"); plain == (r.SharedWavefronts == r.SharedIdeal) {
			t.Errorf("%d wavefronts, %d at best", r.SharedWavefronts, r.SharedIdeal)
		}
		var part bool // of sectors is wanted
		switch {
		case strings.HasPrefix(v.Config, "m64"): // scales without the minimum factors after them
			part = !strings.Contains("gemm_q4_1 gemm_q4_k gemm_q5_1 gemm_q5_k", op.Name)
		case v.Config == "m16g8": // one half of rows of codes at a time
			part = true
		default: // 16 bytes of each of two packed tiles
			part = strings.HasSuffix(op.Name, "_k")
		}
		if part == (r.GlobalSectors == r.GlobalIdeal) {
			t.Errorf("%d sectors, %d at best", r.GlobalSectors, r.GlobalIdeal)
		}
		if r.GlobalSectors > r.GlobalIdeal*8/5 {
			t.Errorf("%d sectors, %d at best: too many", r.GlobalSectors, r.GlobalIdeal)
		}
	})
}

// Where one side of the staged tile of codes leaves its swizzle out, the bits are wrong; where both do, they are right, with
// bank conflicts.
func TestProductSwizzle(t *testing.T) {
	gpu := gpus["m16n8k32"]
	for _, op := range ops.GEMM() {
		if op.Name != "gemm_q8_0" {
			continue
		}
		for _, v := range op.Variants(gpu) {
			if v.Config != "m64n64" {
				continue
			}
			for _, c := range []struct {
				name       string
				sides      []ir.Op
				bits, free bool
			}{
				{"as it is", nil, true, true},
				{"copies plain", []ir.Op{ir.OpAsyncCopy}, false, true},
				{"reads plain", []ir.Op{ir.OpLdMatrix}, false, false},
				{"both plain", []ir.Op{ir.OpAsyncCopy, ir.OpLdMatrix}, true, false},
			} {
				k, err := op.Kernel(v, gpu)
				if err != nil {
					t.Fatal(err)
				}
				for _, side := range c.sides {
					if unswizzle(k, side) == 0 {
						t.Fatalf("no swizzled %s", side)
					}
				}
				r, err := run(k, op.Case(v, ops.Shape{64, 64, 64}, ops.NewData(ops.Random, 3)))
				if (err == nil) != c.bits {
					t.Errorf("%s: %v", c.name, err)
				}
				if r != nil && (r.SharedWavefronts == r.SharedIdeal) != c.free {
					t.Errorf("%s: %d wavefronts, %d at best", c.name, r.SharedWavefronts, r.SharedIdeal)
				}
			}
		}
	}
}

// unswizzle makes every exclusive or in the shared addresses of an op one with 0, and returns how many it met.
func unswizzle(k *ir.Kernel, op ir.Op) (n int) {
	var address func(v *ir.Value)
	address = func(v *ir.Value) {
		if v == nil || v.Def == nil {
			return
		}
		if v.Def.Op == ir.OpXorX {
			v.Def.Args[1].Def.Args[0].Def.Args[1].Def.Imm = 0 // x ^ (x & mask) >> s
			n++
			return
		}
		for _, a := range v.Def.Args {
			address(a)
		}
	}
	ir.Walk(k.Body, func(s ir.Stmt) {
		if i, ok := s.(*ir.Instr); ok && i.Op == op {
			address(i.Args[0])
		}
	})
	return n
}
