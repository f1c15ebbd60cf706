package ptx

import "testing"

func TestOccupancy(t *testing.T) {
	for _, c := range []struct {
		arch                  string
		regs, threads, shared int
		blocks                int
		limiter               string
	}{
		// Two stages of two 64 × 64 tiles of f16, rows padded by 16 bytes, and swizzled.
		{"sm_75", 96, 128, 36864, 1, "shared memory"},
		{"sm_75", 96, 128, 32768, 2, "shared memory"},
		{"sm_86", 96, 128, 36864, 2, "shared memory"},
		{"sm_86", 96, 128, 32768, 3, "shared memory"},
		{"sm_89", 96, 128, 36864, 2, "shared memory"},
		{"sm_89", 96, 128, 32768, 3, "shared memory"},
		{"sm_120", 96, 128, 36864, 2, "shared memory"},
		{"sm_120", 96, 128, 32768, 3, "shared memory"},
		{"sm_80", 96, 128, 36864, 4, "shared memory"},
		{"sm_80", 96, 128, 32768, 4, "shared memory"},
		{"sm_90", 96, 128, 36864, 5, "registers"},
		{"sm_90", 96, 128, 32768, 5, "registers"},
		{"sm_100", 96, 128, 36864, 5, "registers"},
		{"sm_100", 96, 128, 32768, 5, "registers"},

		{"sm_75", 32, 32, 0, 16, "blocks"},
		{"sm_80", 32, 32, 0, 32, "blocks"},
		{"sm_86", 16, 1024, 0, 1, "warps"},
		{"sm_90", 16, 1024, 0, 2, "warps"},
		{"sm_90", 64, 1024, 0, 1, "registers"},
		{"sm_90", 65, 1024, 0, 0, "registers"},
		{"sm_90", 255, 256, 0, 1, "registers"},
		{"sm_90", 256, 32, 0, 0, "registers"},
		{"sm_90", 32, 33, 0, 32, "blocks"},
		{"sm_90", 168, 128, 0, 3, "registers"},
		{"sm_90", 32, 1025, 0, 0, "warps"},
		{"sm_90", 32, 0, 0, 0, "warps"},
		{"sm_75", 32, 128, 64 << 10, 1, "shared memory"},
		{"sm_75", 32, 128, 64<<10 + 1, 0, "shared memory"},
		{"sm_80", 32, 128, 163 << 10, 1, "shared memory"},
		{"sm_80", 32, 128, 163<<10 + 1, 0, "shared memory"},
		{"sm_70", 32, 128, 0, 0, "architecture"},
	} {
		blocks, limiter := Occupancy(c.arch, c.regs, c.threads, c.shared)
		if blocks != c.blocks || limiter != c.limiter {
			t.Errorf("%s, %d registers, %d threads, %d bytes: %d blocks by %s, want %d by %s", c.arch, c.regs, c.threads, c.shared, blocks, limiter, c.blocks, c.limiter)
		}
	}
}
