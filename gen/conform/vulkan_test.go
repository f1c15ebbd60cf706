//go:build linux && amd64 && !static

package conform

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/swizzle-rt/swizzle/backends/checkers"
	"github.com/swizzle-rt/swizzle/runtime/device/vulkan"
)

// The drivers for CPUs are looked for on the systems that CI has; elsewhere, as under emulation, the package opens no library.
var vulkanDevices = []*device{
	{name: "lavapipe vk", arch: "vk", driver: checkers.Lavapipe, ragged: 2, patterns: 2, open: openVulkan},
	{name: "lavapipe vkdot", arch: "vkdot", driver: checkers.Lavapipe, ragged: 2, patterns: 2, open: openVulkan},
	{name: "swiftshader vk", arch: "vk", driver: checkers.SwiftShader, flushes: true, ragged: 2, patterns: 2, open: openVulkan},
}

// openVulkan runs kernels on the first device that the loader finds, under the validation layer.
func openVulkan(t *testing.T, d *device) func(t *testing.T, op string, jobs []*job) {
	i, err := vulkan.Open(vulkan.Options{Validate: true})
	if err != nil {
		t.Fatal(err)
	}
	infos, err := i.Devices()
	if err != nil || len(infos) != 1 {
		t.Fatalf("%s: %d devices: %v", d.driver, len(infos), err)
	}
	if name := checkers.DeviceName(d.driver); !strings.Contains(infos[0].Name, name) {
		t.Fatalf("%s: the device is %s, not %s", d.driver, infos[0].Name, name)
	}
	dev, err := i.NewDevice(infos[0])
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(dev.Close(), i.Close()); err != nil {
			t.Error(err)
		}
	})
	return func(_ *testing.T, _ string, jobs []*job) {
		var r *vulkan.Runner
		var last *module
		closeRunner := func() error {
			if r == nil {
				return nil
			}
			old := r
			r = nil
			return old.Close()
		}
		each(jobs, func(j *job, v values) error {
			if j.module != last {
				if err := closeRunner(); err != nil {
					return err
				}
				var err error
				k := vulkan.Kernel{SPIRV: []byte(j.text), Entry: j.Name.Entry(), Threads: j.Launch.Threads, Shared: j.Shared, Buffers: len(v.buffers)}
				if r, err = dev.NewRunner(k, len(v.ints), len(v.floats)); err != nil {
					return err
				}
				last = j.module
			}
			return r.Run(vulkan.Launch{Buffers: v.buffers, Ints: v.ints, Floats: v.floats, Tiles: j.blocks()})
		})
		if err := closeRunner(); err != nil {
			jobs[0].err = errors.Join(jobs[0].err, err)
		}
	}
}

// drivers lists the Vulkan drivers.
func drivers() (list []string) {
	for _, d := range devices {
		if d.driver != "" && !slices.Contains(list, d.driver) {
			list = append(list, d.driver)
		}
	}
	return list
}

// The same on Vulkan drivers, each in a process of its own, since the loader reads its environment but once and a driver may
// end the process.
func TestDriversEqualReference(t *testing.T) {
	if os.Getenv(driverOf) != "" || testing.Short() {
		t.Skip("takes long to compile kernels")
	}
	for _, driver := range drivers() {
		t.Run(driver, func(t *testing.T) {
			icd := checkers.Need(t, driver)
			checkers.Need(t, checkers.Validation)
			args := []string{"-test.v", "-test.run=^(TestGPUKernelsEqualReference|TestMutantsAreSeen)$"}
			if *exhaustive {
				args = append(args, "-exhaustive")
			}
			if end, ok := t.Deadline(); ok { // without which the process would outlive this one
				args = append(args, fmt.Sprintf("-test.timeout=%v", max(time.Until(end)-5*time.Second, time.Second)))
			}
			cmd := exec.Command(os.Args[0], args...)
			cmd.Env = append(os.Environ(), driverOf+"="+driver, "VK_DRIVER_FILES="+icd, "VK_ICD_FILENAMES="+icd)
			out, err := cmd.CombinedOutput()
			reports := 0
			for line := range strings.Lines(string(out)) {
				report := strings.Contains(line, " cases ") || strings.Contains(line, " faults seen")
				if report {
					reports++
				}
				if report || err != nil {
					t.Log(strings.TrimSpace(line))
				}
			}
			if err != nil {
				t.Errorf("%s: %v", driver, err)
			}
			if reports < 3 { // the reference's cases, a device's, and its faults
				t.Errorf("%s: hardly anything was run", driver)
			}
		})
	}
}
