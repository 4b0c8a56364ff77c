package fleet_test

import (
	"testing"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/fleet"
	"github.com/rooftop-dev/rooftop/engine/page"
)

// A server that could not be judged is never shown as healthy.
func TestAnswer(t *testing.T) {
	of := func(name string, o engine.Outcome) fleet.Server {
		s := fleet.Server{Name: name}
		s.Outcome = o
		return s
	}
	healthy, blind, down, unread := of("a", engine.OutcomeHealthy), of("b", engine.OutcomeNotEvaluable), fleet.Down("c", "connection refused"), fleet.Unread("d", "503")
	for _, c := range []struct {
		list []fleet.Server
		tone page.Tone
		want string
	}{
		{[]fleet.Server{healthy}, page.OK, "No server has a flag to change"},
		{[]fleet.Server{healthy, blind, unread}, page.Warn, "No flag to change on the 1 server that could be judged"},
		{[]fleet.Server{blind, unread}, page.Warn, "No server could be judged"},
		{[]fleet.Server{down, unread, healthy}, page.Bad, "c: " + down.Condition.String()},
	} {
		if tone, got := fleet.Answer(c.list); tone != c.tone || got != c.want {
			t.Errorf("%v %q, want %v %q", tone, got, c.tone, c.want)
		}
	}
}
