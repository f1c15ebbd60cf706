// Package gen makes the generated kernels: every op under every config for every target, as files, and the glue that hands
// them to the runtime. What it writes depends on the ops and targets only, never on the machine.
package gen

//go:generate go run ../cmd/swizzlegen -o ../generated
