package spirv

import (
	"fmt"

	"github.com/swizzle-rt/swizzle/ir"
)

// printer writes a kernel. Floats are floats and Bools bools; every other value is an unsigned word, signed ones and indices
// too: SPIR-V's instructions, not its types, say how to take the sign.
type printer struct {
	*module
	k     *ir.Kernel
	model model
	f     *function // the entry point
	err   error

	ids     map[*ir.Value]id
	seen    map[place]map[ir.Type]bool // element types that memory is seen as
	views   map[view]id                // variables of memory
	pushVar id                         // 0 if unused
	tiles   map[element]id             // variables of register tiles
	tileID  []id                       // of the grid's axes
	cross   crossLane
}

// element is one element of a register tile.
type element struct {
	reg *ir.Reg
	at  int64
}

func newPrinter(k *ir.Kernel, m model) *printer {
	p := &printer{module: newModule(), k: k, model: m, ids: map[*ir.Value]id{}, views: map[view]id{}, tiles: map[element]id{}}
	p.seen = seen(k)
	return p
}

func (p *printer) fail(i *ir.Instr, format string, args ...any) {
	if p.err == nil {
		p.err = &ir.Error{Kernel: p.k.Name, Pos: i.Pos, Stmt: ir.Format(p.k, i), Msg: fmt.Sprintf(format, args...)}
	}
}

func (p *printer) threads() int { return p.k.Lanes * p.k.Groups }

// print returns the module.
func (p *printer) print(o Options) []byte {
	p.f, _ = p.newFunction(p.void)
	f := p.f
	body, end := p.newID(), p.newID()
	inside := p.locate()
	f.label(body)
	p.body(p.k.Body)
	f.do(opBranch, end)
	f.do(opLabel, end)
	f.do(opReturn)
	// Now the entry is complete: workgroups without a tile leave from there.
	f.entry = instruction(f.entry, opSelectionMerge, 0, 0, end, 0)
	f.entry = instruction(f.entry, opBranchConditional, 0, 0, inside, body, end)
	f.end()
	return p.binary(f.self, o.Symbol, o.Header, p.threads())
}

// locate computes the tile's coordinates and returns whether the workgroup has a tile.
func (p *printer) locate() id {
	f := p.f
	part := func(number uint32, axis uint32) id {
		v := p.input(number, p.declare(opTypeVector, 0, p.word, 3))
		return f.once(opLoad, p.word, f.once(opAccessChain, p.pointerTo(inInput, p.word), v, p.constant(axis)))
	}
	tile := f.once(opIAdd, p.word, part(workgroupID, 0), f.once(opIMul, p.word, part(workgroupID, 1), part(numWorkgroups, 0)))
	last := len(p.k.Grid) - 1
	if last < 0 {
		return f.once(opIEqual, p.boolean, tile, p.constant(0))
	}
	for d, axis := range p.k.Grid {
		count := p.argument(axis.Extent.Slot)
		if axis.Tile > 1 {
			count = f.once(opUDiv, p.word, f.once(opIAdd, p.word, count, p.constant(uint32(axis.Tile-1))), p.constant(uint32(axis.Tile)))
		}
		if d == last {
			p.tileID = append(p.tileID, tile)
			return f.once(opULessThan, p.boolean, tile, count)
		}
		p.tileID = append(p.tileID, f.once(opUMod, p.word, tile, count))
		tile = f.once(opUDiv, p.word, tile, count)
	}
	return 0
}

// argument returns word n of the push constants.
func (p *printer) argument(n int) id {
	if p.pushVar == 0 {
		count := p.constant(uint32(p.count(ir.Integer) + p.count(ir.Float) + 1))
		array := p.newID() // of its own: arrays in shared memory have no stride
		p.globals = instruction(p.globals, opTypeArray, 0, array, p.word, count)
		p.stride(array, 4)
		p.pushVar = p.variable(inPush, p.structOf(array))
	}
	at := p.f.once(opAccessChain, p.pointerTo(inPush, p.word), p.pushVar, p.constant(0), p.constant(uint32(n)))
	return p.f.once(opLoad, p.word, at)
}

// count returns the number of parameters of a kind.
func (p *printer) count(kind ir.ParamKind) int {
	n := 0
	for _, q := range p.k.Params {
		if q.Kind == kind {
			n++
		}
	}
	return n
}

func (p *printer) floatArgument(n int) id {
	return p.f.once(opBitcast, p.float, p.argument(p.count(ir.Integer)+n))
}

// zero returns +0, or −0, from the last push constant.
func (p *printer) zero(negative bool) id {
	n := p.count(ir.Integer) + p.count(ir.Float)
	if !negative {
		return p.floatArgument(p.count(ir.Float))
	}
	return p.f.once(opBitcast, p.float, p.f.once(opBitwiseXor, p.word, p.argument(n), p.constant(1<<31)))
}

// ---- statements

func (p *printer) body(body []ir.Stmt) {
	for _, s := range body {
		switch s := s.(type) {
		case *ir.Instr:
			p.instr(s)
		case *ir.For:
			p.loop(s)
		case *ir.If:
			p.branch(s)
		}
	}
}

func (p *printer) loop(l *ir.For) {
	f := p.f
	lo, hi := p.value(l.Lo), p.value(l.Hi)
	before, header, body, next, after := f.open, p.newID(), p.newID(), p.newID(), p.newID()
	step := p.newID()
	f.do(opBranch, header)
	f.label(header)
	v := f.result(opPhi, p.word, lo, before, step, next)
	p.ids[l.Var] = v
	more := f.result(opSLessThan, p.boolean, v, hi)
	f.do(opLoopMerge, after, next, 0)
	f.do(opBranchConditional, more, body, after)
	f.label(body)
	f.scope(func() { p.body(l.Body) })
	f.do(opBranch, next)
	f.label(next)
	f.body = instruction(f.body, opIAdd, p.word, step, v, p.constant(uint32(l.Step)))
	f.do(opBranch, header)
	f.label(after)
}

func (p *printer) branch(s *ir.If) {
	f := p.f
	cond := p.value(s.Cond)
	then, after := p.newID(), p.newID()
	other := after
	if len(s.Else) > 0 {
		other = p.newID()
	}
	f.do(opSelectionMerge, after, 0)
	f.do(opBranchConditional, cond, then, other)
	f.label(then)
	f.scope(func() { p.body(s.Then) })
	f.do(opBranch, after)
	if other != after {
		f.label(other)
		f.scope(func() { p.body(s.Else) })
		f.do(opBranch, after)
	}
	f.label(after)
}

func (p *printer) instr(i *ir.Instr) {
	switch i.Op {
	case ir.OpLoad:
		p.load(i)
	case ir.OpStore:
		p.store(i)
	case ir.OpAsyncCopy:
		p.copy16(i)
	case ir.OpSet:
		p.f.do(opStore, p.tile(i), p.value(i.Args[1]))
	case ir.OpGet:
		p.ids[i.Results[0]] = p.f.result(opLoad, p.typeOf(i.Reg.Type), p.tile(i))
	case ir.OpBarrier:
		p.f.barrier()
	case ir.OpPrefetch, ir.OpAsyncCommit, ir.OpAsyncWait: // hints; plain copies have landed
	default:
		v := i.Results[0]
		if crosses(i.Op) {
			p.ids[v] = p.exchange(i)
		} else if !lazy(v) {
			p.ids[v] = p.compute(i)
		}
	}
}

// tile returns the variable of an element of a register tile.
func (p *printer) tile(i *ir.Instr) id {
	at, ok := i.Args[0].Const()
	if !ok || at < 0 || at >= int64(i.Reg.Len) {
		p.fail(i, "element %d of the register tile %s, which has %d", at, i.Reg.Name, i.Reg.Len)
	}
	e := element{i.Reg, at}
	if p.tiles[e] == 0 {
		p.tiles[e] = p.f.local(p.typeOf(i.Reg.Type))
	}
	return p.tiles[e]
}

func (p *printer) typeOf(t ir.Type) id {
	switch t {
	case ir.F32:
		return p.float
	case ir.Bool:
		return p.boolean
	}
	return p.word
}

// barrier waits for the workgroup; shared memory written before is seen after.
func (f *function) barrier() {
	f.do(opControlBarrier, f.m.constant(scopeWorkgroup), f.m.constant(scopeWorkgroup), f.m.constant(workgroupMemory))
}
