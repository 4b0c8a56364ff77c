package verdict

import (
	"testing"
	"time"
)

func TestLooksGrowToTheLast(t *testing.T) {
	looks := Looks(20*time.Second, 5*time.Minute)
	if looks[0] != 20*time.Second || looks[len(looks)-1] != 5*time.Minute {
		t.Fatalf("got %v", looks)
	}
	sum := 0.0
	for i := range looks {
		if i > 0 && looks[i] < looks[i-1]*5/4 {
			t.Errorf("look %d at %v follows %v", i, looks[i], looks[i-1])
		}
		sum += spend(&Plan{Look: i, Looks: len(looks)})
	}
	if sum > errorRate*1.0000001 || sum < errorRate*0.9999999 {
		t.Errorf("all looks spend %v of %v", sum, errorRate)
	}
}

func TestNothingMeasuredIsInconclusive(t *testing.T) {
	for _, sides := range [][2]*Side{{nil, nil}, {{}, {}}, {{Lives: []Life{{}}}, {Lives: []Life{{{}}}}}} {
		r := Judge(sides[0], sides[1], Plan{Last: true})
		if r.Direction != Inconclusive || !r.Settled || r.Known || r.Reason == "" {
			t.Errorf("got %+v", r)
		}
	}
}
