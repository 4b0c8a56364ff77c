package main

import (
	"path/filepath"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/microscope"
	"github.com/rooftop-dev/rooftop/cmd/internal/otlp"
	"github.com/rooftop-dev/rooftop/engine/capture"
)

// probeOptions are the flags of probe and observe.
type probeOptions struct {
	options

	pid    int
	period time.Duration
	window time.Duration // of an observation

	api, prompt, promptFile, system    string
	maxTokens, repeat, concurrency     int
	ignoreEOS, greedy, answers         bool
	headers                            []string
	sent                               map[string][]string // of the headers, read once: a file may be a pipe
	timeout, firstTimeout, idleTimeout time.Duration
	connectTimeout                     time.Duration

	weight, kv string

	save, trace              string
	otlp, otlpHeader, otlpCA string
	collector                *otlp.Options // nil where nobody asked for one
}

// registerRequests are the flags of what is asked.
func (o *probeOptions) registerRequests(g *flagGroups) {
	o.registerServer(g)
	f := g.group("What is asked")
	f.StringVar(&o.prompt, "prompt", defaultPrompt, "`TEXT` of the prompt")
	f.StringVar(&o.promptFile, "prompt-file", "", "`FILE` that holds the prompt; - is stdin")
	f.StringVar(&o.system, "system", "", "`TEXT` of a system message")
	f.StringVar(&o.api, "api", capture.Chat, "`WHICH` interface: chat or completion")
	f.StringVar(&o.model, "model", "", "`NAME` of the model: served (default: the first of /v1/models), or the catalog's for the ceilings")
	f.IntVar(&o.maxTokens, "max-tokens", 128, "`N` output tokens at most")
	f.BoolVar(&o.ignoreEOS, "ignore-eos", false, "ask vLLM to generate all of them, whatever the model says")
	f.BoolVar(&o.greedy, "greedy", false, "temperature 0: the likeliest token each time")
	f.IntVar(&o.repeat, "repeat", 1, "`N` requests in all")
	f.IntVar(&o.concurrency, "concurrency", 1, "`N` clients, each with one request at a time")
	f.StringArrayVar(&o.headers, "header", nil, "`NAME: VALUE` to send with each request, or NAME: @FILE; repeatable")
	f.DurationVar(&o.connectTimeout, "connect-timeout", 5*time.Second, "`TIME` for a connection")
	f.DurationVar(&o.firstTimeout, "first-token-timeout", 2*time.Minute, "`TIME` to wait for a first token; 0 is for ever")
	f.DurationVar(&o.idleTimeout, "idle-timeout", 30*time.Second, "`TIME` to wait for the next token; 0 is for ever")
	f.DurationVar(&o.timeout, "timeout", 10*time.Minute, "`TIME` for a whole request; 0 is for ever")
}

// registerSampling are the flags of what is sampled.
func (o *probeOptions) registerSampling(g *flagGroups) {
	f := g.group("What is sampled")
	f.IntVar(&o.pid, "pid", 0, "`PID` whose process tree is sampled (default: that of the server's port)")
	f.DurationVar(&o.period, "period", microscope.DefaultPeriod, "`TIME` between samples of processes and GPUs")
}

// registerKnown are the flags for what cannot be read of a server.
func (o *probeOptions) registerKnown(g *flagGroups) {
	f := g.group("What cannot be read")
	f.StringVar(&o.gpu, "gpu", "", "`NAME` of the GPU: \"H100 SXM\", L4, …")
	f.IntVar(&o.tp, "tensor-parallel-size", 0, "`N` GPUs: the server's own tensor-parallel degree")
	f.StringVar(&o.modelConfig, "model-config", "", "config.json `FILE` of the model")
	f.StringVar(&o.weight, "weight-dtype", "", "`TYPE` of the weights: bf16, fp8, int4, …")
	f.StringVar(&o.kv, "kv-dtype", "", "`TYPE` of the KV cache")
	f.StringVar(&o.catalogFile, "catalog", "", "YAML `FILE` with further GPUs and models")
	f.Float64Var(&o.cost, "cost-per-hour", 0, "`USD` per hour for the whole server")
	f.BoolVar(&o.spot, "spot", false, "take the catalog's spot prices, where no cost is given")
}

// registerOutput are the flags of what becomes of the run.
func (o *probeOptions) registerOutput(g *flagGroups) {
	o.output.register(g, "each process and GPU, and every reason in full")
	f := g.group("Files and collectors")
	f.StringVar(&o.save, "save", "", "`FILE` for the JSON document, beside the report")
	f.StringVar(&o.trace, "trace", "", "`FILE` for a trace that ui.perfetto.dev and chrome://tracing open")
	f.StringVar(&o.otlp, "otlp-endpoint", "", "`URL` of an OpenTelemetry collector (OTLP over HTTP) to send traces and metrics to")
	f.StringVar(&o.otlpHeader, "otlp-headers-file", "", "`FILE` with a NAME: VALUE on each line, for the collector")
	f.StringVar(&o.otlpCA, "otlp-ca-file", "", "PEM `FILE` of certificates to trust for the collector")
	if g.command.Name() == "probe" {
		f.BoolVar(&o.answers, "keep-answers", false, "put the answers into the document")
	}
}

// check refuses what cannot be meant, before anything is asked of a server.
func (o *probeOptions) check() error {
	if err := o.options.check(); err != nil {
		return err
	}
	switch {
	case o.pid < 0:
		return usage("--pid must be a process, not %d", o.pid)
	case o.period < minPeriod || o.period > maxPeriod:
		return usage("--period must be %v to %v, not %v", minPeriod, maxPeriod, o.period)
	case min(o.timeout, o.firstTimeout, o.idleTimeout, o.connectTimeout) < 0:
		return usage("a timeout cannot be negative; 0 waits for ever")
	case o.flags.Changed("connect-timeout") && o.connectTimeout == 0:
		return usage("--connect-timeout must be more than 0: no system waits for ever for a connection")
	}
	var err error
	if o.sent, err = parseHeaders(o.headers); err != nil {
		return err
	}
	if o.collector, err = o.readCollector(); err != nil {
		return err
	}
	for _, file := range []struct{ flag, path string }{{"--save", o.save}, {"--trace", o.trace}} {
		if err := writable(file.path); err != nil {
			return usage("%s: %w", file.flag, err)
		}
	}
	if o.save != "" && filepath.Clean(o.save) == filepath.Clean(o.trace) {
		return usage("--save and --trace name one file, %s: name two", o.save)
	}
	return nil
}
