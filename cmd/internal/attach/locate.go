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
	"github.com/rooftop-dev/rooftop/cmd/internal/engines"
	"github.com/rooftop-dev/rooftop/cmd/internal/kube"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Locator leads from options to their server, and to it again after every restart. Its methods are not safe for
// concurrent use.
type Locator struct {
	Clock  func() time.Duration
	Launch *launch.Config // of a server that rooftop started itself; nil if it is read from the server's process
	Target collect.Target // the given, chosen or found server; zero if there is none yet

	o        *Options
	servers  func() []*proc.Server // vLLM servers among this machine's processes
	found    *proc.Server          // the server's process if already known
	workload *kube.Workload        // of --kube, once it was reached; nil without one
	tunnel   *kube.Tunnel          // to its pod
	pod      *kube.Pod             // the only one that the locator leads to; nil if it may be any of the workload
}

// NewLocator returns a locator that has found no server yet.
func NewLocator(o *Options) *Locator {
	return &Locator{o: o, Clock: Stopwatch(), servers: localServers}
}

// Open finds the server that options name, as [Locator.Find] does, and connects to it.
func Open(ctx context.Context, o *Options) (*Server, error) { return NewLocator(o).Open(ctx) }

// Open finds the server and connects to it. The error has the exit code.
func (l *Locator) Open(ctx context.Context) (*Server, error) {
	if err := l.Find(ctx); err != nil {
		return nil, err
	}
	return l.Connect(ctx)
}

// Find sets the target: the given one, else the only vLLM of this machine with its process, else vLLM's default
// port. A workload of Kubernetes gets an address of this machine.
func (l *Locator) Find(ctx context.Context) error {
	given, err := l.given(ctx)
	if !given {
		l.Target, l.found, err = onlyServer(l.servers())
	}
	return err
}

// given sets the target that the options name, and reports whether they name one.
func (l *Locator) given(ctx context.Context) (given bool, err error) {
	switch {
	case l.workload != nil: // it was reached before
	case l.o.Kube != "":
		err = l.reach(ctx)
	case l.o.URL != "":
		l.Target, err = ParseTarget(l.o.URL)
	default:
		return false, nil
	}
	return true, err
}

// Known reports whether the user named the server, or its process was found.
func (l *Locator) Known() bool { return l.o.URL != "" || l.o.Kube != "" || l.found != nil }

// Connect connects to the server at the target, and collects the facts about it.
func (l *Locator) Connect(ctx context.Context) (*Server, error) {
	client, err := NewClient(l.o, l.Target)
	if err != nil {
		return nil, err
	}
	a := &Server{Target: l.Target, Client: client, Pages: &engines.Page{Client: client}, Process: l.found, Workload: l.workload, Clock: l.Clock}
	if err := a.firstPage(ctx, l.o.Model); err != nil {
		client.Close()
		return nil, l.Unreached(err)
	}
	if err := a.learn(ctx, l); err != nil {
		a.Close()
		return nil, err
	}
	return a, nil
}

// Begin determines the server as far as possible: the given address, else the only vLLM of
// this machine, else the one that the user chooses if ask is true. The server need not run
// yet. It fails if there are several servers and ask is false.
func (l *Locator) Begin(ctx context.Context, w *cli.World, ask bool) error {
	if given, err := l.given(ctx); given {
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
	if l.workload != nil {
		return l.workload.Place()
	}
	if !l.Target.IsZero() {
		return l.Target.String()
	}
	return "an inference server among this machine's processes, or http://localhost:" + collect.DefaultPort
}

// Attach finds the server and collects the facts about it. Later calls look only for the
// first server that answered.
func (l *Locator) Attach(ctx context.Context) (*Server, error) {
	one, looked := *l, l.Target.IsZero()
	if looked {
		var err error
		if one.Target, one.found, err = onlyServer(l.servers()); err != nil {
			return nil, err
		}
		looked = one.found == nil
	}
	if one.found != nil && !one.found.Alive() {
		one.found = nil
	}
	a, err := one.Connect(ctx)
	if looked && errors.Is(err, collect.ErrUnreachable) {
		return nil, fmt.Errorf("no inference server among this machine's processes, and nothing answers at %s", one.Target)
	}
	if err != nil {
		return nil, l.whileStarting(one.Target, err)
	}
	l.Target, l.found = one.Target, nil // a restart has another process
	return a, nil
}

// whileStarting returns the error of a server that does not answer, wrapped in
// [session.ErrStarting] if it is on this machine and a process of it runs.
func (l *Locator) whileStarting(target collect.Target, err error) error {
	if l.workload != nil {
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
	s := &session.Server{
		Header: a.Header, Pages: a.Pages, Health: a.Health(), Clock: a.Clock, CannotApply: CannotApply,
		Around: a.around(), Closing: a.Closing, Close: a.Close,
	}
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
