package sim

import (
	"fmt"
	"math"
	"strings"
)

// stmt is an instruction as written.
type stmt struct {
	line  int
	text  string // without the semicolon
	guard string // predicate, if it has one
	not   bool   // runs where the predicate is false
	op    string
	args  []operand
}

// control tells what an instruction does to the flow.
type control uint8

const (
	plain control = iota
	branch
	leave
	barrier
)

// instr is an instruction ready to run. Its operands are results first, then sources; a function of f takes them by position
// from the frame, one of run by itself.
type instr struct {
	at   int // its number
	line int
	text string
	op   string

	guard   ref
	not     bool
	control control
	uniform bool  // a branch that all lanes must take alike
	aligned bool  // needs all 32 lanes
	target  int32 // of a branch
	label   string

	dst, src []ref
	f        func(*frame) error
	run      func(w *warp, in *instr, mask uint32) error
}

// body gathers the declarations and instructions of a kernel.
type body struct {
	*Entry
	regs     map[string]ref // declared one by one, or used
	families map[string]family
	labels   map[string]int32
	static   int    // bytes of shared memory
	end      uint32 // address after the last array
}

// family is a set of registers name0 … name(n−1).
type family struct {
	n int
	t typ
}

func newBody(e *Entry) *body {
	return &body{Entry: e, regs: map[string]ref{}, families: map[string]family{}, labels: map[string]int32{}, end: sharedBase}
}

// slot gives out a place of class c.
func (b *body) slot(t typ) ref {
	r := ref{t.class(), int32(b.slots[t.class()]), t}
	b.slots[r.class]++
	return r
}

func (b *body) declare(name string, t typ) error {
	if _, ok := b.regs[name]; ok {
		return fmt.Errorf("register %s is declared twice", name)
	}
	if _, ok := b.member(name); ok {
		return fmt.Errorf("register %s is declared twice", name)
	}
	b.regs[name] = b.slot(t)
	return nil
}

func (b *body) declareMany(name string, n int, t typ) error {
	if _, ok := b.families[name]; ok {
		return fmt.Errorf("registers %s are declared twice", name)
	}
	b.families[name] = family{n, t}
	return nil
}

// member returns the type of a register of a family.
func (b *body) member(name string) (typ, bool) {
	stem := strings.TrimRight(name, "0123456789")
	number := name[len(stem):]
	for ; number != ""; stem, number = stem+number[:1], number[1:] {
		if f, ok := b.families[stem]; ok && (number == "0" || number[0] != '0') {
			if v, ok := integer(number); ok && v < uint64(f.n) {
				return f.t, true
			}
		}
	}
	return noType, false
}

// register returns the register of that name.
func (b *body) register(name string) (ref, error) {
	if r, ok := b.regs[name]; ok {
		return r, nil
	}
	t, ok := b.member(name)
	if !ok {
		return ref{}, fmt.Errorf("%s is not declared", name)
	}
	if b.slots[t.class()] >= maxSlots {
		return ref{}, fmt.Errorf("more than %d registers", maxSlots)
	}
	r := b.slot(t)
	b.regs[name] = r
	return r, nil
}

// declareShared places an array. It is aligned as asked for and no better, and has a gap before it, so that what relies on
// more is found.
func (b *body) declareShared(name string, size, align int) error {
	if _, ok := b.arrayAddr(name); ok {
		return fmt.Errorf("array %s is declared twice", name)
	}
	if b.static += size; b.static > maxStatic {
		return fmt.Errorf("%d bytes of shared memory; a block has %d", b.static, maxStatic)
	}
	a := uint32(align)
	at := (b.end+256+a-1)/a*a | a
	b.shared = append(b.shared, array{name, at, size})
	b.end = at + uint32(size)
	return nil
}

func (b *body) arrayAddr(name string) (uint32, bool) {
	for _, a := range b.shared {
		if a.name == name {
			return a.addr, true
		}
	}
	return 0, false
}

func (b *body) label(name string) error {
	if _, ok := b.labels[name]; ok {
		return fmt.Errorf("label %s is defined twice", name)
	}
	b.labels[name] = int32(len(b.code))
	return nil
}

// finish resolves labels.
func (b *body) finish(line int) error {
	for n := range b.code {
		in := &b.code[n]
		if in.control == branch {
			t, ok := b.labels[in.label]
			if !ok {
				return fmt.Errorf("line %d: %s: no label %s", in.line, in.text, in.label)
			}
			in.target = t
		}
	}
	for name, t := range b.labels {
		if int(t) == len(b.code) {
			return fmt.Errorf("line %d: label %s stands before no instruction", line, name)
		}
	}
	n := len(b.code)
	if n == 0 || b.code[n-1].guard.class != none || b.code[n-1].control != leave && b.code[n-1].control != branch {
		return fmt.Errorf("line %d: the end is reached without ret", line)
	}
	return nil
}

// add decodes an instruction.
func (b *body) add(s *stmt) error {
	in := instr{at: len(b.code), line: s.line, text: s.text, op: s.op}
	if s.guard != "" {
		g, err := b.register(s.guard)
		if err != nil {
			return err
		}
		if g.typ != pred {
			return fmt.Errorf("guard %s is not a predicate", s.guard)
		}
		in.guard, in.not = g, s.not
	}
	if err := b.decode(&in, s); err != nil {
		return err
	}
	b.code = append(b.code, in)
	return nil
}

func (b *body) decode(in *instr, s *stmt) error {
	first, rest, _ := strings.Cut(s.op, ".")
	switch first {
	case "ld", "st":
		return b.access(in, s, first == "st", rest)
	case "cp":
		return b.async(in, s, rest)
	case "mov":
		return b.move(in, s, rest)
	case "cvt":
		return b.convert(in, s, rest)
	case "mma":
		return b.matrix(in, s, rest)
	case "shfl":
		return b.shuffle(in, s, rest)
	}
	switch s.op {
	case "ldmatrix.sync.aligned.m8n8.x1.shared.b16", "ldmatrix.sync.aligned.m8n8.x2.shared.b16", "ldmatrix.sync.aligned.m8n8.x4.shared.b16",
		"ldmatrix.sync.aligned.m8n8.x1.trans.shared.b16", "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16", "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16":
		return b.loadMatrix(in, s)
	case "bra", "bra.uni":
		in.control, in.uniform = branch, s.op == "bra.uni"
		if len(s.args) != 1 || s.args[0].kind != name {
			return fmt.Errorf("a label is expected")
		}
		in.label = s.args[0].text
		return nil
	case "ret", "exit":
		in.control = leave
		return s.count(0)
	case "bar.sync":
		in.control = barrier
		if len(s.args) != 1 || s.args[0].kind != intLiteral || s.args[0].value != 0 {
			return fmt.Errorf("supported is barrier 0 of the whole block")
		}
		return nil
	case "bar.warp.sync":
		in.aligned, in.run = true, (*warp).syncWarp
		if len(s.args) != 1 || s.args[0].kind != intLiteral || uint32(s.args[0].value) != math.MaxUint32 {
			return fmt.Errorf("supported is the mask of all lanes")
		}
		return nil
	case "prefetch.global.L1", "prefetch.global.L2":
		if err := s.count(1); err != nil {
			return err
		}
		a, err := b.address(s.args[0], global)
		if err != nil {
			return err
		}
		in.src, in.run = []ref{a.reg}, func(*warp, *instr, uint32) error { return nil }
		return nil
	}
	f, ok := forms[s.op]
	if !ok {
		return fmt.Errorf("unknown instruction %s", s.op)
	}
	if err := s.count(len(f.types)); err != nil {
		return err
	}
	d, err := b.result(s.args[0], f.types[0], false)
	if err != nil {
		return err
	}
	in.dst = []ref{d}
	for n, t := range f.types[1:] {
		r, err := b.source(s.args[n+1], t, false)
		if err != nil {
			return err
		}
		in.src = append(in.src, r)
	}
	in.f = f.f
	return nil
}

// needs fails where the target is older than sm.
func (b *body) needs(sm int) error {
	if b.sm < sm {
		return fmt.Errorf("needs sm_%d, the target is sm_%d", sm, b.sm)
	}
	return nil
}

func (s *stmt) count(n int) error {
	if len(s.args) != n {
		return fmt.Errorf("%d operands, %d are expected", len(s.args), n)
	}
	return nil
}

// result returns the register for a result of type t.
func (b *body) result(o operand, t typ, wider bool) (ref, error) {
	if o.kind != name {
		return ref{}, fmt.Errorf("%v where a register is expected", o)
	}
	r, err := b.register(o.text)
	if err != nil {
		return r, err
	}
	if err := t.fits(r.typ, wider); err != nil {
		return r, fmt.Errorf("%s: %w", o.text, err)
	}
	return r, nil
}

// source returns the register or the constant for an operand of type t.
func (b *body) source(o operand, t typ, wider bool) (ref, error) {
	switch {
	case o.kind == name:
		return b.result(o, t, wider)
	case o.kind == floatLiteral && t == f32:
		return b.word(uint32(o.value)), nil
	case o.kind == intLiteral && t != pred && !t.float():
		bits := 8 * t.bytes()
		if bits < 64 && (o.minus && int64(o.value) < -1<<(bits-1) || !o.minus && o.value>>bits != 0) {
			return ref{}, fmt.Errorf("a literal of more than %d bits", bits)
		}
		if bits == 64 {
			return b.long(o.value), nil
		}
		return b.word(uint32(o.value) & uint32(1<<bits-1)), nil
	}
	return ref{}, fmt.Errorf("%v where .%s is expected", o, t)
}

// word returns the constant of that value.
func (b *body) word(v uint32) ref {
	r, ok := b.constWords[v]
	if !ok {
		r = b.slot(b32)
		b.constWords[v] = r
	}
	return r
}

func (b *body) long(v uint64) ref {
	r, ok := b.constLongs[v]
	if !ok {
		r = b.slot(b64)
		b.constLongs[v] = r
	}
	return r
}

// place is an operand in memory: a register, or a constant for a name, and a distance.
type place struct {
	reg ref
	off uint64
}

// address returns the place of a memory operand. Global addresses have 64 bits, shared ones 32.
func (b *body) address(o operand, s space) (place, error) {
	if o.kind != address {
		return place{}, fmt.Errorf("%v where an address is expected", o)
	}
	if at, ok := b.arrayAddr(o.text); ok && s == shared {
		return place{b.word(at), o.value}, nil
	}
	t := u64
	if s == shared {
		t = u32
	}
	r, err := b.result(operand{text: o.text}, t, false)
	return place{r, o.value}, err
}

// specials are the special registers that kernels may read, all 32 bits wide.
var specials = map[string]bool{"%tid.x": true, "%ntid.x": true, "%ctaid.x": true, "%nctaid.x": true, "%laneid": true}

// move decodes mov: of a register, a literal, a special register or an array's address, and the packing and unpacking of
// halves.
func (b *body) move(in *instr, s *stmt, suffix string) error {
	t, ok := typeOf(suffix)
	if !ok || t.bytes() == 1 || t == f16 {
		return fmt.Errorf("unknown instruction %s", s.op)
	}
	if err := s.count(2); err != nil {
		return err
	}
	d, from := s.args[0], s.args[1]
	if d.kind == vector || from.kind == vector {
		return b.pack(in, d, from, t)
	}
	r, err := b.result(d, t, false)
	if err != nil {
		return err
	}
	var v ref
	addr, isArray := b.arrayAddr(from.text)
	switch {
	case from.kind == name && specials[from.text]:
		if t != u32 && t != b32 {
			return fmt.Errorf("%s has the type .u32", from.text)
		}
		if v, ok = b.special[from.text]; !ok {
			v = b.slot(u32)
			b.special[from.text] = v
		}
	case from.kind == name && isArray:
		if t.float() || t.bytes() < 4 {
			return fmt.Errorf("the address of %s as .%s", from.text, t)
		}
		v = b.word(addr)
		if t.bytes() == 8 {
			v = b.long(uint64(addr))
		}
	default:
		if v, err = b.source(from, t, false); err != nil {
			return err
		}
	}
	in.dst, in.src = []ref{r}, []ref{v}
	in.f = map[class]func(*frame) error{words: moveWords, longs: moveLongs, flags: moveFlags}[t.class()]
	return nil
}

// pack decodes mov between a register and the vector of its two halves.
func (b *body) pack(in *instr, d, from operand, t typ) error {
	half := map[typ]typ{b32: b16, b64: b32}[t]
	v, one := d, from
	if from.kind == vector {
		v, one = from, d
	}
	if half == noType || len(v.items) != 2 || one.kind == vector {
		return fmt.Errorf("supported are two halves of .b32 or .b64")
	}
	r, err := b.result(one, t, false)
	if err != nil {
		return err
	}
	var halves []ref
	for _, o := range v.items {
		h, err := b.result(o, half, false)
		if err != nil {
			return err
		}
		halves = append(halves, h)
	}
	if d.kind == vector {
		if halves[0] == halves[1] {
			return fmt.Errorf("both halves go to the same register")
		}
		in.dst, in.src, in.f = halves, []ref{r}, unpackWords
		if t == b32 {
			in.f = unpackHalves
		}
		return nil
	}
	in.dst, in.src, in.f = []ref{r}, halves, packWords
	if t == b32 {
		in.f = packHalves
	}
	return nil
}

// convert decodes cvt and its floating-point forms. Of integers the value is cut or extended by its type, then extended by
// the destination's type to the destination's register.
func (b *body) convert(in *instr, s *stmt, suffix string) error {
	if err := s.count(2); err != nil {
		return err
	}
	var f func(*frame) error
	var to, from typ
	if c, ok := floatConversions[suffix]; ok {
		to, from, f = c.to, c.from, c.f
	} else {
		d, a, _ := strings.Cut(suffix, ".")
		var ok1, ok2 bool
		to, ok1 = typeOf(d)
		from, ok2 = typeOf(a)
		if !ok1 || !ok2 || to == pred || from == pred || to.untyped() || from.untyped() || to.float() || from.float() {
			return fmt.Errorf("unknown instruction %s", s.op)
		}
	}
	d, err := b.result(s.args[0], to, true)
	if err != nil {
		return err
	}
	a, err := b.source(s.args[1], from, true)
	if err != nil {
		return err
	}
	if f == nil {
		f = convertInteger(to, from, d.typ, a.typ)
	}
	in.dst, in.src, in.f = []ref{d}, []ref{a}, f
	return nil
}
