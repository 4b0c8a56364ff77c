package tally

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Names of parts of a critical path that are not operators.
const (
	criticalStart = "start"
	criticalSync  = "synchronisation"
)

// maxCritical is the number of names on critical paths that are distinguished.
const maxCritical = 256

// criticalSums sums up the critical paths of decode graphs.
type criticalSums struct {
	of   bounded[string, criticalSum]
	time time.Duration
}

// criticalSum sums up one name on critical paths.
type criticalSum struct {
	time    time.Duration
	threads map[int]time.Duration
}

// addGraph divides the time of a graph by its critical path: the time before the first operator
// is its start; the time between two operators, and after the last, is synchronisation.
func (s *criticalSums) addGraph(t *Tally, g *optrace.Graph) {
	if len(g.Critical) == 0 {
		return
	}
	at := g.Begin
	for i, ref := range g.Critical {
		if ref.Thread < 0 || ref.Thread >= len(g.Threads) || ref.Span < 0 || ref.Span >= len(g.Threads[ref.Thread].Spans) {
			continue
		}
		p := &g.Threads[ref.Thread].Spans[ref.Span]
		begin, end := min(p.Begin, g.End), min(p.End, g.End)
		if begin > at {
			name := criticalSync
			if i == 0 {
				name = criticalStart
			}
			s.add(name, optrace.NoThread, stat.Elapsed(at, begin))
		}
		if from := max(at, begin); end > from {
			s.add(t.criticalName(p.Operator), ref.Thread, stat.Elapsed(from, end))
		}
		at = max(at, end)
	}
	s.add(criticalSync, optrace.NoThread, stat.Elapsed(at, g.End))
}

// criticalName returns an operator's name on a critical path.
func (t *Tally) criticalName(ref uint32) string {
	if f := t.factsOf(ref); f.op != "" {
		return f.op
	}
	return "operators"
}

// add adds time of a name on a thread, or on [optrace.NoThread].
func (s *criticalSums) add(name string, thread int, took time.Duration) {
	if took <= 0 {
		return
	}
	c, _ := s.of.getOr(name, others)
	c.time, s.time = stat.AddSaturating(c.time, took), stat.AddSaturating(s.time, took)
	if thread >= 0 && thread < maxThreadRows {
		if c.threads == nil {
			c.threads = map[int]time.Duration{}
		}
		c.threads[thread] = stat.AddSaturating(c.threads[thread], took)
	}
}

// rows returns the names, those with the most time first.
func (s *criticalSums) rows() []optrace.CriticalRow {
	rows := make([]optrace.CriticalRow, 0, len(s.of.of))
	for name, c := range s.of.of {
		row := optrace.CriticalRow{Name: name, Thread: optrace.NoThread, Time: c.time, Share: stat.Ratio(c.time, s.time)}
		for _, thread := range slices.Sorted(maps.Keys(c.threads)) {
			if row.Thread == optrace.NoThread || c.threads[thread] > c.threads[row.Thread] {
				row.Thread = thread
			}
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b optrace.CriticalRow) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), strings.Compare(a.Name, b.Name))
	})
	return rows
}
