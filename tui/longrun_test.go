package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/tui/screentest"

	"github.com/charmbracelet/colorprofile"

	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// longRun returns a run of a day: the maximum that a loop keeps, 16 GPUs and 200 processes.
func longRun() *loop.Snapshot {
	s := waitingSnapshot()
	const iterations, points, marks, entries = 200, 1800, 500, 2000
	s.Now = 24 * time.Hour
	it := s.Iterations[0]
	s.Iterations = nil
	for i := range iterations {
		it.N, it.At = 400+i, 23*time.Hour+time.Duration(i)*18*time.Second
		it.Up, it.Settled = it.At+4*time.Second, it.At+8*time.Second
		s.Iterations = append(s.Iterations, it)
	}
	p := slices.Clone(s.Points)
	s.Points = nil
	for i := range points {
		q := p[i%len(p)]
		q.T, q.Iteration = 23*time.Hour+time.Duration(i)*2*time.Second, 400+i/9
		s.Points = append(s.Points, q)
	}
	s.Marks = nil
	for i := range marks {
		s.Marks = append(s.Marks, loop.Mark{T: 23*time.Hour + time.Duration(i)*7*time.Second, Kind: loop.MarkKind(i % 5)})
	}
	s.Journal = slices.Repeat(s.Journal, entries/len(s.Journal))
	s.Noise = slices.Repeat(s.Noise, 50)
	proc := s.Processes
	s.Processes = nil
	for i := range 200 {
		q := proc[i%len(proc)]
		q.PID, q.PPID = 5000+i, 5000+i/7
		s.Processes = append(s.Processes, q)
	}
	g := *s.GPU
	g.Devices = slices.Repeat(g.Devices[:1], 16)
	s.GPU = &g
	return s
}

// BenchmarkLongRun draws the views of a run of a day.
func BenchmarkLongRun(b *testing.B) {
	s := longRun()
	th := frame.ThemeOf("dark", colorprofile.TrueColor)
	for v := range numViews {
		for _, size := range [][2]int{{80, 24}, {200, 60}} {
			b.Run(fmt.Sprintf("%s-%dx%d", viewFile(v), size[0], size[1]), func(b *testing.B) {
				u := plainLook()
				u.View = v
				b.ReportAllocs()
				for b.Loop() {
					c, _ := drawRun(s, u, size[0], size[1])
					c.Render(th.Paint)
				}
			})
		}
	}
}

// TestLongRunHoldsItsFrame draws a run of a day from its first line to its last.
func TestLongRunHoldsItsFrame(t *testing.T) {
	s := longRun()
	for v := range numViews {
		for _, size := range [][2]int{{60, 16}, {80, 24}, {200, 60}} {
			for _, at := range []int{0, 7, 500, frame.ToEnd} {
				u := plainLook()
				u.View, u.Scroll[v] = v, at
				if err := screentest.CheckFrame(plainFrame(s, u, size[0], size[1]), size[0], size[1]); err != nil {
					t.Errorf("%s at %dx%d from line %d: %v", views()[v].name, size[0], size[1], at, err)
				}
			}
		}
	}
}

// TestJournalFromAnyLine checks that formatting only the visible lines gives the same lines as
// formatting all.
func TestJournalFromAnyLine(t *testing.T) {
	s := snapshotNamed(t, "long") // entries of several lines, and some let go
	for _, glyphs := range []cell.Glyphs{cell.Unicode(), cell.ASCII()} {
		u := &frame.Settings{Glyphs: glyphs}
		lines := journal(s, u, 66).Lines(0)
		all := strings.Split(drawn(journal, s, u, 66, lines+6), "\n")
		if lines < 2*len(s.Journal) || strings.TrimSpace(all[lines-1]) == "" || strings.TrimSpace(all[lines]) != "" {
			t.Fatalf("%d lines for %d entries", lines, len(s.Journal))
		}
		for first := range lines + 2 {
			got, want := drawnFrom(journal, s, u, 66, 5, first), strings.Join(all[min(first, lines):min(first, lines)+5], "\n")+"\n"
			if got != want {
				t.Errorf("from line %d: got\n%s\nwant\n%s", first, got, want)
			}
		}
	}
}
