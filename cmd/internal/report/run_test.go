package report

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// scaledSeats is the seats fixture with its output and queue changed.
func scaledSeats(seats int, output, ttft float64) *engine.Diagnosis {
	d := states()["seats"]()
	d.Facts.MaxNumSeqs = engine.Know(seats, engine.FromCmdline, "")
	d.Facts.Launch = launchWith(seats)
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

func launchWith(seats int) string {
	return fmt.Sprintf("vllm serve nvidia/Llama-3.3-70B-Instruct-FP4 --port 8888 --max-num-seqs %d --gpu-memory-utilization 0.9", seats)
}

func seatsChange(from, to int) []engine.Change {
	return []engine.Change{{Flag: "--max-num-seqs", From: fmt.Sprint(from), To: fmt.Sprint(to)}}
}

// iteration is a change of the seats that came to an end.
func iteration(n int, from, to int, before, after *engine.Diagnosis, end engine.IterationEnd) engine.Iteration {
	at := time.Duration(n) * time.Minute
	it := engine.Iteration{
		N: n, At: at, Up: at + 10*time.Second, Settled: at + 20*time.Second, End: end, Noticed: engine.SomethingElse,
		Changes: seatsChange(from, to), Command: launchWith(to), Before: before, After: after,
		Text: fmt.Sprintf("you changed --max-num-seqs %d → %d", from, to),
	}
	if after != nil {
		d := engine.Compare(before, after)
		it.Delta = &d
	}
	return it
}

// tuned is a run with a change that was kept and one that was put back.
func tuned() *engine.Snapshot {
	first, second, third := scaledSeats(128, 3297, 1), scaledSeats(256, 5980, .1), scaledSeats(32, 1120, 3)
	good := iteration(1, 128, 256, first, second, engine.IterationKept)
	good.Noticed, good.Predicted = engine.AsRecommended, first.Recommendation.Predicted
	second.Recommendation, second.Outcome = nil, engine.OutcomeHealthy
	s := &engine.Snapshot{
		Seq: 900, Now: 4*time.Minute + 12*time.Second, Started: first.Started, Version: "0.1.0", Phase: engine.PhaseDone,
		Attached: true, Target: first.Target, Facts: first.Facts, Missing: first.Missing, Launch: launchWith(256),
		Live: second, Baseline: second, Firm: true, Quiet: "nothing is left to recommend",
		Iterations: []engine.Iteration{good, iteration(2, 256, 32, second, third, engine.IterationReverted)},
		Noise:      []float64{-.012},
		Sources: []engine.SourceState{
			{Name: "metrics", State: engine.SourceFresh, Last: 252 * time.Second, Took: 4 * time.Millisecond, Interval: 250 * time.Millisecond},
			{Name: "gpu", Why: "no NVML library on this machine"},
			{Name: "processes", State: engine.SourceFresh, Last: 251 * time.Second},
		},
		Finished: &engine.Finished{Reason: "nothing is left to recommend", Command: launchWith(256), Gain: stat.Some(.8138), Restarts: 3},
	}
	s.Facts = second.Facts
	s.Baseline.Curve = curve()
	for i := range 126 {
		s.Points = append(s.Points, point(i))
	}
	s.Marks = []engine.Mark{
		{T: 60 * time.Second, Kind: engine.MarkDown, Text: "the server does not answer"},
		{T: 70 * time.Second, Kind: engine.MarkUp, Text: "the server is up"},
		{T: 70 * time.Second, Kind: engine.MarkChange, Text: "--max-num-seqs 128 → 256"},
		{T: 110 * time.Second, Kind: engine.MarkVerdict, Text: "better"},
		{T: 130 * time.Second, Kind: engine.MarkChange, Text: "--max-num-seqs 256 → 32"},
		{T: 190 * time.Second, Kind: engine.MarkChange, Text: "--max-num-seqs 32 → 256"},
	}
	s.Journal = []engine.Entry{
		{Seq: 1, T: 0, Kind: engine.EventAttached, Text: "attached to nvidia/Llama-3.3-70B-Instruct-FP4"},
		{Seq: 2, T: 110 * time.Second, Level: engine.LevelGood, Kind: engine.EventVerdict, Text: "change 1 is better: output +81 %"},
		{Seq: 3, T: 180 * time.Second, Level: engine.LevelBad, Kind: engine.EventVerdict, Text: "change 2 is worse: output −81 %"},
	}
	return s
}

// runWith makes the present server one with so many seats.
func runWith(s *engine.Snapshot, seats int) {
	s.Launch = launchWith(seats)
	s.Facts.MaxNumSeqs = engine.Know(seats, engine.FromCmdline, "")
}

// curve is what a model says of throughput against running requests.
func curve() *engine.Curve {
	c := &engine.Curve{Seats: stat.Some(256), Pool: stat.Some(570), Ridge: stat.Some(590), Now: engine.CurvePoint{Running: 255, Expected: 5980}}
	for n := 1.0; n <= 1024; n *= 2 {
		v := 60 * n / (1 + n/180)
		c.Points = append(c.Points, engine.CurvePoint{Running: n, Expected: v, Achievable: stat.Some(v * 1.2), Ideal: stat.Some(v * 1.9)})
	}
	return c
}

// point is the i-th window of the tuned run: output by configuration, gaps while the
// server is away.
func point(i int) engine.Point {
	t := time.Duration(i+1) * 2 * time.Second
	p := engine.Point{T: t}
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

// runs are the ways in which a run ends.
func runs() map[string]func() *engine.Snapshot {
	change := func(f func(*engine.Snapshot)) func() *engine.Snapshot {
		return func() *engine.Snapshot {
			s := tuned()
			f(s)
			return s
		}
	}
	return map[string]func() *engine.Snapshot{
		"tuned":   tuned,
		"piloted": piloted,
		"no-server": func() *engine.Snapshot {
			return &engine.Snapshot{
				Now: 40 * time.Second, Watch: "http://localhost:8000", AttachWhy: "connection refused", Phase: engine.PhaseDone,
				Finished: &engine.Finished{ExitCode: 5, Reason: "interrupted"},
			}
		},
		"nothing-measured": change(func(s *engine.Snapshot) {
			s.Now, s.Baseline, s.Iterations, s.Live, s.Points, s.Marks = 9*time.Second, nil, nil, nil, nil, nil
			s.Quiet, s.Firm, s.Journal = "", false, s.Journal[:1]
			s.Progress.Text = "4 of 10 windows"
			s.Finished = &engine.Finished{ExitCode: 4, Reason: "quit"}
		}),
		"nothing-changed": change(func(s *engine.Snapshot) {
			s.Baseline = s.Iterations[0].Before
			s.Live, s.Advice, s.Quiet, s.Iterations, s.Launch = s.Baseline, s.Baseline.Recommendation, "", nil, launchWith(128)
			s.Finished = &engine.Finished{ExitCode: 3, Reason: "quit with a recommendation open", Command: launchWith(128)}
		}),
		"not-judged": change(func(s *engine.Snapshot) {
			s.Baseline = s.Iterations[0].Before
			s.Live, s.Advice, s.Iterations, s.Launch = s.Baseline, nil, nil, ""
			s.Quiet = "nothing can be judged: 88 % of the requests wait, and whether the seats are the limit cannot be told: max_num_seqs is not known: give -m; (est) running stays at 4 while requests wait: that may be the seats; give -m 4 to have it judged"
			s.Finished = &engine.Finished{ExitCode: 4, Reason: s.Quiet}
		}),
		"left-worse": change(func(s *engine.Snapshot) {
			s.Iterations[1].End = engine.IterationOpen
			runWith(s, 32)
			s.Finished = &engine.Finished{Reason: "quit", Command: launchWith(256), Gain: stat.Some(.8138), Restarts: 2}
		}),
		"left-unjudged": change(func(s *engine.Snapshot) {
			it := &s.Iterations[1]
			it.End, it.Delta, it.After, it.Settled = engine.IterationOpen, nil, nil, 0
			runWith(s, 32)
			s.Finished = &engine.Finished{ExitCode: 130, Reason: "interrupted while change 2 was measured", Command: launchWith(256), Gain: stat.Some(.8138), Restarts: 2}
		}),
		"server-gone": change(func(s *engine.Snapshot) {
			it := &s.Iterations[1]
			it.End, it.Delta, it.After, it.Up, it.Settled = engine.IterationOpen, nil, nil, 0, 0
			s.Launch, s.Facts = "", engine.Facts{}
			s.Sources[0] = engine.SourceState{Name: "metrics", State: engine.SourceFailing, Why: "connection refused", Failures: 40}
			s.Finished = &engine.Finished{Reason: "quit while the server was away", Command: launchWith(256), Gain: stat.Some(.8138), Restarts: 1}
		}),
		"no-gain": change(func(s *engine.Snapshot) {
			s.Iterations[1] = iteration(2, 256, 300, s.Baseline, scaledSeats(300, 6010, .1), engine.IterationNoGain)
			runWith(s, 300)
		}),
		"continued": change(func(s *engine.Snapshot) {
			s.Iterations[1].End = engine.IterationContinued
			s.Baseline = s.Iterations[1].After
			runWith(s, 32)
			s.Advice, s.Quiet = s.Baseline.Recommendation, ""
			s.Finished = &engine.Finished{ExitCode: 3, Reason: "quit", Command: launchWith(32), Gain: stat.Some(-.66), Restarts: 2}
		}),
		"put-back-unseen": change(func(s *engine.Snapshot) { // its end was told before it was put back
			s.Iterations[1] = iteration(2, 256, 300, s.Baseline, scaledSeats(300, 6010, .1), engine.IterationNoGain)
		}),
		"unreadable": change(func(s *engine.Snapshot) {
			it := &s.Iterations[1]
			it.Noticed, it.Changes, it.End, it.Text = engine.Unreadable, nil, engine.IterationOpen, "restarted; its launch command cannot be read here"
			s.Launch, s.Finished.Command = "", ""
		}),
		"simulated": change(func(s *engine.Snapshot) { s.Target.Simulated = true }),
		"under-way": change(func(s *engine.Snapshot) { s.Finished, s.Phase, s.Kept = nil, engine.PhaseWaiting, launchWith(256) }),
		"many": change(func(s *engine.Snapshot) {
			for n := 3; n < 40; n++ {
				s.Iterations = append(s.Iterations, iteration(n, 256, 256+n, s.Baseline, scaledSeats(256+n, 6010, .1), engine.IterationNoGain))
			}
			runWith(s, 295)
		}),
		"hostile": hostileRun,
	}
}

// hostileRun is a run whose server writes what it can to break out of a page.
func hostileRun() *engine.Snapshot {
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
	s.Journal = append(s.Journal, engine.Entry{Seq: 4, T: time.Second, Text: evil})
	s.Processes = []engine.Process{{PID: 1, Role: evil, Name: evil, State: evil}}
	d := *s.Baseline
	d.Findings = append([]engine.Finding{{ID: "evil", Title: evil, State: engine.Fired, Significant: true, Reason: evil, Evidence: []engine.Evidence{{Name: evil, Text: evil, Unit: evil}}}}, d.Findings...)
	d.Recommendation = &engine.Recommendation{Finding: "evil", Fix: engine.Fix{Kind: engine.KindFlag, Flag: evil, From: evil, To: evil, Command: evil, Why: evil}}
	s.Baseline, s.Live, s.Advice = &d, &d, d.Recommendation
	return s
}

func TestRunGoldens(t *testing.T) {
	files := []string{"/home/ada/.local/state/rooftop/runs/20260204-190903/report.html", "/home/ada/.local/state/rooftop/runs/20260204-190903/report.json"}
	for _, name := range slices.Sorted(maps.Keys(runs())) {
		t.Run(name, func(t *testing.T) {
			var b bytes.Buffer
			if err := WriteRun(&b, runs()[name](), files, Options{Width: 80}); err != nil {
				t.Fatal(err)
			}
			checkWidth(t, b.String(), 80)
			if n := strings.Count(b.String(), "\n"); n > 24 {
				t.Errorf("%d lines, want at most 24", n)
			}
			if name != "hostile" {
				golden(t, "run-"+name+".txt", b.Bytes())
			}
		})
	}
}

// Nothing that a server writes reaches the terminal as a control character, and no
// width or length of texts makes the report longer than a screen.
func TestRunFitsAScreen(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(runs())) {
		for _, o := range []Options{{Width: 40}, {Width: 60, ASCII: true}, {Width: 80, Color: true}, {Width: 200}} {
			var b bytes.Buffer
			s := runs()[name]()
			if err := WriteRun(&b, s, []string{strings.Repeat("/long", 20), strings.Repeat("/long", 19) + "/other"}, o); err != nil {
				t.Fatal(err)
			}
			if n := strings.Count(b.String(), "\n"); n > 24 && o.Width >= 60 {
				t.Errorf("%s at %d: %d lines:\n%s", name, o.Width, n, b.String())
			}
			if o.Color {
				continue
			}
			for l := range strings.Lines(b.String()) {
				if n := width(strings.TrimSuffix(l, "\n")); n > o.width() && !strings.HasPrefix(l, "/long") {
					t.Errorf("%s: %d cells, want at most %d: %q", name, n, o.width(), l)
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
