package ir

import (
	"fmt"
	"math"
	"slices"
)

var letters = map[byte]Type{'f': F32, 'i': I32, 'u': U32, 's': I8x4, 'q': U8x4, 'b': Bool, 'x': Index}

// Check returns what is wrong with a statement by itself: the types and spans of its arguments and results, its immediate,
// and what it names of the kernel. Package verify checks the rest, such as that arguments are defined before.
//
// A result may be declared wider than its arguments make it (varying, say, though all are uniform): lowering puts uniform
// values where a varying register tile was read.
func Check(k *Kernel, s Stmt) error {
	e := &Error{Kernel: k.Name, Pos: s.pos()}
	switch s := s.(type) {
	case *Instr:
		e.Msg = checkInstr(k, s)
		if e.Msg != "" {
			e.Stmt = Format(k, s)
		}
	case *For:
		e.Msg = checkLoop(s)
	case *If:
		e.Msg = checkBranch(s)
	}
	if e.Msg != "" {
		return e
	}
	return nil
}

func checkInstr(k *Kernel, i *Instr) string {
	for _, check := range []func(*Kernel, *Instr) string{checkParts, checkImm, checkMemory, checkMoreArgs, checkResults} {
		if msg := check(k, i); msg != "" {
			return msg
		}
	}
	return ""
}

// hasImm reports whether the op has an immediate.
func (o Op) hasImm() bool {
	switch o {
	case OpConst, OpTile, OpIntParam, OpFloatParam, OpDot4US, OpShuffleXor, OpReadLane, OpLoad, OpStore, OpAsyncWait, OpLdMatrix, OpFragCoord:
		return true
	}
	return false
}

// memories returns how many memories the op names.
func (o Op) memories() int {
	switch o {
	case OpLoad, OpStore, OpPrefetch, OpLdMatrix:
		return 1
	case OpAsyncCopy:
		return 2
	}
	return 0
}

func (o Op) hasReg() bool  { return o == OpGet || o == OpSet }
func (o Op) hasAtom() bool { return o == OpMMA || o == OpFragCoord }

// checkParts checks that the instruction has the parts that its op takes, and its arguments against the signature.
func checkParts(k *Kernel, i *Instr) string {
	memories := 0
	for _, m := range []Memory{i.Mem, i.Mem2} {
		if m.Param != nil || m.Array != nil {
			memories++
		}
	}
	switch o := i.Op; {
	case o == opInvalid || o >= numOps:
		return fmt.Sprintf("no op has number %d", uint8(o))
	case memories != o.memories():
		return fmt.Sprintf("%s takes %d memories, not %d", o, o.memories(), memories)
	case (i.Reg != nil) != o.hasReg():
		return fmt.Sprintf("%s with or without a register tile", o)
	case i.Reg != nil && !slices.Contains(k.Regs, i.Reg):
		return fmt.Sprintf("register tile %s is not of this kernel", i.Reg.Name)
	case (i.Atom != nil) != o.hasAtom():
		return fmt.Sprintf("%s with or without an atom", o)
	case (i.Table != nil) != (o == OpLookup16):
		return fmt.Sprintf("%s with or without a table", o)
	}
	return checkArgs(i)
}

// checkArgs compares an instruction's arguments with its signature and returns what is wrong, or nothing.
func checkArgs(i *Instr) string {
	info := i.Op.Info()
	n, any := Invalid, Invalid
	arg := 0
	sig := info.Sig
	for p := 0; p < len(sig) && sig[p] != ':'; p++ {
		optional := sig[p] == '?'
		if optional {
			p++
		}
		if arg >= len(i.Args) {
			return fmt.Sprintf("%s takes more than %d arguments", info.Name, len(i.Args))
		}
		v := i.Args[arg]
		arg++
		if v == nil {
			if optional {
				continue
			}
			return fmt.Sprintf("argument %d of %s is missing", arg, info.Name)
		}
		ok := true
		switch c := sig[p]; c {
		case 'n':
			ok = (v.Type == I32 || v.Type == U32) && (n == Invalid || n == v.Type)
			n = v.Type
		case 'w':
			ok = v.Type.Word() && (any == Invalid || any == v.Type)
			any = v.Type
		default:
			ok = v.Type == letters[c]
		}
		if !ok {
			return fmt.Sprintf("argument %d of %s is %s", arg, info.Name, v.Type)
		}
	}
	if arg != len(i.Args) && i.Op != OpStore && i.Op != OpMMA {
		return fmt.Sprintf("%s takes %d arguments, not %d", info.Name, arg, len(i.Args))
	}
	return ""
}

// checkImm checks the range of the immediate.
func checkImm(k *Kernel, i *Instr) string {
	slot := func(kind ParamKind) bool {
		return slices.ContainsFunc(k.Params, func(p *Param) bool { return p.Kind == kind && int64(p.Slot) == i.Imm })
	}
	within := func(lo, hi int) bool { return int64(lo) <= i.Imm && i.Imm <= int64(hi) }
	ok := i.Imm == 0
	switch i.Op {
	case OpConst:
		ok = len(i.Results) == 1 && i.Imm == normal(i.Results[0].Type, i.Imm)
	case OpTile:
		ok = within(0, len(k.Grid)-1)
	case OpIntParam:
		ok = slot(Integer)
	case OpFloatParam:
		ok = slot(Float)
	case OpDot4US:
		ok = within(1, 255)
	case OpShuffleXor:
		ok = within(1, k.Lanes-1)
	case OpReadLane:
		ok = within(0, k.Lanes-1)
	case OpLoad, OpStore, OpLdMatrix:
		ok = i.Imm == 1 || i.Imm == 2 || i.Imm == 4
	case OpAsyncWait:
		ok = within(0, maxPending)
	case OpFragCoord:
		ok = within(0, i.Atom.C.Regs-1)
	}
	if !ok {
		return fmt.Sprintf("%s of %d", i.Op, i.Imm)
	}
	return ""
}

// maxPending is the most groups of asynchronous copies that a wait may leave pending.
const maxPending = 15

// normal returns the bits of a constant in the form in which it is kept: I32 sign-extended, other words zero-extended.
func normal(t Type, bits int64) int64 {
	switch {
	case t == I32:
		return int64(int32(bits))
	case t == Bool:
		return bits & 1
	case t.Word():
		return bits & math.MaxUint32
	}
	return bits
}

// checkMemory checks that what is named is of this kernel and may be accessed so.
func checkMemory(k *Kernel, i *Instr) string {
	for n, m := range []Memory{i.Mem, i.Mem2} {
		if n >= i.Op.memories() {
			break
		}
		switch {
		case m.Param != nil && m.Array != nil:
			return "memory is both a buffer and an array"
		case m.Param != nil && (m.Param.Kind != Buffer || !slices.Contains(k.Params, m.Param)):
			return fmt.Sprintf("%s is no buffer of this kernel", m.Param.Name)
		case m.Array != nil && !slices.Contains(k.Shared, m.Array):
			return fmt.Sprintf("%s is no shared array of this kernel", m.Array.Name)
		case m.Type.Bytes() == 0:
			return fmt.Sprintf("%s as %s", m.Name(), m.Type)
		}
		write := i.Op == OpStore || i.Op == OpAsyncCopy && n == 0
		if p := m.Param; p != nil && write && p.Access == In {
			return fmt.Sprintf("store to the input %s", p.Name)
		} else if p != nil && !write && i.Op != OpPrefetch && p.Access == Out {
			return fmt.Sprintf("load from the output %s", p.Name)
		}
	}
	switch i.Op {
	case OpLdMatrix:
		if i.Mem.Array == nil || i.Mem.Type.Bytes() != 4 {
			return "ldmatrix reads a shared array of words"
		}
	case OpAsyncCopy:
		if i.Mem.Array == nil || i.Mem2.Param == nil {
			return "an asynchronous copy goes from a buffer to a shared array"
		}
	}
	return ""
}

// checkMoreArgs checks what the signature can't say.
func checkMoreArgs(_ *Kernel, i *Instr) string {
	switch i.Op {
	case OpGet, OpSet:
		if i.Args[0].Span != Block {
			return "the index of a register tile is not constant"
		}
		if i.Op == OpGet {
			break
		}
		if v := i.Args[1]; v.Type != i.Reg.Type || v.Span > i.Reg.Span {
			return fmt.Sprintf("%s %s set in a register tile of %s %s", v.Span, v.Type, i.Reg.Span, i.Reg.Type)
		}
	case OpStore:
		if int64(len(i.Args)) != 2+i.Imm {
			return fmt.Sprintf("%d values stored as %d", len(i.Args)-2, i.Imm)
		}
		return checkTypes(i.Args[2:], i.Mem.Type.Reg(), i.Op)
	case OpMMA:
		a := i.Atom
		if len(i.Args) != a.A.Regs+a.B.Regs+a.C.Regs {
			return fmt.Sprintf("%s takes %d registers, not %d", a.Name, a.A.Regs+a.B.Regs+a.C.Regs, len(i.Args))
		}
		rest := i.Args
		for _, f := range []Fragment{a.A, a.B, a.C} {
			if msg := checkTypes(rest[:f.Regs], f.Type, i.Op); msg != "" {
				return msg
			}
			rest = rest[f.Regs:]
		}
	}
	return ""
}

func checkTypes(vs []*Value, t Type, op Op) string {
	for _, v := range vs {
		if v == nil || v.Type != t {
			return fmt.Sprintf("%s of other types than %s", op, t)
		}
	}
	return ""
}

// checkResults compares the results' number, types and spans with those that the op has.
func checkResults(k *Kernel, i *Instr) string {
	types, s, exact := results(i)
	if len(i.Results) != len(types) {
		return fmt.Sprintf("%s has %d results, not %d", i.Op, len(types), len(i.Results))
	}
	for n, r := range i.Results {
		if t := types[n]; t != Invalid && r.Type != t {
			return fmt.Sprintf("result of %s is %s, not %s", i.Op, t, r.Type)
		}
		if r.Span < s || exact && r.Span != s {
			return fmt.Sprintf("result of %s is %s, not %s", i.Op, s, r.Span)
		}
	}
	if t := i.Op; t == OpConst && !i.Results[0].Type.Word() && i.Results[0].Type != Bool && i.Results[0].Type != Index ||
		t == OpCast && !i.Results[0].Type.Word() {
		return fmt.Sprintf("%s of type %s", t, i.Results[0].Type)
	}
	return ""
}

// results returns the types of an instruction's results, Invalid for one of free choice, and their span: the least one, or
// the only one if exact.
func results(i *Instr) (types []Type, s Span, exact bool) {
	one := func(t Type) []Type { return []Type{t} }
	repeat := func(t Type, n int) []Type { return slices.Repeat(one(t), n) }
	switch i.Op {
	case OpConst:
		return one(Invalid), Block, true
	case OpTile, OpIntParam:
		return one(Index), Block, true
	case OpFloatParam:
		return one(F32), Block, true
	case OpLane:
		return one(Index), Varying, true
	case OpGroup:
		return one(Index), Group, true
	case OpGet:
		return one(i.Reg.Type), i.Reg.Span, false
	case OpLoad:
		return repeat(i.Mem.Type.Reg(), int(i.Imm)), loadSpan(i.Mem, i.Args), false
	case OpLdMatrix:
		return repeat(i.Mem.Type, int(i.Imm)), Varying, true
	case OpMMA:
		return repeat(i.Atom.C.Type, i.Atom.C.Regs), Varying, true
	case OpFragCoord:
		return repeat(Index, 2), Varying, true
	case OpReadLane, OpFoldAddF, OpFoldAddI, OpFoldMaxU, OpFoldMaxF:
		return one(i.Args[0].Type), Group, false
	case OpCast:
		return one(Invalid), i.Args[0].Span, false
	}
	for _, c := range i.Op.resultLetters() {
		switch c {
		case 'n':
			types = append(types, i.Args[0].Type)
		case 'w': // the last argument's: Select, ShuffleXor
			types = append(types, i.Args[len(i.Args)-1].Type)
		default:
			types = append(types, letters[byte(c)])
		}
	}
	return types, span(i.Args...), false
}

func (o Op) resultLetters() string {
	sig := o.Info().Sig
	for p := range len(sig) {
		if sig[p] == ':' {
			return sig[p+1:]
		}
	}
	return ""
}

// loadSpan is the span of what a load gives: what lanes have stored may differ between groups.
func loadSpan(m Memory, args []*Value) Span {
	s := span(args...)
	if m.Param == nil || m.Param.Access != In {
		s = max(s, Group)
	}
	return s
}

// checkLoop checks a loop's variable, bounds and step.
func checkLoop(f *For) string {
	switch {
	case f.Var == nil || f.Lo == nil || f.Hi == nil || f.Var.Type != Index || f.Lo.Type != Index || f.Hi.Type != Index:
		return "a loop's variable and bounds are indices"
	case f.Step < 1 || f.Step > maxStep:
		return fmt.Sprintf("loop step %d", f.Step)
	case max(f.Lo.Span, f.Hi.Span) == Varying:
		return "a loop bound varies between lanes; mask the loads and stores instead"
	case f.Var.Span < max(f.Lo.Span, f.Hi.Span) || f.Var.Span == Varying:
		return fmt.Sprintf("loop variable is %s, not %s", max(f.Lo.Span, f.Hi.Span), f.Var.Span)
	}
	return ""
}

// checkBranch checks a branch's condition.
func checkBranch(s *If) string {
	if s.Cond == nil || s.Cond.Type != Bool || s.Cond.Span == Varying {
		return "a branch takes a uniform bool"
	}
	return ""
}

// Limits of what a kernel may declare; a target's own are checked by package verify.
const (
	maxStep   = 1 << 30 // of a loop, and of a grid axis
	maxReg    = 1 << 12 // elements of a register tile
	maxLanes  = 1 << 10 // of a block
	maxShared = 1 << 20 // bytes
)

// checkShape checks the kernel's name, lanes and groups.
func checkShape(k *Kernel) string {
	switch {
	case !validName(k.Name):
		return fmt.Sprintf("%q is no name: letters, digits and _, not starting with a digit", k.Name)
	case k.Lanes != 8 && k.Lanes != 16 && k.Lanes != 32:
		return fmt.Sprintf("%d lanes; 8, 16 or 32 are possible", k.Lanes)
	case k.Groups < 1 || k.Groups > maxLanes/k.Lanes:
		return fmt.Sprintf("%d groups of %d lanes; a block has at most %d lanes", k.Groups, k.Lanes, maxLanes)
	}
	return ""
}

func validName(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c == '_' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		if !letter && (i == 0 || c < '0' || c > '9') {
			return false
		}
	}
	return s != "" && s != "_"
}
