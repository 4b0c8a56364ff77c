package proc

import (
	"math"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// maxGroupPIDs bounds how many processes of a control group are compared with the
// tree: a larger group holds more than a server.
const maxGroupPIDs = 4096

// group is where the control group of a tree is mounted. Version 2 has all in one
// directory; version 1 has a hierarchy for each controller, and a machine may have
// some controllers in either.
type group struct {
	path string // as the kernel names it
	v2   hierarchy
	cpu  hierarchy // v1: quota and throttling
	acct hierarchy // v1: CPU time
	mem  hierarchy // v1
}

// hierarchy is a control group within one mounted hierarchy; dir "" is none.
type hierarchy struct {
	dir string // of the group
	top string // of the mount: no limit stands above it that can be seen
}

// newGroup finds the control group of a process; nil where there is none to be
// seen.
func (f FS) newGroup(pid int) *group {
	text, err := readFile(f.path(pid, "cgroup"))
	if err != nil {
		return nil
	}
	mounts, err := readFile(f.root + "/self/mountinfo")
	if err != nil {
		return nil
	}
	table := parseMounts(mounts)
	g := &group{}
	for line := range strings.Lines(string(text)) {
		// hierarchy-ID:controllers:path (cgroups(7)); version 2 names no controller.
		parts := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		if len(parts) != 3 {
			continue
		}
		if parts[1] == "" {
			g.v2 = place(table, "", parts[2])
			g.name(parts[2], g.v2)
			continue
		}
		for controller := range strings.SplitSeq(parts[1], ",") {
			switch controller {
			case "cpu":
				g.cpu = place(table, controller, parts[2])
				g.name(parts[2], g.cpu)
			case "cpuacct":
				g.acct = place(table, controller, parts[2])
				g.name(parts[2], g.acct)
			case "memory":
				g.mem = place(table, controller, parts[2])
				g.name(parts[2], g.mem)
			}
		}
	}
	if g.v2.dir == "" && g.cpu.dir == "" && g.acct.dir == "" && g.mem.dir == "" {
		return nil
	}
	return g
}

// name keeps the most telling path: "/" is everything, or a container seen from
// inside.
func (g *group) name(p string, h hierarchy) {
	if h.dir != "" && (g.path == "" || g.path == "/") {
		g.path = p
	}
}

// cgroupMount is a mounted hierarchy of control groups.
type cgroupMount struct {
	root, at    string
	controllers []string // of version 1; none of version 2
	v2          bool
}

// parseMounts reads the hierarchies of control groups from /proc/PID/mountinfo:
// "ID parent major:minor root mountpoint options [fields…] - type source options"
// (proc_pid_mountinfo(5)).
func parseMounts(text []byte) []cgroupMount {
	var mounts []cgroupMount
	for line := range strings.Lines(string(text)) {
		before, after, ok := strings.Cut(line, " - ")
		fields, super := strings.Fields(before), strings.Fields(after)
		if !ok || len(fields) < 6 || len(super) < 3 {
			continue
		}
		m := cgroupMount{root: unescape(fields[3]), at: unescape(fields[4])}
		switch super[0] {
		case "cgroup2":
			m.v2 = true
		case "cgroup":
			m.controllers = strings.Split(super[2], ",")
		default:
			continue
		}
		mounts = append(mounts, m)
	}
	return mounts
}

// unescape reads the octal escapes of blanks in mountinfo.
func unescape(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// place finds the directory of a group: its path below the root that is mounted.
func place(mounts []cgroupMount, controller, group string) hierarchy {
	for _, m := range mounts {
		if controller == "" != m.v2 || !m.v2 && !slices.Contains(m.controllers, controller) {
			continue
		}
		below, ok := group, true
		if m.root != "/" {
			below, ok = strings.CutPrefix(group, m.root)
			ok = ok && (below == "" || below[0] == '/')
		}
		// A path that leads out of our namespace ("/../other") cannot be followed.
		if dir := filepath.Join(m.at, below); ok && !strings.Contains(group, "/..") && exists(dir) {
			return hierarchy{dir: dir, top: filepath.Clean(m.at)}
		}
	}
	return hierarchy{}
}

func exists(dir string) bool {
	_, err := os.Stat(dir)
	return err == nil
}

// levels are a group's directory and those above it, up to the mount.
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

// readGroup adds what the control group says to the tree.
func (s *Sampler) readGroup(at time.Duration) {
	if s.group == nil {
		return
	}
	out := capture.CgroupSample{At: at, Path: s.group.path}
	s.group.cpuTime(&out)
	s.group.cpuLimit(&out)
	s.group.memory(&out)
	ours := make(map[int]bool, len(s.members))
	for _, m := range s.members {
		ours[m.pid] = true
	}
	out.Whole = s.group.within(ours)
	s.tree.Cgroups = append(s.tree.Cgroups, out)
}

// cpuTime reads the CPU time of all processes of the group, ended ones included.
func (g *group) cpuTime(out *capture.CgroupSample) {
	if ns, ok := number64(g.acct.dir, "cpuacct.usage"); ok {
		out.CPUSeconds = stat.Some(float64(ns) / 1e9)
		return
	}
	if us, ok := cpuStat(g.v2.dir, "usage_usec"); ok {
		out.CPUSeconds = stat.Some(float64(us) / 1e6)
	}
}

// cpuLimit finds the smallest limit of the group and those above it. Throttling is
// counted where the limit stands: a group is also held back by the limit of one
// above it, which its own counters do not show.
func (g *group) cpuLimit(out *capture.CgroupSample) {
	h, limit, seconds, unit := g.v2, quotaV2, "throttled_usec", 1e6
	if g.cpu.dir != "" {
		h, limit, seconds, unit = g.cpu, quotaV1, "throttled_time", 1e9
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

// memory reads what the group uses, page cache included, and the smallest limit.
func (g *group) memory(out *capture.CgroupSample) {
	h, usage, limit := g.v2, "memory.current", "memory.max"
	if g.mem.dir != "" {
		h, usage, limit = g.mem, "memory.usage_in_bytes", "memory.limit_in_bytes"
	}
	if n, ok := number64(h.dir, usage); ok {
		out.MemoryBytes = stat.Some(float64(n))
	}
	for _, dir := range h.levels() {
		// Version 1 writes "no limit" as the largest number of whole pages.
		if n, ok := number64(dir, limit); ok && n < math.MaxInt64>>1 {
			if v := float64(n); !out.MemoryLimitBytes.OK || v < out.MemoryLimitBytes.V {
				out.MemoryLimitBytes = stat.Some(v)
			}
		}
	}
}

// within tells whether every process of the group, and of groups below it, is one
// of ours. Processes of another PID namespace show as 0 and are not.
func (g *group) within(ours map[int]bool) bool {
	dir := g.acct.dir
	if dir == "" {
		dir = g.v2.dir
	}
	if dir == "" {
		return false
	}
	seen := 0
	var walk func(dir string, depth int) bool
	walk = func(dir string, depth int) bool {
		text, err := readFile(dir + "/cgroup.procs")
		if err != nil || depth > 16 {
			return false
		}
		for field := range strings.FieldsSeq(string(text)) {
			pid, err := strconv.Atoi(field)
			if seen++; err != nil || !ours[pid] || seen > maxGroupPIDs {
				return false
			}
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return false
		}
		for _, e := range entries {
			if e.IsDir() && !walk(filepath.Join(dir, e.Name()), depth+1) {
				return false
			}
		}
		return true
	}
	return walk(dir, 0) && seen > 0
}

// quotaV2 reads cpu.max, "100000 200000" or "max 100000": microseconds in each
// period (Documentation/admin-guide/cgroup-v2.rst).
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

// quotaV1 reads the same of version 1, where -1 is no limit.
func quotaV1(dir string) (cores float64, ok bool) {
	quota, ok1 := number64(dir, "cpu.cfs_quota_us")
	period, ok2 := number64(dir, "cpu.cfs_period_us")
	if !ok1 || !ok2 || quota == 0 || period == 0 {
		return 0, false
	}
	return float64(quota) / float64(period), true
}

// number64 reads a file of one number; false for "max" and where there is none.
// Negative numbers, which mean unlimited, count as 0.
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

// cpuStat reads the number after a key of cpu.stat, "nr_periods 12".
func cpuStat(dir, key string) (uint64, bool) {
	if dir == "" {
		return 0, false
	}
	text, err := readFile(dir + "/cpu.stat")
	if err != nil {
		return 0, false
	}
	return parseKeyed(text, key)
}

func parseKeyed(text []byte, key string) (uint64, bool) {
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, key+" "); ok {
			n, _, ok := nextNumber([]byte(value))
			return n, ok
		}
	}
	return 0, false
}
