package kernel

import (
	"io/fs"
	"strconv"
)

// Report holds what the generator found out: what tiles in shared memory cost, what NVIDIA's assembler makes of kernels, and
// the configs that were not generated.
type Report struct {
	Comment  string      `json:"comment"`
	Block    Block       `json:"block"`
	Tiles    []Tile      `json:"tiles"`
	Kernels  []Assembled `json:"kernels"`
	Rejected []Rejection `json:"rejected"`
}

// Block is the thread block that the occupancy of tiles is stated for.
type Block struct {
	Threads   int `json:"threads"`
	Registers int `json:"registers"` // of a thread
	Tiles     int `json:"tiles"`     // in shared memory: operands times stages
}

// Tile is a tile of a matrix in shared memory, whose bank conflicts an XOR swizzle avoids without the bytes that padding of
// 16 bytes a row takes.
type Tile struct {
	Rows          int         `json:"rows"`
	Cols          int         `json:"cols"`
	Type          string      `json:"type"` // of an element: f16, s8, …
	RowBytes      int         `json:"row_bytes"`
	Swizzle       string      `json:"swizzle"` // of byte offsets, such as Sw<3,4,3>
	PaddedBytes   int         `json:"padded_bytes"`
	SwizzledBytes int         `json:"swizzled_bytes"`
	LdMatrix      Wavefronts  `json:"ldmatrix"`          // of the worst ldmatrix.x4
	Copies        Wavefronts  `json:"copies"`            // of the worst store of 16 bytes a lane
	Occupancy     []Occupancy `json:"occupancy"`         // of the report's block
	Kernels       []string    `json:"kernels,omitempty"` // that stage it; none where it is an example
}

// Wavefronts are how many turns of the banks one access of a warp takes.
type Wavefronts struct {
	Ideal    int `json:"ideal"` // without bank conflicts
	Plain    int `json:"plain"`
	Padded   int `json:"padded"`
	Swizzled int `json:"swizzled"`
}

// Occupancy is how many blocks a multiprocessor of an architecture holds at once.
type Occupancy struct {
	Arch     string `json:"arch"`
	Padded   int    `json:"padded"`
	Swizzled int    `json:"swizzled"`
}

// String returns rows, columns and type: 64×80 f16.
func (t *Tile) String() string {
	return strconv.Itoa(t.Rows) + "×" + strconv.Itoa(t.Cols) + " " + t.Type
}

// Saved returns which share of the padded tile the swizzled one does without.
func (t *Tile) Saved() float64 {
	return float64(t.PaddedBytes-t.SwizzledBytes) / float64(t.PaddedBytes)
}

// Assembled is a kernel of an NVIDIA GPU as assembled for each architecture.
type Assembled struct {
	Kernel string            `json:"kernel"` // its name without architecture, op__config
	On     map[string]Figure `json:"on"`     // by architecture
}

// Figure is what a kernel takes of one architecture.
type Figure struct {
	Registers    int    `json:"registers"`    // of a thread
	Instructions int    `json:"instructions"` // in all
	Blocks       int    `json:"blocks"`       // that a multiprocessor holds at once
	Limit        string `json:"limit"`        // why it holds no more of them
}

// Rejection is one config that a target can't have.
type Rejection struct {
	Op      string `json:"op"`
	Config  string `json:"config"`
	Arch    string `json:"arch"`
	Line    string `json:"line,omitempty"` // of the op's source
	Message string `json:"message"`
	Nearest string `json:"nearest,omitempty"` // config of the op that the target has
}

// ReadReport reads report.json of the generated files.
func ReadReport(generated fs.FS) (*Report, error) {
	r := new(Report)
	return r, readJSON(generated, "report.json", r)
}
