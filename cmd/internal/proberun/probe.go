package proberun

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"maps"
	"net/textproto"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/collect/loadgen"
	"github.com/rooftop-dev/rooftop/collect/probe"
	"github.com/rooftop-dev/rooftop/engine/capture"
)

// defaultPrompt is sent if the user gives no prompt.
const defaultPrompt = "Explain in about two hundred words why the sky is blue."

// Probe sends requests to a server while sampling it, and reports the results.
func (o *Options) Probe(ctx context.Context, w *cli.World) error {
	if err := o.check(); err != nil {
		return err
	}
	plan, err := o.requests(ctx, w)
	if err != nil {
		return err
	}
	s, err := o.findSubject(ctx, true)
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
		return cli.Interrupted(ctx)
	}
	if err != nil {
		return cli.Fail(cli.ExitUnreachable, fmt.Errorf("%w; or give --model NAME", err))
	}
	if o.Model != "" && plan.Request.Model != o.Model {
		s.Header.Notes = append(s.Header.Notes, fmt.Sprintf("--model %s is the catalog's name of the model, for the ceilings; requests carry %q, the first that the server lists", o.Model, plan.Request.Model))
	}
	show := cli.NewProgress(w, &o.Output)
	p := s.plan()
	watch := newRequestWatch(show, plan.Repeat)
	plan.Request.OnChunk = watch.chunk
	p.Send = func(ctx context.Context) []capture.Request {
		defer watch.start()()
		// The model is known, so only requests can fail.
		list, _ := client.SendAll(ctx, plan, s.clock.Now, watch.done)
		return list
	}
	c := Run(ctx, p)
	show.Done()
	setup := s.setup()
	setup.Target.Model = plan.Request.Model
	setup.Request = o.requestSetup(plan)
	if err := o.finish(ctx, w, s, c, setup); err != nil {
		return err
	}
	return probeCode(ctx, c, s)
}

// probeCode returns the error with the exit code of the command.
func probeCode(ctx context.Context, c *capture.Capture, s *subject) error {
	if ended := cli.SignalCode(ctx); ended != 0 {
		return cli.Exit(ended)
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
		return cli.Fail(cli.ExitUnreachable, fmt.Errorf("probe %s: no request was completed: %s", s.Target, first))
	case whole < len(c.Requests):
		return cli.Fail(cli.ExitError, fmt.Errorf("probe %s: %d of %d requests were not completed; the first: %s", s.Target, len(c.Requests)-whole, len(c.Requests), first))
	}
	return nil
}

// requests returns the plan of the flags, and reads the prompt.
func (o *Options) requests(ctx context.Context, w *cli.World) (probe.Plan, error) {
	switch {
	case o.repeat < 1 || o.repeat > maxRepeat:
		return probe.Plan{}, cli.Usagef("--repeat must be 1 to %d, not %d", maxRepeat, o.repeat)
	case o.concurrency < 1 || o.concurrency > maxConcurrency:
		return probe.Plan{}, cli.Usagef("--concurrency must be 1 to %d, not %d", maxConcurrency, o.concurrency)
	case o.maxTokens < 1 || o.maxTokens > loadgen.MaxTokens:
		return probe.Plan{}, cli.Usagef("--max-tokens must be 1 to %d, not %d", loadgen.MaxTokens, o.maxTokens)
	case o.system != "" && o.api == capture.Completion:
		return probe.Plan{}, cli.Usagef("--system needs chat messages: leave it out, or use --api chat")
	}
	if o.concurrency > o.repeat && !o.Flags.Changed("repeat") {
		o.repeat = o.concurrency // that many at once, one time
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

// readPrompt returns the prompt from its flag, a file or stdin.
func (o *Options) readPrompt(ctx context.Context, w *cli.World) (string, error) {
	given, file := o.Flags.Changed("prompt"), o.promptFile != ""
	fromLine := cli.OnCommandLine(o.Flags.Lookup("prompt"))
	if given && file && fromLine != cli.OnCommandLine(o.Flags.Lookup("prompt-file")) {
		given, file = fromLine, !fromLine // the command line takes precedence over a variable
	}
	var text []byte
	var err error
	switch {
	case given && file:
		return "", cli.Usagef("--prompt and --prompt-file are both given: leave one out")
	case given:
		text = []byte(o.prompt)
	case !file:
		return defaultPrompt, nil
	case o.promptFile == "-" && w.Stdin == nil:
		return "", cli.Usagef("--prompt-file -: there is no stdin")
	default:
		text, err = o.promptText(ctx, w)
	}
	switch {
	case ctx.Err() != nil:
		return "", cli.Interrupted(ctx)
	case err != nil:
		return "", cli.Usagef("--prompt-file: %w", err)
	case !utf8.Valid(text):
		return "", cli.Usagef("the prompt is not UTF-8 text")
	case strings.TrimSpace(string(text)) == "":
		return "", cli.Usagef("the prompt is empty")
	}
	return string(text), nil
}

// promptText reads the prompt's file until its end or until ctx ends, because a user may interrupt
// instead of typing a prompt.
func (o *Options) promptText(ctx context.Context, w *cli.World) ([]byte, error) {
	if o.promptFile == "-" && cli.TerminalInput(w.Stdin) {
		w.Notef("the prompt is read from this terminal; Ctrl-D ends it")
	}
	type outcome struct {
		text []byte
		err  error
	}
	read := make(chan outcome, 1)
	go func() {
		var got outcome
		if o.promptFile != "-" {
			got.text, got.err = cli.ReadFile(o.promptFile, maxPromptBytes)
		} else if got.text, got.err = io.ReadAll(io.LimitReader(w.Stdin, maxPromptBytes+1)); len(got.text) > maxPromptBytes {
			got.err = fmt.Errorf("stdin holds more than %d MiB", maxPromptBytes>>20)
		}
		read <- got
	}()
	select {
	case got := <-read:
		return got.text, got.err
	case <-ctx.Done():
		return nil, ctx.Err() // the reading goroutine ends with the program
	}
}

// client returns the client for requests. It has its own connections, so that polls do not wait for
// requests.
func (o *Options) client(s *subject) (*probe.Client, error) {
	key, err := attach.APIKey(o.Env, o.APIKeyFile)
	if err != nil {
		return nil, err
	}
	client, err := probe.NewClient(s.Target, probe.Options{
		Model: s.model(), APIKey: key, CAFile: o.CAFile, Headers: o.sent,
		Timeouts: probe.Timeouts{Connect: connectWithin, FirstToken: o.firstTimeout, Idle: idleWithin, Whole: o.timeout},
	})
	if err != nil {
		return nil, cli.Usagef("probe: %w", err)
	}
	return client, nil
}

// parseHeaders parses NAME: VALUE. Errors contain no values, which may be secrets.
func parseHeaders(list []string) (map[string][]string, error) {
	headers := textproto.MIMEHeader{}
	for _, text := range list {
		name, value, ok := strings.Cut(text, ":")
		name = strings.TrimSpace(name)
		if !ok || name == "" {
			return nil, cli.Usagef("--header: give NAME: VALUE; there is no name before a colon")
		}
		if file, ok := strings.CutPrefix(strings.TrimSpace(value), "@"); ok {
			content, err := cli.ReadFile(file, 16<<10)
			if err != nil {
				return nil, cli.Usagef("--header %s: %w", name, err)
			}
			value = string(content)
		}
		headers.Add(name, strings.TrimSpace(value))
	}
	return headers, nil
}

// requestSetup returns the description of the requests, without the prompt.
func (o *Options) requestSetup(p probe.Plan) *capture.RequestSetup {
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

// Limits of flags.
const (
	connectWithin  = 5 * time.Second
	idleWithin     = 30 * time.Second // for the next token
	maxRepeat      = 100_000
	maxConcurrency = 4096
	maxPromptBytes = 16 << 20
	minPeriod      = 10 * time.Millisecond
	maxPeriod      = time.Minute
)
