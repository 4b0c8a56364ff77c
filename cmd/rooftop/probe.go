package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/textproto"
	"os"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/rooftop-dev/rooftop/cmd/internal/microscope"
	"github.com/rooftop-dev/rooftop/collect/probe"
	"github.com/rooftop-dev/rooftop/engine/capture"
)

// defaultPrompt is asked where the person asks nothing of their own.
const defaultPrompt = "Explain in about two hundred words why the sky is blue."

func newProbe(w *world) *cobra.Command {
	var o probeOptions
	c := &cobra.Command{
		Use:   "probe",
		Short: "Requests under the microscope, processes and GPUs on one clock",
		Long: `Sends one streamed request, or several, to any OpenAI-compatible server (vLLM,
llama.cpp, SGLang, Ollama) and records on one clock what its client sees token
by token, what each process of the server's tree uses, what its GPUs do, and
what its own metrics say. They are real requests.

THE RIGHT PROCESSES
  The tree is found from the server's port, and sampled whole: workers that join
  late, children of children, what ends in between. With --pid it is the tree
  below that process, so that the PID of a shell around the server ($!) does as
  well. A tree that is idle while tokens come is told: 'pgrep -x NAME', and
  VmRSS and Threads in /proc/PID/status, lead to the right one.

TIMES
  TTFT is from the send to the first token, ITL every gap between neighbouring
  chunks, TPOT (last - first) / (tokens - 1), one value a request. Quantiles are
  nearest rank: values that were observed.

THE DOCUMENT
  --json is rooftop.probe/v1: every token, sample and figure. --save FILE keeps
  it beside the report; 'rooftop probe compare A B' holds two side by side.
  --trace FILE opens in ui.perfetto.dev and chrome://tracing.

INTERRUPTING
  Ctrl-C (or SIGTERM, SIGHUP) ends the run with what was recorded and 128+n.

ENVIRONMENT
  ROOFTOP_API_KEY  the server's API key; there is no flag for the key itself
  ROOFTOP_<NAME>   any flag; the command line wins

EXIT CODES
  0      every request was answered to its end
  1      any other error, or a request that was not answered to its end
  2      the command line is off
  5      unreachable, or not one request answered
  128+n  ended by signal n`,
		Example: `  rooftop probe -u http://127.0.0.1:8080 --prompt 'Why is the sky blue?'
  rooftop probe --prompt-file p.txt --repeat 20 --concurrency 4 --save a.json
  rooftop probe -u http://127.0.0.1:8080 --pid 4242 --trace run.trace.json
  echo Hello | rooftop probe --prompt-file - --json | jq .figures.requests.ttft
  rooftop probe compare a.json b.json`,
		Args: probeArgs,
		RunE: func(c *cobra.Command, _ []string) error { return runProbe(c.Context(), w, &o) },
	}
	o.env = w.env
	g := groupFlags(c)
	o.registerRequests(g)
	o.registerSampling(g)
	o.registerKnown(g)
	o.registerOutput(g)
	g.done()
	c.AddCommand(newProbeCompare(w))
	return c
}

// probeArgs takes none, and says what was meant by what is often tried.
func probeArgs(c *cobra.Command, args []string) error {
	switch {
	case len(args) == 0:
		return nil
	case strings.Contains(args[0], "://"):
		return usage("probe takes the server's address with a flag: --url %s", args[0])
	case nearest(args[0], "compare") != "":
		return usage("probe has no command %q; did you mean 'rooftop probe compare'?", args[0])
	}
	return noArgs(c, args)
}

func runProbe(ctx context.Context, w *world, o *probeOptions) error {
	if err := o.check(); err != nil {
		return err
	}
	plan, err := o.requests(ctx, w)
	if err != nil {
		return err
	}
	s, err := o.look(ctx, true)
	if err != nil {
		return err
	}
	defer s.close()
	client, err := o.client(s)
	if err != nil {
		return err
	}
	defer client.Close()
	plan.Request.Model, err = client.Model(ctx)
	if ctx.Err() != nil {
		return interrupted(ctx)
	}
	if err != nil {
		return fail(exitUnreachable, fmt.Errorf("%w; or give --model NAME", err))
	}
	if o.model != "" && plan.Request.Model != o.model {
		s.header.Notes = append(s.header.Notes, fmt.Sprintf("--model %s is the catalog's name of the model, for the ceilings; requests carry %q, the first that the server lists", o.model, plan.Request.Model))
	}
	show := newProgress(w, &o.output)
	p := s.plan()
	watch := newRequestWatch(show, plan.Repeat)
	plan.Request.OnChunk = watch.chunk
	p.Send = func(ctx context.Context) []capture.Request {
		defer watch.start()()
		// The model is known, so that nothing but requests can fail.
		list, _ := client.ExamineAll(ctx, plan, s.clock.Now, watch.done)
		return list
	}
	c := microscope.Run(ctx, p)
	show.done()
	setup := s.setup()
	setup.Target.Model = plan.Request.Model
	setup.Request = o.requestSetup(plan)
	if err := o.finish(ctx, w, s, c, setup); err != nil {
		return err
	}
	return probeCode(ctx, c, s)
}

// probeCode is how the command ends.
func probeCode(ctx context.Context, c *capture.Capture, s *subject) error {
	if ended := signalOf(ctx); ended != 0 {
		return exit(ended)
	}
	whole, first := 0, ""
	for i := range c.Requests {
		switch r := &c.Requests[i]; {
		case r.Error == "":
			whole++
		case first == "":
			first = r.Error
		}
	}
	switch {
	case whole == 0:
		return fail(exitUnreachable, fmt.Errorf("probe %s: not one request was answered to its end: %s", s.target, first))
	case whole < len(c.Requests):
		return fail(exitError, fmt.Errorf("probe %s: %d of %d requests were not answered to their end, the first: %s", s.target, len(c.Requests)-whole, len(c.Requests), first))
	}
	return nil
}

// requests makes the plan of the flags, and reads the prompt.
func (o *probeOptions) requests(ctx context.Context, w *world) (probe.Plan, error) {
	switch {
	case o.api != capture.Chat && o.api != capture.Completion:
		return probe.Plan{}, usage("--api is %s or %s, not %q", capture.Chat, capture.Completion, o.api)
	case o.repeat < 1 || o.repeat > maxRepeat:
		return probe.Plan{}, usage("--repeat must be 1 to %d, not %d", maxRepeat, o.repeat)
	case o.concurrency < 1 || o.concurrency > maxConcurrency:
		return probe.Plan{}, usage("--concurrency must be 1 to %d, not %d", maxConcurrency, o.concurrency)
	case o.maxTokens < 1 || o.maxTokens > probe.MaxTokens:
		return probe.Plan{}, usage("--max-tokens must be 1 to %d, not %d", probe.MaxTokens, o.maxTokens)
	case o.system != "" && o.api == capture.Completion:
		return probe.Plan{}, usage("--system is a message of a chat: leave it out, or use --api chat")
	}
	if o.concurrency > o.repeat && !o.flags.Changed("repeat") {
		o.repeat = o.concurrency // that many at once, once
	}
	prompt, err := o.readPrompt(ctx, w)
	if err != nil {
		return probe.Plan{}, err
	}
	r := probe.Request{MaxTokens: o.maxTokens, IgnoreEOS: o.ignoreEOS, Greedy: o.greedy, KeepText: o.answers}
	if o.api == capture.Completion {
		r.Prompt = prompt
	} else {
		if o.system != "" {
			r.Messages = append(r.Messages, probe.Message{Role: "system", Content: o.system})
		}
		r.Messages = append(r.Messages, probe.Message{Role: "user", Content: prompt})
	}
	return probe.Plan{Request: r, Repeat: o.repeat, Concurrency: min(o.concurrency, o.repeat)}, nil
}

// readPrompt takes the prompt from its flag, a file or stdin.
func (o *probeOptions) readPrompt(ctx context.Context, w *world) (string, error) {
	given, file := o.flags.Changed("prompt"), o.promptFile != ""
	if fromLine := o.fromLine("prompt"); given && file && fromLine != o.fromLine("prompt-file") {
		given, file = fromLine, !fromLine // the command line wins over a variable
	}
	var text []byte
	var err error
	switch {
	case given && file:
		return "", usage("--prompt and --prompt-file are both given: leave one out")
	case given:
		text = []byte(o.prompt)
	case !file:
		return defaultPrompt, nil
	case o.promptFile == "-" && w.stdin == nil:
		return "", usage("--prompt-file -: there is no stdin")
	default:
		text, err = o.promptText(ctx, w)
	}
	switch {
	case ctx.Err() != nil:
		return "", interrupted(ctx)
	case err != nil:
		return "", usage("--prompt-file: %w", err)
	case !utf8.Valid(text):
		return "", usage("the prompt is not UTF-8 text")
	case strings.TrimSpace(string(text)) == "":
		return "", usage("the prompt is empty")
	}
	return string(text), nil
}

// fromLine says that a flag's value is from the command line, not from a variable.
func (o *probeOptions) fromLine(name string) bool {
	flag := o.flags.Lookup(name)
	return flag.Changed && flag.Annotations[fromVariable] == nil
}

// promptText reads the prompt's file until it ends or ctx does: a person who is asked
// for it at a terminal may think better of it.
func (o *probeOptions) promptText(ctx context.Context, w *world) ([]byte, error) {
	if f, ok := w.stdin.(*os.File); ok && o.promptFile == "-" && term.IsTerminal(int(f.Fd())) {
		fmt.Fprintln(w.stderr, "rooftop: the prompt is read from this terminal; Ctrl-D ends it")
	}
	type outcome struct {
		text []byte
		err  error
	}
	read := make(chan outcome, 1)
	go func() {
		var got outcome
		if o.promptFile != "-" {
			got.text, got.err = readFile(o.promptFile, maxPromptBytes)
		} else if got.text, got.err = io.ReadAll(io.LimitReader(w.stdin, maxPromptBytes+1)); len(got.text) > maxPromptBytes {
			got.err = fmt.Errorf("stdin holds more than %d MiB", maxPromptBytes>>20)
		}
		read <- got
	}()
	select {
	case got := <-read:
		return got.text, got.err
	case <-ctx.Done():
		return nil, ctx.Err() // what reads is left behind: it ends with the program
	}
}

// client is that of the requests: its connections are its own, so that polls do not
// wait for them.
func (o *probeOptions) client(s *subject) (*probe.Client, error) {
	key, err := apiKey(o.env, o.apiKeyFile)
	if err != nil {
		return nil, err
	}
	options := probe.Options{
		Model: s.model(), APIKey: key, Headers: o.sent,
		Timeouts: probe.Timeouts{Connect: o.connectTimeout, FirstToken: o.firstTimeout, Idle: o.idleTimeout, Whole: o.timeout},
	}
	if options.TLS, err = trusted(o.caFile); err != nil {
		return nil, err
	}
	client, err := probe.NewClient(s.target.Base(), options)
	if err != nil {
		return nil, usage("probe: %w", err)
	}
	return client, nil
}

// parseHeaders reads NAME: VALUE. Errors repeat no value: it may be a secret.
func parseHeaders(list []string) (map[string][]string, error) {
	headers := textproto.MIMEHeader{}
	for _, text := range list {
		name, value, ok := strings.Cut(text, ":")
		name = strings.TrimSpace(name)
		if !ok || name == "" {
			return nil, usage("--header: give NAME: VALUE; what was given has no name before a colon")
		}
		if file, ok := strings.CutPrefix(strings.TrimSpace(value), "@"); ok {
			content, err := readFile(file, 16<<10)
			if err != nil {
				return nil, usage("--header %s: %w", name, err)
			}
			value = string(content)
		}
		headers.Add(name, strings.TrimSpace(value))
	}
	return headers, nil
}

// requestSetup is what was asked, without the prompt itself.
func (o *probeOptions) requestSetup(p probe.Plan) *capture.RequestSetup {
	text := p.Request.Prompt
	for i, m := range p.Request.Messages {
		if i > 0 {
			text += "\n"
		}
		text += m.Content
	}
	sum := sha256.Sum256([]byte(text))
	r := &capture.RequestSetup{
		API: o.api, PromptSHA256: hex.EncodeToString(sum[:]), PromptBytes: len(text), MaxTokens: p.Request.MaxTokens,
		Repeat: p.Repeat, Concurrency: p.Concurrency,
	}
	r.HeaderNames = slices.Sorted(maps.Keys(o.sent))
	return r
}

// Limits of what a command line can mean.
const (
	maxRepeat      = 100_000
	maxConcurrency = 4096
	maxPromptBytes = 16 << 20
	minPeriod      = 10 * time.Millisecond
	maxPeriod      = time.Minute
)
