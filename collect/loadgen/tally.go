package loadgen

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

	"github.com/rooftop-dev/rooftop/collect/probe"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// how is the way in which a request ended.
type how int

const (
	answered   how = iota
	cancelled      // by the client, as the load demands
	expired        // given up at the deadline
	failed         // permanently
	retried        // failed, and will be sent again
	unfinished     // cut off by the end of the run
)

// maxKinds limits the number of kinds of errors of a run.
const maxKinds = 32

// tally sums up the requests of a run.
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

// score sums up one phase. Only the counts of the embedded Score are kept up to date.
type score struct {
	Score
	times        [numTimes]stat.Durations
	good, judged int
}

// Indices of the times of a score.
const (
	ttft = iota
	itl
	tpot
	e2e
	ttftSent
	e2eSent
	sendLag
	numTimes
)

// distributions returns the fields for the times of a score, by index.
func (s *Score) distributions() [numTimes]*capture.Distribution {
	return [...]*capture.Distribution{&s.TTFT, &s.ITL, &s.TPOT, &s.E2E, &s.TTFTSent, &s.E2ESent, &s.SendLag}
}

func newScore() score {
	var s score
	for i := range s.times {
		s.times[i] = stat.NewFineDurations()
	}
	return s
}

func newTally(load *Load, started time.Time) *tally {
	phases := newSchedule(load.phases())
	t := &tally{load: load, schedule: phases, started: started, kinds: map[string]*Failure{}}
	for range phases.phases {
		t.phases = append(t.phases, newScore())
	}
	return t
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

// phase returns the phase of a request's intended time.
func (t *tally) phase(i *Intent) int { return t.schedule.at(i.At) }

func (t *tally) begin(phase int, i *Intent) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inFlight++
	if i.Attempt == 0 {
		t.phases[phase].Sent++
	}
}

// arrivals counts the chunks of a request by the phase in which they arrived, in order.
type arrivals []struct{ phase, chunks int }

// chunk counts a chunk in the phase in which it arrives, as one token until the server's count is
// known.
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
	t.phases[phase].OutputTokens++
}

// settleTokens replaces the chunks counted so far by the number of tokens, distributed over the
// phases like the chunks.
func (t *tally) settleTokens(a arrivals, tokens int) {
	chunks := 0
	for _, in := range a {
		chunks += in.chunks
	}
	if chunks == 0 {
		t.phases[t.schedule.at(time.Since(t.started))].OutputTokens += tokens
		return
	}
	seen, given := 0, 0
	for _, in := range a {
		seen += in.chunks
		// Rounding the running sums, not the parts, preserves the total. The product may need more
		// than 64 bits; the quotient is at most tokens.
		high, low := bits.Mul64(uint64(tokens), uint64(seen))
		upTo, _ := bits.Div64(high, low, uint64(chunks))
		t.phases[in.phase].OutputTokens += int(upTo) - given - in.chunks
		given = int(upTo)
	}
}

// end adds a finished request.
func (t *tally) end(phase int, i *Intent, a arrivals, r *capture.Request, err error, how how) {
	lag := max(0, r.Sent-i.At)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.inFlight--
	t.simulated = t.simulated || r.Simulated
	s := &t.phases[phase]
	if i.Attempt == 0 {
		s.times[sendLag].Add(lag)
	}
	t.settleTokens(a, int(r.CountedTokens()))
	if first, ok := r.TTFT(); ok {
		s.times[ttft].Add(lag + first)
		s.times[ttftSent].Add(first)
	}
	for i := 1; i < len(r.Chunks); i++ {
		s.times[itl].Add(r.Chunks[i].At - r.Chunks[i-1].At)
	}
	t.judge(s, lag, r, how)
	switch how {
	case answered:
		s.Requests++
		s.PromptTokens += int(r.PromptTokens.Or(0))
		s.CachedTokens += int(r.CachedTokens.Or(0))
		if d, ok := r.E2E(); ok {
			s.times[e2e].Add(lag + d)
			s.times[e2eSent].Add(d)
		}
		if d, ok := r.TPOT(r.CountedTokens()); ok {
			s.times[tpot].Add(d)
		}
	case cancelled:
		s.Cancelled++
	case expired:
		s.Expired++
		if len(r.Chunks) == 0 {
			s.NoFirstToken++
		}
	case unfinished:
		s.Unfinished++
	case retried:
		s.Retries++
		t.fail(err)
	case failed:
		s.Errors++
		t.fail(err)
	}
}

// judge compares a request with the load's objectives. Cancelled requests are not judged. Requests
// cut off by the end of the run count only if they had already missed an objective, so that a
// server with a backlog does not look better.
func (t *tally) judge(s *score, lag time.Duration, r *capture.Request, how how) {
	if t.load.SLO.IsZero() || how == cancelled || how == retried {
		return
	}
	if how == unfinished {
		if t.load.SLO.missed(time.Since(t.started)-r.Sent+lag, lag, r) {
			s.judged++
		}
		return
	}
	s.judged++
	if how == answered && t.load.SLO.met(lag, r) {
		s.good++
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

// kindOf returns the kind of an error, by what the user can do about it.
func kindOf(err error) string {
	var status *probe.StatusError
	var stream *probe.StreamError
	var network net.Error
	switch {
	case errors.As(err, &status):
		return fmt.Sprintf("status %d", status.Code)
	case errors.As(err, &stream):
		return "error in the stream"
	case errors.Is(err, probe.ErrTruncated):
		return "truncated stream"
	case errors.Is(err, probe.ErrOverrun):
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
		p.Sent += s.Sent
		p.Requests += s.Requests
		p.Errors += s.Errors + s.Retries
		p.OutputTokens += s.OutputTokens
	}
	return p
}

func (t *tally) summary(elapsed time.Duration) Summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := newScore()
	s := Summary{Schema: Schema, Started: t.started, Elapsed: elapsed, Arrival: t.load.Arrival, Seed: t.load.Seed, Simulated: t.simulated}
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
		{&s.Sent, o.Sent}, {&s.Requests, o.Requests}, {&s.Errors, o.Errors}, {&s.Retries, o.Retries},
		{&s.Cancelled, o.Cancelled}, {&s.Expired, o.Expired}, {&s.NoFirstToken, o.NoFirstToken}, {&s.Unfinished, o.Unfinished},
		{&s.PromptTokens, o.PromptTokens}, {&s.CachedTokens, o.CachedTokens}, {&s.OutputTokens, o.OutputTokens},
		{&s.good, o.good}, {&s.judged, o.judged},
	} {
		*sum.to += sum.from
	}
	for i := range s.times {
		s.times[i].Merge(&o.times[i])
	}
}

// score returns the Score of a phase or run of the given length.
func (s *score) score(l *Load, length time.Duration) Score {
	out := s.Score
	for i, to := range out.distributions() {
		*to = capture.Distribution(s.times[i].Distribution())
	}
	perSecond := func(n int) float64 { return stat.PerSecond(float64(n), length).Or(0) }
	out.OutputPerSecond, out.RequestsPerSecond, out.OfferedPerSecond = perSecond(s.OutputTokens), perSecond(s.Requests), perSecond(s.Sent)
	if !l.SLO.IsZero() {
		out.Goodput = &Goodput{SLO: l.SLO, Good: s.good, Judged: s.judged, Share: stat.Ratio(s.good, s.judged), PerSecond: perSecond(s.good)}
	}
	return out
}
