package autopilot

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply"
	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// Aim sets the URL of the server that the command will start. It returns a usage error if
// the given URL is not that of this server.
func (o *Options) Aim(server *attach.Options) error {
	if o.Mode() != ModeExec {
		return nil
	}
	if path, _, ok := o.Launch.Value("uds"); ok {
		return cli.Usagef("-- COMMAND: the server listens on the socket %s, and rooftop reads servers over TCP", path)
	}
	url, _ := apply.Address(o.Launch, "127.0.0.1")
	if server.URL == "" {
		server.URL = url
		return nil
	}
	given, err := attach.ParseTarget(server.URL)
	if err != nil {
		return err
	}
	own, err := attach.ParseTarget(url)
	if err != nil {
		return err
	}
	if _, port := attach.HostPort(given); port != 0 {
		if _, listens := attach.HostPort(own); port != listens {
			return cli.Usagef("--url names port %d, and the command starts a server on port %d", port, listens)
		}
	}
	return nil
}

// taking holds the options for taking control of a server.
type taking struct {
	*attach.Options
	auto *Options
	step *atomic.Value // see Pilot.step
}

// Take takes control of a server in the mode that the user selected. It returns nil if there
// is no mode and no dry run. It touches nothing before the journal is open.
func Take(ctx context.Context, w *cli.World, l *attach.Locator, server *attach.Options, auto *Options) (*Pilot, error) {
	o := &taking{Options: server, auto: auto, step: new(atomic.Value)}
	if auto.DryRun {
		reportInterrupted(w, l.Target)
		return o.rehearse(ctx, l)
	}
	if auto.Mode() == ModeNone {
		reportInterrupted(w, l.Target)
		return nil, nil
	}
	state, err := cli.StateDir(w.Env)
	if err != nil {
		return nil, fmt.Errorf("the journal: %w", err)
	}
	root := serverdir.Root(state)
	if auto.Mode() == ModeExec {
		return o.takeCommand(ctx, w, l, root)
	}
	return o.takeRunning(ctx, w, l, root)
}

// reportInterrupted reports interrupted runs on a server, or on all servers if t is zero.
// They may be the reason why a server does not answer. A run with an applier needs no such
// note, because opening the journal fails for it.
func reportInterrupted(w *cli.World, t collect.Target) {
	state, err := cli.StateDir(w.Env)
	if err != nil {
		return // without a journal there are no interrupted runs
	}
	left, err := apply.Survey(serverdir.Root(state))
	if err != nil {
		w.Notef("cannot check for interrupted runs: %v", err)
	}
	_, port := attach.HostPort(t)
	for i := range left {
		l := &left[i]
		switch {
		case l.Remedy == apply.LeaveAlone || !t.IsZero() && int(port) != l.Identity.Port:
		case l.Unread:
			w.Notef("the journal of a run on %s cannot be read; 'rooftop recover' says more", l.Identity)
		default:
			w.Notef("a run on %s was interrupted at %s; 'rooftop recover' shows what it left and restores the server", l.Identity, l.State.Last.Local().Format("2006-01-02 15:04:05"))
		}
	}
}

// dialTimeout is how long a server may take to accept a connection.
const dialTimeout = time.Second

// listens reports whether a process accepts connections at a target.
func listens(ctx context.Context, t collect.Target) bool {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "tcp", t.HostPort())
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// notRunning returns err with the exit code of an unreachable server, unless it has a code.
func notRunning(err error) error {
	var coded *cli.CodedError
	if errors.As(err, &coded) {
		return cli.Fail(coded.Code, err)
	}
	return cli.Fail(cli.ExitUnreachable, err)
}

// takeCommand starts the server of the command and takes control of it.
func (o *taking) takeCommand(ctx context.Context, w *cli.World, l *attach.Locator, root string) (*Pilot, error) {
	if listens(ctx, l.Target) {
		return nil, fmt.Errorf("a server listens at %s already, so the command would not start one: stop that server first, or tune it with --restart-in-place", l.Target)
	}
	host, port := attach.HostPort(l.Target)
	owner := os.Geteuid()
	id := serverdir.Identity{Host: host, Port: int(port), URL: l.Target.String(), Owner: &owner}
	if names := o.auto.Launch.ServedModelNames(); len(names) > 0 {
		id.Model = names[0]
	}
	store, err := serverdir.OpenStore(root, id, cli.Version())
	if err != nil {
		return nil, err
	}
	show := cli.NewProgress(w, &o.Output)
	defer show.Done()
	plan, err := o.applierPlan(l, store, id)
	if err == nil {
		plan.Progress = func(text string) {
			o.step.Store(text)
			show.Show(text)
		}
		var applier *apply.Exec
		if applier, err = apply.NewExec(o.auto.command, plan); err == nil {
			return o.start(ctx, w, applier, store)
		}
	}
	return nil, errors.Join(err, store.Close())
}

// start starts the server, and closes applier and store if that fails.
func (o *taking) start(ctx context.Context, w *cli.World, applier *apply.Exec, store *serverdir.Store) (*Pilot, error) {
	w.Notef("starting the server; its log is %s", applier.Log())
	stop := cli.OnSignals(ctx, OnSignals(w, "stopping the server that was started"))
	err := applier.Start(ctx)
	stop()
	if err == nil {
		var p *Pilot
		if p, err = newPilot(applier, store); err == nil {
			p.longest, p.step = o.auto.longest(), o.step
			p.left = func() string { return describeRunning(applier) }
			return p, nil
		}
	}
	ended := store.End(int(cli.ExitError), err.Error())
	err = errors.Join(err, ended, applier.Close(), store.Close())
	if code := cli.SignalCode(ctx); code != 0 {
		return nil, cli.Fail(code, err)
	}
	return nil, err
}

// describeRunning describes the server that keeps running after rooftop ends.
func describeRunning(applier *apply.Exec) string {
	p, ok := applier.Process()
	if !ok {
		return strings.TrimSuffix("no server runs: "+applier.Trouble(), ": ")
	}
	return fmt.Sprintf("the server keeps running as process %d, log %s; 'kill %d' stops it", p.PID, applier.Log(), p.PID)
}

// applierPlan returns the plan of an applier with a journal.
func (o *taking) applierPlan(l *attach.Locator, to apply.Journal, id serverdir.Identity) (apply.Plan, error) {
	key, err := attach.APIKey(o.Env, o.APIKeyFile)
	return apply.Plan{
		Journal: to, Server: id.String(), Progress: func(text string) { o.step.Store(text) },
		Ready: apply.Readiness{URL: l.Target.Base(), Within: o.auto.start, APIKey: key, CAFile: o.CAFile},
	}, err
}

// takeRunning takes control of a running server, through its process or the user's program.
func (o *taking) takeRunning(ctx context.Context, w *cli.World, l *attach.Locator, root string) (*Pilot, error) {
	a, err := l.Attach(ctx)
	if err != nil {
		reportInterrupted(w, l.Target)
		return nil, notRunning(err)
	}
	defer a.Close()
	id := a.Identity().Resolved(ctx)
	if o.auto.Mode() != ModeHook { // others may have such a program
		id.Owner = owner(a.Process)
	}
	store, err := serverdir.OpenStore(root, id, cli.Version())
	if err != nil {
		return nil, err
	}
	plan, err := o.applierPlan(l, store, id)
	if err == nil {
		a.Describe(&plan)
		var applier apply.Applier
		if applier, err = o.newApplier(ctx, a, plan); err == nil {
			var p *Pilot
			if m, ok := applier.(*apply.Managed); ok {
				err = store.Claim(m.Objects())
			}
			if err == nil {
				p, err = newPilot(applier, store)
			}
			if err == nil {
				p.beside, p.longest, p.step = o.canary(applier), o.auto.longest(), o.step
				p.remarks(w)
				return p, nil
			}
			err = errors.Join(err, applier.Close())
		}
	}
	return nil, errors.Join(err, store.Close())
}

// owner returns the user of a server's process, who may tune it besides root; nil if others may too, as in a
// container.
func owner(p *proc.Server) *int {
	if p == nil || p.Container() != "" || p.Pod() != "" {
		return nil
	}
	around, err := p.Surroundings()
	if err != nil {
		return nil
	}
	return &around.UID
}

// remarks shows the notes of the applier that were not shown yet, if it has any.
func (p *Pilot) remarks(w *cli.World) {
	if h, ok := p.applier.(interface{ Notes() []string }); ok {
		notes := h.Notes()
		for _, note := range notes[min(p.noted, len(notes)):] {
			w.Notef("%s", note)
		}
		p.noted = len(notes)
	}
}

// newApplier returns the applier for a running server.
func (o *taking) newApplier(ctx context.Context, a *attach.Server, plan apply.Plan) (apply.Applier, error) {
	if o.auto.Mode() == ModeHook {
		return apply.NewHook(o.auto.Program, plan)
	}
	if o.auto.Canary && a.Workload == nil {
		return nil, cli.Usagef("--canary tries a change on one more pod: name what keeps the pods running, as --kube [NAMESPACE/]deployment/NAME")
	}
	if a.Workload != nil {
		return apply.NewWorkload(ctx, a.Workload, plan, apply.Claim{Force: o.auto.forceOwned, Canary: o.auto.Canary, Hold: o.auto.Auto && !o.auto.DryRun})
	}
	if a.Process == nil {
		return nil, fmt.Errorf("--restart-in-place: the process of %s is not visible from here: %s", a.Target, a.WhyNoProcess())
	}
	return apply.NewInPlace(ctx, a.Process, plan)
}

// canary returns what starts canaries of a server, nil if none are wanted.
func (o *taking) canary(applier apply.Applier) func(context.Context, loop.StartCanary) (session.Canary, error) {
	managed, _ := applier.(*apply.Managed)
	if !o.auto.Canary || managed == nil {
		return nil
	}
	return func(ctx context.Context, a loop.StartCanary) (session.Canary, error) {
		started, err := managed.StartCanary(ctx, a)
		if err != nil {
			return nil, err
		}
		c := &canary{Canary: started}
		for _, url := range started.URLs() {
			var source session.CanarySource
			var closes func()
			if source.Pages, source.Health, closes, err = o.Source(url); err != nil {
				if left := c.Remove(context.WithoutCancel(ctx)); left != nil {
					err = &apply.LeftError{Err: errors.Join(err, left)}
				}
				return nil, err
			}
			c.sources, c.closes = append(c.sources, source), append(c.closes, closes)
		}
		return c, nil
	}
}

// canary is a canary with the connections that read it and the servers beside it.
type canary struct {
	*apply.Canary
	sources []session.CanarySource
	closes  []func()
}

// Sources reads the canary, first, and each of the servers beside it.
func (c *canary) Sources() []session.CanarySource { return c.sources }

// Remove closes the connections and removes the canary.
func (c *canary) Remove(ctx context.Context) error {
	for _, closes := range c.closes {
		closes()
	}
	return c.Canary.Remove(ctx)
}

// dryJournal is the journal of a dry run: nothing can be written, so nothing is done.
type dryJournal struct{}

func (dryJournal) Write(journal.Record) error               { return errors.New(errDry) }
func (dryJournal) Keep(*launcher.Launch) (string, error)    { return "", errors.New(errDry) }
func (dryJournal) KeepFound(*launcher.File) (string, error) { return "", errors.New(errDry) }
func (dryJournal) Dir() string                              { return "the journal's directory" }

// rehearse returns the pilot of a dry run, whose applier only describes its steps. The
// server must already run.
func (o *taking) rehearse(ctx context.Context, l *attach.Locator) (*Pilot, error) {
	a, err := l.Attach(ctx)
	if err != nil {
		if o.auto.Mode() == ModeExec && cli.SignalCode(ctx) == 0 {
			err = fmt.Errorf("--dry-run measures the server that runs and starts none: %w", err)
		}
		return nil, notRunning(err)
	}
	defer a.Close()
	p := &Pilot{dry: true, quiet: o.JSON}
	if o.auto.Mode() == ModeNone {
		return p, nil
	}
	plan, err := o.applierPlan(l, dryJournal{}, a.Identity())
	if err != nil {
		return nil, err
	}
	a.Describe(&plan)
	if o.auto.Mode() == ModeExec {
		p.applier, err = apply.NewExec(o.auto.command, plan)
	} else {
		p.applier, err = o.newApplier(ctx, a, plan)
	}
	if err != nil {
		return nil, err
	}
	p.canary = o.auto.Canary
	return p, nil
}
