package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// TestAnIllServerIsShownAsIllOnEveryView checks banner, dot and stage, and that no advice is left.
func TestAnIllServerIsShownAsIllOnEveryView(t *testing.T) {
	for _, c := range []struct {
		condition engine.Condition
		banner    string
		stage     string
	}{
		{engine.Condition{State: engine.Dead, Lasted: 14 * time.Second, Reason: "/health answers 503, no tokens generated for 14 s"}, "✖ The engine is dead: /health answers 503, no tokens generated for 14 s.", "engine dead"},
		{engine.Condition{State: engine.Hung, Lasted: 36 * time.Second, Reason: "no tokens generated for 36 s with 16 running and 8 waiting"}, "✖ The engine is hung: no tokens generated for 36 s with 16 running", "engine hung"},
		{engine.Condition{State: engine.PartlyHung, Reason: "rank 1 of 2, no tokens generated for 36 s"}, "✖ Part of the engine is hung: rank 1 of 2", "partly hung"},
		{engine.Condition{State: engine.Failing, Reason: "43 of the last 50 requests were answered with a 5xx error"}, "✖ The server is failing: 43 of the last 50 requests", "requests fail"},
	} {
		s := change(t, "waiting", func(s *loop.Snapshot) {
			s.Condition, s.Advice, s.Quiet = c.condition, nil, c.condition.String()
		})
		for v := range numViews {
			for _, size := range [][2]int{{80, 24}, {120, 30}, {200, 60}} {
				u := plainLook()
				u.View = v
				text := plainFrame(s, u, size[0], size[1])
				head, _, _ := strings.Cut(text, "\n")
				if !strings.Contains(text, c.banner) || strings.Contains(head, "●") || !strings.Contains(head, "✖") || size[0] == 80 && !strings.Contains(text, c.stage) {
					t.Errorf("%s at %v, view %d:\n%s", c.condition.State, size, v, text)
				}
				if v == viewNow && (strings.Contains(text, "Recommendation") || strings.Contains(words(text), "● ok") || strings.Contains(text, "achievable")) {
					t.Errorf("%s at %v: advice or approval is left:\n%s", c.condition.State, size, text)
				}
			}
		}
	}
}

func TestAServerThatMayHangIsNotGreen(t *testing.T) {
	s := change(t, "waiting", func(s *loop.Snapshot) {
		s.Silence = "no tokens generated for 6 s with 47 running and 0 waiting: hung if it lasts for 10 s"
	})
	text := plainFrame(s, plainLook(), 80, 24)
	head, rest, _ := strings.Cut(text, "\n")
	if !strings.Contains(head, "▲") || strings.Contains(head, "●") || !strings.Contains(words(rest), "▲ No tokens generated for 6 s with 47 running and 0 waiting: hung") {
		t.Errorf("not said:\n%s", text)
	}
}

// TestNothingIsMeasuredOfAnIllServer has the engine hang in each phase that measures: no progress is shown, and no change
// announced.
func TestNothingIsMeasuredOfAnIllServer(t *testing.T) {
	for _, name := range []string{"baseline", "settling", "measuring"} {
		s := onAutopilot(change(t, name, func(s *loop.Snapshot) {
			s.Condition = engine.Condition{State: engine.Hung, Lasted: 36 * time.Second, Reason: "no tokens generated for 36 s"}
		}))
		text := plainFrame(s, plainLook(), 120, 30)
		for _, says := range []string{" of 20 s", "most promising change", "Keeps the change"} {
			if strings.Contains(text, says) {
				t.Errorf("%s: %q beside a hung engine:\n%s", name, says, text)
			}
		}
	}
}

func TestAServerThatStartsIsNotCalledDown(t *testing.T) {
	s := change(t, "down", func(s *loop.Snapshot) {
		s.Starting, s.AttachWhy = true, "the server is starting: process 4711 does not listen yet"
	})
	text := plainFrame(s, plainLook(), 80, 24)
	if !strings.Contains(text, "The server is starting: process 4711 does not listen yet.") || !strings.Contains(text, "starting 0:12") || strings.Contains(text, "✖ ") {
		t.Errorf("not starting:\n%s", text)
	}
}
