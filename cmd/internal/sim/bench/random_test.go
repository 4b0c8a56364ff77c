package bench

import (
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
