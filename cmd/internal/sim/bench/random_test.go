package bench

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/scenarios"
	"github.com/rooftop-dev/rooftop/engine"
)

// Every random server has flags that vLLM accepts and that are simulated, and a load that can be sent.
func TestRandomScenariosAreServers(t *testing.T) {
	names := map[string]bool{}
	for i := range 300 {
		sc := Random(5, i)
		r, err := prepare(&sc, nil, Options{Seed: 1})
		if err != nil {
			t.Fatalf("%s: %v", sc.Server, err)
		}
		if len(r.settings.Notes) > 0 {
			t.Errorf("%s: %v", sc.Server, r.settings.Notes)
		}
		for j := range sc.Load {
			if err := new(World).Offer(&sc.Load[j], Offering{}); err != nil {
				t.Errorf("%s: %v: %+v", sc.Name, err, sc.Load[j])
			}
		}
		names[sc.Pair()] = true
		if diff := cmp.Diff(sc, Random(5, i)); diff != "" {
			t.Fatalf("the same number gave another scenario:\n%s", diff)
		}
	}
	if len(names) != len(deployments) {
		t.Errorf("%d deployments of %d were drawn", len(names), len(deployments))
	}
}

// TestRandomServers tries what rooftop recommends for servers and loads drawn by chance, and counts whether
// it helps: one of them, unless SIMBENCH_RANDOM is their number.
func TestRandomServers(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("SIMBENCH_RANDOM"))
	if err != nil {
		n = 1
	}
	list := make([]scenarios.Scenario, n)
	for i := range list {
		list[i] = Random(4, i)
	}
	rows, err := Bench(t.Context(), list, Options{Seed: 4})
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	if err := WriteCensus(&b, rows, false); err != nil {
		t.Fatal(err)
	}
	t.Log("\n" + b.String())
	for i := range rows {
		if rows[i].Err != nil {
			t.Errorf("%s: %v", rows[i].Scenario.Name, rows[i].Err)
		}
	}
}

func TestRecommended(t *testing.T) {
	closed := []scenarios.Stream{{Phases: []scenarios.Phase{{Users: 2}}, Think: 1}}
	sc := &scenarios.Scenario{Server: "vllm serve m --max-num-seqs 16 --enforce-eager", Load: closed}
	for name, tt := range map[string]struct {
		rec  *engine.Recommendation
		load []scenarios.Stream
		want *scenarios.Change
		why  string
	}{
		"none": {nil, closed, nil, ""},
		"a value": {
			&engine.Recommendation{Fix: engine.Fix{Kind: engine.KindFlag}, Launch: "vllm serve m --max-num-seqs 64 --enforce-eager"}, closed,
			&scenarios.Change{Set: []scenarios.Flag{{Name: "max-num-seqs", Value: "64"}}}, "",
		},
		"a switch taken away": {
			&engine.Recommendation{Fix: engine.Fix{Kind: engine.KindFlag}, Launch: "vllm serve m --max-num-seqs 16"}, closed,
			&scenarios.Change{Drop: []string{"enforce-eager"}}, "",
		},
		"launch unknown": {&engine.Recommendation{Fix: engine.Fix{Kind: engine.KindFlag}}, closed, nil, "no launch command"},
		"nothing differs": {
			&engine.Recommendation{Fix: engine.Fix{Kind: engine.KindFlag}, Launch: "vllm serve m --max-num-seqs 16 --enforce-eager"}, closed,
			nil, "no flag differs",
		},
		"more clients": {
			&engine.Recommendation{Finding: engine.UnderBatching, Fix: engine.Fix{Kind: engine.KindClient, To: "40"}}, closed,
			&scenarios.Change{Load: []scenarios.Stream{{Phases: []scenarios.Phase{{Users: 40}}}}}, "",
		},
		"more clients, and slots for them": {
			&engine.Recommendation{Finding: engine.UnderBatching, Fix: engine.Fix{
				Kind: engine.KindClient, To: "128", Command: "send more requests at once: about 4 run now, up to 128 fit; raise --max-num-seqs to 128 with it",
			}}, closed,
			&scenarios.Change{
				Set:  []scenarios.Flag{{Name: "max-num-seqs", Value: "128"}},
				Load: []scenarios.Stream{{Phases: []scenarios.Phase{{Users: 128}}}},
			}, "",
		},
		"more clients, and a flag in other words": {
			&engine.Recommendation{Finding: engine.UnderBatching, Fix: engine.Fix{Kind: engine.KindClient, To: "128", Command: "send more, and mind --max-num-seqs"}}, closed,
			nil, "a flag with it that is not understood",
		},
		"more clients than streams can be": {
			&engine.Recommendation{Finding: engine.UnderBatching, Fix: engine.Fix{Kind: engine.KindClient, To: "40"}},
			append(closed, closed...), nil, "a load of several streams or phases",
		},
		"more clients of an open loop": {
			&engine.Recommendation{Finding: engine.UnderBatching, Fix: engine.Fix{Kind: engine.KindClient, To: "40"}},
			[]scenarios.Stream{{Phases: []scenarios.Phase{{Rate: 2}}}}, nil, "open loop",
		},
		"the clients' balance": {&engine.Recommendation{Finding: engine.DPImbalance, Fix: engine.Fix{Kind: engine.KindClient}}, closed, nil, "these clients cannot do it"},
		"the host":             {&engine.Recommendation{Finding: engine.Stuck, Fix: engine.Fix{Kind: engine.KindHost}}, closed, nil, "advice to the host"},
		"the hardware":         {&engine.Recommendation{Finding: engine.KVPressure, Fix: engine.Fix{Kind: engine.KindHardware}}, closed, nil, "advice to the hardware"},
	} {
		t.Run(name, func(t *testing.T) {
			sc.Load = tt.load
			got, why := recommended(sc, &engine.Diagnosis{Recommendation: tt.rec})
			if why != tt.why {
				t.Errorf("not tried because of %q, want %q", why, tt.why)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

func TestCensus(t *testing.T) {
	recommended := func(f engine.FindingID, flag string) *Outcome {
		return &Outcome{Diagnosis: engine.Diagnosis{Outcome: "recommendation", Recommendation: &engine.Recommendation{
			Finding: f, Fix: engine.Fix{Kind: engine.KindFlag, Flag: flag},
		}}}
	}
	slots := recommended("concurrency-saturation", "--max-num-seqs")
	rows := []Row{
		{Base: slots, Own: Trial{Made: true, Outcome: &Outcome{}, Throughput: 0.5}},
		{Base: slots, Own: Trial{Made: true, Outcome: &Outcome{}, Throughput: -0.5}},
		{Base: slots, Own: Trial{Made: true, Outcome: &Outcome{Refused: errRefusal}}},
		{Base: slots, Own: Trial{Made: true, Outcome: &Outcome{}}},
		{Base: slots, Untried: "open loop"},
		{Base: slots, Untried: "no launch command"},
		{Base: slots, Untried: "open loop"},
		{Base: &Outcome{Diagnosis: engine.Diagnosis{Outcome: "healthy"}}},
		{Err: errRefusal},
	}
	want := []Census{
		{
			Advice: "concurrency-saturation: --max-num-seqs", Count: 7, Tried: 4, Helped: 1, Harmed: 1, Refused: 1,
			Untried: map[string]int{"open loop": 2, "no launch command": 1},
		},
		{Advice: "did not run", Count: 1, Untried: map[string]int{}},
		{Advice: "healthy", Count: 1, Untried: map[string]int{}},
	}
	if diff := cmp.Diff(want, TakeCensus(rows)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	var b strings.Builder
	if err := WriteCensus(&b, rows, false); err != nil {
		t.Fatal(err)
	}
	if want := "1: no launch command; 2: open loop"; !strings.Contains(b.String(), want) {
		t.Errorf("the table does not say %q:\n%s", want, &b)
	}
}

// Without a truth no answer is right, wrong or surprising.
func TestNoTruthJudgesNothing(t *testing.T) {
	change := &engine.Recommendation{Finding: engine.ConcurrencySaturation, Fix: engine.Fix{Kind: engine.KindFlag, Flag: "--max-num-seqs", From: "4", To: "8"}}
	base := &Outcome{Diagnosis: engine.Diagnosis{Outcome: "recommendation", Recommendation: change}}
	r := Row{Scenario: Random(1, 1), Base: base, Own: Trial{Made: true, Outcome: &Outcome{}}}
	r.Answer = answer(&r.Scenario.Truth, &base.Diagnosis)
	if r.Judged() || r.Right() || r.Surprising() || len(r.Answer.Faults) > 0 || r.Answer.Advice != "--max-num-seqs 4 -> 8" {
		t.Errorf("judged %v, right %v, surprising %v: %+v", r.Judged(), r.Right(), r.Surprising(), r.Answer)
	}
	if !r.Missed() {
		t.Error("a change that does not help is missed with or without a truth")
	}
	rows := []Row{r}
	var b strings.Builder
	if err := WriteCensus(&b, rows, true); err != nil {
		t.Fatal(err)
	}
	for _, never := range []string{"nothing to recommend", "outcome recommendation, not", "as their files say", "diagnosis right"} {
		if strings.Contains(b.String(), never) {
			t.Errorf("says %q:\n%s", never, &b)
		}
	}
}
