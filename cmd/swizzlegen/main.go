// Command swizzlegen writes the generated kernels: every op for every target. go generate runs it.
package main

import (
	"fmt"
	"os"

	"github.com/alecthomas/kong"

	"github.com/swizzle-rt/swizzle/gen"
	"github.com/swizzle-rt/swizzle/ir/ops"
)

type cli struct {
	Out  string `short:"o" default:"generated" type:"path" placeholder:"DIR" help:"Directory of the generated files."`
	Dump string `placeholder:"OP/CONFIG/ARCH" help:"Print one kernel, its IR and what is generated, and write nothing."`
	List bool   `help:"List the kernels, and write nothing."`
}

func main() {
	var c cli
	parser := kong.Must(&c, kong.Name("swizzlegen"), kong.Description("Write the generated kernels."))
	if _, err := parser.Parse(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "swizzlegen:", err)
		os.Exit(2)
	}
	if err := c.run(); err != nil {
		fmt.Fprintln(os.Stderr, "swizzlegen:", err)
		os.Exit(1)
	}
}

func (c *cli) run() error {
	list, targets := ops.All(), gen.Targets()
	if c.List || c.Dump != "" {
		units, err := gen.Units(list, targets)
		if err != nil {
			return err
		}
		if c.Dump != "" {
			text, err := gen.Dump(units, c.Dump)
			fmt.Print(text)
			return err
		}
		for _, u := range units {
			n := u.Name()
			fmt.Printf("%s/%s/%s\n", n.Op, n.Config, n.Arch)
		}
		return nil
	}
	s, err := gen.Generate(list, targets)
	if err != nil {
		return err
	}
	if err := s.Write(c.Out); err != nil {
		return err
	}
	for _, r := range s.Rejected {
		fmt.Fprintf(os.Stderr, "rejected %s/%s/%s: %s: %s\n", r.Op, r.Config, r.Arch, r.Line, r.Message)
	}
	fmt.Fprintf(os.Stderr, "%d kernels in %d files, %d configs rejected\n", s.Kernels, len(s.Files), len(s.Rejected))
	return nil
}
