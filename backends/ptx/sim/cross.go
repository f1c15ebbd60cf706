package sim

import (
	"encoding/binary"
	"fmt"
	"math/bits"
	"strings"
)

// shuffleOp is shfl.sync.
type shuffleOp struct {
	mode                         string
	dst, src, index, clamp, mask ref
}

func (b *body) shuffle(in *instr, s *stmt, suffix string) error {
	mode, ok := strings.CutSuffix(strings.TrimPrefix(suffix, "sync."), ".b32")
	if !ok || suffix != "sync."+mode+".b32" || mode != "idx" && mode != "bfly" && mode != "up" && mode != "down" {
		return fmt.Errorf("unknown instruction %s", s.op)
	}
	if err := s.count(5); err != nil {
		return err
	}
	d, err := b.result(s.args[0], b32, false)
	if err != nil {
		return err
	}
	o := &shuffleOp{mode: mode, dst: d}
	for n, r := range []*ref{&o.src, &o.index, &o.clamp, &o.mask} {
		if *r, err = b.source(s.args[n+1], []typ{b32, u32, u32, b32}[n], false); err != nil {
			return err
		}
		in.src = append(in.src, *r)
	}
	in.dst, in.run = []ref{d}, o.run
	return nil
}

// run follows the ISA's description. A lane must name only lanes that execute the same instruction, itself among them,
// and read only from those.
func (o *shuffleOp) run(w *warp, in *instr, mask uint32) error {
	src := w.w[o.src.n]
	for m := mask; m != 0; m &= m - 1 {
		lane := bits.TrailingZeros32(m)
		if members := w.w[o.mask.n][lane]; members != mask {
			return w.fault(in, lane, "the mask is 0x%08x, executing are 0x%08x", members, mask)
		}
		index, c := int(w.w[o.index.n][lane]&31), int(w.w[o.clamp.n][lane])
		clamp, segment := c&31, c>>8&31
		lo := lane & segment
		hi := lo | clamp&^segment
		var from int
		var within bool
		switch o.mode {
		case "up":
			from = lane - index
			within = from >= hi
		case "down":
			from = lane + index
			within = from <= hi
		case "bfly":
			from = lane ^ index
			within = from <= hi
		default:
			from = lo | index&^segment
			within = from <= hi
		}
		if !within {
			from = lane
		}
		if mask>>from&1 == 0 {
			return w.fault(in, lane, "reads lane %d, which does not take part", from)
		}
		w.w[o.dst.n][lane] = src[from]
	}
	return nil
}

// ldmatrixOp is ldmatrix of 1, 2 or 4 matrices of 8 rows of 8 elements of 16 bits.
type ldmatrixOp struct {
	place
	dst   []ref
	trans bool
}

func (b *body) loadMatrix(in *instr, s *stmt) error {
	if err := b.needs(75); err != nil {
		return err
	}
	if err := s.count(2); err != nil {
		return err
	}
	o := &ldmatrixOp{trans: strings.Contains(s.op, ".trans")}
	n := int(s.op[strings.Index(s.op, ".x")+2] - '0')
	items := s.args[0].items
	if s.args[0].kind != vector || len(items) != n {
		return fmt.Errorf("%v where a vector of %d is expected", s.args[0], n)
	}
	var err error
	if o.place, err = b.address(s.args[1], shared); err != nil {
		return err
	}
	for _, x := range items {
		d, err := b.result(x, b32, false)
		if err != nil {
			return err
		}
		o.dst = append(o.dst, d)
	}
	in.aligned, in.dst, in.src, in.run = true, o.dst, []ref{o.reg}, o.run
	return nil
}

// run takes the address of row r of matrix k from lane 8k + r. Lane l gets elements 2(l mod 4) and the next one of row l/4, or
// of column l/4 where the matrix is transposed. The lanes beyond need no valid address, except on sm_75.
func (o *ldmatrixOp) run(w *warp, in *instr, _ uint32) error {
	var rows [32][]byte
	used := 8 * len(o.dst)
	for lane := range rows {
		if lane >= used && w.m.sm > 75 {
			break
		}
		at := o.at(w, lane)
		w.addrs[lane] = at
		r, off, err := w.find(in, shared, at, 16, lane, false)
		if err != nil {
			return err
		}
		if lane < used {
			if err := w.read(in, r, off, 16, lane, false); err != nil {
				return err
			}
		}
		rows[lane] = r.data[off : off+16]
	}
	element := func(matrix, row, col int) uint32 {
		return uint32(binary.LittleEndian.Uint16(rows[8*matrix+row][2*col:]))
	}
	for k, d := range o.dst {
		for lane := range 32 {
			g, t := lane/4, 2*(lane%4)
			if o.trans {
				w.w[d.n][lane] = element(k, t, g) | element(k, t+1, g)<<16
			} else {
				w.w[d.n][lane] = element(k, g, t) | element(k, g, t+1)<<16
			}
		}
	}
	w.count(in, shared, 16, uint32(1<<used-1))
	return nil
}

// mmaShape is an integer matrix product: registers of A, B and C that a lane holds.
type mmaShape struct {
	m, n, k int
	a, b, c int
	sm      int
}

// mmaShapes holds those of bytes. Of the fragments the ISA says, with g = lane/4 and t = lane mod 4: a register of A holds
// four elements of row g (+8 in the second of each pair) from column 4t (+16 in the second pair) on; one of B four of column g
// from row 4t (+16 in the second) on; one of C is in row g (+8 in the second pair), column 2t (+1 in the second of each).
var mmaShapes = map[string]mmaShape{
	"m8n8k16":  {8, 8, 16, 1, 1, 2, 75},
	"m16n8k16": {16, 8, 16, 2, 1, 4, 80},
	"m16n8k32": {16, 8, 32, 4, 2, 4, 80},
}

// mmaOp is mma.sync of bytes.
type mmaOp struct {
	mmaShape
	signedA, signedB bool
	dst, src         []ref // src: A, B, C
}

func (b *body) matrix(in *instr, s *stmt, suffix string) error {
	parts := strings.Split(suffix, ".") // sync.aligned.shape.row.col.s32.ta.tb.s32
	sign := map[string]bool{"s8": true, "u8": false}
	if len(parts) != 9 {
		return fmt.Errorf("unknown instruction %s", s.op)
	}
	shape, ok := mmaShapes[parts[2]]
	signedA, okA := sign[parts[6]]
	signedB, okB := sign[parts[7]]
	if !ok || !okA || !okB || suffix != strings.Join([]string{"sync.aligned", parts[2], "row.col.s32", parts[6], parts[7], "s32"}, ".") {
		return fmt.Errorf("unknown instruction %s", s.op)
	}
	if err := b.needs(shape.sm); err != nil {
		return err
	}
	if err := s.count(4); err != nil {
		return err
	}
	o := &mmaOp{mmaShape: shape, signedA: signedA, signedB: signedB}
	for n, want := range []int{shape.c, shape.a, shape.b, shape.c} {
		items := s.args[n].items
		if s.args[n].kind != vector || len(items) != want {
			return fmt.Errorf("%v where a vector of %d is expected", s.args[n], want)
		}
		for _, x := range items {
			t := b32
			if n == 0 || n == 3 {
				t = s32
			}
			r, err := b.result(x, t, false)
			if err != nil {
				return err
			}
			if n == 0 {
				o.dst = append(o.dst, r)
			} else {
				o.src = append(o.src, r)
			}
		}
	}
	in.aligned, in.dst, in.src, in.run = true, o.dst, o.src, o.run
	return nil
}

// run gathers the matrices, multiplies and spreads the sums, which wrap.
func (o *mmaOp) run(w *warp, _ *instr, _ uint32) error {
	var a [16][32]int32 // rows of A
	var b [8][32]int32  // columns of B
	for lane := range 32 {
		g, t := lane/4, lane%4
		for n := range o.a {
			spread(a[g+8*(n&1)][4*t+16*(n>>1):], w.w[o.src[n].n][lane], o.signedA)
		}
		for n := range o.b {
			spread(b[g][4*t+16*n:], w.w[o.src[o.a+n].n][lane], o.signedB)
		}
	}
	c := o.src[o.a+o.b:]
	var sums [4][32]uint32
	for lane := range 32 {
		g, t := lane/4, lane%4
		for n := range o.c {
			row, col := &a[g+8*(n>>1)], &b[2*t+(n&1)]
			sum := int32(w.w[c[n].n][lane])
			for k := range o.k {
				sum += row[k] * col[k]
			}
			sums[n][lane] = uint32(sum)
		}
	}
	for n, d := range o.dst {
		w.w[d.n] = sums[n]
	}
	return nil
}

// spread puts the four bytes of a word into to.
func spread(to []int32, word uint32, signed bool) {
	to = to[:4]
	for n := range to {
		if v := word >> (8 * n); signed {
			to[n] = int32(int8(v))
		} else {
			to[n] = int32(uint8(v))
		}
	}
}
