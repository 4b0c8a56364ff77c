package bench

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/rules"
)

// A server whose requests all began together fills its KV pool for 40 s: more slots seem right until it is
// full. Advice from that time must not be offered, and its event says so.
func TestAdviceIsPreliminaryWhileThePoolFills(t *testing.T) {
	list, err := settings.Select("kv-preempting/8b-l4")
	if err != nil {
		t.Fatal(err)
	}
	sc := &list[0]
	command, err := launch.Parse(strings.Fields(sc.Server), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	x := &tuning{sc: sc, seed: 1, world: NewWorld(), kept: command}
	x.loop = loop.New(loop.Plan{Rules: rules.All(), Started: epoch, CanApply: true})
	if err := x.start(command); err != nil {
		t.Fatal(err)
	}
	healthy, _ := x.world.Healthy()
	if err := x.world.Offer(&sc.Load[0], Offering{Origin: healthy, Seed: 31}); err != nil {
		t.Fatal(err)
	}
	x.step(loop.Begin{})
	x.poll()
	x.world.Until(healthy + 30*time.Second)
	s := x.loop.Snapshot()
	if s.Phase != loop.PhaseWaiting || s.Advice == nil || s.Firm || !strings.Contains(s.Preliminary, "filling") {
		t.Fatalf("phase %v, advice %+v, firm %v, preliminary %q: want advice that is preliminary", s.Phase, s.Advice, s.Firm, s.Preliminary)
	}
	if can := s.Can[loop.CommandApply]; can.OK || !strings.Contains(can.Why, "still filling") {
		t.Errorf("apply is %+v, want it refused with the reason", can)
	}
	first := s.Advice.Changes()[0].String()
	for !s.Firm && x.world.Now() < healthy+6*time.Minute {
		x.world.Until(x.world.Now() + 2*time.Second)
		s = x.loop.Snapshot()
	}
	if !s.Firm || s.Advice == nil || !s.Can[loop.CommandApply].OK {
		t.Fatalf("firm %v, advice %+v: it never stands", s.Firm, s.Advice)
	}
	if s.Advice.Changes()[0].String() == first {
		t.Errorf("%s stands: it is not the case to be tested", first)
	}
	preliminary, stands := false, false
	for _, e := range s.Journal {
		preliminary = preliminary || strings.HasPrefix(e.Text, "preliminary while the KV pool is still filling: ")
		stands = stands || strings.HasPrefix(e.Text, "recommended: ") && preliminary
	}
	if !preliminary || !stands {
		t.Errorf("the journal marks it: %v, and says what stands: %v", preliminary, stands)
	}
}
