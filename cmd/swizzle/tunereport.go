package main

import (
	"bytes"
	_ "embed"
	"fmt"
	"html/template"
	"math"
	"slices"
	"strings"

	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/tune"
)

//go:embed tunereport.html
var tuneReportText string

var tuneReportPage = template.Must(template.New("report").Parse(tuneReportText))

// tuneReport is what the page shows.
type tuneReport struct {
	CPU       string
	Device    tune.Device
	Kernels   string
	Limits    []namedValue
	Summary   []namedValue
	Roofline  rooflinePlot
	Displaced []displacedBar
	BarHeight int
	Rows      []reportRow
}

type namedValue struct{ Name, Value string }

// reportRow is a row of the table.
type reportRow struct {
	tune.Entry
	DefaultText, WinnerText, Time, Gain, Roofline string
	Candidates                                    []reportCandidate
}

type reportCandidate struct{ Kernels, Median, Quartiles, Reason string }

// displacedBar shows a default's time and the winner's, as parts of the default's.
type displacedBar struct {
	Label, Text string
	Y           int
	Width       float64
}

// rooflinePlot is a plot of speed over operations per byte, both logarithmic.
type rooflinePlot struct {
	X, Y     []tick
	Ceilings []ceiling
	Points   []plotPoint
}

type tick struct {
	At   float64
	Text string
}

type ceiling struct {
	X1, Y1, X2, Y2, LabelX, LabelY float64
	Text                           string
}

type plotPoint struct {
	X, Y        float64
	Class, Text string
}

// The plot's area in the SVG's units.
const (
	plotLeft, plotRight = 62.0, 700.0
	plotTop, plotBottom = 16.0, 330.0
)

// writeTuneReport writes the page, whole or not at all.
func writeTuneReport(path string, out tuneOutput) error {
	var b bytes.Buffer
	if err := tuneReportPage.Execute(&b, newTuneReport(out)); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	if err := writeFile(path, b.Bytes()); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

func newTuneReport(out tuneOutput) tuneReport {
	r := tuneReport{CPU: cpu.Describe().Brand, Device: out.Key.Device, Kernels: out.Key.Kernels[:min(12, len(out.Key.Kernels))]}
	var limits tune.Limits
	var gains []float64
	for _, e := range out.Entries {
		limits = tune.Limits{
			Bandwidth: max(limits.Bandwidth, e.Limits.Bandwidth), Int8: max(limits.Int8, e.Limits.Int8), Float: max(limits.Float, e.Limits.Float),
		}
		row := reportRow{
			Entry: e, DefaultText: shortNames(e.Default), WinnerText: shortNames(e.Winner), Roofline: percent(e.Efficiency()),
		}
		w, _ := e.Of(e.Winner)
		row.Time = formatNanoseconds(w.Median)
		if !slices.Equal(e.Default, e.Winner) {
			row.Gain = "+" + percent(e.Gain())
			gains = append(gains, e.Gain())
		}
		for _, m := range e.Measured {
			c := reportCandidate{Kernels: shortNames(m.Kernels), Reason: m.Reason}
			if m.Samples > 0 {
				c.Median, c.Quartiles = formatNanoseconds(m.Median), formatNanoseconds(m.Q1)+" – "+formatNanoseconds(m.Q3)
			}
			row.Candidates = append(row.Candidates, c)
		}
		r.Rows = append(r.Rows, row)
	}
	r.Limits = []namedValue{
		{"read bandwidth", fmt.Sprintf("%.1f GB/s", limits.Bandwidth/1e9)},
		{"int8 peak", fmt.Sprintf("%.0f GOPS", limits.Int8/1e9)},
		{"float peak", fmt.Sprintf("%.0f GFLOPS", limits.Float/1e9)},
	}
	r.Summary = []namedValue{{"problems", fmt.Sprint(len(out.Entries))}, {"defaults displaced", fmt.Sprint(len(gains))}}
	if len(gains) > 0 {
		slices.Sort(gains)
		r.Summary = append(r.Summary, namedValue{"median gain there", percent(gains[len(gains)/2])})
	}
	r.Roofline = plotRoofline(out.Entries, limits)
	r.Displaced = displacedBars(out.Entries)
	r.BarHeight = 24*len(r.Displaced) + 8
	return r
}

// displacedBars lists the largest gains.
func displacedBars(list []tune.Entry) []displacedBar {
	const most, width = 24, 200
	list = slices.DeleteFunc(slices.Clone(list), func(e tune.Entry) bool { return slices.Equal(e.Default, e.Winner) })
	slices.SortStableFunc(list, func(a, b tune.Entry) int {
		switch {
		case a.Gain() > b.Gain():
			return -1
		case a.Gain() < b.Gain():
			return 1
		}
		return 0
	})
	var bars []displacedBar
	for _, e := range list[:min(most, len(list))] {
		bars = append(bars, displacedBar{
			Label: fmt.Sprintf("%s m %d, n %d, k %d", e.Op, e.M, e.N, e.K), Y: 24*len(bars) + 4, Width: width / max(1, 1+e.Gain()),
			Text: fmt.Sprintf("+%s: %s, not %s", percent(e.Gain()), shortNames(e.Winner), shortNames(e.Default)),
		})
	}
	return bars
}

// logScale maps low … high to the interval from … to.
func logScale(low, high, from, to float64) func(float64) float64 {
	a, b := math.Log(low), math.Log(high)
	return func(v float64) float64 {
		part := (math.Log(min(max(v, low), high)) - a) / (b - a)
		return from + float64(part*(to-from))
	}
}

// plotRoofline places every problem under the roof.
func plotRoofline(list []tune.Entry, l tune.Limits) rooflinePlot {
	var p rooflinePlot
	if len(list) == 0 || l.Bandwidth <= 0 || l.Int8 <= 0 || l.Float <= 0 {
		return p
	}
	lowX, highX, lowY, highY := 1.0, 1000.0, l.Bandwidth, max(l.Int8, l.Float)/0.7
	for _, e := range list {
		x, y := intensity(e), speed(e)
		if y > 0 {
			lowX, highX, lowY = min(lowX, x), max(highX, x), min(lowY, y)
		}
	}
	lowX, highX, lowY = lowX/1.3, highX/0.75, lowY/1.5
	x, y := logScale(lowX, highX, plotLeft, plotRight), logScale(lowY, highY, plotBottom, plotTop)
	for v := math.Pow(10, math.Ceil(math.Log10(lowX))); v <= highX; v = float64(10 * v) {
		p.X = append(p.X, tick{x(v), fmt.Sprintf("%g", v)})
	}
	for v := math.Pow(10, math.Ceil(math.Log10(lowY))); v <= highY; v = float64(10 * v) {
		p.Y = append(p.Y, tick{y(v), fmt.Sprintf("%g", v/1e9)})
	}
	top := max(l.Int8, l.Float)
	edge := max(lowX, lowY/l.Bandwidth)
	p.Ceilings = append(p.Ceilings, ceiling{
		x(edge), y(float64(edge * l.Bandwidth)), x(top / l.Bandwidth), y(top), (x(edge)+x(top/l.Bandwidth))/2 - 86, (y(float64(edge*l.Bandwidth)) + y(top)) / 2, fmt.Sprintf("%.1f GB/s", l.Bandwidth/1e9),
	})
	for _, c := range []struct {
		name string
		v    float64
	}{{"int8", l.Int8}, {"float", l.Float}} {
		p.Ceilings = append(p.Ceilings, ceiling{x(c.v / l.Bandwidth), y(c.v), plotRight, y(c.v), plotRight - 110, y(c.v) - 5, fmt.Sprintf("%s %.0f GOPS", c.name, c.v/1e9)})
	}
	for _, e := range list {
		if speed(e) <= 0 {
			continue
		}
		class := "many"
		switch {
		case strings.HasPrefix(e.Op, "attention"):
			class = "attention"
		case e.M == 1:
			class = "one"
		case e.M <= 32:
			class = "few"
		}
		w, _ := e.Of(e.Winner)
		text := fmt.Sprintf("%s, m %d, n %d, k %d: %s, %.0f GOPS, %s of the roofline by %s", e.Op, e.M, e.N, e.K,
			formatNanoseconds(w.Median), speed(e)/1e9, percent(e.Efficiency()), shortNames(e.Winner))
		p.Points = append(p.Points, plotPoint{x(intensity(e)), y(speed(e)), class, text})
	}
	return p
}

// intensity returns operations per byte.
func intensity(e tune.Entry) float64 { return float64(e.Ops) / float64(max(e.Bytes, 1)) }

// speed returns operations a second of the winner.
func speed(e tune.Entry) float64 {
	w, _ := e.Of(e.Winner)
	if w.Median <= 0 {
		return 0
	}
	return float64(e.Ops) / (w.Median / 1e9)
}
