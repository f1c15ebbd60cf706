package sim

import (
	"fmt"
	"math/bits"
	"slices"
)

// asyncQueue holds the asynchronous copies of a warp's lanes that have not landed.
type asyncQueue struct {
	copies    []asyncCopy
	committed [32]int // groups that a lane has closed
}

type asyncCopy struct {
	lane, group int // of the lane's groups
	line        int
	to          *region
	off         uint64
	size        uint64
	data        [16]byte
}

// asyncOp is cp.async.
type asyncOp struct {
	to, from place
	size     uint64
	keep     ref // bytes to read, the rest being zeros; class none for all
}

// async decodes cp.async and its groups.
func (b *body) async(in *instr, s *stmt, suffix string) error {
	if err := b.needs(80); err != nil {
		return err
	}
	switch suffix {
	case "async.commit_group":
		in.run = commitGroup
		return s.count(0)
	case "async.wait_all":
		in.run = func(w *warp, in *instr, mask uint32) error {
			if err := commitGroup(w, in, mask); err != nil {
				return err
			}
			w.async.wait(w, 0, mask)
			return nil
		}
		return s.count(0)
	case "async.wait_group":
		if err := s.count(1); err != nil {
			return err
		}
		if s.args[0].kind != intLiteral || s.args[0].value > 1<<20 {
			return fmt.Errorf("a number of groups is expected")
		}
		n := int(s.args[0].value)
		in.run = func(w *warp, _ *instr, mask uint32) error {
			w.async.wait(w, n, mask)
			return nil
		}
		return nil
	case "async.ca.shared.global", "async.cg.shared.global":
	default:
		return fmt.Errorf("unknown instruction %s", s.op)
	}
	if len(s.args) != 3 && len(s.args) != 4 {
		return fmt.Errorf("%d operands, 3 or 4 are expected", len(s.args))
	}
	o := &asyncOp{}
	var err error
	if o.to, err = b.address(s.args[0], shared); err != nil {
		return err
	}
	if o.from, err = b.address(s.args[1], global); err != nil {
		return err
	}
	o.size = s.args[2].value
	if s.args[2].kind != intLiteral || o.size != 16 && (suffix != "async.ca.shared.global" || o.size != 4 && o.size != 8) {
		return fmt.Errorf("copies of 16 bytes, with .ca also of 4 or 8, are supported")
	}
	in.src = []ref{o.to.reg, o.from.reg}
	if len(s.args) == 4 {
		if o.keep, err = b.source(s.args[3], u32, false); err != nil {
			return err
		}
		in.src = append(in.src, o.keep)
	}
	in.run = o.start
	return nil
}

// start reads the source and marks the destination until the copy lands.
func (o *asyncOp) start(w *warp, in *instr, mask uint32) error {
	w.m.now++
	var from [32]uint64
	read := uint32(0)
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		c := asyncCopy{lane: lane, group: w.async.committed[lane], line: in.line, size: o.size}
		keep := o.size
		if o.keep.class != none {
			if keep = uint64(w.w[o.keep.n][lane]); keep > o.size {
				return w.fault(in, lane, "reads %d bytes for a copy of %d", keep, o.size)
			}
		}
		if keep > 0 {
			at := o.from.at(w, lane)
			r, off, err := w.find(in, global, at, o.size, lane, false)
			if err != nil {
				return err
			}
			if err := w.read(in, r, off, keep, lane, false); err != nil {
				return err
			}
			copy(c.data[:keep], r.bytes(off, keep))
			from[lane] = at
			read |= 1 << lane
		}
		at := o.to.at(w, lane)
		r, off, err := w.find(in, shared, at, o.size, lane, true)
		if err != nil {
			return err
		}
		if err := w.write(in, r, off, c.data[:o.size], lane); err != nil {
			return err
		}
		r.mark(off, o.size, w.m.touch(copying))
		c.to, c.off = r, off
		w.addrs[lane] = at
		w.async.copies = append(w.async.copies, c)
		w.m.report.AsyncCopies++
	}
	w.count(in, shared, o.size, mask)
	w.addrs = from
	w.count(in, global, o.size, read)
	return nil
}

func (s *shadow) mark(off, n uint64, t touch) {
	for i := off >> s.shift; i <= (off+n-1)>>s.shift; i++ {
		s.wrote[i] = t
	}
}

func commitGroup(w *warp, _ *instr, mask uint32) error {
	for m := mask; m != 0; m &= m - 1 {
		w.async.committed[bits.TrailingZeros32(m)]++
	}
	return nil
}

// wait lands all groups of the lanes but their last n. The bytes are then as if the lane had just stored them: others see them
// after a barrier.
func (q *asyncQueue) wait(w *warp, n int, mask uint32) {
	w.m.now++
	q.copies = slices.DeleteFunc(q.copies, func(c asyncCopy) bool {
		if mask>>c.lane&1 == 0 || c.group >= q.committed[c.lane]-n {
			return false
		}
		copy(c.to.data[c.off:], c.data[:c.size])
		c.to.mark(c.off, c.size, w.m.touch(w.thread(c.lane)))
		return true
	})
}

// ended reports copies that nobody waited for.
func (q *asyncQueue) ended(w *warp) error {
	if len(q.copies) == 0 {
		return nil
	}
	c := q.copies[0]
	return w.fault(&instr{line: c.line, text: "cp.async"}, c.lane, "%d copies were not waited for when the warp ended", len(q.copies))
}
