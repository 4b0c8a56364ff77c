package mcpserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/lever"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/loop/search"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// change is a change that was made and is not kept. It is a run of its own in the server's journal.
type change struct {
	engine.Change
	control   *Control
	predicted []engine.Prediction
	made      int           // measurements before it
	judged    *effect.Delta // the latest verdict on it, nil without one
}

type applyArguments struct {
	Flag string `json:"flag" jsonschema:"a flag of vLLM, such as --max-num-seqs"`
	To   string `json:"to" jsonschema:"its new value; on or off for a switch"`
}

func (s *Server) addChanging() {
	addTool(s, "apply", "Make a change",
		fmt.Sprintf("Restart %s with one setting changed, one of %s. No requests are served meanwhile, for as long as the model loads. It needs a measurement before the change, and allows one change at a time: measure again and ask for the verdict. "+
			"The change is kept once the verdict is better. Otherwise revert it; it is also reverted when this session ends.", s.c.Changeable, settings((*lever.Lever).Applicable)),
		document.AppliedSchema, hints{changes: true, world: true}, s.apply)
	addTool(s, "revert", "Revert the change", fmt.Sprintf("Restart %s exactly as it ran before the change that apply made and that is not kept.", s.c.Changeable),
		document.AppliedSchema, hints{changes: true, world: true}, s.undo)
}

// settings returns the flags of levers that an agent may give a value, sorted.
func settings(kind func(*lever.Lever) bool) string {
	var names []string
	for _, l := range lever.All() {
		if l.Values != nil && kind(l) {
			names = append(names, l.Flag)
		}
	}
	slices.Sort(names)
	return strings.Join(names, ", ")
}

// baseline returns the latest measurement of the server that may be changed.
func (s *Server) baseline() (k kept, ok bool) {
	for _, o := range slices.Backward(s.measured) {
		if o.server == nameOf(s.c.Changeable) {
			return o, true
		}
	}
	return k, false
}

func (s *Server) apply(ctx context.Context, q *mcp.CallToolRequest, in applyArguments) (*result, error) {
	c, err := newChange(in.Flag, in.To)
	if err != nil {
		return nil, err
	}
	if !lever.Of(c.Flag).Applicable() {
		return nil, fmt.Errorf("%s cannot be changed here: it may alter answers or take hardware from others; 'rooftop tune --auto --allow-flags' can change it", c.Flag)
	}
	release, err := s.claim(nameOf(s.c.Changeable))
	if err != nil {
		return nil, err
	}
	defer release()
	s.mu.Lock()
	base, measured := s.baseline()
	made, before := s.made, s.change
	s.mu.Unlock()
	switch {
	case before != nil:
		return nil, fmt.Errorf("%s is in place and not kept: ask for its verdict or revert it first", before.Change)
	case !measured:
		return nil, fmt.Errorf("%s was not measured in this session: without a measurement before the change there is no verdict", s.c.Changeable)
	}
	if err := onlyVLLM(&base.Facts); err != nil {
		return nil, err
	}
	control, err := s.c.Take(ctx)
	if err != nil {
		return nil, err
	}
	it := &change{Change: c, control: control, made: made}
	if given, ok := control.Server.Header.Inputs.Launch[engine.ArgumentName(c.Flag)]; ok {
		it.From = loop.SettingText(given.Value)
	}
	if engine.SameValue(it.From, c.To) {
		return nil, errors.Join(fmt.Errorf("%s is %s already", c.Flag, c.To), control.End(ctx, ended(nil, cli.ExitDone, "nothing to change")))
	}
	if r, _ := search.Predict(&base.Diagnosis, it.Change); r != nil {
		it.predicted = r.Predicted
	}
	began := time.Now()
	done := s.beat(ctx, q, "restarting the server with "+it.Change.String(), control.Within)
	within, cancel := context.WithTimeout(ctx, control.Within)
	control.Tell(loop.Event{Kind: loop.EventApplying, Iteration: 1, Change: it.Change})
	r := control.Server.Apply(within, loop.Apply{Changes: []engine.Change{it.Change}, Iteration: 1, Predicted: it.predicted})
	cancel()
	done()
	if r.Err != "" {
		state := "the server may not run as before: 'rooftop recover' says more"
		if r.Back || r.Untouched {
			state = "the server runs as before"
		}
		err := fmt.Errorf("%s was not made: %s; %s", it.Change, r.Err, state)
		return nil, errors.Join(err, control.End(context.WithoutCancel(ctx), ended(it, cli.ExitError, err.Error())))
	}
	s.mu.Lock()
	s.change = it
	s.mu.Unlock()
	return appliedResult(&tuning.AppliedChange{
		Server: s.c.Changeable.String(), Changes: []engine.Change{it.Change}, Took: time.Since(began),
		Next: fmt.Sprintf("Measure under the same load, then ask for the verdict of %s and that measurement. Unless it is better, the change is reverted when this session ends.", base.Name),
	}), nil
}

func appliedResult(a *tuning.AppliedChange) *result {
	return &result{page: tuning.Applied(a), document: func(w io.Writer) error { return document.WriteApplied(w, a) }}
}

// beat reports to a client that waits for a change how long it has taken, until done is called.
func (s *Server) beat(ctx context.Context, q *mcp.CallToolRequest, what string, within time.Duration) (done func()) {
	ctx, cancel := context.WithCancel(ctx)
	over := make(chan struct{})
	tell := teller(ctx, q)
	go func() {
		defer close(over)
		began := time.Now()
		for {
			tell(time.Since(began), within, what+", "+figure.Elapsed(time.Since(began)))
			select {
			case <-ctx.Done():
				return
			case <-time.After(2 * time.Second):
			}
		}
	}()
	return func() { cancel(); <-over }
}

// ended returns the end of the run of a change. made is nil if none was made.
func ended(made *change, code cli.ExitCode, why string) *loop.Snapshot {
	last := &loop.Snapshot{Finished: &loop.Finished{ExitCode: int(code), Reason: why}}
	if made != nil {
		last.Iterations = []loop.Iteration{{N: 1, Changes: []engine.Change{made.Change}}}
	}
	return last
}

// settle keeps the change of this session if the comparison is about it and finds it better. It returns a note for the
// agent.
func (s *Server) settle(ctx context.Context, before, after *kept, j *tuning.PastComparison) (note string, err error) {
	s.mu.Lock()
	c := s.change
	s.mu.Unlock()
	if c == nil || before.server != nameOf(s.c.Changeable) || s.order(before) > c.made || s.order(after) <= c.made {
		return "", nil
	}
	if !j.LaunchesKnown || !engine.SameChanges(j.Changes, []engine.Change{c.Change}) {
		return " It does not judge only the change made by apply, so that change is not kept.", nil
	}
	j.Predicted = c.predicted
	s.mu.Lock()
	c.judged = j.Delta
	s.mu.Unlock()
	if j.Delta.Direction != verdict.Better {
		return " The change is in place and not kept: measure again, or revert it.", nil
	}
	release, err := s.claim(before.server)
	if err != nil {
		return "", err
	}
	defer release()
	s.mu.Lock()
	over := s.change != c
	s.mu.Unlock()
	if over { // another call has ended it
		return "", nil
	}
	s.tellVerdict(c)
	c.control.Tell(loop.Event{Kind: loop.EventKept, Iteration: 1, Change: c.Change, Command: after.Inputs.LaunchText, Text: "kept"})
	if err := s.finish(ctx, c, cli.ExitDone, "kept: "+j.Delta.Reason); err != nil {
		return "", err
	}
	j.Kept = true
	return " The change is kept.", nil
}

// order returns the number of a measurement in this session.
func (s *Server) order(k *kept) int {
	n := 0
	_, _ = fmt.Sscanf(k.Name, "m%d", &n)
	return n
}

// tellVerdict records the latest verdict on a change in the journal.
func (s *Server) tellVerdict(c *change) {
	if c.judged == nil {
		return
	}
	d := c.judged
	c.control.Tell(loop.Event{
		Kind: loop.EventVerdict, Iteration: 1, Delta: d, Verdict: d.Verdict, Text: d.Reason,
		Advice: &engine.Recommendation{Finding: engine.SearchStep, Fix: engine.Fix{Kind: engine.KindFlag, Flag: c.Flag, From: c.From, To: c.To, Predicted: c.predicted}},
	})
}

// finish ends the run of a change, which reverts it unless it is kept.
func (s *Server) finish(ctx context.Context, c *change, code cli.ExitCode, why string) error {
	err := c.control.End(ctx, ended(c, code, why))
	s.mu.Lock()
	s.change = nil
	s.mu.Unlock()
	return err
}

// revert reverts the change that is in place and not kept.
func (s *Server) revert(ctx context.Context, why string) error {
	s.mu.Lock()
	c := s.change
	s.mu.Unlock()
	if c == nil {
		return errors.New("no change of this session is in place: there is nothing to revert")
	}
	s.tellVerdict(c)
	return s.finish(ctx, c, cli.ExitDone, why)
}

func (s *Server) undo(ctx context.Context, q *mcp.CallToolRequest, _ nothing) (*result, error) {
	release, err := s.claim(nameOf(s.c.Changeable))
	if err != nil {
		return nil, err
	}
	defer release()
	s.mu.Lock()
	c := s.change
	s.mu.Unlock()
	began := time.Now()
	if c != nil {
		defer s.beat(ctx, q, "restarting the server as it ran before", c.control.Within)()
	}
	// A revert that has begun continues even if the call is canceled.
	if err := s.revert(context.WithoutCancel(ctx), "reverted on request"); err != nil {
		return nil, err
	}
	return appliedResult(&tuning.AppliedChange{
		Server: s.c.Changeable.String(), Reverted: true, Changes: []engine.Change{c.Inverse()}, Took: time.Since(began), Next: "The server runs as it did before the change.",
	}), nil
}
