package apply

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/journal"
)

// Remedy is what is to be done about a run that was cut off.
type Remedy string

// Remedies.
const (
	// LeaveAlone: it is not for this rooftop to touch; Why says whose it is.
	LeaveAlone Remedy = "leave alone"
	// CloseRun: the server runs as it is to, or is no longer rooftop's business; only
	// the journal is to be brought to its end.
	CloseRun Remedy = "close the run"
	// AwaitKept: the kept launch was started and does not answer yet.
	AwaitKept Remedy = "wait for the server"
	// PutBack: what runs is stopped, files are put back, the kept launch is started.
	PutBack Remedy = "put back"
	// CallHook: the program that made the change is to undo it.
	CallHook Remedy = "call the program"
	// Impossible: the exact launch is not there, or the journal does not tell which it
	// is; Why says so.
	Impossible Remedy = "impossible"
)

// Modes of hands, as the journal names them.
const (
	modeExec = "exec"
	modeHook = "hook"
)

// Left is what a run that was cut off left of a server, and what is to be done about
// it.
type Left struct {
	Dir      string
	Identity Identity
	State    journal.State
	Remedy   Remedy
	// Why is why nothing can be done, in a sentence; "" where something can.
	Why string
	// Unread says that the journal cannot be read to its end: State is not all of it.
	Unread bool
	// Found and Steps are sentences without secrets: what there is, and what would be
	// done, in order.
	Found, Steps []string

	kept    *Launch
	program *Launch           // that makes the changes
	running []journal.Running // of this run, and alive
	foreign []int             // processes on the server's port that are not of this run
}

// Survey looks at every server below root whose last run was cut off, or cannot be
// read, by the name of its directory. It touches nothing.
func Survey(root string) ([]Left, error) {
	dirs, err := serverDirs(root)
	if err != nil {
		return nil, err
	}
	var list []Left
	for _, dir := range dirs {
		state, doubt, err := readJournal(dir)
		if err != nil {
			return nil, &StateError{Dir: dir, Err: err}
		}
		if state.Open || doubt != nil {
			list = append(list, look(dir, state, doubt))
		}
	}
	return list, nil
}

// look finds out how things stand with a server whose run was cut off.
func look(dir string, state journal.State, doubt *UnreadError) Left {
	l := Left{Dir: dir, State: state}
	id, err := readIdentity(dir)
	if err != nil {
		return l.not(LeaveAlone, err.Error())
	}
	l.Identity = id
	if id.Machine != "" && id.Machine != machine() {
		return l.not(LeaveAlone, fmt.Sprintf("the server is on the machine %s: run 'rooftop recover' there", id.Machine))
	}
	if held(id) {
		return l.not(LeaveAlone, "another rooftop is on this server: the run goes on, or is being put right")
	}
	if doubt != nil {
		return l.unread(doubt)
	}
	return l.judge()
}

func (l Left) not(r Remedy, why string) Left {
	l.Remedy, l.Why = r, why
	return l
}

// judge decides what is to be done. Nobody else is on the server.
func (l Left) judge() Left {
	l.found("the run of %s was cut off %s", l.State.Begun.Local().Format("2006-01-02 15:04:05"), l.moment())
	if l.State.Mode == modeHook {
		return l.judgeHook()
	}
	if l.State.Kept.Launch == "" || l.State.Nothing {
		l.found("nothing was changed that has to be put back")
		l.Remedy = CloseRun
		return l
	}
	kept, err := readLaunch(l.Dir, l.State.Kept.Launch)
	if err != nil {
		return l.not(Impossible, fmt.Sprintf("the launch to put back cannot be read (%v); start the server yourself, and say 'rooftop recover --leave'", err))
	}
	l.kept = kept
	h, err := newHost(0)
	if err != nil {
		return l.not(Impossible, err.Error())
	}
	if err := l.processes(h); err != nil {
		return l.not(Impossible, err.Error())
	}
	l.Remedy = l.remedy(h)
	l.plan()
	return l
}

// moment says in words how far the run was.
func (l *Left) moment() string {
	what := spelledRecorded(l.State.Next.Changes)
	if l.State.Revert {
		what = "the way back"
	}
	switch l.State.Stage {
	case journal.Going:
		return "as it began with " + what
	case journal.Down:
		return "while the server was stopped for " + what
	case journal.Up:
		if what == "" {
			return "while its server was starting"
		}
		return "while the server was starting with " + what
	case journal.Trying:
		return "while " + what + " was being tried"
	case journal.Undone:
		return "after a change that failed and could not be put back"
	}
	return "with nothing under way"
}

// setting spells what a change leads to.
func setting(c journal.Change) string {
	if c.To == "" {
		return "leaving out " + c.Flag
	}
	return c.Flag + " " + c.To
}

func spelledRecorded(list []journal.Change) string {
	var words []string
	for _, c := range list {
		words = append(words, setting(c))
	}
	if len(words) == 0 {
		return ""
	}
	return strings.Join(words, ", ")
}

func (l *Left) found(format string, a ...any) {
	l.Found = append(slices.Clip(l.Found), fmt.Sprintf(format, a...))
}

func (l *Left) step(format string, a ...any) {
	l.Steps = append(slices.Clip(l.Steps), fmt.Sprintf(format, a...))
}

// gatePatience is how long a process at the gate may take to see that nobody will
// let it through: it ends at once.
const gatePatience = 2 * time.Second

// processes finds what runs of this run, and what else is on its port.
func (l *Left) processes(h *host) error {
	port, err := portOf(l.kept)
	if err != nil {
		return err
	}
	for deadline := time.Now().Add(gatePatience); ; time.Sleep(stopPoll) {
		l.running = nil
		waits := false
		for _, p := range l.State.Processes {
			if h.same(p.Process) {
				l.running = append(l.running, p)
				waits = waits || h.atGate(p.PID)
			}
		}
		if !waits || time.Now().After(deadline) {
			break
		}
	}
	pids, listening, err := h.holders(port)
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
		l.found("port %d is held by process %s, which this run did not start", port, numbers(l.foreign))
	case listening && len(ours) == 0:
		l.foreign = []int{0}
		l.found("port %d is held by a process of another user", port)
	case len(l.running) == 0 && len(ours) > 0:
		l.found("process %s is left of a server that has ended", numbers(ours))
	case len(l.running) == 0:
		l.found("no server runs")
	}
	return nil
}

// atGate says that a process waits to become a server.
func (h *host) atGate(pid int) bool {
	argv, err := h.fs.Argv(pid)
	return err == nil && len(argv) == 2 && argv[1] == gateFlag
}

// leftovers are all processes of the run's servers, those that outlived their launch
// process among them.
func (l *Left) leftovers(h *host) []int {
	var pids []int
	for _, p := range l.State.Processes {
		for _, one := range h.alive(l.adopted(h, p)) {
			pids = append(pids, one.PID)
		}
	}
	return pids
}

// adopted takes a process of the journal's.
func (l *Left) adopted(h *host, p journal.Running) *process {
	a := h.adopt(p.Process)
	if p.Ours && p.Boot == h.boot {
		// Its session is known by its number also where its leader is gone.
		a.session, a.group = true, true
	} else if !p.Ours {
		// Whoever started it may have put other things into its session.
		a.session, a.group = false, false
	}
	return a
}

func numbers(pids []int) string {
	var words []string
	for _, pid := range pids {
		words = append(words, fmt.Sprint(pid))
	}
	return strings.Join(words, ", ")
}

// named says what a process was started with.
func (l *Left) named(launch string) string {
	if launch == l.State.Kept.Launch {
		return "the configuration to keep"
	}
	if launch != "" && launch == l.State.Next.Launch && len(l.State.Next.Changes) > 0 {
		return "the trial (" + spelledRecorded(l.State.Next.Changes) + ")"
	}
	return "another configuration"
}

// portOf is where a launch listens.
func portOf(l *Launch) (uint16, error) {
	c, err := l.config()
	if err != nil {
		return 0, err
	}
	_, port := address(c)
	return port, nil
}

// remedy decides by what runs.
func (l *Left) remedy(h *host) Remedy {
	kept := len(l.running) == 1 && l.running[0].Launch == l.State.Kept.Launch
	switch {
	case kept && l.State.Stage == journal.Whole:
		return CloseRun
	case kept:
		// Told to stop, perhaps, or starting: a look at it decides when it is acted on.
		return AwaitKept
	case len(l.running) == 0 && len(l.leftovers(h)) == 0 && len(l.foreign) > 0:
		return CloseRun
	case len(l.running) == 0 && !l.State.Touched && l.State.Mode != modeExec:
		return CloseRun
	}
	return PutBack
}

// plan says what would be done.
func (l *Left) plan() {
	command := l.kept.Command()
	switch {
	case l.Remedy == CloseRun && len(l.foreign) > 0:
		l.step("leave that process alone")
	case l.Remedy == CloseRun && len(l.running) == 0:
		l.step("start nothing: this run had not touched the server, which has ended since")
	case l.Remedy == CloseRun:
		l.step("leave the server running")
	case l.Remedy == AwaitKept:
		l.step("wait until the server answers as it is to: %s", command)
		l.step("should it be on its way down instead: start it again, exactly as it was")
	case l.Remedy == PutBack:
		for _, p := range l.running {
			l.step("stop process %d and what it started", p.PID)
		}
	}
	for i := range l.kept.Files {
		l.planFile(&l.kept.Files[i])
	}
	if l.Remedy == PutBack {
		l.step("start the server exactly as it is to run: %s", command)
		l.step("wait until it answers")
	}
	l.step("end the run in the journal")
}

// planFile says what becomes of a configuration file.
func (l *Left) planFile(f *File) {
	switch how, err := l.judgeFile(f); {
	case err != nil:
		l.step("put back %s, which cannot be read now (%v)", f.Path, err)
	case how == fileTrial:
		l.step("put back %s byte for byte", f.Path)
	case how == fileForeign && l.restoresFiles():
		l.step("set %s aside in %s, because somebody changed it since, and put it back byte for byte", f.Path, l.Dir)
	case how == fileForeign:
		l.step("leave %s as it is: somebody changed it since", f.Path)
	}
}

// restoresFiles says that files are put back whatever is in them.
func (l *Left) restoresFiles() bool { return l.Remedy == PutBack || l.Remedy == AwaitKept }

// fileState is what a configuration file holds now.
type fileState int

const (
	fileKept    fileState = iota // as it is to be
	fileTrial                    // what this run wrote, or nothing
	fileForeign                  // what somebody else wrote
)

func (l *Left) judgeFile(f *File) (fileState, error) {
	have, err := readConfig(f.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return fileTrial, nil
	}
	if err != nil {
		return fileForeign, err
	}
	if f.is(&have) {
		return fileKept, nil
	}
	if slices.Equal(have.Data, f.Data) {
		return fileTrial, nil
	}
	for _, name := range l.State.Launches {
		tried, err := readLaunch(l.Dir, name)
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
