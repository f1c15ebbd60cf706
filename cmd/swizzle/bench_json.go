package main

import (
	"math"
	"time"

	"github.com/swizzle-rt/swizzle/runtime/bench"
)

// benchResult is one test: llama-bench's fields, then more.
type benchResult struct {
	BuildCommit   string    `json:"build_commit"`
	BuildVersion  string    `json:"build_version"`
	CPUInfo       string    `json:"cpu_info"`
	Backends      string    `json:"backends"`
	ModelFilename string    `json:"model_filename"`
	ModelType     string    `json:"model_type"`
	ModelSize     int64     `json:"model_size"`
	ModelNParams  uint64    `json:"model_n_params"`
	NBatch        int       `json:"n_batch"` // 0: the whole prompt
	NThreads      int       `json:"n_threads"`
	TypeK         string    `json:"type_k"`
	TypeV         string    `json:"type_v"`
	NPrompt       int       `json:"n_prompt"`
	NGen          int       `json:"n_gen"`
	NDepth        int       `json:"n_depth"`
	TestTime      time.Time `json:"test_time"`
	AvgNS         int64     `json:"avg_ns"`
	StddevNS      int64     `json:"stddev_ns"`
	AvgTS         float64   `json:"avg_ts"` // tokens a second; 0 and no samples where only the time counts
	StddevTS      float64   `json:"stddev_ts"`
	SamplesNS     []int64   `json:"samples_ns"`
	SamplesTS     []float64 `json:"samples_ts"`

	Test      string  `json:"test"` // its name
	MinTS     float64 `json:"min_ts"`
	MedianTS  float64 `json:"median_ts"`
	MaxTS     float64 `json:"max_ts"`
	MinNS     int64   `json:"min_ns"`
	MedianNS  int64   `json:"median_ns"`
	MaxNS     int64   `json:"max_ns"`
	EvalMS    float64 `json:"eval_ms,omitempty"`         // of one evaluation, by the median
	Bytes     float64 `json:"bytes_per_token,omitempty"` // of packed weights and KV cache that are read
	Ops       float64 `json:"int8_ops_per_token,omitempty"`
	Bandwidth float64 `json:"read_bandwidth"` // the machine's, bytes a second
	Int8Peak  float64 `json:"int8_peak"`      // the machine's, operations a second; 0 is unknown
	Kernel    string  `json:"int8_peak_kernel,omitempty"`

	PercentBandwidth float64 `json:"percent_of_read_bandwidth,omitempty"`
	PercentInt8      float64 `json:"percent_of_int8_peak,omitempty"`
	PercentRoofline  float64 `json:"percent_of_roofline,omitempty"`
	PeakMemory       int64   `json:"peak_rss_bytes"` // of the process; 0 is unknown

	Control     float64   `json:"control_ratio,omitempty"` // of our first turn to our second
	PeerCommand string    `json:"peer_command,omitempty"`
	PeerTS      []float64 `json:"peer_samples_ts,omitempty"`
	PeerMedian  float64   `json:"peer_median_ts,omitempty"`
	Ratio       float64   `json:"ratio,omitempty"` // of our median to the peer's; absent where the machine is too noisy
}

// results returns the tests for --json.
func (b *benchmark) results() []benchResult {
	build, processor := readBuildInfo(), cpuName()
	bandwidth, peak := b.limits()
	list := []benchResult{}
	for i := range b.report.Results {
		r := &b.report.Results[i]
		t, use := r.Test, b.usage(r)
		j := benchResult{
			BuildCommit:      build.Commit,
			BuildVersion:     build.Version,
			CPUInfo:          processor,
			Backends:         b.info.ISA,
			ModelFilename:    b.info.Path,
			ModelType:        b.name,
			ModelSize:        b.info.WeightBytes,
			ModelNParams:     b.info.Params,
			NBatch:           t.Batch,
			NThreads:         b.info.Threads,
			TypeK:            b.info.KV,
			TypeV:            b.info.KV,
			NPrompt:          t.Prompt,
			NGen:             t.Gen,
			NDepth:           t.Depth,
			TestTime:         r.Start,
			SamplesNS:        []int64{},
			SamplesTS:        []float64{},
			Test:             t.Name(),
			EvalMS:           evalMS(r),
			Bytes:            use.BytesPerToken,
			Ops:              use.OpsPerToken,
			Bandwidth:        bandwidth,
			Int8Peak:         peak,
			Kernel:           b.kernel,
			PercentBandwidth: float64(100 * use.Bandwidth),
			PercentInt8:      float64(100 * use.Int8),
			PercentRoofline:  float64(100 * use.Roofline),
			PeakMemory:       b.report.PeakMemory,
			PeerCommand:      b.peer,
			PeerTS:           r.Peer,
			PeerMedian:       bench.Summarize(r.Peer).Median,
			Ratio:            b.ratio(r),
		}
		for _, d := range r.Times() {
			j.SamplesNS = append(j.SamplesNS, d.Nanoseconds())
		}
		ns := bench.Summarize(j.SamplesNS)
		j.MinNS, j.MedianNS, j.MaxNS = ns.Min, ns.Median, ns.Max
		avg, stddev := meanStddev(j.SamplesNS)
		j.AvgNS, j.StddevNS = int64(avg), int64(stddev)
		if !t.Timed() {
			j.SamplesTS = r.Rates()
			ts := bench.Summarize(j.SamplesTS)
			j.MinTS, j.MedianTS, j.MaxTS = ts.Min, ts.Median, ts.Max
			j.AvgTS, j.StddevTS = meanStddev(j.SamplesTS)
			if b.peer != "" {
				j.Control = r.Control()
			}
		}
		list = append(list, j)
	}
	return list
}

// usage relates a test to the machine's limits.
func (b *benchmark) usage(r *bench.Result) bench.Usage {
	bandwidth, peak := b.limits()
	return b.work.Usage(r.Test, bench.Summarize(r.Rates()).Median, bandwidth, peak)
}

// evalMS returns the milliseconds of one evaluation, by the median; 0 where evaluations differ.
func evalMS(r *bench.Result) float64 {
	n := r.Test.Evals()
	if n == 0 || r.Test.Prompt > 0 && r.Test.Gen > 0 && r.Test.Kind == bench.Eval {
		return 0
	}
	return milliseconds(bench.Summarize(r.Times()).Median) / float64(n)
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// meanStddev returns the mean and the sample standard deviation.
func meanStddev[T int64 | float64](samples []T) (mean, stddev float64) {
	n := float64(len(samples))
	for _, x := range samples {
		mean += float64(x)
	}
	mean /= n
	if len(samples) < 2 {
		return mean, 0
	}
	for _, x := range samples {
		d := float64(x) - mean
		stddev += float64(d * d)
	}
	return mean, math.Sqrt(stddev / (n - 1))
}
