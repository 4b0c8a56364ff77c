package probe

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rooftop-dev/rooftop/engine/capture"
)

// Plan is a request, how often to send it, and with what concurrency.
type Plan struct {
	Request Request
	Repeat  int // requests in all; at least 1
	// Concurrency is the number of lanes, at least 1. A lane sends its next request when the
	// previous one has ended, on a connection that stays open.
	Concurrency int
}

// SendAll sends the requests of a plan and returns a record of each, in the order of sending. When
// ctx ends it sends no more, and returns requests in flight with what they had. onDone, which may
// be nil, is called with each record as its request ends, never concurrently. It fails if the
// server's model could not be determined, before anything is sent.
func (c *Client) SendAll(ctx context.Context, p Plan, clock func() time.Duration, onDone func(*capture.Request)) ([]capture.Request, error) {
	if p.Request.Model == "" {
		model, err := c.Model(ctx)
		if err != nil {
			return nil, err
		}
		p.Request.Model = model
	}
	r := sender{client: c, plan: p, clock: clock, onDone: onDone}
	var lanes sync.WaitGroup
	for lane := range min(max(p.Concurrency, 1), max(p.Repeat, 1)) {
		lanes.Go(func() { r.run(ctx, lane) })
	}
	lanes.Wait()
	slices.SortFunc(r.done, func(a, b capture.Request) int { return cmp.Compare(a.ID, b.ID) })
	return r.done, nil
}

// sender carries out a plan.
type sender struct {
	client *Client
	plan   Plan
	clock  func() time.Duration

	begin  sync.Mutex // guards next and booked, and keeps IDs in the order of the clock
	next   int
	booked int // requests that a lane has reserved

	end    sync.Mutex // guards done, and the calls of onDone
	done   []capture.Request
	onDone func(*capture.Request)
}

// run is one lane: it sends requests until none is left or ctx ends.
func (r *sender) run(ctx context.Context, lane int) {
	for r.book() && ctx.Err() == nil {
		own := r.plan.Request
		var id int
		record, _ := r.client.send(ctx, &own, r.clock, func() time.Duration {
			r.begin.Lock()
			defer r.begin.Unlock()
			id = r.next
			r.next++
			return r.clock()
		})
		record.ID, record.Lane = id, lane
		r.finish(&record)
	}
}

// book reserves one more request, and reports whether any was left.
func (r *sender) book() bool {
	r.begin.Lock()
	defer r.begin.Unlock()
	if r.booked >= max(r.plan.Repeat, 1) {
		return false
	}
	r.booked++
	return true
}

func (r *sender) finish(record *capture.Request) {
	r.end.Lock()
	defer r.end.Unlock()
	r.done = append(r.done, *record)
	if r.onDone != nil {
		r.onDone(record)
	}
}
