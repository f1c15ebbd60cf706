package avx

import (
	"fmt"
	"slices"

	avo "github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// encodeVEX replaces VPDPBUSD on YMM registers by the bytes of its VEX encoding, which Go's assembler doesn't know
// (VEX.256.66.0F38.W0 50 /r, Intel SDM volume 2).
func encodeVEX(fn *avo.Function) error {
	var out []avo.Node
	for _, n := range fn.Nodes {
		i, ok := n.(*avo.Instruction)
		if !ok || i.Opcode != "VPDPBUSD" {
			out = append(out, n)
			continue
		}
		var r [3]byte // signed source (rm), unsigned source (vvvv), accumulator (reg)
		for k, op := range i.Operands {
			p, ok := op.(reg.VecPhysical)
			if !ok || p.PhysicalIndex() > 15 {
				return fmt.Errorf("VPDPBUSD with the operand %s has no VEX encoding here", op.Asm())
			}
			r[k] = byte(p.PhysicalIndex())
		}
		rm, v, acc := r[0], r[1], r[2]
		second := (^acc>>3&1)<<7 | 1<<6 | (^rm>>3&1)<<5 | 0x02 // R̅ X̅ B̅, map 0F38
		third := (^v&15)<<3 | 1<<2 | 1                         // W0 v̅v̅v̅v̅ L=256 pp=66
		modrm := 0xC0 | acc&7<<3 | rm&7
		word := uint32(0xC4) | uint32(second)<<8 | uint32(third)<<16 | 0x50<<24
		text := fmt.Sprintf("VPDPBUSD Y%d, Y%d, Y%d", rm, v, acc)
		out = append(out, avo.NewComment(text),
			&avo.Instruction{Opcode: "LONG", Operands: []operand.Op{operand.U32(word)}, ISA: slices.Clone(i.ISA)},
			&avo.Instruction{Opcode: "BYTE", Operands: []operand.Op{operand.U8(modrm)}})
	}
	fn.Nodes = out
	return nil
}
