package main

import (
	"cmp"
	"fmt"
	"os"
	"strings"

	"github.com/vbauerster/mpb/v8"
	"github.com/vbauerster/mpb/v8/decor"

	"github.com/swizzle-rt/swizzle/runtime/perplexity"
)

type perplexityCmd struct {
	modelFlags
	File    string `short:"f" required:"" placeholder:"FILE" help:"Text to predict."`
	Context int    `short:"c" placeholder:"N" help:"Tokens of a chunk. Default: those of --kl-base, else 512."`
	Chunks  int    `placeholder:"N" help:"Most chunks of the text. Default: all."`
	KLBase  string `name:"kl-base" placeholder:"FILE" help:"Compare with the predictions of another model, a file by llama-perplexity --kl-divergence-base."`
	JSON    bool   `name:"json" help:"Print JSON."`
}

// Help gives the examples of --help.
func (*perplexityCmd) Help() string {
	return `Examples:

    swizzle perplexity -m model.gguf -f text.txt
    swizzle perplexity -m model.gguf -f text.txt --chunks 8 --json
    llama-perplexity -m f32.gguf -f text.txt -c 512 --kl-divergence-base f32.kld
    swizzle perplexity -m q4.gguf -f text.txt --kl-base f32.kld

The text is tokenized whole and cut into chunks; the second half of each is scored, as llama-perplexity does it. PPL is the exponential of the mean of -ln p over the tokens there, KLD the Kullback-Leibler divergence from the other model in nats.`
}

// Run measures and prints.
func (c *perplexityCmd) Run() error {
	if err := c.check(); err != nil {
		return err
	}
	if c.Context != 0 && c.Context < perplexity.MinContext {
		return usagef("--context is %d, expected at least %d", c.Context, perplexity.MinContext)
	}
	if c.Chunks < 0 {
		return usagef("--chunks is %d, expected a number of chunks, or 0 for all", c.Chunks)
	}
	text, err := os.ReadFile(c.File)
	if err != nil {
		return err
	}
	o := perplexity.Options{Context: cmp.Or(c.Context, perplexity.DefaultContext), Chunks: c.Chunks}
	if c.KLBase != "" {
		if o.Base, err = perplexity.OpenBase(c.KLBase); err != nil {
			return err
		}
		defer o.Base.Close()
		o.Context = cmp.Or(c.Context, o.Base.Context)
	}
	ctx, stop := interruptible()
	defer stop()
	e, err := c.load(ctx, o.Context)
	if err != nil {
		return err
	}
	defer e.Close()
	// llama-perplexity leaves out a line end that ends the text.
	ids := perplexity.Tokens(e.Tokenizer(), strings.TrimSuffix(string(text), "\n"))
	progress, done := tokensBar("evaluating")
	o.Progress = progress
	r, err := perplexity.Measure(ctx, e, ids, o)
	done()
	if err != nil {
		return fmt.Errorf("%s with %s: %w", c.Model, c.File, err)
	}
	if c.JSON {
		return printJSON(r)
	}
	return printPerplexity(r)
}

func printPerplexity(r perplexity.Result) error {
	rows := [][]string{
		{"tokens", fmt.Sprintf("%d scored, of %d chunks of %d", r.Scored, r.Chunks, r.Context)},
		{"PPL", fmt.Sprintf("%.4f ± %.4f", r.PPL, r.PPLError)},
	}
	if d := r.Divergence; d != nil {
		rows = append(rows, [][]string{
			{"PPL of the base", fmt.Sprintf("%.4f ± %.4f", d.BasePPL, d.BasePPLError)},
			{"PPL ratio", fmt.Sprintf("%.6f ± %.6f", d.PPLRatio, d.PPLRatioError)},
			{"KLD, mean", fmt.Sprintf("%.6f ± %.6f", d.KLDMean, d.KLDError)},
			{"KLD, median", fmt.Sprintf("%.6f", d.KLDMedian)},
			{"KLD, 99 %", fmt.Sprintf("%.6f", d.KLD99)},
			{"KLD, 99.9 %", fmt.Sprintf("%.6f", d.KLD999)},
			{"KLD, maximum", fmt.Sprintf("%.6f", d.KLDMax)},
			{"same top token", fmt.Sprintf("%.2f ± %.2f %%", d.SameTop, d.SameTopError)},
		}...)
	}
	return printTable(rows)
}

// tokensBar shows a bar that counts tokens, like progressBar.
func tokensBar(name string) (update func(done, total int), done func()) {
	if !canMoveCursor(os.Stderr) {
		return nil, func() {}
	}
	progress := mpb.New(mpb.WithOutput(os.Stderr), mpb.WithWidth(64))
	bar := progress.AddBar(0, mpb.PrependDecorators(decor.Name(name+" "), decor.CountersNoUnit("%d / %d tokens ")),
		mpb.AppendDecorators(decor.Percentage()))
	update = func(done, total int) {
		bar.SetTotal(int64(total), false)
		bar.SetCurrent(int64(done))
	}
	return update, func() {
		bar.Abort(true)
		progress.Wait()
	}
}
