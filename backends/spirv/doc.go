// Package spirv prints kernels as SPIR-V 1.3 modules for Vulkan 1.1, one entry point a module, without names or other text for
// debugging.
//
// # Architectures
//
// vk asks a device for nothing but the capability Shader: memory is words, parts of which are loaded by shifts and stored by
// atomic and/or; a dot product multiplies bytes; lanes exchange words through shared memory. vkdot uses, where a kernel has a
// use for them, buffers of 8-bit and 16-bit elements, integer dot products (SPV_KHR_integer_dot_product) and shuffles in
// subgroups. Both keep to 256 threads and 32 KiB of shared memory a workgroup. Without such a use the two modules are the same.
//
// # Launch
//
// A workgroup of Output.Threads lanes computes tile x + y·(workgroups in x) of the flattened grid; one beyond the last tile
// does nothing. Buffer slot s is the storage buffer of set 0, binding s; an index counts the elements from the binding's
// offset on and has 32 bits. The push constants are words: the integers by slot, the floats by slot, then a float that must be
// +0. Buffers hold at least four bytes.
//
// Specialisation constant 0, where a module has it, is the number of lanes of every subgroup, a power of two, if the pipeline
// asks for full subgroups of that size, and otherwise 1, its default. Lanes are numbered along subgroups; a shuffle whose mask
// is below that number stays in the subgroup, others go through shared memory. So one module is right for every size.
//
// # Numerics
//
// Every float instruction has NoContraction, comparisons too, so that no driver makes a maximum of its own of a comparison and
// a selection. ±0 comes from the last push constant: drivers fold 0 + x even so. Exact products use Fma, which may be fused
// or not. f16 and bf16 are converted by integer functions, since SPIR-V leaves subnormals open there. Float controls
// (subnormals, rounding) are not in the module, since not every device has them; runtime/device/vulkan adds those that a device
// has.
//
// What drivers do, as the tests of this package find it: llvmpipe (Mesa 22.3) offers no DenormPreserve for 32 bits, but keeps
// subnormals as operands, results and constants; SwiftShader offers neither DenormPreserve nor RoundingModeRTE, rounds to
// nearest even and flushes subnormals of arithmetic to zero, not those that are only moved.
//
// A fold joins lanes by strides 16 … 1 in all lanes at once: the sums of two lanes are the same either way round, so that all
// lanes end with the sum of the first. A maximum of floats is one of integers of the same order.
package spirv
