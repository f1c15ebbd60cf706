package vulkan

import (
	"bytes"
	"encoding/binary"
	"errors"
	"math"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swizzle-rt/swizzle/backends/checkers"
)

// drivers are those that the tests use.
var drivers = []string{checkers.Lavapipe, checkers.SwiftShader}

func TestMain(m *testing.M) {
	if err := checkers.UseDrivers(drivers...); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// open opens the drivers, whose use the validation layer watches.
func open(t *testing.T, driver string) (*Instance, *Info) {
	t.Helper()
	checkers.Need(t, driver)
	checkers.Need(t, checkers.Validation)
	i, err := Open(Options{Validate: true})
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	infos, err := i.Devices()
	if err != nil {
		t.Fatal(err)
	}
	n := slices.IndexFunc(infos, func(info *Info) bool { return strings.Contains(info.Name, checkers.DeviceName(driver)) })
	if n < 0 {
		t.Fatalf("%s offers no device", driver)
	}
	return i, infos[n]
}

// each runs a test on a device of every driver.
func each(t *testing.T, f func(t *testing.T, d *Device)) {
	for _, driver := range drivers {
		t.Run(driver, func(t *testing.T) {
			i, info := open(t, driver)
			d, err := i.NewDevice(info)
			if err != nil {
				t.Fatal(err)
			}
			f(t, d)
			if err := errors.Join(d.Close(), i.Close()); err != nil {
				t.Error(err)
			}
		})
	}
}

// affine assembles testdata/affine.spvasm.
func affine(t testing.TB) Kernel {
	t.Helper()
	text, err := exec.Command(checkers.Need(t, "spirv-as"), "--target-env", "spv1.3", "-o", "-", "testdata/affine.spvasm").Output()
	if err != nil {
		t.Fatal(err)
	}
	return Kernel{SPIRV: text, Entry: "affine", Threads: 32, Buffers: 2}
}

func TestInfo(t *testing.T) {
	each(t, func(t *testing.T, d *Device) {
		info := d.Info
		l := info.Limits
		if info.API[0] != 1 || info.API[1] < 1 || info.Driver == "" || l.Threads < 256 || l.Shared < 32<<10 || l.Buffers < 12 || l.PushConstants < 128 ||
			l.BufferBytes < 1<<27 || l.Groups[0] < 65535 || l.Groups[1] < 65535 || l.OffsetAlignment < 1 || l.OffsetAlignment > 256 {
			t.Errorf("%+v", info)
		}
		if f := info.Features; f.Subgroup < 1 || f.Subgroup&(f.Subgroup-1) != 0 || !f.Shuffle || !f.IntegerDot {
			t.Errorf("%+v", f)
		}
		if !info.FloatControls.PreserveSpecials {
			t.Errorf("%+v", info.FloatControls)
		}
	})
}

func words(w ...uint32) []byte {
	var b []byte
	for _, v := range w {
		b = binary.LittleEndian.AppendUint32(b, v)
	}
	return b
}

func TestRun(t *testing.T) {
	k := affine(t)
	k.PushConstants = 4
	each(t, func(t *testing.T, d *Device) {
		p, err := d.NewPipeline(k)
		if err != nil {
			t.Fatal(err)
		}
		align := max(d.Info.Limits.OffsetAlignment, 256)
		b, err := d.NewBuffer(2*align + 4*96)
		if err != nil {
			t.Fatal(err)
		}
		bindings := []Binding{{b, 0, 4 * 64}, {b, align, 4 * 64}}
		for n := range 64 {
			binary.LittleEndian.PutUint32(b.Bytes()[4*n:], uint32(n*n))
		}
		for _, offset := range []uint32{5, 1 << 31} { // the second time with what the first one has set up
			if err := p.Run(bindings, []uint32{offset}, 2, 1); err != nil {
				t.Fatal(err)
			}
			for n := range 64 {
				if got, want := binary.LittleEndian.Uint32(b.Bytes()[align+4*n:]), uint32(2*n*n)+offset; got != want {
					t.Fatalf("element %d is %d, want %d", n, got, want)
				}
			}
		}
		for _, c := range []struct {
			bindings []Binding
			push     []uint32
			x, y     int
			want     string
		}{
			{bindings[:1], []uint32{1}, 1, 1, "affine: 1 buffers and 4 bytes of push constants given, 2 and 4 needed"},
			{bindings, nil, 1, 1, "2 buffers and 0 bytes"},
			{bindings, []uint32{1}, 0, 1, "0 × 1 workgroups; 1 … "},
			{bindings, []uint32{1}, 1, math.MaxInt, "workgroups"},
			{[]Binding{{b, 0, 4}, {b, 2, 4}}, []uint32{1}, 1, 1, "binding 1: 4 bytes from 2 on"},
			{[]Binding{{b, 0, 0}, {b, 0, 4}}, []uint32{1}, 1, 1, "binding 0: 0 bytes"},
			{[]Binding{{b, 0, 4}, {b, align, math.MaxInt}}, []uint32{1}, 1, 1, "binding 1"},
			{[]Binding{{b, 0, 4}, {nil, 0, 4}}, []uint32{1}, 1, 1, "binding 1"},
		} {
			if err := p.Run(c.bindings, c.push, c.x, c.y); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		}
		if err := errors.Join(b.Close(), p.Close()); err != nil {
			t.Error(err)
		}
	})
}

func TestRunner(t *testing.T) {
	k := affine(t)
	each(t, func(t *testing.T, d *Device) {
		r, err := d.NewRunner(k, 0, 0) // the one push constant is the +0 at the end
		if err != nil {
			t.Fatal(err)
		}
		in, out := make([]byte, 128), make([]byte, 128)
		binary.LittleEndian.PutUint32(in, 21)
		for range 2 {
			if err := r.Run(Launch{Buffers: [][]byte{in, out}, Tiles: 1}); err != nil || binary.LittleEndian.Uint32(out) != 42 {
				t.Errorf("got %d, %v", binary.LittleEndian.Uint32(out), err)
			}
		}
		for _, c := range []struct {
			l    Launch
			want string
		}{
			{Launch{Buffers: [][]byte{in, make([]byte, 124)}, Tiles: 1}, "a store beyond the end of buffer 1, which has 124 bytes"},
			{Launch{Buffers: [][]byte{in}, Tiles: 1}, "1 buffers, 0 integers and 0 floats given, 2, 0 and 0 needed"},
		} {
			if err := r.Run(c.l); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		}
		if err := r.Run(Launch{Buffers: [][]byte{in, out}}); err != nil {
			t.Errorf("no tile: %v", err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		k.Shared = 1 << 20
		if _, err := d.NewRunner(k, 0, 0); err == nil || !strings.Contains(err.Error(), "1048576 bytes of shared memory needed, the device has ") {
			t.Error(err)
		}
		k.Shared = 0
	})
}

func TestRunnerIntegers(t *testing.T) {
	k := affine(t)
	each(t, func(t *testing.T, d *Device) {
		r, err := d.NewRunner(k, 1, 1)
		if err != nil {
			t.Fatal(err)
		}
		buffers := [][]byte{make([]byte, 128), make([]byte, 128)}
		l := Launch{Buffers: buffers, Ints: []int64{-3}, Floats: []float32{1}, Tiles: 1}
		if err := r.Run(l); err != nil || int32(binary.LittleEndian.Uint32(buffers[1])) != -3 {
			t.Errorf("got %d, %v", int32(binary.LittleEndian.Uint32(buffers[1])), err)
		}
		l.Ints = []int64{1 << 31}
		if err := r.Run(l); err == nil || !strings.Contains(err.Error(), "integer 0 is 2147483648, which has more than 32 bits") {
			t.Error(err)
		}
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
}

// What the validation layer says is the error of the call.
func TestValidation(t *testing.T) {
	k := affine(t)
	each(t, func(t *testing.T, d *Device) {
		few := k
		few.PushConstants = 0
		if p, err := d.NewPipeline(few); err == nil || p != nil || !strings.Contains(err.Error(), "affine: vkCreateComputePipelines: Validation Error") {
			t.Errorf("got %v", err)
		}
		if err := d.instance.check("vkNothing", 0); err != nil {
			t.Errorf("a message is left: %v", err)
		}
		for _, size := range []int{-1, 0, 1 << 31} {
			if _, err := d.NewBuffer(size); err == nil {
				t.Errorf("a buffer of %d bytes", size)
			}
		}
	})
}

// Objects that are left when their device is closed are reported.
func TestCloseOrder(t *testing.T) {
	i, info := open(t, checkers.Lavapipe)
	d, err := i.NewDevice(info)
	if err != nil {
		t.Fatal(err)
	}
	b, err := d.NewBuffer(64)
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Close(); err == nil || !strings.Contains(err.Error(), "vkDestroyDevice: ") {
		t.Errorf("device closed before its buffer: %v", err)
	}
	_ = b
	if err := i.Close(); err != nil {
		t.Error(err)
	}
}

func TestParseModule(t *testing.T) {
	head := []uint32{spirvMagic, 0x00010300, 0, 10, 0}
	module := func(w ...uint32) []byte { return words(append(slices.Clone(head), w...)...) }
	for _, c := range []struct {
		spirv []byte
		want  string
	}{
		{nil, "0 bytes that are no SPIR-V module"},
		{words(1, 2, 3, 4, 5), "20 bytes that are no SPIR-V module"},
		{module()[:19], "19 bytes"},
		{append(module(), 0), "21 bytes"},
		{module(), "without capability or entry point"},
		{module(0), "word 5 of a SPIR-V module: instruction of 0 words, 1 are left"},
		{module(2<<16|opCapability, 1, 9<<16|opExtension), "word 7 of a SPIR-V module: instruction of 9 words, 1 are left"},
		{module(2<<16|opCapability, 11), "the module needs capability 11, which is unknown here"},
		{module(2<<16|opCapability, 4448), "the module needs StorageBuffer8BitAccess, which the device lacks"},
		{module(2<<16|opCapability, 1, 2<<16|opTypeVoid, 1, 0), "without capability or entry point"},
	} {
		if _, err := parseModule(c.spirv, &Features{}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	if _, err := parseModule(module(2<<16|opCapability, 4448, 5<<16|opEntryPoint, 5, 1, 0, 0), &Features{Storage8: true}); err != nil {
		t.Error(err)
	}
}

// Float controls go where a module has them, and the module stays valid.
func TestFloatControls(t *testing.T) {
	k := affine(t)
	val := checkers.Need(t, "spirv-val")
	for _, c := range []struct {
		controls FloatControls
		want     []uint32 // modes
	}{
		{FloatControls{}, nil},
		{FloatControls{PreserveSpecials: true}, []uint32{4461}},
		{FloatControls{PreserveSubnormals: true}, []uint32{4459}},
		{FloatControls{RoundNearest: true}, []uint32{4462}},
		{FloatControls{true, true, true}, []uint32{4461, 4459, 4462}},
	} {
		m, err := parseModule(k.SPIRV, &Features{})
		if err != nil {
			t.Fatal(err)
		}
		m.control(c.controls)
		var got []uint32
		for at := 5; at < len(m.words); at += int(m.words[at] >> 16) {
			if m.words[at]&0xFFFF == opExecutionMode && m.words[at+2] != 17 { // LocalSize
				got = append(got, m.words[at+2])
			}
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("%+v: modes differ (-want +got):\n%s", c.controls, d)
		}
		v := exec.Command(val, "--target-env", "vulkan1.1", "-")
		v.Stdin = bytes.NewReader(words(m.words...))
		if out, err := v.CombinedOutput(); err != nil {
			t.Errorf("%+v: %v\n%s", c.controls, err, out)
		}
	}
}

func TestResult(t *testing.T) {
	for r, want := range map[Result]string{-4: "VK_ERROR_DEVICE_LOST", -99: "VkResult -99"} {
		if r.Error() != want {
			t.Errorf("got %q, want %q", r.Error(), want)
		}
	}
}

func FuzzParseModule(f *testing.F) {
	f.Add(words(spirvMagic, 0x00010300, 0, 10, 0, 2<<16|opCapability, 1, 5<<16|opEntryPoint, 5, 1, 0, 0))
	f.Fuzz(func(t *testing.T, spirv []byte) {
		m, err := parseModule(spirv, &Features{})
		if err == nil {
			m.control(FloatControls{true, true, true})
		}
	})
}
