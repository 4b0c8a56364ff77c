package bench

import (
	"bytes"
	"context"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/scenarios"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/longtest"
)

// fast lists scenarios of every family that take a fraction of a second each.
var fast = []string{
	"healthy/8b-l4", "slot-capped/8b-a100", "kv-preempting/8b-l4", "kv-head-of-line/8b-l4",
	"prefill-interference/8b-a100", "budget-too-low/235b-h200", "prefill-saturated/70b-h100", "low-batch/r1-b200",
	"cache-off/70b-h100", "prefix-thrash/8b-a100", "huge-prompt/70b-h100", "lora-slots/8b-a100",
	"burst/70b-h100", "idle/8b-a100", "idle-after-load/r1-b200", "aborts/70b-h100", "stalled/8b-a100",
	"restart/70b-h100", "gpu-throttled/235b-h200", "rank-imbalance/8b-l4", "network-delay/70b-h100",
}

// TestLibrary checks scenarios of the library: remedies help, wrong changes do not, and the diagnosis is
// correct except for the noted gaps. They are a few, unless SIMBENCH has names (cases, pairs or scenarios,
// separated by commas) or all.
//
//	SIMBENCH=all go test -run '^TestLibrary$' -v ./cmd/internal/sim/bench
func TestLibrary(t *testing.T) {
	names := fast
	switch given := os.Getenv("SIMBENCH"); {
	case given == "all":
		names = nil
	case given != "":
		names = strings.Split(given, ",")
	case !longtest.Tests:
		names = fast[1:3]
	}
	list, err := scenarios.Select(names...)
	if err != nil {
		t.Fatal(err)
	}
	rows, err := Bench(context.Background(), list, Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	var table strings.Builder
	if err := WriteTable(&table, rows); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + table.String())
	for i := range rows {
		if rows[i].Surprising() {
			var b strings.Builder
			rows[i].detail(&b)
			t.Errorf("not as its file says:\n%s", &b)
		}
	}
}

// Every case of the specification is there, on three pairs at least.
func TestLibraryIsComplete(t *testing.T) {
	list, err := scenarios.All()
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]map[string]bool{}
	for _, s := range list {
		if cases[s.Case] == nil {
			cases[s.Case] = map[string]bool{}
		}
		cases[s.Case][s.Pair()] = true
		if r, err := prepare(&s, nil, Options{Seed: 1}); err != nil {
			t.Errorf("%s: %v", s.Name, err)
		} else if len(r.settings.Notes) > 0 {
			t.Errorf("%s: flags without effect: %v", s.Name, r.settings.Notes)
		}
		if s.Wrong.Empty() {
			t.Errorf("%s has no wrong remedy", s.Name)
		}
		for i := range s.Load {
			if err := new(World).Offer(&s.Load[i], Offering{}); err != nil {
				t.Errorf("%s: load: %v", s.Name, err)
			}
		}
	}
	if len(cases) != 24 {
		t.Errorf("%d cases of 24", len(cases))
	}
	for id, pairs := range cases {
		if len(pairs) < 3 {
			t.Errorf("%s is on %d pairs", id, len(pairs))
		}
	}
}

func TestAnswer(t *testing.T) {
	finding := func(id engine.FindingID) engine.Finding {
		return engine.Finding{ID: id, State: engine.Fired, Significant: true}
	}
	flag := &engine.Recommendation{Finding: engine.ConcurrencySaturation, Fix: engine.Fix{Kind: engine.KindFlag, Flag: "--max-num-seqs", From: "16", To: "64"}}
	client := &engine.Recommendation{Finding: engine.UnderBatching, Fix: engine.Fix{Kind: engine.KindClient}}
	slots := scenarios.Truth{Outcomes: []string{"recommendation"}, Findings: []string{"concurrency-saturation"}, Kinds: []string{"flag"}, Flags: []string{"--max-num-seqs"}}
	for name, tt := range map[string]struct {
		truth scenarios.Truth
		d     engine.Diagnosis
		want  []string
	}{
		"right": {slots, engine.Diagnosis{Outcome: "recommendation", Findings: []engine.Finding{finding("concurrency-saturation")}, Recommendation: flag}, nil},
		"another first": {
			slots,
			engine.Diagnosis{Outcome: "recommendation", Findings: []engine.Finding{finding("kv-pressure"), finding("concurrency-saturation")}, Recommendation: flag},
			[]string{"kv-pressure ranked first, not concurrency-saturation"},
		},
		"fired too seldom": {
			slots,
			engine.Diagnosis{Outcome: "recommendation", Findings: []engine.Finding{{ID: "kv-pressure", State: engine.Fired}, finding("concurrency-saturation")}, Recommendation: flag},
			nil,
		},
		"another kind": {
			slots,
			engine.Diagnosis{Outcome: "recommendation", Findings: []engine.Finding{finding("concurrency-saturation")}, Recommendation: client},
			[]string{"recommends client, not kind flag"},
		},
		"another flag": {
			scenarios.Truth{Outcomes: []string{"recommendation"}, Kinds: []string{"flag"}, Flags: []string{"--max-loras"}},
			engine.Diagnosis{Outcome: "recommendation", Recommendation: flag},
			[]string{"recommends --max-num-seqs, not --max-loras"},
		},
		"nothing found": {
			slots, engine.Diagnosis{Outcome: "healthy"},
			[]string{"outcome healthy, not recommendation", "nothing ranked first, not concurrency-saturation"},
		},
		"healthy, and something recommended": {
			scenarios.Truth{Outcomes: []string{"healthy"}}, engine.Diagnosis{Outcome: "recommendation", Recommendation: client},
			[]string{"outcome recommendation, not healthy", "recommends client, and there is nothing to recommend"},
		},
		"the doubt names it": {
			scenarios.Truth{Outcomes: []string{"not-evaluable"}, Doubt: "LoRA"}, engine.Diagnosis{Outcome: "not-evaluable", Doubt: "a LoRA slot"}, nil,
		},
		"the doubt does not": {
			scenarios.Truth{Outcomes: []string{"not-evaluable"}, Doubt: "LoRA"}, engine.Diagnosis{Outcome: "not-evaluable", Doubt: "too few windows"},
			[]string{"the doubt does not name LoRA"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := answer(&tt.truth, &tt.d)
			if diff := cmp.Diff(tt.want, got.Faults); diff != "" {
				t.Errorf("faults (-want +got):\n%s", diff)
			}
			r := Row{Scenario: scenarios.Scenario{Truth: tt.truth}, Answer: got}
			if r.Right() != (len(tt.want) == 0) {
				t.Error("right and faults disagree")
			}
		})
	}
}

func TestHelps(t *testing.T) {
	out := &Outcome{}
	for name, tt := range map[string]struct {
		trial Trial
		want  bool
	}{
		"more tokens":                {Trial{Outcome: out, Throughput: 0.10, TTFT: 0}, true},
		"more tokens, longer wait":   {Trial{Outcome: out, Throughput: 0.10, TTFT: 0.5}, false},
		"shorter wait":               {Trial{Outcome: out, Throughput: 0, TTFT: -0.5}, true},
		"shorter wait, fewer tokens": {Trial{Outcome: out, Throughput: -0.2, TTFT: -0.5}, false},
		"faster tokens":              {Trial{Outcome: out, Throughput: 0, TTFT: 0, ITL: -0.2}, true},
		"more clients wait longer":   {Trial{Outcome: out, Throughput: 1, TTFT: 2, Load: true}, true},
		"fewer clients wait less":    {Trial{Outcome: out, Throughput: 0, TTFT: -0.8, Load: true}, false},
		"nothing":                    {Trial{Outcome: out, Throughput: 0.01, TTFT: -0.02}, false},
		"more tokens, wait unknown":  {Trial{Outcome: out, Throughput: 0.10, TTFT: math.NaN()}, true},
		"nothing known":              {Trial{Outcome: out, Throughput: math.NaN(), TTFT: math.NaN()}, false},
		"refused":                    {Trial{Outcome: &Outcome{Refused: errRefusal}, Throughput: 1, TTFT: -1}, false},
	} {
		if got := tt.trial.Helps(); got != tt.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestTally(t *testing.T) {
	tally := Tally{From: 10 * time.Second, To: 20 * time.Second}
	tally.sent(9*time.Second, 0)
	tally.count(9*time.Second, &tally.Tokens, 100)
	tally.observe(20*time.Second, &tally.ttft, time.Second)
	for i := range 10 {
		at := 10*time.Second + time.Duration(i)*time.Second
		tally.sent(at, i%2)
		tally.observe(at, &tally.ttft, time.Duration(i+1)*100*time.Millisecond)
		tally.count(at, &tally.Tokens, 5)
	}
	tally.finished(15*time.Second, 2*time.Second)
	got := map[string]float64{}
	tally.metrics("a.", got)
	want := map[string]float64{
		"a.tokens_per_s": 5, "a.requests_per_s": 0.1, "a.failed_per_s": 0, "a.left_per_s": 0,
		"a.ttft_mean_s": 0.55, "a.ttft_p50_s": 0.5, "a.ttft_p99_s": 1, "a.ttft_p999_s": 1, "a.ttft_max_s": 1,
		"a.e2e_mean_s": 2, "a.e2e_p50_s": 2, "a.e2e_p99_s": 2, "a.e2e_p999_s": 2, "a.e2e_max_s": 2,
	}
	close := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) < 1e-9 })
	if diff := cmp.Diff(want, got, close); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if tally.Sent != 10 || tally.Retried != 5 {
		t.Errorf("%d sent, %d of them again", tally.Sent, tally.Retried)
	}
}

func TestTableSaysWhatIsWrong(t *testing.T) {
	base := &Outcome{Metrics: map[string]float64{"tokens_per_s": 100}, Diagnosis: engine.Diagnosis{Outcome: "healthy"}}
	refused := &Outcome{Refused: errRefusal}
	truth := scenarios.Truth{Outcomes: []string{"healthy"}}
	gap := scenarios.Scenario{Case: "S5", Name: "shelf/a", Truth: truth, Gap: "no rule"}
	rows := []Row{
		{Scenario: scenarios.Scenario{Case: "S1", Name: "healthy/a", Truth: truth}, Base: base, Untried: "open loop"},
		{Scenario: gap, Base: base, Answer: Answer{Faults: []string{"nothing ranked first"}}},
		{Scenario: gap, Base: base},
		{Scenario: scenarios.Scenario{Case: "S2", Name: "slots/a", Truth: truth}, Base: base, Own: Trial{Made: true, Outcome: refused}},
		{Scenario: scenarios.Scenario{Case: "S3", Name: "kv/a", Truth: truth}, Base: base, Remedy: Trial{
			Made: true, Outcome: base, Checks: []Check{{Expect: scenarios.Expect{Metric: "tokens_per_s", Op: ">=", Value: 1.5, Ratio: true}, Before: 100, After: 110}},
		}},
		{Scenario: scenarios.Scenario{Case: "S4", Name: "broken/a", Truth: truth}, Err: errRefusal},
	}
	var surprising []bool
	for i := range rows {
		surprising = append(surprising, rows[i].Surprising())
	}
	if diff := cmp.Diff([]bool{false, false, true, true, true, true}, surprising); diff != "" {
		t.Errorf("surprising (-want +got):\n%s", diff)
	}
	var b bytes.Buffer
	if err := WriteTable(&b, rows); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"SIMULATED", "not tried: open loop", "known gap: no rule", "the gap that its file notes is closed", "REFUSED", "NOT AS EXPECTED",
		"tokens_per_s >= 1.5x does not hold: 100 before, 110 after", "the maximum context length is 4",
		"6 scenarios", "1 known gaps; 1 did not run; 4 not as their files say",
	} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("the table does not say %q:\n%s", want, &b)
		}
	}
}

// BenchmarkPreempting is ten minutes of server time in S3: preemption at every
// moment, four polls a second diagnosed.
func BenchmarkPreempting(b *testing.B) {
	list, err := scenarios.Select("kv-preempting/8b-l4")
	if err != nil {
		b.Fatal(err)
	}
	sc := list[0]
	sc.Measure.For = 10*time.Minute - sc.Measure.After
	began := time.Now()
	n := 0
	for b.Loop() {
		if _, err := Run(&sc, nil, Options{Seed: 1}); err != nil {
			b.Fatal(err)
		}
		n++
	}
	b.ReportMetric(float64(n)*600/time.Since(began).Seconds(), "virtual-s/s")
}
