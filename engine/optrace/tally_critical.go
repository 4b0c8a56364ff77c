package optrace

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// Names of what a critical path has besides operators.
const (
	criticalStart = "start"
	criticalSync  = "synchronisation"
)

// noLane is the lane of what no lane does: nobody computes before the first operator, nor
// between two.
const noLane = -1

// UnmarshalJSON reads a row of a document, in which null is no lane.
func (r *CriticalRow) UnmarshalJSON(b []byte) error {
	type plain CriticalRow
	row := plain{Lane: noLane}
	if err := json.Unmarshal(b, &row); err != nil {
		return err
	}
	*r = CriticalRow(row)
	return nil
}

// maxCritical is the number of names on critical paths that are told apart.
const maxCritical = 256

// criticalSums adds up what decided how long decode graphs took.
type criticalSums struct {
	of   map[string]*criticalSum
	time time.Duration
}

// criticalSum adds one name up.
type criticalSum struct {
	time  time.Duration
	lanes map[int]time.Duration
}

// addGraph divides the time of a graph by its critical path: until the first operator
// begins it starts, what lies between one and the next is synchronisation, and so is
// what comes after the last.
func (s *criticalSums) addGraph(t *Tally, g *Graph) {
	if len(g.Critical) == 0 {
		return
	}
	at := g.Begin
	for i, ref := range g.Critical {
		if ref.Lane < 0 || ref.Lane >= len(g.Lanes) || ref.Span < 0 || ref.Span >= len(g.Lanes[ref.Lane].Spans) {
			continue
		}
		p := &g.Lanes[ref.Lane].Spans[ref.Span]
		begin, end := min(p.Begin, g.End), min(p.End, g.End)
		if begin > at {
			name := criticalSync
			if i == 0 {
				name = criticalStart
			}
			s.add(name, noLane, span(at, begin))
		}
		if from := max(at, begin); end > from {
			s.add(t.criticalName(p.Operator), ref.Lane, span(from, end))
		}
		at = max(at, end)
	}
	s.add(criticalSync, noLane, span(at, g.End))
}

// criticalName is an operator's name on a critical path.
func (t *Tally) criticalName(ref uint32) string {
	if f := t.factsOf(ref); f.op != "" {
		return f.op
	}
	return "operators"
}

// add adds time on a lane.
func (s *criticalSums) add(name string, lane int, took time.Duration) {
	if took <= 0 {
		return
	}
	c := s.of[name]
	if c == nil && len(s.of) >= maxCritical {
		name = others
		c = s.of[name]
	}
	if c == nil {
		c = &criticalSum{lanes: map[int]time.Duration{}}
		s.of[name] = c
	}
	c.time, s.time = plus(c.time, took), plus(s.time, took)
	if lane >= 0 && lane < maxLaneRows {
		c.lanes[lane] = plus(c.lanes[lane], took)
	}
}

// rows are the names, those with the most time first.
func (s *criticalSums) rows() []CriticalRow {
	rows := make([]CriticalRow, 0, len(s.of))
	for name, c := range s.of {
		row := CriticalRow{Name: name, Lane: noLane, Time: c.time, Share: ratio(c.time, s.time)}
		for _, lane := range sorted(c.lanes) {
			if row.Lane == noLane || c.lanes[lane] > c.lanes[row.Lane] {
				row.Lane = lane
			}
		}
		rows = append(rows, row)
	}
	slices.SortFunc(rows, func(a, b CriticalRow) int {
		return cmp.Or(cmp.Compare(b.Time, a.Time), strings.Compare(a.Name, b.Name))
	})
	return rows
}
