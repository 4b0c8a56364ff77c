// Command rooftop tunes vLLM inference servers: it measures a running server,
// compares it with what its hardware allows, and names the one change to make.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
)

func main() {
	launcher.BecomeServer()
	cli.CatchBrokenPipes()
	log.SetOutput(io.Discard) // net/http's log messages would disturb the screen; its errors have the same information
	os.Exit(int(run(cli.World{
		Args:    os.Args[1:],
		Env:     os.LookupEnv,
		Stdin:   os.Stdin,
		Stdout:  os.Stdout,
		Stderr:  os.Stderr,
		Replace: replaceProcess,
	})))
}

// replaceProcess replaces this process by rooftop with other arguments. It returns only if the
// system cannot do that.
func replaceProcess(args []string) {
	if program, err := os.Executable(); err == nil {
		_ = syscall.Exec(program, append([]string{os.Args[0]}, args...), os.Environ())
	}
}

// run executes one command line and returns its exit code. It prints every failure as one sentence
// on stderr. A reader of stdout or stderr that stalls holds up only its end.
func run(w cli.World) (code cli.ExitCode) {
	stdout, stderr := cli.NewOutlet(w.Stdout), cli.NewOutlet(w.Stderr)
	w.Stdout, w.Stderr = stdout, stderr
	ctx, stop := cli.SignalContext()
	defer stop()
	code = guarded(ctx, w)
	err := stdout.Drain(ctx, func(left int) {
		w.Notef("waiting for the reader of the output, which has not read %d bytes; Ctrl-C ends without it", left)
	})
	switch {
	case errors.Is(err, syscall.EPIPE) && code == cli.ExitDone:
		code = cli.ExitBrokenPipe
	case errors.Is(err, syscall.EPIPE):
	case err != nil:
		w.Notef("stdout: %v", err)
		code = max(code, cli.ExitError)
	}
	_ = stderr.Drain(ctx, nil)
	return code
}

// guarded executes one command line, and turns a panic into an exit code.
func guarded(ctx context.Context, w cli.World) (code cli.ExitCode) {
	defer func() {
		if p := recover(); p != nil {
			w.Notef("internal error: %v; please report this with the command line", p)
			code = cli.ExitError
		}
	}()
	return execute(ctx, w)
}

// execute runs one command line until it is done or ctx ends.
func execute(ctx context.Context, w cli.World) cli.ExitCode {
	root := newRoot(&w)
	root.SetArgs(withDefaultCommand(w.Args))
	root.SetOut(w.Stdout)
	root.SetErr(w.Stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return cli.ExitDone
	}
	code, text := cli.ExitUsage, err // cobra's own errors, such as an unknown command
	var coded *cli.CodedError
	if errors.As(err, &coded) {
		code, text = coded.Code, coded.Err
	} else if strings.HasPrefix(err.Error(), "unknown command") {
		var names []string
		for _, c := range root.Commands() {
			names = append(names, c.Name())
		}
		text = fmt.Errorf("%w%s; 'rooftop --help' lists the commands", err, cli.Suggestion(w.Args[0], names...))
	}
	switch {
	case errors.Is(err, syscall.EPIPE) && (coded == nil || code == cli.ExitError):
		return cli.ExitBrokenPipe
	case text != nil:
		w.Notef("%s", text)
	}
	return code
}

// withDefaultCommand adds the default command, the screen, if there is none.
func withDefaultCommand(args []string) []string {
	if len(args) == 0 {
		return []string{"tune"}
	}
	switch first := args[0]; {
	case first == "--version":
		return append([]string{"version"}, args[1:]...)
	case first == "-h", first == "--help", !strings.HasPrefix(first, "-"), first == "-", first == "--":
		return args
	}
	return append([]string{"tune"}, args...)
}

// newRoot returns the command tree.
func newRoot(w *cli.World) *cobra.Command {
	root := newCommand("rooftop", nil, nil)
	root.SilenceErrors, root.SilenceUsage, root.DisableSuggestions = true, true, true
	root.CompletionOptions.HiddenDefaultCmd = true
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"Tune a server:", []*cobra.Command{newTune(w), newDiagnose(w), newFleet(w), newExporter(w), newRules(w), newDoctor(w), newMCP(w)}},
		{"Measure requests and operators, any engine:", []*cobra.Command{newProbe(w), newObserve(w), newTrace(w)}},
		{"Past runs:", []*cobra.Command{newHistory(w), newReport(w), newRecover(w), newCompare(w)}},
		{"Without a server:", []*cobra.Command{newDemo(w), newReplay(w), newCeiling(w)}},
		{"Reference:", []*cobra.Command{newExplain(w), newCatalog(w)}},
		{"Simulated servers and load:", []*cobra.Command{newSim(w), newLoad(w)}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
		}
		root.AddCommand(g.commands...)
	}
	root.AddCommand(newVersion(w), newMan())
	root.SetHelpCommand(newHelp(w))
	root.SetFlagErrorFunc(cli.FlagError)
	wire(root, w)
	return root
}

// wire sets what all commands have in common: environment variables for flags, and ExitError for
// errors without an exit code.
func wire(c *cobra.Command, w *cli.World) {
	if run := c.RunE; run != nil {
		c.RunE = func(c *cobra.Command, args []string) error {
			if err := cli.FromEnvironment(c.Flags(), w.Env); err != nil {
				return err
			}
			if err := cli.OneForm(c); err != nil {
				return err
			}
			return cli.Coded(run(c, args))
		}
	}
	for _, sub := range c.Commands() {
		wire(sub, w)
	}
}
