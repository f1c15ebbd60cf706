package layout

import "slices"

const (
	banks     = 32 // of shared memory
	bankBytes = 4  // width of a bank's word
)

// Conflicts returns how many wavefronts one access of a warp to shared memory
// takes, and how many it would take without bank conflicts. addresses holds the
// byte address of each lane, a negative one for a lane that takes no part, and
// width the bytes each lane reads or writes.
//
// Memory has 32 banks of 4-byte words. A warp is served in phases of 8 lanes for
// 16 bytes, 16 lanes for 8 bytes, 32 lanes for 4 bytes and less. A phase takes as
// many wavefronts as the busiest bank has different words to serve: lanes that
// read the same word share it.
func Conflicts(addresses []int, width int) (wavefronts, ideal int) {
	lanes := 32
	switch {
	case width > 8:
		lanes = 8
	case width > 4:
		lanes = 16
	}
	var buf [64]int
	for phase := range slices.Chunk(addresses, lanes) {
		words := buf[:0]
		for _, a := range phase {
			if a < 0 {
				continue
			}
			for w := a / bankBytes; w <= (a+width-1)/bankBytes; w++ {
				words = append(words, w)
			}
		}
		if len(words) == 0 {
			continue
		}
		slices.Sort(words)
		var load [banks]int
		for _, w := range slices.Compact(words) {
			load[w%banks]++
		}
		wavefronts += slices.Max(load[:])
		ideal++
	}
	return wavefronts, ideal
}
