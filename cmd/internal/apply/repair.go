package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply/manager"
	"github.com/rooftop-dev/rooftop/cmd/internal/atomicfile"
	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
)

// Repair restores servers after interrupted runs.
type Repair struct {
	Version  string        // rooftop's version
	Ready    Readiness     // an empty URL means the server's own
	Grace    time.Duration // as in Plan
	Progress func(string)  // as in Plan

	restores time.Duration // as in host; only tests set it
}

// ChangedError means that the state changed after the survey. Now is the new state.
type ChangedError struct{ Now Left }

func (e *ChangedError) Error() string {
	return "the state has changed since the survey; run 'rooftop recover' again"
}

// Do restores a server and ends the interrupted run in the journal. It can be killed at any
// time and repeated. If the state now calls for another remedy than left.Remedy, Do
// touches nothing and returns a *ChangedError.
func (r *Repair) Do(ctx context.Context, left *Left) error {
	if left.Remedy == LeaveAlone || left.Remedy == Impossible {
		return errors.New(left.Why)
	}
	s, err := serverdir.OpenUnfinished(left.Dir, r.Version)
	if err != nil {
		return err
	}
	defer s.Close()
	if err := s.Doubt(); err != nil {
		return err
	}
	state := s.State()
	if !state.Open {
		return nil // another rooftop has repaired it
	}
	now := Left{Dir: left.Dir, State: state, Identity: s.Identity()}.judge()
	if now.State.Run != left.State.Run || !left.covers(now.Remedy) {
		return &ChangedError{now}
	}
	if now.Remedy == CallManager {
		return r.callManager(ctx, s, &now)
	}
	if err := now.keep(ctx); err != nil {
		return err
	}
	return r.act(ctx, s, &now)
}

// covers reports whether the announced remedy includes another. AwaitKept includes PutBack:
// the server may have ended meanwhile, and the announced steps say that it is restarted.
func (l *Left) covers(now Remedy) bool {
	return now == l.Remedy || l.Remedy == AwaitKept && now == PutBack
}

// Abandon ends an interrupted or unreadable run in the journal and touches no server, for
// users who have restored the server themselves.
func (r *Repair) Abandon(left *Left) error {
	if left.Remedy == LeaveAlone || left.lost {
		return errors.New(left.Why)
	}
	s, err := serverdir.OpenUnfinished(left.Dir, r.Version)
	if err != nil {
		return err
	}
	defer s.Close()
	if s.Doubt() == nil && !s.State().Open {
		return nil
	}
	if err := s.Overlook(); err != nil {
		return &serverdir.StateError{Dir: s.Dir(), Err: err}
	}
	return s.Finish(journal.Record{Kind: journal.Recover, Text: "left unchanged, as requested"})
}

// act carries out the remedy.
func (r *Repair) act(ctx context.Context, s *serverdir.Store, l *Left) error {
	if l.kept == nil {
		return finish(s, journal.Record{Kind: journal.Recover, Text: "nothing had to be reverted"})
	}
	o, err := r.applier(s, l)
	if err != nil {
		return err
	}
	defer o.Close()
	record := journal.Record{Kind: journal.Recover, Launch: l.State.Kept.Launch}
	switch l.Remedy {
	case CloseRun:
		if err := r.seen(ctx, o, l); err != nil {
			return err
		}
		if err := l.files(s, o); err != nil {
			return err
		}
		record.Launch, record.Text = "", "the server was left alone"
		if o.process != nil {
			record.Launch, record.Text, record.Process = o.keptName, "the server runs with its kept launch", &o.process.Process
		}
		return finish(s, record)
	case AwaitKept:
		if r.answers(ctx, o, l) {
			if err := l.files(s, o); err != nil {
				return err
			}
			record.Text, record.Process = "the server runs with its kept launch", &o.process.Process
			return finish(s, record)
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
	}
	if err := r.putBack(ctx, s, o, l); err != nil {
		return err
	}
	record.Text, record.Process = "put back as it was", &o.process.Process
	return finish(s, record)
}

// seen waits until a server that this run touched, and that runs as it was, answers.
func (r *Repair) seen(ctx context.Context, o *owned, l *Left) error {
	if l.back != nil {
		o.process, o.runs, o.runsName = l.back, l.kept, l.State.Kept.Launch
	}
	if o.process == nil || !l.State.Touched {
		return nil
	}
	if err := o.await(ctx); err != nil {
		return fmt.Errorf("process %d runs the server as it was, but it is not seen to answer: %s; mend that, or end it, and run 'rooftop recover' again", o.process.PID, o.trouble(err))
	}
	return nil
}

// finish ends the run in the journal.
func finish(s *serverdir.Store, r journal.Record) error { return recorded(s.Finish(r), r.Text) }

// recorded returns the error of a record with what was done before it.
func recorded(err error, done string) error {
	if !unrecorded(err) {
		return err
	}
	return fmt.Errorf("%s, and %w; mend that and run 'rooftop recover' again", done, err)
}

// Facts for recorded.
const (
	didNothing = "nothing was touched"
	didStop    = "the server is stopped"
)

// applier returns an applier like that of the interrupted run, with the process that runs
// now.
func (r *Repair) applier(s *serverdir.Store, l *Left) (*owned, error) {
	h, err := newHost(r.Grace)
	if err != nil {
		return nil, err
	}
	url, at, err := addressOf(l.kept)
	if err != nil {
		return nil, err
	}
	h.restores = cmp.Or(r.restores, h.restores)
	ready := r.Ready
	ready.URL, ready.refusals = cmp.Or(ready.URL, l.Identity.URL, url), true
	o := &owned{
		host: h, mode: l.State.Mode, at: at, kept: l.kept, keptName: l.State.Kept.Launch, began: true,
		plan: Plan{Journal: s, Ready: ready, Grace: r.Grace, Progress: r.Progress},
	}
	for _, p := range l.running {
		if p.Launch == l.State.Kept.Launch {
			o.process, o.runs, o.runsName = l.adopted(h, p), l.kept, p.Launch
		}
	}
	o.std = l.streams(s.Dir(), o)
	return o, nil
}

// Parameters of watching a server that may be shutting down. A server that was asked to stop
// refuses connections well within steadyFor.
const (
	steadyFor  = 2 * time.Second
	steadyPoll = 250 * time.Millisecond
)

// answers reports whether the kept launch, which may be starting or shutting down, becomes
// ready and keeps running.
func (r *Repair) answers(ctx context.Context, o *owned, l *Left) bool {
	if o.process == nil {
		return false
	}
	if l.State.Stage != journal.StageStopping {
		// This run started it and did not stop it.
		if o.await(ctx) != nil {
			return false
		}
		return o.write(journal.Record{Kind: journal.Ready}) == nil
	}
	d, err := o.plan.Ready.connect(o.kept)
	if err != nil {
		return false
	}
	defer d.close()
	o.plan.report("checking whether the server keeps running")
	for deadline := time.Now().Add(steadyFor); time.Now().Before(deadline); {
		if _, err := d.health.Get(ctx, "/health", "*/*", nil); err != nil || o.over(o.process) != "" {
			return false
		}
		if pause(ctx, steadyPoll) != nil {
			return false
		}
	}
	return true
}

// putBack stops the servers of the run and starts the kept launch.
func (r *Repair) putBack(ctx context.Context, s *serverdir.Store, o *owned, l *Left) error {
	if err := o.rehearse(ctx, o.kept); err != nil {
		return fmt.Errorf("the server cannot be started: %s", o.kept.Hide(err.Error()))
	}
	defer o.kept.Unstage()
	if err := o.kept.Stage(); err != nil {
		return err
	}
	if err := s.Write(journal.Record{
		Kind: journal.Intent, Mode: l.State.Mode, Revert: true, Iteration: l.State.Iteration, Launch: o.keptName, Command: o.kept.Command(),
		Text: "rooftop recover puts the server back",
	}); err != nil {
		return recorded(err, didNothing)
	}
	for _, p := range l.State.Processes {
		o.process, o.runsName = l.adopted(o.host, p), p.Launch
		if len(o.alive(o.process)) == 0 {
			continue
		}
		var taken *takenError
		if err := o.down(); unrecorded(err) {
			return recorded(err, didStop)
		} else if err != nil && !errors.As(err, &taken) { // the port is checked below
			return fmt.Errorf("the server could not be stopped: %w", err)
		}
	}
	o.process = nil
	if err := s.Write(journal.Record{Kind: journal.Stopped}); err != nil {
		return recorded(err, didStop)
	}
	if err := o.persevere(ctx, func() error { return l.start(ctx, s, o) }); err != nil {
		return r.failed(s, o, err)
	}
	return recorded(o.write(journal.Record{Kind: journal.Reverted, Revert: true}), "the server runs as it was")
}

// start restores the configuration files and starts the kept launch, once its port is free.
func (l *Left) start(ctx context.Context, s *serverdir.Store, o *owned) error {
	if err := o.down(); err != nil { // of an attempt before
		return err
	}
	if err := o.free(o.at); err != nil {
		return err
	}
	if err := l.files(s, o); err != nil {
		return err
	}
	return o.startKept(ctx)
}

func (r *Repair) failed(s *serverdir.Store, o *owned, err error) error {
	if unrecorded(err) { // of the start
		return recorded(err, didStop)
	}
	if errors.As(err, new(*takenError)) {
		return fmt.Errorf("%w: end it, or leave it and run 'rooftop recover --leave'", err)
	}
	why := fmt.Sprintf("the server does not start as it was: %s", o.trouble(err))
	if written := s.Write(journal.Record{Kind: journal.Failed, Revert: true, Text: why}); written != nil {
		return errors.Join(errors.New(why), written)
	}
	return errors.New(why)
}

// files restores the configuration files. A file that someone changed since is saved
// first, or left unchanged if the server is left running.
func (l *Left) files(s *serverdir.Store, o *owned) error {
	for i := range l.kept.Files {
		f := &l.kept.Files[i]
		how, err := l.judgeFile(f)
		if err != nil {
			return err
		}
		if how == fileForeign {
			if !l.restoresFiles() {
				continue
			}
			if _, err := s.KeepFound(f); err != nil {
				return err
			}
		}
		o.plan.report("putting back " + f.Path)
		if err := f.Replace(); err != nil {
			return fmt.Errorf("write %s: %w", f.Path, err)
		}
	}
	return nil
}

// streams returns a function that opens the server's original standard streams for a
// start. Pipes and terminals come from a process that still has them open, files are
// opened by name, and the server log replaces streams that no longer exist.
func (l *Left) streams(dir string, o *owned) func() ([3]*os.File, *os.File, error) {
	var opened [3]*os.File
	var log *os.File
	for i := range opened {
		if f := l.stream(i); f != nil {
			o.held = append(o.held, f)
			opened[i] = f
			if info, err := f.Stat(); i > 0 && err == nil && info.Mode().IsRegular() {
				log = f
			}
		}
	}
	return func() ([3]*os.File, *os.File, error) {
		std := opened
		for i := 1; i < len(std); i++ {
			if std[i] != nil || l.kept.Std[i] == os.DevNull {
				continue
			}
			spare, err := openServerLog(dir)
			if err != nil {
				return std, nil, err
			}
			o.held = append(o.held, spare)
			std[i] = spare
			log = spare
		}
		return std, log, nil
	}
}

// stream opens one standard stream of the kept launch; nil if that is not possible.
func (l *Left) stream(i int) *os.File {
	target := l.kept.Std[i]
	if target == "" || target == os.DevNull {
		return nil
	}
	for _, p := range l.running {
		if now, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", p.PID, i)); err == nil && now == target {
			if f, err := openStream(p.PID, i, target, l.kept.User()); err == nil {
				return f
			}
		}
	}
	if !filepath.IsAbs(target) {
		return nil
	}
	flags := os.O_WRONLY | os.O_APPEND
	if i == 0 {
		flags = os.O_RDONLY
	}
	by := l.kept.User()
	if os.Geteuid() == 0 && by.UID == 0 && atomicfile.OwnDir(target) != nil {
		return nil // someone else may lead the name elsewhere
	}
	var f *os.File
	_ = by.Do(func() (err error) {
		f, err = launcher.OpenFile(target, flags, 0)
		return err
	})
	return f
}

// callManager has the manager of a server revert the changes that may be in effect. It first waits for
// a call of the interrupted run that may still be running.
func (r *Repair) callManager(ctx context.Context, s *serverdir.Store, l *Left) error {
	ready := r.Ready
	ready.URL, ready.refusals = cmp.Or(ready.URL, l.Identity.URL), true
	by, err := managerOf(l.manages, s.Dir(), ready.within(), r.Grace)
	if err != nil {
		return err
	}
	defer by.Close()
	if remote, ok := by.(interface {
		Reach(ctx context.Context) (string, error)
	}); ok {
		if ready.URL, err = remote.Reach(ctx); err != nil {
			return err
		}
	}
	for deadline := time.Now().Add(ready.within()); len(by.Busy()) > 0; {
		if time.Now().After(deadline) {
			return fmt.Errorf("%s still runs (process %s); end it first", by.Name(), joinPIDs(by.Busy()))
		}
		if err := pause(ctx, readyPoll); err != nil {
			return err
		}
	}
	c := &manager.Change{
		Schema: manager.ChangeSchema, Iteration: l.State.Iteration, Revert: true, URL: ready.URL, Changes: engine.InverseChanges(l.State.Unkept),
		Command: manager.Command{Before: l.State.Next.Command, After: l.State.Kept.Command},
	}
	if err := s.Write(journal.Record{
		Kind: journal.Intent, Mode: by.Mode(), Revert: true, Iteration: c.Iteration, Changes: c.Changes, Text: "rooftop recover reverts the change",
	}); err != nil {
		return recorded(err, didNothing)
	}
	if r.Progress != nil {
		r.Progress(by.Steps(c)[0])
	}
	var w *restartWatch
	if l.State.Stage == journal.StageTrial { // otherwise the kept configuration may already run
		if w, err = ready.watchRestart(ctx); err != nil {
			return err
		}
		defer w.close()
	}
	if err = ready.made(ctx, by, c, w); errors.Is(err, manager.ErrRestored) {
		w, err = nil, nil
	}
	if err == nil {
		err = ready.restarted(ctx, w, by)
	}
	if err != nil {
		why := "the change could not be reverted: " + l.manages.Hide(err.Error()) +
			"; fix that and run 'rooftop recover' again, or revert " + spelledRecorded(l.State.Unkept) + " yourself and run 'rooftop recover --leave'"
		return errors.Join(errors.New(why), s.Write(journal.Record{Kind: journal.Failed, Revert: true, Text: why}))
	}
	done := "put back by " + by.Name()
	if err := s.Write(journal.Record{Kind: journal.Reverted, Launch: l.State.Kept.Launch, Revert: true}); err != nil {
		return recorded(err, done)
	}
	return finish(s, journal.Record{Kind: journal.Recover, Launch: l.State.Kept.Launch, Text: done})
}

// keep makes what the journal says was kept last, in case rooftop was killed in between.
func (l *Left) keep(ctx context.Context) error {
	if l.manages == nil {
		return nil
	}
	by, err := managerOf(l.manages, l.Dir, 0, 0)
	if err != nil {
		return err
	}
	defer by.Close()
	return by.Keep(ctx)
}
