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

	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// serverLog is the file, in the server's directory, that a server of rooftop's own
// writes to.
const serverLog = "server.log"

// Exec is a server that rooftop starts itself, from a command line. It has a
// session of its own, rooftop's environment byte for byte, /dev/null as stdin and a
// log file for the rest, so that it outlives rooftop.
type Exec struct{ owned }

// NewExec reads a command line that starts a vLLM server, with rooftop's own
// environment and working directory. It starts nothing. The error says in a
// sentence what is wrong with the command.
func NewExec(argv []string, plan Plan) (*Exec, error) {
	h, err := newHost(plan.Grace)
	if err != nil {
		return nil, err
	}
	l, err := commandLaunch(argv)
	if err != nil {
		return nil, err
	}
	c, err := l.config()
	if err != nil {
		return nil, err
	}
	url, port := address(c)
	if plan.Ready.URL == "" {
		plan.Ready.URL = url
	}
	if err := h.rehearse(l); err != nil {
		return nil, fmt.Errorf("the command cannot be started: %w", err)
	}
	e := &Exec{owned{host: h, mode: "exec", plan: plan, port: port, kept: l}}
	e.std = e.streams
	return e, nil
}

// commandLaunch is the launch of a command line given to rooftop.
func commandLaunch(argv []string) (*Launch, error) {
	cwd, err := os.Getwd()
	if err != nil {
		return nil, fmt.Errorf("working directory: %w", err)
	}
	l := &Launch{Argv: argv, Env: os.Environ(), Cwd: cwd, Inherit: true, Umask: -1, Std: [3]string{os.DevNull, "", ""}}
	c, err := l.config()
	if err != nil {
		return nil, fmt.Errorf("%w; give the command that starts the server itself (vllm serve MODEL …), or a program that makes changes with --apply-cmd", err)
	}
	if path := c.ConfigPath(); path != "" {
		file, err := readConfig(under(cwd, path))
		if err != nil {
			return nil, fmt.Errorf("read the server's config file: %w", err)
		}
		l.Files = []File{file}
	}
	if _, err := l.config(); err != nil {
		return nil, err
	}
	return l, nil
}

// under is a file as a process in a directory names it.
func under(cwd, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(cwd, path)
}

// address is where a server of this launch answers, as this machine reaches it.
func address(c *launch.Config) (url string, port uint16) {
	port = 8000
	if n, _, ok := c.Int("port"); ok && n > 0 && n < 1<<16 {
		port = uint16(n)
	}
	host, _, _ := c.Value("host")
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); host == "" || err == nil && ip.IsUnspecified() {
		host = "localhost"
	} else if err == nil && ip.Is6() {
		host = "[" + ip.String() + "]"
	}
	scheme := "http"
	if _, _, ok := c.Value("ssl_certfile"); ok {
		scheme = "https"
	}
	return scheme + "://" + host + ":" + strconv.Itoa(int(port)), port
}

// URL is where the server answers.
func (e *Exec) URL() string { return e.plan.Ready.URL }

// Log is the file that the server writes to.
func (e *Exec) Log() string { return filepath.Join(e.plan.Journal.Dir(), serverLog) }

// streams opens the log anew for each start: it may have been rotated away.
func (e *Exec) streams() (std [3]*os.File, log *os.File, err error) {
	log, err = os.OpenFile(e.Log(), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return std, nil, fmt.Errorf("the server's log: %w", err)
	}
	e.hold(log)
	return [3]*os.File{nil, log, log}, log, nil
}

// Start starts the server as its command says and waits until it is ready. The
// error says in a sentence why it is not; nothing runs then.
func (e *Exec) Start(ctx context.Context) error {
	if e.process != nil {
		return errors.New("the server was started already")
	}
	pids, listening, err := e.holders(e.port)
	if err != nil {
		return err
	}
	if listening {
		return fmt.Errorf("%w: stop that server first, or tune it with --restart-in-place", &takenError{e.port, pids})
	}
	e.kept.Log = e.Log()
	if err := e.begin(); err != nil {
		return err
	}
	err = e.up(e.kept, e.keptName)
	if err == nil {
		err = e.await(ctx)
	}
	if err == nil {
		return e.write(journal.Record{Kind: journal.Ready})
	}
	why := fmt.Errorf("the server does not start: %s", e.trouble(err))
	_ = e.write(journal.Record{Kind: journal.Failed, Text: why.Error()})
	if err := e.down(); err != nil {
		return fmt.Errorf("%w; and what it left does not end: %w", why, err)
	}
	// Nothing ran before, and nothing runs now: that is how it was.
	_ = e.plan.Journal.Write(journal.Record{Kind: journal.Back, Text: "nothing ran before, and nothing runs now"})
	return why
}

// Stop ends the server, which a run that started it for itself alone does at its
// end.
func (e *Exec) Stop() error { return e.down() }

// Close lets go of the server and leaves it running.
func (s *owned) Close() error {
	var errs []error
	for _, f := range s.held {
		errs = append(errs, f.Close())
	}
	s.held = nil
	return errors.Join(errs...)
}

// hold keeps a file open as long as the hands are: one log, whichever is in use.
func (s *owned) hold(f *os.File) {
	const logs = 2 // of the process that ended and of the one that starts
	s.held = append(s.held, f)
	if len(s.held) > logs {
		_ = s.held[0].Close()
		s.held = s.held[1:]
	}
}
