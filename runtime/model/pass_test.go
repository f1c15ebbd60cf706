package model

import "testing"

// The room for attention's partial results is enough wherever in the context a chunk starts.
func TestPartialRows(t *testing.T) {
	for _, c := range []Config{{Heads: 9, HeadDim: 64}, {Heads: 16, HeadDim: 128}, {Heads: 4, HeadDim: 256}, {Heads: 64, HeadDim: 128}, {Heads: 1, HeadDim: 4}} {
		for _, context := range []int{1, 255, 256, 257, 600, 4096, 32768, 100_000} {
			room := partialRows(c, context)
			for segments := 1; segments <= (context+PageTokens-1)/PageTokens; segments++ {
				tokens := min(attentionTokens(c, segments), ChunkTokens)
				if tokens%12 != 0 && tokens != ChunkTokens {
					t.Errorf("%+v: %d tokens over %d segments are no multiple of the tiles", c, tokens, segments)
				}
				if need := segments * tokens * c.Heads; need > room {
					t.Errorf("%d heads of %d, context %d: %d tokens over %d segments need %d rows, there are %d", c.Heads, c.HeadDim, context, tokens, segments, need, room)
				}
			}
		}
	}
}
