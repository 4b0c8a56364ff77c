package apply

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply/manager"
	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// hookLog is the file, in the server's directory, for the output of the user's program in one run.
const hookLog = "apply-cmd.log"

// Limits of hookLog. The program writes it itself: what it starts in the background may outlive a pipe.
const (
	maxHookLog  = 16 << 20
	hookLogPoll = 50 * time.Millisecond
)

// Untouched is the exit code with which the user's program reports that it could not make
// the change and touched nothing. Exit code 0 means that the server was restarted with the
// change or is about to be, which rooftop then checks at the server. After any other
// code, or if the server does not become ready, the program is called once more to
// revert the change.
const Untouched = 64

// revertVariable is set in the environment of every call of the program: "1" for a revert,
// else "0".
const revertVariable = "ROOFTOP_REVERT"

// variables returns the variables that are added to rooftop's environment for the program.
// ROOFTOP_CHANGE_FLAG, _FROM and _TO are set only for a change of a single flag, so that a
// program that handles one flag does not make half a change.
func variables(c *manager.Change) []string {
	list, _ := json.Marshal(c.Changes)
	revert := "0"
	if c.Revert {
		revert = "1"
	}
	env := []string{
		"ROOFTOP_CHANGES=" + string(list),
		revertVariable + "=" + revert,
		"ROOFTOP_ITERATION=" + strconv.Itoa(c.Iteration),
		"ROOFTOP_URL=" + c.URL,
		"ROOFTOP_LAUNCH=" + c.Command.After,
	}
	if len(c.Changes) == 1 {
		one := c.Changes[0]
		env = append(env, "ROOFTOP_CHANGE_FLAG="+one.Flag, "ROOFTOP_CHANGE_FROM="+one.From, "ROOFTOP_CHANGE_TO="+one.To)
	}
	return env
}

// userProgram is a program of the user's that restarts a server: a manager.Manager.
type userProgram struct {
	launch *launcher.Launch
	dir    string        // of its log
	fresh  bool          // its log begins again with the next call
	within time.Duration // for a call
	grace  time.Duration // from SIGTERM to SIGKILL
}

func newUserProgram(l *launcher.Launch, dir string, within, grace time.Duration) *userProgram {
	if grace <= 0 {
		grace = Grace
	}
	return &userProgram{launch: l, dir: dir, within: within, grace: grace}
}

func (p *userProgram) Mode() string                { return serverdir.ModeHook }
func (p *userProgram) Name() string                { return filepath.Base(p.launch.Argv[0]) }
func (p *userProgram) Launch() *launcher.Launch    { return p.launch }
func (p *userProgram) Ended(context.Context) error { return nil }
func (p *userProgram) Keep(context.Context) error  { return nil }
func (p *userProgram) Busy() []int                 { return callers(p.launch.Argv[0]) }
func (p *userProgram) Notes() []string             { return nil }
func (p *userProgram) Close()                      {}

// Steps returns the call.
func (p *userProgram) Steps(c *manager.Change) []string {
	how := fmt.Sprintf("run %s with %s", p.launch.Argv[0], engine.JoinChanges(c.Changes))
	if c.Revert {
		how += ", back to the kept configuration"
	}
	return []string{how + fmt.Sprintf(" as JSON on stdin and in variables; exit code %d means that it touched nothing", Untouched)}
}

// hookLaunch returns the launch of the user's program.
func hookLaunch(program string) (*launcher.Launch, error) {
	path, err := FindProgram(program)
	if err != nil {
		return nil, err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	}
	return &launcher.Launch{Argv: []string{path}, Env: os.Environ(), Cwd: cwd, Inherit: true, Umask: -1, Std: [3]string{os.DevNull, "", ""}}, nil
}

// FindProgram returns the absolute path of the program named by --apply-cmd.
func FindProgram(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return "", fmt.Errorf("--apply-cmd: %w; pass an executable program, without arguments", err)
	}
	return path, nil
}

// exitError describes how the user's program failed.
type exitError struct {
	program string
	code    int    // exit code, -1 if there is none
	how     string // how it ended
	said    string // decisive line of its output, "" if there is none
}

func (e *exitError) Error() string {
	text := fmt.Sprintf("%s: %s", filepath.Base(e.program), e.how)
	if e.said != "" {
		text += ": " + e.said
	}
	return text
}

// Make runs the program with a change, appends its output to its log, and kills its process group if it
// takes too long.
func (p *userProgram) Make(ctx context.Context, c *manager.Change) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	log, err := openLog(filepath.Join(p.dir, hookLog))
	if err != nil {
		return fmt.Errorf("the program's log: %w", err)
	}
	defer log.Close()
	if p.fresh {
		_ = log.Truncate(0)
		p.fresh = false
	}
	tail := tailOf(log)
	defer limitLog(log)()
	limited, cancel := context.WithTimeoutCause(ctx, p.within, fmt.Errorf("it did not end within %v", p.within))
	defer cancel()
	cmd := exec.CommandContext(limited, p.launch.Argv[0], p.launch.Argv[1:]...)
	cmd.Env = append(slices.Clone(p.launch.Env), variables(c)...)
	cmd.Dir = p.launch.Cwd
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(append(text, '\n')), log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // one that asks at the terminal would be stopped there without a word
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = p.grace
	err = cmd.Run()
	if err == nil {
		return nil
	}
	if cmd.Process != nil && limited.Err() != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // the remaining processes of its group
	}
	failed := &exitError{program: p.launch.Argv[0], code: -1, how: err.Error(), said: p.launch.Hide(launch.FailureReason(tail.read()))}
	if cmd.ProcessState != nil {
		failed.code, failed.how = cmd.ProcessState.ExitCode(), ending(cmd.ProcessState)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if limited.Err() != nil {
		failed.how = context.Cause(limited).Error()
	}
	if failed.code == Untouched {
		return &manager.UntouchedError{Err: failed}
	}
	return failed
}

// refused reports whether a change was not made and the server runs as before.
func refused(err error) bool {
	var e *manager.UntouchedError
	return errors.As(err, &e)
}

// between returns the changes that lead from one set of changes to another, both relative
// to the same configuration. Each flag appears once, in the order of to and then of from.
func between(from, to []engine.Change) []engine.Change {
	var out []engine.Change
	for _, want := range to {
		if i := slices.IndexFunc(from, func(c engine.Change) bool { return c.Flag == want.Flag }); i >= 0 {
			want.From = from[i].To
		}
		if want.From != want.To {
			out = append(out, want)
		}
	}
	for _, had := range from {
		if !sets(to, had.Flag) {
			out = append(out, had.Inverse())
		}
	}
	return out
}

// sets reports whether one of the changes sets a flag.
func sets(changes []engine.Change, flag string) bool {
	return slices.ContainsFunc(changes, func(c engine.Change) bool { return c.Flag == flag })
}
