package model

// lfm2 is dense LFM2: short convolutions in most layers, attention with normalised heads in the others.
func lfm2(r *reader, c *Config) {
	c.QKNorm, c.OutputNorm = true, "token_embd_norm.weight"
	c.Taps = r.dim("shortconv.l_cache", 16, 0)
	if c.Taps != 3 {
		r.wrong("shortconv.l_cache", "%d: %w, 3 taps are supported", c.Taps, ErrUnsupported)
	}
	if v, ok := r.f.Value(r.arch + ".attention.sliding_window"); ok && v.String() != "0" {
		r.wrong("attention.sliding_window", "%v: %w", v, ErrUnsupported)
	}
}
