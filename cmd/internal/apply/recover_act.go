package apply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/rooftop-dev/rooftop/engine/journal"
)

// Repair says how runs that were cut off are put right.
type Repair struct {
	Version string    // of rooftop
	Ready   Readiness // URL is the server's own where it is ""
	Grace   time.Duration
	Say     func(string) // as of Plan
}

// ChangedError says that things are not as they were when they were looked at: Now
// is how they are.
type ChangedError struct{ Now Left }

func (e *ChangedError) Error() string {
	return "things have changed since they were looked at; 'rooftop recover' looks again"
}

// Do puts a server right, and ends the run that was cut off. It may be killed at any
// instant and done again. What it finds when it begins must still call for the same
// remedy; otherwise the error is a *ChangedError, and nothing is touched.
func (r *Repair) Do(ctx context.Context, left *Left) error {
	if left.Remedy == LeaveAlone || left.Remedy == Impossible {
		return errors.New(left.Why)
	}
	s, err := openUnfinished(left.Dir, r.Version)
	if err != nil {
		return err
	}
	defer s.Close()
	if s.doubt != nil {
		return s.doubt
	}
	state := s.State()
	if !state.Open {
		return nil // somebody else has put it right
	}
	now := Left{Dir: left.Dir, State: state, Identity: s.id}.judge()
	if now.State.Run != left.State.Run || !left.covers(now.Remedy) {
		return &ChangedError{now}
	}
	if now.Remedy == CallHook {
		return r.callHook(ctx, s, &now)
	}
	return r.act(ctx, s, &now)
}

// covers says that what was to be done holds for a remedy too: a server that was
// waited for may have ended meanwhile, and that it is started again was said.
func (l *Left) covers(now Remedy) bool {
	return now == l.Remedy || l.Remedy == AwaitKept && now == PutBack
}

// Abandon ends the run that was cut off, or cannot be read, and touches no server: for
// those who have put it right themselves.
func (r *Repair) Abandon(left *Left) error {
	if left.Remedy == LeaveAlone {
		return errors.New(left.Why)
	}
	s, err := openUnfinished(left.Dir, r.Version)
	if err != nil {
		return err
	}
	defer s.Close()
	if s.doubt == nil && !s.State().Open {
		return nil
	}
	if err := s.overlook(); err != nil {
		return &StateError{Dir: s.dir, Err: err}
	}
	return s.finish(journal.Record{Kind: journal.Recover, Text: "left as it was, as asked for"})
}

// Tidy removes what killed runs left in the directories of servers that need nothing
// else: room that was held, half-written files, launches of runs that had ended.
// Servers that somebody is on, or whose journal cannot be read, are passed over.
func Tidy(root string) error {
	dirs, err := serverDirs(root)
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		id, err := readIdentity(dir)
		if err != nil || !untidy(dir) {
			continue
		}
		s := &Store{dir: dir, id: id, now: time.Now}
		if err := s.open(); err != nil {
			continue // its own run says why
		}
		if s.doubt != nil {
			if err := s.release(); err != nil {
				return err
			}
			continue
		}
		if !s.state.Open {
			err = s.tidy()
		}
		if err = errors.Join(err, s.Close()); err != nil {
			return err
		}
	}
	return nil
}

// untidy says that a directory holds what a run leaves only while it goes on.
func untidy(dir string) bool {
	list, err := os.ReadDir(dir)
	return err == nil && slices.ContainsFunc(list, func(e os.DirEntry) bool {
		return temporary(e.Name()) || isLaunch(e.Name()) || e.Name() == reserveName
	})
}

// act does what was decided on.
func (r *Repair) act(ctx context.Context, s *Store, l *Left) error {
	if l.kept == nil {
		return s.finish(journal.Record{Kind: journal.Recover, Text: "nothing had to be put back"})
	}
	o, err := r.hands(s, l)
	if err != nil {
		return err
	}
	defer o.Close()
	record := journal.Record{Kind: journal.Recover, Launch: l.State.Kept.Launch}
	switch l.Remedy {
	case CloseRun:
		if err := l.files(s, o); err != nil {
			return err
		}
		record.Launch, record.Text = "", "the server was left alone"
		if o.process != nil {
			record.Launch, record.Text, record.Process = o.keptName, "the server runs as it is to", &o.process.Process
		}
		return s.finish(record)
	case AwaitKept:
		if r.answers(ctx, o, l) {
			if err := l.files(s, o); err != nil {
				return err
			}
			record.Text, record.Process = "the server runs as it is to", &o.process.Process
			return s.finish(record)
		}
		if err := context.Cause(ctx); err != nil {
			return err
		}
	}
	if err := r.putBack(ctx, s, o, l); err != nil {
		return err
	}
	record.Text, record.Process = "put back as it was", &o.process.Process
	return s.finish(record)
}

// finish ends a run that was put right. What nobody needs any more is removed.
func (s *Store) finish(r journal.Record) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.write(r); err != nil {
		return err
	}
	if err := s.write(journal.Record{Kind: journal.End, Text: r.Text}); err != nil {
		return err
	}
	s.doubt = nil // all of it is over
	return s.tidy()
}

// hands are those that the run had, with what runs now in them.
func (r *Repair) hands(s *Store, l *Left) (*owned, error) {
	h, err := newHost(r.Grace)
	if err != nil {
		return nil, err
	}
	port, err := portOf(l.kept)
	if err != nil {
		return nil, err
	}
	ready := r.Ready
	if ready.URL == "" {
		ready.URL = l.Identity.URL
	}
	if ready.URL == "" {
		c, err := l.kept.config()
		if err != nil {
			return nil, err
		}
		ready.URL, _ = address(c)
	}
	o := &owned{
		host: h, mode: l.State.Mode, port: port, kept: l.kept, keptName: l.State.Kept.Launch, began: true,
		plan: Plan{Journal: s, Ready: ready, Grace: r.Grace, Say: r.Say},
	}
	for _, p := range l.running {
		if p.Launch == l.State.Kept.Launch {
			o.process, o.runs, o.runsName = l.adopted(h, p), l.kept, p.Launch
		}
	}
	o.std = l.streams(s.Dir(), o)
	return o, nil
}

// Bounds of the look at a server that may be on its way down: one that was told to
// stop accepts no connections any more, well within this.
const (
	steadyFor  = 2 * time.Second
	steadyPoll = 250 * time.Millisecond
)

// answers says whether the kept launch, which may have been told to stop, or is
// starting, runs and goes on running.
func (r *Repair) answers(ctx context.Context, o *owned, l *Left) bool {
	if o.process == nil {
		return false
	}
	if l.State.Stage != journal.Going {
		// It was started by this run and nobody told it to stop.
		if o.await(ctx) != nil {
			return false
		}
		return o.write(journal.Record{Kind: journal.Ready}) == nil
	}
	d, err := o.plan.Ready.door(o.kept)
	if err != nil {
		return false
	}
	defer d.close()
	o.plan.say("looking whether the server goes on")
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

// putBack stops what runs and starts the kept launch.
func (r *Repair) putBack(ctx context.Context, s *Store, o *owned, l *Left) error {
	if err := o.rehearse(o.kept); err != nil {
		return fmt.Errorf("the server cannot be started: %s", o.kept.hide(err.Error()))
	}
	defer o.kept.unstage()
	if err := o.kept.stage(); err != nil {
		return err
	}
	if err := s.Write(journal.Record{
		Kind: journal.Intent, Mode: l.State.Mode, Revert: true, Iteration: l.State.Iteration, Launch: o.keptName, Command: o.kept.Command(),
		Text: "rooftop recover puts the server back",
	}); err != nil {
		return err
	}
	for _, p := range l.State.Processes {
		o.process, o.runsName = l.adopted(o.host, p), p.Launch
		if len(o.alive(o.process)) == 0 {
			continue
		}
		var taken *takenError
		if err := o.down(); err != nil && !errors.As(err, &taken) { // the port is looked at below
			return fmt.Errorf("the server could not be stopped: %w", err)
		}
	}
	o.process = nil
	if err := s.Write(journal.Record{Kind: journal.Stopped}); err != nil {
		return err
	}
	pids, listening, err := o.holders(o.port)
	if err != nil {
		return err
	}
	if listening {
		return fmt.Errorf("%w: end it, or leave it and say 'rooftop recover --leave'", &takenError{o.port, pids})
	}
	if err := l.files(s, o); err != nil {
		return err
	}
	if err := o.up(o.kept, o.keptName); err != nil {
		return r.failed(s, o, err)
	}
	if err := o.await(ctx); err != nil {
		return r.failed(s, o, err)
	}
	return o.write(journal.Record{Kind: journal.Back, Revert: true})
}

func (r *Repair) failed(s *Store, o *owned, err error) error {
	why := fmt.Sprintf("the server does not start as it was: %s", o.trouble(err))
	if written := s.Write(journal.Record{Kind: journal.Failed, Revert: true, Text: why}); written != nil {
		return errors.Join(errors.New(why), written)
	}
	return errors.New(why)
}

// files puts the configuration files back. One that somebody changed since is set
// aside first, or left where the server is left.
func (l *Left) files(s *Store, o *owned) error {
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
			if err := s.aside(f.Path); err != nil {
				return err
			}
		}
		o.plan.say("putting back " + f.Path)
		if err := f.put(); err != nil {
			return fmt.Errorf("write %s: %w", f.Path, err)
		}
	}
	return nil
}

// aside keeps the bytes of a file in the directory of the server.
func (s *Store) aside(path string) error {
	f, err := readConfig(path)
	if err != nil {
		return err
	}
	name := "found-" + strconv.Itoa(s.State().Seq) + "-" + plain(filepath.Base(path))
	return writeAtomic(filepath.Join(s.dir, name), f.Data, 0o600)
}

// streams gives a start what the server's standard streams led to. A pipe or a
// terminal can only be had from a process that still has it; files are opened by
// their name; what is gone is the log in the directory of the server.
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
			spare, err := os.OpenFile(filepath.Join(dir, serverLog), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
			if err != nil {
				return std, nil, fmt.Errorf("the server's log: %w", err)
			}
			o.held = append(o.held, spare)
			std[i] = spare
			log = spare
		}
		return std, log, nil
	}
}

// stream opens one standard stream of the kept launch; nil where it cannot be had.
func (l *Left) stream(i int) *os.File {
	target := l.kept.Std[i]
	if target == "" || target == os.DevNull {
		return nil
	}
	for _, p := range l.running {
		if now, err := os.Readlink(fmt.Sprintf("/proc/%d/fd/%d", p.PID, i)); err == nil && now == target {
			if f, err := openStream(p.PID, i, target); err == nil {
				return f
			}
		}
	}
	if info, err := os.Stat(target); err != nil || !info.Mode().IsRegular() || !filepath.IsAbs(target) {
		return nil
	}
	flags := os.O_WRONLY | os.O_APPEND
	if i == 0 {
		flags = os.O_RDONLY
	}
	f, err := os.OpenFile(target, flags, 0)
	if err != nil {
		return nil
	}
	return f
}
