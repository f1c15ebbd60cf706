package kernel

import (
	"fmt"
	"strings"
)

// Name is a kernel's name: op, config and architecture. As text it is op__config__arch, which is also the base of its file
// name. The config is a run of parameters, each lower-case letters and a number ("m12k2"); it is "any" when an op has one
// config only.
type Name struct {
	Op, Config, Arch string
}

func (n Name) String() string { return n.Op + "__" + n.Config + "__" + n.Arch }

// Entry returns the name of the entry point in a GPU's module, which may serve several architectures.
func (n Name) Entry() string { return n.Op + "__" + n.Config }

// ParseName parses the text form.
func ParseName(s string) (Name, error) {
	p := strings.Split(s, "__")
	if len(p) != 3 || p[0] == "" || p[2] == "" {
		return Name{}, fmt.Errorf("kernel name %q is not op__config__arch", s)
	}
	n := Name{p[0], p[1], p[2]}
	if _, err := n.params(); err != nil {
		return Name{}, fmt.Errorf("kernel name %q: %w", s, err)
	}
	return n, nil
}

// Param returns the config's number of that name.
func (n Name) Param(name string) (int, bool) {
	p, _ := n.params()
	v, ok := p[name]
	return v, ok
}

func (n Name) params() (map[string]int, error) {
	if n.Config == "any" {
		return nil, nil
	}
	out := map[string]int{}
	for s := n.Config; s != ""; {
		i := 0
		for i < len(s) && s[i] >= 'a' && s[i] <= 'z' {
			i++
		}
		j := i
		v := 0
		for j < len(s) && s[j] >= '0' && s[j] <= '9' && j-i < 7 {
			v = 10*v + int(s[j]-'0')
			j++
		}
		if i == 0 || j == i {
			return nil, fmt.Errorf("config %q is not a run of letters and numbers", n.Config)
		}
		if _, twice := out[s[:i]]; twice {
			return nil, fmt.Errorf("config %q has %s twice", n.Config, s[:i])
		}
		out[s[:i]] = v
		s = s[j:]
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("empty config; an op with one config calls it any")
	}
	return out, nil
}
