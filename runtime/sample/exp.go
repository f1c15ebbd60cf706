package sample

import "math"

func exp64(x float64) float64 { return math.Exp(x) }
func log64(x float64) float64 { return math.Log(x) }
