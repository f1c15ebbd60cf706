package sim

import "maps"

// opcodes is the whole instruction set. Forms that differ in operands and width share an entry.
var opcodes = func() map[string]*opcode {
	all := map[string]*opcode{}
	for _, list := range []map[string]*opcode{
		general(), branches(), integer(), logic(), shifts(), multiplies(), compares(), converts(), floats32(), moves(), broadcasts(),
		inserts(), permutes(), masks(), gathers(),
	} {
		maps.Copy(all, list)
	}
	return all
}()

func lookup(name string) (*opcode, bool) {
	op, ok := opcodes[name]
	return op, ok
}

// always marks an opcode that exists in EVEX encoding only.
func always(*instruction) bool { return true }

// sameSources reports whether the last two sources are one register.
func sameSources(in *instruction) bool {
	return len(in.src) == 2 && in.src[0].kind != memArg && in.src[0] == in.src[1]
}

// each returns a table in which all names have the same opcode.
func each(op *opcode, names ...string) map[string]*opcode {
	t := map[string]*opcode{}
	for _, n := range names {
		t[n] = op
	}
	return t
}

// join returns the union of tables.
func join(tables ...map[string]*opcode) map[string]*opcode {
	all := map[string]*opcode{}
	for _, t := range tables {
		maps.Copy(all, t)
	}
	return all
}
