package template

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"
)

// formatSpec says how to write one value. Zero fields mean the type's default.
type formatSpec struct {
	fill  rune
	align byte // < > ^, = for padding after the sign, or c as str.center does it
	sign  byte // + or space
	alt   bool // #
	comma bool
	width int64
	prec  int64 // -1: none
	verb  byte
}

// pad fills s to the width of the spec.
func (r *render) pad(s string, spec formatSpec) (string, error) {
	n := spec.width - int64(utf8.RuneCountInString(s))
	if n <= 0 {
		return s, nil
	}
	fill := " "
	if spec.fill != 0 {
		fill = string(spec.fill)
	}
	if err := r.growTimes(n, 2*len(fill)); err != nil {
		return "", err
	}
	if err := r.grow(len(s)); err != nil {
		return "", err
	}
	switch spec.align {
	case '<':
		return s + strings.Repeat(fill, int(n)), nil
	case '^':
		return strings.Repeat(fill, int(n/2)) + s + strings.Repeat(fill, int(n-n/2)), nil
	case 'c':
		left := n/2 + n&spec.width&1
		return strings.Repeat(fill, int(left)) + s + strings.Repeat(fill, int(n-left)), nil
	case '=':
		if s != "" && strings.IndexByte("+- ", s[0]) >= 0 {
			return s[:1] + strings.Repeat(fill, int(n)) + s[1:], nil
		}
	}
	return strings.Repeat(fill, int(n)) + s, nil
}

const (
	maxPrecision = 100 // digits of a formatted float
	floatSteps   = 16  // what rounding a float to a precision costs
)

// format writes a value as the spec says.
func (r *render) format(v value, spec formatSpec) (string, error) {
	n, isInt := integer(v)
	f, isNumber := number(v)
	if isInt && !is[bool](v) && spec.verb == 0 {
		spec.verb = 'd'
	}
	var s string
	switch {
	case strings.IndexByte("dixXobc", spec.verb) >= 0 && isNumber && !isInt:
		return "", fmt.Errorf("format %q needs an integer, got %s", spec.verb, typeName(v))
	case strings.IndexByte("dixXob", spec.verb) >= 0 && isInt:
		s = formatInt(n, spec)
	case spec.verb == 'c' && isInt && n >= 0 && n <= utf8.MaxRune:
		s = string(rune(n))
	case strings.IndexByte("eEfFgG%", spec.verb) >= 0 && isNumber:
		prec := spec.prec
		if prec < 0 {
			prec = 6
		}
		if prec > maxPrecision {
			return "", fmt.Errorf("a precision of %d digits: at most %d are supported", prec, maxPrecision)
		}
		if err := r.spend(floatSteps); err != nil {
			return "", err
		}
		verb, end := spec.verb, ""
		switch verb {
		case '%':
			f, verb, end = float64(f*100), 'f', "%"
		case 'F':
			verb = 'f'
		case 'g', 'G':
			prec = max(prec, 1)
		}
		s = strconv.FormatFloat(f, verb, int(prec), 64)
		s = strings.TrimPrefix(strings.ToLower(s), "+") // +Inf
		if verb == 'E' || verb == 'G' || spec.verb == 'F' {
			s = strings.ToUpper(s)
		}
		if spec.comma {
			s = groupThousands(s)
		}
		s = withSign(s, spec) + end
	case spec.verb == 's' || spec.verb == 0:
		var err error
		if s, err = r.str(v); err != nil {
			return "", err
		}
		if isNumber && spec.verb == 0 {
			s = withSign(s, spec)
		} else if spec.prec >= 0 {
			if err := r.spend(len(s) / 32); err != nil {
				return "", err
			}
			if spec.prec < int64(len(s)) {
				s = s[:runeOffset(s, int(spec.prec))]
			}
		}
	default:
		return "", fmt.Errorf("format %q does not take %s", spec.verb, typeName(v))
	}
	if spec.align == 0 && isNumber && spec.verb != 's' {
		spec.align = '>'
	} else if spec.align == 0 {
		spec.align = '<'
	}
	return r.pad(s, spec)
}

func formatInt(n int64, spec formatSpec) string {
	base, prefix := 10, ""
	switch spec.verb {
	case 'x', 'X':
		base, prefix = 16, "0x"
	case 'o':
		base, prefix = 8, "0o"
	case 'b':
		base, prefix = 2, "0b"
	}
	digits := strconv.FormatUint(magnitude(n), base)
	if spec.alt {
		digits = prefix + digits
	}
	if spec.verb == 'X' {
		digits = strings.ToUpper(digits)
	}
	if spec.comma {
		digits = groupThousands(digits)
	}
	if n < 0 {
		digits = "-" + digits
	}
	return withSign(digits, spec)
}

// groupThousands puts commas into the integer part of a number's digits.
func groupThousands(s string) string {
	start := len(s) - len(strings.TrimLeft(s, "-+"))
	end := start + len(s[start:]) - len(strings.TrimLeft(s[start:], "0123456789"))
	for i := end - 3; i > start; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

func withSign(s string, spec formatSpec) string {
	if spec.sign != 0 && !strings.HasPrefix(s, "-") {
		return string(spec.sign) + s
	}
	return s
}

// formatPercent is Python's s % values; one is the right operand as it stands,
// for %(name)s.
func (r *render) formatPercent(s string, values []value, one value) (value, error) {
	b := &buffer{r: r}
	next := 0
	arg := func() (value, error) {
		if next >= len(values) {
			return nil, errors.New("not enough values for the format")
		}
		next++
		return values[next-1], nil
	}
	number := func(i int) (int64, int, error) { // digits at i, or * for an argument
		if i < len(s) && s[i] == '*' {
			v, err := arg()
			n, ok := v.(int64)
			if err == nil && !ok {
				err = fmt.Errorf("* in a format needs an integer, got %s", typeName(v))
			}
			return n, i + 1, err
		}
		end := i
		for end < len(s) && isDigit(s[end]) {
			end++
		}
		if end == i {
			return 0, i, nil
		}
		n, err := strconv.ParseInt(s[i:end], 10, 32)
		return n, end, err
	}
	for i := 0; i < len(s); {
		n := strings.IndexByte(s[i:], '%')
		if n < 0 {
			n = len(s) - i
		}
		if err := b.write(s[i : i+n]); err != nil {
			return nil, err
		}
		if i += n; i == len(s) {
			break
		}
		i++
		spec := formatSpec{align: '>', prec: -1}
		var v value
		named := false
		if i < len(s) && s[i] == '(' {
			end := strings.IndexByte(s[i:], ')')
			d, ok := one.(*dict)
			if end < 0 || !ok {
				return nil, errors.New(`"%(name)" in a format needs ")" and a dict`)
			}
			if v, ok = d.get(s[i+1 : i+end]); !ok {
				return nil, errors.New("the dict lacks a name of the format")
			}
			named = true
			i += end + 1
		}
		for ; i < len(s) && strings.IndexByte("-+ 0#", s[i]) >= 0; i++ {
			switch s[i] {
			case '-':
				spec.align, spec.fill = '<', 0
			case '0':
				if spec.align != '<' {
					spec.align, spec.fill = '=', '0'
				}
			case '#':
				spec.alt = true
			default:
				spec.sign = s[i]
			}
		}
		var err error
		if spec.width, i, err = number(i); err != nil {
			return nil, err
		}
		if i < len(s) && s[i] == '.' {
			if spec.prec, i, err = number(i + 1); err != nil {
				return nil, err
			}
		}
		if i == len(s) {
			return nil, errors.New("the format ends within a conversion")
		}
		spec.verb = s[i]
		i++
		if spec.verb == '%' {
			if err := b.write("%"); err != nil {
				return nil, err
			}
			continue
		}
		if !named {
			if v, err = arg(); err != nil {
				return nil, err
			}
		}
		text, err := r.formatPercentValue(v, spec)
		if err != nil {
			return nil, err
		}
		if err := b.write(text); err != nil {
			return nil, err
		}
	}
	if !is[*dict](one) && !is[*list](one) && next < len(values) {
		return nil, errors.New("not all values are used by the format")
	}
	return b.text.String(), nil
}

func (r *render) formatPercentValue(v value, spec formatSpec) (string, error) {
	switch spec.verb {
	case 's', 'r', 'a':
		s, err := r.str(v)
		if spec.verb != 's' {
			s, err = r.repr(v)
		}
		if err != nil {
			return "", err
		}
		spec.verb = 's'
		if spec.align == '=' {
			spec.align, spec.fill = '>', 0
		}
		return r.format(s, spec)
	case 'd', 'i', 'u':
		if f, ok := v.(float64); ok {
			n, err := truncate(f)
			if err != nil {
				return "", err
			}
			v = n
		}
		spec.verb = 'd'
	case 'c':
		if s, ok := text(v); ok && utf8.RuneCountInString(s) == 1 {
			return r.pad(s, spec)
		}
	}
	return r.format(v, spec)
}

// formatBraces is str.format: fields {}, {0}, {name}, {0.attr}, {0[key]} with a
// conversion and a format after them.
func (r *render) formatBraces(s string, a args) (value, error) {
	b := &buffer{r: r}
	auto := 0
	for s != "" {
		i := strings.IndexAny(s, "{}")
		if i < 0 {
			i = len(s)
		}
		if err := b.write(s[:i]); err != nil {
			return nil, err
		}
		if s = s[i:]; s == "" {
			break
		}
		if len(s) > 1 && s[1] == s[0] {
			if err := b.write(s[:1]); err != nil {
				return nil, err
			}
			s = s[2:]
			continue
		}
		end := strings.IndexByte(s, '}')
		if s[0] == '}' || end < 0 {
			return nil, errors.New(`a single "{" or "}" in the format`)
		}
		field := s[1:end]
		s = s[end+1:]
		field, specText, _ := strings.Cut(field, ":")
		field, conversion, _ := strings.Cut(field, "!")
		v, err := r.formatField(field, a, &auto)
		if err != nil {
			return nil, err
		}
		switch conversion {
		case "":
		case "r", "a":
			v, err = r.repr(v)
		case "s":
			v, err = r.str(v)
		default:
			err = fmt.Errorf("unknown conversion %q in the format", conversion)
		}
		if err != nil {
			return nil, err
		}
		spec, err := parseFormatSpec(specText)
		if err != nil {
			return nil, err
		}
		text, err := r.format(v, spec)
		if err != nil {
			return nil, err
		}
		if err := b.write(text); err != nil {
			return nil, err
		}
	}
	return b.text.String(), nil
}

// formatField finds the value that a field of str.format names.
func (r *render) formatField(field string, a args, auto *int) (value, error) {
	end := strings.IndexAny(field, ".[")
	if end < 0 {
		end = len(field)
	}
	name, path := field[:end], field[end:]
	var v value
	n, err := strconv.Atoi(name)
	switch {
	case name == "":
		n = *auto
		*auto++
		fallthrough
	case err == nil:
		if n < 0 || n >= len(a.pos) {
			return nil, fmt.Errorf("the format has no argument %d", n)
		}
		v = a.pos[n]
	default:
		var ok bool
		if v, ok = a.keyword(name); !ok {
			return nil, fmt.Errorf("the format has no argument %q", name)
		}
	}
	for path != "" {
		if err := r.spend(1); err != nil {
			return nil, err
		}
		if path[0] == '[' {
			key, rest, ok := strings.Cut(path[1:], "]")
			if !ok {
				return nil, errors.New(`"[" without "]" in the format`)
			}
			var k value = key
			if i, err := strconv.ParseInt(key, 10, 64); err == nil {
				k = i
			}
			v, err = r.item(v, k)
			path = rest
		} else {
			end := strings.IndexAny(path[1:], ".[") + 1
			if end == 0 {
				end = len(path)
			}
			v, err = r.attribute(v, path[1:end])
			path = path[end:]
		}
		if err != nil {
			return nil, err
		}
	}
	return v, nil
}

// parseFormatSpec parses [[fill]align][sign][#][0][width][,][.precision][type].
func parseFormatSpec(s string) (formatSpec, error) {
	spec := formatSpec{prec: -1}
	whole := s
	if c, n := utf8.DecodeRuneInString(s); len(s) > n && strings.IndexByte("<>^=", s[n]) >= 0 {
		spec.fill, spec.align = c, s[n]
		s = s[n+1:]
	} else if s != "" && strings.IndexByte("<>^=", s[0]) >= 0 {
		spec.align = s[0]
		s = s[1:]
	}
	take := func(chars string) byte {
		if s == "" || strings.IndexByte(chars, s[0]) < 0 {
			return 0
		}
		c := s[0]
		s = s[1:]
		return c
	}
	number := func() int64 {
		digits := s[:len(s)-len(strings.TrimLeft(s, "0123456789"))]
		s = s[len(digits):]
		n, err := strconv.ParseInt(digits, 10, 32)
		if err != nil {
			return -1
		}
		return n
	}
	if c := take("+- "); c != '-' {
		spec.sign = c
	}
	spec.alt = take("#") != 0
	if take("0") != 0 && spec.align == 0 {
		spec.fill, spec.align = '0', '='
	}
	spec.width = number()
	spec.comma = take(",") != 0
	if take(".") != 0 {
		if spec.prec = number(); spec.prec < 0 {
			return spec, fmt.Errorf("format %q: expected a precision", whole)
		}
	}
	spec.verb = take("bcdeEfFgGnosxX%")
	if s != "" {
		return spec, fmt.Errorf("format %q is not supported", whole)
	}
	return spec, nil
}
