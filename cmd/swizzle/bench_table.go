package main

import (
	"fmt"
	"math"
	"os"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/swizzle-rt/swizzle/runtime/bench"
)

// barStyle says how to draw bars.
type barStyle struct {
	parts []string // of a cell, the smallest first, the whole cell last
}

var (
	blockBars = barStyle{[]string{"▏", "▎", "▍", "▌", "▋", "▊", "▉", "█"}}
	asciiBars = barStyle{[]string{"#"}}
)

// barCells is the width of a bar that stands for 100 %.
const barCells = 30

// newBarStyle returns block characters for a terminal in UTF-8, and ASCII for everything else.
func newBarStyle(f *os.File) barStyle {
	if isTerminal(f) && speaksUTF8(os.Getenv) {
		return blockBars
	}
	return asciiBars
}

// speaksUTF8 reports whether the locale of the environment is in UTF-8. On Windows a console shows any character.
func speaksUTF8(env func(string) string) bool {
	if runtime.GOOS == "windows" {
		return true
	}
	for _, name := range []string{"LC_ALL", "LC_CTYPE", "LANG"} {
		if v := strings.ToUpper(env(name)); v != "" {
			return strings.Contains(v, "UTF-8") || strings.Contains(v, "UTF8")
		}
	}
	return false
}

// bar draws a share of barCells, at most all of them. Anything above 0 is visible.
func (s barStyle) bar(share float64) string {
	if !(share > 0) {
		return ""
	}
	per := len(s.parts)
	n := min(max(int(math.Round(float64(share*float64(barCells*per)))), 1), barCells*per)
	b := strings.Repeat(s.parts[per-1], n/per)
	if n%per > 0 {
		b += s.parts[n%per-1]
	}
	return b
}

// row is what a table shows of a test.
type row struct {
	test, median, least, most, unit, eval string
	bytes, read, int8, ratio              string
	roofline                              float64 // share of the speed that the machine's limits allow
}

func (r *row) cells() []string {
	return []string{r.test, r.median, r.least, r.most, r.unit, r.eval, r.bytes, r.read, r.int8, r.ratio}
}

var (
	benchTitles = row{test: "TEST", median: "MEDIAN", least: "MIN", most: "MAX", eval: "MS/EVAL", bytes: "MB/TOKEN", read: "READ", int8: "INT8", ratio: "RATIO"}
	leftAligned = map[int]bool{0: true, 4: true} // columns
)

// rows returns the rows of the table: a test, and below it the peer's figures if there are any.
func (b *benchmark) rows() []row {
	bandwidth, peak := b.limits()
	var list []row
	for i := range b.report.Results {
		r := &b.report.Results[i]
		use := b.usage(r)
		line := rateRow(r.Test.Name(), r.Rates())
		if r.Test.Timed() {
			times := bench.Summarize(r.Times())
			f := func(d float64) string { return fmt.Sprintf("%.1f", d) }
			line = row{test: r.Test.Name(), median: f(milliseconds(times.Median)), least: f(milliseconds(times.Min)), most: f(milliseconds(times.Max)), unit: "ms"}
		} else if ms := evalMS(r); ms > 0 {
			line.eval = fmt.Sprintf("%.2f", ms)
		}
		if use.BytesPerToken > 0 {
			line.bytes = fmt.Sprintf("%.2f", use.BytesPerToken/1e6)
		}
		line.read, line.int8, line.roofline = percent(use.Bandwidth), percent(use.Int8), use.Roofline
		if ratio := b.ratio(r); ratio > 0 {
			line.ratio = fmt.Sprintf("%.2f x", ratio)
		}
		list = append(list, line)
		if len(r.Peer) > 0 {
			line := rateRow("  peer", r.Peer)
			line.roofline = b.work.Usage(r.Test, bench.Summarize(r.Peer).Median, bandwidth, peak).Roofline
			list = append(list, line)
		}
	}
	return list
}

// rateRow shows tokens per second.
func rateRow(name string, rates []float64) row {
	s := bench.Summarize(rates)
	f := func(v float64) string { return fmt.Sprintf("%.1f", v) }
	return row{test: name, median: f(s.Median), least: f(s.Min), most: f(s.Max), unit: "tok/s"}
}

// percent shows a share; nothing for 0, which is unknown.
func percent(share float64) string {
	if share == 0 {
		return ""
	}
	return fmt.Sprintf("%.1f %%", float64(100*share))
}

// heading says what was measured.
func (b *benchmark) heading() string {
	rounds := len(b.report.ReadBandwidth)
	return fmt.Sprintf("%s, %s of weights, %s parameters; %s, threads: %d, KV cache: %s, rounds: %d", printable(b.name), formatBytes(uint64(b.info.WeightBytes)),
		formatCount(b.info.Params), b.info.ISA, b.info.Threads, b.info.KV, rounds)
}

// footing says what the machine allows.
func (b *benchmark) footing() string {
	text := limitText("read bandwidth", b.report.ReadBandwidth, "GB/s")
	if len(b.report.Int8Peak) > 0 {
		text += "; " + limitText("int8 peak", b.report.Int8Peak, "GOPS") + " by " + b.kernel
	}
	if b.report.PeakMemory > 0 {
		text += "; peak memory " + formatBytes(uint64(b.report.PeakMemory))
	}
	return text
}

func limitText(name string, samples []float64, unit string) string {
	s := bench.Summarize(samples)
	return fmt.Sprintf("%s %.1f %s (%.1f to %.1f)", name, s.Median/1e9, unit, s.Min/1e9, s.Max/1e9)
}

// text returns the table for a terminal.
func (b *benchmark) text(style barStyle) string {
	return fmt.Sprintf("%s\n\n%s\n%s\n", b.heading(), barTable(b.rows(), style), b.footing())
}

// barTable aligns rows in columns, of which those without figures are left out, and adds the bars.
func barTable(rows []row, style barStyle) string {
	lines := append([]row{benchTitles}, rows...)
	var widths [10]int
	for i := range lines {
		for col, cell := range lines[i].cells() {
			if i > 0 && cell != "" {
				widths[col] = max(widths[col], utf8.RuneCountInString(cell), utf8.RuneCountInString(benchTitles.cells()[col]))
			}
		}
	}
	var out strings.Builder
	for i := range lines {
		var line strings.Builder
		for col, cell := range lines[i].cells() {
			switch width := widths[col]; {
			case width == 0:
			case leftAligned[col]:
				fmt.Fprintf(&line, "%-*s  ", width, cell)
			default:
				fmt.Fprintf(&line, "%*s  ", width, cell)
			}
		}
		line.WriteString(style.bar(lines[i].roofline))
		fmt.Fprintln(&out, strings.TrimRight(line.String(), " "))
	}
	return out.String()
}

// markdown returns a Markdown table.
func (b *benchmark) markdown() string {
	var out strings.Builder
	fmt.Fprintf(&out, "%s\n\n", b.heading())
	out.WriteString("| test | median | min | max | unit | ms/eval | MB/token | read | int8 | ratio |\n|:---|---:|---:|---:|:---|---:|---:|---:|---:|---:|\n")
	for _, r := range b.rows() {
		fmt.Fprintf(&out, "| %s |\n", strings.Join(r.cells(), " | "))
	}
	fmt.Fprintf(&out, "\n%s\n", b.footing())
	return out.String()
}
