package tui

import (
	"cmp"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// details is what the figures rest on: what was covered, what it cost, what was traced
// and where, what was found, and what is not known.
func (v *traceView) details(l *listing) {
	v.coverage(l)
	v.target(l)
	v.gaps(l)
	v.findingList(l)
	v.sites(l)
	v.backends(l)
	v.shapes(l)
}

func (v *traceView) coverage(l *listing) {
	u, c, r := v.u, &v.s.Coverage, &v.s.Roof
	l.title("Coverage", u.say(cell.Muted, "detail "+v.detailWord()))
	took := time.Duration(0)
	if c.Seconds > 0 && c.Seconds < 1e9 {
		took = time.Duration(c.Seconds * float64(time.Second))
	}
	l.fact("recorded", cell.Body, fmt.Sprintf("%s: %s, %s, %s", lasting(took), counted(c.Calls, "call"), counted(c.Graphs, "graph"), counted(int(c.Events), "event")))
	if v.severalLevels() {
		l.fact("levels", cell.Body, v.levelWords())
	}
	token, text := cell.OK, u.glyphs.Good+" nothing"
	if c.Dropped > 0 {
		token, text = cell.Warn, u.glyphs.Warn+" "+lostWords(c)
	}
	l.fact("lost", token, text)
	if c.Partial > 0 || c.LeftOut > 0 {
		l.fact("left out", cell.Body, fmt.Sprintf("%s of every figure; %s of exports alone", counted(c.Partial, "partial graph"), counted(int(c.LeftOut), "event"))+keptWords(c))
	}
	l.fact("covered", cell.Body, fmt.Sprintf("operators %s of the time of graphs, graphs %s of that of calls; %s operators a decoded token",
		figure.Show(finite(c.OpShare), "ratio"), figure.Show(finite(c.GraphOf), "ratio"), figure.Show(finite(c.OpsPerToken), "")))
	text, token = u.costWords(v.observer(), true)
	l.fact("cost", token, text)
	l.fact("roof", cell.Body, roofWords(r.BytesPerSecond, r.FlopsPerSecond, r.FlopsOf, r.Int8PerSecond, r.Int8Of, r.Threads, roofFrom(v.s)))
	l.space()
}

// keptWords say which seconds of a trace exports of events hold, "" where they hold all or
// it is not known.
func keptWords(c *optrace.Coverage) string {
	if !number(c.KeptFrom) || !number(c.KeptTo) {
		return ""
	}
	return fmt.Sprintf(", which hold %.1f to %.1f s of the trace", c.KeptFrom.V, c.KeptTo.V)
}

// detailWord is the level that goes on; of a snapshot that does not tell, that of most
// graphs.
func (v *traceView) detailWord() string {
	if v.live.Detail != 0 {
		return v.live.Detail.String()
	}
	return cmp.Or(v.s.Coverage.Detail, v.live.Detail.String())
}

// roofFrom says where a roof is known from.
func roofFrom(s *optrace.Summary) string {
	switch s.Roof.From {
	case "":
		return "(est)"
	case optrace.RoofSeen:
		return s.SeenRoof()
	}
	return s.Roof.Origin()
}

// roofWords is what the machine can do, and where that is known from.
func roofWords(bytes, flops float64, of string, int8s float64, int8Of string, threads int, from string) string {
	if from == "" {
		return ""
	}
	var words []string
	add := func(v float64, unit, of string) {
		if v > 0 {
			words = append(words, strings.TrimSpace(giga(stat.Some(v))+figure.NBSP+unit+" "+of))
		}
	}
	add(bytes, "GB/s", "")
	add(flops, "GFLOP/s", of)
	add(int8s, "Gop/s", int8Of)
	if len(words) == 0 {
		return "" // the line shows a dash
	}
	return strings.Join(words, ", ") + " with " + counted(threads, "thread") + ", " + from
}

func (v *traceView) target(l *listing) {
	t := &v.s.Target
	l.title("Target", nil)
	pid := "a file, no process"
	if t.PID > 0 {
		pid = fmt.Sprint(t.PID)
	}
	l.fact("PID", cell.Body, pid)
	l.fact("command", cell.Strong, t.Command)
	l.fact("model", cell.Body, t.Model)
	l.fact("runtime", cell.Body, t.Runtime)
	l.fact("hook", cell.Body, t.Hook)
	layout := t.Layout
	switch {
	case t.Verified:
		layout += ", verified against tensors that were read"
	case t.Withheld != "":
		layout += "; names and shapes are withheld: " + t.Withheld
	}
	l.fact("layout", map[bool]cell.Token{true: cell.Body, false: cell.Warn}[t.Verified || t.Withheld == ""], strings.TrimPrefix(layout, "; "))
	l.fact("machine", cell.Body, machineWords(t))
	for _, f := range t.Files {
		text := f.Path
		if f.BuildID != "" {
			text += " (" + f.BuildID + ")"
		}
		l.fact(f.Role, cell.Body, text)
	}
	l.space()
}

// machineWords is the machine in a line.
func machineWords(t *optrace.Target) string {
	var words []string
	if t.CPU != "" {
		words = append(words, t.CPU)
	}
	if t.CPUs > 0 {
		words = append(words, counted(t.CPUs, "CPU"))
	}
	if t.Arch != "" {
		words = append(words, t.Arch)
	}
	if t.Kernel != "" {
		words = append(words, "kernel "+t.Kernel)
	}
	return strings.Join(words, ", ")
}

// gaps are what is not known, with the reason and what to do.
func (v *traceView) gaps(l *listing) {
	u := v.u
	if len(v.s.Gaps) == 0 {
		return
	}
	l.title("Not known", u.say(cell.Muted, "and what would tell it"))
	for _, g := range v.s.Gaps {
		text := line(u.say(cell.Strong, u.glyphs.Dash+" "+g.What), u.say(cell.Body, ": "+sentence(g.Why)))
		if g.Next != "" {
			text = line(text, u.say(cell.Accent, " "+sentence(g.Next)))
		}
		l.say(text)
	}
	l.space()
}

func (v *traceView) findingList(l *listing) {
	u := v.u
	if len(v.s.Findings) == 0 {
		return
	}
	l.title("Findings", nil)
	for i := range v.s.Findings {
		f := &v.s.Findings[i]
		g := u.severity(f.Severity)
		head := line(u.say(g.token, g.sign+" "+g.word+" "), u.say(cell.Strong, f.Title), u.say(cell.Muted, " ("+f.ID+")"))
		if number(f.Cost) {
			head = line(head, u.say(cell.Body, ", "+figure.Show(f.Cost, "ratio")+" of the time of graphs"))
		}
		l.say(head)
		for _, e := range f.Evidence {
			l.say(u.say(cell.Muted, "  "+u.glyphs.Info+" "+e))
		}
	}
	l.space()
}

// sites are where the probes sit.
func (v *traceView) sites(l *listing) {
	columns := []column{{head: "probe", left: true}, {head: "at", left: true}, {head: "a hit, hot to cold (est)"}, {head: "instruction", left: true}, {head: "file", left: true}}
	for i := range v.s.Target.Sites {
		s := &v.s.Target.Sites[i]
		hot, cold := s.HitCost()
		cost := howLong(hot)
		if cold != hot {
			cost += " to " + howLong(cold)
		}
		if !s.Cheap {
			cost = v.u.glyphs.Warn + " " + cost
		}
		addRow(columns, cmp.Or(s.Symbol, figure.Absent), fmt.Sprintf("+%d", s.Offset), cost, cmp.Or(s.Instruction, figure.Absent), path.Base(cmp.Or(s.File, figure.Absent)))
	}
	l.section("Probes", columns)
}

// backends are who computes what, and what is copied between them.
func (v *traceView) backends(l *listing) {
	columns := []column{{head: "backend", left: true}, {head: "splits"}, {head: "nodes"}, {head: "time"}, {head: "operators", left: true}}
	for i := range v.s.Backends {
		b := &v.s.Backends[i]
		seen := "seen"
		switch {
		case b.Seen:
		case b.Time > 0:
			seen = "not watched: + traces them"
		default:
			seen = strings.TrimSpace("not seen: " + cmp.Or(b.Pair, "they run elsewhere"))
		}
		addRow(columns, cmp.Or(b.Name, figure.Absent), figure.Whole(float64(b.Splits)), figure.Whole(float64(b.Nodes)), howLong(b.Time), seen)
	}
	l.section("Backends", columns)
	columns = []column{{head: "copies", left: true}, {head: "count"}, {head: "bytes"}}
	for _, r := range v.s.Copies {
		addRow(columns, cmp.Or(r.Direction, figure.Absent), figure.Whole(float64(r.Count)), figure.Show(stat.Some(float64(r.Bytes)), "B"))
	}
	l.section("Copies", columns)
}

// shapes are the distinct graphs.
func (v *traceView) shapes(l *listing) {
	columns := []column{{head: "graph", left: true}, {head: "nodes"}, {head: "edges"}, {head: "leaves"}, {head: "views"}, {head: "computed"}}
	for _, g := range v.s.Graphs {
		addRow(columns, fmt.Sprint(g.DAG), figure.Whole(float64(g.Nodes)), figure.Whole(float64(g.Edges)), figure.Whole(float64(g.Leaves)), figure.Whole(float64(g.Views)), figure.Whole(float64(g.Graphs)))
	}
	l.section("Distinct graphs", columns)
}
