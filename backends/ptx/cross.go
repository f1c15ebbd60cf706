package ptx

import (
	"fmt"

	"github.com/swizzle-rt/swizzle/ir"
)

// fold reduces over the lanes by butterflies of strides 16 … 1. In each step both lanes of a pair combine the same two
// values; the ops commute, so all lanes end with the bits of lane 0.
func (p *printer) fold(i *ir.Instr) {
	varying := i.Args[0].Span == ir.Varying
	op, v := "", ""
	switch i.Op {
	case ir.OpFoldAddF:
		op, v = "add.rn.f32", p.word(i.Args[0])
	case ir.OpFoldAddI:
		op, v = "add.s32", p.word(i.Args[0])
	case ir.OpFoldMaxU:
		op, v = "max.u32", p.word(i.Args[0])
	case ir.OpFoldMaxF:
		op, v = "max.s32", p.ordered(i.Args[0])
	}
	for stride := 16; stride > 0; stride /= 2 {
		other := v
		if varying {
			other = p.fresh(word)
			p.ins("shfl.sync.bfly.b32", other, v, fmt.Sprint(stride), "31", "-1")
		}
		d := ""
		if stride > 1 || i.Op == ir.OpFoldMaxF {
			d = p.fresh(word)
		} else {
			d = p.dst(i.Results[0])
		}
		p.ins(op, d, v, other)
		v = d
	}
	if i.Op == ir.OpFoldMaxF {
		p.flip(p.dst(i.Results[0]), v)
	}
}

// ordered returns a float as an integer of the same order, −Inf for NaN. Zeros are ordered too, so that lanes agree on one.
func (p *printer) ordered(v *ir.Value) string {
	x, c, d := p.word(v), p.fresh(pred), p.fresh(word)
	p.ins("setp.gt.f32", c, x, "0fFF800000")
	p.ins("selp.b32", d, x, "0xFF800000", c)
	p.flip(d, d)
	return d
}

// flip inverts the bits but the sign of negative floats, which makes them integers of the same order, and back.
func (p *printer) flip(dst, src string) {
	t := p.fresh(word)
	p.ins("shr.s32", t, src, "31")
	p.ins("and.b32", t, t, "0x7FFFFFFF")
	p.ins("xor.b32", dst, src, t)
}

// pack gathers the low bytes of four neighbouring lanes: two lanes exchange bytes, then two pairs. In lanes with the bit of
// the exchange the other's part comes first.
func (p *printer) pack(i *ir.Instr) {
	v := p.word(i.Args[0])
	if i.Args[0].Span != ir.Varying {
		p.ins("prmt.b32", p.dst(i.Results[0]), v, v, "0")
		return
	}
	for _, step := range []struct{ bit, even, odd string }{{"1", "0x40", "4"}, {"2", "0x5410", "0x1054"}} {
		selector := p.first("pack"+step.bit, word, func(d string) {
			c, t := p.fresh(pred), p.fresh(word)
			p.ins("and.b32", t, p.lane(), step.bit)
			p.ins("setp.eq.s32", c, t, "0")
			p.ins("selp.b32", d, step.even, step.odd, c)
		})
		other := p.fresh(word)
		p.ins("shfl.sync.bfly.b32", other, v, step.bit, "31", "-1")
		d := ""
		if step.bit == "1" {
			d = p.fresh(word)
		} else {
			d = p.dst(i.Results[0])
		}
		p.ins("prmt.b32", d, v, other, selector)
		v = d
	}
}
