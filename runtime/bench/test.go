package bench

import (
	"fmt"
	"iter"
)

// Kind is what a test does.
type Kind int

const (
	// Eval evaluates Prompt tokens, then Gen tokens one by one.
	Eval Kind = iota
	// Edit generates Gen tokens, greedily, of a Go file in which a name is to change. Its time is from the first of them to
	// the last.
	Edit
	// FirstToken generates one token after Prompt tokens. Its time is until that token is there.
	FirstToken
	// Load opens the model; see Loads.
	Load
)

// Test is one thing to measure.
type Test struct {
	Kind   Kind
	Depth  int // tokens in the context before it begins
	Prompt int
	Gen    int
	Batch  int // tokens of the prompt that are evaluated at once; 0: all
}

// NewEdit returns the edit task.
func NewEdit() Test { return Test{Kind: Edit, Gen: editTokens} }

// NewBatch returns a test that evaluates tokens n at a time, at least 64 in all.
func NewBatch(depth, n int) Test {
	return Test{Depth: depth, Prompt: (64 + n - 1) / n * n, Batch: n}
}

// Name returns the test's name as llama-bench prints it, such as "pp512 @ d4096". Tests that llama-bench doesn't have are
// "edit256", "ttft512", "load" and, of 64 tokens in batches of 8, "pp64 b8".
func (t Test) Name() string {
	name := ""
	switch {
	case t.Kind == Load:
		return "load"
	case t.Kind == Edit:
		return fmt.Sprintf("edit%d", t.Gen)
	case t.Kind == FirstToken:
		return fmt.Sprintf("ttft%d", t.Prompt)
	case t.Prompt > 0 && t.Gen > 0:
		name = fmt.Sprintf("pp%d+tg%d", t.Prompt, t.Gen)
	case t.Gen > 0:
		name = fmt.Sprintf("tg%d", t.Gen)
	default:
		name = fmt.Sprintf("pp%d", t.Prompt)
	}
	if t.Batch > 0 {
		name += fmt.Sprintf(" b%d", t.Batch)
	}
	if t.Depth > 0 {
		name += fmt.Sprintf(" @ d%d", t.Depth)
	}
	return name
}

// Timed reports whether the test's figure is a time, and not a number of tokens per second.
func (t Test) Timed() bool { return t.Kind == FirstToken || t.Kind == Load }

// steps yields position and number of the tokens of each evaluation whose time counts.
func (t Test) steps() iter.Seq2[int, int] {
	return func(yield func(at, n int) bool) {
		at, end := t.Depth, t.Depth+t.Prompt
		batch := t.Batch
		if batch == 0 {
			batch = t.Prompt
		}
		gen := t.Gen
		if t.Kind == Edit { // the prompt and the first token are there when time begins
			at, gen = end, t.Gen-1
		}
		for at < end {
			n := min(batch, end-at)
			if !yield(at, n) {
				return
			}
			at += n
		}
		for range gen {
			if !yield(at, 1) {
				return
			}
			at++
		}
	}
}

// Evals returns the number of evaluations whose time counts.
func (t Test) Evals() int {
	n := 0
	for range t.steps() {
		n++
	}
	return n
}

// Sessions returns how many sequences the tests need, one for each depth, and the most tokens of one.
func Sessions(tests []Test) (sessions, tokens int) {
	depths := map[int]bool{0: true}
	for _, t := range tests {
		n := t.Depth + t.Prompt + t.Gen
		if t.Kind == Edit {
			n += editRoom
		}
		depths[t.Depth] = true
		tokens = max(tokens, n)
	}
	return len(depths), tokens
}
