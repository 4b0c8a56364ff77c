package apply

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply/manager"
	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// Managed is an Applier for a server that something else restarts: a program of the user's, or the
// manager of services that started it.
type Managed struct {
	plan Plan
	by   manager.Manager
	name string         // file name of the manager's launch
	kept *launch.Config // the kept launch of the server; nil if unknown
	runs []engine.Change
	// keptValues has the value in the kept launch of each flag that was changed. Only this
	// map knows it if the launch cannot be read.
	keptValues map[string]string
	began      bool     // the begin record is written
	lost       bool     // a revert failed, so it is unknown what runs
	notes      []string // beside those of the manager
	answers    answers
	able       bool // the server answered a completion in this run
}

// NewHook returns a Managed for a program, given by path or by name in PATH. It runs nothing. See
// manager.Change for the program's input and Untouched for its exit codes.
func NewHook(name string, plan Plan) (*Managed, error) {
	l, err := hookLaunch(name)
	if err != nil {
		return nil, err
	}
	p := newUserProgram(l, plan.Journal.Dir(), plan.Ready.within(), plan.Grace)
	p.fresh = true
	return newManaged(p, plan), nil
}

// newManaged returns a Managed for a server that a manager restarts. It touches nothing.
func newManaged(by manager.Manager, plan Plan) *Managed {
	return &Managed{plan: plan, by: by, kept: plan.Launch}
}

// Mode returns the mode of the manager: "hook", "unit", "container".
func (h *Managed) Mode() string { return h.by.Mode() }

// Notes returns further facts about the restart for the user, a sentence each.
func (h *Managed) Notes() []string { return slices.Concat(h.by.Notes(), h.notes) }

// Objects name what changes of the server change of this machine, for serverdir.Store.Claim; none
// where only the address of the server tells, or a lease in the cluster locks it.
func (h *Managed) Objects() []string {
	l := h.by.Launch()
	switch {
	case l.Unit != nil:
		return []string{fmt.Sprintf("unit %s of user %d", l.Unit.Name, l.Unit.UID)}
	case l.Container != nil:
		host := strings.TrimPrefix(l.Container.Host, "unix://")
		if path, err := filepath.EvalSymlinks(host); err == nil {
			host = path // /var/run is /run
		}
		list := []string{fmt.Sprintf("container %s of %s", l.Container.Name, host)}
		if l.Container.Compose != nil {
			list = append(list, "file "+l.Container.Compose.Path) // has other services too
		}
		return list
	}
	return nil
}

// withKeptValues returns a change whose From values, or for a revert To values, are those
// of the kept launch.
func (h *Managed) withKeptValues(a loop.Apply) loop.Apply {
	a.Changes = slices.Clone(a.Changes)
	for i := range a.Changes {
		c := &a.Changes[i]
		value, known := h.keptValues[c.Flag]
		if h.kept != nil && !launcher.Variable.MatchString(c.Flag) {
			text, _, _ := h.kept.Value(c.Flag)
			value, known = loop.SettingText(text), true
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

// change returns what the manager is asked to do for a change.
func (h *Managed) change(a loop.Apply) *manager.Change {
	c := &manager.Change{
		Schema: manager.ChangeSchema, Iteration: a.Iteration, Revert: a.Revert, URL: h.plan.Ready.URL,
		Predicted: a.Predicted,
	}
	target := a.Changes
	if a.Revert {
		target = nil
	}
	c.Changes, c.All = between(h.runs, target), target
	if len(c.Changes) == 0 && (a.Revert || len(h.runs) > 0) {
		c.Changes = a.Changes // make sure of the revert, or start once more with what runs
	}
	if h.kept != nil {
		c.Command = manager.Command{Before: loop.WithChanges(h.kept, h.runs...).String(), After: loop.WithChanges(h.kept, target...).String()}
	}
	return c
}

// Steps returns the steps that Apply would take.
func (h *Managed) Steps(a loop.Apply) []string {
	a = h.withKeptValues(a)
	c := h.change(a)
	steps := append([]string{"record in " + h.plan.Journal.Dir() + " the planned change"}, h.by.Steps(c)...)
	steps = append(steps, fmt.Sprintf("wait up to %v until the server was restarted and %s/health answers, then for a short completion", h.plan.Ready.within(), h.plan.Ready.URL))
	if !a.Revert {
		steps = append(steps, "if that fails: revert it in the same way, unless nothing was touched")
	}
	return steps
}

func (h *Managed) begin() error {
	if h.began {
		return nil
	}
	name, err := h.plan.Journal.Keep(h.by.Launch())
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

// Apply has the manager make a change or a revert.
func (h *Managed) Apply(ctx context.Context, a loop.Apply) loop.Applied {
	if a.Revert {
		ctx = context.WithoutCancel(ctx)
	}
	a = h.withKeptValues(a)
	c := h.change(a)
	if len(c.Changes) == 0 {
		return h.untouched(a, errors.New("there is nothing to change"))
	}
	if !a.Revert && h.keptRuns() && !h.able {
		if err := h.plan.Ready.able(ctx, nil); err != nil {
			return h.untouched(a, err)
		}
		h.able = true
	}
	if err := h.begin(); err != nil {
		return h.untouched(a, err)
	}
	ask := func(ctx context.Context) answers { return h.plan.Ready.askPrompts(ctx, nil) }
	h.answers = answersBefore(ctx, h.answers, a, h.keptRuns(), ask)
	w, err := h.plan.Ready.watchRestart(ctx)
	if err != nil {
		return h.untouched(a, err)
	}
	defer w.close()
	if err := h.intend(a, c); err != nil {
		return h.untouched(a, err)
	}
	h.recordKeptValues(a)
	within, cancel := w.bounded(ctx, a)
	defer cancel()
	if a.Revert && h.keptRuns() {
		err = h.make(within, c, nil) // only makes sure of the revert
	} else {
		err = h.make(within, c, w)
	}
	if err != nil {
		return h.takeBack(err, a, c, w)
	}
	kind, name := journal.Ready, ""
	if a.Revert {
		kind, name, h.runs, h.lost = journal.Reverted, h.name, nil, false
	} else {
		h.runs = a.Changes
	}
	if err := h.plan.Journal.Write(journal.Record{Kind: kind, Launch: name, Iteration: a.Iteration, Revert: a.Revert}); err != nil {
		return h.takeBack(err, a, c, w)
	}
	return loop.Applied{AnswerCheck: checkedAnswers(ctx, h.answers, a, ask)}
}

// intend records the change before it is made. The record has no launch, because only the
// program knows it; a revert inverts the changes.
func (h *Managed) intend(a loop.Apply, c *manager.Change) error {
	return h.plan.Journal.Write(journal.Record{
		Kind: journal.Intent, Mode: h.Mode(), Iteration: a.Iteration, Revert: a.Revert, Changes: a.Changes,
		Predicted: journal.Predictions(a.Predicted), Command: c.Command.After, Text: engine.JoinChanges(c.Changes),
	})
}

// recordKeptValues stores the kept value of each flag before its first change.
func (h *Managed) recordKeptValues(a loop.Apply) {
	if h.keptValues == nil {
		h.keptValues = map[string]string{}
	}
	for _, c := range a.Changes {
		if _, ok := h.keptValues[c.Flag]; !ok && !a.Revert {
			h.keptValues[c.Flag] = c.From
		}
	}
}

// keptRuns reports whether the kept configuration runs, as far as is known.
func (h *Managed) keptRuns() bool { return len(h.runs) == 0 && !h.lost }

// managerWithin limits a change by a manager, beside patience times the time of a start: all of them have
// shorter limits, except for what systemd makes of a restart.
const managerWithin = 20 * time.Minute

// made has a manager make a change, which w, which may be nil, watches.
func (r Readiness) made(ctx context.Context, by manager.Manager, c *manager.Change, w *restartWatch) error {
	within := managerWithin + patience*r.within()
	ctx, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("%s did not finish within %v", by.Name(), within))
	defer cancel()
	return watched(ctx, w, func() error { return by.Make(ctx, c) })
}

// make has the manager make a change, and waits until the watch has seen a restart and the server is
// ready. Without a watch the server need not have been restarted.
func (h *Managed) make(ctx context.Context, c *manager.Change, w *restartWatch) error {
	h.plan.report(h.by.Steps(c)[0])
	if err := h.plan.Ready.made(ctx, h.by, c, w); errors.Is(err, manager.ErrRestored) {
		w = nil
	} else if err != nil {
		return err
	}
	h.plan.report("waiting for " + h.plan.Ready.URL + "/health")
	return h.plan.Ready.restarted(ctx, w, h.by)
}

func (h *Managed) untouched(a loop.Apply, err error) loop.Applied {
	state := nothingTouched
	switch {
	case h.lost:
		state = "an earlier change was not reverted"
	case a.Revert && len(h.runs) > 0:
		state = "the server still runs with " + engine.JoinChanges(h.runs)
	}
	return loop.Applied{Err: untouched(h.by.Launch().Hide(err.Error()), err, state), Back: h.keptRuns(), Untouched: true}
}

// takeBack restores the kept configuration after a failed change.
func (h *Managed) takeBack(why error, a loop.Apply, c *manager.Change, w *restartWatch) loop.Applied {
	reason := h.by.Launch().Hide(why.Error())
	if errors.Is(why, context.Canceled) {
		reason = "it was canceled"
	}
	text := "the change could not be made: " + strings.TrimSuffix(reason, ".")
	switch {
	case unrecorded(why) && a.Revert:
		text = "the change was reverted, and then " + reason
	case unrecorded(why):
		text = "the change was made, and then " + reason
	}
	var back error
	spared := refused(why) && h.keptRuns()
	switch {
	case spared:
		text += "; nothing was touched"
	default:
		// Revert this change and those before it, as far as they were made.
		revert := *c
		revert.Revert, revert.Predicted, revert.All = true, nil, nil
		if revert.Changes = between(a.Changes, nil); a.Revert {
			revert.Changes = a.Changes
		}
		for _, had := range between(h.runs, nil) {
			if !sets(revert.Changes, had.Flag) {
				revert.Changes = append(revert.Changes, had)
			}
		}
		if h.kept != nil {
			revert.Command = manager.Command{Before: c.Command.After, After: h.kept.String()}
		}
		h.plan.report("putting the server back: " + reason)
		back = h.putBack(a, &revert, w)
	}
	h.runs, h.lost = nil, back != nil
	if back != nil {
		text += "; and it could not be reverted: " + h.by.Launch().Hide(back.Error())
	} else {
		_ = h.plan.Journal.Write(journal.Record{Kind: journal.Ready, Launch: h.name})
		if !refused(why) {
			text += "; the server runs as before"
		}
	}
	_ = h.plan.Journal.Write(journal.Record{Kind: journal.Failed, Iteration: a.Iteration, Revert: a.Revert, Text: text})
	return loop.Applied{Err: text, Back: back == nil, Untouched: spared, Late: late(why)}
}

// putBack undoes a failed change, or repeats a failed revert. The server need not be restarted again
// if the failed change did not touch it, or if it was a revert that restarted it already.
func (h *Managed) putBack(a loop.Apply, revert *manager.Change, w *restartWatch) error {
	ctx := context.Background()
	if a.Revert {
		return h.make(ctx, revert, w)
	}
	again, err := h.plan.Ready.watchRestart(ctx)
	if err != nil {
		return err
	}
	defer again.close()
	if h.keptRuns() {
		again.before = w
	}
	return h.make(ctx, revert, again)
}

// Kept records that later reverts return to the configuration that runs now.
func (h *Managed) Kept() error {
	if err := h.begin(); err != nil {
		return err
	}
	r := journal.Record{Kind: journal.Kept, Launch: h.name, Changes: h.runs}
	kept := h.kept
	if kept != nil {
		kept = loop.WithChanges(kept, h.runs...)
		r.Command = kept.String()
	}
	if err := h.plan.Journal.Write(r); err != nil {
		return err
	}
	if err := h.by.Keep(context.Background()); err != nil {
		return err
	}
	if len(h.runs) > 0 {
		h.answers = answers{}
	}
	for _, c := range h.runs {
		h.keptValues[c.Flag] = c.To
	}
	h.kept, h.runs = kept, nil
	return nil
}

// Close ends the connection to the manager. The server keeps running.
func (h *Managed) Close() error {
	h.by.Close()
	return nil
}
