package engine

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// queueing returns n windows in which a third of the requests wait.
func queueing(n int) []Window {
	w := busy(n)
	for i := range w {
		w[i].Running, w[i].Waiting = stat.Some(60), stat.Some(30)
		w[i].Delta[CounterGenerationTokens] = stat.Some(100)
	}
	return w
}

func TestHealthyHasToBeEarned(t *testing.T) {
	silent := busy(3)
	for i := 0; i < 10; i++ {
		silent = append(silent, Window{Failed: 8, LastErr: "connection refused"})
	}
	patchy := busy(6)
	for i := range patchy {
		patchy[i].Failed, patchy[i].Start = 5, 2*time.Second*time.Duration(i)
	}
	asleep := busy(5)
	for i := range asleep {
		asleep[i].Asleep, asleep[i].Active = true, false
	}
	refused := busy(5)
	for i := range refused {
		w := &refused[i]
		w.Active, w.Running, w.RunningPeak, w.Waiting, w.WaitingPeak = false, stat.Some(0), stat.Some(0), stat.Some(0), stat.Some(0)
		w.Delta[CounterHTTP2xx], w.Delta[CounterHTTP4xx] = stat.Some(0), stat.Some(40)
	}
	short := append(busy(1), busy(9)...)
	for i := range short[1:] {
		short[1+i].Active, short[1+i].Running, short[1+i].RunningPeak = false, stat.Some(0), stat.Some(0)
	}
	deferred := queueing(5)
	for i := range deferred {
		deferred[i].Deferred = stat.Some(30)
	}
	stalled := busy(4)
	for i := range stalled {
		w := &stalled[i]
		w.Active, w.Running, w.Stall = false, stat.Some(16), time.Duration(i+1)*WindowLength
	}
	idle := busy(5)
	for i := range idle {
		w := &idle[i]
		w.Active, w.Running, w.RunningPeak, w.Waiting, w.WaitingPeak = false, stat.Some(0), stat.Some(0), stat.Some(0), stat.Some(0)
	}
	flag := []Rule{firing(ConcurrencySaturation, GroupSlots, 10, 4, 0.9, &Fix{Kind: KindFlag})}
	for _, c := range []struct {
		name    string
		windows []Window
		rules   []Rule
		outcome Outcome
		doubt   string
	}{
		{"idle never gets a recommendation", idle, flag, OutcomeNoLoad, ""},
		{"nothing evaluable", make([]Window, 5), flag, OutcomeNotEvaluable, ""},
		{"two quiet windows are not enough to call it healthy", busy(2), nil, OutcomeNotEvaluable, "only 2 of 2 windows could be judged"},
		{"no windows", nil, flag, OutcomeNotEvaluable, ""},
		{"a recommendation", busy(5), flag, OutcomeRecommendation, ""},
		{"a queue that nothing explains", queueing(5), nil, OutcomeNotEvaluable, "33 % of the requests wait although"},
		{"a deferred queue", deferred, nil, OutcomeNotEvaluable, "no capacity flag"},
		{"a server that stopped answering", silent, nil, OutcomeUnhealthy, "stopped answering"},
		{"a server that answers now and then", patchy, nil, OutcomeNotEvaluable, "scrapes failed"},
		{"a standstill shorter than a hang", stalled, nil, OutcomeNotEvaluable, "no tokens generated for 8 s at the end"},
		{"two seconds of load", short, nil, OutcomeNotEvaluable, "worked in only 1 of 10"},
		{"an engine that sleeps", asleep, nil, OutcomeNoLoad, "sleeps"},
		{"requests that are all refused", refused, nil, OutcomeNoLoad, "no request reaches the engine: 20 a second are refused"},
		{"enough quiet windows under load", busy(5), nil, OutcomeHealthy, ""},
		{"two main rules without their readings", busy(5), unread(UnderBatching, KVPressure), OutcomeHealthy, "not judged: under-batching (needs a reading), kv-pressure (needs a reading)"},
		{"no main rule with its readings", busy(5), unread(UnderBatching, KVPressure, ConcurrencySaturation), OutcomeNotEvaluable, "none of the main rules could be judged"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Diagnose(Request{Windows: c.windows, Rules: c.rules, Duration: 2 * time.Second * time.Duration(len(c.windows))})
			if (d.Recommendation != nil) != (c.outcome == OutcomeRecommendation) || d.Outcome != c.outcome || !strings.Contains(strings.ReplaceAll(d.Doubt+d.Condition.String(), figure.NBSP, " "), c.doubt) {
				t.Errorf("%s, doubt %q; want %s with %q", d.Outcome, d.Doubt, c.outcome, c.doubt)
			}
		})
	}
}

// unread returns rules whose readings are missing in every window, and one that is judged.
func unread(list ...FindingID) []Rule {
	rules := []Rule{firing(TokenBudget, GroupSlots, 0, 1, 0.9, nil)}
	for _, id := range list {
		rules = append(rules, Rule{ID: id, Title: string(id), Check: func(*Window, *Facts) Check {
			return Check{State: NotEvaluable, Why: "a reading"}
		}})
	}
	return rules
}

// A finding of too few windows is named as what may explain a queue.
func TestAQueueMayBeExplained(t *testing.T) {
	for _, c := range []struct {
		fires, of int
		want      string
	}{
		{1, 10, "33 % of the requests wait; token-budget may explain it, but fired in 1 of 10 windows: too few to judge by"},
		{10, 10, ""},
		{2, 60, "33 % of the requests wait although slots and KV pool have room: look at"},
	} {
		d := Diagnose(Request{Windows: queueing(c.of), Duration: 2 * time.Second * time.Duration(c.of), Rules: []Rule{firing(TokenBudget, GroupSlots, c.fires, 3, 0.8, nil)}})
		if !strings.HasPrefix(strings.ReplaceAll(d.Doubt, figure.NBSP, " "), c.want) || c.want == "" && d.Doubt != "" {
			t.Errorf("fired in %d of %d windows: doubt %q, want %q", c.fires, c.of, d.Doubt, c.want)
		}
	}
}

// Other limits that may keep requests waiting are named as far as the launch sets them.
func TestAQueueIsExplainedByTheLaunch(t *testing.T) {
	const rest = "priorities and the server's log on scheduling"
	for launch, want := range map[string]string{
		"":                               "--max-num-active-seqs, --max-num-scheduled-tokens, --max-loras, --long-prefill-token-threshold, " + rest,
		"vllm serve m --config a.yaml":   "--max-num-active-seqs, --max-num-scheduled-tokens, --max-loras, --long-prefill-token-threshold, " + rest,
		"vllm serve m --max-num-seqs 64": rest,
		"vllm serve m --max-num-active-seqs=4 --long_prefill_token_threshold 32": "--max-num-active-seqs 4, --long_prefill_token_threshold 32, " + rest,
	} {
		d := Diagnose(Request{Facts: Facts{Launch: launch}, Windows: queueing(10), Duration: 20 * time.Second})
		if got := strings.ReplaceAll(d.Doubt, figure.NBSP, " "); !strings.HasSuffix(got, "have room: look at "+want) {
			t.Errorf("%q: doubt %q, want %q", launch, got, want)
		}
	}
}

// Answers of one token have no time between tokens, although requests finish.
func TestAnswersOfOneToken(t *testing.T) {
	windows := queueing(10)
	for finished, want := range map[float64]string{0: "no request finished while it was measured", 6: "no request generated a second token"} {
		for i := range windows {
			windows[i].Rate[CounterRequestSuccess], windows[i].Hist[HistITL] = stat.Some(finished), stat.Delta{OK: true}
		}
		d := Diagnose(Request{Windows: windows, Duration: 20 * time.Second})
		if got := d.Quantity("itl_mean_s").Reason; got != want {
			t.Errorf("%v requests/s: %q, want %q", finished, got, want)
		}
	}
}

// TestASilentServerIsNotHealthy measures a server in which nothing moves for less than the time of a hang, without a
// readable GPU: its windows may lie in one long step, or in none.
func TestASilentServerIsNotHealthy(t *testing.T) {
	for moved, advised := range map[int]bool{0: false, 8: false, 40: true} { // readings of 250 ms in which tokens came
		windows := feed(ticks(moved+33, poll, func(i int, at time.Duration) *Page { return pageAt(at, 8, 0, 0.1, float64(100*min(i, moved))) })...)
		d := Diagnose(Request{
			Facts: Facts{EngineVersion: Know("0.32.0", FromMeasured, "")}, Windows: windows, Duration: time.Duration(len(windows)) * WindowLength,
			Rules: []Rule{firing(ConcurrencySaturation, GroupSlots, len(windows), 3, 0.8, &Fix{Kind: KindFlag, Flag: "--max-num-seqs", To: "16"})},
		})
		if told := strings.Contains(d.Doubt, "it may be hung"); told == advised || (d.Recommendation != nil) != advised || (d.Outcome == OutcomeNotEvaluable) == advised {
			t.Errorf("tokens in %d readings: %s, %+v, doubt %q; want advice %v", moved, d.Outcome, d.Recommendation, d.Doubt, advised)
		}
	}
}

func TestIdleGapsDoNotChangeTheContext(t *testing.T) {
	load := busy(4)
	for i := range load {
		load[i].Running, load[i].KV = stat.Some(10), stat.Some(0.5)
	}
	idle := busy(20)
	for i := range idle {
		idle[i].Active, idle[i].Running, idle[i].KV = false, stat.Some(0), stat.Some(0)
	}
	steady, gaps := Combine(load, &Facts{}), Combine(append(load, idle...), &Facts{})
	if !near(steady.KVPerRequest.V, 0.05) || !near(gaps.KVPerRequest.V, 0.05) {
		t.Errorf("share of the pool per request %v under load, %v with gaps; want 0.05 both", steady.KVPerRequest, gaps.KVPerRequest)
	}
}

// Steps of 5 s, each with 100 tokens at its end: some windows of 2 s see none.
func TestStepsLongerThanAWindow(t *testing.T) {
	steps := func(from, to int) []*Sample {
		return ticks(to, poll, func(i int, at time.Duration) *Page { return pageAt(at, 8, 0, 0.1, float64(100*(max(i, from)/20))) })
	}
	known := &Facts{EngineVersion: Know("0.32.0", FromMeasured, "")}
	// A release whose running gauge may be that of an aborted request.
	stale := &Facts{EngineVersion: Know("0.12.0", FromMeasured, "")}
	for _, c := range []struct {
		name         string
		facts        *Facts
		samples      []*Sample
		rate         float64
		active, want int // windows
	}{
		{"long steps", known, steps(0, 161), 20, 8, 20},
		{"long steps, or bursts", stale, steps(0, 161), 50, 8, 8},
		{"hung, then steps", known, steps(160, 241), 25, 4, 8}, // the rest of the first step cannot be distinguished from the standstill
		{"steps, then hung", known, append(steps(0, 81), ticks(401, poll, func(_ int, at time.Duration) *Page { return pageAt(at+20*time.Second+poll, 8, 0, 0.1, 400) })...), 20, 4, 10},
	} {
		windows := feed(c.samples...)
		active := 0
		for i := range windows {
			if windows[i].Active {
				active++
			}
		}
		a := Combine(windows, c.facts)
		if active != c.active || a.Windows.Active != c.want || math.Abs(a.Rate[CounterGenerationTokens].V-c.rate) > 0.1 {
			t.Errorf("%s: tokens moved in %d windows of %d, %d count as active, %.1f tok/s; want %d, %d and %v", c.name, active, len(windows), a.Windows.Active, a.Rate[CounterGenerationTokens].V, c.active, c.want, c.rate)
		}
	}
}

func TestALightLoadIsStillMeasured(t *testing.T) {
	w := busy(5)
	for i := range w {
		w[i].Active = false // KV 5 %, GPU 10 %: the documented gate says no
		w[i].Rate[CounterGenerationTokens], w[i].Delta[CounterGenerationTokens] = stat.Some(50), stat.Some(100)
	}
	d := Diagnose(Request{Windows: w})
	if got := d.Quantity("generation_tokens_per_s").Value; got.V != 50 || d.Windows.Active != 0 || d.Outcome != OutcomeHealthy {
		t.Errorf("%v tok/s, %d active, %s; want 50, 0 and healthy", got, d.Windows.Active, d.Outcome)
	}
	if !strings.Contains(strings.Join(d.Notes, " "), "light load") {
		t.Errorf("notes %q do not say so", d.Notes)
	}
}

func TestTheBusiestGPUDecidesWhetherTheServerWorks(t *testing.T) {
	samples := ticks(9, poll, func(i int, at time.Duration) *Page { return pageAt(at, 4, 0, 0.1, float64(i)) })
	for _, s := range samples {
		devices := make([]GPU, 8)
		for i := range devices {
			devices[i].Index, devices[i].Fields[GPUUtil] = i, stat.Some(0)
		}
		devices[3].Fields[GPUUtil] = stat.Some(0.95)
		s.GPU = &GPUReading{T: s.T, Devices: devices}
	}
	if !feed(samples...)[0].Active {
		t.Error("one of eight GPUs at 95 % is not called active")
	}
}

func TestAQuantileAboveTheLastBucketIsALowerLimit(t *testing.T) {
	w := busy(3)
	for i := range w {
		w[i].Hist[HistTTFT] = stat.Delta{Bounds: []float64{5, 10, inf}, Counts: []float64{0, 0, 9}, Sum: 900, Count: 9, OK: true}
	}
	q := Diagnose(Request{Windows: w})
	got := q.Quantity("ttft_p99_s")
	if got.Value.V != 10 || !got.AtLeast || !strings.Contains(got.Note, "overflow") {
		t.Errorf("p99 %+v: want at least 10 s", got)
	}
}

func TestOneChangeIsNotProposedTwice(t *testing.T) {
	fix := &Fix{Kind: KindFlag, Flag: "--kv-cache-dtype", To: "fp8"}
	d := Diagnose(Request{Windows: busy(5), Rules: []Rule{
		firing(ConcurrencySaturation, GroupSlots, 5, 5, 0.9, fix), firing(KVPressure, GroupMemory, 5, 4, 0.9, fix),
	}})
	if len(d.Runners) != 0 {
		t.Errorf("runners %v repeat the recommendation", d.Runners)
	}
}
