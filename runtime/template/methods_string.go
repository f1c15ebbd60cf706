package template

import (
	"errors"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// stringMethod returns a method of s. Every call is charged for reading s.
func stringMethod(s, name string) (value, bool) {
	bound := func(required int, names []string, call func(r *render, p *params) (value, error)) (value, bool) {
		return method(name, required, names, func(r *render, p *params) (value, error) {
			if err := r.spend(len(s) / 32); err != nil {
				return nil, err
			}
			return call(r, p)
		})
	}
	if convert := stringConversion(name); convert != nil {
		return bound(0, nil, func(r *render, p *params) (value, error) { return r.convert(s, convert) })
	}
	if is := stringPredicate(name); is != nil {
		return bound(0, nil, func(r *render, p *params) (value, error) { return is(s), nil })
	}
	switch name {
	case "strip", "lstrip", "rstrip":
		return bound(0, []string{"chars"}, func(r *render, p *params) (value, error) {
			return r.strip(s, name, p)
		})
	case "split", "rsplit":
		return bound(0, []string{"sep", "maxsplit"}, func(r *render, p *params) (value, error) {
			return r.split(s, name == "rsplit", p)
		})
	case "splitlines":
		return bound(0, []string{"keepends"}, func(r *render, p *params) (value, error) {
			lines, err := r.splitLines(s, p.truth(0, false))
			if err != nil {
				return nil, err
			}
			return r.textList(lines)
		})
	case "partition", "rpartition":
		return bound(1, []string{"sep"}, func(r *render, p *params) (value, error) {
			return partition(s, name == "rpartition", p)
		})
	case "startswith", "endswith":
		return bound(1, []string{"prefix", "start"}, func(r *render, p *params) (value, error) {
			return hasAffix(s, name == "startswith", p)
		})
	case "removeprefix", "removesuffix":
		return bound(1, []string{"affix"}, func(r *render, p *params) (value, error) {
			if name == "removeprefix" {
				return strings.TrimPrefix(s, p.text(0, "")), nil
			}
			return strings.TrimSuffix(s, p.text(0, "")), nil
		})
	case "find", "rfind", "index", "rindex", "count":
		return bound(1, []string{"sub"}, func(r *render, p *params) (value, error) {
			return find(s, name, p.text(0, ""))
		})
	case "replace":
		return bound(2, []string{"old", "new", "count"}, func(r *render, p *params) (value, error) {
			return r.replace(s, p.text(0, ""), p.text(1, ""), p.int(2, -1))
		})
	case "join":
		return bound(1, []string{"items"}, func(r *render, p *params) (value, error) {
			items, err := r.items(p.vals[0])
			if err != nil {
				return nil, err
			}
			for _, item := range items {
				if _, ok := text(item); !ok {
					return nil, fmt.Errorf("expected strings, got %s", typeName(item))
				}
			}
			return r.join(items, s)
		})
	case "format":
		return &function{name, func(r *render, a args) (value, error) { return r.formatBraces(s, a) }}, true
	case "zfill":
		return bound(1, []string{"width"}, func(r *render, p *params) (value, error) {
			spec := formatSpec{fill: '0', align: '>', width: p.int(0, 0)}
			if s != "" && (s[0] == '-' || s[0] == '+') {
				spec.align = '='
			}
			return r.pad(s, spec)
		})
	case "center", "ljust", "rjust":
		return bound(1, []string{"width", "fillchar"}, func(r *render, p *params) (value, error) {
			fill, n := utf8.DecodeRuneInString(p.text(1, " "))
			if n == 0 || n != len(p.text(1, " ")) {
				return nil, errors.New("expected a fill of one character")
			}
			align := map[string]byte{"center": 'c', "ljust": '<', "rjust": '>'}[name]
			return r.pad(s, formatSpec{fill: fill, align: align, width: p.int(0, 0)})
		})
	}
	return nil, false
}

// convert applies a change of case, some of which take two copies.
func (r *render) convert(s string, change func(string) string) (string, error) {
	if err := r.growTimes(int64(len(s)), 3); err != nil {
		return "", err
	}
	return change(s), nil
}

func stringConversion(name string) func(string) string {
	switch name {
	case "upper":
		return upper
	case "lower", "casefold":
		return strings.ToLower
	case "title":
		return title
	case "capitalize":
		return capitalize
	case "swapcase":
		return func(s string) string {
			return strings.Map(func(c rune) rune {
				if unicode.IsUpper(c) {
					return unicode.ToLower(c)
				}
				return unicode.ToUpper(c)
			}, s)
		}
	}
	return nil
}

// stringPredicate returns one of the "is" methods: all characters are of a
// class and there is one, or for the cases, all cased ones are and there is one.
func stringPredicate(name string) func(string) bool {
	all := func(class func(rune) bool) func(string) bool {
		return func(s string) bool {
			return s != "" && strings.IndexFunc(s, func(c rune) bool { return !class(c) }) < 0
		}
	}
	cased := func(has, hasNot func(rune) bool) func(string) bool {
		return func(s string) bool {
			return strings.IndexFunc(s, has) >= 0 && strings.IndexFunc(s, hasNot) < 0
		}
	}
	switch name {
	case "isdigit", "isdecimal", "isnumeric":
		return all(unicode.IsDigit)
	case "isalpha":
		return all(unicode.IsLetter)
	case "isalnum":
		return all(func(c rune) bool { return unicode.IsLetter(c) || unicode.IsDigit(c) })
	case "isspace":
		return all(isSpace)
	case "isupper":
		return cased(unicode.IsUpper, unicode.IsLower)
	case "islower":
		return cased(unicode.IsLower, unicode.IsUpper)
	}
	return nil
}

// upper is str.upper with one of Unicode's special cases, the German sharp s.
func upper(s string) string { return strings.ReplaceAll(strings.ToUpper(s), "ß", "SS") }

func capitalize(s string) string {
	_, n := utf8.DecodeRuneInString(s)
	return upper(s[:n]) + strings.ToLower(s[n:])
}

// title is str.title: a letter is upper case unless one precedes it.
func title(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	inWord := false
	for _, c := range s {
		letter := unicode.IsLetter(c)
		switch {
		case !letter:
			b.WriteRune(c)
		case inWord:
			b.WriteRune(unicode.ToLower(c))
		default:
			b.WriteRune(unicode.ToTitle(c))
		}
		inWord = letter
	}
	return b.String()
}

func (r *render) strip(s, side string, p *params) (value, error) {
	drop := isSpace
	if p.optional(0) {
		chars := p.text(0, "")
		if err := r.grow(16 * len(chars)); err != nil {
			return nil, err
		}
		set := make(map[rune]bool)
		for _, c := range chars {
			set[c] = true
		}
		drop = func(c rune) bool { return set[c] }
	}
	if side != "rstrip" {
		s = strings.TrimLeftFunc(s, drop)
	}
	if side != "lstrip" {
		s = strings.TrimRightFunc(s, drop)
	}
	return s, nil
}

// textList returns strings as a list.
func (r *render) textList(parts []string) (value, error) {
	if err := r.grow(32 * len(parts)); err != nil {
		return nil, err
	}
	items := make([]value, len(parts))
	for i, part := range parts {
		items[i] = part
	}
	return &list{items}, nil
}

func (r *render) split(s string, right bool, p *params) (value, error) {
	limit := p.int(1, -1)
	if !p.optional(0) {
		parts, err := r.splitSpace(s, right, limit)
		if err != nil {
			return nil, err
		}
		return r.textList(parts)
	}
	sep := p.text(0, "")
	if p.err != nil {
		return nil, p.err
	}
	if sep == "" {
		return nil, errors.New("the separator is empty")
	}
	n := strings.Count(s, sep) + 1
	if err := r.growTimes(int64(n), 16); err != nil {
		return nil, err
	}
	parts := strings.Split(s, sep)
	if limit < 0 || limit >= int64(n) {
		return r.textList(parts)
	}
	if err := r.grow(len(s)); err != nil {
		return nil, err
	}
	if k := n - int(limit); right {
		parts = append([]string{strings.Join(parts[:k], sep)}, parts[k:]...)
	} else {
		parts = append(parts[:limit:limit], strings.Join(parts[limit:], sep))
	}
	return r.textList(parts)
}

// splitSpace splits at runs of whitespace, at most limit times if it is not negative.
func (r *render) splitSpace(s string, right bool, limit int64) ([]string, error) {
	words, inWord := 0, false
	for _, c := range s {
		if !isSpace(c) && !inWord {
			words++
		}
		inWord = !isSpace(c)
	}
	if err := r.growTimes(int64(words), 16); err != nil {
		return nil, err
	}
	parts := make([]string, 0, words)
	if !right {
		for s = strings.TrimLeftFunc(s, isSpace); s != ""; s = strings.TrimLeftFunc(s, isSpace) {
			end := strings.IndexFunc(s, isSpace)
			if end < 0 || limit >= 0 && int64(len(parts)) == limit {
				end = len(s)
			}
			parts = append(parts, s[:end])
			s = s[end:]
		}
		return parts, nil
	}
	for s = strings.TrimRightFunc(s, isSpace); s != ""; s = strings.TrimRightFunc(s, isSpace) {
		start := strings.LastIndexFunc(s, isSpace)
		if start < 0 || limit >= 0 && int64(len(parts)) == limit {
			parts = append(parts, s)
			break
		}
		_, n := utf8.DecodeRuneInString(s[start:])
		parts = append(parts, s[start+n:])
		s = s[:start]
	}
	for i, j := 0, len(parts)-1; i < j; i, j = i+1, j-1 {
		parts[i], parts[j] = parts[j], parts[i]
	}
	return parts, nil
}

// isLineEnd tells whether Python's splitlines splits at c.
func isLineEnd(c rune) bool {
	return c >= '\n' && c <= '\r' || c >= 0x1c && c <= 0x1e || c == 0x85 || c == 0x2028 || c == 0x2029
}

// splitLines splits at the line ends that Python knows.
func (r *render) splitLines(s string, keep bool) ([]string, error) {
	n := 1
	for _, c := range s {
		if isLineEnd(c) {
			n++
		}
	}
	if err := r.growTimes(int64(n), 16); err != nil {
		return nil, err
	}
	lines := make([]string, 0, n)
	for s != "" {
		end := strings.IndexFunc(s, isLineEnd)
		if end < 0 {
			return append(lines, s), nil
		}
		_, n := utf8.DecodeRuneInString(s[end:])
		if strings.HasPrefix(s[end:], "\r\n") {
			n = 2
		}
		line := s[:end]
		if keep {
			line = s[:end+n]
		}
		lines = append(lines, line)
		s = s[end+n:]
	}
	return lines, nil
}

func partition(s string, right bool, p *params) (value, error) {
	sep := p.text(0, "")
	if sep == "" {
		return nil, errors.New("the separator is empty")
	}
	i := strings.Index(s, sep)
	if right {
		i = strings.LastIndex(s, sep)
	}
	switch {
	case i >= 0:
		return tuple{s[:i], sep, s[i+len(sep):]}, nil
	case right:
		return tuple{"", "", s}, nil
	}
	return tuple{s, "", ""}, nil
}

func hasAffix(s string, prefix bool, p *params) (value, error) {
	has := strings.HasSuffix
	if prefix {
		has = strings.HasPrefix
	}
	if start := p.int(1, 0); start != 0 {
		n := int64(utf8.RuneCountInString(s))
		if start < 0 {
			start = max(start+n, 0)
		}
		if start > n {
			return false, nil
		}
		s = s[runeOffset(s, int(start)):]
	}
	affixes, ok := p.vals[0].(tuple)
	if !ok {
		affixes = tuple{p.vals[0]}
	}
	for _, a := range affixes {
		t, ok := text(a)
		if !ok {
			return nil, fmt.Errorf("expected a string or a tuple of strings, got %s", typeName(a))
		}
		if has(s, t) {
			return true, nil
		}
	}
	return false, nil
}

func find(s, name, sub string) (value, error) {
	if name == "count" {
		return int64(strings.Count(s, sub)), nil
	}
	i := strings.Index(s, sub)
	if name[0] == 'r' {
		i = strings.LastIndex(s, sub)
	}
	if i < 0 {
		if strings.HasSuffix(name, "index") {
			return nil, errors.New("the substring is not in the string")
		}
		return int64(-1), nil
	}
	return int64(utf8.RuneCountInString(s[:i])), nil
}

// replace replaces the first n occurrences of old, or all if n is negative.
func (r *render) replace(s, old, new string, n int64) (value, error) {
	count := int64(strings.Count(s, old))
	if n < 0 || n > count {
		n = count
	}
	if err := r.grow(len(s)); err != nil {
		return nil, err
	}
	if err := r.growTimes(n, len(new)); err != nil {
		return nil, err
	}
	return strings.Replace(s, old, new, int(n)), nil
}

// join writes the items with sep between.
func (r *render) join(items []value, sep string) (value, error) {
	b := &buffer{r: r}
	for i, item := range items {
		if i > 0 {
			if err := b.write(sep); err != nil {
				return nil, err
			}
		}
		s, err := r.str(item)
		if err != nil {
			return nil, err
		}
		if err := b.write(s); err != nil {
			return nil, err
		}
	}
	return b.text.String(), nil
}
