package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply"
	"github.com/rooftop-dev/rooftop/cmd/internal/apply/kubernetes"
	"github.com/rooftop-dev/rooftop/cmd/internal/apply/manager"
	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/autopilot"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

// recoverOptions are the flags of recover.
type recoverOptions struct {
	cli.Output
	yes    bool
	dry    bool
	leave  bool
	start  time.Duration
	server attach.Options // API key and certificates
}

func newRecover(w *cli.World) *cobra.Command {
	o := recoverOptions{start: apply.ReadyWithin}
	c := newCommand("recover", noArgs, func(c *cobra.Command, _ []string) error {
		if err := o.check(); err != nil {
			return err
		}
		return recoverAll(c.Context(), w, &o)
	})
	o.server.Env = w.Env
	g := cli.GroupFlags(c)
	f := g.Group("What to do")
	f.BoolVarP(&o.yes, "yes", "y", false, "do it without asking")
	f.BoolVar(&o.dry, "dry-run", false, "print what would be done; change nothing")
	f.BoolVar(&o.leave, "leave", false, "touch no server, and end the runs in the journal; use it if you have restored the server yourself")
	f = g.Group("The server")
	o.server.RegisterKube(f)
	f.DurationVar(&o.start, "start-timeout", apply.ReadyWithin, "`TIME` that a start may take, until /health answers")
	f.StringVar(&o.server.APIKeyFile, "api-key-file", "", "`FILE` that holds the server's API key (default the one that it was launched with)")
	f.StringVar(&o.server.CAFile, "ca-file", "", "PEM `FILE` of certificates to trust instead of the system's")
	o.Output.Register(g, "")
	return g.Done()
}

func (o *recoverOptions) check() error {
	switch {
	case o.dry && (o.yes || o.leave):
		return cli.Usagef("recover: --dry-run touches nothing; leave it out, or --yes and --leave")
	case o.leave && o.server.Kube != "":
		return cli.Usagef("recover: --leave is for journals, and the journal of --kube %s may be on another machine: run 'rooftop recover --leave' there", o.server.Kube)
	case o.server.Context != "" && o.server.Kube == "":
		return cli.Usagef("recover: --context %s goes with --kube; a journal has its own context", o.server.Context)
	case o.start < time.Second:
		return cli.Usagef("recover: --start-timeout %v: give at least 1s", o.start)
	}
	return nil
}

// Outcomes for one server.
const (
	recoverLeft   = "left alone" // only another rooftop or machine can see whether it runs as it was
	recoverOpen   = "to do"
	recoverDone   = "done"
	recoverFailed = "failed"
)

// recoverAll handles every interrupted change.
func recoverAll(ctx context.Context, w *cli.World, o *recoverOptions) error {
	if o.server.Kube != "" {
		return (&recovery{w: w, o: o}).recoverWorkload(ctx)
	}
	state, err := cli.StateDir(w.Env)
	if err != nil {
		return errors.New("neither XDG_STATE_HOME nor HOME names a directory, so there is no journal")
	}
	root := serverdir.Root(state)
	found, err := apply.Survey(root)
	if err != nil {
		return err
	}
	if !o.dry {
		if err := serverdir.Tidy(root); err != nil {
			return err
		}
	}
	key, err := attach.APIKey(o.server.Env, o.server.APIKeyFile)
	if err != nil {
		return err
	}
	r := &recovery{w: w, o: o, repair: apply.Repair{Version: cli.Version(), Ready: apply.Readiness{Within: o.start, APIKey: key, CAFile: o.server.CAFile}}}
	if !o.JSON {
		r.repair.Progress = func(text string) { fmt.Fprintf(w.Stderr, "  … %s\n", cli.Printable(text)) }
	}
	for i := range found {
		if err := r.recoverServer(ctx, &found[i]); err != nil {
			return err
		}
		if code := cli.SignalCode(ctx); code != 0 {
			return cli.Fail(code, r.end())
		}
	}
	return r.finish(len(found))
}

// recovery is one run of recover.
type recovery struct {
	w      *cli.World
	o      *recoverOptions
	repair apply.Repair
	answer *bufio.Reader
	list   []tuning.Recovered
}

// recoverServer reports the findings about a server, and repairs it.
func (r *recovery) recoverServer(ctx context.Context, l *apply.Left) error {
	item := tuning.Recovered{
		Server: l.Identity.String(), Dir: l.Dir, Run: l.State.Run, Began: wallClock(l.State.Begun), Remedy: string(l.Remedy),
		Found: l.Found, Steps: l.Steps, Why: l.Why, End: recoverOpen,
	}
	if l.Remedy == apply.LeaveAlone {
		item.End = recoverLeft
	}
	if l.Remedy == apply.Impossible && !r.o.leave {
		item.End = recoverFailed
	}
	return r.offer(ctx, &item, func() error { return r.do(ctx, l) })
}

// recoverWorkload reports what any rooftop left in the workload of --kube, and restores it.
func (r *recovery) recoverWorkload(ctx context.Context) error {
	at, err := r.o.server.NamedWorkload()
	if err != nil {
		return err
	}
	left, found, err := kubernetes.Left(ctx, at, r.o.start)
	if err != nil {
		return cli.Fail(cli.ExitUnreachable, err)
	}
	if len(found) == 0 {
		return r.finish(0)
	}
	revert := &manager.Change{Revert: true}
	item := tuning.Recovered{Server: at.Place(), Remedy: string(apply.CallManager), Found: found, Steps: left.Steps(revert), End: recoverOpen}
	restore := func() error {
		if err := left.Make(ctx, revert); !errors.Is(err, manager.ErrRestored) {
			return err
		}
		return nil
	}
	if err := r.offer(ctx, &item, restore); err != nil {
		return err
	}
	return r.finish(1)
}

// offer shows the findings about a server, and makes the repair if the user agrees.
func (r *recovery) offer(ctx context.Context, item *tuning.Recovered, do func() error) error {
	if !r.o.JSON {
		if err := render.Text(r.w.Stdout, item.Page(), r.o.Style(r.w)); err != nil {
			return err
		}
	}
	if item.End == recoverOpen && r.agreed() {
		stop := cli.OnSignals(ctx, autopilot.OnSignals(r.w, "restoring the server"))
		err := do()
		stop()
		item.End = recoverDone
		if err != nil {
			item.End, item.Why = recoverFailed, err.Error()
		}
		if !r.o.JSON {
			r.report(item)
		}
	}
	r.list = append(r.list, *item)
	return nil
}

func (r *recovery) do(ctx context.Context, l *apply.Left) error {
	if r.o.leave {
		return r.repair.Abandon(l)
	}
	err := r.repair.Do(ctx, l)
	var changed *apply.ChangedError
	if errors.As(err, &changed) && r.o.yes {
		// --yes was given before the current state was known, so it covers that state.
		return r.repair.Do(ctx, &changed.Now)
	}
	return err
}

func (r *recovery) report(item *tuning.Recovered) {
	if item.End == recoverDone {
		fmt.Fprintln(r.w.Stdout, "Done.")
		return
	}
	r.w.Notef("%s: %s", item.Server, item.Why)
}

// agreed asks for confirmation, if there is a user to answer.
func (r *recovery) agreed() bool {
	if r.o.yes || r.o.leave {
		return true
	}
	if r.o.dry || r.o.JSON || r.w.Stdin == nil || !cli.TerminalInput(r.w.Stdin) {
		return false
	}
	if r.answer == nil {
		r.answer = bufio.NewReader(r.w.Stdin)
	}
	fmt.Fprint(r.w.Stdout, "Do this? [y/N] ")
	text, err := r.answer.ReadString('\n')
	if errors.Is(err, io.EOF) {
		fmt.Fprintln(r.w.Stdout)
	}
	text = strings.ToLower(strings.TrimSpace(text))
	return text == "y" || text == "yes"
}

// end writes the document of --json.
func (r *recovery) end() error {
	if !r.o.JSON {
		return nil
	}
	return document.WriteRecovered(r.w.Stdout, r.list)
}

func (r *recovery) finish(found int) error {
	if err := r.end(); err != nil {
		return err
	}
	if found == 0 && !r.o.JSON {
		fmt.Fprintln(r.w.Stdout, "Nothing is left to restore.")
	}
	open := 0
	for i := range r.list {
		switch r.list[i].End {
		case recoverFailed, recoverLeft:
			return cli.Exit(cli.ExitError)
		case recoverOpen:
			open++
		}
	}
	if open == 0 {
		return nil
	}
	if !r.o.JSON {
		again := []string{"rooftop", "recover", "--yes"}
		if kube := r.o.server.Kube; kube != "" {
			again = append(again, "--kube", kube)
		}
		r.w.Notef("nothing was touched; '%s' does it without asking", launch.Line(again...))
	}
	return cli.Exit(cli.ExitRecommendation)
}

// wallClock formats a time for documents, "" if it is unknown.
func wallClock(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(time.RFC3339Nano)
}
