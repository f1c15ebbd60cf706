package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/swizzle-rt/swizzle/runtime/gguf"
)

type inspectCmd struct {
	File string `arg:"" help:"GGUF file; of a split model the first."`
	JSON bool   `name:"json" help:"Print JSON."`
}

// Help gives the examples of --help.
func (*inspectCmd) Help() string {
	return `Examples:

    swizzle inspect model.gguf
    swizzle inspect model.gguf --json | jq '.metadata["llama.context_length"].value'

JSON has the length and the first elements of an array, and the value of anything else. A key that is no valid UTF-8 is quoted.`
}

// Run prints what the file holds.
func (c *inspectCmd) Run() error {
	f, err := gguf.Open(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	if c.JSON {
		return printInspectionJSON(f)
	}
	return printInspection(f)
}

func printInspection(f *gguf.File) error {
	var params uint64
	for _, t := range f.Tensors() {
		params += elements(t)
	}
	rows := [][]string{
		{"file", printable(f.Path())},
		{"format", fmt.Sprintf("GGUF version %d", f.Version())},
		{"size", formatBytes(uint64(f.Size()))},
		{"parameters", formatCount(params)},
		{"types", strings.Join(typeCounts(f), ", ")},
	}
	if err := printTable(rows); err != nil {
		return err
	}

	// A file may hold many keys and tensors: no table is kept.
	w := bufio.NewWriter(os.Stdout)
	fmt.Fprintf(w, "\nmetadata: %d keys\n", len(f.Keys()))
	width := 0
	for _, key := range f.Keys() {
		width = max(width, min(utf8.RuneCountInString(printable(key)), maxColumn))
	}
	for _, key := range f.Keys() {
		v, _ := f.Value(key)
		fmt.Fprintf(w, "  %-*s  %-13s  %s\n", width, printable(key), valueType(v), v)
	}
	fmt.Fprintf(w, "\ntensors: %d\n", len(f.Tensors()))
	width = 0
	for _, t := range f.Tensors() {
		width = max(width, min(utf8.RuneCountInString(printable(t.Name)), maxColumn))
	}
	for _, t := range f.Tensors() {
		fmt.Fprintf(w, "  %-*s  %-6s  %-14s  %s\n", width, printable(t.Name), t.Type, shape(t), formatBytes(uint64(len(t.Data))))
	}
	return w.Flush()
}

// maxColumn bounds the width of a column of names.
const maxColumn = 48

// typeCounts returns how many tensors there are of each type, in the order of the file.
func typeCounts(f *gguf.File) []string {
	counts := map[gguf.Type]int{}
	var types []gguf.Type
	for _, t := range f.Tensors() {
		if counts[t.Type] == 0 {
			types = append(types, t.Type)
		}
		counts[t.Type]++
	}
	var texts []string
	for _, t := range types {
		texts = append(texts, fmt.Sprintf("%d × %s", counts[t], t))
	}
	return texts
}

func elements(t *gguf.Tensor) uint64 { return t.Rows() * t.Cols() }

// shape returns the dimensions, the length of a row first.
func shape(t *gguf.Tensor) string {
	var texts []string
	for _, d := range t.Dims {
		texts = append(texts, strconv.FormatUint(d, 10))
	}
	return strings.Join(texts, " × ")
}

func valueType(v gguf.Value) string {
	if v.Type == gguf.ValueArray {
		return fmt.Sprintf("%s[%d]", v.Elem, v.Len)
	}
	return v.Type.String()
}

// metadataJSON is a scalar, or of an array the length and the first elements.
type metadataJSON struct {
	Type  string `json:"type"`
	Value any    `json:"value,omitempty"`
	Len   *int   `json:"len,omitempty"`
	First []any  `json:"first,omitzero"`
}

func newMetadataJSON(v gguf.Value) metadataJSON {
	m := metadataJSON{Type: valueType(v)}
	if v.Type != gguf.ValueArray {
		m.Value = jsonValue(v)
		return m
	}
	m.Len, m.First = &v.Len, []any{}
	for _, elem := range v.First(shownElems) {
		m.First = append(m.First, jsonValue(elem))
	}
	return m
}

type tensorJSON struct {
	Name   string   `json:"name"`
	Type   string   `json:"type"`
	Dims   []uint64 `json:"dims"` // the length of a row first
	Bytes  int      `json:"bytes"`
	Offset uint64   `json:"offset"` // in its file
	Shard  int      `json:"shard"`
}

// printInspectionJSON prints an object of file, version, bytes, metadata (an object of metadataJSON by key) and tensors (an
// array of tensorJSON), piece by piece.
func printInspectionJSON(f *gguf.File) error {
	w := bufio.NewWriter(os.Stdout)
	fmt.Fprintf(w, "{\n  \"file\": %s,\n  \"version\": %d,\n  \"bytes\": %d,\n  \"metadata\": {", compactJSON(f.Path()), f.Version(), f.Size())
	for i, key := range f.Keys() {
		v, _ := f.Value(key)
		fmt.Fprintf(w, "%s\n    %s: %s", separator(i), compactJSON(jsonText(key)), compactJSON(newMetadataJSON(v)))
	}
	fmt.Fprint(w, "\n  },\n  \"tensors\": [")
	for i, t := range f.Tensors() {
		fmt.Fprintf(w, "%s\n    %s", separator(i), compactJSON(tensorJSON{jsonText(t.Name), t.Type.String(), t.Dims, len(t.Data), t.Offset, t.Shard}))
	}
	fmt.Fprint(w, "\n  ]\n}\n")
	return w.Flush()
}

// separator stands before element i of a JSON object or array.
func separator(i int) string {
	if i == 0 {
		return ""
	}
	return ","
}

// compactJSON returns a value that JSON can hold.
func compactJSON(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		panic(err) // of strings and numbers that jsonValue has checked
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// jsonText returns a key or name for encoding/json, which would make the same of all invalid UTF-8: such a text is quoted as in
// Go, and so is one that looks as if it were.
func jsonText(s string) string {
	if utf8.ValidString(s) && !strings.HasPrefix(s, `"`) {
		return s
	}
	return strconv.Quote(s)
}

// jsonValue returns a scalar for encoding/json. What JSON can't hold, such as NaN, is text.
func jsonValue(v gguf.Value) any {
	if v.Type == gguf.ValueString {
		return v.Text()
	}
	if text := v.String(); json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return v.String()
}

// shownElems is how many elements of an array inspect --json prints.
const shownElems = 8
