package apply

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Hook is a server that a program of the engineer's restarts. See Change for what
// the program gets, and Untouched for what its exit codes say.
type Hook struct {
	plan    Plan
	program *Launch
	name    string         // of the program's launch in the journal
	kept    *launch.Config // the server's launch as it is kept; nil unknown
	runs    []engine.Change
	// stands is the value that each flag which was changed has in what is kept: where
	// the launch cannot be read nobody else knows it.
	stands map[string]string
	began  bool
	lost   bool // what runs is not known: a way back failed
	canary answers
}

// NewHook takes a program by its path or its name in PATH. It runs nothing.
func NewHook(program string, plan Plan) (*Hook, error) {
	l, err := hookLaunch(program)
	if err != nil {
		return nil, err
	}
	if plan.Grace <= 0 {
		plan.Grace = Grace
	}
	return &Hook{plan: plan, program: l, kept: plan.Launch}, nil
}

// Mode names the way.
func (h *Hook) Mode() string { return "hook" }

// Log is the file that the program's output goes to.
func (h *Hook) Log() string { return filepath.Join(h.plan.Journal.Dir(), hookLog) }

// standing corrects what a change begins at, or leads back to, by what is kept.
func (h *Hook) standing(a engine.Apply) engine.Apply {
	a.Changes = slices.Clone(a.Changes)
	for i := range a.Changes {
		c := &a.Changes[i]
		value, known := h.stands[c.Flag]
		if h.kept != nil && !variable.MatchString(c.Flag) {
			text, _, _ := h.kept.Value(c.Flag)
			value, known = engine.Shown(text), true
		}
		switch {
		case known && a.Revert:
			c.To = value
		case known:
			c.From = value
		}
	}
	return a
}

// change is what the program is told for a change.
func (h *Hook) change(a engine.Apply) *Change {
	c := &Change{
		Schema: ChangeSchema, Iteration: a.Iteration, Revert: a.Revert, URL: h.plan.Ready.URL,
		Predicted: a.Predicted,
	}
	target := a.Changes
	if a.Revert {
		target = nil
	}
	c.Changes = between(h.runs, target)
	if a.Revert && len(c.Changes) == 0 {
		c.Changes = a.Changes // to be made sure of
	}
	if h.kept != nil {
		c.Command = ChangeCommand{Before: engine.Changed(h.kept, h.runs...).String(), After: engine.Changed(h.kept, target...).String()}
	}
	return c
}

// Steps says what Apply would do.
func (h *Hook) Steps(a engine.Apply) []string {
	a = h.standing(a)
	c := h.change(a)
	how := fmt.Sprintf("run %s with %s", h.program.Argv[0], spelled(c.Changes))
	if a.Revert {
		how += ", back to the kept configuration"
	}
	steps := []string{
		"write down in " + h.plan.Journal.Dir() + " what is about to be done",
		how + " as JSON on stdin and in variables",
		fmt.Sprintf("wait up to %v until the server was restarted and %s/health answers, then for a short completion", h.plan.Ready.within(), h.plan.Ready.URL),
	}
	if !a.Revert {
		steps = append(steps, fmt.Sprintf("where that fails, run it again with the way back, unless it exits with %d (nothing touched)", Untouched))
	}
	return steps
}

func (h *Hook) begin() error {
	if h.began {
		return nil
	}
	name, err := h.plan.Journal.Keep(h.program)
	if err != nil {
		return err
	}
	r := journal.Record{Kind: journal.Begin, Mode: h.Mode(), Server: h.plan.Server, Launch: name}
	if h.kept != nil {
		r.Command = h.kept.String()
	}
	if err := h.plan.Journal.Write(r); err != nil {
		return err
	}
	h.name, h.began = name, true
	return nil
}

// Apply has the program make a change, or the way back.
func (h *Hook) Apply(ctx context.Context, a engine.Apply) engine.Applied {
	if a.Revert {
		ctx = context.WithoutCancel(ctx)
	}
	a = h.standing(a)
	c := h.change(a)
	if len(c.Changes) == 0 {
		return h.untouched(errors.New("there is nothing to change"))
	}
	if err := h.begin(); err != nil {
		return h.untouched(err)
	}
	ask := func(ctx context.Context) answers { return h.plan.Ready.ask(ctx, nil) }
	h.canary = asked(ctx, h.canary, a, h.keptRuns(), ask)
	w, err := h.plan.Ready.witness(ctx)
	if err != nil {
		return h.untouched(err)
	}
	defer w.close()
	if err := h.intend(a, c); err != nil {
		return h.untouched(err)
	}
	h.remember(a)
	within, cancel := w.bounded(ctx, a)
	defer cancel()
	if a.Revert && h.keptRuns() {
		err = h.make(within, c, nil) // to be made sure of
	} else {
		err = h.make(within, c, w)
	}
	if err != nil {
		return h.takeBack(err, a, c, w)
	}
	kind, name := journal.Ready, ""
	if a.Revert {
		kind, name, h.runs, h.lost = journal.Back, h.name, nil, false
	} else {
		h.runs = a.Changes
	}
	if err := h.plan.Journal.Write(journal.Record{Kind: kind, Launch: name, Iteration: a.Iteration, Revert: a.Revert}); err != nil {
		return h.takeBack(err, a, c, w)
	}
	return engine.Applied{Canary: canary(ctx, h.canary, a, ask)}
}

// intend writes down what is about to be done. Which launch it leads to is the
// program's business: the changes are what a way back is made of.
func (h *Hook) intend(a engine.Apply, c *Change) error {
	return h.plan.Journal.Write(journal.Record{
		Kind: journal.Intent, Mode: h.Mode(), Iteration: a.Iteration, Revert: a.Revert, Changes: recorded(a.Changes),
		Predicted: predicted(a.Predicted), Command: c.Command.After, Text: spelled(c.Changes),
	})
}

// remember notes what the flags of a first change to them have in what is kept.
func (h *Hook) remember(a engine.Apply) {
	if h.stands == nil {
		h.stands = map[string]string{}
	}
	for _, c := range a.Changes {
		if _, ok := h.stands[c.Flag]; !ok && !a.Revert {
			h.stands[c.Flag] = c.From
		}
	}
}

// keptRuns says that, as far as is known, what is kept runs.
func (h *Hook) keptRuns() bool { return len(h.runs) == 0 && !h.lost }

// make calls the program and waits until the server was restarted, as a witness sees
// it, and is ready. Without one it need not have been restarted.
func (h *Hook) make(ctx context.Context, c *Change, w *witness) error {
	h.plan.say("running " + h.program.Argv[0])
	err := watched(ctx, w, func() error {
		return call(ctx, h.program, h.plan.Journal.Dir(), h.plan.Ready.within(), h.plan.Grace, c)
	})
	if err != nil {
		return err
	}
	h.plan.say("waiting for " + h.plan.Ready.URL + "/health")
	return h.plan.Ready.restarted(ctx, w, filepath.Base(h.program.Argv[0]))
}

func (h *Hook) untouched(err error) engine.Applied {
	text := h.program.hide(err.Error())
	if state := new(StateError); !errors.As(err, &state) {
		text += "; nothing was touched"
	}
	return engine.Applied{Err: text, Back: h.keptRuns(), Untouched: true}
}

// takeBack has the program restore the kept configuration after a change failed.
func (h *Hook) takeBack(why error, a engine.Apply, c *Change, w *witness) engine.Applied {
	reason := h.program.hide(why.Error())
	if errors.Is(why, context.Canceled) {
		reason = "it was called off"
	}
	text := "the change could not be made: " + strings.TrimSuffix(reason, ".")
	var back error
	spared := refused(why) && h.keptRuns()
	switch {
	case spared:
		text += "; the program touched nothing"
	default:
		// Whatever of the change was made, and of those before it.
		way := *c
		way.Revert, way.Predicted = true, nil
		if way.Changes = between(a.Changes, nil); a.Revert {
			way.Changes = a.Changes
		}
		for _, had := range between(h.runs, nil) {
			if !holds(way.Changes, had.Flag) {
				way.Changes = append(way.Changes, had)
			}
		}
		if h.kept != nil {
			way.Command = ChangeCommand{Before: c.Command.After, After: h.kept.String()}
		}
		h.plan.say("putting the server back: " + reason)
		back = h.putBack(a, &way, w)
	}
	h.runs, h.lost = nil, back != nil
	if back != nil {
		text += "; and it could not be taken back: " + h.program.hide(back.Error())
	} else {
		_ = h.plan.Journal.Write(journal.Record{Kind: journal.Ready, Launch: h.name})
		if !refused(why) {
			text += "; the server runs as before"
		}
	}
	_ = h.plan.Journal.Write(journal.Record{Kind: journal.Failed, Iteration: a.Iteration, Revert: a.Revert, Text: text})
	return engine.Applied{Err: text, Back: back == nil, Untouched: spared, Late: late(why)}
}

// putBack has the program make the way back of a change that failed, or of a way back.
// What the call that failed restarted already need not be restarted again, nor what it
// did not touch.
func (h *Hook) putBack(a engine.Apply, way *Change, w *witness) error {
	ctx := context.Background()
	if a.Revert {
		return h.make(ctx, way, w)
	}
	again, err := h.plan.Ready.witness(ctx)
	if err != nil {
		return err
	}
	defer again.close()
	if h.keptRuns() {
		again.before = w
	}
	return h.make(ctx, way, again)
}

func holds(changes []engine.Change, flag string) bool {
	for _, c := range changes {
		if c.Flag == flag {
			return true
		}
	}
	return false
}

// Kept tells that what runs now is the configuration to go back to from here on.
func (h *Hook) Kept() error {
	if err := h.begin(); err != nil {
		return err
	}
	r := journal.Record{Kind: journal.Kept, Launch: h.name, Changes: recorded(h.runs)}
	kept := h.kept
	if kept != nil {
		kept = engine.Changed(kept, h.runs...)
		r.Command = kept.String()
	}
	if err := h.plan.Journal.Write(r); err != nil {
		return err
	}
	if len(h.runs) > 0 {
		h.canary = answers{}
	}
	for _, c := range h.runs {
		h.stands[c.Flag] = c.To
	}
	h.kept, h.runs = kept, nil
	return nil
}

// Close lets go of the server and leaves it running.
func (h *Hook) Close() error { return nil }
