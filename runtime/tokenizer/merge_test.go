package tokenizer

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// joinNaively is the definition of merging: look for the smallest key from the left, join, look again.
func joinNaively(ids []int32, join map[pair]merge) []int32 {
	ids = slices.Clone(ids)
	for {
		best, rank := -1, uint32(math.MaxUint32)
		for i := 1; i < len(ids); i++ {
			if m, ok := join[pair{ids[i-1], ids[i]}]; ok && m.rank < rank {
				best, rank = i, m.rank
			}
		}
		if best < 0 {
			return ids
		}
		ids[best-1] = join[pair{ids[best-1], ids[best]}].id
		ids = slices.Delete(ids, best, best+1)
	}
}

func TestMergerIsTheNaiveOne(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		// Ids are texts: each pair that may join gets an id of its own, some of equal rank.
		const letters = 3
		join := map[pair]merge{}
		next := int32(letters)
		for range rng.IntN(25) {
			p := pair{rng.Int32N(next), rng.Int32N(next)}
			if _, ok := join[p]; !ok {
				join[p] = merge{rng.Uint32N(12), next}
				next++
			}
		}
		ids := make([]int32, rng.IntN(40))
		for i := range ids {
			ids[i] = rng.Int32N(letters)
		}
		var m merger
		m.reset(len(ids))
		for i, id := range ids {
			m.add(i, id)
		}
		m.run(func(l, r int32) (uint32, int32, bool) {
			j, ok := join[pair{m.symbols[l].id, m.symbols[r].id}]
			return j.rank, j.id, ok
		})
		var got []int32
		if len(ids) > 0 {
			for i := int32(0); i >= 0; i = m.symbols[i].next {
				got = append(got, m.symbols[i].id)
			}
		}
		if want := joinNaively(ids, join); !slices.Equal(got, want) || m.count != len(want) {
			t.Fatalf("%v with %v:\n got %v\nwant %v", ids, join, got, want)
		}
	}
}

func TestScoreKey(t *testing.T) {
	scores := []float32{float32(math.Inf(1)), math.MaxFloat32, 1, math.SmallestNonzeroFloat32, 0, -math.SmallestNonzeroFloat32, -1, -1000, -math.MaxFloat32, float32(math.Inf(-1))}
	for i := 1; i < len(scores); i++ {
		if scoreKey(scores[i-1]) >= scoreKey(scores[i]) {
			t.Errorf("score %g does not come before %g", scores[i-1], scores[i])
		}
	}
	if scoreKey(0) != scoreKey(float32(math.Copysign(0, -1))) {
		t.Error("0 and -0 differ")
	}
}
