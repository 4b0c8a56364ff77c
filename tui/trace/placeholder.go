package trace

import (
	"cmp"
	"fmt"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// placeholder describes the state of a trace without figures, and what to do. begun is false before
// the first snapshot.
func placeholder(l *optrace.Live, begun bool) *frame.Placeholder {
	doctor := [2]string{"rooftop doctor", "what can be traced here, and what each gap costs"}
	x := &frame.Placeholder{
		Clock: figure.Clock(l.Now),
		Facts: []frame.Labelled{{Token: cell.Body, Name: "target", Text: targetWords(&l.Target)}, {Token: cell.Strong, Name: "last word", Text: l.Notice}},
		Last:  "The screen continues as soon as a graph is traced.",
	}
	switch l.State {
	case optrace.LiveWaiting:
		x.Title, x.What = "Waiting for work", "The probes are in place, and the target computes nothing. Send it a request: the first whole graph shows here."
		x.Steps = [][2]string{{"curl http://HOST:PORT/v1/completions …", "ask a server for some tokens"}, {"- or +", "trace less or more detail"}, doctor}
	case optrace.LiveWeighing:
		x.Title, x.What = "Estimating the cost", "Only graphs are traced for some seconds, to estimate the cost of more detail."
	case optrace.LiveAsking:
		x.Title, x.What = "Your answer", cmp.Or(l.Question, "Go on?")
		x.Steps = [][2]string{{"y", "go on"}, {"n", "keep the cheaper level"}}
		x.Last = "Until then the current level of detail continues."
	case optrace.LiveTracing:
		x.Title, x.What = "Tracing", "No complete graph yet: one that began before the trace is left out. If the target computes and this message stays, its operators bypass the probes."
		x.Steps = [][2]string{doctor}
	case optrace.LivePaused:
		x.Title, x.What = "Paused", "Recording is paused, and nothing has been recorded yet."
		x.Steps = [][2]string{{"p", "go on"}}
	case optrace.LiveRecorded:
		x.Title, x.Clock, x.What = "A recording", "", "It has no complete graph."
		x.Steps, x.Last = [][2]string{{"q", "quit"}}, ""
	case optrace.LiveEnded:
		x.Title, x.What = "Ended", "The trace has ended before a whole graph was seen. The target is as it was."
		x.Steps, x.Last = [][2]string{{"q", "quit"}, doctor}, ""
	default:
		x.Title, x.What = "Attaching", "rooftop reads the target's files: which of them computes, how its structures lie, where a probe is cheap. The target goes on meanwhile."
		x.Steps = [][2]string{doctor}
		if !begun {
			x.Title, x.Clock, x.What = "Starting", "", "rooftop is about to read the target's files."
		}
	}
	return x
}

// targetWords describes a target in one line.
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

// observer returns the current overhead of the trace, or that of the summary if the snapshot has
// none.
func (v *snapshot) observer() *optrace.Observer {
	if o := &v.live.Observer; o.HitsPerToken > 0 || o.Windows > 0 {
		return o
	}
	return &v.s.Observer
}

// severalLevels reports whether the figures include other levels of detail than the current one.
func (v *snapshot) severalLevels() bool {
	levels := v.s.Coverage.Levels
	return len(levels) > 1 || len(levels) == 1 && v.live.Detail != 0 && levels[0].Detail != v.live.Detail.String()
}
