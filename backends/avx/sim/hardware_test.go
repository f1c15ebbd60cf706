//go:build linux && amd64

package sim

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/cpuid/v2"
	"github.com/mmcloughlin/avo/attr"
	"github.com/mmcloughlin/avo/gotypes"
	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/printer"
	"github.com/mmcloughlin/avo/reg"
)

// The program that runs the forms on the hardware: it reads the input blocks of every kind and writes, for each function and
// block, the output and memory buffers.
const runner = `package main

import (
	"bufio"
	"io"
	"os"
	"unsafe"
)

type args struct {
	buf     [12]unsafe.Pointer
	ints    [12]int64
	floats  [4]float32
	scratch unsafe.Pointer
}

type block [%d]byte

func main() {
	kinds, trials := %d, %d
	raw := make([]byte, kinds*trials*len(block{})+64)
	skip := -int(uintptr(unsafe.Pointer(&raw[0]))) & 63
	in := raw[skip:]
	if _, err := io.ReadFull(os.Stdin, in[:kinds*trials*len(block{})]); err != nil {
		panic(err)
	}
	w := bufio.NewWriterSize(os.Stdout, 1<<20)
	rawOut := make([]byte, %d+%d+128)
	out := rawOut[-int(uintptr(unsafe.Pointer(&rawOut[0])))&63:]
	mem := out[%d:][:%d]
	out = out[:%d]
	for i, f := range functions {
		for t := range trials {
			for j := range mem {
				mem[j] = byte(j*37 + t)
			}
			clear(out)
			a := &args{}
			a.buf[0] = unsafe.Pointer(&in[(kind[i]*trials+t)*len(block{})])
			a.buf[1] = unsafe.Pointer(&out[0])
			a.buf[2] = unsafe.Pointer(&mem[0])
			f(a, 0, 1)
			w.Write(out)
			w.Write(mem)
		}
	}
	w.Flush()
}
`

const (
	inputKinds = "-fhs" // see form.inputs; - is the empty one
	trials     = 24
)

// marker precedes the instruction under test in the code, to find it there: a NOP with a displacement.
var marker = []byte{0x0F, 0x1F, 0x80, 0x34, 0x12, 0xED, 0x5E}

// inputs makes the blocks of one kind: registers, masks, general registers and memory.
func inputs(kind byte) [][]byte {
	r := rand.New(rand.NewPCG(uint64(kind), 7))
	special := []uint32{0, 1 << 31, 0x3F800000, 0xBF800000, 0x7F800000, 0xFF800000, 0x7FC00001, 0xFFC12345, 0x7F800001, 0xFFA00000,
		1, 0x80000001, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0xFF7FFFFF, 0x4F000000, 0xCF000000, 0x4F800000, 0x3F000000, 0xBF000000,
		0x3FC00000, 0x40200000, 0x4B000001, 0x33800000, 0x387FE000, 0x477FF000, 0x477FE000, 0x33000000, 0x33000001, 0x38800000, 0x5F000000}
	var blocks [][]byte
	for trial := range trials {
		b := make([]byte, inputSize)
		for i := 0; i < inputSize; i += 4 {
			x := r.Uint32()
			switch kind {
			case 'f':
				switch r.IntN(5) {
				case 0, 1:
					x = special[r.IntN(len(special))]
				case 2: // moderate
					x = math.Float32bits(float32(r.NormFloat64() * 100))
				case 3: // near each other, so that sums cancel
					x = 0x3F800000 + x&0x80000007
				}
			case 's': // small numbers, many of them equal
				x &= 0x00470047 | x<<31>>2
			case '-':
				if r.IntN(3) == 0 {
					corner := []byte{0, 0x80, 0x7F, 0xFF, 1}
					x = 0
					for j := range 4 {
						x |= uint32(corner[r.IntN(len(corner))]) << (8 * j)
					}
				}
			}
			binary.LittleEndian.PutUint32(b[i:], x)
		}
		for i := range maskCount {
			x := r.Uint64()
			switch (trial + i) % 6 {
			case 0:
				x = math.MaxUint64
			case 1:
				x = 0
			}
			binary.LittleEndian.PutUint64(b[inputMasks+8*i:], x)
		}
		blocks = append(blocks, b)
	}
	return blocks
}

// function wraps a form: it loads all registers, executes, and stores them. The wide one uses AVX-512 registers.
func (f *form) function(name string, wide, marked bool) *ir.Function {
	fn := ir.NewFunction(name)
	fn.Attributes = attr.NOSPLIT
	signature, err := gotypes.ParseSignature("func(a *args, lo, hi int)")
	if err == nil {
		fn.SetSignature(signature)
	}
	add := func(opcode string, ops ...operand.Op) { fn.AddInstruction(instr(opcode, ops...)) }
	at := func(base reg.Register, disp int) operand.Mem { return operand.Mem{Base: base, Disp: disp} }
	move, spec := "VMOVDQU", reg.S256
	if wide {
		move, spec = "VMOVDQU64", reg.S512
	}
	vec := func(i int) reg.Register { return reg.LookupPhysical(reg.KindVector, reg.Index(i), spec) }
	mask := func(i int) reg.Register { return reg.LookupPhysical(reg.KindOpmask, reg.Index(i), reg.S64) }

	add("MOVQ", operand.NewParamAddr("a", 0), reg.RBX)
	for i, r := range []reg.Register{reg.RDI, reg.RSI, reg.R9} {
		add("MOVQ", at(reg.RBX, 8*i), r)
	}
	for i := range vectorCount {
		add(move, at(reg.RDI, 64*i), vec(i))
	}
	for i, r := range gpRegisters {
		add("MOVQ", at(reg.RDI, inputGP+8*i), r)
	}
	for i := 0; wide && i < maskCount; i++ {
		add("KMOVQ", at(reg.RDI, inputMasks+8*i), mask(i+1))
	}
	for i, in := range f.code {
		if marked && i == len(f.code)-1 && !f.vnni {
			for _, b := range marker {
				add("BYTE", operand.U8(b))
			}
		}
		fn.AddInstruction(in)
	}
	for i := range vectorCount {
		add(move, vec(i), at(reg.RSI, 64*i))
	}
	for i := 0; wide && i < maskCount; i++ {
		add("KMOVQ", mask(i+1), at(reg.RSI, outputMasks+8*i))
	}
	for i, r := range gpRegisters {
		add("MOVQ", r, at(reg.RSI, outputGP+8*i))
	}
	for i, c := range f.flags {
		add(map[rune]string{'z': "SETEQ", 'c': "SETCS", 's': "SETMI", 'o': "SETOS", 'p': "SETPS"}[c], at(reg.RSI, outputFlags+i))
	}
	add("VZEROUPPER")
	add("RET")
	return fn
}

// architecture returns the one to simulate; wide tells which function is.
func (f *form) architecture(wide bool) string {
	switch {
	case f.vnni:
		return "avxvnni"
	case wide:
		return "avx512vnni"
	}
	return "avx2"
}

func TestHardware(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a program")
	}
	if _, err := exec.LookPath("go"); err != nil && os.Getenv("CI") != "true" {
		t.Skip("the go command is not there to build a program with")
	}
	c := &cpuid.CPU
	if !c.Has(cpuid.AVX2) || !c.Has(cpuid.FMA3) || !c.Has(cpuid.F16C) {
		t.Skip("the CPU has no AVX2, FMA and F16C: the simulator is not compared with it")
	}
	wide := c.Has(cpuid.AVX512F) && c.Has(cpuid.AVX512BW) && c.Has(cpuid.AVX512DQ) && c.Has(cpuid.AVX512VL) && c.Has(cpuid.AVX512VNNI)
	vnni := c.Has(cpuid.AVXVNNI)

	var forms []form
	skipped := 0
	for _, f := range append(append(tableForms(t), sequenceForms()...), vexForms()...) {
		if f.vnni && !vnni || !f.vnni && !wide && f.needsWide() {
			skipped++
			continue
		}
		forms = append(forms, f)
	}
	if skipped > 0 {
		t.Logf("%d forms are not compared: the CPU lacks AVX-512 or AVX-VNNI", skipped)
	}

	blocks := map[byte][][]byte{}
	for i := range len(inputKinds) {
		blocks[inputKinds[i]] = inputs(inputKinds[i])
	}
	results := runOnHardware(t, forms, wide)
	opcodesSeen := map[string]bool{}
	failures := 0
	for i, f := range forms {
		for _, in := range f.code {
			opcodesSeen[in.Opcode] = true
		}
		if err := f.check(blocks[f.kind()], results[i], wide); err != nil {
			failures++
			if failures <= 60 {
				t.Errorf("%s: %v", f.name, err)
			}
		}
	}
	t.Logf("%d instruction forms of %d opcodes compared with the hardware, %d inputs each; %d differ", len(forms), len(opcodesSeen), trials, failures)
	if wide && vnni {
		var missing []string
		for name := range opcodes {
			if !opcodesSeen[name] && jumpNames[name] == "" && name != "JMP" && name != "RET" {
				missing = append(missing, name)
			}
		}
		if len(missing) > 0 {
			t.Errorf("opcodes without a comparison: %v", missing)
		}
	}
}

// kind is the letter of the form's inputs.
func (f *form) kind() byte {
	if f.inputs == "" {
		return '-'
	}
	return f.inputs[0]
}

// needsWide reports whether the form cannot run on a CPU without AVX-512.
func (f *form) needsWide() bool {
	_, err := New(f.function("f", false, false), f.architecture(false))
	return err != nil
}

// check compares the simulator with the hardware's results of a form.
func (f *form) check(blocks [][]byte, want []byte, wide bool) error {
	arch := f.architecture(wide)
	wide = wide && !f.vnni
	fn := f.function("f", wide, false)
	m, err := New(fn, arch)
	if err != nil {
		return err
	}
	if _, err := New(f.function("f", false, false), "avx2"); f.encoded != "" && (err != nil) != (f.encoded == "EVEX") {
		return fmt.Errorf("the assembler's encoding is %s, the simulator says: %v", f.encoded, err)
	}
	for trial, block := range blocks {
		out, mem := make([]byte, outputSize), make([]byte, memorySize)
		for j := range mem {
			mem[j] = byte(j*37 + trial)
		}
		a := &Args{}
		a.Buf[0] = Buffer{Data: block}
		a.Buf[1] = Buffer{Data: out, Writable: true}
		a.Buf[2] = Buffer{Data: mem, Writable: true}
		if err := m.Run(a, 0, 1); err != nil {
			return err
		}
		got := append(out, mem...)
		expect := want[trial*len(got) : (trial+1)*len(got)]
		for i := range got {
			if got[i] != expect[i] {
				return fmt.Errorf("input %d: first difference at byte %d (%s)\n got %x\nwant %x", trial, i, place(i), got[i&^15:i&^15+16], expect[i&^15:i&^15+16])
			}
		}
	}
	return nil
}

// place names what lies at a byte of the results.
func place(i int) string {
	switch {
	case i < outputMasks:
		return fmt.Sprintf("vector %d, byte %d", i/64, i%64)
	case i < outputGP:
		return fmt.Sprintf("K%d", (i-outputMasks)/8+1)
	case i < outputFlags:
		return gpRegisters[(i-outputGP)/8].Asm()
	case i < outputSize:
		return fmt.Sprintf("flag %d", i-outputFlags)
	}
	return fmt.Sprintf("memory %d", i-outputSize)
}

// runOnHardware builds and runs a program with all forms. It notes how each was encoded.
func runOnHardware(t *testing.T, forms []form, wide bool) [][]byte {
	t.Helper()
	dir := t.TempDir()
	file := ir.NewFile()
	file.Includes = []string{"textflag.h"}
	var stubs, table, kinds strings.Builder
	for i, f := range forms {
		name := fmt.Sprintf("f%d", i)
		file.AddSection(f.function(name, wide && !f.vnni, true))
		fmt.Fprintf(&stubs, "//go:noescape\nfunc %s(a *args, lo, hi int)\n", name)
		fmt.Fprintf(&table, "\t%s,\n", name)
		fmt.Fprintf(&kinds, "%d, ", strings.IndexByte(inputKinds, f.kind()))
	}
	asm, err := printer.NewGoAsm(printer.Config{Name: "sim", Argv: []string{"sim"}}).Print(file)
	if err != nil {
		t.Fatal(err)
	}
	source := fmt.Sprintf(runner, inputSize, len(inputKinds), trials, outputSize, memorySize, outputSize, memorySize, outputSize)
	for name, text := range map[string]string{
		"go.mod":     "module hardware\n\ngo 1.26\n",
		"main.go":    source,
		"f_amd64.s":  string(asm),
		"f_amd64.go": "package main\n\n" + stubs.String() + "\nvar functions = []func(a *args, lo, hi int){\n" + table.String() + "}\n\nvar kind = []int{" + kinds.String() + "}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	program := filepath.Join(dir, "hardware")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = dir
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOWORK=off")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out[:min(len(out), 4000)])
	}
	readEncodings(t, program, forms)

	var stdin bytes.Buffer
	for i := range len(inputKinds) {
		for _, b := range inputs(inputKinds[i]) {
			stdin.Write(b)
		}
	}
	run := exec.Command(program)
	run.Stdin, run.Stderr = &stdin, os.Stderr
	out, err := run.Output()
	if err != nil {
		t.Fatalf("run: %v", err)
	}
	size := trials * (outputSize + memorySize)
	if len(out) != size*len(forms) {
		t.Fatalf("%d bytes of results instead of %d", len(out), size*len(forms))
	}
	results := make([][]byte, len(forms))
	for i := range results {
		results[i] = out[i*size : (i+1)*size]
	}
	return results
}

// readEncodings finds the marked instructions in the program's code.
func readEncodings(t *testing.T, program string, forms []form) {
	t.Helper()
	e, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	symbols, err := e.Symbols()
	if err != nil {
		t.Fatal(err)
	}
	section := e.Section(".text")
	code, err := section.Data()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range symbols {
		var i int
		if n, _ := fmt.Sscanf(s.Name, "main.f%d", &i); n != 1 || i >= len(forms) || forms[i].vnni {
			continue
		}
		body := code[s.Value-section.Addr:][:s.Size]
		at := bytes.Index(body, marker)
		if at < 0 {
			continue // the ABI wrapper of the same name
		}
		if last := forms[i].code[len(forms[i].code)-1]; last.Opcode[0] != 'V' {
			continue // instructions on mask registers are VEX, but AVX-512
		}
		switch body[at+len(marker)] {
		case 0x62:
			forms[i].encoded = "EVEX"
		case 0xC4, 0xC5:
			forms[i].encoded = "VEX"
		}
	}
}
