package perplexity

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// appendHeader appends what precedes the rows of a base.
func appendHeader(b []byte, context, vocab, chunks uint32, tokens ...int32) []byte {
	b = append(b, baseMagic...)
	for _, v := range []uint32{context, vocab, chunks} {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	for _, id := range tokens {
		b = binary.LittleEndian.AppendUint32(b, uint32(id))
	}
	return b
}

// appendRow appends a row; codes are as many as the vocabulary, or one more if it is odd.
func appendRow(b []byte, scale, least float32, codes ...uint16) []byte {
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(scale))
	b = binary.LittleEndian.AppendUint32(b, math.Float32bits(least))
	for _, c := range codes {
		b = binary.LittleEndian.AppendUint16(b, c)
	}
	return b
}

// sampleBase is a base of two chunks of five tokens, of three: each scores two positions.
func sampleBase() []byte {
	b := appendHeader(nil, 5, 3, 2, 0, 1, 2, 0, 1, 2, 1, 0, 2, 1)
	half, fourth := float32(math.Log(0.5)), float32(math.Log(0.25))
	for range 2 {
		b = appendRow(b, (half-fourth)/65535, fourth, 0, 65535, 0, 9)
		b = appendRow(b, 0, float32(math.Log(1./3)), 0, 0, 0, 9)
	}
	return b
}

func openBase(t *testing.T, data []byte) (*Base, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "base.kld")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := OpenBase(path)
	if err == nil {
		t.Cleanup(func() {
			if err := b.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return b, err
}

func TestBase(t *testing.T) {
	b, err := openBase(t, sampleBase())
	if err != nil {
		t.Fatal(err)
	}
	if b.Context != 5 || b.Vocab != 3 || b.Chunks != 2 {
		t.Errorf("%d tokens of %d in %d chunks", b.Context, b.Vocab, b.Chunks)
	}
	if diff := cmp.Diff([]int32{0, 1, 2, 0, 1, 2, 1, 0, 2, 1}, b.Tokens); diff != "" {
		t.Errorf("tokens (-want +got):\n%s", diff)
	}
	for row := range 4 {
		if err := b.next(); err != nil {
			t.Fatal(err)
		}
		if want := uint16(65535 * (1 - row%2)); b.code(0) != 0 || b.code(1) != want || b.code(2) != 0 {
			t.Errorf("row %d has the codes %d %d %d", row, b.code(0), b.code(1), b.code(2))
		}
	}
	if err := b.next(); err == nil || !strings.Contains(err.Error(), "offset 124: the file ends within the row 4") {
		t.Errorf("after the last row: %v", err)
	}
}

// Files that are wrong in one way each are refused with one line that says where.
func TestBaseRefuses(t *testing.T) {
	good := sampleBase()
	with := func(offset int, value uint32) []byte {
		b := bytes.Clone(good)
		binary.LittleEndian.PutUint32(b[offset:], value)
		return b
	}
	for _, test := range []struct {
		name string
		data []byte
		want string
	}{
		{"empty", nil, "offset 0: the file ends within the header"},
		{"short header", good[:19], "offset 0: the file ends within the header"},
		{"magic", append([]byte("_logitz_"), good[8:]...), `offset 0: "_logitz_", expected "_logits_"`},
		{"context 0", with(8, 0), "offset 8: chunks of 0 tokens, expected 4 to 2147483647"},
		{"context 3", with(8, 3), "offset 8: chunks of 3 tokens"},
		{"context negative", with(8, math.MaxUint32), "offset 8: chunks of 4294967295 tokens"},
		{"context huge", with(8, math.MaxInt32), "104 bytes after the header, expected 2 chunks of"},
		{"vocabulary 0", with(12, 0), "offset 12: a vocabulary of 0 tokens"},
		{"vocabulary huge", with(12, math.MaxInt32), "offset 12: a vocabulary of 2147483647 tokens, expected 1 to 16777216"},
		{"vocabulary large", with(12, 1<<24), "104 bytes after the header, expected 2 chunks of 67108900"},
		{"no chunks", with(16, 0), "offset 16: no chunks"},
		{"chunks huge", with(16, math.MaxUint32), "104 bytes after the header, expected 4294967295 chunks of 52"},
		{"a chunk more", with(16, 3), "expected 3 chunks of 52"},
		{"a chunk less", with(16, 1), "expected 1 chunks of 52"},
		{"truncated", good[:len(good)-1], "103 bytes after the header, expected 2 chunks of 52: the file is damaged or not complete"},
		{"longer", append(bytes.Clone(good), 0), "105 bytes after the header"},
		{"all huge", with(8, math.MaxInt32)[:20], "0 bytes after the header"},
		{"token", with(24, 3), "offset 24: token 3, expected one of the vocabulary's 3"},
		{"token negative", with(28, math.MaxUint32), "offset 28: token -1"},
	} {
		_, err := openBase(t, test.data)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want %q", test.name, err, test.want)
		}
	}
	if _, err := OpenBase(t.TempDir()); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a directory: %v", err)
	}
	if _, err := OpenBase(filepath.Join(t.TempDir(), "none")); !os.IsNotExist(err) {
		t.Errorf("no file: %v", err)
	}
}

// Rows that hold no probabilities are refused.
func TestBaseRefusesRows(t *testing.T) {
	nan, inf := float32(math.NaN()), float32(math.Inf(1))
	for _, row := range [][2]float32{{nan, -1}, {0, nan}, {-1e-9, -1}, {inf, -1}, {0, inf}, {0, -inf}, {0, 1}, {1, -1}, {16. / 65535, -15}, {0, -1e4}} {
		data := appendHeader(nil, 4, 2, 1, 0, 1, 0, 1)
		b, err := openBase(t, appendRow(data, row[0], row[1], 0, 1))
		if err != nil {
			t.Fatal(err)
		}
		if err := b.next(); err == nil || !strings.Contains(err.Error(), "offset 36: row 0: scale ") {
			t.Errorf("scale %g, least %g: %v", row[0], row[1], err)
		}
	}
}

// No file makes the reader fail otherwise than with an error, or allocate more than the file's size.
func FuzzBase(f *testing.F) {
	f.Add(sampleBase())
	f.Add(appendRow(appendHeader(nil, 4, 2, 1, 0, 1, 0, 1), 0, -1, 0, 0))
	f.Add(appendHeader(nil, math.MaxInt32, 1<<24, math.MaxUint32))
	f.Fuzz(func(t *testing.T, data []byte) {
		b := &Base{path: "base", in: bufio.NewReader(bytes.NewReader(data))}
		if err := b.readHeader(int64(len(data))); err != nil {
			return
		}
		if len(b.Tokens) != b.Context*b.Chunks || 4*len(b.Tokens)+len(b.row) > len(data) {
			t.Fatalf("%d tokens and rows of %d bytes of %d", len(b.Tokens), len(b.row), len(data))
		}
		s := score{base: b}
		logits := make([]float32, b.Vocab)
		for range b.Chunks * scoredRows(b.Context) {
			if err := s.add(logits, b.Tokens[0]); err != nil {
				return
			}
		}
		if r := s.result(); math.IsNaN(r.KLDMean) {
			t.Errorf("KLD is NaN: %+v", r)
		}
	})
}
