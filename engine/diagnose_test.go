package engine

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// busy returns n evaluable, active windows.
func busy(n int) []Window {
	out := make([]Window, n)
	for i := range out {
		out[i] = Window{
			Index: i, Duration: 2 * time.Second, Polls: 9, Evaluable: true, Active: true,
			Running: stat.Some(4), RunningPeak: stat.Some(4), Waiting: stat.Some(1), WaitingPeak: stat.Some(1),
		}
	}
	return out
}

// firing returns a rule that fires in the first n windows.
func firing(id FindingID, group Group, n int, impact, confidence float64, fix *Fix) Rule {
	return Rule{
		ID: id, Code: "beyond", Title: string(id), Group: group, Impact: impact,
		Check: func(w *Window, _ *Facts) Check {
			if w.Index < n {
				return Check{State: Fired}
			}
			return Check{State: NotFired, Why: "quiet", Figure: stat.Some(1), Limit: stat.Some(2)}
		},
		Conclude: func(_ *Run, _ Tally, f *Finding) {
			f.Confidence = confidence
			if fix != nil {
				copied := *fix
				f.Fix = &copied
			}
		},
	}
}

// If two findings weigh the same, or nearly, a flag of this server comes before what its clients would have to do
// for an unknown gain.
func TestAFlagComesBeforeAdviceToClients(t *testing.T) {
	gain := []Prediction{{Metric: "generation_tokens_per_s", Mid: stat.Some(0.2)}}
	for _, c := range []struct {
		confidence float64 // of the flag
		predicted  []Prediction
		want       FindingID
	}{{0.6, nil, TokenBudget}, {0.55, nil, TokenBudget}, {0.4, nil, LowPrefixReuse}, {0.55, gain, LowPrefixReuse}} {
		d := Diagnose(Request{Windows: busy(10), Rules: []Rule{
			firing(LowPrefixReuse, GroupReuse, 10, 2, 0.9, &Fix{Kind: KindClient, Command: "other prompts", Predicted: c.predicted}),
			firing(TokenBudget, GroupSlots, 10, 3, c.confidence, &Fix{Kind: KindFlag, Flag: "--a", Command: "a", Risk: 1}),
		}})
		if r := d.Recommendation; r == nil || r.Finding != c.want {
			t.Errorf("a flag with confidence %v, advice with %v: recommended %+v, want %s", c.confidence, c.predicted, r, c.want)
		}
	}
}

func TestGate(t *testing.T) {
	for _, c := range []struct {
		fired, evaluable int
		want             bool
	}{
		{2, 2, false}, {3, 12, true}, {3, 13, false}, {1, 1, false}, {4, 15, true}, {3, 3, true}, {0, 10, false},
	} {
		if got := (Tally{Fired: c.fired, Evaluable: c.evaluable}).Significant(); got != c.want {
			t.Errorf("fired %d of %d: significant = %v, want %v", c.fired, c.evaluable, got, c.want)
		}
	}
}

// Windows that a rule could not judge stay in the gate's denominator and lower its confidence.
func TestUnjudgedWindowsCount(t *testing.T) {
	for _, c := range []struct {
		fired, judged int
		state         State
		significant   bool
		confidence    float64
		reason        string
	}{
		{3, 3, Fired, false, 0.18, "fired in 3 of 15 windows, 3 judged: too few to act on"},
		{5, 5, Fired, true, 0.3, ""},
		{4, 15, Fired, true, 0.9, ""},
		{0, 2, NotFired, false, 0, "quiet 1"},
	} {
		rule := firing(KVPressure, GroupMemory, c.fired, 3, 0.9, &Fix{Kind: KindFlag, Flag: "--a", Command: "a"})
		check := rule.Check
		rule.Check = func(w *Window, f *Facts) Check {
			if w.Index >= c.judged {
				return Check{State: NotEvaluable, Why: "a reading"}
			}
			return check(w, f)
		}
		d := Diagnose(Request{Windows: busy(15), Rules: []Rule{rule}})
		f := d.Finding(KVPressure)
		if f.State != c.state || f.Significant != c.significant || f.Judged != c.judged || f.Evaluable != 15 || f.Reason != c.reason {
			t.Errorf("fired %d, judged %d: %s, significant %v, %d judged of %d, %q", c.fired, c.judged, f.State, f.Significant, f.Judged, f.Evaluable, f.Reason)
		}
		if f.Confidence != c.confidence {
			t.Errorf("fired %d, judged %d: confidence %v, want %v", c.fired, c.judged, f.Confidence, c.confidence)
		}
		if got := d.Recommendation != nil; got != c.significant {
			t.Errorf("fired %d, judged %d: recommended = %v, want %v", c.fired, c.judged, got, c.significant)
		}
		if want := "not judged: kv-pressure in 13 of 15 windows (needs a reading)"; c.state == NotFired && (d.Outcome != OutcomeHealthy || d.Doubt != want) {
			t.Errorf("outcome %s, doubt %q, want healthy with %q", d.Outcome, d.Doubt, want)
		}
	}
}

func TestOneRecommendationByScore(t *testing.T) {
	flag := &Fix{Kind: KindFlag, Flag: "--a", Command: "a"}
	client := &Fix{Kind: KindClient, Command: "b"}
	rules := []Rule{
		firing(UnderBatching, GroupLoad, 10, 3, 0.8, client),
		firing(ConcurrencySaturation, GroupSlots, 10, 4, 0.9, flag),
		firing(KVPressure, GroupMemory, 2, 5, 0.95, flag), // not significant
	}
	d := Diagnose(Request{Windows: busy(10), Rules: rules})
	if d.Outcome != OutcomeRecommendation || d.Recommendation == nil || d.Recommendation.Finding != ConcurrencySaturation {
		t.Fatalf("outcome %s, recommendation %+v", d.Outcome, d.Recommendation)
	}
	if len(d.Runners) != 1 || d.Runners[0] != UnderBatching {
		t.Errorf("runners %v, want the best of the other group", d.Runners)
	}
	if got := d.Findings[2]; got.ID != KVPressure || got.Significant || got.Fired != 2 {
		t.Errorf("a rule that fired twice is noise, got %+v", got)
	}
}

func TestWithheldRemedyIsListedAndNotRecommended(t *testing.T) {
	rules := []Rule{firing(UnderBatching, GroupLoad, 10, 3, 0.8, &Fix{Kind: KindClient, Command: "more clients", Withheld: "the GPU is full"})}
	d := Diagnose(Request{Windows: busy(10), Rules: rules})
	if d.Recommendation != nil || d.Outcome != OutcomeHealthy {
		t.Fatalf("outcome %s, recommendation %+v", d.Outcome, d.Recommendation)
	}
	if d.Findings[0].State != Fired || !d.Findings[0].Significant {
		t.Errorf("the finding is not listed: %+v", d.Findings[0])
	}
}

func TestSuppressionAndOverride(t *testing.T) {
	main := firing(KVPressure, GroupMemory, 10, 5, 0.95, &Fix{Kind: KindFlag, Flag: "--x"})
	main.Suppresses = []FindingID{KVAdmission}
	stuck := firing(Stuck, GroupHost, 10, 5, 1, &Fix{Kind: KindHost, Command: "look at the engine"})
	stuck.Overrides = []FindingID{KVPressure}
	d := Diagnose(Request{Windows: busy(10), Rules: []Rule{
		main, firing(KVAdmission, GroupMemory, 10, 4, 0.85, &Fix{Kind: KindFlag, Flag: "--y"}), stuck,
	}})
	if d.Recommendation == nil || d.Recommendation.Finding != Stuck {
		t.Fatalf("recommendation %+v, want stuck", d.Recommendation)
	}
	for _, f := range d.Findings {
		if f.ID == KVAdmission && (f.State != Suppressed || f.SuppressedBy != string(KVPressure)) {
			t.Errorf("kv-admission is %s by %q, want suppressed by kv-pressure", f.State, f.SuppressedBy)
		}
	}
}

func TestEveryQuantityIsListedInOrderWithAReason(t *testing.T) {
	for name, windows := range map[string][]Window{"nothing": nil, "busy": busy(5)} {
		d := Diagnose(Request{Windows: windows})
		if len(d.Measured) != len(MeasuredNames) {
			t.Fatalf("%s: %d quantities, want %d", name, len(d.Measured), len(MeasuredNames))
		}
		for i, q := range d.Measured {
			if q.Name != MeasuredNames[i] {
				t.Errorf("%s: quantity %d is %s, want %s", name, i, q.Name, MeasuredNames[i])
			}
			if !q.Value.OK && q.Reason == "" {
				t.Errorf("%s: %s is absent without a reason", name, q.Name)
			}
		}
	}
}

func TestAggregationWeightsByTimeAndPoolsByObservation(t *testing.T) {
	windows := busy(3)
	windows[0].Running, windows[0].Duration = stat.Some(10), 2*time.Second
	windows[1].Running, windows[1].Duration = stat.Some(40), 6*time.Second
	windows[2].Active, windows[2].Running = false, stat.Some(1000) // idle tail: not in active means
	set := func(w *Window, sum, count float64) {
		w.Hist[HistTTFT] = stat.Delta{Bounds: []float64{1, 10}, Counts: []float64{count, 0}, Sum: sum, Count: count, OK: true}
	}
	set(&windows[0], 10, 1)  // one slow request
	set(&windows[1], 99, 99) // many fast ones
	windows[0].KVPeak, windows[1].KVPeak, windows[2].KVLast = stat.Some(0.5), stat.Some(0.6), stat.Some(0.9)
	a := Combine(windows, &Facts{})
	if want := (10*2 + 40*6) / 8.0; !near(a.Running.V, want) {
		t.Errorf("running %v, want the time-weighted %v", a.Running, want)
	}
	if want := 109.0 / 100; !near(a.Mean(HistTTFT).V, want) {
		t.Errorf("TTFT %v, want the pooled %v", a.Mean(HistTTFT), want)
	}
	if a.KVPeak.V != 0.9 {
		t.Errorf("KV peak %v is below the landing value 0.9", a.KVPeak)
	}
}

func TestAnInterTokenLatencyThatStandsInForTPOTSaysSo(t *testing.T) {
	for name, want := range map[string]bool{"vllm:time_per_output_token_seconds": true, "vllm:request_time_per_output_token_seconds": false, "": false} {
		windows := busy(3)
		for i := range windows {
			windows[i].HistNames[HistTPOT] = name
			windows[i].Hist[HistTPOT] = stat.Delta{Bounds: []float64{1, 10}, Counts: []float64{4, 0}, Sum: 1, Count: 4, OK: true}
		}
		d := Diagnose(Request{Windows: windows})
		if got := strings.Contains(d.Quantity("tpot_mean_s").Note, "inter-token latency"); got != want {
			t.Errorf("%q: labelled = %v, want %v", name, got, want)
		}
	}
}

// Prefill takes no larger share of the engine's time than prompts have of the computed tokens, however long requests
// were in it at once: where a step has both, and no prompt is far longer than the mean. The tokens that a cache served are
// not computed.
func TestPrefillMost(t *testing.T) {
	mixed := Facts{ChunkedPrefill: Know(true, FromDefault, "")}
	apart := mixed
	apart.Engine = Know("sglang", FromMetrics, "")
	for _, c := range []struct {
		name                   string
		facts                  *Facts
		seconds                float64 // of prefill, of all requests, in 2 s
		prompt, cached, output float64 // tokens
		longest                float64
		want                   float64
	}{
		{"seconds that do not overlap", &mixed, 0.2, 900, 0, 100, 60, 0.1},
		{"short prompts, computed at once", &mixed, 1.5, 60, 0, 240, 60, 0.2},
		{"and a part of them from the cache", &mixed, 1.5, 300, 240, 240, 60, 0.2},
		{"one of them is long", &mixed, 1.5, 60, 0, 240, 500, 0.75},
		{"steps of their own", &apart, 1.5, 60, 0, 240, 60, 0.75},
		{"prefill alone", &mixed, 9, 1000, 0, 0, 60, 1},
	} {
		w := busy(1)
		w[0].Rate[CounterPromptTokens], w[0].Rate[CounterPromptTokensCached] = stat.Some(c.prompt), stat.Some(c.cached)
		w[0].Rate[CounterGenerationTokens] = stat.Some(c.output)
		w[0].Hist[HistPrefill] = stat.Delta{Bounds: []float64{1}, Counts: []float64{4}, Sum: c.seconds, Count: 4, OK: true}
		w[0].Hist[HistPromptTokens] = stat.Delta{Bounds: []float64{c.longest - 1, c.longest}, Counts: []float64{3, 1}, Sum: 240, Count: 4, OK: true}
		if a := Combine(w, c.facts); !near(a.PrefillMost.V, c.want) {
			t.Errorf("%s: at most %v, want %v", c.name, a.PrefillMost, c.want)
		}
	}
}

// Requests that other figures leave out are noted: invalid ones, those that clients abandoned, and that none
// generates a token.
func TestRequestNotes(t *testing.T) {
	const tokens = 100
	for _, c := range []struct {
		name                                string
		answered, finished, invalid, output float64
		want                                string
	}{
		{"all finish", 20, 20, 1, tokens, ""},
		{"several samples each", 20, 80, 0, tokens, ""},
		{"streams that are counted as they begin", 20, 18, 0, tokens, ""},
		{"clients leave", 20, 5, 0, tokens, "clients abandoned 7.5 of 10 requests a second"},
		{"half are invalid", 20, 20, 20, tokens, "refused 10 of 20 requests a second as invalid"},
		{"many are refused", 20, 20, 0, tokens, "refused 100 requests a second by its admission limits"},
		{"embeddings", 20, 20, 0, 0, "no request generates a token"},
	} {
		w := busy(3)
		for i := range w {
			d := &w[i].Delta
			d[CounterHTTP2xx], d[CounterRequestSuccess], d[CounterHTTP4xx] = stat.Some(c.answered), stat.Some(c.finished), stat.Some(c.invalid)
			r := &w[i].Rate
			if c.name == "many are refused" {
				r[CounterAdmissionRejections] = stat.Some(100)
			}
			r[CounterPromptTokens], r[CounterGenerationTokens], r[CounterRequestSuccess] = stat.Some(tokens), stat.Some(c.output), stat.Some(c.finished/2)
		}
		d := Diagnose(Request{Windows: w})
		if got := strings.Join(d.Notes, "; "); (c.want == "") != (got == "") || !strings.Contains(got, c.want) {
			t.Errorf("%s: notes %q, want %q", c.name, got, c.want)
		}
	}
}

// A mean end-to-end time below the mean time to first token covers other requests, and says so.
func TestAMeanOfThoseThatEnded(t *testing.T) {
	for _, c := range []struct {
		e2e, ttft float64
		want      string
	}{
		{25.0, 25.1, "of those that ended"}, {30, 25, ""},
	} {
		w := busy(3)
		for i := range w {
			w[i].Hist[HistE2E] = stat.Delta{Bounds: []float64{60}, Counts: []float64{1}, Sum: c.e2e, Count: 1, OK: true}
			w[i].Hist[HistTTFT] = stat.Delta{Bounds: []float64{60}, Counts: []float64{1}, Sum: c.ttft, Count: 1, OK: true}
		}
		d := Diagnose(Request{Windows: w})
		if got := d.Quantity("e2e_mean_s").Scope(); got != c.want {
			t.Errorf("%v s end to end beside %v s to the first token: %q, want %q", c.e2e, c.ttft, got, c.want)
		}
	}
}

// A wait that the gauge does not show was before the run, unless it is no longer than a step.
func TestAMeanWaitBeforeTheRun(t *testing.T) {
	for _, c := range []struct {
		wait, waiting, step float64
		want                string
	}{
		{3, 0, 0.1, "mostly before the run"}, {3, 3, 0.1, ""}, {3, 0, 2, ""}, {0.2, 0, 0.01, ""},
	} {
		w := busy(3)
		for i := range w {
			w[i].Waiting, w[i].Rate[CounterRequestSuccess] = stat.Some(c.waiting), stat.Some(1)
			w[i].Hist[HistITL] = stat.Delta{Bounds: []float64{60}, Counts: []float64{1}, Sum: c.step, Count: 1, OK: true}
			w[i].Hist[HistQueue] = stat.Delta{Bounds: []float64{60}, Counts: []float64{1}, Sum: c.wait, Count: 1, OK: true}
		}
		d := Diagnose(Request{Windows: w})
		if got := d.Quantity("queue_mean_s").Scope(); got != c.want {
			t.Errorf("%v s beside %v waiting and steps of %v s: %q, want %q", c.wait, c.waiting, c.step, got, c.want)
		}
	}
}

func TestHitRate(t *testing.T) {
	for _, c := range []struct {
		name                          string
		prompt, cached, queries, hits stat.Opt
		want                          stat.Opt
	}{
		{"cached tokens where the page has them", stat.Some(100), stat.Some(40), stat.Some(100), stat.Some(10), stat.Some(0.4)},
		{"hits per query on older pages", stat.Some(100), stat.None, stat.Some(100), stat.Some(10), stat.Some(0.1)},
		{"blocked admissions inflate lookups", stat.Some(100), stat.None, stat.Some(443), stat.Some(10), stat.None},
		{"caching off is absent, not zero", stat.Some(100), stat.Some(0), stat.Some(0), stat.Some(0), stat.None},
		{"no counters", stat.Some(100), stat.None, stat.None, stat.None, stat.None},
		{"no query in the run", stat.Some(0), stat.None, stat.Some(0), stat.Some(0), stat.None},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := busy(1)
			w[0].Delta[CounterPromptTokens], w[0].Delta[CounterPromptTokensCached] = c.prompt, c.cached
			w[0].Delta[CounterPrefixQueries], w[0].Delta[CounterPrefixHits] = c.queries, c.hits
			a := Combine(w, &Facts{})
			if a.HitRate != c.want {
				t.Errorf("hit rate %v, want %v", a.HitRate, c.want)
			}
			if !a.HitRate.OK && a.HitRateReason == "" {
				t.Error("absent without a reason")
			}
		})
	}
}

func TestMoreRunningThanSlotsIsAContradiction(t *testing.T) {
	w := busy(5)
	for i := range w {
		w[i].RunningPeak = stat.Some(30)
	}
	d := Diagnose(Request{Windows: w, Facts: Facts{MaxNumSeqs: Know(16, FromFlag, "")}})
	if len(d.Facts.Conflicts) != 1 {
		t.Errorf("conflicts %q, want the slots", d.Facts.Conflicts)
	}
}

// A rule that did not fire says the figure that came nearest in the run, not that of its last window, and of how many
// windows; a window without load decides nothing.
func TestReasonIsThatOfTheRun(t *testing.T) {
	below := func(v float64) Check {
		return Check{State: NotFired, Why: "KV peak", Figure: stat.Some(v), Op: "<", Limit: stat.Some(0.88), Unit: "ratio"}
	}
	idle := Check{State: NotFired, NoLoad: true, Why: "no request ran"}
	busy := Check{State: NotFired, Why: "requests wait", Figure: stat.Some(5), Op: ">=", Limit: stat.Some(2), Unit: "req"}
	full := func(v float64) Check {
		return Check{State: Suppressed, Why: "prefill saturated at", Figure: stat.Some(v), Op: ">=", Limit: stat.Some(0.4), Unit: "ratio"}
	}
	for _, c := range []struct {
		checks []Check
		want   string
	}{
		{[]Check{below(0.5), below(0.81), below(0.02)}, "KV peak 81 % < 88 % in the highest of 3 windows"},
		{[]Check{below(0.81), below(0.81)}, "KV peak 81 % < 88 %"},
		{[]Check{below(0.3), idle, idle}, "KV peak 30 % < 88 %"},
		{[]Check{busy, busy, below(0.3)}, "requests wait 5 ≥ 2"},
		{[]Check{full(0.55), full(0.75), full(0.6)}, "prefill saturated at 55 % in the lowest of 3 windows"},
	} {
		rule := Rule{ID: KVPressure, Check: func(w *Window, _ *Facts) Check { return c.checks[w.Index] }}
		var windows []Window
		for i := range c.checks {
			windows = append(windows, Window{Index: i, Evaluable: true})
		}
		if d := Diagnose(Request{Windows: windows, Rules: []Rule{rule}}); strings.ReplaceAll(d.Findings[0].Reason, "\u00a0", " ") != c.want {
			t.Errorf("%q, want %q", d.Findings[0].Reason, c.want)
		}
	}
}
