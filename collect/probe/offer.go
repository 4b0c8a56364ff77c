package probe

import (
	"container/heap"
	"math/rand/v2"
	"slices"
	"time"
)

const (
	backoffFirst = 100 * time.Millisecond
	backoffMost  = 2 * time.Second
	// maxAttempts bounds how often one request is sent: with the pauses between
	// them about two and a half minutes, in which a server has restarted.
	maxAttempts = 100
	// maxRetries bounds the requests that wait to be sent again, with their
	// prompts: what fails beyond has failed for good.
	maxRetries = 1 << 14
)

// Offer is the schedule of a load: what to send and when, without a clock. It is
// driven by whoever has one:
//
//	for !o.Over() {
//		at, ok := o.Due()  // false: wait for an answer
//		...                // let time pass to at, or to the next answer
//		i := o.Next()      // send it; call Done when it has ended
//	}
//
// Its methods are not safe for concurrent use. The driver ends at Load.End.
type Offer struct {
	load     Load
	schedule schedule
	zipf     []float64
	models   []float64
	end      time.Duration
	// perStart is how many requests a conversation has on average.
	perStart float64

	// The open loop's arrivals.
	pace     pacer
	gaps     *rand.Rand
	total    float64 // unit-rate time of the last arrival
	arrivals uint64
	arrival  time.Duration
	arriving bool

	queue    queue
	flights  map[int]flight
	coming   int // flights whose end may bring another request
	retries  int // in the queue
	ids      int
	sessions int
	pushed   int
	finished bool // Requests were sent
}

// talk is one conversation after another of a client of a closed loop, or one
// conversation of an open loop.
type talk struct {
	client   int // -1 in an open loop
	number   uint64
	turn     int
	turns    int
	session  int
	failures int // in a row
	traced   *Traced
	model    string
	text     string // what was said so far, of a plain prompt
	messages []Message
	tokens   int // of what was said so far
}

// flight is a request that was sent.
type flight struct {
	intent Intent
	talk   *talk
	coming bool
}

// pending is a request that is due at a time.
type pending struct {
	at    time.Duration
	order int // of pending requests of the same time
	talk  *talk
	again *flight // a failed request to send again
}

// NewOffer returns the schedule of a load, or what is wrong with it.
func NewOffer(load Load) (*Offer, error) {
	if err := load.Validate(); err != nil {
		return nil, err
	}
	o := &Offer{load: load, schedule: newSchedule(load.phases()), zipf: load.zipf(), end: endless, perStart: load.meanTurns(), flights: map[int]flight{}}
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
		o.come(&talk{client: i}, 0)
	}
	return o, nil
}

// Phase returns the phase, counted from 0, that a time belongs to.
func (o *Offer) Phase(at time.Duration) int { return o.schedule.at(at) }

// Due returns when the next request is to be sent, which may be a time that has
// passed; false where none will be before an answer, or ever.
func (o *Offer) Due() (time.Duration, bool) {
	switch {
	case len(o.queue) > 0 && (!o.arriving || o.queue[0].at < o.arrival):
		return o.queue[0].at, true
	case o.arriving:
		return o.arrival, true
	}
	return 0, false
}

// Over says that no request will be due any more, whatever happens.
func (o *Offer) Over() bool { return !o.arriving && len(o.queue) == 0 && o.coming == 0 }

// Next returns the request that is due. It may be called only where Due says
// that there is one.
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

// Done tells how a request ended, and returns whether it will be due again.
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

// follow makes the next request of a conversation or client due.
func (o *Offer) follow(t *talk, i *Intent, outcome Outcome) {
	key := t.key()
	pause := o.load.Think.draw(stream(o.load.Seed, forThink, key[0], key[1], uint64(t.turn)))
	if outcome.OK {
		t.failures = 0
		if t.turn+1 < t.turns {
			t.hear(i, outcome.Text, o.load.tokensIn(outcome.Text))
		}
	} else {
		t.failures++
		if t.client >= 0 {
			pause = backoff(t.failures)
		}
	}
	t.turn++
	if t.turn < t.turns {
		o.come(t, outcome.At+pause)
		return
	}
	if t.client >= 0 {
		*t = talk{client: t.client, number: t.number + 1, failures: t.failures}
		o.come(t, outcome.At+pause)
	}
}

// retryPause is the pause before a request is sent again: half to all of its
// backoff, drawn, so that requests that failed together do not come back
// together.
func (o *Offer) retryPause(id, attempt int) time.Duration {
	share := 0.5 + stream(o.load.Seed, forRetry, uint64(id), uint64(attempt)).Float64()/2
	return time.Duration(share * float64(backoff(attempt)))
}

// backoff is the pause after so many failures in a row.
func backoff(failures int) time.Duration {
	return min(backoffFirst<<min(failures-1, 10), backoffMost)
}

// come makes a conversation's next request due at a time, or when its client
// takes part again.
func (o *Offer) come(t *talk, at time.Duration) {
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

// stagger is how much later than the others one of the clients that begin
// together starts.
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

// arrive finds the next arrival of an open loop.
func (o *Offer) arrive() {
	var at time.Duration
	var ok bool
	switch {
	case o.load.Arrival == Replay:
		if ok = o.arrivals < uint64(len(o.load.Trace.Requests)); ok {
			at, ok = after(0, o.load.Trace.Requests[o.arrivals].At.Seconds()/o.load.traceSpeed())
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

// gap draws the gap to the next arrival, of mean 1.
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

// meanTurns is how many requests a conversation has on average.
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

// finish ends the run with the last of Load.Requests: what is still due are
// requests that are sent again.
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

// queue is a heap of what is due, by time.
type queue []pending

func (q queue) Len() int { return len(q) }

func (q queue) Less(i, j int) bool {
	if q[i].at != q[j].at {
		return q[i].at < q[j].at
	}
	return q[i].order < q[j].order
}

func (q queue) Swap(i, j int) { q[i], q[j] = q[j], q[i] }

// Push is for container/heap.
func (q *queue) Push(x any) { *q = append(*q, x.(pending)) }

// Pop is for container/heap.
func (q *queue) Pop() any {
	last := len(*q) - 1
	p := (*q)[last]
	(*q)[last] = pending{}
	*q = (*q)[:last]
	return p
}
