package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"strings"
	"syscall"

	"golang.org/x/term"
)

// newLineReader returns a reader of the terminal on stdin. Prompts go to stderr.
func newLineReader() lineReader {
	if canMoveCursor(os.Stdin) && canMoveCursor(os.Stderr) && runtime.GOOS != "windows" { // Windows edits lines itself
		e := &lineEditor{}
		e.Terminal = e.newTerminal()
		return e
	}
	return &plainLines{in: bufio.NewReader(os.Stdin), lines: make(chan readLine)}
}

// readLine is what a read of a line gave.
type readLine struct {
	text string
	err  error
}

// lineEditor lets the user edit a line, and recall earlier ones with the arrow keys.
type lineEditor struct {
	*term.Terminal
	ctrlC bool // the last bytes read had a Ctrl-C
}

func (e *lineEditor) newTerminal() *term.Terminal {
	return term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{e, os.Stderr}, "")
}

// Read reads what is typed and notes Ctrl-C, which in raw mode is a byte and which term.Terminal reports as an end of
// the input.
func (e *lineEditor) Read(p []byte) (int, error) {
	n, err := os.Stdin.Read(p)
	e.ctrlC = strings.Contains(string(p[:n]), "\x03")
	return n, err
}

// readLine reads a line, or all lines of a text that is pasted at once. The terminal is in raw mode only meanwhile, so
// that during an answer Ctrl-C is a signal.
func (e *lineEditor) readLine(prompt string) (string, error) {
	in := int(os.Stdin.Fd())
	state, err := term.MakeRaw(in)
	if err != nil {
		return "", fmt.Errorf("terminal: %w", err)
	}
	defer term.Restore(in, state)
	ended := make(chan os.Signal, 1) // would else leave the terminal as it is now
	signal.Notify(ended, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(ended)
	e.SetBracketedPasteMode(true)
	defer e.SetBracketedPasteMode(false)
	if width, height, err := term.GetSize(in); err == nil && width > 0 { // 0: a terminal that knows no size
		if err := e.SetSize(width, height); err != nil {
			return "", err
		}
	}
	read := make(chan readLine, 1)
	go func() {
		text, err := e.readLines(prompt)
		read <- readLine{text, err}
	}()
	select {
	case <-ended: // the read is left behind
		fmt.Fprint(os.Stderr, "\r\n")
		return "", context.Canceled
	case line := <-read:
		return line.text, line.err
	}
}

// readLines reads a line, or the lines of a paste.
func (e *lineEditor) readLines(prompt string) (string, error) {
	text := ""
	e.SetPrompt(prompt)
	for {
		line, err := e.ReadLine()
		switch {
		case err == nil:
			return text + line, nil
		case errors.Is(err, term.ErrPasteIndicator): // more may follow
			text += line + "\n"
			e.SetPrompt(moreLines)
			continue
		case e.ctrlC:
			fmt.Fprint(os.Stderr, "^C\r\n")
			history := e.History
			e.Terminal = e.newTerminal() // without the unfinished line
			e.History = history
			return "", errInterrupt
		}
		fmt.Fprint(os.Stderr, "\r\n")
		return "", err
	}
}

// plainLines reads lines as the terminal delivers them.
type plainLines struct {
	in      *bufio.Reader
	lines   chan readLine
	reading bool // a read is under way that an interrupt left behind
}

func (p *plainLines) readLine(prompt string) (string, error) {
	interrupts := make(chan os.Signal, 1)
	signal.Notify(interrupts, os.Interrupt)
	defer signal.Stop(interrupts)
	fmt.Fprint(os.Stderr, prompt)
	if !p.reading {
		p.reading = true
		go func() {
			text, err := p.in.ReadString('\n')
			p.lines <- readLine{text, err}
		}()
	}
	select {
	case <-interrupts:
		fmt.Fprintln(os.Stderr)
		return "", errInterrupt
	case line := <-p.lines:
		p.reading = false
		if line.err != nil && line.text == "" {
			fmt.Fprintln(os.Stderr)
			return "", line.err
		}
		return strings.TrimRight(line.text, "\r\n"), nil
	}
}
