package template

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode/utf16"
)

// jsonStyle is how tojson lays out its text.
type jsonStyle struct {
	indent     string
	multiline  bool
	item, key  string // the separators after an item and after a key
	sortKeys   bool
	escapeUTF8 bool
}

// filterToJSON is json.dumps with ensure_ascii off, as chat templates expect.
func filterToJSON(r *render, in value, a args) (value, error) {
	p := a.bind(0, "ensure_ascii", "indent", "separators", "sort_keys")
	style := jsonStyle{item: ", ", key: ": ", escapeUTF8: p.truth(0, false), sortKeys: p.truth(3, false)}
	if p.optional(1) {
		style.multiline = true
		style.item = ","
		if s, ok := text(p.vals[1]); ok {
			style.indent = s
		} else {
			n := max(p.int(1, 0), 0)
			if err := r.growTimes(n, 1); err != nil {
				return nil, err
			}
			style.indent = strings.Repeat(" ", int(n))
		}
	}
	if p.optional(2) {
		seps, err := r.items(p.vals[2])
		if err != nil {
			return nil, err
		}
		if len(seps) != 2 {
			return nil, fmt.Errorf("separators: expected two strings, got %d items", len(seps))
		}
		item, ok := text(seps[0])
		key, ok2 := text(seps[1])
		if !ok || !ok2 {
			return nil, fmt.Errorf("separators: expected two strings")
		}
		style.item, style.key = item, key
	}
	if p.err != nil {
		return nil, p.err
	}
	b := &buffer{r: r}
	if err := b.json(in, style, 0); err != nil {
		return nil, err
	}
	return b.text.String(), nil
}

func (b *buffer) json(v value, style jsonStyle, depth int) error {
	if err := b.r.enter(); err != nil {
		return err
	}
	defer b.r.leave()
	switch v := v.(type) {
	case nil:
		return b.write("null")
	case bool:
		return b.write(strconv.FormatBool(v))
	case int64:
		return b.write(strconv.FormatInt(v, 10))
	case bigInt:
		return b.write(string(v))
	case float64:
		return b.write(jsonFloat(v))
	case string:
		return b.jsonString(v, style)
	case markup:
		return b.jsonString(string(v), style)
	case *list:
		return b.jsonItems(v.items, style, depth)
	case tuple:
		return b.jsonItems(v, style, depth)
	case *dict:
		return b.jsonDict(v, style, depth)
	}
	return fmt.Errorf("%s cannot be written as JSON", typeName(v))
}

func jsonFloat(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case math.IsNaN(f):
		return "NaN"
	}
	return formatFloat(f)
}

// newline starts a line of indented JSON.
func (b *buffer) newline(style jsonStyle, depth int) error {
	if !style.multiline {
		return nil
	}
	if err := b.write("\n"); err != nil {
		return err
	}
	for range depth {
		if err := b.write(style.indent); err != nil {
			return err
		}
	}
	return nil
}

func (b *buffer) jsonItems(items []value, style jsonStyle, depth int) error {
	if len(items) == 0 {
		return b.write("[]")
	}
	sep := "["
	for _, item := range items {
		if err := b.write(sep); err != nil {
			return err
		}
		if err := b.newline(style, depth+1); err != nil {
			return err
		}
		if err := b.json(item, style, depth+1); err != nil {
			return err
		}
		sep = style.item
	}
	if err := b.newline(style, depth); err != nil {
		return err
	}
	return b.write("]")
}

func (b *buffer) jsonDict(d *dict, style jsonStyle, depth int) error {
	if len(d.keys) == 0 {
		return b.write("{}")
	}
	keys, vals := d.keys, d.vals
	if style.sortKeys {
		if err := b.r.grow(144 * len(keys)); err != nil {
			return err
		}
		pairs := d.pairs()
		if err := b.r.sortBy(pairs, append([]value(nil), keys...), false); err != nil {
			return err
		}
		keys, vals = make([]value, len(pairs)), make([]value, len(pairs))
		for i, pair := range pairs {
			keys[i], vals[i] = pair.(tuple)[0], pair.(tuple)[1]
		}
	}
	sep := "{"
	for i, key := range keys {
		if err := b.write(sep); err != nil {
			return err
		}
		if err := b.newline(style, depth+1); err != nil {
			return err
		}
		if err := b.jsonKey(key, style); err != nil {
			return err
		}
		if err := b.write(style.key); err != nil {
			return err
		}
		if err := b.json(vals[i], style, depth+1); err != nil {
			return err
		}
		sep = style.item
	}
	if err := b.newline(style, depth); err != nil {
		return err
	}
	return b.write("}")
}

// jsonKey writes a key: a string, or a number, boolean or none as a string.
func (b *buffer) jsonKey(key value, style jsonStyle) error {
	switch key.(type) {
	case string, markup:
		return b.json(key, style, 0)
	case nil, bool, int64, bigInt, float64:
		if err := b.write(`"`); err != nil {
			return err
		}
		if err := b.json(key, style, 0); err != nil {
			return err
		}
		return b.write(`"`)
	}
	return fmt.Errorf("%s cannot be a key of JSON", typeName(key))
}

func (b *buffer) jsonString(s string, style jsonStyle) error {
	if err := b.write(`"`); err != nil {
		return err
	}
	err := b.escaped(s, func(c rune) string {
		switch {
		case c == '"' || c == '\\':
			return `\` + string(c)
		case c == '\n':
			return `\n`
		case c == '\r':
			return `\r`
		case c == '\t':
			return `\t`
		case c == '\b':
			return `\b`
		case c == '\f':
			return `\f`
		case c < 0x20 || style.escapeUTF8 && c > 0x7f && c < 0x10000:
			return fmt.Sprintf(`\u%04x`, c)
		case style.escapeUTF8 && c >= 0x10000:
			hi, lo := utf16.EncodeRune(c)
			return fmt.Sprintf(`\u%04x\u%04x`, hi, lo)
		}
		return ""
	})
	if err != nil {
		return err
	}
	return b.write(`"`)
}
