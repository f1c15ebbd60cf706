package model

import (
	"fmt"
	"math"

	"github.com/swizzle-rt/swizzle/ir/canon"
	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
)

// ropeTable holds cosines and signed sines for positions, HeadDim of each a position (see op rope_query), made as they are
// needed. Angles are float64(position)·inv_freq, rounded once at the end.
type ropeTable struct {
	rot, dim   int
	neighbours bool
	freq       []float64
	cos, sin   []float32
	made       int // positions
	bufs       [2]*cpu.Buffer
}

// newRopeTable makes an empty table for so many positions. factors, if not nil, divide the frequencies (one for each
// of the rot/2 pairs).
func newRopeTable(c Config, r Rope, positions int, factors []float32) (*ropeTable, error) {
	t := &ropeTable{rot: c.Rot, dim: c.HeadDim, neighbours: c.Neighbours}
	for i := range c.Rot / 2 {
		f := canon.Pow64(r.Base, -float64(2*i)/float64(c.Rot)) / r.Scale
		if factors != nil {
			if !(factors[i] > 1e-6 && factors[i] < 1e6) {
				return nil, fmt.Errorf("tensor \"rope_freqs.weight\": element %d is %v, not between 1e-6 and 1e6", i, factors[i])
			}
			f /= float64(factors[i])
		}
		t.freq = append(t.freq, f)
	}
	for i := range t.bufs {
		b, err := cpu.Reserve(4 * positions * c.HeadDim)
		if err != nil {
			t.free()
			return nil, err
		}
		t.bufs[i] = b
	}
	t.cos, t.sin = floats(t.bufs[0]), floats(t.bufs[1])
	return t, nil
}

func (t *ropeTable) free() {
	for _, b := range t.bufs {
		if b != nil {
			_ = b.Free() // nothing to do about it
		}
	}
}

// upTo makes the table's rows below position n.
func (t *ropeTable) upTo(n int) {
	for ; t.made < n; t.made++ {
		cos, sin := t.cos[t.made*t.dim:][:t.dim], t.sin[t.made*t.dim:][:t.dim]
		for i, f := range t.freq {
			angle := float64(float64(t.made) * f)
			c, s := float32(canon.Cos64(angle)), float32(canon.Sin64(angle))
			first, second := i, i+t.rot/2
			if t.neighbours {
				first, second = 2*i, 2*i+1
			}
			cos[first], cos[second] = c, c
			sin[first], sin[second] = -s, s
		}
	}
}

// attentionScale is 1/√dim, rounded once.
func attentionScale(dim int) float32 { return float32(1 / math.Sqrt(float64(dim))) }
