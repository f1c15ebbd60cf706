package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"

	"golang.org/x/term"
)

// printJSON writes v to stdout, indented.
func printJSON(v any) error {
	enc := json.NewEncoder(os.Stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

// printTable writes rows of cells to stdout in aligned columns. A row that begins with an empty cell is indented.
func printTable(rows [][]string) error {
	var text bytes.Buffer
	w := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush()                                    // to memory
	for line := range strings.Lines(text.String()) { // without the blanks that pad an empty last cell
		if _, err := fmt.Println(strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	return nil
}

// writeFile writes a file for anyone to read, whole or not at all.
func writeFile(path string, text []byte) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a directory", path)
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".swizzle-*")
	if e := (*fs.PathError)(nil); errors.As(err, &e) {
		return fmt.Errorf("write %s: %w", path, e.Err) // without the temporary name
	}
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	defer os.Remove(f.Name()) // gone already if all went well
	if _, err = f.Write(text); err == nil {
		err = f.Sync()
	}
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Chmod(f.Name(), 0o644)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

// formatBytes returns a size with three digits or so and its binary unit.
func formatBytes(n uint64) string {
	if n < 1<<10 {
		return fmt.Sprintf("%d B", n)
	}
	v, unit := float64(n), -1
	for v >= 1024 && unit < 4 {
		v /= 1024
		unit++
	}
	return fmt.Sprintf("%.*f %ciB", decimals(v), v, "KMGTP"[unit])
}

// formatCount returns a number with its decimal unit: 134.5 M.
func formatCount(n uint64) string {
	switch v := float64(n); {
	case n >= 1e9:
		return fmt.Sprintf("%.2f B", v/1e9)
	case n >= 1e6:
		return fmt.Sprintf("%.1f M", v/1e6)
	case n >= 1e3:
		return fmt.Sprintf("%.1f k", v/1e3)
	}
	return fmt.Sprint(n)
}

func decimals(v float64) int {
	if v < 100 {
		return 1
	}
	return 0
}

// isTerminal reports whether f is a terminal.
func isTerminal(f *os.File) bool { return term.IsTerminal(int(f.Fd())) }

// canMoveCursor reports whether f is a terminal that understands more than lines of text.
func canMoveCursor(f *os.File) bool { return isTerminal(f) && os.Getenv("TERM") != "dumb" }

// hasColour reports whether f is a terminal that shows colours, and its user wants them (see no-color.org).
func hasColour(f *os.File) bool { return canMoveCursor(f) && os.Getenv("NO_COLOR") == "" }
