package comparison

import (
	"encoding/json"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/compare"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// stepped returns the healthy trace with operators by name, whose times add up to a token's.
func stepped() *optrace.Summary {
	s := healthy()
	step := func(op, name, kind string, each time.Duration, times int64) {
		s.Steps = append(s.Steps, optrace.OperatorRow{Phase: "decode", Op: op, Name: name, Type: kind, Count: 500 * times,
			Time: each * time.Duration(500*times), Each: even(int(500*times), each)})
	}
	step("MUL_MAT", "ffn_up", "q4_0", 300*time.Microsecond, 22)
	step("MUL_MAT", "ffn_down", "q4_0", 300*time.Microsecond, 22)
	step("RMS_NORM", "attn_norm", "", 20*time.Microsecond, 22)
	step("ADD", "ffn_inp", "", time.Microsecond, 22)
	for i := range s.Layers {
		s.Layers[i].Time = 500 * 900 * time.Microsecond
	}
	s.Target.Files = []optrace.File{{Role: "cpu backend", Path: "/opt/a/libggml-cpu.so", BuildID: "aaaa"}}
	s.Target.CPU = "EPYC"
	return s
}

// times multiplies all times of a decode.
func times(s *optrace.Summary, f float64) {
	scale := func(d time.Duration) time.Duration { return time.Duration(float64(d) * f) }
	all := func(d *stat.Distribution) {
		d.Mean, d.P50, d.P95, d.P99, d.Max = scale(d.Mean), scale(d.P50), scale(d.P95), scale(d.P99), scale(d.Max)
	}
	p := decodeOf(s)
	p.Rate.V /= f
	all(&p.Call)
	all(&p.Graph)
	for i := range s.Steps {
		s.Steps[i].Time = scale(s.Steps[i].Time)
		all(&s.Steps[i].Each)
	}
	for i := range s.Layers {
		s.Layers[i].Time = scale(s.Layers[i].Time)
	}
}

func decodeChange(t *testing.T, c *Comparison) *PhaseChange {
	t.Helper()
	for i := range c.Phases {
		if c.Phases[i].Phase == "decode" {
			return &c.Phases[i]
		}
	}
	t.Fatalf("no decode in %+v", c.Phases)
	return nil
}

func TestCompareWords(t *testing.T) {
	for _, c := range []struct {
		name    string
		factor  float64 // of the time of B
		process bool    // the same one
		want    compare.Verdict
	}{
		{"the same, two runs", 1, false, compare.Equal},
		{"half a percent, one process", 1.005, true, compare.Equal},
		{"six percent, one process", 1.06, true, compare.Slower},
		{"three percent, two runs", 1.03, false, compare.Unresolved},
		{"a fifth slower, two runs", 1.2, false, compare.Slower},
		{"a fifth faster, two runs", 0.8, false, compare.Faster},
	} {
		a, b := stepped(), stepped()
		times(b, c.factor)
		if !c.process {
			b.Target.PID++
		}
		got := Compare(a, b)
		r := decodeChange(t, got).Rate
		if r.Verdict != c.want {
			t.Errorf("%s: %q (%v to %v), want %q", c.name, r.Verdict, r.Low.V, r.High.V, c.want)
		}
		if math.Abs(r.Ratio.V*c.factor-1) > 1e-9 || r.Low.V > r.Ratio.V || r.High.V < r.Ratio.V {
			t.Errorf("%s: ratio %+v", c.name, r)
		}
		// Layers and long operators go the same way.
		if w := got.Layers[0].PerToken.Verdict; w != c.want {
			t.Errorf("%s: layer 0 is %q", c.name, w)
		}
		if w := row(t, got, "ffn_up").PerToken.Verdict; w != c.want {
			t.Errorf("%s: ffn_up is %q", c.name, w)
		}
	}
}

func row(t *testing.T, c *Comparison, name string) *OperatorChange {
	t.Helper()
	for i := range c.Operators {
		if c.Operators[i].Name == name {
			return &c.Operators[i]
		}
	}
	t.Fatalf("no %s in %+v", name, c.Operators)
	return nil
}

// disturbed makes every third stretch of the calls take half as long again, like a program that
// runs for a while.
func disturbed(s *optrace.Summary) {
	s.Tokens = nil
	for i := range 200 {
		took := 22 * time.Millisecond
		if i/20%3 == 1 {
			took += took / 2
		}
		s.Tokens = append(s.Tokens, optrace.TokenRow{Phase: "decode", Tokens: 1, Time: took, Graph: took})
	}
}

// TestCompareOfDisturbedRuns checks that variation within each trace counts as noise between
// them: consecutive calls are not independent samples.
func TestCompareOfDisturbedRuns(t *testing.T) {
	a, b := stepped(), stepped()
	times(b, 1.15)
	if got := decodeChange(t, Compare(a, b)).Rate; got.Verdict != compare.Slower {
		t.Fatalf("calm runs: %+v", got)
	}
	disturbed(a)
	disturbed(b)
	c := Compare(a, b)
	for what, got := range map[string]compare.Change{"decode": decodeChange(t, c).Rate, "ffn_up": row(t, c, "ffn_up").PerToken, "layer 0": c.Layers[0].PerToken} {
		if got.Verdict != compare.Unresolved {
			t.Errorf("%s of disturbed runs: %q (%v to %v)", what, got.Verdict, got.Low.V, got.High.V)
		}
	}
}

func TestCompareSaysThatInterferenceWasNotTraced(t *testing.T) {
	note := "other programs took the CPU"
	a, b := stepped(), stepped()
	if notes := strings.Join(Compare(a, b).Notes, " "); strings.Contains(notes, note) {
		t.Errorf("scheduling was traced in both: %s", notes)
	}
	lanes(b, func(_ int, t *optrace.ThreadRow) { t.Off, t.Preempted = stat.None, stat.None })
	if notes := strings.Join(Compare(a, b).Notes, " "); !strings.Contains(notes, note) {
		t.Errorf("scheduling was not traced in the second: %s", notes)
	}
}

// TestHeadlineOfCallsAlone checks that traces with unknown phases have a headline.
func TestHeadlineOfCallsAlone(t *testing.T) {
	calls := func() *optrace.Summary {
		s := healthy()
		s.Phases = []optrace.PhaseRow{{Phase: optrace.PhaseUnknown.String(), Calls: 500, Tokens: 500, Call: even(500, time.Millisecond), Graph: even(500, time.Millisecond), Rate: stat.Some(1000)}}
		return s
	}
	if got := Compare(calls(), calls()).Headline; !strings.HasPrefix(got, "The unknown phase does not differ") {
		t.Error(got)
	}
}

// TestCompareIsAntisymmetric checks that exchanging the traces reverses the result.
func TestCompareIsAntisymmetric(t *testing.T) {
	a, b := stepped(), stepped()
	times(b, 1.3)
	b.Target.PID++
	x, y := decodeChange(t, Compare(a, b)).Rate, decodeChange(t, Compare(b, a)).Rate
	if math.Abs(x.Low.V*y.High.V-1) > 1e-9 || x.Verdict != compare.Slower || y.Verdict != compare.Faster {
		t.Errorf("%+v and %+v", x, y)
	}
}

// TestCompareScatter checks that scattered calls widen the interval.
func TestCompareScatter(t *testing.T) {
	a, b := stepped(), stepped()
	width := func() float64 {
		r := decodeChange(t, Compare(a, b)).Rate
		return r.High.V - r.Low.V
	}
	narrow := width()
	d := &decodeOf(b).Call
	d.P95 = d.P50 * 3
	wide := width()
	if wide < 2*narrow {
		t.Errorf("an interval of %v became %v", narrow, wide)
	}
	d.Count = optrace.FewestGraphs - 1
	if r := decodeChange(t, Compare(a, b)).Rate; r.Verdict != "" || r.Low.OK || !r.Ratio.OK || r.Reason == "" {
		t.Errorf("too few calls: %+v", r)
	}
}

// TestCompareShortOperators checks that an operator as short as the cost of a probe has no
// verdict, while a long one with the same change has one.
func TestCompareShortOperators(t *testing.T) {
	a, b := stepped(), stepped()
	times(b, 1.3)
	got := Compare(a, b)
	if w := row(t, got, "ffn_inp").PerToken.Verdict; w != compare.Unresolved {
		t.Errorf("an operator of 1 µs that takes 1.3: %q", w)
	}
	if w := row(t, got, "attn_norm").PerToken.Verdict; w != compare.Slower {
		t.Errorf("an operator of 20 µs that takes 26: %q", w)
	}
}

// TestCompareFewGraphs checks that many operators of few graphs have no verdict, since they are
// disturbed together.
func TestCompareFewGraphs(t *testing.T) {
	a, b := stepped(), stepped()
	times(b, 2)
	decodeOf(b).Graph.Count = 3
	got := Compare(a, b)
	if r := row(t, got, "ffn_up").PerToken; r.Verdict != "" || r.Reason == "" || !r.Ratio.OK {
		t.Errorf("%+v", r)
	}
	if r := got.Layers[0].PerToken; r.Verdict != "" || r.Reason == "" {
		t.Errorf("%+v", r)
	}
}

func TestCompareMatchesOperators(t *testing.T) {
	a, b := stepped(), stepped()
	b.Steps[0].Type = "q8_0"
	b.Steps[2].Op = "RMS_NORM_MUL"
	a.Steps[3].Name = "old"
	got := Compare(a, b)
	if r := row(t, got, "ffn_up"); r.TypeA != "q4_0" || r.TypeB != "q8_0" || !r.PerToken.Ratio.OK {
		t.Errorf("another type: %+v", r)
	}
	if r := row(t, got, "attn_norm"); r.Op != "RMS_NORM" || !r.PerToken.Ratio.OK {
		t.Errorf("another operator of the same name: %+v", r)
	}
	if r := row(t, got, "old"); r.PerToken.Ratio.OK || r.PerToken.B.V != 0 || !r.PerToken.B.OK || r.TokenShare.V >= 0 {
		t.Errorf("a row of the first alone: %+v", r)
	}
	if r := row(t, got, "ffn_inp"); r.PerToken.A.V != 0 || r.TokenShare.V <= 0 {
		t.Errorf("a row of the second alone: %+v", r)
	}
	if len(got.Operators) != 5 {
		t.Errorf("%d rows, want 5", len(got.Operators))
	}
}

// TestCompareOrdersByWhatChangedMost checks that shares of a token add up to the change.
func TestCompareOrdersByWhatChangedMost(t *testing.T) {
	a, b := stepped(), stepped()
	b.Steps[1].Time *= 2
	got := Compare(a, b)
	if got.Operators[0].Name != "ffn_down" {
		t.Errorf("first is %+v", got.Operators[0])
	}
	sum, want := 0.0, 6600.0/(6600+6600+440+22)
	for _, o := range got.Operators {
		sum += o.TokenShare.V
	}
	if math.Abs(sum-want) > 1e-9 {
		t.Errorf("the rows change a token by %v, want %v", sum, want)
	}
}

func TestCompareSaysWhatDiffers(t *testing.T) {
	a, b := stepped(), stepped()
	if d := Compare(a, b).Differs; len(d) != 0 {
		t.Errorf("the same trace differs: %+v", d)
	}
	b.Target.CPU = "Xeon"
	b.Target.Files[0].BuildID = "bbbb"
	b.Threads = b.Threads[:2]
	b.Types = []optrace.TypeRow{{Type: "q8_0", Phase: "decode"}}
	b.Coverage.Detail = "graph"
	got := Compare(a, b)
	var what []string
	for _, d := range got.Differs {
		what = append(what, d.What)
	}
	if want := []string{"CPU", "types of weights", "build of cpu backend", "threads", "detail"}; !slices.Equal(what, want) {
		t.Errorf("%q, want %q", what, want)
	}
	if !slices.ContainsFunc(got.Notes, func(n string) bool { return strings.Contains(n, "different machines") }) {
		t.Errorf("another CPU is not noted: %q", got.Notes)
	}
	if got.Threads.CountA != 4 || got.Threads.CountB != 2 || !got.Threads.SyncA.OK {
		t.Errorf("%+v", got.Threads)
	}
}

func TestCompareNotesWhatDisturbs(t *testing.T) {
	for name, c := range map[string]struct {
		make func(*optrace.Summary)
		want string
	}{
		"interference": {stolen, "mostly by stress (PID 4242)"},
		"lost events":  {func(s *optrace.Summary) { s.Coverage.Dropped = 1e6 }, "lost 50 % of its events"},
		"cut": {func(s *optrace.Summary) {
			s.Gaps = []optrace.Gap{{What: optrace.GapEnd, Why: "the file is cut short"}}
		}, "The second trace is incomplete: the file is cut short."},
		"context":  {longContext, "attention does different work"},
		"batches":  {smallBatches, "300 and 16 tokens"},
		"observer": {func(s *optrace.Summary) { s.Observer.Expected = 0.2 }, "1.6 % of the speed of the first trace and 20 % of the second"},
	} {
		a, b := stepped(), stepped()
		if n := Compare(a, b).Notes; len(n) != 0 {
			t.Errorf("notes on the same: %q", n)
		}
		c.make(b)
		if notes := Compare(a, b).Notes; len(notes) != 1 || !strings.Contains(spaced(notes[0]), c.want) {
			t.Errorf("%s: %q, want %q", name, notes, c.want)
		}
	}
}

func TestCompareRefuses(t *testing.T) {
	for _, pair := range [][2]*optrace.Summary{{nil, stepped()}, {stepped(), nil}, {stepped(), {}}, {nil, nil}} {
		c := Compare(pair[0], pair[1])
		if len(c.Refused) == 0 || len(c.Phases) != 0 || !strings.HasPrefix(c.Headline, "Nothing can be compared") {
			t.Errorf("%+v", c)
		}
	}
	a, b := stepped(), stepped()
	a.Phases, b.Phases = a.Phases[:1], b.Phases[1:]
	c := Compare(a, b)
	if len(c.Notes) != 2 || c.Headline != "Nothing can be compared: the two traces share no phase." {
		t.Errorf("%q %q", c.Headline, c.Notes)
	}
}

func TestCompareOfFiguresTooFarApart(t *testing.T) {
	a, b := stepped(), stepped()
	decodeOf(a).Rate.V, decodeOf(b).Rate.V = 1e-300, 1e300
	c := Compare(a, b)
	if r := decodeChange(t, c).Rate; r.Ratio.OK || r.Verdict != "" || r.Reason == "" {
		t.Errorf("%+v", r)
	}
	if _, err := json.Marshal(c); err != nil {
		t.Error(err)
	}
}

func TestCompareHeadline(t *testing.T) {
	a, b := stepped(), stepped()
	times(b, 0.5)
	b.Target.PID++
	if h := spaced(Compare(a, b).Headline); h != "Decode is faster in the second trace (45.0 → 90.0 tokens/s, ×2.00; 95 % interval ×1.85 to ×2.17)." {
		t.Error(h)
	}
}

// TestComparisonIsADocument checks that lists are not null, and that the document reads back
// the same.
func TestComparisonIsADocument(t *testing.T) {
	for _, c := range []*Comparison{Compare(nil, nil), Compare(stepped(), stepped())} {
		b, err := json.Marshal(c)
		if err != nil {
			t.Fatal(err)
		}
		for _, list := range []string{"refused", "differs", "notes", "phases", "operators", "layers"} {
			if strings.Contains(string(b), `"`+list+`":null`) {
				t.Errorf("%s is null", list)
			}
		}
		var back Comparison
		if err := json.Unmarshal(b, &back); err != nil {
			t.Fatal(err)
		}
		again, _ := json.Marshal(back)
		if string(again) != string(b) {
			t.Error("not the same when read back")
		}
	}
}

// TestCompareOfTwoModels checks that traces of different models have no verdict, and that
// another quantisation, build or batch does not count as another model.
func TestCompareOfTwoModels(t *testing.T) {
	flops := func(s *optrace.Summary, name string, each float64) {
		for i := range s.Steps {
			if s.Steps[i].Name == name {
				s.Steps[i].Flops = stat.Some(each * float64(s.Steps[i].Count))
			}
		}
	}
	for name, c := range map[string]struct {
		change func(*optrace.Summary)
		want   string
	}{
		"the same":  {func(*optrace.Summary) {}, ""},
		"quantised": {func(s *optrace.Summary) { s.Target.Model, s.Steps[0].Type = "/m/qwen-Q8_0.gguf", "q8_0" }, ""},
		"renamed":   {func(s *optrace.Summary) { s.Steps[0].Name = "node" }, ""},
		"a batch of two": {func(s *optrace.Summary) {
			decodeOf(s).Tokens *= 2
			flops(s, "ffn_up", 4e6)
			flops(s, "ffn_down", 4e6)
		}, ""},
		"layers":      {func(s *optrace.Summary) { s.Layers = s.Layers[:12] }, "22 and 12 layers"},
		"sizes":       {func(s *optrace.Summary) { flops(s, "ffn_up", 3e6) }, "ffn_up has different sizes"},
		"experts":     {func(s *optrace.Summary) { s.Experts = &optrace.Experts{Count: 8} }, "only one has mixtures of experts"},
		"operators":   {func(s *optrace.Summary) { s.Target.Model, s.Steps[0].Name = "/m/gemma.gguf", "ffn_moe_up" }, "only one computes ffn_up"},
		"names alone": {func(s *optrace.Summary) { s.Target.Model, s.Steps, s.Layers = "/m/gemma.gguf", nil, nil }, "qwen-q4_0.gguf and gemma.gguf, by their names"},
	} {
		a, b := stepped(), stepped()
		for _, s := range []*optrace.Summary{a, b} {
			s.Target.Model = "/m/qwen-q4_0.gguf"
			flops(s, "ffn_up", 2e6)
			flops(s, "ffn_down", 2e6)
		}
		c.change(b)
		times(b, 3)
		got := Compare(a, b)
		if got.OtherModel != c.want {
			t.Errorf("%s: %q, want %q", name, got.OtherModel, c.want)
		}
		if says := strings.Contains(got.Headline, "slower"); says != (c.want == "") {
			t.Errorf("%s: %s", name, got.Headline)
		}
		if c.want == "" {
			continue
		}
		if !strings.Contains(got.Headline, "different models ("+c.want+")") || !strings.Contains(got.Headline, "45.0 tokens/s and 15.0") {
			t.Errorf("%s: %s", name, got.Headline)
		}
		if r := decodeChange(t, got).Rate; r.Verdict != "" || r.Reason == "" || !r.A.OK || !r.B.OK {
			t.Errorf("%s: %+v", name, r)
		}
		for i := range got.Operators {
			if o := &got.Operators[i]; o.PerToken.Verdict != "" || o.TokenShare.OK || o.PerToken.Ratio.OK {
				t.Errorf("%s: %+v", name, o)
			}
		}
	}
}

// TestCompareOfATraceThatLostItsCPU checks that a difference that other programs may have
// caused has no verdict.
func TestCompareOfATraceThatLostItsCPU(t *testing.T) {
	slower := func(preempted float64) compare.Verdict {
		a, b := stepped(), stepped()
		times(b, 1.6)
		lanes(b, func(_ int, t *optrace.ThreadRow) {
			t.Busy, t.Preempted, t.Off = stat.Some(0.55), stat.Some(preempted), stat.Some(preempted)
		})
		got, back := Compare(a, b), Compare(b, a)
		if x, y := decodeChange(t, got).Rate, decodeChange(t, back).Rate; math.Abs(x.High.V*y.Low.V-1) > 1e-9 {
			t.Errorf("not the opposite: %+v, %+v", x, y)
		}
		return decodeChange(t, got).Rate.Verdict
	}
	a, b := stepped(), stepped()
	times(b, 4)
	lanes(b, func(_ int, t *optrace.ThreadRow) {
		t.Busy, t.Preempted, t.Off = stat.Some(0.6), stat.Some(0.3), stat.Some(0.3)
	})
	if w := decodeChange(t, Compare(a, b)).Rate.Verdict; w != compare.Slower {
		t.Errorf("four times as long, with lanes busy for most of it: %q", w)
	}
	lanes(b, func(_ int, t *optrace.ThreadRow) { t.Sync = stat.None })
	if w := decodeChange(t, Compare(a, b)).Rate.Verdict; w != compare.Unresolved {
		t.Errorf("four times as long, and waits are not told from work: %q", w)
	}
	if w := slower(0.01); w != compare.Slower {
		t.Errorf("a calm trace: %q", w)
	}
	if w := slower(0.4); w != compare.Unresolved {
		t.Errorf("one that lost 40 %% of its CPUs: %q", w)
	}
}
