package optrace

import (
	"math"
	"testing"
	"time"
)

func sites(cheap bool) []Site {
	return []Site{{Symbol: "ggml_cpu_extra_compute_forward", Cheap: cheap}, {Symbol: "ggml_compute_forward_rms_norm_mul_fused", Cheap: cheap},
		{Symbol: "ggml_graph_compute", Cheap: true}, {Symbol: "ggml_barrier", Cheap: cheap}, {Symbol: "llama_decode", Cheap: true}}
}

// TestExpectAgainstMeasured compares expected costs with what toggled windows measured on three
// models.
func TestExpectAgainstMeasured(t *testing.T) {
	const operators = DetailOperator
	const tensors = DetailOperator | DetailTensor
	const barriers = tensors | DetailBarrier
	for _, c := range []struct {
		model    string
		nodes    int
		time     time.Duration
		detail   Detail
		cheap    bool
		measured float64
	}{
		{"tiny", 73, 330 * time.Microsecond, operators, true, 0.12},
		{"mid", 209, 10 * time.Millisecond, operators, true, 0.020},
		{"mid, EPYC", 209, 8 * time.Millisecond, operators, true, 0.023},
		{"mid, EPYC", 209, 8 * time.Millisecond, tensors, true, 0.031},
		{"mid, EPYC", 209, 8 * time.Millisecond, barriers, true, 0.070},
		{"big, EPYC", 379, 36 * time.Millisecond, tensors, true, 0.013},
		{"big", 379, 35 * time.Millisecond, operators, true, 0.018},
		{"tiny", 73, 330 * time.Microsecond, tensors, true, 0.13},
		{"mid", 209, 10 * time.Millisecond, tensors, true, 0.036},
		{"big", 379, 35 * time.Millisecond, tensors, true, 0.020},
		{"tiny", 73, 330 * time.Microsecond, tensors, false, 1.06},
		{"mid", 209, 10 * time.Millisecond, tensors, false, 0.151},
		{"big", 379, 35 * time.Millisecond, tensors, false, 0.064},
		{"tiny", 73, 330 * time.Microsecond, barriers, true, 0.56},
		{"mid", 209, 10 * time.Millisecond, barriers, true, 0.068},
		{"big", 379, 35 * time.Millisecond, barriers, true, 0.032},
	} {
		o := Expect(Expectation{Detail: c.detail, Nodes: c.nodes, Threads: 1, GraphTime: c.time, Sites: sites(c.cheap)})
		// Right within half of itself, as the comment of Expect and the report say.
		if r := Longer(o.Expected) / c.measured; r < 1/1.55 || r > 1.55 {
			t.Errorf("%s, detail %b, cheap %v: %.3f expected, %.3f measured", c.model, c.detail, c.cheap, Longer(o.Expected), c.measured)
		}
		t.Logf("%s, detail %b, cheap %v: %.3f expected, %.3f measured", c.model, c.detail, c.cheap, Longer(o.Expected), c.measured)
	}
}

func TestExpectCountsHits(t *testing.T) {
	in := Expectation{Detail: LevelOperator, Nodes: 100, Threads: 4, GraphTime: 10 * time.Millisecond, Sites: sites(true)}
	o := Expect(in)
	if want := 2 + 2 + 1 + 400.0; o.HitsPerToken != want {
		t.Errorf("%v hits a token, want %v", o.HitsPerToken, want)
	}
	// What hits cost is one thread's time: four threads are hit side by side.
	in.Threads = 1
	if one := Expect(in); one.Expected != o.Expected || one.HitsPerToken != 105 {
		t.Errorf("one lane: %+v, four: %+v", one, o)
	}
	if r := Longer(o.Expected); math.Abs(r*10e6-(hitsTime(5)+100*(1100+35))) > 2000 {
		t.Errorf("%v of 10 ms", r)
	}
	if none := Expect(Expectation{}); none != (Observer{}) {
		t.Errorf("nothing to expect: %+v", none)
	}
}

// hitsTime returns the cost of n hits in nanoseconds, one of them at an unknown site.
func hitsTime(n int) float64 { return float64(n-1)*1100 + 5600 }

func TestExpectOfUnknownSitesIsDear(t *testing.T) {
	in := Expectation{Detail: DetailOperator, Nodes: 379, Threads: 1, GraphTime: 35 * time.Millisecond}
	if without := Expect(in); without.CostPerHit < HitStepped {
		t.Errorf("a site that is not known: %v a hit", without.CostPerHit)
	}
	in.Sites = sites(true)
	in.Sites[1].Cheap = false
	if one := Expect(in); one.CostPerHit < HitStepped {
		t.Errorf("one dear site of two: %v a hit", one.CostPerHit)
	}
}

// Nothing loses more than all of its speed, and measured and expected costs have the same unit.
func TestSpeedLost(t *testing.T) {
	for longer, want := range map[float64]float64{0: 0, 0.25: 0.2, 1: 0.5, 1.7: 0.63, -0.2: -0.25, math.Inf(1): 1} {
		if got := SpeedLost(longer); math.Abs(got-want) > 1e-3 {
			t.Errorf("%v longer: %v of the speed is lost, want %v", longer, got, want)
		}
	}
	// 117 hits of 0.679 µs on a token of 185 µs: 30 % of its speed, not 43 %.
	in := Expectation{Detail: LevelTensor, Nodes: 112, Threads: 1, GraphTime: 185 * time.Microsecond, Sites: sites(true)}
	o := Expect(in)
	delay := o.HitsPerToken * float64(o.CostPerHit)
	if want := delay / (delay + 185e3); math.Abs(o.Expected-want) > 1e-3 || o.Expected > 0.4 {
		t.Errorf("%v of the speed, want %v", o.Expected, want)
	}
	if all := Expect(Expectation{Detail: LevelAll, Nodes: 10000, Threads: 1, GraphTime: time.Microsecond}); all.Expected >= 1 || all.Expected < 0.9 {
		t.Errorf("%v of the speed", all.Expected)
	}
	Slowdown{Median: 0.25, Low: 0, High: 1, Pairs: 7}.WriteTo(&o)
	if o.Measured != 0.2 || o.MeasuredLow != 0 || o.MeasuredHigh != 0.5 || o.Windows != 7 {
		t.Errorf("a token that takes 25 %% longer: %+v", o)
	}
}

func TestAllowed(t *testing.T) {
	if o := (Observer{Expected: 0.05}); o.Allowed(0.04) || !o.Allowed(0.05) {
		t.Error("an expectation against its limit")
	}
	// If both are known, the measurement decides, by its lower end.
	if o := (Observer{Expected: 0.5, Windows: 30, Measured: 0.04, MeasuredLow: 0.03, MeasuredHigh: 0.05}); !o.Allowed(0.03) || o.Allowed(0.029) {
		t.Error("a measurement against its limit")
	}
}

func TestLighten(t *testing.T) {
	in := Expectation{Detail: LevelAll, Nodes: 209, Threads: 2, GraphTime: 10 * time.Millisecond, Sites: sites(true)}
	all := Expect(in)
	if d, _, ok := Lighten(in, all.Expected); !ok || d != LevelAll {
		t.Errorf("a limit that holds: %b %v", d, ok)
	}
	d, o, ok := Lighten(in, 0.04)
	if !ok || d&DetailBarrier != 0 || d&DetailTensor == 0 || d&DetailSched == 0 || o.Expected > 0.04 {
		t.Errorf("barriers and counters should go, nothing else: %b, %+v, %v", d, o, ok)
	}
	in.Nodes, in.GraphTime = 73, 330*time.Microsecond
	if d, _, ok = Lighten(in, 0.04); !ok || d&(DetailOperator|DetailTensor) != 0 || d&DetailGraph == 0 {
		t.Errorf("a tiny model bears graphs only: %b, %v", d, ok)
	}
	if _, _, ok = Lighten(in, 0); ok {
		t.Error("nothing costs nothing")
	}
}

func TestExecutedNodes(t *testing.T) {
	tables := &Tables{Operators: []Operator{{Op: "MUL_MAT"}, {Op: "VIEW"}, {Op: "ADD"}}}
	d := &DAG{Nodes: []Node{{Operator: 1}, {Operator: 2}, {Operator: 3}, {Operator: 1}, {}}}
	if n := ExecutedNodes(tables, d); n != 3 {
		t.Errorf("%d nodes are computed, want 3", n)
	}
}

func TestFusedNodes(t *testing.T) {
	tables := &Tables{Operators: []Operator{{Op: "RMS_NORM"}, {Op: "MUL"}, {Op: "ADD"}}}
	d := &DAG{Nodes: []Node{
		{Addr: 1, Operator: 1}, {Addr: 2, Operator: 2, Sources: []uint64{1, 9}}, // fused
		{Addr: 3, Operator: 1}, {Addr: 4, Operator: 3, Sources: []uint64{3}}, // no product
		{Addr: 5, Operator: 1}, {Addr: 6, Operator: 2, Sources: []uint64{2, 9}}, // of something else
	}}
	if n := FusedNodes(tables, d); n != 1 {
		t.Errorf("%d nodes are fused, want 1", n)
	}
}

// A graph's probe checks the graph's nodes each time, which costs more with cold caches: 11 µs
// of the 8 ms of a token, plus the traps of the two probes.
func TestExpectOfGraphs(t *testing.T) {
	in := Expectation{Detail: LevelToken, Nodes: 209, GraphTime: 8 * time.Millisecond, Sites: sites(true)}
	calls := Expect(in)
	in.Detail = DetailToken | DetailGraph
	graphs := Expect(in)
	if took := 8000 * (Longer(graphs.Expected) - Longer(calls.Expected)); took < 6 || took > 18 {
		t.Errorf("graphs take %.1f µs more than calls, 11 to 13 were measured", took)
	}
}
