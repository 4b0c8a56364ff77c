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
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply"
)

func main() {
	apply.BecomeServer()
	catchBrokenPipes()
	log.SetOutput(io.Discard) // net/http's words, in the middle of a screen; what matters of them is in its errors
	os.Exit(int(run(world{
		args:    os.Args[1:],
		env:     os.LookupEnv,
		stdin:   os.Stdin,
		stdout:  os.Stdout,
		stderr:  os.Stderr,
		replace: replaceProcess,
	})))
}

// catchBrokenPipes has a reader that has gone be an error of the write like any
// other: a run ends in order then, with its files. The signal is caught and not
// ignored, which programs that rooftop starts would inherit and a shell cannot undo.
func catchBrokenPipes() { signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE) }

// replaceProcess runs rooftop with other arguments in this process. It returns
// where the system cannot.
func replaceProcess(args []string) {
	if program, err := os.Executable(); err == nil {
		_ = syscall.Exec(program, append([]string{os.Args[0]}, args...), os.Environ())
	}
}

// world is everything outside that a command touches, so that tests can replace
// it.
type world struct {
	args   []string
	env    func(string) (string, bool)
	stdin  io.Reader // nil is nobody who types
	stdout io.Writer
	stderr io.Writer
	// replace runs rooftop with other arguments in place of this process; nil
	// leaves it as it is.
	replace func(args []string)
}

// terminal says whether a writer is a terminal, and how wide.
func terminal(w io.Writer) (width int, ok bool) {
	f, isFile := w.(*os.File)
	if !isFile || !term.IsTerminal(int(f.Fd())) {
		return 0, false
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		width = 80
	}
	return width, true
}

// run executes one command line and returns its exit code. Every failure is one
// sentence on stderr.
func run(w world) (code exitCode) {
	defer func() {
		if p := recover(); p != nil {
			fmt.Fprintf(w.stderr, "rooftop: internal error: %v; please report this with the command line\n", p)
			code = exitError
		}
	}()
	ctx, stop := signalContext()
	defer stop()
	return execute(ctx, w)
}

// execute runs one command line until ctx ends.
func execute(ctx context.Context, w world) exitCode {
	root := newRoot(&w)
	root.SetArgs(bare(w.args))
	root.SetOut(w.stdout)
	root.SetErr(w.stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	code, text := exitUsage, err
	var coded *codedError
	if errors.As(err, &coded) {
		code, text = coded.code, coded.err
	}
	switch {
	case errors.Is(err, syscall.EPIPE) && (coded == nil || code == exitError):
		return exitNobodyReads
	case text != nil:
		fmt.Fprintln(w.stderr, "rooftop:", text)
	}
	return code
}

// bare gives a command line without a command the one that is meant: the screen.
func bare(args []string) []string {
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

// sameSignal is the time in which further signals belong to the first: timeout(1)
// sends one to its child and one to the group of both, and a terminal that closes
// may send several.
const sameSignal = 250 * time.Millisecond

// endings are the signals that end a run. A hang-up that rooftop was started to
// ignore, by nohup(1), stays ignored.
func endings() []os.Signal {
	list := []os.Signal{syscall.SIGINT, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) {
		list = append(list, syscall.SIGHUP)
	}
	return list
}

// hearing tells on of each signal that ends a run, and of how many there were, until
// stop is called. Those that belong to one are one; none ends the process by itself
// meanwhile.
func hearing(on func(n int, s syscall.Signal)) (stop func()) {
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, endings()...)
	done := make(chan struct{})
	go func() {
		var last time.Time
		for n := 1; ; {
			select {
			case <-done:
				return
			case s := <-signals:
				if time.Since(last) < sameSignal {
					continue
				}
				on(n, s.(syscall.Signal))
				n, last = n+1, time.Now()
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
	}
}

// signalContext ends with the first signal; its cause is a *signalError. The
// second signal ends the process at once, as if nobody caught it.
func signalContext() (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(context.Background())
	ch := make(chan os.Signal, 2)
	signal.Notify(ch, endings()...)
	go func() {
		select {
		case s := <-ch:
			cancel(&signalError{signal: s.(syscall.Signal)})
			time.Sleep(sameSignal)
			signal.Stop(ch)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { signal.Stop(ch); cancel(nil) }
}

// newRoot is the command tree.
func newRoot(w *world) *cobra.Command {
	root := &cobra.Command{
		Use:   "rooftop",
		Short: "The closed-loop tuner for vLLM inference servers",
		Long: `rooftop measures a running vLLM server, compares what it does with what its
hardware allows, and names one bottleneck and one change to make. Restart the
server with the change: rooftop notices, measures again, and says what the
change brought. Or have it restart the server itself, keep what is proven better
and put back all else: 'rooftop tune --auto'.

Without a command it opens the live screen on the server of this machine, as
'rooftop tune' does, whose flags it takes too.

It reads the metrics page, the GPU, the server's process. Nothing on the server
is changed unless you name how ('rooftop tune --help'), and no address is
contacted but the ones you give.`,
		Example: `  rooftop
  rooftop --url http://gpu-7:8000
  rooftop diagnose --json --duration 2m > diagnosis.json
  rooftop ceiling --model Llama-3.1-70B-Instruct --gpu "H100 SXM" --tp 4
  rooftop explain seat-saturation`,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	for _, g := range []struct {
		title    string
		commands []*cobra.Command
	}{
		{"A server that runs:", []*cobra.Command{newTune(w), newDiagnose(w), newDoctor(w)}},
		{"Under the microscope, any engine:", []*cobra.Command{newProbe(w), newObserve(w), newTrace(w)}},
		{"Past runs:", []*cobra.Command{newHistory(w), newReport(w), newRecover(w)}},
		{"Without one:", []*cobra.Command{newDemo(w), newReplay(w), newCeiling(w)}},
		{"What it goes by:", []*cobra.Command{newExplain(w), newCatalog(w)}},
		{"Servers and load to try:", []*cobra.Command{newSim(w), newLoad(w)}},
	} {
		root.AddGroup(&cobra.Group{ID: g.title, Title: g.title})
		for _, c := range g.commands {
			c.GroupID = g.title
		}
		root.AddCommand(g.commands...)
	}
	root.AddCommand(newVersion(w), newMan())
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usage("%s: %w%s; see 'rooftop %s --help'", c.Name(), unread(err), meant(c, err), strings.TrimPrefix(c.CommandPath(), "rooftop "))
	})
	return root
}
