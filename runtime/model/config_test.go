package model_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/swizzle-rt/swizzle/runtime/gguf"
	"github.com/swizzle-rt/swizzle/runtime/model"
)

// openMetadata opens a file of a small model's metadata, some keys replaced or added; nil leaves a key out.
func openMetadata(t *testing.T, arch string, keys map[string]any) *gguf.File {
	t.Helper()
	all := map[string]any{
		"block_count": uint32(7), "context_length": uint32(512), "embedding_length": uint32(64), "feed_forward_length": uint32(96),
		"attention.head_count": uint32(4), "attention.layer_norm_rms_epsilon": float32(1e-5), "rope.freq_base": float32(1e6),
	}
	for k, v := range keys {
		all[k] = v
	}
	var w gguf.Writer
	w.Set("general.architecture", arch)
	for k, v := range all {
		if v != nil {
			w.Set(arch+"."+k, v)
		}
	}
	var b bytes.Buffer
	if _, err := w.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "metadata.gguf")
	if err := os.WriteFile(path, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := gguf.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

// Windows and rotary embeddings of the seven layers: g is a layer that sees all, l one with a window of 8.
func TestLayers(t *testing.T) {
	for _, test := range []struct {
		name, arch string
		keys       map[string]any
		kinds      string
		global     model.Rope
		local      model.Rope
	}{
		{"plain", "llama", nil, "ggggggg", model.Rope{Base: 1e6, Scale: 1}, model.Rope{}},
		{"no base", "llama", map[string]any{"rope.freq_base": nil}, "ggggggg", model.Rope{Base: 1e4, Scale: 1}, model.Rope{}},
		{"linear", "qwen3", map[string]any{"rope.scaling.type": "linear", "rope.scaling.factor": float32(4)}, "ggggggg", model.Rope{Base: 1e6, Scale: 4}, model.Rope{}},
		{"factor without a type", "llama", map[string]any{"rope.scaling.factor": float32(4)}, "ggggggg", model.Rope{Base: 1e6, Scale: 4}, model.Rope{}},
		{"older name", "llama", map[string]any{"rope.scale_linear": float32(2)}, "ggggggg", model.Rope{Base: 1e6, Scale: 2}, model.Rope{}},
		{"factor 0", "llama", map[string]any{"rope.scaling.factor": float32(0)}, "ggggggg", model.Rope{Base: 1e6, Scale: 1}, model.Rope{}},
		{"none", "llama", map[string]any{"rope.scaling.type": "none", "rope.scaling.factor": float32(4)}, "ggggggg", model.Rope{Base: 1e6, Scale: 1}, model.Rope{}},
		{"windows", "gemma3", map[string]any{"attention.sliding_window": uint32(8)}, "lllllgl", model.Rope{Base: 1e6, Scale: 1}, model.Rope{Base: 1e4, Scale: 1}},
		{"scaled global layers", "gemma3", map[string]any{"attention.sliding_window": uint32(8), "rope.scaling.type": "linear", "rope.scaling.factor": float32(8), "rope.freq_base_swa": float32(2e4)},
			"lllllgl", model.Rope{Base: 1e6, Scale: 8}, model.Rope{Base: 2e4, Scale: 1}},
		{"period", "gemma3", map[string]any{"attention.sliding_window": uint32(8), "attention.sliding_window_pattern": uint32(3)},
			"llgllgl", model.Rope{Base: 1e6, Scale: 1}, model.Rope{Base: 1e4, Scale: 1}},
		{"no window", "gemma3", nil, "ggggggg", model.Rope{Base: 1e6, Scale: 1}, model.Rope{}},
		{"window 0", "gemma3", map[string]any{"attention.sliding_window": uint32(0)}, "ggggggg", model.Rope{Base: 1e6, Scale: 1}, model.Rope{}},
	} {
		c, err := model.ReadConfig(openMetadata(t, test.arch, test.keys))
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		want := make([]model.LayerConfig, len(test.kinds))
		for i, kind := range test.kinds {
			want[i] = model.LayerConfig{Rope: test.global}
			if kind == 'l' {
				want[i] = model.LayerConfig{Window: 8, Rope: test.local}
			}
		}
		if diff := cmp.Diff(want, c.Layers); diff != "" {
			t.Errorf("%s (-want +got):\n%s", test.name, diff)
		}
	}
}

func TestConfigRefuses(t *testing.T) {
	for _, test := range []struct {
		arch, key string
		value     any
		want      string
	}{
		{"llama", "rope.scaling.type", "yarn", `llama.rope.scaling.type: offset `},
		{"llama", "rope.scaling.factor", float32(-1), "-1 is not between 0 and 1e6"},
		{"llama", "rope.freq_base", float32(-1), "llama.rope.freq_base: "},
		{"llama", "expert_count", uint32(8), "mixture of 8 experts"},
		{"gemma3", "attention.sliding_window", uint32(1 << 31), "gemma3.attention.sliding_window: "},
		{"gemma3", "attention.sliding_window", "wide", "gemma3.attention.sliding_window"},
		{"gemma3", "final_logit_softcapping", float32(30), "gemma3.final_logit_softcapping: "},
		{"gemma3", "block_count", uint32(62), "Gemma 3 27B"},
		{"lfm2", "shortconv.l_cache", uint32(4), "3 taps are supported"},
		{"lfm2", "shortconv.l_cache", nil, "lfm2.shortconv.l_cache: the key is missing"},
	} {
		_, err := model.ReadConfig(openMetadata(t, test.arch, map[string]any{test.key: test.value}))
		if err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s.%s = %v: %v, want %q", test.arch, test.key, test.value, err, test.want)
		}
	}
}
