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
	"github.com/rooftop-dev/rooftop/cmd/internal/report"
)

// recoverOptions are the flags of recover.
type recoverOptions struct {
	output
	yes    bool
	dry    bool
	leave  bool
	start  time.Duration
	server options // its key and certificates
}

func newRecover(w *world) *cobra.Command {
	o := recoverOptions{start: apply.ReadyWithin}
	c := &cobra.Command{
		Use:   "recover",
		Short: "After a crash: what a run left, and the server put back",
		Long: `Looks at every server of this machine whose run of 'rooftop tune' was cut off
(by kill -9, a crash, a power cut), says what it finds and what it would do, and
asks.

With a yes the server runs again what it is to run: the configuration that was
kept last, or the one that was found, with its exact command line, environment,
working directory, user and limits, and its configuration file byte for byte.
Where that runs already it is left running. A process that the run did not start
is never stopped. It may be interrupted, or killed, and done again.

Where a program makes the changes (--apply-cmd) it is called with the way back.
Where the journal is damaged, or a newer rooftop wrote it, nothing is touched.

EXIT CODES
  0      nothing is left to put right
  1      something could not be put right
  2      the command line is off
  3      something is to be put right, and nobody said yes
  128+n  ended by signal n`,
		Example: "  rooftop recover\n  rooftop recover --dry-run\n  rooftop recover --yes --json",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := o.check(c); err != nil {
				return err
			}
			return putRight(c.Context(), w, &o)
		},
	}
	o.server.env = w.env
	g := groupFlags(c)
	f := g.group("What to do")
	f.BoolVarP(&o.yes, "yes", "y", false, "do it without asking")
	f.BoolVar(&o.dry, "dry-run", false, "say what would be done; touch nothing")
	f.BoolVar(&o.leave, "leave", false, "touch no server, and end the runs in the journal: for what you have put right yourself")
	f = g.group("The server")
	f.DurationVar(&o.start, "start-timeout", apply.ReadyWithin, "`TIME` for a start, until /health answers")
	f.StringVar(&o.server.apiKeyFile, "api-key-file", "", "`FILE` that holds the server's API key (default the one that it was launched with)")
	f.StringVar(&o.server.caFile, "ca-file", "", "PEM `FILE` of certificates to trust instead of the system's")
	registerPrinted(g, &o.output)
	g.done()
	return c
}

func (o *recoverOptions) check(c *cobra.Command) error {
	if err := fromEnvironment(c.Flags(), o.server.env); err != nil {
		return err
	}
	if err := o.output.check(); err != nil {
		return err
	}
	switch {
	case o.dry && (o.yes || o.leave):
		return usage("recover: --dry-run touches nothing; leave it out, or --yes and --leave")
	case o.start < time.Second:
		return usage("recover: --start-timeout %v: give at least 1s", o.start)
	}
	return nil
}

// key is the text of the API key that was given, "" without one.
func (o *recoverOptions) key() (string, error) {
	if _, err := o.server.token(); err != nil || o.server.apiKeyFile == "" {
		text, _ := o.server.env("ROOFTOP_API_KEY")
		return strings.TrimSpace(text), err
	}
	text, err := readFile(o.server.apiKeyFile, 1<<16)
	if err != nil {
		return "", usage("--api-key-file: %w", err)
	}
	return strings.TrimSpace(string(text)), nil
}

// Ends of what was found of one server.
const (
	recoverLeft   = "left alone" // not for this rooftop
	recoverOpen   = "to do"
	recoverDone   = "done"
	recoverFailed = "failed"
)

// putRight goes through everything that was cut off.
func putRight(ctx context.Context, w *world, o *recoverOptions) error {
	state, err := stateDir(w.env)
	if err != nil {
		return fail(exitError, errors.New("neither XDG_STATE_HOME nor HOME names a directory, so there is no journal"))
	}
	root := apply.Root(state)
	found, err := apply.Survey(root)
	if err != nil {
		return fail(exitError, err)
	}
	if !o.dry {
		if err := apply.Tidy(root); err != nil {
			return fail(exitError, err)
		}
	}
	key, err := o.key()
	if err != nil {
		return err
	}
	r := &recovery{w: w, o: o, repair: apply.Repair{Version: buildVersion(), Ready: apply.Readiness{Within: o.start, APIKey: key, CAFile: o.server.caFile}}}
	if !o.json {
		r.repair.Say = func(text string) { fmt.Fprintf(w.stderr, "  … %s\n", text) }
	}
	for i := range found {
		if err := r.one(ctx, &found[i]); err != nil {
			return err
		}
		if code := signalOf(ctx); code != 0 {
			return fail(code, r.end())
		}
	}
	return r.finish(len(found))
}

// recovery is one call of recover.
type recovery struct {
	w      *world
	o      *recoverOptions
	repair apply.Repair
	answer *bufio.Reader
	list   []report.Recovered
}

// one says what is found of a server, and has it put right.
func (r *recovery) one(ctx context.Context, l *apply.Left) error {
	item := report.Recovered{
		Server: l.Identity.String(), Dir: l.Dir, Run: l.State.Run, Began: l.State.Begun, Remedy: string(l.Remedy),
		Found: l.Found, Steps: l.Steps, Why: l.Why, End: recoverOpen,
	}
	if l.Remedy == apply.LeaveAlone {
		item.End = recoverLeft
	}
	if l.Remedy == apply.Impossible && !r.o.leave {
		item.End = recoverFailed
	}
	if !r.o.json {
		if err := report.WriteRecovered(r.w.stdout, &item, r.o.style(r.w)); err != nil {
			return fail(exitError, err)
		}
	}
	if item.End == recoverOpen && r.agreed() {
		err := r.do(ctx, l)
		item.End = recoverDone
		if err != nil {
			item.End, item.Why = recoverFailed, err.Error()
		}
		if !r.o.json {
			r.told(&item)
		}
	}
	r.list = append(r.list, item)
	return nil
}

func (r *recovery) do(ctx context.Context, l *apply.Left) error {
	if r.o.leave {
		return r.repair.Abandon(l)
	}
	err := r.repair.Do(ctx, l)
	var changed *apply.ChangedError
	if errors.As(err, &changed) && r.o.yes {
		// A yes that was given before anything was seen holds for what is there now.
		return r.repair.Do(ctx, &changed.Now)
	}
	return err
}

func (r *recovery) told(item *report.Recovered) {
	if item.End == recoverDone {
		fmt.Fprintln(r.w.stdout, "Done.")
		return
	}
	fmt.Fprintf(r.w.stderr, "rooftop: %s: %s\n", item.Server, item.Why)
}

// agreed asks, where somebody is there to answer.
func (r *recovery) agreed() bool {
	if r.o.yes || r.o.leave {
		return true
	}
	if r.o.dry || r.o.json || r.w.stdin == nil || !terminalInput(r.w.stdin) {
		return false
	}
	if r.answer == nil {
		r.answer = bufio.NewReader(r.w.stdin)
	}
	fmt.Fprint(r.w.stdout, "Do this? [y/N] ")
	text, err := r.answer.ReadString('\n')
	if errors.Is(err, io.EOF) {
		fmt.Fprintln(r.w.stdout)
	}
	text = strings.ToLower(strings.TrimSpace(text))
	return text == "y" || text == "yes"
}

// end writes the document of --json.
func (r *recovery) end() error {
	if !r.o.json {
		return nil
	}
	return report.WriteRecoveredJSON(r.w.stdout, r.list)
}

func (r *recovery) finish(found int) error {
	if err := r.end(); err != nil {
		return fail(exitError, err)
	}
	if found == 0 && !r.o.json {
		fmt.Fprintln(r.w.stdout, "Nothing is left to put right.")
	}
	open := 0
	for i := range r.list {
		switch r.list[i].End {
		case recoverFailed:
			return exit(exitError)
		case recoverOpen:
			open++
		}
	}
	if open == 0 {
		return nil
	}
	if !r.o.json {
		fmt.Fprintln(r.w.stderr, "rooftop: nothing was touched; 'rooftop recover --yes' does it without asking")
	}
	return exit(exitRecommendation)
}
