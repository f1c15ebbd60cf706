package sim

import (
	"fmt"
	"math"
	"math/bits"
)

const allLanes = math.MaxUint32

// warp is 32 lanes in lockstep.
type warp struct {
	m     *machine
	index int
	all   uint32 // its lanes

	w             []wordLanes
	x             []longLanes
	p             []uint32
	set           [flags + 1][]uint32 // lanes in which a register was written
	initial       [flags + 1][]uint32 // of constants and special registers: all
	frame         frame
	tempW         [2]wordLanes
	tempX         longLanes
	addrs         [32]uint64 // of the access under way
	banks         banks
	last          [2]*region // found last, by space
	async         asyncQueue
	synced        uint64 // when the warp synchronised last
	alive, active uint32 // lanes that have not ended; those that run
	pc            int32
	waiting       int32     // lowest place of the other lanes
	place         [32]int32 // of the other lanes
	stopped       int32     // instruction of the barrier, −1 at the end
}

const nowhere = math.MaxInt32

func newWarp(m *machine, index int) *warp {
	w := &warp{m: m, index: index, all: allLanes}
	if n := m.launch.Block - 32*index; n < 32 {
		w.all = 1<<n - 1
	}
	w.w, w.x, w.p = make([]wordLanes, m.slots[words]), make([]longLanes, m.slots[longs]), make([]uint32, m.slots[flags])
	for c := words; c <= flags; c++ {
		w.set[c], w.initial[c] = make([]uint32, m.slots[c]), make([]uint32, m.slots[c])
	}
	for v, r := range m.constWords {
		w.fill(r, v)
	}
	for v, r := range m.constLongs {
		w.initial[longs][r.n] = allLanes
		for l := range w.x[r.n] {
			w.x[r.n][l] = v
		}
	}
	return w
}

// fill gives a register that is set from the start the same value in all lanes.
func (w *warp) fill(r ref, v uint32) {
	w.initial[words][r.n] = allLanes
	for l := range w.w[r.n] {
		w.w[r.n][l] = v
	}
}

// start begins a block.
func (w *warp) start() {
	for name, r := range w.m.special {
		v := map[string]int{"%ntid.x": w.m.launch.Block, "%ctaid.x": w.m.block, "%nctaid.x": w.m.launch.Grid}[name]
		w.fill(r, uint32(v))
		for l := range w.w[r.n] {
			switch name {
			case "%tid.x":
				w.w[r.n][l] = uint32(w.thread(l))
			case "%laneid":
				w.w[r.n][l] = uint32(l)
			}
		}
	}
	for c := words; c <= flags; c++ {
		copy(w.set[c], w.initial[c])
	}
	w.alive, w.active, w.pc, w.waiting = w.all, w.all, 0, nowhere
	w.async = asyncQueue{}
	w.synced = w.m.now
}

func (w *warp) thread(lane int) int { return 32*w.index + lane }

// runBlock runs the warps from barrier to barrier, each time in another order.
func (m *machine) runBlock() error {
	m.now++
	m.blockStart, m.interval = m.now, m.now
	for _, w := range m.warps {
		w.start()
	}
	for {
		order := m.permutation(len(m.warps))
		for n := range m.warps {
			w := m.warps[n]
			if order != nil {
				w = m.warps[order[n]]
			}
			if err := w.run(); err != nil {
				return err
			}
		}
		ended := true
		for _, w := range m.warps {
			ended = ended && w.stopped < 0
		}
		if ended {
			return nil
		}
		if err := m.meet(); err != nil {
			return err
		}
		m.report.Barriers++
		m.now++
		m.interval = m.now
	}
}

// meet checks that all warps stand at the same barrier.
func (m *machine) meet() error {
	at := m.warps[0]
	for _, w := range m.warps {
		if w.stopped >= 0 {
			at = w
		}
	}
	in := &m.code[at.stopped]
	for _, w := range m.warps {
		switch {
		case w.stopped < 0:
			return at.fault(in, -1, "warp %d is at the barrier, but warp %d has ended", at.index, w.index)
		case w.alive != w.all:
			return w.fault(in, -1, "warp %d is at the barrier, but lanes of it have ended", w.index)
		case w.stopped != at.stopped:
			return at.fault(in, -1, "warp %d is at the barrier, but warp %d is at that of line %d", at.index, w.index, m.code[w.stopped].line)
		}
	}
	return nil
}

// fault makes an error of a lane, or of the warp where lane is −1.
func (w *warp) fault(in *instr, lane int, format string, args ...any) error {
	thread := -1
	if lane >= 0 {
		thread = w.thread(lane)
	}
	return &Error{Entry: w.m.Name, Line: in.line, Instr: in.text, Block: w.m.block, Thread: thread, Msg: fmt.Sprintf(format, args...)}
}

// laneError is a fault of a lane found by an instruction that doesn't know its warp.
type laneError struct {
	lane int
	msg  string
}

func (e laneError) Error() string { return e.msg }

// run executes the warp until a barrier or its end.
func (w *warp) run() error {
	m := w.m
	for {
		if w.pc >= w.waiting || w.active == 0 {
			if !w.schedule() {
				w.stopped = -1
				return w.async.ended(w)
			}
		}
		pc := w.pc
		in := &m.code[pc]
		if m.steps--; m.steps < 0 {
			return w.fault(in, -1, "the limit of instructions is reached")
		}
		mask := w.active
		if in.guard.class != none {
			if lost := mask &^ w.set[flags][in.guard.n]; lost != 0 {
				return w.fault(in, bits.TrailingZeros32(lost), "the guard is read before it is written")
			}
			if p := w.p[in.guard.n]; in.not {
				mask &^= p
			} else {
				mask &= p
			}
		}
		m.runs[pc]++
		m.lanes[pc] += int64(bits.OnesCount32(mask))
		w.pc++
		switch in.control {
		case plain:
			if mask == 0 {
				continue
			}
			if in.aligned && mask != allLanes {
				return w.fault(in, bits.TrailingZeros32(^mask), "executed by %d lanes; all 32 are needed", bits.OnesCount32(mask))
			}
			if err := w.exec(in, mask); err != nil {
				return err
			}
		case branch:
			if err := w.jump(in, mask); err != nil {
				return err
			}
		case leave:
			w.alive &^= mask
			w.active &^= mask
		case barrier:
			if mask != w.all {
				return w.fault(in, bits.TrailingZeros32(w.all&^mask), "only %d of the warp's lanes reach the barrier", bits.OnesCount32(mask))
			}
			w.stopped = pc
			return nil
		}
	}
}

// jump takes a branch in the lanes of mask.
func (w *warp) jump(in *instr, mask uint32) error {
	switch mask {
	case 0:
		return nil
	case w.active:
		w.pc = in.target
		return nil
	}
	if in.uniform {
		return w.fault(in, bits.TrailingZeros32(mask), "bra.uni is taken by %d of %d lanes", bits.OnesCount32(mask), bits.OnesCount32(w.active))
	}
	for m := mask; m != 0; m &= m - 1 {
		w.place[bits.TrailingZeros32(m)] = in.target
	}
	w.active &^= mask
	w.waiting = min(w.waiting, in.target)
	return nil
}

// schedule lets the lanes at the lowest place run, and reports whether there are any.
func (w *warp) schedule() bool {
	if w.alive == 0 {
		return false
	}
	for m := w.active; m != 0; m &= m - 1 {
		w.place[bits.TrailingZeros32(m)] = w.pc
	}
	w.pc, w.waiting, w.active = nowhere, nowhere, 0
	for m := w.alive; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		switch at := w.place[lane]; {
		case at < w.pc:
			w.pc, w.waiting, w.active = at, w.pc, 1<<lane
		case at == w.pc:
			w.active |= 1 << lane
		default:
			w.waiting = min(w.waiting, at)
		}
	}
	return true
}

// exec runs an instruction in the lanes of mask.
func (w *warp) exec(in *instr, mask uint32) error {
	for _, r := range in.src {
		if lost := mask &^ w.set[r.class][r.n]; lost != 0 {
			return w.fault(in, bits.TrailingZeros32(lost), "a register is read before it is written")
		}
	}
	if in.run != nil {
		if err := in.run(w, in, mask); err != nil {
			return err
		}
	} else if err := w.apply(in, mask); err != nil {
		return err
	}
	for _, r := range in.dst {
		w.set[r.class][r.n] |= mask
	}
	return nil
}

// apply computes an instruction of all lanes and keeps those of mask.
func (w *warp) apply(in *instr, mask uint32) error {
	f := &w.frame
	f.mask = mask
	for n, r := range in.dst {
		switch {
		case r.class == words && mask == allLanes:
			f.w[n] = &w.w[r.n]
		case r.class == longs && mask == allLanes:
			f.x[n] = &w.x[r.n]
		default:
			f.w[n], f.x[n] = &w.tempW[n&1], &w.tempX
		}
	}
	for n, r := range in.src {
		n += len(in.dst)
		switch r.class {
		case words:
			f.w[n] = &w.w[r.n]
		case longs:
			f.x[n] = &w.x[r.n]
		default:
			f.p[n] = w.p[r.n]
		}
	}
	if err := in.f(f); err != nil {
		if e, ok := err.(laneError); ok {
			return w.fault(in, e.lane, "%s", e.msg)
		}
		return err
	}
	for n, r := range in.dst {
		switch {
		case r.class == flags:
			w.p[r.n] = w.p[r.n]&^mask | f.p[n]&mask
		case mask == allLanes:
		case r.class == words:
			for m := mask; m != 0; m &= m - 1 {
				l := bits.TrailingZeros32(m)
				w.w[r.n][l] = f.w[n][l]
			}
		default:
			for m := mask; m != 0; m &= m - 1 {
				l := bits.TrailingZeros32(m)
				w.x[r.n][l] = f.x[n][l]
			}
		}
	}
	return nil
}

// syncWarp is bar.warp.sync: it orders the accesses of the warp's lanes.
func (w *warp) syncWarp(*instr, uint32) error {
	w.m.now++
	w.synced = w.m.now
	return nil
}
