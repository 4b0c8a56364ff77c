package capture

import (
	"slices"
	"time"
)

// tick is the unit of the CPU times in /proc/PID/stat, USER_HZ, which is 100 per second on every
// current Linux architecture (time(7)).
const tick = 10 * time.Millisecond

// rounding is the maximum error of Reaped: user and system time are each truncated to a tick.
const rounding = 2 * tick

// growth is the CPU time of a tree by process and interval, with every nanosecond counted once.
//
// The sum of own and reaped time over living processes would be wrong: it falls when a process ends
// without being waited for within the tree (its parent ignores SIGCHLD, or is outside), and it
// counts nothing twice only if each ended child moves its whole time to its parent. Therefore an
// ended process keeps the time that it was last seen to have used, and a parent that waits for it
// is credited only with the excess.
type growth struct {
	tree  *Tree
	looks []*TreeSample // samples that did not fail
	// used has, for each process, the time used between successive samples with the process. seen
	// has the index of the first one.
	used [][]time.Duration
	// since has, for each sample with time that was used earlier, the sample after which it was
	// used; -1 for the others.
	since   []int
	seen    []lookRange // samples with the process
	entries [][]entry   // of each process, in order
}

// entry is one process in one sample.
type entry struct {
	look int
	*ProcessSample
}

// lookRange is a range of samples, both included; first is -1 if it is empty.
type lookRange struct{ first, last int }

// ledger accounts the CPU time of a tree from sample to sample.
type ledger struct {
	*growth
	own    []time.Duration // maximum of each process so far
	reaped []time.Duration
	parent []int
	// owed is reaped time that is already counted but not yet visible at the parent. At most
	// rounding is carried over to the next sample.
	owed []time.Duration
	// waiting are processes that ended before the last sample and whose parent had not yet
	// inherited their time: the parent is read before its children, so the next sample decides.
	waiting []int
}

// grow accounts all samples of a tree that did not fail.
func (t *Tree) grow() *growth {
	g := &growth{tree: t, used: make([][]time.Duration, len(t.Processes)), seen: make([]lookRange, len(t.Processes)), entries: make([][]entry, len(t.Processes))}
	for i := range t.Samples {
		if s := &t.Samples[i]; s.Error == "" && len(s.Processes) > 0 {
			g.looks = append(g.looks, s)
		}
	}
	g.since = slices.Repeat([]int{-1}, len(g.looks))
	for p := range g.seen {
		g.seen[p] = lookRange{-1, -1}
	}
	for k, look := range g.looks {
		for i := range look.Processes {
			s := &look.Processes[i]
			if g.seen[s.Process].first < 0 {
				g.seen[s.Process].first = k
			}
			g.seen[s.Process].last = k
			g.entries[s.Process] = append(g.entries[s.Process], entry{k, s})
		}
	}
	for p, seen := range g.seen {
		if seen.first >= 0 {
			g.used[p] = make([]time.Duration, seen.last-seen.first+1)
		}
	}
	n := len(t.Processes)
	l := ledger{growth: g, own: make([]time.Duration, n), reaped: make([]time.Duration, n), parent: make([]int, n), owed: make([]time.Duration, n)}
	for k := range g.looks {
		l.look(k)
	}
	return g
}

// look accounts sample k.
func (l *ledger) look(k int) {
	inflow := map[int]time.Duration{} // reaped time that parents gained
	for _, s := range l.looks[k].Processes {
		p := s.Process
		if l.seen[p].first == k {
			l.join(k, s)
		} else {
			l.book(k, p, s.CPU-l.own[p])
			inflow[p] = max(0, s.Reaped-l.reaped[p])
		}
		l.own[p], l.reaped[p] = max(l.own[p], s.CPU), max(l.reaped[p], s.Reaped)
		l.parent[p] = s.Parent
	}
	l.inherit(k, inflow)
	for p, in := range inflow {
		excess := in - l.owed[p]
		if excess <= 0 {
			l.owed[p] = min(-excess, rounding)
			continue
		}
		l.owed[p] = 0
		l.book(k, p, excess)
		if excess > rounding {
			l.appeared(k)
		}
	}
}

// join accounts the time of a process in its first sample: all of it, if it started during the
// capture.
func (l *ledger) join(k int, s ProcessSample) {
	if k == 0 || l.tree.Processes[s.Process].Earlier {
		return
	}
	l.book(k, s.Process, s.CPU+s.Reaped)
	if s.CPU+s.Reaped > rounding {
		l.appeared(k)
	}
}

func (l *ledger) book(k, p int, d time.Duration) { l.used[p][k-l.seen[p].first] += max(0, d) }

// total returns the time used by all processes between successive samples.
func (g *growth) total() []time.Duration {
	sum := make([]time.Duration, len(g.looks))
	for p, used := range g.used {
		for i, d := range used {
			sum[g.seen[p].first+i] += d
		}
	}
	return sum
}

// extent returns the part of a window between the first and the last sample with one of the
// processes.
func (g *growth) extent(procs []int, w lookRange) lookRange {
	e := lookRange{w.last + 1, w.first - 1}
	for _, p := range procs {
		if seen := g.seen[p]; seen.first >= 0 {
			e.first, e.last = min(e.first, seen.first), max(e.last, seen.last)
		}
	}
	return lookRange{max(e.first, w.first), min(e.last, w.last)}
}

// appeared marks that sample k shows time of processes that were unknown before: they started after
// the last search for children.
func (l *ledger) appeared(k int) {
	from := k - 1
	for from > 0 && !l.looks[from].Walked {
		from--
	}
	l.since[k] = from
}

// inherit finds the parents that waited for ended processes. If a parent gained enough reaped time,
// the gain includes the already counted time of the process.
func (l *ledger) inherit(k int, inflow map[int]time.Duration) {
	left := slices.Clone(l.waiting)
	l.waiting = l.waiting[:0]
	for p := range l.seen {
		if k > 0 && l.seen[p].first >= 0 && l.seen[p].last == k-1 {
			left = append(left, p)
		}
	}
	for _, p := range left {
		heir, ok := l.heir(p, k)
		if !ok {
			continue
		}
		total := l.own[p] + l.reaped[p]
		switch {
		case total <= inflow[heir]+rounding:
			l.owed[heir] += total
		case l.seen[p].last == k-1:
			l.waiting = append(l.waiting, p)
		}
	}
}

// heir returns the nearest ancestor of an ended process that exists in sample k.
func (l *ledger) heir(p, k int) (int, bool) {
	for range l.parent { // a chain has at most as many links as there are processes
		up := l.parent[p]
		if up == p || up < 0 || up >= len(l.parent) {
			return 0, false
		}
		if l.seen[up].first >= 0 && l.seen[up].first <= k && l.seen[up].last >= k {
			return up, true
		}
		p = up
	}
	return 0, false
}
