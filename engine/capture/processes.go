package capture

import (
	"fmt"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// peakSpan is the shortest time for a peak of CPU use: with the kernel's ticks of 10 ms, shorter
// ones are imprecise.
const peakSpan = 200 * time.Millisecond

const noLook = "no sample of the processes succeeded"

// Usage returns what the tree used between two times, nil without samples. It covers the last
// sample at or before begin, or else the first one, to the first sample at or after end, or else
// the last one.
//
// CPU time of a process includes that of its children that started and ended between two samples,
// so that rows of processes add up to their role, and roles to the total. What a process used
// between its last sample and its end is in the row of the parent that waited for it; if that
// parent is outside the tree, it is lost.
func (t *Tree) Usage(begin, end time.Duration) *TreeUsage {
	if len(t.Samples) == 0 {
		return nil
	}
	u := &TreeUsage{Samples: len(t.Samples)}
	for _, s := range t.Samples {
		if s.Error != "" {
			u.Failed++
		}
		if s.Partial {
			u.Partial++
		}
	}
	g := t.grow()
	w := g.window(begin, end)
	all := make([]int, 0, len(t.Processes))
	members := map[string][]int{}
	var roles []string
	for p, proc := range t.Processes {
		if g.seen[p].first < 0 || g.seen[p].first > w.last || g.seen[p].last < w.first {
			continue
		}
		all = append(all, p)
		if members[proc.Role] == nil {
			roles = append(roles, proc.Role)
		}
		members[proc.Role] = append(members[proc.Role], p)
		one := g.usage([]int{p}, w)
		one.Name, one.PID, one.Role = name(proc), proc.PID, proc.Role
		u.Processes = append(u.Processes, one)
	}
	for _, role := range roles {
		sum := g.usage(members[role], w)
		sum.Name, sum.Role = role, role
		u.Roles = append(u.Roles, sum)
	}
	u.Total = g.usage(all, w)
	u.Total.Name = "total"
	u.Cgroup = t.cgroupUsage()
	return u
}

func name(p Process) string {
	if p.Title != "" {
		return p.Title
	}
	return p.Comm
}

// window returns the samples that the usage of a run is calculated between.
func (g *growth) window(begin, end time.Duration) lookRange {
	w := lookRange{0, len(g.looks) - 1}
	for k, look := range g.looks {
		if look.At <= begin {
			w.first = k
		}
		if look.At >= end {
			w.last = k
			break
		}
	}
	return w
}

// usage sums over some processes of the tree.
func (g *growth) usage(procs []int, w lookRange) ProcessUsage {
	u := ProcessUsage{Count: len(procs)}
	u.CPU, u.CPUSeconds = g.cpu(procs, w)
	u.RSS = g.level(procs, w, func(s *ProcessSample) stat.Opt { return stat.Some(float64(s.RSSBytes)) })
	u.Threads = g.level(procs, w, func(s *ProcessSample) stat.Opt { return stat.Some(float64(s.Threads)) })
	u.RunWaitSeconds = g.runWait(procs)
	return u
}

// runWait returns how long the threads of some processes waited for a CPU between the first and the
// last sample. It is absent with only one sample, or if a process that lived to the end does not
// report it, or less than before because a thread ended: a partial sum would be misleading. Processes
// that ended earlier are left out, as are those that began before the first sample but were found later.
func (g *growth) runWait(procs []int) stat.Opt {
	var sum stat.Opt
	for _, p := range procs {
		looks := g.entries[p]
		first, last := looks[0], looks[len(looks)-1]
		if g.tree.Processes[p].Earlier || last.look < len(g.looks)-1 || last.Threads == 0 || last.look == 0 {
			continue
		}
		from := first.RunWaitSeconds
		if first.look > 0 { // it began in the run
			from = stat.Some(0)
		}
		waited := grown(from, last.RunWaitSeconds)
		if !waited.OK {
			return stat.None
		}
		sum = sum.Plus(waited)
	}
	return sum
}

// cpu returns the cores in use, and the CPU time in seconds.
func (g *growth) cpu(procs []int, w lookRange) (Row, stat.Opt) {
	row := Row{Samples: w.last - w.first + 1}
	switch {
	case len(g.looks) == 0:
		return Row{Reason: noLook}, stat.None
	case row.Samples < 2:
		row.Reason = "only one sample of the processes: CPU time needs two"
		return row, stat.None
	}
	x := g.extent(procs, w)
	sum := g.upTo(procs, w, x)
	rate := func(i, j int) float64 { return float64(sum(j)-sum(i)) / float64(g.looks[j].At-g.looks[i].At) }
	if g.looks[w.last].At > g.looks[w.first].At {
		row.Mean = stat.Some(rate(w.first, w.last))
	}
	// A span that ends more than this after the last of them contains no more than others.
	for j := max(w.first+1, x.first); j <= w.last && (j <= x.last || g.looks[j-1].At < g.looks[x.last].At+peakSpan); j++ {
		if i := g.from(j, w.first); i >= 0 {
			row.Peak = row.Peak.Max(stat.Some(rate(i, j)))
		}
	}
	if row.Peak.OK {
		row.Peak = row.Peak.Max(row.Mean) // the run is a span, too
	} else {
		row.Reason = fmt.Sprintf("no peak: the run is shorter than %d ms", peakSpan.Milliseconds())
	}
	return row, stat.Some(sum(w.last).Seconds())
}

// upTo returns a function for the time that some processes used from the beginning of window w up
// to a sample. x is the part of the window in which they exist.
func (g *growth) upTo(procs []int, w, x lookRange) func(k int) time.Duration {
	if x.last < x.first {
		return func(int) time.Duration { return 0 }
	}
	sums := make([]time.Duration, x.last-x.first+1)
	for _, p := range procs {
		for k := max(x.first, w.first+1, g.seen[p].first); k <= min(x.last, g.seen[p].last); k++ {
			sums[k-x.first] += g.used[p][k-g.seen[p].first]
		}
	}
	for i := 1; i < len(sums); i++ {
		sums[i] += sums[i-1]
	}
	return func(k int) time.Duration {
		if k < x.first {
			return 0
		}
		return sums[min(k, x.last)-x.first]
	}
}

// from returns the start of the shortest span for a peak that ends at sample j, not before first,
// or -1 if there is none. The span includes the origin of all time that appears within it, such as
// that of a child that was found late or ended unseen.
func (g *growth) from(j, first int) int {
	i := j - 1
	for i >= first && g.looks[j].At-g.looks[i].At < peakSpan {
		i--
	}
	for k := j; k > i && i >= first; k-- {
		if since := g.since[k]; since >= 0 && since < i {
			i = since
		}
	}
	if i < first {
		return -1
	}
	return i
}

// level describes a sum over processes, using samples with at least one of them in which all of
// them have the value. If two or more of these samples searched for new children, only those count
// for the mean: between them a tree with short-lived children only shrinks, so the mean over all
// samples would be too low. The peak is over all samples.
func (g *growth) level(procs []int, w lookRange, value func(*ProcessSample) stat.Opt) Row {
	if len(g.looks) == 0 {
		return Row{Reason: noLook}
	}
	type sum struct {
		v       float64
		n, told int
	}
	var row Row
	x := g.extent(procs, w)
	if x.last < x.first {
		return row
	}
	sums := make([]sum, x.last-x.first+1)
	for _, p := range procs {
		for _, r := range g.entries[p] {
			if r.look < x.first || r.look > x.last {
				continue
			}
			v, s := value(r.ProcessSample), &sums[r.look-x.first]
			s.n++
			if v.OK {
				s.told++
				s.v += v.V
			}
		}
	}
	var all, walked stat.Opt // sums
	whole := 0
	for k, s := range sums {
		if s.n == 0 || s.told < s.n {
			continue
		}
		row.Samples++
		row.Peak = row.Peak.Max(stat.Some(s.v))
		all = all.Plus(stat.Some(s.v))
		if g.looks[x.first+k].Walked {
			walked = walked.Plus(stat.Some(s.v))
			whole++
		}
	}
	row.Mean = walked.Div(stat.Some(float64(whole)))
	if whole < 2 {
		row.Mean = all.Div(stat.Some(float64(row.Samples)))
	}
	return row
}

// cgroupUsage returns what the control group reports for the time between its first and its last
// sample.
func (t *Tree) cgroupUsage() *CgroupUsage {
	if len(t.Cgroups) == 0 {
		return nil
	}
	a, b := t.Cgroups[0], t.Cgroups[len(t.Cgroups)-1]
	u := &CgroupUsage{Path: b.Path, CPULimitCores: b.CPULimitCores}
	if a.Path != b.Path {
		return u // the tree moved to another group with other counters
	}
	u.ThrottledSeconds = grown(a.ThrottledSeconds, b.ThrottledSeconds)
	u.ThrottledShare = grown(a.ThrottledPeriods, b.ThrottledPeriods).Div(grown(a.Periods, b.Periods))
	return u
}

// grown returns the growth of a counter, None if either end is absent, or if it fell.
func grown(a, b stat.Opt) stat.Opt {
	if !a.OK || !b.OK || b.V < a.V {
		return stat.None
	}
	return stat.Some(b.V - a.V)
}
