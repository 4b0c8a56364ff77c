package tui

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// standInFor says what a trace does while there is no figure yet, and what to do.
func standInFor(l *optrace.Live, begun bool) *standIn {
	doctor := [2]string{"rooftop doctor", "what can be traced here, and what each gap costs"}
	x := &standIn{
		clock: clock(l.Now),
		facts: []labelled{{cell.Body, "target", targetWords(&l.Target)}, {cell.Strong, "last word", l.Notice}},
		last:  "The screen goes on by itself as soon as a graph was traced.",
	}
	switch l.State {
	case optrace.LiveWaiting:
		x.title, x.what = "Waiting for work", "The probes are in place, and the target computes nothing. Send it a request: the first whole graph shows here."
		x.steps = [][2]string{{"curl http://HOST:PORT/v1/completions …", "ask a server for some tokens"}, {"- or +", "trace less or more detail"}, doctor}
	case optrace.LiveWeighing:
		x.title, x.what = "Weighing the cost", "Only graphs are traced for some seconds, to reckon from their operators what more detail would cost the target."
	case optrace.LiveAsking:
		x.title, x.what = "Your answer", cmp.Or(l.Question, "Go on?")
		x.steps = [][2]string{{"y", "go on"}, {"n", "stay with what costs less"}}
		x.last = "Until then the target runs as it is traced now."
	case optrace.LiveTracing:
		x.title, x.what = "Tracing", "No whole graph was seen yet: one that began before the trace is left out. Where the target computes and this stays, its operators go past the hook."
		x.steps = [][2]string{doctor}
	case optrace.LivePaused:
		x.title, x.what = "Paused", "Nothing is recorded, and nothing was before."
		x.steps = [][2]string{{"p", "go on"}}
	case optrace.LiveEnded:
		x.title, x.what = "Ended", "The trace has ended before a whole graph was seen. The target is as it was."
		x.steps, x.last = [][2]string{{"q", "quit"}, doctor}, ""
	default:
		x.title, x.what = "Attaching", "rooftop reads the target's files: which of them computes, how its structures lie, where a probe is cheap. The target goes on meanwhile."
		x.steps = [][2]string{doctor}
		if !begun {
			x.title, x.clock, x.what = "Starting", "", "rooftop is about to read the target's files."
		}
	}
	return x
}

// targetWords is a target in a line.
func targetWords(t *optrace.Target) string {
	text := t.Command
	if t.PID > 0 {
		text = fmt.Sprintf("PID%s%d, %s", figure.NBSP, t.PID, cmp.Or(text, "command not known"))
	}
	if t.Hook != "" {
		text += ", operators by " + t.Hook
	}
	return text
}

// observer is what watching costs now; of a snapshot that does not tell, what it did.
func (v *traceView) observer() *optrace.Observer {
	if o := &v.live.Observer; o.HitsPerToken > 0 || o.Windows > 0 {
		return o
	}
	return &v.s.Observer
}

// severalLevels says that the figures are not of the level that goes on alone.
func (v *traceView) severalLevels() bool {
	levels := v.s.Coverage.Levels
	return len(levels) > 1 || len(levels) == 1 && v.live.Detail != 0 && levels[0].Detail != v.live.Detail.String()
}

// levelWords are the levels that the graphs of the figures were traced at, and the one that
// goes on.
func (v *traceView) levelWords() string {
	var list []string
	for i := range v.s.Coverage.Levels {
		l := &v.s.Coverage.Levels[i]
		list = append(list, fmt.Sprintf("%s for %s (%s)", l.Detail, counted(l.Graphs, "graph"), howLong(l.Time)))
	}
	return strings.Join(list, ", ") + ": all in the figures; now " + v.live.Detail.String()
}

// costWords is what watching costs the target, and where that is known from, in a few
// words or in all of them.
func (u *look) costWords(o *optrace.Observer, long bool) (text string, token cell.Token) {
	text, token = u.probeWords(o, long)
	if o.Windows == 0 && o.HitsPerToken > 0 {
		return text, token // rooftop's own CPU is in it
	}
	if r := finite(o.Reader); r.OK && (long || r.V >= readerMuch) {
		if long {
			text += "; rooftop had its CPU for " + figure.Show(r, "ratio") + " of the time of graphs"
		} else {
			text += "; rooftop took " + figure.Show(r, "ratio")
		}
		if r.V >= readerMuch {
			token = cell.Warn
		}
	}
	return text, token
}

// readerMuch is the share of the time of graphs for which rooftop itself has a CPU of the
// target, from which on a reader has to know. It is what counts as interference.
const readerMuch = 0.03

// probeWords is what the probes cost.
func (u *look) probeWords(o *optrace.Observer, long bool) (text string, token cell.Token) {
	const much = 0.05 // above it a reader has to know
	grave := func(ratio float64) cell.Token {
		if ratio > much {
			return cell.Warn
		}
		return cell.OK
	}
	switch {
	case o.Windows > 0:
		interval := figure.Percent(o.MeasuredLow) + " to " + figure.Show(stat.Some(o.MeasuredHigh), "ratio")
		text = figure.Show(stat.Some(o.Measured), "ratio") + " (" + interval + "), measured"
		if long {
			text = figure.Show(stat.Some(o.Measured), "ratio") + " of its speed (95 %: " + interval + "), measured in " + counted(o.Windows, "window")
		}
		return text, grave(o.Measured)
	case o.HitsPerToken > 0:
		text = figure.Show(stat.Some(o.Cost()), "ratio") + " of its speed (est)"
		token = grave(o.Cost())
		if o.TookCPU() {
			text = figure.Show(stat.Some(o.Cost()), "ratio") + " of its speed (est: probes " + figure.Show(stat.Some(o.Expected), "ratio") + ", rooftop's CPU " + figure.Show(o.Reader, "ratio") + ")"
		}
		if mean := finite(o.OfMean()); mean.OK {
			text += " by its median token, " + figure.Show(mean, "ratio") + " of its mean one"
			token = grave(mean.V)
		}
		if o.Reader.Or(0) >= readerMuch {
			token = cell.Warn
		}
		if over := o.OverLimit(); over != "" {
			text, token = text+", "+over, cell.Warn
		}
		if long {
			text += ": " + figure.Count(o.HitsOfThread()) + " hits a token, " + show(o.CostPerHit.Seconds()) + " each in the mean"
			if basis := o.Basis(); basis != "" {
				text += ", by " + basis
			}
		}
		return text, token
	}
	return u.glyphs.Dash + " (not known yet)", cell.Muted
}

// signed is a change in percent.
func signed(ratio float64) string { return figure.Change(ratio) + figure.NBSP + "%" }
