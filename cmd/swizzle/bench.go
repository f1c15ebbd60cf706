package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/swizzle-rt/swizzle/runtime/bench"
	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/dispatch"
	"github.com/swizzle-rt/swizzle/runtime/engine"
)

type benchCmd struct {
	modelFlags
	Prompt      []int    `name:"n-prompt" short:"p" default:"512" placeholder:"N,…" help:"Tokens of a prompt, evaluated at once; 0 leaves that test out. Default: ${default}."`
	Gen         []int    `name:"n-gen" short:"n" default:"128" placeholder:"N,…" help:"Tokens to generate one by one; 0 leaves that test out. Default: ${default}."`
	Both        []string `name:"pg" sep:"none" placeholder:"P,N" help:"A prompt of P tokens, then N tokens one by one. May be repeated."`
	Depth       []int    `name:"n-depth" short:"d" default:"0" placeholder:"N,…" help:"Tokens in the context before each of these tests. Default: ${default}."`
	Batch       []int    `short:"b" placeholder:"N,…" help:"Evaluate 64 tokens or a few more N at a time."`
	Edit        bool     `name:"edit256" help:"Generate 256 tokens of a Go file in which a name changes."`
	FirstToken  bool     `name:"ttft" help:"Time to the first token after a prompt of 512."`
	Load        bool     `help:"Time to load the model, its file in the page cache."`
	Repetitions int      `short:"r" default:"5" placeholder:"N" help:"Times each test runs. Default: ${default}."`
	Peer        string   `name:"vs" placeholder:"COMMAND" help:"Compare with a command that prints what llama-bench -o json does."`
	JSON        bool     `name:"json" xor:"format" help:"Print JSON, with the fields of llama-bench and more."`
	Markdown    bool     `xor:"format" help:"Print a Markdown table."`
}

// Help gives the examples of --help.
func (*benchCmd) Help() string {
	return `Examples:

    swizzle bench -m model.gguf
    swizzle bench -m model.gguf -p 512,2048 -n 0 -d 0,4096 -t 4 --json
    swizzle bench -m model.gguf -b 1,2,4,8,16 --edit256 --ttft --load
    swizzle bench -m model.gguf --vs 'llama-bench -m {model} -t {t} -p {p} -n {n} -d {d} -r {reps} -o json'

ppN evaluates a prompt of N tokens at once, tgN generates N tokens one by one, "@ dN" does so after N other tokens. The tests run in rounds, each test once a round; a round before the first warms up and is dropped.

With --vs each round runs our tests, ours again and the peer, or the peer first. Where our two turns differ by more than 5 % the machine is too noisy: no ratio is printed and the exit status is 1. In the command {model}, {t}, {p}, {n}, {d} and {reps} stand for the model, the threads, the numbers of tokens and 1.

READ and INT8 are shares of the machine's limits, measured too: of its read bandwidth, by reading a buffer larger than the caches with all threads, and of its int8 peak, the speed of the fastest kernel of this program on data in the first-level cache. The bar is the share of the speed that these limits allow.`
}

// maxBenchTokens bounds the numbers of tokens, so that sums of them don't overflow.
const maxBenchTokens = 1 << 24

// Run runs the tests and prints their results.
func (c *benchCmd) Run() error {
	if err := c.check(); err != nil {
		return err
	}
	tests, err := c.tests()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	open := func() (*engine.Engine, error) { return c.open(ctx, tests) }

	var loads []bench.Sample // before the others, since the model is in memory once
	start := time.Now().UTC()
	if c.Load {
		if loads, err = bench.Loads(c.Repetitions, open); err != nil {
			return err
		}
	}
	e, err := open()
	if err != nil {
		return err
	}
	defer e.Close()
	b, err := c.measure(ctx, e, tests)
	if err != nil {
		return err
	}
	if c.Load {
		b.report.Results = append(b.report.Results, bench.Result{Test: bench.Test{Kind: bench.Load}, Start: start, Samples: loads})
	}
	noise := b.report.CheckControl()
	switch {
	case c.JSON:
		err = printJSON(b.results())
	case c.Markdown:
		_, err = fmt.Print(b.markdown())
	default:
		_, err = fmt.Print(b.text(newBarStyle(os.Stdout)))
	}
	if noise != nil {
		err = errors.Join(err, fmt.Errorf("no ratio: %w", noise))
	}
	return err
}

// open loads the model with sessions for the tests.
func (c *benchCmd) open(ctx context.Context, tests []bench.Test) (*engine.Engine, error) {
	sessions, tokens := bench.Sessions(tests)
	progress, done := progressBar("loading")
	defer done()
	return engine.Load(ctx, c.Model, engine.Options{
		Kernels:  kernels(),
		ISA:      os.Getenv("SWIZZLE_ISA"),
		Threads:  c.Threads,
		Context:  tokens,
		Sessions: sessions,
		KV:       c.KV,
		Choice:   tunedChoice(c.Threads),
		Progress: progress,
	})
}

// tests returns the tests that the flags ask for, prompts first.
func (c *benchCmd) tests() ([]bench.Test, error) {
	if c.Repetitions < 1 {
		return nil, usagef("-r is %d, expected at least 1", c.Repetitions)
	}
	for _, f := range []struct {
		name   string
		values []int
		least  int
	}{{"-p", c.Prompt, 0}, {"-n", c.Gen, 0}, {"-d", c.Depth, 0}, {"-b", c.Batch, 1}} {
		for _, n := range f.values {
			if n < f.least || n > maxBenchTokens {
				return nil, usagef("%s is %d, expected %d to %d tokens", f.name, n, f.least, maxBenchTokens)
			}
		}
	}
	var tests []bench.Test
	for _, depth := range c.Depth {
		for _, n := range c.Prompt {
			if n > 0 {
				tests = append(tests, bench.Test{Depth: depth, Prompt: n})
			}
		}
		for _, n := range c.Batch {
			tests = append(tests, bench.NewBatch(depth, n))
		}
		for _, n := range c.Gen {
			if n > 0 {
				tests = append(tests, bench.Test{Depth: depth, Gen: n})
			}
		}
		for _, both := range c.Both {
			p, n, err := parseBoth(both)
			if err != nil {
				return nil, err
			}
			tests = append(tests, bench.Test{Depth: depth, Prompt: p, Gen: n})
		}
	}
	if c.Edit {
		tests = append(tests, bench.NewEdit())
	}
	if c.FirstToken {
		tests = append(tests, bench.Test{Kind: bench.FirstToken, Prompt: 512})
	}
	if len(tests) == 0 && (!c.Load || c.Peer != "") {
		return nil, usagef("-p is 0 and -n is 0, expected numbers of tokens, not both 0, or another test")
	}
	return tests, nil
}

func parseBoth(text string) (prompt, gen int, err error) {
	p, n, _ := strings.Cut(text, ",")
	prompt, err1 := strconv.Atoi(p)
	gen, err2 := strconv.Atoi(n)
	if err1 != nil || err2 != nil || min(prompt, gen) < 1 || max(prompt, gen) > maxBenchTokens {
		return 0, 0, usagef("--pg is %q, expected two numbers of tokens such as 512,128", text)
	}
	return prompt, gen, nil
}

// benchmark is what was measured, of which model and beside what limits.
type benchmark struct {
	info   engine.Info
	name   string
	report bench.Report
	work   bench.Work
	kernel string // whose speed is the int8 peak
	peer   string // the command
}

// measure runs the tests.
func (c *benchCmd) measure(ctx context.Context, e *engine.Engine, tests []bench.Test) (*benchmark, error) {
	isa, err := chosenISA()
	if err != nil {
		return nil, err
	}
	info := e.Info()
	table := dispatch.New(kernels(), isa)
	b := &benchmark{info: info, name: modelName(e)}
	if b.work, err = bench.ReadWork(c.Model, table, info.KV); err != nil {
		return nil, err
	}
	limits := bench.NewLimits(table, info.Threads)
	defer limits.Close()
	b.kernel = limits.Kernel()
	o := bench.Options{Tests: tests, Rounds: c.Repetitions, Limits: limits}
	if c.Peer != "" {
		b.peer = c.peerCommand(info.Threads)
		o.Peer = &bench.Peer{Command: b.peer}
	}
	if canMoveCursor(os.Stderr) {
		o.Progress = func(round int, it string) {
			fmt.Fprintf(os.Stderr, "\r\x1b[Kround %d of %d: %s", round, c.Repetitions, it)
		}
		defer fmt.Fprint(os.Stderr, "\r\x1b[K")
	}
	b.report, err = bench.Run(ctx, e, o)
	return b, err
}

// peerCommand fills in the peer's command.
func (c *benchCmd) peerCommand(threads int) string {
	join := func(values []int) string {
		var s []string
		for _, n := range values {
			s = append(s, strconv.Itoa(n))
		}
		return strings.Join(s, ",")
	}
	return strings.NewReplacer("{model}", bench.QuoteShell(c.Model), "{t}", strconv.Itoa(threads), "{p}", join(c.Prompt),
		"{n}", join(c.Gen), "{d}", join(c.Depth), "{reps}", "1").Replace(c.Peer)
}

// limits returns the medians of the machine's limits, in bytes and operations per second; 0 is unknown.
func (b *benchmark) limits() (bandwidth, peak float64) {
	return bench.Summarize(b.report.ReadBandwidth).Median, bench.Summarize(b.report.Int8Peak).Median
}

// ratio returns that of a test to the peer's, 0 for none: also where the machine was too noisy for any.
func (b *benchmark) ratio(r *bench.Result) float64 {
	if b.report.CheckControl() != nil {
		return 0
	}
	return r.Ratio()
}

// cpuName returns the processor's name for itself.
func cpuName() string { return cpu.Describe().Brand }
