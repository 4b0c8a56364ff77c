package tui

import (
	"cmp"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/longtest"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/verdict"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// contentOf is the function that returns the content of a view.
type contentOf func(s *loop.Snapshot, u *frame.Settings, width int) frame.Content

// drawn returns a view's plain text at a size.
func drawn(content contentOf, s *loop.Snapshot, u *frame.Settings, w, h int) string {
	return drawnFrom(content, s, u, w, h, 0)
}

// drawnFrom returns a view's plain text from a line on.
func drawnFrom(content contentOf, s *loop.Snapshot, u *frame.Settings, w, h, first int) string {
	c := cell.NewCanvas(w, h)
	if u.Glyphs.ASCII {
		c.ASCII()
	}
	content(cmp.Or(s, &loop.Snapshot{}), u, w).Draw(c.Pane(), first)
	return c.Plain()
}

// words returns the words of a text in one line, so that line breaks do not matter.
func words(s string) string {
	frame := strings.NewReplacer("│", " ", "╭", " ", "╮", " ", "╰", " ", "╯", " ", "─", " ")
	return strings.Join(strings.Fields(frame.Replace(s)), " ")
}

// change returns a snapshot made from one of the fixtures.
func change(t testing.TB, name string, by func(s *loop.Snapshot)) *loop.Snapshot {
	t.Helper()
	s := *snapshotNamed(t, name)
	by(&s)
	return &s
}

// TestNowSays checks the text at 80x24 in the states that no frame shows, without colours.
func TestNowSays(t *testing.T) {
	judged := func(classic verdict.Direction) func(s *loop.Snapshot) {
		return func(s *loop.Snapshot) {
			d := s.Iterations[1].Delta
			d.Direction, d.Reason = verdict.Better, "output +83 %"
			d.Classic, d.ClassicReason = classic, "efficiency per running request -28.5 points"
			s.Iterations[1].Load = nil
		}
	}
	as := func(*loop.Snapshot) {}
	for _, c := range []struct {
		name, state string
		by          func(*loop.Snapshot)
		says, not   []string
	}{
		{
			"a recommendation that rooftop cannot make", "waiting", as,
			[]string{"[y] copy the command", "rooftop notices"}, []string{"[a]", "so far"},
		},
		{
			"a phase of minutes", "settling", func(s *loop.Snapshot) { s.Progress.Elapsed, s.Progress.Total = 64*time.Second, 3*time.Minute },
			[]string{"1:04 of 3:00"}, []string{"64 of", "3 min"},
		},
		{"one that it can make", "applicable", as, []string{"[a] apply", "[y] copy"}, []string{"rooftop notices"}},
		{
			"more than good software is taken to reach", "waiting", func(s *loop.Snapshot) {
				o := s.Live.Ceiling.Physical
				o.AchievableTokensPerS, o.AchievableLower, o.AchievableUpper = some(1000), some(900), some(1100)
			},
			[]string{"above achievable (est)"}, []string{"123 % of"},
		},
		{
			"what there was nothing of before or after", "waiting", func(s *loop.Snapshot) {
				for i := range s.Iterations[1].Delta.Metrics {
					if m := &s.Iterations[1].Delta.Metrics[i]; m.Name == "waiting_mean" {
						m.Before.Value, m.After.Value = some(0), some(0)
					}
				}
				s.Advice, s.Firm = nil, false
			},
			[]string{"Change 2", "running 15.9 → 15.9"}, []string{"waiting 0 → 0"},
		},
		{
			"a baseline under way", "baseline", as,
			[]string{"Measuring the baseline", "9 of 20 s", "Recommendation so far", "preliminary until the baseline is complete", "Concurrency saturation"},
			[]string{"Change 1"},
		},
		{
			"nothing counts before the first look", "measuring", as,
			[]string{"Measuring the change", "Look 1 of 7 in 8 s", "nothing before the first look", "You changed --max-num-seqs 8 → 16 as recommended"},
			[]string{"output 651", "so far: ", "BETTER", "Recommendation"},
		},
		{
			"the figures of a change under way are those of the latest look", "trial", func(s *loop.Snapshot) { s.Live = diagnosisAt(4, 36) },
			[]string{"so far output +86 % (+70 to +105 %)", "output 651 → 1,210 tok/s +86 %", "look 2 of 7"}, []string{"so far: ", "within", "BETTER"},
		},
		{"nothing counts while the load settles", "settling", as, []string{"Settling", "6 of 30 s", "Nothing counts yet"}, []string{"output 651", "so far"}},
		{
			"a restart that changed nothing", "settling", func(s *loop.Snapshot) {
				onAutopilot(s)
				s.Iterations[len(s.Iterations)-1].Noticed = loop.SameSettings
			},
			[]string{"Nothing to keep or revert: the difference shows the effect of a restart alone."}, []string{"Keeps the change"},
		},
		{
			"warm-up shows nothing of the configuration before", "settling", func(s *loop.Snapshot) { s.Live = nil },
			[]string{"Settling", "6 of 30 s"}, []string{"Findings", "Ceiling", "Concurrency saturation"},
		},
		{
			"better, and the classic direction beside it", "waiting", judged(verdict.Worse),
			[]string{"● BETTER output +83 %", "PROFILE efficiency: worse, efficiency per running request −28.5 points"}, nil,
		},
		{"where both directions agree only one is named", "waiting", judged(verdict.Better), []string{"● BETTER"}, []string{"lassic"}},
		{"other load is beside the delta", "healthy", as, []string{"= PLATEAU", "▲ other load: prompts were 9 % longer"}, nil},
		{
			"an answer that is not there says why", "worse", func(s *loop.Snapshot) {
				s.Can[loop.CommandRevert] = loop.Availability{Why: "the old command is not known"}
			},
			[]string{"[r] revert the old command is not known"}, nil,
		},
		{
			"going back shows the command", "reverting", as,
			[]string{"Restart the server with the settings from before the change", "command vllm serve", "--max-num-seqs 16", "[y] copy the command"}, nil,
		},
		{"healthy", "healthy", as, []string{"● ok Nothing to change", "no rule fired in 10 windows of load"}, []string{"Recommendation", "[a]"}},
		{
			"nothing could be judged", "healthy", func(s *loop.Snapshot) {
				s.Live.Outcome = engine.OutcomeNotEvaluable
				s.Live.Doubt = "60 % of the requests wait, and whether the slots are the limit is unknown"
				s.Quiet, s.Iterations = "Not evaluable: too little is known", nil
			},
			[]string{"▲ not judged Not evaluable", "open 60 % of the requests wait", "rooftop doctor"}, []string{"● ok Not"},
		},
		{
			"a gain of which only a bound is known", "nogpu", func(s *loop.Snapshot) {
				s.Advice.Predicted = []engine.Prediction{{Metric: "generation_tokens_per_s", High: some(7.33)}, {Metric: "itl_mean_s", High: some(7.33)}}
				s.Iterations = nil
			},
			[]string{"output 1,230 tok/s unknown until tried, at best +733 %", "ITL mean 13.0 ms unknown until tried, at worst +733 %"}, nil,
		},
		{"a change that gained nothing names the revert", "waiting", as, []string{"no gain; the next change replaces it"}, []string{"[r]"}},
		{"with a key where there is one", "applicable", as, []string{"no gain; [r] reverts it"}, nil},
		{
			"all was tried", "waiting", func(s *loop.Snapshot) { s.Advice, s.Quiet = nil, "Everything that was recommended has been tried." },
			[]string{"nothing left Everything that was recommended has been tried.", "[m] measures again"}, []string{"expect"},
		},
		{"no load", "idle", as, []string{"Waiting for load", "Output 0 tok/s", "Running 0 of", "TTFT p99 –"}, []string{"● ok", "warn", "so far"}},
		{
			"ceilings that were overrun are not shown", "waiting",
			func(s *loop.Snapshot) { s.Live.Ceiling.Impossible = "1,900 tok/s are more than this can do" },
			[]string{"misread: 1,900 tok/s"}, []string{"achievable"},
		},
		{
			"a remedy that is not a flag asks for no command", "waiting", func(s *loop.Snapshot) { s.Advice = clientAdvice().Advice },
			[]string{"send more requests at once", "fix by client changes; no flag helps"}, []string{"[a]", "[y]", "rooftop notices"},
		},
		{"the end", "finished", as, []string{"Output +88 % over the whole run, in 2 restarts"}, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			says(t, drawn(now, change(t, c.state, c.by), plainLook(), 80, 21), c.says, c.not)
		})
	}
}

// says checks which words a drawn text has, whatever its line breaks, and which it has not.
func says(t *testing.T, got string, wanted, unwanted []string) {
	t.Helper()
	text := words(got)
	for _, want := range wanted {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in\n%s", want, got)
		}
	}
	for _, not := range unwanted {
		if strings.Contains(text, not) {
			t.Errorf("%q is there in\n%s", not, got)
		}
	}
}

// TestOldFiguresAreMuted checks that outdated figures are not drawn as current.
func TestOldFiguresAreMuted(t *testing.T) {
	muted := func(name string) (figures, others bool) {
		c := cell.NewCanvas(120, 26)
		now(snapshotNamed(t, name), plainLook(), 120).Draw(c.Pane(), 0)
		found := false
		c.Render(func(token cell.Token, text string) string {
			switch {
			case strings.Contains(text, "1,230") && !found: // the headline, before verdicts
				figures, found = token == cell.Muted, true
			case strings.Contains(text, "[y]"):
				others = token == cell.Muted
			}
			return text
		})
		return figures, others
	}
	for _, name := range []string{"down", "late", "paused"} {
		if figures, others := muted(name); !figures || others {
			t.Errorf("%s: figures muted %t, keys muted %t", name, figures, others)
		}
	}
	if figures, _ := muted("waiting"); figures {
		t.Error("fresh figures are muted")
	}
	if got := drawn(now, snapshotNamed(t, "late"), plainLook(), 120, 26); !strings.Contains(got, "9 s old") {
		t.Errorf("no age in\n%s", got)
	}
}

// TestNowNeverHidesTheAnswer checks that the next action is readable at every size.
func TestNowNeverHidesTheAnswer(t *testing.T) {
	for _, c := range []struct{ state, says string }{
		{"waiting", "--max-num-seqs 16 → 40"}, {"baseline", "--max-num-seqs 8 → 16"}, {"worse", "[c] continue"}, {"reverting", "--max-num-seqs"}, {"healthy", "Nothing to change"}, {"measuring", "Look 1 of 7 in 8 s"}, {"long", "--max-num-seqs 16 → 40"},
	} {
		s := snapshotNamed(t, c.state)
		for w := 58; w <= 240; w += 13 {
			for h := 9; h <= 70; h += 6 {
				if !longtest.Tests && (w+h)%3 != 0 {
					continue
				}
				if got := drawn(now, s, plainLook(), w, h); !strings.Contains(words(got), c.says) {
					t.Fatalf("%s at %dx%d without %q:\n%s", c.state, w, h, c.says, got)
				}
			}
		}
	}
}

// TestTheRecommendedFindingIsListed recommends a finding that ranks last of many, on a screen that has no room for all.
func TestTheRecommendedFindingIsListed(t *testing.T) {
	s := change(t, "waiting", func(s *loop.Snapshot) {
		d := *s.Live
		var list []engine.Finding
		for i := range 6 {
			list = append(list, engine.Finding{ID: engine.FindingID(fmt.Sprint("f", i)), Title: fmt.Sprint("Finding ", i), State: engine.Fired, Significant: true})
		}
		r := engine.Recommendation{Finding: list[5].ID, Fix: engine.Fix{Kind: engine.KindFlag, Command: "do it"}}
		d.Findings, d.Recommendation = list, &r
		s.Live, s.Advice = &d, &r
	})
	if got := drawn(now, s, plainLook(), 80, 21); !strings.Contains(got, "Finding 5") {
		t.Errorf("the finding that is recommended is not listed:\n%s", got)
	}
}
