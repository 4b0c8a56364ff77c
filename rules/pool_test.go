package rules

import (
	"math"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

func TestPool(t *testing.T) {
	run := func(edit func(w *engine.Window, f *engine.Facts)) pool {
		w, f := quietWindow(), knownFacts()
		edit(&w, &f)
		windows := []engine.Window{w, w.Clone()}
		return poolOf(&engine.Run{Windows: windows, Facts: &f, Agg: engine.Combine(windows, &f)}, always)
	}
	for _, c := range []struct {
		name    string
		edit    func(w *engine.Window, f *engine.Facts)
		context stat.Opt
		holds   stat.Opt
	}{
		{
			"the end is longer than the resident mean", // 0.4 x 200,000 / 40 = 2,000; 2,000 + 250, at 45 % at most
			func(w *engine.Window, _ *engine.Facts) {
				setMean(w, engine.HistPromptTokens, 2000)
				setCounter(w, engine.CounterPromptTokensCached, 0)
				setKV(w, 0.4, 0.48)
			},
			stat.Some(2250), stat.Some(200000.0 / 2250),
		},
		{
			"observed concurrency outweighs lengths", // 40 at 45 % at most, whatever the prompts were
			func(w *engine.Window, _ *engine.Facts) {
				setMean(w, engine.HistPromptTokens, 3000)
				setCounter(w, engine.CounterPromptTokensCached, 0)
			},
			stat.Some(2250), stat.Some(40 / 0.45),
		},
		{
			"a full pool proves nothing", // 40 at 90 % of 200,000 x 0.9
			func(w *engine.Window, _ *engine.Facts) {
				setMean(w, engine.HistPromptTokens, 6000)
				setCounter(w, engine.CounterPromptTokensCached, 0)
				setKV(w, 0.9, 0.9)
			},
			stat.Some(6250), stat.Some(32),
		},
		{"the resident mean is longer than the end", func(*engine.Window, *engine.Facts) {}, stat.Some(2000), stat.Some(100)},
		{
			"shared prefixes are held once", // hit rate 60 %: 2,000 of a 3,000-token prompt resident, half an output still to come
			func(w *engine.Window, _ *engine.Facts) { setMean(w, engine.HistPromptTokens, 3000) },
			stat.Some(2125), stat.Some(200000.0 / 2125),
		},
		{
			"lengths from counters if histograms are absent", // 16,000 prompt tokens of 16 requests, 4,000 generated
			func(w *engine.Window, _ *engine.Facts) {
				w.Hist[engine.HistPromptTokens], w.Hist[engine.HistGenerationTokens] = stat.Delta{}, stat.Delta{}
				setCounter(w, engine.CounterPromptTokensCached, 0)
				setKV(w, 0.24, 0.25)
			},
			stat.Some(1250), stat.Some(160),
		},
		{
			"usage alone", // 40 fill 40 %, and grow from 1,125 to 1,250
			func(_ *engine.Window, f *engine.Facts) { f.KVCapacityTokens = engine.Fact[float64]{} },
			stat.Some(1250), stat.Some(90),
		},
		{
			"a pool that reads empty is not read",
			func(w *engine.Window, f *engine.Facts) {
				setKV(w, 0, 0)
				f.KVCapacityTokens = engine.Fact[float64]{}
			},
			stat.Some(1250), stat.None,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := run(c.edit)
			for _, x := range []struct {
				name      string
				got, want stat.Opt
			}{{"context", p.context, c.context}, {"holds", p.holds, c.holds}} {
				if x.got.OK != x.want.OK || math.Abs(x.got.V-x.want.V) > 1e-6*math.Max(1, x.want.V) {
					t.Errorf("%s = %v, want %v", x.name, x.got, x.want)
				}
			}
		})
	}
}

func TestImpactFollowsThePredictedGain(t *testing.T) {
	for _, c := range []struct{ gain, want float64 }{
		{0.5, 5}, {0.499, 4}, {0.2, 4}, {0.199, 3}, {0.1, 3}, {0.099, 2}, {0.03, 2}, {0.029, 1}, {0, 1}, {-0.2, 1},
	} {
		if got := impactOf(c.gain); got != c.want {
			t.Errorf("impactOf(%v) = %v, want %v", c.gain, got, c.want)
		}
	}
	predicted := func(mid, high stat.Opt) *engine.Fix {
		return &engine.Fix{Predicted: []engine.Prediction{{Metric: metricThroughput, Unit: "ratio", Mid: mid, High: high}}}
	}
	for _, c := range []struct {
		name string
		fix  *engine.Fix
		want float64
	}{
		{"no fix", nil, 4},
		{"no prediction", &engine.Fix{}, 4},
		{"the middle decides", predicted(stat.Some(0.12), stat.Some(0.9)), 3},
		{"a high bound leaves the default", predicted(stat.None, stat.Some(0.9)), 4},
		{"a low bound lowers it", predicted(stat.None, stat.Some(0.05)), 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := engine.Finding{Impact: 4, Fix: c.fix}
			setImpact(&f)
			if f.Impact != c.want {
				t.Errorf("impact %v, want %v", f.Impact, c.want)
			}
		})
	}
}

func TestSetFlag(t *testing.T) {
	for _, c := range []struct {
		name, launch, from string
		source             engine.Source
		want               string
	}{
		{"in a unit", "vllm serve m --max-num-seqs 4", "4", engine.FromCmdline, "in the launch command of vllm.service change --max-num-seqs 4 to 32, and restart"},
		{"command line unknown", "", "4", engine.FromFlag, "restart vLLM with --max-num-seqs 32 (instead of 4)"},
		{"in the command line", "vllm serve m --max-num-seqs 4", "4", engine.FromCmdline, "in the launch command change --max-num-seqs 4 to 32, and restart"},
		{"with underscores and =", "vllm serve m --max_num_seqs=4", "4", engine.FromCmdline, "in the launch command change --max-num-seqs 4 to 32, and restart"},
		{"a default", "vllm serve m", "256", engine.FromDefault, "add --max-num-seqs 32 to the launch command (now the default, 256) and restart"},
		{"in the config file", "vllm serve m --config c.yaml", "4", engine.FromConfig, "set max-num-seqs: 32 in the server's config file (now 4) and restart"},
		{"from the page", "vllm serve m", "4", engine.FromMetrics, "add --max-num-seqs 32 to the launch command and restart"},
		{"nothing known", "", "", "", "restart vLLM with --max-num-seqs 32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			facts := engine.Facts{Launch: c.launch}
			if c.name == "in a unit" {
				facts.LaunchIn = "vllm.service"
			}
			if got := setFlag(&facts, "--max-num-seqs", c.from, "32", c.source); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestNoFlagThatTheReleaseLacks(t *testing.T) {
	for _, c := range []struct {
		version, flag string
		missing       bool
	}{
		{"0.32.0", "--max-num-seqs", false},
		{"0.32.0", "--swap-space", true},
		{"0.17.1", "--swap-space", false},
		{"0.8.5", "--kv-offloading-size", true},
		{"0.30.0", "--kv-offloading-size", false},
		{"0.8.5", "--api-server-count", true},
		{"0.30.0", "--api-server-count", false},
		{"0.32.0", "--no-such-flag", true},
	} {
		f := engine.Facts{EngineVersion: know(c.version)}
		if got := flagMissing(&f, c.flag); (got != "") != c.missing {
			t.Errorf("vLLM %s, %s: missing %q, want missing %t", c.version, c.flag, got, c.missing)
		}
		fix := &engine.Fix{Kind: engine.KindFlag, Flag: c.flag}
		if withholdUnknownFlag(&f, fix); (fix.Withheld != "") != c.missing {
			t.Errorf("vLLM %s, %s: withheld %q, want withheld %t", c.version, c.flag, fix.Withheld, c.missing)
		}
	}
}

func TestOlderThan(t *testing.T) {
	for _, c := range []struct {
		a, b string
		want bool
	}{{"0.9.2", "0.13.0", true}, {"0.13.0", "0.13.0", false}, {"0.13", "0.13.0", false}, {"0.32.0", "0.13.0", false}, {"0.12.1rc1", "0.13.0", true}, {"", "0.13.0", true}} {
		if got := engine.OlderThan(c.a, c.b); got != c.want {
			t.Errorf("OlderThan(%q, %q) = %t, want %t", c.a, c.b, got, c.want)
		}
	}
}

func TestAnEstimatedPoolIsNotShownAsRead(t *testing.T) {
	run := func(fact engine.Fact[float64]) engine.Evidence {
		w := engine.Window{Duration: 2e9, Evaluable: true, Running: stat.Some(4), KV: stat.Some(0.5)}
		r := engine.Run{Windows: []engine.Window{w}, Facts: &engine.Facts{KVCapacityTokens: fact}}
		p := poolOf(&r, always)
		return poolEvidence(&p)[0]
	}
	read := run(engine.Know(1000.0, engine.FromMetrics, "kv_cache_size_tokens"))
	computed := run(engine.Know(1000.0, engine.FromDerived, "(est) from GPU memory, weights and utilization, +-20 %"))
	if read.Source != engine.FromMetrics || strings.Contains(read.Text, "(est)") {
		t.Errorf("a pool that the page reports: %+v", read)
	}
	if computed.Source != engine.FromDerived || !strings.HasPrefix(computed.Text, "(est)") {
		t.Errorf("a pool from the catalog: %+v", computed)
	}
}

// TestRevertOfPrefixCaching checks that --enable-prefix-caching is reverted by omitting it unless
// the launch disabled caching: releases with caching off by default have no --no- form.
func TestRevertOfPrefixCaching(t *testing.T) {
	for _, c := range []struct {
		source engine.Source
		v0     bool
		from   string
	}{
		{engine.FromCmdline, false, "off"},
		{engine.FromMetrics, false, "off"},
		{engine.FromMetrics, true, ""},
		{engine.FromDefault, true, ""},
	} {
		f := &engine.Facts{PrefixCaching: engine.Know(false, c.source, ""), V0: engine.Know(c.v0, engine.FromMetrics, "")}
		if fix := enableCaching(&engine.Run{Facts: f}, stat.None); fix.From != c.from || fix.To != "on" {
			t.Errorf("%s, V0 %v: %q to %q", c.source, c.v0, fix.From, fix.To)
		}
	}
}

// Both findings about the pool state one value for what a sequence takes, although they fire in other windows.
func TestOnePoolForAllFindings(t *testing.T) {
	w, f := quietWindow(), knownFacts()
	low, high := w.Clone(), w.Clone()
	setKV(&low, 0.3, 0.4)
	setKV(&high, 0.9, 0.95)
	windows := []engine.Window{low, high}
	r := &engine.Run{Windows: windows, Facts: &f, Agg: engine.Combine(windows, &f)}
	of := func(kv float64) pool {
		return poolOf(r, func(w *engine.Window) bool { return w.KV.V == kv })
	}
	a, b := of(0.3), of(0.9)
	if a.usage == b.usage {
		t.Fatal("both have the same windows")
	}
	if a.context != b.context || a.holds != b.holds || a.resident != b.resident {
		t.Errorf("a sequence takes %v and %v, %v and %v fit", a.context, b.context, a.holds, b.holds)
	}
	if a.runningInRun != r.Agg.Running.V || b.runningInRun != a.runningInRun {
		t.Errorf("%v and %v ran, want %v", a.runningInRun, b.runningInRun, r.Agg.Running)
	}
	if want := r.Agg.KVPerRequest.Times(f.KVCapacityTokens.Value); a.resident != want {
		t.Errorf("a sequence holds %v on average, in the physical model %v", a.resident, want)
	}
}

// A number of sequences that fit below the number that run says why.
func TestMoreRunThanFitAtTheirEnd(t *testing.T) {
	p := pool{ranks: 1, runningInRun: 6.8, capacity: stat.Some(35984), context: stat.Some(5850), holds: stat.Some(6.15)}
	const want = "6 sequences at the context they reach (6.8 run, not all of them at their end); 24 would run."
	if got := p.lack(24); !strings.HasSuffix(got, want) {
		t.Errorf("%q does not end with %q", got, want)
	}
	p.holds = stat.Some(7.3)
	if got := p.lack(24); strings.Contains(got, "not all") {
		t.Errorf("%q", got)
	}
}
