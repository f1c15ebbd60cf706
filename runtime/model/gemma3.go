package model

import "math"

// gemma3 is the text part of Gemma 3: embeddings times √width, norms after attention and feed-forward too, and sliding windows in
// five layers of six, whose rotary frequencies have a base of their own. (Files hold norm weights with the added 1.)
func gemma3(r *reader, c *Config) {
	c.QKNorm, c.PostNorms, c.Activation = true, true, "gelu"
	c.EmbedScale = float32(math.Sqrt(float64(c.Width)))
	if cap := r.float("final_logit_softcapping", -1); cap > 0 {
		r.wrong("final_logit_softcapping", "%g: %w", cap, ErrUnsupported)
	}
	window := r.dim("attention.sliding_window", 1<<30, noWindow)
	local := r.float("rope.freq_base_swa", 10000)
	for i := range c.Layers {
		if i%6 < 5 {
			c.Layers[i].Window, c.Layers[i].RopeBase = window, local
		}
	}
	if len(c.Layers) == 62 { // 27B, whose queries are scaled otherwise
		r.wrong("block_count", "62: %w: Gemma 3 27B", ErrUnsupported)
	}
}
