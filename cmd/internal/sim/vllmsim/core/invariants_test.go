package core

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/longtest"
)

// ledger observes a run from outside and reports violated invariants of the scheduler.
type ledger struct {
	t *testing.T
	c Config
	e *Engine

	open      map[ID]Request
	given     map[ID]int
	tokens    int // delivered
	generated int // by the requests that ended
	queries   int
	hits      int
	preempted [2]int // told by batches, by reports
	ends      map[Reason]int
	now       time.Duration
}

func newLedger(t *testing.T, c Config) *ledger {
	return &ledger{t: t, c: c, e: NewEngine(c), open: map[ID]Request{}, given: map[ID]int{}, ends: map[Reason]int{}}
}

func (l *ledger) submit(r Request) {
	r.Arrival = l.now
	l.open[r.ID] = r
	l.e.Submit(r)
}

// step runs one step, of a duration that timer makes of the batch; meanwhile happens between its ends. It
// returns false if there is nothing to do.
func (l *ledger) step(timer func(*Batch) time.Duration, meanwhile func()) bool {
	t := l.t
	t.Helper()
	b, ok := l.e.Begin(l.now)
	if !ok {
		return false
	}
	l.batch(&b)
	meanwhile()
	l.now += timer(&b)
	r := l.e.Complete(l.now)
	l.report(&r)
	if err := l.e.Check(); err != nil {
		t.Fatalf("step %d: %v", r.Step, err)
	}
	return true
}

func (l *ledger) batch(b *Batch) {
	t, c := l.t, &l.c
	t.Helper()
	sum := 0
	rows := map[ID]bool{}
	loras := map[string]bool{}
	for _, w := range b.Work {
		sum += w.New
		if w.New < 1 || w.Context < 0 || w.Context+w.New > c.MaxModelLen-1 || rows[w.ID] {
			t.Fatalf("step %d: work %+v", b.Step, w)
		}
		rows[w.ID] = true
		if w.Adapter != "" {
			loras[w.Adapter] = true
		}
	}
	switch {
	case sum != b.Tokens || sum > c.MaxNumBatchedTokens: // 2
		t.Fatalf("step %d: %d tokens, %d of a budget of %d", b.Step, b.Tokens, sum, c.MaxNumBatchedTokens)
	case len(b.Work) > c.MaxNumSeqs: // 2
		t.Fatalf("step %d: %d requests on %d slots", b.Step, len(b.Work), c.MaxNumSeqs)
	case len(b.Preempted) > 0 && len(b.Admitted) > 0: // 3
		t.Fatalf("step %d preempts %v and admits %v", b.Step, b.Preempted, b.Admitted)
	case c.MaxLoras > 0 && len(loras) > c.MaxLoras:
		t.Fatalf("step %d: %d adapters in %d slots", b.Step, len(loras), c.MaxLoras)
	}
	l.preempted[0] += len(b.Preempted)
}

func (l *ledger) report(r *Report) {
	t := l.t
	t.Helper()
	l.preempted[1] += r.Preemptions
	l.queries += r.PrefixQueries
	l.hits += r.PrefixHits
	if r.PrefixHits > r.PrefixQueries || r.PrefixHits%l.c.BlockSize != 0 { // 8
		t.Fatalf("step %d: %d hits of %d queries", r.Step, r.PrefixHits, r.PrefixQueries)
	}
	if r.KVUsage < 0 || r.KVUsage > 1 || r.Running > l.c.MaxNumSeqs {
		t.Fatalf("step %d: %+v", r.Step, r.State)
	}
	for _, o := range r.Outputs {
		q, ok := l.open[o.ID]
		if !ok { // 5
			t.Fatalf("step %d: output of request %d, which has ended", r.Step, o.ID)
		}
		if o.HasToken {
			l.tokens++
			if o.First != (l.given[o.ID] == 0) {
				t.Fatalf("request %d: token %d, first: %v", o.ID, l.given[o.ID], o.First)
			}
			l.given[o.ID]++
		}
		if o.Finish == NotFinished {
			continue
		}
		delete(l.open, o.ID)
		l.ends[o.Finish]++
		f := o.History
		l.generated += f.OutputTokens
		if f.OutputTokens != l.given[o.ID] || f.OutputTokens > max(q.MaxTokens, 0) { // 4
			t.Fatalf("request %d: %d tokens, %d delivered, at most %d", o.ID, f.OutputTokens, l.given[o.ID], q.MaxTokens)
		}
		delete(l.given, o.ID)
		if o.Finish == Stop || o.Finish == Length {
			if f.Arrival > f.Queued || f.Queued > f.Scheduled || f.Scheduled > f.FirstToken || f.FirstToken > f.LastToken || f.LastToken != r.Ended { // 6
				t.Fatalf("request %d: %+v", o.ID, *f)
			}
		}
	}
}

// drained checks the invariants of an engine without requests.
func (l *ledger) drained(submitted int) {
	t := l.t
	t.Helper()
	total := 0
	for _, n := range l.ends {
		total += n
	}
	switch {
	case total != submitted || len(l.open) > 0: // 5
		t.Fatalf("%d requests, %d ends, %d open", submitted, total, len(l.open))
	case l.e.State() != State{}: // 9
		t.Fatalf("idle engine: %+v", l.e.State())
	case l.tokens != l.generated: // 4
		t.Fatalf("%d tokens delivered, %d in the ends", l.tokens, l.generated)
	case l.preempted[0] != l.preempted[1]:
		t.Fatalf("%d preemptions in batches, %d in reports", l.preempted[0], l.preempted[1])
	}
}

// TestInvariants holds them against random servers under random loads.
func TestInvariants(t *testing.T) {
	runs := 60
	if longtest.Tests {
		runs = 300
	}
	preempted, hits := 0, 0
	for seed := range runs {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		c := Config{
			MaxNumSeqs: 1 + r.IntN(40), MaxNumBatchedTokens: 8 << r.IntN(8), MaxModelLen: 600, BlockSize: 1 << r.IntN(6),
			PrefixCaching: r.IntN(4) > 0, ChunkedPrefill: r.IntN(4) > 0, ReserveFullISL: r.IntN(2) > 0,
			LongPrefillTokenThreshold: r.IntN(2) * r.IntN(200), Watermark: float64(r.IntN(2)) * r.Float64() / 4,
			Policy: Policy(r.IntN(2)), AsyncScheduling: r.IntN(2) > 0, MaxLoras: r.IntN(3), Generation: Generation(r.IntN(2)),
		}
		c.NumBlocks = 2 + blocksFor(200+r.IntN(4000), c.BlockSize)
		l := newLedger(t, c)
		timer := func(b *Batch) time.Duration { return time.Duration(100 + b.Tokens + r.IntN(50)) }
		submitted, target := 0, 40+r.IntN(150)
		pause := time.Duration(1 + r.IntN(4000))
		arrivals := func() {
			for submitted < target && r.IntN(3) > 0 {
				submitted++
				n := 1 + r.IntN(300)
				p := make([]Token, n)
				kind := r.IntN(4)
				shared := r.IntN(n)
				for i := range p {
					if p[i] = Token(kind*n + i); i >= shared {
						p[i] = Token(r.IntN(1000))
					}
				}
				l.submit(Request{
					ID: ID(submitted), Prompt: p, MaxTokens: 1 + r.IntN(150), StopAfter: r.IntN(2) * r.IntN(200), MinTokens: r.IntN(20),
					Priority: r.IntN(3), Adapter: []string{"", "a", "b"}[r.IntN(3)],
				})
			}
			if r.IntN(20) == 0 {
				l.e.Abort(ID(1 + r.IntN(submitted+1)))
			}
		}
		for n := 0; submitted < target || !l.e.Idle(); n++ {
			if n > 200_000 {
				t.Fatalf("seed %d never drains: %+v, %+v", seed, l.e.State(), c)
			}
			if r.IntN(4) == 0 {
				arrivals()
			}
			if !l.step(timer, arrivals) {
				l.now += pause
			}
		}
		l.drained(submitted)
		preempted += l.preempted[0]
		hits += l.hits
	}
	if preempted < runs || hits < 100*runs {
		t.Errorf("%d preemptions and %d hits in %d runs: they no longer try it", preempted, hits, runs)
	}
}
