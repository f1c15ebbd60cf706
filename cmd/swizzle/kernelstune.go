package main

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/swizzle-rt/swizzle/generated"
	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/dispatch"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
	"github.com/swizzle-rt/swizzle/runtime/tune"
)

type kernelsExplainCmd struct {
	Op      string `arg:"" help:"Op, such as gemm_q8_0."`
	M       int    `name:"m" default:"1" placeholder:"N" help:"Rows: tokens of a product, rows of queries of attention. Default: ${default}."`
	N       int    `name:"n" placeholder:"N" help:"Rows of the weights, or key heads of attention."`
	K       int    `name:"k" placeholder:"N" help:"Elements of a row of the weights, or of a head."`
	Threads int    `short:"t" placeholder:"N" help:"Threads that the profile is for. Default: one for each CPU this process may use."`
	JSON    bool   `name:"json" help:"Print JSON."`
}

// Help gives the examples of --help.
func (*kernelsExplainCmd) Help() string {
	return `Examples:

    swizzle kernels explain gemm_q8_0 --m 12 --n 1024 --k 3072
    swizzle kernels explain rmsnorm

It shows which kernels run here for an op and shape, and why: by default, or because swizzle tune measured that they are faster.`
}

// explanation is what kernels explain --json prints.
type explanation struct {
	Op         string             `json:"op"`
	ISA        cpu.ISA            `json:"isa"`
	M          int                `json:"m"`
	N          int                `json:"n"`
	K          int                `json:"k"`
	Runs       []explainedRun     `json:"runs"`
	Why        string             `json:"why"`
	Profile    string             `json:"profile"` // file
	Entry      *tune.Entry        `json:"entry"`   // the measurement that covers the shape, or null
	Candidates []string           `json:"candidates"`
	Rejected   []kernel.Rejection `json:"rejected"`
}

type explainedRun struct {
	Kernel string `json:"kernel"`
	First  int    `json:"first_row"`
	Rows   int    `json:"rows"`
	Tile   int    `json:"tile_rows"`
}

// Run explains the choice.
func (c *kernelsExplainCmd) Run() error {
	if c.M < 1 || c.N < 0 || c.K < 0 {
		return usagef("--m is %d, --n is %d, --k is %d, expected sizes above 0", c.M, c.N, c.K)
	}
	isa, err := chosenISA()
	if err != nil {
		return err
	}
	profile, err := loadProfile(isa, c.Threads)
	if err != nil {
		return err
	}
	features := cpu.Detect()
	table := dispatch.New(kernels(), isa)
	table.Choose(profile.Choice(), features)
	e := explanation{Op: c.Op, ISA: isa, M: c.M, N: c.N, K: c.K, Profile: profile.Path, Rejected: []kernel.Rejection{}}
	for _, k := range table.Candidates(c.Op, features) {
		e.Candidates = append(e.Candidates, k.Name.String())
	}
	if len(e.Candidates) == 0 {
		return unknownOp(c.Op)
	}
	if err := e.choose(table, profile); err != nil {
		return err
	}
	if e.Rejected, err = rejections(c.Op); err != nil {
		return err
	}
	if c.JSON {
		return printJSON(e)
	}
	return e.print()
}

// choose finds the kernels that run and why.
func (e *explanation) choose(table *dispatch.Table, profile *tune.Profile) error {
	shape := dispatch.Shape{Op: e.Op, N: e.N, K: e.K}
	param := tune.RowParam(e.Op)
	if param == "" {
		for _, k := range table.All() {
			if k.Name.Op == e.Op {
				e.Runs = append(e.Runs, explainedRun{Kernel: k.Name.String()})
			}
		}
		e.Why = fmt.Sprintf("the best architecture with kernels of this op under %s; it has no tiles to choose from", e.ISA)
		return nil
	}
	plan, err := table.Plan(shape, param)
	if err != nil {
		return err
	}
	runs := plan.Cut(e.M, nil)
	if param == "r" {
		tile := plan.Tile(e.M)
		rows, _ := tile.Name.Param(param)
		runs = []dispatch.Run{{Kernel: tile, Rows: e.M, Tile: rows}}
	}
	for _, r := range runs {
		e.Runs = append(e.Runs, explainedRun{r.Kernel.Name.String(), r.First, r.Rows, r.Tile})
	}
	entry, measured := profile.Covering(shape, e.M)
	if measured {
		e.Entry = &entry
	}
	_, chosen := plan.Rows(e.M)
	rule := "the largest tiles first"
	if param == "r" {
		rule = "the tile with the least work beyond the last row"
	}
	switch {
	case chosen && measured:
		e.Why = fmt.Sprintf("by the profile: measured with %d rows, %s faster than the default %s", entry.M, percent(entry.Gain()), shortNames(entry.Default))
	case measured && !slices.Equal(entry.Winner, entry.Default):
		e.Why = "by default, " + rule + ": the profile names kernels that don't run under this instruction set"
	case measured:
		e.Why = fmt.Sprintf("by default, %s: measured with %d rows, and nothing was clearly faster", rule, entry.M)
	case e.N == 0 || e.K == 0:
		e.Why = "by default, " + rule + "; with --n and --k it says whether the shape has been measured"
	default:
		e.Why = "by default, " + rule + "; the shape has not been measured here (swizzle tune does)"
	}
	return nil
}

func (e *explanation) print() error {
	fmt.Printf("%s under %s", e.Op, e.ISA)
	if tune.RowParam(e.Op) != "" {
		fmt.Printf(", m %d, n %d, k %d", e.M, e.N, e.K)
	}
	fmt.Println()
	var rows [][]string
	for _, r := range e.Runs {
		row := []string{"  " + r.Kernel}
		if r.Rows > 0 {
			row = append(row, fmt.Sprintf("rows %d to %d, %d at once", r.First, r.First+r.Rows-1, r.Tile))
		}
		rows = append(rows, row)
	}
	if err := printTable(rows); err != nil {
		return err
	}
	fmt.Printf("why: %s\n", e.Why)
	if e.Entry != nil {
		rows = [][]string{{"measured", "MEDIAN", "QUARTILES", "", ""}}
		for _, m := range e.Entry.Measured {
			row := []string{"  " + shortNames(m.Kernels), "-", "", m.Reason}
			if m.Samples > 0 {
				row[1], row[2] = formatNanoseconds(m.Median), formatNanoseconds(m.Q1)+" to "+formatNanoseconds(m.Q3)
			}
			rows = append(rows, row)
		}
		if err := printTable(rows); err != nil {
			return err
		}
		fmt.Printf("%s of the roofline (%.1f GB/s, %.0f GOPS int8, %.0f GFLOPS), %s\n", percent(e.Entry.Efficiency()), e.Entry.Limits.Bandwidth/1e9,
			e.Entry.Limits.Int8/1e9, e.Entry.Limits.Float/1e9, e.Entry.Date.Format("2006-01-02 15:04"))
	}
	fmt.Printf("kernels that could run: %s\n", strings.Join(e.Candidates, ", "))
	for _, r := range e.Rejected {
		fmt.Printf("rejected by the generator: %s: %s\n", kernel.Name{Op: r.Op, Config: r.Config, Arch: r.Arch}, r.Message)
	}
	return nil
}

// rejections lists the configs of an op that were not generated.
func rejections(op string) ([]kernel.Rejection, error) {
	report, err := kernel.ReadReport(generated.Files)
	if err != nil {
		return nil, err
	}
	list := []kernel.Rejection{}
	for _, r := range report.Rejected {
		if r.Op == op {
			list = append(list, r)
		}
	}
	return list, nil
}

type kernelsBenchCmd struct {
	Ops     []string `arg:"" name:"op" help:"Ops, such as gemm_q8_0 and rmsnorm."`
	M       int      `name:"m" default:"48" placeholder:"N" help:"Rows; a kernel takes the next multiple of its tile below. Default: ${default}."`
	N       int      `name:"n" placeholder:"N" help:"Rows of the weights, or key heads of attention. Default: 1024 and 8."`
	K       int      `name:"k" placeholder:"N" help:"Elements of a row, or of a head of attention. Default: 1024 and 128."`
	Threads int      `short:"t" placeholder:"N" help:"Threads. Default: one for each CPU this process may use."`
	JSON    bool     `name:"json" help:"Print JSON."`
}

// Help gives the examples of --help.
func (*kernelsBenchCmd) Help() string {
	return `Examples:

    swizzle kernels bench gemm_q8_0 gemm_q4_k --m 512
    swizzle kernels bench rmsnorm --json
    swizzle kernels bench attention_f16 --m 64 --n 8 --k 128

It times every kernel of the ops that runs here, interleaved, with operands that come from memory. A kernel whose bits differ from the portable one's is listed with the difference and not timed.`
}

// kernelsBench is what kernels bench --json prints.
type kernelsBench struct {
	Threads int           `json:"threads"`
	Limits  tune.Limits   `json:"limits"`
	Timings []tune.Timing `json:"timings"`
}

// Run times the kernels.
func (c *kernelsBenchCmd) Run() error {
	if c.M < 1 || c.N < 0 || c.K < 0 || max(c.M, c.N, c.K) > 1<<20 {
		return usagef("--m is %d, --n is %d, --k is %d, expected 1 to %d", c.M, c.N, c.K, 1<<20)
	}
	if c.Threads < 0 || c.Threads > maxThreads {
		return usagef("--threads is %d, expected 1 to %d, or 0 to choose", c.Threads, maxThreads)
	}
	isa, err := chosenISA()
	if err != nil {
		return err
	}
	ctx, stop := interruptible()
	defer stop()
	out := kernelsBench{Threads: cpu.WorkerCount(c.Threads)}
	wrong := 0
	for _, op := range c.Ops {
		n, k := cmp.Or(c.N, 1024), cmp.Or(c.K, 1024)
		if tune.RowParam(op) == "r" {
			n, k = cmp.Or(c.N, 8), cmp.Or(c.K, 128)
		}
		list, limits, err := tune.Bench(ctx, tune.Options{Kernels: kernels(), ISA: isa, Threads: out.Threads}, op, c.M, n, k)
		if errors.Is(err, dispatch.ErrNoKernel) {
			return unknownOp(op)
		}
		if err != nil {
			return err
		}
		out.Limits, out.Timings = limits, append(out.Timings, list...)
	}
	for _, r := range out.Timings {
		if r.Error != "" {
			wrong++
		}
	}
	if c.JSON {
		err = printJSON(out)
	} else {
		err = printTimings(out)
	}
	if err == nil && wrong > 0 {
		err = fmt.Errorf("%d kernels give other bits than the portable ones", wrong)
	}
	return err
}

func printTimings(out kernelsBench) error {
	fmt.Fprintf(os.Stderr, "%d threads; read bandwidth %.1f GB/s, int8 %.0f GOPS, float %.0f GFLOPS\n", out.Threads, out.Limits.Bandwidth/1e9, out.Limits.Int8/1e9, out.Limits.Float/1e9)
	rows := [][]string{{"KERNEL", "M", "N", "K", "MEDIAN", "QUARTILES", "GB/S", "GOPS", "ROOFLINE"}}
	for _, r := range out.Timings {
		row := []string{r.Kernel, fmt.Sprint(r.M), fmt.Sprint(r.N), fmt.Sprint(r.K)}
		if r.Error != "" {
			rows = append(rows, append(row, r.Error))
			continue
		}
		gops := "-"
		if r.Ops > 0 {
			gops = fmt.Sprintf("%.1f", float64(r.Ops)/r.Median)
		}
		rows = append(rows, append(row, formatNanoseconds(r.Median), formatNanoseconds(r.Q1)+" to "+formatNanoseconds(r.Q3),
			fmt.Sprintf("%.1f", float64(r.Bytes)/r.Median), gops, percent(r.Bound/cmp.Or(r.Median, 1))))
	}
	return printTable(rows)
}
