package avx
import ("testing";"fmt";"time";"math/rand/v2")
func TestDbgTiles(t *testing.T) {
	p := newProgram(t)
	r := rand.New(rand.NewPCG(7, 8))
	const n, m, nb = 1536, 48, 32
	type cfg struct{arch string; lanes, mt, il int}
	var cs []cfg
	for _, a := range []string{"avxvnni","avx2"} { for _, l := range []int{8,16} { for _, mt := range []int{4,8} { for _, il := range []int{1,2,4} { cs = append(cs, cfg{a,l,mt,il}) } } } }
	var ok []cfg
	for _, c := range cs {
		k := buildLowered(t, "q8", c.lanes, q8Tile(c.lanes, c.mt, c.il))
		s := time.Now()
		o, err := Emit(k, Options{Arch: c.arch, Symbol: "x", Package: "x"})
		if err != nil { fmt.Println(c, err); continue }
		fmt.Println(c, o.Instructions, "vspill", o.VectorSpills, "spill", o.Spills, time.Since(s))
		p.tryAdd(t, k, c.arch, q8Args(r, c.lanes, n, m, nb)); ok = append(ok, c)
	}
	p.build(t)
	var jobs []job
	for i, s := range p.call { x := p.runs[i].args
		jobs = append(jobs, job{Symbol: s, Buffers: x.Buffers, Ints: x.Ints, Hi: p.runs[i].hi, Repeat: 100}) }
	for i, rp := range p.execute(t, jobs) { fmt.Println(ok[i], 2*n*m*nb*32/rp.Seconds/1e9) }
}
