package canon

import (
	"flag"
	"math"
	"runtime"
	"sync"
	"testing"
)

var exhaustive = flag.Bool("exhaustive", false, "measure the float32 functions on all 2³² inputs and the float64 ones on many more")

// macro is a float32 function with what is promised of it: for every x either a special result, compared exactly, or a
// reference from which it is at most ulp units in the last place away. docs/math.md states the same numbers.
type macro struct {
	name string
	f    func(float32) float32
	want func(x float32) (y float64, special bool)
	ulp  float64
	ofX  bool // the units are those of x instead of the result
}

var macros = []macro{
	{"Exp", Exp, func(x float32) (float64, bool) {
		switch {
		case x == 0 || x != x:
			return math.Exp(float64(x)), true
		case x > 87:
			return float64(Exp(87)), true
		case x < -87:
			return 0, true
		}
		return math.Exp(float64(x)), false
	}, 1.18, false},
	{"Log", Log, func(x float32) (float64, bool) {
		switch {
		case subnormal(x):
			return math.Inf(-1), true
		case x == 1 || x < 0 || x != x || math.IsInf(float64(x), 1):
			return math.Log(float64(x)), true
		}
		return math.Log(float64(x)), false
	}, 1.19, false},
	{"Rcp", Rcp, func(x float32) (float64, bool) {
		a := math.Abs(float64(x))
		switch {
		case subnormal(x):
			return math.Copysign(math.Inf(1), float64(x)), true
		case a > 0x1p126:
			return math.Copysign(0, float64(x)), true
		case x != x || math.Float32bits(x)&0x007FFFFF == 0:
			return 1 / float64(x), true
		}
		return 1 / float64(x), false
	}, 1.6, false},
	{"Rsqrt", Rsqrt, func(x float32) (float64, bool) {
		switch {
		case subnormal(x):
			return math.Inf(1), true
		case x < 0 || x != x || x == 1 || math.IsInf(float64(x), 1):
			return 1 / math.Sqrt(float64(x)), true
		}
		return 1 / math.Sqrt(float64(x)), false
	}, 2, false},
	{"Tanh", Tanh, func(x float32) (float64, bool) {
		if subnormal(x) {
			return float64(x), true
		}
		return math.Tanh(float64(x)), x != x || math.Abs(float64(x)) > 10
	}, 4, false},
	{"Sigmoid", Sigmoid, func(x float32) (float64, bool) {
		if x < -87 {
			return float64(Sigmoid(-87)), true
		}
		return 1 / (1 + math.Exp(-float64(x))), x != x || x > 87
	}, 3.37, false},
	{"SiLU", SiLU, func(x float32) (float64, bool) {
		if x < -87 {
			return float64(float32(x * Sigmoid(-87))), true
		}
		return float64(x) / (1 + math.Exp(-float64(x))), x != x || x > 87
	}, 3.68, false},
	// The rounding of t is a relative error of exp(t) that grows with |t|, so far below 0 only units of x tell anything.
	{"GELU", GELU, func(x float32) (float64, bool) {
		v := float64(x)
		if math.IsInf(v, 0) {
			return v, true
		}
		return v / (1 + math.Exp(-2*math.Sqrt(2/math.Pi)*(v+0.044715*v*v*v))), x != x
	}, 2.89, true},
}

func subnormal(x float32) bool { return math.Float32bits(x)&absMask < minimum }

// units returns |y − want| in units in the last place of a float32 like v.
func units(y float32, want, v float64) float64 {
	d := math.Abs(float64(y) - want)
	if d == 0 {
		return 0
	}
	e := max(math.Ilogb(v), -126)
	return math.Ldexp(d, 23-e)
}

func TestAccuracy(t *testing.T) {
	for _, m := range macros {
		t.Run(m.name, func(t *testing.T) {
			// A step prime to 2³² meets every exponent; the whole range is split between the processors.
			step, parts := uint64(2039), 1
			if *exhaustive {
				step, parts = 1, 8*runtime.NumCPU()
			}
			type result struct {
				x     float32
				worst float64
				wrong bool
			}
			results := make([]result, parts)
			var wg sync.WaitGroup
			tokens := make(chan bool, runtime.NumCPU())
			for i := range results {
				wg.Add(1)
				tokens <- true
				go func() {
					defer func() { <-tokens; wg.Done() }()
					r := &results[i]
					for b := uint64(i) << 32 / uint64(parts); b < uint64(i+1)<<32/uint64(parts); b += step {
						x := math.Float32frombits(uint32(b))
						y := m.f(x)
						want, special := m.want(x)
						if special {
							if !same(y, float32(want)) {
								*r = result{x, 0, true}
								return
							}
							continue
						}
						like := want
						if m.ofX {
							like = float64(x)
						}
						if u := units(y, want, like); !(u <= r.worst) {
							r.x, r.worst = x, u
						}
					}
				}()
			}
			wg.Wait()
			var top result
			for _, r := range results {
				if r.wrong {
					want, _ := m.want(r.x)
					t.Fatalf("%s(%v) = %v, want %v", m.name, r.x, m.f(r.x), float32(want))
				}
				if r.worst > top.worst {
					top = r
				}
			}
			t.Logf("largest error %.4f ULP at %v (%08X)", top.worst, top.x, math.Float32bits(top.x))
			if !(top.worst <= m.ulp) {
				t.Errorf("largest error above the stated %v ULP", m.ulp)
			}
		})
	}
}

// same compares bits, all NaNs being one.
func same(a, b float32) bool {
	return math.Float32bits(a) == math.Float32bits(b) || a != a && b != b
}
