package cpu

import (
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
)

// tree makes a file system of the named texts.
func tree(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

const (
	mountV2 = "22 27 0:21 / /proc rw,relatime - proc proc rw\n" +
		"31 23 0:28 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n"
	mountV1 = "31 23 0:28 / /sys/fs/cgroup rw,relatime - tmpfs tmpfs rw,mode=755\n" +
		"32 31 0:29 / /sys/fs/cgroup/cpu,cpuacct rw,relatime - cgroup cgroup rw,cpu,cpuacct\n" +
		"33 31 0:31 / /sys/fs/cgroup/cpuset rw,relatime - cgroup cgroup rw,cpuset\n" +
		"35 31 0:32 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
)

func TestLimitCPUs(t *testing.T) {
	v2 := func(cpuMax string) map[string]string {
		return map[string]string{
			"proc/self/mountinfo":   mountV2,
			"proc/self/cgroup":      "0::/\n",
			"sys/fs/cgroup/cpu.max": cpuMax,
		}
	}
	v1 := func(quota, period string) map[string]string {
		return map[string]string{
			"proc/self/mountinfo": mountV1,
			"proc/self/cgroup":    "3:cpuset:/wrong\n2:cpu,cpuacct:/pod/a:b\n",
			"sys/fs/cgroup/cpu,cpuacct/pod/a:b/cpu.cfs_quota_us":  quota,
			"sys/fs/cgroup/cpu,cpuacct/pod/a:b/cpu.cfs_period_us": period,
		}
	}
	tests := []struct {
		name  string
		files map[string]string
		want  int
	}{
		{"no cgroups", nil, 16},
		{"v2", v2("200000 100000\n"), 2},
		{"v2 rounded down", v2("765000 100000\n"), 7},
		{"v2 below one CPU", v2("50000 100000\n"), 1},
		{"v2 above the CPUs", v2("6400000 100000\n"), 16},
		{"v2 no limit", v2("max 100000\n"), 16},
		{"v2 empty", v2(""), 16},
		{"v2 garbage", v2("all of it\n"), 16},
		{"v2 period 0", v2("100000 0\n"), 16},
		{"v2 without period", v2("100000\n"), 16},
		{"v2 huge", v2("9223372036854775807 1\n"), 16},
		{"v2 too large for 64 bits", v2("99999999999999999999 100000\n"), 16},
		{"v2 ancestor is stricter", map[string]string{
			"proc/self/mountinfo":                  mountV2,
			"proc/self/cgroup":                     "0::/user.slice/app\n",
			"sys/fs/cgroup/user.slice/app/cpu.max": "800000 100000\n",
			"sys/fs/cgroup/user.slice/cpu.max":     "300000 100000\n",
		}, 3},
		{"v2 group outside of the mount", map[string]string{
			"proc/self/mountinfo":   mountV2,
			"proc/self/cgroup":      "0::/../other\n",
			"sys/fs/cgroup/cpu.max": "400000 100000\n",
			"sys/fs/other/cpu.max":  "100000 100000\n",
		}, 4},
		{"v2 mount of a part, with a space", map[string]string{
			"proc/self/mountinfo": "31 23 0:28 /my\\040pod /cg\\040root rw - cgroup2 cgroup2 rw\n",
			"proc/self/cgroup":    "0::/my pod/app\n",
			"cg root/app/cpu.max": "500000 100000\n",
		}, 5},
		{"v2 mount of a group with a longer name", map[string]string{
			"proc/self/mountinfo":     "31 23 0:28 /pod /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n",
			"proc/self/cgroup":        "0::/pod2\n",
			"sys/fs/cgroup/cpu.max":   "600000 100000\n",
			"sys/fs/cgroup/2/cpu.max": "100000 100000\n",
		}, 6},
		{"v1", v1("200000\n", "100000\n"), 2},
		{"v1 rounded down", v1("765000\n", "100000\n"), 7},
		{"v1 no limit", v1("-1\n", "100000\n"), 16},
		{"v1 in a container", map[string]string{
			"proc/self/mountinfo":                 "32 31 0:29 /docker/1f /sys/fs/cgroup/cpu ro - cgroup cgroup rw,cpu\n",
			"proc/self/cgroup":                    "1:cpu:/docker/1f\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us":  "350000\n",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us": "100000\n",
		}, 3},
		{"v1 with v2 beside it", map[string]string{
			"proc/self/mountinfo":                         mountV1 + "41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
			"proc/self/cgroup":                            "1:cpu,cpuacct:/a\n0::/\n",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us":  "900000\n",
			"sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us": "100000\n",
		}, 9},
		{"malformed mountinfo", map[string]string{
			"proc/self/mountinfo":   " - \n - cgroup2\n1 2 3 - cgroup2 a b\n\n" + mountV2,
			"proc/self/cgroup":      ":\n0:\n\n0::/\n",
			"sys/fs/cgroup/cpu.max": "200000 100000\n",
		}, 2},
	}
	for _, tt := range tests {
		if got := limitCPUs(tree(tt.files), 16); got != tt.want {
			t.Errorf("%s: %d CPUs, want %d", tt.name, got, tt.want)
		}
	}
}

func TestWorkerCount(t *testing.T) {
	if got := WorkerCount(100); got != 100 {
		t.Errorf("WorkerCount(100) = %d: an explicit count was changed", got)
	}
	if got := WorkerCount(0); got < 1 {
		t.Errorf("WorkerCount(0) = %d", got)
	}
}

func TestLimitMemory(t *testing.T) {
	const gib = 1 << 30
	machine := Memory{Total: 16 * gib, Available: 12 * gib}
	v2 := map[string]string{
		"proc/self/mountinfo": mountV2, "proc/self/cgroup": "0::/a/b\n",
		"sys/fs/cgroup/a/b/memory.max":     "max\n",
		"sys/fs/cgroup/a/b/memory.current": "1073741824\n",
		"sys/fs/cgroup/a/memory.max":       "8589934592\n", // 8 GiB
		"sys/fs/cgroup/a/memory.current":   "4294967296\n", // 4 GiB
		"sys/fs/cgroup/a/memory.stat":      "anon 1073741824\nfile 3221225472\nactive_file 1073741824\ninactive_file 2147483648\n",
	}
	v1 := func(limit string) map[string]string {
		return map[string]string{
			"proc/self/mountinfo": mountV1, "proc/self/cgroup": "4:memory:/a\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes": limit,
			"sys/fs/cgroup/memory/a/memory.usage_in_bytes": "2147483648\n",
			"sys/fs/cgroup/memory/a/memory.stat":           "inactive_file 5\ntotal_inactive_file 1073741824\ntotal_active_file 0\n",
		}
	}
	tests := []struct {
		name  string
		files map[string]string
		in    Memory
		want  Memory
	}{
		{"no cgroups", nil, machine, machine},
		{"v2, limit of an ancestor", v2, machine, Memory{8 * gib, 7 * gib}},
		{"v2, machine is fuller", v2, Memory{16 * gib, 2 * gib}, Memory{8 * gib, 2 * gib}},
		{"v1", v1("4294967296\n"), machine, Memory{4 * gib, 3 * gib}},
		{"v1 no limit", v1("9223372036854771712\n"), machine, machine},
		{"v1 beyond its limit", v1("1048576\n"), machine, Memory{1 << 20, 1}},
		{"unknown machine", v2, Memory{}, Memory{}},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, limitMemory(tree(tt.files), tt.in)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.name, diff)
		}
	}
}
