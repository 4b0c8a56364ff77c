package tui

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// bannerOf says what is wrong with what is shown, and what to do about it: one or
// two sentences above the view, none where all is well.
func bannerOf(s *engine.Snapshot, u *look) remarks {
	bad := func(text string) remark { return remark{cell.Bad, u.glyphs.Bad + " " + text} }
	warn := func(text string) remark { return remark{cell.Warn, u.glyphs.Warn + " " + text} }
	switch metrics := source(s); {
	case !s.Attached:
		return nil
	case s.Finished != nil:
		return remarks{{cell.Strong, u.glyphs.Info + " The run has ended: " + sentence(s.Finished.Reason)}}
	case s.Phase == engine.PhaseDown:
		return remarks{bad("The server has not answered for " + age(s.Now-s.Since) + lastWords(metrics.Why)), remark{cell.Muted, " " + whileDown(s)}}
	case s.Phase == engine.PhaseApplying:
		return nil // that it does not answer is no news
	case metrics.State == engine.SourceFailing:
		return remarks{warn("The metrics page cannot be read, figures are " + age(s.Now-metrics.Last) + " old" + lastWords(metrics.Why))}
	case metrics.State == engine.SourceLate && slow(metrics):
		return remarks{warn(fmt.Sprintf("The metrics page takes %s: rooftop reads it every %s, so as not to disturb the server. Last read %s ago.",
			show(metrics.Took.Seconds()), show(metrics.Interval.Seconds()), age(s.Now-metrics.Last)))}
	case metrics.State == engine.SourceLate && !s.Paused:
		return remarks{warn("The metrics page was last read " + age(s.Now-metrics.Last) + " ago: it is late.")}
	case len(s.Problems) > 0:
		return remarks{warn(sentence(strings.Join(s.Problems, "; ")))}
	case noLoad(s):
		return remarks{{cell.Strong, u.glyphs.Info + " No request runs: nothing to judge. Send some, or let rooftop do it:"}, {cell.Accent, " rooftop load --url " + baseURL(s.Target.URL)}}
	}
	return nil
}

func whileDown(s *engine.Snapshot) string {
	switch {
	case len(s.Problems) > 0:
		return sentence(strings.Join(s.Problems, "; ")) + " What is shown is from before."
	case s.Advice != nil && s.Advice.Kind == engine.KindFlag:
		return "rooftop goes on as soon as it is back; what is shown is from before."
	}
	return "rooftop goes on looking; what is shown is from before."
}

// lastWords ends a sentence with why, where that is known.
func lastWords(why string) string {
	if why == "" {
		return "."
	}
	return ": " + sentence(why)
}

// sentence ends a text with a full stop.
func sentence(s string) string {
	s = strings.TrimSpace(s)
	if s == "" || strings.HasSuffix(s, ".") || strings.HasSuffix(s, "?") || strings.HasSuffix(s, "!") {
		return s
	}
	return s + "."
}

// age is how long ago something was.
func age(d time.Duration) string {
	if d < time.Minute {
		return strconv.Itoa(seconds(d)) + " s"
	}
	return clock(d)
}

func show(seconds float64) string { return figure.Show(stat.Some(seconds), "s") }

// source is how the metrics page is.
func source(s *engine.Snapshot) engine.SourceState {
	if len(s.Sources) == 0 {
		return engine.SourceState{State: engine.SourceFresh}
	}
	return s.Sources[0]
}

// slow says that rooftop reads a page seldom because it takes long.
func slow(m engine.SourceState) bool { return m.Interval > 2*engine.PollInterval }

// noLoad says that the server answers and has nothing to do.
func noLoad(s *engine.Snapshot) bool {
	return s.Live != nil && s.Live.Outcome == engine.OutcomeNoLoad
}

// baseURL is what to give to --url.
func baseURL(url string) string { return strings.TrimSuffix(strings.TrimSuffix(url, "/"), "/metrics") }

// questionOf is what waits for an answer, with the keys that give one, side by side
// where the width allows.
func questionOf(s *engine.Snapshot, u *look, w int) remarks {
	if s.Ask == "" {
		return nil
	}
	ask := remark{cell.Bad, u.glyphs.Bad + " " + s.Ask}
	if u.view == viewNow && u.over == overlayNone {
		return remarks{ask} // the view says what either answer does, the footer names the keys
	}
	back := "[r] revert"
	if change := lastChange(s); change != "" {
		back += ": undo " + change
	}
	on := "[c] continue: this becomes the new baseline"
	if gap := figure.NBSP + figure.NBSP + figure.NBSP; cell.Width(back+gap+on) < w-8 {
		return remarks{ask, {cell.Key, " " + back + gap + on}}
	}
	return remarks{ask, {cell.Key, " " + back}, {cell.Key, " " + on}}
}

// lastChange names what the last iteration changed.
func lastChange(s *engine.Snapshot) string {
	if len(s.Iterations) == 0 {
		return ""
	}
	return changeOf(&s.Iterations[len(s.Iterations)-1])
}

// lookingFor stands in while no server was found: what is looked for, since when, why
// not, and what to do.
func lookingFor(s *engine.Snapshot) *standIn {
	if s.Seq == 0 && s.Watch == "" {
		return &standIn{title: "Starting", what: "rooftop is about to look for a vLLM server on this machine."}
	}
	return &standIn{
		title: "Looking for a vLLM server", clock: clock(max(s.Progress.Elapsed, s.Now-s.Since)),
		facts: []labelled{{cell.Body, "looks at", s.Watch}, {cell.Warn, "last try", s.AttachWhy}},
		steps: stepsFor(s), last: "The screen goes on by itself as soon as a server answers.",
	}
}

// stepsFor are what helps where no server can be read: a command and what it does.
func stepsFor(s *engine.Snapshot) [][2]string {
	if strings.Contains(s.AttachWhy, "--disable-log-stats") {
		return [][2]string{
			{"vllm serve …", "restart the server without --disable-log-stats: with it the page has no figures of vLLM"},
			{"rooftop doctor", "what can be read here, and what each gap costs"},
		}
	}
	return [][2]string{
		{"vllm serve MODEL", "start a server on this machine: it is found by itself"},
		{"rooftop --url http://HOST:PORT", "look at another one"},
		{"rooftop demo", "see it at work on a simulated server"},
		{"rooftop doctor", "what can be read here, and what each gap costs"},
	}
}
