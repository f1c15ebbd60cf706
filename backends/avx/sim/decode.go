package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// features tells which encodings beyond AVX, AVX2, FMA and F16C an architecture has.
type features struct {
	evex    bool // AVX-512 F, BW, DQ, VL and VNNI
	vexVNNI bool // AVX-VNNI
}

var architectures = map[string]features{
	"avx2":       {},
	"avxvnni":    {vexVNNI: true},
	"avx512vnni": {evex: true},
}

// An opcode is the meaning of a mnemonic.
type opcode struct {
	run  func(m *Machine, in *instruction)
	evex func(in *instruction) bool // whether this form has an EVEX encoding only; nil: it has a VEX one

	cancels func(in *instruction) bool // whether the result does not depend on the registers, which need not be defined then

	masked bool // takes a write mask and an embedded broadcast
}

// An instruction is one with its operands resolved. Sources are in Intel's order: the reverse of the Go assembler's, without
// the mask and the destination.
type instruction struct {
	op        *opcode
	text      string
	src       []arg
	dst       arg
	mask      int  // write mask register, 0 for none
	zeroing   bool // elements outside the mask become 0 instead of staying
	broadcast bool // the memory operand is one element for all
	cancels   bool // see opcode
	width     int  // bytes of the largest vector register among the operands
	target    int  // of a branch
}

type argKind uint8

const (
	noArg argKind = iota
	gpArg
	vecArg
	maskArg
	memArg
	immArg
)

// An arg is a decoded operand.
type arg struct {
	kind argKind
	reg  int
	size int  // bytes of a register
	high bool // byte 1 of a general register: AH, BH, CH, DH
	imm  uint64
	mem  address
}

// An address is symbol + disp + base + index · scale.
type address struct {
	symbol    string
	pseudo    pseudo
	base      int // general register, −1 for none
	index     int // general or vector register, −1 for none
	indexSize int // bytes of a vector register that serves as index; 0 for a general register
	scale     uint64
	disp      int
}

// pseudo is what an address without a real base register is relative to.
type pseudo uint8

const (
	absolute pseudo = iota
	frameArgs
	frameLocals
	static
)

// decode resolves all instructions of f.
func decode(f *ir.Function, has features, symbols map[string]bool) ([]*instruction, error) {
	var program []*instruction
	labels := map[string]int{}
	branches := map[int]string{}
	var raw []byte // of BYTE and the like that follow one another
	flush := func() error {
		list, err := decodeVEX(raw, has)
		if err != nil {
			return fmt.Errorf("instruction %d, bytes % x: %w", len(program), raw, err)
		}
		program, raw = append(program, list...), nil
		return nil
	}
	for _, node := range f.Nodes {
		switch n := node.(type) {
		case ir.Label:
			if err := flush(); err != nil {
				return nil, err
			}
			labels[string(n)] = len(program)
		case *ir.Instruction:
			bytes, ok, err := rawBytes(n)
			if ok && err == nil {
				raw = append(raw, bytes...)
				continue
			}
			if err == nil {
				err = flush()
			}
			if err != nil {
				return nil, err
			}
			in, err := decodeInstruction(n, has, symbols)
			if err != nil {
				return nil, fmt.Errorf("instruction %d, %s: %w", len(program), text(n), err)
			}
			if label := n.TargetLabel(); label != nil {
				branches[len(program)] = string(*label)
			}
			program = append(program, in)
		}
	}
	if err := flush(); err != nil {
		return nil, err
	}
	for i, label := range branches {
		target, ok := labels[label]
		if !ok {
			return nil, fmt.Errorf("instruction %d, %s: no label %s", i, program[i].text, label)
		}
		program[i].target = target
	}
	return program, nil
}

// text is an instruction as the assembler reads it.
func text(n *ir.Instruction) string {
	var ops []string
	for _, op := range n.Operands {
		ops = append(ops, op.Asm())
	}
	return strings.TrimSpace(n.OpcodeWithSuffixes() + " " + strings.Join(ops, ", "))
}

func decodeInstruction(n *ir.Instruction, has features, symbols map[string]bool) (*instruction, error) {
	in := &instruction{text: text(n)}
	var args []arg
	inMemory := 0
	for _, op := range n.Operands {
		a, err := decodeOperand(op, symbols)
		if err != nil {
			return nil, err
		}
		if a.kind == vecArg {
			in.width = max(in.width, a.size)
			if !strings.HasPrefix(n.Opcode, "V") {
				return nil, fmt.Errorf("legacy SSE instruction, which may not stand between VEX encodings")
			}
		}
		if a.kind == memArg {
			inMemory++
		}
		if a.kind != noArg {
			args = append(args, a)
		}
	}
	if inMemory > 1 {
		return nil, fmt.Errorf("two operands in memory")
	}
	op, ok := lookup(n.Opcode)
	if !ok {
		return nil, fmt.Errorf("opcode %s is not implemented", n.Opcode)
	}
	in.op = op
	if len(args) > 0 {
		in.dst, args = args[len(args)-1], args[:len(args)-1]
	}
	if k := len(args) - 1; op.masked && k >= 0 && args[k].kind == maskArg {
		in.mask, args = args[k].reg, args[:k]
		if in.mask == 0 {
			return nil, fmt.Errorf("K0 cannot be a write mask")
		}
	}
	slices.Reverse(args)
	in.src = args
	for _, s := range n.Suffixes {
		switch {
		case s == "BCST" && op.masked:
			in.broadcast = true
		case s == "Z" && in.mask != 0:
			in.zeroing = true
		default:
			return nil, fmt.Errorf("suffix %s is not supported here", s)
		}
	}
	in.cancels = op.cancels != nil && op.cancels(in) && (in.mask == 0 || in.zeroing)
	if !has.evex && in.needsEVEX() {
		return nil, fmt.Errorf("needs AVX-512")
	}
	return in, nil
}

// needsEVEX reports whether the instruction has no VEX encoding, or uses a mask register.
func (in *instruction) needsEVEX() bool {
	if in.op.evex != nil && in.op.evex(in) || in.mask != 0 || in.broadcast || in.zeroing {
		return true
	}
	for _, a := range append([]arg{in.dst}, in.src...) {
		if a.kind == maskArg || a.kind == vecArg && (a.reg >= 16 || a.size == 64) || a.kind == memArg && a.mem.indexSize > 0 && a.mem.index >= 16 {
			return true
		}
	}
	return false
}

func decodeOperand(op operand.Op, symbols map[string]bool) (arg, error) {
	switch op := op.(type) {
	case operand.LabelRef:
		return arg{}, nil
	case operand.Constant:
		bits, err := constantBits(op)
		return arg{kind: immArg, imm: bits}, err
	case operand.Mem:
		mem, err := decodeMem(op, symbols)
		return arg{kind: memArg, mem: mem}, err
	case reg.Register:
		return decodeRegister(op)
	}
	return arg{}, fmt.Errorf("operand %s of type %T is not supported", op.Asm(), op)
}

func decodeRegister(r reg.Register) (arg, error) {
	p := reg.ToPhysical(r)
	if p == nil {
		return arg{}, fmt.Errorf("register %s is not allocated", r.Asm())
	}
	a := arg{reg: int(p.PhysicalIndex()), size: int(p.Size())}
	switch p.Kind() {
	case reg.KindGP:
		if a.reg == regBP || a.reg == regSP {
			return arg{}, fmt.Errorf("uses %s, which belongs to the Go runtime", p.Asm())
		}
		a.kind = gpArg
		if reg.Spec(p.Mask()) == reg.S8H {
			a.size, a.high = 1, true
		}
	case reg.KindVector:
		a.kind = vecArg
	case reg.KindOpmask:
		a.kind = maskArg
	default:
		return arg{}, fmt.Errorf("register %s is not supported as an operand", p.Asm())
	}
	return a, nil
}

func decodeMem(op operand.Mem, symbols map[string]bool) (address, error) {
	m := address{base: -1, index: -1, disp: op.Disp}
	switch op.Base {
	case nil:
	case reg.FramePointer:
		m.pseudo = frameArgs
	case reg.StackPointer:
		m.pseudo = frameLocals
	case reg.StaticBase:
		m.pseudo, m.symbol = static, op.Symbol.Name
		if !symbols[m.symbol] {
			return m, fmt.Errorf("no data for symbol %s", op.Symbol)
		}
	default:
		base, err := decodeRegister(op.Base)
		if err != nil {
			return m, err
		}
		if base.kind != gpArg || base.size != 8 {
			return m, fmt.Errorf("register %s as a base", op.Base.Asm())
		}
		m.base = base.reg
	}
	if op.Index == nil || op.Scale == 0 {
		return m, nil
	}
	index, err := decodeRegister(op.Index)
	if err != nil {
		return m, err
	}
	switch {
	case index.kind == gpArg && index.size == 8:
	case index.kind == vecArg:
		m.indexSize = index.size
	default:
		return m, fmt.Errorf("register %s as an index", op.Index.Asm())
	}
	if m.pseudo == static {
		return m, fmt.Errorf("an index beside a symbol: there is no such encoding relative to the instruction pointer")
	}
	m.index, m.scale = index.reg, uint64(op.Scale)
	return m, nil
}

// base returns the address without a vector index.
func (m *Machine) base(a *address) uint64 {
	addr := uint64(int64(a.disp))
	switch a.pseudo {
	case frameArgs:
		addr += m.args
	case frameLocals:
		addr += m.locals
	case static:
		addr += m.symbols[a.symbol]
	}
	if a.base >= 0 {
		addr += m.readGP(a.base, 8, false)
	}
	if a.index >= 0 && a.indexSize == 0 {
		addr += m.readGP(a.index, 8, false) * a.scale
	}
	return addr
}
