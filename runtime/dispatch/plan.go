package dispatch

import (
	"slices"

	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// Shape is what a choice of kernels depends on beside the number of rows: the op and two sizes. They are the rows and the
// row's elements of the weights in a product, the key heads and a head's elements in attention.
type Shape struct {
	Op   string
	N, K int
}

// Choice holds, for shapes, the orders of kernels that were measured to be faster than the default ones. Whatever it says, the
// results are the same: only tiles change.
type Choice map[Shape][]Order

// Order names the kernels to try first, in that order, where there are From … To rows.
type Order struct {
	From, To int
	Kernels  []kernel.Name
}

// Choose makes the table's plans follow c. Orders with a kernel that is not in the set, that has parameters of its own or that
// a CPU of these features can't run are ignored.
func (t *Table) Choose(c Choice, f cpu.Features) { t.choice, t.features = c, f }

// Candidates returns every kernel of the op that a CPU of these features can run under the table's ISA, those of slower
// architectures included, in the order of architectures.
func (t *Table) Candidates(op string, f cpu.Features) []*kernel.Kernel {
	var list []*kernel.Kernel
	for _, arch := range runnable(t.isa, f) {
		for i := range t.set {
			if k := &t.set[i]; k.Name.Op == op && k.Name.Arch == arch {
				list = append(list, k)
			}
		}
	}
	return list
}

// runnable lists the architectures that the features support, from the ISA on.
func runnable(isa cpu.ISA, f cpu.Features) []string {
	available := f.Available()
	first := slices.Index(available, isa)
	if first < 0 {
		return fallback(isa)
	}
	var archs []string
	for _, a := range available[first:] {
		archs = append(archs, string(a))
	}
	return archs
}

// Plan says which kernels compute so many rows of one shape.
type Plan struct {
	rows   Rows // by default
	orders []rowOrder
}

type rowOrder struct {
	from, to int
	rows     Rows
}

// Plan returns the plan for a shape; param is the config's parameter that holds the rows of a tile.
func (t *Table) Plan(s Shape, param string) (Plan, error) {
	rows, err := t.Rows(s.Op, param)
	if err != nil {
		return Plan{}, err
	}
	p := Plan{rows: rows}
	for _, o := range t.choice[s] {
		if r := t.resolve(o, s.Op, param, rows); r != nil {
			p.orders = append(p.orders, rowOrder{o.From, o.To, r})
		}
	}
	return p, nil
}

// resolve returns the kernels of an order and, after them, the default ones of 1 … 4 rows, which complete every cut; nil if
// the order is of no use here.
func (t *Table) resolve(o Order, op, param string, rows Rows) Rows {
	var r Rows
	candidates := t.Candidates(op, t.features)
	for _, name := range o.Kernels {
		i := slices.IndexFunc(candidates, func(k *kernel.Kernel) bool { return k.Name == name })
		if i < 0 || !slices.Equal(candidates[i].Params, rows[0].Kernel.Params) {
			return nil
		}
		n, _ := name.Param(param)
		if n < 1 || n > 4 && n%4 != 0 {
			return nil
		}
		r = append(r, RowKernel{n, candidates[i]})
	}
	return append(r, rows[slices.IndexFunc(rows, func(k RowKernel) bool { return k.Rows <= 4 }):]...)
}

// Rows returns the kernels for that many rows in the order in which they are tried, and whether a choice made the order.
func (p *Plan) Rows(m int) (rows Rows, chosen bool) {
	for i := range p.orders {
		if o := &p.orders[i]; o.from <= m && m <= o.to {
			return o.rows, true
		}
	}
	return p.rows, false
}

// Cut splits m rows into runs and appends them to runs; see Rows.Cut.
func (p *Plan) Cut(m int, runs []Run) []Run {
	rows, _ := p.Rows(m)
	return rows.Cut(m, runs)
}

// Tile returns the kernel that computes all m rows of an op whose tiles may reach beyond the last row.
func (p *Plan) Tile(m int) *kernel.Kernel {
	if rows, chosen := p.Rows(m); chosen {
		return rows.first(m)
	}
	return p.rows.Tile(m)
}

// first returns the first kernel in order that takes m rows.
func (r Rows) first(m int) *kernel.Kernel {
	for _, k := range r {
		if k.Rows >= 4 || k.Rows == m {
			return k.Kernel
		}
	}
	return nil // not reached: tiles of four rows take any number
}

// Tile returns the kernel that computes m rows soonest, the first in order among equals: a tile takes about as long as its rows
// and two more. One of fewer than four rows takes exactly that many.
func (r Rows) Tile(m int) *kernel.Kernel {
	var best *kernel.Kernel
	least := 0
	for _, k := range r {
		if k.Rows < 4 && k.Rows != m {
			continue
		}
		if n := (m + k.Rows - 1) / k.Rows * (k.Rows + 2); best == nil || n < least {
			best, least = k.Kernel, n
		}
	}
	return best
}

// panelBytes is how much of a matrix several tiles of activations meet in turn: it stays in the second cache.
const panelBytes = 512 << 10

// Panel returns how many of the n rows of k weights a call takes, a multiple of two packed tiles: all where the runs have one tile
// of activations in all, else as many as a cache holds.
func Panel(runs []Run, l kernel.Layout, n, k int) int {
	if len(runs) == 1 && runs[0].Rows <= runs[0].Tile {
		return n
	}
	return max(1, panelBytes/l.Bytes(2*l.Rows, k)) * 2 * l.Rows
}
