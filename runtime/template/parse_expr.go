package template

// parseTuple parses an expression, or several with commas between as a tuple.
func (p *parser) parseTuple() (expr, error) { return p.parseTupleOf(p.parseExpr) }

func (p *parser) parseTupleOf(parse func() (expr, error)) (expr, error) {
	pos := at(p.tok().pos)
	x, err := parse()
	if err != nil || !p.isOp(",") {
		return x, err
	}
	items := []expr{x}
	for p.acceptOp(",") {
		if k := p.tok().kind; k == tokVarEnd || k == tokBlockEnd || p.isOp(")") {
			break
		}
		if x, err = parse(); err != nil {
			return nil, err
		}
		items = append(items, x)
	}
	return &sequenceExpr{pos, items, true}, nil
}

// parseExpr parses an expression with its conditional part: then if test else alt.
func (p *parser) parseExpr() (expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	pos := at(p.tok().pos)
	unknown := len(p.unknown)
	x, err := p.parseOr()
	if err != nil {
		return nil, err
	}
	for p.acceptName("if") {
		c := &condExpr{at: pos, then: x}
		if c.test, err = p.parseOr(); err == nil && p.acceptName("else") {
			c.alt, err = p.parseExpr()
		}
		if err != nil {
			return nil, err
		}
		x = c
		p.unknown = p.unknown[:unknown]
	}
	return x, nil
}

// parseLeft parses operands and the operators between them, which associate to
// the left; op consumes an operator and says whether there was one.
func (p *parser) parseLeft(operand func() (expr, error), op func() (string, bool), join func(pos at, op string, l, r expr) expr) (expr, error) {
	x, err := operand()
	for err == nil {
		pos := at(p.tok().pos)
		name, ok := op()
		if !ok {
			return x, nil
		}
		var r expr
		if r, err = operand(); err == nil {
			x = join(pos, name, x, r)
		}
	}
	return nil, err
}

// oneOf returns a function that consumes one of the operators.
func (p *parser) oneOf(ops ...string) func() (string, bool) {
	return func() (string, bool) {
		for _, op := range ops {
			if p.acceptOp(op) {
				return op, true
			}
		}
		return "", false
	}
}

func joinBinary(pos at, op string, l, r expr) expr { return &binaryExpr{pos, op, l, r} }

func (p *parser) parseOr() (expr, error) {
	return p.parseLeft(p.parseAnd, func() (string, bool) { return "or", p.acceptName("or") },
		func(pos at, _ string, l, r expr) expr { return &logicExpr{pos, true, l, r} })
}

func (p *parser) parseAnd() (expr, error) {
	return p.parseLeft(p.parseNot, func() (string, bool) { return "and", p.acceptName("and") },
		func(pos at, _ string, l, r expr) expr { return &logicExpr{pos, false, l, r} })
}

func (p *parser) parseNot() (expr, error) {
	pos := at(p.tok().pos)
	if !p.acceptName("not") {
		return p.parseCompare()
	}
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	x, err := p.parseNot()
	return &notExpr{pos, x}, err
}

func (p *parser) parseCompare() (expr, error) {
	x, err := p.parseSum()
	if err != nil {
		return nil, err
	}
	c := &compareExpr{at: at(p.tok().pos), first: x}
	next := p.oneOf("==", "!=", "<=", ">=", "<", ">")
	for {
		op, ok := next()
		if !ok {
			switch {
			case p.acceptName("in"):
				op = "in"
			case p.isName("not") && p.toks[p.i+1].kind == tokName && p.toks[p.i+1].text == "in":
				p.next()
				p.next()
				op = "not in"
			default:
				if len(c.ops) == 0 {
					return x, nil
				}
				return c, nil
			}
		}
		r, err := p.parseSum()
		if err != nil {
			return nil, err
		}
		c.ops = append(c.ops, op)
		c.rest = append(c.rest, r)
	}
}

func (p *parser) parseSum() (expr, error) {
	return p.parseLeft(p.parseConcat, p.oneOf("+", "-"), joinBinary)
}

func (p *parser) parseConcat() (expr, error) {
	pos := at(p.tok().pos)
	x, err := p.parseProduct()
	if err != nil || !p.isOp("~") {
		return x, err
	}
	parts := []expr{x}
	for p.acceptOp("~") {
		if x, err = p.parseProduct(); err != nil {
			return nil, err
		}
		parts = append(parts, x)
	}
	return &concatExpr{pos, parts}, nil
}

func (p *parser) parseProduct() (expr, error) {
	return p.parseLeft(p.parsePower, p.oneOf("*", "//", "/", "%"), joinBinary)
}

func (p *parser) parsePower() (expr, error) {
	return p.parseLeft(func() (expr, error) { return p.parseUnary(true) }, p.oneOf("**"), joinBinary)
}

// parseUnary parses a signed operand with what follows it: subscripts, calls
// and, outside of a sign, filters and tests.
func (p *parser) parseUnary(filters bool) (expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	pos := at(p.tok().pos)
	var x expr
	var err error
	if op, ok := p.oneOf("-", "+")(); ok {
		if x, err = p.parseUnary(false); err == nil {
			x = &signExpr{pos, op == "-", x}
		}
	} else {
		x, err = p.parsePrimary()
	}
	if err == nil {
		x, err = p.parsePostfix(x)
	}
	for err == nil && filters {
		switch {
		case p.acceptOp("|"):
			x, err = p.parseFilter(x)
		case p.acceptName("is"):
			x, err = p.parseTest(x)
		case p.isOp("("):
			x, err = p.parseCall(x)
		default:
			return x, nil
		}
	}
	return x, err
}

func (p *parser) parsePrimary() (expr, error) {
	t := p.tok()
	pos := at(t.pos)
	switch t.kind {
	case tokName:
		p.next()
		switch t.text {
		case "true", "True":
			return &literal{pos, true}, nil
		case "false", "False":
			return &literal{pos, false}, nil
		case "none", "None":
			return &literal{pos, nil}, nil
		}
		if p.macro != nil {
			p.macro.varargs = p.macro.varargs || t.text == "varargs"
			p.macro.kwargs = p.macro.kwargs || t.text == "kwargs"
		}
		return &nameExpr{pos, t.text}, nil
	case tokString:
		p.next()
		s := t.text
		if p.tok().kind == tokString {
			parts := []byte(s)
			for p.tok().kind == tokString {
				parts = append(parts, p.next().text...)
			}
			s = string(parts)
		}
		return &literal{pos, s}, nil
	case tokInt, tokFloat:
		p.next()
		return &literal{pos, t.num}, nil
	}
	switch {
	case p.acceptOp("("):
		if p.acceptOp(")") {
			return &sequenceExpr{pos, nil, true}, nil
		}
		x, err := p.parseTuple()
		if err == nil {
			err = p.expectOp(")")
		}
		return x, err
	case p.acceptOp("["):
		items, err := p.parseItems("]")
		return &sequenceExpr{pos, items, false}, err
	case p.acceptOp("{"):
		return p.parseDict(pos)
	}
	return nil, p.unexpected("an expression")
}

// parseItems parses expressions with commas between up to the closing bracket.
func (p *parser) parseItems(closer string) ([]expr, error) {
	var items []expr
	for !p.acceptOp(closer) {
		if len(items) > 0 {
			if !p.acceptOp(",") {
				return nil, p.unexpected(`"," or "` + closer + `"`)
			}
			if p.acceptOp(closer) {
				break
			}
		}
		x, err := p.parseExpr()
		if err != nil {
			return nil, err
		}
		items = append(items, x)
	}
	return items, nil
}

func (p *parser) parseDict(pos at) (expr, error) {
	d := &dictExpr{at: pos}
	for !p.acceptOp("}") {
		if len(d.keys) > 0 {
			if !p.acceptOp(",") {
				return nil, p.unexpected(`"," or "}"`)
			}
			if p.acceptOp("}") {
				break
			}
		}
		key, err := p.parseExpr()
		if err != nil {
			return nil, err
		}
		if err := p.expectOp(":"); err != nil {
			return nil, err
		}
		val, err := p.parseExpr()
		if err != nil {
			return nil, err
		}
		d.keys = append(d.keys, key)
		d.vals = append(d.vals, val)
	}
	return d, nil
}

func (p *parser) parsePostfix(x expr) (expr, error) {
	for {
		pos := at(p.tok().pos)
		var err error
		switch {
		case p.acceptOp("."):
			switch t := p.tok(); t.kind {
			case tokName:
				x = &attrExpr{pos, x, t.text}
			case tokInt:
				x = &itemExpr{pos, x, &literal{at(t.pos), t.num}}
			default:
				return nil, p.unexpected("an attribute's name or an index")
			}
			p.next()
		case p.acceptOp("["):
			x, err = p.parseSubscript(pos, x)
		case p.isOp("("):
			x, err = p.parseCall(x)
		default:
			return x, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// parseSubscript parses the rest of obj[key] or obj[start:stop:step].
func (p *parser) parseSubscript(pos at, obj expr) (expr, error) {
	var bounds [3]expr
	n := 0
	for {
		if !p.isOp(":") && !p.isOp("]") {
			x, err := p.parseExpr()
			if err != nil {
				return nil, err
			}
			bounds[n] = x
		}
		if n == 2 || !p.acceptOp(":") {
			break
		}
		n++
	}
	if n == 0 && bounds[0] == nil {
		return nil, p.unexpected("an expression")
	}
	if err := p.expectOp("]"); err != nil {
		return nil, err
	}
	if n == 0 {
		return &itemExpr{pos, obj, bounds[0]}, nil
	}
	return &sliceExpr{pos, obj, bounds[0], bounds[1], bounds[2]}, nil
}

func (p *parser) parseCall(fn expr) (expr, error) {
	pos := at(p.tok().pos)
	args, err := p.parseArgs()
	return &callExpr{pos, fn, args}, err
}

func (p *parser) parseArgs() (argList, error) {
	var a argList
	if err := p.expectOp("("); err != nil {
		return a, err
	}
	for first := true; !p.acceptOp(")"); first = false {
		if !first {
			if !p.acceptOp(",") {
				return a, p.unexpected(`"," or ")"`)
			}
			if p.acceptOp(")") {
				break
			}
		}
		t := p.tok()
		var err error
		switch {
		case p.acceptOp("*"):
			if a.star != nil || a.starKW != nil {
				return a, errorAt(t.pos, "a call takes one *argument, before its **argument")
			}
			a.star, err = p.parseExpr()
		case p.acceptOp("**"):
			if a.starKW != nil {
				return a, errorAt(t.pos, "a call takes one **argument")
			}
			a.starKW, err = p.parseExpr()
		case a.starKW != nil:
			return a, errorAt(t.pos, "no argument may follow a **argument")
		case t.kind == tokName && p.toks[p.i+1].kind == tokOp && p.toks[p.i+1].text == "=":
			p.next()
			p.next()
			var x expr
			x, err = p.parseExpr()
			a.kw = append(a.kw, kwArg{t.text, x})
		case len(a.kw) > 0 || a.star != nil:
			return a, errorAt(t.pos, "expected a keyword argument: positional ones come first")
		default:
			var x expr
			x, err = p.parseExpr()
			a.pos = append(a.pos, x)
		}
		if err != nil {
			return a, err
		}
	}
	return a, nil
}

// parseFilter parses a filter's name and arguments, after "|".
func (p *parser) parseFilter(in expr) (*filterExpr, error) {
	t, err := p.expectKind(tokName, "a filter's name")
	if err != nil {
		return nil, err
	}
	f := &filterExpr{at: at(t.pos), name: t.text, fn: filterByName(t.text), in: in}
	if f.fn == nil {
		p.unknown = append(p.unknown, errorAt(t.pos, "no filter is named %q", t.text))
	}
	if p.isOp("(") {
		f.args, err = p.parseArgs()
	}
	return f, err
}

// parseBlockFilters parses the filters of a set or filter block.
func (p *parser) parseBlockFilters() ([]*filterExpr, error) {
	var fs []*filterExpr
	for p.acceptOp("|") {
		f, err := p.parseFilter(nil)
		if err != nil {
			return nil, err
		}
		fs = append(fs, f)
	}
	return fs, nil
}

// parseTest parses what follows "is".
func (p *parser) parseTest(in expr) (expr, error) {
	pos := at(p.tok().pos)
	negate := p.acceptName("not")
	t, err := p.expectKind(tokName, "a test's name")
	if err != nil {
		return nil, err
	}
	x := &testExpr{at: pos, name: t.text, fn: testByName(t.text), in: in}
	if x.fn == nil {
		p.unknown = append(p.unknown, errorAt(t.pos, "no test is named %q", t.text))
	}
	if p.isOp("(") {
		x.args, err = p.parseArgs()
	} else if p.startsTestArg() {
		var arg expr
		if arg, err = p.parsePrimary(); err == nil {
			arg, err = p.parsePostfix(arg)
		}
		x.args.pos = []expr{arg}
	}
	if err != nil {
		return nil, err
	}
	if negate {
		return &notExpr{pos, x}, nil
	}
	return x, nil
}

// startsTestArg tells whether a test's argument without parentheses follows.
func (p *parser) startsTestArg() bool {
	switch t := p.tok(); t.kind {
	case tokString, tokInt, tokFloat:
		return true
	case tokOp:
		return t.text == "[" || t.text == "{"
	case tokName:
		switch t.text {
		case "else", "or", "and", "is", "if", "in", "not", "recursive":
			return false
		}
		return true
	}
	return false
}
