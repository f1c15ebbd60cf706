package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/swizzle-rt/swizzle/generated"
	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/dispatch"
	"github.com/swizzle-rt/swizzle/runtime/gguf"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
	"github.com/swizzle-rt/swizzle/runtime/tune"
)

type tuneCmd struct {
	Device     string         `default:"cpu:0" placeholder:"DEVICE" help:"Device to tune for; this build has cpu:0 alone. Default: ${default}."`
	Model      string         `short:"m" placeholder:"FILE" help:"Tune for the shapes of this model, a GGUF file. Default: those of SmolLM2-135M and Qwen3-0.6B."`
	Threads    int            `short:"t" placeholder:"N" help:"Threads. Default: one for each CPU this process may use. A profile is for one number of threads."`
	KV         string         `name:"kv" enum:"f16,f32" default:"f16" help:"Number format of the KV cache: f16 or f32. Default: f16."`
	Budget     *time.Duration `placeholder:"TIME" help:"Time to spend at most; what is left out is measured next time. Default: 60s, and no limit with --exhaustive."`
	Exhaustive bool           `help:"Measure every candidate, and again what the profile has."`
	JSON       bool           `name:"json" help:"Print JSON, with every measurement."`
	Report     string         `placeholder:"FILE" help:"Write an HTML page with plots."`
}

// Help gives the examples of --help.
func (*tuneCmd) Help() string {
	return `Examples:

    swizzle tune -m model.gguf
    swizzle tune --budget 30s --report tune.html
    swizzle tune -m model.gguf --exhaustive --json

It measures which tiles of the compiled-in kernels are the fastest here and keeps the answers below the user's cache directory, for this CPU, number of threads and set of kernels. run, serve and bench use them from then on. They change the speed alone: each kernel must give the bits of the portable one before it is measured.`
}

// defaultBudget is enough for a model of a few shapes.
const defaultBudget = time.Minute

// tuneOutput is what tune --json prints.
type tuneOutput struct {
	Profile  string       `json:"profile"` // file
	Key      tune.Key     `json:"key"`
	Loaded   int          `json:"loaded"`   // problems that the profile had
	Measured int          `json:"measured"` // now
	Left     int          `json:"left"`     // for lack of time
	Seconds  float64      `json:"seconds"`
	Entries  []tune.Entry `json:"entries"`
}

// Run measures and saves the profile.
func (c *tuneCmd) Run() error {
	budget, err := c.check()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	needs := tune.DefaultNeeds(c.KV)
	if c.Model != "" {
		f, err := gguf.Open(c.Model)
		if err != nil {
			return err
		}
		needs, err = tune.Needs(f, c.KV)
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	isa, err := chosenISA()
	if err != nil {
		return err
	}
	profile, err := loadProfile(isa, c.Threads)
	if err != nil {
		return err
	}
	start := time.Now()
	progress, done := countBar("tuning")
	r, err := tune.Measure(ctx, tune.Options{
		Kernels: kernels(), ISA: isa, Threads: cpu.WorkerCount(c.Threads), Budget: budget, Exhaustive: c.Exhaustive, Progress: progress,
	}, needs, profile)
	done()
	if r.Measured > 0 {
		err = errors.Join(err, profile.Save())
	}
	if err != nil {
		if errors.Is(err, context.Canceled) {
			fmt.Fprintf(os.Stderr, "swizzle: interrupted; %d problems are measured and kept\n", r.Measured)
		}
		return err
	}
	out := tuneOutput{profile.Path, profile.Key, r.Loaded, r.Measured, r.Left, time.Since(start).Seconds(), []tune.Entry{}}
	for _, q := range tune.Problems(needs) {
		if e, ok := profile.Entry(q); ok {
			out.Entries = append(out.Entries, e)
		}
	}
	slices.SortFunc(out.Entries, compareEntries)
	if c.Report != "" {
		if err := writeTuneReport(c.Report, out); err != nil {
			return err
		}
	}
	c.printSummary(out)
	if c.JSON {
		return printJSON(out)
	}
	return printEntries(out.Entries)
}

// check reports a mistake in the flags and returns the budget, 0 for none.
func (c *tuneCmd) check() (time.Duration, error) {
	if c.Device != "cpu:0" && c.Device != "cpu" {
		return 0, usagef("--device is %q; this build has cpu:0 alone", c.Device)
	}
	if c.Threads < 0 || c.Threads > maxThreads {
		return 0, usagef("--threads is %d, expected 1 to %d, or 0 to choose", c.Threads, maxThreads)
	}
	switch {
	case c.Budget == nil && c.Exhaustive:
		return 0, nil
	case c.Budget == nil:
		return defaultBudget, nil
	case *c.Budget <= 0:
		return 0, usagef("--budget is %s, expected a time such as 30s", *c.Budget)
	}
	return *c.Budget, nil
}

// printSummary says on stderr where the answers come from.
func (c *tuneCmd) printSummary(out tuneOutput) {
	if out.Measured == 0 {
		fmt.Fprintf(os.Stderr, "profile %s: all %d problems are there, nothing is measured (--exhaustive does it again)\n", out.Profile, out.Loaded)
		return
	}
	fmt.Fprintf(os.Stderr, "profile %s: %d problems measured in %.1f s, %d were there\n", out.Profile, out.Measured, out.Seconds, out.Loaded)
	if out.Left > 0 {
		fmt.Fprintf(os.Stderr, "%d problems are left for the next time: the budget is spent\n", out.Left)
	}
}

func compareEntries(a, b tune.Entry) int {
	for _, n := range []int{strings.Compare(a.Op, b.Op), a.N - b.N, a.K - b.K, a.M - b.M} {
		if n != 0 {
			return n
		}
	}
	return 0
}

// printEntries prints the table: one token, a full chunk, and whatever was displaced.
func printEntries(list []tune.Entry) error {
	rows := [][]string{{"OP", "M", "N", "K", "DEFAULT", "WINNER", "TIME", "GAIN", "ROOFLINE"}}
	same := 0
	for _, e := range list {
		stays := slices.Equal(e.Default, e.Winner)
		if stays && 1 < e.M && e.M < 512 {
			same++
			continue
		}
		winner, gain := "default", ""
		if !stays {
			winner, gain = shortNames(e.Winner), "+"+percent(e.Gain())
		}
		m, _ := e.Of(e.Winner)
		rows = append(rows, []string{
			e.Op, fmt.Sprint(e.M), fmt.Sprint(e.N), fmt.Sprint(e.K), shortNames(e.Default), winner, formatNanoseconds(m.Median), gain,
			percent(e.Efficiency()),
		})
	}
	if err := printTable(rows); err != nil {
		return err
	}
	if same > 0 {
		fmt.Printf("and %d more of 2 to 511 rows where the default stays; --json lists them\n", same)
	}
	return nil
}

// shortNames writes kernels of one op as configs and architecture: "m12 m4 avx512vnni".
func shortNames(names []string) string {
	var b strings.Builder
	arch := ""
	for _, n := range names {
		k, err := kernel.ParseName(n)
		if err != nil {
			return strings.Join(names, " ")
		}
		if arch != "" && k.Arch != arch {
			fmt.Fprintf(&b, "%s, ", arch)
		}
		fmt.Fprintf(&b, "%s ", k.Config)
		arch = k.Arch
	}
	return b.String() + arch
}

// formatNanoseconds returns a time with three digits or so.
func formatNanoseconds(ns float64) string {
	switch {
	case ns >= 1e9:
		return fmt.Sprintf("%.2f s", ns/1e9)
	case ns >= 1e6:
		return fmt.Sprintf("%.2f ms", ns/1e6)
	}
	return fmt.Sprintf("%.1f µs", ns/1e3)
}

// countBar shows a bar on stderr that update moves and done takes away. Where stderr isn't a terminal, update is nil.
func countBar(name string) (update func(done, total int), done func()) {
	if !canMoveCursor(os.Stderr) {
		return nil, func() {}
	}
	progress := mpb.New(mpb.WithOutput(os.Stderr), mpb.WithWidth(64))
	bar := progress.AddBar(0, mpb.PrependDecorators(decor.Name(name+" "), decor.CountersNoUnit("%d / %d ")), mpb.AppendDecorators(decor.Percentage()))
	update = func(done, total int) {
		bar.SetTotal(int64(total), false)
		bar.SetCurrent(int64(done))
	}
	return update, func() {
		bar.Abort(true)
		progress.Wait()
	}
}

// loadProfile reads the profile of this machine and set of kernels, for an ISA and the threads of -t.
func loadProfile(isa cpu.ISA, threads int) (*tune.Profile, error) {
	manifest, err := kernel.ReadManifest(generated.Files)
	if err != nil {
		return nil, err
	}
	dir, err := tune.Dir()
	if err != nil {
		return nil, err
	}
	device := tune.DeviceOf(cpu.Describe(), isa, cpu.WorkerCount(threads))
	return tune.Load(dir, tune.Key{Schema: tune.Schema, Device: device, Kernels: manifest.Set})
}

// tunedChoice returns what tune found out for this machine, nil if it has not run. A profile that can't be read is no reason
// to stop.
func tunedChoice(threads int) dispatch.Choice {
	isa, err := chosenISA()
	if err != nil {
		return nil // engine.Load reports it
	}
	p, err := loadProfile(isa, threads)
	if err != nil {
		fmt.Fprintf(os.Stderr, "swizzle: %s; the default kernels run\n", printable(err.Error()))
		return nil
	}
	return p.Choice()
}
