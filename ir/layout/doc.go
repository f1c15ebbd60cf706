// Package layout describes how a tile lies in memory: a map from coordinates
// to offsets, as a value with an algebra.
//
// A [Layout] is shape : stride. The 8×128 row-major tile is (8,128):(128,1),
// and coordinate (2, 5) lies at 2·128 + 5·1 = 261. Offsets count whatever the
// strides count: elements, words or bytes.
//
// A layout is also a function of one index. [Layout.At] numbers the coordinates
// with the first one running fastest, as CuTe does, and the operations of the
// algebra are laws about that function:
//
//	Coalesce    l.Coalesce().At(i) = l.At(i)                 fewest modes
//	Compose     a.Compose(b).At(i) = a.At(b.At(i))
//	Inverse     l.Inverse().At(l.At(i)) = i                  bijective layouts
//	Complement  l and its complement reach every offset once, as a sum
//	Divide      the same offsets, by coordinate within a tile, then by tile
//	Permute     the same offsets, by reordered coordinates
//
// A [Swizzle] moves offsets by exclusive or, so that a warp reading down a
// column of a tile in shared memory meets 32 different banks. [Swizzled] is a
// layout with a swizzle behind it, [ForRows] chooses one, and [Conflicts] counts
// what an access costs.
//
// Shapes, strides and the algebra follow CuTe (NVIDIA CUTLASS, "CuTe Layout
// Algebra"), restricted to flat shapes and strides that are not negative.
package layout
