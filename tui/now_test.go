package tui

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// drawing is a view's drawing.
type drawing func(cell.Pane, *engine.Snapshot, *look) int

// drawn is a view's plain text at a size.
func drawn(draw drawing, s *engine.Snapshot, u *look, w, h int) string {
	c := cell.NewCanvas(w, h)
	if u.glyphs.ASCII {
		c.ASCII()
	}
	draw(c.Pane(), s, u)
	return c.Plain()
}

func unicodeLook() *look { return &look{glyphs: cell.Unicode()} }

// words are a text's words, as one line: where lines break does not matter.
func words(s string) string {
	frame := strings.NewReplacer("│", " ", "╭", " ", "╮", " ", "╰", " ", "╯", " ", "─", " ")
	return strings.Join(strings.Fields(frame.Replace(s)), " ")
}

// change returns a snapshot made from one of the fixtures.
func change(t testing.TB, name string, by func(s *engine.Snapshot)) *engine.Snapshot {
	t.Helper()
	s := *snapshotNamed(t, name)
	by(&s)
	return &s
}

// TestNowSays holds what a person has to read at 80x24 in each state against what
// is there: no colour tells it.
func TestNowSays(t *testing.T) {
	verdict := func(d engine.Direction, classic engine.Direction) func(s *engine.Snapshot) {
		return func(s *engine.Snapshot) {
			it := s.Iterations[len(s.Iterations)-1]
			delta := *it.Delta
			delta.Direction, delta.Reason, delta.Classic, delta.ClassicReason = d, "output +83 %", classic, "efficiency per running request -28.5 points"
			it.Delta, it.Load = &delta, nil
			s.Iterations = []engine.Iteration{it}
		}
	}
	for _, c := range []struct {
		name string
		s    *engine.Snapshot
		says []string
		not  []string
	}{
		{
			"a recommendation that rooftop cannot make", snapshotNamed(t, "waiting"),
			[]string{"Seat saturation", "all 16 seats taken", "--max-num-seqs 16 → 40", "why All 16 seats are taken", "expect output", "tok/s +1", "price time between tokens", "command vllm serve", "[y] copy the command", "[s] another", "rooftop notices", "15.9 of 16", "Waiting 24", "achievable", "ideal", "bound by reading the weights"},
			[]string{"[a]", "so far"},
		},
		{
			"one that it can make", change(t, "waiting", func(s *engine.Snapshot) { s.Can[engine.CommandApply] = engine.Availability{OK: true} }),
			[]string{"[a] apply", "[y] copy"}, []string{"rooftop notices"},
		},
		{
			"more than good software is taken to reach", change(t, "waiting", func(s *engine.Snapshot) {
				live := *s.Live
				o := *live.Ceiling.Physical
				o.AchievableTokensPerS = some(1000)
				live.Ceiling.Physical, s.Live = &o, &live
			}),
			[]string{"123 %, above achievable (est), bound by reading the weights"}, []string{"123 % of"},
		},
		{
			"what there was nothing of before or after", change(t, "waiting", func(s *engine.Snapshot) {
				it := s.Iterations[len(s.Iterations)-1]
				delta := *it.Delta
				delta.Metrics = slices.Clone(delta.Metrics)
				for i := range delta.Metrics {
					if delta.Metrics[i].Name == "waiting_mean" {
						delta.Metrics[i].Before.Value, delta.Metrics[i].After.Value = some(0), some(0)
					}
				}
				it.Delta = &delta
				s.Iterations, s.Advice, s.Firm = []engine.Iteration{it}, nil, false
			}),
			[]string{"Change 2", "running 15.9 → 15.9"}, []string{"waiting 0 → 0"},
		},
		{
			"a baseline under way", snapshotNamed(t, "baseline"),
			[]string{"Measuring the baseline", "9 of 20 s", "Recommendation so far", "firm once the baseline is measured", "Seat saturation"},
			[]string{"Change 1"},
		},
		{
			"a change under way is held against what was before", snapshotNamed(t, "measuring"),
			[]string{"Measuring the change", "12 of 20 s", "before → so far", "You changed --max-num-seqs 8 → 16 as recommended", "output 651 → 1,230 tok/s +88 %"},
			[]string{"held", "BETTER", "Recommendation"},
		},
		{
			"warm-up shows nothing of the configuration before", change(t, "settling", func(s *engine.Snapshot) { s.Live = nil }),
			[]string{"Settling", "6 of 30 s"}, []string{"Findings", "Ceiling", "Seat saturation"},
		},
		{
			"better, and the classic direction beside it", change(t, "waiting", verdict(engine.Better, engine.Worse)),
			[]string{"● BETTER output +83 %", "Classic: worse, efficiency per running request −28.5 points"}, nil,
		},
		{
			"where both directions agree only one is named", change(t, "waiting", verdict(engine.Better, engine.Better)),
			[]string{"● BETTER"}, []string{"lassic"},
		},
		{
			"other load stands beside the delta", change(t, "healthy", func(*engine.Snapshot) {}),
			[]string{"= PLATEAU", "▲ other load: prompts were 9 % longer"}, nil,
		},
		{
			"worse says what each answer will do", snapshotNamed(t, "worse"),
			[]string{"[r] revert", "[c] continue", "The baseline stays as it was", "it becomes the baseline", "✖ WORSE", "−73 %", "TTFT p99"},
			[]string{"Recommendation", "expect"},
		},
		{
			"an answer that is not there says why", change(t, "worse", func(s *engine.Snapshot) {
				s.Can[engine.CommandRevert] = engine.Availability{Why: "the old command is not known"}
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
			"nothing could be judged", change(t, "healthy", func(s *engine.Snapshot) {
				d := *s.Live
				d.Outcome, d.Doubt = engine.OutcomeNotEvaluable, "60 % of the requests wait, and whether the seats are the limit cannot be told"
				s.Live, s.Quiet, s.Iterations = &d, "Not evaluable: too little is known", nil
			}),
			[]string{"▲ not judged Not evaluable", "open 60 % of the requests wait", "rooftop doctor"}, []string{"● ok Not"},
		},
		{
			"a gain of which only a bound is known", change(t, "nogpu", func(s *engine.Snapshot) {
				advice := *s.Advice
				advice.Predicted = []engine.Prediction{{Metric: "generation_tokens_per_s", High: some(7.33)}, {Metric: "itl_mean_s", High: some(7.33)}}
				s.Advice, s.Iterations = &advice, nil
			}),
			[]string{"output 1,230 tok/s → unknown, at best +733 %", "ITL mean 13.0 ms → unknown, at worst +733 %"}, nil,
		},
		{
			"a change that gained nothing names the way back", change(t, "waiting", func(*engine.Snapshot) {}),
			[]string{"no gain: goes out with the next change"}, []string{"[r]"},
		},
		{
			"with a key where there is one", change(t, "waiting", func(s *engine.Snapshot) { s.Can[engine.CommandRevert] = engine.Availability{OK: true} }),
			[]string{"no gain: [r] puts it back"}, nil,
		},
		{
			"all was tried", change(t, "waiting", func(s *engine.Snapshot) { s.Advice, s.Quiet = nil, "Everything that was recommended has been tried." }),
			[]string{"nothing left Everything that was recommended has been tried.", "[m] measures again"}, []string{"expect"},
		},
		{
			"no load", snapshotNamed(t, "idle"),
			[]string{"Waits for load", "Output 0 tok/s", "Running 0 of", "TTFT p99 –"}, []string{"● ok", "warn"},
		},
		{
			"no ceiling without a GPU, and the flag that gives one", snapshotNamed(t, "nogpu"),
			[]string{"No ceiling: needs the GPU", "--gpu"}, []string{"achievable"},
		},
		{
			"ceilings that were overrun are not shown", change(t, "waiting", func(s *engine.Snapshot) {
				d := *s.Live
				d.Ceiling.Impossible = "1,900 tok/s are more than this hardware can do"
				s.Live = &d
			}),
			[]string{"misread: 1,900 tok/s"}, []string{"achievable"},
		},
		{
			"a remedy that is no flag has nobody type a command", change(t, "waiting", func(s *engine.Snapshot) {
				s.Advice = &engine.Recommendation{Finding: engine.LowPrefixReuse, Fix: engine.Fix{Kind: engine.KindClient, Command: "Put shared instructions first", Why: "Nothing is shared."}}
			}),
			[]string{"Put shared instructions first", "who the clients of this server"}, []string{"[a]", "[y]", "rooftop notices"},
		},
		{
			"the end", snapshotNamed(t, "finished"),
			[]string{"Output +88 % over the whole run, in 2 restarts"}, nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := drawn(drawNow, c.s, unicodeLook(), 80, 21)
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

// TestOldFiguresAreMuted: nothing measured is drawn as of now when it is not.
func TestOldFiguresAreMuted(t *testing.T) {
	muted := func(name string) (figures, others bool) {
		c := cell.NewCanvas(120, 26)
		drawNow(c.Pane(), snapshotNamed(t, name), unicodeLook())
		figures = true
		c.Render(func(token cell.Token, text string) string {
			switch {
			case strings.Contains(text, "1,230"):
				figures = figures && (token == cell.Muted || token == cell.Baseline || token == cell.Trial || token == cell.Body)
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
	if got := drawn(drawNow, &s, unicodeLook(), 120, 26); !strings.Contains(got, "9 s old") {
		t.Errorf("no age in\n%s", got)
	}
}

// TestViewsKeepToTheirPane draws every state at every kind of size into the middle
// of a sheet: nothing is written beside the pane, and what was written is there
// again at the next drawing.
func TestViewsKeepToTheirPane(t *testing.T) {
	const margin = 3
	sizes := [][2]int{{1, 1}, {2, 9}, {9, 2}, {17, 7}, {40, 8}, {58, 13}, {60, 5}, {79, 21}, {80, 21}, {99, 30}, {100, 23}, {100, 24}, {119, 26}, {169, 36}, {170, 37}, {230, 70}}
	for name, draw := range map[string]drawing{"now": drawNow, "evidence": drawEvidence, "machine": drawMachine, "log": drawLog} {
		for _, f := range fixtures() {
			for _, u := range []*look{unicodeLook(), {glyphs: cell.ASCII(), filter: "kv"}} {
				for _, size := range sizes {
					c := cell.NewCanvas(size[0]+2*margin, size[1]+2*margin)
					if u.glyphs.ASCII {
						c.ASCII()
					}
					c.Pane().Fill(cell.Bad, "@")
					inside := c.Pane().Sub(margin, margin, size[0], size[1])
					inside.Fill(cell.Body, " ")
					lines := draw(inside, f.s, u)
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

// TestNowNeverHidesTheAnswer: at every size that the screen is drawn at, what is to
// be done can be read.
func TestNowNeverHidesTheAnswer(t *testing.T) {
	for _, c := range []struct{ state, says string }{
		{"waiting", "--max-num-seqs 16 → 40"}, {"baseline", "--max-num-seqs 8 → 16"}, {"worse", "[c] continue"}, {"reverting", "--max-num-seqs"}, {"healthy", "Nothing to change"}, {"measuring", "12 of 20 s"}, {"long", "--max-num-seqs 16 → 40"},
	} {
		s := snapshotNamed(t, c.state)
		for w := 58; w <= 240; w += 13 {
			for h := 9; h <= 70; h += 6 {
				if got := drawn(drawNow, s, unicodeLook(), w, h); !strings.Contains(words(got), c.says) {
					t.Fatalf("%s at %dx%d without %q:\n%s", c.state, w, h, c.says, got)
				}
			}
		}
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
				drawNow(cell.NewCanvas(size[0], size[1]).Pane(), s, u)
			}
		})
	}
}

func BenchmarkEvidence(b *testing.B) {
	s, u := snapshotNamed(b, "waiting"), unicodeLook()
	b.ReportAllocs()
	for b.Loop() {
		drawEvidence(cell.NewCanvas(200, 55).Pane(), s, u)
	}
}
