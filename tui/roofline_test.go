package tui

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/tui/chart"
)

func TestRooflineTells(t *testing.T) {
	for _, c := range []struct {
		state        string
		w, h         int
		want, absent []string
	}{
		{"waiting", 80, 21, []string{"bound by reading the weights, 81 % of a step (est)", "slots 16", "ridge 153", "◆ now", "○ advised", "(est)", "beyond the curve"}, []string{"No curve"}},
		{"waiting", 160, 40, []string{"--max-num-seqs 8 → 16: kept", "--max-num-batched-tokens unset → 8192: no gain", "the first baseline"}, nil},
		{"measuring", 80, 21, []string{"◆ now"}, []string{"advised"}},
		{"down", 80, 21, []string{"◆ last"}, []string{"◆ now"}},
		{"worse", 100, 35, []string{"--max-num-seqs 16 → 4: open"}, nil},
		{"nogpu", 80, 21, []string{"No curve of the hardware: needs the GPU: --gpu names it.", "windows", "slots 16", "◇ 1", "kept"}, []string{"ideal", "achievable", "ridge", "log scales"}},
		{"idle", 80, 21, []string{"Nothing was measured yet. rooftop is waiting for load: no tokens move."}, []string{"tok/s"}},
		{"empty", 80, 21, []string{"Nothing was measured yet."}, nil},
	} {
		t.Run(c.state, func(t *testing.T) {
			got := strings.Join(strings.Fields(drawn(rooflineOf, snapshotNamed(t, c.state), unicodeLook(), c.w, c.h)), " ")
			for _, s := range c.want {
				if !strings.Contains(got, s) {
					t.Errorf("lacks %q:\n%s", s, got)
				}
			}
			for _, s := range c.absent {
				if strings.Contains(got, s) {
					t.Errorf("has %q:\n%s", s, got)
				}
			}
		})
	}
}

func TestNoCurveNamesTheFlag(t *testing.T) {
	for _, c := range []struct {
		name string
		d    *engine.Diagnosis
		want string
	}{
		{"nothing measured", nil, "No curve: nothing was measured yet."},
		{"no reason", &engine.Diagnosis{Facts: engine.Facts{GPUKnown: true, ModelKnown: true}}, "No curve of the hardware: not computed."},
		{
			"unknown GPU", &engine.Diagnosis{Facts: engine.Facts{ModelKnown: true}, Ceiling: engine.Ceiling{PhysicalReason: "needs memory bandwidth of the GPU"}},
			"No curve of the hardware: needs memory bandwidth of the GPU. Start rooftop with --gpu NAME.",
		},
		{
			"unknown model", &engine.Diagnosis{Facts: engine.Facts{GPUKnown: true}, Ceiling: engine.Ceiling{PhysicalReason: "needs layer count of the model"}},
			"No curve of the hardware: needs layer count of the model. Start rooftop with --model NAME.",
		},
		{
			"both unknown", &engine.Diagnosis{Ceiling: engine.Ceiling{PhysicalReason: "needs much"}},
			"No curve of the hardware: needs much. Start rooftop with --gpu NAME and --model NAME.",
		},
		{
			"a CPU", &engine.Diagnosis{Facts: engine.Facts{Device: engine.Know("cpu", engine.FromServer, "")}, Ceiling: engine.Ceiling{PhysicalReason: "needs memory bandwidth of the GPU"}},
			"No curve of the hardware: the server runs on a CPU, which the model does not cover. Only measured points are shown.",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := tuning.NoCurve(c.d); got != c.want {
				t.Errorf("got %q\nwant %q", got, c.want)
			}
		})
	}
}

// The advised point is what the recommendation predicts, from the measurement that it comes from: 16 of 16
// slots in use become 40, whatever the latest windows have.
func TestAdvisedPoint(t *testing.T) {
	for name, live := range map[string]*engine.Diagnosis{"as the baseline": nil, "with less load": diagnosisAt(4, 0)} {
		s := *snapshotNamed(t, "waiting")
		if live != nil {
			s.Live = live
		}
		r := newRoofView(&s, unicodeLook())
		i := slices.IndexFunc(r.at, func(o operatingPoint) bool { return o.role == roleAdvised })
		if i < 0 {
			t.Fatalf("%s: there is none", name)
		}
		was := s.Baseline.Quantity("generation_tokens_per_s").Value.V
		if want := was * (1 + s.Advice.Predicted[0].Mid.V); math.Abs(r.at[i].tokens-want) > 1e-9*want {
			t.Errorf("%s: advised %v tok/s, want %v", name, r.at[i].tokens, want)
		}
		if want := s.Baseline.Quantity("running_mean").Value.V * 40 / 16; math.Abs(r.at[i].running-want) > 1e-9*want {
			t.Errorf("%s: advised at %v running, want %v", name, r.at[i].running, want)
		}
	}
}

// A cache of half the bytes has another curve: its point has no shares of this one.
func TestAdvisedPointOnANewCurve(t *testing.T) {
	s := *snapshotNamed(t, "waiting")
	advice := *s.Advice
	advice.Finding, advice.Flag, advice.From, advice.To = engine.KVPressure, "--kv-cache-dtype", "bf16", "fp8"
	s.Advice = &advice
	for _, row := range newRoofView(&s, unicodeLook()).rows() {
		if want := strings.Contains(row.name, "advised"); (row.text == "on a new curve (est)") != want {
			t.Errorf("%s: %q", row.name, row.text)
		}
	}
}

// After the load the curve and its points are those of the measurement that the advice comes from.
func TestRooflineAfterTheLoad(t *testing.T) {
	s := endedLoad(t, 16*time.Second)
	r := newRoofView(s, unicodeLook())
	if r.curve != s.Baseline.Curve {
		t.Error("the curve is not that of the baseline")
	}
	got := words(drawn(rooflineOf, s, unicodeLook(), 120, 27))
	for _, want := range []string{"◆ last", "○ advised", "from the baseline of"} {
		if !strings.Contains(got, want) {
			t.Errorf("the roofline lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "◆ now") {
		t.Errorf("the roofline has a point of now:\n%s", got)
	}
}

// What a request reads and what it holds of the pool are two numbers where prefixes are shared.
func TestRooflineNamesBothContexts(t *testing.T) {
	s := *snapshotNamed(t, "waiting")
	live := *s.Live
	live.Performance = &roofline.Performance{Measured: roofline.Measured{Resident: some(512)}}
	s.Live = &live
	got := words(newRoofView(&s, unicodeLook()).why())
	if want := "at a mean context of 640 tokens that a request reads; it holds 512 of the KV pool, where shared prefixes count once and unfinished prompts in part."; !strings.HasSuffix(got, want) {
		t.Errorf("%q does not end with %q", got, want)
	}
}

// A change that alters the curve has no point on it.
func TestAdvisedPointOnlyWhereTheCurveStays(t *testing.T) {
	s := *snapshotNamed(t, "waiting")
	advice := *s.Advice
	advice.Finding = engine.SlowSteps
	s.Advice = &advice
	if slices.ContainsFunc(newRoofView(&s, unicodeLook()).at, func(o operatingPoint) bool { return o.role == roleAdvised }) {
		t.Error("a point is advised for slow steps")
	}
}

func TestBetweenPointsOfACurve(t *testing.T) {
	r := &roofView{curve: &engine.Curve{Points: []engine.CurvePoint{
		{Running: 1, Expected: 10, Ideal: some(20)}, {Running: 3, Expected: 30}, {Running: 5, Expected: 40, Ideal: some(60)},
	}}}
	for _, c := range []struct {
		running  float64
		expected stat.Opt
		ideal    stat.Opt
	}{
		{1, some(10), some(20)}, {2, some(20), stat.None}, {3, some(30), stat.None}, {4, some(35), stat.None}, {5, some(40), some(60)}, {0.5, stat.None, stat.None}, {6, stat.None, stat.None},
	} {
		if got := r.expected(c.running); got != c.expected {
			t.Errorf("%v running: expected %v, want %v", c.running, got, c.expected)
		}
		if got := r.on(c.running, idealOf); got != c.ideal {
			t.Errorf("%v running: ideal %v, want %v", c.running, got, c.ideal)
		}
	}
}

// Views draw snapshots that occur only after failures: empty curves, invalid points, charts of one
// window, sizes down to zero.
func TestViewsWithOddSnapshots(t *testing.T) {
	nan := stat.Some(math.NaN())
	broken := func(change func(*loop.Snapshot)) *loop.Snapshot {
		s := *snapshotNamed(t, "waiting")
		live := *s.Live
		s.Live = &live
		change(&s)
		return &s
	}
	for name, s := range map[string]*loop.Snapshot{
		"no snapshot": nil,
		"empty curve": broken(func(s *loop.Snapshot) { s.Live.Curve = &engine.Curve{} }),
		"curve of a point": broken(func(s *loop.Snapshot) {
			s.Live.Curve = &engine.Curve{Points: []engine.CurvePoint{{Running: 1, Expected: 1}}}
		}),
		"curve of zeros": broken(func(s *loop.Snapshot) {
			s.Live.Curve = &engine.Curve{Points: make([]engine.CurvePoint, 5)}
		}),
		"curve of no numbers": broken(func(s *loop.Snapshot) {
			s.Live.Curve = &engine.Curve{Slots: nan, Pool: nan, Points: []engine.CurvePoint{{Running: 1, Expected: math.NaN()}, {Running: 2, Expected: math.Inf(1), Ideal: nan}}}
		}),
		"one window":  broken(func(s *loop.Snapshot) { s.Points = s.Points[:1] }),
		"two at once": broken(func(s *loop.Snapshot) { s.Points = []loop.Point{s.Points[5], s.Points[5]} }),
		"no numbers": broken(func(s *loop.Snapshot) {
			s.Points = []loop.Point{{T: 2e9, Tokens: nan, Running: nan, TTFT: stat.Some(math.Inf(1))}, {T: 4e9, Tokens: nan, KV: stat.Some(-7)}}
		}),
		"bare iterations": broken(func(s *loop.Snapshot) { s.Iterations, s.Marks = []loop.Iteration{{N: 1}, {N: 2}}, nil }),
	} {
		t.Run(name, func(t *testing.T) {
			for _, size := range [][2]int{{0, 0}, {1, 1}, {3, 2}, {12, 5}, {58, 13}, {80, 21}, {200, 55}} {
				for _, content := range []contentOf{rooflineOf, history} {
					drawn(content, s, unicodeLook(), size[0], size[1])
				}
			}
		})
	}
}

// All measurements are on the plot, wherever the curve ends, and the ends of the axes do not change
// with every window.
func TestAxesHoldWhatWasMeasured(t *testing.T) {
	for _, f := range fixtures() {
		if f.s == nil {
			continue
		}
		r := newRoofView(f.s, unicodeLook())
		if r.curve != nil { // as a curve that ends before what ran in the past
			short := *r.curve
			short.Points = short.Points[:6]
			r.curve = &short
		}
		var pl chart.Plot
		r.axes(&pl, 20)
		for _, o := range r.at {
			if o.running < pl.X.Lo || o.running > pl.X.Hi || o.tokens < pl.Y.Lo || o.tokens > pl.Y.Hi {
				t.Errorf("%s: %+v is outside of %v..%v, %v..%v", f.name, o, pl.X.Lo, pl.X.Hi, pl.Y.Lo, pl.Y.Hi)
			}
		}
	}
}

func TestSteadyEnds(t *testing.T) {
	changes := 0
	for v := 100.0; v < 1000; v *= 1.001 {
		hi, lo := steadyAbove(v), steadyBelow(v)
		if hi < v*(1-1e-6) || hi > v*1.123 || lo > v*(1+1e-6) || lo < v/1.123 {
			t.Fatalf("%v lies in %v to %v", v, lo, hi)
		}
		if steadyAbove(v*1.001) != hi {
			changes++
		}
	}
	if changes > 21 {
		t.Errorf("%d ends in a decade, want 20 and that of its first value", changes)
	}
}
