package apply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// owned is a server of this machine that rooftop starts and stops: the body that
// Exec and Attach share. It is not safe for concurrent use.
type owned struct {
	*host
	mode string
	plan Plan
	port uint16 // that it listens on

	kept     *Launch // to go back to
	keptName string  // of its file
	runs     *Launch // of process; nil where none was started yet
	runsName string
	process  *process // nil where none runs that is known
	changes  []engine.Change
	starting bool // process was started and has not become ready

	// std gives the standard streams of a start, and the one that its log is in.
	std  func() (std [3]*os.File, log *os.File, err error)
	held []*os.File // open while the hands are
	// began makes the first record unnecessary.
	began bool
	// wary says that something else may start the server again: that is looked for after
	// each stop and while a start lasts. Returns is the process that may, "" unknown.
	wary         bool
	returns      string
	returnWithin time.Duration  // how long it is watched for that after the first stop
	first        *Launch        // that was stopped first
	earlier      map[int]uint64 // what ran with its command line then, PIDs with ticks
	gone         error          // why no change can be made any more
	canary       answers        // of the kept launch
}

// begin writes down what the run starts from, once.
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

// Apply has the server run with changes made to the kept launch, or with that one.
func (s *owned) Apply(ctx context.Context, a engine.Apply) engine.Applied {
	if a.Revert {
		// Nobody who calls a run off wants to be left without the server.
		ctx = context.WithoutCancel(ctx)
	}
	target, err := s.target(a)
	if err != nil {
		return s.untouched(err)
	}
	if err := s.check(target); err != nil {
		return s.untouched(err)
	}
	if err := s.begin(); err != nil {
		return s.untouched(err)
	}
	ended := s.Trouble()
	ask := func(ctx context.Context) answers { return s.plan.Ready.ask(ctx, s.runs) }
	s.canary = asked(ctx, s.canary, a, s.runs == s.kept && ended == "", ask)
	// From here on the journal names the files, so that recover finds what lies beside.
	defer target.unstage()
	if err := target.stage(); err != nil {
		return s.untouched(err)
	}
	name, err := s.intend(a, target)
	if err != nil {
		return s.untouched(err)
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
	return engine.Applied{Ended: ended, Canary: canary(ctx, s.canary, a, ask)}
}

// target is the launch that a change leads to.
func (s *owned) target(a engine.Apply) (*Launch, error) {
	if a.Revert {
		return s.kept, nil
	}
	target, err := s.kept.with(a.Changes, false)
	if err != nil || len(target.Files) == 0 || slices.Equal(target.configText(), s.kept.configText()) {
		return target, err
	}
	if why := replaceable(target.Files[0].Path); why != nil {
		// What cannot be written whole or not at all is overridden.
		return s.kept.with(a.Changes, true)
	}
	return target, nil
}

// check makes sure of what can be known before anything is touched.
func (s *owned) check(target *Launch) error {
	if s.gone != nil {
		return s.gone
	}
	if s.process != nil && s.over(s.process) != "" {
		// It may have been started again by somebody else.
		pids, listening, err := s.holders(s.port)
		if err != nil {
			return err
		}
		if listening && len(s.alive(s.process)) == 0 {
			return fmt.Errorf("%w: the server was restarted by something else, and rooftop leaves that alone", &takenError{s.port, pids})
		}
	}
	current := s.kept
	if s.runs != nil {
		current = s.runs
	}
	for i := range current.Files {
		same, err := current.Files[i].same()
		if err != nil {
			return err
		}
		if !same {
			return fmt.Errorf("%s was changed by somebody else since rooftop read it, and rooftop leaves that alone", current.Files[i].Path)
		}
	}
	if err := s.rehearse(target); err != nil {
		return fmt.Errorf("the server cannot be started: %w", err)
	}
	return nil
}

// intend writes down what is about to be done.
func (s *owned) intend(a engine.Apply, target *Launch) (name string, err error) {
	name = s.keptName
	if target != s.kept {
		if name, err = s.plan.Journal.Keep(target); err != nil {
			return "", err
		}
	}
	return name, s.plan.Journal.Write(journal.Record{
		Kind: journal.Intent, Mode: s.mode, Iteration: a.Iteration, Revert: a.Revert, Launch: name,
		Changes: recorded(a.Changes), Predicted: predicted(a.Predicted), Command: target.Command(), Text: spelled(a.Changes),
	})
}

func predicted(list []engine.Prediction) []journal.Predicted {
	pointer := func(o stat.Opt) *float64 {
		if !o.OK {
			return nil
		}
		return &o.V
	}
	var out []journal.Predicted
	for _, p := range list {
		out = append(out, journal.Predicted{Metric: p.Metric, Low: pointer(p.Low), Mid: pointer(p.Mid), High: pointer(p.High)})
	}
	return out
}

// swap stops what runs and starts a launch in its place, each step written down.
func (s *owned) swap(ctx context.Context, target *Launch, name string, a engine.Apply) error {
	if err := s.down(); err != nil {
		return err
	}
	if err := context.Cause(ctx); err != nil {
		return err
	}
	if err := s.up(target, name); err != nil {
		return err
	}
	if err := s.await(ctx); err != nil {
		return err
	}
	kind := journal.Ready
	if a.Revert {
		kind = journal.Back
	}
	return s.write(journal.Record{Kind: kind, Iteration: a.Iteration, Revert: a.Revert})
}

// write writes a record of the process that runs.
func (s *owned) write(r journal.Record) error {
	r.Launch = s.runsName
	if s.process != nil {
		r.Process = &s.process.Process
	}
	return s.plan.Journal.Write(r)
}

// down stops what runs.
func (s *owned) down() error {
	s.remember()
	if s.process == nil {
		return nil
	}
	s.plan.say(fmt.Sprintf("stopping process %d", s.process.PID))
	err := s.stop(s.process, s.port, s.allowed())
	var taken *takenError
	if err != nil && !errors.As(err, &taken) {
		return err
	}
	if s.over(s.process) == "" {
		return err
	}
	// The process is gone, whoever took its port.
	if record := s.write(journal.Record{Kind: journal.Stopped}); record != nil && err == nil {
		err = record
	}
	s.process = nil
	if err == nil && s.wary {
		err = s.stayedDown()
	}
	return err
}

// allowed is how long the server may take to end by itself. One that never became
// ready serves nobody, and a vLLM that is loading does not listen to SIGTERM.
func (s *owned) allowed() time.Duration {
	if s.starting {
		return min(s.grace, graceStarting)
	}
	return s.grace
}

// up starts a launch, its files first.
func (s *owned) up(l *Launch, name string) error {
	for i := range l.Files {
		if err := l.Files[i].put(); err != nil {
			return fmt.Errorf("write %s: %w", l.Files[i].Path, err)
		}
	}
	std, log, err := s.std()
	if err != nil {
		return err
	}
	s.plan.say("starting " + l.Command())
	s.runs, s.runsName = l, name
	p, err := s.start(l, std, tailOf(log), func(p journal.Process) error {
		return s.plan.Journal.Write(journal.Record{Kind: journal.Started, Process: &p, Launch: name})
	})
	if err != nil {
		return err
	}
	s.process, s.starting = p, true
	return nil
}

// await waits until the process that was started is ready.
func (s *owned) await(ctx context.Context) error {
	s.plan.say("waiting for " + s.plan.Ready.URL + "/health")
	checked := elsewhereBy(s.runs.Argv)
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
		pids, _, _ := s.fs.Holders(s.port) // what cannot be read is not held against it
		if len(pids) == 0 {
			return nil
		}
		// Seen once, the port stays whose it is.
		checked = true
		if s.serves() {
			return nil
		}
		return &takenError{s.port, pids}
	})
	s.starting = s.starting && err != nil
	return err
}

// trouble says why a start failed, with what the log says.
func (s *owned) trouble(err error) string {
	if errors.Is(err, context.Canceled) {
		return "it was called off"
	}
	text := err.Error()
	if s.process == nil || s.process.log == nil {
		return s.runs.hide(text)
	}
	var (
		taken *takenError
		died  *diedError
	)
	said, failure := weighed(s.process.log.read())
	switch {
	case said == "" || errors.As(err, &taken):
	case failure:
		text = said + " (" + text + ")"
	case errors.As(err, &died):
		text += ", last saying: " + said
	default:
		// It runs and says what it is at.
		text += "; it was at: " + said
	}
	return s.runs.hide(text)
}

// Trouble says why the server that runs is in trouble, as far as its log and the
// system tell; "" while its process runs and said nothing of it.
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

// serves says that a process of the server listens: a command may end and leave its
// server running.
func (s *owned) serves() bool {
	pids, _, err := s.fs.Holders(s.port)
	if err != nil {
		return false
	}
	return slices.ContainsFunc(s.alive(s.process), func(one proc.Process) bool { return slices.Contains(pids, one.PID) })
}

// Kept tells that what runs now is the launch to go back to from here on.
func (s *owned) Kept() error {
	if s.process == nil || s.runs == nil {
		return errors.New("no server runs that could be kept")
	}
	if err := s.begin(); err != nil {
		return err
	}
	if err := s.write(journal.Record{Kind: journal.Kept, Changes: recorded(s.changes), Command: s.runs.Command()}); err != nil {
		return err
	}
	if s.kept != s.runs {
		s.canary = answers{}
	}
	// Files that were changed are as they are to be from now on.
	for i := range s.runs.Files {
		if f, err := readConfig(s.runs.Files[i].Path); err == nil && slices.Equal(f.Data, s.runs.Files[i].Data) {
			s.runs.Files[i].Time = f.Time
		}
	}
	s.kept, s.keptName = s.runs, s.runsName
	return nil
}

// Mode names the way.
func (s *owned) Mode() string { return s.mode }

// Process is the launch process of the server that runs; false without one.
func (s *owned) Process() (journal.Process, bool) {
	if s.process == nil {
		return journal.Process{}, false
	}
	return s.process.Process, true
}
