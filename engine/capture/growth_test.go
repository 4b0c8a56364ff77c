package capture

import (
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
		{"a child that is not reaped keeps its last readings", [][]seen{
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
