package spirv

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/swizzle-rt/swizzle/backends/checkers"
	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/interp"
	"github.com/swizzle-rt/swizzle/ir/ops"
	"github.com/swizzle-rt/swizzle/ir/verify"
	"github.com/swizzle-rt/swizzle/runtime/device/vulkan"
)

// drivers are those that kernels run on.
var drivers = []string{checkers.Lavapipe, checkers.SwiftShader}

func TestMain(m *testing.M) {
	if err := checkers.UseDrivers(drivers...); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

var opened = sync.OnceValues(func() (map[string]*vulkan.Device, error) {
	i, err := vulkan.Open(vulkan.Options{Validate: true})
	if err != nil {
		return nil, err
	}
	infos, err := i.Devices()
	if err != nil {
		return nil, err
	}
	devices := map[string]*vulkan.Device{}
	for _, info := range infos {
		for _, d := range drivers {
			if strings.Contains(info.Name, checkers.DeviceName(d)) {
				if devices[d], err = i.NewDevice(info); err != nil {
					return nil, err
				}
			}
		}
	}
	return devices, nil
})

// device returns a driver's device, shared by all tests, its use watched by the validation layer.
func device(t testing.TB, driver string) *vulkan.Device {
	t.Helper()
	checkers.Need(t, driver)
	checkers.Need(t, checkers.Validation)
	devices, err := opened()
	if errors.Is(err, errors.ErrUnsupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if devices[driver] == nil {
		t.Fatalf("%s offers no device", driver)
	}
	return devices[driver]
}

// each runs a test for the architectures that a driver has.
func each(t *testing.T, f func(t *testing.T, d *vulkan.Device, arch string)) {
	for _, driver := range drivers {
		for _, arch := range Arches() {
			t.Run(driver+"/"+arch, func(t *testing.T) { f(t, device(t, driver), arch) })
		}
	}
}

func build(t testing.TB, name string, groups int, schedule func(b *ir.Builder)) *ir.Kernel {
	t.Helper()
	k, err := ir.Build(name, 32, groups, schedule)
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// emit verifies and prints a kernel.
func emit(k *ir.Kernel, arch string) (*Output, error) {
	if err := verify.Kernel(k, Caps(arch)); err != nil {
		return nil, err
	}
	return Emit(k, Options{Arch: arch, Symbol: k.Name})
}

// runner compiles a printed kernel.
func runner(d *vulkan.Device, k *ir.Kernel, o *Output) (*vulkan.Runner, error) {
	var n [3]int
	for _, p := range k.Params {
		n[p.Kind]++
	}
	return d.NewRunner(vulkan.Kernel{SPIRV: o.Text, Entry: k.Name, Threads: o.Threads, Shared: o.Shared, Buffers: n[ir.Buffer]}, n[ir.Integer], n[ir.Float])
}

// run executes a kernel on copies of the arguments' buffers and returns them.
func run(r *vulkan.Runner, k *ir.Kernel, a interp.Args) ([][]byte, error) {
	var buffers [][]byte
	for _, b := range a.Buffers {
		buffers = append(buffers, bytes.Clone(b))
	}
	err := r.Run(vulkan.Launch{Buffers: buffers, Ints: a.Ints, Floats: a.Floats, Tiles: int(interp.Tiles(k, a.Ints))})
	return buffers, err
}

// compare runs a kernel and compares what it writes with the interpreter's.
func compare(t testing.TB, d *vulkan.Device, k *ir.Kernel, arch string, a interp.Args) (err error) {
	o, err := emit(k, arch)
	if err != nil {
		return err
	}
	if err := validate(t, o.Text); err != nil {
		return err
	}
	r, err := runner(d, k, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, r.Close()) }()
	got, err := run(r, k, a)
	if err != nil {
		return err
	}
	want := interp.Args{Ints: a.Ints, Floats: a.Floats}
	for _, b := range a.Buffers {
		want.Buffers = append(want.Buffers, bytes.Clone(b))
	}
	if _, err := interp.Run(k, want); err != nil {
		return fmt.Errorf("interpreter: %w", err)
	}
	for _, p := range k.Params {
		if p.Kind == ir.Buffer {
			if err := ops.Compare(p.Type, got[p.Slot], want.Buffers[p.Slot]); err != nil {
				return fmt.Errorf("%s: %w", p.Name, err)
			}
		}
	}
	return nil
}

// arguments returns a case's parameters by slot.
func arguments(k *ir.Kernel, c *ops.Case) interp.Args {
	var a interp.Args
	for _, p := range k.Params {
		switch p.Kind {
		case ir.Buffer:
			a.Buffers = append(a.Buffers, c.Buf[p.Name])
		case ir.Integer:
			a.Ints = append(a.Ints, c.Int[p.Name])
		case ir.Float:
			a.Floats = append(a.Floats, c.Float[p.Name])
		}
	}
	return a
}

// validate runs spirv-val.
func validate(t testing.TB, text []byte) error {
	t.Helper()
	c := exec.Command(checkers.Need(t, "spirv-val"), "--target-env", "vulkan1.1", "-")
	c.Stdin = bytes.NewReader(text)
	if out, err := c.CombinedOutput(); err != nil {
		return fmt.Errorf("spirv-val: %w\n%s", err, out)
	}
	return nil
}
