package cpu

import (
	"runtime"
	"testing"
)

func TestParseMeminfo(t *testing.T) {
	for _, tt := range []struct {
		text string
		want Memory
	}{
		{"MemTotal:       24684092 kB\nMemFree:        21530256 kB\nMemAvailable:   22836828 kB\n", Memory{24684092 << 10, 22836828 << 10}},
		{"MemTotal:       1024 kB\n", Memory{Total: 1 << 20}}, // Linux before 3.14
		{"MemTotal: much\nMemAvailable\n:\n", Memory{}},
		{"MemTotal: 99999999999999999999 kB\n", Memory{}},
		{"", Memory{}},
	} {
		if got := parseMeminfo(tree(map[string]string{"meminfo": tt.text})); got != tt.want {
			t.Errorf("parseMeminfo(%q) = %+v, want %+v", tt.text, got, tt.want)
		}
	}
}

func TestLinuxCores(t *testing.T) {
	root := tree(map[string]string{
		"sys/devices/system/cpu/cpu0/topology/thread_siblings_list":    "0,8\n",
		"sys/devices/system/cpu/cpu8/topology/thread_siblings_list":    "0,8\n",
		"sys/devices/system/cpu/cpu10/topology/thread_siblings_list":   "10\n",
		"sys/devices/system/cpu/cpufreq/topology/thread_siblings_list": "1\n",
	})
	if physical, logical := linuxCores(root); physical != 2 || logical != 3 {
		t.Errorf("linuxCores = %d, %d, want 2, 3", physical, logical)
	}
	if physical, logical := linuxCores(tree(nil)); physical != 0 || logical != 0 {
		t.Errorf("linuxCores of nothing = %d, %d", physical, logical)
	}
}

func TestDescribe(t *testing.T) {
	info := Describe()
	t.Logf("%+v", info)
	if info.LogicalCores < 1 || info.PhysicalCores > info.LogicalCores {
		t.Errorf("%d physical and %d logical cores", info.PhysicalCores, info.LogicalCores)
	}
	if m := info.Memory; m.Available > m.Total {
		t.Errorf("%d bytes available of %d", m.Available, m.Total)
	}
	switch runtime.GOOS {
	case "linux", "windows":
		if info.Memory.Total == 0 || info.Memory.Available == 0 {
			t.Errorf("memory is unknown: %+v", info.Memory)
		}
	}
}
