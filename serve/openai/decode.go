package openai

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// Limits on the JSON of a request, which bound the memory that decoding takes.
const (
	maxDepth  = 64
	maxValues = 1 << 20
)

// Decode decodes a request, a JSON object, into the struct that v points to. It refuses what encoding/json would let pass:
// invalid UTF-8, escapes of half a surrogate pair, keys that occur twice in an object, and null in place of the object.
// Unknown keys are ignored, as OpenAI's clients send new ones all the time. The error is an *[Error].
func Decode(data []byte, v any) error {
	body := bytes.TrimLeft(data, " \t\r\n")
	if len(body) == 0 {
		return Invalid("", "the request has no body, want a JSON object")
	}
	if body[0] != '{' {
		return Invalid("", "the body is not a JSON object")
	}
	if err := lint(data); err != nil {
		return err
	}
	return explain(json.Unmarshal(data, v))
}

// explain turns an error of encoding/json into an Error that names the parameter.
func explain(err error) error {
	var (
		own    *Error
		syntax *json.SyntaxError
		typ    *json.UnmarshalTypeError
	)
	switch {
	case err == nil:
		return nil
	case errors.As(err, &own):
		return own
	case errors.As(err, &syntax):
		return Invalid("", "the body is not valid JSON: %v, at byte %d", syntax, syntax.Offset)
	case errors.As(err, &typ):
		param := strings.TrimPrefix(typ.Field, reflect.TypeFor[Generation]().Name()+".")
		return Invalid(param, "got %s, want %s", shorten(typ.Value), describe(typ.Type))
	}
	return Invalid("", "the body cannot be decoded: %v", err)
}

// shorten cuts what a message quotes of a request.
func shorten(s string) string {
	const most = 60
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}

// describe returns the JSON that decodes into a Go type, in words.
func describe(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return describe(t.Elem())
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int32:
		return "an integer"
	case reflect.Float64:
		return "a number"
	case reflect.String:
		return "a string"
	case reflect.Slice:
		return "an array"
	}
	return "an object"
}

// lint reports what encoding/json accepts and a request must not have. It takes no care of the grammar: where data is not
// JSON it may report nothing, since encoding/json will.
func lint(data []byte) error {
	if !utf8.Valid(data) {
		return Invalid("", "the body is not valid UTF-8")
	}
	var open []map[string]bool // the keys of each object around the value at hand; nil for an array
	values := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '{', '[':
			if len(open) == maxDepth {
				return Invalid("", "the body nests deeper than %d", maxDepth)
			}
			var keys map[string]bool
			if data[i] == '{' {
				keys = map[string]bool{}
			}
			open = append(open, keys)
			values++
		case '}', ']':
			if len(open) == 0 {
				return nil
			}
			open = open[:len(open)-1]
		case ',':
			values++
		case '"':
			text := quoted(data[i:])
			if halfSurrogate(text) {
				return Invalid("", "a string in the body has half of a surrogate pair, at byte %d", i)
			}
			at := i
			i += len(text) - 1
			rest := bytes.TrimLeft(data[i+1:], " \t\r\n")
			if len(rest) == 0 || rest[0] != ':' || len(open) == 0 || open[len(open)-1] == nil {
				break
			}
			var key string
			if json.Unmarshal(text, &key) != nil {
				return nil
			}
			keys := open[len(open)-1]
			if keys[key] {
				return Invalid("", "the key %q occurs twice in one object, at byte %d", shorten(key), at)
			}
			keys[key] = true
		}
		if values > maxValues {
			return Invalid("", "the body has more than %d values", maxValues)
		}
	}
	return nil
}

// quoted returns the JSON string that data begins with, to its closing quote or to the end if there is none.
func quoted(data []byte) []byte {
	for i := 1; i < len(data); i++ {
		switch data[i] {
		case '\\':
			i++
		case '"':
			return data[:i+1]
		}
	}
	return data
}

// halfSurrogate reports whether a JSON string has an escaped surrogate without its other half.
func halfSurrogate(text []byte) bool {
	for {
		i := bytes.IndexByte(text, '\\')
		if i < 0 || i+1 >= len(text) {
			return false
		}
		r := escaped(text[i:])
		switch {
		case !utf16.IsSurrogate(r):
			text = text[i+2:]
		case utf16.DecodeRune(r, escaped(text[i+6:])) == utf8.RuneError:
			return true
		default:
			text = text[i+12:]
		}
	}
}

// escaped returns the code unit of the \uXXXX that text begins with, or −1.
func escaped(text []byte) rune {
	if len(text) < 6 || text[0] != '\\' || text[1] != 'u' {
		return -1
	}
	unit, err := strconv.ParseUint(string(text[2:6]), 16, 16)
	if err != nil {
		return -1
	}
	return rune(unit)
}
