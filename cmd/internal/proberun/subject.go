package proberun

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/collect/gpu"
	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
)

// subject is the target of a probe or an observation: a server of any engine, with its processes,
// GPUs and metrics as far as available, or only a process tree.
type subject struct {
	o     *Options
	clock Clock
	*attach.Server
	served []string // models listed by the server
	engine string   // "vLLM", "llama.cpp"; "" if unknown

	fs       proc.FS
	tree     *proc.Sampler // nil if there is none, and the reason
	treeHow  string
	treeWhy  string
	listener capture.Listener
	page     *enginepage.Totals // nil if the server has no metrics
	facts    engine.Facts
}

// findSubject finds everything to sample. It fails only if a server cannot be reached, or a requested
// process does not exist.
func (o *Options) findSubject(ctx context.Context, withServer bool) (*subject, error) {
	s := &subject{o: o, clock: NewClock()}
	var err error
	if withServer {
		err = s.reach(ctx)
	} else {
		err = s.learnGiven()
	}
	if err == nil {
		err = s.findTree()
	}
	if err == nil {
		err = s.settle(ctx)
	}
	if ctx.Err() != nil {
		err = cli.Interrupted(ctx) // however the signal appeared to the functions called
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *subject) close() {
	if s.tree != nil {
		s.tree.Close()
	}
	if s.Server != nil {
		s.Server.Close()
	}
}

// reach attaches to the server: as one of an engine that rooftop knows if it is one, otherwise as any
// with an OpenAI-compatible API.
func (s *subject) reach(ctx context.Context) error {
	l := attach.NewLocator(&s.o.Options)
	l.Clock = s.clock.Now
	if err := l.Find(ctx); err != nil {
		return err
	}
	a, err := l.Connect(ctx)
	switch {
	case err == nil:
		s.Server, s.engine = a, catalog.EngineOf(a.Header.Inputs.Engine).Name
	case !anotherEngine(err):
		return err
	default:
		if err := s.reachAny(l.Target); err != nil {
			return err
		}
	}
	s.listModels(ctx)
	switch gone := errors.Is(err, collect.ErrUnreachable) && len(s.served) == 0; {
	case gone && !l.Known():
		return cli.Fail(cli.ExitUnreachable, fmt.Errorf("no inference server among this machine's processes, and nothing answers at %s: give --url of any OpenAI-compatible server", l.Target))
	case gone:
		return err // not only its page failed
	}
	s.openPage(ctx)
	return nil
}

// anotherEngine reports whether an address may have a server, but not the metrics page of an engine
// that rooftop knows, with statistics.
func anotherEngine(err error) bool {
	var status *collect.StatusError
	return errors.As(err, &status) || slices.ContainsFunc([]error{
		enginepage.ErrNotEngine, enginepage.ErrStatsOff, collect.ErrTruncated, collect.ErrMalformed,
		collect.ErrRedirect, collect.ErrTooLarge, collect.ErrUnreachable,
	}, func(known error) bool { return errors.Is(err, known) })
}

// reachAny attaches to a server of an engine that rooftop does not tune.
func (s *subject) reachAny(target collect.Target) error {
	client, err := attach.NewClient(&s.o.Options, target)
	if err != nil {
		return err
	}
	if err := s.learnGiven(); err != nil {
		return err
	}
	s.Target, s.Client = target, client
	if found, err := s.Discover(); err == nil && found.Launch != nil {
		s.Process = found // a server without statistics
		attach.UseLaunch(&s.Header.Inputs, found.Launch)
		s.engine = catalog.EngineOf(found.Launch.Engine()).Name
	}
	return nil
}

// learnGiven begins with the facts given by the user.
func (s *subject) learnGiven() error {
	a, err := attach.NewServer(&s.o.Options)
	if err != nil {
		return err
	}
	a.Clock = s.clock.Now
	s.Server = a
	return nil
}

// openPage finds the server's metrics.
func (s *subject) openPage(ctx context.Context) {
	page, name, err := enginepage.OpenTotals(ctx, s.Client)
	if err != nil {
		if !errors.Is(err, collect.ErrNoData) && s.engine != "" {
			err = fmt.Errorf("%s: %w", s.engine, err)
		}
		s.Miss("the server's own metrics", err.Error(), "its token counter, queue and time to first token are unknown")
		return
	}
	s.page = page
	if s.engine == "" {
		s.engine = name
	}
}

// findTree finds the processes to sample: those below --pid, or else those of the server's port. If
// there are none, that is a gap, unless a PID was given.
func (s *subject) findTree() error {
	fs, err := proc.Open(attach.ProcRoot)
	if err == nil {
		err = s.sampleTree(fs)
	}
	switch {
	case err == nil:
		return nil
	case s.o.pid != 0:
		return cli.Usagef("--pid: %w", err)
	}
	s.treeWhy = err.Error()
	return nil
}

// sampleTree prepares sampling the tree.
func (s *subject) sampleTree(fs proc.FS) error {
	s.fs = fs
	owner, err := s.portOwner(fs)
	if err == nil && !owner.Forwards {
		s.listener = capture.Listener{PID: owner.Listener, Comm: owner.Comm, Port: s.port()}
	}
	root, note := owner.Top, owner.Note
	s.treeHow = fmt.Sprintf("listens on port %d", s.port())
	if s.o.pid != 0 {
		s.treeHow = "--pid"
		root, note, err = fs.PID(s.o.pid)
	}
	if err != nil {
		return err
	}
	if note != "" {
		s.Header.Notes = append(s.Header.Notes, note)
	}
	tree, err := fs.NewSampler(root, s.clock.Now)
	if err == nil {
		tree.Listener(s.listener.PID)
		s.tree = tree
	}
	return err
}

// port returns the server's port, 0 without a server.
func (s *subject) port() int {
	if s.Client == nil {
		return 0
	}
	_, port := attach.HostPort(s.Target)
	return int(port)
}

// portOwner finds the process that serves the server's port.
func (s *subject) portOwner(fs proc.FS) (proc.PortOwner, error) {
	if s.Client == nil {
		return proc.PortOwner{}, errors.New("no server was given")
	}
	host, port := attach.HostPort(s.Target)
	ips, ok := proc.Addresses(host)
	if !ok || !s.Local() {
		return proc.PortOwner{}, fmt.Errorf("%w: the server runs on %s; run rooftop there", proc.ErrNotLocal, host)
	}
	return fs.PortOwner(ips, port)
}

// settle opens the GPUs and resolves the facts.
func (s *subject) settle(ctx context.Context) error {
	if s.GPUs == nil && s.Pages == nil { // attaching to a vLLM has already looked for them
		if err := s.learnTreeGPUs(ctx); err != nil {
			return err
		}
	}
	analysis, err := session.NewAnalysis(s.Header)
	if err != nil {
		return err
	}
	poll := &session.Poll{}
	if s.Pages != nil {
		body, err := s.Pages.Page(ctx, nil)
		if ctx.Err() != nil {
			return cli.Interrupted(ctx)
		}
		if err == nil {
			poll.Body = string(body)
		}
	}
	if s.GPUs != nil {
		if reading, err := s.GPUs.Read(ctx); err == nil {
			poll.GPU = &reading
		}
	}
	analysis.Add(poll)
	s.facts = analysis.Facts()
	return s.giveTypes()
}

// learnTreeGPUs opens the GPUs of the sampled tree, or all GPUs.
func (s *subject) learnTreeGPUs(ctx context.Context) error {
	var hints collect.GPUHints
	if s.tree != nil {
		hints = s.fs.GPUHints(s.tree.Tree().Root)
	}
	return s.OpenGPUs(ctx, &s.o.Options, hints)
}

// giveTypes uses the types of weights and cache given by the user, which engines other than vLLM do
// not report.
func (s *subject) giveTypes() error {
	for _, given := range []struct {
		flag, text string
		fact       *engine.Fact[string]
	}{
		{"--weight-dtype", s.o.weight, &s.facts.WeightDType},
		{"--kv-dtype", s.o.kv, &s.facts.KVCacheDType},
	} {
		d, ok, err := attach.DTypeFlag(given.flag, given.text)
		if err != nil {
			return err
		}
		if ok {
			*given.fact = engine.Know(string(d), engine.FromFlag, "")
		}
	}
	return nil
}

// plan returns what to sample.
func (s *subject) plan() Plan {
	p := Plan{Clock: s.clock, Period: s.o.period}
	if s.tree != nil {
		p.Processes = s.tree
	}
	if s.GPUs != nil {
		p.GPUs = s.GPUs
	}
	if s.page != nil {
		p.Page = s.page
	}
	return p
}

// complete adds to a capture what the recorder does not know.
func (s *subject) complete(c *capture.Capture) {
	c.Tree.How, c.Tree.Why, c.Tree.Listener = s.treeHow, s.treeWhy, s.listener
	c.Missing = append(c.Missing, s.Header.Missing...)
	c.Notes = append(append(c.Notes, s.Header.Notes...), s.facts.Conflicts...)
	if s.tree != nil && s.tree.Own() {
		c.Notes = append(c.Notes, fmt.Sprintf("rooftop itself runs below process %d: its own processes are left out of the tree", c.Tree.Root))
	}
	if s.page != nil {
		c.PagesFrom, c.Counting = s.engine, s.page.Counting()
	}
	switch {
	case s.GPUs == nil:
		c.GPUs.Why = cmp.Or(s.Header.GPUWhy, "no GPU is readable")
	default:
		c.GPUs.From, c.GPUs.How = s.GPUs.Name(), s.How
		over := gpu.AveragingOf(s.GPUs)
		c.GPUs.Averaging, c.GPUs.InstantPower = over.Window, over.InstantPower
		c.Missing = append(c.Missing, s.GPUs.Missing()...)
		c.Notes = append(c.Notes, s.GPUs.Notes()...)
	}
	if missed := Missed(c); missed != "" {
		c.Notes = append(c.Notes, missed)
	}
}

// setup returns the setup of the capture.
func (s *subject) setup() capture.Setup {
	t := engine.Target{Engine: s.engine, EngineVersion: s.facts.EngineVersion.Value, Model: s.modelName(), Simulated: s.Simulated()}
	if s.Client != nil {
		t.URL = s.Target.Base()
	}
	return capture.Setup{Version: cli.Version(), Target: t}
}
