package attach

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Locator finds the server of a live session, and finds it again after every
// restart. Its methods are not safe for concurrent use.
type Locator struct {
	o       *Options
	Clock   func() time.Duration
	servers func() []*proc.Server // vLLM servers among this machine's processes

	Target collect.Target // the given, chosen or found server; zero if there is none yet
	found  *proc.Server   // its process if already known
}

// NewLocator returns a locator that has found no server yet.
func NewLocator(o *Options) *Locator {
	return &Locator{o: o, Clock: Stopwatch(), servers: localServers}
}

// Begin determines the server as far as possible: the given address, else the only vLLM of
// this machine, else the one that the user chooses if ask is true. The server need not run
// yet. It fails if there are several servers and ask is false.
func (l *Locator) Begin(ctx context.Context, w *cli.World, ask bool) error {
	if err := l.o.Reach(ctx); err != nil {
		return err
	}
	if l.o.URL != "" {
		target, err := ParseTarget(l.o.URL)
		l.Target = target
		return err
	}
	list := l.servers()
	switch {
	case len(list) == 0:
		return nil
	case len(list) == 1:
		return l.use(list[0])
	case !ask:
		return errSeveral(list)
	}
	chosen, err := chooseServer(ctx, w.Stdin, w.Stderr, list)
	if err != nil {
		return err
	}
	return l.use(chosen)
}

// use makes a found server the locator's server.
func (l *Locator) use(s *proc.Server) error {
	target, err := ParseTarget("http://" + reachable(s.Addr))
	l.Target, l.found = target, s
	return err
}

// Watch describes what the locator waits for while no server answers.
func (l *Locator) Watch() string {
	if l.o.workload != nil {
		return l.o.workload.Place()
	}
	if !l.Target.IsZero() {
		return l.Target.String()
	}
	return "an inference server among this machine's processes, or http://localhost:" + collect.DefaultPort
}

// Attach finds the server and collects the facts about it. Later calls look only for the
// first server that answered.
func (l *Locator) Attach(ctx context.Context) (*Server, error) {
	target, found, looked := l.Target, l.found, false
	if target.IsZero() {
		var err error
		if target, found, err = onlyServer(l.servers()); err != nil {
			return nil, err
		}
		looked = found == nil
	}
	if found != nil && !found.Alive() {
		found = nil
	}
	a, err := To(ctx, l.o, target, found, l.Clock)
	if looked && errors.Is(err, collect.ErrUnreachable) {
		return nil, fmt.Errorf("no inference server among this machine's processes, and nothing answers at %s", target)
	}
	if err != nil {
		return nil, l.whileStarting(target, err)
	}
	a.Header.Ceiling, a.Header.Objectives = l.o.Ceiling, l.o.Objectives
	l.Target, l.found = target, nil // a restart has another process
	return a, nil
}

// whileStarting returns the error of a server that does not answer, wrapped in
// [session.ErrStarting] if it is on this machine and a process of it runs.
func (l *Locator) whileStarting(target collect.Target, err error) error {
	if l.o.workload != nil {
		return err
	}
	host, port := HostPort(target)
	ips, local := proc.Addresses(host)
	if !local || !errors.Is(err, collect.ErrUnreachable) {
		return err
	}
	fs, opened := proc.Open(ProcRoot)
	if opened != nil {
		return err
	}
	if pid, ok := fs.Starting(ips, port); ok {
		return fmt.Errorf("%w: process %d does not listen yet", session.ErrStarting, pid)
	}
	return err
}

// Finding returns Attach in the form that a session needs. Until the first server answers,
// it calls waits, if that is not nil, with the time since the start and each new reason.
func (l *Locator) Finding(waits func(at time.Duration, why string)) func(context.Context) (*session.Server, error) {
	last, found := "", false
	return func(ctx context.Context) (*session.Server, error) {
		a, err := l.Attach(ctx)
		if err == nil {
			found = true
			return a.Session(), nil
		}
		if why := err.Error(); waits != nil && !found && why != last && ctx.Err() == nil {
			last = why
			waits(l.Clock(), why)
		}
		return nil, err
	}
}

// errSeveral returns a usage error that lists the servers to choose from.
func errSeveral(list []*proc.Server) error {
	var lines []string
	for _, s := range list {
		lines = append(lines, "  "+urlOf("--url http://", s)+"   "+s.String())
	}
	return cli.Usagef("%d inference servers run on this machine; say which:\n%s", len(list), strings.Join(lines, "\n"))
}

// chooseServer asks the user to choose a server by number.
func chooseServer(ctx context.Context, in io.Reader, out io.Writer, list []*proc.Server) (*proc.Server, error) {
	width, ok := cli.Terminal(out)
	if !ok {
		width = cli.HelpWidth
	}
	fmt.Fprintf(out, "%d inference servers run on this machine:\n", len(list))
	for i, s := range list {
		fmt.Fprintln(out, cell.Cut(fmt.Sprintf("  %d  %s  %s", i+1, urlOf("http://", s), launched(s)), width-1, "…"))
	}
	for {
		fmt.Fprintf(out, "Which one? [1-%d, q to leave] ", len(list))
		text, err := readLine(ctx, in)
		if err != nil {
			fmt.Fprintln(out)
			return nil, err
		}
		if text == "q" {
			return nil, cli.Fail(cli.ExitDone, nil)
		}
		if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(list) {
			return list[n-1], nil
		}
	}
}

// urlOf returns where a server answers. In a network namespace of its own, such as a container's, its
// address is not one of this machine.
func urlOf(prefix string, s *proc.Server) string {
	if inOwnNetwork(s) {
		return "(in a network of its own: give the --url that leads to it)"
	}
	return prefix + reachable(s.Addr)
}

func inOwnNetwork(s *proc.Server) bool { return slices.Contains(s.FS().Foreign(s.LaunchPID), "net") }

// launched describes a server by its process and launch command, without the directory of
// the program, which is usually the same for all servers.
func launched(s *proc.Server) string {
	if s.Launch == nil {
		return s.Name()
	}
	program, rest, _ := strings.Cut(s.Launch.String(), " ")
	return fmt.Sprintf("%s: %s %s", s.Name(), filepath.Base(program), rest)
}

// readLine reads one line and nothing after it, which the next reader gets. It returns when
// ctx ends, although the read continues in the background.
func readLine(ctx context.Context, in io.Reader) (string, error) {
	type result struct {
		text string
		err  error
	}
	done := make(chan result, 1)
	go func() {
		var line []byte
		var one [1]byte
		for {
			n, err := in.Read(one[:])
			switch {
			case n == 1 && one[0] == '\n':
				done <- result{text: strings.TrimSpace(string(line))}
				return
			case n == 1:
				line = append(line, one[0])
			case errors.Is(err, io.EOF):
				done <- result{err: cli.Usagef("no server was chosen; give --url")}
				return
			case err != nil:
				done <- result{err: err}
				return
			}
		}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return "", cli.Interrupted(ctx)
	}
}

// Session returns the server in the form that a live session needs.
func (a *Server) Session() *session.Server {
	s := &session.Server{Header: a.Header, Pages: a.Pages, Health: a.Health(), CannotApply: CannotApply, Around: a.around(), Close: a.Close}
	if a.GPUs != nil {
		s.GPUs = a.GPUs
	}
	if a.Process != nil {
		s.Identity = a.Process.Identity()
		s.Processes = (&processWatch{server: a.Process, clock: a.Clock}).read
	}
	return s
}

// CannotApply explains why rooftop does not restart a server itself.
const CannotApply = "rooftop does not know how to restart this server: restart it with the command shown and rooftop notices the change, or give --restart-in-place, --apply-cmd or -- COMMAND"
