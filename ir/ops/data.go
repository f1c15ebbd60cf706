package ops

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
)

// Pattern names a kind of test data.
type Pattern int

const (
	Random   Pattern = iota // ordinary values
	Zeros                   // all +0, with some −0
	Extremes                // −128, 127, largest codes, large magnitudes
	Tiny                    // subnormals and other magnitudes near the flush limits
	Special                 // NaN, ±Inf and ordinary values mixed; only activations can hold them
	Spike                   // one value a row
	Constant                // equal values
	Mixed                   // magnitudes over the whole range of exponents
)

// Patterns lists them.
var Patterns = []Pattern{Random, Zeros, Extremes, Tiny, Special, Spike, Constant, Mixed}

func (p Pattern) String() string {
	return [...]string{"random", "zeros", "extremes", "tiny", "special", "spike", "constant", "mixed"}[p]
}

// Data makes test data of one pattern, reproducibly.
type Data struct {
	Pattern Pattern
	rng     *rand.Rand
}

// NewData returns a source of data.
func NewData(p Pattern, seed uint64) *Data {
	return &Data{p, rand.New(rand.NewPCG(seed, uint64(p)))}
}

// float returns one activation.
func (d *Data) float(i int) float32 {
	x := float32(d.rng.NormFloat64())
	switch d.Pattern {
	case Zeros:
		if i%5 == 1 {
			return float32(math.Copysign(0, -1))
		}
		return 0
	case Extremes:
		return []float32{127, -127, 1e6, -1e6, 0.5, -0.5, 126.5, 3}[d.rng.IntN(8)]
	case Tiny:
		return []float32{math.Float32frombits(1), math.Float32frombits(0x807FFFFF), 1.0 / (1 << 50), -1.0 / (1 << 51), 1e-30, -1e-38, float32(x * 1e-20), x}[d.rng.IntN(8)]
	case Special:
		switch d.rng.IntN(40) {
		case 0:
			return float32(math.NaN())
		case 1:
			return float32(math.Inf(1))
		case 2:
			return float32(math.Inf(-1))
		case 3:
			return 1 << 63 * 2
		}
	case Spike:
		if i%37 != 5 {
			return 0
		}
	case Constant:
		return 1.25
	case Mixed:
		return float32(math.Ldexp(float64(x), d.rng.IntN(100)-50))
	}
	return x
}

// floats returns n activations.
func (d *Data) floats(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = d.float(i)
	}
	return x
}

// finite returns n floats without NaN and Inf and of moderate size, as weights and norms are.
func (d *Data) finite(n int) []float32 {
	x := d.floats(n)
	for i, v := range x {
		if v != v || v > 1e9 || v < -1e9 {
			x[i] = 2
		}
	}
	return x
}

// bytes returns n random bytes; Extremes favours 0, 127, 128 and 255, Constant repeats one.
func (d *Data) bytes(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(d.rng.IntN(256))
		switch d.Pattern {
		case Extremes:
			b[i] = []byte{0, 127, 128, 255}[d.rng.IntN(4)]
		case Zeros:
			b[i] = 0
		case Constant:
			b[i] = 0x5A
		}
	}
	return b
}

// half returns a finite f16 scale.
func (d *Data) half() uint16 {
	h := uint16(d.rng.IntN(1<<16)) & 0x83FF
	switch d.Pattern {
	case Zeros:
		return h & 0x8000
	case Tiny:
		return h // zero and subnormals
	case Extremes:
		return h | 0x7800
	}
	return h | uint16(8+d.rng.IntN(8))<<10
}

// halves returns n finite f16 values as bytes.
func (d *Data) halves(n int) []byte {
	b := make([]byte, 2*n)
	for i := range n {
		binary.LittleEndian.PutUint16(b[2*i:], d.half())
	}
	return b
}

// filler is what outputs hold before a run, so that stray stores show.
const filler = 0xCD

func filled(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = filler
	}
	return b
}

func clone(b []byte) []byte { return append([]byte(nil), b...) }

func floatBytes(x []float32) []byte {
	b := make([]byte, 4*len(x))
	for i, v := range x {
		binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
	}
	return b
}

func int32Bytes(x []int32) []byte {
	b := make([]byte, 4*len(x))
	for i, v := range x {
		binary.LittleEndian.PutUint32(b[4*i:], uint32(v))
	}
	return b
}

func putFloat(b []byte, i int, v float32) {
	binary.LittleEndian.PutUint32(b[4*i:], math.Float32bits(v))
}

func getFloat(b []byte, i int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
}

func putInt(b []byte, i int, v int32) { binary.LittleEndian.PutUint32(b[4*i:], uint32(v)) }
