package core

import (
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/rooftop-dev/rooftop/engine/longtest"
)

// randomConfig is a small engine with everything that can be scarce scarce.
func randomConfig(r *rand.Rand) Config {
	c := Config{
		MaxNumSeqs:          1 + r.IntN(6),
		MaxNumBatchedTokens: 1 + r.IntN(40),
		MaxModelLen:         8 + r.IntN(60),
		BlockSize:           1 + r.IntN(5),
		NumBlocks:           2 + r.IntN(30),
		PrefixCaching:       r.IntN(4) > 0,
		ChunkedPrefill:      r.IntN(4) > 0,
		Policy:              Policy(r.IntN(2)),
		ReserveFullISL:      r.IntN(3) > 0,
		AsyncScheduling:     r.IntN(2) > 0,
		MaxLoras:            r.IntN(3),
		Generation:          Generation(r.IntN(2)),
		Seed:                r.Uint64(),
	}
	if r.IntN(3) == 0 {
		c.LongPrefillTokenThreshold = 1 + r.IntN(12)
	}
	if r.IntN(3) == 0 {
		c.Watermark = r.Float64() / 2
	}
	return c
}

// randomRequest mixes few words, so that prefixes are shared by chance as well as
// by intent, and now and then asks for what cannot be.
func randomRequest(r *rand.Rand, c *Config, id ID, now time.Duration) Request {
	n := 1 + r.IntN(24)
	if r.IntN(40) == 0 {
		n = r.IntN(2 * c.MaxModelLen)
	}
	prompt := make([]Token, n)
	kind := r.IntN(3)
	for i := range prompt {
		if prompt[i] = Token(kind); i > 3*kind {
			prompt[i] = Token(r.IntN(1 + i%2))
		}
	}
	q := Request{
		ID:        id,
		Arrival:   now - time.Duration(r.IntN(3)),
		Prompt:    prompt,
		MaxTokens: 1 + r.IntN(20),
		Priority:  r.IntN(3) - 1,
		Adapter:   []string{"", "", "a", "b", "c"}[r.IntN(5)],
	}
	if r.IntN(3) == 0 {
		q.StopAfter = 1 + r.IntN(20)
		q.MinTokens = r.IntN(8)
	}
	if r.IntN(6) == 0 {
		q.Salt = uint64(r.IntN(2))
	}
	if r.IntN(60) == 0 {
		q.MaxTokens = 0
	}
	return q
}

// TestAgainstReference drives the engine and the second statement of the rules
// through the same scenarios; after every call all they show, and the blocks of
// every request, are the same.
func TestAgainstReference(t *testing.T) {
	scenarios := 600
	if longtest.Tests {
		scenarios = 4000
	}
	var seen coverage
	for seed := range scenarios {
		if !differ(t, uint64(seed), &seen) {
			return
		}
	}
	for what, n := range map[string]int{
		"steps": seen.steps, "preemptions": seen.preempted, "several preemptions in one step": seen.several,
		"admissions": seen.admitted, "hits": seen.hits, "deferred": seen.deferred, "aborted": seen.reasons[Aborted], "errors": seen.reasons[Error],
		"stop": seen.reasons[Stop], "length": seen.reasons[Length], "discarded work": seen.discarded, "resumed within own blocks": seen.resumed,
	} {
		if n < scenarios/20 {
			t.Errorf("%d %s in %d scenarios: they no longer try it", n, what, scenarios)
		}
	}
}

// coverage counts what scenarios made happen.
type coverage struct {
	steps, preempted, several, admitted, hits, deferred, discarded, resumed int
	reasons                                                                 [Error + 1]int
}

func differ(t *testing.T, seed uint64, seen *coverage) bool {
	t.Helper()
	r := rand.New(rand.NewPCG(seed, 17))
	c := randomConfig(r)
	e := NewEngine(c)
	sampled := map[ID][]Token{}
	m := newReference(c, func(id ID, i int) Token {
		if i < len(sampled[id]) {
			return sampled[id][i]
		}
		return -1
	})
	var next ID
	var live []ID
	now := time.Duration(10)
	disturb := func(rate int) {
		for range r.IntN(rate) {
			if len(e.byID) > 24 {
				break
			}
			next++
			q := randomRequest(r, &c, next, now)
			live = append(live, next)
			e.Submit(q, now)
			m.submit(q)
		}
		if len(live) > 0 && r.IntN(12) == 0 {
			id := live[r.IntN(len(live))]
			if e.byID[id] == nil {
				return
			}
			e.Abort(id, now)
			m.abortQ = append(m.abortQ, id)
		}
	}
	fail := func(what, diff string) bool {
		t.Errorf("seed %d, step %d: %s (-reference +engine)\n%s\n%+v", seed, m.step, what, diff, c)
		return false
	}
	load := 2 + r.IntN(3)
	steps := 10 + r.IntN(40)
	for n := 0; n < 3000; n++ {
		if n < steps {
			disturb(load)
		}
		b, ok := e.Begin(now)
		p, want := m.begin(now)
		if ok != want {
			return fail("Begin", fmt.Sprintf("-%v +%v", want, ok))
		}
		if !ok {
			if n >= steps {
				break
			}
			now++
			continue
		}
		wantBatch := Batch{Step: p.number, Preempted: p.preempted, Admitted: p.admitted}
		for _, row := range p.rows {
			wantBatch.Work = append(wantBatch.Work, row.Work)
			wantBatch.Tokens += row.New
			if row.r.state == "done" {
				seen.discarded++
			}
			if row.r.history.Preemptions > 0 && row.Prefill && row.Context > 0 {
				seen.resumed++
			}
		}
		if !sameBatch(&wantBatch, &b) {
			return fail("batch", cmp.Diff(wantBatch, b, cmpopts.EquateEmpty()))
		}
		if d := compareBlocks(m, e); d != "" {
			return fail("blocks after Begin", d)
		}
		now += time.Duration(r.IntN(4))
		if n < steps {
			disturb(load)
		}
		got := e.Complete(now)
		for _, o := range got.Outputs {
			if o.HasToken {
				sampled[o.ID] = append(sampled[o.ID], o.Token)
			}
			seen.reasons[o.Finish]++
		}
		ref := m.complete(now)
		ref.Began = got.Began
		if !sameReport(&ref, &got) {
			return fail("report", cmp.Diff(ref, got, cmpopts.EquateEmpty()))
		}
		if d := compareBlocks(m, e); d != "" {
			return fail("blocks after Complete", d)
		}
		if err := e.Check(); err != nil {
			return fail("check", err.Error())
		}
		seen.steps++
		seen.preempted += len(b.Preempted)
		if len(b.Preempted) > 1 {
			seen.several++
		}
		seen.admitted += len(b.Admitted)
		seen.hits += got.PrefixHits
		seen.deferred += got.WaitingDeferred
	}
	if !e.Idle() {
		return fail("drain", fmt.Sprintf("%+v", e.State()))
	}
	return true
}

func sameBatch(a, b *Batch) bool {
	return a.Step == b.Step && a.Tokens == b.Tokens && slices.Equal(a.Work, b.Work) &&
		slices.Equal(a.Preempted, b.Preempted) && slices.Equal(a.Admitted, b.Admitted)
}

func sameReport(a, b *Report) bool {
	x, y := *a, *b
	if !slices.EqualFunc(x.Outputs, y.Outputs, func(o, p Output) bool {
		same := *o.History == *p.History
		o.History, p.History = nil, nil
		return same && o == p
	}) || math.Abs(x.KVUsage-y.KVUsage) > 1e-12 {
		return false
	}
	x.Outputs, y.Outputs, x.KVUsage, y.KVUsage = nil, nil, 0, 0
	return reflect.DeepEqual(x, y)
}

// compareBlocks says how blocks differ: which each request holds, which are free
// and in what order they would be used, and which are findable.
func compareBlocks(m *reference, e *Engine) string {
	if len(m.running) != len(e.running) {
		return fmt.Sprintf("-%d +%d running", len(m.running), len(e.running))
	}
	for i, r := range m.running {
		s := e.running[i]
		if r.ID != s.req.ID || !slices.EqualFunc(r.blocks, s.blocks, func(a int, b int32) bool { return a == int(b) }) {
			return fmt.Sprintf("-request %d holds %v\n+request %d holds %v", r.ID, r.blocks, s.req.ID, s.blocks)
		}
	}
	var free []int
	for b := e.pool.next[0]; b != 0; b = e.pool.next[b] {
		free = append(free, int(b))
	}
	if !slices.Equal(m.freeList, free) {
		return cmp.Diff(m.freeList, free)
	}
	var want, got []int
	for _, k := range m.findable {
		want = append(want, k.block)
	}
	for b, h := range e.pool.hash {
		if h != 0 {
			got = append(got, b)
		}
	}
	slices.Sort(want)
	if !slices.Equal(want, got) {
		return "findable\n" + cmp.Diff(want, got)
	}
	return ""
}
