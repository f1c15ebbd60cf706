package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"unicode/utf16"
)

// maxInput bounds the bytes of a text from standard input: far more than any context holds.
const maxInput = 64 << 20

// readInput reads a text to its end, or until ctx ends: then it leaves the read behind, which may never end. what names the
// text in errors.
func readInput(ctx context.Context, in io.Reader, what string) ([]byte, error) {
	type input struct {
		data []byte
		err  error
	}
	read := make(chan input, 1)
	go func() {
		data, err := io.ReadAll(io.LimitReader(in, maxInput+1))
		read <- input{data, err}
	}()
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case got := <-read:
		if got.err != nil {
			return nil, fmt.Errorf("read the %s: %w", what, got.err)
		}
		if len(got.data) > maxInput {
			return nil, fmt.Errorf("read the %s: more than %s", what, formatBytes(maxInput))
		}
		return got.data, nil
	}
}

// decodeText returns data as UTF-8. A byte order mark says that it is UTF-16, or goes away.
func decodeText(data []byte) string {
	var order binary.ByteOrder
	switch {
	case bytes.HasPrefix(data, []byte{0xFF, 0xFE}):
		order = binary.LittleEndian
	case bytes.HasPrefix(data, []byte{0xFE, 0xFF}):
		order = binary.BigEndian
	default:
		return string(bytes.TrimPrefix(data, []byte("\uFEFF")))
	}
	data = data[2:]
	units := make([]uint16, len(data)/2)
	for i := range units {
		units[i] = order.Uint16(data[2*i:])
	}
	return string(utf16.Decode(units))
}
