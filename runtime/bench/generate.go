package bench

import (
	"context"
	_ "embed"
	"fmt"
	"strings"
	"time"

	"github.com/swizzle-rt/swizzle/runtime/engine"
	"github.com/swizzle-rt/swizzle/runtime/sample"
	"github.com/swizzle-rt/swizzle/runtime/template"
)

const (
	editTokens = 256
	// editRoom is more tokens than the prompt of the edit task has: a token has at least a byte.
	editRoom = 8192
)

// editOptions fix the date, which a template may write into the prompt.
var editOptions = template.Options{AddGenerationPrompt: true, Now: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}

//go:embed edit.go.txt
var editFile string

// editPrompt returns the prompt of the edit task: a file and what to change. A model without a chat template sees the file
// before the change and the beginning of the file after it.
func editPrompt(e *engine.Engine) ([]int32, error) {
	var ids []int32
	if e.Chat() != nil {
		text := "Rename the type Shelf to Rack in this Go file, in names and comments too. Answer with the whole new file and nothing else.\n\n```go\n" + editFile + "```\n"
		var err error
		if ids, err = e.Prompt([]template.Message{{Role: "user", Content: text}}, editOptions); err != nil {
			return nil, fmt.Errorf("edit task: %w", err)
		}
	} else {
		first, _, _ := strings.Cut(editFile, "\n")
		ids = e.Text("// Before:\n\n" + editFile + "\n// After Shelf was renamed to Rack:\n\n" + first + "\n")
	}
	if len(ids) > editRoom {
		return nil, fmt.Errorf("edit task: the chat template makes %d tokens of it, expected at most %d", len(ids), editRoom)
	}
	return ids, nil
}

// generate runs a test that samples tokens.
func generate(ctx context.Context, s *engine.Session, prompt []int32, t Test) (Sample, error) {
	n := max(t.Gen, 1)
	start := time.Now()
	var first, last time.Duration
	res, err := s.Generate(ctx, engine.Request{Prompt: prompt, Max: n, Params: sample.Greedy()}, func(token engine.Token) error {
		if token.ID < 0 {
			return nil // text that was held back
		}
		last = time.Since(start)
		if first == 0 {
			first = last
		}
		return nil
	})
	if err != nil {
		return Sample{}, err
	}
	if t.Kind == FirstToken {
		if first == 0 { // an end token: it is not emitted
			first = time.Since(start)
		}
		return Sample{len(prompt), first}, nil
	}
	if res.NewTokens < 2 {
		return Sample{}, fmt.Errorf("the model ended its answer after %d tokens, expected at least 2", res.NewTokens)
	}
	return Sample{res.NewTokens - 1, last - first}, nil
}
