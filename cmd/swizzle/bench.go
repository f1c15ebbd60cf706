package main

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/engine"
)

type benchCmd struct {
	modelFlags
	Prompt      int  `name:"n-prompt" short:"p" default:"512" placeholder:"N" help:"Tokens of the prompt; 0 leaves that test out. Default: ${default}."`
	Gen         int  `name:"n-gen" short:"n" default:"128" placeholder:"N" help:"Tokens to generate; 0 leaves that test out. Default: ${default}."`
	Repetitions int  `short:"r" default:"5" placeholder:"N" help:"Times each test runs. Default: ${default}."`
	JSON        bool `name:"json" help:"Print JSON, with the fields of llama-bench."`
}

// Help gives the examples of --help.
func (*benchCmd) Help() string {
	return `Examples:

    swizzle bench -m model.gguf
    swizzle bench -m model.gguf -p 2048 -n 0 -t 4 --json

ppN evaluates a prompt of N tokens at once, tgN generates N tokens one by one. Each test begins with an empty cache and is warmed up first.`
}

// benchResult is one test, with llama-bench's names.
type benchResult struct {
	BuildCommit   string    `json:"build_commit"`
	BuildVersion  string    `json:"build_version"`
	CPUInfo       string    `json:"cpu_info"`
	Backends      string    `json:"backends"`
	ModelFilename string    `json:"model_filename"`
	ModelType     string    `json:"model_type"`
	ModelSize     int64     `json:"model_size"`
	ModelNParams  uint64    `json:"model_n_params"`
	NThreads      int       `json:"n_threads"`
	TypeK         string    `json:"type_k"`
	TypeV         string    `json:"type_v"`
	NPrompt       int       `json:"n_prompt"`
	NGen          int       `json:"n_gen"`
	TestTime      time.Time `json:"test_time"`
	AvgNS         int64     `json:"avg_ns"`
	StddevNS      int64     `json:"stddev_ns"`
	AvgTS         float64   `json:"avg_ts"` // tokens a second
	StddevTS      float64   `json:"stddev_ts"`
	SamplesNS     []int64   `json:"samples_ns"`
	SamplesTS     []float64 `json:"samples_ts"`
}

// Run runs the tests and prints their results.
func (c *benchCmd) Run() error {
	if err := c.check(); err != nil {
		return err
	}
	if c.Prompt < 0 || c.Gen < 0 || c.Prompt+c.Gen == 0 {
		return usagef("-p is %d and -n is %d, expected numbers of tokens, not both 0", c.Prompt, c.Gen)
	}
	if c.Repetitions < 1 {
		return usagef("-r is %d, expected at least 1", c.Repetitions)
	}
	ctx, stop := interruptible()
	defer stop()
	e, err := c.load(ctx, max(c.Prompt, c.Gen))
	if err != nil {
		return err
	}
	defer e.Close()
	s, err := e.NewSession()
	if err != nil {
		return err
	}
	defer s.Close()

	var results []benchResult
	for _, n := range []struct{ prompt, gen int }{{c.Prompt, 0}, {0, c.Gen}} {
		if n.prompt+n.gen == 0 {
			continue
		}
		r, err := c.measure(ctx, e, s, n.prompt, n.gen)
		if err != nil {
			return err
		}
		results = append(results, r)
	}
	if c.JSON {
		return printJSON(results)
	}
	return printBench(results)
}

// measure runs one test. The tokens are pseudo-random, the same each time.
func (c *benchCmd) measure(ctx context.Context, e *engine.Engine, s *engine.Session, prompt, gen int) (benchResult, error) {
	info := e.Info()
	build := readBuildInfo()
	r := benchResult{
		BuildCommit:   build.Commit,
		BuildVersion:  build.Version,
		CPUInfo:       cpu.Describe().Brand,
		Backends:      info.ISA,
		ModelFilename: c.Model,
		ModelType:     modelName(e),
		ModelSize:     info.WeightBytes,
		ModelNParams:  info.Params,
		NThreads:      info.Threads,
		TypeK:         info.KV,
		TypeV:         info.KV,
		NPrompt:       prompt,
		NGen:          gen,
		TestTime:      time.Now().UTC(),
	}
	random := rand.New(rand.NewPCG(1, 2))
	ids := make([]int32, prompt+gen)
	for i := range ids {
		ids[i] = random.Int32N(int32(info.Vocab))
	}
	step := len(ids) // tokens of an Eval
	if gen > 0 {
		step = 1
	}
	s.Truncate(0)
	if _, err := s.Eval(ctx, ids[:step]); err != nil { // warm up
		return r, err
	}
	for range c.Repetitions {
		s.Truncate(0)
		start := time.Now()
		for i := 0; i < len(ids); i += step {
			if _, err := s.Eval(ctx, ids[i:i+step]); err != nil {
				return r, err
			}
		}
		d := time.Since(start)
		r.SamplesNS = append(r.SamplesNS, d.Nanoseconds())
		r.SamplesTS = append(r.SamplesTS, rate(len(ids), d))
	}
	avg, stddev := meanStddev(r.SamplesNS)
	r.AvgNS, r.StddevNS = int64(avg), int64(stddev)
	r.AvgTS, r.StddevTS = meanStddev(r.SamplesTS)
	return r, nil
}

// meanStddev returns the mean and the sample standard deviation.
func meanStddev[T int64 | float64](samples []T) (mean, stddev float64) {
	n := float64(len(samples))
	for _, x := range samples {
		mean += float64(x)
	}
	mean /= n
	if len(samples) < 2 {
		return mean, 0
	}
	for _, x := range samples {
		d := float64(x) - mean
		stddev += float64(d * d)
	}
	return mean, math.Sqrt(stddev / (n - 1))
}

// printBench prints a Markdown table, as llama-bench does.
func printBench(results []benchResult) error {
	rows := [][]string{
		{"| model", "| size", "| params", "| backend", "| threads", "| test", "| t/s", "|"},
		{"|:---", "|---:", "|---:", "|:---", "|---:", "|---:", "|---:", "|"},
	}
	for _, r := range results {
		test := fmt.Sprintf("pp%d", r.NPrompt)
		if r.NGen > 0 {
			test = fmt.Sprintf("tg%d", r.NGen)
		}
		rows = append(rows, []string{
			"| " + printable(r.ModelType), "| " + formatBytes(uint64(r.ModelSize)), "| " + formatCount(r.ModelNParams), "| " + r.Backends,
			fmt.Sprintf("| %d", r.NThreads), "| " + test, fmt.Sprintf("| %.2f ± %.2f", r.AvgTS, r.StddevTS), "|",
		})
	}
	return printTable(rows)
}
