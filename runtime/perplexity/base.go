package perplexity

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// Base reads the predictions that another model made for a text: the file that llama-perplexity writes with
// --kl-divergence-base. All of it is little-endian:
//
//	"_logits_"
//	uint32 tokens of a chunk, int32 vocabulary, int32 chunks
//	int32  tokens of all chunks, before BOS took the place of any
//	rows   of each chunk, for every scored position:
//	       float32 scale, float32 least, uint16 code of each token; a code more where the vocabulary is odd
//
// The logarithm of a token's probability is least + scale·code. Those 16 below the likeliest token's or less are not told
// apart: their code is 0.
type Base struct {
	Context int     // tokens of a chunk
	Vocab   int     // tokens of the vocabulary
	Chunks  int     // in the file
	Tokens  []int32 // Context for each chunk

	path string
	file *os.File
	in   *bufio.Reader
	row  []byte // the row read last
	read int    // rows
}

const (
	baseMagic  = "_logits_"
	baseHeader = len(baseMagic) + 12
	maxVocab   = 1 << 24
)

// OpenBase opens a file and reads what precedes the rows. The file must have exactly the size that its header gives.
func OpenBase(path string) (b *Base, err error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = f.Close() // it was only read
		}
	}()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	b = &Base{path: path, file: f, in: bufio.NewReaderSize(f, 1<<16)}
	if err := b.readHeader(info.Size()); err != nil {
		return nil, err
	}
	return b, nil
}

// Close closes the file.
func (b *Base) Close() error { return b.file.Close() }

func (b *Base) readHeader(size int64) error {
	var h [baseHeader]byte
	if _, err := io.ReadFull(b.in, h[:]); err != nil {
		return b.short("header", 0, err)
	}
	if string(h[:len(baseMagic)]) != baseMagic {
		return fmt.Errorf("%s: offset 0: %q, expected %q: this is no file of log-probabilities by llama-perplexity", b.path, h[:len(baseMagic)], baseMagic)
	}
	field := func(i int) int64 { return int64(binary.LittleEndian.Uint32(h[len(baseMagic)+4*i:])) }
	context, vocab, chunks := field(0), field(1), field(2)
	switch {
	case context < MinContext || context > math.MaxInt32:
		return fmt.Errorf("%s: offset 8: chunks of %d tokens, expected %d to %d", b.path, context, MinContext, math.MaxInt32)
	case vocab < 1 || vocab > maxVocab:
		return fmt.Errorf("%s: offset 12: a vocabulary of %d tokens, expected 1 to %d", b.path, vocab, maxVocab)
	case chunks < 1:
		return fmt.Errorf("%s: offset 16: no chunks", b.path)
	}
	// No product overflows: a chunk has below 2³¹ tokens, a row below 2²⁶ bytes, and what follows compares quotients.
	rowBytes := 8 + 2*(vocab+vocab%2)
	chunkBytes := 4*context + int64(scoredRows(int(context)))*rowBytes
	if rest := size - int64(baseHeader); chunks != rest/chunkBytes || rest%chunkBytes != 0 {
		return fmt.Errorf("%s: %d bytes after the header, expected %d chunks of %d: the file is damaged or not complete", b.path, rest, chunks, chunkBytes)
	}
	b.Context, b.Vocab, b.Chunks = int(context), int(vocab), int(chunks)
	data := make([]byte, 4*context*chunks)
	if _, err := io.ReadFull(b.in, data); err != nil {
		return b.short("tokens", int64(baseHeader), err)
	}
	b.Tokens = make([]int32, context*chunks)
	for i := range b.Tokens {
		id := binary.LittleEndian.Uint32(data[4*i:])
		if int64(id) >= vocab {
			return fmt.Errorf("%s: offset %d: token %d, expected one of the vocabulary's %d", b.path, baseHeader+4*i, int32(id), vocab)
		}
		b.Tokens[i] = int32(id)
	}
	b.row = make([]byte, rowBytes)
	return nil
}

// next reads the next row.
func (b *Base) next() error {
	if _, err := io.ReadFull(b.in, b.row); err != nil {
		return b.short(fmt.Sprintf("row %d", b.read), b.offset(), err)
	}
	// The likeliest token has a probability of at most 1, up to rounding. The comparison is false for NaN.
	scale, least := b.scale(), b.least()
	if top := least + float64(scale*math.MaxUint16); !(scale >= 0 && least > -1e3 && top < 1e-2) {
		return fmt.Errorf("%s: offset %d: row %d: scale %g and least value %g don't give logarithms of probabilities", b.path, b.offset(), b.read, scale, least)
	}
	b.read++
	return nil
}

// offset returns that of the first row not read.
func (b *Base) offset() int64 {
	return int64(baseHeader) + 4*int64(len(b.Tokens)) + int64(b.read)*int64(len(b.row))
}

func (b *Base) scale() float64 { return float64(float32At(b.row)) }
func (b *Base) least() float64 { return float64(float32At(b.row[4:])) }

// code returns a token's code in the row read last.
func (b *Base) code(id int) uint16 { return binary.LittleEndian.Uint16(b.row[8+2*id:]) }

func float32At(p []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(p)) }

func (b *Base) short(what string, offset int64, err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: offset %d: the file ends within the %s", b.path, offset, what)
	}
	return fmt.Errorf("%s: offset %d: %s: %w", b.path, offset, what, err)
}
