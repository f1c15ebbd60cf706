package ir

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Parse reads the text form of a kernel, which [Kernel.String] prints. Atoms are looked up by name in atoms. A statement
// is a line; "//" starts a comment. Nothing is trusted: the kernel obeys the rules that the builder keeps, values are
// defined before they are used on every path, and types and spans agree with the op table. Errors start with the line and
// the column.
//
// Statements get their line in the text as position.
func Parse(src string, atoms ...*Atom) (k *Kernel, err error) {
	p := &parser{src: src, atoms: atoms, k: &Kernel{}, values: map[int]*Value{}, line: 1}
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(*syntaxError)
			if !ok {
				panic(r)
			}
			k, err = nil, e
		}
	}()
	p.next()
	p.kernel()
	return p.k, nil
}

// syntaxError ends a parse.
type syntaxError struct {
	line, col int
	msg       string
}

func (e *syntaxError) Error() string { return fmt.Sprintf("%d:%d: %s", e.line, e.col, e.msg) }

type parser struct {
	src       string
	off       int // of what follows tok
	line      int // of off
	lineStart int
	tok       string // a word (letters, digits, _ and .), a mark, "\n", or "" at the end
	at        syntaxError

	k     *Kernel
	atoms []*Atom
	// values has every number that was defined, nil once its block has ended; open lists the defined ones of open blocks.
	values map[int]*Value
	open   []int
	depth  int
}

const (
	maxDepth = 64      // of nested blocks
	maxValue = 1 << 20 // number of a value
)

// ---- tokens

func isWord(c byte) bool {
	return c == '_' || c == '.' || '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
}

// next reads the next token.
func (p *parser) next() {
	for p.off < len(p.src) {
		rest := p.src[p.off:]
		if strings.HasPrefix(rest, "//") {
			n := strings.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			p.off += n
		} else if rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r' {
			p.off++
		} else {
			break
		}
	}
	p.at = syntaxError{line: p.line, col: p.off - p.lineStart + 1}
	start := p.off
	for p.off < len(p.src) && isWord(p.src[p.off]) {
		p.off++
	}
	if p.off == start && p.off < len(p.src) {
		p.off++
	}
	p.tok = p.src[start:p.off]
	if p.tok == "\n" {
		p.line++
		p.lineStart = p.off
	}
}

func (p *parser) fail(format string, args ...any) {
	e := p.at
	e.msg = fmt.Sprintf(format, args...)
	panic(&e)
}

// expected fails, naming what stands here instead.
func (p *parser) expected(what string) {
	found := strconv.Quote(p.tok)
	switch p.tok {
	case "":
		found = "the end of the text"
	case "\n":
		found = "the end of the line"
	}
	p.fail("expected %s, found %s", what, found)
}

// accept skips the token if it is tok.
func (p *parser) accept(tok string) bool {
	if p.tok != tok {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(tok string) {
	if !p.accept(tok) {
		if tok == "\n" {
			p.expected("the end of the line")
		}
		p.expected(strconv.Quote(tok))
	}
}

// lines skips empty lines.
func (p *parser) lines() {
	for p.accept("\n") {
	}
}

// word takes a word, described by what.
func (p *parser) word(what string) string {
	if p.tok == "" || !isWord(p.tok[0]) {
		p.expected(what)
	}
	w := p.tok
	p.next()
	return w
}

func (p *parser) name(what string) string {
	if !validName(p.tok) {
		p.expected(what)
	}
	return p.word(what)
}

// number takes a decimal number, or a hexadecimal one after 0x, of lo … hi.
func (p *parser) number(what string, lo, hi int64) int64 {
	what = fmt.Sprintf("%s, %d … %d", what, lo, hi)
	at := p.at
	sign := ""
	if p.accept("-") {
		sign = "-"
	}
	if p.tok == "" || p.tok[0] < '0' || p.tok[0] > '9' {
		p.expected(what)
	}
	n, err := strconv.ParseInt(sign+p.tok, 0, 64)
	if err != nil || n < lo || n > hi {
		p.at = at
		p.fail("expected %s, found %q", what, sign+p.tok)
	}
	p.next()
	return n
}

func (p *parser) typ(ok func(Type) bool, what string) Type {
	t, known := ParseType(p.tok)
	if !known || !ok(t) {
		p.expected(what)
	}
	p.next()
	return t
}

func stored(t Type) bool   { return t.Bytes() != 0 }
func register(t Type) bool { return t.Word() || t == Bool || t == Index }

// ---- the kernel

func (p *parser) kernel() {
	k := p.k
	p.lines()
	p.expect("kernel")
	k.Name = p.name("the kernel's name")
	p.expect("lanes")
	k.Lanes = int(p.number("a number of lanes", 8, 32))
	p.expect("groups")
	k.Groups = int(p.number("a number of groups", 1, maxLanes))
	if msg := checkShape(k); msg != "" {
		p.fail("%s", msg)
	}
	p.expect("{")
	p.expect("\n")
	p.lines()
	for p.declaration() {
		p.lines()
	}
	k.Body = p.body()
	p.lines()
	if p.tok != "" {
		p.expected("the end of the text")
	}
}

// declaration reads a parameter, grid axis, array or register tile, in this order.
func (p *parser) declaration() bool {
	k := p.k
	late := len(k.Grid)+len(k.Shared)+len(k.Regs) > 0
	switch word := p.tok; word {
	case "in", "out", "inout", "int", "float":
		if late {
			p.fail("parameters come first")
		}
		p.next()
		q := &Param{Name: p.newName()}
		switch word {
		case "int":
			q.Kind, q.Type = Integer, Index
		case "float":
			q.Kind, q.Type = Float, F32
		default:
			q.Access = map[string]Access{"in": In, "out": Out, "inout": InOut}[word]
			p.expect(":")
			q.Type = p.typ(stored, "the type of a buffer's elements")
		}
		for _, o := range k.Params {
			if o.Kind == q.Kind {
				q.Slot++
			}
		}
		k.Params = append(k.Params, q)
	case "grid":
		if len(k.Shared)+len(k.Regs) > 0 {
			p.fail("grid axes come before arrays and register tiles")
		}
		p.next()
		n := slices.IndexFunc(k.Params, func(q *Param) bool { return q.Name == p.tok && q.Kind == Integer })
		if n < 0 {
			p.expected("an integer parameter")
		}
		p.next()
		p.expect("/")
		k.Grid = append(k.Grid, Dim{k.Params[n], int(p.number("a tile", 1, maxStep))})
	case "shared":
		if len(k.Regs) > 0 {
			p.fail("arrays come before register tiles")
		}
		p.next()
		a := &Array{Name: p.newName()}
		p.expect(":")
		a.Type = p.typ(stored, "the type of an array's elements")
		a.Len = p.length(maxShared / a.Type.Bytes())
		p.expect("@")
		at := p.at
		a.Offset = int(p.number("an offset in bytes", 0, int64(maxShared-a.Bytes())))
		if a.Offset%64 != 0 || a.Offset < k.SharedBytes() {
			p.at = at
			p.fail("array %s at %d: a multiple of 64 from %d on is needed", a.Name, a.Offset, k.SharedBytes())
		}
		k.Shared = append(k.Shared, a)
	case "reg":
		p.next()
		if k.reg(p.tok) != nil {
			p.fail("two register tiles are named %s", p.tok)
		}
		r := &Reg{Name: p.name("a register tile's name")}
		p.expect(":")
		r.Span = p.span()
		if r.Span == Block {
			p.fail("a register tile is group or varying")
		}
		r.Type = p.typ(Type.Word, "a type of 32 bits")
		r.Len = p.length(maxReg)
		k.Regs = append(k.Regs, r)
	default:
		return false
	}
	p.expect("\n")
	return true
}

func (p *parser) newName() string {
	if p.k.named(p.tok) {
		p.fail("two parameters or shared arrays are named %s", p.tok)
	}
	return p.name("a name")
}

func (p *parser) length(most int) int {
	p.expect("[")
	n := int(p.number("a number of elements", 1, int64(most)))
	p.expect("]")
	return n
}

func (p *parser) span() Span {
	for s := Block; s <= Varying; s++ {
		if p.accept(s.String()) {
			return s
		}
	}
	p.expected("block, group or varying")
	return 0
}

// ---- statements

// body reads statements up to and with the closing brace; values defined in it end with it.
func (p *parser) body() []Stmt {
	if p.depth++; p.depth > maxDepth {
		p.fail("blocks are nested more than %d deep", maxDepth)
	}
	outer := len(p.open)
	var body []Stmt
	for {
		p.lines()
		if p.accept("}") {
			break
		}
		body = append(body, p.stmt())
	}
	for _, id := range p.open[outer:] {
		p.values[id] = nil
	}
	p.open = p.open[:outer]
	p.depth--
	return body
}

func (p *parser) stmt() Stmt {
	start := p.at
	pos := Pos{p.k.Name + ".ir", p.at.line}
	var s Stmt
	switch p.tok {
	case "for", "unroll":
		s = p.loop(pos)
	case "if":
		s = p.branch(pos)
	case "":
		p.expected("a statement or \"}\"")
	default:
		i := p.instr(pos)
		p.check(start, i)
		for _, r := range i.Results {
			p.define(r)
		}
		s = i
	}
	p.expect("\n")
	return s
}

// check fails at a statement that breaks a rule.
func (p *parser) check(at syntaxError, s Stmt) {
	if err := Check(p.k, s); err != nil {
		p.at = at
		p.fail("%s", err.(*Error).Msg)
	}
}

func (p *parser) loop(pos Pos) *For {
	start := p.at
	f := &For{Unroll: p.tok == "unroll", Pos: pos}
	p.next()
	f.Var = p.def(nil)
	p.expect("=")
	f.Lo = p.use()
	p.expect("to")
	f.Hi = p.use()
	p.expect("step")
	f.Step = int(p.number("a step", 1, maxStep))
	p.check(start, f)
	p.expect("{")
	p.expect("\n")
	outer := len(p.open)
	p.define(f.Var)
	f.Body = p.body()
	p.values[f.Var.ID] = nil
	p.open = p.open[:outer]
	return f
}

func (p *parser) branch(pos Pos) *If {
	start := p.at
	p.next()
	s := &If{Cond: p.use(), Pos: pos}
	p.check(start, s)
	p.expect("{")
	p.expect("\n")
	s.Then = p.body()
	if p.accept("else") {
		p.expect("{")
		p.expect("\n")
		s.Else = p.body()
	}
	return s
}

func (p *parser) instr(pos Pos) *Instr {
	i := &Instr{Pos: pos}
	for p.tok == "%" {
		i.Results = append(i.Results, p.def(i))
		if !p.accept(",") {
			p.expect("=")
			break
		}
	}
	op, ok := ParseOp(p.tok)
	if !ok {
		p.expected("an op or a value")
	}
	p.next()
	i.Op = op
	for n := range op.memories() {
		if n == 0 {
			i.Mem = p.memory()
		} else {
			i.Mem2 = p.memory()
		}
	}
	if op.hasReg() {
		if i.Reg = p.k.reg(p.tok); i.Reg == nil {
			p.expected("a register tile")
		}
		p.next()
	}
	if op.hasAtom() {
		n := slices.IndexFunc(p.atoms, func(a *Atom) bool { return a.Name == p.tok })
		if n < 0 {
			p.expected("a known atom")
		}
		i.Atom = p.atoms[n]
		p.next()
	}
	if op == OpLookup16 {
		i.Table = p.table()
	}
	if op.hasImm() {
		p.expect("#")
		i.Imm = p.number("a number", math.MinInt64, math.MaxInt64)
		if op == OpConst && len(i.Results) == 1 && i.Results[0].Type == I32 && i.Imm>>32 == 0 {
			i.Imm = int64(int32(i.Imm)) // printed as bits
		}
	}
	for n := 0; p.tok != "\n" && p.tok != ""; n++ {
		if n > 0 {
			p.expect(",")
		}
		if p.accept("_") {
			i.Args = append(i.Args, nil)
		} else {
			i.Args = append(i.Args, p.use())
		}
	}
	return i
}

// memory reads name.type.
func (p *parser) memory() Memory {
	name, typ, _ := strings.Cut(p.tok, ".")
	t, ok := ParseType(typ)
	if ok {
		for _, q := range p.k.Params {
			if q.Name == name && q.Kind == Buffer {
				p.next()
				return Memory{Param: q, Type: t}
			}
		}
		for _, a := range p.k.Shared {
			if a.Name == name {
				p.next()
				return Memory{Array: a, Type: t}
			}
		}
	}
	p.expected("a buffer or an array with the type of its elements")
	return Memory{}
}

// table reads table: and the sixteen bytes in hexadecimal.
func (p *parser) table() *[16]byte {
	p.expect("table")
	p.expect(":")
	if len(p.tok) != 32 {
		p.expected("16 bytes in hexadecimal")
	}
	t := new([16]byte)
	for n := range t {
		b, err := strconv.ParseUint(p.tok[2*n:2*n+2], 16, 8)
		if err != nil {
			p.expected("16 bytes in hexadecimal")
		}
		t[n] = byte(b)
	}
	p.next()
	return t
}

// def reads %number:type and, unless it is varying, the span of a value that i defines.
func (p *parser) def(i *Instr) *Value {
	p.expect("%")
	if _, twice := p.values[p.id()]; twice {
		p.fail("value %%%s is defined twice", p.tok)
	}
	v := &Value{Def: i, ID: p.id(), Span: Varying}
	p.values[v.ID] = nil // not yet to be used
	p.next()
	p.expect(":")
	v.Type = p.typ(register, "the type of a value")
	if p.tok == Block.String() || p.tok == Group.String() {
		v.Span = p.span()
	}
	p.k.values = max(p.k.values, v.ID)
	return v
}

// define lets the value be used from here to the end of the block.
func (p *parser) define(v *Value) {
	p.values[v.ID] = v
	p.open = append(p.open, v.ID)
}

// use reads the number of a value that is defined here.
func (p *parser) use() *Value {
	p.expect("%")
	v := p.values[p.id()]
	if v == nil {
		p.fail("value %%%s is not defined here", p.tok)
	}
	p.next()
	return v
}

// id returns the value's number at the current token.
func (p *parser) id() int {
	n, err := strconv.Atoi(p.tok)
	if err != nil || n < 1 || n > maxValue || strconv.Itoa(n) != p.tok {
		p.expected(fmt.Sprintf("the number of a value, 1 … %d", maxValue))
	}
	return n
}
