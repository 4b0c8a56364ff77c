package apply

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply/docker"
	"github.com/rooftop-dev/rooftop/cmd/internal/apply/kubernetes"
	"github.com/rooftop-dev/rooftop/cmd/internal/apply/systemd"
	"github.com/rooftop-dev/rooftop/cmd/internal/kube"
	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine/journal"
)

// Attach is an Applier for a server that was found running. It restarts the server with
// its own command line, environment, working directory, user and limits.
type Attach struct {
	owned
	std [3]*os.File
}

// RefusedError explains why a server is not restarted in place, and what to do instead.
type RefusedError struct{ Why string }

func (e *RefusedError) Error() string {
	return e.Why + "; --apply-cmd takes a program that restarts it instead"
}

// NewInPlace returns the Applier that restarts a server where it runs: in its container of Docker, through
// its service of systemd, or else its process. It touches nothing. The error is a *RefusedError if the
// server must not be restarted.
func NewInPlace(ctx context.Context, found *proc.Server, plan Plan) (Applier, error) {
	if found.Container() != "" {
		container, err := docker.New(ctx, found)
		if err != nil {
			return nil, &RefusedError{err.Error()}
		}
		return newManaged(container, plan), nil
	}
	if pod := found.Pod(); pod != "" {
		return nil, &RefusedError{fmt.Sprintf("process %d is in the pod %s: name what keeps that running, as --kube [NAMESPACE/]deployment/NAME in place of --url", found.LaunchPID, pod)}
	}
	around, err := found.Surroundings()
	if err != nil {
		return nil, &RefusedError{fmt.Sprintf("process %d cannot be read (%v)", found.LaunchPID, err)}
	}
	name, uid := found.Service()
	if name == "" {
		return NewAttach(found, plan)
	}
	l, err := captured(found, &around)
	if err != nil {
		return nil, err
	}
	unit, err := systemd.New(ctx, name, uid, l, found.LaunchPID)
	if err != nil {
		return nil, &RefusedError{err.Error()}
	}
	return newManaged(unit, plan), nil
}

// Claim is what a run wants of a workload of Kubernetes.
type Claim struct {
	Force  bool // change it although something else writes the object too
	Canary bool // only if changes can be tried on one more pod
	Hold   bool // keep others from changing it during the whole run
}

// NewWorkload returns the Applier that changes a workload of Kubernetes, whose pods run the server. It touches
// nothing but the lease. The error is a sentence about why the object must not be changed.
func NewWorkload(ctx context.Context, at *kube.Workload, plan Plan, claim Claim) (Applier, error) {
	w, err := kubernetes.New(ctx, at, plan.Ready.within(), claim.Force)
	if err != nil {
		return nil, err
	}
	m := newManaged(w, plan)
	if claim.Canary {
		if m.notes, err = w.CheckBeside(ctx); err != nil {
			return m, err
		}
	}
	if claim.Hold {
		if err := w.Hold(ctx); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// NewAttach returns an Attach for a server that was found among the processes of this
// machine. It checks everything that a restart needs and touches nothing. The error is a
// *RefusedError if the server must not be restarted in place.
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
	// Its session may contain other programs of the one who started it.
	p.session, p.group = false, false
	h.alive(p)
	a := &Attach{owned: owned{host: h, mode: "attach", plan: plan, at: found.Addr, programs: programs(l), kept: l, runs: l, process: p, wary: true}}
	if a.plan.Ready.URL == "" {
		if a.plan.Ready.URL, _, err = addressOf(l); err != nil {
			return nil, err
		}
	}
	a.openStreams()
	if err := h.rehearse(context.Background(), l); err != nil {
		a.Close()
		return nil, &RefusedError{fmt.Sprintf("process %d cannot be restarted exactly as it is: %v", found.LaunchPID, err)}
	}
	a.owned.std = a.streams
	if left := h.lost(filepath.Dir(plan.Journal.Dir()), found.LaunchPID); left != nil {
		a.notes = append(a.notes, left.Found[0]+", and its journal is gone: that is taken for the configuration to keep, unless you restart the server as it was first")
	}
	a.noteParent(h.fs.Ancestors(found.LaunchPID))
	if ours := h.fs.Cgroups(os.Getpid()); !slices.Equal(ours, around.Cgroups) {
		a.notes = append(a.notes, "a restart moves the server to rooftop's control group, which may have other memory and CPU limits")
	}
	return a, nil
}

// captured returns the exact launch of a server's launch process.
func captured(found *proc.Server, around *proc.Surroundings) (*launcher.Launch, error) {
	pid := found.LaunchPID
	env, err := found.Environ()
	if err != nil {
		return nil, &RefusedError{err.Error()}
	}
	argv, err := found.FS().Argv(pid)
	if err != nil {
		return nil, &RefusedError{fmt.Sprintf("read command line of process %d: %v", pid, err)}
	}
	l := &launcher.Launch{
		Argv: argv, Env: unmarked(env), Cwd: found.Cwd, Exe: around.Exe, Std: around.Std,
		Owner: launcher.Owner{UID: around.UID, GID: around.GID, Groups: around.Groups},
		Limit: around.Limits, Nice: around.Nice, Umask: around.Umask, OOMScoreAdj: around.OOMScoreAdj,
		CPUs: around.CPUs, Policy: around.Policy, Priority: around.Priority,
	}
	c, err := l.Config()
	if err != nil {
		return nil, &RefusedError{fmt.Sprintf("the command line of process %d cannot be read: %v", pid, err)}
	}
	path := c.ConfigPath()
	if path == "" {
		return l, nil
	}
	file, err := l.User().ReadFile(absolute(l.Cwd, path))
	if err != nil {
		return nil, &RefusedError{fmt.Sprintf("the server's config file cannot be read: %v", err)}
	}
	// Start times are known to about a second.
	if file.Time.After(found.Started.Add(2 * time.Second)) {
		return nil, fmt.Errorf("%s was changed after the server started, so a restart would change more than one setting: restart the server yourself first", file.Path)
	}
	file.Fixed = file.Replaceable() != nil
	l.Files = []launcher.File{file}
	_, err = l.Config()
	return l, err
}

// openStreams opens the server's standard streams before the server ends, so that a restart
// can continue pipes and terminals and append to files.
func (a *Attach) openStreams() {
	for i, target := range a.kept.Std {
		f, err := openStream(a.process.PID, i, target, a.kept.User())
		if err != nil {
			a.notes = append(a.notes, fmt.Sprintf("%s of process %d leads to %s, which cannot be reopened (%v): after a restart it leads to %s", streamNames[i], a.process.PID, target, err, a.substitute(i)))
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

// substitute describes the replacement for a stream that cannot be opened.
func (a *Attach) substitute(i int) string {
	if i == 0 {
		return os.DevNull
	}
	return serverLog + " in " + a.plan.Journal.Dir()
}

// streams returns the server's own standard streams, and the one of them that is a regular
// file and serves as its log.
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

// spare opens the server log as a replacement for streams that cannot be opened.
func (a *Attach) spare() (*os.File, error) {
	log, err := openServerLog(a.plan.Journal.Dir())
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

// Launch returns the kept launch, to which a revert returns. It holds secrets.
func (s *owned) Launch() *launcher.Launch { return s.kept }

// errStream means that a standard stream leads to something that has no name.
var errStream = errors.New("it has no name")
