package avx

import (
	"fmt"
	"slices"

	avo "github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
	"github.com/mmcloughlin/avo/x86"
)

// maxFrame bounds the stack frame: the function has no stack check, for which the linker allows 800 bytes on the way.
const maxFrame = 704

// spill moves registers, with what was merged with them, to the frame: a load before each use and a store after each
// definition, or a memory operand where the instruction takes one.
func (a *allocator) spill(nodes []int) error {
	type slot struct {
		at, size int
		nodes    []int // that share it: no two are live at once
	}
	var slots []slot
	single := a.repeatable()
	for _, n := range nodes {
		if i := single[n]; i != nil {
			a.slots[a.nodes[n].ID()], a.repeats[a.nodes[n].ID()] = operand.Mem{}, i
			continue
		}
		size := 8
		if a.nodes[n].Kind() == reg.KindVector {
			size = a.width
			a.vectorSpills++
		} else {
			a.spills++
		}
		s := slices.IndexFunc(slots, func(s slot) bool {
			return s.size == size && !slices.ContainsFunc(s.nodes, a.adj[n].has)
		})
		if s < 0 {
			s = len(slots)
			slots = append(slots, slot{at: (a.fn.LocalSize + 7) &^ 7, size: size})
			a.fn.LocalSize = slots[s].at + size
		}
		slots[s].nodes = append(slots[s].nodes, n)
		for v, r := range a.nodes {
			if a.find(v) == n {
				a.slots[r.ID()] = operand.NewStackAddr(slots[s].at)
			}
		}
	}
	if a.fn.LocalSize > maxFrame {
		return fmt.Errorf("registers that don't fit need a frame of %d bytes, of at most %d", a.fn.LocalSize, maxFrame)
	}
	var out []avo.Node
	for _, n := range a.fn.Nodes {
		i, ok := n.(*avo.Instruction)
		if !ok {
			out = append(out, n)
			continue
		}
		if o := i.OutputRegisters(); len(o) == 1 && a.repeats[o[0].ID()] == i {
			continue
		}
		if m := a.inFrame(i); m != nil {
			if m.Opcode == "MOVQ" && m.Operands[0] == m.Operands[1] {
				continue // a copy within one slot
			}
			a.depth[m] = a.depth[i]
			i = m
		}
		before, after, err := a.reload(i)
		if err != nil {
			return err
		}
		for _, m := range slices.Concat(before, []*avo.Instruction{i}, after) {
			a.depth[m] = a.depth[i]
			out = append(out, m)
		}
	}
	a.fn.Nodes = out
	clear(a.slots)
	clear(a.repeats)
	return nil
}

// slot returns the frame slot of an operand that is a spilled register.
func (a *allocator) slot(op operand.Op) (operand.Mem, bool) {
	r, ok := op.(reg.Register)
	if !ok {
		return operand.Mem{}, false
	}
	m, ok := a.slots[r.ID()]
	return m, ok
}

// inFrame returns the instruction with its spilled operand replaced by the slot, or nil if there is no such form.
func (a *allocator) inFrame(i *avo.Instruction) *avo.Instruction {
	var build func(x, y operand.Op) (*avo.Instruction, error)
	toMemory := true // whether the destination may be memory
	switch i.Opcode {
	case "MOVQ":
		build = x86.MOVQ
	case "ADDQ":
		build = x86.ADDQ
	case "SUBQ":
		build = x86.SUBQ
	case "CMPQ":
		build = x86.CMPQ
	case "IMULQ":
		build, toMemory = func(x, y operand.Op) (*avo.Instruction, error) { return x86.IMULQ(x, y) }, false
	default:
		return nil
	}
	x, y := i.Operands[0], i.Operands[1]
	if i.Opcode == "CMPQ" { // its first operand is the one that may be memory beside an immediate
		x, y = y, x
	}
	mx, spilledX := a.slot(x)
	my, spilledY := a.slot(y)
	if spilledX && spilledY && (i.Opcode != "MOVQ" || mx != my) {
		spilledY = false // one memory operand; the other is reloaded
	}
	_, memX := x.(operand.Mem)
	_, memY := y.(operand.Mem)
	if memX || memY {
		return nil
	}
	if spilledX {
		x = mx
	}
	if spilledY && toMemory {
		y = my
	}
	if !spilledX && !(spilledY && toMemory) {
		return nil
	}
	if i.Opcode == "CMPQ" {
		x, y = y, x
	}
	if i.Opcode == "MOVQ" && spilledX && spilledY {
		n := *i
		n.Operands = []operand.Op{mx, my}
		return &n
	}
	m, err := build(x, y)
	if err != nil {
		return nil
	}
	return m
}

// transfer moves between a register and its slot.
func (a *allocator) transfer(kind reg.Kind, from, to operand.Op) (*avo.Instruction, error) {
	if kind == reg.KindVector {
		return x86.VMOVUPS(from, to)
	}
	return x86.MOVQ(from, to)
}

// reload puts the spilled registers of an instruction into new ones for it alone.
func (a *allocator) reload(i *avo.Instruction) (before, after []*avo.Instruction, err error) {
	temps := map[reg.ID]reg.Register{}
	sub := func(r reg.Register) reg.Register {
		if r == nil {
			return nil
		}
		if _, ok := a.slots[r.ID()]; !ok {
			return r
		}
		t, ok := temps[r.ID()]
		if !ok {
			switch {
			case r.Kind() == reg.KindGP:
				t = a.regs.GP64()
			case a.width == 64:
				t = a.regs.ZMM()
			default:
				t = a.regs.YMM()
			}
			temps[r.ID()] = t
			a.reloads[t.ID()] = true
		}
		return reg.NewVirtual(t.(reg.Virtual).VirtualIndex(), r.Kind(), reg.Spec(r.Mask()))
	}
	read, written := map[reg.ID]bool{}, map[reg.ID]bool{}
	for _, r := range i.InputRegisters() {
		read[r.ID()] = true
	}
	for _, r := range i.OutputRegisters() {
		written[r.ID()] = true
	}
	replace := func(ops []operand.Op) {
		for n, op := range ops {
			switch op := op.(type) {
			case operand.Mem:
				op.Base, op.Index = sub(op.Base), sub(op.Index)
				ops[n] = op
			case reg.Register:
				ops[n] = sub(op)
			}
		}
	}
	replace(i.Operands)
	replace(i.Inputs)
	replace(i.Outputs)
	if len(temps) == 0 {
		return nil, nil, nil
	}
	for _, r := range a.nodes { // in their order, not in the map's
		t, ok := temps[r.ID()]
		if !ok {
			continue
		}
		slot := a.slots[r.ID()]
		if d := a.repeats[r.ID()]; d != nil {
			before = append(before, repeat(d, t))
			continue
		}
		if read[r.ID()] {
			m, err := a.transfer(r.Kind(), slot, t)
			if err != nil {
				return nil, nil, err
			}
			before = append(before, m)
		}
		if written[r.ID()] {
			m, err := a.transfer(r.Kind(), t, slot)
			if err != nil {
				return nil, nil, err
			}
			after = append(after, m)
		}
	}
	return before, after, nil
}

// repeat returns a copy of an instruction with another destination, of the same width.
func repeat(i *avo.Instruction, to reg.Register) *avo.Instruction {
	n := *i
	dst := i.Outputs[0].(reg.Register)
	to = reg.NewVirtual(to.(reg.Virtual).VirtualIndex(), to.Kind(), reg.Spec(dst.Mask()))
	swap := func(ops []operand.Op) []operand.Op {
		ops = slices.Clone(ops)
		for k, op := range ops {
			if r, ok := op.(reg.Register); ok && r.ID() == dst.ID() {
				ops[k] = to
			}
		}
		return ops
	}
	n.Operands, n.Inputs, n.Outputs = swap(i.Operands), swap(i.Inputs), swap(i.Outputs)
	return &n
}
