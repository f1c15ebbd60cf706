package gguf

import "fmt"

// Type is the id of a tensor's element type. The ids, names and block sizes are
// those of ggml (enum ggml_type). Its zero value is float32.
type Type uint32

// The element types. Quantized types pack a fixed number of elements of a row
// into a block of a fixed number of bytes.
const (
	TypeF32    Type = 0
	TypeF16    Type = 1
	TypeQ4_0   Type = 2
	TypeQ4_1   Type = 3
	TypeQ5_0   Type = 6
	TypeQ5_1   Type = 7
	TypeQ8_0   Type = 8
	TypeQ8_1   Type = 9
	TypeQ2_K   Type = 10
	TypeQ3_K   Type = 11
	TypeQ4_K   Type = 12
	TypeQ5_K   Type = 13
	TypeQ6_K   Type = 14
	TypeQ8_K   Type = 15
	TypeIQ2XXS Type = 16
	TypeIQ2XS  Type = 17
	TypeIQ3XXS Type = 18
	TypeIQ1S   Type = 19
	TypeIQ4NL  Type = 20
	TypeIQ3S   Type = 21
	TypeIQ2S   Type = 22
	TypeIQ4XS  Type = 23
	TypeI8     Type = 24
	TypeI16    Type = 25
	TypeI32    Type = 26
	TypeI64    Type = 27
	TypeF64    Type = 28
	TypeIQ1M   Type = 29
	TypeBF16   Type = 30
	TypeTQ1_0  Type = 34
	TypeTQ2_0  Type = 35
	TypeMXFP4  Type = 39
	TypeNVFP4  Type = 40
	TypeQ1_0   Type = 41
	TypeQ2_0   Type = 42
)

// types describes each id; an id that ggml has removed has a name and no size.
var types = [...]struct {
	name         string
	elems, bytes uint64
}{
	TypeF32:    {"F32", 1, 4},
	TypeF16:    {"F16", 1, 2},
	TypeQ4_0:   {"Q4_0", 32, 18},
	TypeQ4_1:   {"Q4_1", 32, 20},
	4:          {name: "Q4_2"},
	5:          {name: "Q4_3"},
	TypeQ5_0:   {"Q5_0", 32, 22},
	TypeQ5_1:   {"Q5_1", 32, 24},
	TypeQ8_0:   {"Q8_0", 32, 34},
	TypeQ8_1:   {"Q8_1", 32, 36},
	TypeQ2_K:   {"Q2_K", 256, 84},
	TypeQ3_K:   {"Q3_K", 256, 110},
	TypeQ4_K:   {"Q4_K", 256, 144},
	TypeQ5_K:   {"Q5_K", 256, 176},
	TypeQ6_K:   {"Q6_K", 256, 210},
	TypeQ8_K:   {"Q8_K", 256, 292},
	TypeIQ2XXS: {"IQ2_XXS", 256, 66},
	TypeIQ2XS:  {"IQ2_XS", 256, 74},
	TypeIQ3XXS: {"IQ3_XXS", 256, 98},
	TypeIQ1S:   {"IQ1_S", 256, 50},
	TypeIQ4NL:  {"IQ4_NL", 32, 18},
	TypeIQ3S:   {"IQ3_S", 256, 110},
	TypeIQ2S:   {"IQ2_S", 256, 82},
	TypeIQ4XS:  {"IQ4_XS", 256, 136},
	TypeI8:     {"I8", 1, 1},
	TypeI16:    {"I16", 1, 2},
	TypeI32:    {"I32", 1, 4},
	TypeI64:    {"I64", 1, 8},
	TypeF64:    {"F64", 1, 8},
	TypeIQ1M:   {"IQ1_M", 256, 56},
	TypeBF16:   {"BF16", 1, 2},
	31:         {name: "Q4_0_4_4"},
	32:         {name: "Q4_0_4_8"},
	33:         {name: "Q4_0_8_8"},
	TypeTQ1_0:  {"TQ1_0", 256, 54},
	TypeTQ2_0:  {"TQ2_0", 256, 66},
	36:         {name: "IQ4_NL_4_4"},
	37:         {name: "IQ4_NL_4_8"},
	38:         {name: "IQ4_NL_8_8"},
	TypeMXFP4:  {"MXFP4", 32, 17},
	TypeNVFP4:  {"NVFP4", 64, 36},
	TypeQ1_0:   {"Q1_0", 128, 18},
	TypeQ2_0:   {"Q2_0", 64, 18},
}

// String returns ggml's name of t, removed types included, or "type(N)".
func (t Type) String() string {
	if uint64(t) >= uint64(len(types)) {
		return fmt.Sprintf("type(%d)", uint32(t))
	}
	return types[t].name
}

// BlockElems returns how many elements a block holds, or 0 if ggml has no type of
// this id or has removed it.
func (t Type) BlockElems() uint64 {
	if uint64(t) >= uint64(len(types)) {
		return 0
	}
	return types[t].elems
}

// BlockBytes returns the bytes of a block, or 0 if ggml has no type of this id or
// has removed it.
func (t Type) BlockBytes() uint64 {
	if uint64(t) >= uint64(len(types)) {
		return 0
	}
	return types[t].bytes
}

// describe names t in an error: what is wrong with it if it isn't usable.
func (t Type) describe() string {
	switch {
	case uint64(t) >= uint64(len(types)):
		return fmt.Sprintf("unknown tensor type %d", uint32(t))
	case t.BlockElems() == 0:
		return fmt.Sprintf("tensor type %d (%s), which ggml has removed", uint32(t), t)
	}
	return fmt.Sprintf("tensor type %d (%s)", uint32(t), t)
}
