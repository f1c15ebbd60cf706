package ptx

import (
	"fmt"

	"github.com/swizzle-rt/swizzle/ir"
)

// elementTypes are PTX's names of the types of matrices.
var elementTypes = map[ir.Type]string{ir.I8x4: "s8", ir.U8x4: "u8", ir.I32: "s32"}

// mma writes a matrix product; its name is made of the atom's shape and types.
func (p *printer) mma(i *ir.Instr) {
	a := i.Atom
	ta, tb, tc := elementTypes[a.A.Type], elementTypes[a.B.Type], elementTypes[a.C.Type]
	if ta == "" || tb == "" || tc == "" {
		p.fail("no matrix product of %s and %s in %s", a.A.Type, a.B.Type, a.C.Type)
		return
	}
	var regs [3][]string
	rest := i.Args
	for n, f := range []ir.Fragment{a.A, a.B, a.C} {
		for _, v := range rest[:f.Regs] {
			regs[n] = append(regs[n], p.word(v))
		}
		rest = rest[f.Regs:]
	}
	var dst []string
	for _, r := range i.Results {
		dst = append(dst, p.dst(r))
	}
	p.ins(fmt.Sprintf("mma.sync.aligned.m%dn%dk%d.row.col.%s.%s.%s.%s", a.M, a.N, a.K, tc, ta, tb, tc), list(dst), list(regs[0]), list(regs[1]), list(regs[2]))
}

// coordinates tabulates, by lane, the coordinate that v, a result of the instruction, is.
func coordinates(i *ir.Instr, v *ir.Value) (table [32]int) {
	for l := range table {
		row, col := i.Atom.C.Coord(l, int(i.Imm), 0)
		table[l] = row
		if v == i.Results[1] {
			table[l] = col
		}
	}
	return table
}

// coordinate computes a row or a column of a fragment at the kernel's entry, as a sum of slices of the lane's number: each of
// its bits counts for a constant.
func (p *printer) coordinate(v *ir.Value) string {
	table := coordinates(v.Def, v)
	weight, ok := weights(table)
	if !ok {
		p.fail("the coordinates of %s are not sums over the bits of the lane", v.Def.Atom.Name)
		return ""
	}
	linear := p.first(fmt.Sprint("fragment", weight), wide, func(d string) { p.ins("cvt.s64.s32", d, p.sum(bitSlices(weight))) })
	if table[0] == 0 {
		return linear
	}
	return p.first(fmt.Sprint("fragment", weight, table[0]), wide, func(d string) { p.ins("add.s64", d, linear, imm(int64(table[0]))) })
}

// weights returns what each bit of the lane adds to a coordinate, and whether that is all there is to it.
func weights(table [32]int) (weight [5]int, ok bool) {
	for b := range weight {
		weight[b] = table[1<<b] - table[0]
	}
	for l, c := range table {
		for b, w := range weight {
			c -= l >> b & 1 * w
		}
		if c != table[0] {
			return weight, false
		}
	}
	return weight, true
}

// bitSlice is a run of bits whose weights double.
type bitSlice struct{ from, mask, weight int }

func bitSlices(weight [5]int) (list []bitSlice) {
	for b := 0; b < len(weight); b++ {
		if weight[b] == 0 {
			continue
		}
		from := b
		for b+1 < len(weight) && weight[b+1] == 2*weight[b] {
			b++
		}
		list = append(list, bitSlice{from, 1<<(b-from+1) - 1, weight[from]})
	}
	return list
}

// sum computes the sum of weighted slices of the lane's number.
func (p *printer) sum(list []bitSlice) string {
	total := ""
	for _, s := range list {
		d := p.fresh(word)
		p.ins("shr.u32", d, p.lane(), fmt.Sprint(s.from))
		p.ins("and.b32", d, d, fmt.Sprint(s.mask))
		if s.weight != 1 {
			p.ins("mul.lo.s32", d, d, fmt.Sprint(s.weight))
		}
		if total != "" {
			p.ins("add.s32", d, d, total)
		}
		total = d
	}
	if total == "" {
		total = p.fresh(word)
		p.ins("mov.b32", total, "0")
	}
	return total
}
