package conform

import (
	"math/rand/v2"
	"strings"

	"github.com/swizzle-rt/swizzle/ir/ops"
)

// ragged returns a small problem size that the op allows and that is rarely a multiple of anything, or nil for an op that is
// not known here.
func ragged(op *ops.Op, r *rand.Rand) ops.Shape {
	to := func(n int) int { return 1 + r.IntN(n) }
	// k is a number of elements that the format of the op's weights allows, up to n or one block.
	k := func(n int) int { return block(op) * to(max(1, n/block(op))) }
	name := op.Name
	has := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
	switch {
	case name == "add", name == "silu_mul", name == "gelu_mul":
		return ops.Shape{to(2500)}
	case name == "wht":
		return ops.Shape{to(6)}
	case name == "swizzle_copy":
		return ops.Shape{to(70), to(70)}
	case name == "argmax", name == "softmax", name == "round", name == "shortconv", has("rmsnorm"), strings.HasSuffix(name, "quantize"):
		return ops.Shape{to(7), to(400)}
	case has("pack_"):
		return ops.Shape{to(40), k(300)}
	case has("gather_"):
		return ops.Shape{to(5), to(50), k(300)}
	case has("gemm_"):
		return ops.Shape{to(25), to(50), k(700)}
	case has("kv_store"):
		hd := 2 * to(35)
		return ops.Shape{to(6), to(3), hd, 2 * to(hd/2)}
	case name == "rope_query":
		hd := 2 * to(35)
		return ops.Shape{to(5), to(3), to(5), hd, 2 * to(hd/2)}
	case has("attention_"):
		tokens, last := to(5), r.IntN(560)
		if r.IntN(2) == 0 { // the last of a page, and around it
			last = 250 + r.IntN(12)
		}
		return ops.Shape{tokens, to(2), to(4), to(40), max(last, tokens-1), to(last + 9)}
	}
	return nil
}

// block is the number of elements in a block of the op's weights.
func block(op *ops.Op) int {
	for _, o := range ops.All() {
		if o.Layout != nil && (o.Name == op.Name || o.Name == op.Pack) {
			return o.Layout.Block
		}
	}
	return 1
}

// shapes returns the op's own shapes and as many ragged ones.
func shapes(op *ops.Op, more int) []ops.Shape {
	list := append([]ops.Shape(nil), op.Shapes...)
	r := rand.New(rand.NewPCG(11, 12))
	for range more {
		if s := ragged(op, r); s != nil {
			list = append(list, s)
		}
	}
	return list
}
