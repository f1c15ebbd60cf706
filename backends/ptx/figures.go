package ptx

import (
	_ "embed"
	"encoding/json"
	"fmt"
)

// Figure is what NVIDIA's assembler makes of a kernel for one architecture.
type Figure struct {
	Registers    int `json:"registers"`    // of a thread
	Instructions int `json:"instructions"` // of 16 bytes each, with the padding behind the last
}

//go:embed figures.json
var figures []byte

// Figures returns the figures of the generated kernels by their name without architecture (op__config) and by architecture.
// Printing needs no assembler: the figures were taken before, by make figures, and a test compares them.
func Figures() (map[string]map[string]Figure, error) {
	var m map[string]map[string]Figure
	if err := json.Unmarshal(figures, &m); err != nil {
		return nil, fmt.Errorf("figures of PTX kernels: %w", err)
	}
	return m, nil
}
