// Package vulkan runs compute kernels on Vulkan 1.1 devices, without cgo: the loader is opened at run time.
//
// An [Instance] lists the devices; a [Device] makes a [Buffer] in memory that the host sees and a [Pipeline] of a SPIR-V
// module, and runs it. What a module asks of a device by its capabilities is checked before the driver sees it: some drivers
// end the process over one that they lack. Everything is closed by whoever made it, in the reverse order. [Runner] does all of
// this for one kernel on data of the host.
//
// # Numerics
//
// Modules leave the float controls of the device open, since not every device has all of them; [Device.NewPipeline] adds
// those that it has, for 32-bit floats: signed zeros, infinities and NaNs preserved, subnormals preserved, rounding to nearest
// even. Mesa's llvmpipe 22.3 offers the first and the third, SwiftShader the first. What a driver does without a promise only
// running kernels tells: llvmpipe keeps subnormals, SwiftShader flushes them, both round to nearest even.
package vulkan
