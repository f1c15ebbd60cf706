package tune

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/swizzle-rt/swizzle/runtime/dispatch"
)

// candidate is one way to compute a problem: kernels in the order in which they take rows, and the runs that come of it.
type candidate struct {
	rows dispatch.Rows
	runs []dispatch.Run
}

// names returns the candidate's kernels, each once.
func (c candidate) names() []string {
	var list []string
	for _, k := range c.rows {
		list = append(list, k.Kernel.Name.String())
	}
	return list
}

// maxCandidates bounds those of a problem.
const maxCandidates = 24

// RowParam returns the config's parameter that holds the rows of an op's tile, "" for ops without tiles to choose from.
func RowParam(op string) string {
	switch {
	case strings.HasPrefix(op, "gemm_"):
		return "m"
	case op == "attention_f16" || op == "attention_f32":
		return "r"
	}
	return ""
}

// candidates lists the ways to compute a problem, the default first. Kernels of several architectures are mixed in one way
// only if the search is exhaustive.
func (t *tuner) candidates(p Problem) ([]candidate, error) {
	plan, err := t.defaults.Plan(dispatch.Shape{Op: p.Op, N: p.N, K: p.K}, RowParam(p.Op))
	if err != nil {
		return nil, err
	}
	archs, order := t.rowKernels(p.Op)
	var list []candidate
	add := func(c candidate) {
		same := func(o candidate) bool { return slices.Equal(o.runs, c.runs) }
		if len(list) < maxCandidates && !slices.ContainsFunc(list, same) {
			list = append(list, c)
		}
	}
	if RowParam(p.Op) == "r" {
		tile := plan.Tile(p.M)
		n, _ := tile.Name.Param("r")
		add(whole(dispatch.RowKernel{Rows: n, Kernel: tile}, p.M))
		for _, arch := range order {
			for _, k := range archs[arch] {
				if k.Rows >= 4 || k.Rows == p.M {
					add(whole(k, p.M))
				}
			}
		}
		return list, nil
	}
	rows, _ := plan.Rows(p.M)
	add(used(rows, p.M))
	for _, body := range order {
		for _, tail := range order {
			if body != tail && (!t.Exhaustive || p.M%4 == 0 || p.M < 4) {
				continue
			}
			for _, r := range orders(archs[body], archs[tail], p.M) {
				add(used(r, p.M))
			}
		}
	}
	if len(list) == 0 || len(list[0].runs) == 0 {
		return nil, fmt.Errorf("%s: no kernels for %d rows", p.Op, p.M)
	}
	return list, nil
}

// rowKernels returns the kernels of an op by architecture, the largest tiles first, and the architectures in order.
func (t *tuner) rowKernels(op string) (archs map[string]dispatch.Rows, order []string) {
	archs = map[string]dispatch.Rows{}
	for _, k := range t.defaults.Candidates(op, t.features) {
		n, ok := k.Name.Param(RowParam(op))
		if !ok || n < 1 || n > 4 && n%4 != 0 {
			continue
		}
		if archs[k.Name.Arch] == nil {
			order = append(order, k.Name.Arch)
		}
		archs[k.Name.Arch] = append(archs[k.Name.Arch], dispatch.RowKernel{Rows: n, Kernel: k})
	}
	for _, rows := range archs {
		slices.SortStableFunc(rows, func(a, b dispatch.RowKernel) int { return cmp.Compare(b.Rows, a.Rows) })
	}
	return archs, order
}

// whole is the candidate in which one kernel computes all rows.
func whole(k dispatch.RowKernel, m int) candidate {
	return candidate{dispatch.Rows{k}, []dispatch.Run{{Kernel: k.Kernel, Rows: m, Tile: k.Rows}}}
}

// used is the candidate of an order, without the kernels that get no rows.
func used(rows dispatch.Rows, m int) candidate {
	c := candidate{runs: rows.Cut(m, nil)}
	for _, k := range rows {
		if slices.ContainsFunc(c.runs, func(r dispatch.Run) bool { return r.Kernel == k.Kernel }) {
			c.rows = append(c.rows, k)
		}
	}
	return c
}

// orders lists the selections of body's tiles that cut m rows up to the last m mod 4, which tail's tile takes.
func orders(body, tail dispatch.Rows, m int) []dispatch.Rows {
	var list []dispatch.Rows
	var big, small dispatch.Rows
	for _, k := range body {
		if k.Rows >= 4 && k.Rows <= m {
			big = append(big, k)
		}
	}
	for _, k := range tail {
		if k.Rows < 4 {
			small = append(small, k)
		}
	}
	for set := range 1 << min(len(big), 10) {
		var r dispatch.Rows
		for i, k := range big {
			if set>>i&1 != 0 {
				r = append(r, k)
			}
		}
		r = append(r, small...)
		n := 0
		for _, run := range r.Cut(m, nil) {
			n += run.Rows
		}
		if n == m {
			list = append(list, r)
		}
	}
	return list
}
