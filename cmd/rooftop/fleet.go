package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/fleetscan"
	"github.com/rooftop-dev/rooftop/cmd/internal/pastruns"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/fleet"
	fleetscreen "github.com/rooftop-dev/rooftop/tui/fleet"
)

// fleetOptions are the flags of the fleet.
type fleetOptions struct {
	attach.Options
	past   fleetscan.Scraped
	polled fleetscan.Polled
	screen screenOptions
	pause  time.Duration
	report string // file of a report, "" for none
}

// Times of the screen: between two readings, and a reading of servers that are polled.
const (
	fleetPause    = 30 * time.Second
	fleetDuration = 30 * time.Second
)

func newFleet(w *cli.World) *cobra.Command {
	o := fleetOptions{Options: attach.Options{Env: w.Env, Ceiling: attach.PhysicalCeiling}}
	c := newCommand("fleet", noArgs, func(c *cobra.Command, _ []string) error { return showFleet(c.Context(), w, &o) })
	g := cli.GroupFlags(c)
	o.Flags = c.Flags()
	o.past.Register(g.Group("The servers, from Prometheus"))
	f := g.Group("The servers, polled")
	o.polled.Register(f)
	o.RegisterKube(f)
	f.Lookup("kube").Usage = "`PODS` of Kubernetes, as [NAMESPACE/]deployment/NAME, statefulset/NAME or KEY=VALUE of their labels"
	o.RegisterDuration(f, fleetDuration, "to poll each of them")
	o.RegisterAccess(f)
	o.RegisterUnread(g)
	f = g.Group("The screen")
	f.DurationVar(&o.pause, "pause", fleetPause, "`TIME` between two readings, at least 5s")
	o.screen.Register(f)
	o.Output.Register(g, "")
	g.Group("A report").StringVarP(&o.report, "output", "o", "", "new `FILE` for a report to send around: .md, .html or .json")
	return g.Done()
}

// check rejects invalid options, before a server is contacted.
func (o *fleetOptions) check() error {
	if _, err := o.past.Span(time.Now()); err != nil {
		return err
	}
	var sources []string
	for _, s := range [...]struct{ flag, given string }{{"--prometheus", o.past.Prometheus}, {"--urls", o.polled.File}, {"--kube", o.Kube}} {
		if s.given != "" {
			sources = append(sources, s.flag+" "+s.given)
		}
	}
	switch {
	case len(sources) > 1:
		return cli.Usagef("fleet: %s both name servers: give one of them", strings.Join(sources[:2], " and "))
	case len(sources) == 0:
		return cli.Usagef("fleet: give one of --prometheus URL (the Prometheus server that scrapes the servers), --urls FILE and --kube [NAMESPACE/]deployment/NAME")
	case o.past.Prometheus != "" && o.Flags.Changed("duration"):
		return cli.Usagef("--duration is for servers that are polled; with --prometheus give --since")
	case o.pause < leastPause:
		return cli.Usagef("--pause %v is too short: at least %v", o.pause, leastPause)
	case o.report != "" && pastruns.FormatOf(o.report) == "":
		return cli.Usagef("--output %s: end the name in .md, .html or .json", o.report)
	}
	if err := cmp.Or(o.Check(), o.screen.Check()); err != nil {
		return err
	}
	switch {
	case o.Kube != "":
		return o.CheckReplicas()
	case o.polled.File != "":
		return o.polled.Check(&o.Options)
	}
	return o.past.Check()
}

// read diagnoses the servers.
func (o *fleetOptions) read(ctx context.Context, progress func(done, all int)) ([]fleet.Server, error) {
	if o.past.Prometheus == "" {
		return o.polled.Fleet(ctx, &o.Options, progress)
	}
	span, err := o.past.Span(time.Now())
	if err != nil {
		return nil, err
	}
	return o.past.Fleet(ctx, &o.Options, span, progress)
}

// source says where the servers are read from.
func (o *fleetOptions) source() string {
	if o.past.Prometheus == "" {
		return o.polled.Source(&o.Options)
	}
	return o.past.Prometheus
}

func showFleet(ctx context.Context, w *cli.World, o *fleetOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	if o.report == "" && screenPossible(w, &o.Output) {
		return watchFleet(ctx, w, o)
	}
	show := cli.NewProgress(w, &o.Output)
	list, err := o.read(ctx, func(done, all int) { show.Show(fmt.Sprintf("reading %d of %s", done, figure.Counted(all, "server"))) })
	show.Done()
	if err != nil {
		return err
	}
	if err := errors.Join(printFleet(w, o, list), o.writeReport(list)); err != nil {
		return err
	}
	return cli.Exit(fleetCode(list))
}

// writeReport writes a report of the list to a new file, if the user asks for one.
func (o *fleetOptions) writeReport(list []fleet.Server) error {
	if o.report == "" {
		return nil
	}
	p := fleet.Page(list)
	p.Foot = "Read from " + o.source() + ", " + time.Now().UTC().Format(time.RFC3339) + "."
	var b bytes.Buffer
	var err error
	switch pastruns.FormatOf(o.report) {
	case pastruns.JSON:
		err = document.WriteFleet(&b, list)
	case pastruns.HTML:
		err = render.HTML(&b, p)
	default:
		err = render.Markdown(&b, p)
	}
	if err != nil {
		return err
	}
	return writeNew(o.report, b.Bytes())
}

func printFleet(w *cli.World, o *fleetOptions, list []fleet.Server) error {
	return cli.Print(w, &o.Output, list, cli.Text(fleet.Page), document.WriteFleet)
}

// fleetCode returns the exit code of a list: that of the worst server.
func fleetCode(list []fleet.Server) cli.ExitCode {
	code := cli.ExitNothing
	for i := range list {
		switch s := &list[i]; {
		case s.Condition.Ill():
			return cli.ExitUnhealthy
		case s.Unread != "":
		case s.Changes():
			return cli.ExitRecommendation
		case outcomeCode(&s.Diagnosis) == cli.ExitDone:
			code = cli.ExitDone
		}
	}
	if list[0].Unread != "" {
		return cli.ExitUnreachable
	}
	return code
}

// watchFleet shows the servers on the screen until the user leaves it, and prints the last list then.
func watchFleet(ctx context.Context, w *cli.World, o *fleetOptions) error {
	restore := terminalRestorer(w)
	defer cli.OnSignals(ctx, func(n int, s syscall.Signal) {
		if n > 1 { // the first signal ends ctx
			restore()
			os.Exit(128 + int(s))
		}
	})()
	reading, stop := context.WithCancel(ctx)
	defer stop()
	list := fleetscan.New(o.source(), o.pause, attach.Stopwatch(), o.read)
	go list.Run(reading)
	loud := silenceLibraries()
	err := fleetscreen.New(list, list.Again, o.screen.TUI(w, &o.Output)).Run(ctx)
	loud()
	stop()
	switch code := cli.SignalCode(ctx); {
	case code != 0:
		return cli.Exit(code)
	case err != nil:
		return err
	}
	last := list.Latest()
	if last.Servers == nil {
		return list.Err()
	}
	if err := printFleet(w, o, last.Servers); err != nil {
		return err
	}
	if last.Failed != "" {
		w.Notef("this list is %s old: %s", figure.Elapsed(last.Age()), last.Failed)
	}
	return nil
}
