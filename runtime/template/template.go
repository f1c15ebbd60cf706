// Package template renders chat templates: a closed, limited interpreter of the
// Jinja language with the settings that Hugging Face transformers uses for chat
// templates (the immutable sandbox of Jinja 3.1 with trim_blocks, lstrip_blocks
// and loop controls, a tojson filter that keeps key order and escapes nothing,
// raise_exception, strftime_now and generation blocks).
//
// A template sees only the values it is given, as copies: none, booleans,
// integers of 64 bits, floats, strings, lists, tuples, dicts in insertion order,
// namespaces, macros and the built-in functions. It reaches nothing of the host.
// Steps, memory, output and nesting of a render are bounded by Limits.
//
// Some things differ from Jinja on purpose. Lists and dicts have their mutating
// methods, since published templates use them. Loading other templates (extends,
// include, import, block), recursive loops and autoescape are not supported.
// Text marked by safe or escape stays marked only through + and *. A range is a
// list, integers end at 64 bits, and filters and loop conditions take all items
// before the first result is used.
package template

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// ErrLimit is wrapped by the error of a template that is too large and of a
// render that exceeds its Limits.
var ErrLimit = errors.New("limit exceeded")

// Limits bounds one render. A zero field means its default.
type Limits struct {
	Steps  int // units of work: nodes evaluated, items visited, 32 bytes copied or scanned; default 1<<25
	Memory int // bytes of all values built, released ones included; default 64 MiB
	Output int // bytes of the rendered text; default 16 MiB
	Depth  int // nested evaluations, macro calls included; default 2000, at most 10000
}

func (l Limits) withDefaults() Limits {
	if l.Steps <= 0 {
		l.Steps = 1 << 25
	}
	if l.Memory <= 0 {
		l.Memory = 64 << 20
	}
	if l.Output <= 0 {
		l.Output = 16 << 20
	}
	if l.Depth <= 0 {
		l.Depth = 2000
	}
	l.Depth = min(l.Depth, 10000)
	return l
}

// Error is an error in a template's text (from Parse) or in running it (from Render).
type Error struct {
	Name         string // the template's name
	Line, Column int    // where, from 1; columns count characters
	Err          error  // what
}

func (e *Error) Error() string {
	return fmt.Sprintf("%s:%d:%d: %v", e.Name, e.Line, e.Column, e.Err)
}

// Unwrap returns what went wrong without the place.
func (e *Error) Unwrap() error { return e.Err }

// RaiseError is a template's own refusal: it called raise_exception.
type RaiseError struct {
	Message string // the template's text
}

func (e *RaiseError) Error() string { return e.Message }

// Template is a parsed template. It is immutable and safe for concurrent use.
type Template struct {
	name string
	src  string // with newlines normalised; positions in the tree are offsets in it
	body []stmt
}

// maxSource bounds the bytes of a template's text: published ones have some 10 KiB.
const maxSource = 1 << 20

// Parse parses the template text src, at most 1 MiB. The name appears in errors
// only. An error is an *Error that says what was expected where.
func Parse(name, src string) (*Template, error) {
	if len(src) > maxSource {
		return nil, &Error{Name: name, Line: 1, Column: 1, Err: fmt.Errorf("%w: a template of %d bytes, expected at most %d", ErrLimit, len(src), maxSource)}
	}
	t := &Template{name: name, src: normalizeNewlines(src)}
	toks, err := lex(t.src)
	if err == nil {
		p := &parser{toks: toks}
		t.body, err = p.parseTemplate()
	}
	if err != nil {
		return nil, t.locate(err)
	}
	return t, nil
}

// Render runs the template. The values in vars may be nil, booleans, numbers,
// strings, json.RawMessage, Object, and slices and maps of these (a map's keys
// are taken in sorted order). At most one Limits is used. An error is an *Error
// or, where the template refuses its input, a *RaiseError.
func (t *Template) Render(vars map[string]any, lim ...Limits) (string, error) {
	var l Limits
	if len(lim) > 0 {
		l = lim[0]
	}
	return t.render(vars, l, time.Now())
}

func (t *Template) render(vars map[string]any, lim Limits, now time.Time) (string, error) {
	root := newScope(nil)
	for name, v := range vars {
		val, err := fromHost(v, 0)
		if err != nil {
			return "", fmt.Errorf("%s: variable %q: %w", t.name, name, err)
		}
		root.set(name, val)
	}
	lim = lim.withDefaults()
	r := &render{lim: lim, steps: lim.Steps, memory: lim.Memory, now: now}
	r.out = &buffer{r: r}
	if _, err := r.execBody(t.body, newScope(root)); err != nil {
		var raise *RaiseError
		if errors.As(err, &raise) {
			return "", raise
		}
		return "", t.locate(err)
	}
	return r.out.text.String(), nil
}

// locate turns an error with an offset into an *Error with line and column.
func (t *Template) locate(err error) error {
	at, ok := err.(*posError)
	if !ok {
		return fmt.Errorf("%s: %w", t.name, err)
	}
	before := t.src[:min(max(at.pos, 0), len(t.src))]
	line := strings.Count(before, "\n")
	column := len([]rune(before[strings.LastIndexByte(before, '\n')+1:]))
	return &Error{Name: t.name, Line: line + 1, Column: column + 1, Err: at.err}
}

// posError is an error at an offset of the template's text.
type posError struct {
	pos int
	err error
}

func (e *posError) Error() string { return e.err.Error() }
func (e *posError) Unwrap() error { return e.err }

func errorAt(pos int, format string, args ...any) error {
	return &posError{pos, fmt.Errorf(format, args...)}
}

// normalizeNewlines makes every line end "\n" and drops one at the very end, as
// Jinja does unless keep_trailing_newline is set; invalid UTF-8 becomes U+FFFD.
func normalizeNewlines(src string) string {
	src = strings.ToValidUTF8(src, "\uFFFD")
	src = strings.ReplaceAll(src, "\r\n", "\n")
	src = strings.ReplaceAll(src, "\r", "\n")
	return strings.TrimSuffix(src, "\n")
}
