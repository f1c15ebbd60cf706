package msl

import (
	"errors"
	"strings"
	"testing"

	"github.com/swizzle-rt/swizzle/ir"
	"github.com/swizzle-rt/swizzle/ir/target"
)

// The whole text of a small kernel.
func TestText(t *testing.T) {
	k := mustBuild(t, "scale", 1, func(b *ir.Builder) {
		x, w, out := b.In("x", ir.F32), b.In("w", ir.F16), b.Out("out", ir.F32)
		m, k, f := b.Int("m"), b.Int("k"), b.Float("factor")
		row := b.Tiles(m, 1)
		at := b.Tiles(k, 32).Mul(32).Add(b.Lane())
		mask := at.Lt(k)
		i := row.Mul(k).Add(at)
		v := b.LoadMasked(x, i, mask).Mul(f).Add(b.F32(1.5))
		b.StoreMasked(out, i, v.Mul(b.LoadMasked(w, at, mask)), mask)
	})
	o, err := Emit(k, Options{Arch: arch, Symbol: "scale__any__metal3", Header: "// Printed."})
	if err != nil {
		t.Fatal(err)
	}
	want := `// Printed.
#pragma METAL fp math_mode(safe)
#pragma METAL fp contract(off)
#include <metal_stdlib>
using namespace metal;
#define F as_type<float>
#define U as_type<uint>
struct Args{
int n0; // m
int n1; // k
float f0; // factor
float zero;
};
inline float h2f(ushort h){
	uint a=h&0x7FFF,b=(a<<13)+(a<0x7C00?0x38000000:0x70000000);
	b=a>0x7C00?b|0x400000:b;
	b=a<0x400?U(F(a+0x3F000000)-F(0x3F000000)):b;
	return F(b|uint(h&0x8000)<<16);
}
[[max_total_threads_per_threadgroup(128)]] kernel void scale__any__metal3(
device const float* p0[[buffer(0)]], // x
device const ushort* p1[[buffer(1)]], // w
device float* p2[[buffer(2)]], // out
constant Args&a[[buffer(12)]],
uint3 B[[threadgroup_position_in_grid]],
uint3 N[[threadgroups_per_grid]],
uint L[[thread_index_in_simdgroup]],
uint W[[simdgroup_index_in_threadgroup]]){
	int t=int(B.y*N.x+B.x)*4+int(W);
	int n0=a.n0,t0=t%n0;t/=n0;
	if(t>=(a.n1+31)/32)return;
	int t1=t;
	int l=int(L);
	float z=a.zero;
	int v0=t1*32+l;
	bool v1=v0<a.n1;
	int v2=t0*a.n1+v0;
	if(v1)p2[v2]=((v1?p0[v2]:z)*a.f0+F(0x3FC00000))*(v1?h2f(p1[v0]):z);
}
`
	if string(o.Text) != want {
		t.Errorf("the text is\n%s", o.Text)
	}
	if o.Threads != 128 || o.Tiles != 4 || o.Shared != 0 {
		t.Errorf("%d threads, %d tiles, %d bytes of shared memory", o.Threads, o.Tiles, o.Shared)
	}
}

// A threadgroup has one tile where lanes of different groups meet.
func TestLaunch(t *testing.T) {
	for _, c := range []struct {
		name                   string
		groups                 int
		build                  func(b *ir.Builder)
		threads, tiles, shared int
	}{
		{"alone", 1, func(b *ir.Builder) {}, 128, 4, 0},
		{"groups", 3, func(b *ir.Builder) {}, 96, 1, 0},
		{"barrier", 1, func(b *ir.Builder) { b.Barrier() }, 32, 1, 0},
		{"shared", 1, func(b *ir.Builder) { b.Shared("s", ir.I8, 65); b.Shared("u", ir.I8, 3) }, 32, 1, 144},
	} {
		o, err := Emit(mustBuild(t, c.name, c.groups, c.build), Options{Arch: arch, Symbol: "f"})
		if err != nil {
			t.Fatal(err)
		}
		if o.Threads != c.threads || o.Tiles != c.tiles || o.Shared != c.shared {
			t.Errorf("%s: %d threads, %d tiles, %d bytes of shared memory", c.name, o.Threads, o.Tiles, o.Shared)
		}
	}
}

func TestRefusals(t *testing.T) {
	for _, c := range []struct {
		want  string
		arch  string
		lanes int
		build func(b *ir.Builder)
	}{
		{`no architecture is named "metal9"`, "metal9", 32, func(b *ir.Builder) {}},
		{"16 lanes; a simdgroup has 32", arch, 16, func(b *ir.Builder) {}},
		{"metal3 has no ldmatrix", arch, 32, func(b *ir.Builder) { b.LdMatrix(b.Shared("s", ir.U32, 256), 1, b.Lane().Mul(4)) }},
		{"metal3 has no frag.coord", arch, 32, func(b *ir.Builder) { b.FragCoord(target.M16N8K32S8, 0) }},
		{"32832 bytes of shared arrays; a threadgroup of metal3 has 32768", arch, 32, func(b *ir.Builder) { b.Shared("s", ir.U8, 32768+64) }},
		{"index 2147483648 has more than 32 bits", arch, 32, func(b *ir.Builder) { b.Store(b.Out("x", ir.F32), b.Lane().Add(1<<31), b.F32(1)) }},
		{"not constant after unrolling", arch, 32, func(b *ir.Builder) {
			r := b.Reg("r", ir.F32, 4)
			r.Fill(b.F32(1))
			b.Store(b.Out("x", ir.F32), b.Lane(), r.At(b.Int("n")))
		}},
	} {
		k, err := ir.Build("refused", c.lanes, 1, c.build)
		if err != nil {
			t.Fatal(err)
		}
		_, err = Emit(k, Options{Arch: c.arch, Symbol: "f"})
		var e *ir.Error
		if !errors.As(err, &e) || !strings.Contains(e.Msg, c.want) {
			t.Errorf("%v does not mention %q", err, c.want)
		}
	}
}
