//go:build linux && amd64

package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// formTable lists the instruction forms that are compared with the hardware: opcodes | operands | widths | options.
//
// Operands stand in the Go assembler's order: v a vector register of the form's width, h, q and o of a half, quarter and
// eighth of it, x, y and z of a fixed one; a trailing m allows memory too. m is memory alone, i an immediate, k a mask
// register, 4 and 8 a general register of that size, 1 and 2 an 8- or 16-bit one, each with m for memory too.
//
// Options: k also under a write mask, merging and zeroing; b also with an embedded broadcast; f float32 inputs, h float16
// inputs; i=… immediates; F=… the flags that are defined afterwards.
const formTable = `
VPADDB VPADDW VPSUBB VPSUBW VPADDSB VPADDSW VPADDUSB VPADDUSW VPSUBSB VPSUBSW VPSUBUSB VPSUBUSW VPAVGB VPAVGW | vm v v | xyz | k
VPMAXSB VPMINSB VPMAXUB VPMINUB VPMAXSW VPMINSW VPMAXUW VPMINUW VPMULLW VPMULHW VPMULHUW VPMULHRSW VPMADDUBSW | vm v v | xyz | k
VPADDD VPADDQ VPSUBD VPSUBQ VPMAXSD VPMINSD VPMAXUD VPMINUD VPMULLD VPMULDQ VPMULUDQ | vm v v | xyz | k b
VPMAXSQ VPMINSQ VPMAXUQ VPMINUQ VPMULLQ VPANDD VPANDND VPORD VPXORD VPANDQ VPANDNQ VPORQ VPXORQ | vm v v | xyz | k b
VANDPS VANDNPS VORPS VXORPS VANDPD VANDNPD VORPD VXORPD | vm v v | xyz | k b
VPAND VPANDN VPOR VPXOR VPSIGNB VPSIGNW VPSIGND VPHADDW VPHADDD VPHSUBW VPHSUBD | vm v v | xy |
VPMADDWD | vm v v | xyz | k
VPSADBW | vm v v | xyz |
VPDPBUSD VPDPWSSD | vm v v | xyz | k b
VPABSB VPABSW | vm v | xyz | k
VPABSD VPABSQ | vm v | xyz | k b
VPTERNLOGD VPTERNLOGQ | i vm v v | xyz | k b i=0x96,0xCA,0xFF,0x1B
VPSLLW VPSRLW VPSRAW | xm v v | xyz | k
VPSLLD VPSRLD VPSRAD VPSLLQ VPSRLQ VPSRAQ | xm v v | xyz | k
VPSLLW VPSRLW VPSRAW | i v v | xyz | k i=0,3,15,16,200
VPSLLW VPSRLW VPSRAW | i m v | xyz | i=5
VPSLLD VPSRLD VPSRAD | i v v | xyz | k i=0,7,31,32,255
VPSLLD VPSRLD VPSRAD | i m v | xyz | k b i=5
VPSLLQ VPSRLQ VPSRAQ | i v v | xyz | k i=0,33,63,64,255
VPSLLQ VPSRLQ VPSRAQ | i m v | xyz | b i=5
VPSLLVW VPSRLVW VPSRAVW | vm v v | xyz | k s
VPSLLVD VPSRLVD VPSRAVD VPSLLVQ VPSRLVQ VPSRAVQ VPROLVD VPRORVD | vm v v | xyz | k b s
VPROLD VPRORD VPROLQ VPRORQ | i vm v | xyz | k b i=0,1,37,64
VPSLLDQ VPSRLDQ | i v v | xyz | i=0,1,8,15,16,255
VPSLLDQ VPSRLDQ | i m v | xyz | i=4

VPCMPEQB VPCMPEQW VPCMPEQD VPCMPEQQ VPCMPGTB VPCMPGTW VPCMPGTD VPCMPGTQ | vm v v | xy | s
VPCMPEQB VPCMPEQW VPCMPGTB VPCMPGTW | vm v k | xyz | k s
VPCMPEQD VPCMPEQQ VPCMPGTD VPCMPGTQ VPTESTMD VPTESTMQ VPTESTNMD VPTESTNMQ | vm v k | xyz | k b s
VPTESTMB VPTESTMW VPTESTNMB VPTESTNMW | vm v k | xyz | k s
VPCMPB VPCMPW VPCMPUB VPCMPUW | i vm v k | xyz | k s i=0,1,2,3,4,5,6,7
VPCMPD VPCMPUD VPCMPQ VPCMPUQ | i vm v k | xyz | k b s i=0,1,2,3,4,5,6,7
VPTEST | vm v | xy | F=zcsop
VTESTPS | vm v | xy | F=zcsop

VADDPS VSUBPS VMULPS VDIVPS VMAXPS VMINPS | vm v v | xyz | k b f
VADDSS VSUBSS VMULSS VDIVSS VMAXSS VMINSS VSQRTSS | xm x x | x | f
VSQRTPS | vm v | xyz | k b f
VHADDPS VHSUBPS | vm v v | xy | f
VFMADD132PS VFMADD213PS VFMADD231PS VFMSUB132PS VFMSUB213PS VFMSUB231PS | vm v v | xyz | k b f
VFNMADD132PS VFNMADD213PS VFNMADD231PS VFNMSUB132PS VFNMSUB213PS VFNMSUB231PS | vm v v | xyz | k b f
VFMADD132SS VFMADD213SS VFMADD231SS VFMSUB132SS VFMSUB213SS VFMSUB231SS | xm x x | x | f
VFNMADD132SS VFNMADD213SS VFNMADD231SS VFNMSUB132SS VFNMSUB213SS VFNMSUB231SS | xm x x | x | f
VCMPPS | i vm v v | xy | f i=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
VCMPPS | i vm v k | xyz | k b f i=0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26,27,28,29,30,31
VUCOMISS VCOMISS | xm x | x | f F=zcp
VROUNDPS | i vm v | xy | f i=0,1,2,3,4,8,9,10,11,12
VRNDSCALEPS | i vm v | xyz | k b f i=0,1,2,3,4,8,9,10,11,0x10,0x41,0xF2,0xF3
VCVTDQ2PS VCVTUDQ2PS | vm v | xyz | k b
VCVTPS2DQ VCVTTPS2DQ VCVTPS2UDQ VCVTTPS2UDQ | vm v | xyz | k b f
VCVTPH2PS | hm v | xyz | k h
VCVTPS2PH | i v hm | xyz | k f i=0,1,2,3,4,7
VCVTSI2SSL | 4m x x | x |
VCVTSI2SSQ | 8m x x | x |
VCVTSS2SI VCVTTSS2SI | xm 4 | x | f
VCVTSS2SIQ VCVTTSS2SIQ | xm 8 | x | f

VPMOVSXBW VPMOVSXWD VPMOVSXDQ VPMOVZXBW VPMOVZXWD VPMOVZXDQ | hm v | xyz | k
VPMOVSXBD VPMOVSXWQ VPMOVZXBD VPMOVZXWQ | qm v | xyz | k
VPMOVSXBQ VPMOVZXBQ | om v | xyz | k
VPMOVWB VPMOVDW VPMOVQD VPMOVSWB VPMOVSDW VPMOVUSWB VPMOVUSDW | v hm | xyz | k
VPMOVDB VPMOVQW VPMOVSDB VPMOVUSDB | v qm | xyz | k
VPMOVQB | v om | xyz | k

VMOVUPS VMOVUPD VMOVAPS VMOVAPD VMOVDQU8 VMOVDQU16 VMOVDQU32 VMOVDQU64 VMOVDQA32 VMOVDQA64 | vm v | xyz | k
VMOVUPS VMOVUPD VMOVAPS VMOVAPD VMOVDQU8 VMOVDQU16 VMOVDQU32 VMOVDQU64 VMOVDQA32 VMOVDQA64 | v m | xyz | k
VMOVDQU VMOVDQA | vm v | xy |
VMOVDQU VMOVDQA | v m | xy |
VLDDQU | m v | xy |
VMOVNTPS VMOVNTPD VMOVNTDQ | v m | xyz |
VMOVNTDQA | m v | xyz |
VMOVD | 4m x | x |
VMOVD | x 4m | x |
VMOVQ | 8m x | x |
VMOVQ | x 8m | x |
VMOVQ | x x | x |
VMOVSS VMOVSD | m x | x | k
VMOVSS VMOVSD | x m | x | k
VMOVSS VMOVSD | x x x | x | k
VMOVHLPS VMOVLHPS | x x x | x |
VMOVSLDUP VMOVSHDUP VMOVDDUP | vm v | xyz | k
VMASKMOVPS VMASKMOVPD VPMASKMOVD VPMASKMOVQ | m v v | xy |
VMASKMOVPS VMASKMOVPD VPMASKMOVD VPMASKMOVQ | v v m | xy |
VBROADCASTSS VPBROADCASTB VPBROADCASTW VPBROADCASTD VPBROADCASTQ | xm v | xyz | k
VBROADCASTSD | xm v | yz | k
VPBROADCASTB VPBROADCASTW VPBROADCASTD | 4 v | xyz | k
VPBROADCASTQ | 8 v | xyz | k
VBROADCASTF128 VBROADCASTI128 | m y | y |
VBROADCASTF32X2 | xm v | yz | k
VBROADCASTI32X2 | xm v | xyz | k
VBROADCASTF32X4 VBROADCASTI32X4 VBROADCASTF64X2 VBROADCASTI64X2 | m v | yz | k
VBROADCASTF32X8 VBROADCASTI32X8 VBROADCASTF64X4 VBROADCASTI64X4 | m z | z | k
VINSERTF128 VINSERTI128 | i xm y y | y | i=0,1,3
VINSERTF32X4 VINSERTI32X4 VINSERTF64X2 VINSERTI64X2 | i xm v v | yz | k i=0,1,2,3
VINSERTF32X8 VINSERTI32X8 VINSERTF64X4 VINSERTI64X4 | i ym z z | z | k i=0,1
VEXTRACTF128 VEXTRACTI128 | i y xm | y | i=0,1
VEXTRACTF32X4 VEXTRACTI32X4 VEXTRACTF64X2 VEXTRACTI64X2 | i v xm | yz | k i=0,1,2,3
VEXTRACTF32X8 VEXTRACTI32X8 VEXTRACTF64X4 VEXTRACTI64X4 | i z ym | z | k i=0,1
VPINSRB VPINSRW VPINSRD | i 4m x x | x | i=0,1,3,14
VPINSRQ | i 8m x x | x | i=0,1
VPEXTRB VPEXTRW VPEXTRD VEXTRACTPS | i x 4m | x | i=0,1,3,14
VPEXTRQ | i x 8m | x | i=0,1
VINSERTPS | i xm x x | x | i=0,0x1C,0x60,0xD2
VBLENDPS VPBLENDD VPBLENDW VBLENDPD | i vm v v | xy | i=0,0x5A,0xFF,0x0F
VBLENDVPS VBLENDVPD VPBLENDVB | v vm v v | xy |
VPBLENDMB VPBLENDMW | vm v v | xyz | k
VPBLENDMD VPBLENDMQ VBLENDMPS VBLENDMPD | vm v v | xyz | k b

VPSHUFB | vm v v | xyz | k
VPSHUFD | i vm v | xyz | k b i=0x1B,0x4E,0xE1
VPSHUFHW VPSHUFLW | i vm v | xyz | k i=0x1B,0x4E,0xE1
VSHUFPS VSHUFPD | i vm v v | xyz | k b i=0x1B,0x4E,0xE1,0xFF
VPERMILPS VPERMILPD | i vm v | xyz | k b i=0x1B,0x4E,0xE1
VPERMILPS VPERMILPD | vm v v | xyz | k b
VPALIGNR | i vm v v | xyz | k i=0,4,15,16,20,32,100
VALIGND VALIGNQ | i vm v v | xyz | k b i=0,1,3,11
VPERMD VPERMPS VPERMQ VPERMPD | vm v v | yz | k b
VPERMW | vm v v | xyz | k
VPERMQ VPERMPD | i vm v | yz | k b i=0x1B,0x4E,0xD8
VPERMI2D VPERMI2PS VPERMT2D VPERMT2PS VPERMI2Q VPERMT2Q | vm v v | xyz | k b
VPERMI2W VPERMT2W | vm v v | xyz | k
VPERM2F128 VPERM2I128 | i vm v v | y | i=0x01,0x20,0x31,0x13,0x08,0x80,0x82
VSHUFF32X4 VSHUFI32X4 VSHUFF64X2 VSHUFI64X2 | i vm v v | yz | k b i=0x1B,0x4E,0xB1,0xFF
VPUNPCKLBW VPUNPCKHBW VPUNPCKLWD VPUNPCKHWD VPACKSSWB VPACKUSWB | vm v v | xyz | k
VPUNPCKLDQ VPUNPCKHDQ VPUNPCKLQDQ VPUNPCKHQDQ VUNPCKLPS VUNPCKHPS VUNPCKLPD VUNPCKHPD VPACKSSDW VPACKUSDW | vm v v | xyz | k b

KANDB KANDW KANDD KANDQ KANDNB KANDNW KANDND KANDNQ KORB KORW KORD KORQ | k k k | x |
KXORB KXORW KXORD KXORQ KXNORB KXNORW KXNORD KXNORQ KADDB KADDW KADDD KADDQ KUNPCKBW KUNPCKWD KUNPCKDQ | k k k | x |
KNOTB KNOTW KNOTD KNOTQ | k k | x |
KMOVB KMOVW KMOVD KMOVQ | k k | x |
KMOVB KMOVW KMOVD KMOVQ | m k | x |
KMOVB KMOVW KMOVD KMOVQ | k m | x |
KMOVB KMOVW KMOVD | 4 k | x |
KMOVB KMOVW KMOVD | k 4 | x |
KMOVQ | 8 k | x |
KMOVQ | k 8 | x |
KSHIFTLB KSHIFTLW KSHIFTLD KSHIFTLQ KSHIFTRB KSHIFTRW KSHIFTRD KSHIFTRQ | i k k | x | i=0,1,7,8,16,40,64
KORTESTB KORTESTW KORTESTD KORTESTQ KTESTB KTESTW KTESTD KTESTQ | k k | x | F=zcsop
VPMOVM2B VPMOVM2W VPMOVM2D VPMOVM2Q | k v | xyz |
VPMOVB2M VPMOVW2M VPMOVD2M VPMOVQ2M | v k | xyz |
VPMOVMSKB VMOVMSKPS VMOVMSKPD | v 4 | xy |

MOVB | 1m 1 | x |
MOVB | 1 m | x |
MOVW | 2m 2 | x |
MOVW | 2 m | x |
MOVL | 4m 4 | x |
MOVL | 4 m | x |
MOVQ | 8m 8 | x |
MOVQ | 8 m | x |
MOVL | i 4 | x | i=0x7FFFFFFF,5
MOVQ | i 8 | x | i=0xFFFFFFFF,5,-7
MOVQ | i m | x | i=5,-7
MOVBLZX MOVBLSX | 1m 4 | x |
MOVBQZX MOVBQSX | 1m 8 | x |
MOVWLZX MOVWLSX | 2m 4 | x |
MOVWQZX MOVWQSX | 2m 8 | x |
MOVLQZX MOVLQSX | 4m 8 | x |
ADDB SUBB ANDB ORB XORB CMPB TESTB | 1 1 | x | F=zcsop
ADDW SUBW ANDW ORW XORW CMPW TESTW | 2 2 | x | F=zcsop
ADDL SUBL ANDL ORL XORL | 4m 4 | x | F=zcsop
ADDQ SUBQ ANDQ ORQ XORQ | 8m 8 | x | F=zcsop
ADDL SUBL ANDL ORL XORL | 4 m | x | F=zcsop
ADDQ SUBQ ANDQ ORQ XORQ | 8 m | x | F=zcsop
ADDL SUBL ANDL ORL XORL CMPL TESTL | 4 4 | x | F=zcsop
CMPQ TESTQ | 8 8 | x | F=zcsop
CMPQ | m 8 | x | F=zcsop
CMPQ | 8 m | x | F=zcsop
ADDQ SUBQ ANDQ ORQ XORQ TESTQ | i 8 | x | i=1,127,-128,0x12345,-99999 F=zcsop
CMPQ | 8 i | x | i=1,127,-128,0x12345,-99999 F=zcsop
CMPL | 4 i | x | i=1,127,-128,0x12345,-99999 F=zcsop

NOTB | 1m | x |
NOTL | 4m | x |
NOTQ | 8m | x |
NEGL | 4m | x | F=zcsop
NEGQ | 8m | x | F=zcsop
INCL DECL | 4m | x | F=zsop
INCQ DECQ | 8m | x | F=zsop
SHLL SHRL SARL | i 4m | x | i=1 F=zcsop
SHLQ SHRQ SARQ | i 8m | x | i=1 F=zcsop
SHLL SHRL SARL | i 4 | x | i=2,31 F=zcsp
SHLQ SHRQ SARQ | i 8 | x | i=2,33,63 F=zcsp
SHLB SHRB SARB | i 1 | x | i=1 F=zcsop
SHLW SHRW SARW | i 2 | x | i=1 F=zcsop
SHLL SHRL SARL | 1 4 | x |
SHLQ SHRQ SARQ | 1 8 | x |
IMULL | 4m 4 | x | F=co
IMULQ | 8m 8 | x | F=co
IMUL3L | i 4m 4 | x | i=3,-5,0x12345 F=co
IMUL3Q | i 8m 8 | x | i=3,-5,0x12345 F=co
MULQ | 8m | x | F=co
XCHGL | 4 4 | x |
XCHGQ | 8 8 | x |
BTQ | i 8 | x | i=0,17,63 F=c
BTL | i 4 | x | i=0,17,31 F=c
BTQ | 8 8 | x | F=c
`

// Where a form's function finds its inputs and leaves its results, in bytes from the start of buffers 0 and 1.
const (
	vectorCount  = 5
	maskCount    = 3
	inputMasks   = 64 * vectorCount
	inputGP      = inputMasks + 8*maskCount
	inputMemory  = 384
	inputSize    = 1024
	outputMasks  = 64 * vectorCount
	outputGP     = outputMasks + 8*maskCount
	outputFlags  = outputGP + 8*4
	outputSize   = 384
	memorySize   = 192 // of buffer 2, which memory destinations lie in
	memoryTarget = 64
)

var gpRegisters = []reg.GPPhysical{reg.RAX, reg.RCX, reg.RDX, reg.R8}

// A form is one instruction, or a few that belong together, with its operands.
type form struct {
	name    string
	code    []*ir.Instruction
	inputs  string // kind of the inputs: empty, f, h or s
	flags   string // that are defined afterwards
	vnni    bool   // AVX-VNNI bytes
	encoded string // VEX, EVEX or empty for others: what the assembler chose
}

func nameOf(code []*ir.Instruction) string {
	var s []string
	for _, i := range code {
		s = append(s, text(i))
	}
	return strings.Join(s, "; ")
}

// tableForms expands formTable.
func tableForms(t *testing.T) []form {
	var all []form
	for _, line := range strings.Split(strings.TrimSpace(formTable), "\n") {
		cols := strings.Split(line, "|")
		if line == "" {
			continue
		}
		if len(cols) != 4 {
			t.Fatalf("%s: %d columns instead of 4", line, len(cols))
		}
		for _, opcode := range strings.Fields(cols[0]) {
			for _, w := range strings.TrimSpace(cols[2]) {
				fs, err := expand(opcode, strings.Fields(cols[1]), byte(w), strings.Fields(cols[3]))
				if err != nil {
					t.Fatalf("%s: %v", line, err)
				}
				all = append(all, fs...)
			}
		}
	}
	return all
}

// expand makes the forms of one opcode and width.
func expand(opcode string, kinds []string, width byte, options []string) ([]form, error) {
	var masked, broadcast bool
	imms := []int64{0}
	base := form{}
	for _, o := range options {
		switch key, value, _ := strings.Cut(o, "="); key {
		case "k":
			masked = true
		case "b":
			broadcast = true
		case "f", "h", "s":
			base.inputs = key
		case "F":
			base.flags = value
		case "i":
			imms = nil
			for _, s := range strings.Split(value, ",") {
				x, err := strconv.ParseInt(s, 0, 64)
				if err != nil {
					return nil, err
				}
				imms = append(imms, x)
			}
		}
	}
	var all []form
	for n, imm := range imms {
		for _, inMemory := range []bool{false, true} {
			for _, suffix := range []string{"", "k", "Z"} {
				for _, bcst := range []bool{false, true} {
					dst := kinds[len(kinds)-1]
					switch {
					case n > 0 && (suffix != "" || bcst || inMemory), // what remains does not depend on the immediate
						suffix != "" && !masked,
						suffix == "Z" && (dst == "k" || dst == "m" || inMemory && strings.HasSuffix(dst, "m")),
						bcst && (!broadcast || !strings.Contains(strings.Join(kinds, " "), "m") || !inMemory && !slices.Contains(kinds, "m")),
						inMemory && !hasChoice(kinds):
						continue
					}
					f := base
					name := opcode
					if bcst {
						name += ".BCST"
					}
					if suffix == "Z" {
						name += ".Z"
					}
					ops, err := operands(kinds, width, inMemory, suffix != "", imm)
					if err != nil {
						return nil, err
					}
					f.code = []*ir.Instruction{instr(name, ops...)}
					f.name = nameOf(f.code)
					all = append(all, f)
				}
			}
		}
	}
	return all, nil
}

// hasChoice reports whether an operand may be memory.
func hasChoice(kinds []string) bool {
	return slices.ContainsFunc(kinds, func(k string) bool { return len(k) == 2 })
}

// operands chooses registers: the destination is number 0, sources count from 1; masks are K1 … K3, the write mask K1.
func operands(kinds []string, width byte, inMemory, masked bool, imm int64) ([]operand.Op, error) {
	var ops []operand.Op
	vectors, masks, general := 1, 1, 1
	for i, kind := range kinds {
		last := i == len(kinds)-1
		if last && masked {
			ops = append(ops, reg.K1)
			masks = 2
		}
		if len(kind) == 2 {
			if inMemory {
				kind = "m"
			} else {
				kind = kind[:1]
			}
		}
		number := func(n *int) int {
			if last {
				return 0
			}
			*n++
			return *n - 1
		}
		switch kind {
		case "v", "h", "q", "o", "x", "y", "z":
			size := strings.IndexByte("xyz", width)
			switch kind {
			case "h":
				size = max(size-1, 0)
			case "q":
				size = max(size-2, 0)
			case "o":
				size = 0
			case "x", "y", "z":
				size = strings.Index("xyz", kind)
			}
			spec := []reg.Spec{reg.S128, reg.S256, reg.S512}[size]
			ops = append(ops, reg.LookupPhysical(reg.KindVector, reg.Index(number(&vectors)), spec))
		case "k":
			ops = append(ops, reg.LookupPhysical(reg.KindOpmask, reg.Index(masks), reg.S64))
			masks++
		case "1", "2", "4", "8":
			spec := map[string]reg.Spec{"1": reg.S8, "2": reg.S16, "4": reg.S32, "8": reg.S64}[kind]
			ops = append(ops, reg.LookupPhysical(reg.KindGP, gpRegisters[number(&general)].PhysicalIndex(), spec))
		case "i":
			ops = append(ops, operand.I64(imm))
		case "m":
			if last && len(kinds) > 1 {
				ops = append(ops, operand.Mem{Base: reg.R9, Disp: memoryTarget})
			} else if last {
				ops = append(ops, operand.Mem{Base: reg.R9, Disp: memoryTarget + 8})
			} else {
				ops = append(ops, operand.Mem{Base: reg.RDI, Disp: inputMemory})
			}
		default:
			return nil, fmt.Errorf("operand %q", kind)
		}
	}
	return ops, nil
}
