package engine_test

import (
	"context"
	"testing"

	"github.com/swizzle-rt/swizzle/runtime/engine"
)

// BenchmarkPrefill evaluates a prompt of 512 tokens.
func BenchmarkPrefill(b *testing.B) {
	e := load(b, engine.Options{Context: 1024})
	s := session(b, e)
	ids := prompt(e, 512)
	for b.Loop() {
		s.Truncate(0)
		if _, err := s.Eval(context.Background(), ids); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(512*float64(b.N)/b.Elapsed().Seconds(), "tok/s")
}

// BenchmarkDecode evaluates single tokens after 32.
func BenchmarkDecode(b *testing.B) {
	e := load(b, engine.Options{Context: 1024})
	s := session(b, e)
	ids := prompt(e, 512)
	for b.Loop() {
		if s.Len() == 0 || s.Len() > 256 {
			s.Truncate(0)
			if _, err := s.Eval(context.Background(), ids[:32]); err != nil {
				b.Fatal(err)
			}
		}
		if _, err := s.Eval(context.Background(), ids[s.Len():s.Len()+1]); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "tok/s")
}
