package msl

// A helper is a function that is printed before the kernel where the kernel calls it.
type helper struct{ name, text string }

// helpers lists them in the order in which they are printed. Folds run strides 16 … 1: addition commutes, so all lanes get
// the bits of lane 0. maxf compares the lower lanes' maximum with the upper ones', so that of equal values the first lane's
// stays, then takes lane 0's. pack joins four lanes' bytes by two exchanges. f16 subnormals are made and rounded by a sum with
// 0.5, whose unit in the last place is theirs.
var helpers = []helper{
	{"dotus", `inline uint dotus(uint u,uint s,uint c){
	return c+uint(int(u&255)*int(char(s))+int(u>>8&255)*int(char(s>>8))+int(u>>16&255)*int(char(s>>16))+int(u>>24)*(int(s)>>24));
}
`},
	{"dotss", `inline uint dotss(uint u,uint s,uint c){
	return c+uint(int(char(u))*int(char(s))+int(char(u>>8))*int(char(s>>8))+int(char(u>>16))*int(char(s>>16))+(int(u)>>24)*(int(s)>>24));
}
`},
	{"look", `inline uint look(constant uchar*t,uint v){
	return uint(t[v&15])|uint(t[v>>8&15])<<8|uint(t[v>>16&15])<<16|uint(t[v>>24&15])<<24;
}
`},
	{"shl", "inline uint shl(uint x,uint n){return n<32?x<<n:0;}\n"},
	{"shr", "inline uint shr(uint x,uint n){return n<32?x>>n:0;}\n"},
	{"sar", "inline uint sar(uint x,uint n){return uint(int(x)>>min(n,31u));}\n"},
	{"pack", `inline uint pack(uint v,int l){
	v=(v&255)<<(l&3)*8;
	v|=simd_shuffle_xor(v,1);
	return v|simd_shuffle_xor(v,2);
}
`},
	{"sum", `template<class T>inline T sum(T v){
	for(ushort s=16;s>0;s/=2)v+=simd_shuffle_xor(v,s);
	return v;
}
`},
	{"maxu", `inline uint maxu(uint v){
	for(ushort s=16;s>0;s/=2)v=max(v,simd_shuffle_xor(v,s));
	return v;
}
`},
	{"maxf", `inline float maxf(float v){
	v=(U(v)&0x7FFFFFFF)>0x7F800000?F(0xFF800000):v;
	for(ushort s=1;s<32;s*=2){
		float o=simd_shuffle_xor(v,s);
		v=o>v?o:v;
	}
	return simd_broadcast(v,0);
}
`},
	{"h2f", `inline float h2f(ushort h){
	uint a=h&0x7FFF,b=(a<<13)+(a<0x7C00?0x38000000:0x70000000);
	b=a>0x7C00?b|0x400000:b;
	b=a<0x400?U(F(a+0x3F000000)-F(0x3F000000)):b;
	return F(b|uint(h&0x8000)<<16);
}
`},
	{"f2h", `inline ushort f2h(float x){
	uint a=U(x)&0x7FFFFFFF,h=(a-0x38000000+0xFFF+(a>>13&1))>>13;
	h=a<0x47800000?h:0x7C00;
	h=a>0x7F800000?0x7E00|(a>>13&0x3FF):h;
	h=a<0x38800000?U(F(a)+F(0x3F000000))-0x3F000000:h;
	return ushort(h|(U(x)>>16&0x8000));
}
`},
	{"f2b", `inline ushort f2b(float x){
	uint b=U(x),h=(b+0x7FFF+(b>>16&1))>>16;
	return ushort((b&0x7FFFFFFF)>0x7F800000?b>>16|0x40:h);
}
`},
}

func (p *printer) helper(name string) string {
	p.needs[name] = true
	return name
}
