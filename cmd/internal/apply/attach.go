package apply

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine/journal"
)

// Attach is a server that was found running, and that rooftop stops and starts
// again with its own command line, environment, working directory, user and limits.
type Attach struct {
	owned
	std   [3]*os.File
	notes []string
}

// RefusedError says why a server is not restarted in place, and what to do instead.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string {
	return e.Why + "; give a program that restarts it with --apply-cmd"
}

// NewAttach takes a server that was found among the processes of this machine. It
// touches nothing, and makes sure of everything that a restart needs. Where a
// restart would be wrong the error is a *RefusedError.
func NewAttach(found *proc.Server, plan Plan) (*Attach, error) {
	h, err := newHost(plan.Grace)
	if err != nil {
		return nil, err
	}
	h.fs = found.FS()
	around, err := found.Surroundings()
	if err != nil {
		return nil, &RefusedError{fmt.Sprintf("process %d cannot be read (%v)", found.LaunchPID, err)}
	}
	if err := refusal(found, &around); err != nil {
		return nil, err
	}
	l, err := captured(found, &around)
	if err != nil {
		return nil, err
	}
	launched, err := h.fs.Find(found.LaunchPID)
	if err != nil {
		return nil, err
	}
	p := h.adopt(journal.Process{PID: launched.PID, Ticks: launched.Ticks, Boot: h.boot})
	// Whoever started it may have put other things into its session.
	p.session, p.group = false, false
	h.alive(p)
	a := &Attach{owned: owned{host: h, mode: "attach", plan: plan, port: found.Addr.Port(), kept: l, runs: l, process: p, wary: true}}
	if a.plan.Ready.URL == "" {
		c, err := l.config()
		if err != nil {
			return nil, err
		}
		a.plan.Ready.URL, _ = address(c)
	}
	a.open()
	if err := h.rehearse(l); err != nil {
		a.Close()
		return nil, &RefusedError{fmt.Sprintf("process %d cannot be started again just as it is: %v", found.LaunchPID, err)}
	}
	a.owned.std = a.streams
	a.above(h.fs.Ancestors(found.LaunchPID))
	if ours := h.fs.Cgroups(os.Getpid()); !slices.Equal(ours, around.Cgroups) {
		a.notes = append(a.notes, "after a restart the server is in rooftop's control group, whose bounds of memory and processors may be others")
	}
	return a, nil
}

// captured is the exact launch of a process.
func captured(found *proc.Server, around *proc.Surroundings) (*Launch, error) {
	pid := found.LaunchPID
	env, err := found.Environ()
	if err != nil {
		return nil, &RefusedError{err.Error()}
	}
	argv, err := found.FS().Argv(pid)
	if err != nil {
		return nil, &RefusedError{fmt.Sprintf("read command line of process %d: %v", pid, err)}
	}
	l := &Launch{
		Argv: argv, Env: env, Cwd: found.Cwd, Exe: around.Exe, Std: around.Std,
		Owner: Owner{UID: around.UID, GID: around.GID, Groups: around.Groups},
		Limit: around.Limits, Nice: around.Nice, Umask: around.Umask, OOMScoreAdj: around.OOMScoreAdj,
		CPUs: around.CPUs, Policy: around.Policy, Priority: around.Priority,
	}
	c, err := l.config()
	if err != nil {
		return nil, &RefusedError{fmt.Sprintf("the command line of process %d cannot be read: %v", pid, err)}
	}
	path := c.ConfigPath()
	if path == "" {
		return l, nil
	}
	file, err := readConfig(under(l.Cwd, path))
	if err != nil {
		return nil, &RefusedError{fmt.Sprintf("the server's config file cannot be read: %v", err)}
	}
	// Start times are known to about a second.
	if file.Time.After(found.Started.Add(2 * time.Second)) {
		return nil, fmt.Errorf("%s was changed after the server started, so a restart would change more than is measured: restart the server yourself first", file.Path)
	}
	l.Files = []File{file}
	_, err = l.config()
	return l, err
}

// open takes hold of what the server's standard streams lead to, before it ends:
// pipes and terminals go on, files are appended to at their end.
func (a *Attach) open() {
	for i, target := range a.kept.Std {
		f, err := openStream(a.process.PID, i, target)
		if err != nil {
			a.notes = append(a.notes, fmt.Sprintf("%s of process %d leads to %s, which cannot be opened again (%v): after a restart it leads to %s", streamNames[i], a.process.PID, target, err, a.substitute(i)))
		}
		a.std[i] = f
		if f == nil {
			continue
		}
		a.held = append(a.held, f)
		if info, err := f.Stat(); i > 0 && err == nil && info.Mode().IsRegular() {
			a.kept.Log = target
		}
	}
}

var streamNames = [3]string{"stdin", "stdout", "stderr"}

// substitute is what stands in for a stream that cannot be opened.
func (a *Attach) substitute(i int) string {
	if i == 0 {
		return os.DevNull
	}
	return serverLog + " in " + a.plan.Journal.Dir()
}

// streams are the server's own.
func (a *Attach) streams() (std [3]*os.File, log *os.File, err error) {
	std = a.std
	for i := 1; i < len(std); i++ {
		if std[i] == nil {
			if std[i], err = a.spare(); err != nil {
				return std, nil, err
			}
		}
	}
	for _, f := range []*os.File{std[2], std[1]} {
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() {
			return std, f, nil
		}
	}
	return std, nil, nil
}

// spare is the log that takes the place of a stream.
func (a *Attach) spare() (*os.File, error) {
	e := Exec{owned{plan: a.plan}}
	_, log, err := e.streams()
	if err != nil {
		return nil, err
	}
	for i := 1; i < len(a.std); i++ {
		if a.std[i] == nil {
			a.std[i] = log
		}
	}
	a.held = append(a.held, log)
	return log, nil
}

// Notes are what else a person should know of the restart, a sentence each.
func (a *Attach) Notes() []string { return a.notes }

// Launch is the exact launch to go back to. It holds secrets.
func (s *owned) Launch() *Launch { return s.kept }

// errStream says that a standard stream leads to something that has no name.
var errStream = errors.New("it has no name")
