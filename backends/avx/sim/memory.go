package sim

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/mmcloughlin/avo/ir"
	"github.com/mmcloughlin/avo/operand"
)

// Regions lie 64 GiB apart and begin in the middle of their slot: an index that is off by any 32-bit amount, in either
// direction, still names the region it started from.
const (
	slotShift = 36
	slotStart = 1 << (slotShift - 1)
)

// A region is a run of simulated memory.
type region struct {
	name     string
	base     uint64
	data     []byte
	tail     int // bytes after data that may be read but not written, with undefined contents
	writable bool
}

// undefined is the byte at an offset of memory with undefined contents: NaN as float32 and as float16, negative as int8.
func undefined(offset int) byte {
	if offset&1 == 0 {
		return 0xC5
	}
	return 0xFF
}

// undefinedBytes returns n bytes of undefined memory.
func undefinedBytes(n int) []byte {
	p := make([]byte, n)
	for i := range p {
		p[i] = undefined(i)
	}
	return p
}

// memory is an address space. The address 0 is in no region.
type memory struct {
	regions []*region
}

// place appends a region and returns its address.
func (s *memory) place(r region) uint64 {
	r.base = uint64(len(s.regions)+1)<<slotShift + slotStart
	s.regions = append(s.regions, &r)
	return r.base
}

// find returns the region of an access and the offset in it, or an error that says where the access lies.
func (s *memory) find(addr uint64, n int, write bool) (*region, int, error) {
	verb := "reads"
	if write {
		verb = "writes"
	}
	slot := addr >> slotShift
	if slot == 0 || slot > uint64(len(s.regions)) {
		return nil, 0, fmt.Errorf("%s %d bytes at address %#x, which is in no region", verb, n, addr)
	}
	r := s.regions[slot-1]
	offset := int(addr - r.base)
	limit := len(r.data)
	if !write {
		limit += r.tail
	}
	if offset < 0 || offset+n > limit {
		return nil, 0, fmt.Errorf("%s %d bytes at %s%+d (address %#x), of which %d bytes are accessible", verb, n, r.name, offset, addr, limit)
	}
	if write && !r.writable {
		return nil, 0, fmt.Errorf("writes %d bytes at %s%+d (address %#x), which is read-only", n, r.name, offset, addr)
	}
	return r, offset, nil
}

// load fills p from memory.
func (s *memory) load(addr uint64, p []byte) error {
	r, offset, err := s.find(addr, len(p), false)
	if err != nil {
		return err
	}
	n := 0
	if offset < len(r.data) {
		n = copy(p, r.data[offset:])
	}
	for i := n; i < len(p); i++ {
		p[i] = undefined(offset + i)
	}
	return nil
}

// store writes p to memory.
func (s *memory) store(addr uint64, p []byte) error {
	r, offset, err := s.find(addr, len(p), true)
	if err != nil {
		return err
	}
	copy(r.data[offset:], p)
	return nil
}

// globalBytes lays out a DATA section.
func globalBytes(g *ir.Global) ([]byte, error) {
	p := make([]byte, g.Size)
	for _, d := range g.Data {
		lo, hi := d.Interval()
		if lo < 0 || hi > len(p) {
			return nil, fmt.Errorf("data %s: bytes %d … %d of %d", g.Symbol, lo, hi, len(p))
		}
		if s, ok := d.Value.(operand.String); ok {
			copy(p[lo:hi], s)
			continue
		}
		bits, err := constantBits(d.Value)
		if err != nil {
			return nil, fmt.Errorf("data %s at %d: %w", g.Symbol, lo, err)
		}
		var b [8]byte
		binary.LittleEndian.PutUint64(b[:], bits)
		copy(p[lo:hi], b[:])
	}
	return p, nil
}

// constantBits returns a constant's value, sign-extended where its type is signed.
func constantBits(c operand.Constant) (uint64, error) {
	switch c := c.(type) {
	case operand.I8:
		return uint64(c), nil
	case operand.U8:
		return uint64(c), nil
	case operand.I16:
		return uint64(c), nil
	case operand.U16:
		return uint64(c), nil
	case operand.I32:
		return uint64(c), nil
	case operand.U32:
		return uint64(c), nil
	case operand.I64:
		return uint64(c), nil
	case operand.U64:
		return uint64(c), nil
	case operand.F32:
		return uint64(math.Float32bits(float32(c))), nil
	case operand.F64:
		return math.Float64bits(float64(c)), nil
	}
	return 0, fmt.Errorf("constant %s of type %T is not supported", c.Asm(), c)
}
