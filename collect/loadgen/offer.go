package loadgen

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/collect/probe"
)

const (
	backoffFirst = 100 * time.Millisecond
	backoffMost  = 2 * time.Second
	// maxAttempts limits how often one request is sent. With the pauses this takes about two and a
	// half minutes, enough for a server to restart.
	maxAttempts = 100
	// maxRetries limits the requests that wait to be sent again, with their prompts. Further failed
	// requests are not retried.
	maxRetries = 1 << 14
)

// Offer is the schedule of a load: what to send and when. It has no clock; the caller drives it:
//
//	for !o.Over() {
//		at, ok := o.Due()  // false: wait for an answer
//		...                // let time pass to at, or to the next answer
//		i := o.Next()      // send it; call Done when it has ended
//	}
//
// Its methods are not safe for concurrent use. The caller ends the run at Load.End.
type Offer struct {
	load     Load
	schedule schedule
	models   []float64
	end      time.Duration
	// perStart is the average number of requests per conversation.
	perStart float64

	// The arrivals of an open loop.
	pace     pacer
	gaps     *rand.Rand
	total    float64 // unit-rate time of the last arrival
	arrivals uint64
	arrival  time.Duration
	arriving bool

	queue    queue
	flights  map[int]flight
	coming   int // requests in flight whose end may create another request
	retries  int // retries in the queue
	ids      int
	sessions int
	pushed   int
	finished bool // all Requests were sent
}

// talk is a conversation of an open loop, or the successive conversations of a client of a closed
// loop.
type talk struct {
	client   int // -1 in an open loop
	number   uint64
	turn     int
	turns    int
	session  int
	failures int // consecutive
	traced   *Traced
	model    string
	text     string // previous turns of a plain prompt
	messages []probe.Message
	tokens   int // length of the previous turns
}

// flight is a request that was sent and has not ended.
type flight struct {
	intent Intent
	talk   *talk
	coming bool
}

// pending is a request that is due at a time.
type pending struct {
	at    time.Duration
	order int // among pending requests of the same time
	talk  *talk
	again *flight // a failed request to send again
}

// NewOffer returns the schedule of a load, or the error of Load.Validate.
func NewOffer(load Load) (*Offer, error) {
	if err := load.Validate(); err != nil {
		return nil, err
	}
	o := &Offer{load: load, schedule: newSchedule(load.phases()), end: endless, perStart: load.meanTurns(), flights: map[int]flight{}}
	if end, ok := load.End(); ok {
		o.end = end
	}
	sum := 0.0
	for _, a := range load.Adapters {
		sum += a.Weight
		o.models = append(o.models, sum)
	}
	if load.open() {
		o.pace = pacer{schedule: o.schedule}
		o.gaps = stream(load.Seed, forArrival)
		o.arriving = true
		o.arrive()
		return o, nil
	}
	for i := range clientsOf(o.schedule.most()) {
		o.makeDue(&talk{client: i}, 0)
	}
	return o, nil
}

// Phase returns the index of the phase at a time.
func (o *Offer) Phase(at time.Duration) int { return o.schedule.at(at) }

// Due returns when the next request is to be sent, which may be in the past. It returns false if
// none is due before an answer, or ever.
func (o *Offer) Due() (time.Duration, bool) {
	switch {
	case len(o.queue) > 0 && (!o.arriving || o.queue[0].at < o.arrival):
		return o.queue[0].at, true
	case o.arriving:
		return o.arrival, true
	}
	return 0, false
}

// Over reports whether no further request can become due.
func (o *Offer) Over() bool { return !o.arriving && len(o.queue) == 0 && o.coming == 0 }

// Next returns the request that is due. Call it only if Due returned true.
func (o *Offer) Next() Intent {
	var t *talk
	at := o.arrival
	if len(o.queue) > 0 && (!o.arriving || o.queue[0].at < o.arrival) {
		p := heap.Pop(&o.queue).(pending)
		if p.again != nil {
			o.retries--
			return o.send(*p.again)
		}
		t, at = p.talk, p.at
	} else {
		t = &talk{client: -1, number: o.arrivals}
		o.arrivals++
		o.arrive()
	}
	if t.turn == 0 {
		o.begin(t)
	}
	intent := o.write(t, at)
	intent.ID = o.ids
	o.ids++
	if o.load.Requests > 0 && o.ids >= o.load.Requests {
		o.finish()
	}
	more := !o.finished && (t.client >= 0 || t.turn+1 < t.turns)
	return o.send(flight{intent: intent, talk: t, coming: more || o.load.Retry})
}

// Done reports the outcome of a request to the schedule, and returns whether it will be retried.
func (o *Offer) Done(id int, outcome Outcome) (again bool) {
	f, ok := o.flights[id]
	if !ok {
		return false
	}
	delete(o.flights, id)
	if f.coming {
		o.coming--
	}
	if !outcome.OK && !outcome.Refused && o.load.Retry && f.intent.Attempt+1 < maxAttempts && o.retries < maxRetries {
		f.intent.Attempt++
		at := outcome.At + o.retryPause(id, f.intent.Attempt)
		if at < o.end && (f.intent.Deadline == 0 || at < f.intent.At+f.intent.Deadline) {
			o.retries++
			o.push(pending{at: at, talk: f.talk, again: &f})
			return true
		}
	}
	o.follow(f.talk, &f.intent, outcome)
	return false
}

// follow schedules the next request of a conversation or client.
func (o *Offer) follow(t *talk, i *Intent, outcome Outcome) {
	key := t.key()
	pause := o.load.Think.draw(stream(o.load.Seed, forThink, key[0], key[1], uint64(t.turn)))
	if outcome.OK {
		t.failures = 0
		if t.turn+1 < t.turns {
			t.recordTurn(i, outcome.Text, o.load.tokensIn(outcome.Text))
		}
	} else {
		t.failures++
		if t.client >= 0 {
			pause = backoff(t.failures)
		}
	}
	t.turn++
	if t.turn < t.turns {
		o.makeDue(t, outcome.At+pause)
		return
	}
	if t.client >= 0 {
		*t = talk{client: t.client, number: t.number + 1, failures: t.failures}
		o.makeDue(t, outcome.At+pause)
	}
}

// retryPause returns the pause before a retry: a random half to all of its backoff, so that
// requests that failed together are not retried together.
func (o *Offer) retryPause(id, attempt int) time.Duration {
	share := 0.5 + stream(o.load.Seed, forRetry, uint64(id), uint64(attempt)).Float64()/2
	return time.Duration(share * float64(backoff(attempt)))
}

// backoff returns the pause after a number of consecutive failures.
func backoff(failures int) time.Duration {
	return min(backoffFirst<<min(failures-1, 10), backoffMost)
}

// makeDue makes the next request of a conversation due at a time or, if its client is inactive
// then, when the client becomes active.
func (o *Offer) makeDue(t *talk, at time.Duration) {
	if t.client >= 0 {
		start, rank, begun, ok := o.schedule.active(t.client, at)
		if !ok {
			return
		}
		at = start
		if begun > 0 && !o.load.Together {
			at += o.stagger(t.client, rank, begun, start)
		}
	}
	if at >= o.end || o.finished {
		return
	}
	o.push(pending{at: at, talk: t})
}

// stagger returns the start delay of one of the clients that begin together.
func (o *Offer) stagger(client, rank, begun int, start time.Duration) time.Duration {
	spread := o.load.Stagger
	if spread == 0 {
		spread = min(staggerEach*time.Duration(begun), staggerMost)
	}
	if end := o.schedule.end(o.schedule.at(start)); end != endless {
		spread = min(spread, end-start)
	}
	share := (float64(rank) + stream(o.load.Seed, forStagger, uint64(client), uint64(start)).Float64()) / float64(begun)
	return time.Duration(share * float64(spread))
}

// arrive determines the next arrival of an open loop.
func (o *Offer) arrive() {
	var at time.Duration
	var ok bool
	switch {
	case o.load.Arrival == Replay:
		if ok = o.arrivals < uint64(len(o.load.Trace.Requests)); ok {
			at, ok = addSeconds(0, o.load.Trace.Requests[o.arrivals].At.Seconds()/o.load.traceSpeed())
		}
	case o.load.Arrival == Constant && o.arrivals == 0:
		at, ok = o.pace.time(0)
	default:
		o.total += o.gap() * o.perStart
		at, ok = o.pace.time(o.total)
	}
	o.arrival = at
	o.arriving = ok && at < o.end && !o.finished
}

// gap draws the gap to the next arrival, with mean 1.
func (o *Offer) gap() float64 {
	switch o.load.Arrival {
	case Constant:
		return 1
	case Gamma:
		shape := 1 / (o.load.CV * o.load.CV)
		return gamma(o.gaps, shape) / shape
	}
	return o.gaps.ExpFloat64()
}

// meanTurns returns the average number of requests per conversation.
func (l *Load) meanTurns() float64 {
	if l.Trace == nil {
		turns := l.turns()
		return turns.mean()
	}
	sum := 0
	for i := range l.Trace.Requests {
		sum += max(1, len(l.Trace.Requests[i].Turns))
	}
	return float64(sum) / float64(len(l.Trace.Requests))
}

// finish ends the run with the last of Load.Requests: only retries stay due.
func (o *Offer) finish() {
	o.finished, o.arriving = true, false
	o.queue = slices.DeleteFunc(o.queue, func(p pending) bool { return p.again == nil })
	heap.Init(&o.queue)
}

func (o *Offer) send(f flight) Intent {
	o.flights[f.intent.ID] = f
	if f.coming {
		o.coming++
	}
	return f.intent
}

func (o *Offer) push(p pending) {
	p.order = o.pushed
	o.pushed++
	heap.Push(&o.queue, p)
}

// queue is a heap of pending requests, ordered by time.
type queue []pending

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].order < q[j].order
}

func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push implements heap.Interface.
func (q *queue) Push(x any) { *q = append(*q, x.(pending)) }

// Pop implements heap.Interface.
func (q *queue) Pop() any {
	last := len(*q) - 1
	p := (*q)[last]
	(*q)[last] = pending{}
	*q = (*q)[:last]
	return p
}
