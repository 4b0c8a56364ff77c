package tui

import (
	"cmp"
	"fmt"
	"slices"
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

func unicodeLook() *frame.Settings { return &frame.Settings{Glyphs: cell.Unicode()} }

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

// TestNowSays checks the text at 80x24 in each state, without colours.
func TestNowSays(t *testing.T) {
	directions := func(d verdict.Direction, classic verdict.Direction) func(s *loop.Snapshot) {
		return func(s *loop.Snapshot) {
			it := s.Iterations[len(s.Iterations)-1]
			delta := *it.Delta
			delta.Direction, delta.Reason, delta.Classic, delta.ClassicReason = d, "output +83 %", classic, "efficiency per running request -28.5 points"
			it.Delta, it.Load = &delta, nil
			s.Iterations = []loop.Iteration{it}
		}
	}
	for _, c := range []struct {
		name string
		s    *loop.Snapshot
		says []string
		not  []string
	}{
		{
			"a recommendation that rooftop cannot make", snapshotNamed(t, "waiting"),
			[]string{"Concurrency saturation", "all 16 slots taken", "--max-num-seqs 16 → 40", "why All 16 slots are taken", "expect output", "tok/s +1", "costs time between tokens", "command vllm serve", "[y] copy the command", "[s] another", "rooftop notices", "15.9 of 16", "Waiting 24", "achievable", "ideal", "bound by reading the weights"},
			[]string{"[a]", "so far"},
		},
		{
			"a phase of minutes", change(t, "settling", func(s *loop.Snapshot) { s.Progress.Elapsed, s.Progress.Total = 64*time.Second, 3*time.Minute }),
			[]string{"1:04 of 3:00"},
			[]string{"64 of", "3 min"},
		},
		{
			"one that it can make", change(t, "waiting", func(s *loop.Snapshot) { s.Can[loop.CommandApply] = loop.Availability{OK: true} }),
			[]string{"[a] apply", "[y] copy"}, []string{"rooftop notices"},
		},
		{
			"more than good software is taken to reach", change(t, "waiting", func(s *loop.Snapshot) {
				live := *s.Live
				o := *live.Ceiling.Physical
				o.AchievableTokensPerS, o.AchievableLower, o.AchievableUpper = some(1000), some(900), some(1100)
				live.Ceiling.Physical, s.Live = &o, &live
			}),
			[]string{"above achievable (est)"}, []string{"123 % of"},
		},
		{
			"what there was nothing of before or after", change(t, "waiting", func(s *loop.Snapshot) {
				it := s.Iterations[len(s.Iterations)-1]
				delta := *it.Delta
				delta.Metrics = slices.Clone(delta.Metrics)
				for i := range delta.Metrics {
					if delta.Metrics[i].Name == "waiting_mean" {
						delta.Metrics[i].Before.Value, delta.Metrics[i].After.Value = some(0), some(0)
					}
				}
				it.Delta = &delta
				s.Iterations, s.Advice, s.Firm = []loop.Iteration{it}, nil, false
			}),
			[]string{"Change 2", "running 15.9 → 15.9"}, []string{"waiting 0 → 0"},
		},
		{
			"a baseline under way", snapshotNamed(t, "baseline"),
			[]string{"Measuring the baseline", "9 of 20 s", "Recommendation so far", "preliminary until the baseline is complete", "Concurrency saturation"},
			[]string{"Change 1"},
		},
		{
			"nothing counts before the first look", snapshotNamed(t, "measuring"),
			[]string{"Measuring the change", "Look 1 of 7 in 8 s", "nothing before the first look", "You changed --max-num-seqs 8 → 16 as recommended"},
			[]string{"output 651", "so far: ", "BETTER", "Recommendation"},
		},
		{
			"the figures of a change under way are those of the latest look", change(t, "trial", func(s *loop.Snapshot) { s.Live = diagnosisAt(4, 36) }),
			[]string{"so far output +86 % (+70 to +105 %)", "output 651 → 1,210 tok/s +86 %", "look 2 of 7"},
			[]string{"so far: ", "within", "BETTER"},
		},
		{
			"nothing counts while the load settles", snapshotNamed(t, "settling"),
			[]string{"Settling", "6 of 30 s", "Nothing counts yet"}, []string{"output 651", "so far"},
		},
		{
			"a restart that changed nothing", change(t, "settling", func(s *loop.Snapshot) {
				onAutopilot(s)
				s.Iterations[len(s.Iterations)-1].Noticed = loop.SameSettings
			}),
			[]string{"Nothing to keep or revert: the difference shows what a restart alone makes."}, []string{"Keeps the change"},
		},
		{
			"warm-up shows nothing of the configuration before", change(t, "settling", func(s *loop.Snapshot) { s.Live = nil }),
			[]string{"Settling", "6 of 30 s"}, []string{"Findings", "Ceiling", "Concurrency saturation"},
		},
		{
			"better, and the classic direction beside it", change(t, "waiting", directions(verdict.Better, verdict.Worse)),
			[]string{"● BETTER output +83 %", "PROFILE efficiency: worse, efficiency per running request −28.5 points"}, nil,
		},
		{
			"where both directions agree only one is named", change(t, "waiting", directions(verdict.Better, verdict.Better)),
			[]string{"● BETTER"}, []string{"lassic"},
		},
		{
			"other load stands beside the delta", change(t, "healthy", func(*loop.Snapshot) {}),
			[]string{"= PLATEAU", "▲ other load: prompts were 9 % longer"}, nil,
		},
		{
			"worse says what each answer will do", snapshotNamed(t, "worse"),
			[]string{"[r] revert", "[c] continue", "The baseline stays.", "they become the new baseline", "✖ WORSE", "−73 %", "TTFT p99"},
			[]string{"Recommendation", "expect"},
		},
		{
			"an answer that is not there says why", change(t, "worse", func(s *loop.Snapshot) {
				s.Can[loop.CommandRevert] = loop.Availability{Why: "the old command is not known"}
			}),
			[]string{"[r] revert the old command is not known"}, nil,
		},
		{
			"going back shows the command", snapshotNamed(t, "reverting"),
			[]string{"Restart the server with the settings from before the change", "command vllm serve", "--max-num-seqs 16", "[y] copy the command"}, nil,
		},
		{
			"healthy", snapshotNamed(t, "healthy"),
			[]string{"● ok Nothing to change", "no rule fired in 10 windows of load"}, []string{"Recommendation", "[a]"},
		},
		{
			"nothing could be judged", change(t, "healthy", func(s *loop.Snapshot) {
				d := *s.Live
				d.Outcome, d.Doubt = engine.OutcomeNotEvaluable, "60 % of the requests wait, and whether the slots are the limit cannot be told"
				s.Live, s.Quiet, s.Iterations = &d, "Not evaluable: too little is known", nil
			}),
			[]string{"▲ not judged Not evaluable", "open 60 % of the requests wait", "rooftop doctor"}, []string{"● ok Not"},
		},
		{
			"a gain of which only a bound is known", change(t, "nogpu", func(s *loop.Snapshot) {
				advice := *s.Advice
				advice.Predicted = []engine.Prediction{{Metric: "generation_tokens_per_s", High: some(7.33)}, {Metric: "itl_mean_s", High: some(7.33)}}
				s.Advice, s.Iterations = &advice, nil
			}),
			[]string{"output 1,230 tok/s unknown until tried, at best +733 %", "ITL mean 13.0 ms unknown until tried, at worst +733 %"}, nil,
		},
		{
			"a change that gained nothing names the way back", change(t, "waiting", func(*loop.Snapshot) {}),
			[]string{"no gain: the next change replaces it"}, []string{"[r]"},
		},
		{
			"with a key where there is one", change(t, "waiting", func(s *loop.Snapshot) { s.Can[loop.CommandRevert] = loop.Availability{OK: true} }),
			[]string{"no gain: [r] reverts it"}, nil,
		},
		{
			"all was tried", change(t, "waiting", func(s *loop.Snapshot) { s.Advice, s.Quiet = nil, "Everything that was recommended has been tried." }),
			[]string{"nothing left Everything that was recommended has been tried.", "[m] measures again"}, []string{"expect"},
		},
		{
			"no load", snapshotNamed(t, "idle"),
			[]string{"Waiting for load", "Output 0 tok/s", "Running 0 of", "TTFT p99 –"}, []string{"● ok", "warn"},
		},
		{
			"no ceiling without a GPU, and the flag that gives one", snapshotNamed(t, "nogpu"),
			[]string{"No ceiling: needs the GPU", "--gpu"}, []string{"achievable"},
		},
		{
			"ceilings that were overrun are not shown", change(t, "waiting", func(s *loop.Snapshot) {
				d := *s.Live
				d.Ceiling.Impossible = "1,900 tok/s are more than this hardware can do"
				s.Live = &d
			}),
			[]string{"misread: 1,900 tok/s"}, []string{"achievable"},
		},
		{
			"a remedy that is no flag has nobody type a command", change(t, "waiting", func(s *loop.Snapshot) {
				s.Advice = &engine.Recommendation{Finding: engine.LowPrefixReuse, Fix: engine.Fix{Kind: engine.KindClient, Command: "Put shared instructions first", Why: "Nothing is shared."}}
			}),
			[]string{"Put shared instructions first", "fix by client changes; no flag helps"}, []string{"[a]", "[y]", "rooftop notices"},
		},
		{
			"the end", snapshotNamed(t, "finished"),
			[]string{"Output +88 % over the whole run, in 2 restarts"}, nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := drawn(now, c.s, unicodeLook(), 80, 21)
			text := words(got)
			for _, want := range c.says {
				if !strings.Contains(text, want) {
					t.Errorf("%q is missing", want)
				}
			}
			for _, not := range c.not {
				if strings.Contains(text, not) {
					t.Errorf("%q is there", not)
				}
			}
			if t.Failed() {
				t.Log("\n" + got)
			}
		})
	}
}

// TestOldFiguresAreMuted checks that outdated figures are not drawn as current.
func TestOldFiguresAreMuted(t *testing.T) {
	muted := func(name string) (figures, others bool) {
		c := cell.NewCanvas(120, 26)
		now(snapshotNamed(t, name), unicodeLook(), 120).Draw(c.Pane(), 0)
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
	s := *snapshotNamed(t, "late")
	s.Sources = slices.Clone(s.Sources)
	s.Sources[0].Last = s.Now - 9*time.Second
	if got := drawn(now, &s, unicodeLook(), 120, 26); !strings.Contains(got, "9 s old") {
		t.Errorf("no age in\n%s", got)
	}
}

// TestViewsKeepToTheirPane draws every state at various sizes into the middle of a canvas. Nothing
// is written outside the pane, and drawing again gives the same result.
func TestViewsKeepToTheirPane(t *testing.T) {
	const margin = 3
	sizes := [][2]int{{1, 1}, {2, 9}, {9, 2}, {17, 7}, {40, 8}, {58, 13}, {60, 5}, {79, 21}, {80, 21}, {99, 30}, {100, 23}, {100, 24}, {119, 26}, {169, 36}, {170, 37}, {230, 70}}
	for name, content := range map[string]contentOf{"now": now, "evidence": evidence, "machine": machine, "log": journal} {
		for i, f := range fixtures() {
			s := cmp.Or(f.s, &loop.Snapshot{})
			for _, u := range []*frame.Settings{unicodeLook(), {Glyphs: cell.ASCII(), Filter: "kv"}} {
				for j, size := range sizes {
					if !longtest.Tests && (i+j)%5 != 0 {
						continue // each state has a fifth of the sizes, and each size a fifth of the states
					}
					c := cell.NewCanvas(size[0]+2*margin, size[1]+2*margin)
					if u.Glyphs.ASCII {
						c.ASCII()
					}
					c.Pane().Fill(cell.Bad, "@")
					inside := c.Pane().Sub(margin, margin, size[0], size[1])
					inside.Fill(cell.Body, " ")
					shown := content(s, u, size[0])
					shown.Draw(inside, 0)
					lines := shown.Lines(size[1])
					got := c.Plain()
					inside.Fill(cell.Bad, "@")
					if all := c.Plain(); strings.Trim(all, "@\n") != "" {
						t.Fatalf("%s %s %v writes beside its pane:\n%s", name, f.name, size, got)
					}
					if lines < 0 || f.s != nil && f.s.Attached && size[0] > 20 && size[1] > 4 && strings.Trim(got, "@ \n") == "" {
						t.Fatalf("%s %s %v: %d lines, nothing drawn", name, f.name, size, lines)
					}
				}
			}
		}
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
				if got := drawn(now, s, unicodeLook(), w, h); !strings.Contains(words(got), c.says) {
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
	if got := drawn(now, s, unicodeLook(), 80, 21); !strings.Contains(got, "Finding 5") {
		t.Errorf("the finding that is recommended is not listed:\n%s", got)
	}
}

// TestWithoutLoadNothingIsCollected checks that the time of the figures is not called a progress.
func TestWithoutLoadNothingIsCollected(t *testing.T) {
	if got := words(drawn(now, snapshotNamed(t, "idle"), unicodeLook(), 120, 27)); !strings.Contains(got, "last 20 s") || strings.Contains(got, "so far") {
		t.Error(got)
	}
}

func TestLasting(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0 s", 8400 * time.Millisecond: "8 s", 99 * time.Second: "99 s", 119 * time.Second: "1 min", time.Hour: "1 h", 125 * time.Minute: "2 h 5 min", 80 * time.Hour: "3 days",
	} {
		if got := strings.ReplaceAll(lasting(d), "\u00a0", " "); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
	}
}

func BenchmarkNow(b *testing.B) {
	for _, size := range [][2]int{{80, 21}, {200, 55}} {
		b.Run(fmt.Sprintf("%dx%d", size[0], size[1]), func(b *testing.B) {
			s, u := snapshotNamed(b, "waiting"), unicodeLook()
			b.ReportAllocs()
			for b.Loop() {
				now(s, u, size[0]).Draw(cell.NewCanvas(size[0], size[1]).Pane(), 0)
			}
		})
	}
}

func BenchmarkEvidence(b *testing.B) {
	s, u := snapshotNamed(b, "waiting"), unicodeLook()
	b.ReportAllocs()
	for b.Loop() {
		evidence(s, u, 200).Draw(cell.NewCanvas(200, 55).Pane(), 0)
	}
}
