package kernel

import (
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"slices"
	"strings"
)

// Manifest lists the generated kernels with the hashes of their files.
type Manifest struct {
	Comment string               `json:"comment"`
	Set     string               `json:"set"` // BLAKE3 of every entry's name and hash, in order
	Ops     map[string]Interface `json:"ops"`
	Kernels []Entry              `json:"kernels"`
}

// Interface is what the kernels of an op have in common, whatever runs them. Its fields are those of [Kernel].
type Interface struct {
	Source string  `json:"source"`
	Pack   string  `json:"pack,omitempty"`
	Layout *Layout `json:"layout,omitempty"`
	Params []Param `json:"params"`
}

// Entry is one generated kernel. A GPU's has what is needed to launch it.
type Entry struct {
	Name    string   `json:"name"`
	File    string   `json:"file"`             // below generated/
	BLAKE3  string   `json:"blake3"`           // of the text
	Serves  []string `json:"serves,omitempty"` // further architectures, whose kernel is the same
	Threads int      `json:"threads,omitempty"`
	Tiles   int      `json:"tiles,omitempty"`
	Shared  int      `json:"shared,omitempty"`
	Grid    []Axis   `json:"grid,omitempty"`
}

// Names returns the names of the kernels that the entry stands for: its own and those of the architectures that it serves.
func (e Entry) Names() ([]Name, error) {
	n, err := ParseName(e.Name)
	if err != nil {
		return nil, fmt.Errorf("manifest: %w", err)
	}
	names := []Name{n}
	for _, arch := range e.Serves {
		names = append(names, Name{n.Op, n.Config, arch})
	}
	return names, nil
}

// GPU returns the kernels of GPUs, in the manifest's order.
func (m *Manifest) GPU() ([]Kernel, error) {
	var list []Kernel
	for _, e := range m.Kernels {
		if e.Threads == 0 {
			continue
		}
		names, err := e.Names()
		if err != nil {
			return nil, err
		}
		for _, n := range names {
			op, ok := m.Ops[n.Op]
			if !ok || e.Tiles < 1 {
				return nil, fmt.Errorf("manifest: kernel %s: op known: %v; %d tiles a block", n, ok, e.Tiles)
			}
			k := Kernel{Name: n, Source: op.Source, Pack: op.Pack, Params: op.Params, Grid: e.Grid, Shared: e.Shared, Launch: &Launch{e.File, e.Threads, e.Tiles}}
			if op.Layout != nil {
				k.Layout = *op.Layout
			}
			list = append(list, k)
		}
	}
	return list, nil
}

// Target returns the backend that printed the kernel, which is the first element of its file's path.
func (e Entry) Target() string {
	target, _, _ := strings.Cut(e.File, "/")
	return target
}

// Text returns the kernel as its backend printed it. Not every file is among the generated files of a program: what it
// links as code lies in its source only, and gives an error that is [fs.ErrNotExist].
func (e Entry) Text(generated fs.FS) (string, error) {
	text, err := fs.ReadFile(generated, e.File)
	if err != nil {
		return "", fmt.Errorf("kernel %s: %w", e.Name, err)
	}
	return string(text), nil
}

// ReadManifest reads manifest.json of the generated files.
func ReadManifest(generated fs.FS) (*Manifest, error) {
	m := new(Manifest)
	return m, readJSON(generated, "manifest.json", m)
}

func readJSON(files fs.FS, name string, to any) error {
	text, err := fs.ReadFile(files, name)
	if err != nil {
		return fmt.Errorf("generated files: %w", err)
	}
	if err := json.Unmarshal(text, to); err != nil {
		return fmt.Errorf("generated files: %s: %w", name, err)
	}
	return nil
}

// IR returns the kernel's text in the kernel language from the generated files, without what it computes twice or never
// uses. The text is named without the architecture; architectures whose schedules agree share one.
func (k *Kernel) IR(generated fs.FS) (string, error) {
	file := IRFile(k.Source)
	text, err := readGzip(generated, file)
	if err != nil {
		return "", fmt.Errorf("kernel %s: %s: %w", k.Name, file, err)
	}
	for entry := range strings.SplitSeq(text, "\n\n") {
		head, body, _ := strings.Cut(entry, "\n")
		if slices.Contains(strings.Fields(head), k.Name.String()) {
			return numbers(strings.TrimRight(body, "\n")) + "\n", nil
		}
	}
	return "", fmt.Errorf("kernel %s: %s doesn't have it", k.Name, file)
}

func readGzip(files fs.FS, name string) (string, error) {
	f, err := files.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		return "", err
	}
	text, err := io.ReadAll(z)
	return string(text), err
}

// IRFile returns where the texts of the kernels of an op's source file lie below generated/: gzip over entries separated by
// empty lines, each a comment with the names of the kernels and then their text with [Distances] for numbers.
func IRFile(source string) string { return "ir/" + strings.TrimSuffix(source, ".go") + ".ir.gz" }
