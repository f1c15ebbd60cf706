package sim

import (
	"encoding/binary"
	"fmt"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
)

// The Go assembler encodes VPDPBUSD as EVEX only. Kernels for AVX-VNNI hold the bytes of the VEX encoding instead: this file
// reads them back.

// rawBytes returns the bytes that a BYTE, WORD, LONG or QUAD directive emits; ok is false for anything else.
func rawBytes(n *ir.Instruction) (p []byte, ok bool, err error) {
	size := map[string]int{"BYTE": 1, "WORD": 2, "LONG": 4, "QUAD": 8}[n.Opcode]
	if size == 0 {
		return nil, false, nil
	}
	for _, op := range n.Operands {
		c, isConstant := op.(operand.Constant)
		if !isConstant {
			return nil, true, fmt.Errorf("%s: operand is not a constant", text(n))
		}
		bits, err := constantBits(c)
		if err != nil {
			return nil, true, fmt.Errorf("%s: %w", text(n), err)
		}
		p = append(p, binary.LittleEndian.AppendUint64(nil, bits)[:size]...)
	}
	return p, true, nil
}

// decodeVEX decodes a run of VPDPBUSD instructions: VEX.128 or 256, prefix 66, map 0F38, W0, opcode 50 /r (Intel SDM volume 2,
// sections 2.1.5 and 2.3). It refuses everything else.
func decodeVEX(p []byte, has features) ([]*instruction, error) {
	var list []*instruction
	for len(p) > 0 {
		if !has.vexVNNI {
			return nil, fmt.Errorf("raw bytes stand for VPDPBUSD under avxvnni only")
		}
		in, n, err := decodeVPDPBUSD(p)
		if err != nil {
			return nil, err
		}
		list, p = append(list, in), p[n:]
	}
	return list, nil
}

// decodeVPDPBUSD decodes the instruction at the start of p and returns its length.
func decodeVPDPBUSD(p []byte) (*instruction, int, error) {
	if len(p) < 5 || p[0] != 0xC4 || p[1]&0x1F != 2 || p[2]&0x83 != 1 || p[3] != 0x50 {
		return nil, 0, fmt.Errorf("not the three-byte VEX encoding of VPDPBUSD")
	}
	// R, X, B and vvvv are stored inverted.
	r, x, b := int(^p[1]>>7&1)<<3, int(^p[1]>>6&1)<<3, int(^p[1]>>5&1)<<3
	vvvv := int(^p[2] >> 3 & 15)
	width := 16
	if p[2]&4 != 0 {
		width = 32
	}
	modrm := p[4]
	mod, rm := int(modrm>>6), int(modrm&7)
	op, _ := lookup("VPDPBUSD")
	in := &instruction{
		op:    op,
		width: width,
		dst:   arg{kind: vecArg, reg: int(modrm>>3&7) | r, size: width},
		src:   []arg{{kind: vecArg, reg: vvvv, size: width}, {kind: vecArg, reg: rm | b, size: width}},
	}
	n := 5
	if mod != 3 {
		mem, length, err := decodeModRM(p[n:], mod, rm, x, b)
		if err != nil {
			return nil, 0, err
		}
		in.src[1] = arg{kind: memArg, mem: mem}
		n += length
	}
	in.text = fmt.Sprintf("VPDPBUSD as bytes % x", p[:n])
	return in, n, nil
}

// decodeModRM decodes a memory operand; p begins after the ModRM byte. It returns the length of SIB and displacement.
func decodeModRM(p []byte, mod, rm, x, b int) (address, int, error) {
	a := address{base: rm | b, index: -1}
	n := 0
	if rm == 4 {
		if len(p) < 1 {
			return a, 0, fmt.Errorf("SIB byte is missing")
		}
		sib := p[0]
		n++
		a.base = int(sib&7) | b
		if index := int(sib>>3&7) | x; index != 4 {
			a.index, a.scale = index, 1<<(sib>>6)
		}
	}
	size := []int{0, 1, 4}[mod]
	if mod == 0 && (rm == 5 || rm == 4 && a.base&7 == 5) {
		return a, 0, fmt.Errorf("address without a base register")
	}
	if len(p) < n+size {
		return a, 0, fmt.Errorf("displacement is missing")
	}
	switch size {
	case 1:
		a.disp = int(int8(p[n]))
	case 4:
		a.disp = int(int32(binary.LittleEndian.Uint32(p[n:])))
	}
	for _, reg := range []int{a.base, a.index} {
		if reg == regBP || reg == regSP {
			return a, 0, fmt.Errorf("uses %s, which belongs to the Go runtime", gpNames[reg])
		}
	}
	return a, n + size, nil
}
