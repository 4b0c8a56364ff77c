package rules

import (
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

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
