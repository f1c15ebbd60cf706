package sample

const (
	mtWords = 624 // words of state, and of each block of output
	mtShift = 397
)

// mt19937 is the 32-bit Mersenne Twister of Matsumoto and Nishimura ("Mersenne
// Twister: a 623-dimensionally equidistributed uniform pseudorandom number
// generator", 1998), whose words are drawn by number, in rising order.
type mt19937 struct {
	state [mtWords]uint32
	block int // number of the block in state; 0 is the seed's own state, before any output
}

// seed starts the generator as the reference's init_genrand does.
func (m *mt19937) seed(seed uint32) {
	m.block = 0
	m.state[0] = seed
	for i := 1; i < mtWords; i++ {
		prev := m.state[i-1]
		m.state[i] = 1812433253*(prev^prev>>30) + uint32(i)
	}
}

// word returns output n, counted from 0. n must not lie in an earlier block than
// that of the call before.
func (m *mt19937) word(n int) uint32 {
	for m.block <= n/mtWords {
		m.twist()
	}
	y := m.state[n%mtWords]
	y ^= y >> 11
	y ^= y << 7 & 0x9D2C5680
	y ^= y << 15 & 0xEFC60000
	return y ^ y>>18
}

// twist replaces the state by the next block's.
func (m *mt19937) twist() {
	for i := range m.state {
		y := m.state[i]&0x80000000 | m.state[(i+1)%mtWords]&0x7FFFFFFF
		next := m.state[(i+mtShift)%mtWords] ^ y>>1
		if y&1 != 0 {
			next ^= 0x9908B0DF
		}
		m.state[i] = next
	}
	m.block++
}

// uniform returns the number of position i in [0, 1): words 2i (low) and 2i+1
// (high) as a fraction of 2⁶⁴, rounded to nearest. A fraction that rounds to 1
// becomes 1 − 2⁻⁵³.
func (m *mt19937) uniform(i int) float64 {
	low, high := m.word(2*i), m.word(2*i+1)
	return unit(uint64(high)<<32 | uint64(low))
}

func unit(word uint64) float64 {
	return min(float64(float64(word)*0x1p-64), 1-0x1p-53)
}
