package sample

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/swizzle-rt/swizzle/ir/canon"
)

var (
	inf = float32(math.Inf(1))
	nan = float32(math.NaN())
)

// reference chooses as doc.go says, word by word, sorting everything.
func reference(p Params, logits []float32, history []int32, u float64) int32 {
	type token struct {
		id int
		l  float64
	}
	window := history
	if p.RepeatLastN >= 0 {
		window = history[max(0, len(history)-p.RepeatLastN):]
	}
	var all []token
	for id, logit := range logits {
		if logit == -inf {
			continue
		}
		l := float64(logit)
		count := 0
		for _, h := range window {
			if int(h) == id {
				count++
			}
		}
		if count > 0 {
			if l > 0 {
				l /= p.RepeatPenalty
			} else {
				l = float64(l * p.RepeatPenalty)
			}
			l -= float64(float64(count)*p.FrequencyPenalty) + p.PresencePenalty
		}
		all = append(all, token{id, l})
	}
	ranked := func(v []token) []token {
		v = slices.Clone(v)
		slices.SortFunc(v, func(a, b token) int {
			switch {
			case a.l > b.l || a.l == b.l && a.id < b.id:
				return -1
			default:
				return 1
			}
		})
		return v
	}
	top := ranked(all)[0].l
	if p.Temperature == 0 {
		return int32(ranked(all)[0].id)
	}
	exp := func(l, t float64) float64 {
		if l == top {
			return 1
		}
		return canon.Exp64((l - top) / t)
	}
	standing := all
	if p.TopK > 0 {
		standing = ranked(standing)
		standing = standing[:min(p.TopK, len(standing))]
	}
	if p.TopP < 1 {
		inOrder := slices.Clone(standing)
		slices.SortFunc(inOrder, func(a, b token) int { return a.id - b.id })
		var total float64
		for _, c := range inOrder {
			total += exp(c.l, 1)
		}
		standing = ranked(standing)
		var run float64
		for i, c := range standing {
			run += exp(c.l, 1)
			if run >= float64(p.TopP*total) {
				standing = standing[:i+1]
				break
			}
		}
	}
	var kept []token
	for _, c := range standing {
		if p.MinP == 0 || exp(c.l, 1) >= p.MinP {
			kept = append(kept, c)
		}
	}
	var total float64
	for _, c := range kept {
		total += exp(c.l, p.Temperature)
	}
	var run float64
	for _, c := range kept {
		run += exp(c.l, p.Temperature)
		if run >= float64(u*total) {
			return int32(c.id)
		}
	}
	panic("the running sum never reached u of the total")
}

// row makes logits of one of several kinds: smooth, with many equal values, with
// −0 and +0, masked, flat, steep, with infinities.
func row(r *rand.Rand, vocab int) []float32 {
	logits := make([]float32, vocab)
	kind := r.IntN(8)
	for i := range logits {
		switch kind {
		case 0:
			logits[i] = float32(r.NormFloat64())
		case 1:
			logits[i] = float32(r.IntN(4))
		case 2:
			logits[i] = []float32{0, float32(math.Copysign(0, -1)), -1}[r.IntN(3)]
		case 3:
			logits[i] = float32(4 * r.NormFloat64())
			if r.IntN(3) > 0 {
				logits[i] = -inf
			}
		case 4:
			logits[i] = 7
		case 5:
			logits[i] = float32(500 * r.NormFloat64())
		case 6:
			logits[i] = []float32{math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, -inf, 0, 1}[r.IntN(6)]
		case 7:
			logits[i] = float32(r.NormFloat64())
			if r.IntN(vocab) == 0 {
				logits[i] = inf
			}
		}
	}
	if slices.Max(logits) == -inf {
		logits[r.IntN(vocab)] = 1
	}
	return logits
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func params(r *rand.Rand) Params {
	return Params{
		Temperature:      pick(r, 0, 0.01, 0.8, 1, 1.3, 100, 1e-300),
		TopK:             pick(r, 0, -1, 1, 2, 7, 64, 100000),
		TopP:             pick(r, 1, 1, 0, 0.1, 0.5, 0.95, 0.9999, math.Nextafter(1, 0)),
		MinP:             pick(r, 0, 0, 0.05, 0.5, 1),
		RepeatPenalty:    pick(r, 1, 1, 1.3, 0.5),
		PresencePenalty:  pick(r, 0, 0, 0.7, -2),
		FrequencyPenalty: pick(r, 0, 0, 0.3, -0.1),
		RepeatLastN:      pick(r, 0, -1, 1, 3, 64),
		Seed:             r.Uint32(),
	}
}

func TestReference(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		p := params(r)
		vocab := pick(r, 1, 2, 5, 33, 257, 700)
		s, err := New(p, vocab)
		if err != nil {
			t.Fatal(err)
		}
		var words mt19937
		words.seed(p.Seed)
		history := make([]int32, r.IntN(6))
		for i := range history {
			history[i] = int32(r.IntN(vocab+2) - 1) // one on either side of the vocabulary
		}
		s.Prime(history)
		for position := range 4 {
			logits := row(r, vocab)
			before := slices.Clone(logits)
			want := reference(p, logits, history, words.uniform(position))
			for range 2 { // a second call gives the same
				got, err := s.Sample(logits)
				if err != nil || got != want {
					t.Fatalf("%+v, vocabulary %d, position %d: token %d, %v; want %d", p, vocab, position, got, err, want)
				}
			}
			if !slices.Equal(logits, before) {
				t.Fatal("Sample changed the logits")
			}
			emitted := want
			if r.IntN(2) == 0 { // what is emitted need not be what was sampled
				emitted = int32(r.IntN(vocab))
			}
			s.Accept(emitted)
			history = append(history, emitted)
		}
	}
}

// TestTopPEdge sets TopP so that the sum of the most probable tokens comes within
// an ulp of it, where the order of the sums decides.
func TestTopPEdge(t *testing.T) {
	r := rand.New(rand.NewPCG(9, 10))
	for range 500 {
		logits := make([]float32, 90)
		for i := range logits {
			logits[i] = pick[float32](r, 0, -1, -5) - float32(r.Float64()/20)
		}
		top := float64(slices.Max(logits))
		var total, near float64
		for _, l := range logits {
			total += canon.Exp64(float64(l) - top)
		}
		for _, l := range logits {
			if l > -0.5 {
				near += canon.Exp64(float64(l) - top)
			}
		}
		for _, l := range logits {
			if l > -2 && l < -0.5 {
				near += canon.Exp64(float64(l) - top)
			}
		}
		for _, topP := range []float64{math.Nextafter(near/total, 0), near / total, math.Nextafter(near/total, 1)} {
			// At this temperature the tokens kept are equally probable, so that the
			// choice shows how many there are.
			p := Params{Temperature: 1e6, TopK: pick(r, 0, len(logits)), TopP: topP, RepeatPenalty: 1, Seed: r.Uint32()}
			s, err := New(p, len(logits))
			if err != nil {
				t.Fatal(err)
			}
			for range 5 {
				want := reference(p, logits, nil, s.words.uniform(s.position))
				got, err := s.Sample(logits)
				if err != nil || got != want {
					t.Fatalf("top-p %v: token %d, %v; want %d", topP, got, err, want)
				}
				s.Accept(got)
			}
		}
	}
}

func TestDraw(t *testing.T) {
	for _, test := range []struct {
		u    float64
		want int32
	}{
		{0, 5}, {0.25, 5}, {math.Nextafter(0.25, 1), 2}, {0.5, 2}, {0.75, 9}, {math.Nextafter(0.75, 1), 7}, {1 - 0x1p-53, 7},
	} {
		kept := []candidate{{3, 5}, {3, 2}, {3, 9}, {3, 7}}
		if got := draw(kept, 3, 0.7, test.u); got != test.want {
			t.Errorf("u = %v draws %d, want %d", test.u, got, test.want)
		}
	}
}

func TestGreedy(t *testing.T) {
	zero := float32(math.Copysign(0, -1))
	for _, test := range []struct {
		logits []float32
		want   int32
		err    error
	}{
		{[]float32{1, 3, 3, 2}, 1, nil},
		{[]float32{zero, 0}, 0, nil},
		{[]float32{-1, zero, 0}, 1, nil},
		{[]float32{-inf, -math.MaxFloat32}, 1, nil},
		{[]float32{1, inf, inf}, 1, nil},
		{[]float32{-inf, -inf}, 0, ErrMasked},
		{[]float32{nan, 1}, 0, ErrNaN},
		{[]float32{inf, nan}, 0, ErrNaN},
		{[]float32{-inf, nan}, 0, ErrNaN},
		{[]float32{1, 2, -nan}, 0, ErrNaN},
	} {
		got, err := Argmax(test.logits)
		if got != test.want || !errors.Is(err, test.err) {
			t.Errorf("Argmax(%v) = %d, %v; want %d, %v", test.logits, got, err, test.want, test.err)
		}
		penalized := Greedy()
		penalized.RepeatPenalty, penalized.RepeatLastN = 2, 8
		hot := Default()
		hot.Temperature, hot.TopK = 1e-9, 1
		for _, p := range []Params{Greedy(), penalized, hot} {
			s, err := New(p, len(test.logits))
			if err != nil {
				t.Fatal(err)
			}
			got, err := s.Sample(test.logits)
			if got != test.want || !errors.Is(err, test.err) {
				t.Errorf("%+v: Sample(%v) = %d, %v; want %d, %v", p, test.logits, got, err, test.want, test.err)
			}
		}
	}
	if _, err := Argmax(nil); !errors.Is(err, ErrMasked) {
		t.Errorf("Argmax of nothing: %v", err)
	}
}

func TestNew(t *testing.T) {
	for _, test := range []struct {
		change func(*Params)
		err    string
	}{
		{func(p *Params) { p.Temperature = -0.1 }, "temperature is -0.1, want a number from 0 to"},
		{func(p *Params) { p.Temperature = math.NaN() }, "temperature is NaN"},
		{func(p *Params) { p.Temperature = math.Inf(1) }, "temperature is +Inf"},
		{func(p *Params) { p.TopP = 1.01 }, "top-p is 1.01, want a number from 0 to 1"},
		{func(p *Params) { p.TopP = math.NaN() }, "top-p is NaN"},
		{func(p *Params) { p.MinP = -1 }, "min-p is -1, want a number from 0 to 1"},
		{func(p *Params) { p.RepeatPenalty = 0 }, "repeat penalty is 0, want"},
		{func(p *Params) { p.PresencePenalty = math.Inf(-1) }, "presence penalty is -Inf"},
		{func(p *Params) { p.FrequencyPenalty = 1e9 }, "frequency penalty is 1e+09"},
		{func(p *Params) { p.RepeatLastN = -2 }, "repeat last n is -2"},
	} {
		p := Default()
		test.change(&p)
		if _, err := New(p, 10); err == nil || !strings.Contains(err.Error(), test.err) {
			t.Errorf("%+v: error %v, want %q", p, err, test.err)
		}
	}
	for _, vocab := range []int{0, -1, maxVocab + 1, math.MaxInt} {
		if _, err := New(Greedy(), vocab); err == nil {
			t.Errorf("vocabulary of %d tokens accepted", vocab)
		}
	}
	s, err := New(Default(), 10)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Sample(make([]float32, 9)); err == nil {
		t.Error("nine logits for ten tokens accepted")
	}
}

// TestPosition checks that a position's number does not depend on how many
// candidates earlier positions had, or whether they were sampled at all.
func TestPosition(t *testing.T) {
	p := Params{Temperature: 1, TopP: 1, RepeatPenalty: 1, Seed: 42}
	flat := make([]float32, 1000)
	var want []int32
	for skip := range 400 {
		s, err := New(p, len(flat))
		if err != nil {
			t.Fatal(err)
		}
		for range skip {
			s.Accept(0)
		}
		id, err := s.Sample(flat)
		if err != nil {
			t.Fatal(err)
		}
		want = append(want, id)
	}
	s, err := New(p, len(flat))
	if err != nil {
		t.Fatal(err)
	}
	r := rand.New(rand.NewPCG(3, 4))
	for position := range want {
		if _, err := s.Sample(row(r, len(flat))); err != nil {
			t.Fatal(err)
		}
		got, err := s.Sample(flat)
		if err != nil || got != want[position] {
			t.Fatalf("position %d: %d, %v, want %d", position, got, err, want[position])
		}
		s.Accept(got)
	}
}

// TestDistribution compares 20000 draws with the probabilities, by Pearson's χ²
// against its 99.9 % point.
func TestDistribution(t *testing.T) {
	const draws = 20000
	logits := []float32{1, 0.5, -inf, 2, 0, 1.5, -1, 0.5}
	for _, test := range []struct {
		p     Params
		limit float64 // for one degree of freedom less than tokens kept
	}{
		{Params{Temperature: 1, TopP: 1, RepeatPenalty: 1, Seed: 1}, 22.458},
		{Params{Temperature: 0.5, TopP: 1, RepeatPenalty: 1, Seed: 2}, 22.458},
		{Params{Temperature: 2, TopK: 3, TopP: 1, RepeatPenalty: 1, Seed: 3}, 13.816},
		{Params{Temperature: 1, TopP: 0.8, RepeatPenalty: 1, Seed: 4}, 16.266},
		{Params{Temperature: 1, TopP: 1, MinP: 0.2, RepeatPenalty: 1, Seed: 5}, 18.467},
	} {
		s, err := New(test.p, len(logits))
		if err != nil {
			t.Fatal(err)
		}
		counts := map[int32]int{}
		for range draws {
			id, err := s.Sample(logits)
			if err != nil {
				t.Fatal(err)
			}
			counts[id]++
			s.Accept(id)
		}
		var total, chi2 float64
		for id := range counts {
			total += math.Exp(float64(logits[id]) / test.p.Temperature)
		}
		for id, n := range counts {
			want := float64(draws*math.Exp(float64(logits[id])/test.p.Temperature)) / total
			chi2 += float64((float64(n)-want)*(float64(n)-want)) / want
		}
		if chi2 > test.limit {
			t.Errorf("%+v: χ² is %.1f, above %.1f: %v", test.p, chi2, test.limit, counts)
		}
		kept := map[float64]int{22.458: 7, 13.816: 3, 16.266: 4, 18.467: 5}[test.limit]
		if len(counts) != kept {
			t.Errorf("%+v: %d tokens drawn, want %d: %v", test.p, len(counts), kept, counts)
		}
	}
}

func TestAllocations(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	logits := make([]float32, 5000)
	for i := range logits {
		logits[i] = float32(r.NormFloat64())
	}
	all := Default()
	all.RepeatPenalty, all.FrequencyPenalty = 1.1, 0.2
	topP := Params{Temperature: 1, TopP: 0.99, MinP: 0.001, RepeatPenalty: 1}
	for _, p := range []Params{Greedy(), Default(), all, topP} {
		s, err := New(p, len(logits))
		if err != nil {
			t.Fatal(err)
		}
		token := func() {
			id, err := s.Sample(logits)
			if err != nil {
				t.Fatal(err)
			}
			s.Accept(id)
		}
		for range 70 {
			token()
		}
		if n := testing.AllocsPerRun(20, token); n != 0 {
			t.Errorf("%+v: %v allocations a token", p, n)
		}
	}
}

func TestMT19937(t *testing.T) {
	var m mt19937
	m.seed(5489)
	numbers := []int{0, 1, 623, 624, 9999}
	for seed, want := range map[uint32][]uint32{
		5489:           {3499211612, 581869302, 4020325887, 4178893912, 4123659995},
		0:              {2357136044, 2546248239, 3791854820, 341544762, 1543171712},
		42:             {1608637542, 3421126067, 1077437785, 108880612, 1399405940},
		math.MaxUint32: {419326371, 479346978, 1027084080, 3860652269, 1117955853},
	} {
		m.seed(seed)
		for i, n := range numbers {
			if got := m.word(n); got != want[i] {
				t.Errorf("seed %d: word %d is %d, want %d", seed, n, got, want[i])
			}
			if got := m.word(n); got != want[i] {
				t.Errorf("seed %d: word %d drawn again is %d, want %d", seed, n, got, want[i])
			}
		}
	}
	m.seed(5489)
	if got := m.word(9999); got != 4123659995 {
		t.Errorf("word 9999, drawn alone, is %d", got)
	}
	m.seed(5489)
	if got, want := m.uniform(0), float64(float64(581869302<<32|3499211612)*0x1p-64); got != want {
		t.Errorf("uniform 0 is %v, want %v", got, want)
	}
}

func TestUnit(t *testing.T) {
	for _, test := range []struct {
		word uint64
		want float64
	}{
		{0, 0},
		{1, 0x1p-64},
		{1 << 63, 0.5},
		{math.MaxUint64, 1 - 0x1p-53},
		{math.MaxUint64 - 1<<10 + 1, 1 - 0x1p-53}, // rounds to 1
		{math.MaxUint64 - 1<<11 + 1, 1 - 0x1p-53}, // exact
		{math.MaxUint64 - 1<<12 + 1, 1 - 0x1p-52},
		{1<<53 + 1, 0x1p-11}, // to even
		{1<<53 + 3, 0x1p-11 + 0x1p-62},
	} {
		if got := unit(test.word); got != test.want {
			t.Errorf("unit(%#x) = %v, want %v", test.word, got, test.want)
		}
	}
}

func TestLogProbs(t *testing.T) {
	logits := []float32{1, -inf, 3, 3, -2}
	norm := canon.Log64(canon.Exp64(-2) + 0 + 1 + 1 + canon.Exp64(-5))
	want := []float64{-2 - norm, math.Inf(-1), -norm, -norm, -5 - norm}
	got, err := LogProbs(logits, []int32{0, 1, 2, 3, 4})
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("LogProbs = %v, %v, want %v", got, err, want)
	}
	for n, ids := range [][]int32{{}, {2}, {2, 3}, {2, 3, 0}, {2, 3, 0, 4}, {2, 3, 0, 4}, {2, 3, 0, 4}} {
		top, err := TopLogProbs(logits, n)
		if err != nil || len(top) != len(ids) {
			t.Fatalf("TopLogProbs(%d) = %v, %v", n, top, err)
		}
		for i, id := range ids {
			if top[i] != (LogProb{id, want[id]}) {
				t.Errorf("TopLogProbs(%d)[%d] = %v, want token %d, %v", n, i, top[i], id, want[id])
			}
		}
	}
	if top, err := TopLogProbs(logits, math.MaxInt); err != nil || len(top) != 4 {
		t.Errorf("all TopLogProbs: %v, %v", top, err)
	}
	if top, err := TopLogProbs(logits, -1); err != nil || len(top) != 0 {
		t.Errorf("TopLogProbs(-1) = %v, %v", top, err)
	}
	if got, err := LogProbs([]float32{inf, 1, inf}, []int32{0, 1}); err != nil || got[0] != -canon.Log64(2) || got[1] != math.Inf(-1) {
		t.Errorf("LogProbs of two infinities: %v, %v", got, err)
	}
	for _, id := range []int32{-1, 5} {
		if _, err := LogProbs(logits, []int32{id}); err == nil {
			t.Errorf("LogProbs of token %d of five accepted", id)
		}
	}
	for _, test := range []struct {
		logits []float32
		err    error
	}{{[]float32{1, nan}, ErrNaN}, {[]float32{-inf}, ErrMasked}} {
		if _, err := LogProbs(test.logits, nil); !errors.Is(err, test.err) {
			t.Errorf("LogProbs(%v): %v", test.logits, err)
		}
		if _, err := TopLogProbs(test.logits, 1); !errors.Is(err, test.err) {
			t.Errorf("TopLogProbs(%v): %v", test.logits, err)
		}
	}
}

func BenchmarkSample(b *testing.B) {
	r := rand.New(rand.NewPCG(7, 8))
	logits := make([]float32, 151936)
	for i := range logits {
		logits[i] = float32(3 * r.NormFloat64())
	}
	for _, p := range []Params{
		Greedy(),
		Default(),
		{Temperature: 1, TopP: 0.95, RepeatPenalty: 1},
		{Temperature: 1, TopP: 1, MinP: 0.05, RepeatPenalty: 1},
		{Temperature: 1, TopP: 1, RepeatPenalty: 1},
	} {
		b.Run(fmt.Sprintf("t=%v/k=%d/p=%v/min=%v", p.Temperature, p.TopK, p.TopP, p.MinP), func(b *testing.B) {
			s, err := New(p, len(logits))
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := s.Sample(logits); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
