package perplexity

import (
	"math"
	"strings"
	"testing"
)

// near reports whether two results of a few roundings and of logarithms that are kept as float32 are the same.
func near(got, want float64) bool { return math.Abs(got-want) <= 1e-6*math.Max(1, math.Abs(want)) }

func check(t *testing.T, what string, got, want float64) {
	t.Helper()
	if !near(got, want) {
		t.Errorf("%s is %.9g, want %.9g", what, got, want)
	}
}

func logs(p ...float64) []float32 {
	out := make([]float32, len(p))
	for i := range p {
		out[i] = float32(math.Log(p[i]) + 5) // logits may all be shifted
	}
	return out
}

func TestScore(t *testing.T) {
	var s score
	for _, p := range []float64{0.5, 0.25, 0.125} {
		if err := s.add(logs(p, 1-p), 0); err != nil {
			t.Fatal(err)
		}
	}
	r := s.result()
	check(t, "PPL", r.PPL, 4)                                     // the geometric mean of 2, 4 and 8
	check(t, "its error", r.PPLError, 4*math.Ln2*math.Sqrt(1./3)) // deviations −ln 2, 0, ln 2: variance ln² 2
	if r.Scored != 3 || r.Divergence != nil {
		t.Errorf("%+v", r)
	}
}

// The base has P = ¼ ½ ¼ in even rows and ⅓ ⅓ ⅓ in odd ones.
func TestDivergence(t *testing.T) {
	b, err := openBase(t, sampleBase())
	if err != nil {
		t.Fatal(err)
	}
	s := score{base: b}
	for row, q := range [][]float32{logs(0.25, 0.5, 0.25), logs(1./3, 1./3, 1./3), logs(0.5, 0.25, 0.25), logs(1./2, 1./3, 1./6)} {
		if err := s.add(q, 2); err != nil {
			t.Fatalf("row %d: %v", row, err)
		}
	}
	kld := []float64{0, 0, math.Ln2 / 4, math.Log(4./3) / 3}
	d := s.result()
	mean := (kld[2] + kld[3]) / 4
	check(t, "mean", d.KLDMean, mean)
	check(t, "maximum", d.KLDMax, kld[2])
	check(t, "median", d.KLDMedian, kld[3]/2)
	check(t, "99 %", d.KLD99, 0.97*kld[2]+0.03*kld[3])
	check(t, "99.9 %", d.KLD999, 0.997*kld[2]+0.003*kld[3])
	check(t, "same top", d.SameTop, 75) // the base's lowest of equals counts
	check(t, "its error", d.SameTopError, 25)
	check(t, "PPL of the base", d.BasePPL, math.Sqrt(12))
	check(t, "PPL", d.PPL, math.Pow(4*3*4*6, 0.25))
	check(t, "ratio", d.PPLRatio, math.Pow(2, 0.25))
	check(t, "its error", d.PPLRatioError, math.Pow(2, 0.25)*math.Ln2/4)
	if diff := math.Abs(d.KLDError - math.Sqrt((2*mean*mean+(kld[2]-mean)*(kld[2]-mean)+(kld[3]-mean)*(kld[3]-mean))/12)); diff > 1e-6 {
		t.Errorf("the error of the mean is %g", d.KLDError)
	}
}

func TestScoreRefuses(t *testing.T) {
	var s score
	if err := s.add([]float32{1, float32(math.NaN())}, 0); err == nil {
		t.Error("a NaN among the logits is accepted")
	}
	b, err := openBase(t, appendRow(appendHeader(nil, 4, 2, 1, 0, 1, 0, 1), 0, -10, 0, 0))
	if err != nil {
		t.Fatal(err)
	}
	s = score{base: b}
	if err := s.add([]float32{1, 2}, 0); err == nil || !strings.Contains(err.Error(), "row 0: the probabilities sum to 9.07") {
		t.Errorf("probabilities of e⁻¹⁰: %v", err)
	}
}

func TestQuantile(t *testing.T) {
	for _, test := range []struct {
		x       []float64
		q, want float64
	}{{[]float64{3}, 0.5, 3}, {[]float64{1, 2}, 0.5, 1.5}, {[]float64{1, 2, 4}, 0.5, 2}, {[]float64{1, 2, 4}, 0.75, 3}, {[]float64{1, 2, 4}, 1, 4}, {[]float64{1, 2, 4}, 0, 1}} {
		if got := quantile(test.x, test.q); got != test.want {
			t.Errorf("quantile %g of %v is %g, want %g", test.q, test.x, got, test.want)
		}
	}
}
