package vulkan

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// Words of SPIR-V modules.
const (
	spirvMagic = 0x07230203

	opExtension     = 10
	opEntryPoint    = 15
	opExecutionMode = 16
	opCapability    = 17
	opTypeVoid      = 19 // the first declaration after all of those here

	capabilityDenormPreserve = 4464
	capabilitySpecials       = 4466
	capabilityRoundNearest   = 4467
	modeDenormPreserve       = 4459
	modeSpecials             = 4461
	modeRoundNearest         = 4462
)

// capabilities lists what a module may ask of a device. Those without a condition every device has.
var capabilities = map[uint32]struct {
	name string
	has  func(f *Features) bool
}{
	1:    {"Shader", nil},
	61:   {"GroupNonUniform", func(f *Features) bool { return f.Shuffle }},
	65:   {"GroupNonUniformShuffle", func(f *Features) bool { return f.Shuffle }},
	4433: {"StorageBuffer16BitAccess", func(f *Features) bool { return f.Storage16 }},
	4448: {"StorageBuffer8BitAccess", func(f *Features) bool { return f.Storage8 }},
	6018: {"DotProductInput4x8BitPacked", func(f *Features) bool { return f.IntegerDot }},
	6019: {"DotProduct", func(f *Features) bool { return f.IntegerDot }},
}

// module is a SPIR-V module as words, with the places where declarations can be added.
type module struct {
	words                         []uint32
	capability, extension, modeAt int
	entry                         uint32 // id of the entry point
}

// parseModule checks the head of a module and that its capabilities are known and the device has them.
func parseModule(spirv []byte, f *Features) (*module, error) {
	if len(spirv) < 20 || len(spirv)%4 != 0 || binary.LittleEndian.Uint32(spirv) != spirvMagic {
		return nil, fmt.Errorf("%d bytes that are no SPIR-V module", len(spirv))
	}
	m := &module{words: wordsOf(spirv)}
	for at := 5; at < len(m.words); {
		op, size := m.words[at]&0xFFFF, int(m.words[at]>>16)
		if size == 0 || at+size > len(m.words) {
			return nil, fmt.Errorf("word %d of a SPIR-V module: instruction of %d words, %d are left", at, size, len(m.words)-at)
		}
		switch {
		case op == opCapability && size == 2:
			c, ok := capabilities[m.words[at+1]]
			if !ok {
				return nil, fmt.Errorf("the module needs capability %d, which is unknown here", m.words[at+1])
			}
			if c.has != nil && !c.has(f) {
				return nil, fmt.Errorf("the module needs %s, which the device lacks", c.name)
			}
			m.capability = at + size
			m.extension = m.capability
		case op == opExtension:
			m.extension = at + size
		case op == opEntryPoint && size > 3:
			m.entry, m.modeAt = m.words[at+2], at+size
		case op == opTypeVoid:
			at = len(m.words)
			continue
		}
		at += size
	}
	if m.capability == 0 || m.modeAt == 0 {
		return nil, fmt.Errorf("a SPIR-V module without capability or entry point")
	}
	return m, nil
}

// control adds the float controls that the device has.
func (m *module) control(c FloatControls) {
	var capability, mode []uint32
	add := func(on bool, cap, execution uint32) {
		if on {
			capability = append(capability, 2<<16|opCapability, cap)
			mode = append(mode, 4<<16|opExecutionMode, m.entry, execution, 32)
		}
	}
	add(c.PreserveSpecials, capabilitySpecials, modeSpecials)
	add(c.PreserveSubnormals, capabilityDenormPreserve, modeDenormPreserve)
	add(c.RoundNearest, capabilityRoundNearest, modeRoundNearest)
	if len(mode) == 0 {
		return
	}
	name := append([]byte("SPV_KHR_float_controls"), 0, 0) // a multiple of four, with its end
	extension := append([]uint32{uint32(1+len(name)/4)<<16 | opExtension}, wordsOf(name)...)
	// From the back, so that places stay valid.
	m.words = slices.Insert(m.words, m.modeAt, mode...)
	m.words = slices.Insert(m.words, m.extension, extension...)
	m.words = slices.Insert(m.words, m.capability, capability...)
}

// wordsOf returns little-endian bytes as words.
func wordsOf(b []byte) []uint32 {
	w := make([]uint32, len(b)/4)
	for n := range w {
		w[n] = binary.LittleEndian.Uint32(b[4*n:])
	}
	return w
}
