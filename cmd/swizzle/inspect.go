package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

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
    swizzle inspect model.gguf --json | jq '.metadata["llama.context_length"].value'`
}

// Run prints what the file holds.
func (c *inspectCmd) Run() error {
	f, err := gguf.Open(c.File)
	if err != nil {
		return err
	}
	defer f.Close()
	if c.JSON {
		return printJSON(inspectJSON(f))
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

	fmt.Printf("\nmetadata: %d keys\n", len(f.Keys()))
	rows = nil
	for _, key := range f.Keys() {
		v, _ := f.Value(key)
		rows = append(rows, []string{"  " + printable(key), valueType(v), v.String()})
	}
	if err := printTable(rows); err != nil {
		return err
	}

	fmt.Printf("\ntensors: %d\n", len(f.Tensors()))
	rows = nil
	for _, t := range f.Tensors() {
		rows = append(rows, []string{"  " + printable(t.Name), t.Type.String(), shape(t), formatBytes(uint64(len(t.Data)))})
	}
	return printTable(rows)
}

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

// inspection is what inspect --json prints.
type inspection struct {
	File     string                  `json:"file"`
	Version  uint32                  `json:"version"`
	Bytes    int64                   `json:"bytes"`
	Metadata map[string]metadataJSON `json:"metadata"`
	Tensors  []tensorJSON            `json:"tensors"`
}

// metadataJSON is a value; of an array the first elements, and how many there are.
type metadataJSON struct {
	Type  string `json:"type"`
	Len   *int   `json:"len,omitempty"`
	Value any    `json:"value"`
}

type tensorJSON struct {
	Name   string   `json:"name"`
	Type   string   `json:"type"`
	Dims   []uint64 `json:"dims"` // the length of a row first
	Bytes  int      `json:"bytes"`
	Offset uint64   `json:"offset"` // in its file
	Shard  int      `json:"shard"`
}

func inspectJSON(f *gguf.File) inspection {
	in := inspection{File: f.Path(), Version: f.Version(), Bytes: f.Size(), Metadata: map[string]metadataJSON{}, Tensors: []tensorJSON{}}
	for _, key := range f.Keys() {
		v, _ := f.Value(key)
		m := metadataJSON{Type: valueType(v), Value: jsonValue(f, key, v)}
		if v.Type == gguf.ValueArray {
			m.Len = &v.Len
		}
		in.Metadata[key] = m
	}
	for _, t := range f.Tensors() {
		in.Tensors = append(in.Tensors, tensorJSON{t.Name, t.Type.String(), t.Dims, len(t.Data), t.Offset, t.Shard})
	}
	return in
}

// jsonValue returns the value of a key for encoding/json. What JSON can't hold, such as NaN, is text.
func jsonValue(f *gguf.File, key string, v gguf.Value) any {
	switch v.Type {
	case gguf.ValueString:
		s, _, _ := f.String(key)
		return s
	case gguf.ValueArray:
		if strs, _, err := f.Strings(key); err == nil {
			return strs[:min(len(strs), shownElems)]
		}
		if ints, _, err := f.Ints(key); err == nil {
			return ints[:min(len(ints), shownElems)]
		}
	}
	if text := v.String(); json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return v.String()
}

// shownElems is how many elements of an array inspect --json prints.
const shownElems = 8
