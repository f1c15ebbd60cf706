package conform

import (
	"strings"
	"testing"

	"github.com/swizzle-rt/swizzle/backends/ptx/sim"
	"github.com/swizzle-rt/swizzle/ir/ops"
)

// aligned returns a problem size of which every part is a multiple of what kernels take at once.
func aligned(op *ops.Op) ops.Shape {
	has := func(prefix string) bool { return strings.HasPrefix(op.Name, prefix) }
	switch {
	case op.Name == "add" || op.Name == "silu_mul" || op.Name == "gelu_mul":
		return ops.Shape{4096}
	case op.Name == "wht":
		return ops.Shape{4}
	case op.Name == "swizzle_copy":
		return ops.Shape{64, 96}
	case has("attention_"):
		return ops.Shape{2, 1, 8, 128, 383, 1 << 20}
	case has("kv_store"):
		return ops.Shape{4, 2, 128, 128}
	case op.Name == "rope_query":
		return ops.Shape{4, 2, 4, 128, 128}
	case has("pack_"):
		return ops.Shape{64, 512}
	case has("gather_"):
		return ops.Shape{4, 64, 1024}
	case has("gemm_"):
		return ops.Shape{64, 128, 512}
	}
	return ops.Shape{4, 1024}
}

// sectors are the kernels that touch more sectors of global memory than the bytes asked for fill, given aligned shapes: by at
// most how many percent. The first row whose op and config begin so counts; 0 is for all others.
var sectors = []struct {
	op, config string
	percent    int64
	why        string
}{
	{"gemm_q", "m16g8", 65, "an instruction reads half of each sector of the activations, the next one the other half"},
	{"gemm_q", "m64n64", 25, "a copy takes half a sector of scales; the rows of the output begin anywhere"},
	{"gemm_q", "", 6, "sub-scales of a K-quant are bytes; the rows of the output begin anywhere"},
	{"gemm_", "", 1, "the rows of the output begin anywhere"},
	{"gather_", "", 500, "a row of a packed tile lies in pieces of a word or less"},
	{"pack_", "", 1700, "a lane reads a row of its own; it runs once, at load"},
	{"kv_store", "", 145, "an element of a key goes to every 16th place"},
	{"round", "", 150, "a word of each row in turn"},
	{"rmsnorm_quantize", "g8", 8, "scales of one row"},
	{"attention_", "", 5, "a lane stores two neighbouring words one by one"},
	{"", "", 20, "scales of one row"},
}

// budget returns the percentage for a kernel: 0 for what isn't quantized and has no row of its own.
func budget(m *module) (percent int64) {
	for _, s := range sectors {
		if s.op == "" && !strings.HasSuffix(m.Name.Op, "quantize") {
			continue
		}
		if strings.HasPrefix(m.Name.Op, s.op) && strings.HasPrefix(m.Name.Config, s.config) {
			return s.percent
		}
	}
	return 0
}

// No access of a PTX kernel to shared memory meets a bank conflict. Where a swizzle is left out, for comparison, there are
// some. Accesses to global memory touch the sectors that they need, and few others.
func TestTrafficIsIdeal(t *testing.T) {
	if testing.Short() {
		t.Skip("runs large cases")
	}
	texts := modules(t)
	var total sim.Traffic
	for _, arch := range []string{"sm_75", "sm_80"} {
		if len(texts[arch]) == 0 {
			t.Errorf("%s has no kernel", arch)
		}
		for _, op := range ops.All() {
			for _, m := range texts[arch][op.Name] {
				r := counts(t, m, op.Case(variantOf(t, m), aligned(op), ops.NewData(ops.Random, 1)))
				if s, ok := m.Name.Param("s"); ok && s == 0 {
					if r.SharedWavefronts == r.SharedIdeal {
						t.Errorf("%s has no swizzle, and no bank conflict either", m.Name)
					}
					continue
				}
				for _, a := range r.Accesses {
					if a.SharedWavefronts != a.SharedIdeal {
						t.Errorf("%s: line %d: %s takes %d wavefronts, without bank conflicts %d", m.Name, a.Line, a.Op, a.SharedWavefronts, a.SharedIdeal)
					}
				}
				if max := r.GlobalIdeal + r.GlobalIdeal*budget(m)/100; r.GlobalSectors > max {
					t.Errorf("%s: %d sectors of global memory are touched; %d would be enough, and %d are accepted", m.Name, r.GlobalSectors, r.GlobalIdeal, max)
				}
				total.SharedWavefronts += r.SharedWavefronts
				total.GlobalSectors += r.GlobalSectors
				total.GlobalIdeal += r.GlobalIdeal
			}
		}
	}
	t.Logf("%d wavefronts of shared memory without a conflict; %d sectors of global memory of %d ideal", total.SharedWavefronts, total.GlobalSectors, total.GlobalIdeal)
}

// variantOf returns the variant that a module was made of.
func variantOf(t *testing.T, m *module) ops.Variant {
	t.Helper()
	for _, u := range units(t) {
		if u.Name() == m.Name {
			return u.Variant
		}
	}
	t.Fatalf("%s is no unit", m.Name)
	return ops.Variant{}
}

// counts runs a PTX kernel and returns what was counted.
func counts(t *testing.T, m *module, c *ops.Case) *sim.Report {
	t.Helper()
	j := &job{module: m, Case: c}
	v, err := j.values()
	if err != nil {
		t.Fatal(err)
	}
	e, err := m.parse()
	if err != nil {
		t.Fatal(err)
	}
	r, err := e.Run(j.launch(v))
	if err != nil {
		t.Fatal(err)
	}
	return r
}
