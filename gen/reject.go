package gen

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

func rejection(name kernel.Name, e *ir.Error) kernel.Rejection {
	r := kernel.Rejection{Op: name.Op, Config: name.Config, Arch: name.Arch, Message: e.Msg}
	if e.Pos.File != "" {
		r.Line = e.Pos.String()
	}
	if e.Stmt != "" {
		r.Message += " in " + e.Stmt
	}
	return r
}

// nearest returns the config of the op and architecture that is most like one that can't be had, "" if there is none: each
// parameter counts by its ratio to the wanted one.
func nearest(wanted kernel.Name, units []Unit) string {
	best, least := "", math.Inf(1)
	for _, u := range units {
		n := u.Name()
		if n.Op != wanted.Op || n.Arch != wanted.Arch || n.Config == wanted.Config {
			continue
		}
		if d := distance(wanted.Config, n.Config); d < least {
			best, least = n.Config, d
		}
	}
	return best
}

var parameter = regexp.MustCompile(`([a-z]+)([0-9]+)`)

// distance is the sum of the parameters' ratios in powers of two; one that a config doesn't have counts as 0, and each number
// as one more, so that 0 has a ratio too.
func distance(a, b string) (sum float64) {
	numbers := [2]map[string]float64{}
	for n, config := range []string{a, b} {
		numbers[n] = map[string]float64{}
		for _, m := range parameter.FindAllStringSubmatch(config, -1) {
			v, _ := strconv.ParseFloat(m[2], 64) // digits
			numbers[n][m[1]] = v
		}
	}
	for n, own := range numbers {
		for name, v := range own {
			w, both := numbers[1-n][name]
			if n == 0 || !both {
				sum += math.Abs(math.Log2((v + 1) / (w + 1)))
			}
		}
	}
	return sum
}

// Dump returns the stages of one kernel, named op/config/arch: IR as built and the printed file. Where there is no such
// kernel, the error says why and which config is the nearest that there is.
func Dump(units []Unit, name string) (string, error) {
	wanted, ok := parseDumped(name)
	at := slices.IndexFunc(units, func(u Unit) bool { return u.Name() == wanted })
	if at < 0 {
		if archs := archesOf(units, wanted.Op); ok && len(archs) > 0 && !slices.Contains(archs, wanted.Arch) {
			return "", fmt.Errorf("op %s, config %s, arch %s: there is no such architecture; the op has %s", wanted.Op, wanted.Config, wanted.Arch, strings.Join(archs, ", "))
		}
		if near := nearest(wanted, units); ok && near != "" {
			return "", fmt.Errorf("op %s, config %s, arch %s: there is no such config; the nearest is %s", wanted.Op, wanted.Config, wanted.Arch, near)
		}
		return "", fmt.Errorf("no kernel %q; it is op/config/arch, and --list shows all%s", name, ofOp(units, wanted.Op))
	}
	u := units[at]
	built, err := u.Op.Kernel(u.Variant, u.Target.Caps)
	if err != nil {
		return "", err
	}
	k, err := u.Make()
	if err != nil {
		var others []Unit
		for _, o := range units {
			if o.Op == u.Op && o.Target == u.Target && o.Variant.Config != u.Variant.Config {
				if _, err := o.Make(); err == nil {
					others = append(others, o)
				}
			}
		}
		if near := nearest(wanted, others); near != "" {
			err = fmt.Errorf("%w; the nearest legal config is %s", err, near)
		}
		return built.String(), err
	}
	text := string(k.Text)
	if !utf8.ValidString(text) || strings.ContainsRune(text, 0) {
		text = fmt.Sprintf("%s: %d bytes that are no text\n", k.File, len(text))
	}
	return built.String() + "\n" + text, nil
}

// parseDumped parses op/config/arch.
func parseDumped(s string) (n kernel.Name, ok bool) {
	p := strings.Split(s, "/")
	n.Op = p[0]
	if len(p) != 3 {
		return n, false
	}
	return kernel.Name{Op: p[0], Config: p[1], Arch: p[2]}, true
}

// archesOf returns the architectures that an op has configs for.
func archesOf(units []Unit, op string) (archs []string) {
	for _, u := range units {
		if arch := u.Name().Arch; u.Op.Name == op && !slices.Contains(archs, arch) {
			archs = append(archs, arch)
		}
	}
	return archs
}

// ofOp lists the kernels of an op.
func ofOp(units []Unit, op string) string {
	var s strings.Builder
	for _, u := range units {
		if u.Op.Name == op {
			fmt.Fprintf(&s, "\n  %s/%s/%s", u.Name().Op, u.Name().Config, u.Name().Arch)
		}
	}
	return s.String()
}
