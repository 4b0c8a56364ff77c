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

const progressInterval = time.Second

// Completer answers one request; *Client is one.
type Completer interface {
	Complete(ctx context.Context, r Request) (Result, error)
}

// Run offers a load until its limit or the end of ctx. Progress, where not nil,
// is called about once a second, never twice at a time.
//
// A failed request is counted. A client of a closed loop waits 100 ms before its
// next, twice as long after each further failure in a row up to 2 s, so that a
// run survives a restart of the server; an open loop goes on by its schedule. The
// run gives up only before any request was served: at once where the server
// refuses its caller or its address (status 401, 403, 404), and where it finds
// fault with each of the first eight requests (status 400, 422), since one or
// another may only have been too long. No later request would fare better.
//
// The summary is valid with every error; the error is that of the load, of the
// refusal, or of ctx where ctx ended before the limit. A load without a limit
// ends with ctx, and that is no error.
func Run(ctx context.Context, client Completer, load Load, progress func(Progress)) (Summary, error) {
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

// errLimit ends a run that did what was asked.
var errLimit = errors.New("limit of the load")

// errDeadline ends a request whose deadline passed.
var errDeadline = errors.New("deadline of the request")

// runner drives an Offer by the wall clock: one goroutine keeps the schedule,
// and each request in flight has one.
type runner struct {
	client  Completer
	started time.Time
	tally   *tally
	stop    context.CancelCauseFunc
	served  atomic.Bool  // output of any request arrived
	faulty  atomic.Int64 // of the first requests, those that the server found fault with

	mu    sync.Mutex // guards offer
	offer *Offer
	// wake holds at most one message: an answer may have made a request due.
	wake chan struct{}
}

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

// next returns the request that is due, or how long to wait for the next.
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
	if wait := at - time.Since(r.started); wait > 0 {
		return Intent{}, wait, false
	}
	return r.offer.Next(), 0, false
}

// send sees one request through.
func (r *runner) send(ctx context.Context, i *Intent) {
	own := ctx
	intended := r.started.Add(i.At)
	if i.Deadline > 0 {
		limited, cancel := context.WithDeadlineCause(ctx, intended.Add(i.Deadline), errDeadline)
		defer cancel()
		own = limited
	}
	phase := r.tally.phase(i)
	r.tally.begin(phase, i)
	var arrived arrivals
	result, err := r.client.Complete(own, Request{
		Prompt: i.Prompt, Messages: i.Messages, Model: i.Model, MaxTokens: i.MaxTokens, IgnoreEOS: i.IgnoreEOS,
		CancelAfter: i.CancelAfter, KeepText: i.Session >= 0, OnChunk: func(time.Duration) { r.tally.chunk(&arrived) },
	})
	how := ending(ctx, own, err)
	if how == answered || len(result.Chunks) > 0 {
		r.served.Store(true)
	}
	r.mu.Lock()
	again := r.offer.Done(i.ID, Outcome{
		At: time.Since(r.started), OK: how != failed && how != unfinished, Refused: refusalOf(err) != accepted, Text: result.Text,
	})
	r.mu.Unlock()
	if again && how == failed {
		how = retried
	}
	r.tally.end(phase, i, intended, arrived, &result, err, how)
	if how == failed && r.hopeless(i, err) {
		r.stop(fmt.Errorf("the server refuses these requests: %w", err))
	}
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

// ending says how a request of a run ended; own is its context.
func ending(run, own context.Context, err error) how {
	switch {
	case err == nil:
		return answered
	case errors.Is(err, ErrCancelled):
		return cancelled
	case run.Err() != nil:
		return unfinished
	case own.Err() != nil:
		return expired
	}
	return failed
}

// firstRequests is how many of a run's requests all have to be faulty in the
// server's eyes for the run to be given up.
const firstRequests = 8

// hopeless says that no later request would fare better than this one.
func (r *runner) hopeless(i *Intent, err error) bool {
	switch refusalOf(err) {
	case callerRefused:
		return !r.served.Load()
	case requestRefused:
		return i.ID < firstRequests && r.faulty.Add(1) == firstRequests && !r.served.Load()
	}
	return false
}

// refusal is what a server refuses as such, so that a repetition is refused too.
type refusal int

const (
	accepted       refusal = iota // not refused, or only for now
	requestRefused                // this request, as one that is too long
	callerRefused                 // the key, the model or the address, and so all requests
)

func refusalOf(err error) refusal {
	var status *StatusError
	if !errors.As(err, &status) {
		return accepted
	}
	switch status.Code {
	case http.StatusBadRequest, http.StatusUnprocessableEntity:
		return requestRefused
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound:
		return callerRefused
	}
	return accepted
}
