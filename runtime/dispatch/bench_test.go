package dispatch_test

import (
	"fmt"
	"testing"
	"time"
	"unsafe"

	"github.com/swizzle-rt/swizzle/generated/avx"
	"github.com/swizzle-rt/swizzle/runtime/device/cpu"
	"github.com/swizzle-rt/swizzle/runtime/kernel"
)

// BenchmarkGEMM times the matrix product kernels of this CPU on a problem whose activations stay in the cache. The figure is
// that of the fastest run, which other processes disturb least.
func BenchmarkGEMM(b *testing.B) {
	features := cpu.Detect()
	for _, k := range avx.Kernels() {
		rows, ok := k.Name.Param("m")
		if !ok || k.Pack == "" || !features.Supports(cpu.ISA(k.Name.Arch)) {
			continue
		}
		b.Run(fmt.Sprintf("%s/m%d/%s", k.Name.Op, rows, k.Name.Arch), func(b *testing.B) {
			const n, kk = 256, 1024
			var a kernel.Args
			buf := func(bytes int) unsafe.Pointer {
				m, err := cpu.Alloc(bytes)
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { m.Free() })
				return unsafe.Pointer(unsafe.SliceData(m.Bytes()))
			}
			m := rows
			if rows >= 4 {
				m = 48 / rows * rows
			}
			for _, p := range k.Params {
				switch {
				case p.Kind == kernel.Buffer:
					a.Buf[p.Slot] = buf(1 << 20)
				case p.Name == "m":
					a.Int[p.Slot] = int64(m)
				case p.Name == "n", p.Name == "ldo":
					a.Int[p.Slot] = n
				case p.Name == "k":
					a.Int[p.Slot] = kk
				}
			}
			a.Scratch = buf(kernel.ScratchBytes)
			best := time.Hour
			tiles := k.Tiles(&a)
			for b.Loop() {
				start := time.Now()
				k.Func(&a, 0, tiles)
				best = min(best, time.Since(start))
			}
			b.ReportMetric(2*float64(m)*n*kk/float64(best.Nanoseconds()), "GOPS")
		})
	}
}

// BenchmarkAttention times attention of 48 rows over a full segment.
func BenchmarkAttention(b *testing.B) {
	features := cpu.Detect()
	for _, k := range avx.Kernels() {
		rows, ok := k.Name.Param("r")
		if !ok || rows < 4 || k.Name.Op != "attention_f16" || !features.Supports(cpu.ISA(k.Name.Arch)) {
			continue
		}
		for _, hd := range []int{64, 128} {
			b.Run(fmt.Sprintf("r%d/%s/hd%d", rows, k.Name.Arch, hd), func(b *testing.B) {
				var a kernel.Args
				buf := func(bytes int) unsafe.Pointer {
					m, err := cpu.Alloc(bytes)
					if err != nil {
						b.Fatal(err)
					}
					b.Cleanup(func() { m.Free() })
					return unsafe.Pointer(unsafe.SliceData(m.Bytes()))
				}
				const m = 48
				for _, p := range k.Params {
					switch {
					case p.Name == "position":
						a.Buf[p.Slot] = buf(4 * m)
						for i, x := 0, unsafe.Slice((*int32)(a.Buf[p.Slot]), m); i < m; i++ {
							x[i] = 255
						}
					case p.Kind == kernel.Buffer:
						a.Buf[p.Slot] = buf(1 << 18)
					case p.Name == "rows":
						a.Int[p.Slot] = m
					case p.Name == "hd":
						a.Int[p.Slot] = int64(hd)
					case p.Name == "window":
						a.Int[p.Slot] = 1 << 30
					default:
						a.Int[p.Slot] = 1
					}
				}
				a.Scratch = buf(kernel.ScratchBytes)
				best := time.Hour
				tiles := k.Tiles(&a)
				for b.Loop() {
					start := time.Now()
					k.Func(&a, 0, tiles)
					best = min(best, time.Since(start))
				}
				b.ReportMetric(4*m*256*float64(hd)/float64(best.Nanoseconds()), "GFLOPS")
			})
		}
	}
}
