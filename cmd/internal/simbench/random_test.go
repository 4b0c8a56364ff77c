package simbench

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/scenarios"
	"github.com/rooftop-dev/rooftop/engine"
)

// Every server drawn by chance has flags that vLLM accepts and that act here, and
// a load that can be offered.
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

func TestRecommended(t *testing.T) {
	closed := []scenarios.Stream{{Phases: []scenarios.Phase{{Users: 2}}, Think: 1}}
	sc := &scenarios.Scenario{Server: "vllm serve m --max-num-seqs 16 --enforce-eager", Load: closed}
	for name, tt := range map[string]struct {
		rec  *engine.Recommendation
		load []scenarios.Stream
		want *scenarios.Change
	}{
		"none": {nil, closed, nil},
		"a value": {
			&engine.Recommendation{Fix: engine.Fix{Kind: engine.KindFlag}, Launch: "vllm serve m --max-num-seqs 64 --enforce-eager"}, closed,
			&scenarios.Change{Set: []scenarios.Flag{{Name: "max-num-seqs", Value: "64"}}},
		},
		"a switch taken away": {
			&engine.Recommendation{Fix: engine.Fix{Kind: engine.KindFlag}, Launch: "vllm serve m --max-num-seqs 16"}, closed,
			&scenarios.Change{Drop: []string{"enforce-eager"}},
		},
		"launch unknown": {&engine.Recommendation{Fix: engine.Fix{Kind: engine.KindFlag}}, closed, nil},
		"more clients": {
			&engine.Recommendation{Finding: engine.UnderBatching, Fix: engine.Fix{Kind: engine.KindClient, To: "40"}}, closed,
			&scenarios.Change{Load: []scenarios.Stream{{Phases: []scenarios.Phase{{Users: 40}}}}},
		},
		"more clients of an open loop": {
			&engine.Recommendation{Finding: engine.UnderBatching, Fix: engine.Fix{Kind: engine.KindClient, To: "40"}},
			[]scenarios.Stream{{Phases: []scenarios.Phase{{Rate: 2}}}}, nil,
		},
		"the host": {&engine.Recommendation{Finding: engine.Stuck, Fix: engine.Fix{Kind: engine.KindHost}}, closed, nil},
	} {
		t.Run(name, func(t *testing.T) {
			sc.Load = tt.load
			got, ok := recommended(sc, &engine.Diagnosis{Recommendation: tt.rec})
			if !ok {
				got = nil
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
	seats := recommended("seat-saturation", "--max-num-seqs")
	rows := []Row{
		{Base: seats, Own: Trial{Made: true, Outcome: &Outcome{}, Throughput: 0.5}},
		{Base: seats, Own: Trial{Made: true, Outcome: &Outcome{}, Throughput: -0.5}},
		{Base: seats, Own: Trial{Made: true, Outcome: &Outcome{Refused: errRefusal}}},
		{Base: seats, Own: Trial{Made: true, Outcome: &Outcome{}}},
		{Base: &Outcome{Diagnosis: engine.Diagnosis{Outcome: "healthy"}}},
		{Err: errRefusal},
	}
	want := []Census{
		{Advice: "did not run", Count: 1},
		{Advice: "healthy", Count: 1},
		{Advice: "seat-saturation: --max-num-seqs", Count: 4, Tried: 4, Helped: 1, Harmed: 1, Refused: 1},
	}
	if diff := cmp.Diff(want, TakeCensus(rows)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
