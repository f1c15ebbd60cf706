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
	Comment string  `json:"comment"`
	Set     string  `json:"set"` // BLAKE3 of every entry's name and hash, in order
	Kernels []Entry `json:"kernels"`
}

// Entry is one generated kernel.
type Entry struct {
	Name   string `json:"name"`
	File   string `json:"file"`   // below generated/
	BLAKE3 string `json:"blake3"` // of the file
}

// Report lists the configs that were not generated.
type Report struct {
	Comment  string      `json:"comment"`
	Rejected []Rejection `json:"rejected"`
}

// Rejection is one config that a target can't have.
type Rejection struct {
	Op      string `json:"op"`
	Config  string `json:"config"`
	Arch    string `json:"arch"`
	Line    string `json:"line,omitempty"` // of the op's source
	Message string `json:"message"`
}

// ReadManifest reads manifest.json of the generated files.
func ReadManifest(generated fs.FS) (*Manifest, error) {
	m := new(Manifest)
	return m, readJSON(generated, "manifest.json", m)
}

// ReadReport reads report.json of the generated files.
func ReadReport(generated fs.FS) (*Report, error) {
	r := new(Report)
	return r, readJSON(generated, "report.json", r)
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
			return strings.TrimRight(body, "\n") + "\n", nil
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
// empty lines, each a comment with the names of the kernels and then their text.
func IRFile(source string) string { return "ir/" + strings.TrimSuffix(source, ".go") + ".ir.gz" }
