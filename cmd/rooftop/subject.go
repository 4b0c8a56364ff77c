package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/microscope"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/gpu"
	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/collect/promtext"
	"github.com/rooftop-dev/rooftop/collect/vllm"
	"github.com/rooftop-dev/rooftop/collect/witness"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
)

// subject is what a probe or an observation looks at: a server of any engine, with
// its processes, GPUs and metrics as far as they can be had, or a process tree alone.
type subject struct {
	o     *probeOptions
	clock microscope.Clock
	*attached
	served []string // models that the server lists
	engine string   // "vLLM", "llama.cpp"; "" unknown

	fs       proc.FS
	tree     *proc.Sampler // nil where there is none, and why
	treeHow  string
	treeWhy  string
	listener capture.Listener
	page     *witness.Witness // nil where the server has no metrics
	facts    engine.Facts
}

// look finds everything that is to be sampled. Only a server that cannot be reached,
// or a process that was named and is not there, is an error.
func (o *probeOptions) look(ctx context.Context, withServer bool) (*subject, error) {
	if err := o.knownGPU(); err != nil {
		return nil, err
	}
	s := &subject{o: o, clock: microscope.NewClock()}
	var err error
	if withServer {
		err = s.reach(ctx)
	} else {
		s.attached = &attached{clock: s.clock.Now}
		err = s.learnWithoutServer()
	}
	if err == nil {
		err = s.findTree()
	}
	if err == nil {
		err = s.settle(ctx)
	}
	if ctx.Err() != nil {
		err = interrupted(ctx) // whatever a signal looked like to those that were asked
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
	if s.attached != nil {
		s.attached.close()
	}
}

// reach attaches to the server: as to a vLLM where it is one, else as to any engine
// with an OpenAI-compatible interface.
func (s *subject) reach(ctx context.Context) error {
	target, found, err := findTarget(&s.o.options)
	if err != nil {
		return err
	}
	a, err := attachTo(ctx, &s.o.options, target, found, s.clock.Now)
	switch {
	case err == nil:
		s.attached, s.engine = a, "vLLM"
	case !anotherEngine(err):
		return err
	default:
		if err := s.reachAny(target); err != nil {
			return err
		}
	}
	s.listModels(ctx)
	switch gone := errors.Is(err, collect.ErrUnreachable) && len(s.served) == 0; {
	case gone && s.o.url == "" && found == nil:
		return fail(exitUnreachable, fmt.Errorf("no vLLM among this machine's processes, and nothing answers at %s: give --url of any OpenAI-compatible server", target))
	case gone:
		return err // not its page alone
	}
	s.openPage(ctx)
	return nil
}

// anotherEngine says that an address may have a server, though not the page of a vLLM
// with its statistics.
func anotherEngine(err error) bool {
	var status *collect.StatusError
	return errors.As(err, &status) || slices.ContainsFunc([]error{
		vllm.ErrNotVLLM, vllm.ErrStatsOff, promtext.ErrTruncated, promtext.ErrMalformed,
		collect.ErrRedirect, collect.ErrTooLarge, collect.ErrUnreachable,
	}, func(known error) bool { return errors.Is(err, known) })
}

// reachAny attaches to a server of an engine that rooftop does not tune.
func (s *subject) reachAny(target collect.Target) error {
	token, err := s.o.token()
	if err != nil {
		return err
	}
	client, err := collect.NewClient(collect.Options{Target: target, Token: token, CAFile: s.o.caFile, UserAgent: "rooftop/" + buildVersion()})
	if err != nil {
		return usage("%w", err)
	}
	s.attached = &attached{target: target, client: client, clock: s.clock.Now}
	if err := s.learnWithoutServer(); err != nil {
		return err
	}
	if found, err := s.discover(); err == nil && found.Launch != nil {
		s.process = found // a vLLM whose statistics are off
		knownLaunch(&s.header.Inputs, found.Launch)
		s.engine = "vLLM"
	}
	return nil
}

// learnWithoutServer takes in what the person said.
func (s *subject) learnWithoutServer() error {
	_, text, err := userCatalog(s.o.catalogFile)
	if err != nil {
		return err
	}
	h := &s.header
	h.Schema, h.Version, h.Catalog, h.CatalogName = session.RecordingSchema, buildVersion(), text, s.o.catalogFile
	if h.Catalog == "" {
		h.CatalogName = ""
	}
	h.Inputs.Flags, h.Inputs.Env = s.o.given()
	h.Inputs.Spot = s.o.spot
	return s.learnModelConfig(&h.Inputs, &s.o.options)
}

// openPage finds the server's own metrics.
func (s *subject) openPage(ctx context.Context) {
	page, name, err := witness.Open(ctx, s.client)
	if err != nil {
		if !errors.Is(err, collect.ErrNoData) && s.engine != "" {
			err = fmt.Errorf("%s: %w", s.engine, err)
		}
		s.miss("the server's own metrics", err.Error(), "its token counter, queue and time to first token are unknown")
		return
	}
	s.page = page
	if s.engine == "" {
		s.engine = name
	}
}

// findTree finds the processes to sample: those below --pid, else those of the
// server's port. That none can be found is a gap unless one was named.
func (s *subject) findTree() error {
	fs, err := proc.Open(procRoot)
	if err == nil {
		err = s.sampleTree(fs)
	}
	switch {
	case err == nil:
		return nil
	case s.o.pid != 0:
		return usage("--pid: %w", err)
	}
	s.treeWhy = err.Error()
	return nil
}

// sampleTree prepares to sample the tree.
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
		s.header.Notes = append(s.header.Notes, note)
	}
	tree, err := fs.NewSampler(root, s.clock.Now)
	if err == nil {
		tree.Listener(s.listener.PID)
		s.tree = tree
	}
	return err
}

// port is the one that the server answers at, 0 without a server.
func (s *subject) port() int {
	if s.client == nil {
		return 0
	}
	_, port := splitHostPort(s.target)
	return int(port)
}

// portOwner finds who serves the server's port.
func (s *subject) portOwner(fs proc.FS) (proc.PortOwner, error) {
	if s.client == nil {
		return proc.PortOwner{}, errors.New("no server was given")
	}
	host, port := splitHostPort(s.target)
	ips, ok := proc.Addresses(host)
	if !ok || !s.local() {
		return proc.PortOwner{}, fmt.Errorf("%w: the server runs on %s; run rooftop there", proc.ErrNotLocal, host)
	}
	return fs.PortOwner(ips, port)
}

// settle opens the GPUs and resolves the facts.
func (s *subject) settle(ctx context.Context) error {
	if s.gpus == nil && s.pages == nil { // attached to as to a vLLM, they were looked for
		if err := s.learnTreeGPUs(ctx); err != nil {
			return err
		}
	}
	analysis, err := session.NewAnalysis(s.header)
	if err != nil {
		return err
	}
	poll := &session.Poll{}
	if s.pages != nil {
		body, err := s.pages.Page(ctx, nil)
		if ctx.Err() != nil {
			return interrupted(ctx)
		}
		if err == nil {
			poll.Body = string(body)
		}
	}
	if s.gpus != nil {
		if reading, err := s.gpus.Read(ctx); err == nil {
			poll.GPU = &reading
		}
	}
	analysis.Add(poll)
	s.facts = analysis.Facts()
	return s.giveTypes()
}

// learnTreeGPUs opens the GPUs of the tree that is sampled, or all.
func (s *subject) learnTreeGPUs(ctx context.Context) error {
	var holder gpu.Holder
	if s.tree != nil {
		holder = gpu.Holder(s.fs.GPUHints(s.tree.Tree().Root))
	}
	return s.openGPUs(ctx, &s.o.options, holder)
}

// giveTypes lets the person say how weights and cache are stored, which engines
// other than vLLM do not tell.
func (s *subject) giveTypes() error {
	for _, given := range []struct {
		flag, text string
		fact       *engine.Fact[string]
	}{
		{"--weight-dtype", s.o.weight, &s.facts.WeightDType},
		{"--kv-dtype", s.o.kv, &s.facts.KVCacheDType},
	} {
		if given.text == "" {
			continue
		}
		d, ok := catalog.ParseDType(given.text)
		if !ok {
			return usage("%s: %q is no type rooftop knows; bf16, fp16, fp32, fp8, int8, int4, mxfp4 and nvfp4 are", given.flag, given.text)
		}
		*given.fact = engine.Know(string(d), engine.FromFlag, "")
	}
	return nil
}

// plan says what to sample.
func (s *subject) plan() microscope.Plan {
	p := microscope.Plan{Clock: s.clock, Period: s.o.period}
	if s.tree != nil {
		p.Processes = s.tree
	}
	if s.gpus != nil {
		p.GPUs = s.gpus
	}
	if s.page != nil {
		p.Page = newPagePace(s.page, s.clock.Now)
	}
	return p
}

// complete adds to a capture what the recorder does not know.
func (s *subject) complete(c *capture.Capture) {
	c.Tree.How, c.Tree.Why, c.Tree.Listener = s.treeHow, s.treeWhy, s.listener
	c.Missing = append(c.Missing, s.header.Missing...)
	c.Notes = append(append(c.Notes, s.header.Notes...), s.facts.Conflicts...)
	if s.tree != nil && s.tree.Own() {
		c.Notes = append(c.Notes, fmt.Sprintf("rooftop itself runs below process %d: its own processes are left out of the tree", c.Tree.Root))
	}
	if s.page != nil {
		c.PagesFrom, c.Counting = s.engine, s.page.Counting()
	}
	switch {
	case s.gpus == nil:
		c.GPUs.Why = or(s.header.GPUWhy, "no GPU is readable")
	default:
		c.GPUs.From, c.GPUs.How = s.gpus.Name(), s.how
		over := gpu.AveragingOf(s.gpus)
		c.GPUs.Averaging, c.GPUs.InstantPower = over.Window, over.InstantPower
		c.Missing = append(c.Missing, s.gpus.Missing()...)
		c.Notes = append(c.Notes, s.gpus.Notes()...)
	}
	if missed := microscope.Missed(c); missed != "" {
		c.Notes = append(c.Notes, missed)
	}
}

// setup is what was asked of whom.
func (s *subject) setup() capture.Setup {
	t := engine.Target{Engine: s.engine, Model: s.modelName(), Simulated: s.simulated()}
	if s.client != nil {
		t.URL = s.target.Base()
	}
	if s.engine == "vLLM" {
		t.EngineVersion = s.facts.EngineVersion.Value
	}
	return capture.Setup{Version: buildVersion(), Target: t}
}
