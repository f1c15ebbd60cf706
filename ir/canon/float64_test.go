package canon

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"
)

const precision = 320

func newBig(x float64) *big.Float { return new(big.Float).SetPrec(precision).SetFloat64(x) }

func bigNew() *big.Float { return new(big.Float).SetPrec(precision) }

// bigExp returns eˣ by squaring the series of x/2³⁰.
func bigExp(x *big.Float) *big.Float {
	const halvings = 30
	r := bigNew().SetMantExp(x, -halvings)
	sum, term := newBig(1), newBig(1)
	for k := 1; k < 30; k++ {
		term.Mul(term, r)
		term.Quo(term, newBig(float64(k)))
		sum.Add(sum, term)
	}
	for range halvings {
		sum.Mul(sum, sum)
	}
	return sum
}

// bigLog returns ln x by Halley's steps from an estimate.
func bigLog(x float64) *big.Float {
	f, e := math.Frexp(x) // math.Log is inaccurate for subnormals on some architectures
	y := newBig(math.Log(f) + float64(e)*math.Ln2)
	for range 3 {
		e := bigExp(y)
		d := bigNew().Sub(newBig(x), e)
		s := bigNew().Add(newBig(x), e)
		y.Add(y, d.Mul(d, newBig(2)).Quo(d, s))
	}
	return y
}

// bigPi returns π by Machin's formula.
func bigPi() *big.Float {
	atan := func(n float64) *big.Float { // atan(1/n)
		sum, term := bigNew(), bigNew().Quo(newBig(1), newBig(n))
		for k := 0; k < 260; k++ {
			t := bigNew().Quo(term, newBig(float64(2*k+1)))
			if k%2 == 1 {
				t.Neg(t)
			}
			sum.Add(sum, t)
			term.Quo(term, newBig(n*n))
		}
		return sum
	}
	a := atan(5)
	a.Mul(a, newBig(16))
	b := atan(239)
	return a.Sub(a, b.Mul(b, newBig(4)))
}

// bigCos returns cos(x − shift·π/2): the sine for shift 1.
func bigCos(x float64, shift int64, pi *big.Float) *big.Float {
	halfPi := bigNew().Quo(pi, newBig(2))
	r := bigNew().Sub(newBig(x), bigNew().Mul(halfPi, newBig(float64(shift))))
	k, _ := bigNew().Quo(r, halfPi).Int(nil) // leaves |r| below π/2
	r.Sub(r, bigNew().Mul(halfPi, bigNew().SetInt(k)))
	q := new(big.Int).And(k, big.NewInt(3)).Int64()
	series := func(term *big.Float, k int) *big.Float {
		sum := bigNew().Set(term)
		square := bigNew().Mul(r, r)
		for ; k < 80; k += 2 {
			term.Mul(term, square)
			term.Quo(term, newBig(-float64(k)*float64(k+1)))
			sum.Add(sum, term)
		}
		return sum
	}
	var y *big.Float
	if q%2 == 0 {
		y = series(newBig(1), 1)
	} else {
		y = series(bigNew().Set(r), 2)
	}
	if q == 1 || q == 2 {
		y.Neg(y)
	}
	return y
}

// units64 returns |y − want| in units in the last place of want as a float64.
func units64(y float64, want *big.Float) float64 {
	d := bigNew().Sub(newBig(y), want)
	if d.Sign() == 0 {
		return 0
	}
	e := max(want.MantExp(nil)-1, -1022)
	u, _ := d.Abs(d).SetMantExp(d, 52-e).Float64()
	return u
}

func TestFloat64Accuracy(t *testing.T) {
	n := 2000
	if *exhaustive {
		n = 100_000
	}
	pi := bigPi()
	rng := rand.New(rand.NewPCG(1, 2))
	angle := func() float64 {
		switch rng.IntN(5) {
		case 0:
			return rng.NormFloat64()
		case 4:
			return 0x1p63 * math.Exp(-40*rng.Float64())
		case 1: // next to a multiple of π/2
			return float64(rng.Int32()) * (math.Pi / 2)
		}
		return float64(rng.Int32()) * math.Exp(-14*rng.Float64())
	}
	positive := func() float64 {
		if rng.IntN(2) == 0 {
			return 0.5 + 1.5*rng.Float64()
		}
		b := 1 + rng.Uint64N(math.Float64bits(math.Inf(1))-1)
		if rng.IntN(4) == 0 {
			b &= 1<<52 - 1 // subnormal
		}
		return math.Float64frombits(b | 1)
	}
	for _, f := range []struct {
		name string
		y    func(x, e float64) float64
		want func(x, e float64) *big.Float
		arg  func() (x, e float64)
		ulp  float64
	}{
		{"Exp64", func(x, _ float64) float64 { return Exp64(x) }, func(x, _ float64) *big.Float { return bigExp(newBig(x)) },
			func() (float64, float64) {
				if rng.IntN(2) == 0 {
					return -745 * rng.Float64(), 0
				}
				return 709 * rng.Float64() * rng.NormFloat64() / 5, 0
			}, 0.9},
		{"Log64", func(x, _ float64) float64 { return Log64(x) }, func(x, _ float64) *big.Float { return bigLog(x) },
			func() (float64, float64) { return positive(), 0 }, 0.9},
		{"Sin64", func(x, _ float64) float64 { return Sin64(x) }, func(x, _ float64) *big.Float { return bigCos(x, 1, pi) },
			func() (float64, float64) { return angle(), 0 }, 0.8},
		{"Cos64", func(x, _ float64) float64 { return Cos64(x) }, func(x, _ float64) *big.Float { return bigCos(x, 0, pi) },
			func() (float64, float64) { return angle(), 0 }, 0.8},
		{"Pow64 of frequencies", Pow64, func(x, e float64) *big.Float { return bigExp(bigNew().Mul(newBig(e), bigLog(x))) },
			func() (float64, float64) {
				bases := []float64{10000, 500000, 1e6, 5e6, 1e7, 150000, 26.8}
				d := []int{32, 64, 80, 96, 128, 256}[rng.IntN(6)]
				return bases[rng.IntN(len(bases))], -2 * float64(rng.IntN(d/2)) / float64(d)
			}, 0.8},
		{"Pow64", Pow64, func(x, e float64) *big.Float { return bigExp(bigNew().Mul(newBig(e), bigLog(x))) },
			func() (float64, float64) {
				x := positive()
				return x, 700 * (2*rng.Float64() - 1) / math.Abs(math.Log(x))
			}, 1.4},
	} {
		t.Run(f.name, func(t *testing.T) {
			worst, at, to := 0.0, 0.0, 0.0
			for range n {
				x, e := f.arg()
				if u := units64(f.y(x, e), f.want(x, e)); !(u <= worst) {
					worst, at, to = u, x, e
				}
			}
			t.Logf("largest error %.4f ULP at %v, %v", worst, at, to)
			if !(worst <= f.ulp) {
				t.Errorf("largest error above the stated %v ULP", f.ulp)
			}
		})
	}
}

func TestFloat64Special(t *testing.T) {
	inf, nan := math.Inf(1), math.NaN()
	zero := math.Copysign(0, -1)
	for _, c := range []struct {
		name    string
		y, want float64
	}{
		{"exp 0", Exp64(0), 1}, {"exp -0", Exp64(zero), 1}, {"exp Inf", Exp64(inf), inf}, {"exp -Inf", Exp64(-inf), 0},
		{"exp NaN", Exp64(nan), nan}, {"exp 710", Exp64(710), inf}, {"exp -746", Exp64(-746), 0},
		{"exp largest", Exp64(709.782712893384), 0x1.fffffffffff2ap+1023},
		{"exp smallest", Exp64(-745.1332191019411), 0x1p-1074},
		{"log 0", Log64(0), -inf}, {"log -0", Log64(zero), -inf}, {"log 1", Log64(1), 0}, {"log Inf", Log64(inf), inf},
		{"log -1", Log64(-1), nan}, {"log -Inf", Log64(-inf), nan}, {"log NaN", Log64(nan), nan},
		{"log subnormal", Log64(0x1p-1074), -744.4400719213812}, {"log 2", Log64(2), math.Ln2},
		{"sin 0", Sin64(0), 0}, {"sin -0", Sin64(zero), zero}, {"sin Inf", Sin64(inf), nan}, {"sin NaN", Sin64(nan), nan},
		{"sin 2^63", Sin64(0x1p63), nan}, {"sin pi", Sin64(math.Pi), 0x1.1a62633145c07p-53},
		{"cos 0", Cos64(0), 1}, {"cos -0", Cos64(zero), 1}, {"cos -Inf", Cos64(-inf), nan}, {"cos pi", Cos64(math.Pi), -1},
		{"cos pi/2", Cos64(math.Pi / 2), 0x1.1a62633145c07p-54},
		{"2^10", Pow64(2, 10), 1024}, {"2^-1074", Pow64(2, -1074), 0x1p-1074}, {"4^0.5", Pow64(4, 0.5), 2}, {"10^15", Pow64(10, 15), 1e15},
		{"x^0", Pow64(nan, 0), 1}, {"1^y", Pow64(1, nan), 1}, {"x^1", Pow64(1e-310, 1), 1e-310}, {"10000^-1", Pow64(10000, -1), 1e-4},
		{"0^2", Pow64(0, 2), 0}, {"0^-2", Pow64(0, -2), inf}, {"Inf^2", Pow64(inf, 2), inf}, {"Inf^-2", Pow64(inf, -2), 0},
		{"negative", Pow64(-2, 2), nan}, {"NaN^2", Pow64(nan, 2), nan}, {"2^NaN", Pow64(2, nan), nan},
		{"2^Inf", Pow64(2, inf), inf}, {"2^-Inf", Pow64(2, -inf), 0}, {"0.5^Inf", Pow64(0.5, inf), 0}, {"2^1e300", Pow64(2, 1e300), inf},
		{"2^1e-300", Pow64(2, 1e-300), 1},
	} {
		if math.Float64bits(c.y) != math.Float64bits(c.want) && !(math.IsNaN(c.y) && math.IsNaN(c.want)) {
			t.Errorf("%s: %v (%016X), want %v (%016X)", c.name, c.y, math.Float64bits(c.y), c.want, math.Float64bits(c.want))
		}
	}
	for _, x := range []float64{0.3, 1, 2, 5, 1e6, 1 << 31} {
		if Sin64(-x) != -Sin64(x) || Cos64(-x) != Cos64(x) {
			t.Errorf("sin and cos of ±%v", x)
		}
	}
}
