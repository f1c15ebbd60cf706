package main

import (
	"fmt"
	"os"

	"github.com/swizzle-rt/swizzle/generated"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

type kernelsReportCmd struct {
	Layout bool   `help:"Draw the tiles: which banks of shared memory their parts lie in."`
	SVG    string `name:"svg" placeholder:"FILE" help:"Write the drawing as an SVG picture."`
	JSON   bool   `name:"json" help:"Print JSON."`
}

// Help gives the examples of --help.
func (*kernelsReportCmd) Help() string {
	return `Examples:

    swizzle kernels report
    swizzle kernels report --layout
    swizzle kernels report --svg tiles.svg
    swizzle kernels report --json

It shows what tiles of matrices cost in a GPU's shared memory: under an XOR swizzle, and with 16 bytes of padding a row, the usual cure for bank conflicts. Below stands what NVIDIA's assembler makes of the PTX kernels.`
}

// kernelsReport is what kernels report --json prints.
type kernelsReport struct {
	Block    kernel.Block       `json:"block"` // that the occupancy is stated for
	Tiles    []reportedTile     `json:"tiles"`
	Kernels  []kernel.Assembled `json:"kernels"`
	Rejected []kernel.Rejection `json:"rejected"`
}

type reportedTile struct {
	kernel.Tile
	Saved   float64 `json:"saved"`   // share of the padded bytes
	Formula string  `json:"formula"` // of Saved
}

// Run prints the report.
func (c *kernelsReportCmd) Run() error {
	r, err := kernel.ReadReport(generated.Files)
	if err != nil {
		return err
	}
	if c.SVG != "" {
		if err := writeBankSVG(c.SVG, r.Tiles); err != nil {
			return err
		}
	}
	switch {
	case c.JSON:
		out := kernelsReport{Block: r.Block, Tiles: []reportedTile{}, Kernels: r.Kernels, Rejected: r.Rejected}
		for _, t := range r.Tiles {
			out.Tiles = append(out.Tiles, reportedTile{t, t.Saved(), fmt.Sprintf("16/%d", t.RowBytes+16)})
		}
		return printJSON(out)
	case c.Layout:
		return printBanks(r.Tiles)
	}
	return printReport(r)
}

func printReport(r *kernel.Report) error {
	rows := [][]string{{"TILE", "ROW", "SWIZZLE", "PADDED", "SWIZZLED", "SAVED", "LDMATRIX", "COPIES"}}
	for _, t := range r.Tiles {
		rows = append(rows, []string{
			t.String(), fmt.Sprintf("%d B", t.RowBytes), t.Swizzle, fmt.Sprintf("%d B", t.PaddedBytes), fmt.Sprintf("%d B", t.SwizzledBytes),
			savedText(&t), wavefronts(t.LdMatrix), wavefronts(t.Copies),
		})
	}
	if err := printTable(rows); err != nil {
		return err
	}
	fmt.Print(`
SAVED is 16/(row + 16), as padding is 16 bytes a row. LDMATRIX (a warp reads 16
rows by 32 bytes) and COPIES (it stores 16 bytes a lane) are the wavefronts of
the worst access: plain, padded and swizzled, of those without bank conflicts.
`)
	if err := printOccupancy(r); err != nil {
		return err
	}
	if err := printAssembled(r); err != nil {
		return err
	}
	if n := len(r.Rejected); n > 0 {
		fmt.Printf("\n%d configs were rejected by the generator; swizzle kernels show OP says why.\n", n)
	}
	return nil
}

func wavefronts(w kernel.Wavefronts) string {
	return fmt.Sprintf("%d %d %d of %d", w.Plain, w.Padded, w.Swizzled, w.Ideal)
}

// printOccupancy prints a column for each architecture.
func printOccupancy(r *kernel.Report) error {
	if len(r.Tiles) == 0 {
		return nil
	}
	fmt.Printf("\nBlocks a multiprocessor, padded → swizzled. A block has %d threads of %d\nregisters each, and %d tiles in shared memory:\n\n", r.Block.Threads, r.Block.Registers, r.Block.Tiles)
	rows := [][]string{{"TILE"}}
	for _, o := range r.Tiles[0].Occupancy {
		rows[0] = append(rows[0], o.Arch)
	}
	for _, t := range r.Tiles {
		row := []string{t.String()}
		for _, o := range t.Occupancy {
			row = append(row, fmt.Sprintf("%d → %d", o.Padded, o.Swizzled))
		}
		rows = append(rows, row)
	}
	return printTable(rows)
}

// printAssembled prints a row for each kernel and a column for each architecture.
func printAssembled(r *kernel.Report) error {
	if len(r.Kernels) == 0 || len(r.Tiles) == 0 {
		return nil
	}
	fmt.Print("\nPTX kernels: registers a thread, instructions, blocks a multiprocessor:\n\n")
	rows := [][]string{{"KERNEL"}}
	for _, o := range r.Tiles[0].Occupancy {
		rows[0] = append(rows[0], o.Arch)
	}
	for _, k := range r.Kernels {
		row := []string{k.Kernel}
		for _, arch := range rows[0][1:] {
			f := k.On[arch]
			row = append(row, fmt.Sprintf("%d %d %d", f.Registers, f.Instructions, f.Blocks))
		}
		rows = append(rows, row)
	}
	return printTable(rows)
}

// printBanks draws tiles on stdout, with colours if it is a terminal.
func printBanks(tiles []kernel.Tile) error {
	text, err := drawBanks(tiles, hasColour(os.Stdout))
	if err != nil {
		return err
	}
	_, err = fmt.Print(text)
	return err
}

// writeBankSVG draws tiles into a file.
func writeBankSVG(path string, tiles []kernel.Tile) error {
	text, err := bankSVG(tiles)
	if err != nil {
		return err
	}
	if err := writeFile(path, []byte(text)); err != nil {
		return fmt.Errorf("--svg: %w", err)
	}
	return nil
}
