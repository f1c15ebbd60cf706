package sim

import (
	"math/bits"
	"slices"
)

// count adds an access of width bytes a lane at the warp's addresses.
func (w *warp) count(in *instr, s space, width uint64, mask uint32) {
	t := &w.m.moved[in.at]
	if s == shared {
		n, ideal := w.banks.wavefronts(&w.addrs, width, mask)
		t.SharedWavefronts += int64(n)
		t.SharedIdeal += int64(ideal)
		return
	}
	n, ideal := sectors(&w.addrs, width, mask)
	t.GlobalSectors += int64(n)
	t.GlobalIdeal += int64(ideal)
}

// banks is room to note the different words of each bank that are touched.
type banks [32][32]uint32

// wavefronts returns how often the busiest bank serves a word, over the phases of an access, and the number of phases. Lanes
// that touch the same word share it.
func (word *banks) wavefronts(addrs *[32]uint64, width uint64, mask uint32) (n, ideal int) {
	phase := 32
	switch {
	case width > 8:
		phase = 8
	case width > 4:
		phase = 16
	}
	for start := 0; start < 32; start += phase {
		var load [32]uint8
		worst := uint8(0)
		for m := mask >> start & uint32(1<<phase-1); m != 0; m &= m - 1 {
			at := addrs[start+bits.TrailingZeros32(m)]
			for a := uint32(at) >> 2; a <= uint32(at+width-1)>>2; a++ {
				b := a & 31
				if slices.Contains(word[b][:load[b]], a) {
					continue
				}
				word[b][load[b]] = a
				load[b]++
				worst = max(worst, load[b])
			}
		}
		n += int(worst)
		ideal += int(min(worst, 1))
	}
	return n, ideal
}

// sectors returns the number of different 32-byte sectors that an access touches, and how many the bytes would fill.
func sectors(addrs *[32]uint64, width uint64, mask uint32) (n, ideal int) {
	var buf [32]uint64
	at := buf[:0]
	for m := mask; m != 0; m &= m - 1 {
		at = append(at, addrs[bits.TrailingZeros32(m)])
	}
	if !slices.IsSorted(at) {
		slices.Sort(at)
	}
	size, end, next := uint64(0), uint64(0), uint64(0) // bytes; ends of the bytes and the sectors counted
	for _, a := range at {
		if e := a + width; e > end {
			size += e - max(a, end)
			end = e
		}
		if last := (a + width - 1) >> 5; last >= next {
			n += int(last - max(next, a>>5) + 1)
			next = last + 1
		}
	}
	return n, int((size + 31) / 32)
}
