// Package dispatch chooses kernels for a CPU and runs them on its workers.
package dispatch

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// ErrNoKernel means that no kernel of the set computes an op on this CPU.
var ErrNoKernel = errors.New("no kernel")

// Table holds, for every op, the kernels of the best architecture that the chosen ISA can run.
type Table struct {
	isa      cpu.ISA
	set      []kernel.Kernel
	ops      map[string][]*kernel.Kernel
	choice   Choice
	features cpu.Features // those that the choice is for
}

// New builds the table of an ISA from a set of kernels.
func New(set []kernel.Kernel, isa cpu.ISA) *Table {
	t := &Table{isa: isa, set: set, ops: map[string][]*kernel.Kernel{}}
	for _, arch := range fallback(isa) {
		found := map[string][]*kernel.Kernel{}
		for i := range set {
			if k := &set[i]; k.Name.Arch == arch && t.ops[k.Name.Op] == nil {
				found[k.Name.Op] = append(found[k.Name.Op], k)
			}
		}
		for op, ks := range found {
			t.ops[op] = ks
		}
	}
	return t
}

// fallback lists the architectures whose kernels the ISA runs, best first.
func fallback(isa cpu.ISA) []string {
	switch isa {
	case cpu.AVX512VNNI:
		return []string{"avx512vnni", "avx2", "portable"}
	case cpu.AVXVNNI:
		return []string{"avxvnni", "avx2", "portable"}
	case cpu.AVX2:
		return []string{"avx2", "portable"}
	}
	return []string{"portable"}
}

// ISA returns the ISA that the table was built for.
func (t *Table) ISA() cpu.ISA { return t.isa }

// Config returns the op's kernel of that config.
func (t *Table) Config(op, config string) (*kernel.Kernel, error) {
	for _, k := range t.ops[op] {
		if k.Name.Config == config {
			return k, nil
		}
	}
	return nil, fmt.Errorf("%w for %s, config %s, on %s", ErrNoKernel, op, config, t.isa)
}

// Rows returns the op's kernels by the number of rows in a tile, the config's parameter of that name, the largest first.
func (t *Table) Rows(op, param string) (Rows, error) {
	var r Rows
	for _, k := range t.ops[op] {
		if n, ok := k.Name.Param(param); ok {
			r = append(r, RowKernel{n, k})
		}
	}
	sort.Slice(r, func(i, j int) bool { return r[i].Rows > r[j].Rows })
	for rows := 1; rows <= 4; rows++ {
		if !slices.ContainsFunc(r, func(k RowKernel) bool { return k.Rows == rows }) {
			return nil, fmt.Errorf("%w for %s with a tile of %d rows on %s", ErrNoKernel, op, rows, t.isa)
		}
	}
	return r, nil
}

// All returns the chosen kernels in order of name.
func (t *Table) All() []*kernel.Kernel {
	var all []*kernel.Kernel
	for _, ks := range t.ops {
		all = append(all, ks...)
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name.String() < all[j].Name.String() })
	return all
}

// RowKernel is a kernel whose tile has that many rows.
type RowKernel struct {
	Rows   int
	Kernel *kernel.Kernel
}

// Rows are an op's kernels by rows of a tile, the largest first; tiles of 1, 2, 3 and 4 rows are among them.
type Rows []RowKernel

// Run is a run of rows for one kernel, whose tile has Tile rows.
type Run struct {
	Kernel            *kernel.Kernel
	First, Rows, Tile int
}

// Cut splits m rows into runs and appends them to runs: each starts at a multiple of four and is a multiple of its kernel's
// tile, the last 1 … 3 rows exactly one tile.
func (r Rows) Cut(m int, runs []Run) []Run {
	first := 0
	for _, k := range r {
		if m == 0 {
			break
		}
		n := m / k.Rows * k.Rows
		if n == 0 || k.Rows < 4 && k.Rows != m {
			continue
		}
		runs = append(runs, Run{k.Kernel, first, n, k.Rows})
		first, m = first+n, m-n
	}
	return runs
}
