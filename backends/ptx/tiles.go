package ptx

import (
	"slices"

	"github.com/swizzle-rt/swizzle/ir"
)

// element is one element of a register tile, which is a register.
type element struct {
	reg *ir.Reg
	at  int64
}

func elementOf(i *ir.Instr) element {
	c, _ := i.Args[0].Const()
	return element{i.Reg, c}
}

// plan tells which reads and writes of register tiles need no instruction.
type plan struct {
	alias  map[*ir.Value]bool    // what was read of an element and is used only while the element keeps its value
	target map[*ir.Value]element // what is computed right into the element that it is stored to
}

func newPlan(body []ir.Stmt) *plan {
	p := &plan{map[*ir.Value]bool{}, map[*ir.Value]element{}}
	p.block(body)
	return p
}

// events are the places in one block, by number of statement, where values and elements are used. What a loop or branch
// does in its body it does at its own place.
type events struct {
	def   map[*ir.Value]int
	last  map[*ir.Value]int // last use
	uses  map[*ir.Value]int
	sets  map[element][]int
	touch map[element][]int // sets and reads
}

func (p *plan) block(body []ir.Stmt) {
	e := &events{map[*ir.Value]int{}, map[*ir.Value]int{}, map[*ir.Value]int{}, map[element][]int{}, map[element][]int{}}
	for n, s := range body {
		e.add(n, s)
	}
	for n, s := range body {
		switch s := s.(type) {
		case *ir.Instr:
			if s.Op == ir.OpGet && e.keeps(body, n, s) {
				p.alias[s.Results[0]] = true
			}
		case *ir.For:
			p.block(s.Body)
		case *ir.If:
			p.block(s.Then)
			p.block(s.Else)
		}
	}
	for n, s := range body {
		if i, ok := s.(*ir.Instr); ok && i.Op == ir.OpSet {
			p.direct(body, n, i, e)
		}
	}
}

// add notes the uses of statement n.
func (e *events) add(n int, s ir.Stmt) {
	use := func(vs ...*ir.Value) {
		for _, v := range vs {
			if v != nil {
				v = origin(v)
				e.last[v] = n
				e.uses[v]++
			}
		}
	}
	ir.Walk([]ir.Stmt{s}, func(s ir.Stmt) {
		switch s := s.(type) {
		case *ir.Instr:
			if sameBits(s) {
				return
			}
			use(s.Args...)
			for _, r := range s.Results {
				e.def[r] = n
			}
			if s.Reg != nil {
				x := elementOf(s)
				e.touch[x] = append(e.touch[x], n)
				if s.Op == ir.OpSet {
					e.sets[x] = append(e.sets[x], n)
				}
			}
		case *ir.For:
			use(s.Lo, s.Hi)
		case *ir.If:
			use(s.Cond)
		}
	})
}

// keeps reports whether the element read at statement n keeps its value until the last use of what was read.
func (e *events) keeps(body []ir.Stmt, n int, i *ir.Instr) bool {
	sets := e.sets[elementOf(i)]
	next, _ := slices.BinarySearch(sets, n+1)
	if next == len(sets) {
		return true
	}
	_, plain := body[sets[next]].(*ir.Instr)
	last := e.last[i.Results[0]]
	return last < sets[next] || last == sets[next] && plain
}

// direct notes whether the value that statement n stores to an element can be computed right into it: nothing else uses
// it, and nobody needs the element between.
func (p *plan) direct(body []ir.Stmt, n int, set *ir.Instr, e *events) {
	x, v := elementOf(set), origin(set.Args[1])
	def, here := e.def[v]
	if !here || e.uses[v] != 1 || def >= n {
		return
	}
	i, plain := body[def].(*ir.Instr)
	if !plain || i.Op == ir.OpGet || i.Op == ir.OpConst || i.Op == ir.OpFloatParam {
		return
	}
	touch := e.touch[x]
	if at, _ := slices.BinarySearch(touch, def); touch[at] != n {
		return
	}
	// What was read of the element before must not be used after.
	for _, at := range touch {
		if at >= def {
			break
		}
		if g, ok := body[at].(*ir.Instr); ok && g.Op == ir.OpGet && p.alias[g.Results[0]] && e.last[g.Results[0]] > def {
			return
		}
	}
	p.target[v] = x
}
