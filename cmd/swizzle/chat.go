package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"github.com/swizzle-rt/swizzle/runtime/engine"
)

const chatHelp = `  /set              show the settings
  /set NAME VALUE   change one: temp, top-k, top-p, min-p, seed, predict, system, …
  /clear            forget the conversation
  /help             show this
  /bye              leave (or Ctrl-D)
  """               begin and end a message of several lines
  Ctrl-C            stop an answer
`

const (
	chatPrompt = ">>> "
	moreLines  = "... "
	quotes     = `"""`
)

// errInterrupt is what a lineReader returns when Ctrl-C ends a line.
var errInterrupt = errors.New("interrupt")

// lineReader reads lines typed by a user.
type lineReader interface {
	// readLine shows a prompt and returns the line after it, without its end. It fails with io.EOF at the end of the
	// input, with errInterrupt after Ctrl-C, and with context.Canceled after a signal to end.
	readLine(prompt string) (string, error)
}

// chat talks with the user of the terminal until they leave.
func (c *runCmd) chat(e *engine.Engine) error {
	t, err := newConversation(e, c)
	if err != nil {
		return err
	}
	defer t.close()
	held := make(chan os.Signal, 1)
	signal.Notify(held, os.Interrupt) // one that comes between two answers must not end the program
	defer signal.Stop(held)
	lines := newLineReader()
	fmt.Fprintf(os.Stderr, "%s, context %d tokens. /help shows the commands, /bye leaves.\n", printable(modelName(e)), e.Info().Context)
	for {
		text, quoted, err := readMessage(lines)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case errors.Is(err, errInterrupt):
			fmt.Fprintln(os.Stderr, "To leave, type /bye or press Ctrl-D.")
			continue
		case err != nil:
			return err
		case strings.TrimSpace(text) == "":
			continue
		}
		if command, ok := strings.CutPrefix(text, "/"); ok && !quoted && !strings.Contains(text, "\n") {
			leave, err := t.command(command)
			if err != nil {
				report(err)
			}
			if leave {
				return nil
			}
			continue
		}
		if err := c.turn(t, text); err != nil {
			report(err)
		}
	}
}

// readMessage reads a line, or the lines between triple quotes, which are no command whatever they say.
func readMessage(lines lineReader) (text string, quoted bool, err error) {
	line, err := lines.readLine(chatPrompt)
	if err != nil {
		return "", false, err
	}
	text, quoted = strings.CutPrefix(strings.TrimLeft(line, " \t"), quotes)
	if !quoted {
		return line, false, nil
	}
	for {
		if body, ok := strings.CutSuffix(strings.TrimRight(text, " \t"), quotes); ok {
			return strings.Trim(body, "\n"), true, nil
		}
		line, err := lines.readLine(moreLines)
		if err != nil {
			return "", true, err
		}
		text += "\n" + line
	}
}

// command carries out what follows a slash.
func (t *conversation) command(text string) (leave bool, err error) {
	name, rest, _ := strings.Cut(strings.TrimSpace(text), " ")
	rest = strings.TrimSpace(rest)
	switch name {
	case "bye", "exit", "quit":
		return true, nil
	case "clear":
		t.clear()
		return false, nil
	case "help", "?":
		fmt.Fprint(os.Stderr, chatHelp)
		return false, nil
	case "set":
		return false, t.set(rest)
	}
	return false, fmt.Errorf("no command /%s; /help shows the commands", name)
}

// set changes a setting, or shows all if text is empty.
func (t *conversation) set(text string) error {
	settings := t.sampling.settings()
	settings.IntVar(&t.predict, "predict", t.predict, "")
	if text == "" {
		settings.VisitAll(func(f *flag.Flag) { fmt.Fprintf(os.Stderr, "  %s %s\n", f.Name, f.Value) })
		fmt.Fprintf(os.Stderr, "  system %q\n", t.system)
		return nil
	}
	name, value, _ := strings.Cut(text, " ")
	if name != "system" && settings.Lookup(name) == nil {
		var names []string
		settings.VisitAll(func(f *flag.Flag) { names = append(names, f.Name) })
		return fmt.Errorf("no setting %q, expected one of %s, system", name, strings.Join(names, ", "))
	}
	value = strings.Trim(strings.TrimSpace(value), `"`)
	switch name {
	case "system":
		return t.setSystem(value)
	case "predict":
		n := t.predict
		if err := settings.Set(name, value); err != nil || t.predict < -1 {
			t.predict = n
			return fmt.Errorf("predict: %q, expected a number of tokens, or -1 for no limit", value)
		}
		return nil
	}
	return t.sampling.change(name, value)
}

// turn answers one message. Ctrl-C ends the answer.
func (c *runCmd) turn(t *conversation, text string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	out := &textWriter{w: os.Stdout}
	r, err := t.ask(ctx, text, out.write)
	if err := errors.Join(out.endLine(), ignoreCancel(err)); err != nil {
		return err
	}
	if c.Stats {
		r.printStats(t.engine)
	}
	if r.Finish == engine.FinishContext {
		fmt.Fprintf(os.Stderr, "The context of %d tokens is full. /clear starts anew.\n", t.engine.Info().Context)
	}
	return nil
}

func ignoreCancel(err error) error {
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
