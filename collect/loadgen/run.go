package loadgen

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rooftop-dev/rooftop/collect/probe"
	"github.com/rooftop-dev/rooftop/engine/capture"
)

const progressInterval = time.Second

// Sender sends one request and records it in times of a clock, as Client.Send does.
type Sender interface {
	Send(ctx context.Context, r probe.Request, clock func() time.Duration) (capture.Request, error)
}

// Run sends a load until its limit or until ctx ends. progress, unless nil, is called about once a
// second, never concurrently.
//
// A failed request is counted. A client of a closed loop waits 100 ms before its next request, and
// twice as long after each further consecutive failure up to 2 s, so that a run survives a restart
// of the server; an open loop follows its schedule. The run is aborted only before any request was
// served: at once if the server refuses the key or the address (status 401, 403, 404), and after
// eight requests if it refused all of them (status 400, 422), because a single one may only have
// been too long.
//
// The summary is valid with every error. The error is that of Load.Validate, of the refusal, or of
// ctx if ctx ended before the limit. A load without a limit ends with ctx, without an error.
func Run(ctx context.Context, client Sender, load Load, progress func(Progress)) (Summary, error) {
	offer, err := NewOffer(load)
	if err != nil {
		return Summary{}, err
	}
	started := time.Now()
	r := runner{
		client: client, offer: offer, started: started, wake: make(chan struct{}, 1),
		tally: newTally(&load, started),
	}
	limited, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r.stop = stop
	end, ends := load.End()
	if ends {
		limit := time.AfterFunc(end, func() { stop(errLimit) })
		defer limit.Stop()
	}

	watched := make(chan struct{})
	watch, unwatch := context.WithCancel(context.Background())
	go func() {
		defer close(watched)
		r.tally.watch(watch, progress)
	}()
	r.run(limited)
	elapsed := time.Since(started)
	unwatch()
	<-watched

	summary := r.tally.summary(elapsed)
	cause := context.Cause(limited)
	switch {
	case cause == nil, errors.Is(cause, errLimit):
		return summary, nil
	case ctx.Err() == nil:
		return summary, cause
	case !ends && load.Requests == 0 && load.Arrival != Replay:
		return summary, nil
	}
	return summary, ctx.Err()
}

// errLimit ends a run that reached its limit.
var errLimit = errors.New("limit of the load")

// errDeadline ends a request at its deadline.
var errDeadline = errors.New("deadline of the request")

// runner drives an Offer by the wall clock: one goroutine keeps the schedule, and each request in
// flight has its own.
type runner struct {
	client  Sender
	started time.Time
	tally   *tally
	stop    context.CancelCauseFunc
	served  atomic.Bool  // whether output of any request arrived
	faulty  atomic.Int64 // number of the first requests that the server refused

	mu    sync.Mutex // guards offer
	offer *Offer
	// wake has at most one message: an answer may have made a request due.
	wake chan struct{}
}

// clock returns the time since the start of the run.
func (r *runner) clock() time.Duration { return time.Since(r.started) }

func (r *runner) run(ctx context.Context) {
	var flying sync.WaitGroup
	defer flying.Wait()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		intent, wait, over := r.next()
		switch {
		case over || ctx.Err() != nil:
			return
		case wait == 0:
			flying.Go(func() { r.send(ctx, &intent) })
			continue
		}
		timer.Reset(wait)
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-r.wake:
		}
	}
}

// next returns the request that is due, or how long to wait for the next one.
func (r *runner) next() (intent Intent, wait time.Duration, over bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.offer.Over() {
		return Intent{}, 0, true
	}
	at, ok := r.offer.Due()
	if !ok {
		return Intent{}, endless, false
	}
	if wait := at - r.clock(); wait > 0 {
		return Intent{}, wait, false
	}
	return r.offer.Next(), 0, false
}

// send sends one request and records its end.
func (r *runner) send(ctx context.Context, i *Intent) {
	own := ctx
	if i.Deadline > 0 {
		limited, cancel := context.WithDeadlineCause(ctx, r.started.Add(i.At+i.Deadline), errDeadline)
		defer cancel()
		own = limited
	}
	phase := r.tally.phase(i)
	r.tally.begin(phase, i)
	var arrived arrivals
	record, err := r.client.Send(own, probe.Request{
		Prompt: i.Prompt, Messages: i.Messages, Model: i.Model, MaxTokens: i.MaxTokens, IgnoreEOS: i.IgnoreEOS,
		CancelAfter: i.CancelAfter, KeepText: i.Session >= 0, OnChunk: func(time.Duration) { r.tally.chunk(&arrived) },
	}, r.clock)
	how := ending(ctx, own, err)
	if how == answered || len(record.Chunks) > 0 {
		r.served.Store(true)
	}
	r.mu.Lock()
	again := r.offer.Done(i.ID, Outcome{
		At: r.clock(), OK: how != failed && how != unfinished, Refused: probe.RefusalOf(err) != probe.NotRefused, Text: record.Text,
	})
	r.mu.Unlock()
	if again && how == failed {
		how = retried
	}
	r.tally.end(phase, i, arrived, &record, err, how)
	if how == failed && r.hopeless(i, err) {
		r.stop(fmt.Errorf("the server refuses these requests: %w", err))
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// ending returns how a request of a run ended; own is its context.
func ending(run, own context.Context, err error) how {
	switch {
	case err == nil:
		return answered
	case errors.Is(err, probe.ErrCancelled):
		return cancelled
	case run.Err() != nil:
		return unfinished
	case own.Err() != nil:
		return expired
	}
	return failed
}

// firstRequests is the number of requests at the start of a run after which it is aborted if all
// were refused.
const firstRequests = 8

// hopeless reports whether no later request can succeed either.
func (r *runner) hopeless(i *Intent, err error) bool {
	switch probe.RefusalOf(err) {
	case probe.CallerRefused:
		return !r.served.Load()
	case probe.RequestRefused:
		return i.ID < firstRequests && r.faulty.Add(1) == firstRequests && !r.served.Load()
	}
	return false
}
