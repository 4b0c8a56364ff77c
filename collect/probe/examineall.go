package probe

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rooftop-dev/rooftop/engine/capture"
)

// Plan is a request, how often to send it and from how many clients at a time.
type Plan struct {
	Request Request
	Repeat  int // requests in all; at least 1
	// Concurrency is the number of lanes, at least 1. A lane sends its next request
	// when its last has ended, on a connection that stays open.
	Concurrency int
}

// ExamineAll sends the requests of a plan and returns a record of each that was
// sent, in order of sending. The end of the context sends no more; what was in
// flight is returned with what it had. OnDone, which may be nil, is called with each
// record as its request ends, one at a time. The error says that the server's model
// could not be learned, so that nothing was sent.
func (c *Client) ExamineAll(ctx context.Context, p Plan, clock func() time.Duration, onDone func(*capture.Request)) ([]capture.Request, error) {
	if p.Request.Model == "" {
		model, err := c.Model(ctx)
		if err != nil {
			return nil, err
		}
		p.Request.Model = model
	}
	r := examiner{client: c, plan: p, clock: clock, onDone: onDone}
	var lanes sync.WaitGroup
	for lane := range min(max(p.Concurrency, 1), max(p.Repeat, 1)) {
		lanes.Go(func() { r.run(ctx, lane) })
	}
	lanes.Wait()
	slices.SortFunc(r.done, func(a, b capture.Request) int { return cmp.Compare(a.ID, b.ID) })
	return r.done, nil
}

// examiner sees a plan through.
type examiner struct {
	client *Client
	plan   Plan
	clock  func() time.Duration

	begin  sync.Mutex // guards next, and that it follows the clock
	next   int
	booked int // requests that a lane has taken on

	end    sync.Mutex // guards done, and the calls of onDone
	done   []capture.Request
	onDone func(*capture.Request)
}

// run is one lane.
func (r *examiner) run(ctx context.Context, lane int) {
	for r.book() && ctx.Err() == nil {
		own := r.plan.Request
		var id int
		told := r.client.examine(ctx, &own, r.clock, func() time.Duration {
			r.begin.Lock()
			defer r.begin.Unlock()
			id = r.next
			r.next++
			return r.clock()
		})
		told.ID, told.Lane = id, lane
		r.finish(&told)
	}
}

// book takes on one more request, where any is left.
func (r *examiner) book() bool {
	r.begin.Lock()
	defer r.begin.Unlock()
	if r.booked >= max(r.plan.Repeat, 1) {
		return false
	}
	r.booked++
	return true
}

func (r *examiner) finish(told *capture.Request) {
	r.end.Lock()
	defer r.end.Unlock()
	r.done = append(r.done, *told)
	if r.onDone != nil {
		r.onDone(told)
	}
}
