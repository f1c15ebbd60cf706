package avx

import (
	avo "github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/x86"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/target"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// ctor makes an instruction from its operands in Go's order, the destination last.
type ctor func(...operand.Op) (*avo.Instruction, error)

func zeroing(f func(a, k, b operand.Op) (*avo.Instruction, error)) ctor {
	return func(ops ...operand.Op) (*avo.Instruction, error) { return f(ops[0], ops[1], ops[2]) }
}

func three(f func(a, b, c operand.Op) (*avo.Instruction, error)) ctor {
	return func(ops ...operand.Op) (*avo.Instruction, error) { return f(ops[0], ops[1], ops[2]) }
}

// row tells how one intrinsic is printed.
type row struct {
	print      func(*gen, *ir.Instr)
	spelling   string // its instructions
	needs      string // beyond AVX2, or AVX-512 F, BW, DQ and VL
	hazard     string
	plain      ctor // of lane-wise instructions of two sources
	bcst       ctor // with the second source one element in memory
	mem        []int
	broadcasts bool // a memory source may be one element, with EVEX encodings
}

// commutes reports whether the sources may be exchanged.
func (r *row) commutes() bool { return len(r.mem) == 2 }

const avxVNNI = "AVXVNNI"

// maxInstructions bounds a kernel: what is larger should be a loop.
const maxInstructions = 6000

// gprs are the general registers a kernel can use: all but the stack and the frame pointer.
const gprs = 14

// arch is one instruction set.
type arch struct {
	name    string
	isa     []string // as avo calls them
	evex    bool
	vnni    bool
	vecRegs int
	bits    int
	rows    []row // by ir.Op

	and, or, xor, mov ctor
}

// Arches are the architectures that Emit prints for, from the oldest on.
func Arches() []string { return []string{"avx2", "avxvnni", "avx512vnni"} }

func findArch(name string) *arch {
	vex := []string{"AVX", "AVX2", "CMOV", "F16C", "FMA3", "MMX+"}
	a := &arch{name: name, isa: vex, vecRegs: 16, bits: 256}
	a.and, a.or, a.xor = three(x86.VPAND), three(x86.VPOR), three(x86.VPXOR)
	a.mov = func(ops ...operand.Op) (*avo.Instruction, error) { return x86.VMOVDQA(ops[0], ops[1]) }
	switch name {
	case "avx2":
	case "avxvnni":
		a.vnni = true
		a.isa = append(a.isa, avxVNNI)
	case "avx512vnni":
		a.vnni, a.evex, a.vecRegs, a.bits = true, true, 32, 512
		a.isa = append(a.isa, "AVX512F", "AVX512BW", "AVX512DQ", "AVX512VL", "AVX512VNNI")
		a.and, a.or, a.xor, a.mov = x86.VPANDD, x86.VPORD, x86.VPXORD, x86.VMOVDQA64
	default:
		return nil
	}
	a.rows = a.table()
	return a
}

// table is the capability table: a row for each intrinsic that has instructions.
func (a *arch) table() []row {
	lanes := func(spelling string, plain, bcst ctor, mem ...int) row {
		return row{print: (*gen).binary, spelling: spelling, plain: plain, bcst: bcst, mem: mem, broadcasts: true}
	}
	index := func(spelling string) row { return row{print: (*gen).indexOp, spelling: spelling} }
	compare := func(spelling string, mem ...int) row {
		return row{print: (*gen).compareWords, spelling: spelling, mem: mem, broadcasts: true}
	}
	indexCompare := row{print: (*gen).compareIndex, spelling: "CMPQ, of lanes VPCMPGTD or VPCMPD"}
	logic := row{print: (*gen).logic, spelling: "KANDW, KORW, KNOTW or VPAND, VPOR, VPXOR; uniform ANDL, ORL, XORL"}
	shift := func(spelling string) row {
		r := row{print: (*gen).shift, spelling: spelling, broadcasts: true}
		if a.evex {
			r.mem = []int{0} // by an immediate
		}
		return r
	}
	fold := func(spelling, hazard string) row {
		return row{print: (*gen).fold, spelling: spelling, hazard: hazard}
	}
	none := func(*gen, *ir.Instr) {}

	rows := map[ir.Op]row{
		ir.OpConst:      {print: (*gen).constOp, spelling: "an operand in memory; VPXOR, VPCMPEQD, VPTERNLOGD"},
		ir.OpLane:       {print: (*gen).laneOp, spelling: "part of an address, or constants in memory"},
		ir.OpGroup:      {print: (*gen).groupOp, spelling: "0"},
		ir.OpTile:       {print: (*gen).tileOp, spelling: "a register that the loop over tiles steps"},
		ir.OpIntParam:   {print: (*gen).intParamOp, spelling: "MOVQ"},
		ir.OpFloatParam: {print: (*gen).floatParamOp, spelling: "an operand in memory"},

		ir.OpAddX:      index("address arithmetic, LEAQ"),
		ir.OpSubX:      index("address arithmetic, LEAQ, SUBQ"),
		ir.OpMulX:      index("address arithmetic, IMULQ"),
		ir.OpDivX:      {print: (*gen).indexOp, spelling: "SHRQ, DIVQ", hazard: "lane by lane where it varies and is no power of two"},
		ir.OpModX:      {print: (*gen).indexOp, spelling: "ANDQ, DIVQ", hazard: "lane by lane where it varies and is no power of two"},
		ir.OpMinX:      index("CMOVQLT; VPMINSD"),
		ir.OpMaxX:      index("CMOVQGT; VPMAXSD"),
		ir.OpAndX:      index("ANDQ; VPAND"),
		ir.OpXorX:      index("XORQ; VPXOR"),
		ir.OpShlX:      index("address arithmetic"),
		ir.OpShrX:      index("SHRQ; VPSRLD"),
		ir.OpLtX:       indexCompare,
		ir.OpLeX:       indexCompare,
		ir.OpEqX:       indexCompare,
		ir.OpToIndex:   {print: (*gen).toIndex, spelling: "MOVLQSX; of lanes the same register", mem: []int{0}},
		ir.OpFromIndex: {print: (*gen).fromIndex, spelling: "VPBROADCASTD and VPADDD"},

		ir.OpAddF:     lanes("VADDPS", x86.VADDPS, x86.VADDPS_BCST, 1, 0),
		ir.OpSubF:     lanes("VSUBPS", x86.VSUBPS, x86.VSUBPS_BCST, 1),
		ir.OpMulF:     lanes("VMULPS", x86.VMULPS, x86.VMULPS_BCST, 1, 0),
		ir.OpFMAExact: {print: (*gen).fma, spelling: "VFMADD231PS", mem: []int{1, 0}, broadcasts: true},
		ir.OpLtF:      compare("VCMPPS $0x11", 1),
		ir.OpLeF:      compare("VCMPPS $0x12", 1),
		ir.OpEqF:      compare("VCMPPS $0", 1),

		ir.OpAddI: lanes("VPADDD", x86.VPADDD, x86.VPADDD_BCST, 1, 0),
		ir.OpSubI: lanes("VPSUBD", x86.VPSUBD, x86.VPSUBD_BCST, 1),
		ir.OpMulI: lanes("VPMULLD", x86.VPMULLD, x86.VPMULLD_BCST, 1, 0),
		ir.OpAnd:  lanes("VPAND, VPANDD", a.and, x86.VPANDD_BCST, 1, 0),
		ir.OpOr:   lanes("VPOR, VPORD", a.or, x86.VPORD_BCST, 1, 0),
		ir.OpXor:  lanes("VPXOR, VPXORD", a.xor, x86.VPXORD_BCST, 1, 0),
		ir.OpMinI: lanes("VPMINSD", x86.VPMINSD, x86.VPMINSD_BCST, 1, 0),
		ir.OpMaxI: lanes("VPMAXSD", x86.VPMAXSD, x86.VPMAXSD_BCST, 1, 0),
		ir.OpMaxU: lanes("VPMAXUD", x86.VPMAXUD, x86.VPMAXUD_BCST, 1, 0),
		ir.OpShl:  shift("VPSLLD, VPSLLVD"),
		ir.OpShrU: shift("VPSRLD, VPSRLVD"),
		ir.OpShrI: shift("VPSRAD, VPSRAVD"),
		ir.OpLtI:  compare("VPCMPGTD, VPCMPD $1"),
		ir.OpLtU:  compare("VPMAXUD and VPCMPEQD, VPCMPUD $1"),
		ir.OpEqI:  compare("VPCMPEQD, VPCMPD $0", 1),

		ir.OpAndB:   logic,
		ir.OpOrB:    logic,
		ir.OpNotB:   logic,
		ir.OpSelect: {print: (*gen).choose, spelling: "VBLENDVPS, VPBLENDMD", mem: []int{1}, broadcasts: true},
		ir.OpCast:   {print: (*gen).cast, spelling: "the same register"},
		ir.OpToF32:  {print: (*gen).toF32, spelling: "VCVTDQ2PS", mem: []int{0}, broadcasts: true},
		ir.OpDot4US: {print: (*gen).dotWords, spelling: "VPMADDUBSW, VPADDW, VPMADDWD, VPADDD", mem: []int{1},
			hazard: "VPMADDUBSW saturates: u above 127 is widened to 16 bits first"},
		ir.OpDot4SS: {print: (*gen).dotSigned, spelling: "VPABSB, VPSIGNB, VPMADDUBSW, VPMADDWD, VPADDD",
			hazard: "VPSIGNB wraps −128, which the second operand never is"},
		ir.OpLookup16: {print: (*gen).lookup, spelling: "VPSHUFB", hazard: "bytes above 15 wrap or give 0"},

		ir.OpPackLanes4: {print: (*gen).packLanes, spelling: "VPSHUFB"},
		ir.OpShuffleXor: {print: (*gen).shuffle, spelling: "VPSHUFD, VPERMQ, VSHUFI32X4, exchanged parts"},
		ir.OpReadLane:   {print: (*gen).readLane, spelling: "VPBROADCASTD, VPERMD"},
		ir.OpFoldAddF:   fold("shuffles and VADDPS", "both lanes of a pair compute the sum, with exchanged operands"),
		ir.OpFoldAddI:   fold("shuffles and VPADDD", ""),
		ir.OpFoldMaxU:   fold("shuffles and VPMAXUD", ""),
		ir.OpFoldMaxF:   fold("shuffles and VMAXPS", "VMAXPS gives its second source where one is NaN: NaN becomes −Inf first"),

		ir.OpGet:      {print: (*gen).get, spelling: "the element's register"},
		ir.OpSet:      {print: (*gen).set, spelling: "the element's register"},
		ir.OpLoad:     {print: (*gen).load, spelling: "VMOVUPS, VBROADCASTSS, VPMOVSXBD …, VCVTPH2PS, VPMASKMOVD, VPGATHERDD", hazard: "narrow gathers read the aligned word"},
		ir.OpStore:    {print: (*gen).store, spelling: "VMOVUPS, VPMASKMOVD, VPMOVDB, VPMOVDW, VCVTPS2PH, VPSHUFB; MOVB … lane by lane"},
		ir.OpPrefetch: {print: (*gen).prefetch, spelling: "PREFETCHT0"},
		ir.OpBarrier:  {print: none, spelling: "nothing: one lane group runs in order"},
	}
	if a.vnni {
		rows[ir.OpDot4US] = row{print: (*gen).dotVNNI, spelling: "VPDPBUSD", needs: "AVX-VNNI"}
		rows[ir.OpDot4SS] = row{print: (*gen).dotSigned, spelling: "VPABSB, VPSIGNB, VPDPBUSD", needs: "AVX-VNNI",
			hazard: "VPSIGNB wraps −128, which the second operand never is"}
	}
	if a.evex {
		rows[ir.OpDot4US] = row{print: (*gen).dotVNNI, spelling: "VPDPBUSD", needs: "AVX512-VNNI", mem: []int{1}, broadcasts: true}
		rows[ir.OpDot4SS] = row{print: (*gen).dotBiased, spelling: "VPXORD, VPSUBD, 2 VPDPBUSD", needs: "AVX512-VNNI"}
	}
	list := make([]row, len(ir.Ops())+1)
	for op, r := range rows {
		list[op] = r
	}
	return list
}

// Caps describes an architecture; nil if it is none of [Arches].
func Caps(name string) *target.Caps {
	a := findArch(name)
	if a == nil {
		return nil
	}
	c := &target.Caps{Arch: name, Family: target.CPU, Native: map[ir.Op]bool{}, DotUMax: 127, VecRegs: a.vecRegs, VecBits: a.bits,
		Shared: kernel.ScratchBytes, Threads: 32}
	if a.vnni {
		c.DotUMax = 255
	}
	for op, r := range a.rows {
		if r.print != nil {
			c.Native[ir.Op(op)] = true
		}
	}
	return c
}

func (g *gen) constOp(i *ir.Instr) {
	r := i.Results[0]
	switch r.Type {
	case ir.Index:
		g.val(r).x = index{p: constant(i.Imm)}
	case ir.Bool:
		g.val(r).cond = &cond{ir.OpEqX, constant(i.Imm & 1), constant(1)}
	default:
		w := uint32(i.Imm)
		g.val(r).mem = &memory{bits: &w}
	}
}

func (g *gen) laneOp(i *ir.Instr) {
	x := g.laneMap(index{}, func(l int, _ int64) int64 { return int64(l) })
	if g.slice != nil {
		x.p = g.slice.poly().scale(int64(g.lanes))
	}
	g.val(i.Results[0]).x = x
}

func (g *gen) groupOp(i *ir.Instr) { g.val(i.Results[0]).x = index{} }

func (g *gen) tileOp(i *ir.Instr) { g.val(i.Results[0]).x = index{p: g.tiles[i.Imm].poly()} }

func (g *gen) intParamOp(i *ir.Instr) { g.val(i.Results[0]).x = index{p: g.intParam(i.Imm).poly()} }

func (g *gen) floatParamOp(i *ir.Instr) { g.val(i.Results[0]).mem = &memory{slot: int(i.Imm)} }

func (g *gen) prefetch(i *ir.Instr) {
	x := g.val(i.Args[0]).x
	if x.vec != nil {
		return // a hint not worth a prefetch per lane
	}
	at := g.address(g.bytesAt(i.Mem, x.p, 0))
	lines := map[int64]bool{}
	for l := range g.lanes {
		off := laneAt(x, l) * int64(i.Mem.Type.Bytes())
		if line := off >> 6; !lines[line] {
			lines[line] = true
			g.put(x86.PREFETCHT0(at.Offset(int(off))))
		}
	}
}
