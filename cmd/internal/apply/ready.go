package apply

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/engines"
	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/probe"
	"github.com/rooftop-dev/rooftop/engine"
)

// Parameters of waiting for a server to start.
const (
	readyPoll = 100 * time.Millisecond
	// healthWithin limits a request of /health. On a machine with few cores a server that
	// is loading answers late.
	healthWithin = 5 * time.Second
	// readyTokens is the number of tokens of the completion: one from the prefill and one
	// that is decoded.
	readyTokens = 2
	readyPrompt = "Hello"
)

func (r Readiness) within() time.Duration { return cmp.Or(max(r.Within, 0), ReadyWithin) }

func (r Readiness) answer() time.Duration { return cmp.Or(max(r.Answer, 0), AnswerWithin) }

// key returns the API key of requests: the given one, else the one that the server was
// launched with.
func (r Readiness) key(l *launcher.Launch) string {
	if r.APIKey != "" || l == nil {
		return r.APIKey
	}
	c, err := l.Config()
	if err != nil {
		return ""
	}
	key, _ := c.APIKey()
	return key
}

// endpoints are the HTTP clients of a server.
type endpoints struct {
	health *collect.Client // /health and /metrics
	client *probe.Client   // completions
}

// connect returns the clients of the server, with the key that it was launched with unless
// another is given. The caller closes them.
func (r Readiness) connect(l *launcher.Launch) (*endpoints, error) {
	target, err := collect.ParseTarget(r.URL)
	if err != nil {
		return nil, err
	}
	token, err := collect.NewSecret(r.key(l))
	if err != nil {
		return nil, err
	}
	health, err := collect.NewClient(collect.Options{Target: target, Token: token, CAFile: r.CAFile, Timeout: healthWithin})
	if err != nil {
		return nil, err
	}
	client, err := probe.NewClient(target, probe.Options{Model: r.Model, APIKey: r.key(l), CAFile: r.CAFile})
	if err != nil {
		return nil, err
	}
	return &endpoints{health: health, client: client}, nil
}

func (d *endpoints) close() {
	d.health.Close()
	d.client.Close()
}

// diedError means that a server ended before it was ready.
type diedError struct{ how string }

func (e *diedError) Error() string { return e.how }

// ready waits until a server counts as started. It calls watch, which may be nil, all the
// time and stops at its first error. The error is a sentence about what is missing.
func (r Readiness) ready(ctx context.Context, l *launcher.Launch, watch func() error) error {
	d, err := r.connect(l)
	if err != nil {
		return err
	}
	defer d.close()
	if watch == nil {
		watch = func() error { return nil }
	}
	if err := r.healthy(ctx, d, watch); err != nil {
		return err
	}
	return r.answers(ctx, d, watch)
}

// healthy waits until /health answers.
func (r Readiness) healthy(ctx context.Context, d *endpoints, watch func() error) error {
	deadline := time.Now().Add(r.within())
	last := error(nil)
	for {
		if err := watch(); err != nil {
			return err
		}
		// The token is for whom watch has seen to listen.
		_, last = d.health.Get(collect.WithoutToken(ctx), "/health", "*/*", nil)
		if lacksKey(last) {
			if err := watch(); err != nil {
				return err
			}
			_, last = d.health.Get(ctx, "/health", "*/*", nil)
		}
		if last == nil {
			return watch()
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if !time.Now().Before(deadline) {
			if errors.Is(last, collect.ErrUnreachable) {
				return fmt.Errorf("/health did not answer within %v", r.within())
			}
			return fmt.Errorf("/health did not answer within %v: %w", r.within(), last)
		}
		if err := pause(ctx, readyPoll); err != nil {
			return err
		}
	}
}

// answers waits for a short completion. A server with a long queue may not reach it in
// time; then it is enough that the server generates tokens for others.
func (r Readiness) answers(ctx context.Context, d *endpoints, watch func() error) error {
	limited, cancel := context.WithTimeout(ctx, r.answer())
	defer cancel()
	done := make(chan error, 1)
	go func() { done <- d.complete(limited) }()
	before, counted := d.tokens(ctx)
	tick := time.NewTicker(readyPoll)
	defer tick.Stop()
	for {
		select {
		case err := <-done:
			if err == nil {
				return watch()
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if dead := watch(); dead != nil {
				return dead
			}
			if r.refusals && refuses(err) {
				return watch()
			}
			if limited.Err() == nil {
				return fmt.Errorf("/health answers, but a short completion fails: %w", err)
			}
			if after, ok := d.tokens(ctx); ok && counted && after > before {
				return watch()
			}
			return fmt.Errorf("/health answers, but a short completion got no answer within %v", r.answer())
		case <-tick.C:
			if err := watch(); err != nil {
				return err // cancel ends the completion
			}
		}
	}
}

// complete requests a short completion, and retries while the error may be temporary.
func (d *endpoints) complete(ctx context.Context) error {
	for {
		begin := time.Now()
		clock := func() time.Duration { return time.Since(begin) }
		answer, err := d.client.Send(ctx, probe.Request{Prompt: readyPrompt, MaxTokens: readyTokens}, clock)
		if err == nil && len(answer.Chunks) == 0 && answer.OutputTokens.Or(0) == 0 {
			err = errors.New("the answer is empty")
		}
		if err == nil || ctx.Err() != nil || !temporary(err) {
			return err
		}
		if err := pause(ctx, readyPoll); err != nil {
			return err
		}
	}
}

// HTTP statuses.
const unauthorized, forbidden, notImplemented = 401, 403, 501

// lacksKey reports whether an answer to a request demands a key.
func lacksKey(err error) bool {
	status := new(collect.StatusError)
	return errors.As(err, &status) && (status.Code == unauthorized || status.Code == forbidden)
}

// able returns why a healthy server that was not changed yet does not answer the completion that judges each
// start, and what to do about it. Such a server would count as failed after any change.
func (r Readiness) able(ctx context.Context, l *launcher.Launch) error {
	d, err := r.connect(l)
	if err != nil {
		return err
	}
	defer d.close()
	if _, err := d.health.Get(ctx, "/health", "*/*", nil); err != nil {
		return nil // the change may be what mends it
	}
	err = r.answers(ctx, d, func() error { return nil })
	if err == nil || ctx.Err() != nil {
		return err
	}
	next := "mend that first"
	status := new(probe.StatusError)
	switch {
	case errors.As(err, &status) && (status.Code == unauthorized || status.Code == forbidden):
		next = "pass its key with --api-key-file"
	case refuses(err):
		next = "make the changes yourself, with 'rooftop tune --auto' alone"
	}
	return fmt.Errorf("a start could not be judged, because the server as it runs fails that check (%w): %s", err, next)
}

// refuses reports whether an error is a server's lasting answer to a completion: it lacks a key, or its
// model has none.
func refuses(err error) bool {
	status := new(probe.StatusError)
	return errors.As(err, &status) && !temporary(err) && (status.Code/100 == 4 || status.Code == notImplemented)
}

// temporary reports whether an error may come from a server that is busy or still starting.
func temporary(err error) bool {
	var status *probe.StatusError
	if errors.As(err, &status) {
		return slices.Contains([]int{408, 425, 429, 502, 503, 504}, status.Code)
	}
	return false
}

// tokens returns the total of generated tokens; false if the metrics page does not have it.
func (d *endpoints) tokens(ctx context.Context) (n float64, ok bool) {
	page, err := d.health.Get(ctx, "/metrics", collect.MetricsAccept, nil)
	if err != nil {
		return 0, false
	}
	var p engine.Page
	if err := engines.NewReader("").Parse(page, &p); err != nil {
		return 0, false
	}
	generated := p.Counters[engine.CounterGenerationTokens]
	return generated.V, generated.OK
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}

// runsElsewhere reports whether a command runs the server in a container or on another
// machine, where another process than the server's has the port here.
func runsElsewhere(argv []string) bool {
	return slices.ContainsFunc(argv[:min(len(argv), 3)], func(word string) bool {
		return slices.Contains([]string{"docker", "podman", "nerdctl", "kubectl", "srun", "ssh"}, filepath.Base(word))
	})
}
