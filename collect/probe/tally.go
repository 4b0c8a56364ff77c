package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/bits"
	"net"
	"slices"
	"sync"
	"syscall"
	"time"
)

// how is how a request ended.
type how int

const (
	answered   how = iota
	cancelled      // by its client, as the load says
	expired        // given up at its deadline
	failed         // for good
	retried        // failed, and will be sent again
	unfinished     // cut by the end of the run
)

// maxKinds bounds the kinds of errors that a run tells apart.
const maxKinds = 32

// tally adds up what the requests of a run came to.
type tally struct {
	load      *Load
	schedule  schedule
	started   time.Time
	mu        sync.Mutex
	phases    []score
	inFlight  int
	lastError string
	kinds     map[string]*Failure
	simulated bool
}

// score adds up one phase.
type score struct {
	sent, requests, errors, retries, cancelled, expired, noFirst, unfinished int
	promptTokens, cachedTokens, outputTokens                                 int

	ttft, itl, tpot, e2e, ttftSent, e2eSent, lag recorder
	good, judged                                 int
}

func newTally(load *Load, started time.Time) *tally {
	phases := newSchedule(load.phases())
	return &tally{load: load, schedule: phases, started: started, phases: make([]score, len(phases.phases)), kinds: map[string]*Failure{}}
}

// watch reports progress until ctx ends.
func (t *tally) watch(ctx context.Context, progress func(Progress)) {
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
			progress(t.progress(time.Since(t.started)))
		}
	}
}

// phase is that of a request's intended time.
func (t *tally) phase(i *Intent) int { return t.schedule.at(i.At) }

func (t *tally) begin(phase int, i *Intent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inFlight++
	if i.Attempt == 0 {
		t.phases[phase].sent++
	}
}

// arrivals is how much of a request's output arrived in which phase, in order.
type arrivals []struct{ phase, chunks int }

// chunk counts output in the phase in which it arrives, as a token until the
// server's count is known.
func (t *tally) chunk(a *arrivals) {
	phase := 0
	if len(t.phases) > 1 {
		phase = t.schedule.at(time.Since(t.started))
	}
	if n := len(*a); n == 0 || (*a)[n-1].phase != phase {
		*a = append(*a, struct{ phase, chunks int }{phase, 0})
	}
	(*a)[len(*a)-1].chunks++
	t.mu.Lock()
	defer t.mu.Unlock()
	t.phases[phase].outputTokens++
}

// settle replaces the chunks that were counted by the tokens that they were,
// spread over the phases as the chunks were.
func (t *tally) settle(a arrivals, tokens int) {
	chunks := 0
	for _, in := range a {
		chunks += in.chunks
	}
	if chunks == 0 {
		t.phases[t.schedule.at(time.Since(t.started))].outputTokens += tokens
		return
	}
	seen, given := 0, 0
	for _, in := range a {
		seen += in.chunks
		// Rounding sums instead of parts keeps the sum. The product may need more
		// than 64 bits; the quotient is at most tokens.
		high, low := bits.Mul64(uint64(tokens), uint64(seen))
		upTo, _ := bits.Div64(high, low, uint64(chunks))
		t.phases[in.phase].outputTokens += int(upTo) - given - in.chunks
		given = int(upTo)
	}
}

// end takes in a finished request, which was intended to be sent at a time.
func (t *tally) end(phase int, i *Intent, intended time.Time, a arrivals, r *Result, err error, how how) {
	lag := max(0, r.Sent.Sub(intended))
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inFlight--
	t.simulated = t.simulated || r.Simulated
	s := &t.phases[phase]
	if i.Attempt == 0 && !r.Sent.IsZero() {
		s.lag.add(lag)
	}
	t.settle(a, r.OutputTokens)
	if first, ok := r.TTFT(); ok {
		s.ttft.add(lag + first)
		s.ttftSent.add(first)
	}
	for i := 1; i < len(r.Chunks); i++ {
		s.itl.add(r.Chunks[i] - r.Chunks[i-1])
	}
	t.judge(s, lag, r, how)
	switch how {
	case answered:
		s.requests++
		s.promptTokens += r.PromptTokens
		s.cachedTokens += r.CachedTokens
		if d, ok := r.E2E(); ok {
			s.e2e.add(lag + d)
			s.e2eSent.add(d)
		}
		if d, ok := r.TPOT(); ok {
			s.tpot.add(d)
		}
	case cancelled:
		s.cancelled++
	case expired:
		s.expired++
		if len(r.Chunks) == 0 {
			s.noFirst++
		}
	case unfinished:
		s.unfinished++
	case retried:
		s.retries++
		t.fail(err)
	case failed:
		s.errors++
		t.fail(err)
	}
}

// judge holds a request against the load's objectives. One that its own client
// cancelled says nothing; one that the end of the run cut counts only where it
// had missed already, so that a server in arrears is not flattered.
func (t *tally) judge(s *score, lag time.Duration, r *Result, how how) {
	if t.load.SLO.IsZero() || how == cancelled || how == retried {
		return
	}
	met := t.load.SLO.met(lag, r)
	switch {
	case how == unfinished:
		waited := t.load.SLO.missed(lag+time.Since(r.Sent), lag, r)
		if waited {
			s.judged++
		}
	case how == answered && met:
		s.judged++
		s.good++
	default:
		s.judged++
	}
}

func (t *tally) fail(err error) {
	t.lastError = err.Error()
	kind := kindOf(err)
	if t.kinds[kind] == nil && len(t.kinds) >= maxKinds {
		kind = "other"
	}
	if t.kinds[kind] == nil {
		t.kinds[kind] = &Failure{Kind: kind, Example: err.Error()}
	}
	t.kinds[kind].Count++
}

// kindOf names an error by what a reader would do about it.
func kindOf(err error) string {
	var status *StatusError
	var stream *StreamError
	var network net.Error
	switch {
	case errors.As(err, &status):
		return fmt.Sprintf("status %d", status.Code)
	case errors.As(err, &stream):
		return "error in the stream"
	case errors.Is(err, ErrTruncated):
		return "truncated stream"
	case errors.Is(err, ErrOverrun):
		return "overlong stream"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "connection refused"
	case errors.As(err, &network) && network.Timeout():
		return "timeout"
	case errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, io.EOF):
		return "connection broken"
	}
	return "other"
}

func (t *tally) progress(elapsed time.Duration) Progress {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := Progress{Elapsed: elapsed, Phase: t.schedule.at(elapsed), InFlight: t.inFlight, LastError: t.lastError}
	for i := range t.phases {
		s := &t.phases[i]
		p.Sent += s.sent
		p.Requests += s.requests
		p.Errors += s.errors + s.retries
		p.OutputTokens += s.outputTokens
	}
	return p
}

func (t *tally) summary(elapsed time.Duration) Summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	var all score
	s := Summary{Started: t.started, Elapsed: elapsed, Arrival: t.load.Arrival, Seed: t.load.Seed, Simulated: t.simulated}
	if t.load.Style == Words {
		s.TokensPerWord = t.load.tokensPerWord()
	}
	if !t.load.open() {
		s.Clients = clientsOf(t.schedule.most())
	}
	for i := range t.phases {
		if len(t.phases) > 1 && t.schedule.starts[i] < elapsed {
			from, to := t.schedule.starts[i], min(t.schedule.end(i), elapsed)
			s.Phases = append(s.Phases, PhaseSummary{
				Name: t.schedule.phases[i].Name, From: from, To: to,
				FromLevel: t.schedule.phases[i].From, ToLevel: t.schedule.phases[i].To,
				Score: t.phases[i].score(t.load, to-from),
			})
		}
		all.merge(&t.phases[i])
	}
	s.Score = all.score(t.load, elapsed)
	for _, failure := range t.kinds {
		s.Failures = append(s.Failures, *failure)
	}
	slices.SortFunc(s.Failures, func(a, b Failure) int {
		return cmp.Or(cmp.Compare(b.Count, a.Count), cmp.Compare(a.Kind, b.Kind))
	})
	return s
}

func (s *score) merge(o *score) {
	for _, sum := range []struct {
		to   *int
		from int
	}{
		{&s.sent, o.sent}, {&s.requests, o.requests}, {&s.errors, o.errors}, {&s.retries, o.retries},
		{&s.cancelled, o.cancelled}, {&s.expired, o.expired}, {&s.noFirst, o.noFirst}, {&s.unfinished, o.unfinished},
		{&s.promptTokens, o.promptTokens}, {&s.cachedTokens, o.cachedTokens}, {&s.outputTokens, o.outputTokens},
		{&s.good, o.good}, {&s.judged, o.judged},
	} {
		*sum.to += sum.from
	}
	s.ttft.merge(&o.ttft)
	s.itl.merge(&o.itl)
	s.tpot.merge(&o.tpot)
	s.e2e.merge(&o.e2e)
	s.ttftSent.merge(&o.ttftSent)
	s.e2eSent.merge(&o.e2eSent)
	s.lag.merge(&o.lag)
}

// score is what a phase or run of a length came to.
func (s *score) score(l *Load, length time.Duration) Score {
	out := Score{
		Sent: s.sent, Requests: s.requests, Errors: s.errors, Retries: s.retries,
		Cancelled: s.cancelled, Expired: s.expired, NoFirstToken: s.noFirst, Unfinished: s.unfinished,
		PromptTokens: s.promptTokens, CachedTokens: s.cachedTokens, OutputTokens: s.outputTokens,
		TTFT: s.ttft.latency(), ITL: s.itl.latency(), TPOT: s.tpot.latency(), E2E: s.e2e.latency(),
		TTFTSent: s.ttftSent.latency(), E2ESent: s.e2eSent.latency(), SendLag: s.lag.latency(),
	}
	seconds := length.Seconds()
	if seconds > 0 {
		out.OutputPerSecond = float64(s.outputTokens) / seconds
		out.RequestsPerSecond = float64(s.requests) / seconds
		out.OfferedPerSecond = float64(s.sent) / seconds
	}
	if !l.SLO.IsZero() {
		out.Goodput = &Goodput{SLO: l.SLO, Good: s.good, Judged: s.judged}
		if seconds > 0 {
			out.Goodput.PerSecond = float64(s.good) / seconds
		}
	}
	return out
}
