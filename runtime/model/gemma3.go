package model

import "math"

// gemma3 is the text part of Gemma 3: embeddings times √width, norms after attention and feed-forward too, and sliding windows in
// five layers of six, whose rotary frequencies have a base of their own and no scale. (Files hold norm weights with the added 1.)
func gemma3(r *reader, c *Config) {
	c.QKNorm, c.PostNorms, c.Activation = true, true, "gelu"
	c.EmbedScale = float32(math.Sqrt(float64(c.Width)))
	if cap := r.float("final_logit_softcapping", -1); cap > 0 {
		r.wrong("final_logit_softcapping", "%g: %w", cap, ErrUnsupported)
	}
	if len(c.Layers) == 62 { // 27B, whose queries are scaled otherwise
		r.wrong("block_count", "62: %w: Gemma 3 27B", ErrUnsupported)
	}
	const key = "attention.sliding_window"
	if v, ok, err := r.f.Uint(r.arch + "." + key); err == nil && (!ok || v == 0) {
		return // all layers are alike
	}
	window := r.dim(key, 1<<30, 0)
	period := r.dim("attention.sliding_window_pattern", maxLayers, 6)
	local := Rope{Base: r.float("rope.freq_base_swa", 10000), Scale: 1}
	for i := range c.Layers {
		if i%period < period-1 {
			c.Layers[i].Window, c.Layers[i].Rope = window, local
		}
	}
}
