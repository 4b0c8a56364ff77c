package proc

import (
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/prometheus/procfs"

	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// group locates the control group of a tree, of version 2 or 1. A machine may use both
// versions for different controllers.
type group struct {
	path string // name in /proc/PID/cgroup
	v2   hierarchy
	v1   hierarchy // of the controller cpu
}

// hierarchy is a control group within one mounted hierarchy; dir is "" if the group is
// not in it.
type hierarchy struct {
	dir string // the group's directory
	top string // the mount point: limits above it are not visible
}

// newGroup finds the control group of a process; nil if none is visible.
func (f procfiles) newGroup(pid int) *group {
	groups, err := f.cgroups(pid)
	if err != nil {
		return nil
	}
	text, err := readFile(f.root + "/self/mountinfo")
	if err != nil {
		return nil
	}
	mounts := parseMounts(text)
	g := &group{}
	parts := map[string]*hierarchy{"": &g.v2, "cpu": &g.v1}
	for _, c := range groups {
		if len(c.Controllers) == 0 {
			c.Controllers = []string{""} // of version 2
		}
		for _, controller := range c.Controllers {
			h, ok := parts[controller]
			if !ok {
				continue
			}
			// "/" is the root or a container seen from inside: prefer any other path.
			if *h = groupDir(mounts, controller, c.Path); h.dir != "" && (g.path == "" || g.path == "/") {
				g.path = c.Path
			}
		}
	}
	if g.v2.dir == "" && g.v1.dir == "" {
		return nil
	}
	return g
}

// parseMounts reads the mounted hierarchies of control groups from /proc/PID/mountinfo:
// "ID parent major:minor root mountpoint options [fields…] - type source options"
// (proc_pid_mountinfo(5)). Lines that it cannot read are skipped; procfs gives up at the
// first one, and a mount whose source is "-" is one.
func parseMounts(text []byte) []procfs.MountInfo {
	var mounts []procfs.MountInfo
	for line := range strings.Lines(string(text)) {
		before, after, ok := strings.Cut(line, " - ")
		fields, super := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 6 || len(super) < 3 || super[0] != "cgroup" && super[0] != "cgroup2" {
			continue
		}
		m := procfs.MountInfo{Root: unescape(fields[3]), MountPoint: unescape(fields[4]), FSType: super[0], SuperOptions: map[string]string{}}
		for controller := range strings.SplitSeq(super[2], ",") {
			m.SuperOptions[controller] = ""
		}
		mounts = append(mounts, m)
	}
	return mounts
}

// unescape decodes the octal escapes of blanks in mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// cgroups lists the control groups of a process, one for each hierarchy.
func (f procfiles) cgroups(pid int) ([]procfs.Cgroup, error) {
	p, err := f.mount.Proc(pid)
	if err != nil {
		return nil, err
	}
	return p.Cgroups()
}

// groupDir finds the directory of a group: its path below the mounted root. The
// controller is "" for version 2.
func groupDir(mounts []procfs.MountInfo, controller, group string) hierarchy {
	for _, m := range mounts {
		_, controls := m.SuperOptions[controller]
		if v2 := m.FSType == "cgroup2"; controller == "" != v2 || !v2 && (m.FSType != "cgroup" || !controls) {
			continue
		}
		below, ok := group, true
		if m.Root != "/" {
			below, ok = strings.CutPrefix(group, m.Root)
			ok = ok && (below == "" || below[0] == '/')
		}
		// A path that leads out of our namespace ("/../other") cannot be followed.
		if dir := filepath.Join(m.MountPoint, below); ok && !strings.Contains(group, "/..") && exists(dir) {
			return hierarchy{dir: dir, top: filepath.Clean(m.MountPoint)}
		}
	}
	return hierarchy{}
}

func exists(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil
}

// levels lists the group's directory and its parents up to the mount point.
func (h hierarchy) levels() []string {
	if h.dir == "" {
		return nil
	}
	dirs := []string{h.dir}
	for dir := h.dir; dir != h.top && len(dir) > len(h.top); {
		dir = path.Dir(dir)
		dirs = append(dirs, dir)
	}
	return dirs
}

// readGroup appends a sample of the control group to the tree.
func (s *Sampler) readGroup(at time.Duration) {
	if s.group == nil {
		return
	}
	out := capture.CgroupSample{At: at, Path: s.group.path}
	s.group.cpuLimit(&out)
	s.tree.Cgroups = append(s.tree.Cgroups, out)
}

// cpuLimit finds the smallest CPU limit of the group and its parents. It reads the
// throttling counters at the level of that limit, because a group's own counters do
// not show throttling by a parent's limit.
func (g *group) cpuLimit(out *capture.CgroupSample) {
	h, limit, seconds, unit := g.v2, quotaV2, "throttled_usec", 1e6
	if g.v1.dir != "" {
		h, limit, seconds, unit = g.v1, quotaV1, "throttled_time", 1e9
	}
	at := h.dir
	for _, dir := range h.levels() {
		if cores, ok := limit(dir); ok && (!out.CPULimitCores.OK || cores < out.CPULimitCores.V) {
			out.CPULimitCores, at = stat.Some(cores), dir
		}
	}
	if n, ok := cpuStat(at, "nr_periods"); ok {
		out.Periods = stat.Some(float64(n))
	}
	if n, ok := cpuStat(at, "nr_throttled"); ok {
		out.ThrottledPeriods = stat.Some(float64(n))
	}
	if n, ok := cpuStat(at, seconds); ok {
		out.ThrottledSeconds = stat.Some(float64(n) / unit)
	}
}

// quotaV2 returns the limit in cpu.max, "100000 200000" or "max 100000": microseconds
// per period (Documentation/admin-guide/cgroup-v2.rst). ok is false without a limit.
func quotaV2(dir string) (cores float64, ok bool) {
	text, err := readFile(dir + "/cpu.max")
	if err != nil {
		return 0, false
	}
	return parseMax(text)
}

func parseMax(text []byte) (cores float64, ok bool) {
	quota, rest, ok1 := nextNumber(text)
	period, _, ok2 := nextNumber(rest)
	if !ok1 || !ok2 || quota == 0 || period == 0 {
		return 0, false
	}
	return float64(quota) / float64(period), true
}

// quotaV1 returns the limit of version 1, whose quota is -1 without a limit.
func quotaV1(dir string) (cores float64, ok bool) {
	quota, ok1 := number64(dir, "cpu.cfs_quota_us")
	period, ok2 := number64(dir, "cpu.cfs_period_us")
	if !ok1 || !ok2 || quota == 0 || period == 0 {
		return 0, false
	}
	return float64(quota) / float64(period), true
}

// number64 reads a file with one number; false for "max" or if there is no such file.
// Negative numbers, which mean unlimited, are returned as 0.
func number64(dir, name string) (uint64, bool) {
	if dir == "" {
		return 0, false
	}
	text, err := readFile(dir + "/" + name)
	if err != nil {
		return 0, false
	}
	n, _, ok := nextNumber(text)
	return n, ok
}

// cpuStat returns the number after a key in cpu.stat, "nr_periods 12".
func cpuStat(dir, key string) (uint64, bool) {
	if dir == "" {
		return 0, false
	}
	text, err := readFile(dir + "/cpu.stat")
	if err != nil {
		return 0, false
	}
	return parseField(text, key+" ")
}
