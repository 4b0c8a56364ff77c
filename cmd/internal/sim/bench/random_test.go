package bench

import (
	"testing"

	"github.com/google/go-cmp/cmp"
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
