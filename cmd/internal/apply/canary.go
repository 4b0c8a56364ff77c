package apply

import (
	"context"
	"errors"
	"fmt"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply/manager"
	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// Canary is a copy of a server with a change, beside the others.
type Canary struct {
	manager.Copy
	of        *Managed
	iteration int
	removed   bool
}

// StartCanary starts one more copy of the server with a change and returns when it takes requests. The intent
// is in the journal first, so that a later rooftop removes what this one leaves.
func (h *Managed) StartCanary(ctx context.Context, a loop.StartCanary) (*Canary, error) {
	copier, ok := h.by.(manager.Copier)
	switch {
	case !ok:
		return nil, fmt.Errorf("%s can start no copy beside others: --canary takes a workload of Kubernetes (--kube)", h.by.Name())
	case !h.keptRuns():
		return nil, errors.New("a change is in place that is not kept, so that a canary would not be compared with the kept configuration")
	}
	change := h.withKeptValues(loop.Apply{Changes: a.Changes, Iteration: a.Iteration, Predicted: a.Predicted})
	c := h.change(change)
	if err := h.begin(); err != nil {
		return nil, err
	}
	record := journal.Record{
		Kind: journal.Intent, Mode: serverdir.ModeCanary, Iteration: a.Iteration, Changes: change.Changes,
		Predicted: journal.Predictions(a.Predicted), Command: c.Command.After, Text: "on a canary: " + engine.JoinChanges(c.Changes),
	}
	if err := h.plan.Journal.Write(record); err != nil {
		return nil, err
	}
	h.plan.report("starting a canary of " + h.by.Name())
	copied, err := copier.Beside(ctx, c)
	if err == nil {
		return &Canary{Copy: copied, of: h, iteration: a.Iteration}, nil
	}
	failed := h.plan.Journal.Write(journal.Record{Kind: journal.Failed, Iteration: a.Iteration, Text: "the canary could not be started: " + err.Error()})
	if untouched := new(manager.UntouchedError); errors.As(err, &untouched) {
		failed = errors.Join(failed, h.plan.Journal.Write(journal.Record{Kind: journal.Reverted, Launch: h.name, Iteration: a.Iteration, Revert: true}))
	} else {
		err = &LeftError{err}
	}
	return nil, errors.Join(fmt.Errorf("the canary could not be started: %w", err), failed)
}

// LeftError means that a canary is left.
type LeftError struct{ Err error }

func (e *LeftError) Error() string { return e.Err.Error() }
func (e *LeftError) Unwrap() error { return e.Err }

// CopyLeft marks the error for those who do not know its type.
func (e *LeftError) CopyLeft() {}

// URLs returns the addresses of the canary, first, and of each of the servers beside it.
func (c *Canary) URLs() []string { return append([]string{c.URL()}, c.Others()...) }

// Remove ends the canary and records that. It can be repeated.
func (c *Canary) Remove(ctx context.Context) error {
	if c.removed {
		return nil
	}
	if err := c.Copy.Remove(ctx); err != nil {
		return err
	}
	c.removed = true
	if err := c.of.plan.Journal.Write(journal.Record{Kind: journal.Reverted, Launch: c.of.name, Iteration: c.iteration, Revert: true}); err != nil {
		return fmt.Errorf("the canary is removed, and %w; 'rooftop recover' ends the run", err)
	}
	return nil
}
