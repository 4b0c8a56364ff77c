package session

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// line is one line of a recording: exactly one part beside the time is set.
type line struct {
	// At is when the loop of a live session took it, since the session began.
	At     time.Duration `json:"at,omitempty"`
	Header *Header       `json:"header,omitempty"`
	Poll   *Poll         `json:"poll,omitempty"`
	End    *End          `json:"end,omitempty"`

	// The rest is of live sessions.
	Attached     *attachedLine        `json:"attached,omitempty"`
	AttachFailed *engine.AttachFailed `json:"attach_failed,omitempty"`
	Observed     *engine.Observed     `json:"observed,omitempty"`
	Applied      *engine.Applied      `json:"applied,omitempty"`
	Noted        *engine.Noted        `json:"noted,omitempty"`
	Command      string               `json:"command,omitempty"`
	Ticked       bool                 `json:"ticked,omitempty"`
}

// attachedLine is a server that was attached to.
type attachedLine struct {
	Header   Header `json:"header"`
	Identity string `json:"identity"`
	Hands    bool   `json:"hands"`
	NoHands  string `json:"no_hands,omitempty"`
}

// LoopSettings is what the loop of a live session was started with, as far as it
// is no part of the program.
type LoopSettings struct {
	Measure time.Duration `json:"measure"`
	Watch   string        `json:"watch"`
	Hands   bool          `json:"hands"`
	NoHands string        `json:"no_hands,omitempty"`
	Auto    bool          `json:"auto,omitempty"`
	Rounds  int           `json:"rounds,omitempty"`

	Limits     engine.Limits       `json:"limits,omitzero"`
	Countdown  time.Duration       `json:"countdown,omitempty"`
	DryRun     bool                `json:"dry_run,omitempty"`
	Goal       verdict.Goal        `json:"goal,omitempty"`
	Objectives []verdict.Objective `json:"objectives,omitempty"`
	Precision  float64             `json:"precision,omitempty"`
	Longest    time.Duration       `json:"longest,omitempty"`
	Repeats    []float64           `json:"repeats,omitempty"`
	Foretold   []engine.Foretold   `json:"foretold,omitempty"`
	Start      time.Duration       `json:"start,omitempty"`
}

// settingsOf are those of a plan.
func settingsOf(p *engine.LoopPlan) *LoopSettings {
	return &LoopSettings{
		Measure: p.Measure, Watch: p.Watch, Hands: p.Hands, NoHands: p.NoHands, Auto: p.Auto, Rounds: p.Rounds,
		Limits: p.Limits, Countdown: p.Countdown, DryRun: p.DryRun, Goal: p.Goal, Objectives: p.Objectives,
		Precision: p.Precision, Longest: p.Longest, Repeats: p.Repeats, Foretold: p.Foretold, Start: p.Start,
	}
}

// plan puts the settings into a plan.
func (s *LoopSettings) plan(p *engine.LoopPlan) {
	p.Measure, p.Watch, p.Hands, p.NoHands, p.Auto, p.Rounds = s.Measure, s.Watch, s.Hands, s.NoHands, s.Auto, s.Rounds
	p.Limits, p.Countdown, p.DryRun, p.Goal, p.Objectives = s.Limits, s.Countdown, s.DryRun, s.Goal, s.Objectives
	p.Precision, p.Longest, p.Repeats, p.Foretold, p.Start = s.Precision, s.Longest, s.Repeats, s.Foretold, s.Start
}

// sessionHeader is the first line of a live session's recording.
func sessionHeader(p *engine.LoopPlan) *Header {
	return &Header{
		Schema: RecordingSchema, Version: p.Version, Started: p.Started,
		Session: settingsOf(p),
	}
}

// commandNames spell commands in a recording.
func commandNames() [engine.NumCommands]string {
	return [engine.NumCommands]string{
		engine.CommandApply: "apply", engine.CommandRevert: "revert", engine.CommandContinue: "continue",
		engine.CommandSkip: "skip", engine.CommandRemeasure: "remeasure", engine.CommandPause: "pause", engine.CommandHold: "hold", engine.CommandQuit: "quit",
	}
}

// time is when a line happened, since the run began.
func (l *line) time() time.Duration {
	if l.At == 0 && l.Poll != nil {
		return max(l.Poll.T, l.Poll.PageT)
	}
	return l.At
}

// lineOf is the line of an input that is no poll and no attached server, which
// have more to them.
func lineOf(in engine.Input) line {
	switch in := in.(type) {
	case engine.AttachFailed:
		return line{AttachFailed: &in}
	case engine.Observed:
		return line{Observed: &in}
	case engine.Applied:
		return line{Applied: &in}
	case engine.Noted:
		return line{Noted: &in}
	case engine.Pressed:
		return line{Command: commandNames()[in.Command]}
	case engine.Ticked:
		return line{Ticked: true}
	}
	return line{}
}

// input is what a line tells the loop, nil where that is nothing. A poll needs its
// parser.
func (l *line) input() (engine.Input, error) {
	switch {
	case l.Attached != nil:
		return l.Attached.input()
	case l.AttachFailed != nil:
		return *l.AttachFailed, nil
	case l.Observed != nil:
		return *l.Observed, nil
	case l.Applied != nil:
		return *l.Applied, nil
	case l.Noted != nil:
		return *l.Noted, nil
	case l.Ticked:
		return engine.Ticked{}, nil
	}
	for c, name := range commandNames() {
		if name == l.Command {
			return engine.Pressed{Command: engine.Command(c)}, nil
		}
	}
	return nil, nil // a line of a newer rooftop
}

// input is what the loop is told of the server. The error is of a user's catalog.
func (a *attachedLine) input() (engine.Attached, error) {
	h := &a.Header
	in := h.Inputs
	var err error
	if in.Catalog, err = h.catalog(); err != nil {
		return engine.Attached{}, err
	}
	return engine.Attached{
		Target: h.Target, Inputs: in, Missing: h.Missing, Notes: h.Notes, GPUWhy: h.GPUWhy,
		Identity: a.Identity, Hands: a.Hands, NoHands: a.NoHands,
	}, nil
}
