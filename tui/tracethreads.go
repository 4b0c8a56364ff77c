package tui

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// What a thread does in a column of its lane.
const (
	laneNone = iota
	laneBusy
	laneSync
	laneOff
	numLaneStates
)

// laneSigns are how the states are drawn, in an order that reads without colour.
func laneSigns(g cell.Glyphs) [numLaneStates]string {
	if g.ASCII {
		return [...]string{" ", "#", ".", "x"}
	}
	return [...]string{" ", "█", "░", "╳"}
}

func laneTokens() [numLaneStates]cell.Token {
	return [...]cell.Token{cell.Body, cell.OK, cell.Warn, cell.Bad}
}

// threads is the newest decode graph lane by lane, and the lanes over all graphs.
func (v *traceView) threads(l *listing) {
	l.title("The newest decode graph", v.graphNote())
	v.lanes(l, 0)
	l.space()
	v.longest(l)
	v.threadTable(l)
	v.others(l)
}

func (v *traceView) graphNote() prose {
	g := &v.live.Graph
	if len(g.Lanes) == 0 {
		return nil
	}
	return v.u.say(cell.Muted, fmt.Sprintf("graph %s, %s", figure.Whole(float64(g.Index)), howLong(g.Time)))
}

// laneLabel and laneFigure are the cells before a lane: its number, and how much of
// the graph it computed.
const (
	laneLabel  = 4
	laneFigure = 7
)

// lanes draws a line for each thread, and what its signs mean. most is how many lines
// there are room for, 0 any number.
func (v *traceView) lanes(l *listing, most int) {
	u, g := v.u, &v.live.Graph
	if len(g.Lanes) == 0 {
		l.say(u.say(cell.Muted, v.noLanes()))
		return
	}
	signs, tokens := laneSigns(u.glyphs), laneTokens()
	legend := line(u.say(tokens[laneBusy], signs[laneBusy]), u.say(cell.Muted, " computes   "),
		u.say(tokens[laneSync], signs[laneSync]), u.say(cell.Muted, " waits for others   "), u.say(tokens[laneOff], signs[laneOff]), u.say(cell.Muted, " off the CPU"))
	l.row(func(p cell.Pane) {
		x := max(0, min(laneLabel+laneFigure+2, p.Width()-legend.width()))
		x = legend.draw(p, x, 0)
		if text := howLong(g.Time); x+2+p.Cells(text) <= p.Width() {
			p.Right(p.Width(), 0, cell.Muted, text)
		}
	})
	shown := g.Lanes
	if most > 0 && len(shown) > most-1 {
		shown = shown[:max(1, most-2)]
	}
	for i := range shown {
		lane := &shown[i]
		l.row(func(p cell.Pane) {
			p.Right(laneLabel, 0, cell.Muted, fmt.Sprint(lane.Lane))
			x := laneLabel + laneFigure
			p.Right(x, 0, cell.Body, figure.Show(busyShare(lane, g), "ratio"))
			x += 2
			drawRuns(p.Sub(x, 0, p.Width()-x, 1), laneColumns(lane.Spans, g.Time, p.Width()-x), signs, tokens)
		})
	}
	if n := len(g.Lanes) - len(shown); n > 0 {
		l.say(u.say(cell.Muted, fmt.Sprintf("%s more in view %d", counted(n, "lane"), viewThreads+1)))
	}
}

// drawRuns fills stretches of one state at a time.
func drawRuns(p cell.Pane, columns []int, signs [numLaneStates]string, tokens [numLaneStates]cell.Token) {
	for from := 0; from < len(columns); {
		to := from + 1
		for to < len(columns) && columns[to] == columns[from] {
			to++
		}
		p.Sub(from, 0, to-from, 1).Fill(tokens[columns[from]], signs[columns[from]])
		from = to
	}
}

func (v *traceView) noLanes() string {
	if v.live.Detail&optrace.DetailOperator == 0 && v.live.Detail != 0 {
		return "Threads are seen by their operators: + traces them."
	}
	return "No whole decode graph was traced yet."
}

// busyShare is how much of a graph a lane computed, absent where no operator of the graph
// was traced.
func busyShare(lane *optrace.LiveLane, g *optrace.LiveGraph) stat.Opt {
	whole := g.Time
	if whole <= 0 || !slices.ContainsFunc(g.Lanes, func(l optrace.LiveLane) bool { return len(l.Spans) > 0 }) {
		return stat.None
	}
	busy := 0.0
	for i := range lane.Spans {
		s := &lane.Spans[i]
		busy += float64(max(0, s.End-s.Begin-max(0, s.Sync)-max(0, s.Off)))
	}
	return stat.Some(min(1, busy/float64(whole)))
}

// offShare is the part of a column from which being off the CPU is what it shows:
// it is rare, and worse than anything else.
const offShare = 0.25

// laneColumns says what a thread did in each of n columns of a graph. Within a span
// the waiting comes last, as barriers do, and what was off the CPU before it.
func laneColumns(spans []optrace.LiveSpan, whole time.Duration, n int) []int {
	if n <= 0 || whole <= 0 {
		return nil
	}
	covered := make([][numLaneStates]float64, n)
	add := func(state int, from, to time.Duration) {
		a, b := float64(from)/float64(whole)*float64(n), float64(to)/float64(whole)*float64(n)
		a, b = min(max(0, a), float64(n)), min(float64(n), b)
		for i := int(a); i < n && float64(i) < b; i++ {
			covered[i][state] += min(b, float64(i+1)) - max(a, float64(i))
		}
	}
	for i := range spans {
		s := &spans[i]
		if s.End <= s.Begin || s.Begin < 0 || s.Begin >= whole {
			continue
		}
		all := s.End - s.Begin
		sync := min(max(0, s.Sync), all)
		off := min(max(0, s.Off), all-sync)
		add(laneBusy, s.Begin, s.End-sync-off)
		add(laneOff, s.End-sync-off, s.End-sync)
		add(laneSync, s.End-sync, s.End)
	}
	out := make([]int, n)
	for i, c := range covered {
		seen := c[laneBusy] + c[laneSync] + c[laneOff]
		switch {
		case seen < 0.01:
			out[i] = laneNone
		case c[laneOff] >= offShare*seen:
			out[i] = laneOff
		case c[laneSync] > c[laneBusy]:
			out[i] = laneSync
		default:
			out[i] = laneBusy
		}
	}
	return out
}

// longest lists the operators of lane 0 that took longest.
func (v *traceView) longest(l *listing) {
	const most = 6
	g := &v.live.Graph
	if len(g.Lanes) == 0 || len(g.Lanes[0].Spans) == 0 || g.Time <= 0 {
		return
	}
	spans := make([]*optrace.LiveSpan, len(g.Lanes[0].Spans))
	for i := range spans {
		spans[i] = &g.Lanes[0].Spans[i]
	}
	slices.SortStableFunc(spans, func(a, b *optrace.LiveSpan) int { return cmp.Compare(b.End-b.Begin, a.End-a.Begin) })
	columns := []column{{head: fmt.Sprintf("longest on lane %d", g.Lanes[0].Lane), left: true}, {head: "operator", left: true}, {head: "took"}, {head: "of it waits"}, {head: "off CPU"}, {head: "began at"}}
	for _, s := range spans[:min(most, len(spans))] {
		addRow(columns, cmp.Or(s.Name, s.Op, figure.Absent), cmp.Or(s.Op, figure.Absent), howLong(s.End-s.Begin), howLong(s.Sync), howLong(s.Off), figure.Show(stat.Some(max(0, s.Begin.Seconds())), "s"))
	}
	l.section("Longest operators of this graph", columns)
}

// threadTable is the lanes over all graphs.
func (v *traceView) threadTable(l *listing) {
	columns := []column{
		{head: "lane", left: true}, {head: "busy"}, {head: "waits"}, {head: "off CPU"}, {head: "preempted"}, {head: "wake-up p99"}, {head: "switches"}, {head: "threads"},
		{head: "syscalls"}, {head: "faults"}, {head: "major"}, {head: "disk"},
	}
	for i := range v.s.Threads {
		r := &v.s.Threads[i]
		addRow(columns, figure.Whole(float64(r.Lane)), figure.Show(finite(r.Busy), "ratio"), figure.Show(finite(r.Sync), "ratio"), figure.Show(finite(r.Off), "ratio"), figure.Show(finite(r.Preempted), "ratio"),
			howLong(r.WakeUp.P99), figure.Show(finite(r.Switches), ""), figure.Whole(float64(r.Threads)),
			figure.Show(finite(r.Syscalls), ""), figure.Show(finite(r.MinorFaults), ""), figure.Show(finite(r.MajorFaults), ""), figure.Show(finite(r.IOBytes), "B"))
	}
	l.noted("Threads over the whole trace", v.ofGraphs(), columns)
}

// ofGraphs says what graphs the shares of lanes are of, where these are not all.
func (v *traceView) ofGraphs() prose {
	if len(v.s.Threads) == 0 || !v.severalLevels() {
		return nil
	}
	n, all := v.s.Threads[0].Graphs, v.s.Coverage.Graphs
	if n <= 0 || n >= all {
		return nil
	}
	return v.u.say(cell.Muted, fmt.Sprintf("shares: %s of %s, whose levels tell most", figure.Whole(float64(n)), counted(all, "graph")))
}

// hardly is the share of the time of graphs below which processes are not listed one by
// one: there are hundreds on a server, and all together say that nobody is in the way.
const hardly = 0.001

// others is who took the CPU away.
func (v *traceView) others(l *listing) {
	l.section("Who had the CPU instead", thieves(v.s.Others))
}

// thieves is a table of processes.
func thieves(rows []optrace.OtherRow) []column {
	columns := []column{{head: "process", left: true}, {head: "PID"}, {head: "time"}, {head: "of lanes"}, {head: "of graphs, worst lane"}}
	small, together := 0, time.Duration(0)
	for i := range rows {
		if r := &rows[i]; r.Share.OK && r.Share.V < hardly {
			small, together = small+1, together+r.Time
		}
	}
	for i := range rows {
		r := &rows[i]
		if small > 1 && r.Share.OK && r.Share.V < hardly {
			continue
		}
		pid := figure.Absent // of several
		if r.PID > 0 {
			pid = fmt.Sprint(r.PID)
		}
		addRow(columns, cmp.Or(r.Name, figure.Absent), pid, howLong(r.Time), figure.Show(finite(r.OfLanes), "ratio"), figure.Show(finite(r.Share), "ratio"))
	}
	if small > 1 {
		addRow(columns, fmt.Sprintf("%d more, each less", small), figure.Absent, howLong(together), figure.Absent, "<"+figure.Show(stat.Some(hardly), "ratio"))
	}
	return columns
}
