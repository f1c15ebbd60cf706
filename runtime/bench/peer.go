package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"time"
)

// Peer is another program that measures the same tests and prints what llama-bench -o json prints.
type Peer struct {
	Command string // for the shell
}

// PeerResult is one test of a peer.
type PeerResult struct {
	Prompt, Gen, Depth, Batch int
	Rates                     []float64 // tokens per second
}

// same reports whether the peer's test is t. How the peer cuts a whole prompt is its own affair.
func (p *PeerResult) same(t Test) bool {
	return t.Kind == Eval && p.Prompt == t.Prompt && p.Gen == t.Gen && p.Depth == t.Depth && (t.Batch == 0 || t.Batch == p.Batch)
}

func names(rows []PeerResult) string {
	var list []string
	for _, r := range rows {
		list = append(list, Test{Prompt: r.Prompt, Gen: r.Gen, Depth: r.Depth}.Name())
	}
	return strings.Join(list, ", ")
}

// QuoteShell makes a text one word of a shell's command line.
func QuoteShell(text string) string {
	if runtime.GOOS == "windows" {
		return `"` + text + `"`
	}
	return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'"
}

// run runs the command once.
func (p *Peer) run(ctx context.Context) ([]PeerResult, error) {
	shell := []string{"sh", "-c"}
	if runtime.GOOS == "windows" {
		shell = []string{"cmd", "/C"}
	}
	cmd := exec.CommandContext(ctx, shell[0], shell[1], p.Command)
	cmd.WaitDelay = time.Second // for a child of the shell that keeps the output open
	out, err := cmd.Output()
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			lines := strings.Split(strings.TrimSpace(string(exit.Stderr)), "\n")
			return nil, fmt.Errorf("peer %q: %w: %s", p.Command, err, lines[len(lines)-1])
		}
		return nil, fmt.Errorf("peer %q: %w", p.Command, err)
	}
	rows, err := ParsePeer(out)
	if err != nil {
		return nil, fmt.Errorf("peer %q: %w", p.Command, err)
	}
	return rows, nil
}

// ParsePeer reads what llama-bench -o json prints: an array of tests with n_prompt, n_gen, n_depth, n_batch and samples_ts, or
// at least avg_ts. What stands before the array is passed over.
func ParsePeer(out []byte) ([]PeerResult, error) {
	start := bytes.IndexByte(out, '[')
	if start < 0 {
		return nil, fmt.Errorf("its output has no JSON array (llama-bench prints one with -o json): %.80q", bytes.TrimSpace(out))
	}
	var rows []struct {
		Prompt  int       `json:"n_prompt"`
		Gen     int       `json:"n_gen"`
		Depth   int       `json:"n_depth"`
		Batch   int       `json:"n_batch"`
		Average float64   `json:"avg_ts"`
		Samples []float64 `json:"samples_ts"`
	}
	if err := json.NewDecoder(bytes.NewReader(out[start:])).Decode(&rows); err != nil {
		return nil, fmt.Errorf("its JSON at offset %d: %w", start, err)
	}
	if len(rows) == 0 {
		return nil, errors.New("its JSON array is empty")
	}
	var list []PeerResult
	for i, r := range rows {
		if len(r.Samples) == 0 {
			r.Samples = []float64{r.Average}
		}
		if min(r.Prompt, r.Gen, r.Depth, r.Batch) < 0 || r.Prompt+r.Gen == 0 {
			return nil, fmt.Errorf("its test %d has n_prompt %d and n_gen %d, n_depth %d and n_batch %d, expected numbers of tokens", i, r.Prompt, r.Gen, r.Depth, r.Batch)
		}
		if slices.ContainsFunc(r.Samples, func(x float64) bool { return !(x > 0) || math.IsInf(x, 1) }) {
			return nil, fmt.Errorf("its test %d has samples_ts %v and avg_ts %v, expected tokens per second", i, r.Samples, r.Average)
		}
		list = append(list, PeerResult{r.Prompt, r.Gen, r.Depth, r.Batch, r.Samples})
	}
	return list, nil
}
