package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine/journal"
)

// aim points the run at the server that the command is going to start.
func (o *autoOptions) aim(server *options) error {
	if o.mode() != modeExec {
		return nil
	}
	if path, _, ok := o.launch.Value("uds"); ok {
		return usage("-- COMMAND: the server listens on the socket %s, and rooftop reads servers over TCP", path)
	}
	url := o.address()
	if server.url == "" {
		server.url = url
		return nil
	}
	given, err := parseTarget(server.url)
	if err != nil {
		return err
	}
	own, err := parseTarget(url)
	if err != nil {
		return err
	}
	if _, port := splitHostPort(given); port != 0 {
		if _, listens := splitHostPort(own); port != listens {
			return usage("--url names port %d, and the command starts a server on port %d", port, listens)
		}
	}
	return nil
}

// address is where the server of the command answers this machine.
func (o *autoOptions) address() string {
	host, _, _ := o.launch.Value("host")
	port, _, ok := o.launch.Value("port")
	if !ok {
		port = collect.DefaultPort
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	scheme := "http"
	if _, _, ok := o.launch.Value("ssl_certfile"); ok {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(host, port)
}

// takePilot takes a server into rooftop's hands, in the way that the person named;
// nil where none was. Nothing is touched before the journal is open.
func (o *tuneOptions) takePilot(ctx context.Context, w *world, l *locator) (*pilot, error) {
	if o.auto.dryRun {
		tellCutOff(w, l.target)
		return o.rehearse(ctx, l)
	}
	if o.auto.mode() == modeNone {
		tellCutOff(w, l.target)
		return nil, nil
	}
	state, err := stateDir(w.env)
	if err != nil {
		return nil, fail(exitError, fmt.Errorf("the journal: %w", err))
	}
	root := apply.Root(state)
	if o.auto.mode() == modeExec {
		return o.takeCommand(ctx, w, l, root)
	}
	return o.takeRunning(ctx, w, l, root)
}

// tellCutOff tells of runs on a server, or on any where none is known yet, that were cut
// off and not put right: a server that they left stopped does not answer, and the
// reason is there. Hands on a server are refused by its journal, and need no word.
func tellCutOff(w *world, t collect.Target) {
	state, err := stateDir(w.env)
	if err != nil {
		return // there is no journal, and nothing is to be put right
	}
	left, err := apply.Survey(apply.Root(state))
	if err != nil {
		fmt.Fprintf(w.stderr, "rooftop: whether an earlier run was cut off cannot be told: %v\n", err)
	}
	_, port := splitHostPort(t)
	for i := range left {
		l := &left[i]
		switch {
		case l.Remedy == apply.LeaveAlone || !t.IsZero() && int(port) != l.Identity.Port:
		case l.Unread:
			fmt.Fprintf(w.stderr, "rooftop: how a run on %s was left cannot be read; 'rooftop recover' says more\n", l.Identity)
		default:
			fmt.Fprintf(w.stderr, "rooftop: a run on %s was cut off at %s; 'rooftop recover' says what it left and puts it right\n", l.Identity, l.State.Last.Local().Format("2006-01-02 15:04:05"))
		}
	}
}

// inUse is how long a server may take to accept a connection.
const inUse = time.Second

// listens says whether anybody accepts connections at a target.
func listens(ctx context.Context, t collect.Target) bool {
	ctx, cancel := context.WithTimeout(ctx, inUse)
	defer cancel()
	c, err := new(net.Dialer).DialContext(ctx, "tcp", t.HostPort())
	if err != nil {
		return false
	}
	_ = c.Close()
	return true
}

// identity is what tells the server from others, from run to run.
func (a *attached) identity() apply.Identity {
	host, port := splitHostPort(a.target)
	if a.process != nil {
		host = "" // of this machine, whatever it was called
	}
	id := apply.Identity{Host: host, Port: int(port), Model: a.header.Inputs.Server.Model, URL: a.target.String()}
	if id.Model == "" && a.process != nil && a.process.Launch != nil {
		if names := a.process.Launch.ServedModelNames(); len(names) > 0 {
			id.Model = names[0]
		}
	}
	if a.gpus != nil && !a.simulated() {
		for _, d := range a.gpus.Devices() {
			if d.UUID != "" {
				id.GPUs = append(id.GPUs, d.UUID)
			}
		}
	}
	return id
}

// notRunning is the error of a run that needs a server to be there.
func notRunning(err error) error {
	var coded *codedError
	if errors.As(err, &coded) {
		return fail(coded.code, err)
	}
	return fail(exitUnreachable, err)
}

// takeCommand starts the server of the command and takes it.
func (o *tuneOptions) takeCommand(ctx context.Context, w *world, l *locator, root string) (*pilot, error) {
	if listens(ctx, l.target) {
		return nil, fail(exitError, fmt.Errorf("a server listens at %s already, so the command would not start one: stop that server first, or tune it with --restart-in-place", l.target))
	}
	host, port := splitHostPort(l.target)
	id := apply.Identity{Host: host, Port: int(port), URL: l.target.String()}
	if names := o.auto.launch.ServedModelNames(); len(names) > 0 {
		id.Model = names[0]
	}
	store, err := apply.OpenStore(root, id, buildVersion())
	if err != nil {
		return nil, fail(exitError, err)
	}
	show := newProgress(w, &o.output)
	defer show.done()
	plan, err := o.handsPlan(l, store, id)
	if err == nil {
		plan.Say = show.say
		var hands *apply.Exec
		if hands, err = apply.NewExec(o.auto.command, plan); err == nil {
			return o.start(ctx, w, hands, store)
		}
	}
	return nil, fail(exitError, errors.Join(err, store.Close()))
}

// start has the server come up, and lets go of everything where it does not.
func (o *tuneOptions) start(ctx context.Context, w *world, hands *apply.Exec, store *apply.Store) (*pilot, error) {
	fmt.Fprintf(w.stderr, "rooftop: starting the server; its log is %s\n", hands.Log())
	stop := hearing(func(n int, s syscall.Signal) {
		if n > 1 {
			fmt.Fprintln(w.stderr, "rooftop:", recoverText)
			os.Exit(128 + int(s))
		}
	})
	err := hands.Start(ctx)
	stop()
	if err == nil {
		var p *pilot
		if p, err = fly(hands, store); err == nil {
			p.left = func() string { return stays(hands) }
			return p, nil
		}
	}
	ended := store.End(int(exitError), err.Error())
	err = errors.Join(err, ended, hands.Close(), store.Close())
	if code := signalOf(ctx); code != 0 {
		return nil, fail(code, err)
	}
	return nil, fail(exitError, err)
}

// stays says how a server that rooftop started goes on.
func stays(hands *apply.Exec) string {
	p, ok := hands.Process()
	if !ok {
		return "no server runs"
	}
	return fmt.Sprintf("the server goes on as process %d, log %s; 'kill %d' stops it", p.PID, hands.Log(), p.PID)
}

// handsPlan is what all hands need to know.
func (o *tuneOptions) handsPlan(l *locator, to apply.Journal, id apply.Identity) (apply.Plan, error) {
	key, err := o.key()
	return apply.Plan{
		Journal: to, Server: id.String(),
		Ready: apply.Readiness{URL: l.target.Base(), Within: o.auto.start, APIKey: key, CAFile: o.caFile},
	}, err
}

// key is the text of the API key that was given, "" without one: hands send it with
// the completion that shows that a server is ready.
func (o *options) key() (string, error) {
	if o.apiKeyFile == "" {
		text, _ := o.env("ROOFTOP_API_KEY")
		return strings.TrimSpace(text), nil
	}
	text, err := readFile(o.apiKeyFile, 1<<16)
	return strings.TrimSpace(string(text)), err
}

// takeRunning takes a server that runs: its process, or the program that restarts
// it.
func (o *tuneOptions) takeRunning(ctx context.Context, w *world, l *locator, root string) (*pilot, error) {
	a, err := l.attach(ctx)
	if err != nil {
		tellCutOff(w, l.target)
		return nil, notRunning(err)
	}
	defer a.close()
	id := a.identity().Resolved(ctx)
	store, err := apply.OpenStore(root, id, buildVersion())
	if err != nil {
		return nil, fail(exitError, err)
	}
	plan, err := o.handsPlan(l, store, id)
	if err == nil {
		a.known(&plan)
		var hands apply.Hands
		if hands, err = o.handsOn(a, plan); err == nil {
			var p *pilot
			if p, err = fly(hands, store); err == nil {
				remarks(w, hands)
				return p, nil
			}
		}
	}
	return nil, fail(exitError, errors.Join(err, store.Close()))
}

// remarks tells what else a person should know of a restart by these hands.
func remarks(w *world, hands apply.Hands) {
	if h, ok := hands.(interface{ Notes() []string }); ok {
		for _, note := range h.Notes() {
			fmt.Fprintln(w.stderr, "rooftop:", note)
		}
	}
}

// known adds to a plan of hands what the server's process tells.
func (a *attached) known(plan *apply.Plan) {
	if a.process == nil || a.process.Launch == nil {
		return
	}
	plan.Launch = a.process.Launch
	if plan.Ready.APIKey == "" {
		plan.Ready.APIKey, _ = a.process.Launch.APIKey()
	}
}

// handsOn are the hands on a server that runs.
func (o *tuneOptions) handsOn(a *attached, plan apply.Plan) (apply.Hands, error) {
	if o.auto.mode() == modeHook {
		return apply.NewHook(o.auto.program, plan)
	}
	if a.process == nil {
		return nil, fmt.Errorf("--restart-in-place: the process of %s is not to be seen from here: %s", a.target, a.unseen())
	}
	return apply.NewAttach(a.process, plan)
}

// unseen is why the server's process is not known.
func (a *attached) unseen() string {
	for _, m := range a.header.Missing {
		if m.What == launchCommand {
			return m.Reason
		}
	}
	return "it may run on another machine"
}

// noBook is the journal of a dry run: nothing can be written, so nothing is done.
type noBook struct{}

func (noBook) Write(journal.Record) error         { return errors.New(errDry) }
func (noBook) Keep(*apply.Launch) (string, error) { return "", errors.New(errDry) }
func (noBook) Launch(string) (*apply.Launch, error) {
	return nil, errors.New(errDry)
}
func (noBook) Dir() string { return "the journal's directory" }

// rehearse is the pilot of a dry run: hands that only say what they would do, on a
// server that has to run already.
func (o *tuneOptions) rehearse(ctx context.Context, l *locator) (*pilot, error) {
	a, err := l.attach(ctx)
	if err != nil {
		if o.auto.mode() == modeExec && signalOf(ctx) == 0 {
			err = fmt.Errorf("--dry-run measures the server that runs and starts none: %w", err)
		}
		return nil, notRunning(err)
	}
	defer a.close()
	p := &pilot{dry: true, quiet: o.json}
	if o.auto.mode() == modeNone {
		return p, nil
	}
	plan, err := o.handsPlan(l, noBook{}, a.identity())
	if err != nil {
		return nil, fail(exitError, err)
	}
	a.known(&plan)
	if o.auto.mode() == modeExec {
		p.hands, err = apply.NewExec(o.auto.command, plan)
	} else {
		p.hands, err = o.handsOn(a, plan)
	}
	if err != nil {
		return nil, fail(exitError, err)
	}
	return p, nil
}
