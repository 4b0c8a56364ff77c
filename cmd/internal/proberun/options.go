package proberun

import (
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/engine/capture"
)

// Options are the flags of a probe or an observation.
type Options struct {
	attach.Options

	pid    int
	period time.Duration
	window time.Duration // of an observation

	api, prompt, promptFile, system string
	maxTokens, repeat, concurrency  int
	ignoreEOS, greedy, answers      bool
	headers                         []string
	sent                            map[string][]string // headers, read once because a file may be a pipe
	timeout, firstTimeout           time.Duration

	weight, kv string

	save string
}

// RegisterProbe adds the flags of a probe.
func (o *Options) RegisterProbe(g *cli.FlagGroups) {
	o.registerRequests(g)
	o.registerSampling(g)
	o.registerKnown(g)
	o.registerOutput(g)
}

// RegisterObservation adds the flags of an observation.
func (o *Options) RegisterObservation(g *cli.FlagGroups) {
	o.RegisterServer(g)
	f := g.Group("The window")
	f.DurationVar(&o.window, "duration", 10*time.Second, "`TIME` to watch")
	f.StringVar(&o.Model, "model", "", "`NAME` of the model, where the served one says too little")
	o.registerSampling(g)
	o.registerKnown(g)
	o.registerOutput(g)
}

// registerRequests adds the flags for requests.
func (o *Options) registerRequests(g *cli.FlagGroups) {
	o.RegisterServer(g)
	f := g.Group("What is asked")
	f.StringVar(&o.prompt, "prompt", defaultPrompt, "`TEXT` of the prompt")
	f.StringVar(&o.promptFile, "prompt-file", "", "`FILE` that holds the prompt; - is stdin")
	f.StringVar(&o.system, "system", "", "`TEXT` of a system message")
	cli.Choice(f, &o.api, "api", capture.Chat, "`WHICH` interface: chat or completion", capture.Chat, capture.Completion)
	f.StringVar(&o.Model, "model", "", "`NAME` of the model: served (default: the first of /v1/models), or the catalog's for the ceilings")
	f.IntVar(&o.maxTokens, "max-tokens", 128, "`N` output tokens at most")
	f.BoolVar(&o.ignoreEOS, "ignore-eos", false, "ask the server to generate all of them, whatever the model says")
	f.BoolVar(&o.greedy, "greedy", false, "temperature 0: the likeliest token each time")
	f.IntVar(&o.repeat, "repeat", 1, "`N` requests in all")
	f.IntVar(&o.concurrency, "concurrency", 1, "`N` clients, each with one request at a time")
	f.StringArrayVar(&o.headers, "header", nil, "`NAME: VALUE` to send with each request, or NAME: @FILE; repeatable")
	f.DurationVar(&o.firstTimeout, "first-token-timeout", 2*time.Minute, "`TIME` to wait for a first token; 0 means no limit")
	f.DurationVar(&o.timeout, "timeout", 10*time.Minute, "`TIME` for a whole request; 0 means no limit")
}

// registerSampling adds the flags for sampling.
func (o *Options) registerSampling(g *cli.FlagGroups) {
	f := g.Group("What is sampled")
	f.IntVar(&o.pid, "pid", 0, "`PID` whose process tree is sampled (default: that of the server's port)")
	f.DurationVar(&o.period, "period", DefaultPeriod, "`TIME` between samples of processes and GPUs")
}

// registerKnown adds the flags for facts that cannot be read from a server.
func (o *Options) registerKnown(g *cli.FlagGroups) {
	f := g.Group("What cannot be read")
	f.StringVar(&o.GPU, "gpu", "", "`NAME` of the GPU: \"H100 SXM\", L4, …")
	f.IntVar(&o.TP, "tensor-parallel-size", 0, "`N` GPUs: the server's own tensor-parallel degree")
	f.StringVar(&o.ModelConfig, "model-config", "", "config.json `FILE` of the model")
	f.StringVar(&o.weight, "weight-dtype", "", "`TYPE` of the weights: bf16, fp8, int4, …")
	f.StringVar(&o.kv, "kv-dtype", "", "`TYPE` of the KV cache")
	f.StringVar(&o.CatalogFile, "catalog", "", "YAML `FILE` with further GPUs and models")
	f.Float64Var(&o.Cost, "cost-per-hour", 0, "`USD` per hour for the whole server")
	f.BoolVar(&o.Spot, "spot", false, "take the catalog's spot prices, where no cost is given")
}

// registerOutput adds the flags for outputs.
func (o *Options) registerOutput(g *cli.FlagGroups) {
	o.Output.Register(g, "each process and GPU, and every reason in full")
	f := g.Group("Files")
	f.StringVar(&o.save, "save", "", "`FILE` for the JSON document, beside the report")
	if g.Command.Name() == "probe" {
		f.BoolVar(&o.answers, "keep-answers", false, "put the answers into the document")
	}
}

// check rejects invalid options, before a server is contacted.
func (o *Options) check() error {
	if err := o.Options.Check(); err != nil {
		return err
	}
	switch {
	case o.pid < 0:
		return cli.Usagef("--pid must be a process, not %d", o.pid)
	case o.period < minPeriod || o.period > maxPeriod:
		return cli.Usagef("--period must be %v to %v, not %v", minPeriod, maxPeriod, o.period)
	case min(o.timeout, o.firstTimeout) < 0:
		return cli.Usagef("a timeout cannot be negative; 0 means no limit")
	}
	var err error
	if o.sent, err = parseHeaders(o.headers); err != nil {
		return err
	}
	if err := writable(o.save); err != nil {
		return cli.Usagef("--save: %w", err)
	}
	return nil
}
