package tui

import (
	"fmt"
	"path"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// identity returns the header's parts: product, server, model and GPU.
func identity(s *loop.Snapshot, u *frame.Settings) []frame.Part {
	parts := []frame.Part{{Token: cell.Title, Text: "rooftop", Gap: 2, Keep: 2}}
	if !s.Attached {
		return append(parts, frame.Part{Token: cell.Body, Text: tuning.ShortURL(s.Watch), Gap: 2, Keep: 5})
	}
	sign, token := liveness(s, u)
	parts = append(parts, frame.Part{Token: token, Text: sign, Gap: 1, Keep: 9}, frame.Part{Token: cell.Body, Text: tuning.ShortURL(s.Target.URL), Gap: 2, Keep: 4})
	if m := s.Target.Model; m != "" {
		parts = append(parts, frame.Part{Token: cell.Strong, Text: path.Base(m), Gap: 2, Keep: 6})
	}
	if g := gpuName(&s.Facts); g != "" {
		parts = append(parts, frame.Part{Token: cell.Body, Text: g, Gap: 2, Keep: 3})
	}
	if v := s.Target.EngineVersion; v != "" {
		parts = append(parts, frame.Part{Token: cell.Muted, Text: tuning.EngineName(s.Target), Gap: 2, Keep: 1})
	}
	return parts
}

// liveness returns the symbol for how the server responds.
func liveness(s *loop.Snapshot, u *frame.Settings) (string, cell.Token) {
	switch {
	case s.Starting:
		return u.Glyphs.Warn, cell.Warn
	case s.Phase == loop.PhaseDown, s.Condition.Ill():
		return u.Glyphs.Bad, cell.Bad
	case s.Silence != "", s.Paused || len(s.Sources) > 0 && s.Sources[0].State != loop.SourceFresh:
		return u.Glyphs.Warn, cell.Warn
	}
	return u.Glyphs.Good, cell.OK
}

// gpuName returns the number and name of the GPUs without the vendor, "" if unknown.
func gpuName(f *engine.Facts) string {
	if !f.GPUName.Known {
		if f.Device.Known && f.Device.Value == "cpu" {
			return "CPU"
		}
		return ""
	}
	name := strings.TrimPrefix(f.GPUName.Value, "NVIDIA ")
	if f.GPUCount.Known && f.GPUCount.Value > 1 {
		return fmt.Sprintf("%d × %s", f.GPUCount.Value, name)
	}
	return name
}

// marksOf returns the words that affect how everything else should be read, from the right edge on.
func marksOf(s *loop.Snapshot, u *frame.Settings) []frame.Remark {
	var marks []frame.Remark
	if u.Frozen {
		marks = append(marks, frame.Remark{Token: cell.Selected, Text: " FROZEN "})
	}
	if s.Paused {
		marks = append(marks, frame.Remark{Token: cell.Selected, Text: " PAUSED "})
	}
	if u.Tape != nil {
		marks = append(marks, frame.Remark{Token: cell.Accent, Text: "REPLAY"})
	}
	if m, ok := badge(s); ok {
		marks = append(marks, m)
	}
	if s.Target.Simulated {
		marks = append(marks, frame.Remark{Token: cell.Accent, Text: "SIMULATED"})
	}
	return marks
}

// phaseOf returns the phase of the run in words.
func phaseOf(s *loop.Snapshot) frame.Stage {
	g := stages()[min(s.Phase, loop.PhaseDone)]
	waits, _, _ := strings.Cut(s.Progress.Text, ":")
	switch {
	case (s.Phase == loop.PhaseBaseline || s.Phase == loop.PhaseMeasuring) && strings.HasPrefix(waits, "waiting for"):
		g.Words, g.Word, g.Token = waits, "waiting", cell.Strong
	case s.Phase == loop.PhaseAttach && s.Attached:
		g.Words, g.Word = "reading the server's settings", "reading"
	case s.Phase == loop.PhaseWaiting && s.Advice == nil:
		g.Words, g.Word = "watching", "watching"
	case s.Phase == loop.PhaseWaiting && s.Advice.Kind != engine.KindFlag:
		g.Words, g.Word = "watching", "watching"
	}
	if s.Auto {
		g = autoStage(s, g)
	}
	if s.Starting {
		g.Words, g.Word, g.Token = "server starting", "starting", cell.Warn
	}
	if s.Condition.Ill() && s.Finished == nil {
		g = frame.Stage{Words: strings.ToLower(s.Condition.Title()), Word: s.Condition.State.Word(), Token: cell.Bad, Counts: true}
	}
	if g.Counts {
		return g
	}
	g.Elapsed, g.Total = s.Progress.Elapsed, s.Progress.Total
	if g.Elapsed == 0 {
		g.Elapsed = max(0, s.Now-s.Since)
	}
	if t := s.Trial; t != nil && g.Total > 0 && len(t.Results) < len(t.Looks) { // looks are scheduled by measured time
		g.Total = t.Looks[len(t.Results)]
		g.Elapsed = min(t.Measured, g.Total)
	}
	if s.Phase == loop.PhaseDone {
		g.Elapsed, g.Total = 0, 0
	}
	return g
}

// stages returns the words for each phase.
func stages() [loop.PhaseDone + 1]frame.Stage {
	return [...]frame.Stage{
		loop.PhaseAttach:    {Words: "looking for a server", Word: "looking", Token: cell.Strong},
		loop.PhaseBaseline:  {Words: "measuring the baseline", Word: "baseline", Token: cell.Accent},
		loop.PhaseWaiting:   {Words: "recommendation ready", Word: "ready", Token: cell.Strong},
		loop.PhaseApplying:  {Words: "restarting the server", Word: "restarting", Token: cell.Accent},
		loop.PhaseDown:      {Words: "server down", Word: "down", Token: cell.Bad},
		loop.PhaseSettling:  {Words: "settling", Word: "settling", Token: cell.Accent},
		loop.PhaseMeasuring: {Words: "measuring the change", Word: "measuring", Token: cell.Accent},
		loop.PhaseWorse:     {Words: "worse: decision needed", Word: "worse", Token: cell.Bad},
		loop.PhaseReverting: {Words: "waiting for your restart", Word: "reverting", Token: cell.Strong},
		loop.PhaseCanary:    {Words: "trying the change on a canary", Word: "canary", Token: cell.Accent},
		loop.PhaseDone:      {Words: "finished", Word: "finished", Token: cell.Strong},
	}
}
