// Package bench measures how fast a model runs, beside what the machine allows and beside another program.
//
// Tests run in rounds, each of which runs every test once, so that a machine that speeds up or slows down meanwhile changes
// all tests alike. The first round warms up and is dropped.
package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/swizzle-rt/swizzle/runtime/engine"
)

// Options of Run.
type Options struct {
	Tests    []Test
	Rounds   int                        // at least 1
	Limits   *Limits                    // what the machine allows, measured once a round; nil: not
	Peer     *Peer                      // another program to run in the same rounds; nil: none
	Progress func(round int, it string) // called before each test; nil: not
}

// Sample is one run of a test.
type Sample struct {
	Tokens int // 0 where the time isn't one for tokens
	Time   time.Duration
}

// Rate returns tokens per second.
func (s Sample) Rate() float64 { return float64(s.Tokens) / s.Time.Seconds() }

// Result is a test and its samples. With a peer, a round has two: those of even number and those of odd number are the two
// sides of the control.
type Result struct {
	Test    Test
	Start   time.Time
	Samples []Sample
	Peer    []float64 // tokens per second of the peer, if it ran this test
}

// Rates returns the tokens per second of each sample.
func (r *Result) Rates() []float64 {
	rates := make([]float64, len(r.Samples))
	for i, s := range r.Samples {
		rates[i] = s.Rate()
	}
	return rates
}

// Times returns the time of each sample.
func (r *Result) Times() []time.Duration {
	times := make([]time.Duration, len(r.Samples))
	for i, s := range r.Samples {
		times[i] = s.Time
	}
	return times
}

// Report is what Run measured.
type Report struct {
	Results       []Result  // in the order of the tests
	ReadBandwidth []float64 // bytes per second, of each round
	Int8Peak      []float64 // operations per second, a multiply-add counting two, of each round
	PeakMemory    int64     // most memory of the process after the warm-up, in bytes; 0 where the system doesn't tell
}

// Run runs the tests. After an error the report holds the rounds that were complete.
func Run(ctx context.Context, e *engine.Engine, o Options) (Report, error) {
	var report Report
	r, err := newRunner(e, o)
	if err != nil {
		return report, err
	}
	defer r.close()
	report.Results = r.results
	for round := 0; round <= o.Rounds; round++ { // round 0 warms up
		got, err := r.round(ctx, round)
		if err != nil {
			return report, err
		}
		if round == 0 {
			report.PeakMemory = peakMemory()
			continue
		}
		report.add(got)
	}
	return report, nil
}

// add appends a round's samples.
func (p *Report) add(round Report) {
	for i := range p.Results {
		to, from := &p.Results[i], &round.Results[i]
		if to.Start.IsZero() {
			to.Start = from.Start
		}
		to.Samples = append(to.Samples, from.Samples...)
		to.Peer = append(to.Peer, from.Peer...)
	}
	p.ReadBandwidth = append(p.ReadBandwidth, round.ReadBandwidth...)
	p.Int8Peak = append(p.Int8Peak, round.Int8Peak...)
}

// runner runs tests on an engine. Tests with the same depth share a session.
type runner struct {
	Options
	e        *engine.Engine
	results  []Result // without samples
	sessions map[int]*engine.Session
	ids      []int32 // pseudo-random, the same each time
	edit     []int32 // prompt of the edit task
}

func newRunner(e *engine.Engine, o Options) (*runner, error) {
	r := &runner{Options: o, e: e, sessions: map[int]*engine.Session{}}
	tokens := 0
	for _, t := range o.Tests {
		if t.Kind == Edit {
			var err error
			if r.edit, err = editPrompt(e); err != nil {
				return nil, err
			}
			t.Prompt = len(r.edit)
		}
		tokens = max(tokens, t.Depth+t.Prompt+t.Gen)
		r.results = append(r.results, Result{Test: t})
	}
	r.ids = make([]int32, tokens)
	random := rand.New(rand.NewPCG(1, 2))
	for i := range r.ids {
		r.ids[i] = random.Int32N(int32(e.Info().Vocab))
	}
	return r, nil
}

func (r *runner) close() {
	for _, s := range r.sessions {
		s.Close()
	}
}

// round runs every test once. With a peer it runs our tests, ours again and the peer's, or the peer's first.
func (r *runner) round(ctx context.Context, n int) (Report, error) {
	var got Report
	for _, t := range r.results {
		got.Results = append(got.Results, Result{Test: t.Test, Start: time.Now().UTC()})
	}
	if r.Limits != nil && n > 0 { // not in round 0: its memory is none of the model's
		r.progress(n, "limits of the machine")
		bandwidth, err := r.Limits.ReadBandwidth()
		if err != nil {
			return got, err
		}
		got.ReadBandwidth = []float64{bandwidth}
		if peak := r.Limits.Int8Peak(); peak > 0 {
			got.Int8Peak = []float64{peak}
		}
	}
	own := func() error { return r.own(ctx, n, got.Results) }
	turns := []func() error{own}
	if r.Peer != nil {
		peer := func() error { return r.peer(ctx, n, got.Results) }
		if turns = []func() error{own, own, peer}; n%2 == 0 {
			turns = []func() error{peer, own, own}
		}
	}
	for _, turn := range turns {
		if err := turn(); err != nil {
			return got, err
		}
	}
	return got, nil
}

func (r *runner) progress(round int, it string) {
	if r.Progress != nil {
		r.Progress(round, it)
	}
}

// own runs our tests.
func (r *runner) own(ctx context.Context, round int, results []Result) error {
	for i := range results {
		t := results[i].Test
		r.progress(round, t.Name())
		s, err := r.measure(ctx, t)
		if err != nil {
			return fmt.Errorf("%s: %w", t.Name(), err)
		}
		results[i].Samples = append(results[i].Samples, s)
	}
	return nil
}

// peer runs the peer's tests and keeps the figures of those that are ours too.
func (r *runner) peer(ctx context.Context, round int, results []Result) error {
	r.progress(round, "peer")
	rows, err := r.Peer.run(ctx)
	if err != nil {
		return err
	}
	common := false
	for _, row := range rows {
		for i := range results {
			if row.same(results[i].Test) {
				results[i].Peer = append(results[i].Peer, row.Rates...)
				common = true
			}
		}
	}
	if !common {
		return fmt.Errorf("peer %q ran %s, none of the tests here", r.Peer.Command, names(rows))
	}
	return nil
}

// measure runs a test once.
func (r *runner) measure(ctx context.Context, t Test) (Sample, error) {
	s, err := r.session(ctx, t.Depth)
	if err != nil {
		return Sample{}, err
	}
	defer s.Truncate(t.Depth) // gives its pages back
	switch t.Kind {
	case Edit:
		return generate(ctx, s, r.edit, t)
	case FirstToken:
		return generate(ctx, s, r.ids[:t.Prompt], t)
	}
	start := time.Now()
	for at, n := range t.steps() {
		if _, err := s.Eval(ctx, r.ids[at:at+n]); err != nil {
			return Sample{}, err
		}
	}
	return Sample{t.Prompt + t.Gen, time.Since(start)}, nil
}

// session returns the session with so many tokens in its cache. The last of them is evaluated anew: where a recurrent model
// must evaluate them all again, it does so here and not in the test.
func (r *runner) session(ctx context.Context, depth int) (*engine.Session, error) {
	s := r.sessions[depth]
	if s == nil {
		var err error
		if s, err = r.e.NewSession(); err != nil {
			return nil, err
		}
		r.sessions[depth] = s
	}
	s.Truncate(max(depth-1, 0))
	if n := s.Len(); n < depth {
		if _, err := s.Eval(ctx, r.ids[n:depth]); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// Loads opens a model so many times, after a first time that brings its file into the page cache, and returns the times.
// Each is closed before the next is opened.
func Loads(n int, open func() (*engine.Engine, error)) ([]Sample, error) {
	var samples []Sample
	for i := range n + 1 {
		start := time.Now()
		e, err := open()
		d := time.Since(start)
		if err != nil {
			return samples, err
		}
		if err := e.Close(); err != nil {
			return samples, err
		}
		if i > 0 {
			samples = append(samples, Sample{Time: d})
		}
	}
	return samples, nil
}
