package template

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// filterFunc computes in|filter(args).
type filterFunc func(r *render, in value, a args) (value, error)

// filterByName returns a filter, or nil.
func filterByName(name string) filterFunc {
	switch name {
	case "abs":
		return filterAbs
	case "batch":
		return filterBatch
	case "capitalize":
		return textFilter(capitalize)
	case "center":
		return filterCenter
	case "count", "length":
		return filterLength
	case "d", "default":
		return filterDefault
	case "dictsort":
		return filterDictSort
	case "e", "escape":
		return filterEscape
	case "first", "last":
		return endFilter(name == "last")
	case "float":
		return filterFloat
	case "format":
		return filterFormat
	case "groupby":
		return filterGroupBy
	case "indent":
		return filterIndent
	case "int":
		return filterInt
	case "items":
		return filterItems
	case "join":
		return filterJoin
	case "list":
		return filterList
	case "lower":
		return textFilter(strings.ToLower)
	case "map":
		return filterMap
	case "max", "min":
		return extremeFilter(name == "max")
	case "reject", "rejectattr", "select", "selectattr":
		return selectFilter(strings.HasPrefix(name, "select"), strings.HasSuffix(name, "attr"))
	case "replace":
		return filterReplace
	case "reverse":
		return filterReverse
	case "round":
		return filterRound
	case "safe":
		return filterSafe
	case "sort":
		return filterSort
	case "string":
		return filterString
	case "sum":
		return filterSum
	case "title":
		return textFilter(titleWords)
	case "tojson":
		return filterToJSON
	case "trim":
		return filterTrim
	case "unique":
		return filterUnique
	case "upper":
		return textFilter(upper)
	}
	return nil
}

// textFilter makes a filter of a function on the printed value.
func textFilter(convert func(string) string) filterFunc {
	return func(r *render, in value, a args) (value, error) {
		if p := a.bind(0); p.err != nil {
			return nil, p.err
		}
		s, err := r.str(in)
		if err != nil {
			return nil, err
		}
		return r.convert(s, convert)
	}
}

// titleWords is the filter title: it capitalizes what follows whitespace,
// a hyphen or an opening bracket.
func titleWords(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	start := true
	for _, c := range s {
		if start {
			b.WriteString(upper(string(c)))
		} else {
			b.WriteRune(unicode.ToLower(c))
		}
		start = isSpace(c) || strings.ContainsRune("-({[<", c)
	}
	return b.String()
}

func filterAbs(r *render, in value, a args) (value, error) {
	if n, ok := integer(in); ok {
		if n < 0 {
			return subInt(0, n)
		}
		return n, nil
	}
	if f, ok := in.(float64); ok {
		return math.Abs(f), nil
	}
	return nil, fmt.Errorf("expected a number, got %s", typeName(in))
}

func filterCenter(r *render, in value, a args) (value, error) {
	p := a.bind(0, "width")
	spec := formatSpec{align: 'c', width: p.int(0, 80)}
	if p.err != nil {
		return nil, p.err
	}
	s, err := r.str(in)
	if err != nil {
		return nil, err
	}
	return r.pad(s, spec)
}

func filterLength(r *render, in value, a args) (value, error) {
	switch v := in.(type) {
	case string, markup:
		s, _ := text(v)
		return int64(utf8.RuneCountInString(s)), r.spend(len(s) / 32)
	case *list:
		return int64(len(v.items)), nil
	case tuple:
		return int64(len(v)), nil
	case *dict:
		return int64(len(v.keys)), nil
	case *loop:
		return int64(len(v.items)), nil
	case *iterator:
		if !v.once {
			return int64(len(v.items)), nil
		}
	case undefined:
		return int64(0), nil
	}
	return nil, fmt.Errorf("%s has no length", typeName(in))
}

func filterDefault(r *render, in value, a args) (value, error) {
	p := a.bind(0, "default_value", "boolean")
	if p.err != nil {
		return nil, p.err
	}
	if _, missing := in.(undefined); missing || p.truth(1, false) && !truth(in) {
		return p.value(0, ""), nil
	}
	return in, nil
}

func filterEscape(r *render, in value, a args) (value, error) {
	if m, ok := in.(markup); ok {
		return m, nil
	}
	s, err := r.str(in)
	if err != nil {
		return nil, err
	}
	s, err = r.escape(s)
	return markup(s), err
}

func filterSafe(r *render, in value, a args) (value, error) {
	s, err := r.str(in)
	return markup(s), err
}

func filterString(r *render, in value, a args) (value, error) {
	if _, ok := in.(markup); ok {
		return in, nil
	}
	return r.str(in)
}

func filterTrim(r *render, in value, a args) (value, error) {
	p := a.bind(0, "chars")
	s, err := r.str(in)
	if err != nil {
		return nil, err
	}
	if err := r.spend(len(s) / 32); err != nil {
		return nil, err
	}
	out, err := r.strip(s, "strip", p)
	if p.err != nil {
		return nil, p.err
	}
	return out, err
}

func filterReplace(r *render, in value, a args) (value, error) {
	p := a.bind(2, "old", "new", "count")
	count := int64(-1)
	if p.optional(2) {
		count = p.int(2, -1)
	}
	if p.err != nil {
		return nil, p.err
	}
	var texts [3]string
	for i, v := range []value{in, p.vals[0], p.vals[1]} {
		var err error
		if texts[i], err = r.str(v); err != nil {
			return nil, err
		}
	}
	return r.replace(texts[0], texts[1], texts[2], count)
}

func filterIndent(r *render, in value, a args) (value, error) {
	p := a.bind(0, "width", "first", "blank")
	indent, ok := text(p.value(0, int64(4)))
	if !ok {
		n := max(p.int(0, 4), 0)
		if err := r.growTimes(n, 1); err != nil {
			return nil, err
		}
		indent = strings.Repeat(" ", int(n))
	}
	if p.err != nil {
		return nil, p.err
	}
	s, ok := text(in)
	if !ok {
		return nil, fmt.Errorf("expected a string, got %s", typeName(in))
	}
	if err := r.grow(len(s)); err != nil {
		return nil, err
	}
	lines, err := r.splitLines(s+"\n", false)
	if err != nil {
		return nil, err
	}
	b := &buffer{r: r}
	for i, line := range lines {
		if i > 0 {
			if err := b.write("\n"); err != nil {
				return nil, err
			}
		}
		if i == 0 && p.truth(1, false) || i > 0 && (line != "" || p.truth(2, false)) {
			if err := b.write(indent); err != nil {
				return nil, err
			}
		}
		if err := b.write(line); err != nil {
			return nil, err
		}
	}
	return b.text.String(), nil
}

func filterFormat(r *render, in value, a args) (value, error) {
	s, err := r.str(in)
	if err != nil {
		return nil, err
	}
	if len(a.kw) == 0 {
		return r.formatPercent(s, a.pos, tuple(a.pos))
	}
	if len(a.pos) > 0 {
		return nil, errors.New("takes positional or keyword arguments, not both")
	}
	d := newDict()
	if err := r.updateDict(d, a); err != nil {
		return nil, err
	}
	return r.formatPercent(s, []value{d}, d)
}

// truncate returns the integer part of a float.
func truncate(f float64) (value, error) {
	f = math.Trunc(f)
	if f >= -(1<<63) && f < 1<<63 {
		return int64(f), nil
	}
	if math.IsNaN(f) {
		return nil, errors.New("NaN has no integer value")
	}
	return nil, errOverflow
}

func filterInt(r *render, in value, a args) (value, error) {
	p := a.bind(0, "default", "base")
	base := p.int(1, 10)
	if p.err != nil {
		return nil, p.err
	}
	if n, ok := integer(in); ok {
		return n, nil
	}
	def := p.value(0, int64(0))
	switch v := in.(type) {
	case bigInt:
		return v, nil
	case undefined:
		return nil, v.err()
	case float64:
		if n, err := truncate(v); err == nil {
			return n, nil
		}
	case string, markup:
		s, _ := text(v)
		if err := r.spend(len(s)); err != nil {
			return nil, err
		}
		if err := r.growTimes(int64(len(s)), 3); err != nil {
			return nil, err
		}
		if n, ok := parseInt(s, base); ok {
			return n, nil
		}
		if f, ok := parseFloat(s); ok {
			if n, err := truncate(f); err == nil {
				return n, nil
			}
		}
	}
	return def, nil
}

// parseInt reads an integer as Python's int(s, base) does.
func parseInt(s string, base int64) (int64, bool) {
	s = strings.ToLower(strings.TrimFunc(s, isSpace))
	sign := ""
	if s != "" && (s[0] == '-' || s[0] == '+') {
		sign, s = s[:1], s[1:]
	}
	prefix := map[int64]string{2: "0b", 8: "0o", 16: "0x"}[base]
	if prefix != "" {
		s = strings.TrimPrefix(s, prefix)
	}
	if s == "" || s[0] == '-' || s[0] == '+' || base == 1 || base < 0 || base > 36 {
		return 0, false
	}
	if base != 0 && !strings.HasPrefix(s, "_") && !strings.HasSuffix(s, "_") && !strings.Contains(s, "__") {
		s = strings.ReplaceAll(s, "_", "")
	}
	n, err := strconv.ParseInt(sign+s, int(base), 64)
	return n, err == nil
}

// parseFloat reads a float as Python's float(s) does.
func parseFloat(s string) (float64, bool) {
	s = strings.TrimFunc(s, isSpace)
	if strings.ContainsAny(s, "xXpP_") {
		return 0, false // forms that only Go has
	}
	f, err := strconv.ParseFloat(s, 64)
	return f, err == nil || errors.Is(err, strconv.ErrRange)
}

func filterFloat(r *render, in value, a args) (value, error) {
	p := a.bind(0, "default")
	if p.err != nil {
		return nil, p.err
	}
	if f, ok := number(in); ok {
		return f, nil
	}
	switch v := in.(type) {
	case undefined:
		return nil, v.err()
	case bigInt:
		f, _ := parseFloat(string(v))
		return f, nil
	case string, markup:
		s, _ := text(v)
		if err := r.spend(len(s)); err != nil {
			return nil, err
		}
		if f, ok := parseFloat(s); ok {
			return f, nil
		}
	}
	return p.value(0, 0.0), nil
}

func filterRound(r *render, in value, a args) (value, error) {
	p := a.bind(0, "precision", "method")
	prec, method := p.int(0, 0), p.text(1, "common")
	if p.err != nil {
		return nil, p.err
	}
	if prec < -maxPrecision || prec > maxPrecision {
		return nil, fmt.Errorf("a precision of %d digits: at most %d are supported", prec, maxPrecision)
	}
	f, ok := number(in)
	if !ok {
		return nil, fmt.Errorf("expected a number, got %s", typeName(in))
	}
	n, isInt := integer(in)
	scale := math.Pow(10, float64(prec))
	switch method {
	case "common":
		if isInt && prec >= 0 {
			return n, nil
		}
		if prec < 0 {
			f = float64(math.RoundToEven(f/math.Pow(10, float64(-prec))) * math.Pow(10, float64(-prec)))
			if isInt {
				return truncate(f)
			}
			return f, nil
		}
		if err := r.spend(floatSteps); err != nil {
			return nil, err
		}
		f, err := strconv.ParseFloat(strconv.FormatFloat(f, 'f', int(prec), 64), 64)
		return f, err
	case "ceil":
		return math.Ceil(float64(f*scale)) / scale, nil
	case "floor":
		return math.Floor(float64(f*scale)) / scale, nil
	}
	return nil, fmt.Errorf(`method %q: expected "common", "ceil" or "floor"`, method)
}

func filterReverse(r *render, in value, a args) (value, error) {
	if s, ok := text(in); ok {
		if err := r.grow(5 * len(s)); err != nil {
			return nil, err
		}
		chars := []rune(s)
		slices.Reverse(chars)
		return string(chars), nil
	}
	items, err := r.items(in)
	if err != nil {
		return nil, err
	}
	slices.Reverse(items)
	return &iterator{"reversed", items, true}, nil
}
