package template

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

type tokenKind int

const (
	tokEOF tokenKind = iota
	tokData
	tokVarBegin
	tokVarEnd
	tokBlockBegin
	tokBlockEnd
	tokName
	tokString
	tokInt
	tokFloat
	tokOp
)

// token is one lexical element. Text holds a name or operator as written, the
// characters of data and the decoded characters of a string.
type token struct {
	kind tokenKind
	text string
	num  value // int64 or float64
	pos  int
}

func (t token) String() string {
	switch t.kind {
	case tokEOF:
		return "end of template"
	case tokData:
		return "template text"
	case tokVarBegin:
		return `"{{"`
	case tokVarEnd:
		return `"}}"`
	case tokBlockBegin:
		return `"{%"`
	case tokBlockEnd:
		return `"%}"`
	case tokString:
		return "string " + strconv.Quote(t.text)
	case tokInt, tokFloat:
		return fmt.Sprintf("number %v", t.num)
	case tokName:
		return "name " + strconv.Quote(t.text)
	}
	return strconv.Quote(t.text)
}

const (
	maxName   = 256     // bytes of a name
	maxTokens = 1 << 17 // of a template: published ones have some thousands
)

// lexer splits a template's text into tokens, applying whitespace control.
type lexer struct {
	src       string
	pos       int
	toks      []token
	lineStart bool // the last tag ended with a newline, or nothing came before
}

func lex(src string) ([]token, error) {
	l := &lexer{src: src, lineStart: true}
	for l.pos < len(src) {
		if err := l.lexText(); err != nil {
			return nil, err
		}
	}
	return append(l.toks, token{kind: tokEOF, pos: len(src)}), nil
}

func (l *lexer) emit(kind tokenKind, pos int, text string) {
	l.toks = append(l.toks, token{kind: kind, text: text, pos: pos})
}

func (l *lexer) emitData(start int, text string) {
	if text != "" {
		l.emit(tokData, start, text)
	}
}

// findTag returns the offset of the next "{{", "{%" or "{#", or -1.
func findTag(s string) int {
	for i := 0; i+1 < len(s); i++ {
		if s[i] == '{' && (s[i+1] == '{' || s[i+1] == '%' || s[i+1] == '#') {
			return i
		}
	}
	return -1
}

// lexText reads text up to the next tag, and that tag.
func (l *lexer) lexText() error {
	start := l.pos
	n := findTag(l.src[start:])
	if n < 0 {
		l.emitData(start, l.src[start:])
		l.pos = len(l.src)
		return nil
	}
	tag := start + n
	text := l.src[start:tag]
	l.pos = tag + 2
	sign := l.sign()
	kind := l.src[tag+1]
	l.emitData(start, l.stripBefore(text, sign, kind != '{'))
	switch kind {
	case '#':
		return l.lexComment(tag)
	case '{':
		l.emit(tokVarBegin, tag, "{{")
		return l.lexTag(tokVarEnd)
	}
	if l.rawBegin() {
		return l.lexRaw(tag)
	}
	l.emit(tokBlockBegin, tag, "{%")
	return l.lexTag(tokBlockEnd)
}

// sign consumes the whitespace control character of a tag's start.
func (l *lexer) sign() byte {
	if l.pos < len(l.src) && (l.src[l.pos] == '-' || l.src[l.pos] == '+') {
		l.pos++
		return l.src[l.pos-1]
	}
	return 0
}

// stripBefore removes the whitespace before a tag: all of it for "-", that
// between the line's start and a block or comment for none.
func (l *lexer) stripBefore(text string, sign byte, block bool) string {
	switch {
	case sign == '-':
		return strings.TrimRightFunc(text, isSpace)
	case sign == '+' || !block:
		return text
	}
	line := strings.LastIndexByte(text, '\n') + 1
	if (line > 0 || l.lineStart) && strings.TrimLeftFunc(text[line:], isSpace) == "" {
		return text[:line]
	}
	return text
}

// endTag consumes the end of a tag: sign is the whitespace control character
// that stood before it.
func (l *lexer) endTag(sign byte, trimNewline bool) {
	end := l.pos
	switch {
	case sign == '-':
		l.skipSpace()
	case sign == 0 && trimNewline && strings.HasPrefix(l.src[l.pos:], "\n"):
		l.pos++
	}
	l.lineStart = l.pos > end && l.src[l.pos-1] == '\n'
}

func (l *lexer) skipSpace() {
	rest := l.src[l.pos:]
	l.pos += len(rest) - len(strings.TrimLeftFunc(rest, isSpace))
}

func (l *lexer) lexComment(tag int) error {
	n := strings.Index(l.src[l.pos:], "#}")
	if n < 0 {
		return errorAt(tag, `comment has no end: expected "#}"`)
	}
	var sign byte
	if n > 0 {
		if c := l.src[l.pos+n-1]; c == '-' || c == '+' {
			sign = c
		}
	}
	l.pos += n + 2
	l.endTag(sign, true)
	return nil
}

// rawBegin consumes the rest of a "{% raw %}" tag, if it is one.
func (l *lexer) rawBegin() bool {
	at := l.pos
	l.skipSpace()
	if strings.HasPrefix(l.src[l.pos:], "raw") {
		l.pos += len("raw")
		l.skipSpace()
		var sign byte
		if strings.HasPrefix(l.src[l.pos:], "-%}") {
			sign = l.sign()
		}
		if strings.HasPrefix(l.src[l.pos:], "%}") {
			l.pos += 2
			l.endTag(sign, false)
			return true
		}
	}
	l.pos = at
	return false
}

// lexRaw reads the text of a raw block and its end tag.
func (l *lexer) lexRaw(tag int) error {
	start := l.pos
	for {
		n := strings.Index(l.src[l.pos:], "{%")
		if n < 0 {
			return errorAt(tag, `raw block has no end: expected "{%% endraw %%}"`)
		}
		text := l.src[start : l.pos+n]
		l.pos += n + 2
		next := l.pos
		sign := l.sign()
		l.skipSpace()
		if strings.HasPrefix(l.src[l.pos:], "endraw") {
			l.pos += len("endraw")
			l.skipSpace()
			end := l.sign()
			if strings.HasPrefix(l.src[l.pos:], "%}") {
				l.emitData(start, l.stripBefore(text, sign, true))
				l.pos += 2
				l.endTag(end, true)
				return nil
			}
		}
		l.pos = next
	}
}

// lexTag reads the tokens of an expression or statement up to its end.
func (l *lexer) lexTag(end tokenKind) error {
	closer := "}}"
	if end == tokBlockEnd {
		closer = "%}"
	}
	var open []byte // the brackets that are not closed yet, as their closing ones
	for {
		l.skipSpace()
		if len(l.toks) > maxTokens {
			return errorAt(l.pos, "%w: more than %d names, operators and texts", ErrLimit, maxTokens)
		}
		if l.pos >= len(l.src) {
			return errorAt(l.pos, "unexpected end of template: expected %q", closer)
		}
		start := l.pos
		rest := l.src[start:]
		if len(open) == 0 {
			sign, at := byte(0), rest
			if rest[0] == '-' || rest[0] == '+' && end == tokBlockEnd {
				sign, at = rest[0], rest[1:]
			}
			if strings.HasPrefix(at, closer) {
				l.emit(end, start, closer)
				l.pos = start + len(rest) - len(at) + 2
				l.endTag(sign, end == tokBlockEnd)
				return nil
			}
		}
		c, _ := utf8.DecodeRuneInString(rest)
		switch {
		case c >= '0' && c <= '9':
			if err := l.lexNumber(); err != nil {
				return err
			}
		case isNameRune(c):
			n := strings.IndexFunc(rest, func(c rune) bool { return !isNameRune(c) && !unicode.IsDigit(c) })
			if n < 0 {
				n = len(rest)
			}
			if n > maxName {
				return errorAt(start, "name of %d bytes: at most %d are supported", n, maxName)
			}
			l.emit(tokName, start, rest[:n])
			l.pos += n
		case c == '\'' || c == '"':
			if err := l.lexString(byte(c)); err != nil {
				return err
			}
		default:
			op := operatorAt(rest)
			if op == "" {
				return errorAt(start, "unexpected character %q in an expression", c)
			}
			switch op {
			case "(":
				open = append(open, ')')
			case "[":
				open = append(open, ']')
			case "{":
				open = append(open, '}')
			case ")", "]", "}":
				if len(open) == 0 {
					return errorAt(start, "unexpected %q: no bracket is open", op)
				}
				if want := open[len(open)-1]; want != op[0] {
					return errorAt(start, "unexpected %q: expected %q", op, want)
				}
				open = open[:len(open)-1]
			}
			l.emit(tokOp, start, op)
			l.pos += len(op)
		}
	}
}

// operatorAt returns the longest operator at the start of s, or "".
func operatorAt(s string) string {
	if len(s) >= 2 {
		switch s[:2] {
		case "==", "!=", "<=", ">=", "**", "//":
			return s[:2]
		}
	}
	if strings.IndexByte("+-*/%~[](){}<>=.:|,", s[0]) >= 0 {
		return s[:1]
	}
	return ""
}

func isNameRune(c rune) bool { return c == '_' || unicode.IsLetter(c) }

// isSpace tells whether Python takes c as whitespace.
func isSpace(c rune) bool { return unicode.IsSpace(c) || c >= 0x1c && c <= 0x1f }

// lexNumber reads an integer (decimal, 0x, 0o, 0b) or a float; a number after
// a dot is an index and has no fraction.
func (l *lexer) lexNumber() error {
	start := l.pos
	digits := func() {
		for l.pos < len(l.src) && (isDigit(l.src[l.pos]) || l.src[l.pos] == '_') {
			l.pos++
		}
	}
	index := start > 0 && l.src[start-1] == '.'
	float := false
	if rest := l.src[start:]; len(rest) > 1 && rest[0] == '0' && strings.IndexByte("xXoObB", rest[1]) >= 0 {
		for l.pos < len(l.src) && (isDigit(l.src[l.pos]) || isNameRune(rune(l.src[l.pos]))) {
			l.pos++
		}
	} else {
		digits()
		if !index {
			if rest := l.src[l.pos:]; len(rest) > 1 && rest[0] == '.' && isDigit(rest[1]) {
				l.pos++
				float = true
				digits()
			}
			rest := strings.TrimLeft(l.src[l.pos:min(l.pos+1, len(l.src))], "eE")
			if l.pos < len(l.src) && rest == "" {
				exp := l.pos + 1
				if exp < len(l.src) && (l.src[exp] == '+' || l.src[exp] == '-') {
					exp++
				}
				if exp < len(l.src) && isDigit(l.src[exp]) {
					l.pos = exp
					float = true
					digits()
				}
			}
		}
	}
	text := strings.ReplaceAll(l.src[start:l.pos], "_", "")
	tok := token{kind: tokInt, text: text, pos: start}
	var err error
	if float {
		tok.kind = tokFloat
		tok.num, err = strconv.ParseFloat(text, 64)
		if errors.Is(err, strconv.ErrRange) {
			err = nil // infinity, as in Python
		}
	} else if strings.Trim(text, "0") == "" {
		tok.num = int64(0)
	} else {
		base := 0
		if isDigit(text[len(text)-1]) && strings.Trim(text, "0123456789") == "" {
			base = 10
		}
		tok.num, err = strconv.ParseInt(text, base, 64)
	}
	if err != nil {
		return errorAt(start, "number %q: expected an integer of 64 bits or a float", text)
	}
	l.toks = append(l.toks, tok)
	return nil
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }

func (l *lexer) lexString(quote byte) error {
	start := l.pos
	for i := start + 1; i < len(l.src); i++ {
		switch l.src[i] {
		case '\\':
			i++
		case quote:
			text, err := unescape(l.src[start+1 : i])
			if err != nil {
				return errorAt(start, "string: %w", err)
			}
			l.emit(tokString, start, text)
			l.pos = i + 1
			return nil
		}
	}
	return errorAt(start, "string has no end: expected %q", quote)
}

// unescape decodes the escapes of a Python string; unknown ones stay as written.
func unescape(s string) (string, error) {
	if strings.IndexByte(s, '\\') < 0 {
		return s, nil
	}
	var b strings.Builder
	var high rune // a high surrogate that waits for its low one
	flush := func() {
		if high != 0 {
			b.WriteRune(utf8.RuneError)
			high = 0
		}
	}
	for i := 0; i < len(s); {
		if s[i] != '\\' || i+1 == len(s) {
			flush()
			b.WriteByte(s[i])
			i++
			continue
		}
		c := s[i+1]
		i += 2
		width := 0
		switch c {
		case 'x':
			width = 2
		case 'u':
			width = 4
		case 'U':
			width = 8
		}
		if width > 0 {
			if i+width > len(s) {
				return "", fmt.Errorf(`escape "\%c" needs %d hexadecimal digits`, c, width)
			}
			n, err := strconv.ParseUint(s[i:i+width], 16, 32)
			if err != nil || n > unicode.MaxRune {
				return "", fmt.Errorf(`escape "\%c%s": expected %d hexadecimal digits of a code point`, c, s[i:i+width], width)
			}
			i += width
			r := rune(n)
			switch {
			case r >= 0xdc00 && r < 0xe000 && high != 0:
				b.WriteRune(0x10000 + (high-0xd800)<<10 + (r - 0xdc00))
				high = 0
			case r >= 0xd800 && r < 0xdc00:
				flush()
				high = r
			default:
				flush()
				b.WriteRune(r)
			}
			continue
		}
		flush()
		if c >= '0' && c <= '7' {
			n := rune(c - '0')
			for k := 0; k < 2 && i < len(s) && s[i] >= '0' && s[i] <= '7'; k++ {
				n = n<<3 + rune(s[i]-'0')
				i++
			}
			b.WriteRune(n)
			continue
		}
		switch c {
		case '\n': // a continued line
		case '\\', '\'', '"':
			b.WriteByte(c)
		case 'N':
			return "", errors.New(`escape "\N" (a character's name) is not supported`)
		default:
			if k := strings.IndexByte("abfnrtv", c); k >= 0 {
				b.WriteByte("\a\b\f\n\r\t\v"[k])
			} else {
				b.WriteByte('\\')
				b.WriteByte(c)
			}
		}
	}
	flush()
	return b.String(), nil
}
