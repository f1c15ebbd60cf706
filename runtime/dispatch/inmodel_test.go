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

func BenchmarkInModel(b *testing.B) {
	for _, fm := range []struct {
		op        string
		span, rec int
	}{{"gemm_q8_0", 64, 1088 + 0}, {"gemm_q4_k", 256, 2368}} {
		for _, k := range avx.Kernels() {
			if k.Name.Op != fm.op || k.Name.Arch != "avx512vnni" || (k.Name.Config != "m12" && k.Name.Config != "m8") {
				continue
			}
			for _, sh := range [][2]int{{1024, 3072}, {3072, 1024}, {1024, 1024}, {256, 1024}} {
				for _, cold := range []int{1, 100} {
					for _, panelKB := range []int{256, 512} {
						n, kk := sh[0], sh[1]
						tileBytes := (kk + fm.span - 1) / fm.span * fm.rec
						if fm.op == "gemm_q8_0" {
							tileBytes = kk / 32 * 16 * 34
						}
						panel := max(1, panelKB<<10/tileBytes) * 16
						b.Run(fmt.Sprintf("%s/%s/n%d/k%d/p%d/c%d", fm.op, k.Name.Config, n, kk, panelKB, cold), func(b *testing.B) {
							buf := func(bytes int) unsafe.Pointer {
								m, err := cpu.Alloc(bytes)
								if err != nil {
									b.Fatal(err)
								}
								b.Cleanup(func() { m.Free() })
								return unsafe.Pointer(unsafe.SliceData(m.Bytes()))
							}
							const m = 504
							act, w, out, scratch := buf(m/4*kk/32*192+4096), buf(cold*((n+15)/16*tileBytes)+8192), buf(min(cold, 8)*m*n*4), buf(kernel.ScratchBytes)
							best := time.Hour
							for i := range cap(make([]byte, cold*(n+15)/16*tileBytes)) {
								if i%4096 == 0 {
									*(*byte)(unsafe.Add(w, i)) = 1
								}
							}
							it := 0
							for b.Loop() {
								w := unsafe.Add(w, it%cold*((n+15)/16*tileBytes))
								out := unsafe.Add(out, it%min(cold, 8)*m*n*4)
								it++
								start := time.Now()
								for col := 0; col < n; col += panel {
									var a kernel.Args
									a.Scratch = scratch
									mm := m
									for _, p := range k.Params {
										switch p.Name {
										case "act":
											a.Buf[p.Slot] = act
										case "w":
											a.Buf[p.Slot] = unsafe.Add(w, col/16*tileBytes)
										case "out":
											a.Buf[p.Slot] = unsafe.Add(out, col*4)
										case "m":
											a.Int[p.Slot] = int64(mm)
										case "n":
											a.Int[p.Slot] = int64(min(panel, n-col))
										case "ldo":
											a.Int[p.Slot] = int64(n)
										case "k":
											a.Int[p.Slot] = int64(kk)
										}
									}
									k.Func(&a, 0, k.Tiles(&a))
								}
								best = min(best, time.Since(start))
							}
							b.ReportMetric(2*float64(m)*float64(n)*float64(kk)/float64(best.Nanoseconds()), "GOPS")
						})
					}
				}
			}
		}
	}
}
