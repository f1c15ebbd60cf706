package msl

import (
	"fmt"
	"strings"

	"github.com/swizzle-rt/swizzle/ir"
)

// load prints a load. One element is an expression; several are read at once, as a vector without alignment.
func (p *printer) load(i *ir.Instr) {
	m := i.Mem
	k, split := p.kind(m)
	o := &operands{p: p, args: i.Args}
	if len(i.Results) > 1 {
		p.loadVector(i, k, split, o)
		return
	}
	var e expr
	if mask := i.Args[1]; mask == nil {
		e = o.expr(atomic, "%s", p.widen(m, p.cell(m, k, split, o)))
	} else {
		c := o.use(mask).left(atomic)
		v := p.widen(m, p.cell(m, k, split, o))
		zero := "0u"
		if m.Type.Reg() == ir.F32 {
			zero = p.needed("z").text
		}
		e = o.expr(loose, "%s?%s:%s", c, v, zero)
	}
	if p.written[placeOf(m)] {
		e.reads = append(e.reads, placeOf(m))
	}
	p.define(i.Results[0], e)
}

// loadVector reads several elements into a variable, whose elements the results name.
func (p *printer) loadVector(i *ir.Instr, k kind, split bool, o *operands) {
	m, n := i.Mem, len(i.Results)
	mask := ""
	if i.Args[1] != nil {
		mask = p.nameOf("bool", o.use(i.Args[1]))
	}
	q := p.newName()
	var cells []string
	if split {
		at := p.nameOf("int", o.arg(0))
		p.line("ushort %s[%d]={};", q, n)
		var read []string
		for j := range n {
			cells = append(cells, fmt.Sprintf("%s[%d]", q, j))
			read = append(read, cells[j]+"="+p.halfWord(m, at, j)+";")
		}
		p.guarded(mask, read)
	} else {
		vector := fmt.Sprintf("*(%spacked_%s%d*)%s", space(m), k.name, n, p.address(m, k, o.arg(0)))
		if mask == "" {
			p.line("%s%d %s=%s;", k.name, n, q, vector)
		} else {
			zero := "0"
			if k == floats {
				zero = p.needed("z").text
			}
			p.line("%s%d %s=%s%d(%s);", k.name, n, q, k.name, n, zero)
			p.guarded(mask, []string{fmt.Sprintf("%s=%s;", q, vector)})
		}
		for j := range n {
			cells = append(cells, q+"."+"xyzw"[j:j+1])
		}
	}
	for j, v := range i.Results {
		switch e := p.widen(m, cells[j]); {
		case e == cells[j]:
			p.named[v] = e
		case mask != "" && v.Type == ir.F32:
			p.define(v, expr{text: mask + "?" + e + ":" + p.needed("z").text, size: 2})
		default:
			p.define(v, expr{text: e, level: atomic, size: 1})
		}
	}
}

// guarded prints statements under a condition, empty for none.
func (p *printer) guarded(mask string, list []string) {
	s := strings.Join(list, "")
	switch {
	case mask == "":
		p.line("%s", s)
	case len(list) == 1:
		p.line("if(%s)%s", mask, s)
	default:
		p.line("if(%s){%s}", mask, s)
	}
}

// cell returns the element of a load as it lies in memory.
func (p *printer) cell(m ir.Memory, k kind, split bool, o *operands) string {
	e := o.arg(0)
	if split {
		return p.halfWord(m, p.nameOf("int", e), 0)
	}
	return fmt.Sprintf("%s[%s]", p.view(m, k), e.text)
}

// halfWord reads element n of 2 bytes after the element named at, byte by byte.
func (p *printer) halfWord(m ir.Memory, at string, n int) string {
	v := p.view(m, octets)
	return fmt.Sprintf("ushort(%s[%s*2+%d]|%s[%s*2+%d]<<8)", v, at, 2*n, v, at, 2*n+1)
}

// nameOf gives an expression of that type a name, unless it is one.
func (p *printer) nameOf(t string, e expr) string {
	if e.level == atomic && e.size == 0 {
		return e.text
	}
	n := p.newName()
	p.line("%s %s=%s;", t, n, e.text)
	return n
}

// address returns a pointer to an element, to be cast.
func (p *printer) address(m ir.Memory, k kind, index expr) string {
	if index.text == "0" {
		return p.view(m, k)
	}
	return fmt.Sprintf("(%s+%s)", p.view(m, k), index.left(additive))
}

// widen returns the register's value of an element.
func (p *printer) widen(m ir.Memory, cell string) string {
	k, _ := p.kind(m)
	switch t := m.Type; {
	case t == ir.F16:
		return p.helper("h2f") + "(" + cell + ")"
	case t == ir.BF16:
		return "F(uint(" + cell + ")<<16)"
	case t == ir.I16 && k != shorts:
		return "uint(short(" + cell + "))"
	case t.Bytes() < 4:
		return "uint(" + cell + ")"
	case t == ir.F32 && k == words:
		return "F(" + cell + ")"
	case t != ir.F32 && k == floats:
		return "U(" + cell + ")"
	}
	return cell
}

// narrow returns a value as it is stored in an element.
func (p *printer) narrow(m ir.Memory, v string) string {
	k, split := p.kind(m)
	switch t := m.Type; {
	case t == ir.F16:
		return p.helper("f2h") + "(" + v + ")"
	case t == ir.BF16:
		return p.helper("f2b") + "(" + v + ")"
	case split:
		return "ushort(" + v + ")"
	case t.Bytes() < 4:
		return k.name + "(" + v + ")"
	case t == ir.F32 && k == words:
		return "U(" + v + ")"
	}
	return v
}

// store prints a store; of a uniform one lane 0 makes it.
func (p *printer) store(i *ir.Instr) {
	m := i.Mem
	k, split := p.kind(m)
	o := &operands{p: p, args: i.Args}
	var vs []string
	for n := range i.Args[2:] {
		vs = append(vs, p.narrow(m, o.arg(2+n).text))
	}
	mask := ""
	if i.Args[1] != nil {
		mask = o.use(i.Args[1]).text
	}
	if uniform(i) {
		l := p.needed("l").text
		if mask = "&&(" + mask + ")"; mask == "&&()" {
			mask = ""
		}
		mask = l + "==0" + mask
	}
	index := o.arg(0)
	p.flush(placeOf(m))
	var write []string
	switch {
	case split:
		at := p.nameOf("int", index)
		b := p.view(m, octets)
		for n, v := range vs {
			h := p.newName()
			p.line("ushort %s=%s;", h, v)
			write = append(write, fmt.Sprintf("%s[%s*2+%d]=uchar(%s);", b, at, 2*n, h), fmt.Sprintf("%s[%s*2+%d]=uchar(%s>>8);", b, at, 2*n+1, h))
		}
	case len(vs) == 1:
		write = []string{fmt.Sprintf("%s[%s]=%s;", p.view(m, k), index.text, vs[0])}
	default:
		n := len(vs)
		write = []string{fmt.Sprintf("*(%spacked_%s%d*)%s=%s%d(%s);", space(m), k.name, n, p.address(m, k, index), k.name, n, strings.Join(vs, ","))}
	}
	p.guarded(mask, write)
}

// uniform reports whether a store is the same in every lane of a group.
func uniform(i *ir.Instr) bool {
	for _, v := range i.Args {
		if v != nil && v.Span == ir.Varying {
			return false
		}
	}
	return true
}

// copy16 prints an asynchronous copy as a plain one: until the barrier after its wait nobody may touch what it writes.
func (p *printer) copy16(i *ir.Instr) {
	o := &operands{p: p, args: i.Args}
	to, from := o.arg(0), o.arg(1)
	mask := ""
	if i.Args[2] != nil {
		mask = o.use(i.Args[2]).text
	}
	p.flush(placeOf(i.Mem))
	ks, _ := p.kind(i.Mem)
	kd, _ := p.kind(i.Mem2)
	source := fmt.Sprintf("*(%suint4*)%s", space(i.Mem2), p.address(i.Mem2, kd, from))
	if mask != "" {
		q := p.newName()
		p.line("uint4 %s=uint4(0);", q)
		p.guarded(mask, []string{fmt.Sprintf("%s=%s;", q, source)})
		source = q
	}
	p.line("*(threadgroup uint4*)%s=%s;", p.address(i.Mem, ks, to), source)
}
