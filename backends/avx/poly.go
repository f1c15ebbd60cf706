package avx

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mmcloughlin/avo/reg"
)

// atom is a uniform 64-bit value that polynomials treat as opaque: a loop variable, a tile coordinate, a parameter, a
// pointer, the result of a division or of a load.
type atom struct {
	id    int
	scope *scope // where it is defined
	reg   reg.GPVirtual
}

// term is coef · Πatoms, the atoms in order of definition.
type term struct {
	coef  int64
	atoms []*atom
}

// poly is c + Σterms. Terms are ordered, have different atoms and no coefficient 0. Polynomials are immutable; arithmetic is
// modulo 2⁶⁴.
type poly struct {
	c     int64
	terms []term
}

func constant(c int64) poly { return poly{c: c} }

func (a *atom) poly() poly { return poly{terms: []term{{1, []*atom{a}}}} }

func (p poly) isConst() bool { return len(p.terms) == 0 }

func compareAtoms(x, y []*atom) int {
	return slices.CompareFunc(x, y, func(a, b *atom) int { return a.id - b.id })
}

func (p poly) add(q poly) poly {
	r := poly{c: p.c + q.c}
	i, j := 0, 0
	for i < len(p.terms) || j < len(q.terms) {
		switch {
		case j == len(q.terms):
			r.terms = append(r.terms, p.terms[i])
			i++
			continue
		case i == len(p.terms):
			r.terms = append(r.terms, q.terms[j])
			j++
			continue
		}
		switch c := compareAtoms(p.terms[i].atoms, q.terms[j].atoms); {
		case c < 0:
			r.terms = append(r.terms, p.terms[i])
			i++
		case c > 0:
			r.terms = append(r.terms, q.terms[j])
			j++
		default:
			if s := p.terms[i].coef + q.terms[j].coef; s != 0 {
				r.terms = append(r.terms, term{s, p.terms[i].atoms})
			}
			i++
			j++
		}
	}
	return r
}

func (p poly) scale(f int64) poly {
	r := poly{c: p.c * f}
	for _, t := range p.terms {
		if c := t.coef * f; c != 0 {
			r.terms = append(r.terms, term{c, t.atoms})
		}
	}
	return r
}

func (p poly) sub(q poly) poly { return p.add(q.scale(-1)) }

func (p poly) mul(q poly) poly {
	r := p.scale(q.c)
	for _, t := range q.terms {
		part := poly{terms: []term{{p.c * t.coef, t.atoms}}}
		if p.c == 0 {
			part.terms = nil
		}
		for _, u := range p.terms {
			atoms := slices.Concat(u.atoms, t.atoms)
			slices.SortStableFunc(atoms, func(a, b *atom) int { return a.id - b.id })
			part = part.add(poly{terms: []term{{u.coef * t.coef, atoms}}})
		}
		r = r.add(part)
	}
	return r
}

// divisible reports whether d divides every coefficient of the terms.
func (p poly) divisible(d int64) bool {
	for _, t := range p.terms {
		if t.coef%d != 0 {
			return false
		}
	}
	return true
}

// quotient returns the terms divided by d, which divides them, and no constant.
func (p poly) quotient(d int64) poly {
	var r poly
	for _, t := range p.terms {
		r.terms = append(r.terms, term{t.coef / d, t.atoms})
	}
	return r
}

// variable returns the terms without the constant.
func (p poly) variable() poly { return poly{terms: p.terms} }

// scope returns the innermost scope that the terms depend on; root when there are none.
func (p poly) scope(root *scope) *scope {
	s := root
	for _, t := range p.terms {
		for _, a := range t.atoms {
			if a.scope.depth > s.depth {
				s = a.scope
			}
		}
	}
	return s
}

// split separates the terms that depend on scope s from those of outer scopes; the constant stays with the outer ones.
func (p poly) split(s *scope) (outer, inner poly) {
	outer.c = p.c
	for _, t := range p.terms {
		if (poly{terms: []term{t}}).scope(s.root()).depth < s.depth {
			outer.terms = append(outer.terms, t)
		} else {
			inner.terms = append(inner.terms, t)
		}
	}
	return outer, inner
}

// linear writes p as coef · v + rest where neither depends on v's scope; ok is false if p has no such form.
func (p poly) linear(v *atom) (coef, rest poly, ok bool) {
	rest, inner := p.split(v.scope)
	for _, t := range inner.terms {
		var others []*atom
		n := 0
		for _, a := range t.atoms {
			switch {
			case a == v:
				n++
			case a.scope.depth >= v.scope.depth:
				return poly{}, poly{}, false
			default:
				others = append(others, a)
			}
		}
		if n != 1 {
			return poly{}, poly{}, false
		}
		if len(others) == 0 {
			coef.c += t.coef
		} else {
			coef = coef.add(poly{terms: []term{{t.coef, others}}})
		}
	}
	return coef, rest, true
}

// key identifies the polynomial among those of one kernel.
func (p poly) key() string {
	var s strings.Builder
	fmt.Fprintf(&s, "%d", p.c)
	for _, t := range p.terms {
		fmt.Fprintf(&s, "+%d", t.coef)
		for _, a := range t.atoms {
			fmt.Fprintf(&s, ".%d", a.id)
		}
	}
	return s.String()
}
