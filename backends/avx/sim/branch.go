package sim

// Conditions, jumps and what ends a function.

// A condition is read from flags.
type condition struct {
	reads flags
	holds func(f flags) bool
}

// conditions are keyed by the suffix that CMOVcc, SETcc and Jcc share in the Go assembler.
var conditions = map[string]condition{
	"EQ": {zero, func(f flags) bool { return f&zero != 0 }},
	"NE": {zero, func(f flags) bool { return f&zero == 0 }},
	"CS": {carry, func(f flags) bool { return f&carry != 0 }},
	"CC": {carry, func(f flags) bool { return f&carry == 0 }},
	"HI": {carry | zero, func(f flags) bool { return f&(carry|zero) == 0 }},
	"LS": {carry | zero, func(f flags) bool { return f&(carry|zero) != 0 }},
	"LT": {sign | overflow, less},
	"GE": {sign | overflow, func(f flags) bool { return !less(f) }},
	"LE": {sign | overflow | zero, func(f flags) bool { return less(f) || f&zero != 0 }},
	"GT": {sign | overflow | zero, func(f flags) bool { return !less(f) && f&zero == 0 }},
	"MI": {sign, func(f flags) bool { return f&sign != 0 }},
	"PL": {sign, func(f flags) bool { return f&sign == 0 }},
	"OS": {overflow, func(f flags) bool { return f&overflow != 0 }},
	"OC": {overflow, func(f flags) bool { return f&overflow == 0 }},
	"PS": {parity, func(f flags) bool { return f&parity != 0 }},
	"PC": {parity, func(f flags) bool { return f&parity == 0 }},
}

func less(f flags) bool { return (f&sign != 0) != (f&overflow != 0) }

// jumpNames maps every name of a conditional jump to its condition.
var jumpNames = map[string]string{
	"JEQ": "EQ", "JE": "EQ", "JZ": "EQ", "JNE": "NE", "JNZ": "NE",
	"JCS": "CS", "JC": "CS", "JB": "CS", "JLO": "CS", "JNAE": "CS", "JCC": "CC", "JNC": "CC", "JAE": "CC", "JHS": "CC", "JNB": "CC",
	"JHI": "HI", "JA": "HI", "JNBE": "HI", "JLS": "LS", "JBE": "LS", "JNA": "LS",
	"JLT": "LT", "JL": "LT", "JNGE": "LT", "JGE": "GE", "JNL": "GE", "JLE": "LE", "JNG": "LE", "JGT": "GT", "JG": "GT", "JNLE": "GT",
	"JMI": "MI", "JS": "MI", "JPL": "PL", "JNS": "PL", "JOS": "OS", "JO": "OS", "JOC": "OC", "JNO": "OC",
	"JPS": "PS", "JP": "PS", "JPE": "PS", "JPC": "PC", "JNP": "PC", "JPO": "PC",
}

func branches() map[string]*opcode {
	t := map[string]*opcode{
		"JMP":        {run: func(m *Machine, in *instruction) { m.pc = in.target }},
		"RET":        {run: ret},
		"VZEROUPPER": {run: zeroUpper},
	}
	for name, cond := range jumpNames {
		c := conditions[cond]
		t[name] = &opcode{run: func(m *Machine, in *instruction) {
			if m.test(c) {
				m.pc = in.target
			}
		}}
	}
	for name, c := range conditions {
		t["SET"+name] = &opcode{run: func(m *Machine, in *instruction) {
			x := uint64(0)
			if m.test(c) {
				x = 1
			}
			m.assign(&in.dst, 1, x)
		}}
		for _, letter := range []string{"W", "L", "Q"} {
			n := sizes[letter]
			// The source is read in any case, and a 32-bit destination always loses its upper half.
			t["CMOV"+letter+name] = &opcode{run: func(m *Machine, in *instruction) {
				x, old := m.value(&in.src[0], n), m.value(&in.dst, n)
				if !m.test(c) {
					x = old
				}
				m.assign(&in.dst, n, x)
			}}
		}
	}
	return t
}

// test evaluates a condition.
func (m *Machine) test(c condition) bool {
	if m.known&c.reads != c.reads {
		m.fail("reads a flag that is not defined")
	}
	return c.holds(m.flags)
}

func ret(m *Machine, in *instruction) {
	if m.dirty {
		m.fail("returns without VZEROUPPER: later SSE code would be slow")
	}
	m.done = true
}

// zeroUpper clears the registers 0 … 15 above their low 128 bits.
func zeroUpper(m *Machine, in *instruction) {
	for i := range 16 {
		clear(m.vec[i][16:])
	}
	m.dirty = false
}
