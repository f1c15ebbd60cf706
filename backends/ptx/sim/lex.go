package sim

import (
	"fmt"
	"strconv"
	"strings"
)

// token is a word (identifier, opcode, directive, register), a number, or a single character of punctuation. The last one of a
// text has no text.
type token struct {
	kind rune // 'w', '0', or the character; 0 at the end
	text string
	line int
}

func (t token) String() string {
	if t.kind == 0 {
		return "the end of the text"
	}
	return strconv.Quote(t.text)
}

// lexer cuts a text into tokens.
type lexer struct {
	text string
	pos  int
	line int
}

func letter(c byte) bool {
	return c|0x20 >= 'a' && c|0x20 <= 'z' || c == '_' || c == '$' || c == '%' || c == '.'
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func (l *lexer) next() (token, error) {
	if err := l.space(); err != nil {
		return token{}, err
	}
	if l.pos == len(l.text) {
		return token{line: l.line}, nil
	}
	start, c := l.pos, l.text[l.pos]
	kind := rune(c)
	switch {
	case letter(c):
		kind = 'w'
		for l.pos < len(l.text) && (letter(l.text[l.pos]) || digit(l.text[l.pos]) || strings.HasPrefix(l.text[l.pos:], "::")) {
			if l.text[l.pos] == ':' {
				l.pos++
			}
			l.pos++
		}
	case digit(c):
		kind = '0'
		for l.pos < len(l.text) && (letter(l.text[l.pos]) || digit(l.text[l.pos])) {
			l.pos++
		}
	case strings.IndexByte("{}[]()<>,;:@!|+-=", c) >= 0:
		l.pos++
	default:
		return token{}, fmt.Errorf("line %d: unexpected character %q", l.line, c)
	}
	return token{kind, l.text[start:l.pos], l.line}, nil
}

// space skips blanks and comments.
func (l *lexer) space() error {
	for l.pos < len(l.text) {
		rest := l.text[l.pos:]
		switch {
		case rest[0] == '\n':
			l.line++
			l.pos++
		case rest[0] == ' ' || rest[0] == '\t' || rest[0] == '\r':
			l.pos++
		case strings.HasPrefix(rest, "//"):
			n := strings.IndexByte(rest, '\n')
			if n < 0 {
				n = len(rest)
			}
			l.pos += n
		case strings.HasPrefix(rest, "/*"):
			n := strings.Index(rest, "*/")
			if n < 0 {
				return fmt.Errorf("line %d: comment has no end", l.line)
			}
			l.line += strings.Count(rest[:n], "\n")
			l.pos += n + 2
		default:
			return nil
		}
	}
	return nil
}

// integer returns the value of a literal: decimal, 0x…, 0b… or octal, with or without U.
func integer(s string) (uint64, bool) {
	base, d := 10, strings.TrimSuffix(s, "U")
	switch {
	case strings.HasPrefix(d, "0x"), strings.HasPrefix(d, "0X"):
		base, d = 16, d[2:]
	case strings.HasPrefix(d, "0b"), strings.HasPrefix(d, "0B"):
		base, d = 2, d[2:]
	case len(d) > 1 && d[0] == '0':
		base, d = 8, d[1:]
	}
	v, err := strconv.ParseUint(d, base, 64)
	return v, err == nil
}

// float32Bits returns the bits of a literal 0f and eight hexadecimal digits.
func float32Bits(s string) (uint32, bool) {
	if len(s) != 10 || s[:2] != "0f" && s[:2] != "0F" {
		return 0, false
	}
	v, err := strconv.ParseUint(s[2:], 16, 32)
	return uint32(v), err == nil
}
