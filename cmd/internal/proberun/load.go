package proberun

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/loadgen"
	"github.com/rooftop-dev/rooftop/collect/probe"
)

// LoadOptions are the flags of load.
type LoadOptions struct {
	cli.Output
	flags *pflag.FlagSet
	env   func(string) (string, bool)

	model, apiKeyFile, caFile string
	named                     attach.Options // --url or --kube

	offered loadgen.Load // set directly by flags; load adds the others
	// Flags as text.
	arrival, think, steps, prompt, answer, turns, style, trace string
	slo, adapters                                              []string
	burstiness                                                 float64
}

// NewLoad returns the options of a load.
func NewLoad(w *cli.World) *LoadOptions { return &LoadOptions{env: w.Env} }

// Register adds the flags of a load.
func (o *LoadOptions) Register(g *cli.FlagGroups) {
	o.flags = g.Command.Flags()
	l := &o.offered
	f := g.Group("The server")
	f.StringVarP(&o.named.URL, "url", "u", "", "the server's base `URL` or host:port")
	o.named.RegisterKube(f)
	f.StringVar(&o.model, "model", "", "served `NAME` (default: the first of /v1/models)")
	f.StringVar(&o.apiKeyFile, "api-key-file", "", "`FILE` that holds the server's API key; else the variable ROOFTOP_API_KEY")
	f.StringVar(&o.caFile, "ca-file", "", "PEM `FILE` of certificates to trust instead of the system's")

	f = g.Group("When requests come")
	f.IntVar(&l.Clients, "clients", 16, "`N` clients of a closed loop")
	f.StringVar(&o.think, "think", "0s", "pause `TIME` of a client between its requests: 2s, 1s-5s, exp:2s, lognormal:2s,0.5")
	f.DurationVar(&l.Stagger, "stagger", 0, "spread the clients' starts over `TIME` (default: 50ms for each, at most 10s)")
	f.Float64Var(&l.Rate, "rate", 0, "`R` requests a second of an open loop")
	f.StringVar(&o.arrival, "arrival", "", "`HOW` they come: closed, poisson, gamma, constant or trace (default: closed; poisson with --rate)")
	f.Float64Var(&o.burstiness, "burstiness", 1, "`B` of gamma arrivals, as in vllm bench: 1/CV² of the gaps; below 1 is bursty")
	f.StringVar(&o.steps, "steps", "", "`LEVELS` one after another, as LEVEL:TIME or FROM-TO:TIME,…: clients, or requests a second of an open loop")
	f.DurationVar(&l.Duration, "duration", 60*time.Second, "`TIME` to send requests; 0 sets no limit")
	f.IntVar(&l.Requests, "requests", 0, "send `N` in all; then no --duration is needed")

	f = g.Group("What they ask")
	f.StringVar(&o.prompt, "prompt-tokens", "100", "`LENGTH` of prompts, shared prefix included")
	f.StringVar(&o.answer, "output-tokens", "64", "`LENGTH` to generate")
	f.BoolVar(&l.IgnoreEOS, "ignore-eos", true, "ask the server to generate the whole length")
	f.BoolVar(&l.Chat, "chat", false, "chat completions, with messages")
	f.IntVar(&l.SharedPrefixTokens, "prefix-tokens", 0, "`N` tokens that begin every prompt of a group")
	f.IntVar(&l.PrefixGroups, "prefix-groups", 1, "`N` different prefixes")
	f.StringVar(&o.turns, "turns", "1", "`LENGTH` of a session in requests, each with what was said before in its prompt")
	f.StringSliceVar(&o.adapters, "adapters", nil, "`NAMES` of models or adapters to ask for, as NAME or NAME=WEIGHT,…")
	f.StringVar(&o.style, "prompt-style", "auto", "`STYLE` of prompts: words, characters, or auto, which asks the server")
	f.Uint64Var(&l.Seed, "seed", 1, "`SEED` of everything that is drawn")

	f = g.Group("When clients leave")
	f.DurationVar(&l.Deadline, "deadline", 0, "`TIME` after which a request is given up")
	f.BoolVar(&l.Retry, "retry", false, "send failed requests of an open loop again, until their deadline and at most 99 times; not those that the server refuses as such")

	f = g.Group("Recorded load")
	f.StringVar(&o.trace, "trace", "", "`FILE` of requests")
	f.Float64Var(&l.TraceSpeed, "trace-speed", 1, "`X` times as fast as recorded")

	f = g.Group("Output")
	f.StringArrayVar(&o.slo, "slo", nil, "`OBJECTIVES` that a good request meets, as ttft=500ms,itl=60ms,tpot=50ms,e2e=10s; itl allows 1 gap in 100 to be longer")
	f.BoolVar(&o.JSON, "json", false, "one JSON document instead of text")
	f.BoolVar(&o.Plain, "plain", false, "no progress line")
}

// Run sends the load and prints the results.
func (o *LoadOptions) Run(ctx context.Context, w *cli.World) error {
	offered, err := o.load()
	if err != nil {
		return err
	}
	switch {
	case o.named.URL == "" && o.named.Kube == "":
		return cli.Usagef("load needs a server: give --url or --kube")
	case o.named.URL == "":
	case o.named.Context != "" && o.named.Kube == "":
		return cli.Usagef("--context %s goes with --kube [NAMESPACE/]KIND/NAME", o.named.Context)
	case o.named.Kube != "":
		return cli.Usagef("--kube %s and --url %s name two servers: give one", o.named.Kube, o.named.URL)
	}
	server := attach.NewLocator(&o.named)
	if err := server.Find(ctx); err != nil {
		return err
	}
	target := server.Target
	client, err := o.client(target)
	if err != nil {
		return err
	}
	defer client.Close()
	how, err := o.calibrate(ctx, client, offered)
	if ended := cli.SignalCode(ctx); ended != 0 {
		return cli.Exit(ended)
	}
	if err != nil {
		return cli.Fail(cli.ExitUnreachable, server.Unreached(unreached(target, err)))
	}
	// The calibration may make lengths invalid.
	if err := offered.Validate(); err != nil {
		return cli.Usagef("load: %s", oneLine(err))
	}
	s, err := loadgen.Run(ctx, client, *offered, loadProgress(w, o, offered))
	cli.NewProgress(w, &o.Output).Done()
	ended := cli.SignalCode(ctx)
	if err := writeLoad(w, o, &s, offered, how); err != nil {
		return err
	}
	if ended != 0 {
		return cli.Exit(ended)
	}
	if err == nil {
		err = unanswered(&s)
	}
	if err != nil {
		return cli.Fail(cli.ExitUnreachable, fmt.Errorf("load %s: %w", target, err))
	}
	return nil
}

// unreached says which server the load could not begin on, and what to do if it was not reached.
func unreached(target collect.Target, err error) error {
	var failed *url.Error
	if errors.As(err, &failed) && !failed.Timeout() {
		return target.Unreached(failed.URL, 0, failed.Err)
	}
	return fmt.Errorf("load %s: %w", target, err)
}

// unanswered explains why no request was answered. It returns nil if one was, or if the load itself
// cancelled requests.
func unanswered(s *loadgen.Summary) error {
	switch {
	case s.Sent == 0 || s.Requests > 0 || s.Cancelled > 0:
		return nil
	case len(s.Failures) > 0:
		return fmt.Errorf("no request was answered: %s", s.Failures[0].Example)
	case s.Expired > 0:
		return fmt.Errorf("no request was answered: %d were given up at their deadline; give a longer --deadline", s.Expired)
	case s.OutputTokens == 0:
		return errors.New("no request was answered before the end of the run; give a longer --duration")
	}
	return nil
}

// client returns a client, which does not connect yet.
func (o *LoadOptions) client(target collect.Target) (*probe.Client, error) {
	key, err := attach.APIKey(o.env, o.apiKeyFile)
	if err != nil {
		return nil, err
	}
	client, err := probe.NewClient(target, probe.Options{Model: o.model, APIKey: key, CAFile: o.caFile})
	if err != nil {
		return nil, cli.Usagef("load: %w", err)
	}
	return client, nil
}

// calibrate asks the server once how its tokenizer splits words, and returns a description of how
// lengths became text.
func (o *LoadOptions) calibrate(ctx context.Context, client *probe.Client, l *loadgen.Load) (how string, err error) {
	if _, err := client.Model(ctx); err != nil {
		return "", err
	}
	if o.style == "characters" {
		return "a character taken as a token", nil
	}
	c, err := client.Calibrate(ctx, loadgen.Vocabulary)
	if err != nil && ctx.Err() == nil && c == (probe.Calibration{}) {
		if probe.Unreachable(err) {
			return "", err
		}
		return "a word taken as a token: " + err.Error(), nil
	}
	if err != nil {
		return "", err
	}
	if c.Characters && o.style == "auto" {
		l.Style = loadgen.Characters
		return "a character is a token, says " + c.Source, nil
	}
	l.TokensPerWord = c.TokensPerWord
	return fmt.Sprintf("%.4g tokens a word, says %s", c.TokensPerWord, c.Source), nil
}

// loadProgress returns a function that shows the progress of a run on stderr, nil if that is not a
// terminal.
func loadProgress(w *cli.World, o *LoadOptions, l *loadgen.Load) func(loadgen.Progress) {
	p := cli.NewProgress(w, &o.Output)
	if !p.Shown() {
		return nil
	}
	var last loadgen.Progress
	return func(s loadgen.Progress) {
		text := fmt.Sprintf("%.0f s", s.Elapsed.Seconds())
		if end, ok := l.End(); ok {
			text = fmt.Sprintf("%.0f/%.0f s", s.Elapsed.Seconds(), end.Seconds())
		}
		if len(l.Phases) > 1 {
			text += fmt.Sprintf("  step %d/%d %s", s.Phase+1, len(l.Phases), l.Phases[s.Phase].Name)
		}
		seconds := (s.Elapsed - last.Elapsed).Seconds()
		text += fmt.Sprintf("  %d in flight  %.1f req/s sent  %.1f answered  %.0f tok/s", s.InFlight,
			float64(s.Sent-last.Sent)/seconds, float64(s.Requests-last.Requests)/seconds, float64(s.OutputTokens-last.OutputTokens)/seconds)
		if s.Errors > 0 {
			text += fmt.Sprintf("  %d failed: %s", s.Errors, s.LastError)
		}
		last = s
		p.Show(text)
	}
}

// writeLoad prints a summary in the requested format.
func writeLoad(w *cli.World, o *LoadOptions, s *loadgen.Summary, l *loadgen.Load, how string) error {
	text := func(to io.Writer, s *loadgen.Summary, _ render.Options) error { return printLoad(to, s, l, how) }
	return cli.Print(w, &o.Output, s, text, func(to io.Writer, s *loadgen.Summary) error { return document.Write(to, s) })
}

// oneLine joins the errors of a load.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// readTrace reads a recorded load.
func readTrace(path string) (*loadgen.Trace, error) {
	file, err := cli.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return loadgen.ParseTrace(path, file)
}
