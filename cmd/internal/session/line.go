package session

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/loop"
)

// line is one line of a recording: exactly one field other than At is set.
type line struct {
	// At is when the loop of a live session handled the line, since the session began.
	At     time.Duration `json:"at,omitempty"`
	Header *Header       `json:"header,omitempty"`
	Poll   *Poll         `json:"poll,omitempty"`
	End    *End          `json:"end,omitempty"`

	// Only in recordings of live sessions.
	Attached     *attachedLine      `json:"attached,omitempty"`
	AttachFailed *loop.AttachFailed `json:"attach_failed,omitempty"`
	Observed     *loop.Observed     `json:"observed,omitempty"`
	Applied      *loop.Applied      `json:"applied,omitempty"`
	Noted        *loop.Noted        `json:"noted,omitempty"`
	Canary       *canaryLine        `json:"canary,omitempty"`
	Command      string             `json:"command,omitempty"`
	Ticked       bool               `json:"ticked,omitempty"`
}

// canaryLine is what happened to a canary: exactly one field other than Server is set.
type canaryLine struct {
	Started *loop.CanaryStarted `json:"started,omitempty"`
	Server  int                 `json:"server,omitempty"` // that Poll is of, 0 for the canary
	Poll    *Poll               `json:"poll,omitempty"`
	Ended   *loop.CanaryEnded   `json:"ended,omitempty"`
}

// attachedLine is a server that was attached to.
type attachedLine struct {
	Header      Header `json:"header"`
	Identity    string `json:"identity"`
	CanApply    bool   `json:"hands"`
	CannotApply string `json:"no_hands,omitempty"`
}

// commandNames returns the names of commands in a recording.
func commandNames() [loop.NumCommands]string {
	return [loop.NumCommands]string{
		loop.CommandApply: "apply", loop.CommandRevert: "revert", loop.CommandContinue: "continue",
		loop.CommandSkip: "skip", loop.CommandUnskip: "unskip", loop.CommandRemeasure: "remeasure", loop.CommandPause: "pause", loop.CommandHold: "hold", loop.CommandQuit: "quit",
	}
}

// time returns when a line was recorded, since the run began.
func (l *line) time() time.Duration {
	if l.At == 0 && l.Poll != nil {
		return max(l.Poll.T, l.Poll.PageT)
	}
	return l.At
}

// lineOf returns the line of an input. It is empty for polls and attached servers, whose lines
// need more than the input.
func lineOf(in loop.Input) line {
	switch in := in.(type) {
	case loop.AttachFailed:
		return line{AttachFailed: &in}
	case loop.Observed:
		return line{Observed: &in}
	case loop.Applied:
		return line{Applied: &in}
	case loop.CanaryStarted:
		return line{Canary: &canaryLine{Started: &in}}
	case loop.CanaryEnded:
		return line{Canary: &canaryLine{Ended: &in}}
	case loop.Noted:
		return line{Noted: &in}
	case loop.Pressed:
		return line{Command: commandNames()[in.Command]}
	case loop.Ticked:
		return line{Ticked: true}
	}
	return line{}
}

// input returns the input of the loop that a line stands for, nil if it stands for none. It does
// not handle polls, which need the session's parser.
func (l *line) input() (loop.Input, error) {
	switch {
	case l.Attached != nil:
		return l.Attached.input()
	case l.AttachFailed != nil:
		return *l.AttachFailed, nil
	case l.Observed != nil:
		return *l.Observed, nil
	case l.Applied != nil:
		return *l.Applied, nil
	case l.Canary != nil && l.Canary.Started != nil:
		return *l.Canary.Started, nil
	case l.Canary != nil && l.Canary.Ended != nil:
		return *l.Canary.Ended, nil
	case l.Noted != nil:
		return *l.Noted, nil
	case l.Ticked:
		return loop.Ticked{}, nil
	}
	for c, name := range commandNames() {
		if name == l.Command {
			return loop.Pressed{Command: loop.Command(c)}, nil
		}
	}
	return nil, nil // written by a newer rooftop
}

// input returns the input of the loop for an attached server. It fails if the user's catalog does
// not parse.
func (a *attachedLine) input() (loop.Attached, error) {
	h := &a.Header
	in := h.Inputs
	var err error
	if in.Catalog, err = h.Hardware(); err != nil {
		return loop.Attached{}, err
	}
	return loop.Attached{
		Target: h.Target, Inputs: in, Missing: h.Missing, Notes: h.Notes, GPUWhy: h.GPUWhy,
		Identity: a.Identity, CanApply: a.CanApply, CannotApply: a.CannotApply,
	}, nil
}
