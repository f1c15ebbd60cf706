package sim_test

import "testing"

// Time of a lane-instruction: arithmetic alone, and a loop that loads, computes and stores.
func BenchmarkRun(b *testing.B) {
	const before = "setp.eq.u32 %p0, %r0, 5;\nmov.u32 %r10, s;\nmad.lo.u32 %r10, %r0, 4, %r10;\nmov.b32 %r1, 0;\nmov.b32 %r2, 0x3F800000;\nL:\n"
	const after = "\nadd.u32 %r1, %r1, 1;\nsetp.lt.u32 %p1, %r1, 1000;\n@%p1 bra.uni L;"
	for _, c := range []struct{ name, body string }{
		{"arithmetic", "xor.b32 %r3, %r1, %r0;\nmul.rn.f32 %r4, %r2, %r2;\nadd.rn.f32 %r2, %r4, %r2;\nmad.lo.s64 %d5, %d2, 3, %d3;\nselp.b32 %r5, %r3, %r4, %p0;\ndp4a.s32.s32 %r6, %r3, %r4, %r5;\nshr.u32 %r7, %r6, 3;"},
		{"memory", "ld.global.nc.b32 %r3, [%d2];\nld.global.b32 %r4, [%d3];\nadd.rn.f32 %r4, %r4, %r3;\nst.shared.b32 [%r10], %r4;\nld.shared.b32 %r5, [%r10];\nst.global.b32 [%d3], %r5;"},
	} {
		b.Run(c.name, func(b *testing.B) {
			d := newDevice(1024, 1024)
			d.block = 128
			text := kernel("sm_80", before+c.body+after)
			lanes := int64(0)
			for b.Loop() {
				r, err := d.run(text)
				if err != nil {
					b.Fatal(err)
				}
				lanes += r.LaneInstrs
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(lanes), "ns/lane-instr")
		})
	}
}
