package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply"
	"github.com/rooftop-dev/rooftop/collect"
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
		p, err := o.rehearse(ctx, l)
		if p != nil {
			p.quiet = o.json
		}
		return p, err
	}
	if o.auto.mode() == modeNone {
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
		return err
	}
	return fail(exitUnreachable, err)
}

func (o *tuneOptions) takeCommand(ctx context.Context, w *world, l *locator, root string) (*pilot, error) {
	return nil, errors.New("stub")
}

func (o *tuneOptions) takeRunning(ctx context.Context, w *world, l *locator, root string) (*pilot, error) {
	return nil, errors.New("stub")
}

func (o *tuneOptions) rehearse(ctx context.Context, l *locator) (*pilot, error) {
	return &pilot{dry: true}, nil
}
