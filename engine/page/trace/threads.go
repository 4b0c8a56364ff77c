package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/advice"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// mostThreads is the default number of threads to show, because the threads of a server with many cores
// hardly differ.
const mostThreads = 8

// threads returns how each compute thread used the time of graphs.
func (b *builder) threads() page.Section {
	rows := b.s.Threads
	out := page.Section{ID: "threads", Title: "Threads"}
	if len(rows) == 0 {
		return out
	}
	waits := "waits for others"
	if slices.ContainsFunc(rows, func(t optrace.ThreadRow) bool { return t.Off.Finite().OK && t.Sync.Finite().OK }) {
		waits += " on its CPU"
	}
	out.Note = "shares of graph time"
	type thread = optrace.ThreadRow
	t := page.Tabulate(rows, []page.Field[thread]{
		page.Left("thread", page.Strong, func(t thread) string { return strconv.Itoa(t.Thread) }),
		{Column: page.Column{Bar: true, Rank: 1, Tone: page.Accent, Legend: []string{"computes", waits, "off its CPU"}}, Cell: func(t thread) page.Cell { return page.Cell{Parts: []stat.Opt{t.Busy, t.Sync, t.Off}} }},
		page.Right("busy", page.Body, func(t thread) page.Cell { return page.Share(t.Busy) }),
		page.Right("waits", page.Body, func(t thread) page.Cell { return page.Share(t.Sync) }),
		page.Right("off"+figure.NBSP+"CPU", page.Body, func(t thread) page.Cell { return page.Share(t.Off) }),
		page.Right("preempted", page.Body, func(t thread) page.Cell { return page.Share(t.Preempted) }).Ranked(2),
		page.Right("wake-up"+figure.NBSP+"p95", page.Body, func(t thread) page.Cell { return page.Elapsed(t.WakeUp.P95) }).Ranked(3),
		page.Right("switches", page.Body, func(t thread) page.Cell { return page.Amount(t.Switches, "") }).Ranked(4),
		page.Right("faults", page.Body, func(t thread) page.Cell { return page.Amount(t.MinorFaults, "") }).Ranked(6),
		page.Right("major", page.Body, func(t thread) page.Cell { return page.Amount(t.MajorFaults, "") }).Ranked(5),
		page.Right("syscalls", page.Body, func(t thread) page.Cell { return page.Amount(t.Syscalls, "") }).Ranked(7),
		page.Right("in"+figure.NBSP+"syscalls", page.Body, func(t thread) page.Cell { return page.Amount(t.SyscallTime, "s") }).Ranked(8),
		page.Right("disk", page.Body, func(t thread) page.Cell { return page.Amount(t.IOBytes, "B") }).Ranked(9),
		page.Right("thread"+figure.NBSP+"ids", page.Body, func(t thread) page.Cell { return page.Integer(t.ThreadIDs) }).Ranked(10),
	})
	out.Add(t.AtMost(mostThreads, "thread"))
	if said := advice.UsedByOthers(b.s.HostLoad); said != "" {
		out.Add(page.Paragraph(page.Toned(page.Muted, said)))
	}
	return out
}

// Lanes returns a graph by thread.
func Lanes(g *optrace.LiveGraph) page.Section {
	out := page.Section{ID: "timeline", Title: "One decode graph, thread by thread"}
	if g == nil || g.Time <= 0 || len(g.Threads) == 0 {
		return out
	}
	which := "the median by time of " + figure.Counted(g.MedianOf, "whole graph") + " in the recording"
	out.Note = fmt.Sprintf("graph %s, %s", figure.Whole(float64(g.Index)), figure.Duration(g.Time))
	t := &page.Timeline{
		ID: "timeline", Total: g.Time, States: [3]string{"computes", "waits for others", "off the CPU"},
		Desc: fmt.Sprintf("Graph %d, %s of %s, %s: %s on %s. Gaps are the time between operators.", g.Index, cmp.Or(g.Phase, "a graph"), figure.Counted(g.Tokens, "token"), which, figure.Duration(g.Time), figure.Counted(len(g.Threads), "thread")),
		Keys: []page.Key{{Class: "memory", Label: "products of matrices"}, {Class: "compute", Label: "attention"}, {Class: "mixed", Label: "norms and activations"}, {Class: "other", Label: "other operators"}, {Class: "panel", Label: "waiting or off the CPU, as a share of the height"}},
	}
	for i := range g.Threads {
		l := &g.Threads[i]
		t.Lanes = append(t.Lanes, page.Lane{
			Label: "thread " + strconv.Itoa(l.Index), Note: figure.Show(busyShare(l, g), "ratio"),
			Stretches: func() []page.Stretch { return stretches(l) }, Tooltip: func(j int) string { return spanWords(&l.Spans[j]) },
		})
	}
	out.Add(t)
	return out
}

// stretches returns the operators of a thread.
func stretches(l *optrace.LiveThread) []page.Stretch {
	list := make([]page.Stretch, len(l.Spans))
	for i := range l.Spans {
		s := &l.Spans[i]
		list[i] = page.Stretch{From: s.Begin, To: s.End, Wait: s.Sync, Off: s.Off, Class: family(s.Op)}
	}
	return list
}

func spanWords(s *optrace.LiveSpan) string {
	text := fmt.Sprintf("%s %s: %s", s.Op, s.Name, figure.Duration(s.End-s.Begin))
	if s.Sync > 0 {
		text += ", waits " + figure.Duration(s.Sync)
	}
	if s.Off > 0 {
		text += ", off the CPU " + figure.Duration(s.Off)
	}
	return text
}

// family returns the picture class of an operator's family.
func family(op string) string {
	switch {
	case strings.HasPrefix(op, "MUL_MAT"), op == "OUT_PROD":
		return "memory"
	case strings.HasPrefix(op, "FLASH_ATTN"), op == "SOFT_MAX", op == "ROPE", op == "SET_ROWS":
		return "compute"
	case strings.HasSuffix(op, "NORM"), op == "GLU", op == "UNARY":
		return "mixed"
	}
	return "other"
}

// busyShare returns the share of a graph's time that a thread computed, absent if no operator of the graph
// was traced.
func busyShare(lane *optrace.LiveThread, g *optrace.LiveGraph) stat.Opt {
	if g.Time <= 0 || !slices.ContainsFunc(g.Threads, func(l optrace.LiveThread) bool { return len(l.Spans) > 0 }) {
		return stat.None
	}
	busy := 0.0
	for i := range lane.Spans {
		s := &lane.Spans[i]
		busy += float64(max(0, s.End-s.Begin-max(0, s.Sync)-max(0, s.Off)))
	}
	return stat.Some(min(1, busy/float64(g.Time)))
}
