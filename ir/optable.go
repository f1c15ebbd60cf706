package ir

import (
	"math"
	"math/bits"
)

// Op names an instruction.
type Op uint8

// Info is one row of the op table.
//
// Sig has a letter per argument, a colon and a letter per result:
//
//	f  F32         i  I32           u  U32      s  I8x4     q  U8x4
//	n  I32 or U32, the same for all n   w  any 32-bit type, the same for all w
//	b  Bool        x  Index         ?  before an optional argument
//
// Lane is the meaning of a pure lane-wise op on the bits of 32-bit values (Bool is 0 or 1); Index that of an op on Index
// values. Ops with neither are defined by the interpreter: memory, cross-lane, registers, synchronisation.
type Info struct {
	Name  string
	Sig   string
	Lane  func(a, b, c uint32) uint32
	Index func(a, b int64) int64
	Pure  bool // no effect, no dependence on memory or registers: may be shared, moved or dropped
	Doc   string
}

const (
	opInvalid Op = iota

	OpConst
	OpLane
	OpGroup
	OpTile
	OpIntParam
	OpFloatParam

	OpAddX
	OpSubX
	OpMulX
	OpDivX
	OpModX
	OpMinX
	OpMaxX
	OpAndX
	OpXorX
	OpShlX
	OpShrX
	OpLtX
	OpLeX
	OpEqX
	OpToIndex
	OpFromIndex

	OpAddF
	OpSubF
	OpMulF
	OpFMAExact
	OpLtF
	OpLeF
	OpEqF

	OpAddI
	OpSubI
	OpMulI
	OpAnd
	OpOr
	OpXor
	OpShl
	OpShrU
	OpShrI
	OpMinI
	OpMaxI
	OpMaxU
	OpLtI
	OpLtU
	OpEqI

	OpAndB
	OpOrB
	OpNotB
	OpSelect
	OpCast
	OpToF32
	OpDot4US
	OpDot4SS
	OpLookup16

	OpPackLanes4
	OpShuffleXor
	OpReadLane
	OpFoldAddF
	OpFoldAddI
	OpFoldMaxU
	OpFoldMaxF

	OpGet
	OpSet
	OpLoad
	OpStore
	OpPrefetch
	OpBarrier
	OpAsyncCopy
	OpAsyncCommit
	OpAsyncWait
	OpLdMatrix
	OpMMA
	OpFragCoord

	numOps
)

func f32(x uint32) float32    { return math.Float32frombits(x) }
func bitsOf(x float32) uint32 { return math.Float32bits(x) }

func flag(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}

func dot4us(u, s, acc uint32) uint32 {
	for i := 0; i < 32; i += 8 {
		acc += uint32(int32(uint8(u>>i)) * int32(int8(s>>i)))
	}
	return acc
}

func dot4ss(a, b, acc uint32) uint32 {
	for i := 0; i < 32; i += 8 {
		acc += uint32(int32(int8(a>>i)) * int32(int8(b>>i)))
	}
	return acc
}

var ops = [numOps]Info{
	OpConst:      {Name: "const", Sig: ":", Pure: true, Doc: "a constant given by its bits"},
	OpLane:       {Name: "lane", Sig: ":x", Pure: true, Doc: "number of the lane in its group, 0 … L−1"},
	OpGroup:      {Name: "group", Sig: ":x", Pure: true, Doc: "number of the lane group in its block, 0 … G−1"},
	OpTile:       {Name: "tile", Sig: ":x", Pure: true, Doc: "tile coordinate along the grid axis Imm"},
	OpIntParam:   {Name: "arg.index", Sig: ":x", Pure: true, Doc: "integer parameter of slot Imm"},
	OpFloatParam: {Name: "arg.f32", Sig: ":f", Pure: true, Doc: "float parameter of slot Imm"},

	OpAddX:      {Name: "add.index", Sig: "xx:x", Pure: true, Index: func(a, b int64) int64 { return a + b }, Doc: "a + b"},
	OpSubX:      {Name: "sub.index", Sig: "xx:x", Pure: true, Index: func(a, b int64) int64 { return a - b }, Doc: "a − b"},
	OpMulX:      {Name: "mul.index", Sig: "xx:x", Pure: true, Index: func(a, b int64) int64 { return a * b }, Doc: "a · b"},
	OpDivX:      {Name: "div.index", Sig: "xx:x", Pure: true, Index: func(a, b int64) int64 { return a / b }, Doc: "a / b, both non-negative, b > 0"},
	OpModX:      {Name: "mod.index", Sig: "xx:x", Pure: true, Index: func(a, b int64) int64 { return a % b }, Doc: "a mod b, both non-negative, b > 0"},
	OpMinX:      {Name: "min.index", Sig: "xx:x", Pure: true, Index: func(a, b int64) int64 { return min(a, b) }, Doc: "the smaller"},
	OpMaxX:      {Name: "max.index", Sig: "xx:x", Pure: true, Index: func(a, b int64) int64 { return max(a, b) }, Doc: "the larger"},
	OpAndX:      {Name: "and.index", Sig: "xx:x", Pure: true, Index: func(a, b int64) int64 { return a & b }, Doc: "bitwise and"},
	OpXorX:      {Name: "xor.index", Sig: "xx:x", Pure: true, Index: func(a, b int64) int64 { return a ^ b }, Doc: "bitwise exclusive or"},
	OpShlX:      {Name: "shl.index", Sig: "xx:x", Pure: true, Index: func(a, b int64) int64 { return a << uint(b&63) }, Doc: "a shifted left by a constant b"},
	OpShrX:      {Name: "shr.index", Sig: "xx:x", Pure: true, Index: func(a, b int64) int64 { return a >> uint(b&63) }, Doc: "a ≥ 0 shifted right by a constant b"},
	OpLtX:       {Name: "lt.index", Sig: "xx:b", Pure: true, Index: func(a, b int64) int64 { return int64(flag(a < b)) }, Doc: "a < b"},
	OpLeX:       {Name: "le.index", Sig: "xx:b", Pure: true, Index: func(a, b int64) int64 { return int64(flag(a <= b)) }, Doc: "a ≤ b"},
	OpEqX:       {Name: "eq.index", Sig: "xx:b", Pure: true, Index: func(a, b int64) int64 { return int64(flag(a == b)) }, Doc: "a = b"},
	OpToIndex:   {Name: "index.i32", Sig: "i:x", Pure: true, Doc: "sign-extended"},
	OpFromIndex: {Name: "i32.index", Sig: "x:i", Pure: true, Doc: "the low 32 bits"},

	OpAddF: {Name: "add.f32", Sig: "ff:f", Pure: true, Lane: func(a, b, _ uint32) uint32 { return bitsOf(f32(a) + f32(b)) }, Doc: "a + b, rounded to nearest even"},
	OpSubF: {Name: "sub.f32", Sig: "ff:f", Pure: true, Lane: func(a, b, _ uint32) uint32 { return bitsOf(f32(a) - f32(b)) }, Doc: "a − b, rounded to nearest even"},
	OpMulF: {Name: "mul.f32", Sig: "ff:f", Pure: true, Lane: func(a, b, _ uint32) uint32 { return bitsOf(float32(f32(a) * f32(b))) }, Doc: "a · b, rounded to nearest even"},
	OpFMAExact: {Name: "fma.exact.f32", Sig: "fff:f", Pure: true, Lane: func(a, b, c uint32) uint32 { return bitsOf(float32(f32(a)*f32(b)) + f32(c)) },
		Doc: "a · b + c where a · b is exact, so that fused and unfused agree; the interpreter proves the exactness"},
	OpLtF: {Name: "lt.f32", Sig: "ff:b", Pure: true, Lane: func(a, b, _ uint32) uint32 { return flag(f32(a) < f32(b)) }, Doc: "a < b, false for NaN"},
	OpLeF: {Name: "le.f32", Sig: "ff:b", Pure: true, Lane: func(a, b, _ uint32) uint32 { return flag(f32(a) <= f32(b)) }, Doc: "a ≤ b, false for NaN"},
	OpEqF: {Name: "eq.f32", Sig: "ff:b", Pure: true, Lane: func(a, b, _ uint32) uint32 { return flag(f32(a) == f32(b)) }, Doc: "a = b, false for NaN"},

	OpAddI: {Name: "add.i32", Sig: "nn:n", Pure: true, Lane: func(a, b, _ uint32) uint32 { return a + b }, Doc: "a + b modulo 2³²"},
	OpSubI: {Name: "sub.i32", Sig: "nn:n", Pure: true, Lane: func(a, b, _ uint32) uint32 { return a - b }, Doc: "a − b modulo 2³²"},
	OpMulI: {Name: "mul.i32", Sig: "nn:n", Pure: true, Lane: func(a, b, _ uint32) uint32 { return a * b }, Doc: "a · b modulo 2³²"},
	OpAnd:  {Name: "and", Sig: "nn:n", Pure: true, Lane: func(a, b, _ uint32) uint32 { return a & b }, Doc: "bitwise and"},
	OpOr:   {Name: "or", Sig: "nn:n", Pure: true, Lane: func(a, b, _ uint32) uint32 { return a | b }, Doc: "bitwise or"},
	OpXor:  {Name: "xor", Sig: "nn:n", Pure: true, Lane: func(a, b, _ uint32) uint32 { return a ^ b }, Doc: "bitwise exclusive or"},
	OpShl:  {Name: "shl", Sig: "nn:n", Pure: true, Lane: func(a, b, _ uint32) uint32 { return shift(b, a<<(b&31)) }, Doc: "a shifted left by b; 0 where b ≥ 32"},
	OpShrU: {Name: "shr.u32", Sig: "nn:n", Pure: true, Lane: func(a, b, _ uint32) uint32 { return shift(b, a>>(b&31)) }, Doc: "a shifted right by b, filled with 0; 0 where b ≥ 32"},
	OpShrI: {Name: "shr.i32", Sig: "nn:n", Pure: true, Lane: func(a, b, _ uint32) uint32 { return uint32(int32(a) >> min(b, 31)) }, Doc: "a shifted right by b, filled with its sign"},
	OpMinI: {Name: "min.i32", Sig: "ii:i", Pure: true, Lane: func(a, b, _ uint32) uint32 { return uint32(min(int32(a), int32(b))) }, Doc: "the smaller, signed"},
	OpMaxI: {Name: "max.i32", Sig: "ii:i", Pure: true, Lane: func(a, b, _ uint32) uint32 { return uint32(max(int32(a), int32(b))) }, Doc: "the larger, signed"},
	OpMaxU: {Name: "max.u32", Sig: "uu:u", Pure: true, Lane: func(a, b, _ uint32) uint32 { return max(a, b) }, Doc: "the larger, unsigned"},
	OpLtI:  {Name: "lt.i32", Sig: "ii:b", Pure: true, Lane: func(a, b, _ uint32) uint32 { return flag(int32(a) < int32(b)) }, Doc: "a < b, signed"},
	OpLtU:  {Name: "lt.u32", Sig: "uu:b", Pure: true, Lane: func(a, b, _ uint32) uint32 { return flag(a < b) }, Doc: "a < b, unsigned"},
	OpEqI:  {Name: "eq.i32", Sig: "nn:b", Pure: true, Lane: func(a, b, _ uint32) uint32 { return flag(a == b) }, Doc: "a = b"},

	OpAndB:   {Name: "and.bool", Sig: "bb:b", Pure: true, Lane: func(a, b, _ uint32) uint32 { return a & b }, Doc: "both"},
	OpOrB:    {Name: "or.bool", Sig: "bb:b", Pure: true, Lane: func(a, b, _ uint32) uint32 { return a | b }, Doc: "either"},
	OpNotB:   {Name: "not.bool", Sig: "b:b", Pure: true, Lane: func(a, _, _ uint32) uint32 { return a ^ 1 }, Doc: "negation"},
	OpSelect: {Name: "select", Sig: "bww:w", Pure: true, Lane: func(a, b, c uint32) uint32 { return c ^ (b^c)&-a }, Doc: "b where a holds, else c"},
	OpCast:   {Name: "cast", Sig: "w:w", Pure: true, Lane: func(a, _, _ uint32) uint32 { return a }, Doc: "the same 32 bits as another type"},
	OpToF32:  {Name: "f32.i32", Sig: "i:f", Pure: true, Lane: func(a, _, _ uint32) uint32 { return bitsOf(float32(int32(a))) }, Doc: "the same number; |a| < 2²⁴, which the interpreter proves"},
	OpDot4US: {Name: "dot4.u8s8", Sig: "qsi:i", Pure: true, Lane: dot4us,
		Doc: "c + Σ aᵢ·bᵢ over four bytes, exact; Imm is an upper bound of every aᵢ, which the interpreter proves"},
	OpDot4SS:   {Name: "dot4.s8s8", Sig: "ssi:i", Pure: true, Lane: dot4ss, Doc: "c + Σ aᵢ·bᵢ over four bytes, exact; b is never −128, which the interpreter proves"},
	OpLookup16: {Name: "lookup16", Sig: "q:s", Pure: true, Doc: "each byte a of the word, 0 … 15, replaced by Table[a]"},

	OpPackLanes4: {Name: "pack.lanes4", Sig: "i:s", Pure: true, Doc: "in lane 4j the low bytes of lanes 4j … 4j+3, in lanes 4j+1 … 4j+3 the same word"},
	OpShuffleXor: {Name: "shuffle.xor", Sig: "w:w", Pure: true, Doc: "lane l gets the value of lane l xor Imm"},
	OpReadLane:   {Name: "read.lane", Sig: "w:w", Pure: true, Doc: "the value of lane Imm, uniform"},
	OpFoldAddF:   {Name: "fold.add.f32", Sig: "f:f", Pure: true, Doc: "sum over the lanes: strides L/2 … 1, lane l adds that of lane l + stride; uniform"},
	OpFoldAddI:   {Name: "fold.add.i32", Sig: "i:i", Pure: true, Doc: "sum over the lanes modulo 2³², uniform"},
	OpFoldMaxU:   {Name: "fold.max.u32", Sig: "u:u", Pure: true, Doc: "unsigned maximum over the lanes, uniform"},
	OpFoldMaxF:   {Name: "fold.max.f32", Sig: "f:f", Pure: true, Doc: "maximum over the lanes that are not NaN, −Inf if all are; uniform; of ±0 either"},

	OpGet:         {Name: "get", Sig: "x:w", Doc: "element of a register tile"},
	OpSet:         {Name: "set", Sig: "xw:", Doc: "assigns an element of a register tile"},
	OpLoad:        {Name: "load", Sig: "x?b:w", Doc: "Imm (1, 2 or 4) consecutive elements from the index on, one result each; +0 where the mask is false"},
	OpStore:       {Name: "store", Sig: "x?bw:", Doc: "stores Imm consecutive elements from the index on where the mask holds"},
	OpPrefetch:    {Name: "prefetch", Sig: "x:", Doc: "hint: the element will be loaded soon"},
	OpBarrier:     {Name: "barrier", Sig: ":", Doc: "all lanes of the block arrive; shared memory written before is seen after"},
	OpAsyncCopy:   {Name: "async.copy", Sig: "xx?b:", Doc: "copies 16 bytes from Mem2 (second index) to shared Mem (first index), zeros where the mask is false; lands at wait + barrier"},
	OpAsyncCommit: {Name: "async.commit", Sig: ":", Doc: "closes a group of copies"},
	OpAsyncWait:   {Name: "async.wait", Sig: ":", Doc: "waits until at most Imm groups are pending"},
	OpLdMatrix:    {Name: "ldmatrix", Sig: "x:w", Doc: "Imm (1, 2 or 4) matrices of 8 rows × 16 bytes from shared memory, one result each: lane l gives the row address of matrix l/8, row l mod 8 and receives bytes 4·(l mod 4) … of row l/4"},
	OpMMA:         {Name: "mma", Sig: "", Doc: "the atom's matrix product: registers of A, B and C in, of C out"},
	OpFragCoord:   {Name: "frag.coord", Sig: ":xx", Pure: true, Doc: "row and column of register Imm of the atom's C in this lane"},
}

func shift(by, shifted uint32) uint32 {
	if by > 31 {
		return 0
	}
	return shifted
}

// Info returns the op's row.
func (o Op) Info() *Info {
	if int(o) >= len(ops) {
		return &ops[opInvalid]
	}
	return &ops[o]
}

func (o Op) String() string { return o.Info().Name }

// ParseOp returns the op of that name.
func ParseOp(name string) (Op, bool) {
	for i := range ops {
		if ops[i].Name == name && name != "" {
			return Op(i), true
		}
	}
	return opInvalid, false
}

// Ops returns every op, in table order.
func Ops() []Op {
	list := make([]Op, 0, numOps-1)
	for o := opInvalid + 1; o < numOps; o++ {
		list = append(list, o)
	}
	return list
}

// ExactProduct reports whether a · b is exact in float32: what [OpFMAExact] asks for. NaN and Inf are exact in this sense.
func ExactProduct(a, b uint32) bool {
	x, y := f32(a), f32(b)
	p := float64(float64(x) * float64(y)) // 48 significant bits: exact
	r := float32(p)
	return float64(r) == p || math.IsNaN(p) || math.IsInf(p, 0)
}

// ExactInt reports whether the integer converts to float32 unchanged by the rule for OpToF32: |a| < 2²⁴.
func ExactInt(a uint32) bool {
	n := int32(a)
	if n < 0 {
		n = -n
	}
	return n >= 0 && bits.Len32(uint32(n)) <= 24
}
