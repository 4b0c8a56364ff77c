package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// bannerOf returns the problems of what is shown, and what to do about them: one or two sentences
// above the view, or nil.
func bannerOf(s *loop.Snapshot, u *frame.Settings) frame.Remarks {
	bad := func(text string) frame.Remark { return frame.Remark{Token: cell.Bad, Text: u.Glyphs.Bad + " " + text} }
	warn := func(text string) frame.Remark {
		return frame.Remark{Token: cell.Warn, Text: u.Glyphs.Warn + " " + text}
	}
	switch metrics := source(s); {
	case !s.Attached:
		return nil
	case s.Finished != nil:
		return frame.Remarks{{Token: cell.Strong, Text: u.Glyphs.Info + " The run has ended: " + figure.Stopped(s.Finished.Reason)}}
	case s.Starting:
		return frame.Remarks{warn(tuning.Sentence(s.AttachWhy)), frame.Remark{Token: cell.Muted, Text: " It has not answered for " + figure.Elapsed(s.Now-s.Since) + "; showing the last known values."}}
	case s.Phase == loop.PhaseDown:
		return frame.Remarks{bad("The server has not answered for " + figure.Elapsed(s.Now-s.Since) + lastWords(metrics.Why)), frame.Remark{Token: cell.Muted, Text: " " + whileDown(s)}}
	case s.Phase == loop.PhaseApplying:
		return nil // no response is expected during a restart
	case s.Condition.Ill():
		what, then := tuning.Unhealthy(s)
		return frame.Remarks{bad(what), frame.Remark{Token: cell.Muted, Text: " " + then}}
	case s.Silence != "":
		return frame.Remarks{warn(tuning.Sentence(s.Silence))}
	case metrics.State == loop.SourceFailing:
		return frame.Remarks{warn("The metrics page cannot be read, figures are " + figure.Elapsed(s.Now-metrics.Last) + " old" + lastWords(metrics.Why))}
	case metrics.State == loop.SourceLate && slow(metrics):
		return frame.Remarks{warn(fmt.Sprintf("The metrics page takes %s, so rooftop reads it every %s to avoid disturbing the server. Last read %s ago.",
			figure.Duration(metrics.Took), figure.Duration(metrics.Interval), figure.Elapsed(s.Now-metrics.Last)))}
	case metrics.State == loop.SourceLate && !s.Paused:
		return frame.Remarks{warn("The metrics page was last read " + figure.Elapsed(s.Now-metrics.Last) + " ago; it is late.")}
	case len(s.Problems) > 0:
		return frame.Remarks{warn(figure.Stopped(strings.Join(s.Problems, "; ")))}
	case s.Live != nil && s.Live.Outcome == engine.OutcomeNoLoad && s.Live.Doubt != "":
		return frame.Remarks{warn(tuning.Sentence(s.Live.Doubt))}
	case noLoad(s):
		text := " No requests: nothing to judge. Send some, or let rooftop do it:"
		if since, ok := lastLoad(s); ok && s.Advice != nil {
			text = " No requests since " + figure.Clock(since) + "; the advice is for the previous load. To judge it:"
		}
		flag, name := serverFlag(s.Target.URL)
		return frame.Remarks{{Token: cell.Strong, Text: u.Glyphs.Info + text}, {Token: cell.Accent, Text: " " + launch.Line("rooftop", "load", flag, name)}}
	}
	return nil
}

func whileDown(s *loop.Snapshot) string {
	switch {
	case len(s.Problems) > 0:
		return figure.Stopped(strings.Join(s.Problems, "; ")) + " Showing the last known values."
	case s.Advice != nil && s.Advice.Kind == engine.KindFlag:
		return "rooftop continues when it is back; showing the last known values."
	}
	return "rooftop keeps trying; showing the last known values."
}

// lastWords ends a sentence with the reason, if it is known.
func lastWords(why string) string {
	if why == "" {
		return "."
	}
	return ": " + figure.Stopped(why)
}

// source returns the state of the metrics page.
func source(s *loop.Snapshot) loop.SourceState {
	if len(s.Sources) == 0 {
		return loop.SourceState{State: loop.SourceFresh}
	}
	return s.Sources[0]
}

// slow reports whether rooftop polls a page less often because reading it takes long.
func slow(m loop.SourceState) bool { return m.Interval > 2*engine.PollInterval }

// idleFor is how long the server must have no request before the means of the latest windows with load count as
// outdated. Under a light load, some windows have no requests either.
const idleFor = 10 * time.Second

// noLoad reports whether the server responds but has no requests: none in all of the latest windows, or none
// for idleFor.
func noLoad(s *loop.Snapshot) bool {
	if s.Live != nil && s.Live.Outcome == engine.OutcomeNoLoad {
		return true
	}
	last := lastPoint(s)
	since, ok := lastLoad(s)
	return s.Live != nil && ok && last.T-since >= idleFor
}

// lastLoad returns when requests were last in the server, ok is false if that is unknown or if they still are.
func lastLoad(s *loop.Snapshot) (at time.Duration, ok bool) {
	last := lastPoint(s)
	for i := len(s.Points) - 1; i >= 0 && last != nil; i-- {
		switch p := &s.Points[i]; {
		case p.Iteration != last.Iteration, !p.Running.OK:
			return 0, false
		case p.Running.V > 0 || p.Waiting.Or(0) > 0 || p.Tokens.Or(0) > 0 || p.Prompt.Or(0) > 0:
			return p.T, i < len(s.Points)-1
		}
	}
	return 0, false
}

// serverFlag returns the flag that names a server: --url, or --kube for a workload of Kubernetes.
func serverFlag(url string) (flag, name string) {
	if workload, ok := strings.CutPrefix(url, tuning.KubeScheme); ok {
		return "--kube", workload
	}
	return "--url", strings.TrimSuffix(strings.TrimSuffix(url, "/"), "/metrics")
}

// questionOf returns the open question with the keys that answer it, side by side if they fit.
func questionOf(s *loop.Snapshot, u *frame.Settings, w int) frame.Remarks {
	if s.Ask == "" {
		return nil
	}
	ask := frame.Remark{Token: cell.Bad, Text: u.Glyphs.Bad + " " + s.Ask}
	if u.View == viewNow && u.Over == frame.OverlayNone {
		return frame.Remarks{ask} // the view explains both answers, and the footer names the keys
	}
	back := "[r] revert"
	if change := lastChange(s); change != "" {
		back += ": undo " + change
	}
	on := "[c] continue: this becomes the new baseline"
	if gap := figure.NBSP + figure.NBSP + figure.NBSP; cell.Width(back+gap+on) < w-8 {
		return frame.Remarks{ask, {Token: cell.Key, Text: " " + back + gap + on}}
	}
	return frame.Remarks{ask, {Token: cell.Key, Text: " " + back}, {Token: cell.Key, Text: " " + on}}
}

// lastChange returns what the last iteration changed.
func lastChange(s *loop.Snapshot) string {
	if it := (tuning.Run{Snapshot: s}).Last(); it != nil {
		return tuning.IterationChange(it)
	}
	return ""
}

// lookingFor returns what is shown while no server is found: where rooftop looks, since when, why it fails, and what to
// do.
func lookingFor(s *loop.Snapshot) []page.Section {
	if s.Seq == 0 && s.Watch == "" {
		return []page.Section{{Title: "Starting", Nodes: []page.Node{page.Paragraph(page.Toned(page.Body, "rooftop is about to look for an inference server on this machine."))}}}
	}
	var facts page.Facts
	facts.Add("looks at", page.Body, s.Watch)
	facts.Add("last try", page.Warn, s.AttachWhy)
	return []page.Section{
		{Title: "Looking for an inference server", Note: figure.Clock(max(s.Progress.Elapsed, s.Now-s.Since)), Nodes: []page.Node{facts}},
		{Title: "What you can do", Nodes: []page.Node{frame.Steps(stepsFor(s))}},
		{Nodes: []page.Node{page.Paragraph(page.Toned(page.Muted, "The screen continues when a server answers."))}},
	}
}

// stepsFor returns what helps if no server can be read: commands and what they do.
func stepsFor(s *loop.Snapshot) [][2]string {
	doctor := [2]string{"rooftop doctor", "what can be read here, and what each gap costs"}
	if strings.Contains(s.AttachWhy, "--disable-log-stats") {
		return [][2]string{{"vllm serve …", "restart the server without --disable-log-stats, which removes vLLM's figures from the page"}, doctor}
	}
	return [][2]string{
		{"vllm serve MODEL", "start a server on this machine; rooftop finds it"},
		{"rooftop --url http://HOST:PORT", "look at another server"},
		{"rooftop demo", "see it at work on a simulated server"},
		doctor,
	}
}
