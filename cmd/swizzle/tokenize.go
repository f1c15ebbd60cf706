package main

import (
	"encoding/json"
	"fmt"
	"io"
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

No token is put in front of the text. Names of control tokens in the text, such as <|im_end|>, become those tokens.`
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
		return fmt.Errorf("%s: %w", c.Model, err)
	}
	text := c.Text
	if text == "-" {
		data, err := io.ReadAll(os.Stdin)
		if err != nil {
			return fmt.Errorf("read the text: %w", err)
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
	rows := make([][]string, len(ids))
	for i, id := range ids {
		piece := string(tok.Piece(id))
		if piece == "" {
			piece = tok.Text(id) // a control token
		}
		rows[i] = []string{strconv.Itoa(int(id)), strconv.Quote(piece)}
	}
	return printTable(rows)
}
