package capture

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// looked returns an observation with one sample per second: the counter and the running requests at
// each.
func looked(counting Counting, tokens, running []float64) *Capture {
	c := &Capture{Kind: Observation, Counting: counting, End: time.Duration(len(tokens)-1) * time.Second}
	for i, v := range tokens {
		p := PageSample{At: time.Duration(i) * time.Second, GenerationTokens: stat.Some(1000 + v)}
		if running != nil {
			p.Running = stat.Some(running[i])
		}
		c.Pages = append(c.Pages, p)
	}
	return c
}

func TestCounted(t *testing.T) {
	type list = []float64
	ends := ": this engine counts when a request ends; observe for longer than a request"
	for _, tc := range []struct {
		name            string
		counting        Counting
		tokens, running list
		want            Counted
	}{
		{"each step", EachStep, list{0, 70, 140, 210, 280}, list{1, 1, 1, 1, 1}, Counted{Tokens: stat.Some(280)}},
		{"each step, after a long prompt", EachStep, list{0, 0, 0, 0, 20}, list{1, 1, 1, 1, 1}, Counted{Tokens: stat.Some(20)}},
		{"each step, in a prompt", EachStep, list{0, 0, 0}, list{1, 1, 1}, Counted{Tokens: stat.Some(0)}},
		{"it is not known how, and it moves at each look", "", list{0, 70, 140, 210, 280}, list{1, 2, 2, 1, 1}, Counted{Tokens: stat.Some(280)}},
		{"it moves at each look, and does so when requests end", AtEnd, list{0, 100, 200, 300, 400}, list{8, 8, 8, 8, 8},
			Counted{Reason: "the counter moved 4 times, by 400 tokens in total, with 8 requests in flight at the start: all of it may predate the run" + ends}},
		{"whole requests", AtEnd, list{0, 0, 600, 600, 700, 700}, list{0, 1, 0, 1, 0, 0}, Counted{Tokens: stat.Some(700)}},
		{"nothing ran", AtEnd, list{0, 0, 0, 0}, list{0, 0, 0, 0}, Counted{Tokens: stat.Some(0)}},
		{"nothing ran, of whatever counter", "", list{0, 0, 0, 0}, list{0, 0, 0, 0}, Counted{Tokens: stat.Some(0)}},
		{"in the middle of a request", AtEnd, list{0, 0, 0, 0}, list{1, 1, 1, 1}, Counted{Reason: "the counter did not change while 1 request ran" + ends}},
		{"in the middle of requests, of whatever counter", "", list{0, 0, 0, 0}, list{1, 3, 2, 1},
			Counted{Reason: "the counter did not change while up to 3 requests ran: this engine may count when a request ends; observe for longer than a request"}},
		{"a request begins", AtEnd, list{0, 0, 0}, list{0, 0, 1}, Counted{Reason: "the counter did not change while 1 request ran" + ends}},
		{"a request ends", AtEnd, list{0, 0, 600, 600}, list{1, 1, 0, 0},
			Counted{Reason: "the counter moved once, by 600 tokens in total, with 1 request in flight at the start: all of it may predate the run" + ends}},
		{"a request that began before, and a whole one", AtEnd, list{0, 600, 600, 900, 900}, list{1, 0, 1, 0, 0},
			Counted{Tokens: stat.Some(900), Estimate: true, Note: "75.0 to 225 tok/s: the counter changes when a request ends; 1 in flight at the start, 0 at the end"}},
		{"one after another", AtEnd, list{0, 100, 200, 300, 400, 400, 500}, list{1, 1, 1, 1, 1, 1, 1},
			Counted{Tokens: stat.Some(500), Estimate: true, Note: "66.7 to 100 tok/s: the counter changes when a request ends; 1 in flight at the start, 1 at the end"}},
		{"no gauge, and it did not move", AtEnd, list{0, 0, 0}, nil, Counted{Reason: "the counter did not change while requests may have run" + ends}},
		{"no gauge, and it moved little", AtEnd, list{0, 0, 50}, nil, Counted{Reason: "the counter moved once, and the server does not report whether requests were running at the start" + ends}},
		{"no gauge, and it moved often", AtEnd, list{0, 50, 150, 150, 200}, nil,
			Counted{Tokens: stat.Some(200), Estimate: true, Note: "the counter changes when a request ends, and the server does not report how many were running at the start and at the end"}},
		{"it fell", EachStep, list{500, 0, 900}, list{1, 1, 1}, Counted{Reason: "the server's counter fell during the run: was the server restarted?"}},
		{"one look", EachStep, list{500}, nil, Counted{Reason: "the server's counter was read only once"}},
		{"no look", EachStep, nil, nil, Counted{Reason: "the server's metrics were not read"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, looked(tc.counting, tc.tokens, tc.running).Counted()); diff != "" {
				t.Error(diff)
			}
		})
	}
	t.Run("pages that failed, and without a counter", func(t *testing.T) {
		c := looked(EachStep, list{0, 10, 20}, nil)
		c.Pages[1] = PageSample{At: time.Second, Error: "timeout"}
		if got := c.Counted(); got.Tokens != stat.Some(20) {
			t.Errorf("got %+v", got)
		}
		c.Pages[2] = PageSample{At: 2 * time.Second}
		c.Pages = c.Pages[1:]
		if got := c.Counted(); got.Reason != "timeout" {
			t.Errorf("got %+v", got)
		}
		c.Pages = c.Pages[1:]
		if got := c.Counted(); got.Reason != "the server does not count its tokens" {
			t.Errorf("got %+v", got)
		}
	})
}

// TestObservedFigures checks that figures derived from the counter are as uncertain as the counter.
func TestObservedFigures(t *testing.T) {
	type list = []float64
	facts := factsOf(t, "H100 SXM", "Qwen2.5-7B-Instruct", 3.29)
	of := func(c *Capture) *derivation {
		return c.derive(c.observedTokens(), powered(300, 700), Energy{Joules: stat.Some(400), How: fromCounter}, Machine{Facts: facts})
	}
	rates := []string{OutputRate, JoulesPerToken, MillijoulesPer, TokensPerJoule, DollarsPerMillion, DecodeRate}
	running := of(looked(AtEnd, list{0, 0, 0, 0, 0}, list{1, 1, 1, 1, 1}))
	for _, name := range rates {
		if q := running.quantity(name); q.Value.OK || !strings.Contains(q.Reason, "did not change while 1 request ran") {
			t.Errorf("in the middle of a request: %s = %v (%s)", name, q.Value, q.Reason)
		}
	}
	if s := running.sizing(catalog.Default().GPUs()); s.Verdict != PartlyUsed || len(s.Smaller) > 0 {
		t.Errorf("power says how much of a GPU a server uses that serves: %+v", s)
	}
	guessed := of(looked(AtEnd, list{0, 100, 200, 300, 400}, list{1, 1, 1, 1, 1}))
	for _, name := range rates {
		if q := guessed.quantity(name); !q.Value.OK || q.Source != engine.Estimate || !strings.Contains(q.Note, "75.0 to 125 tok/s") {
			t.Errorf("one request after another: %s = %v, %s, %q", name, q.Value, q.Source, q.Note)
		}
	}
	for name, c := range map[string]*Capture{
		"each step":      looked(EachStep, list{0, 100, 200, 300, 400}, list{1, 1, 1, 1, 1}),
		"whole requests": looked(AtEnd, list{0, 0, 200, 200, 400}, list{0, 1, 1, 1, 0}),
	} {
		d := of(c)
		if q := d.quantity(OutputRate); q.Value != stat.Some(100) || q.Source != engine.Measured {
			t.Errorf("%s: %v tokens/s, %s", name, q.Value, q.Source)
		}
		if q := d.quantity(JoulesPerToken); q.Value != stat.Some(1) || q.Source != engine.Derived {
			t.Errorf("%s: %v J a token, %s", name, q.Value, q.Source)
		}
	}
	rest := of(looked(AtEnd, list{0, 0, 0}, list{0, 0, 0}))
	if q := rest.quantity(OutputRate); q.Value != stat.Some(0) || q.Source != engine.Measured {
		t.Errorf("at rest: %v tokens/s, %s", q.Value, q.Source)
	}
	if s := rest.sizing(nil); s.Verdict != UnknownSize || !strings.Contains(s.Reason, "idle server") {
		t.Errorf("at rest: %+v", s)
	}
	prompt := of(looked(EachStep, list{0, 0, 0, 0}, list{1, 1, 1, 1}))
	if q := prompt.quantity(DecodeRate); q.Value.OK || !strings.Contains(q.Reason, "still in prefill") {
		t.Errorf("in a prompt: %v (%s)", q.Value, q.Reason)
	}
	begun := of(looked(AtEnd, list{0, 0, 0}, list{0, 0, 1}))
	if s := begun.sizing(nil); s.Verdict != UnknownSize || !strings.Contains(s.Reason, "unknown whether it served requests: the counter did not change") {
		t.Errorf("a request that has begun: %+v", s)
	}
}

// TestOthersWhoAreNotCounted checks that unfinished requests of other clients do not count as
// tokens.
func TestOthersWhoAreNotCounted(t *testing.T) {
	c := streams(1, 501, 0, 10*time.Millisecond)
	c.Counting = AtEnd
	for i := range 8 {
		at := c.Begin - time.Millisecond + time.Duration(i)*time.Second
		p := PageSample{At: at, Running: stat.Some(4), GenerationTokens: stat.Some(5000)}
		if at > c.End {
			p.Running, p.GenerationTokens = stat.Some(3), stat.Some(5501)
		}
		c.Pages = append(c.Pages, p)
	}
	m := Machine{Facts: factsOf(t, "H100 SXM", "Qwen2.5-7B-Instruct", 3.29)}
	d := c.derive(c.tokens(), powered(300, 700), Energy{Joules: stat.Some(500), How: fromCounter}, m)
	for _, name := range []string{JoulesPerToken, DollarsPerMillion} {
		if q := d.quantity(name); q.Value.OK || !strings.Contains(q.Reason, "their tokens are unknown") {
			t.Errorf("%s = %v (%s)", name, q.Value, q.Reason)
		}
	}
}

// TestSequenceSteps checks that steps replace only a counter that does not show the output.
func TestSequenceSteps(t *testing.T) {
	type list = []float64
	stepped := func(c *Capture, steps list) *Capture {
		for i := range c.Pages {
			c.Pages[i].SequenceSteps = stat.Some(steps[i])
		}
		return c
	}
	within := stepped(looked(AtEnd, list{0, 0, 0}, list{2, 2, 2}), list{700, 840, 980})
	if got := within.Counted(); got.Tokens != stat.Some(280) || !got.Estimate || got.Note != bySteps {
		t.Errorf("in the middle of requests: %+v", got)
	}
	if got, estimate := within.CounterRates(); len(got) != 2 || got[1].PerSecond != 140 || !estimate {
		t.Errorf("in the middle of requests: %+v, an estimate: %v", got, estimate)
	}
	if got := stepped(looked(AtEnd, list{0, 600, 600}, list{1, 0, 0}), list{500, 640, 640}).Counted(); got.Tokens != stat.Some(140) {
		t.Errorf("around an end: %+v", got)
	}
	if got := stepped(looked(AtEnd, list{0, 0, 600}, list{0, 1, 0}), list{500, 800, 1102}).Counted(); got.Tokens != stat.Some(600) || got.Estimate {
		t.Errorf("a whole request: %+v", got)
	}
	if got := stepped(looked(AtEnd, list{0, 0}, list{1, 1}), list{500, 500}).Counted(); got.Tokens.OK || got.Reason == "" {
		t.Errorf("a server that stands still: %+v", got)
	}
	c := beside(streams(1, 501, 0, 10*time.Millisecond), 2, 501)
	c.Counting = AtEnd
	c.Pages[0].Running, c.Pages[6].Running = stat.Some(1), stat.Some(1)
	c.Pages[0].SequenceSteps, c.Pages[6].SequenceSteps = stat.Some(9), stat.Some(1009)
	d := c.derive(c.tokens(), powered(300, 700), Energy{Joules: stat.Some(500), How: fromCounter}, Machine{Facts: factsOf(t, "H100 SXM", "Qwen2.5-7B-Instruct", 3.29)})
	if q := d.quantity(JoulesPerToken); q.Value.V < .499 || q.Value.V > .501 || q.Source != engine.Estimate || !strings.Contains(q.Note, "tokens of all clients, one token per request") {
		t.Errorf("beside another client: %v J a token, %s, %q", q.Value, q.Source, q.Note)
	}
}

func TestCounterRates(t *testing.T) {
	type list = []float64
	const s = time.Second
	for _, tc := range []struct {
		name            string
		counting        Counting
		tokens, running list
		want            []Rate
	}{
		{"each step", EachStep, list{0, 70, 140, 140}, list{1, 1, 1, 1}, []Rate{{0, s, 70}, {s, 2 * s, 70}, {2 * s, 3 * s, 0}}},
		{"in the middle of a request", AtEnd, list{0, 0, 0}, list{1, 1, 1}, nil},
		{"at rest", AtEnd, list{0, 0}, list{0, 0}, []Rate{{0, s, 0}}},
		{"a request that began before", AtEnd, list{0, 0, 600, 600}, list{1, 1, 0, 0}, []Rate{{2 * s, 3 * s, 0}}},
		{"a whole one", AtEnd, list{0, 0, 0, 200, 200}, list{0, 0, 1, 0, 0}, []Rate{{0, s, 0}, {s, 3 * s, 100}, {3 * s, 4 * s, 0}}},
		{"within a second", AtEnd, list{0, 20, 20}, list{0, 0, 0}, []Rate{{0, s, 20}, {s, 2 * s, 0}}},
		{"one after another", AtEnd, list{0, 0, 600, 600, 800}, list{1, 1, 1, 1, 1}, []Rate{{2 * s, 4 * s, 100}}},
		{"two of them", AtEnd, list{0, 0, 300, 600}, list{0, 2, 1, 0}, []Rate{{0, 2 * s, 150}}},
		{"a restart", EachStep, list{500, 0, 10}, list{1, 1, 1}, []Rate{{s, 2 * s, 10}}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, estimate := looked(tc.counting, tc.tokens, tc.running).CounterRates()
			if diff := cmp.Diff(tc.want, got); diff != "" || estimate {
				t.Error(diff, estimate)
			}
		})
	}
}

// TestIdleBesideCounts checks that a server which decoded for a second and counted it at the end is
// not called idle.
func TestIdleBesideCounts(t *testing.T) {
	c := looked(AtEnd, []float64{0, 0, 600}, []float64{1, 1, 0})
	if got := c.counting(); len(got) != 2 {
		t.Errorf("tokens came over %v; want both intervals in which a request ran", got)
	}
	c.Counting = EachStep
	if got := c.counting(); len(got) != 1 {
		t.Errorf("tokens came over %v; want the interval in which they were counted", got)
	}
}
