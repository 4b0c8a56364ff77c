package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/gpu"
	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/collect/promtext"
	"github.com/rooftop-dev/rooftop/collect/vllm"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// attached is a server that answered, with everything found out about it before
// measuring.
type attached struct {
	target  collect.Target
	client  *collect.Client // nil where a process tree alone is looked at
	process *proc.Server    // nil where the server is elsewhere or unreadable
	pages   session.Pages
	gpus    gpu.Source // nil where none is readable
	how     string     // how the server's GPUs were told from others
	clock   func() time.Duration
	header  session.Header
	release []func() // connections beside the client's
}

// simulated says that the server is one of rooftop's own simulated ones: nothing
// of it is hardware.
func (a *attached) simulated() bool { return a.header.Target.Simulated }

func (a *attached) close() {
	if a.client != nil {
		a.client.Close()
	}
	if a.gpus != nil {
		_ = a.gpus.Close()
	}
	for _, f := range a.release {
		f()
	}
}

// firstPageTries is how often a damaged first page is asked for.
const firstPageTries = 3

// metricsPage fetches the page over the shared client.
type metricsPage struct{ client *collect.Client }

func (p metricsPage) Page(ctx context.Context, buf []byte) ([]byte, error) {
	return p.client.Get(ctx, "/metrics", collect.MetricsAccept, buf)
}

// attach finds the server, makes sure that it is one, and learns what can be
// known of it without measuring.
func attach(ctx context.Context, o *options) (*attached, error) {
	if err := o.knownGPU(); err != nil {
		return nil, err
	}
	target, found, err := findTarget(o)
	if err != nil {
		return nil, err
	}
	return attachTo(ctx, o, target, found, stopwatch())
}

// stopwatch shows the time since it was made.
func stopwatch() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

// attachTo learns what can be known of the server at an address. found is its
// process where that is known already, nil is looked for.
func attachTo(ctx context.Context, o *options, target collect.Target, found *proc.Server, clock func() time.Duration) (*attached, error) {
	token, err := o.token()
	if err != nil {
		return nil, err
	}
	client, err := collect.NewClient(collect.Options{
		Target: target, Token: token, CAFile: o.caFile, UserAgent: "rooftop/" + buildVersion(),
	})
	if err != nil {
		return nil, usage("%w", err)
	}
	a := &attached{target: target, client: client, pages: metricsPage{client}, process: found, clock: clock}
	if err := a.firstPage(ctx, o.model); err != nil {
		client.Close()
		return nil, err
	}
	if err := a.learn(ctx, o); err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// firstPage makes sure that a vLLM answers, with one sentence where it does not.
// A page that came damaged is asked for again: a run treats it as a gap too.
func (a *attached) firstPage(ctx context.Context, model string) error {
	var page engine.Page
	for try := 1; ; try++ {
		body, err := a.pages.Page(ctx, nil)
		if ctx.Err() != nil {
			return interrupted(ctx)
		}
		if err != nil {
			return fail(exitUnreachable, err)
		}
		a.header.Target.Simulated = vllm.Simulated(body)
		err = vllm.NewReader(model).Parse(body, &page)
		if err == nil {
			break
		}
		damaged := errors.Is(err, promtext.ErrTruncated) || errors.Is(err, promtext.ErrMalformed)
		if !damaged || try == firstPageTries {
			return fail(exitUnreachable, fmt.Errorf("%s: %w", a.target.Metrics(), err))
		}
	}
	if model != "" && !slices.Contains(page.Models, model) {
		return nil // the name is for the catalog; the page's own model is measured
	}
	a.header.Model = model
	return nil
}

// learn asks the process, the server's endpoints and the GPUs, and settles the
// header that a recording begins with.
func (a *attached) learn(ctx context.Context, o *options) error {
	_, text, err := userCatalog(o.catalogFile)
	if err != nil {
		return err
	}
	flags, env := o.given()
	h := &a.header
	h.Schema, h.Version, h.Started = session.RecordingSchema, buildVersion(), time.Now().UTC().Round(time.Millisecond)
	h.Catalog, h.CatalogName = text, o.catalogFile
	h.Target.URL = a.target.Metrics()
	in := &h.Inputs
	in.Flags, in.Env, in.Spot = flags, env, o.spot
	if h.Catalog == "" {
		h.CatalogName = ""
	}
	if o.launch != nil {
		in.Local = true
		knownLaunch(in, o.launch)
	} else {
		a.learnProcess(in)
	}
	if err := a.learnModelConfig(in, o); err != nil {
		return err
	}
	if err := a.learnServer(ctx, in); err != nil {
		return interrupted(ctx)
	}
	if a.simulated() {
		return a.learnSimulatedGPUs(ctx, o)
	}
	if in.OnCPU && o.dcgmURL == "" {
		h.GPUWhy = "the server runs on a CPU"
		return nil
	}
	return a.learnGPUs(ctx, o)
}

func (a *attached) miss(what, reason, effect string) {
	a.header.Missing = append(a.header.Missing, engine.Missing{What: what, Reason: reason, Effect: effect})
}

// launchCommand names what is missing where a server's process is not known.
const launchCommand = "launch command"

// learnProcess finds the server among this machine's processes.
func (a *attached) learnProcess(in *engine.Inputs) {
	if a.process == nil {
		s, err := a.discover()
		if err != nil {
			a.miss(launchCommand, err.Error(), "flags come from the page, from rooftop's own flags, or are vLLM's defaults")
			return
		}
		a.process = s
	}
	s := a.process
	for _, gap := range s.Missing {
		a.header.Missing = append(a.header.Missing, engine.Missing(gap))
	}
	a.header.Notes = append(a.header.Notes, s.Notes...)
	in.Local, in.PID = true, s.ListenerPID
	if s.Launch == nil {
		return
	}
	knownLaunch(in, s.Launch)
	_, in.OnCPU = s.Env["VLLM_CPU_KVCACHE_SPACE"]
	in.OnCPU = in.OnCPU && !a.simulated()
}

// knownLaunch takes in what a launch says.
func knownLaunch(in *engine.Inputs, c *launch.Config) {
	in.Launch = session.Settings(c)
	in.LaunchModel, _, _ = c.Model()
	in.LaunchText = c.String()
}

// closing says, at the end of a run, what became of the server's processes:
// which of them no longer work (the page goes on answering with frozen numbers
// then), and whether the server was started anew with other settings.
func (a *attached) closing() []string {
	if a.process == nil {
		return nil
	}
	if a.process.Alive() {
		var out []string
		for _, p := range a.process.Health() {
			out = append(out, p.String()+": the page may answer with frozen numbers")
		}
		return out
	}
	now, err := a.discover()
	if err != nil || now.Launch == nil || a.process.Launch == nil {
		return []string{"the server's process ended during the run; the facts are those from before"}
	}
	changes := launch.Diff(a.process.Launch, now.Launch)
	if len(changes) == 0 {
		return []string{"the server was started anew during the run, with the same settings"}
	}
	var list []string
	for _, c := range changes {
		list = append(list, c.String())
	}
	return []string{"the server was started anew during the run with other settings (" + strings.Join(list, ", ") + "); the facts are those from before: measure again"}
}

func (a *attached) discover() (*proc.Server, error) {
	host, port := splitHostPort(a.target)
	ips, ok := proc.Addresses(host)
	if !ok {
		return nil, fmt.Errorf("%w: %s may be another machine; run rooftop where the server runs and name it by address, or give -m and --model", proc.ErrNotLocal, host)
	}
	fs, err := proc.Open(procRoot)
	if err != nil {
		return nil, err
	}
	own, err := proc.OwnAddresses()
	if err != nil {
		return nil, err
	}
	return fs.Discover(ips, own, port)
}

// learnModelConfig reads the model's own config.json where it can be had.
func (a *attached) learnModelConfig(in *engine.Inputs, o *options) error {
	read := func(text []byte, from engine.Source, note string) error {
		m, err := catalog.ParseModelConfig(bytes.NewReader(text))
		if err != nil {
			return fmt.Errorf("%s: %w", note, err)
		}
		in.ModelConfig, in.ModelConfigFrom, in.ModelConfigNote = &m, from, note
		return nil
	}
	if o.modelConfig != "" {
		text, err := readFile(o.modelConfig, 8<<20)
		if err == nil {
			err = read(text, engine.FromFlag, o.modelConfig)
		}
		if err != nil {
			return usage("--model-config: %w", err)
		}
		return nil
	}
	if a.process == nil {
		return nil
	}
	text, at, err := a.process.ModelConfig(in.LaunchModel)
	if err == nil {
		err = read(text, engine.FromConfig, at)
	}
	// A simulated server's model is the catalog's, unless it was a directory.
	expected := a.simulated() && errors.Is(err, proc.ErrNotFound)
	if err != nil && in.LaunchModel != "" && !expected {
		a.miss("config.json of the model", err.Error(), "the model's shape comes from the catalog, by its name")
	}
	return nil
}

// learnServer asks the server's own endpoints, over the same connection.
func (a *attached) learnServer(ctx context.Context, in *engine.Inputs) error {
	facts, missing, err := vllm.Discover(ctx, a.client)
	in.Server = facts
	for _, m := range missing {
		// The launch command says all that /server_info would.
		if m.What == "/server_info" && in.Launch != nil {
			continue
		}
		a.header.Missing = append(a.header.Missing, m)
	}
	if strings.Contains(facts.Version, "cpu") {
		in.OnCPU = true
	}
	return err
}
