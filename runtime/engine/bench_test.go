package engine_test

import (
	"context"
	"os"
	"testing"
	"time"

	"github.com/swizzle-rt/swizzle/runtime/engine"
)

// benchModel loads the model that SWIZZLE_BENCH_MODEL names, else SmolLM2.
func benchModel(b *testing.B) *engine.Engine {
	path := os.Getenv("SWIZZLE_BENCH_MODEL")
	if path == "" {
		return load(b, engine.Options{Context: 1024})
	}
	e, err := engine.Load(context.Background(), path, engine.Options{Context: 1024, Kernels: kernels()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { e.Close() })
	return e
}

// BenchmarkPrefill evaluates a prompt of 512 tokens. The figure is that of the fastest run, which other processes disturb least.
func BenchmarkPrefill(b *testing.B) {
	e := benchModel(b)
	s := session(b, e)
	ids := prompt(e, 512)
	best := time.Hour
	for b.Loop() {
		s.Truncate(0)
		start := time.Now()
		if _, err := s.Eval(context.Background(), ids); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	b.ReportMetric(512/best.Seconds(), "tok/s")
}

// BenchmarkDecode evaluates single tokens after 32; the figure is the fastest one's.
func BenchmarkDecode(b *testing.B) {
	e := benchModel(b)
	s := session(b, e)
	ids := prompt(e, 512)
	best := time.Hour
	for b.Loop() {
		if s.Len() == 0 || s.Len() > 256 {
			s.Truncate(0)
			if _, err := s.Eval(context.Background(), ids[:32]); err != nil {
				b.Fatal(err)
			}
		}
		start := time.Now()
		if _, err := s.Eval(context.Background(), ids[s.Len():s.Len()+1]); err != nil {
			b.Fatal(err)
		}
		best = min(best, time.Since(start))
	}
	b.ReportMetric(1/best.Seconds(), "tok/s")
}
