package tune

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/swizzle-rt/swizzle/runtime/dispatch"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// Problem is one op on one shape: M rows with other operands of N and K (see dispatch.Shape).
type Problem struct {
	Op string `json:"op"`
	N  int    `json:"n"`
	K  int    `json:"k"`
	M  int    `json:"m"`
}

func (p Problem) compare(q Problem) int {
	return cmp.Or(cmp.Compare(p.Op, q.Op), cmp.Compare(p.N, q.N), cmp.Compare(p.K, q.K), cmp.Compare(p.M, q.M))
}

// Entry is a line of a profile: one problem, with the result of every candidate.
type Entry struct {
	Problem
	From     int           `json:"from"`     // rows that the answer holds for
	To       int           `json:"to"`       //
	Default  []string      `json:"default"`  // kernels in the order they take rows
	Winner   []string      `json:"winner"`   // the same as Default where nothing displaced it
	Bytes    int64         `json:"bytes"`    // that must be read and written at least
	Ops      int64         `json:"ops"`      // multiplications and additions
	Bound    float64       `json:"bound_ns"` // no time can be less, by the limits
	Limits   Limits        `json:"limits"`
	Date     time.Time     `json:"date"`
	Measured []Measurement `json:"measured"` // the default first
}

// Measurement is what became of one candidate. Times are nanoseconds; those that were not measured are 0.
type Measurement struct {
	Kernels []string `json:"kernels"`
	Median  float64  `json:"median_ns,omitempty"`
	Q1      float64  `json:"q1_ns,omitempty"` // first and third quartile
	Q3      float64  `json:"q3_ns,omitempty"`
	Samples int      `json:"samples,omitempty"`
	Bound   float64  `json:"bound_ns,omitempty"` // by the limits and the kernels' own speed
	Reason  string   `json:"reason"`             // why it was chosen or not
}

// Of returns the measurement of a candidate.
func (e *Entry) Of(kernels []string) (Measurement, bool) {
	i := slices.IndexFunc(e.Measured, func(m Measurement) bool { return slices.Equal(m.Kernels, kernels) })
	if i < 0 {
		return Measurement{}, false
	}
	return e.Measured[i], true
}

// Gain returns by which part the winner is faster than the default: 0.25 where it takes four fifths of the time.
func (e *Entry) Gain() float64 {
	d, _ := e.Of(e.Default)
	w, _ := e.Of(e.Winner)
	if w.Median <= 0 {
		return 0
	}
	return d.Median/w.Median - 1
}

// Efficiency returns the part of the roofline that the winner reaches.
func (e *Entry) Efficiency() float64 {
	w, _ := e.Of(e.Winner)
	if w.Median <= 0 {
		return 0
	}
	return e.Bound / w.Median
}

// valid reports whether an entry read from a file makes sense.
func (e *Entry) valid() bool {
	names := slices.Concat(e.Default, e.Winner)
	for _, n := range names {
		if k, err := kernel.ParseName(n); err != nil || k.Op != e.Op {
			return false
		}
	}
	return e.N > 0 && e.K > 0 && 0 < e.From && e.From <= e.M && e.M <= e.To && len(e.Default) > 0 && len(e.Winner) > 0 && len(names) <= maxNames
}

// Bounds of what is read.
const (
	maxNames = 64
	maxFile  = 64 << 20
)

// Profile holds the entries of one key.
type Profile struct {
	Key     Key
	Path    string
	Ignored int // lines of the file that were of no use: damaged, or of another key
	entries map[Problem]Entry
}

// line is a line of the file: an entry and the key that it is for. The device is there as part of the hash alone.
type line struct {
	Schema  int    `json:"schema"`
	Key     string `json:"key"`
	Kernels string `json:"kernels"`
	Entry
}

// Load reads the key's profile from a directory; without a file it is empty. Lines that are damaged or of another key are
// ignored. The error is one of the file system.
func Load(dir string, key Key) (*Profile, error) {
	p := &Profile{Key: key, Path: filepath.Join(dir, key.ID()+".json"), entries: map[Problem]Entry{}}
	c, err := readFile(p.Path, key)
	if err != nil {
		return p, err
	}
	p.entries, p.Ignored = c.own, len(c.others)+c.damaged
	return p, nil
}

// contents is what a file holds, seen by one key.
type contents struct {
	own     map[Problem]Entry
	others  [][]byte // whole lines that are definitely another key's
	damaged int
}

func readFile(path string, key Key) (contents, error) {
	c := contents{own: map[Problem]Entry{}}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err != nil {
		return c, fmt.Errorf("profile: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return c, fmt.Errorf("profile: %w", err)
	}
	if len(text) > maxFile {
		c.damaged++
		return c, nil
	}
	id := key.ID()
	for text := range bytes.SplitSeq(text, []byte("\n")) {
		if len(bytes.TrimSpace(text)) == 0 {
			continue
		}
		var l line
		if err := json.Unmarshal(text, &l); err != nil || l.Schema != key.Schema || l.Key == "" || l.Kernels == "" || !l.valid() {
			c.damaged++
			continue
		}
		if l.Key != id || l.Kernels != key.Kernels {
			c.others = append(c.others, bytes.Clone(text))
			continue
		}
		c.own[l.Problem] = l.Entry
	}
	return c, nil
}

// Entry returns the entry of a problem.
func (p *Profile) Entry(q Problem) (Entry, bool) {
	e, ok := p.entries[q]
	return e, ok
}

// Covering returns the entry whose range of rows m is in, if there is one.
func (p *Profile) Covering(s dispatch.Shape, m int) (Entry, bool) {
	for _, e := range p.entries {
		if e.Op == s.Op && e.N == s.N && e.K == s.K && e.From <= m && m <= e.To {
			return e, true
		}
	}
	return Entry{}, false
}

// Entries returns all entries in order.
func (p *Profile) Entries() []Entry {
	list := make([]Entry, 0, len(p.entries))
	for _, e := range p.entries {
		list = append(list, e)
	}
	slices.SortFunc(list, func(a, b Entry) int { return a.compare(b.Problem) })
	return list
}

// Put adds an entry, in place of one of the same problem.
func (p *Profile) Put(e Entry) { p.entries[e.Problem] = e }

// Choice returns the orders that displaced the default.
func (p *Profile) Choice() dispatch.Choice {
	c := dispatch.Choice{}
	for _, e := range p.entries {
		if slices.Equal(e.Winner, e.Default) {
			continue
		}
		o := dispatch.Order{From: e.From, To: e.To}
		for _, n := range e.Winner {
			k, err := kernel.ParseName(n)
			if err != nil {
				panic(err) // not reached: entries are checked when they are read, and made of kernels
			}
			o.Kernels = append(o.Kernels, k)
		}
		s := dispatch.Shape{Op: e.Op, N: e.N, K: e.K}
		c[s] = append(c[s], o)
	}
	return c
}

// Save writes the profile: its entries, those that another process has added since, and other keys' lines as they stand.
// What was damaged is gone afterwards. Readers see the file before or after, never a part of it.
func (p *Profile) Save() (err error) {
	dir := filepath.Dir(p.Path)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	unlock, err := lock(p.Path + ".lock")
	if err != nil {
		return fmt.Errorf("profile %s: %w", p.Path, err)
	}
	defer unlock()
	c, err := readFile(p.Path, p.Key)
	if err != nil {
		return err
	}
	for q, e := range c.own {
		if _, ok := p.entries[q]; !ok {
			p.entries[q] = e
		}
	}
	lines := c.others
	for _, e := range p.Entries() {
		text, err := json.Marshal(line{p.Key.Schema, p.Key.ID(), p.Key.Kernels, e})
		if err != nil {
			return fmt.Errorf("profile: %s: %w", e.Op, err)
		}
		lines = append(lines, text)
	}
	return replaceFile(p.Path, append(bytes.Join(lines, []byte("\n")), '\n'))
}

// replaceFile puts text in place of the file.
func replaceFile(path string, text []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*.tmp")
	if err != nil {
		return fmt.Errorf("profile: %w", err)
	}
	_, err = f.Write(text)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("profile %s: %w", path, errors.Join(err, os.Remove(f.Name())))
	}
	return nil
}
