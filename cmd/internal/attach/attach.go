// Package attach finds a server, connects to it, and collects the facts that are known
// without a measurement.
package attach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/engines"
	"github.com/rooftop-dev/rooftop/cmd/internal/kube"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/enginepage"
	"github.com/rooftop-dev/rooftop/collect/gpu"
	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/facts"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

// Server is a server that answered, with the facts known before a measurement.
type Server struct {
	Target  collect.Target
	Client  *collect.Client // nil if only a process tree is examined
	Process *proc.Server    // nil if the server is elsewhere or unreadable
	// Workload is the object of Kubernetes that runs the server; nil without one.
	Workload *kube.Workload
	object   *kube.Object  // of Workload, as it was read last; nil if that failed
	Pages    *engines.Page // nil if only a process tree is examined
	GPUs     gpu.Source    // nil if none is readable
	How      string        // how the server's GPUs were identified
	Clock    func() time.Duration
	Header   session.Header
	release  []func() // close further connections
}

// Simulated reports whether the server is one of rooftop's simulated servers, which use no
// hardware.
func (a *Server) Simulated() bool { return a.Header.Target.Simulated }

// Close closes every connection.
func (a *Server) Close() {
	if a.Client != nil {
		a.Client.Close()
	}
	if a.GPUs != nil {
		_ = a.GPUs.Close()
	}
	for _, f := range a.release {
		f()
	}
}

// Measure measures the server for a time. record records it and show shows its progress; both may be nil.
func (a *Server) Measure(ctx context.Context, duration time.Duration, record *session.Recorder, show func(*session.Progress)) (engine.Diagnosis, error) {
	return session.Measure(ctx, session.Plan{Server: a.Session(), Version: cli.Version(), Duration: duration, Record: record, Progress: show})
}

// firstPageTries is how often a damaged first page is requested.
const firstPageTries = 3

// Stopwatch returns a clock that counts from the call of Stopwatch.
func Stopwatch() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

// Source returns what reads the pages and the health of another server with the same options, such as a
// canary, and what closes its connection.
func (o *Options) Source(url string) (pages session.Pages, health func(context.Context) engine.Health, closes func(), err error) {
	target, err := ParseTarget(url)
	if err != nil {
		return nil, nil, nil, err
	}
	client, err := NewClient(o, target)
	if err != nil {
		return nil, nil, nil, err
	}
	page := &engines.Page{Client: client}
	return page, page.Health, client.Close, nil
}

// NewClient returns a client of a server with the key and certificates of the options.
func NewClient(o *Options, target collect.Target) (*collect.Client, error) {
	token, err := o.Token()
	if err != nil {
		return nil, err
	}
	client, err := collect.NewClient(collect.Options{Target: target, Token: token, CAFile: o.CAFile, UserAgent: "rooftop/" + cli.Version()})
	if err != nil {
		return nil, cli.Usagef("%w", err)
	}
	return client, nil
}

// firstPage checks that a vLLM answers; the error is one sentence. It requests a damaged page
// again, because a run treats such a page as a gap too.
func (a *Server) firstPage(ctx context.Context, model string) error {
	var page engine.Page
	for try := 1; ; try++ {
		body, err := a.Pages.Page(ctx, nil)
		if ctx.Err() != nil {
			return cli.Interrupted(ctx)
		}
		if err != nil {
			return cli.Fail(cli.ExitUnreachable, err)
		}
		a.Header.Target.Simulated = enginepage.Simulated(body)
		err = engines.NewReader(model).Parse(body, &page)
		if err == nil {
			break
		}
		damaged := errors.Is(err, collect.ErrTruncated) || errors.Is(err, collect.ErrMalformed)
		if !damaged || try == firstPageTries {
			return cli.Fail(cli.ExitUnreachable, fmt.Errorf("%s: %w", a.Target.Metrics(), err))
		}
	}
	a.Header.Inputs.Engine = page.Engine
	if model != "" && !slices.Contains(page.Models, model) {
		return nil // the name is only for the catalog; the page's own model is measured
	}
	a.Header.Model = model
	return nil
}

// learn reads the process, the server's endpoints and the GPUs, and completes the header of
// the recording.
func (a *Server) learn(ctx context.Context, l *Locator) error {
	o := l.o
	if err := a.learnGiven(o); err != nil {
		return err
	}
	h := &a.Header
	h.Started = time.Now().UTC().Round(time.Millisecond)
	h.Target.URL = a.Target.Metrics()
	in := &h.Inputs
	switch {
	case l.pod != nil:
		h.Target.URL = tuning.KubeScheme + o.Kube
		a.learnPod(ctx, in, l.pod)
	case a.Workload != nil:
		h.Target.URL = tuning.KubeScheme + o.Kube
		a.learnWorkload(ctx, in)
	case l.Launch != nil:
		in.Local = true
		UseLaunch(in, l.Launch)
	default:
		a.learnProcess(in)
	}
	if err := a.learnModelConfig(in, o); err != nil {
		return err
	}
	if err := a.learnServer(ctx, in); err != nil {
		return cli.Interrupted(ctx)
	}
	a.Pages.Launch = in.Launch
	spell := catalog.EngineOf(in.Engine).Spell
	for i := range h.Missing { // what reads processes knows no engine's words
		m := &h.Missing[i]
		m.Reason, _ = spell(m.Reason)
		m.Effect, _ = spell(m.Effect)
	}
	if a.Simulated() {
		return a.learnSimulatedGPUs(ctx, o)
	}
	if in.OnCPU && o.DCGMURL == "" {
		h.GPUWhy = "the server runs on a CPU"
		return nil
	}
	var hints collect.GPUHints
	if a.Process != nil {
		hints = a.Process.GPUHints()
	}
	if err := a.OpenGPUs(ctx, o, hints); err != nil {
		return err
	}
	if in.Engine == catalog.LlamaCPP && in.Launch != nil && a.GPUs == nil && a.Workload == nil && runtime.GOOS == "linux" {
		in.OnCPU = true // where it finds no GPU, it computes on the CPU
		h.GPUWhy = "the server runs on a CPU"
	}
	return nil
}

// NewServer returns a server of which only what the user gives is known.
func NewServer(o *Options) (*Server, error) {
	a := new(Server)
	if err := a.learnGiven(o); err != nil {
		return nil, err
	}
	return a, a.learnModelConfig(&a.Header.Inputs, o)
}

// learnGiven adds the user's input to the header: the catalog, flags, variables and what bounds a report.
func (a *Server) learnGiven(o *Options) error {
	_, text, err := cli.UserCatalog(o.CatalogFile)
	if err != nil {
		return err
	}
	h := &a.Header
	h.Schema, h.Version = session.RecordingSchema, cli.Version()
	if text != "" {
		h.Catalog, h.CatalogName = text, o.CatalogFile
	}
	h.Inputs.Flags, h.Inputs.Env = o.Given()
	h.Inputs.Spot = o.Spot
	h.Ceiling, h.Objectives = o.Ceiling, o.Objectives
	return nil
}

// Correct returns a function that puts what the user gives about a server in place of what the recording with a header
// says. It returns a usage error.
func (o *Options) Correct(recorded *session.Header) (func(*session.Header), error) {
	given, err := NewServer(o)
	if err != nil {
		return nil, err
	}
	correct := func(h *session.Header) {
		in, by := &h.Inputs, &given.Header.Inputs
		in.Flags = by.Flags.Over(in.Flags)
		in.Spot = in.Spot || by.Spot
		if by.ModelConfig != nil {
			in.ModelConfig, in.ModelConfigFrom, in.ModelConfigNote = by.ModelConfig, by.ModelConfigFrom, by.ModelConfigNote
		}
		if given.Header.Catalog != "" {
			h.Catalog, h.CatalogName = given.Header.Catalog, given.Header.CatalogName
		}
	}
	corrected := *recorded
	correct(&corrected)
	known, err := corrected.Hardware()
	if err != nil {
		return nil, err
	}
	return correct, o.knownIn(known)
}

// Miss records what cannot be read, why, and what that switches off.
func (a *Server) Miss(what, reason, effect string) {
	a.Header.Missing = append(a.Header.Missing, engine.Missing{What: what, Reason: reason, Effect: effect})
}

// launchCommand is the name of what is missing if a server's process is unknown.
const launchCommand = "launch command"

// learnProcess reads the server's process and finds it first if necessary.
func (a *Server) learnProcess(in *facts.Inputs) {
	if a.Process == nil {
		s, err := a.Discover()
		if err != nil {
			a.Miss(launchCommand, err.Error(), engine.WithoutLaunch)
			return
		}
		a.Process = s
	}
	s := a.Process
	a.Header.Missing = append(a.Header.Missing, s.Missing...)
	a.Header.Notes = append(a.Header.Notes, s.Notes...)
	in.Local = true
	if s.IsEngine() { // else a forwarder, say
		in.PID = s.ListenerPID
	}
	if s.Launch == nil {
		return
	}
	UseLaunch(in, s.Launch)
	in.LaunchIn = s.Place()
	_, in.OnCPU = s.Env["VLLM_CPU_KVCACHE_SPACE"]
	in.OnCPU = in.OnCPU && !a.Simulated()
}

// UseLaunch adds the settings of a launch to the inputs.
func UseLaunch(in *facts.Inputs, c *launch.Config) {
	in.Launch = facts.FromLaunch(c)
	in.LaunchModel, _, _ = c.Model()
	in.LaunchText = c.String()
}

// Closing returns sentences, at the end of a run, about processes of the server that no
// longer work (the page then answers with frozen numbers) and about a restart during the
// run. It returns nil if there is nothing to report.
func (a *Server) Closing() []string {
	if a.Process == nil {
		return nil
	}
	if a.Process.Alive() {
		var out []string
		for _, p := range a.Process.Health() {
			out = append(out, p.String()+": the page may answer with frozen numbers")
		}
		return out
	}
	now, err := a.Discover()
	if err != nil || now.Launch == nil || a.Process.Launch == nil {
		return []string{"the server's process ended during the run; the facts are from before"}
	}
	changes := launch.Diff(a.Process.Launch, now.Launch)
	if len(changes) == 0 {
		return []string{"the server was restarted during the run with the same settings"}
	}
	var list []string
	for _, c := range changes {
		list = append(list, c.String())
	}
	return []string{"the server was restarted during the run with other settings (" + strings.Join(list, ", ") + "); the facts are from before the restart: measure again"}
}

// Discover finds the server among this machine's processes.
func (a *Server) Discover() (*proc.Server, error) {
	if a.Workload != nil {
		return nil, fmt.Errorf("%w: it runs in a pod of %s", proc.ErrNotLocal, a.Workload)
	}
	host, port := HostPort(a.Target)
	ips, ok := proc.Addresses(host)
	if !ok {
		return nil, fmt.Errorf("%w: %s may be another machine; run rooftop where the server runs and name it by address, or give -m and --model", proc.ErrNotLocal, host)
	}
	fs, err := proc.Open(ProcRoot)
	if err != nil {
		return nil, err
	}
	own, err := proc.OwnAddresses()
	if err != nil {
		return nil, err
	}
	return fs.Discover(ips, own, port)
}

// learnModelConfig reads the model's config.json from --model-config or from the server's
// files. It fails only if the user's file is invalid.
func (a *Server) learnModelConfig(in *facts.Inputs, o *Options) error {
	if o.ModelConfig != "" {
		m, err := ReadModelConfig(o.ModelConfig)
		if err != nil {
			return err
		}
		in.ModelConfig, in.ModelConfigFrom, in.ModelConfigNote = &m, engine.FromFlag, o.ModelConfig
		return nil
	}
	if a.Process == nil || in.Engine == catalog.LlamaCPP { // whose models are single files
		return nil
	}
	text, at, err := a.Process.ModelConfig(in.LaunchModel)
	var m catalog.Model
	if err == nil {
		if m, err = catalog.ParseModelConfig(bytes.NewReader(text)); err != nil {
			err = fmt.Errorf("%s: %w", at, err)
		}
	}
	if err == nil {
		in.ModelConfig, in.ModelConfigFrom, in.ModelConfigNote = &m, engine.FromConfig, at
	}
	// A simulated server takes its model from the catalog, unless it is a directory.
	expected := a.Simulated() && errors.Is(err, proc.ErrNoFile)
	if err != nil && in.LaunchModel != "" && !expected {
		a.Miss("config.json of the model", err.Error(), "the model's shape comes from the catalog, by its name")
	}
	return nil
}

// learnServer requests the server's endpoints other than the metrics page.
func (a *Server) learnServer(ctx context.Context, in *facts.Inputs) error {
	facts, missing, err := engines.Of(in.Engine).Discover(ctx, a.Client)
	in.Server = facts
	for _, m := range missing {
		// The launch command has everything that /server_info would have.
		if m.What == "/server_info" && in.Launch != nil {
			continue
		}
		a.Header.Missing = append(a.Header.Missing, m)
	}
	if strings.Contains(facts.Version, "cpu") || facts.Args["device"] == "cpu" {
		in.OnCPU = true
	}
	return err
}
