// Command swizzle runs language models from GGUF files on kernels that are compiled into it.
//
//	swizzle run -m model.gguf -p "Name the capital of France."
//	swizzle serve -m model.gguf
//
// Results go to stdout, everything else to stderr. Its exit statuses are 0, 1 for a failure, 2 for a wrong
// command line, and 130 after an interrupt.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"reflect"
	"strconv"
	"strings"
	"syscall"
	"unicode"

	"github.com/alecthomas/kong"
)

// Exit statuses.
const (
	statusFailure     = 1
	statusUsage       = 2
	statusInterrupted = 130
)

type cli struct {
	Run        runCmd        `cmd:"" help:"Answer a prompt, or chat on a terminal."`
	Serve      serveCmd      `cmd:"" help:"Serve the OpenAI API over HTTP."`
	Bench      benchCmd      `cmd:"" help:"Measure prompt processing and generation."`
	Perplexity perplexityCmd `cmd:"" help:"Measure how well a model predicts a text."`
	Tune       tuneCmd       `cmd:"" help:"Measure which kernels are the fastest on this machine."`
	Inspect    inspectCmd    `cmd:"" help:"Show the metadata and tensors of a GGUF file."`
	Tokenize   tokenizeCmd   `cmd:"" help:"Show the tokens of a text."`
	Kernels    kernelsCmd    `cmd:"" help:"List, show and check the compiled-in kernels."`
	Devices    devicesCmd    `cmd:"" help:"Show what the kernels can run on."`
	Version    versionCmd    `cmd:"" help:"Show the version."`
	Completion completionCmd `cmd:"" help:"Print a completion script for a shell."`
}

// usageError is a mistake in the command line.
type usageError struct{ message string }

func (e *usageError) Error() string { return e.message }

func usagef(format string, args ...any) error {
	return &usageError{fmt.Sprintf(format, args...)}
}

func main() { os.Exit(execute(os.Args[1:])) }

// execute runs a command line and returns the exit status.
func execute(args []string) (status int) {
	defer func() {
		if p := recover(); p != nil {
			report(fmt.Errorf("internal error: %v", p))
			status = statusFailure
		}
	}()
	var c cli
	helped := false
	parser := newParser(&c, func(int) { helped = true })
	if len(args) == 0 {
		parser.Stdout = os.Stderr
		_, _ = parser.Parse([]string{"--help"})
		return statusUsage
	}
	ctx, err := parser.Parse(args)
	if helped {
		return 0
	}
	if err != nil {
		report(fmt.Errorf("%w; %s --help shows the usage", err, commandPath(err)))
		return statusUsage
	}
	err = ctx.Run()
	var usage *usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, context.Canceled):
		return statusInterrupted
	case errors.As(err, &usage):
		report(err)
		return statusUsage
	}
	report(err)
	return statusFailure
}

// newParser returns the parser that fills c. Asked for help, it prints it and calls exit.
func newParser(c *cli, exit func(int)) *kong.Kong {
	return kong.Must(c,
		kong.Name("swizzle"),
		kong.Description("Runs language models on this machine."),
		kong.Exit(exit),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.WithHyphenPrefixedParameters(true), // -p "- a list", --seed -1
		kong.KindMapper(reflect.String, kong.MapperFunc(decodeString)),
	)
}

// decodeString takes any argument as a text, also an empty one and one with a hyphen in front, but not the end of
// the command line.
func decodeString(ctx *kong.DecodeContext, target reflect.Value) error {
	token := ctx.Scan.Pop()
	if token.IsEOL() {
		return errors.New("expected a value")
	}
	target.SetString(token.String())
	return nil
}

// commandPath returns the command, as far as it was recognised, whose parse gave err.
func commandPath(err error) string {
	path := "swizzle"
	var parse *kong.ParseError
	if errors.As(err, &parse) && parse.Context != nil {
		for _, step := range parse.Context.Path {
			if step.Command != nil {
				path += " " + step.Command.Name
			}
		}
	}
	return path
}

// report writes an error to stderr on one line.
func report(err error) {
	fmt.Fprintf(os.Stderr, "swizzle: %s\n", printable(err.Error()))
}

// printable replaces what would control a terminal, line ends included: an error may quote a file.
func printable(text string) string {
	if !strings.ContainsFunc(text, unprintable) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		if unprintable(r) {
			q := strconv.QuoteRune(r)
			b.WriteString(q[1 : len(q)-1])
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

func unprintable(r rune) bool { return r != ' ' && !unicode.IsPrint(r) }

// interruptible returns a context that the first SIGINT or SIGTERM cancels. The second ends the process.
func interruptible() (context.Context, context.CancelFunc) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
