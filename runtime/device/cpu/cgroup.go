package cpu

import (
	"io/fs"
	"iter"
	"path"
	"strconv"
	"strings"
)

// A cgroup is a control group that the process is in, as a directory of control files.
type cgroup struct {
	root fs.FS
	dir  string
	v2   bool
}

// cgroups returns the groups that bound the given controller ("cpu", "memory") for this process, under version 1 and
// version 2 of the interface: its own group and all the ancestors that the mount shows, since a limit holds for every
// group below. Without cgroups, as on systems other than Linux, there are none. See cgroups(7) and proc_pid_mountinfo(5).
func cgroups(root fs.FS, controller string) []cgroup {
	var groups []cgroup
	for line := range fileLines(root, "proc/self/mountinfo") {
		// ID parent major:minor root mount-point options [optional…] - type source super-options
		before, after, _ := strings.Cut(line, " - ")
		mount, super := strings.Fields(before), strings.Fields(after)
		if len(mount) < 5 || len(super) < 3 {
			continue
		}
		v2 := super[0] == "cgroup2"
		if !v2 && (super[0] != "cgroup" || !hasItem(super[2], controller)) {
			continue
		}
		shown, point := mountEscapes.Replace(mount[3]), mountEscapes.Replace(mount[4])
		// A mount may show the hierarchy from below its root, and in a container the process's group may lie outside of
		// that: then the mount's own directory is as near as one gets.
		rel := "."
		if own, ok := ownGroup(root, controller, v2); ok {
			below, ok := strings.CutPrefix(own, strings.TrimSuffix(shown, "/"))
			if ok && strings.HasPrefix(below, "/") && !strings.HasPrefix(below, "/..") {
				rel = path.Join(".", below)
			}
		}
		for {
			if dir := path.Join(strings.TrimPrefix(point, "/"), rel); fs.ValidPath(dir) {
				groups = append(groups, cgroup{root, dir, v2})
			}
			if rel == "." {
				break
			}
			rel = path.Dir(rel)
		}
	}
	return groups
}

// ownGroup returns the path of the process's group in a controller's hierarchy.
func ownGroup(root fs.FS, controller string, v2 bool) (string, bool) {
	for line := range fileLines(root, "proc/self/cgroup") {
		// ID:controllers:path, for version 2 with the ID 0 and no controllers
		f := strings.SplitN(line, ":", 3)
		if len(f) == 3 && (v2 && f[0] == "0" && f[1] == "" || !v2 && hasItem(f[1], controller)) {
			return f[2], true
		}
	}
	return "", false
}

// cpus returns how many CPUs' worth of time the group may use, rounded down but at least 1, if it has a limit.
func (g cgroup) cpus() (int, bool) {
	quota, period := g.read("cpu.cfs_quota_us"), g.read("cpu.cfs_period_us")
	if g.v2 {
		quota, period, _ = strings.Cut(g.read("cpu.max"), " ")
	}
	// No limit is "max" in version 2 and −1 in version 1.
	q, err := strconv.ParseUint(quota, 10, 63)
	if err != nil {
		return 0, false
	}
	t, err := strconv.ParseUint(period, 10, 63)
	if err != nil || t == 0 {
		return 0, false
	}
	return int(max(1, min(q/t, 1<<30))), true
}

// memory returns how many bytes the group may use and how many of them are left, if it has a limit. Page cache counts as
// left: the kernel drops it before it refuses an allocation.
func (g cgroup) memory() (Memory, bool) {
	limitFile, usageFile, prefix := "memory.limit_in_bytes", "memory.usage_in_bytes", "total_"
	if g.v2 {
		limitFile, usageFile, prefix = "memory.max", "memory.current", ""
	}
	limit, err := strconv.ParseUint(g.read(limitFile), 10, 64) // no limit is "max" in version 2, about 2⁶³ in version 1
	if err != nil {
		return Memory{}, false
	}
	usage, err := strconv.ParseUint(g.read(usageFile), 10, 64)
	if err != nil {
		return Memory{Total: limit, Available: limit}, true
	}
	var cache uint64
	for line := range fileLines(g.root, path.Join(g.dir, "memory.stat")) {
		name, value, _ := strings.Cut(line, " ")
		if name == prefix+"active_file" || name == prefix+"inactive_file" {
			n, _ := strconv.ParseUint(value, 10, 63)
			cache += n
		}
	}
	usage -= min(cache, usage)
	return Memory{Total: limit, Available: max(1, limit-min(usage, limit))}, true
}

// read returns the text of a control file, "" if there is none.
func (g cgroup) read(name string) string {
	b, _ := fs.ReadFile(g.root, path.Join(g.dir, name))
	return strings.TrimSpace(string(b))
}

// fileLines yields the lines of a file, none if it cannot be read.
func fileLines(root fs.FS, name string) iter.Seq[string] {
	b, _ := fs.ReadFile(root, name)
	return strings.SplitSeq(string(b), "\n")
}

// hasItem reports whether a comma-separated list has the item.
func hasItem(list, item string) bool {
	return strings.Contains(","+list+",", ","+item+",")
}

// mountEscapes decodes the paths of mountinfo.
var mountEscapes = strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`)
