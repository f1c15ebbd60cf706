package model

// qwen3 is dense Qwen 3: heads of queries and keys are normalised.
func qwen3(_ *reader, c *Config) { c.QKNorm = true }
