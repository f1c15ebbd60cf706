package sim

import (
	"fmt"
	"strconv"
	"strings"
)

// Module is a PTX text that has been read and checked.
type Module struct {
	Target  string // sm_75, …
	sm      int
	entries []*Entry
}

// Entry returns the kernel of that name.
func (m *Module) Entry(name string) (*Entry, error) {
	for _, e := range m.entries {
		if e.Name == name {
			return e, nil
		}
	}
	return nil, fmt.Errorf("ptx: no entry %q", name)
}

// Entries returns the kernels in the order of the text.
func (m *Module) Entries() []*Entry { return m.entries }

// Param is a parameter of a kernel: Bytes is 4 or 8.
type Param struct {
	Name  string
	Bytes int
}

// Entry is a kernel.
type Entry struct {
	Name    string
	Params  []Param
	Threads int // of a block, where the text requires a number, else 0

	maxThreads int
	sm         int
	shared     []array
	code       []instr
	slots      [flags + 1]int // of each class
	constWords map[uint32]ref
	constLongs map[uint64]ref
	special    map[string]ref
}

// array is a shared array.
type array struct {
	name string
	addr uint32
	size int
}

// Limits on what a text may ask for.
const (
	maxStatic  = 48 << 10 // bytes of shared memory that may be declared
	maxThreads = 1024
	maxSlots   = 1 << 17
)

// sharedBase is the address that shared memory begins at. It isn't 0, so that an address without its array's is found.
const sharedBase = 1024

// parser reads a module with one token of lookahead.
type parser struct {
	lexer
	tok token
	m   *Module
}

// Parse reads a module. Everything that can be seen without running is checked: the opcodes and their modifiers, the types of
// operands, labels, names.
func Parse(text []byte) (*Module, error) {
	p := &parser{lexer: lexer{text: string(text), line: 1}, m: &Module{}}
	if err := p.module(); err != nil {
		return nil, fmt.Errorf("ptx: %w", err)
	}
	return p.m, nil
}

// advance reads the next token.
func (p *parser) advance() error {
	t, err := p.next()
	p.tok = t
	return err
}

// take reads a token of that kind and returns its text.
func (p *parser) take(kind rune) (string, error) {
	if p.tok.kind != kind {
		want := map[rune]string{'w': "a name", '0': "a number"}[kind]
		if want == "" {
			want = strconv.QuoteRune(kind)
		}
		return "", p.errorf("%s where %s is expected", p.tok, want)
	}
	text := p.tok.text
	return text, p.advance()
}

// skip reads a token if it is of that kind.
func (p *parser) skip(kind rune) (bool, error) {
	if p.tok.kind != kind {
		return false, nil
	}
	return true, p.advance()
}

func (p *parser) errorf(format string, args ...any) error {
	return fmt.Errorf("line %d: "+format, append([]any{p.tok.line}, args...)...)
}

// number reads an integer of at most limit.
func (p *parser) number(limit uint64) (int, error) {
	if v, ok := integer(p.tok.text); p.tok.kind == '0' && ok && v <= limit {
		return int(v), p.advance()
	}
	return 0, p.errorf("%s where a number up to %d is expected", p.tok, limit)
}

func (p *parser) module() error {
	if err := p.advance(); err != nil {
		return err
	}
	for _, d := range []string{".version", ".target", ".address_size"} {
		if p.tok.text != d {
			return p.errorf("%s where %s is expected", p.tok, d)
		}
		if err := p.advance(); err != nil {
			return err
		}
		v := p.tok.text
		switch d {
		case ".target":
			n, err := strconv.Atoi(strings.TrimPrefix(v, "sm_"))
			if err != nil || !strings.HasPrefix(v, "sm_") {
				return p.errorf("target %s; supported are sm_75, sm_80 and such", p.tok)
			}
			p.m.Target, p.m.sm = v, n
		case ".version":
			if _, err := strconv.ParseFloat(v, 32); err != nil || p.tok.kind != '0' {
				return p.errorf("version %s", p.tok)
			}
		default:
			if v != "64" {
				return p.errorf("addresses of %s bits; supported are 64", p.tok)
			}
		}
		if err := p.advance(); err != nil {
			return err
		}
	}
	for p.tok.kind != 0 {
		if err := p.entry(); err != nil {
			return err
		}
	}
	return nil
}

func (p *parser) entry() error {
	if p.tok.text == ".visible" {
		if err := p.advance(); err != nil {
			return err
		}
	}
	if p.tok.text != ".entry" {
		return p.errorf("%s; supported is .entry", p.tok)
	}
	if err := p.advance(); err != nil {
		return err
	}
	name, err := p.take('w')
	if err != nil {
		return err
	}
	if _, err := p.m.Entry(name); err == nil {
		return p.errorf("entry %s is defined twice", name)
	}
	e := &Entry{Name: name, maxThreads: maxThreads, sm: p.m.sm, constWords: map[uint32]ref{}, constLongs: map[uint64]ref{}, special: map[string]ref{}}
	if err := p.params(e); err != nil {
		return err
	}
	if err := p.limits(e); err != nil {
		return err
	}
	if _, err := p.take('{'); err != nil {
		return err
	}
	b := newBody(e)
	for p.tok.kind != '}' {
		if err := p.statement(b); err != nil {
			return err
		}
	}
	if err := b.finish(p.tok.line); err != nil {
		return err
	}
	p.m.entries = append(p.m.entries, e)
	return p.advance()
}

func (p *parser) params(e *Entry) error {
	if p.tok.kind != '(' {
		return nil
	}
	for first := true; ; first = false {
		if err := p.advance(); err != nil { // ( or ,
			return err
		}
		if first && p.tok.kind == ')' {
			break
		}
		if p.tok.text != ".param" {
			return p.errorf("%s where .param is expected", p.tok)
		}
		if err := p.advance(); err != nil {
			return err
		}
		t, ok := typeOf(strings.TrimPrefix(p.tok.text, "."))
		if !ok || t.bytes() < 4 {
			return p.errorf("parameter of type %s; supported are 32 and 64 bits", p.tok)
		}
		if err := p.advance(); err != nil {
			return err
		}
		name, err := p.take('w')
		if err != nil {
			return err
		}
		e.Params = append(e.Params, Param{name, t.bytes()})
		if p.tok.kind != ',' {
			break
		}
	}
	_, err := p.take(')')
	return err
}

// limits reads the directives on the size of blocks.
func (p *parser) limits(e *Entry) error {
	for p.tok.kind == 'w' {
		d := p.tok.text
		if d != ".reqntid" && d != ".maxntid" && d != ".minnctapersm" {
			return p.errorf("%s; supported are .reqntid, .maxntid and .minnctapersm", p.tok)
		}
		n := 1
		for more := true; more; {
			err := p.advance() // the directive or a comma
			if err != nil {
				return err
			}
			x, err := p.number(maxThreads)
			if err != nil {
				return err
			}
			n *= x
			more = p.tok.kind == ','
		}
		if n < 1 || n > maxThreads {
			return p.errorf("%s: blocks of %d threads; there may be 1 … %d", d, n, maxThreads)
		}
		switch d {
		case ".reqntid":
			e.Threads = n
		case ".maxntid":
			e.maxThreads = n
		}
	}
	return nil
}

// statement reads a declaration, a label or an instruction.
func (p *parser) statement(b *body) error {
	start := p.pos - len(p.tok.text)
	line := p.tok.line
	switch {
	case p.tok.text == ".reg":
		return p.registers(b)
	case p.tok.text == ".shared":
		return p.array(b)
	case p.tok.kind == 'w' && p.tok.text[0] == '.':
		return p.errorf("%s; supported are .reg and .shared", p.tok)
	}
	s := stmt{line: line}
	if p.tok.kind == '@' {
		if err := p.advance(); err != nil {
			return err
		}
		not, err := p.skip('!')
		if err != nil {
			return err
		}
		s.not = not
		if s.guard, err = p.take('w'); err != nil {
			return err
		}
	}
	word, err := p.take('w')
	if err != nil {
		return err
	}
	if p.tok.kind == ':' && s.guard == "" {
		if err := b.label(word); err != nil {
			return fmt.Errorf("line %d: %w", line, err)
		}
		return p.advance()
	}
	s.op = word
	for first := true; p.tok.kind != ';'; first = false {
		if !first {
			if _, err := p.take(','); err != nil {
				return err
			}
		}
		o, err := p.operand()
		if err != nil {
			return err
		}
		s.args = append(s.args, o)
	}
	s.text = strings.Join(strings.Fields(p.text[start:p.pos-1]), " ")
	if len(s.text) > 120 {
		s.text = s.text[:120] + "…"
	}
	if err := b.add(&s); err != nil {
		return fmt.Errorf("line %d: %s: %w", line, s.text, err)
	}
	return p.advance()
}

// registers reads .reg .type name<n>, name, …;
func (p *parser) registers(b *body) error {
	if err := p.advance(); err != nil {
		return err
	}
	t, ok := typeOf(strings.TrimPrefix(p.tok.text, "."))
	if !ok || t == b8 || t == u8 || t == s8 {
		return p.errorf("registers of type %s", p.tok)
	}
	for more := true; more; {
		if err := p.advance(); err != nil { // the type or a comma
			return err
		}
		name, err := p.take('w')
		if err != nil {
			return err
		}
		n := 0
		if p.tok.kind == '<' {
			if err := p.advance(); err != nil {
				return err
			}
			if n, err = p.number(1 << 30); err != nil {
				return err
			}
			if _, err := p.take('>'); err != nil {
				return err
			}
			if err := b.declareMany(name, n, t); err != nil {
				return p.errorf("%w", err)
			}
		} else if err := b.declare(name, t); err != nil {
			return p.errorf("%w", err)
		}
		more = p.tok.kind == ','
	}
	_, err := p.take(';')
	return err
}

// array reads .shared .align n .type name[n];
func (p *parser) array(b *body) error {
	if err := p.advance(); err != nil {
		return err
	}
	align := 0
	if p.tok.text == ".align" {
		if err := p.advance(); err != nil {
			return err
		}
		n, err := p.number(1 << 10)
		if err != nil {
			return err
		}
		if n == 0 || n&(n-1) != 0 {
			return p.errorf("alignment of %d", n)
		}
		align = n
	}
	t, ok := typeOf(strings.TrimPrefix(p.tok.text, "."))
	if !ok || t == pred {
		return p.errorf("array of type %s", p.tok)
	}
	if err := p.advance(); err != nil {
		return err
	}
	name, err := p.take('w')
	if err != nil {
		return err
	}
	if _, err := p.take('['); err != nil {
		return err
	}
	n, err := p.number(maxStatic)
	if err != nil {
		return err
	}
	if _, err := p.take(']'); err != nil {
		return err
	}
	if err := b.declareShared(name, n*t.bytes(), max(align, t.bytes())); err != nil {
		return p.errorf("%w", err)
	}
	_, err = p.take(';')
	return err
}

// kind is a kind of operand.
type kind uint8

const (
	name kind = iota
	intLiteral
	floatLiteral
	vector
	address // [name + value]
)

// operand is an operand as written.
type operand struct {
	kind  kind
	text  string    // the name
	value uint64    // of literals, and the offset of an address
	minus bool      // the integer is written with a sign
	items []operand // of a vector
}

func (o operand) String() string {
	switch o.kind {
	case vector:
		return fmt.Sprintf("a vector of %d", len(o.items))
	case address:
		return "an address"
	case name:
		return o.text
	}
	return "a literal"
}

func (p *parser) operand() (operand, error) {
	switch p.tok.kind {
	case '{':
		return p.vector()
	case '[':
		if err := p.advance(); err != nil {
			return operand{}, err
		}
		base, err := p.take('w')
		if err != nil {
			return operand{}, err
		}
		o := operand{kind: address, text: base}
		if p.tok.kind == '+' || p.tok.kind == '-' {
			if plus, err := p.skip('+'); err != nil {
				return o, err
			} else if off, err := p.literal(); err != nil || off.kind != intLiteral || plus && off.minus && off.value == 0 {
				return o, p.errorf("offset of an address: %w", orExpected(err, "an integer"))
			} else {
				o.value = off.value
			}
		}
		_, err = p.take(']')
		return o, err
	case 'w':
		text, err := p.take('w')
		return operand{kind: name, text: text}, err
	}
	return p.literal()
}

func orExpected(err error, what string) error {
	if err != nil {
		return err
	}
	return fmt.Errorf("%s is expected", what)
}

func (p *parser) vector() (operand, error) {
	o := operand{kind: vector}
	for more := true; more; {
		if err := p.advance(); err != nil { // { or ,
			return o, err
		}
		text, err := p.take('w')
		if err != nil {
			return o, err
		}
		o.items = append(o.items, operand{kind: name, text: text})
		more = p.tok.kind == ','
	}
	_, err := p.take('}')
	return o, err
}

func (p *parser) literal() (operand, error) {
	minus, err := p.skip('-')
	if err != nil {
		return operand{}, err
	}
	text := p.tok.text
	if p.tok.kind != '0' {
		return operand{}, p.errorf("%s where an operand is expected", p.tok)
	}
	if v, ok := float32Bits(text); ok && !minus {
		return operand{kind: floatLiteral, value: uint64(v)}, p.advance()
	}
	v, ok := integer(text)
	if !ok || minus && v > 1<<63 {
		return operand{}, p.errorf("number %s; supported are integers and 0f followed by 8 hexadecimal digits", text)
	}
	if minus {
		v = -v
	}
	return operand{kind: intLiteral, value: v, minus: minus}, p.advance()
}
