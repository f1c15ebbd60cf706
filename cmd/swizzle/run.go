package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/swizzle-rt/swizzle/runtime/engine"
)

type runCmd struct {
	modelFlags
	Prompt   *string       `short:"p" placeholder:"TEXT" help:"Prompt to answer. Default: standard input, or a chat if that is a terminal."`
	System   string        `placeholder:"TEXT" help:"System message of the conversation."`
	Predict  int           `short:"n" default:"-1" placeholder:"N" help:"Most new tokens. Default: until the answer or the context ends."`
	Context  int           `short:"c" placeholder:"N" help:"Context in tokens. Default: the model's, at most 8192."`
	Raw      bool          `help:"Continue the prompt as it is, without the model's chat template."`
	Stats    bool          `help:"Show speed, load time and seed on stderr."`
	JSON     bool          `name:"json" help:"Print one JSON object at the end instead of streaming text."`
	Sampling samplingFlags `embed:""`
}

// Help gives the examples of --help.
func (*runCmd) Help() string {
	return `Examples:

    swizzle run -m model.gguf
    swizzle run -m model.gguf -p "Name the capital of France."
    swizzle run -m model.gguf --temp 0 -n 100 <question.txt
    swizzle run -m model.gguf --raw -p "Once upon a time" --seed 7

Text goes to stdout, everything else to stderr. Ctrl-C stops an answer. SWIZZLE_ISA=portable, avx2, avxvnni or avx512vnni names the instruction set to use; none of these changes the text.`
}

// Run answers the prompt, or chats.
func (c *runCmd) Run() error {
	if err := c.check(); err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	if c.Prompt == nil && isTerminal(os.Stdin) {
		e, err := c.load(ctx, c.Context)
		if err != nil {
			return err
		}
		defer e.Close()
		stop() // from here an interrupt ends an answer only
		return c.chat(e)
	}
	prompt, err := c.prompt(ctx, os.Stdin)
	if err != nil {
		return err
	}
	e, err := c.load(ctx, c.Context)
	if err != nil {
		return err
	}
	defer e.Close()
	return c.answer(ctx, e, prompt)
}

// check reports a mistake in the flags.
func (c *runCmd) check() error {
	if err := c.modelFlags.check(); err != nil {
		return err
	}
	if c.Predict < -1 {
		return usagef("--predict is %d, expected a number of tokens, or -1 for no limit", c.Predict)
	}
	if c.Raw && c.System != "" {
		return usagef("--system needs the chat template that --raw leaves out")
	}
	if c.JSON && c.Prompt == nil && isTerminal(os.Stdin) {
		return usagef("--json needs a prompt, from -p or from standard input")
	}
	if err := c.Sampling.params().Validate(); err != nil {
		return usagef("%v", err)
	}
	return nil
}

// prompt returns the text of -p, or else that of in.
func (c *runCmd) prompt(ctx context.Context, in io.Reader) (string, error) {
	if c.Prompt != nil {
		return *c.Prompt, nil
	}
	data, err := readInput(ctx, in, "prompt")
	if err != nil {
		return "", err
	}
	text := decodeText(data)
	text = strings.TrimSuffix(text, "\n")
	text = strings.TrimSuffix(text, "\r")
	if text == "" {
		return "", usagef("no prompt: standard input is empty, and there is no -p")
	}
	return text, nil
}

// answer writes the answer to one prompt.
func (c *runCmd) answer(ctx context.Context, e *engine.Engine, prompt string) error {
	t, err := newConversation(e, c)
	if err != nil {
		return err
	}
	defer t.close()
	out := &textWriter{w: os.Stdout}
	if c.JSON {
		out.w = io.Discard
	}
	r, err := t.ask(ctx, prompt, out.write)
	if err != nil && !errors.Is(err, context.Canceled) {
		out.endLine()
		return err
	}
	if c.JSON {
		err = errors.Join(err, printJSON(r.json(e)))
	} else {
		err = errors.Join(err, out.endLine())
	}
	if c.Stats {
		r.printStats(e)
	}
	r.warn(e)
	return err
}

// textWriter writes the pieces of a text as they come.
type textWriter struct {
	w       io.Writer
	midLine bool
}

func (t *textWriter) write(text string) error {
	if text == "" {
		return nil
	}
	t.midLine = text[len(text)-1] != '\n'
	if _, err := io.WriteString(t.w, text); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	return nil
}

// endLine ends the last line, if the text did not.
func (t *textWriter) endLine() error {
	if !t.midLine {
		return nil
	}
	return t.write("\n")
}

// reply is what became of one prompt.
type reply struct {
	engine.Result
	seed uint32
}

// interrupted is the Finish of an answer that was cancelled.
const interrupted = "interrupted"

// json returns the object that run --json prints.
func (r *reply) json(e *engine.Engine) any {
	return struct {
		Text               string  `json:"text"`
		Finish             string  `json:"finish"` // stop, length, context, interrupted
		PromptTokens       int     `json:"prompt_tokens"`
		NewTokens          int     `json:"new_tokens"`
		Seed               uint32  `json:"seed"`
		LoadSeconds        float64 `json:"load_seconds"`
		PromptSeconds      float64 `json:"prompt_seconds"`
		PromptTokensPerSec float64 `json:"prompt_tokens_per_second"`
		NewSeconds         float64 `json:"new_seconds"`
		NewTokensPerSec    float64 `json:"new_tokens_per_second"`
	}{
		r.Text, r.Finish, r.PromptTokens, r.NewTokens, r.seed, e.Info().LoadTime.Seconds(),
		r.Prefill.Seconds(), rate(r.PromptTokens, r.Prefill), r.Decode.Seconds(), r.decodeRate(),
	}
}

// decodeRate returns tokens a second. The first token comes of the prompt's logits; the last one is evaluated only if
// another could follow.
func (r *reply) decodeRate() float64 {
	evaluated := r.NewTokens
	if r.Finish != engine.FinishStop && evaluated > 0 {
		evaluated--
	}
	return rate(evaluated, r.Decode)
}

// printStats shows on stderr how fast it went.
func (r *reply) printStats(e *engine.Engine) {
	fmt.Fprintf(os.Stderr, "load %.2f s; prompt %d tokens, %.1f tok/s; answer %d tokens, %.1f tok/s; seed %d\n",
		e.Info().LoadTime.Seconds(), r.PromptTokens, rate(r.PromptTokens, r.Prefill), r.NewTokens, r.decodeRate(), r.seed)
}

// warn says on stderr that an answer is cut because the context is full.
func (r *reply) warn(e *engine.Engine) {
	if r.Finish == engine.FinishContext {
		fmt.Fprintf(os.Stderr, "swizzle: the context of %d tokens is full, so the answer ends here; -c N makes it larger\n", e.Info().Context)
	}
}

// rate returns tokens a second, 0 if no time has passed.
func rate(tokens int, d time.Duration) float64 {
	if d <= 0 {
		return 0
	}
	return float64(tokens) / d.Seconds()
}
