package ir

import (
	"fmt"
	"strings"
)

// String returns the kernel as text that [Parse] reads back.
func (k *Kernel) String() string {
	p := &printer{k: k}
	p.line("kernel %s lanes %d groups %d {", k.Name, k.Lanes, k.Groups)
	p.depth++
	for _, q := range k.Params {
		switch q.Kind {
		case Buffer:
			p.line("%s %s: %s", q.Access, q.Name, q.Type)
		case Integer:
			p.line("int %s", q.Name)
		case Float:
			p.line("float %s", q.Name)
		}
	}
	for _, d := range k.Grid {
		p.line("grid %s / %d", d.Extent.Name, d.Tile)
	}
	for _, a := range k.Shared {
		p.line("shared %s: %s[%d] @%d", a.Name, a.Type, a.Len, a.Offset)
	}
	for _, r := range k.Regs {
		p.line("reg %s: %s %s[%d]", r.Name, r.Span, r.Type, r.Len)
	}
	p.body(k.Body)
	p.depth--
	p.line("}")
	return p.s.String()
}

// Format returns one instruction as text.
func Format(k *Kernel, i *Instr) string {
	p := &printer{k: k}
	p.instr(i)
	return strings.TrimSpace(p.s.String())
}

type printer struct {
	k     *Kernel
	s     strings.Builder
	depth int
}

func (p *printer) line(format string, args ...any) {
	for range p.depth {
		p.s.WriteString("  ")
	}
	fmt.Fprintf(&p.s, format, args...)
	p.s.WriteByte('\n')
}

func (p *printer) body(body []Stmt) {
	p.depth++
	for _, s := range body {
		switch s := s.(type) {
		case *Instr:
			p.instr(s)
		case *For:
			word := "for"
			if s.Unroll {
				word = "unroll"
			}
			p.line("%s %s = %s to %s step %d {", word, def(s.Var), use(s.Lo), use(s.Hi), s.Step)
			p.body(s.Body)
			p.line("}")
		case *If:
			p.line("if %s {", use(s.Cond))
			p.body(s.Then)
			if len(s.Else) > 0 {
				p.line("} else {")
				p.body(s.Else)
			}
			p.line("}")
		}
	}
	p.depth--
}

func use(v *Value) string { return fmt.Sprintf("%%%d", v.ID) }

// def is a value where it is defined: its number, type and, unless varying, span.
func def(v *Value) string {
	s := ""
	if v.Span != Varying {
		s = " " + v.Span.String()
	}
	return fmt.Sprintf("%%%d:%s%s", v.ID, v.Type, s)
}

// instr prints results, op, then [memory or register or immediate] and the arguments; an absent optional one is "_".
func (p *printer) instr(i *Instr) {
	var s strings.Builder
	for n, r := range i.Results {
		if n > 0 {
			s.WriteString(", ")
		}
		s.WriteString(def(r))
	}
	if len(i.Results) > 0 {
		s.WriteString(" = ")
	}
	s.WriteString(i.Op.String())
	for _, m := range []Memory{i.Mem, i.Mem2} {
		if m.Param != nil || m.Array != nil {
			fmt.Fprintf(&s, " %s.%s", m.Name(), m.Type)
		}
	}
	if i.Reg != nil {
		s.WriteString(" " + i.Reg.Name)
	}
	if i.Atom != nil {
		s.WriteString(" " + i.Atom.Name)
	}
	if i.Table != nil {
		fmt.Fprintf(&s, " table:%x", *i.Table)
	}
	switch {
	case i.Op == OpConst && len(i.Results) == 1 && i.Results[0].Type != Index:
		fmt.Fprintf(&s, " #0x%08X", uint32(i.Imm))
	case i.Op.hasImm():
		fmt.Fprintf(&s, " #%d", i.Imm)
	}
	for n, a := range i.Args {
		if n > 0 {
			s.WriteByte(',')
		}
		if a == nil {
			s.WriteString(" _")
		} else {
			s.WriteString(" " + use(a))
		}
	}
	p.line("%s", s.String())
}
