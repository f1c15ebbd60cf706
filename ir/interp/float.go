package interp

import "math"

func f32(w uint32) float32     { return math.Float32frombits(w) }
func f32bits(x float32) uint32 { return math.Float32bits(x) }
