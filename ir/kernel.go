package ir

import "slices"

// Kernel is one op under one schedule and config.
type Kernel struct {
	Name   string
	Lanes  int // L: 8, 16 or 32
	Groups int // G: lane groups per block
	Grid   []Dim
	Params []*Param
	Shared []*Array
	Regs   []*Reg
	Body   []Stmt

	values int // ids given out
}

// Dim is one axis of the grid: Extent elements in steps of Tile; ceil(Extent/Tile) tiles. The first axis runs fastest.
type Dim struct {
	Extent *Param // an Index parameter
	Tile   int
}

// Access tells what a kernel does with a buffer.
type Access uint8

const (
	In Access = iota
	Out
	InOut
)

func (a Access) String() string { return [...]string{"in", "out", "inout"}[a] }

// ParamKind separates the three kinds of argument slots.
type ParamKind uint8

const (
	Buffer  ParamKind = iota // memory: elements of Type
	Integer                  // an Index, the same for the whole grid
	Float                    // an F32, the same for the whole grid
)

// Param is a kernel parameter. Buffers are readable up to the next multiple of 64 bytes; stores are exact.
type Param struct {
	Name   string
	Kind   ParamKind
	Type   Type   // element type of a buffer
	Access Access // of a buffer
	Slot   int    // its number among parameters of its kind
}

// Array is a shared array of the block; on a CPU it lies in the worker's scratch. It starts undefined.
type Array struct {
	Name   string
	Type   Type
	Len    int // elements
	Offset int // byte offset from the start of shared memory, 64-byte aligned
}

// Bytes returns the size of the array in memory.
func (a *Array) Bytes() int { return a.Len * a.Type.Bytes() }

// Reg is a register tile: Len elements a lane (or uniform ones). Indices must be constant after unrolling.
type Reg struct {
	Name string
	Type Type
	Span Span
	Len  int
}

// Memory is a buffer or a shared array seen as elements of one type.
type Memory struct {
	Param *Param // one of Param and Array is set
	Array *Array
	Type  Type
}

// As returns the same memory as elements of type t; indices count those.
func (m Memory) As(t Type) Memory { m.Type = t; return m }

// Name returns the name of the buffer or the array.
func (m Memory) Name() string {
	if m.Param != nil {
		return m.Param.Name
	}
	return m.Array.Name
}

// Stmt is a statement: *Instr, *For or *If.
type Stmt interface{ pos() Pos }

// Instr is an instruction: one row of the op table applied to values.
type Instr struct {
	Op      Op
	Args    []*Value // by the op table; optional ones may be nil
	Results []*Value
	Imm     int64     // constant bits, shuffle mask, width in words, wait count
	Table   *[16]byte // of Lookup16
	Mem     Memory    // of loads, stores, prefetches and copies
	Mem2    Memory    // source of AsyncCopy
	Reg     *Reg      // of Get and Set
	Atom    *Atom     // of MMA
	Pos     Pos
}

// For runs Body with Var = Lo, Lo+Step, … below Hi. An unrolled loop has constant bounds and vanishes in lowering.
type For struct {
	Var    *Value
	Lo, Hi *Value
	Step   int
	Unroll bool
	Body   []Stmt
	Pos    Pos
}

// If runs Then where Cond, a uniform Bool, holds, else Else.
type If struct {
	Cond       *Value
	Then, Else []Stmt
	Pos        Pos
}

func (i *Instr) pos() Pos { return i.Pos }
func (f *For) pos() Pos   { return f.Pos }
func (i *If) pos() Pos    { return i.Pos }

// Value is what an instruction, a loop or the kernel's entry defines. It is immutable.
type Value struct {
	ID   int
	Type Type
	Span Span
	Def  *Instr // nil for loop variables
	b    *Builder
}

// Const returns the bits of a constant and whether v is one.
func (v *Value) Const() (int64, bool) {
	if v.Def != nil && v.Def.Op == OpConst {
		return v.Def.Imm, true
	}
	return 0, false
}

// NewValue makes a value of the kernel; passes use it, schedules have the builder.
func (k *Kernel) NewValue(t Type, s Span) *Value {
	k.values++
	return &Value{ID: k.values, Type: t, Span: s}
}

// named reports whether a parameter or a shared array has that name.
func (k *Kernel) named(name string) bool {
	return slices.ContainsFunc(k.Params, func(p *Param) bool { return p.Name == name }) ||
		slices.ContainsFunc(k.Shared, func(a *Array) bool { return a.Name == name })
}

// reg returns the register tile of that name, nil if there is none.
func (k *Kernel) reg(name string) *Reg {
	if n := slices.IndexFunc(k.Regs, func(r *Reg) bool { return r.Name == name }); n >= 0 {
		return k.Regs[n]
	}
	return nil
}

// Values returns an upper bound of the values' ids.
func (k *Kernel) Values() int { return k.values + 1 }

// SharedBytes returns the shared memory that one block needs.
func (k *Kernel) SharedBytes() int {
	n := 0
	for _, a := range k.Shared {
		n = max(n, a.Offset+a.Bytes())
	}
	return n
}

// Walk calls f for every statement of the block, a loop or branch before its body.
func Walk(body []Stmt, f func(Stmt)) {
	for _, s := range body {
		f(s)
		switch s := s.(type) {
		case *For:
			Walk(s.Body, f)
		case *If:
			Walk(s.Then, f)
			Walk(s.Else, f)
		}
	}
}
