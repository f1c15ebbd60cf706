package tune

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"unsafe"

	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/dispatch"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// memory is a group of buffers that are freed together.
type memory struct{ bufs []*cpu.Buffer }

func (m *memory) alloc(n int) ([]byte, error) {
	b, err := cpu.Alloc(n)
	if err != nil {
		return nil, err
	}
	m.bufs = append(m.bufs, b)
	return b.Bytes(), nil
}

func (m *memory) free() {
	for _, b := range m.bufs {
		_ = b.Free() // nothing to do about it
	}
	m.bufs = nil
}

// values are a kernel's arguments by name.
type values struct {
	bufs   map[string][]byte
	ints   map[string]int
	floats map[string]float32
}

// bind puts values where the kernel looks for them; each parameter must have one.
func bind(k *kernel.Kernel, v values) (a kernel.Args, err error) {
	for _, p := range k.Params {
		ok := false
		switch p.Kind {
		case kernel.Buffer:
			var b []byte
			b, ok = v.bufs[p.Name]
			a.Buf[p.Slot] = pointer(b)
		case kernel.Int:
			var n int
			n, ok = v.ints[p.Name]
			a.Int[p.Slot] = int64(n)
		case kernel.Float:
			a.F32[p.Slot], ok = v.floats[p.Name]
		}
		if !ok {
			return a, fmt.Errorf("kernel %s: no value for its parameter %s", k.Name, p.Name)
		}
	}
	return a, nil
}

// job is a candidate ready to run: calls that don't depend on each other. With each run one of their buffers moves on to
// the next of several copies, so that it comes from memory and not from a cache.
type job struct {
	calls   []dispatch.Call
	args    []kernel.Args
	offsets []int // of each call in the copy
	turn    turning
	next    int
	out     [][]byte // what it writes
}

// turning is a buffer of several copies.
type turning struct {
	slot           int
	memory         []byte
	stride, copies int
}

func (j *job) run(d *dispatch.Device) {
	from := j.turn.memory[j.turn.stride*(j.next%j.turn.copies):]
	j.next++
	for i := range j.args {
		j.args[i].Buf[j.turn.slot] = pointer(from[j.offsets[i]:])
	}
	d.Run(j.calls...)
}

// slotOf returns the slot of a parameter.
func slotOf(k *kernel.Kernel, name string) int { return k.Params[paramOf(k, name)].Slot }

// paramOf returns the index of a parameter, −1 if there is none of that name.
func paramOf(k *kernel.Kernel, name string) int {
	return slices.IndexFunc(k.Params, func(p kernel.Param) bool { return p.Name == name })
}

func pointer(b []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(b)) }

// product is the operands of out = act·wᵀ.
type product struct {
	n, k, rows     int
	actName        string // act, or x where activations are floats
	actGroup       int    // bytes of four rows of activations
	w, act, out    []byte
	layout         kernel.Layout // of w
	stride, copies int           // of w
}

// randomWeights fills rows of weights. Bytes at odd places lack a bit, so that every half-precision scale, and every number of the
// float formats, is finite and below 2 whatever the format; benign numbers lie around one, away from subnormals, whose
// arithmetic may be slow.
func randomWeights(b []byte, benign bool, r *rand.Rand) {
	for i := range b {
		b[i] = byte(r.Uint32())
		if i%2 == 1 {
			b[i] &= 0xBF
			if benign {
				b[i] = b[i]&0x83 | 0x38
			}
		}
	}
}

// newProduct makes operands for kernels like k: rows of activations, n rows of weights of so many elements, in as many copies
// as fill space; if space is too small, one copy elsewhere. Unless they are benign, weights take all bit patterns that a file
// may have.
func newProduct(mem *memory, d *dispatch.Device, like *kernel.Kernel, n, k, rows int, space []byte, benign bool) (*product, error) {
	pack, err := d.Config(like.Pack, "any")
	if err != nil {
		return nil, err
	}
	lay := pack.Layout
	if k%lay.Block != 0 {
		return nil, fmt.Errorf("%s: rows of %d elements are not whole blocks of %d", like.Name.Op, k, lay.Block)
	}
	p := &product{n: n, k: k, rows: rows, layout: lay, actName: "act", actGroup: (k + 63) / 64 * 2 * 192, stride: (lay.Bytes(n, k) + 63) &^ 63}
	if paramOf(like, "x") >= 0 {
		p.actName, p.actGroup = "x", 16*k
	}
	random := rand.New(rand.NewPCG(uint64(n), uint64(k)))
	packed := n
	if benign {
		packed = min(n, lay.Rows) // one tile, which repeats
	}
	raw := make([]byte, packed*lay.RowBytes(k)+64)
	randomWeights(raw, benign, random)
	tile, err := mem.alloc(lay.Bytes(packed, k))
	if err != nil {
		return nil, err
	}
	args, err := bind(pack, values{
		bufs: map[string][]byte{"rows": raw, "packed": tile, "bad": make([]byte, 4*packed+64)}, ints: map[string]int{"n": packed, "k": k},
	})
	if err != nil {
		return nil, err
	}
	d.Run(dispatch.Call{Kernel: pack, Args: &args, Work: 16 * dispatch.Element * k})
	p.w, p.copies = space, len(space)/p.stride
	if p.copies == 0 {
		p.copies = 1
		if p.w, err = mem.alloc(p.stride); err != nil {
			return nil, err
		}
	}
	for c := range p.copies {
		repeat(p.w[c*p.stride:][:lay.Bytes(n, k)], tile)
	}
	if p.out, err = mem.alloc(4 * rows * n); err != nil {
		return nil, err
	}
	return p, p.activate(mem, d, random)
}

// repeat fills b with copies of piece.
func repeat(b, piece []byte) {
	for len(b) > 0 {
		b = b[copy(b, piece):]
	}
}

// activate makes the activations: numbers of few bits, which no rounding changes.
func (p *product) activate(mem *memory, d *dispatch.Device, random *rand.Rand) (err error) {
	rows := (p.rows + 3) &^ 3
	if p.act, err = mem.alloc(rows / 4 * p.actGroup); err != nil {
		return err
	}
	x := p.act
	if p.actName == "act" {
		if x, err = mem.alloc(4 * rows * p.k); err != nil {
			return err
		}
	}
	fillFloats(x, random)
	if p.actName == "x" {
		return nil
	}
	quantize, err := d.Config("quantize", "any")
	if err != nil {
		return err
	}
	args, err := bind(quantize, values{bufs: map[string][]byte{"x": x, "act": p.act}, ints: map[string]int{"m": p.rows, "k": p.k}})
	if err != nil {
		return err
	}
	d.Run(dispatch.Call{Kernel: quantize, Args: &args, Work: dispatch.Element * p.k})
	return nil
}

func fillFloats(b []byte, random *rand.Rand) {
	for i := 0; i+4 <= len(b); i += 4 {
		binary.LittleEndian.PutUint32(b[i:], math.Float32bits(float32(random.IntN(511)-255)/64))
	}
}

// job makes the calls of runs, in panels as a model makes them.
func (p *product) job(runs []dispatch.Run, add bool) (*job, error) {
	j := &job{out: [][]byte{p.out}}
	panel := dispatch.Panel(runs, p.layout, p.n, p.k)
	for col := 0; col < p.n; col += panel {
		for _, r := range runs {
			v := values{
				bufs: map[string][]byte{p.actName: p.act[r.First/4*p.actGroup:], "w": p.w, "out": p.out[4*(r.First*p.n+col):]},
				ints: map[string]int{"m": r.Rows, "n": min(panel, p.n-col), "k": p.k, "ldo": p.n, "add": 0},
			}
			if add {
				v.ints["add"] = 1
			}
			args, err := bind(r.Kernel, v)
			if err != nil {
				return nil, err
			}
			j.args = append(j.args, args)
			j.calls = append(j.calls, dispatch.Call{Kernel: r.Kernel, Work: 16 * p.k * r.Tile})
			j.offsets = append(j.offsets, p.layout.Bytes(col, p.k))
			j.turn = turning{slotOf(r.Kernel, "w"), p.w, p.stride, p.copies}
		}
	}
	for i := range j.calls {
		j.calls[i].Args = &j.args[i]
	}
	return j, nil
}

// attention is the operands of one layer's attention.
type attention struct {
	values
	pages  turning
	rows   int
	keys   int // that a row sees, on average
	keep   [][]byte
	work   int // of a row of a tile
	kvSize int // bytes of the keys and values that are read
}

// segment is the number of positions in a page of the cache.
const segment = 256

// newAttention makes operands for kernels like k: rows of queries, group of them a token, the last token at position last.
// There are as many copies of the cache's pages as fill space, or one elsewhere.
func newAttention(mem *memory, like *kernel.Kernel, kv, hd, rows, group, last int, space []byte) (*attention, error) {
	elem := 4
	if like.Params[paramOf(like, "kcache")].Type == "f16" {
		elem = 2
	}
	segments := last/segment + 1
	keyPage, valuePage := kv*hd*segment*elem, kv*((hd+15)&^15)*segment*elem // rows of values are whole vectors: see op kv_store
	copies := len(space) / (segments * (keyPage + valuePage))
	random := rand.New(rand.NewPCG(uint64(kv), uint64(hd)))
	a := &attention{rows: rows, work: 4 * segment * hd, kvSize: 2 * (last + 1) * kv * hd * elem}
	a.ints = map[string]int{"rows": rows, "kv": kv, "segments": segments, "hd": hd, "window": 1 << 30}
	a.bufs = map[string][]byte{}
	if copies > 0 {
		keys := copies * segments * keyPage
		a.bufs["kcache"], a.bufs["vcache"] = space[:keys], space[keys:keys+copies*segments*valuePage]
	}
	copies = max(1, copies)
	for _, b := range []struct {
		name string
		n    int
	}{
		{"q", 4 * kv * ((rows + 3) &^ 3) * hd}, {"kcache", copies * segments * keyPage}, {"vcache", copies * segments * valuePage},
		{"pages", 4*copies*segments + 64}, {"position", 4 * rows}, {"o", 4 * segments * kv * rows * hd}, {"ml", 8 * segments * kv * rows},
	} {
		if a.bufs[b.name] != nil {
			continue
		}
		var err error
		if a.bufs[b.name], err = mem.alloc(b.n); err != nil {
			return nil, err
		}
	}
	fillFloats(a.bufs["q"], random)
	for i, name := range []string{"kcache", "vcache"} {
		page := []int{keyPage, valuePage}[i]
		first := a.bufs[name][:page]
		if elem == 4 {
			fillFloats(first, random)
		} else {
			randomWeights(first, true, random)
		}
		repeat(a.bufs[name][page:], first)
	}
	for i := range copies * segments {
		binary.LittleEndian.PutUint32(a.bufs["pages"][4*i:], uint32(i))
	}
	for r := range rows {
		at := max(0, last-(rows-1)/group+r/group)
		binary.LittleEndian.PutUint32(a.bufs["position"][4*r:], uint32(at))
		a.keys += at + 1
	}
	a.keys /= rows
	a.pages = turning{slotOf(like, "pages"), a.bufs["pages"], 4 * segments, copies}
	a.keep = [][]byte{a.bufs["o"], a.bufs["ml"]}
	return a, nil
}

// job makes the call of a kernel.
func (a *attention) job(k *kernel.Kernel) (*job, error) {
	args, err := bind(k, a.values)
	if err != nil {
		return nil, err
	}
	tile, _ := k.Name.Param("r")
	j := &job{args: []kernel.Args{args}, offsets: []int{0}, turn: a.pages, out: a.keep}
	j.calls = []dispatch.Call{{Kernel: k, Args: &j.args[0], Work: a.work * tile}}
	return j, nil
}

// snapshot copies what the job wrote.
func (j *job) snapshot() [][]byte {
	var s [][]byte
	for _, b := range j.out {
		s = append(s, bytes.Clone(b))
	}
	return s
}

// differs returns a description of the first difference of two outputs, "" if there is none.
func differs(got, want [][]byte) string {
	for i := range want {
		if bytes.Equal(got[i], want[i]) {
			continue
		}
		for at := 0; at+4 <= len(want[i]); at += 4 {
			if g, w := binary.LittleEndian.Uint32(got[i][at:]), binary.LittleEndian.Uint32(want[i][at:]); g != w {
				return fmt.Sprintf("element %d of output %d is %#08x, should be %#08x", at/4, i, g, w)
			}
		}
	}
	return ""
}

// wipe makes outputs hold what no kernel writes, so that a missing store shows.
func (j *job) wipe(b byte) {
	for _, o := range j.out {
		for i := range o {
			o[i] = b
		}
	}
}
