package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// locator finds the server of a live session, and finds it again after every
// restart. Its methods are not safe for concurrent use.
type locator struct {
	o       *options
	clock   func() time.Duration
	servers func() []*proc.Server // vLLM servers among this machine's processes

	target collect.Target // the one that was given, chosen or found; zero is none yet
	found  *proc.Server   // its process as it was found first; nil is looked for
}

func newLocator(o *options) *locator {
	return &locator{o: o, clock: stopwatch(), servers: localServers}
}

// begin settles which server is meant as far as that can be said now: the address
// given, or the one vLLM of this machine, or the one that the person chooses. A
// server need not run yet.
func (l *locator) begin(ctx context.Context, w *world, ask bool) error {
	if l.o.url != "" {
		target, err := parseTarget(l.o.url)
		l.target = target
		return err
	}
	list := l.servers()
	switch {
	case len(list) == 0:
		return nil
	case len(list) == 1:
		return l.take(list[0])
	case !ask:
		return errSeveral(list)
	}
	chosen, err := chooseServer(ctx, w.stdin, w.stderr, list)
	if err != nil {
		return err
	}
	return l.take(chosen)
}

func (l *locator) take(s *proc.Server) error {
	target, err := parseTarget("http://" + reachable(s.Addr))
	l.target, l.found = target, s
	return err
}

// watch says what is looked for while no server answers.
func (l *locator) watch() string {
	if !l.target.IsZero() {
		return l.target.String()
	}
	return "a vLLM among this machine's processes, or http://localhost:" + collect.DefaultPort
}

// attach finds the server and learns what can be known of it. The first one that
// answers is the one that is meant from then on.
func (l *locator) attach(ctx context.Context) (*attached, error) {
	target, found, looked := l.target, l.found, false
	if target.IsZero() {
		list := l.servers()
		switch len(list) {
		case 0:
			var err error
			if target, err = parseTarget("http://localhost:" + collect.DefaultPort); err != nil {
				return nil, err
			}
			looked = true
		case 1:
			found = list[0]
			var err error
			if target, err = parseTarget("http://" + reachable(found.Addr)); err != nil {
				return nil, err
			}
		default:
			return nil, errSeveral(list)
		}
	}
	if found != nil && !found.Alive() {
		found = nil
	}
	a, err := attachTo(ctx, l.o, target, found, l.clock)
	if looked && errors.Is(err, collect.ErrUnreachable) {
		return nil, fmt.Errorf("no vLLM among this machine's processes, and nothing answers at %s", target)
	}
	if err != nil {
		return nil, err
	}
	a.header.Ceiling = l.o.ceiling
	l.target, l.found = target, nil // a restart has another process
	return a, nil
}

// finding is attach as a session calls it. Until the first server answers, a view
// that cannot see why is told, once for each reason.
func (l *locator) finding(v view) func(context.Context) (*session.Server, error) {
	waits, _ := v.(waiting)
	last, found := "", false
	return func(ctx context.Context) (*session.Server, error) {
		a, err := l.attach(ctx)
		if err == nil {
			found = true
			return a.server(), nil
		}
		if why := err.Error(); waits != nil && !found && why != last && ctx.Err() == nil {
			last = why
			waits.waits(l.clock(), why)
		}
		return nil, err
	}
}

// errSeveral says which servers there are to choose from.
func errSeveral(list []*proc.Server) error {
	return usage("%d vLLM servers run on this machine; say which:\n%s", len(list), strings.Join(serverLines(list), "\n"))
}

func serverLines(list []*proc.Server) []string {
	var lines []string
	for _, s := range list {
		lines = append(lines, "  --url http://"+reachable(s.Addr)+"   "+s.String())
	}
	return lines
}

// chooseServer lets a person say which server is meant, by its number.
func chooseServer(ctx context.Context, in io.Reader, out io.Writer, list []*proc.Server) (*proc.Server, error) {
	width, ok := terminal(out)
	if !ok {
		width = helpWidth
	}
	fmt.Fprintf(out, "%d vLLM servers run on this machine:\n", len(list))
	for i, s := range list {
		fmt.Fprintln(out, cell.Cut(fmt.Sprintf("  %d  http://%s  %s", i+1, reachable(s.Addr), launched(s)), width-1, "…"))
	}
	for {
		fmt.Fprintf(out, "Which one? [1-%d, q to leave] ", len(list))
		text, err := readLine(ctx, in)
		if err != nil {
			fmt.Fprintln(out)
			return nil, err
		}
		if text == "q" {
			return nil, &codedError{code: exitDone}
		}
		if n, err := strconv.Atoi(text); err == nil && n >= 1 && n <= len(list) {
			return list[n-1], nil
		}
	}
}

// launched names a server by what started it: its model and flags, without the
// path of the program, which tells no server from another.
func launched(s *proc.Server) string {
	if s.Launch == nil {
		return fmt.Sprintf("process %d", s.ListenerPID)
	}
	program, rest, _ := strings.Cut(s.Launch.String(), " ")
	return fmt.Sprintf("process %d: %s %s", s.LaunchPID, filepath.Base(program), rest)
}

// readLine reads up to the end of a line, and nothing of what comes after it: that
// is for whoever reads next. It returns when ctx ends, though the read goes on.
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
				done <- result{err: usage("no server was chosen; give --url")}
				return
			case err != nil:
				done <- result{err: fail(exitError, err)}
				return
			}
		}
	}()
	select {
	case r := <-done:
		return r.text, r.err
	case <-ctx.Done():
		return "", interrupted(ctx)
	}
}

// server makes a server of the live session of what was found out about it.
func (a *attached) server() *session.Server {
	s := &session.Server{Header: a.header, Pages: a.pages, NoHands: noHands, Close: a.close}
	if a.gpus != nil {
		s.GPUs = a.gpus
	}
	if a.process != nil {
		s.Identity = a.process.Identity()
		s.Processes = (&processWatch{server: a.process, clock: a.clock}).read
	}
	return s
}

// noHands is why rooftop does not restart a server where it was not told how.
const noHands = "rooftop was not told how to restart this server: do it with the command shown, and the change is noticed; or give --restart-in-place, --apply-cmd or -- COMMAND"
