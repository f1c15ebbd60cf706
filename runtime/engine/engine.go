// Package engine runs a model: it loads a file, holds sequences of tokens and generates text.
package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/dispatch"
	"github.com/swizzle-rt/swizzle/runtime/gguf"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
	"github.com/swizzle-rt/swizzle/runtime/model"
	"github.com/swizzle-rt/swizzle/runtime/template"
	"github.com/swizzle-rt/swizzle/runtime/tokenizer"
)

var (
	// ErrContextFull means that tokens don't fit into the context.
	ErrContextFull = model.ErrContextFull
	// ErrUnsupported means that the model needs something this version doesn't have.
	ErrUnsupported = model.ErrUnsupported
	// ErrBusy means that no further sequence can be made.
	ErrBusy = errors.New("all sequences are in use")
	// ErrClosed means that the engine or the session has been closed.
	ErrClosed = errors.New("closed")
	// ErrMemory means that the model needs more memory than there is.
	ErrMemory = errors.New("not enough memory")
)

// DefaultContext bounds the context where the caller doesn't choose one and the model allows more.
const DefaultContext = 8192

// Options of Load. The zero value of a field means its default.
type Options struct {
	Kernels  []kernel.Kernel         // the generated kernels
	ISA      string                  // name of an instruction set; "" chooses the best that the CPU has
	Threads  int                     // 0: as many as the CPUs that the process may use
	Context  int                     // most tokens of a sequence; 0: the model's, at most DefaultContext
	Sessions int                     // most sessions at a time; 0: one
	KV       string                  // element type of the cache: f16 (default) or f32
	Choice   dispatch.Choice         // orders of kernels measured on this machine; nil: the defaults. No choice changes a result
	Progress func(done, total int64) // bytes of weights that are ready
}

// Engine is a loaded model. One sequence is evaluated at a time; others wait.
type Engine struct {
	info  Info
	file  *gguf.File
	dev   *dispatch.Device
	model *model.Decoder
	tok   *tokenizer.Tokenizer
	chat  *template.Chat

	mu     sync.Mutex // held during a pass
	free   int        // sessions that can still be made
	closed bool
}

// Info describes a loaded model.
type Info struct {
	Name, Arch, Path string
	FileBytes        int64
	WeightBytes      int64 // packed, in memory
	KVBytesPerToken  int64
	Params           uint64
	Layers           int
	Width            int
	Heads, KVHeads   int
	Vocab            int
	Context          int // most tokens of a sequence here
	TrainContext     int // what the model was made for
	ISA              string
	Threads          int
	KV               string
	LoadTime         time.Duration
}

// Load opens a model file and packs its weights. A model that can't fit in memory is refused before.
func Load(ctx context.Context, path string, o Options) (e *Engine, err error) {
	start := time.Now()
	isa, err := cpu.Choose(cpu.Detect(), o.ISA)
	if err != nil {
		return nil, err
	}
	f, err := gguf.Open(path)
	if err != nil {
		return nil, err
	}
	e = &Engine{file: f}
	defer func() {
		if err != nil {
			e.Close()
			e = nil
		}
	}()
	if o.KV == "" {
		o.KV = "f16"
	}
	table := dispatch.New(o.Kernels, isa)
	table.Choose(o.Choice, cpu.Detect())
	if e.dev, err = dispatch.NewDevice(table, cpu.WorkerCount(o.Threads)); err != nil {
		return e, err
	}
	if e.model, err = model.Open(f, e.dev, model.Options{KV: o.KV}); err != nil {
		return e, err
	}
	if e.tok, err = tokenizer.FromGGUF(f); err != nil {
		return e, err
	}
	c := e.model.Config
	if e.tok.Size() > c.Vocab {
		return e, fmt.Errorf("%s: tokenizer.ggml.tokens: %d tokens, but the embedding has %d rows", path, e.tok.Size(), c.Vocab)
	}
	if err := e.openTemplate(); err != nil {
		return e, err
	}
	tokens := o.Context
	if tokens <= 0 {
		tokens = min(c.TrainContext, DefaultContext)
	}
	if tokens > maxContext || o.Sessions < 0 || o.Sessions > maxSessions {
		return e, fmt.Errorf("%s: a context of %d tokens for %d sequences: at most %d and %d are possible", path, tokens, o.Sessions, maxContext, maxSessions)
	}
	e.free = max(1, o.Sessions)
	all := e.free * ((tokens + model.PageTokens - 1) / model.PageTokens * model.PageTokens)
	e.info = Info{
		Name: c.Name, Arch: c.Arch, Path: path, FileBytes: f.Size(), WeightBytes: int64(e.model.WeightBytes()),
		KVBytesPerToken: int64(e.model.KVBytesPerToken()), Params: e.model.Parameters(), Layers: len(c.Layers), Width: c.Width,
		Heads: c.Heads, KVHeads: c.KVHeads, Vocab: c.Vocab, Context: tokens, TrainContext: c.TrainContext,
		ISA: string(isa), Threads: e.dev.Threads(), KV: o.KV,
	}
	if err := fits(e.info, e.model.MemoryBytes(all, tokens), cpu.Describe().Memory); err != nil {
		return e, err
	}
	if err := e.model.Load(ctx, all, tokens, o.Progress); err != nil {
		return e, err
	}
	e.info.LoadTime = time.Since(start)
	return e, nil
}

const (
	maxContext  = 1 << 24
	maxSessions = 1 << 10
)

// fits refuses a model whose weights and other memory exceed what is available.
func fits(i Info, other float64, m cpu.Memory) error {
	need := float64(i.WeightBytes) + other
	if m.Available == 0 || need <= float64(m.Available) { // 0: unknown on this system
		return nil
	}
	return fmt.Errorf("%s: %w: %.0f bytes needed (%d for weights, %.0f for a context of %d tokens), %d available; a smaller context needs less (-c)",
		i.Path, ErrMemory, need, i.WeightBytes, other, i.Context, m.Available)
}

func (e *Engine) openTemplate() error {
	src, ok, err := e.file.String("tokenizer.chat_template")
	if err != nil || !ok {
		return err
	}
	text := func(id int32) string {
		if id < 0 {
			return ""
		}
		return e.tok.Text(id)
	}
	if e.chat, err = template.ForModel(src, text(e.tok.BOS()), text(e.tok.EOS())); err != nil {
		return fmt.Errorf("%s: tokenizer.chat_template: %w", e.file.Path(), err)
	}
	return nil
}

// Close frees the model, after the pass that is running. Sessions give ErrClosed from then on.
func (e *Engine) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return nil
	}
	e.closed = true
	if e.model != nil {
		e.model.Close()
	}
	if e.dev != nil {
		e.dev.Close()
	}
	return e.file.Close()
}

// Info describes the model.
func (e *Engine) Info() Info { return e.info }

// Tokenizer returns the model's tokenizer.
func (e *Engine) Tokenizer() *tokenizer.Tokenizer { return e.tok }

// Chat returns the model's chat template, nil if it has none.
func (e *Engine) Chat() *template.Chat { return e.chat }

// Text tokenizes a prompt as it is, control tokens in it included, after the token that begins a text where the model wants
// one.
func (e *Engine) Text(prompt string) []int32 {
	ids := e.tok.Encode(prompt, true)
	if e.tok.AddBOS() && (len(ids) == 0 || ids[0] != e.tok.BOS()) {
		ids = append([]int32{e.tok.BOS()}, ids...)
	}
	return ids
}
