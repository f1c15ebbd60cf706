package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/zeebo/blake3"

	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/engine"
	"github.com/swizzle-rt/swizzle/runtime/gguf"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

type kernelsCheckCmd struct {
	JSON bool `name:"json" help:"Print JSON."`
}

// Help gives the examples of --help.
func (*kernelsCheckCmd) Help() string {
	return `Examples:

    swizzle kernels check

It compares the kernels with the manifest they were generated with. Then it runs a small model with pseudo-random weights of each format on every instruction set that this CPU has, and compares all bits of the logits with those of the portable kernels.`
}

// kernelsCheck is what kernels check --json prints.
type kernelsCheck struct {
	Kernels int         `json:"kernels"`
	Set     string      `json:"set"` // BLAKE3 of the manifest's entries
	Runs    []kernelRun `json:"runs"`
}

type kernelRun struct {
	ISA    cpu.ISA `json:"isa"`
	Format string  `json:"format"` // of the weights
	Logits string  `json:"logits"` // BLAKE3 of their bits
	Equal  bool    `json:"equal"`  // to those of the portable kernels
}

// Run checks the kernels.
func (c *kernelsCheckCmd) Run() error {
	ctx, stop := interruptible()
	defer stop()
	out, err := checkKernels(ctx)
	if err != nil {
		return err
	}
	var wrong []string
	equal := map[cpu.ISA]int{}
	for _, r := range out.Runs {
		if r.Equal {
			equal[r.ISA]++
		} else {
			wrong = append(wrong, fmt.Sprintf("%s with %s weights", r.ISA, r.Format))
		}
	}
	if c.JSON {
		err = printJSON(out)
	} else {
		rows := [][]string{{"manifest", fmt.Sprintf("%d kernels, set %s", out.Kernels, out.Set)}}
		for _, isa := range cpu.Detect().Available() {
			rows = append(rows, []string{string(isa), fmt.Sprintf("%d of %d weight formats give the bits of portable", equal[isa], len(weightFormats))})
		}
		err = printTable(rows)
	}
	if err == nil && len(wrong) > 0 {
		err = fmt.Errorf("other bits than portable: %s", strings.Join(wrong, ", "))
	}
	return err
}

// checkKernels compares the kernels with the manifest, and runs a model of each format of weights on each instruction set.
func checkKernels(ctx context.Context) (*kernelsCheck, error) {
	manifest, err := checkRecords()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "swizzle-check-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	out := &kernelsCheck{Kernels: len(kernels()), Set: manifest.Set}
	isas := cpu.Detect().Available()
	slices.Reverse(isas) // portable comes first
	for _, w := range weightFormats {
		path := filepath.Join(dir, w.kind.String()+".gguf")
		if err := writeCheckModel(path, w); err != nil {
			return nil, err
		}
		want := ""
		for _, isa := range isas {
			got, err := logitsHash(ctx, path, isa, w.kv, kernels())
			if err != nil {
				return nil, err
			}
			if isa == cpu.Portable {
				want = got
			}
			out.Runs = append(out.Runs, kernelRun{isa, w.kind.String(), got, got == want})
		}
	}
	return out, nil
}

// checkWidth is the width of the check's model, one layer of the llama architecture: one block of the formats with 256
// elements.
const checkWidth = 256

// weightFormat is a format of weights, the format of the KV cache to check with it, and where the half-precision scales
// of its blocks are. The other bytes of a block may hold anything.
type weightFormat struct {
	kind   gguf.Type
	kv     string
	scales []int
}

var weightFormats = []weightFormat{
	{gguf.TypeF32, "f32", nil},
	{gguf.TypeF16, "f16", nil},
	{gguf.TypeBF16, "f16", nil},
	{gguf.TypeQ4_0, "f16", []int{0}},
	{gguf.TypeQ4_1, "f32", []int{0, 2}},
	{gguf.TypeQ5_0, "f16", []int{0}},
	{gguf.TypeQ5_1, "f16", []int{0, 2}},
	{gguf.TypeQ8_0, "f16", []int{0}},
	{gguf.TypeQ4_K, "f16", []int{0, 2}},
	{gguf.TypeQ5_K, "f16", []int{0, 2}},
	{gguf.TypeQ6_K, "f16", []int{208}},
}

// weights returns pseudo-random weights of small size.
func (w weightFormat) weights(random *rand.Rand, elems int) []byte {
	var b []byte
	switch w.kind {
	case gguf.TypeF32:
		for range elems {
			b = binary.LittleEndian.AppendUint32(b, math.Float32bits(random.Float32()-0.5))
		}
	case gguf.TypeF16: // an exponent of 2^-7 to 2^-4
		for range elems {
			b = binary.LittleEndian.AppendUint16(b, uint16(random.Uint32())&0x8FFF|0x2000)
		}
	case gguf.TypeBF16:
		for range elems {
			b = binary.LittleEndian.AppendUint16(b, uint16(random.Uint32())&0x81FF|0x3C00)
		}
	default:
		size := int(w.kind.BlockBytes())
		b = make([]byte, elems/int(w.kind.BlockElems())*size)
		for i := range b {
			b[i] = byte(random.Uint32())
		}
		for block := 0; block < len(b); block += size {
			for _, at := range w.scales { // 2^-12 to 2^-9
				binary.LittleEndian.PutUint16(b[block+at:], uint16(random.Uint32())&0x0FFF|0x0C00)
			}
		}
	}
	return b
}

// writeCheckModel writes the model with weights of a format to a file.
func writeCheckModel(path string, format weightFormat) error {
	const heads, kvHeads, ff = 4, 2, 2 * checkWidth
	var w gguf.Writer
	w.Set("general.architecture", "llama")
	w.Set("general.name", "kernels check")
	w.Set("llama.block_count", uint32(1))
	w.Set("llama.context_length", uint32(512))
	w.Set("llama.embedding_length", uint32(checkWidth))
	w.Set("llama.feed_forward_length", uint32(ff))
	w.Set("llama.attention.head_count", uint32(heads))
	w.Set("llama.attention.head_count_kv", uint32(kvHeads))
	w.Set("llama.attention.layer_norm_rms_epsilon", float32(1e-5))
	tokens, scores, types := checkVocabulary()
	w.Set("tokenizer.ggml.model", "llama")
	w.Set("tokenizer.ggml.tokens", tokens)
	w.Set("tokenizer.ggml.scores", scores)
	w.Set("tokenizer.ggml.token_type", types)

	random := rand.New(rand.NewPCG(1, uint64(format.kind)))
	matrix := func(name string, f weightFormat, cols, rows uint64) {
		w.Add(name, f.kind, []uint64{cols, rows}, f.weights(random, int(cols*rows)))
	}
	norm := func(name string) {
		w.Add(name, gguf.TypeF32, []uint64{checkWidth}, weightFormats[0].weights(random, checkWidth))
	}
	const kvWidth = checkWidth / heads * kvHeads
	matrix("token_embd.weight", format, checkWidth, uint64(len(tokens)))
	norm("blk.0.attn_norm.weight")
	matrix("blk.0.attn_q.weight", format, checkWidth, checkWidth)
	matrix("blk.0.attn_k.weight", format, checkWidth, kvWidth)
	matrix("blk.0.attn_v.weight", format, checkWidth, kvWidth)
	matrix("blk.0.attn_output.weight", format, checkWidth, checkWidth)
	norm("blk.0.ffn_norm.weight")
	matrix("blk.0.ffn_gate.weight", format, checkWidth, ff)
	matrix("blk.0.ffn_up.weight", format, checkWidth, ff)
	matrix("blk.0.ffn_down.weight", format, ff, checkWidth)
	norm("output_norm.weight")

	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil {
		return err
	}
	return os.WriteFile(path, b.Bytes(), 0o600)
}

// checkVocabulary returns the smallest vocabulary of the "llama" kind: three special tokens and one for each byte.
func checkVocabulary() (tokens []string, scores []float32, types []int32) {
	tokens = []string{"<unk>", "<s>", "</s>"}
	types = []int32{2, 3, 3} // unknown, control, control
	for b := range 256 {
		tokens = append(tokens, fmt.Sprintf("<0x%02X>", b))
		types = append(types, 6) // byte
	}
	return tokens, make([]float32, len(tokens)), types
}

// checkChunks are the numbers of tokens that are evaluated at once: the first makes large tiles, the others small ones,
// up to a second segment of attention.
var checkChunks = []int{250, 11, 7, 6, 5, 3, 2, 1, 1, 1}

// logitsHash returns the BLAKE3 of the bits of all logits of a fixed text.
func logitsHash(ctx context.Context, path string, isa cpu.ISA, kv string, set []kernel.Kernel) (string, error) {
	e, err := engine.Load(ctx, path, engine.Options{Kernels: set, ISA: string(isa), KV: kv})
	if err != nil {
		return "", err
	}
	defer e.Close()
	s, err := e.NewSession()
	if err != nil {
		return "", err
	}
	defer s.Close()
	sum := blake3.New()
	random := rand.New(rand.NewPCG(3, 4))
	for _, n := range checkChunks {
		ids := make([]int32, n)
		for i := range ids {
			ids[i] = random.Int32N(int32(e.Info().Vocab))
		}
		err := s.EvalAll(ctx, ids, func(i int, logits []float32) error {
			if slices.ContainsFunc(logits, func(x float32) bool { return x != x }) {
				return fmt.Errorf("%s on %s: a logit after token %d is NaN", filepath.Base(path), isa, i)
			}
			return binary.Write(sum, binary.LittleEndian, logits)
		})
		if err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
