package tokenizer

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/swizzle-rt/swizzle/runtime/gguf"
)

// idsJSON holds the ids of texts under published vocabularies, named by their files. They were made with the Hugging
// Face tokenizers library and SentencePiece on the vocabularies in the files, and llama.cpp agrees.
//
//go:embed testdata/ids.json
var idsJSON []byte

type idsCase struct {
	Model   string
	Name    string
	Text    string
	Repeat  int // the text is Text this often
	Special bool
	IDs     []int32 // with Repeat only the first
	Count   int     // of ids, with Repeat
	SHA256  string  // of the ids as JSON without spaces, with Repeat
}

// openModel opens a file of the folder $SWIZZLE_TEST_MODELS, by default of the models that were downloaded.
func openModel(t *testing.T, name string) *gguf.File {
	t.Helper()
	dir := os.Getenv("SWIZZLE_TEST_MODELS")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(cache, "swizzle", "models")
	}
	path := filepath.Join(dir, name)
	if _, err := os.Stat(path); err != nil {
		if os.Getenv("CI") == "true" {
			t.Fatalf("%v; set SWIZZLE_TEST_MODELS to the folder that holds it", err)
		}
		t.Skipf("%v; set SWIZZLE_TEST_MODELS to the folder that holds it", err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func TestModels(t *testing.T) {
	var cases []idsCase
	if err := json.Unmarshal(idsJSON, &cases); err != nil {
		t.Fatal(err)
	}
	var models []string
	for _, c := range cases {
		if !slices.Contains(models, c.Model) {
			models = append(models, c.Model)
		}
	}
	for _, model := range models {
		t.Run(model, func(t *testing.T) {
			tok, err := FromGGUF(openModel(t, model))
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range cases {
				if c.Model == model {
					c.check(t, tok)
				}
			}
		})
	}
}

func (c *idsCase) check(t *testing.T, tok *Tokenizer) {
	if c.Repeat == 0 {
		if got := tok.Encode(c.Text, c.Special); !slices.Equal(got, c.IDs) {
			t.Errorf("%s: Encode(%q, %v)\n got %v\nwant %v", c.Name, c.Text, c.Special, got, c.IDs)
		}
		return
	}
	start := time.Now()
	got := tok.Encode(strings.Repeat(c.Text, c.Repeat), c.Special)
	if d := time.Since(start); d > 5*time.Second {
		t.Errorf("%s: %q x %d takes %v", c.Name, c.Text, c.Repeat, d)
	}
	list, err := json.Marshal(got)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(list)
	if len(got) != c.Count || !slices.Equal(got[:len(c.IDs)], c.IDs) || hex.EncodeToString(sum[:]) != c.SHA256 {
		t.Errorf("%s: %q x %d gives %d ids, want %d, first %v, sha256 %s", c.Name, c.Text, c.Repeat, len(got), c.Count, c.IDs, c.SHA256)
	}
}
