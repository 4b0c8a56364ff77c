package tui

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/tui/lines"
)

func TestRooflineTells(t *testing.T) {
	for _, c := range []struct {
		state        string
		w, h         int
		want, absent []string
	}{
		{"waiting", 160, 40, []string{"--max-num-seqs 8 → 16: kept", "unset → 8192: no gain", "the first baseline"}, nil},
		{"measuring", 80, 21, []string{"◆ now"}, []string{"advised"}},
		{"down", 80, 21, []string{"◆ last"}, []string{"◆ now"}},
		{"worse", 100, 35, []string{"--max-num-seqs 16 → 4: open"}, nil},
		{"nogpu", 80, 21, []string{"No curve of the hardware: needs the GPU: --gpu names it.", "windows", "slots 16", "◇ 1", "kept"}, []string{"ideal", "achievable", "ridge", "log scales"}},
		{"idle", 80, 21, []string{"Nothing has been measured yet. rooftop is waiting for load: no tokens move."}, []string{"tok/s"}},
		{"empty", 80, 21, []string{"Nothing has been measured yet."}, nil},
	} {
		t.Run(c.state, func(t *testing.T) {
			says(t, drawn(rooflineOf, snapshotNamed(t, c.state), plainLook(), c.w, c.h), c.want, c.absent)
		})
	}
}

func TestNoCurveNamesTheFlag(t *testing.T) {
	cpu := engine.Facts{Device: engine.Know("cpu", engine.FromServer, "")}
	for _, c := range []struct {
		facts        engine.Facts
		reason, want string
	}{
		{engine.Facts{GPUKnown: true, ModelKnown: true}, "", "not computed."},
		{engine.Facts{ModelKnown: true}, "needs memory bandwidth", "needs memory bandwidth. Start rooftop with --gpu NAME."},
		{engine.Facts{GPUKnown: true}, "needs layer count", "needs layer count. Start rooftop with --model NAME."},
		{engine.Facts{}, "needs much", "needs much. Start rooftop with --gpu NAME and --model NAME."},
		{cpu, "needs memory bandwidth", "the server runs on a CPU, which the model does not cover. Only measured points are shown."},
	} {
		d := &engine.Diagnosis{Facts: c.facts, Ceiling: engine.Ceiling{PhysicalReason: c.reason}}
		if got, want := tuning.NoCurve(d), "No curve of the hardware: "+c.want; got != want {
			t.Errorf("got %q\nwant %q", got, want)
		}
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
		r := newRoofView(&s, plainLook())
		i := slices.IndexFunc(r.at, func(o operatingPoint) bool { return o.role == roleAdvised })
		if i < 0 {
			t.Fatalf("%s: there is none", name)
		}
		was := s.Baseline.Quantity("generation_tokens_per_s").Value.V
		if want := was * (1 + s.Advice.Predicted[0].Mid.V); math.Abs(r.at[i].Tokens-want) > 1e-9*want {
			t.Errorf("%s: advised %v tok/s, want %v", name, r.at[i].Tokens, want)
		}
		if want := s.Baseline.Quantity("running_mean").Value.V * 40 / 16; math.Abs(r.at[i].Running-want) > 1e-9*want {
			t.Errorf("%s: advised at %v running, want %v", name, r.at[i].Running, want)
		}
	}
}

// A cache of half the bytes has another curve: its point has no shares of this one.
func TestAdvisedPointOnANewCurve(t *testing.T) {
	s := *snapshotNamed(t, "waiting")
	advice := *s.Advice
	advice.Finding, advice.Flag, advice.From, advice.To = engine.KVPressure, "--kv-cache-dtype", "bf16", "fp8"
	s.Advice = &advice
	for _, row := range newRoofView(&s, plainLook()).rows() {
		if want := strings.Contains(row.name, "advised"); (row.text == "(new curve)") != want {
			t.Errorf("%s: %q", row.name, row.text)
		}
	}
}

// After the load the curve and its points are those of the measurement that the advice comes from.
func TestRooflineAfterTheLoad(t *testing.T) {
	s := endedLoad(t, 16*time.Second)
	r := newRoofView(s, plainLook())
	if r.curve != s.Baseline.Curve {
		t.Error("the curve is not that of the baseline")
	}
	got := words(drawn(rooflineOf, s, plainLook(), 120, 27))
	for _, want := range []string{"◆ last", "○ advised", "from the baseline of"} {
		if !strings.Contains(got, want) {
			t.Errorf("the roofline lacks %q:\n%s", want, got)
		}
	}
	if strings.Contains(got, "◆ now") {
		t.Errorf("the roofline has a point of now:\n%s", got)
	}
}

// A request's reads and its part of the pool are two numbers if prefixes are shared.
func TestRooflineNamesBothContexts(t *testing.T) {
	s := *snapshotNamed(t, "waiting")
	live := *s.Live
	live.Performance = &roofline.Performance{Measured: roofline.Measured{Resident: some(512)}}
	s.Live = &live
	got := words(newRoofView(&s, plainLook()).why())
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
	if slices.ContainsFunc(newRoofView(&s, plainLook()).at, func(o operatingPoint) bool { return o.role == roleAdvised }) {
		t.Error("a point is advised for slow steps")
	}
}

// All measurements are on the plot, wherever the curve ends, and the ends of the axes do not change
// with every window.
func TestAxesHoldWhatWasMeasured(t *testing.T) {
	for _, f := range builders() {
		s := f.build()
		if s == nil {
			continue
		}
		r := newRoofView(s, plainLook())
		if r.curve != nil { // as a curve that ends before what ran in the past
			short := *r.curve
			short.Points = short.Points[:6]
			r.curve = &short
		}
		var pl lines.Plot
		r.axes(&pl, 20)
		for _, o := range r.at {
			if o.Running < pl.X.Lo || o.Running > pl.X.Hi || o.Tokens < pl.Y.Lo || o.Tokens > pl.Y.Hi {
				t.Errorf("%s: %+v is outside of %v..%v, %v..%v", f.name, o, pl.X.Lo, pl.X.Hi, pl.Y.Lo, pl.Y.Hi)
			}
		}
	}
}
