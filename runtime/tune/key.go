package tune

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
)

// Schema is the version of a profile's lines. A line of another version is not read.
const Schema = 1

// Key is all that a measurement is valid for.
type Key struct {
	Schema  int    `json:"schema"`
	Device  Device `json:"device"`
	Kernels string `json:"kernels"` // hash of the set of kernels
}

// Device is what tells one CPU from another, as a process sees it. What is unknown is 0 or "".
type Device struct {
	Vendor   string    `json:"vendor"`
	Family   int       `json:"family"`
	Model    int       `json:"model"`
	Stepping int       `json:"stepping"`
	GOARCH   string    `json:"goarch"`
	ISA      cpu.ISA   `json:"isa"`     // that kernels are chosen for
	ISAs     []cpu.ISA `json:"isas"`    // that the CPU and the system support
	Threads  int       `json:"threads"` // workers
	CPUs     int       `json:"cpus"`    // that affinity and control groups allow
	L1D      int       `json:"l1d"`     // bytes
	L2       int       `json:"l2"`
	L3       int       `json:"l3"`
}

// DeviceOf describes the machine, for kernels of an ISA on so many workers.
func DeviceOf(info cpu.Info, isa cpu.ISA, threads int) Device {
	return Device{
		Vendor: info.Vendor, Family: info.Family, Model: info.Model, Stepping: info.Stepping, GOARCH: runtime.GOARCH,
		ISA: isa, ISAs: info.Features.Available(), Threads: threads, CPUs: cpu.WorkerCount(0), L1D: info.L1D, L2: info.L2, L3: info.L3,
	}
}

// ID is the key's hash, in hexadecimal: the base of its file's name.
func (k Key) ID() string {
	text, err := json.Marshal(k)
	if err != nil {
		panic(err) // not reached: a key has nothing that JSON can't hold
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:16])
}

// Dir returns the directory of profiles: swizzle/tune below XDG_CACHE_HOME or, without that, the user's cache directory.
func Dir() (string, error) {
	base := os.Getenv("XDG_CACHE_HOME")
	if !filepath.IsAbs(base) {
		var err error
		if base, err = os.UserCacheDir(); err != nil {
			return "", errors.Join(errors.New("no directory for profiles"), err)
		}
	}
	return filepath.Join(base, "swizzle", "tune"), nil
}
