package main

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/collect/ggml"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

func newDoctor(w *cli.World) *cobra.Command {
	var o attach.Options
	g := cli.GroupFlags(newCommand("doctor", noArgs, func(c *cobra.Command, _ []string) error { return doctor(c.Context(), w, &o) }))
	o.Env = w.Env
	o.RegisterServer(g)
	o.RegisterUnread(g)
	o.Output.Register(g, "minor gaps")
	return g.Done()
}

func doctor(ctx context.Context, w *cli.World, o *attach.Options) error {
	if err := o.Check(); err != nil {
		return err
	}
	access, err := o.Access(ctx)
	if err != nil {
		return err
	}
	tracing, steps := traceChecks(ggml.Ladder())
	locator := attach.NewLocator(o)
	server, err := locator.Open(ctx)
	var page tuning.Purpose
	var checks []tuning.Check
	var code cli.ExitCode
	var coded *cli.CodedError
	switch {
	case errors.As(err, &coded) && coded.Code == cli.ExitUnreachable:
		checks, code = make([]tuning.Check, 1), coded.Code
		page, checks[0] = unserved(coded.Err, locator.Known(), o.Kube)
	case err != nil:
		return err
	default:
		defer server.Close()
		if page, checks, code, err = served(ctx, server, o); err != nil {
			return err
		}
	}
	list := []tuning.Purpose{page, tracing}
	if server == nil && tracing.Can && !locator.Known() {
		slices.Reverse(list)
		code = cli.ExitDone
	}
	result := tuning.Doctor{Purposes: list, Checks: slices.Concat(checks, access, steps)}
	if err := cli.Print(w, &o.Output, result, cli.Text(tuning.Doctor.Page), document.WriteDoctor); err != nil {
		return err
	}
	return cli.Exit(code)
}

// served returns the result for a server that answers, and the exit code.
func served(ctx context.Context, server *attach.Server, o *attach.Options) (page tuning.Purpose, checks []tuning.Check, code cli.ExitCode, err error) {
	if checks, err = server.Examine(ctx); err != nil {
		return page, nil, code, err
	}
	if o.Verbose {
		checks = append(checks, server.Unexamined(checks)...)
	}
	for i := range checks {
		checks[i].For = serverPurpose
	}
	at, command := server.Target.Metrics(), []string{"rooftop", "diagnose", "--url", server.Target.Metrics()}
	if o.Kube != "" {
		at, command = o.Kube, []string{"rooftop", "diagnose", "--kube", o.Kube}
	}
	name := catalog.EngineOf(server.Header.Inputs.Engine).Name
	page = tuning.Purpose{
		ID: serverPurpose, Commands: serverCommands, Can: checks[0].State != tuning.CheckBad,
		Found: name + " answers at " + at + ".", Next: launch.Line(command...),
	}
	dead := slices.IndexFunc(checks, func(c tuning.Check) bool { return c.Name == attach.HealthCheck && c.State == tuning.CheckBad })
	switch {
	case !page.Can:
		page.Found, page.Next = checks[0].Found, ""
	case dead >= 0:
		page.Can, page.Found, page.Next = false, name+" answers at "+at+", but its engine is dead.", checks[dead].Next
	}
	if dead >= 0 {
		code = cli.ExitUnhealthy
	}
	return page, checks, code, nil
}

// Purposes that doctor checks.
const (
	serverPurpose  = "server"
	serverCommands = "tune, diagnose and probe a server"
	tracePurpose   = "trace"
	traceCommands  = "trace a GGML runtime"
)

// unserved returns the result if no server could be read, of the workload that --kube names where it does. If no
// server was named and none was found, that is not a fault of the machine.
func unserved(why error, meant bool, workload string) (tuning.Purpose, tuning.Check) {
	p := tuning.Purpose{ID: serverPurpose, Commands: serverCommands, Found: "No inference server can be read."}
	c := tuning.Check{
		For: serverPurpose, Name: "metrics page", State: tuning.CheckBad, Found: why.Error(),
		Effect: "nothing can be measured", Next: "start the server, or say where it is with --url; 'rooftop probe' takes any server with the OpenAI API",
	}
	if workload != "" {
		c.Next = "check the name (kubectl get deployments,statefulsets), and give the account the Role of docs/kubernetes-role.yaml"
	}
	if !meant {
		p.Found = "No inference server was found on this machine, and none was named with --url."
		c.State, c.Effect = tuning.CheckAbsent, "tune, diagnose and probe have no server to read"
	}
	return p, c
}

// traceChecks returns the steps to trace a GGML runtime on this machine, independent of the server,
// and whether tracing is possible.
func traceChecks(ladder []ggml.Rung) (tuning.Purpose, []tuning.Check) {
	p := tuning.Purpose{ID: tracePurpose, Commands: traceCommands, Can: true, Found: "Everything it needs is available.", Next: "rooftop trace"}
	var list []tuning.Check
	for _, r := range ladder {
		c := tuning.Check{For: tracePurpose, Name: "trace: " + r.Name, State: tuning.CheckOK, Found: r.Found, Effect: r.Missing, Next: r.Next}
		switch {
		case r.OK:
		case r.Needed:
			c.State = tuning.CheckBad
			if p.Can { // the steps are in the order in which the user takes them
				p.Can, p.Found, p.Next = false, "First missing: "+r.Name+" ("+r.Found+").", r.Next
			}
		default:
			c.State = tuning.CheckAbsent
		}
		list = append(list, c)
	}
	return p, list
}
