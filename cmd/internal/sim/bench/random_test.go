package bench

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
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

// TestRecommended checks which change is tried for a recommendation, or why none is.
func TestRecommended(t *testing.T) {
	one := []settings.Stream{{Phases: []settings.Phase{{Users: 2}}, Think: 1}}
	open := []settings.Stream{{Phases: []settings.Phase{{Rate: 2}}}}
	flag := func(launch string) engine.Recommendation {
		return engine.Recommendation{Fix: engine.Fix{Kind: engine.KindFlag}, Launch: launch}
	}
	clients := func(finding engine.FindingID, to, command string) engine.Recommendation {
		return engine.Recommendation{Finding: finding, Fix: engine.Fix{Kind: engine.KindClient, To: to, Command: command}}
	}
	for _, tt := range []struct {
		rec  engine.Recommendation
		load []settings.Stream
		want string
	}{
		{flag("vllm serve m --max-num-seqs 64 --enforce-eager"), one, "max-num-seqs 64"},
		{flag("vllm serve m --max-num-seqs 16"), one, "no enforce-eager"},
		{flag(""), one, "no launch command"},
		{flag("vllm serve m --max-num-seqs 16 --enforce-eager"), one, "no flag differs"},
		{clients(engine.UnderBatching, "40", ""), one, "40 users"},
		{clients(engine.UnderBatching, "128", "about 4 run now, up to 128 fit; raise --max-num-seqs to 128 with it"), one, "max-num-seqs 128, 128 users"},
		{clients(engine.UnderBatching, "128", "send more, and mind --max-num-seqs"), one, "a flag with it that is not understood"},
		{clients(engine.UnderBatching, "40", ""), append(one, one...), "a load of several streams or phases"},
		{clients(engine.UnderBatching, "40", ""), open, "open loop"},
		{clients(engine.DPImbalance, "", ""), one, "these clients cannot do it"},
		{engine.Recommendation{Fix: engine.Fix{Kind: engine.KindHost}}, one, "advice to the host"},
	} {
		sc := &settings.Scenario{Server: "vllm serve m --max-num-seqs 16 --enforce-eager", Load: tt.load}
		c, got := recommended(sc, &engine.Diagnosis{Recommendation: &tt.rec})
		if c != nil {
			got += describe(c)
		}
		if got != tt.want {
			t.Errorf("%+v: %q, want %q", tt.rec, got, tt.want)
		}
	}
}
