package rules

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

func TestSeatsLadder(t *testing.T) {
	for _, c := range []struct {
		n           float64
		want, below int
	}{
		{0.2, 1, 0}, {1, 1, 1}, {1.5, 1, 1}, {1.6, 2, 1}, {3, 4, 2}, {4.5, 4, 4}, {5, 8, 4}, {8, 8, 8}, {31.8, 32, 24}, {32, 32, 32}, {32.4, 32, 32}, {32.6, 40, 32},
		{248, 248, 248}, {250, 256, 248}, {256, 256, 256}, {257, 272, 256}, {1000, 1008, 992},
	} {
		if got := seatsFor(c.n); got != c.want {
			t.Errorf("seatsFor(%v) = %d, want %d", c.n, got, c.want)
		}
		if got := seatsWithin(c.n); got != c.below {
			t.Errorf("seatsWithin(%v) = %d, want %d", c.n, got, c.below)
		}
	}
}

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
			"what ran is proof against lengths", // 40 at 45 % at most, whatever the prompts were
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
			"shared prefixes are held once", // hits 60 %: resident 2,000 of a prompt of 3,000, half an output to come
			func(w *engine.Window, _ *engine.Facts) { setMean(w, engine.HistPromptTokens, 3000) },
			stat.Some(2125), stat.Some(200000.0 / 2125),
		},
		{
			"lengths from counters where histograms are absent", // 16,000 prompt tokens of 16 requests, 4,000 generated
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

func TestFlatRunning(t *testing.T) {
	windows := func(running ...float64) *engine.Run {
		r := &engine.Run{Facts: &engine.Facts{}}
		for _, n := range running {
			r.Windows = append(r.Windows, engine.Window{Evaluable: true, Duration: 2 * time.Second, Running: stat.Some(n), RunningPeak: stat.Some(math.Ceil(n)), Waiting: stat.Some(9)})
		}
		return r
	}
	for _, c := range []struct {
		name string
		run  *engine.Run
		want int
	}{
		{"flat", windows(16, 15.9, 15.7, 16), 16},
		{"two windows", windows(16, 16), 0},
		{"moving", windows(16, 12, 16, 9), 0},
		{"a few percent below", windows(256, 250, 248), 256},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := flatRunning(c.run); got != c.want {
				t.Errorf("flatRunning = %d, want %d", got, c.want)
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
			f := engine.Finding{Fix: c.fix}
			setImpact(&f, 4)
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
		{"command line unknown", "", "4", engine.FromFlag, "restart vLLM with --max-num-seqs 32 (instead of 4)"},
		{"in the command line", "vllm serve m --max-num-seqs 4", "4", engine.FromCmdline, "in the launch command change --max-num-seqs 4 to 32, and restart"},
		{"with underscores and =", "vllm serve m --max_num_seqs=4", "4", engine.FromCmdline, "in the launch command change --max-num-seqs 4 to 32, and restart"},
		{"a default", "vllm serve m", "256", engine.FromDefault, "add --max-num-seqs 32 to the launch command (now the default, 256) and restart"},
		{"in the config file", "vllm serve m --config c.yaml", "4", engine.FromConfig, "set max-num-seqs: 32 in the server's config file (now 4) and restart"},
		{"from the page", "vllm serve m", "4", engine.FromMetrics, "add --max-num-seqs 32 to the launch command and restart"},
		{"nothing known", "", "", "", "restart vLLM with --max-num-seqs 32"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := setFlag(&engine.Facts{Launch: c.launch}, "--max-num-seqs", c.from, "32", c.source); got != c.want {
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
		if got := olderThan(c.a, c.b); got != c.want {
			t.Errorf("olderThan(%q, %q) = %t, want %t", c.a, c.b, got, c.want)
		}
	}
}

func TestNumbersInSentences(t *testing.T) {
	for _, c := range []struct{ got, want string }{
		{percent(0.553), "55 %"}, {percent(0.0597), "6 %"}, {percent(0.012), "1.2 %"}, {percent(0), "0 %"}, {percent(1), "100 %"},
		{change(0.123), "+12 %"}, {change(-0.05), "-5 %"},
		{seconds(0.0125), "12.5 ms"}, {seconds(1.25), "1.25 s"}, {seconds(0), "0 s"}, {seconds(4e-5), "40 us"},
		{number(1234567), "1234567"}, {number(27.84), "27.8"}, {number(0.5), "0.5"}, {number(0.0123), "0.012"}, {number(3), "3"},
		{joinAnd(nil), ""}, {joinAnd([]string{"a"}), "a"}, {joinAnd([]string{"a", "b", "c"}), "a, b and c"},
	} {
		if c.got != c.want {
			t.Errorf("got %q, want %q", c.got, c.want)
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
	computed := run(engine.Know(1000.0, engine.FromDerived, "(est) from GPU memory, weights and utilisation, +-20 %"))
	if read.Source != engine.FromMetrics || strings.Contains(read.Text, "(est)") {
		t.Errorf("a pool that the page tells: %+v", read)
	}
	if computed.Source != engine.FromDerived || !strings.HasPrefix(computed.Text, "(est)") {
		t.Errorf("a pool from the catalog: %+v", computed)
	}
}

// Caching that nobody switched off is taken back by leaving the switch out: releases
// whose default is off have no --no- form of it.
func TestCachingIsSwitchedOffOnlyWhereItWas(t *testing.T) {
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
		if fix := enableCaching(&engine.Run{Facts: f}, stat.None, stat.None); fix.From != c.from || fix.To != "on" {
			t.Errorf("%s, V0 %v: %q to %q", c.source, c.v0, fix.From, fix.To)
		}
	}
}
