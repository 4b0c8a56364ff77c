package probe

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

const (
	progressInterval = time.Second
	backoffFirst     = 100 * time.Millisecond
	backoffMost      = 2 * time.Second
)

// Completer answers one request; *Client is one.
type Completer interface {
	Complete(ctx context.Context, r Request) (Result, error)
}

// Run offers a load until its limit or the end of ctx. Progress, where not nil,
// is called about once a second, never twice at a time.
//
// A failed request is counted and its client waits 100 ms before the next,
// twice as long after each further failure in a row up to 2 s, so that a run
// survives a restart of the server. It gives up only where the server refuses
// the very first requests as such (status 400, 401, 403, 404, 422): no later
// one would fare better.
//
// The summary is valid with every error; the error is that of the load, of the
// refusal, or of ctx where ctx ended before the limit. A load without a limit
// ends with ctx, and that is no error.
func Run(ctx context.Context, client Completer, load Load, progress func(Progress)) (Summary, error) {
	if err := load.Validate(); err != nil {
		return Summary{}, err
	}
	started := time.Now()
	t := &tally{kinds: map[string]*Failure{}, sum: Summary{Started: started, Clients: load.Clients}}
	loop := closedLoop{load: load, client: client, tally: t}

	limited, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	loop.stop = stop
	if load.Duration > 0 {
		limit := time.AfterFunc(load.Duration, func() { stop(errLimit) })
		defer limit.Stop()
	}

	watched := make(chan struct{})
	watch, unwatch := context.WithCancel(context.Background())
	go func() {
		defer close(watched)
		t.watch(watch, started, progress)
	}()
	loop.run(limited)
	elapsed := time.Since(started)
	unwatch()
	<-watched

	summary := t.summary(elapsed)
	cause := context.Cause(limited)
	switch {
	case cause == nil, errors.Is(cause, errLimit):
		return summary, nil
	case ctx.Err() == nil:
		return summary, cause
	case load.Duration == 0 && load.Requests == 0:
		return summary, nil
	}
	return summary, ctx.Err()
}

// errLimit ends a run that did what was asked.
var errLimit = errors.New("limit of the load")

// watch reports progress until ctx ends.
func (t *tally) watch(ctx context.Context, started time.Time, progress func(Progress)) {
	if progress == nil {
		return
	}
	tick := time.NewTicker(progressInterval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			progress(t.progress(time.Since(started)))
		}
	}
}

// closedLoop drives the clients of one run.
type closedLoop struct {
	load    Load
	client  Completer
	tally   *tally
	stop    context.CancelCauseFunc
	sent    atomic.Int64
	success atomic.Bool // any request was answered in full
}

func (l *closedLoop) run(ctx context.Context) {
	prefix := l.load.sharedPrefix()
	var clients sync.WaitGroup
	for i := range l.load.Clients {
		author := l.load.author(i, prefix)
		delay := l.load.Stagger * time.Duration(i) / time.Duration(l.load.Clients)
		clients.Go(func() { l.converse(ctx, author, delay) })
	}
	clients.Wait()
}

// converse is one client from its first request to the end of the run.
func (l *closedLoop) converse(ctx context.Context, author *author, delay time.Duration) {
	backoff := backoffFirst
	for pause(ctx, delay) && l.takeTurn() {
		request := author.next()
		request.OnChunk = l.tally.chunk
		l.tally.begin()
		result, err := l.client.Complete(ctx, request)
		l.tally.end(&result, err, ctx.Err() != nil)
		if err == nil {
			l.success.Store(true)
			delay, backoff = l.load.Think, backoffFirst
			continue
		}
		if refused(err) && !l.success.Load() {
			l.stop(fmt.Errorf("the server refuses these requests: %w", err))
			return
		}
		delay, backoff = backoff, min(2*backoff, backoffMost)
	}
}

// takeTurn says whether another request may be sent.
func (l *closedLoop) takeTurn() bool {
	return l.load.Requests == 0 || l.sent.Add(1) <= int64(l.load.Requests)
}

// refused says whether an answer is about the request itself, so that the same
// kind of request will be refused again.
func refused(err error) bool {
	var status *StatusError
	if !errors.As(err, &status) {
		return false
	}
	switch status.Code {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// pause waits and says whether the run goes on.
func pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
