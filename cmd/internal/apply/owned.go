package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"os/exec"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// owned is a server of this machine that rooftop starts and stops, the common part of Exec
// and Attach. It is not safe for concurrent use.
type owned struct {
	*host
	mode string
	plan Plan
	at   netip.AddrPort // where the server listens; the unspecified IPv6 address if unknown

	programs map[string]os.FileInfo // what a start executes, by path, as it was found
	kept     *launcher.Launch       // launch to which a revert returns
	keptName string                 // file name of kept
	runs     *launcher.Launch       // launch of process; nil before the first start
	runsName string                 // file name of runs
	process  *process               // nil if no process is known to run
	changes  []engine.Change
	starting bool // process was started and has not become ready

	// std opens the standard streams for a start; log is the one with the server's log.
	std  func() (std [3]*os.File, log *os.File, err error)
	held []*os.File // open until the applier is closed
	// began is true once the begin record is written.
	began bool
	// wary is true if something else may restart the server, which is checked after each
	// stop and during a start. returns names the process that may do so, "" if unknown.
	wary         bool
	returns      string
	returnWithin time.Duration    // how long to watch for that after the first stop
	first        *launcher.Launch // launch that was stopped first
	earlier      map[int]uint64   // processes with the same command line at that time, PIDs with ticks
	gone         error            // why no further change can be made
	answers      answers          // answers of the kept launch
	able         bool             // a launch answered a completion in this run
	notes        []string         // facts about the restarts for the user, a sentence each
	failing      time.Time        // of the first failed attempt to restore, since the kept launch last ran
}

// begin writes the begin record, with the kept launch, once.
func (s *owned) begin() error {
	if s.began {
		return nil
	}
	name, err := s.plan.Journal.Keep(s.kept)
	if err != nil {
		return err
	}
	r := journal.Record{Kind: journal.Begin, Mode: s.mode, Server: s.plan.Server, Launch: name, Command: s.kept.Command()}
	if s.process != nil {
		r.Process = &s.process.Process
	}
	if err := s.plan.Journal.Write(r); err != nil {
		return err
	}
	s.keptName, s.began = name, true
	if s.process != nil {
		s.runsName = name
	}
	return nil
}

// Apply restarts the server with changes made to the kept launch, or with the kept launch.
func (s *owned) Apply(ctx context.Context, a loop.Apply) loop.Applied {
	if a.Revert {
		// Canceling the run must not leave the user without a server.
		ctx = context.WithoutCancel(ctx)
	}
	target, err := s.target(a)
	if err != nil {
		return s.untouched(a, err)
	}
	if err := s.check(ctx, target); err != nil {
		return s.untouched(a, err)
	}
	if err := s.begin(); err != nil {
		return s.untouched(a, err)
	}
	ended := s.Trouble()
	ask := func(ctx context.Context) answers { return s.plan.Ready.askPrompts(ctx, s.runs) }
	s.answers = answersBefore(ctx, s.answers, a, s.runs == s.kept && ended == "", ask)
	// The launch in the journal names the files, so recover finds the staged copies.
	defer target.Unstage()
	if err := target.Stage(); err != nil {
		return s.untouched(a, err)
	}
	name, err := s.intend(a, target)
	switch {
	case err != nil && a.Revert && unrecorded(err) && s.runs != s.kept:
		return s.putBack(err, a) // a disk that fails in mid-run leaves no trial behind
	case err != nil:
		return s.untouched(a, err)
	}
	within, cancel := bounded(ctx, a)
	defer cancel()
	if err := s.swap(within, target, name, a); err != nil {
		return s.putBack(err, a)
	}
	s.changes = nil
	if !a.Revert {
		s.changes = slices.Clone(a.Changes)
	}
	return loop.Applied{Ended: ended, AnswerCheck: checkedAnswers(ctx, s.answers, a, ask)}
}

// target returns the launch of a change.
func (s *owned) target(a loop.Apply) (*launcher.Launch, error) {
	if a.Revert {
		return s.kept, nil
	}
	target, err := s.kept.With(a.Changes, false)
	if err != nil || len(target.Files) == 0 || slices.Equal(target.ConfigText(), s.kept.ConfigText()) {
		return target, err
	}
	if why := target.Files[0].Replaceable(); why != nil {
		// A file that cannot be replaced atomically is overridden on the command line.
		return s.kept.With(a.Changes, true)
	}
	return target, nil
}

// check checks everything that can be checked before anything is touched.
func (s *owned) check(ctx context.Context, target *launcher.Launch) error {
	if s.gone != nil {
		return s.gone
	}
	if s.process != nil && s.over(s.process) != "" {
		// Something else may have started it again.
		pids, listening, err := s.holders(s.at)
		if err != nil {
			return err
		}
		if listening && len(s.alive(s.process)) == 0 {
			return fmt.Errorf("%w: something else restarted the server, so rooftop leaves it alone", &takenError{s.at, pids})
		}
	}
	current := s.kept
	if s.runs != nil {
		current = s.runs
	}
	for i := range current.Files {
		same, err := current.Files[i].Unchanged()
		if errors.Is(err, fs.ErrNotExist) && target == s.kept {
			continue // a revert writes it again
		} else if err != nil {
			return err
		}
		if !same && target != s.kept { // a revert copies it first
			return fmt.Errorf("someone else changed %s after rooftop read it, so rooftop leaves it alone", current.Files[i].Path)
		}
	}
	if target != s.kept {
		for path, was := range s.programs {
			if now := regular(s.kept, path); now == nil || !os.SameFile(was, now) || !was.ModTime().Equal(now.ModTime()) {
				return fmt.Errorf("%s was replaced or removed since rooftop read it, so a restart would run another program: restart the server yourself first", path)
			}
		}
	}
	err := s.rehearse(ctx, target)
	if target == s.kept && err != nil { // a revert
		err = s.persevere(ctx, func() error { return s.rehearse(ctx, target) })
	}
	if err != nil {
		err = fmt.Errorf("the server cannot be started: %w", err)
	} else if target != s.kept && !s.able && s.process != nil && s.Trouble() == "" {
		err = s.plan.Ready.able(ctx, s.runs)
		s.able = err == nil
	}
	if ctx.Err() != nil {
		return errors.New("it was canceled")
	}
	return err
}

// programs returns the files that a start executes, by path: the program, and the script of an interpreter.
func programs(l *launcher.Launch) map[string]os.FileInfo {
	words := append([]string{l.Exe}, l.Argv[:min(2, len(l.Argv))]...)
	if path, err := exec.LookPath(l.Argv[0]); err == nil {
		words[1] = path
	}
	found := map[string]os.FileInfo{}
	for _, path := range words {
		path = absolute(l.Cwd, path)
		if info := regular(l, path); info != nil {
			found[path] = info
		}
	}
	return found
}

// regular returns a regular file, seen with the rights of the server; nil if there is none.
func regular(l *launcher.Launch, path string) (info os.FileInfo) {
	_ = l.User().Do(func() (err error) {
		info, err = os.Stat(path)
		return err
	})
	if info != nil && !info.Mode().IsRegular() {
		return nil
	}
	return info
}

// intend records the change before it is made and returns the file name of its launch.
func (s *owned) intend(a loop.Apply, target *launcher.Launch) (name string, err error) {
	name = s.keptName
	if target != s.kept {
		if name, err = s.plan.Journal.Keep(target); err != nil {
			return "", err
		}
	}
	return name, s.plan.Journal.Write(journal.Record{
		Kind: journal.Intent, Mode: s.mode, Iteration: a.Iteration, Revert: a.Revert, Launch: name,
		Changes: a.Changes, Predicted: journal.Predictions(a.Predicted), Command: target.Command(), Text: engine.JoinChanges(a.Changes),
	})
}

// swap stops the running server, starts the target and waits until it is ready. It records
// each step.
func (s *owned) swap(ctx context.Context, target *launcher.Launch, name string, a loop.Apply) error {
	if err := s.down(); err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := s.up(ctx, target, name, a.Changes); err != nil {
		return err
	}
	if err := s.await(ctx); err != nil {
		return err
	}
	kind := journal.Ready
	if a.Revert {
		kind = journal.Reverted
	}
	return s.write(journal.Record{Kind: kind, Iteration: a.Iteration, Revert: a.Revert})
}

// write writes a record with the running process and its launch.
func (s *owned) write(r journal.Record) error {
	r.Launch = s.runsName
	if s.process != nil {
		r.Process = &s.process.Process
	}
	return s.plan.Journal.Write(r)
}

// down stops the running server, if there is one.
func (s *owned) down() error {
	s.recordTwins()
	if s.process == nil {
		return nil
	}
	s.plan.report(fmt.Sprintf("stopping process %d", s.process.PID))
	err := s.stop(s.process, s.at, s.stopGrace())
	var taken *takenError
	if err != nil && !errors.As(err, &taken) {
		return err
	}
	if s.over(s.process) == "" {
		return err
	}
	// The process is gone, even if another one took its port.
	if record := s.write(journal.Record{Kind: journal.Stopped}); record != nil && err == nil {
		err = record
	}
	s.process = nil
	if err == nil && s.wary {
		err = s.stayedDown()
	}
	return err
}

// stopGrace returns how long the server may take to end by itself. It is short for a server
// that never became ready: it serves nobody, and a vLLM that is loading ignores SIGTERM.
func (s *owned) stopGrace() time.Duration {
	if s.starting {
		return min(s.grace, graceStarting)
	}
	return s.grace
}

// up writes the files of a launch, which is the kept one with changes, and starts it.
func (s *owned) up(ctx context.Context, l *launcher.Launch, name string, changes []engine.Change) error {
	for i := range l.Files {
		f := &l.Files[i]
		if err := s.keepEdit(f); err != nil {
			return fmt.Errorf("copy %s, which someone else changed: %w", f.Path, err)
		}
		if err := f.Replace(); err != nil {
			return fmt.Errorf("write %s: %w", f.Path, err)
		}
	}
	std, log, err := s.std()
	if err != nil {
		return err
	}
	s.plan.report("starting " + l.Command())
	s.runs, s.runsName = l, name
	p, err := s.start(ctx, s.marked(l, changes), std, tailOf(log), func(p journal.Process) error {
		return s.plan.Journal.Write(journal.Record{Kind: journal.Started, Process: &p, Launch: name})
	})
	if err != nil {
		return err
	}
	s.process, s.starting = p, true
	return nil
}

// keepEdit copies a file that someone else changed since it was checked, before it is replaced.
func (s *owned) keepEdit(f *launcher.File) error {
	have, err := f.Read()
	written := func(l *launcher.Launch) bool { return l != nil && slices.Equal(l.ConfigText(), have.Data) }
	if err != nil || f.Fixed || slices.Equal(f.Data, have.Data) || written(s.kept) || written(s.runs) {
		return nil //nolint:nilerr // it cannot be copied, and is replaced where that is possible
	}
	s.plan.report(fmt.Sprintf("copying %s, because someone else changed it", f.Path))
	copied, err := s.plan.Journal.KeepFound(f)
	if copied != "" {
		s.notes = append(s.notes, fmt.Sprintf("someone else changed %s during the run; a copy of it is %s", f.Path, copied))
	}
	return err
}

// Notes returns further facts about the restarts so far for the user, a sentence each.
func (s *owned) Notes() []string { return s.notes }

// await waits until the started process is ready.
func (s *owned) await(ctx context.Context) error {
	s.plan.report("waiting for " + s.plan.Ready.URL + "/health")
	checked := runsElsewhere(s.runs.Argv)
	looked := time.Now()
	err := s.plan.Ready.ready(ctx, s.runs, func() error {
		if how := s.over(s.process); how != "" && len(s.alive(s.process)) == 0 {
			return &diedError{how}
		}
		if s.wary && time.Since(looked) >= returnPoll {
			looked = time.Now()
			if err := s.again(); err != nil {
				return err
			}
		}
		if checked {
			return nil
		}
		pids, listening, err := s.fs.Holders(s.at)
		if listening && err == nil && len(pids) == 0 { // another user's, unless it is just ending
			pids, listening, err = s.holders(s.at)
		}
		if !listening || err != nil {
			return nil //nolint:nilerr // what cannot be listed does not count as another's
		}
		// The owner of a port does not change, so one check is enough.
		checked = true
		if s.isOneOf(pids) {
			return nil
		}
		return &takenError{s.at, pids}
	})
	s.starting, s.able = s.starting && err != nil, s.able || err == nil && !s.plan.Ready.refusals
	return err
}

// trouble describes why a start failed, with the decisive line of the log.
func (s *owned) trouble(err error) string {
	if errors.Is(err, context.Canceled) {
		return "it was canceled"
	}
	text := err.Error()
	if s.process == nil || s.process.log == nil {
		return s.runs.Hide(text)
	}
	var (
		taken *takenError
		died  *diedError
	)
	said, failure := launch.WeighFailure(s.process.log.read())
	switch {
	case said == "" || errors.As(err, &taken) || unrecorded(err):
	case failure:
		text = said + " (" + text + ")"
	case errors.As(err, &died):
		text += ", last log line: " + said
	default:
		// The process runs, and its last line shows what it is doing.
		text += "; last log line: " + said
	}
	return s.runs.Hide(text)
}

// Trouble describes why the server ended, as far as its log and the system show; "" while
// the server runs or if none was started.
func (s *owned) Trouble() string {
	if s.process == nil {
		return ""
	}
	how := s.over(s.process)
	if how == "" || s.serves() {
		return ""
	}
	return s.trouble(&diedError{how})
}

// serves reports whether a process of the server listens on its port. The launch command
// may end and leave the server running.
func (s *owned) serves() bool {
	pids, _, err := s.fs.Holders(s.at)
	return err == nil && s.isOneOf(pids)
}

// isOneOf reports whether one of the processes is of the server.
func (s *owned) isOneOf(pids []int) bool {
	return slices.ContainsFunc(s.alive(s.process), func(one proc.Process) bool { return slices.Contains(pids, one.PID) })
}

// Kept records that later reverts return to the launch that runs now.
func (s *owned) Kept() error {
	if s.process == nil || s.runs == nil {
		return errors.New("no running server to keep")
	}
	if err := s.begin(); err != nil {
		return err
	}
	if err := s.write(journal.Record{Kind: journal.Kept, Changes: s.changes, Command: s.runs.Command()}); err != nil {
		return err
	}
	if s.kept != s.runs {
		s.answers = answers{}
	}
	// The changed files are the kept ones now, with their present times.
	for i := range s.runs.Files {
		if f, err := s.runs.Files[i].Read(); err == nil && slices.Equal(f.Data, s.runs.Files[i].Data) {
			s.runs.Files[i].Time = f.Time
		}
	}
	s.kept, s.keptName = s.runs, s.runsName
	return nil
}

// Mode returns "exec" or "attach".
func (s *owned) Mode() string { return s.mode }

// Process returns the launch process of the running server, or if that has ended, the one that listens;
// false if no server runs.
func (s *owned) Process() (journal.Process, bool) {
	if s.process == nil {
		return journal.Process{}, false
	}
	if s.over(s.process) == "" {
		return s.process.Process, true
	}
	pids, _, _ := s.fs.Holders(s.at) // an unreadable owner is none of the server's
	i := slices.IndexFunc(pids, func(pid int) bool { return s.isOneOf([]int{pid}) })
	if i < 0 {
		return journal.Process{}, false
	}
	return journal.Process{PID: pids[i], Boot: s.boot}, true
}
