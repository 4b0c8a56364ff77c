package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/autopilot"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/mcpserver"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// mcpOptions are the flags of mcp.
type mcpOptions struct {
	urls    []string
	changes string
	keyFile string
	caFile  string

	named      []collect.Target // parsed from urls
	changeable collect.Target   // parsed from changes
}

func newMCP(w *cli.World) *cobra.Command {
	var o mcpOptions
	c := newCommand("mcp", noArgs, func(c *cobra.Command, _ []string) error {
		if f := c.Flags().Lookup("allow-changes"); cli.FromVariable(f) {
			return cli.Usagef("--allow-changes lets an agent restart a server: give it on the command line, not as a variable")
		}
		if err := o.check(w); err != nil {
			return err
		}
		if !o.changeable.IsZero() && os.Getenv(keeping) == "" {
			return keepChanges(c.Context(), w)
		}
		return serveMCP(c.Context(), w, &o)
	})
	g := cli.GroupFlags(c)
	f := g.Group("The servers")
	f.StringArrayVarP(&o.urls, "url", "u", nil, "`URL` of a server on another machine that may be measured (repeatable)")
	f.StringVar(&o.changes, "allow-changes", "", "let the agent restart the server at `URL`, on this machine, with one changed setting at a time")
	f.StringVar(&o.keyFile, "api-key-file", "", "`FILE` that holds the API key of the servers of --url and --allow-changes (default the variable ROOFTOP_API_KEY)")
	f.StringVar(&o.caFile, "ca-file", "", "PEM `FILE` of certificates to trust instead of the system's")
	return g.Done()
}

// check parses the options.
func (o *mcpOptions) check(w *cli.World) error {
	for _, url := range o.urls {
		t, err := attach.ParseTarget(url)
		if err != nil {
			return err
		}
		o.named = append(o.named, t)
	}
	if o.changes != "" {
		var err error
		if o.changeable, err = collect.ParseTarget(o.changes); err != nil {
			return cli.Usagef("--allow-changes: %w", err)
		}
		if !attach.Here(o.changeable) {
			return cli.Usagef("--allow-changes %s is not an address of this machine, where the server would be restarted; give it as http://localhost:8000", o.changes)
		}
	}
	_, err := attach.APIKey(w.Env, o.keyFile)
	return err
}

// options returns the options of a measurement, as of 'rooftop diagnose' with flags.
func (o *mcpOptions) options(w *cli.World, named bool, flags ...string) (*attach.Options, error) {
	given := &attach.Options{Env: w.Env}
	c := new(cobra.Command)
	g := cli.GroupFlags(c)
	given.RegisterServer(g)
	given.RegisterRun(g, defaultMeasure, "to measure")
	given.RegisterUnread(g)
	g.Done()
	if named {
		flags = append(flags, "--api-key-file="+o.keyFile, "--ca-file="+o.caFile)
	} else {
		// A server at an address that only the agent gave does not get the key.
		given.Env = func(name string) (string, bool) {
			if strings.HasPrefix(name, "ROOFTOP_API_KEY") {
				return "", false
			}
			return w.Env(name)
		}
	}
	if err := c.ParseFlags(flags); err != nil {
		return nil, cli.Usagef("%w", err)
	}
	if err := cli.FromEnvironment(c.Flags(), given.Env); err != nil {
		return nil, err
	}
	return given, given.Check()
}

// serveMCP answers an agent on stdin and stdout.
func serveMCP(ctx context.Context, w *cli.World, o *mcpOptions) error {
	s := mcpserver.New(mcpserver.Config{
		Version: cli.Version(), Env: w.Env,
		Command: func(ctx context.Context, args ...string) (string, error) { return outputOf(ctx, w, args) },
		Options: func(named bool, flags ...string) (*attach.Options, error) { return o.options(w, named, flags...) },
		Found:   attach.Listed,
		Attach: func(ctx context.Context, given *attach.Options) (*session.Server, error) {
			a, err := attach.Open(ctx, given)
			if err != nil {
				return nil, err
			}
			return a.Session(), nil
		},
		Named: o.named, Changeable: o.changeable,
		Take: func(ctx context.Context) (*mcpserver.Control, error) { return o.take(ctx, w) },
	})
	if !o.changeable.IsZero() {
		defer cli.OnSignals(ctx, autopilot.OnSignals(w, "reverting the change that is not kept"))()
	}
	in, ok := w.Stdin.(io.ReadCloser)
	if !ok {
		in = io.NopCloser(w.Stdin)
	}
	return s.Serve(ctx, in, writeCloser{ownFile(w.Stdout)})
}

// ownFile returns the file that w writes to, or else w. The server of tools must notice a client that
// reads no answers, which an outlet hides; the process that makes the changes writes by itself.
func ownFile(w io.Writer) io.Writer {
	if f, ok := cli.File(w); ok {
		return f
	}
	return w
}

type writeCloser struct{ io.Writer }

func (writeCloser) Close() error { return nil }

// outputOf runs a command of rooftop and returns what it prints.
func outputOf(ctx context.Context, w *cli.World, args []string) (string, error) {
	var out, errs bytes.Buffer
	if code := execute(ctx, cli.World{Args: args, Env: w.Env, Stdout: &out, Stderr: &errs}); code != cli.ExitDone {
		return "", errors.New(strings.TrimPrefix(strings.TrimSpace(errs.String()), "rooftop: "))
	}
	return out.String(), nil
}

// take takes control of the server that may be changed, for one change.
func (o *mcpOptions) take(ctx context.Context, w *cli.World) (*mcpserver.Control, error) {
	given, err := o.options(w, true, "--url="+o.changeable.String())
	if err != nil {
		return nil, err
	}
	quiet := *w
	quiet.Stdin = nil // the agent's
	auto, l := autopilot.InPlace(), attach.NewLocator(given)
	if err := l.Begin(ctx, &quiet, false); err != nil {
		return nil, err
	}
	p, err := autopilot.Take(ctx, &quiet, l, given, &auto)
	if err != nil {
		return nil, err
	}
	server, err := p.Attaching(l.Finding(nil))(ctx)
	if err != nil {
		return nil, errors.Join(err, p.Settle(context.WithoutCancel(ctx), nil))
	}
	server.Close() // the change needs no connection
	return &mcpserver.Control{Server: server, Within: auto.Within(), Tell: p.Follow(func(loop.Event) {}), End: p.Settle}, nil
}

// keeping is the variable that marks the process that makes the changes.
const keeping = "ROOFTOP_MCP_KEEPS_CHANGES"

// pipesClose limits the time to pass on the agent's last message.
const pipesClose = time.Second

// keepChanges serves in a separate process with its own session, and relays messages between it and the agent. An agent
// ends its servers within seconds, finally by SIGKILL; reverting a change takes as long as a model loads.
func keepChanges(ctx context.Context, w *cli.World) error {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.CommandContext(context.WithoutCancel(ctx), program, w.Args...)
	c.Env = append(os.Environ(), keeping+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	c.Stdout, c.Stderr, c.WaitDelay = ownFile(w.Stdout), ownFile(w.Stderr), pipesClose
	in, err := c.StdinPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	defer cli.OnSignals(ctx, func(n int, s syscall.Signal) {
		switch {
		case n == 2:
			w.Notef("process %d is reverting the change that is not kept, and finishes that in any case", c.Process.Pid)
		case n > 2:
			os.Exit(128 + int(s))
		}
	})()
	context.AfterFunc(ctx, func() { _ = in.Close() })
	go func() {
		_, _ = io.Copy(in, w.Stdin)
		_ = in.Close()
	}()
	err = c.Wait()
	if code := cli.SignalCode(ctx); code != 0 {
		return cli.Exit(code)
	}
	return err
}
