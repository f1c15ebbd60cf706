package conform

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/swizzle-rt/swizzle/backends/checkers"
)

// Every SPIR-V module is valid for Vulkan 1.1.
func TestSPIRVIsValid(t *testing.T) {
	if testing.Short() {
		t.Skip("runs a program for each module")
	}
	validator := checkers.Need(t, "spirv-val")
	file := filepath.Join(t.TempDir(), "module.spv")
	n := 0
	for _, arch := range []string{"vk", "vkdot"} {
		for _, list := range modules(t)[arch] {
			for _, m := range list {
				if err := os.WriteFile(file, []byte(m.text), 0o666); err != nil {
					t.Fatal(err)
				}
				if out, err := exec.Command(validator, "--target-env", "vulkan1.1", file).CombinedOutput(); err != nil {
					t.Errorf("%s: %v: %s", m.Name, err, out)
				}
				n++
			}
		}
	}
	if n == 0 {
		t.Error("there is no module")
	}
	t.Logf("%d modules", n)
}
