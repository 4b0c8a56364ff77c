package apply

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply/docker"
	"github.com/rooftop-dev/rooftop/cmd/internal/apply/kubernetes"
	"github.com/rooftop-dev/rooftop/cmd/internal/apply/manager"
	"github.com/rooftop-dev/rooftop/cmd/internal/apply/systemd"
	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
)

// Remedy is the action for an interrupted run.
type Remedy string

// Remedies.
const (
	// LeaveAlone means that another rooftop or machine owns the server; Why says which.
	LeaveAlone Remedy = "leave alone"
	// CloseRun means that the server runs its kept launch or that rooftop must not touch
	// it: only end the run in the journal.
	CloseRun Remedy = "close the run"
	// AwaitKept means that the kept launch was started and may not answer yet: wait for it.
	AwaitKept Remedy = "wait for the server"
	// PutBack stops the run's servers, restores files and starts the kept launch.
	PutBack Remedy = "put back"
	// CallManager has whatever made the change revert it: the user's program, or the manager that
	// starts the server.
	CallManager Remedy = "have it reverted"
	// Impossible means that the exact launch is missing or unknown; Why says which.
	Impossible Remedy = "impossible"
)

// modeExec is the mode of servers that rooftop starts itself.
const modeExec = "exec"

// Left is the state in which an interrupted run left a server, and the remedy.
type Left struct {
	Dir      string
	Identity serverdir.Identity
	State    journal.State
	Remedy   Remedy
	// Why is a sentence about why nothing can be done; "" if something can.
	Why string
	// Unread is true if the journal cannot be read completely, so that State is partial.
	Unread bool
	// Found is what was found and Steps what would be done, in order, as sentences without
	// secrets.
	Found, Steps []string

	kept    *launcher.Launch
	manages *launcher.Launch  // names the manager that makes the changes; nil if none does
	running []journal.Running // processes of this run that still run
	foreign []int             // processes on the server's port that do not belong to this run
	lost    bool              // the journal is gone
	back    *process          // of foreign, started with the kept command line; nil if there is none
}

// Survey returns the state of every server below root whose last run was interrupted or
// cannot be read, ordered by directory name, then of trials that run and whose journal below
// root is gone. It touches nothing.
func Survey(root string) ([]Left, error) {
	dirs, err := serverdir.Dirs(root)
	if err != nil {
		return nil, err
	}
	var list []Left
	for _, dir := range dirs {
		state, doubt, err := serverdir.ReadState(dir)
		if err != nil { // the others can be put right
			list = append(list, unreadable(dir, err))
			continue
		}
		if state.Open || doubt != nil {
			list = append(list, surveyServer(dir, state, doubt))
		}
	}
	return append(list, lost(root)...), nil
}

// unreadable describes a server whose journal the system does not let us read.
func unreadable(dir string, err error) Left {
	l := Left{Dir: dir, Unread: true, Identity: serverdir.Identity{Host: filepath.Base(dir)}}
	if id, err := serverdir.ReadIdentity(dir); err == nil {
		l.Identity = id
	}
	return l.withWhy(Impossible, fmt.Sprintf("its journal cannot be read (%v): mend that and run 'rooftop recover' again", err))
}

// surveyServer returns the state in which an interrupted run left a server.
func surveyServer(dir string, state journal.State, doubt *serverdir.UnreadError) Left {
	l := Left{Dir: dir, State: state}
	id, err := serverdir.ReadIdentity(dir)
	if err != nil {
		return l.withWhy(LeaveAlone, err.Error())
	}
	l.Identity = id
	if id.Machine != "" && id.Machine != serverdir.Hostname() {
		return l.withWhy(LeaveAlone, fmt.Sprintf("the server is on the machine %s: run 'rooftop recover' there", id.Machine))
	}
	if serverdir.Held(id) {
		return l.withWhy(LeaveAlone, "another rooftop uses this server: the run is in progress or being recovered")
	}
	if doubt != nil {
		return l.describeUnread(doubt)
	}
	return l.judge()
}

func (l Left) withWhy(r Remedy, why string) Left {
	l.Remedy, l.Why = r, why
	return l
}

// judge determines the remedy. It must be called only if no other rooftop uses the server.
func (l Left) judge() Left {
	l.found("the run of %s was cut off %s", l.State.Begun.Local().Format("2006-01-02 15:04:05"), l.moment())
	if serverdir.Managed(l.State.Mode) {
		return l.judgeManaged()
	}
	if l.State.Kept.Launch == "" || l.State.NothingToRun {
		l.found("no change needs to be reverted")
		l.Remedy = CloseRun
		return l
	}
	kept, err := serverdir.ReadLaunch(l.Dir, l.State.Kept.Launch)
	if err != nil {
		return l.withWhy(Impossible, fmt.Sprintf("the launch to restore cannot be read (%v); start the server yourself, then run 'rooftop recover --leave'", err))
	}
	l.kept = kept
	h, err := newHost(0)
	if err != nil {
		return l.withWhy(Impossible, err.Error())
	}
	if err := l.processes(h); err != nil {
		return l.withWhy(Impossible, err.Error())
	}
	_, at, _ := addressOf(kept) // l.processes has used it
	if l.Remedy = l.remedy(h); l.Remedy == Impossible {
		return l.withWhy(Impossible, fmt.Sprintf("%v, which does not run the server as it was: end it and run 'rooftop recover' again, or, if it is what should run, 'rooftop recover --leave'",
			&takenError{at, slices.DeleteFunc(slices.Clone(l.foreign), func(pid int) bool { return pid == 0 })}))
	}
	l.plan()
	return l
}

// moment describes how far the run was when it was interrupted.
func (l *Left) moment() string {
	what := spelledRecorded(l.State.Next.Changes)
	if l.State.Revert {
		what = "the revert"
	}
	switch l.State.Stage {
	case journal.StageStopping:
		return "as it began with " + what
	case journal.StageDown:
		return "while the server was stopped for " + what
	case journal.StageStarting:
		if what == "" {
			return "while its server was starting"
		}
		return "while the server was starting with " + what
	case journal.StageTrial:
		return "while " + what + " was being tried"
	case journal.StageFailed:
		return "after a change that failed and could not be put back"
	}
	return "between changes"
}

// setting describes the setting after a change.
func setting(c engine.Change) string {
	if c.To == "" {
		return "without " + c.Flag
	}
	return c.Flag + " " + c.To
}

func spelledRecorded(list []engine.Change) string {
	var words []string
	for _, c := range list {
		words = append(words, setting(c))
	}
	return strings.Join(words, ", ")
}

func (l *Left) found(format string, a ...any) {
	l.Found = append(slices.Clip(l.Found), fmt.Sprintf(format, a...))
}

func (l *Left) step(format string, a ...any) {
	l.Steps = append(slices.Clip(l.Steps), fmt.Sprintf(format, a...))
}

// launcherPatience is how long a launcher process may take to end after the rooftop that
// started it ended.
const launcherPatience = 2 * time.Second

// processes finds the running processes of this run and other processes on its port.
func (l *Left) processes(h *host) error {
	_, at, err := addressOf(l.kept)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(launcherPatience); ; time.Sleep(stopPoll) {
		l.running = nil
		waits := false
		for _, p := range l.State.Processes {
			if h.same(p.Process) {
				l.running = append(l.running, p)
				waits = waits || h.isLauncher(p.PID)
			}
		}
		if !waits || time.Now().After(deadline) {
			break
		}
	}
	pids, listening, err := h.holders(at)
	if err != nil {
		return err
	}
	for _, p := range l.running {
		l.found("process %d runs %s", p.PID, l.named(p.Launch))
	}
	ours := l.leftovers(h)
	l.foreign = slices.DeleteFunc(pids, func(pid int) bool { return slices.Contains(ours, pid) })
	switch {
	case len(l.foreign) > 0:
		l.found("port %d is held by process %s, which this run did not start", at.Port(), joinPIDs(l.foreign))
	case listening && len(ours) == 0:
		l.foreign = []int{0}
		l.found("port %d is held by a process of another user", at.Port())
	case len(l.running) == 0 && len(ours) > 0:
		l.found("process %s is left of a server that has ended", joinPIDs(ours))
	case len(l.running) == 0:
		l.found("no server runs")
	}
	return nil
}

// isLauncher reports whether a process waits to become a server.
func (h *host) isLauncher(pid int) bool {
	argv, err := h.fs.Argv(pid)
	return err == nil && len(argv) == 2 && argv[1] == launcher.Flag
}

// leftovers returns the PIDs of all processes of the run's servers, including those that
// outlived their launch process.
func (l *Left) leftovers(h *host) []int {
	var pids []int
	for _, p := range l.State.Processes {
		for _, one := range h.alive(l.adopted(h, p)) {
			pids = append(pids, one.PID)
		}
	}
	return pids
}

// adopted returns the process of a journal record.
func (l *Left) adopted(h *host, p journal.Running) *process {
	a := h.adopt(p.Process)
	if p.Ours && p.Boot == h.boot {
		// Its session ID is known even if the leader is gone.
		a.session, a.group = true, true
	} else if !p.Ours {
		// Its session may contain other programs of the one who started it.
		a.session, a.group = false, false
	}
	return a
}

// named describes the launch that a process was started with.
func (l *Left) named(launch string) string {
	if launch == l.State.Kept.Launch {
		return "the configuration to keep"
	}
	if launch != "" && launch == l.State.Next.Launch && len(l.State.Next.Changes) > 0 {
		return "the trial (" + spelledRecorded(l.State.Next.Changes) + ")"
	}
	return "another configuration"
}

// remedy returns the remedy for the processes that run.
func (l *Left) remedy(h *host) Remedy {
	kept := len(l.running) == 1 && l.running[0].Launch == l.State.Kept.Launch
	switch {
	case kept && l.State.Stage == journal.StageStable:
		return CloseRun
	case kept:
		// It may be starting or shutting down; Do finds out which.
		return AwaitKept
	case len(l.running) == 0 && len(l.leftovers(h)) == 0 && len(l.foreign) > 0:
		if l.back = h.twin(l.kept, l.foreign); l.back == nil && l.State.Touched {
			return Impossible
		}
		return CloseRun
	case len(l.running) == 0 && !l.State.Touched && l.State.Mode != modeExec:
		return CloseRun
	}
	return PutBack
}

// twin returns the process with the command line of a launch whose server has one of the processes; nil if there is none.
func (h *host) twin(kept *launcher.Launch, pids []int) *process {
	for _, one := range h.twins(kept) {
		p := h.adopt(journal.Process{PID: one.PID, Ticks: one.Ticks, Boot: h.boot})
		if slices.ContainsFunc(h.pids(p), func(pid int) bool { return slices.Contains(pids, pid) }) {
			return p
		}
	}
	return nil
}

// plan adds the steps of the remedy.
func (l *Left) plan() {
	command := l.kept.Command()
	switch {
	case l.Remedy == CloseRun && len(l.foreign) > 0:
		l.step("leave that process alone")
	case l.Remedy == CloseRun && len(l.running) == 0:
		l.step("start nothing: this run did not touch the server, which has ended since")
	case l.Remedy == CloseRun:
		l.step("leave the server running")
	case l.Remedy == AwaitKept:
		l.step("wait until the server answers with its kept launch: %s", command)
		l.step("if it is shutting down instead: restart it exactly as it was")
	case l.Remedy == PutBack:
		for _, p := range l.running {
			l.step("stop process %d and what it started", p.PID)
		}
	}
	for i := range l.kept.Files {
		l.planFile(&l.kept.Files[i])
	}
	if l.Remedy == PutBack {
		l.step("start the server with its kept launch: %s", command)
		l.step("wait until it answers")
	}
	l.step("end the run in the journal")
}

// planFile adds the step for a configuration file, if it needs one.
func (l *Left) planFile(f *launcher.File) {
	switch how, err := l.judgeFile(f); {
	case err != nil:
		l.step("put back %s, which cannot be read now (%v)", f.Path, err)
	case how == fileTrial:
		l.step("restore %s byte for byte", f.Path)
	case how == fileForeign && l.restoresFiles():
		l.step("move %s to %s, because someone changed it since, and restore it byte for byte", f.Path, l.Dir)
	case how == fileForeign:
		l.step("leave %s as it is: someone changed it since", f.Path)
	}
}

// restoresFiles reports whether files are restored even if someone changed them.
func (l *Left) restoresFiles() bool { return l.Remedy == PutBack || l.Remedy == AwaitKept }

// fileState is the state of a configuration file.
type fileState int

const (
	fileKept    fileState = iota // as in the kept launch
	fileTrial                    // written by this run, or missing
	fileForeign                  // changed by someone else
)

func (l *Left) judgeFile(f *launcher.File) (fileState, error) {
	if f.Fixed {
		return fileKept, nil
	}
	have, err := f.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return fileTrial, nil
	}
	if err != nil {
		return fileForeign, err
	}
	if f.Equal(&have) {
		return fileKept, nil
	}
	if slices.Equal(have.Data, f.Data) {
		return fileTrial, nil
	}
	for _, name := range l.State.Launches {
		tried, err := serverdir.ReadLaunch(l.Dir, name)
		if err != nil {
			continue
		}
		for i := range tried.Files {
			if tried.Files[i].Path == f.Path && slices.Equal(tried.Files[i].Data, have.Data) {
				return fileTrial, nil
			}
		}
	}
	return fileForeign, nil
}

// describeUnread describes a server whose journal does not show what should run.
func (l Left) describeUnread(why *serverdir.UnreadError) Left {
	l.Unread = true
	if l.State.Open {
		l.found("the run of %s did not end", l.State.Begun.Local().Format("2006-01-02 15:04:05"))
	}
	for _, name := range serverdir.Launches(l.Dir) {
		if launch, err := serverdir.ReadLaunch(l.Dir, name); err == nil && launch.Command() != "" {
			l.found("%s starts %s", name, launch.Command())
		}
	}
	return l.withWhy(Impossible, why.Error())
}

// judgeManaged determines the remedy for a run in which a manager makes the changes.
func (l Left) judgeManaged() Left {
	kept, err := serverdir.ReadLaunch(l.Dir, l.State.Kept.Launch)
	if l.State.Settled() {
		if err == nil {
			l.manages = kept
		}
		l.Remedy = CloseRun
		l.found("the server runs what is kept")
		l.step("end the run in the journal")
		return l
	}
	var by manager.Manager
	if err == nil {
		by, err = managerOf(kept, l.Dir, 0, 0)
	}
	if err != nil {
		return l.withWhy(Impossible, fmt.Sprintf("the program that makes changes is unknown (%v); revert %s yourself, then run 'rooftop recover --leave'", err, spelledRecorded(l.State.Unkept)))
	}
	l.manages = kept
	for _, pid := range by.Busy() {
		l.found("process %d runs %s", pid, by.Name())
		l.step("wait for process %d to end", pid)
	}
	l.Remedy = CallManager
	for _, step := range by.Steps(&manager.Change{Revert: true, Changes: engine.InverseChanges(l.State.Unkept)}) {
		l.step("%s", step)
	}
	l.step("wait until the server answers")
	l.step("end the run in the journal")
	return l
}

// managerOf returns the manager that a launch in the journal names. within limits a call of the user's
// program, and grace is its time from SIGTERM to SIGKILL.
func managerOf(l *launcher.Launch, dir string, within, grace time.Duration) (manager.Manager, error) {
	switch {
	case l.Unit != nil:
		return systemd.Known(l), nil
	case l.Container != nil:
		return docker.Known(l), nil
	case l.Workload != nil:
		return kubernetes.Known(l, cmp.Or(within, ReadyWithin))
	case len(l.Argv) == 0:
		return nil, errors.New("it names no program")
	}
	return newUserProgram(l, dir, within, grace), nil
}
