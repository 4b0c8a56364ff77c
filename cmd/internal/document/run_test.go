package document_test

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// scaledSlots is the slots fixture with its output and queue scaled.
func scaledSlots(slots int, output, ttft float64) *engine.Diagnosis {
	d := states()["slots"]()
	d.Facts.MaxNumSeqs = engine.Know(slots, engine.FromCmdline, "")
	d.Facts.Launch = launchWith(slots)
	for i := range d.Measured {
		switch q := &d.Measured[i]; q.Name {
		case "generation_tokens_per_s":
			q.Value = stat.Some(output)
		case "ttft_p99_s", "ttft_mean_s":
			q.Value = q.Value.Times(ttft)
		}
	}
	return d
}

func launchWith(slots int) string {
	return fmt.Sprintf("vllm serve nvidia/Llama-3.3-70B-Instruct-FP4 --port 8888 --max-num-seqs %d --gpu-memory-utilization 0.9", slots)
}

func slotsChange(from, to int) []engine.Change {
	return []engine.Change{{Flag: "--max-num-seqs", From: fmt.Sprint(from), To: fmt.Sprint(to)}}
}

// iteration is a finished change of the slots.
func iteration(n int, from, to int, before, after *engine.Diagnosis, end loop.IterationEnd) loop.Iteration {
	at := time.Duration(n) * time.Minute
	it := loop.Iteration{
		N: n, At: at, Up: at + 10*time.Second, Settled: at + 20*time.Second, End: end, Noticed: loop.SomethingElse,
		Changes: slotsChange(from, to), Command: launchWith(to), Before: before, After: after,
		Text: fmt.Sprintf("you changed --max-num-seqs %d → %d", from, to),
	}
	if after != nil {
		d := effect.Compare(before, after)
		it.Delta = &d
	}
	return it
}

// tuned is a run with a kept change and a reverted one.
func tuned() *loop.Snapshot {
	first, second, third := scaledSlots(128, 3297, 1), scaledSlots(256, 5980, .1), scaledSlots(32, 1120, 3)
	good := iteration(1, 128, 256, first, second, loop.IterationKept)
	good.Noticed, good.Predicted = loop.AsRecommended, first.Recommendation.Predicted
	second.Recommendation, second.Outcome = nil, engine.OutcomeHealthy
	s := &loop.Snapshot{
		Seq: 900, Now: 4*time.Minute + 12*time.Second, Started: first.Started, Version: "0.1.0", Phase: loop.PhaseDone,
		Attached: true, Target: first.Target, Facts: first.Facts, Missing: first.Missing, Launch: launchWith(256),
		Live: second, Baseline: second, Firm: true, Quiet: "nothing is left to recommend",
		Iterations: []loop.Iteration{good, iteration(2, 256, 32, second, third, loop.IterationReverted)},
		Noise:      []float64{-.012},
		Sources: []loop.SourceState{
			{Name: "metrics", State: loop.SourceFresh, Last: 252 * time.Second, Took: 4 * time.Millisecond, Interval: 250 * time.Millisecond},
			{Name: "gpu", Why: "no NVML library on this machine"},
			{Name: "processes", State: loop.SourceFresh, Last: 251 * time.Second},
		},
		Finished: &loop.Finished{Reason: "nothing is left to recommend", Command: launchWith(256), Gain: stat.Some(.8138), Restarts: 3},
	}
	s.Facts = second.Facts
	s.Baseline.Curve = curve()
	for i := range 126 {
		s.Points = append(s.Points, point(i))
	}
	s.Marks = []loop.Mark{
		{T: 60 * time.Second, Kind: loop.MarkDown, Text: "the server does not answer"},
		{T: 70 * time.Second, Kind: loop.MarkUp, Text: "the server is up"},
		{T: 70 * time.Second, Kind: loop.MarkChange, Text: "--max-num-seqs 128 → 256"},
		{T: 110 * time.Second, Kind: loop.MarkVerdict, Text: "better"},
		{T: 130 * time.Second, Kind: loop.MarkChange, Text: "--max-num-seqs 256 → 32"},
		{T: 190 * time.Second, Kind: loop.MarkChange, Text: "--max-num-seqs 32 → 256"},
	}
	s.Journal = []loop.Entry{
		{Seq: 1, T: 0, Kind: loop.EventAttached, Text: "attached to nvidia/Llama-3.3-70B-Instruct-FP4"},
		{Seq: 2, T: 110 * time.Second, Level: loop.LevelGood, Kind: loop.EventVerdict, Text: "change 1 is better: output +81 %"},
		{Seq: 3, T: 180 * time.Second, Level: loop.LevelBad, Kind: loop.EventVerdict, Text: "change 2 is worse: output −81 %"},
	}
	return s
}

// runWith sets the slots of the current server.
func runWith(s *loop.Snapshot, slots int) {
	s.Launch = launchWith(slots)
	s.Facts.MaxNumSeqs = engine.Know(slots, engine.FromCmdline, "")
}

// curve is a modelled curve of throughput against running requests.
func curve() *engine.Curve {
	c := &engine.Curve{Slots: stat.Some(256), Pool: stat.Some(570), Ridge: stat.Some(590), Now: engine.CurvePoint{Running: 255, Expected: 5980}}
	for n := 1.0; n <= 1024; n *= 2 {
		v := 60 * n / (1 + n/180)
		c.Points = append(c.Points, engine.CurvePoint{Running: n, Expected: v, Achievable: stat.Some(v * 1.2), Ideal: stat.Some(v * 1.9)})
	}
	return c
}

// point is the i-th window of the tuned run: output by configuration, with gaps during outages.
func point(i int) loop.Point {
	t := time.Duration(i+1) * 2 * time.Second
	p := loop.Point{T: t}
	rate, ttft := 3297.0, 78.0
	switch {
	case t > 60*time.Second && t <= 70*time.Second, t > 130*time.Second && t <= 136*time.Second:
		return p
	case t > 190*time.Second, t > 70*time.Second && t <= 130*time.Second:
		p.Iteration, rate, ttft = 1, 5980, 7.8
	case t > 136*time.Second:
		p.Iteration, rate, ttft = 2, 1120, 230
	}
	ripple := 1 + .03*float64(i%5-2)
	p.Tokens, p.Running, p.Waiting = stat.Some(rate*ripple), stat.Some(128), stat.Some(127)
	p.TTFT = stat.Some(ttft * ripple)
	return p
}

// runs are runs with different ends.
func runs() map[string]func() *loop.Snapshot {
	change := func(f func(*loop.Snapshot)) func() *loop.Snapshot {
		return func() *loop.Snapshot {
			s := tuned()
			f(s)
			return s
		}
	}
	return map[string]func() *loop.Snapshot{
		"tuned":   tuned,
		"piloted": piloted,
		"no-server": func() *loop.Snapshot {
			return &loop.Snapshot{
				Now: 40 * time.Second, Watch: "http://localhost:8000", AttachWhy: "connection refused", Phase: loop.PhaseDone,
				Finished: &loop.Finished{ExitCode: 5, Reason: "interrupted"},
			}
		},
		"nothing-measured": change(func(s *loop.Snapshot) {
			s.Now, s.Baseline, s.Iterations, s.Live, s.Points, s.Marks = 9*time.Second, nil, nil, nil, nil, nil
			s.Quiet, s.Firm, s.Journal = "", false, s.Journal[:1]
			s.Progress.Text = "4 of 10 windows"
			s.Finished = &loop.Finished{ExitCode: 4, Reason: "quit"}
		}),
		"nothing-changed": change(func(s *loop.Snapshot) {
			s.Baseline = s.Iterations[0].Before
			s.Live, s.Advice, s.Quiet, s.Iterations, s.Launch = s.Baseline, s.Baseline.Recommendation, "", nil, launchWith(128)
			s.Finished = &loop.Finished{ExitCode: 3, Reason: "quit with a recommendation open", Command: launchWith(128)}
		}),
		"not-judged": change(func(s *loop.Snapshot) {
			s.Baseline = s.Iterations[0].Before
			s.Live, s.Advice, s.Iterations, s.Launch = s.Baseline, nil, nil, ""
			s.Quiet = "nothing can be judged: 88 % of the requests wait, and whether the slots are the limit is unknown: max_num_seqs is not known: give -m; (est) running stays at 4 while requests wait: that may be the slots; give -m 4 to have it judged"
			s.Finished = &loop.Finished{ExitCode: 4, Reason: s.Quiet}
		}),
		"left-worse": change(func(s *loop.Snapshot) {
			s.Iterations[1].End = loop.IterationOpen
			runWith(s, 32)
			s.Finished = &loop.Finished{Reason: "quit", Command: launchWith(256), Gain: stat.Some(.8138), Restarts: 2}
		}),
		"left-unjudged": change(func(s *loop.Snapshot) {
			it := &s.Iterations[1]
			it.End, it.Delta, it.After, it.Settled = loop.IterationOpen, nil, nil, 0
			runWith(s, 32)
			s.Finished = &loop.Finished{ExitCode: 130, Reason: "interrupted while change 2 was measured", Command: launchWith(256), Gain: stat.Some(.8138), Restarts: 2}
		}),
		"server-gone": change(func(s *loop.Snapshot) {
			it := &s.Iterations[1]
			it.End, it.Delta, it.After, it.Up, it.Settled = loop.IterationOpen, nil, nil, 0, 0
			s.Launch, s.Facts = "", engine.Facts{}
			s.Sources[0] = loop.SourceState{Name: "metrics", State: loop.SourceFailing, Why: "connection refused", Failures: 40}
			s.Finished = &loop.Finished{Reason: "quit while the server was away", Command: launchWith(256), Gain: stat.Some(.8138), Restarts: 1}
		}),
		"no-gain": change(func(s *loop.Snapshot) {
			s.Iterations[1] = iteration(2, 256, 300, s.Baseline, scaledSlots(300, 6010, .1), loop.IterationNoGain)
			runWith(s, 300)
		}),
		"continued": change(func(s *loop.Snapshot) {
			s.Iterations[1].End = loop.IterationContinued
			s.Baseline = s.Iterations[1].After
			runWith(s, 32)
			s.Advice, s.Quiet = s.Baseline.Recommendation, ""
			s.Finished = &loop.Finished{ExitCode: 3, Reason: "quit", Command: launchWith(32), Gain: stat.Some(-.66), Restarts: 2}
		}),
		"put-back-unseen": change(func(s *loop.Snapshot) { // its end was emitted before the revert
			s.Iterations[1] = iteration(2, 256, 300, s.Baseline, scaledSlots(300, 6010, .1), loop.IterationNoGain)
		}),
		"unreadable": change(func(s *loop.Snapshot) {
			it := &s.Iterations[1]
			it.Noticed, it.Changes, it.End, it.Text = loop.Unreadable, nil, loop.IterationOpen, "restarted; its launch command cannot be read here"
			s.Launch, s.Finished.Command = "", ""
		}),
		"simulated": change(func(s *loop.Snapshot) { s.Target.Simulated = true }),
		"under-way": change(func(s *loop.Snapshot) { s.Finished, s.Phase, s.Kept = nil, loop.PhaseWaiting, launchWith(256) }),
		"many": change(func(s *loop.Snapshot) {
			for n := 3; n < 40; n++ {
				s.Iterations = append(s.Iterations, iteration(n, 256, 256+n, s.Baseline, scaledSlots(256+n, 6010, .1), loop.IterationNoGain))
			}
			runWith(s, 295)
		}),
		"hostile": hostileRun,
	}
}

// hostileRun is a run whose server's texts try to break out of a page.
func hostileRun() *loop.Snapshot {
	s := tuned()
	evil := `</title><script>alert(1)</script><img src=x onerror=alert(2)>"'|` + "`\x1b]0;x\a\x1b[2J\u202e" + strings.Repeat("long ", 60)
	s.Target.Model, s.Target.URL, s.Target.EngineVersion = evil, "http://h/"+evil, evil
	s.Launch, s.Quiet, s.Watch = evil, evil, evil
	s.Finished.Command, s.Finished.Reason = evil, evil
	s.Notes, s.Missing = []string{evil}, []engine.Missing{{What: evil, Reason: evil, Effect: evil}}
	s.Facts.Model = engine.Know(evil, engine.FromMetrics, evil)
	s.Facts.Launch = evil
	for i := range s.Iterations {
		it := &s.Iterations[i]
		it.Text, it.Command, it.Load = evil, evil, []string{evil}
		it.Changes = append(it.Changes, engine.Change{Flag: evil, From: evil, To: evil})
	}
	for i := range s.Marks {
		s.Marks[i].Text = evil
	}
	s.Journal = append(s.Journal, loop.Entry{Seq: 4, T: time.Second, Text: evil})
	s.Processes = []loop.Process{{PID: 1, Role: evil, Name: evil, State: evil}}
	d := *s.Baseline
	d.Findings = append([]engine.Finding{{ID: "evil", Title: evil, State: engine.Fired, Significant: true, Reason: evil, Evidence: []engine.Evidence{{Name: evil, Text: evil, Unit: evil}}}}, d.Findings...)
	d.Recommendation = &engine.Recommendation{Finding: "evil", Fix: engine.Fix{Kind: engine.KindFlag, Flag: evil, From: evil, To: evil, Command: evil, Why: evil}}
	s.Baseline, s.Live, s.Advice = &d, &d, d.Recommendation
	return s
}

func TestRunGolden(t *testing.T) {
	files := []string{"/home/ada/.local/state/rooftop/runs/20260204-190903/report.html", "/home/ada/.local/state/rooftop/runs/20260204-190903/report.json"}
	var all bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(runs())) {
		if name == "hostile" {
			continue
		}
		fmt.Fprintf(&all, "=== %s\n", name)
		must(t, WriteRun(&all, runs()[name](), files, render.Options{Width: 80}))
	}
	golden(t, "run", all.String())
}

// No control character of a server reaches the terminal, and neither width nor length of texts makes the report longer
// than a screen.
func TestRunFitsAScreen(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(runs())) {
		for _, o := range []render.Options{{Width: 40}, {Width: 60, ASCII: true}, {Width: 80, Color: true}, {Width: 200}} {
			var b bytes.Buffer
			s := runs()[name]()
			must(t, WriteRun(&b, s, []string{strings.Repeat("/long", 20), strings.Repeat("/long", 19) + "/other"}, o))
			if n := strings.Count(b.String(), "\n"); n > 24 && o.Width >= 60 {
				t.Errorf("%s at %d: %d lines:\n%s", name, o.Width, n, b.String())
			}
			if o.Color {
				continue
			}
			for l := range strings.Lines(b.String()) {
				if n := cell.Width(strings.TrimSuffix(l, "\n")); n > o.Cells() && !strings.HasPrefix(l, "/long") {
					t.Errorf("%s: %d cells, want at most %d: %q", name, n, o.Cells(), l)
				}
			}
			for _, r := range b.String() {
				if r != '\n' && r < ' ' || r == '\u202e' || o.ASCII && r > 126 {
					t.Fatalf("%s: %q in the report", name, r)
				}
			}
		}
	}
}
