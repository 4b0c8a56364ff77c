package capture

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// seen is one process in one sample: own and reaped time in milliseconds.
type seen struct{ process, parent, own, reaped int }

// looksOf returns a tree with samples 100 ms apart, all of which searched for children.
func looksOf(looks ...[]seen) *Tree {
	t := &Tree{}
	for k, look := range looks {
		s := TreeSample{At: time.Duration(k) * 100 * time.Millisecond, Walked: true}
		for _, p := range look {
			for len(t.Processes) <= p.process {
				t.Processes = append(t.Processes, Process{PID: 100 + len(t.Processes), Role: "other"})
			}
			s.Processes = append(s.Processes, ProcessSample{
				Process: p.process, Parent: p.parent, Threads: 1,
				CPU: time.Duration(p.own) * time.Millisecond, Reaped: time.Duration(p.reaped) * time.Millisecond,
			})
		}
		t.Samples = append(t.Samples, s)
	}
	return t
}

func TestGrowth(t *testing.T) {
	tests := []struct {
		name  string
		looks [][]seen
		want  []int // milliseconds in all, up to each look
	}{
		{"what was used before the first look is not the run's", [][]seen{{{0, 0, 5000, 3000}}, {{0, 0, 5100, 3000}}}, []int{0, 100}},
		{"a child that is waited for moves to its parent", [][]seen{
			{{0, 0, 10, 0}, {1, 0, 500, 0}}, {{0, 0, 10, 0}, {1, 0, 600, 0}}, {{0, 0, 10, 650}},
		}, []int{0, 100, 150}},
		{"the parent shows it one look later", [][]seen{
			{{0, 0, 10, 0}, {1, 0, 500, 0}}, {{0, 0, 10, 0}}, {{0, 0, 10, 520}}, {{0, 0, 10, 520}},
		}, []int{0, 0, 20, 20}},
		{"a child that nobody waits for keeps what it was last seen with", [][]seen{
			{{0, 0, 10, 0}, {1, 0, 500, 0}}, {{0, 0, 10, 0}, {1, 0, 600, 0}}, {{0, 0, 20, 0}}, {{0, 0, 30, 0}},
		}, []int{0, 100, 110, 120}},
		{"one is waited for and one is not", [][]seen{
			{{0, 0, 0, 0}, {1, 0, 50, 0}, {2, 0, 5000, 0}}, {{0, 0, 0, 60}},
		}, []int{0, 10}},
		{"a child that came and went between looks", [][]seen{{{0, 0, 0, 0}}, {{0, 0, 0, 90}}}, []int{0, 90}},
		{"beside one that was known", [][]seen{
			{{0, 0, 0, 0}, {1, 0, 500, 0}}, {{0, 0, 0, 590}},
		}, []int{0, 90}},
		{"a grandchild moves up two levels at once", [][]seen{
			{{0, 0, 0, 0}, {1, 0, 100, 0}, {2, 1, 300, 0}}, {{0, 0, 0, 410}},
		}, []int{0, 10}},
		{"a grandchild whose parent ends one look later", [][]seen{
			{{0, 0, 0, 0}, {1, 0, 100, 0}, {2, 1, 300, 0}}, {{0, 0, 0, 0}, {1, 0, 100, 0}}, {{0, 0, 0, 410}},
		}, []int{0, 0, 10}},
		{"one taken over by init takes its time away", [][]seen{
			{{0, 0, 0, 0}, {1, 1, 500, 0}}, {{0, 0, 0, 0}, {1, 1, 600, 0}}, {{0, 0, 0, 40}},
		}, []int{0, 100, 140}},
		{"one taken over by a subreaper of the tree", [][]seen{
			{{0, 0, 0, 0}, {1, 0, 100, 0}, {2, 1, 300, 0}},
			{{0, 0, 0, 100}, {2, 0, 350, 0}}, {{0, 0, 0, 460}},
		}, []int{0, 50, 60}},
		{"the root ends, others live on", [][]seen{
			{{0, 0, 100, 50}, {1, 0, 300, 0}}, {{1, 1, 340, 0}}, {{1, 1, 400, 0}},
		}, []int{0, 40, 100}},
		{"one that joins brings all it used", [][]seen{{{0, 0, 0, 0}}, {{0, 0, 0, 0}, {1, 0, 70, 20}}}, []int{0, 90}},
		{"ticks that round down do not take back", [][]seen{
			{{0, 0, 0, 0}, {1, 0, 505, 0}}, {{0, 0, 0, 490}}, {{0, 0, 0, 500}}, {{0, 0, 0, 530}},
		}, []int{0, 0, 0, 25}},
		{"a clock that falls back to ticks counts nothing twice", [][]seen{
			{{0, 0, 107, 0}}, {{0, 0, 100, 0}}, {{0, 0, 110, 0}},
		}, []int{0, 0, 3}},
		{"a look that misses a living process", [][]seen{
			{{0, 0, 0, 0}, {1, 0, 500, 0}}, {{0, 0, 0, 0}}, {{0, 0, 0, 0}, {1, 0, 560, 0}},
		}, []int{0, 0, 60}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			g := looksOf(tt.looks...).grow()
			var got []int
			sum := time.Duration(0)
			for _, d := range g.total() {
				sum += d
				got = append(got, int(sum.Milliseconds()))
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("CPU time up to each look (-want +got):\n%s", diff)
			}
		})
	}
}

func TestEarlierUseIsNotTheRuns(t *testing.T) {
	tree := looksOf([]seen{{0, 0, 0, 0}}, []seen{{0, 0, 0, 0}, {1, 0, 7000, 0}}, []seen{{0, 0, 0, 0}, {1, 0, 7030, 0}})
	tree.Processes[1].Earlier = true
	if got := tree.Usage(0, time.Second).Total.CPUSeconds.V; got != 0.03 {
		t.Errorf("%v s, want the 0.03 since it was found", got)
	}
}

// kernel is a simulated machine: its processes use CPU time, start others, end, and are waited for
// or not.
type kernel struct {
	procs []*simulated
	spent time.Duration // by all processes ever, ended ones included
}

type simulated struct {
	parent      *simulated // nil is outside of the tree
	own, reaped time.Duration
	ignores     bool // SIGCHLD: children are not waited for
	gone        bool
	index       int
}

func (k *kernel) living() []*simulated {
	var l []*simulated
	for _, p := range k.procs {
		if !p.gone {
			l = append(l, p)
		}
	}
	return l
}

// step simulates one random event.
func (k *kernel) step(r *rand.Rand) {
	l := k.living()
	p := l[r.IntN(len(l))]
	switch n := r.IntN(100); {
	case n < 70:
		d := time.Duration(r.Int64N(int64(30 * time.Millisecond)))
		p.own += d
		k.spent += d
	case n < 85 && len(l) < 30:
		k.procs = append(k.procs, &simulated{parent: p, ignores: r.IntN(4) == 0, index: -1})
	case p != k.procs[0]:
		k.end(p)
	}
}

func (k *kernel) end(p *simulated) {
	p.gone = true
	if up := p.parent; up != nil && !up.ignores {
		up.reaped += p.own + p.reaped
	}
	for _, c := range k.procs {
		if c.parent == p {
			c.parent = nil
		}
	}
}

// look samples the kernel, parents before children, with random events between any two reads. Times
// are truncated to ticks like the kernel's.
func (k *kernel) look(t *Tree, r *rand.Rand, walked bool) {
	s := TreeSample{At: time.Duration(len(t.Samples)) * 50 * time.Millisecond, Walked: walked}
	for _, p := range k.living() {
		if r.IntN(5) == 0 {
			k.step(r)
		}
		if p.gone || p.index < 0 && !walked {
			continue
		}
		if p.index < 0 {
			p.index = len(t.Processes)
			t.Processes = append(t.Processes, Process{PID: p.index + 1, Role: fmt.Sprint(p.index % 3)})
		}
		up := p.index
		if p.parent != nil && p.parent.index >= 0 {
			up = p.parent.index
		}
		s.Processes = append(s.Processes, ProcessSample{Process: p.index, Parent: up, CPU: p.own, Reaped: p.reaped.Truncate(tick), Threads: 1})
	}
	t.Samples = append(t.Samples, s)
}

// TestGrowthOfAKernel compares a sampled tree with what its processes really used: the result is
// never more, except for the rounding of ticks, and rarely much less.
func TestGrowthOfAKernel(t *testing.T) {
	var short, all, most time.Duration
	for seed := range uint64(300) {
		r := rand.New(rand.NewPCG(seed, 7))
		k := &kernel{procs: []*simulated{{index: -1}}}
		for range 40 {
			k.step(r)
		}
		tree := &Tree{}
		for n := range 80 {
			k.look(tree, r, n%4 == 0)
			for range r.IntN(20) {
				k.step(r)
			}
			if n == 0 {
				k.spent = 0
			}
		}
		u := tree.Usage(0, time.Hour)
		got := time.Duration(u.Total.CPUSeconds.V * float64(time.Second))
		most = max(most, got-k.spent)
		short += k.spent - got
		all += k.spent
		for _, row := range tree.grow().used {
			for look, d := range row {
				if d < 0 {
					t.Errorf("seed %d: %v at look %d", seed, d, look)
				}
			}
		}
		sum := 0.0
		for _, p := range u.Processes {
			sum += p.CPUSeconds.V
		}
		if d := sum - u.Total.CPUSeconds.V; d > 1e-9 || d < -1e-9 {
			t.Errorf("seed %d: rows add up to %v of %v", seed, sum, u.Total.CPUSeconds.V)
		}
	}
	if most > rounding {
		t.Errorf("%v more than was used", most)
	}
	t.Logf("counted %.1f %% of %v", 100*(1-float64(short)/float64(all)), all)
	if float64(short) > 0.15*float64(all) {
		t.Errorf("%v of %v are lost", short, all)
	}
}

// BenchmarkUsageOfManyProcesses is an hour of a tree with short-lived children, some of which are
// sampled: memory grows with samples and processes, not with their product.
func BenchmarkUsageOfManyProcesses(b *testing.B) {
	tree := &Tree{}
	for k := range 72_000 {
		s := TreeSample{At: time.Duration(k) * 50 * time.Millisecond, Walked: k%10 == 0, Processes: []ProcessSample{{CPU: time.Duration(k) * time.Millisecond, Threads: 4}}}
		if n := k / 10; n > 0 {
			s.Processes = append(s.Processes, ProcessSample{Process: n, CPU: time.Duration(k%10) * time.Millisecond, Threads: 1})
		}
		for len(tree.Processes) <= k/10 {
			tree.Processes = append(tree.Processes, Process{PID: 100 + k, Role: "other"})
		}
		tree.Samples = append(tree.Samples, s)
	}
	b.ReportAllocs()
	for b.Loop() {
		if u := tree.Usage(0, time.Hour); u.Total.Count != 7200 {
			b.Fatal(u.Total.Count)
		}
	}
}
