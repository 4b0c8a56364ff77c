package apply

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// serverLog is the log file, in the server's directory, of a server that rooftop starts.
const serverLog = "server.log"

// Exec is an Applier for a server that rooftop starts from a command line. The server has
// its own session, an exact copy of rooftop's environment, /dev/null as stdin and a log
// file for stdout and stderr, so that it outlives rooftop.
type Exec struct{ owned }

// NewExec returns an Exec for a command line that starts a vLLM server, with rooftop's
// environment and working directory. It starts nothing. The error is a sentence about
// what is wrong with the command.
func NewExec(argv []string, plan Plan) (*Exec, error) {
	h, err := newHost(plan.Grace)
	if err != nil {
		return nil, err
	}
	l, err := commandLaunch(argv)
	if err != nil {
		return nil, err
	}
	url, at, err := addressOf(l)
	if err != nil {
		return nil, err
	}
	if plan.Ready.URL == "" {
		plan.Ready.URL = url
	}
	if err := h.rehearse(context.Background(), l); err != nil {
		return nil, fmt.Errorf("the command cannot be started: %w", err)
	}
	e := &Exec{owned{host: h, mode: "exec", plan: plan, at: at, programs: programs(l), kept: l}}
	e.std = e.streams
	return e, nil
}

// commandLaunch returns the launch of a command line given to rooftop.
func commandLaunch(argv []string) (*launcher.Launch, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	}
	l := &launcher.Launch{Argv: argv, Env: os.Environ(), Cwd: cwd, Inherit: true, Umask: -1, Std: [3]string{os.DevNull, "", ""}}
	c, err := l.Config()
	if err != nil {
		return nil, fmt.Errorf("%w; give the command that starts the server itself (vllm serve MODEL …), or a program that makes changes with --apply-cmd", err)
	}
	if path := c.ConfigPath(); path != "" {
		file, err := launcher.ReadFile(absolute(cwd, path))
		if err != nil {
			return nil, fmt.Errorf("read the server's config file: %w", err)
		}
		file.Fixed = file.Replaceable() != nil
		l.Files = []launcher.File{file}
	}
	if _, err := l.Config(); err != nil {
		return nil, err
	}
	return l, nil
}

// absolute returns the absolute path of a file named by a process with working directory
// cwd.
func absolute(cwd, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(cwd, path)
}

// addressOf returns the URL of a server with this launch, as seen from this machine, and
// where it listens.
func addressOf(l *launcher.Launch) (url string, at netip.AddrPort, err error) {
	c, err := l.Config()
	if err != nil {
		return "", netip.AddrPort{}, err
	}
	url, _ = Address(c, "localhost")
	return url, proc.ListenAddr(c), nil
}

// Address returns the URL and port of a server with this configuration. local is the host
// name of a server that listens at every address.
func Address(c *launch.Config, local string) (url string, port uint16) {
	port = 8000
	if n, _, ok := c.Int("port"); ok && n > 0 && n < 1<<16 {
		port = uint16(n)
	}
	host, _, _ := c.Value("host")
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); host == "" || err == nil && ip.IsUnspecified() {
		host = local
	} else if err == nil && ip.Is6() {
		host = "[" + ip.String() + "]"
	}
	scheme := "http"
	if _, _, ok := c.Value("ssl_certfile"); ok {
		scheme = "https"
	}
	return scheme + "://" + host + ":" + strconv.Itoa(int(port)), port
}

// URL returns the server's base URL.
func (e *Exec) URL() string { return e.plan.Ready.URL }

// Log returns the path of the server's log.
func (e *Exec) Log() string { return filepath.Join(e.plan.Journal.Dir(), serverLog) }

// streams opens the log for a start, because it may have been rotated since the last.
func (e *Exec) streams() (std [3]*os.File, log *os.File, err error) {
	if log, err = openServerLog(e.plan.Journal.Dir()); err != nil {
		return std, nil, err
	}
	e.hold(log)
	return [3]*os.File{nil, log, log}, log, nil
}

// Start starts the server with its original command and waits until it is ready. After an
// error, which is a sentence about the reason, nothing runs.
func (e *Exec) Start(ctx context.Context) error {
	if e.process != nil {
		return errors.New("the server is already running")
	}
	pids, listening, err := e.holders(e.at)
	if err != nil {
		return err
	}
	if listening {
		return fmt.Errorf("%w: stop that server first, or tune it with --restart-in-place", &takenError{e.at, pids})
	}
	e.kept.Log = e.Log()
	if err := e.begin(); err != nil {
		return err
	}
	err = e.up(ctx, e.kept, e.keptName, nil)
	if err == nil {
		err = e.await(ctx)
	}
	if err == nil && !e.same(e.process.Process) { // it has ended, and its status comes at once
		select {
		case <-e.process.ended:
		case <-ctx.Done():
		}
	}
	if err == nil && e.over(e.process) != "" {
		err = errors.New(e.over(e.process))
	}
	if err == nil {
		err = e.write(journal.Record{Kind: journal.Ready})
	}
	if err == nil {
		return nil
	}
	why := fmt.Errorf("the server does not start: %s", e.trouble(err))
	switch {
	case unrecorded(err):
		why = fmt.Errorf("the server was stopped again: %w", err)
	case e.process != nil && e.over(e.process) == endedWell:
		why = fmt.Errorf("%w: if it starts its server in the background, give the command that stays in the foreground, and end what this one left", why)
	}
	_ = e.write(journal.Record{Kind: journal.Failed, Text: why.Error()})
	// A port may be held by a process that is none of the server's.
	if left := e.down(); errors.As(left, new(*takenError)) && !errors.As(err, new(*takenError)) {
		why = fmt.Errorf("%w; %w", why, left)
	} else if left != nil && !errors.As(left, new(*takenError)) {
		return fmt.Errorf("%w; processes that it left do not end: %w", why, left)
	}
	// Nothing ran before and nothing runs now, so the original state is restored.
	_ = e.plan.Journal.Write(journal.Record{Kind: journal.Reverted, Text: "no server ran before, and none runs now"})
	return why
}

// Stop ends the server, for a run that started it only for its own use.
func (e *Exec) Stop() error { return e.down() }

// Close closes the files of the applier and leaves the server running.
func (s *owned) Close() error {
	var errs []error
	for _, f := range s.held {
		errs = append(errs, f.Close())
	}
	s.held = nil
	return errors.Join(errs...)
}

// hold keeps a log open until the applier is closed or two newer logs replaced it.
func (s *owned) hold(f *os.File) {
	const logs = 2 // of the old process and of the new one
	s.held = append(s.held, f)
	if len(s.held) > logs {
		_ = s.held[0].Close()
		s.held = s.held[1:]
	}
}
