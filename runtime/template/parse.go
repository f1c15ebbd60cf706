package template

import "strconv"

// maxNesting bounds how deep expressions and statements nest in a template.
const maxNesting = 250

// parser builds the tree by recursive descent, in the order of Jinja's grammar.
type parser struct {
	toks  []token
	i     int
	depth int
	loops int        // loops around the current statement, within its macro
	macro *macroStmt // the macro around the current node, or nil

	// unknown has an error for each filter or test that does not exist. Within a
	// condition such a name fails only when it runs, so conditions drop theirs.
	unknown []error
}

func (p *parser) tok() token { return p.toks[p.i] }

func (p *parser) next() token {
	t := p.toks[p.i]
	if p.i < len(p.toks)-1 {
		p.i++
	}
	return t
}

func (p *parser) isOp(op string) bool     { t := p.tok(); return t.kind == tokOp && t.text == op }
func (p *parser) isName(name string) bool { t := p.tok(); return t.kind == tokName && t.text == name }

func (p *parser) acceptOp(op string) bool {
	ok := p.isOp(op)
	if ok {
		p.next()
	}
	return ok
}

func (p *parser) acceptName(name string) bool {
	ok := p.isName(name)
	if ok {
		p.next()
	}
	return ok
}

func (p *parser) unexpected(want string) error {
	return errorAt(p.tok().pos, "expected %s, got %v", want, p.tok())
}

func (p *parser) expectOp(op string) error {
	if !p.acceptOp(op) {
		return p.unexpected(strconv.Quote(op))
	}
	return nil
}

func (p *parser) expectKind(kind tokenKind, want string) (token, error) {
	if p.tok().kind != kind {
		return token{}, p.unexpected(want)
	}
	return p.next(), nil
}

func (p *parser) blockEnd() error {
	_, err := p.expectKind(tokBlockEnd, `"%}"`)
	return err
}

// enter counts one level of nesting; the caller defers leave.
func (p *parser) enter() error {
	p.depth++
	if p.depth > maxNesting {
		return errorAt(p.tok().pos, "nested more than %d levels deep", maxNesting)
	}
	return nil
}

func (p *parser) leave() { p.depth-- }

func (p *parser) parseTemplate() ([]stmt, error) {
	body, err := p.parseBody("")
	if err == nil && len(p.unknown) > 0 {
		err = p.unknown[0]
	}
	return body, err
}

// parseBody parses up to a tag with one of the names in ends, which it leaves
// current, or to the end of the template if ends is empty. The statement named
// in opener is what the end tag closes.
func (p *parser) parseBody(opener string, ends ...string) ([]stmt, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	var body []stmt
	for {
		t := p.tok()
		switch t.kind {
		case tokData:
			p.next()
			body = append(body, &dataStmt{at(t.pos), t.text})
		case tokVarBegin:
			p.next()
			x, err := p.parseTuple()
			if err != nil {
				return nil, err
			}
			if _, err := p.expectKind(tokVarEnd, `"}}"`); err != nil {
				return nil, err
			}
			body = append(body, &printStmt{at(t.pos), x})
		case tokBlockBegin:
			p.next()
			for _, end := range ends {
				if p.isName(end) {
					return body, nil
				}
			}
			s, err := p.parseStatement(opener, ends)
			if err != nil {
				return nil, err
			}
			if err := p.blockEnd(); err != nil {
				return nil, err
			}
			body = append(body, s)
		default:
			if len(ends) > 0 {
				return nil, errorAt(t.pos, "expected %q to close %q, got %v", ends[len(ends)-1], opener, t)
			}
			return body, nil
		}
	}
}

// parseBlock parses the end of a start tag, a body and the name of its end tag.
func (p *parser) parseBlock(opener, end string) ([]stmt, error) {
	if err := p.startBody(); err != nil {
		return nil, err
	}
	body, err := p.parseBody(opener, end)
	if err == nil {
		p.next()
	}
	return body, err
}

func (p *parser) startBody() error {
	p.acceptOp(":")
	return p.blockEnd()
}

func (p *parser) parseStatement(opener string, ends []string) (stmt, error) {
	t, err := p.expectKind(tokName, "a statement")
	if err != nil {
		return nil, err
	}
	pos := at(t.pos)
	switch t.text {
	case "if":
		return p.parseIf(pos)
	case "for":
		return p.parseFor(pos)
	case "set":
		return p.parseSet(pos)
	case "macro":
		return p.parseMacro(pos)
	case "call":
		return p.parseCallBlock(pos)
	case "with":
		return p.parseWith(pos)
	case "filter":
		first, err := p.parseFilter(nil)
		if err != nil {
			return nil, err
		}
		rest, err := p.parseBlockFilters()
		if err != nil {
			return nil, err
		}
		body, err := p.parseBlock(t.text, "endfilter")
		return &filterStmt{pos, append([]*filterExpr{first}, rest...), body}, err
	case "generation":
		body, err := p.parseOuter(t.text, "endgeneration")
		return &generationStmt{pos, body}, err
	case "break", "continue":
		if p.loops == 0 {
			return nil, errorAt(t.pos, "%q outside of a loop", t.text)
		}
		if t.text == "break" {
			return &loopStmt{pos, flowBreak}, nil
		}
		return &loopStmt{pos, flowContinue}, nil
	case "extends", "include", "import", "from", "block", "autoescape":
		return nil, errorAt(t.pos, "statement %q is not supported in chat templates", t.text)
	}
	if opener != "" {
		return nil, errorAt(t.pos, "unknown statement %q: expected a statement or %q to close %q", t.text, ends[len(ends)-1], opener)
	}
	return nil, errorAt(t.pos, "unknown statement %q", t.text)
}

// parseOuter parses a body that cannot break or continue the loops around it.
func (p *parser) parseOuter(opener, end string) ([]stmt, error) {
	loops := p.loops
	p.loops = 0
	defer func() { p.loops = loops }()
	return p.parseBlock(opener, end)
}

func (p *parser) parseIf(pos at) (stmt, error) {
	unknown := len(p.unknown)
	defer func() { p.unknown = p.unknown[:unknown] }()
	root := &ifStmt{at: pos}
	for s := root; ; {
		var err error
		if s.test, err = p.parseTupleOf(p.parseOr); err != nil {
			return nil, err
		}
		if err := p.startBody(); err != nil {
			return nil, err
		}
		if s.then, err = p.parseBody("if", "elif", "else", "endif"); err != nil {
			return nil, err
		}
		end := p.next()
		switch end.text {
		case "elif":
			alt := &ifStmt{at: at(end.pos)}
			s.alt = []stmt{alt}
			s = alt
			continue
		case "else":
			s.alt, err = p.parseBlock("if", "endif")
		}
		return root, err
	}
}

func (p *parser) parseFor(pos at) (stmt, error) {
	s := &forStmt{at: pos}
	var err error
	if s.target, err = p.parseTarget(false); err != nil {
		return nil, err
	}
	if !p.acceptName("in") {
		return nil, p.unexpected(`"in"`)
	}
	if s.iter, err = p.parseTupleOf(p.parseOr); err != nil {
		return nil, err
	}
	if p.acceptName("if") {
		if s.test, err = p.parseExpr(); err != nil {
			return nil, err
		}
	}
	if p.isName("recursive") {
		return nil, errorAt(p.tok().pos, "recursive loops are not supported")
	}
	if err := p.startBody(); err != nil {
		return nil, err
	}
	p.loops++
	s.body, err = p.parseBody("for", "else", "endfor")
	p.loops--
	if err == nil && p.next().text == "else" {
		s.alt, err = p.parseBlock("for", "endfor")
	}
	return s, err
}

func (p *parser) parseSet(pos at) (stmt, error) {
	t, err := p.parseTarget(true)
	if err != nil {
		return nil, err
	}
	if p.acceptOp("=") {
		val, err := p.parseTuple()
		return &setStmt{pos, t, val}, err
	}
	s := &setBlockStmt{at: pos, target: t}
	if s.filters, err = p.parseBlockFilters(); err != nil {
		return nil, err
	}
	if p.tok().kind != tokBlockEnd {
		return nil, p.unexpected(`"=" or "%}"`)
	}
	s.body, err = p.parseBlock("set", "endset")
	return s, err
}

// parseTarget parses a name, a namespace's attribute if attrs is set, or a tuple of these.
func (p *parser) parseTarget(attrs bool) (target, error) {
	if err := p.enter(); err != nil {
		return target{}, err
	}
	defer p.leave()
	pos := at(p.tok().pos)
	one := func() (target, error) {
		if p.acceptOp("(") {
			t, err := p.parseTarget(attrs)
			if err == nil {
				err = p.expectOp(")")
			}
			return t, err
		}
		name, err := p.targetName()
		if err != nil {
			return target{}, err
		}
		t := target{at: at(name.pos), name: name.text}
		if attrs && p.acceptOp(".") {
			attr, err := p.expectKind(tokName, "an attribute's name")
			if err != nil {
				return target{}, err
			}
			t.attr = attr.text
		}
		return t, nil
	}
	t, err := one()
	if err != nil || !p.isOp(",") {
		return t, err
	}
	parts := []target{t}
	for p.acceptOp(",") {
		if tok := p.tok(); tok.kind != tokName && !p.isOp("(") || tok.text == "in" {
			break
		}
		if t, err = one(); err != nil {
			return target{}, err
		}
		parts = append(parts, t)
	}
	return target{at: pos, parts: parts}, nil
}

// targetName parses a name that can be assigned to.
func (p *parser) targetName() (token, error) {
	name, err := p.expectKind(tokName, "a variable's name")
	if err == nil && isConstant(name.text) {
		err = errorAt(name.pos, "cannot assign to %q: expected a variable's name", name.text)
	}
	return name, err
}

func isConstant(name string) bool {
	switch name {
	case "true", "false", "none", "True", "False", "None":
		return true
	}
	return false
}

func (p *parser) parseMacro(pos at) (stmt, error) {
	name, err := p.targetName()
	if err != nil {
		return nil, err
	}
	m := &macroStmt{at: pos, name: name.text}
	return m, p.parseMacroRest(m, true, "macro", "endmacro")
}

// parseMacroRest parses the signature, if there is one, and the body of m.
func (p *parser) parseMacroRest(m *macroStmt, signature bool, opener, end string) error {
	outer := p.macro
	p.macro = m
	defer func() { p.macro = outer }()
	if signature {
		if err := p.parseSignature(m); err != nil {
			return err
		}
	}
	var err error
	m.body, err = p.parseOuter(opener, end)
	return err
}

func (p *parser) parseSignature(m *macroStmt) error {
	if err := p.expectOp("("); err != nil {
		return err
	}
	for !p.isOp(")") {
		if len(m.params) > 0 {
			if err := p.expectOp(","); err != nil {
				return err
			}
		}
		name, err := p.targetName()
		if err != nil {
			return err
		}
		if p.acceptOp("=") {
			def, err := p.parseExpr()
			if err != nil {
				return err
			}
			m.defaults = append(m.defaults, def)
		} else if len(m.defaults) > 0 {
			return errorAt(name.pos, "parameter %q needs a default: one before it has one", name.text)
		}
		m.params = append(m.params, name.text)
	}
	p.next()
	return nil
}

func (p *parser) parseCallBlock(pos at) (stmt, error) {
	m := &macroStmt{at: pos, name: "caller"}
	if p.isOp("(") {
		if err := p.parseSignature(m); err != nil {
			return nil, err
		}
	}
	x, err := p.parseExpr()
	if err != nil {
		return nil, err
	}
	call, ok := x.(*callExpr)
	if !ok {
		return nil, errorAt(x.pos(), "expected the call of a macro")
	}
	return &callStmt{pos, m, call}, p.parseMacroRest(m, false, "call", "endcall")
}

func (p *parser) parseWith(pos at) (stmt, error) {
	s := &withStmt{at: pos}
	for p.tok().kind != tokBlockEnd {
		if len(s.targets) > 0 {
			if err := p.expectOp(","); err != nil {
				return nil, err
			}
		}
		name, err := p.targetName()
		if err != nil {
			return nil, err
		}
		if err := p.expectOp("="); err != nil {
			return nil, err
		}
		val, err := p.parseExpr()
		if err != nil {
			return nil, err
		}
		s.targets = append(s.targets, target{at: at(name.pos), name: name.text})
		s.vals = append(s.vals, val)
	}
	var err error
	s.body, err = p.parseBlock("with", "endwith")
	return s, err
}
