package template

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// now is the time of every test.
var now = time.Date(2026, 3, 5, 7, 8, 9, 0, time.UTC)

func readJSON(t testing.TB, name string, v any) {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
}

// jinjaCase is a template and what Jinja 3.1.6 makes of it in the environment of
// transformers, with three messages.
type jinjaCase struct {
	Template string
	Want     string
	Raises   string // the message of raise_exception
	Fails    string // "parse" or "render"
}

func TestJinja(t *testing.T) {
	var cases []jinjaCase
	readJSON(t, "jinja.json", &cases)
	messages := []Message{{Role: "user", Content: "Hi"}, {Role: "assistant", Content: "Yo"}, {Role: "user", Content: "Bye"}}
	for _, c := range cases {
		chat, err := ForModel(c.Template, "", "")
		if (err != nil) != (c.Fails == "parse") {
			t.Errorf("%q: parse: got error %v, want failure: %v", c.Template, err, c.Fails == "parse")
		}
		if err != nil {
			continue
		}
		got, err := chat.Render(messages, Options{Now: now})
		var raise *RaiseError
		switch {
		case c.Raises != "":
			if !errors.As(err, &raise) || raise.Message != c.Raises {
				t.Errorf("%q: got error %v, want %q raised", c.Template, err, c.Raises)
			}
		case c.Fails == "render":
			var at *Error
			if !errors.As(err, &at) {
				t.Errorf("%q: got %q and error %v, want an Error", c.Template, got, err)
			}
		case err != nil || got != c.Want:
			t.Errorf("%q:\n got %q, error %v\nwant %q", c.Template, got, err, c.Want)
		}
	}
}

func TestParseErrors(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"a\n {% if x %}\nb", `t:3:2: expected "endif" to close "if", got end of template`},
		{"{% for x in y %}{% endif %}", `t:1:20: unknown statement "endif": expected a statement or "endfor" to close "for"`},
		{"{% foo %}", `t:1:4: unknown statement "foo"`},
		{"{% include 'x' %}", `t:1:4: statement "include" is not supported in chat templates`},
		{"{% for x in y recursive %}{% endfor %}", "t:1:15: recursive loops are not supported"},
		{"é{{ a b }}", `t:1:7: expected "}}", got name "b"`},
		{"{{ 1 + }}", `t:1:8: expected an expression, got "}}"`},
		{"{{ (1 }}", `t:1:7: unexpected "}": expected ')'`},
		{"{{ 'x }}", `t:1:4: string has no end: expected '\''`},
		{`{{ '\x1' }}`, `t:1:4: string: escape "\x" needs 2 hexadecimal digits`},
		{"{{ x|y }}", `t:1:6: no filter is named "y"`},
		{"{{ x is y }}", `t:1:9: no test is named "y"`},
		{"{{ 99999999999999999999 }}", `t:1:4: number "99999999999999999999": expected an integer of 64 bits or a float`},
		{"{# x", `t:1:1: comment has no end: expected "#}"`},
		{"{{ " + strings.Repeat("(", 300) + strings.Repeat(")", 300) + " }}", "t:1:128: nested more than 250 levels deep"},
		{strings.Repeat("{% if x %}", 300), "t:1:2497: nested more than 250 levels deep"},
		{"{{ " + strings.Repeat("n", 257) + " }}", "t:1:4: name of 257 bytes: at most 256 are supported"},
		{strings.Repeat("x", maxSource+1), "t:1:1: limit exceeded: a template of 1048577 bytes, expected at most 1048576"},
		{"{{ " + strings.Repeat("not ", 2e6) + "x }}", "t:1:1: limit exceeded: a template of 8000007 bytes, expected at most 1048576"},
		{"{{ " + strings.Repeat("not ", 2e5) + "x }}", "t:1:524292: limit exceeded: more than 131072 names, operators and texts"},
	} {
		_, err := Parse("t", c.src)
		if err == nil || err.Error() != c.want {
			t.Errorf("%.40q: got error %v, want %s", c.src, err, c.want)
		}
	}
}

func TestRenderErrors(t *testing.T) {
	for _, c := range []struct{ src, want string }{
		{"a\n{{ nothing.x }}", `t:2:11: variable "nothing" is undefined`},
		{"{{ [1]['a'].b }}", `t:1:12: list has no attribute or element "a"`},
		{"{{ 1 + 'a' }}", "t:1:6: operator + does not take int and str"},
		{"{{ 9223372036854775807 + 1 }}", "t:1:24: the result is beyond integers of 64 bits"},
		{"{{ -9223372036854775807 * 2 }}", "t:1:25: the result is beyond integers of 64 bits"},
		{"{{ 'a'|int('x', 'y') }}", `t:1:8: filter int: argument "base": expected an integer, got str`},
		{"{{ 'a'.split(1) }}", `t:1:13: split: argument "sep": expected a string, got int`},
		{"{{ {[]: 1} }}", "t:1:4: list cannot be a dict's key"},
		{"{% set a = 1 %}{% set a.b = 1 %}", `t:1:23: cannot set attribute "b": "a" is no namespace`},
		{"{% macro m(a) %}{% endmacro %}{{ m(1, 2) }}", `t:1:35: macro "m" takes 1 arguments, got 2`},
		{"{% macro m(a) %}{% endmacro %}{{ m(x=2) }}", `t:1:35: macro "m" takes no keyword argument "x"`},
		{"{{ 1|x if 1 }}", `t:1:6: no filter is named "x"`},
		{"{{ 1[1:] }}", "t:1:5: int cannot be sliced"},
		{"{{ strftime_now('%Q') }}", "t:1:16: strftime_now: %Q is no code of strftime"},
	} {
		tmpl, err := Parse("t", c.src)
		if err == nil {
			_, err = tmpl.Render(nil)
		}
		if err == nil || err.Error() != c.want {
			t.Errorf("%q: got error %v, want %s", c.src, err, c.want)
		}
	}
}

// TestMemory checks that what renders allocate is bounded by the memory they may use.
func TestMemory(t *testing.T) {
	const big = "{% set s = 'a' * 2000000 %}"
	for _, src := range []string{
		`{{ range(100000)|join("z"*100000) }}`,
		`{{ ("z"*100000).join("a" * 100000) }}`,
		`{% set s = "z" * 100000 %}{% for i in range(100000) %}{{ s }}{% endfor %}`,
		`{% set s = "z" * 100000 %}{% set x %}{% for i in range(100000) %}{{ s }}{% endfor %}{% endset %}`,
		`{% set n = namespace(s="") %}{% for i in range(100000) %}{% set n.s = n.s ~ "z" * 100000 %}{% endfor %}`,
		big + "{% for i in range(100) %}{% set x = s|upper|title|lower|capitalize|escape %}{% endfor %}",
		big + "{% for i in range(100) %}{% set x = s.title() ~ s.swapcase() %}{% endfor %}",
		big + "{% for i in range(100) %}{% set x = s|list %}{% endfor %}",
		big + "{% for i in range(100) %}{% set x = s[::2] %}{% endfor %}",
		big + "{% for i in range(100) %}{% set x = s|tojson %}{% endfor %}",
		big + "{% for i in range(100) %}{% set x = [s, s]|string %}{% endfor %}",
		big + "{% for i in range(100) %}{% set x = {(s, s): s} %}{% endfor %}",
		big + "{% for i in range(100) %}{% set x = s|indent(4, true) %}{% endfor %}",
		big + "{% for i in range(100) %}{% set x = s.center(9000000) %}{% endfor %}",
		"{% set s = 'a\n' * 1000000 %}{% for i in range(100) %}{% set x = s.splitlines() %}{% endfor %}",
		"{% set s = 'a ' * 1000000 %}{% for i in range(100) %}{% set x = s.split() %}{% endfor %}",
		"{% set s = 'a ' * 1000000 %}{% for i in range(100) %}{% set x = s.split(' ') %}{% endfor %}",
		"{% set s = '\x01' * 1000000 %}{% for i in range(100) %}{% set x = s|tojson %}{% endfor %}",
		"{% set s = '<' * 1000000 %}{% for i in range(100) %}{% set x = s|escape %}{% endfor %}",
		"{% set l = [] %}{% for i in range(100000) %}{{ l.append({}) }}{{ l.extend([i, i, i, i]) }}{% endfor %}{{ l * 1000 }}",
		"{% for i in range(100000) %}{% set x = range(100000)|sort %}{% endfor %}",
	} {
		tmpl, err := Parse("t", src)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = tmpl.Render(nil)
		runtime.ReadMemStats(&after)
		if got, most := after.TotalAlloc-before.TotalAlloc, uint64(192<<20); !errors.Is(err, ErrLimit) || got > most {
			t.Errorf("%.90q: allocated %d bytes, want at most %d; error %v, want ErrLimit", src, got, most, err)
		}
	}
}

// TestLimits runs templates that would take all time or memory.
func TestLimits(t *testing.T) {
	for _, src := range []string{
		"{{ 'a' * 10**9 }}",
		"{{ 10**18 * 'a' }}",
		"{{ [1] * 9223372036854775807 }}",
		"{{ range(10**9) }}",
		"{{ range(-9223372036854775807, 9223372036854775807)|list }}",
		"{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
		"{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}",
		"{% set n = namespace(s='a') %}{% for i in range(99) %}{% set n.s = n.s + n.s %}{% endfor %}",
		"{% set n = namespace(s=[1]) %}{% for i in range(99) %}{% set n.s = [n.s, n.s] %}{% endfor %}{{ n.s }}",
		"{% set n = namespace(s=[1]) %}{% for i in range(99) %}{% set n.s = [n.s, n.s] %}{% endfor %}{{ n.s|tojson }}",
		"{% set n = namespace(a=[1], b=[1]) %}{% for i in range(99) %}{% set n.a = [n.a, n.a] %}{% set n.b = [n.b, n.b] %}{% endfor %}{{ n.a == n.b }}",
		"{% set n = namespace(s=(1,)) %}{% for i in range(99) %}{% set n.s = (n.s, n.s) %}{% endfor %}{{ {n.s: 1} }}",
		"{% set n = namespace(s=[1]) %}{% for i in range(9999) %}{% set n.s = [n.s] %}{% endfor %}{{ n.s }}",
		"{% set l = [] %}{{ l.append(l) }}{{ l }}",
		"{% set l = [] %}{% set m = [] %}{{ l.append(l) }}{{ m.append(m) }}{{ l == m }}",
		"{% set l = [] %}{% set m = [] %}{{ l.append(l) }}{{ m.append(m) }}{{ [l, m]|sort }}",
		"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
		"{% macro m() %}{{ m() }}{{ m() }}{% endmacro %}{{ m() }}",
		"{% macro m() %}{% call m() %}x{% endcall %}{% endmacro %}{{ m() }}",
		"{{ 1" + strings.Repeat(" + 1", 20000) + " }}",
		"{{ '%999999999d'|format(1) }}",
		"{{ '%*d' % (999999999999, 1) }}",
		"{{ '{:999999999}'.format(1) }}",
		"{{ 'a'|center(10**12) }}",
		"{{ 'a'.ljust(10**12) }}",
		"{{ 'a'.zfill(10**12) }}",
		"{{ 'a'|indent(10**12, true) }}",
		"{{ [1]|tojson(indent=10**12) }}",
		"{{ [1]|batch(10**12, 0)|list }}",
		"{% set s = 'a' * 10**6 %}{{ s.replace('a', s) }}",
		"{% set s = 'a' * 10**6 %}{{ s.join(s) }}",
		"{% set s = 'a' * 10**7 %}{% for i in range(99999) %}{% set x = 'b' in s %}{% endfor %}",
		"{% set s = 'a' * 10**7 %}{% for i in range(99999) %}{% set x = s|length %}{% endfor %}",
		"{% set s = 'a' * 10**7 %}{% for i in range(99999) %}{% set x = s[5] %}{% endfor %}",
		"{% set s = 'a' * 10**7 %}{% for i in range(99999) %}{% set x = s.isdigit() %}{% endfor %}",
		"{% set s = ' a' * 10**7 %}{{ s.split() }}",
		"{% set s = 'b' * 10**6 %}{% for i in range(999) %}{% set x = s.strip('a' * 10**6 ~ 'b') %}{% endfor %}",
		"{% for i in range(99999) %}{{ 'x' * 1000 }}{% endfor %}",
	} {
		tmpl, err := Parse("t", src)
		if err != nil {
			t.Errorf("%q: %v", src, err)
			continue
		}
		// Fewer steps than by default, to be quick where they run out.
		if _, err := tmpl.Render(nil, Limits{Steps: 1 << 21}); !errors.Is(err, ErrLimit) {
			t.Errorf("%.80q: got error %v, want ErrLimit", src, err)
		}
	}
	tmpl, err := Parse("t", "{% macro m(n) %}{% if n %}{{ m(n - 1) }}{% endif %}x{% endmacro %}{{ m(9) }}")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		lim Limits
		ok  bool
	}{
		{Limits{}, true},
		{Limits{Output: 10}, true},
		{Limits{Output: 9}, false},
		{Limits{Steps: 10}, false},
		{Limits{Memory: 9}, false},
		{Limits{Depth: 20}, false},
		{Limits{Depth: 1 << 30}, true},
	} {
		if _, err := tmpl.Render(nil, c.lim); (err == nil) != c.ok || err != nil && !errors.Is(err, ErrLimit) {
			t.Errorf("%+v: got error %v, want success: %v", c.lim, err, c.ok)
		}
	}
}

func TestRenderValues(t *testing.T) {
	tmpl, err := Parse("t", "{{ v }}|{{ v|tojson }}")
	if err != nil {
		t.Fatal(err)
	}
	deep := any(1)
	for range 600 {
		deep = []any{deep}
	}
	for _, c := range []struct {
		in   any
		want string
		err  string
	}{
		{in: nil, want: "None|null"},
		{in: true, want: "True|true"},
		{in: 3, want: "3|3"},
		{in: int32(-3), want: "-3|-3"},
		{in: float32(0.5), want: "0.5|0.5"},
		{in: json.Number("12"), want: "12|12"},
		{in: json.Number("123456789012345678901"), want: "123456789012345678901|123456789012345678901"},
		{in: json.Number("1e2"), want: "100.0|100.0"},
		{in: "a\xff", want: "a\uFFFD|\"a\uFFFD\""},
		{in: []string{"a"}, want: `['a']|["a"]`},
		{in: map[string]any{"b": 1, "a": nil}, want: `{'a': None, 'b': 1}|{"a": null, "b": 1}`},
		{in: Object{{"b", 1}, {"a", 2}, {"b", 3}}, want: `{'b': 3, 'a': 2}|{"b": 3, "a": 2}`},
		{in: json.RawMessage(` {"b": [1, -0.0, 1e400], "a": {}} `), want: `{'b': [1, -0.0, inf], 'a': {}}|{"b": [1, -0.0, Infinity], "a": {}}`},
		{in: json.RawMessage(`{"a": 1} 2`), err: "expected the end after the value"},
		{in: json.RawMessage(`{"a": `), err: "unexpected EOF"},
		{in: json.RawMessage(strings.Repeat("[", 600)), err: "nested more than 500 levels deep"},
		{in: json.Number("1x"), err: "expected an integer or a float"},
		{in: deep, err: "nested more than 500 levels deep"},
		{in: struct{}{}, err: "type struct {} is not supported"},
		{in: []any{Object{{"f", func() {}}}}, err: `variable "v": item 0: field "f": type func() is not supported`},
	} {
		got, err := tmpl.Render(map[string]any{"v": c.in})
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%v: got error %v, want %q", c.in, err, c.err)
			}
		} else if err != nil || got != c.want {
			t.Errorf("%v: got %q, error %v, want %q", c.in, got, err, c.want)
		}
	}
}

// TestMutation checks what templates may change: their own copies.
func TestMutation(t *testing.T) {
	tmpl, err := Parse("t", "{{ v.l.append(3) }}{{ v.l.pop(0) }}{{ v.l.insert(0, 9) }}{{ v.update({'k': 1}) }}{{ v.pop('a') }}{{ v }}")
	if err != nil {
		t.Fatal(err)
	}
	v := Object{{"a", 1}, {"l", []any{1, 2}}}
	want := "None1NoneNone1{'l': [9, 2, 3], 'k': 1}"
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 10 {
				if got, err := tmpl.Render(map[string]any{"v": v}); err != nil || got != want {
					t.Errorf("got %q, error %v, want %q", got, err, want)
				}
			}
		})
	}
	wg.Wait()
}

// FuzzRender looks for panics and for renders that overrun their limits.
func FuzzRender(f *testing.F) {
	var cases []jinjaCase
	readJSON(f, "jinja.json", &cases)
	for _, c := range cases {
		f.Add(c.Template)
	}
	messages := []Object{
		{{"role", "user"}, {"content", "Hi <b>ünï</b>"}},
		{{"role", "assistant"}, {"content", nil}, {"tool_calls", []any{Object{{"name", "f"}, {"arguments", Object{{"x", 1.5}}}}}}},
	}
	f.Fuzz(func(t *testing.T, src string) {
		tmpl, err := Parse("t", src)
		if err != nil {
			var at *Error
			if !errors.As(err, &at) {
				t.Fatalf("parse error without a place: %v", err)
			}
			return
		}
		lim := Limits{Steps: 100_000, Memory: 1 << 20, Output: 1 << 16}
		start := time.Now()
		out, err := tmpl.Render(map[string]any{"messages": messages, "n": 3, "s": "a,b"}, lim)
		if took := time.Since(start); took > 2*time.Second {
			t.Fatalf("took %v", took)
		}
		if len(out) > lim.Output {
			t.Fatalf("%d bytes of output", len(out))
		}
		var at *Error
		var raise *RaiseError
		if err != nil && !errors.As(err, &at) && !errors.As(err, &raise) {
			t.Fatalf("error without a place: %v", err)
		}
	})
}
