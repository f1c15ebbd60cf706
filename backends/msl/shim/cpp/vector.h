// Vector types as structs: what kernels use of them. A packed vector has the alignment of its elements. Like the compiler's
// own vectors they may alias anything.
#pragma once

typedef unsigned int uint;
typedef unsigned short ushort;
typedef unsigned char uchar;

template <class T, int N, int Align> struct vec;

template <class T, int Align> struct __attribute__((may_alias, aligned(Align))) vec<T, 2, Align> {
	T x, y;
	vec() = default;
	explicit vec(T s) : x(s), y(s) {}
	vec(T a, T b) : x(a), y(b) {}
	template <int A> vec(const vec<T, 2, A> &v) : x(v.x), y(v.y) {}
};

template <class T, int Align> struct __attribute__((may_alias, aligned(Align))) vec<T, 4, Align> {
	T x, y, z, w;
	vec() = default;
	explicit vec(T s) : x(s), y(s), z(s), w(s) {}
	vec(T a, T b, T c, T d) : x(a), y(b), z(c), w(d) {}
	template <int A> vec(const vec<T, 4, A> &v) : x(v.x), y(v.y), z(v.z), w(v.w) {}
};

#define VECTORS(T) \
	typedef vec<T, 2, 2 * sizeof(T)> T##2; \
	typedef vec<T, 4, 4 * sizeof(T)> T##4; \
	typedef vec<T, 2, sizeof(T)> packed_##T##2; \
	typedef vec<T, 4, sizeof(T)> packed_##T##4;
VECTORS(float)
VECTORS(uint)
VECTORS(short)
VECTORS(ushort)
VECTORS(char)
VECTORS(uchar)
#undef VECTORS

struct uint3 {
	uint x, y, z;
};
