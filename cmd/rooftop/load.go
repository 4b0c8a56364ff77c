package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/collect/probe"
)

func newLoad(w *world) *cobra.Command {
	var (
		o       options
		clients int
		prompt  int
		output  int
		shared  int
		think   time.Duration
		stagger time.Duration
		seed    uint64
	)
	c := &cobra.Command{
		Use:   "load",
		Short: "Offer load to an OpenAI-compatible server: a closed loop of clients",
		Long: `Runs a closed loop of clients against an OpenAI-compatible server: each sends a
request, waits for its last token, thinks, and sends the next. The prompts are the
same for the same --seed. Use it to try 'rooftop diagnose' on a test server; it
sends real requests, so do not point it at a server that others use.`,
		Example: "  rooftop load --url http://127.0.0.1:8000 --clients 32 --prompt-tokens 100 --output-tokens 64 --duration 60s",
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := fromEnvironment(c.Flags(), w.env); err != nil {
				return err
			}
			if o.url == "" {
				return usage("load sends requests: say to which server with --url")
			}
			target, err := parseTarget(o.url)
			if err != nil {
				return err
			}
			var key []byte
			if o.apiKeyFile != "" {
				if key, err = readFile(o.apiKeyFile, 64<<10); err != nil {
					return usage("--api-key-file: %w", err)
				}
			}
			client, err := probe.NewClient(target.Base(), probe.Options{Model: o.model, APIKey: strings.TrimSpace(string(key))})
			if err != nil {
				return usage("load: %w", err)
			}
			defer client.Close()
			load := probe.Load{
				Clients: clients, PromptTokens: probe.Fixed(prompt), OutputTokens: probe.Fixed(output),
				SharedPrefixTokens: shared, Style: probe.Characters, Think: probe.Always(think), Stagger: stagger, Seed: seed, IgnoreEOS: true, Duration: o.duration,
			}
			if err := load.Validate(); err != nil {
				return usage("load: %w", err)
			}
			if _, err := client.Model(c.Context()); err != nil {
				return fail(exitUnreachable, fmt.Errorf("load %s: %w", target, err))
			}
			s, err := probe.Run(c.Context(), client, load, loadProgress(w))
			ended := signalOf(c.Context())
			if err != nil && ended == 0 {
				return fail(exitUnreachable, fmt.Errorf("load %s: %w", target, err))
			}
			if err := writeLoad(w, &o.output, &s); err != nil {
				return fail(exitError, err)
			}
			return exit(ended)
		},
	}
	f := c.Flags()
	f.StringVarP(&o.url, "url", "u", "", "the server's base `URL` or host:port")
	f.StringVar(&o.model, "model", "", "the served model's `NAME` (default: the first of /v1/models)")
	f.StringVar(&o.apiKeyFile, "api-key-file", "", "a `FILE` that holds the server's API key")
	f.DurationVar(&o.duration, "duration", 60*time.Second, "how long to send requests")
	f.IntVar(&clients, "clients", 16, "clients that each have one request in flight")
	f.IntVar(&prompt, "prompt-tokens", 100, "prompt length; one ASCII character is taken as one token")
	f.IntVar(&output, "output-tokens", 64, "tokens to generate for each request")
	f.IntVar(&shared, "shared-prefix", 0, "tokens that begin every prompt")
	f.DurationVar(&think, "think", 0, "pause of a client between its requests")
	f.DurationVar(&stagger, "stagger", 0, "spread the first requests over this time")
	f.Uint64Var(&seed, "seed", 1, "seed of prompts and lengths")
	f.BoolVar(&o.json, "json", false, "print the summary as JSON")
	return c
}

// loadProgress is the line that a person who waits sees on stderr, nil where
// that is no terminal.
func loadProgress(w *world) func(probe.Progress) {
	p := newProgress(w, &output{})
	if !p.on {
		return nil
	}
	return func(s probe.Progress) {
		p.put(fmt.Sprintf("%3.0f s  %d in flight  %d answered  %d failed  %d tokens  %s", s.Elapsed.Seconds(), s.InFlight, s.Requests, s.Errors, s.OutputTokens, s.LastError))
	}
}

func writeLoad(w *world, o *output, s *probe.Summary) error {
	if o.json {
		enc := json.NewEncoder(w.stdout)
		enc.SetIndent("", "  ")
		return enc.Encode(s)
	}
	newProgress(w, o).done()
	fmt.Fprintf(w.stdout, "%d requests answered, %d failed, %d cut off at the end, in %.1f s\n", s.Requests, s.Errors, s.Unfinished, s.Elapsed.Seconds())
	fmt.Fprintf(w.stdout, "%.0f output tok/s, %.1f req/s\n", s.OutputPerSecond, s.RequestsPerSecond)
	for _, l := range []struct {
		name string
		probe.Latency
	}{{"TTFT", s.TTFT}, {"ITL", s.ITL}, {"TPOT", s.TPOT}, {"E2E", s.E2E}} {
		if l.Count == 0 {
			fmt.Fprintf(w.stdout, "%-5s -\n", l.name)
			continue
		}
		fmt.Fprintf(w.stdout, "%-5s mean %v  p50 %v  p95 %v  p99 %v\n", l.name,
			l.Mean.Round(time.Millisecond/10), l.P50.Round(time.Millisecond/10), l.P95.Round(time.Millisecond/10), l.P99.Round(time.Millisecond/10))
	}
	for _, f := range s.Failures {
		fmt.Fprintf(w.stdout, "%d x %s: %s\n", f.Count, f.Kind, f.Example)
	}
	return nil
}
