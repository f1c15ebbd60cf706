package shim

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// signature is the head of a kernel as its text has it.
type signature struct {
	symbol string
	params []param
}

// param is a parameter of a kernel function: type, name, and the attribute that binds it, with an index (−1 if it has none).
type param struct {
	kind, name, attribute string
	index                 int
}

var (
	head      = regexp.MustCompile(`\bkernel void (\w+)\(\n((?:.*\]\].*\n)*.*\]\])\)\{\n`)
	parameter = regexp.MustCompile(`^([\w \*&]+?)\b(\w+)\[\[(\w+)(?:\((\d+)\))?\]\],?(?: //.*)?$`)
)

// parse reads the head of the kernel in a file, which has one parameter a line.
func parse(text []byte) (*signature, error) {
	found := head.FindAllSubmatch(text, -1)
	if len(found) != 1 {
		return nil, fmt.Errorf("%d kernels in a file, want 1", len(found))
	}
	s := &signature{symbol: string(found[0][1])}
	for _, line := range strings.Split(string(found[0][2]), "\n") {
		m := parameter.FindStringSubmatch(line)
		if m == nil {
			return nil, fmt.Errorf("kernel %s: parameter %q has no attribute", s.symbol, line)
		}
		p := param{kind: strings.TrimSpace(m[1]), name: m[2], attribute: m[3], index: -1}
		if m[4] != "" {
			p.index, _ = strconv.Atoi(m[4]) // digits; one too large is no index
		}
		s.params = append(s.params, p)
	}
	return s, nil
}

// argsIndex is the buffer index of the parameters in the constant address space, −1 if there are none.
func (s *signature) argsIndex() int {
	for _, p := range s.params {
		if strings.HasPrefix(p.kind, "constant ") {
			return p.index
		}
	}
	return -1
}

// launcher writes a function that calls the kernel of namespace kN for one thread: attributes decide what it passes.
func (s *signature) launcher(text *strings.Builder, n int) error {
	var args []string
	for _, p := range s.params {
		plain := strings.NewReplacer("device ", "", "threadgroup ", "", "constant ", "const ").Replace(p.kind)
		switch p.attribute {
		case "buffer":
			if p.index > maxBuffer {
				return fmt.Errorf("kernel %s: parameter %s has buffer index %d, the last is %d", s.symbol, p.name, p.index, maxBuffer)
			}
			if by, ok := strings.CutSuffix(plain, "&"); ok {
				args = append(args, fmt.Sprintf("*(k%d::%s *)l.buffer[%d]", n, strings.TrimPrefix(by, "const "), p.index))
			} else {
				args = append(args, fmt.Sprintf("(%s)l.buffer[%d]", plain, p.index))
			}
		case "threadgroup":
			args = append(args, fmt.Sprintf("(%s)l.shared", plain))
		case "threadgroup_position_in_grid":
			args = append(args, "uint3{l.x, l.y, 0}")
		case "threadgroups_per_grid":
			args = append(args, "uint3{l.width, l.height, 1}")
		case "thread_index_in_simdgroup":
			args = append(args, "shim::lane()")
		case "simdgroup_index_in_threadgroup":
			args = append(args, "shim::simdgroup()")
		default:
			return fmt.Errorf("kernel %s: parameter %s has the attribute %s, which the shim doesn't know", s.symbol, p.name, p.attribute)
		}
	}
	fmt.Fprintf(text, "static void launch%d(const shim::Launch &l) { k%d::%s(%s); }\n", n, n, s.symbol, strings.Join(args, ", "))
	return nil
}

// maxBuffer is Metal's last buffer index.
const maxBuffer = 30
