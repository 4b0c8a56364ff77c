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

	"github.com/rooftop-dev/rooftop/engine"
)

// hookLog is the file, in the server's directory, that the output of a program goes
// to.
const hookLog = "apply-cmd.log"

// Untouched is the exit code by which a program that makes changes says that it
// could not and touched nothing. 0 says that the server is restarted with the change,
// or is about to be; whether it was and is up is then asked of the server. After any other code, and
// where the server does not come up, the program is called once more to take the
// change back.
const Untouched = 64

// Change is what a program gets on stdin to make a change: rooftop.change/v1. It
// holds no secret.
type Change struct {
	Schema    string `json:"schema"`
	Iteration int    `json:"iteration"`
	Revert    bool   `json:"revert"` // back to the kept configuration
	URL       string `json:"url"`    // of the server
	// Changes lead from what runs now to what is to run, each flag once.
	Changes []engine.Change `json:"changes"`
	// Command is the launch command as far as it is known, secrets redacted: it says
	// what is meant, and cannot be run where it had any.
	Command   ChangeCommand       `json:"command"`
	Predicted []engine.Prediction `json:"predicted,omitempty"`
}

// ChangeCommand is a launch command before a change and after it; "" unknown.
type ChangeCommand struct {
	Before string `json:"before"`
	After  string `json:"after"`
}

// ChangeSchema names the object that programs get.
const ChangeSchema = "rooftop.change/v1"

// revertVariable is in the environment of each program that is called, "1" on a way
// back.
const revertVariable = "ROOFTOP_REVERT"

// variables are what a program gets beside rooftop's own environment. A change of
// one flag is in ROOFTOP_CHANGE_FLAG, _FROM and _TO; these are not set for several,
// so that a program that knows one alone does not make half a change.
func (c *Change) variables() []string {
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

// hookLaunch is how a program that makes changes is called.
func hookLaunch(program string) (*Launch, error) {
	path, err := exec.LookPath(program)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		return nil, fmt.Errorf("--apply-cmd: %w; give a program that may be run, without arguments", err)
	}
	cwd, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	}
	return &Launch{Argv: []string{path}, Env: os.Environ(), Cwd: cwd, Inherit: true, Umask: -1, Std: [3]string{os.DevNull, "", ""}}, nil
}

// exitError says how a program that makes changes ended.
type exitError struct {
	program string
	code    int
	how     string
	said    string // last that it said, "" nothing
}

func (e *exitError) Error() string {
	text := fmt.Sprintf("%s: %s", filepath.Base(e.program), e.how)
	if e.said != "" {
		text += ": " + e.said
	}
	return text
}

// call runs a program that makes changes, its output to the log in a directory, and
// ends it with all that it started in its group where it takes too long.
func call(ctx context.Context, program *Launch, dir string, within, grace time.Duration, c *Change) error {
	text, err := json.Marshal(c)
	if err != nil {
		return err
	}
	log, err := os.OpenFile(filepath.Join(dir, hookLog), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("the program's log: %w", err)
	}
	defer log.Close()
	tail := tailOf(log)
	limited, cancel := context.WithTimeoutCause(ctx, within, fmt.Errorf("it did not end within %v", within))
	defer cancel()
	cmd := exec.CommandContext(limited, program.Argv[0], program.Argv[1:]...)
	cmd.Env = append(slices.Clone(program.Env), c.variables()...)
	cmd.Dir = program.Cwd
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(append(text, '\n')), log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = grace
	err = cmd.Run()
	if err == nil {
		return nil
	}
	if cmd.Process != nil && limited.Err() != nil {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) // what it left of its group
	}
	failed := &exitError{program: program.Argv[0], code: -1, how: err.Error(), said: program.hide(reasonIn(tail.read()))}
	if cmd.ProcessState != nil {
		failed.code, failed.how = cmd.ProcessState.ExitCode(), ending(cmd.ProcessState)
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if limited.Err() != nil {
		failed.how = context.Cause(limited).Error()
	}
	return failed
}

// refused says that a program touched nothing.
func refused(err error) bool {
	var e *exitError
	return errors.As(err, &e) && e.code == Untouched
}

// between are the changes from one set of changes to another, both made to the same
// configuration, each flag once, in the order of the second and then of the first.
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
		if !slices.ContainsFunc(to, func(c engine.Change) bool { return c.Flag == had.Flag }) {
			out = append(out, engine.Change{Flag: had.Flag, From: had.To, To: had.From})
		}
	}
	return out
}
