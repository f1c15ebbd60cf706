package checkers

import (
	"os"
	"path/filepath"
	"testing"
)

// write makes an executable file.
func write(t *testing.T, path string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	return path
}

// The tests need a cache folder that an environment variable names, as Linux has.
func cacheFolder(t *testing.T) string {
	dir := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", dir)
	if got, err := os.UserCacheDir(); err != nil || got != dir {
		t.Skip("the cache folder of this system is elsewhere")
	}
	return dir
}

func TestFind(t *testing.T) {
	cache, own, path := cacheFolder(t), t.TempDir(), t.TempDir()
	t.Setenv("PATH", path)
	t.Setenv("SWIZZLE_CUDA_BIN", "")
	t.Setenv("SWIZZLE_SWIFTSHADER_ICD", "")
	expect := func(name, want string) {
		t.Helper()
		if got := Find(name); got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	expect("ptxas", "")
	expect("spirv-val", "")
	inPath := write(t, filepath.Join(path, "ptxas"))
	expect("ptxas", inPath)
	inCache := write(t, filepath.Join(cache, "swizzle/tools/cuda/nvidia/cu13/bin/ptxas"))
	expect("ptxas", inCache)
	t.Setenv("SWIZZLE_CUDA_BIN", own)
	expect("ptxas", inCache) // the folder has none yet
	inOwn := write(t, filepath.Join(own, "ptxas"))
	expect("ptxas", inOwn)
	expect("nvdisasm", "")
	write(t, filepath.Join(own, "spirv-val")) // not one of NVIDIA's programs
	expect("spirv-val", "")

	icd := write(t, filepath.Join(cache, "swizzle/tools/swiftshader/vk_swiftshader_icd.json"))
	expect(SwiftShader, icd)
	t.Setenv("SWIZZLE_SWIFTSHADER_ICD", write(t, filepath.Join(own, "icd.json")))
	expect(SwiftShader, filepath.Join(own, "icd.json"))
}

func TestUseDrivers(t *testing.T) {
	cacheFolder(t)
	names := []string{"VK_DRIVER_FILES", "VK_ICD_FILENAMES"}
	for _, name := range names {
		t.Setenv(name, "another.json")
	}
	icd := write(t, filepath.Join(t.TempDir(), "icd.json"))
	t.Setenv("SWIZZLE_SWIFTSHADER_ICD", icd)
	if err := UseDrivers("no-such-driver", SwiftShader); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if got := os.Getenv(name); got != icd {
			t.Errorf("%s is %q, want %q", name, got, icd)
		}
	}
}

// outcome is a test that only remembers how it ended.
type outcome struct {
	testing.TB
	failed, skipped bool
}

func (*outcome) Helper()                 {}
func (o *outcome) Fatalf(string, ...any) { o.failed = true }
func (o *outcome) Skipf(string, ...any)  { o.skipped = true }

func TestNeed(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	for _, c := range []struct {
		ci              string
		failed, skipped bool
	}{{"true", true, false}, {"", false, true}, {"false", false, true}} {
		t.Setenv("CI", c.ci)
		var o outcome
		if Need(&o, "no-such-program") != "" || o.failed != c.failed || o.skipped != c.skipped {
			t.Errorf("CI=%s: failed %v, skipped %v", c.ci, o.failed, o.skipped)
		}
	}
	program := filepath.Join(t.TempDir(), "there")
	write(t, program)
	t.Setenv("PATH", filepath.Dir(program))
	var o outcome
	if got := Need(&o, "there"); got != program || o.failed || o.skipped {
		t.Errorf("there is %q, failed %v, skipped %v", got, o.failed, o.skipped)
	}
}
