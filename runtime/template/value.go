package template

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// value is what an expression evaluates to: nil (none), bool, int64, bigInt,
// float64, string, markup, undefined, *list, tuple, *dict, *iterator,
// *namespace, *function, *macro or *loop.
type value any

type (
	// undefined is a missing variable or attribute; it says what is missing.
	undefined string

	// markup is text marked safe: joining it with + escapes the other side.
	markup string

	// bigInt is an integer beyond 64 bits from the input, in decimal. It can
	// be printed and tested, not computed with.
	bigInt string

	list  struct{ items []value }
	tuple []value

	// iterator holds the items of a Python generator (once: it is always true,
	// has no length and can be read one time) or of a dict's view.
	iterator struct {
		name  string
		items []value
		once  bool
	}

	// namespace has attributes that inner scopes can set.
	namespace struct{ attrs *dict }

	function struct {
		name string
		call func(r *render, a args) (value, error)
	}

	macro struct {
		def    *macroStmt
		scope  *scope
		caller value // *macro in a call block, else nil
	}
)

func generator(items []value) *iterator { return &iterator{"generator", items, true} }

// dict keeps its entries in insertion order.
type dict struct {
	keys, vals []value
	index      map[any]int // from hashKey to the entry
}

func newDict() *dict { return &dict{index: map[any]int{}} }

func (d *dict) setString(key string, v value) { d.set(key, key, v) }

// set binds key, whose hashKey is hash.
func (d *dict) set(hash any, key, v value) {
	if i, ok := d.index[hash]; ok {
		d.vals[i] = v
		return
	}
	d.index[hash] = len(d.keys)
	d.keys = append(d.keys, key)
	d.vals = append(d.vals, v)
}

func (d *dict) get(hash any) (value, bool) {
	i, ok := d.index[hash]
	if !ok {
		return nil, false
	}
	return d.vals[i], true
}

// remove deletes the entry; it takes time proportional to the dict's length.
func (d *dict) remove(hash any) {
	i, ok := d.index[hash]
	if !ok {
		return
	}
	d.keys = append(d.keys[:i], d.keys[i+1:]...)
	d.vals = append(d.vals[:i], d.vals[i+1:]...)
	delete(d.index, hash)
	for h, k := range d.index {
		if k > i {
			d.index[h] = k - 1
		}
	}
}

func (d *dict) pairs() []value {
	items := make([]value, len(d.keys))
	for i, k := range d.keys {
		items[i] = tuple{k, d.vals[i]}
	}
	return items
}

// typeName is Python's name of a value's type, for messages.
func typeName(v value) string {
	switch v := v.(type) {
	case nil:
		return "none"
	case bool:
		return "bool"
	case int64, bigInt:
		return "int"
	case float64:
		return "float"
	case string:
		return "str"
	case markup:
		return "Markup"
	case undefined:
		return "undefined"
	case *list:
		return "list"
	case tuple:
		return "tuple"
	case *dict:
		return "dict"
	case *iterator:
		return v.name
	case *namespace:
		return "namespace"
	case *macro:
		return "macro"
	case *loop:
		return "loop"
	}
	return "function"
}

// text returns the characters of a string or of markup.
func text(v value) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case markup:
		return string(v), true
	}
	return "", false
}

// sequence returns the items of a list or tuple.
func sequence(v value) (items []value, isList, ok bool) {
	switch v := v.(type) {
	case *list:
		return v.items, true, true
	case tuple:
		return v, false, true
	}
	return nil, false, false
}

// err is the error of using what is undefined.
func (u undefined) err() error { return errors.New(string(u)) }

func truth(v value) bool {
	switch v := v.(type) {
	case nil, undefined:
		return false
	case bool:
		return v
	case int64:
		return v != 0
	case float64:
		return v != 0
	case string:
		return v != ""
	case markup:
		return v != ""
	case *list:
		return len(v.items) > 0
	case tuple:
		return len(v) > 0
	case *dict:
		return len(v.keys) > 0
	case *iterator:
		return v.once || len(v.items) > 0
	}
	return true
}

// integer returns the value of an int or bool.
func integer(v value) (int64, bool) {
	switch v := v.(type) {
	case int64:
		return v, true
	case bool:
		if v {
			return 1, true
		}
		return 0, true
	}
	return 0, false
}

// number returns the value of an int, bool or float as a float.
func number(v value) (float64, bool) {
	if f, ok := v.(float64); ok {
		return f, true
	}
	n, ok := integer(v)
	return float64(n), ok
}

// items returns what iterating over v gives, and uses up a generator.
func (r *render) items(v value) ([]value, error) {
	var items []value
	switch v := v.(type) {
	case undefined:
		return nil, nil
	case *list:
		items = v.items
	case tuple:
		items = v
	case *dict:
		items = v.keys
	case *iterator:
		items = v.items
		if v.once {
			v.items = nil
		}
	case string, markup:
		s, _ := text(v)
		n := utf8.RuneCountInString(s)
		if err := r.growTimes(int64(n), 40); err != nil {
			return nil, err
		}
		items = make([]value, 0, n)
		for _, c := range s {
			items = append(items, string(c))
		}
		return items, nil
	default:
		return nil, fmt.Errorf("%s is not iterable", typeName(v))
	}
	// The caller may keep or change the slice, and the template the list.
	if err := r.grow(16 * len(items)); err != nil {
		return nil, err
	}
	return append([]value(nil), items...), nil
}

// formatFloat writes a float as Python's repr does.
func formatFloat(f float64) string {
	switch {
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	case math.IsNaN(f):
		return "nan"
	}
	s := strconv.FormatFloat(f, 'e', -1, 64)
	exp, _ := strconv.Atoi(s[strings.IndexByte(s, 'e')+1:])
	if exp < -4 || exp >= 16 {
		return s
	}
	s = strconv.FormatFloat(f, 'f', -1, 64)
	if strings.IndexByte(s, '.') < 0 {
		s += ".0"
	}
	return s
}

// str is Python's str(v): what printing v writes.
func (r *render) str(v value) (string, error) {
	switch v := v.(type) {
	case string:
		return v, nil
	case markup:
		return string(v), nil
	case undefined:
		return "", nil
	}
	return r.repr(v)
}

// repr is Python's repr(v).
func (r *render) repr(v value) (string, error) {
	b := &buffer{r: r}
	err := b.repr(v)
	return b.text.String(), err
}

// buffer collects text. What it allocates counts against the memory of a render.
type buffer struct {
	r    *render
	text strings.Builder
}

func (b *buffer) write(s string) error {
	if len(s) > b.text.Cap()-b.text.Len() {
		if err := b.r.grow(2*b.text.Cap() + len(s)); err != nil { // what Grow allocates
			return err
		}
		b.text.Grow(len(s))
	}
	b.text.WriteString(s)
	return b.r.spend(len(s) / 32)
}

// escaped writes s with the text that escape returns for a character in its place, unless that is empty.
func (b *buffer) escaped(s string, escape func(c rune) string) error {
	start := 0
	for i := 0; i < len(s); {
		c, n := utf8.DecodeRuneInString(s[i:])
		if e := escape(c); e != "" {
			if err := b.write(s[start:i]); err != nil {
				return err
			}
			if err := b.write(e); err != nil {
				return err
			}
			start = i + n
		}
		i += n
	}
	return b.write(s[start:])
}

func (b *buffer) repr(v value) error {
	if err := b.r.enter(); err != nil {
		return err
	}
	defer b.r.leave()
	switch v := v.(type) {
	case nil:
		return b.write("None")
	case bool:
		if v {
			return b.write("True")
		}
		return b.write("False")
	case int64:
		return b.write(strconv.FormatInt(v, 10))
	case bigInt:
		return b.write(string(v))
	case float64:
		return b.write(formatFloat(v))
	case string:
		return b.reprString(v)
	case markup:
		if err := b.write("Markup("); err != nil {
			return err
		}
		if err := b.reprString(string(v)); err != nil {
			return err
		}
		return b.write(")")
	case undefined:
		return b.write("Undefined")
	case *list:
		return b.reprItems("[", v.items, "]")
	case tuple:
		if len(v) == 1 {
			return b.reprItems("(", v, ",)")
		}
		return b.reprItems("(", v, ")")
	case *dict:
		return b.reprDict(v)
	case *iterator:
		if v.once {
			return b.write("<" + v.name + " object>")
		}
		return b.reprItems(v.name+"([", v.items, "])")
	case *namespace:
		if err := b.write("<Namespace "); err != nil {
			return err
		}
		if err := b.reprDict(v.attrs); err != nil {
			return err
		}
		return b.write(">")
	case *function:
		return b.write("<function " + v.name + ">")
	case *macro:
		return b.write("<Macro '" + v.def.name + "'>")
	case *loop:
		return b.write(fmt.Sprintf("<LoopContext %d/%d>", v.index+1, len(v.items)))
	}
	return fmt.Errorf("%s cannot be printed", typeName(v))
}

func (b *buffer) reprItems(open string, items []value, end string) error {
	if err := b.write(open); err != nil {
		return err
	}
	for i, item := range items {
		if i > 0 {
			if err := b.write(", "); err != nil {
				return err
			}
		}
		if err := b.repr(item); err != nil {
			return err
		}
	}
	return b.write(end)
}

func (b *buffer) reprDict(d *dict) error {
	for i, key := range d.keys {
		sep := ", "
		if i == 0 {
			sep = "{"
		}
		if err := b.write(sep); err != nil {
			return err
		}
		if err := b.repr(key); err != nil {
			return err
		}
		if err := b.write(": "); err != nil {
			return err
		}
		if err := b.repr(d.vals[i]); err != nil {
			return err
		}
	}
	if len(d.keys) == 0 {
		return b.write("{}")
	}
	return b.write("}")
}

// reprString quotes s with ' unless only " avoids an escape.
func (b *buffer) reprString(s string) error {
	quote := '\''
	if strings.ContainsRune(s, '\'') && !strings.ContainsRune(s, '"') {
		quote = '"'
	}
	if err := b.write(string(quote)); err != nil {
		return err
	}
	err := b.escaped(s, func(c rune) string {
		switch {
		case c == quote || c == '\\':
			return `\` + string(c)
		case c == '\n':
			return `\n`
		case c == '\r':
			return `\r`
		case c == '\t':
			return `\t`
		case unicode.IsPrint(c):
			return ""
		case c < 0x100:
			return fmt.Sprintf(`\x%02x`, c)
		case c < 0x10000:
			return fmt.Sprintf(`\u%04x`, c)
		}
		return fmt.Sprintf(`\U%08x`, c)
	})
	if err != nil {
		return err
	}
	return b.write(string(quote))
}
