package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"strconv"

	"github.com/swizzle-rt/swizzle/runtime/gguf"
	"github.com/swizzle-rt/swizzle/runtime/tokenizer"
)

type tokenizeCmd struct {
	Model string `short:"m" required:"" placeholder:"FILE" help:"GGUF file; one with a vocabulary alone will do."`
	JSON  bool   `name:"json" help:"Print a JSON array of ids."`
	Text  string `arg:"" help:"Text to tokenize, or - for standard input."`
}

// Help gives the examples of --help.
func (*tokenizeCmd) Help() string {
	return `Examples:

    swizzle tokenize -m model.gguf "Hello, world"
    swizzle tokenize -m model.gguf --json - <text.txt

No token is put in front of the text. Names of control tokens in the text, such as <|im_end|>, become those tokens. Standard input may have up to 64 MiB.`
}

// Run prints the tokens of the text.
func (c *tokenizeCmd) Run() error {
	f, err := gguf.Open(c.Model)
	if err != nil {
		return err
	}
	defer f.Close()
	tok, err := tokenizer.FromGGUF(f)
	if err != nil {
		return err
	}
	text := c.Text
	if text == "-" {
		data, err := readInput(context.Background(), os.Stdin, "text")
		if err != nil {
			return err
		}
		text = string(data)
	}
	ids := tok.Encode(text, true)
	if c.JSON {
		if ids == nil {
			ids = []int32{}
		}
		line, err := json.Marshal(ids)
		if err != nil {
			return err
		}
		_, err = fmt.Printf("%s\n", line)
		return err
	}
	width := 0
	for _, id := range ids {
		width = max(width, len(strconv.Itoa(int(id))))
	}
	w := bufio.NewWriter(os.Stdout) // there may be millions: no table is kept
	for _, id := range ids {
		piece := string(tok.Piece(id))
		if piece == "" {
			piece = tok.Text(id) // a control token
		}
		fmt.Fprintf(w, "%-*d  %q\n", width, id, piece)
	}
	return w.Flush()
}
