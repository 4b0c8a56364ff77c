package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/probe"
)

func newLoad(w *world) *cobra.Command {
	var o loadOptions
	c := &cobra.Command{
		Use:   "load",
		Short: "Offer load to a server, and tell what its clients saw",
		Long: `Sends streaming requests to an OpenAI-compatible server and measures what a
client sees: time to first token, gaps between tokens, time to the end, errors.
They are real requests: do not point it at a server that others use.

THE OFFER
  closed loop   --clients N: each sends a request, waits for its last token,
                thinks, and sends the next. A slow server is offered less.
  open loop     --rate R: requests come by a schedule that waits for nothing, as
                people do who know nothing of each other. A slow server gets a
                queue. Latencies count from the intended send time.
  The same --seed offers the same load: in an open loop the same requests at the
  same times, in a closed loop the same n-th request of each client. It goes on
  while the server restarts, so that before and after can be compared. A server
  that stayed up finds the prompts of the same seed in its prefix cache.

LENGTHS
  A number of tokens (512), a range (100-800), lognormal:MEAN,SIGMA[,MAX],
  lognormal:median=M,sigma=S[,max=N], or @FILE with one number a line.
  Prompts are common words of at most six letters. How many tokens a word is,
  the server is asked once at the start (/tokenize, else one short request);
  where each character is a token, prompts are counted in characters.

TRACES
  --trace FILE replays recorded load: CSV with TIMESTAMP, ContextTokens and
  GeneratedTokens (Azure), JSON lines with timestamp, input_length,
  output_length and hash_ids (Mooncake), or conversations with their texts
  (ShareGPT). With --rate, --clients or --steps a trace gives its lengths or
  texts alone.

INTERRUPTING
  Ctrl-C (or SIGTERM, SIGHUP) ends the run early, with the summary so far and
  exit code 128+n.

ENVIRONMENT
  ROOFTOP_API_KEY  the server's API key; there is no flag for the key itself
  ROOFTOP_<NAME>   any flag; the command line wins

EXIT CODES
  0      the load was offered; the summary says how it went
  1      any other error
  2      the command line is off
  5      unreachable, refused, or not one request answered
  128+n  ended by signal n`,
		Example: `  rooftop load -u http://127.0.0.1:8000 --clients 32 --prompt-tokens 100-800
  rooftop load -u http://127.0.0.1:8000 --rate 8 --slo ttft=500ms,tpot=50ms
  rooftop load -u http://127.0.0.1:8000 --arrival poisson --ramp 1-20:5m
  rooftop load -u http://127.0.0.1:8000 --turns 4 --chat --think exp:5s
  rooftop load -u http://127.0.0.1:8000 --trace AzureLLMInferenceTrace_conv.csv`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error { return load(c.Context(), w, &o) },
	}
	o.env = w.env
	o.register(groupFlags(c))
	return c
}

// loadOptions are the flags of load.
type loadOptions struct {
	output
	flags *pflag.FlagSet
	env   func(string) (string, bool)

	url, model, apiKeyFile, caFile string

	arrival, think, ramp, steps string
	clients, requests           int
	rate, burstiness            float64
	stagger, duration           time.Duration

	prompt, answer, style, turns, turn string
	prefix, groups                     int
	zipf, perWord                      float64
	chat, ignoreEOS                    bool

	cancel           float64
	deadline         time.Duration
	retry            bool
	adapters         []string
	trace            string
	traceSpeed       float64
	slo              string
	seed             uint64
	deprecatedPrefix int
}

func (o *loadOptions) register(g *flagGroups) {
	o.flags = g.command.Flags()
	f := g.group("The server")
	f.StringVarP(&o.url, "url", "u", "", "the server's base `URL` or host:port")
	f.StringVar(&o.model, "model", "", "served `NAME` (default: the first of /v1/models)")
	f.StringVar(&o.apiKeyFile, "api-key-file", "", "`FILE` that holds the server's API key; else the variable ROOFTOP_API_KEY")
	f.StringVar(&o.caFile, "ca-file", "", "PEM `FILE` of certificates to trust instead of the system's")

	f = g.group("When requests come")
	f.IntVar(&o.clients, "clients", 16, "`N` clients of a closed loop")
	f.StringVar(&o.think, "think", "0s", "pause `TIME` of a client between its requests: 2s, 1s-5s, exp:2s, lognormal:2s,0.5")
	f.DurationVar(&o.stagger, "stagger", 0, "spread the clients' starts over `TIME` (default: 50ms for each, at most 10s)")
	f.Float64Var(&o.rate, "rate", 0, "`R` requests a second of an open loop")
	f.StringVar(&o.arrival, "arrival", "", "`HOW` they come: closed, poisson, gamma, constant or trace (default: closed; poisson with --rate)")
	f.Float64Var(&o.burstiness, "burstiness", 1, "`B` of gamma arrivals, as in vllm bench: 1/CV² of the gaps; below 1 is bursty")
	f.StringVar(&o.steps, "steps", "", "`LEVELS` one after another, as LEVEL:TIME or FROM-TO:TIME,…: clients, or requests a second of an open loop")
	f.StringVar(&o.ramp, "ramp", "", "`FROM-TO:TIME`: --steps with a single one")
	f.DurationVar(&o.duration, "duration", 60*time.Second, "`TIME` to send requests; 0 sets no limit")
	f.IntVar(&o.requests, "requests", 0, "send `N` in all; then no --duration is needed")

	f = g.group("What they ask")
	f.StringVar(&o.prompt, "prompt-tokens", "100", "`LENGTH` of prompts, shared prefix included")
	f.StringVar(&o.answer, "output-tokens", "64", "`LENGTH` to generate")
	f.BoolVar(&o.ignoreEOS, "ignore-eos", true, "ask vLLM to generate the whole length")
	f.BoolVar(&o.chat, "chat", false, "chat completions, with messages")
	f.IntVar(&o.prefix, "prefix-tokens", 0, "`N` tokens that begin every prompt of a group")
	f.IntVar(&o.groups, "prefix-groups", 1, "`N` different prefixes")
	f.Float64Var(&o.zipf, "prefix-zipf", 0, "`S`: group i is as likely as 1/i^S; 0 is equally")
	f.StringVar(&o.turns, "turns", "1", "`LENGTH` of a session in requests, each with what was said before in its prompt")
	f.StringVar(&o.turn, "turn-tokens", "", "`LENGTH` that a later turn adds (default: as the first, without the prefix)")
	f.StringSliceVar(&o.adapters, "adapters", nil, "`NAMES` of models or adapters to ask for, as NAME or NAME=WEIGHT,…")
	f.StringVar(&o.style, "prompt-style", "auto", "`STYLE` of prompts: words, characters, or auto, which asks the server")
	f.Float64Var(&o.perWord, "tokens-per-word", 0, "`N` tokens that a word is, instead of asking the server")
	f.Uint64Var(&o.seed, "seed", 1, "`SEED` of everything that is drawn")

	f = g.group("When clients leave")
	f.Float64Var(&o.cancel, "cancel", 0, "`SHARE` of requests, 0 to 1, that are cancelled after a drawn number of tokens")
	f.DurationVar(&o.deadline, "deadline", 0, "`TIME` after which a request is given up")
	f.BoolVar(&o.retry, "retry", false, "send failed requests of an open loop again, until their deadline and at most 99 times; not those that the server refuses as such")

	f = g.group("Recorded load")
	f.StringVar(&o.trace, "trace", "", "`FILE` of requests")
	f.Float64Var(&o.traceSpeed, "trace-speed", 1, "`X` times as fast as recorded")

	f = g.group("Output")
	f.StringVar(&o.slo, "slo", "", "`OBJECTIVES` that a good request meets, as ttft=500ms,itl=60ms,tpot=50ms,e2e=10s; itl allows 1 gap in 100 to be longer")
	f.BoolVar(&o.json, "json", false, "one JSON document instead of text")
	f.BoolVar(&o.plain, "plain", false, "no progress line")
	f.IntVar(&o.deprecatedPrefix, "shared-prefix", 0, "")
	_ = f.MarkHidden("shared-prefix") // another name of --prefix-tokens
	g.done()
}

func load(ctx context.Context, w *world, o *loadOptions) error {
	if err := fromEnvironment(o.flags, w.env); err != nil {
		return err
	}
	offered, err := o.load()
	if err != nil {
		return err
	}
	if o.url == "" {
		return usage("load sends requests: say to which server with --url")
	}
	target, err := parseTarget(o.url)
	if err != nil {
		return err
	}
	client, err := o.client(target)
	if err != nil {
		return err
	}
	defer client.Close()
	how, err := o.calibrate(ctx, client, offered)
	if ended := signalOf(ctx); ended != 0 {
		return exit(ended)
	}
	if err != nil {
		return fail(exitUnreachable, fmt.Errorf("load %s: %w", target, err))
	}
	// What a word is may have changed what can be meant.
	if err := offered.Validate(); err != nil {
		return usage("load: %s", oneLine(err))
	}
	s, err := probe.Run(ctx, client, *offered, loadProgress(w, o, offered))
	newProgress(w, &o.output).done()
	ended := signalOf(ctx)
	if err := writeLoad(w, o, &s, offered, how); err != nil {
		return fail(exitError, err)
	}
	if ended != 0 {
		return exit(ended)
	}
	if err == nil {
		err = unanswered(&s)
	}
	if err != nil {
		return fail(exitUnreachable, fmt.Errorf("load %s: %w", target, err))
	}
	return nil
}

// unanswered says why not one request was answered; nil where one was, or where
// the load itself cut off what was being answered.
func unanswered(s *probe.Summary) error {
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

// client connects to nothing yet.
func (o *loadOptions) client(target collect.Target) (*probe.Client, error) {
	key, err := apiKey(o.env, o.apiKeyFile)
	if err != nil {
		return nil, err
	}
	options := probe.Options{Model: o.model, APIKey: key}
	if options.TLS, err = trusted(o.caFile); err != nil {
		return nil, err
	}
	client, err := probe.NewClient(target.Base(), options)
	if err != nil {
		return nil, usage("load: %w", err)
	}
	return client, nil
}

// calibrate asks the server once what its tokenizer makes of a word, and returns
// how a length came to be text.
func (o *loadOptions) calibrate(ctx context.Context, client *probe.Client, l *probe.Load) (how string, err error) {
	if _, err := client.Model(ctx); err != nil {
		return "", err
	}
	switch {
	case o.style == "characters":
		return "a character taken as a token", nil
	case o.perWord > 0:
		return fmt.Sprintf("%.4g tokens taken for a word", o.perWord), nil
	}
	c, err := client.Calibrate(ctx)
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
		l.Style = probe.Characters
		return "a character is a token, says " + c.Source, nil
	}
	l.TokensPerWord = c.TokensPerWord
	return fmt.Sprintf("%.4g tokens a word, says %s", c.TokensPerWord, c.Source), nil
}

// loadProgress is the line that a person who waits sees on stderr, nil where
// that is no terminal.
func loadProgress(w *world, o *loadOptions, l *probe.Load) func(probe.Progress) {
	p := newProgress(w, &o.output)
	if !p.on {
		return nil
	}
	var last probe.Progress
	return func(s probe.Progress) {
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
		p.put(text)
	}
}

// writeLoad prints a summary as asked for.
func writeLoad(w *world, o *loadOptions, s *probe.Summary, l *probe.Load, how string) error {
	if !o.json {
		return printLoad(w.stdout, s, l, how)
	}
	enc := json.NewEncoder(w.stdout)
	enc.SetIndent("", "  ")
	return enc.Encode(s)
}

// oneLine joins what is wrong with a load.
func oneLine(err error) string { return strings.ReplaceAll(err.Error(), "\n", "; ") }

// readTrace reads recorded load.
func readTrace(path string) (*probe.Trace, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if info, err := file.Stat(); err == nil && info.IsDir() {
		return nil, fmt.Errorf("%s is a directory", path)
	}
	return probe.ParseTrace(path, file)
}
