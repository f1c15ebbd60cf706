package template

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"sort"
	"strconv"
	"strings"
)

// Object is a JSON object, or a dict, whose entries keep their order. Of two
// entries with one name the last counts.
type Object []Field

// Field is one entry of an Object. Value is what Template.Render takes.
type Field struct {
	Name  string
	Value any
}

// maxInputNesting bounds the nesting of values given to a template.
const maxInputNesting = 500

// DecodeJSON decodes one JSON value with its key order kept: nil, bool, int64,
// json.Number (an integer beyond 64 bits), float64, string, []any or Object.
func DecodeJSON(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	v, err := decodeJSON(d, 0)
	if err != nil {
		return nil, fmt.Errorf("decode JSON at byte %d: %w", d.InputOffset(), err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("decode JSON at byte %d: expected the end after the value", d.InputOffset())
	}
	return v, nil
}

func decodeJSON(d *json.Decoder, depth int) (any, error) {
	if depth > maxInputNesting {
		return nil, fmt.Errorf("nested more than %d levels deep", maxInputNesting)
	}
	tok, err := d.Token()
	if err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	if err != nil {
		return nil, err
	}
	switch tok := tok.(type) {
	case json.Number:
		return decodeNumber(tok)
	case json.Delim:
		if tok == '[' {
			items := []any{}
			for d.More() {
				v, err := decodeJSON(d, depth+1)
				if err != nil {
					return nil, err
				}
				items = append(items, v)
			}
			_, err := d.Token()
			return items, err
		}
		obj := Object{}
		for d.More() {
			key, err := d.Token()
			if err != nil {
				return nil, err
			}
			v, err := decodeJSON(d, depth+1)
			if err != nil {
				return nil, err
			}
			obj = append(obj, Field{key.(string), v})
		}
		_, err := d.Token()
		return obj, err
	}
	return tok, nil
}

// decodeNumber returns an int64, a float64, or the number itself where it is an
// integer beyond 64 bits.
func decodeNumber(n json.Number) (any, error) {
	if !strings.ContainsAny(string(n), ".eE") {
		if i, err := strconv.ParseInt(string(n), 10, 64); err == nil {
			return i, nil
		}
		if _, ok := new(big.Int).SetString(string(n), 10); ok {
			return n, nil
		}
	}
	f, err := strconv.ParseFloat(string(n), 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return nil, fmt.Errorf("number %q: expected an integer or a float", string(n))
	}
	return f, nil
}

// fromHost copies a value of the host into the interpreter.
func fromHost(v any, depth int) (value, error) {
	if depth > maxInputNesting {
		return nil, fmt.Errorf("nested more than %d levels deep", maxInputNesting)
	}
	switch v := v.(type) {
	case nil, bool, int64, float64:
		return v, nil
	case string:
		return strings.ToValidUTF8(v, "\uFFFD"), nil
	case int:
		return int64(v), nil
	case int32:
		return int64(v), nil
	case float32:
		return float64(v), nil
	case json.Number:
		n, err := decodeNumber(v)
		if big, ok := n.(json.Number); ok {
			return bigInt(big), err
		}
		return n, err
	case json.RawMessage:
		decoded, err := DecodeJSON(v)
		if err != nil {
			return nil, err
		}
		return fromHost(decoded, depth)
	case Object:
		return fromFields(v, depth)
	case map[string]any:
		fields := make(Object, 0, len(v))
		for name, val := range v {
			fields = append(fields, Field{name, val})
		}
		sort.Slice(fields, func(i, j int) bool { return fields[i].Name < fields[j].Name })
		return fromFields(fields, depth)
	case []any:
		return fromSlice(v, depth)
	case []string:
		return fromSlice(v, depth)
	case []Object:
		return fromSlice(v, depth)
	case []map[string]any:
		return fromSlice(v, depth)
	}
	return nil, fmt.Errorf("type %T is not supported: expected nil, a bool, a number, a string, a slice, a map or an Object", v)
}

func fromFields(fields Object, depth int) (value, error) {
	d := newDict()
	for _, f := range fields {
		v, err := fromHost(f.Value, depth+1)
		if err != nil {
			return nil, fmt.Errorf("field %q: %w", f.Name, err)
		}
		d.setString(strings.ToValidUTF8(f.Name, "\uFFFD"), v)
	}
	return d, nil
}

func fromSlice[T any](s []T, depth int) (value, error) {
	l := &list{make([]value, len(s))}
	for i, item := range s {
		var err error
		if l.items[i], err = fromHost(item, depth+1); err != nil {
			return nil, fmt.Errorf("item %d: %w", i, err)
		}
	}
	return l, nil
}
