package tune

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/swizzle-rt/swizzle/runtime/dispatch"
	"github.com/swizzle-rt/swizzle/runtime/gguf"
	"github.com/swizzle-rt/swizzle/runtime/model"
)

// Need is an op on a shape that a model uses.
type Need struct {
	dispatch.Shape
	Group   int // of attention: rows of queries that a token has for each key head; 0 for a product
	MaxRows int // most rows at once; 0 for no limit
	Times   int // it runs in a pass through the model
}

// logitRows bounds the rows of the last product of a model: few tokens of a chunk are sampled.
const logitRows = 16

// Needs lists the products and the attention of a model with a cache of kv elements (f16 or f32).
func Needs(f *gguf.File, kv string) ([]Need, error) {
	c, err := model.ReadConfig(f)
	if err != nil {
		return nil, err
	}
	_, untied := f.Tensor("output.weight")
	var list needList
	for _, t := range f.Tensors() {
		embedding := t.Name == "token_embd.weight"
		if len(t.Dims) != 2 || t.Dims[1] == 1 || strings.Contains(t.Name, "conv.conv") || embedding && untied {
			continue
		}
		if t.Rows() > 1<<31 || t.Cols() > 1<<31 {
			return nil, fmt.Errorf("%s: tensor %q: dimensions %v are too large", f.Path(), t.Name, t.Dims)
		}
		rows := 0
		if embedding || t.Name == "output.weight" {
			rows = logitRows
		}
		list.add(strings.ToLower(t.Type.String()), int(t.Rows()), int(t.Cols()), rows, 1)
	}
	layers := 0
	for _, l := range c.Layers {
		if !l.Conv {
			layers++
		}
	}
	list.attention(kv, c.Heads, c.KVHeads, c.HeadDim, layers)
	return list.sorted(), nil
}

// DefaultNeeds lists those of two small models of common kinds: SmolLM2-135M in Q4_1, Qwen3-0.6B in Q8_0 and in Q4_K_M.
func DefaultNeeds(kv string) []Need {
	var list needList
	list.decoder("q4_1", "q4_1", "q4_1", 30, 576, 1536, 9, 3, 64, 49152, kv)
	list.decoder("q8_0", "q8_0", "q8_0", 28, 1024, 3072, 16, 8, 128, 151936, kv)
	list.decoder("q4_k", "q6_k", "q6_k", 28, 1024, 3072, 16, 8, 128, 151936, kv)
	return list.sorted()
}

type needList []Need

func (l *needList) add(format string, n, k, maxRows, times int) {
	l.merge(Need{Shape: dispatch.Shape{Op: "gemm_" + format, N: n, K: k}, MaxRows: maxRows, Times: times})
}

func (l *needList) attention(kv string, heads, kvHeads, headDim, times int) {
	if times > 0 {
		l.merge(Need{Shape: dispatch.Shape{Op: "attention_" + kv, N: kvHeads, K: headDim}, Group: heads / kvHeads, Times: times})
	}
}

// merge adds a need to an equal one that is there.
func (l *needList) merge(n Need) {
	for i := range *l {
		if o := &(*l)[i]; o.Shape == n.Shape && o.Group == n.Group && o.MaxRows == n.MaxRows {
			o.Times += n.Times
			return
		}
	}
	*l = append(*l, n)
}

// decoder adds what a llama-like model needs, with weights of one format but for values and down (mixed) and the head.
func (l *needList) decoder(format, mixed, head string, layers, width, ff, heads, kvHeads, headDim, vocab int, kv string) {
	l.add(format, heads*headDim, width, 0, layers)
	l.add(format, kvHeads*headDim, width, 0, layers)
	l.add(mixed, kvHeads*headDim, width, 0, layers)
	l.add(format, width, heads*headDim, 0, layers)
	l.add(format, ff, width, 0, 2*layers)
	l.add(mixed, width, ff, 0, layers)
	l.add(head, vocab, width, logitRows, 1)
	l.attention(kv, heads, kvHeads, headDim, layers)
}

// sorted returns the needs, those with the most work first.
func (l needList) sorted() []Need {
	slices.SortStableFunc(l, func(a, b Need) int { return cmp.Compare(b.Times*b.N*b.K, a.Times*a.N*a.K) })
	return l
}

// task is a problem to solve and the rows that its answer is for.
type task struct {
	Problem
	from, to, group int
}

// The rows that products are measured with. Up to exactRows each number is a problem of its own, since it is cut in its own
// way; above there are a few problems that stand for all.
const (
	exactRows = 16
	fewRows   = 32 // stands for 17 … 63
	manyRows  = 512
	anyRows   = 1 << 30
	exactTok  = 8 // tokens of attention that are problems of their own
)

// tasks turns needs into problems, the most important first: one token, a full chunk, then the rest.
func tasks(needs []Need) []task {
	var list []task
	add := func(n Need, m, from, to int) {
		if n.MaxRows == 0 || m <= n.MaxRows {
			list = append(list, task{Problem{n.Op, n.N, n.K, m}, from, to, n.Group})
		}
	}
	for _, n := range needs {
		if n.Group == 0 {
			add(n, 1, 1, 1)
			add(n, manyRows, 4*exactRows, anyRows)
		} else {
			add(n, n.Group, n.Group, n.Group)
			add(n, manyRows*n.Group, exactTok*n.Group+1, anyRows)
		}
	}
	for m := 2; m <= exactRows; m++ {
		for _, n := range needs {
			if n.Group == 0 {
				add(n, m, m, m)
			} else if m <= exactTok {
				add(n, m*n.Group, m*n.Group, m*n.Group)
			}
		}
	}
	for _, n := range needs {
		if n.Group == 0 {
			add(n, fewRows, exactRows+1, 4*exactRows-1)
		}
	}
	return list
}

// Problems lists the problems of needs in the order in which they are measured.
func Problems(needs []Need) []Problem {
	var list []Problem
	for _, t := range tasks(needs) {
		list = append(list, t.Problem)
	}
	return list
}
