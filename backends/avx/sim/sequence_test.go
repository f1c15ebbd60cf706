//go:build linux && amd64

package sim

import (
	"fmt"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// sequenceForms are those that need a preparation: flags, a divisor that is not 0, indices within bounds.
func sequenceForms() []form {
	var all []form
	add := func(flags string, code ...*ir.Instruction) {
		all = append(all, form{name: nameOf(code), code: code, flags: flags})
	}
	// Flags from operands that are often equal: the low bits of AX and CX.
	compareLow := []*ir.Instruction{
		instr("ANDQ", operand.I32(0x80000003-1<<32), reg.RAX), instr("ANDQ", operand.I32(0x80000003-1<<32), reg.RCX), instr("CMPQ", reg.RAX, reg.RCX),
	}
	after := func(i *ir.Instruction) []*ir.Instruction { return append(compareLow[:3:3], i) }
	for name := range conditions {
		add("", after(instr("SET"+name, reg.DL))...)
		add("", after(instr("SET"+name, operand.Mem{Base: reg.R9, Disp: 3}))...)
		for letter, r := range map[string]reg.GPPhysical{"Q": reg.R8, "L": reg.R8L, "W": reg.R8W} {
			dst := map[string]reg.GPPhysical{"Q": reg.RDX, "L": reg.EDX, "W": reg.DX}[letter]
			add("", after(instr("CMOV"+letter+name, r, dst))...)
		}
		add("", after(instr("CMOVQ"+name, operand.Mem{Base: reg.RDI, Disp: inputMemory}, reg.RDX))...)
	}
	type sized struct {
		letter     string
		ax, dx, r8 reg.GPPhysical
	}
	all4 := []sized{{"B", reg.AL, reg.DL, reg.R8B}, {"W", reg.AX, reg.DX, reg.R8W}, {"L", reg.EAX, reg.EDX, reg.R8L}, {"Q", reg.RAX, reg.RDX, reg.R8}}
	for _, s := range all4 {
		add("zcsop", after(instr("ADC"+s.letter, s.r8, s.dx))...)
		add("zcsop", after(instr("SBB"+s.letter, s.r8, s.dx))...)
		add("zcsop", after(instr("INC"+s.letter, s.dx))...)
		add("zcsop", after(instr("DEC"+s.letter, s.dx))...)
		add("zcsop", instr("NEG"+s.letter, s.dx))
		add("", instr("NOT"+s.letter, s.dx))
		add("", instr("XCHG"+s.letter, s.r8, s.dx))
	}
	for _, s := range all4[2:] {
		odd := instr("OR"+s.letter, operand.U8(1), s.r8)
		add("", odd, instr("XORL", reg.EDX, reg.EDX), instr("DIV"+s.letter, s.r8))
		add("", odd, instr("SHRQ", operand.U8(3), reg.R8), instr("ORQ", operand.U8(9), reg.R8), instr("MOVL", operand.U8(5), reg.EDX), instr("DIV"+s.letter, s.r8))
		extend := map[string]string{"L": "CDQ", "Q": "CQO"}[s.letter]
		// A divisor of 3 bits or more is never −1.
		add("", instr("AND"+s.letter, operand.I8(-8), s.r8), instr("OR"+s.letter, operand.U8(4), s.r8), instr(extend), instr("IDIV"+s.letter, s.r8))
	}
	add("", instr("MOVB", reg.AH, reg.CL))
	add("", instr("MOVB", reg.CL, reg.AH))
	add("", instr("NOP"))
	for _, hint := range []string{"T0", "T1", "T2", "NTA"} {
		add("", instr("PREFETCH"+hint, operand.Mem{Base: reg.RDI, Disp: 64}))
	}
	add("", instr("LEAQ", operand.Mem{Base: reg.RAX, Index: reg.RCX, Scale: 8, Disp: -77}, reg.RDX))
	add("", instr("LEAQ", operand.Mem{Index: reg.RCX, Scale: 4, Disp: 5}, reg.RDX))
	add("", instr("LEAL", operand.Mem{Base: reg.RAX, Index: reg.RCX, Scale: 2, Disp: 9}, reg.EDX))
	add("", instr("VZEROUPPER"))
	for _, op := range []string{"SUBQ", "XORQ"} {
		add("zcsop", instr(op, reg.RAX, reg.RAX))
	}

	all = append(all, gatherForms()...)
	return all
}

// gatherForms load and store by vectors of indices, which are first brought into bounds: 0 … 63.
func gatherForms() []form {
	var all []form
	vec := func(i int, spec reg.Spec) reg.Register { return reg.LookupPhysical(reg.KindVector, reg.Index(i), spec) }
	for _, g := range []struct {
		opcode     string
		index, dst [3]reg.Spec
		small      string // makes indices small
	}{
		{"VPGATHERDD", [3]reg.Spec{reg.S128, reg.S256, reg.S512}, [3]reg.Spec{reg.S128, reg.S256, reg.S512}, "D"},
		{"VGATHERDPS", [3]reg.Spec{reg.S128, reg.S256, reg.S512}, [3]reg.Spec{reg.S128, reg.S256, reg.S512}, "D"},
		{"VPGATHERDQ", [3]reg.Spec{reg.S128, reg.S128, reg.S256}, [3]reg.Spec{reg.S128, reg.S256, reg.S512}, "D"},
		{"VGATHERDPD", [3]reg.Spec{reg.S128, reg.S128, reg.S256}, [3]reg.Spec{reg.S128, reg.S256, reg.S512}, "D"},
		{"VPGATHERQD", [3]reg.Spec{reg.S128, reg.S256, reg.S512}, [3]reg.Spec{reg.S128, reg.S128, reg.S256}, "Q"},
		{"VGATHERQPS", [3]reg.Spec{reg.S128, reg.S256, reg.S512}, [3]reg.Spec{reg.S128, reg.S128, reg.S256}, "Q"},
		{"VPGATHERQQ", [3]reg.Spec{reg.S128, reg.S256, reg.S512}, [3]reg.Spec{reg.S128, reg.S256, reg.S512}, "Q"},
		{"VGATHERQPD", [3]reg.Spec{reg.S128, reg.S256, reg.S512}, [3]reg.Spec{reg.S128, reg.S256, reg.S512}, "Q"},
	} {
		shift := operand.U8(26)
		if g.small == "Q" {
			shift = 58
		}
		for w := range 3 {
			mem := operand.Mem{Base: reg.RDI, Disp: 64, Index: vec(1, g.index[w]), Scale: 8}
			prepare := instr("VPSRL"+g.small, shift, vec(1, g.index[w]), vec(1, g.index[w]))
			code := []*ir.Instruction{prepare, instr(g.opcode, mem, reg.K1, vec(0, g.dst[w]))}
			all = append(all, form{name: nameOf(code), code: code})
			if w < 2 {
				code := []*ir.Instruction{prepare, instr(g.opcode, vec(2, g.dst[w]), mem, vec(0, g.dst[w]))}
				all = append(all, form{name: nameOf(code), code: code})
			}
		}
	}
	for _, opcode := range []string{"VPSCATTERDD", "VSCATTERDPS"} {
		for _, s := range []reg.Spec{reg.S128, reg.S256, reg.S512} {
			mem := operand.Mem{Base: reg.R9, Disp: 64, Index: vec(1, s), Scale: 4}
			code := []*ir.Instruction{
				instr("VPSRLD", operand.U8(28), vec(1, s), vec(1, s)), // indices 0 … 15
				instr(opcode, vec(2, s), reg.K1, mem),
			}
			all = append(all, form{name: nameOf(code), code: code})
		}
	}
	return all
}

// encodeVEX assembles VPDPBUSD src2, src1, dst in VEX encoding; src2 is a register number or memory.
func encodeVEX(wide bool, src2 any, src1, dst int) []*ir.Instruction {
	p := []byte{0xC4, 0xE2, 0x79 &^ byte(src1<<3), 0x50, byte(dst&7) << 3}
	if dst >= 8 {
		p[1] &^= 0x80
	}
	if wide {
		p[2] |= 4
	}
	switch s := src2.(type) {
	case int:
		p[4] |= 0xC0 | byte(s&7)
		if s >= 8 {
			p[1] &^= 0x20
		}
	case operand.Mem:
		base := int(reg.ToPhysical(s.Base).PhysicalIndex())
		if base >= 8 {
			p[1] &^= 0x20
		}
		switch {
		case s.Disp == 0:
		case int(int8(s.Disp)) == s.Disp:
			p[4] |= 0x40
		default:
			p[4] |= 0x80
		}
		if s.Index == nil {
			p[4] |= byte(base & 7)
		} else {
			index := int(reg.ToPhysical(s.Index).PhysicalIndex())
			if index >= 8 {
				p[1] &^= 0x40
			}
			p[4] |= 4
			p = append(p, map[uint8]byte{1: 0, 2: 0x40, 4: 0x80, 8: 0xC0}[s.Scale]|byte(index&7)<<3|byte(base&7))
		}
		switch p[4] >> 6 {
		case 1:
			p = append(p, byte(s.Disp))
		case 2:
			p = append(p, byte(s.Disp), byte(s.Disp>>8), byte(s.Disp>>16), byte(s.Disp>>24))
		}
	}
	var code []*ir.Instruction
	for _, b := range p {
		code = append(code, instr("BYTE", operand.U8(b)))
	}
	return code
}

// vexForms are VPDPBUSD as bytes.
func vexForms() []form {
	var all []form
	for _, wide := range []bool{false, true} {
		for _, src2 := range []any{
			1, 3,
			operand.Mem{Base: reg.RDI},
			operand.Mem{Base: reg.RDI, Disp: 64},
			operand.Mem{Base: reg.RDI, Disp: inputMemory},
			operand.Mem{Base: reg.R9, Disp: -64},
			operand.Mem{Base: reg.R9},
			operand.Mem{Base: reg.RDI, Index: reg.R10, Scale: 8},
			operand.Mem{Base: reg.RDI, Index: reg.R10, Scale: 4, Disp: 3},
			operand.Mem{Base: reg.R9, Index: reg.R10, Scale: 2, Disp: 100},
			operand.Mem{Base: reg.R9, Index: reg.R10, Scale: 1, Disp: -1000},
		} {
			code := []*ir.Instruction{instr("MOVL", operand.U8(24), reg.R10L)}
			switch s := src2.(type) {
			case operand.Mem:
				if reg.Equal(s.Base, reg.R9) && s.Disp < 0 { // R9 itself comes back from the arguments only
					code = append(code, instr("LEAQ", operand.Mem{Base: reg.RDI, Disp: 128 - s.Disp}, reg.R9))
				}
			}
			code = append(code, encodeVEX(wide, src2, 2, 0)...)
			all = append(all, form{name: fmt.Sprintf("VPDPBUSD as bytes, wide %v, %v", wide, src2), code: code, vnni: true})
		}
		// High registers: 8 and 15 through moves.
		y := reg.LookupPhysical(reg.KindVector, 0, reg.S256)
		code := []*ir.Instruction{
			instr("VMOVDQU", operand.Mem{Base: reg.RDI, Disp: 64}, reg.Y8),
			instr("VMOVDQU", operand.Mem{Base: reg.RDI, Disp: 128}, reg.Y15),
			instr("VMOVDQU", operand.Mem{Base: reg.RDI, Disp: 192}, reg.Y9),
		}
		code = append(code, encodeVEX(wide, 8, 15, 9)...)
		code = append(code, instr("VMOVDQU", reg.Y9, y))
		all = append(all, form{name: fmt.Sprintf("VPDPBUSD as bytes, wide %v, high registers", wide), code: code, vnni: true})
	}
	return all
}
