package engine_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const goldenMagic = "GOLDEN1\n"

// A golden is what llama.cpp says of a few texts, position by position, once with a model's weights as they are and once
// with the same weights dequantised to F32. testdata/golden/README.md describes the files.
type golden struct {
	Model string
	Peer  string // version and build of llama.cpp
	Texts []goldenText
	Total goldenScore `json:"llama_cpp"` // llama.cpp's own, over all texts
}

// A goldenText is one sequence: the model sees Tokens[:i+1] at Positions[i].
type goldenText struct {
	Name      string
	Tokens    []int32
	Score     goldenScore      `json:"llama_cpp"`
	Positions []goldenPosition `json:"-"`
}

// A goldenPosition holds log-probabilities in len(IDs)+1 buckets: one for each of the reference's likeliest tokens, and a
// last one for all other tokens together.
type goldenPosition struct {
	IDs     []int32   // the reference's likeliest tokens, the likeliest first
	Ref     []float32 // the F32 model
	Peer    []float32 // the model itself
	PeerTop int32     // the model's likeliest token
}

// A goldenScore compares a model with the F32 reference: means over positions, in nats.
type goldenScore struct {
	KLD        float64 // over the whole vocabulary
	KLDBuckets float64 `json:"kld_buckets"` // over the buckets, a lower bound of KLD
	SameTop    int     `json:"same_top"`    // positions with the reference's likeliest token
	Positions  int
}

// loadGolden reads the golden of name, NAME.json and NAME.bin.
func loadGolden(t testing.TB, name string) *golden {
	t.Helper()
	base := filepath.Join("testdata", "golden", name)
	text, err := os.ReadFile(base + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var g golden
	if err := json.Unmarshal(text, &g); err != nil {
		t.Fatalf("%s.json: %v", base, err)
	}
	data, err := os.ReadFile(base + ".bin")
	if err != nil {
		t.Fatal(err)
	}
	if err := g.readPositions(data); err != nil {
		t.Fatalf("%s.bin: %v", base, err)
	}
	return &g
}

// readPositions fills the positions of g.Texts from the binary file.
func (g *golden) readPositions(data []byte) error {
	var header struct {
		Magic          [len(goldenMagic)]byte
		Positions, Top uint32
	}
	r := bytes.NewReader(data)
	if err := binary.Read(r, binary.LittleEndian, &header); err != nil {
		return fmt.Errorf("header: %w", err)
	}
	if string(header.Magic[:]) != goldenMagic {
		return fmt.Errorf("magic %q, want %q", header.Magic[:], goldenMagic)
	}
	positions := 0
	for _, text := range g.Texts {
		positions += len(text.Tokens)
	}
	if int64(header.Positions) != int64(positions) {
		return fmt.Errorf("%d positions, the texts have %d tokens", header.Positions, positions)
	}
	if record := 4 * (3*int64(header.Top) + 3); int64(r.Len()) != int64(positions)*record {
		return fmt.Errorf("%d bytes after the header, want %d positions of %d bytes", r.Len(), positions, record)
	}
	for i := range g.Texts {
		text := &g.Texts[i]
		text.Positions = make([]goldenPosition, len(text.Tokens))
		for j := range text.Positions {
			p := goldenPosition{
				IDs:  make([]int32, header.Top),
				Ref:  make([]float32, header.Top+1),
				Peer: make([]float32, header.Top+1),
			}
			if err := errors.Join(
				binary.Read(r, binary.LittleEndian, p.IDs),
				binary.Read(r, binary.LittleEndian, p.Ref),
				binary.Read(r, binary.LittleEndian, p.Peer),
				binary.Read(r, binary.LittleEndian, &p.PeerTop),
			); err != nil {
				return fmt.Errorf("text %q, position %d: %w", text.Name, j, err)
			}
			text.Positions[j] = p
		}
	}
	return nil
}

// logBuckets gives the log-softmax of logits at ids and, after them, the logarithm of the probability of all other tokens.
// It sums in float64.
func logBuckets(logits []float32, ids []int32) []float32 {
	listed := make([]bool, len(logits))
	for _, id := range ids {
		listed[id] = true
	}
	top := float64(slices.Max(logits))
	var sum, rest float64
	for id, l := range logits {
		p := math.Exp(float64(l) - top)
		sum += p
		if !listed[id] {
			rest += p
		}
	}
	logSum := math.Log(sum)
	out := make([]float32, 0, len(ids)+1)
	for _, id := range ids {
		out = append(out, float32(float64(logits[id])-top-logSum))
	}
	return append(out, float32(math.Log(rest)-logSum))
}

// klBuckets is the Kullback-Leibler divergence of q from p in nats, both given as log-probabilities of the same buckets.
// Over buckets it is a lower bound of the divergence over the vocabulary.
func klBuckets(p, q []float32) float64 {
	var sum float64
	for i := range p {
		if prob := math.Exp(float64(p[i])); prob > 0 {
			sum += float64(prob * (float64(p[i]) - float64(q[i])))
		}
	}
	return sum
}

// argmax is the token of the largest logit, the lowest of equals.
func argmax(logits []float32) int32 {
	best := 0
	for id, l := range logits {
		if l > logits[best] {
			best = id
		}
	}
	return int32(best)
}

// score compares a model with the reference. logits(i) is the model's row of logits after text.Tokens[:i+1]; KLD stays 0,
// since the golden does not hold the reference's whole distribution.
func (text *goldenText) score(logits func(i int) []float32) goldenScore {
	s := goldenScore{Positions: len(text.Positions)}
	for i, p := range text.Positions {
		row := logits(i)
		s.add(p, logBuckets(row, p.IDs), argmax(row))
	}
	s.KLDBuckets /= float64(s.Positions)
	return s
}

// add counts one position: q holds a model's buckets, top its likeliest token.
func (s *goldenScore) add(p goldenPosition, q []float32, top int32) {
	s.KLDBuckets += klBuckets(p.Ref, q)
	if top == p.IDs[0] {
		s.SameTop++
	}
}

// The file is consistent: llama.cpp's own score, recomputed from the buckets, is the recorded one.
func TestGoldenScoresLlamaCPP(t *testing.T) {
	g := loadGolden(t, "smollm2")
	total := goldenScore{KLD: g.Total.KLD}
	for _, text := range g.Texts {
		s := goldenScore{KLD: text.Score.KLD, Positions: len(text.Positions)}
		for _, p := range text.Positions {
			s.add(p, p.Peer, p.PeerTop)
		}
		total.KLDBuckets += s.KLDBuckets
		total.SameTop += s.SameTop
		total.Positions += s.Positions
		s.KLDBuckets /= float64(s.Positions)
		compareScores(t, text.Name, s, text.Score)
	}
	total.KLDBuckets /= float64(total.Positions)
	compareScores(t, "total", total, g.Total)
}

// compareScores compares with the nine decimals that the file records.
func compareScores(t *testing.T, name string, got, want goldenScore) {
	t.Helper()
	got.KLDBuckets = math.Round(float64(got.KLDBuckets*1e9)) / 1e9
	if got != want {
		t.Errorf("%s: %+v, the file records %+v", name, got, want)
	}
	if want.KLDBuckets > want.KLD {
		t.Errorf("%s: KLD over the buckets %g exceeds the KLD %g", name, want.KLDBuckets, want.KLD)
	}
}

func TestGoldenPositions(t *testing.T) {
	for _, text := range loadGolden(t, "smollm2").Texts {
		for i, p := range text.Positions {
			sorted := slices.Clone(p.IDs)
			slices.Sort(sorted)
			if len(slices.Compact(sorted)) != len(p.IDs) {
				t.Errorf("%s, position %d: a token stands twice among the likeliest", text.Name, i)
			}
			for j := 1; j < len(p.IDs); j++ {
				if p.Ref[j] > p.Ref[j-1] {
					t.Errorf("%s, position %d: token %d is likelier than token %d before it", text.Name, i, j, j-1)
				}
			}
			for name, logs := range map[string][]float32{"reference": p.Ref, "llama.cpp": p.Peer} {
				var sum float64
				for _, l := range logs {
					sum += math.Exp(float64(l))
				}
				if math.Abs(sum-1) > 1e-5 {
					t.Errorf("%s, position %d: the %s's buckets sum to %g", text.Name, i, name, sum)
				}
			}
		}
	}
}

func TestLogBuckets(t *testing.T) {
	ln := func(p float64) float32 { return float32(math.Log(p)) }
	logits := []float32{ln(1), ln(4), ln(2), ln(8), ln(1)} // of 16
	for _, shift := range []float32{0, 128, -128} {        // powers of two: the differences stay the same
		shifted := make([]float32, len(logits))
		for i, l := range logits {
			shifted[i] = l + shift
		}
		got := logBuckets(shifted, []int32{3, 1})
		for i, want := range []float64{8. / 16, 4. / 16, 4. / 16} {
			if p := math.Exp(float64(got[i])); math.Abs(p-want) > 1e-5 {
				t.Errorf("shift %g: bucket %d holds %g, want %g", shift, i, p, want)
			}
		}
		if top := argmax(shifted); top != 3 {
			t.Errorf("shift %g: argmax %d, want 3", shift, top)
		}
	}
	if top := argmax([]float32{1, 5, 5}); top != 1 {
		t.Errorf("argmax of equals is %d, want the lowest, 1", top)
	}
}

func TestKLBuckets(t *testing.T) {
	inf := float32(math.Inf(-1))
	half, quarter := float32(math.Log(0.5)), float32(math.Log(0.25))
	for _, tt := range []struct {
		name string
		p, q []float32
		want float64
	}{
		{"equal", []float32{half, half}, []float32{half, half}, 0},
		{"skewed", []float32{half, half, inf}, []float32{half, quarter, quarter}, math.Ln2 / 2},
		{"impossible", []float32{half, half}, []float32{0, inf}, math.Inf(1)},
	} {
		got := klBuckets(tt.p, tt.q)
		if got != tt.want && math.Abs(got-tt.want) > 1e-7 || math.IsNaN(got) {
			t.Errorf("%s: %g, want %g", tt.name, got, tt.want)
		}
	}
}

// A model equal to the reference in the buckets scores 0; one that prefers another token does not.
func TestGoldenScore(t *testing.T) {
	logits := []float32{0, 3, 2, -1}
	ids := []int32{1, 2}
	text := goldenText{Positions: []goldenPosition{
		{IDs: ids, Ref: logBuckets(logits, ids)},
		{IDs: ids, Ref: logBuckets(logits, ids)},
	}}
	got := text.score(func(int) []float32 { return logits })
	if want := (goldenScore{SameTop: 2, Positions: 2}); got != want {
		t.Errorf("the reference itself: %+v, want %+v", got, want)
	}
	other := []float32{0, 2, 3, -1}
	got = text.score(func(int) []float32 { return other })
	if got.SameTop != 0 || got.KLDBuckets <= 0 {
		t.Errorf("another model: %+v, want no same top and a positive divergence", got)
	}
}

func TestGoldenRejectsDamage(t *testing.T) {
	g := golden{Texts: []goldenText{{Name: "a", Tokens: []int32{7}}}}
	record := func(magic string, positions, top uint32, size int) []byte {
		b := binary.LittleEndian.AppendUint32([]byte(magic), positions)
		b = binary.LittleEndian.AppendUint32(b, top)
		return append(b, make([]byte, size)...)
	}
	if err := g.readPositions(record(goldenMagic, 1, 2, 36)); err != nil {
		t.Fatalf("a whole file: %v", err)
	}
	for name, data := range map[string][]byte{
		"empty":     nil,
		"magic":     record("GOLDEN0\n", 1, 2, 36),
		"positions": record(goldenMagic, 2, 2, 72),
		"short":     record(goldenMagic, 1, 2, 35),
		"long":      record(goldenMagic, 1, 2, 37),
		"top":       record(goldenMagic, 1, math.MaxUint32, 36),
	} {
		if err := g.readPositions(data); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
