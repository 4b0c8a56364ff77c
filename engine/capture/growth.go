package capture

import (
	"slices"
	"time"
)

// tick is the kernel's unit of the CPU times in /proc/PID/stat, USER_HZ, 100 a
// second on every Linux architecture of today (time(7)).
const tick = 10 * time.Millisecond

// rounding is by how much Reaped may be short of the truth: user and system time
// are cut to a tick each.
const rounding = 2 * tick

// growth is the CPU time of a tree, told apart by process and interval, so that
// every nanosecond is counted once.
//
// The sum of own and reaped time over living processes is not that: it falls when
// a process ends without being waited for within the tree (its parent ignores
// SIGCHLD, or is outside), and it holds nothing twice only while each ended child
// moves its whole time to its parent. So an ended process keeps what it was last
// seen to have used, and a parent that waits for it is credited only with what
// exceeds that.
type growth struct {
	looks []*TreeSample // those that did not fail
	// used is, for each process, what it used between each look that it was there at and
	// the one before; from its first look on, of which seen knows the number.
	used [][]time.Duration
	// since is, for looks at which time appears that was used earlier, the look after
	// which it was used; -1 where there is none.
	since []int
	seen  []lookRange // looks that hold the process
	of    [][]entry   // of each process, in order
	pss   lookRange   // looks among which memory shares are looked for
}

// entry is what one look says of one process.
type entry struct {
	look int
	*ProcessSample
}

// lookRange is a first and a last look; first is -1 where there is none.
type lookRange struct{ first, last int }

// ledger follows the CPU time of a tree from look to look.
type ledger struct {
	*growth
	tree   *Tree
	own    []time.Duration // largest of each process so far
	reaped []time.Duration
	parent []int
	// owed is reaped time that is counted already and that a parent has not shown
	// yet. Between looks no more than rounding is carried over.
	owed []time.Duration
	// waiting are processes that ended before the last look and whose parent had not
	// been seen to inherit their time: the parent is read before its children, so that
	// the next look decides.
	waiting []int
}

// grow follows every look of a tree that did not fail.
func (t *Tree) grow() *growth {
	g := &growth{used: make([][]time.Duration, len(t.Processes)), seen: make([]lookRange, len(t.Processes)), of: make([][]entry, len(t.Processes))}
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
			g.of[s.Process] = append(g.of[s.Process], entry{k, s})
		}
	}
	for p, seen := range g.seen {
		if seen.first >= 0 {
			g.used[p] = make([]time.Duration, seen.last-seen.first+1)
		}
	}
	n := len(t.Processes)
	l := ledger{growth: g, tree: t, own: make([]time.Duration, n), reaped: make([]time.Duration, n), parent: make([]int, n), owed: make([]time.Duration, n)}
	for k := range g.looks {
		l.look(k)
	}
	return g
}

// look books what look k shows.
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

// join books what a process had used when it was first seen: all of it, where it
// began during the capture.
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

// total is what all processes used between each look and the one before.
func (g *growth) total() []time.Duration {
	sum := make([]time.Duration, len(g.looks))
	for p, used := range g.used {
		for i, d := range used {
			sum[g.seen[p].first+i] += d
		}
	}
	return sum
}

// extent is the part of a window from the first look that has one of the processes to
// the last one.
func (g *growth) extent(procs []int, w lookRange) lookRange {
	e := lookRange{w.last + 1, w.first - 1}
	for _, p := range procs {
		if seen := g.seen[p]; seen.first >= 0 {
			e.first, e.last = min(e.first, seen.first), max(e.last, seen.last)
		}
	}
	return lookRange{max(e.first, w.first), min(e.last, w.last)}
}

// appeared marks that look k shows time of processes that were not known before:
// they began after children had last been looked for.
func (l *ledger) appeared(k int) {
	from := k - 1
	for from > 0 && !l.looks[from].Walked {
		from--
	}
	l.since[k] = from
}

// inherit finds for processes that ended the parent that waited for them. Its
// gain in reaped time holds what they had been seen to use, if it is large enough
// to: that part is counted already.
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

// heir is the nearest ancestor of an ended process that is there at look k.
func (l *ledger) heir(p, k int) (int, bool) {
	for range l.parent { // a chain is no longer than there are processes
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
