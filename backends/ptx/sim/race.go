package sim

import (
	"bytes"
	"fmt"
)

// clock orders accesses. Its ticks are events: a block begins, its barrier opens, a warp synchronises, a store executes.
type clock struct {
	now        uint64
	blockStart uint64
	interval   uint64 // when the last barrier of the block opened, or the block began
}

// shadow remembers the last write and the last reads of each cell of a region. A cell is a word until something smaller is
// accessed, then a byte.
type shadow struct {
	wrote, read []touch
	shift       uint // cells have 1<<shift bytes
}

func newShadow(size int) shadow {
	n := (size + 3) / 4
	return shadow{make([]touch, n), make([]touch, n), 2}
}

// split makes cells of bytes.
func (s *shadow) split() {
	double := func(old []touch) []touch {
		t := make([]touch, 4*len(old))
		for i := range t {
			t[i] = old[i/4]
		}
		return t
	}
	s.wrote, s.read, s.shift = double(s.wrote), double(s.read), 0
}

// touch is an access: when, and by which thread of the block. It is 0 where there was none.
type touch uint64

// Threads are 0 … 1023; other values stand for several of them.
const (
	severalOfWarp  = 1 << 10 // plus the number of the warp
	severalOfBlock = 1<<10 + 32 + iota
	severalBlocks
	constantPath // read as memory that nothing writes
	copying      // an asynchronous copy that will write
)

func (t touch) when() uint64 { return uint64(t) >> 16 }
func (t touch) who() int     { return int(t & 0xFFFF) }

func (c *clock) touch(who int) touch { return touch(c.now<<16 | uint64(who)) }

// precedes reports whether an earlier access is ordered before what a thread of this warp does now.
func (w *warp) precedes(t touch, thread int) bool {
	who := t.who()
	switch {
	case who >= severalBlocks || t.when() < w.m.blockStart:
		return false
	case who == thread || t.when() < w.m.interval:
		return true
	}
	return t.when() < w.synced && (who == severalOfWarp+w.index || who>>5 == w.index)
}

// read notes a load of n bytes by a lane.
func (w *warp) read(in *instr, r *region, off, n uint64, lane int, constant bool) error {
	if r.wrote == nil {
		return nil
	}
	if n < 4 && r.shift != 0 {
		r.split()
	}
	thread := w.thread(lane)
	last := min((off+n-1)>>r.shift, uint64(len(r.wrote)-1)) // beyond the end is nothing to race for
	for i := off >> r.shift; i <= last; i++ {
		t := r.wrote[i]
		switch {
		case r.shared && t.when() < w.m.blockStart:
			return w.fault(in, lane, "load of byte %d of %s, which the block has not written", i<<r.shift, r.name)
		case t != 0 && (constant || !w.precedes(t, thread)):
			return w.race(in, r, i, lane, t, "read")
		}
		r.read[i] = w.join(w.current(r, r.read[i]), thread, constant)
	}
	return nil
}

// current drops what other blocks did to their own shared memory.
func (w *warp) current(r *region, t touch) touch {
	if r.shared && t.when() < w.m.blockStart {
		return 0
	}
	return t
}

// join returns the reads of a cell with one by a thread added.
func (w *warp) join(old touch, thread int, constant bool) touch {
	who := thread
	switch {
	case constant || old.who() == constantPath && old != 0:
		who = constantPath
	case old == 0 || w.precedes(old, thread):
	case old.when() < w.m.blockStart || old.who() == severalBlocks:
		who = severalBlocks
	case old.who() == severalOfWarp+w.index || old.who()>>5 == w.index:
		who = severalOfWarp + w.index
	default:
		who = severalOfBlock
	}
	return w.m.touch(who)
}

// write notes a store of b by a lane. Lanes of one instruction may store the same bytes to one place.
func (w *warp) write(in *instr, r *region, off uint64, b []byte, lane int) error {
	if len(b) < 4 && r.shift != 0 {
		r.split()
	}
	thread := w.thread(lane)
	me := w.m.touch(thread)
	for i := off >> r.shift; i <= (off+uint64(len(b))-1)>>r.shift; i++ {
		t := w.current(r, r.wrote[i])
		switch {
		case t == 0:
		case t.when() == w.m.now && t.who() != copying: // the same instruction
			at := i << r.shift
			if size := uint64(1) << r.shift; !bytes.Equal(r.data[at:at+size], b[at-off:at-off+size]) {
				return w.fault(in, lane, "stores to byte %d of %s other bits than thread %d by the same instruction", at, r.name, t.who())
			}
		case !w.precedes(t, thread):
			return w.race(in, r, i, lane, t, "write")
		}
		if t := w.current(r, r.read[i]); t != 0 && !w.precedes(t, thread) {
			return w.race(in, r, i, lane, t, "write after")
		}
		r.wrote[i] = me
	}
	return nil
}

// race reports an access that isn't ordered after an earlier one, t.
func (w *warp) race(in *instr, r *region, cell uint64, lane int, t touch, what string) error {
	at := cell << r.shift
	if t.who() == copying {
		return w.fault(in, lane, "%s of byte %d of %s, to which an asynchronous copy is under way", what, at, r.name)
	}
	did := "written"
	if what == "write after" {
		did, what = "read", "write"
	}
	by := fmt.Sprintf("thread %d", t.who())
	switch who := t.who(); {
	case who == constantPath:
		by = "ld.global.nc"
	case who == severalBlocks:
		by = "several blocks"
	case t.when() < w.m.blockStart:
		by += " of another block"
	case who == severalOfBlock:
		by = "several warps"
	case who >= severalOfWarp:
		by = fmt.Sprintf("several lanes of warp %d", who-severalOfWarp)
	}
	return w.fault(in, lane, "race: %s of byte %d of %s, %s by %s with no barrier between", what, at, r.name, did, by)
}
