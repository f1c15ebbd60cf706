package model

// llama is Llama 1 to 3 and models of their form, such as SmolLM2 and Mistral: GGUF files hold their heads permuted, so that
// neighbouring elements turn together.
func llama(_ *reader, c *Config) { c.Neighbours = true }
