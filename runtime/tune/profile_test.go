package tune

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/dispatch"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

func testKey() Key {
	return Key{Schema, Device{
		Vendor: "V", Family: 1, Model: 2, Stepping: 3, GOARCH: "amd64", ISA: cpu.AVX2, ISAs: []cpu.ISA{cpu.AVX2, cpu.Portable}, Threads: 2, CPUs: 2, L1D: 1, L2: 2, L3: 3,
	}, "set"}
}

func testEntry(m int, winner string) Entry {
	return Entry{
		Problem: Problem{"gemm_q8_0", 64, 256, m}, From: m, To: m, Default: []string{"gemm_q8_0__m4__avx2"}, Winner: []string{winner},
		Measured: []Measurement{{Kernels: []string{winner}, Median: 5, Reason: "chosen"}},
	}
}

func mustLoad(t *testing.T, dir string, k Key) *Profile {
	t.Helper()
	p, err := Load(dir, k)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func save(t *testing.T, dir string, k Key, entries ...Entry) *Profile {
	t.Helper()
	p := mustLoad(t, dir, k)
	for _, e := range entries {
		p.Put(e)
	}
	if err := p.Save(); err != nil {
		t.Fatal(err)
	}
	return p
}

func TestSaveAndLoad(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "a", "b")
	save(t, dir, testKey(), testEntry(12, "gemm_q8_0__m4__avx2"), testEntry(4, "gemm_q8_0__m4__portable"))
	p := save(t, dir, testKey(), testEntry(8, "gemm_q8_0__m3__avx2"))
	q := mustLoad(t, dir, testKey())
	if diff := cmp.Diff(p.Entries(), q.Entries()); diff != "" || len(q.Entries()) != 3 {
		t.Errorf("%d entries; saved against loaded:\n%s", len(q.Entries()), diff)
	}
	text, err := os.ReadFile(p.Path)
	if err != nil {
		t.Fatal(err)
	}
	var order []int
	for line := range bytes.Lines(text) {
		var e Entry
		if err := json.Unmarshal(line, &e); err != nil {
			t.Fatal(err)
		}
		order = append(order, e.M)
	}
	if !slices.Equal(order, []int{4, 8, 12}) {
		t.Errorf("lines are in the order %v", order)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 2 {
		t.Errorf("%d files in the directory, want the profile and its lock; %v", len(files), err)
	}
	want := dispatch.Choice{{Op: "gemm_q8_0", N: 64, K: 256}: {
		{From: 4, To: 4, Kernels: []kernel.Name{{Op: "gemm_q8_0", Config: "m4", Arch: "portable"}}},
		{From: 8, To: 8, Kernels: []kernel.Name{{Op: "gemm_q8_0", Config: "m3", Arch: "avx2"}}},
	}}
	got := q.Choice()
	for _, orders := range got {
		slices.SortFunc(orders, func(a, b dispatch.Order) int { return a.From - b.From })
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("choice:\n%s", diff)
	}
	if e, ok := q.Covering(dispatch.Shape{Op: "gemm_q8_0", N: 64, K: 256}, 8); !ok || e.M != 8 {
		t.Errorf("8 rows are covered by %+v, %v", e, ok)
	}
}

// W06: whatever differs on another device, another build or another use of this one, its profile isn't this one's.
func TestOtherDevicesMiss(t *testing.T) {
	dir := t.TempDir()
	save(t, dir, testKey(), testEntry(4, "gemm_q8_0__m4__portable"))
	for name, change := range map[string]func(*Key){
		"schema": func(k *Key) { k.Schema++ }, "kernels": func(k *Key) { k.Kernels = "other" }, "vendor": func(k *Key) { k.Device.Vendor = "W" },
		"family": func(k *Key) { k.Device.Family++ }, "model": func(k *Key) { k.Device.Model++ }, "stepping": func(k *Key) { k.Device.Stepping++ },
		"goarch": func(k *Key) { k.Device.GOARCH = "arm64" }, "ISA": func(k *Key) { k.Device.ISA = cpu.Portable },
		"ISAs": func(k *Key) { k.Device.ISAs = []cpu.ISA{cpu.Portable} }, "threads": func(k *Key) { k.Device.Threads++ },
		"CPUs": func(k *Key) { k.Device.CPUs++ }, "L1": func(k *Key) { k.Device.L1D++ }, "L2": func(k *Key) { k.Device.L2++ }, "L3": func(k *Key) { k.Device.L3++ },
	} {
		k := testKey()
		change(&k)
		if p := mustLoad(t, dir, k); len(p.Entries()) != 0 {
			t.Errorf("%s differs, and the profile is used", name)
		}
		// Neither is it where the file has been copied to the other's name.
		text, err := os.ReadFile(mustLoad(t, dir, testKey()).Path)
		if err != nil {
			t.Fatal(err)
		}
		copied := filepath.Join(t.TempDir(), k.ID()+".json")
		if err := os.WriteFile(copied, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if p := mustLoad(t, filepath.Dir(copied), k); len(p.Entries()) != 0 || p.Ignored != 1 {
			t.Errorf("%s differs, and the copied profile is used: %d entries, %d ignored", name, len(p.Entries()), p.Ignored)
		}
	}
	if p := mustLoad(t, dir, testKey()); len(p.Entries()) != 1 {
		t.Error("the same key misses")
	}
}

// W09: lines without a meaning are ignored, and gone after the next save; those of another key stay as they stand.
func TestDamagedLines(t *testing.T) {
	dir := t.TempDir()
	p := save(t, dir, testKey(), testEntry(4, "gemm_q8_0__m4__portable"))
	good, err := os.ReadFile(p.Path)
	if err != nil {
		t.Fatal(err)
	}
	foreign := strings.Replace(string(good), `"kernels":"set"`, `"kernels":"other build"`, 1)
	damaged := []string{
		"", "{}", "null", "7", "\x00\xff", string(good[:len(good)/2]),
		strings.Replace(string(good), `"schema":1`, `"schema":2`, 1),
		strings.Replace(string(good), `"kernels":"set",`, "", 1),
		strings.Replace(string(good), `"m":4`, `"m":9`, 1), // outside of from … to
		strings.Replace(string(good), `gemm_q8_0__m4__portable`, `gemm_q4_0__m4__portable`, 1),
		strings.Replace(string(good), `"n":64`, `"n":-64`, 1),
		strings.Replace(string(good), `"n":64`, `"n":1e99`, 1),
	}
	if err := os.WriteFile(p.Path, []byte(strings.Join(damaged, "\n")+"\n"+foreign+string(good[:len(good)-1])), 0o600); err != nil {
		t.Fatal(err)
	}
	q := mustLoad(t, dir, testKey())
	if diff := cmp.Diff(p.Entries(), q.Entries()); diff != "" || q.Ignored != len(damaged) {
		t.Errorf("%d lines ignored, want %d:\n%s", q.Ignored, len(damaged), diff)
	}
	if err := q.Save(); err != nil {
		t.Fatal(err)
	}
	healed, err := os.ReadFile(p.Path)
	if err != nil || string(healed) != foreign+string(good) {
		t.Errorf("%v; after a save the file is\n%s", err, healed)
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte("{}\n"))
	f.Add([]byte(`{"schema":1,"key":"` + testKey().ID() + `","kernels":"set","op":"gemm_q8_0","n":1,"k":1,"m":1,"from":1,"to":1,"default":["gemm_q8_0__m1__avx2"],"winner":["gemm_q8_0__m2__avx2"]}`))
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Load(dir, testKey())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p.Path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		p = mustLoad(t, dir, testKey())
		p.Choice()
		if err := p.Save(); err != nil {
			t.Fatal(err)
		}
		q := mustLoad(t, dir, testKey())
		if diff := cmp.Diff(p.Entries(), q.Entries()); diff != "" {
			t.Errorf("saved and loaded:\n%s", diff)
		}
	})
}

// W10: writers of two builds save at once, and a reader of either sees all of one save of its own.
func TestConcurrentWriters(t *testing.T) {
	dir := t.TempDir()
	// Two builds share a file here, as they would if hashes of keys met.
	keys := []Key{testKey(), testKey()}
	keys[1].Kernels = "other"
	path := filepath.Join(dir, "shared.json")
	open := func(k Key) (*Profile, error) {
		c, err := readFile(path, k)
		return &Profile{Key: k, Path: path, entries: c.own}, err
	}
	const rounds, group = 15, 4
	var writers, reader sync.WaitGroup
	done := make(chan struct{})
	for _, k := range keys {
		writers.Go(func() {
			for round := range rounds {
				p, err := open(k)
				if err != nil {
					t.Error(err)
					return
				}
				for m := 1; m <= group; m++ {
					e := testEntry(4*m, "gemm_q8_0__m4__avx2")
					e.Measured[0].Reason = fmt.Sprintf("%s %d", k.Kernels, round)
					p.Put(e)
				}
				if err := p.Save(); err != nil {
					t.Error(err)
				}
			}
		})
	}
	reader.Go(func() {
		for {
			for _, k := range keys {
				p, err := open(k)
				if err != nil {
					t.Error(err)
					return
				}
				list := p.Entries()
				if len(list) != 0 && len(list) != group {
					t.Errorf("%d entries of %s", len(list), k.Kernels)
				}
				for _, e := range list {
					if r := e.Measured[0].Reason; r != list[0].Measured[0].Reason || !strings.HasPrefix(r, k.Kernels+" ") {
						t.Errorf("%s sees %q beside %q", k.Kernels, r, list[0].Measured[0].Reason)
					}
				}
			}
			select {
			case <-done:
				return
			default:
			}
		}
	})
	writers.Wait()
	close(done)
	reader.Wait()
	for _, k := range keys {
		p, err := open(k)
		if err != nil || len(p.Entries()) != group {
			t.Errorf("%s has %d entries in the end; %v", k.Kernels, len(p.Entries()), err)
		}
	}
}

func TestDir(t *testing.T) {
	base := t.TempDir()
	t.Setenv("XDG_CACHE_HOME", base)
	if dir, err := Dir(); err != nil || dir != filepath.Join(base, "swizzle", "tune") {
		t.Errorf("%s, %v", dir, err)
	}
}
