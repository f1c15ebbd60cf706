package canon

// Lanes is the number of virtual lanes of a reduction along a row.
const Lanes = 32

// FoldLanes32 sums 32 lanes: lane l takes lane l + 16, then l + 8, 4, 2 and 1. v is left as it is.
func FoldLanes32(v *[Lanes]float32) float32 {
	sum := *v
	for stride := Lanes / 2; stride > 0; stride /= 2 {
		for l := range stride {
			sum[l] += sum[l+stride]
		}
	}
	return sum[0]
}

// SumRow sums a row in canonical order: lane l takes x[l], x[l+32], … in order from +0, then the lanes fold.
func SumRow(x []float32) float32 {
	var sum [Lanes]float32
	for i, v := range x {
		sum[i%Lanes] += v
	}
	return FoldLanes32(&sum)
}

// MaxScore is one step of a score maximum, which starts at −Inf: x if x > m, otherwise m. NaN never enters.
func MaxScore(m, x float32) float32 {
	if x > m {
		m = x
	}
	return m
}

// QuantizeBlock quantizes the 32 activations x to the codes q with x ≈ d·q, |q| ≤ 127. sum0 and sum1 are the sums of the
// first and the last 16 codes, sigma is (sum0 + sum1)·d. A block whose magnitudes are all below 2⁻⁵⁰ has d = +0 and codes 0;
// one with a magnitude from 2⁶⁴ on, or NaN, has d = NaN and codes 0.
func QuantizeBlock(x []float32, q []int8) (d float32, sum0, sum1 int32, sigma float32) {
	x, q = x[:Lanes], q[:Lanes]
	var amax uint32
	for _, v := range x {
		amax = max(amax, toBits(v)&absMask)
	}
	clear(q)
	switch {
	case amax >= hugeBits:
		d = fromBits(nanBits)
	case amax >= tinyBits:
		d = float32(fromBits(amax) * Inv127)
		r := Rcp(d)
		for i, v := range x {
			q[i] = int8(RoundI32(float32(v * r)))
		}
	}
	for i := range Lanes / 2 {
		sum0 += int32(q[i])
		sum1 += int32(q[i+Lanes/2])
	}
	sigma = float32(float32(sum0+sum1) * d)
	return d, sum0, sum1, sigma
}
