package apply

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/probe"
)

// Pace of watching a server start.
const (
	readyPoll = 100 * time.Millisecond
	// healthWithin is how long /health may take: on a machine with few cores a
	// server that is busy loading answers late.
	healthWithin = 5 * time.Second
	// readyTokens is how much the completion asks for: one token from the prompt,
	// and one that was decoded.
	readyTokens = 2
	readyPrompt = "Hello"
)

func (r Readiness) within() time.Duration {
	if r.Within <= 0 {
		return ReadyWithin
	}
	return r.Within
}

func (r Readiness) answer() time.Duration {
	if r.Answer <= 0 {
		return AnswerWithin
	}
	return r.Answer
}

// key is what requests carry: the key given, else the one that the server was
// launched with.
func (r Readiness) key(l *Launch) string {
	if r.APIKey != "" || l == nil {
		return r.APIKey
	}
	c, err := l.config()
	if err != nil {
		return ""
	}
	key, _ := c.APIKey()
	return key
}

// door is a server as its clients see it.
type door struct {
	health *collect.Client
	client *probe.Client
}

func (r Readiness) door(l *Launch) (*door, error) {
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
	o := probe.Options{Model: r.Model, APIKey: r.key(l)}
	if r.CAFile != "" {
		if o.TLS, err = trusting(r.CAFile); err != nil {
			return nil, err
		}
	}
	client, err := probe.NewClient(target.Base(), o)
	if err != nil {
		return nil, err
	}
	return &door{health: health, client: client}, nil
}

func trusting(path string) (*tls.Config, error) {
	pem, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read --ca-file: %w", err)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: x509.NewCertPool()}
	if !c.RootCAs.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("read --ca-file: %s holds no PEM certificate", path)
	}
	return c, nil
}

func (d *door) close() {
	d.health.Close()
	d.client.Close()
}

// diedError says that a server ended while it was waited for.
type diedError struct{ how string }

func (e *diedError) Error() string { return e.how }

// ready waits until a server counts as started. Watch is asked all the while
// whether it still can become that; nil asks nothing. The error says in a sentence
// what did not come.
func (r Readiness) ready(ctx context.Context, l *Launch, watch func() error) error {
	d, err := r.door(l)
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

// healthy waits for /health.
func (r Readiness) healthy(ctx context.Context, d *door, watch func() error) error {
	deadline := time.Now().Add(r.within())
	last := error(nil)
	for {
		if err := watch(); err != nil {
			return err
		}
		_, last = d.health.Get(ctx, "/health", "*/*", nil)
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

// answers waits for a short completion. A server whose queue is long may not reach
// it in time: then it is enough that it answers others.
func (r Readiness) answers(ctx context.Context, d *door, watch func() error) error {
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

// complete asks for a short completion until it gets one, or it is plain that it
// will get none.
func (d *door) complete(ctx context.Context) error {
	for {
		result, err := d.client.Complete(ctx, probe.Request{Prompt: readyPrompt, MaxTokens: readyTokens})
		if err == nil && len(result.Chunks) == 0 && result.OutputTokens == 0 {
			err = errors.New("the answer is empty")
		}
		if err == nil || ctx.Err() != nil || !passing(err) {
			return err
		}
		if err := pause(ctx, readyPoll); err != nil {
			return err
		}
	}
}

// passing says that an error may be of a server that is busy or just beginning.
func passing(err error) bool {
	var status *probe.StatusError
	if errors.As(err, &status) {
		return slices.Contains([]int{408, 425, 429, 502, 503, 504}, status.Code)
	}
	return false
}

// tokens is how many tokens the server generated in all; false where its page does
// not tell.
func (d *door) tokens(ctx context.Context) (n float64, ok bool) {
	page, err := d.health.Get(ctx, "/metrics", collect.MetricsAccept, nil)
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(page) {
		if !bytes.HasPrefix(line, []byte("vllm:generation_tokens_total")) {
			continue
		}
		fields := bytes.Fields(line)
		v, err := strconv.ParseFloat(string(fields[len(fields)-1]), 64)
		if err == nil {
			n, ok = n+v, true
		}
	}
	return n, ok
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

// elsewhereBy says that a command has a server run where its port is another
// process's: in a container or on another machine.
func elsewhereBy(argv []string) bool {
	return slices.ContainsFunc(argv[:min(len(argv), 3)], func(word string) bool {
		return slices.Contains([]string{"docker", "podman", "nerdctl", "kubectl", "srun", "ssh"}, filepath.Base(word))
	})
}
