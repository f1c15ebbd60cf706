package main

import (
	"fmt"
	"html"
	"strconv"
	"strings"

	"github.com/swizzle-rt/swizzle/ir/layout"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// bankGrid shows where the 16-byte chunks of a tile lie under one layout: for each row the chunks' bank groups.
type bankGrid struct {
	name       string
	rows       [][]int // padding for what no chunk fills
	cut        bool    // there are more chunks than shown
	wavefronts int     // of the worst ldmatrix.x4
}

const (
	padding = -1 // in place of a bank group

	gridRows   = 8 // after which the layouts repeat
	gridChunks = 16
)

// bankLegend explains the drawings, a line each.
var bankLegend = [...]string{
	"Each 16-byte chunk of a tile shows its bank group g, the banks 4g to 4g+3.",
	"Eight rows are drawn, the others repeat them. ldmatrix reads eight rows of a",
	"column at once; a group that comes twice in them is a bank conflict.",
}

// bankGrids returns the tile plain, padded and swizzled.
func bankGrids(t *kernel.Tile) ([]bankGrid, error) {
	tile := layout.Tile{Rows: t.Rows, RowBytes: t.RowBytes}
	if err := tile.Validate(); err != nil {
		return nil, fmt.Errorf("generated files: report.json: %w", err)
	}
	swizzle, err := layout.ParseSwizzle(t.Swizzle)
	if err != nil {
		return nil, fmt.Errorf("generated files: report.json: %w", err)
	}
	grid := func(name string, l layout.Swizzled, wavefronts int) bankGrid {
		chunks := t.RowBytes / 16
		g := bankGrid{name: name, cut: chunks > gridChunks, wavefronts: wavefronts}
		for row := range min(t.Rows, gridRows) {
			var groups []int
			for c := range min(chunks, gridChunks) {
				groups = append(groups, layout.BankGroup(l.Offset(row, 16*c)))
			}
			if l.Stride[0] > t.RowBytes && !g.cut {
				groups = append(groups, padding)
			}
			g.rows = append(g.rows, groups)
		}
		return g
	}
	return []bankGrid{
		grid("plain", tile.Plain(), t.LdMatrix.Plain), grid("padded", tile.Padded(), t.LdMatrix.Padded),
		grid("swizzled", layout.Swizzled{Layout: tile.Plain().Layout, Swizzle: swizzle}, t.LdMatrix.Swizzled),
	}, nil
}

// bankColours are the eight groups' colours: Okabe and Ito's, which people tell apart whatever colours they see.
var bankColours = [8]struct {
	rgb      string
	terminal int // of xterm's 256
	light    bool
}{
	{"#e69f00", 214, true}, {"#56b4e9", 74, true}, {"#009e73", 36, true}, {"#f0e442", 227, true},
	{"#0072b2", 25, false}, {"#d55e00", 166, true}, {"#cc79a7", 175, true}, {"#999999", 246, true},
}

// tileHeading says what a tile is and what its swizzle saves.
func tileHeading(t *kernel.Tile) string {
	return fmt.Sprintf("%s, rows of %d bytes, %s: %d bytes, padded %d: %s", t, t.RowBytes, t.Swizzle, t.SwizzledBytes, t.PaddedBytes, savedText(t))
}

// savedText is the difference from padding, with the formula that gives it.
func savedText(t *kernel.Tile) string {
	return fmt.Sprintf("−%.1f %% = −16/%d", float64(100*t.Saved()), t.RowBytes+16)
}

// drawBanks draws tiles as text.
func drawBanks(tiles []kernel.Tile, colour bool) (string, error) {
	var b strings.Builder
	for _, line := range bankLegend {
		fmt.Fprintln(&b, line)
	}
	b.WriteString("A dot is padding.\n")
	for _, t := range tiles {
		grids, err := bankGrids(&t)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "\n%s\n", tileHeading(&t))
		for _, g := range grids {
			fmt.Fprintf(&b, "%-*s", 2*len(g.rows[0])+4, g.name)
		}
		b.WriteByte('\n')
		for row := range grids[0].rows {
			for _, g := range grids {
				for _, group := range g.rows[row] {
					switch {
					case group == padding:
						b.WriteString(" ·")
					case colour:
						text := 15
						if bankColours[group].light {
							text = 16
						}
						fmt.Fprintf(&b, "\x1b[38;5;%d;48;5;%dm %d\x1b[0m", text, bankColours[group].terminal, group)
					default:
						fmt.Fprintf(&b, " %d", group)
					}
				}
				if g.cut {
					b.WriteString(" …  ")
				} else {
					b.WriteString("    ")
				}
			}
			b.WriteByte('\n')
		}
		for _, g := range grids {
			fmt.Fprintf(&b, "%-*s", 2*len(g.rows[0])+4, strconv.Itoa(g.wavefronts))
		}
		fmt.Fprintf(&b, "wavefronts of the worst ldmatrix.x4 (ideal: %d)\n", t.LdMatrix.Ideal)
	}
	lines := strings.Split(b.String(), "\n")
	for i := range lines {
		lines[i] = strings.TrimRight(lines[i], " ")
	}
	return strings.Join(lines, "\n"), nil
}

// bankSVG draws tiles as a picture, one below the other.
func bankSVG(tiles []kernel.Tile) (string, error) {
	const cell, gap, head = 18, 24, 46
	var b strings.Builder
	for i, line := range bankLegend {
		fmt.Fprintf(&b, "<text x=\"16\" y=\"%d\">%s</text>\n", 24+18*i, html.EscapeString(line))
	}
	y := 24 + 18*len(bankLegend)
	fmt.Fprintf(&b, "<text x=\"16\" y=\"%d\">A dashed chunk is padding. Wavefronts are those of the worst ldmatrix.x4.</text>\n", y)
	width := 560 // of the legend
	y += 14
	for _, t := range tiles {
		grids, err := bankGrids(&t)
		if err != nil {
			return "", err
		}
		fmt.Fprintf(&b, "<text x=\"16\" y=\"%d\" class=\"t\">%s</text>\n", y+16, html.EscapeString(tileHeading(&t)))
		x := 16
		for _, g := range grids {
			label := fmt.Sprintf("%s: %d wavefronts", g.name, g.wavefronts)
			if g.cut {
				label += fmt.Sprintf(", first %d bytes", 16*gridChunks)
			}
			fmt.Fprintf(&b, "<text x=\"%d\" y=\"%d\">%s</text>\n", x, y+36, label)
			for row, groups := range g.rows {
				for c, group := range groups {
					left, top := x+c*cell, y+head+row*cell
					if group == padding {
						fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"17\" height=\"17\" class=\"p\"/>\n", left, top)
						continue
					}
					colour, class := bankColours[group], "d"
					if colour.light {
						class = "l"
					}
					fmt.Fprintf(&b, "<rect x=\"%d\" y=\"%d\" width=\"17\" height=\"17\" fill=\"%s\"/><text x=\"%d\" y=\"%d\" class=\"%s\">%d</text>\n",
						left, top, colour.rgb, left+8, top+13, class, group)
				}
			}
			x += max(len(g.rows[0])*cell, 7*len(label)) + gap
		}
		width = max(width, x)
		y += head + gap + cell*len(grids[0].rows)
	}
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" aria-label="Bank groups of tiles in shared memory">
<style>text{font:13px sans-serif;fill:#222}.t{font-weight:bold}.l,.d{font-size:11px;text-anchor:middle}.l{fill:#000}.d{fill:#fff}.p{fill:none;stroke:#999;stroke-dasharray:3}.b{fill:#fff}
@media (prefers-color-scheme:dark){text{fill:#ddd}.b{fill:#16191d}}</style>
<rect width="100%%" height="100%%" class="b"/>
%s</svg>
`, width, y, width, y, b.String()), nil
}
