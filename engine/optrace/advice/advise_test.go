package advice

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// TestAdvice checks that there is one recommendation, the right one, with its number.
func TestAdvice(t *testing.T) {
	both := func(f ...func(*optrace.Summary)) func(*optrace.Summary) {
		return func(s *optrace.Summary) {
			for _, f := range f {
				f(s)
			}
		}
	}
	tests := []struct {
		name                 string
		make                 func(*optrace.Summary)
		finding, flag, value string
	}{
		{"as many threads as CPUs", oversubscribe, "oversubscribed", "--threads", "3"},
		{"the fast cores", unevenLanes, "sync-bound", "--threads", "3"},
		{"half the threads", func(s *optrace.Summary) {
			lanes(s, func(_ int, t *optrace.ThreadRow) { t.Busy, t.Sync = stat.Some(0.2), stat.Some(0.79) })
		}, "sync-bound", "--threads", "2"},
		{"lock the weights", cold, "mmap-cold", "--mlock", ""},
		{"larger batches", smallBatches, "prefill-batch-too-small", "--ubatch-size", "512"},
		{"a smaller cache", longContext, "attention-grows", "--cache-type-k and --cache-type-v", "q8_0"},
		{"flash attention", both(longContext, func(s *optrace.Summary) {
			s.Kinds[1].Op, s.Kinds[2].Op, s.Kinds[2].Share = "MUL_MAT", "SOFT_MAX", stat.Some(0.15)
		}), "attention-grows", "--flash-attn", "on"},
		{"attention that computes", both(longContext, func(s *optrace.Summary) { s.Kinds[1].Bound = optrace.BoundCompute }), "", "", ""},
		{"attention far below the memory", both(longContext, func(s *optrace.Summary) { s.Kinds[1].BytesRate = stat.Some(5e9) }), "", "", ""},
		{"attention, and what the memory gives not known", both(longContext, func(s *optrace.Summary) { s.Peak.From = "seen" }), "", "", ""},
		{"attention, and what it reads not known", both(longContext, func(s *optrace.Summary) { s.Kinds[1].BytesRate = stat.None }), "", "", ""},
		{"a cache that is small already", both(longContext, func(s *optrace.Summary) { s.Target.Command += " -ctk q8_0 -ctv q8_0" }), "", "", ""},
		{"repacking", func(s *optrace.Summary) { s.Target.Command += " --no-repack" }, "repacking-unused", "--repack", ""},
		{"more layers on the GPU", split, "offload-copies", "--gpu-layers", "99"},
		{"another model file", eightBits, "quantisation", "", ""},
		{"nothing at the roof", func(s *optrace.Summary) { reads(s, 38e9) }, "decode-at-memory-peak", "", ""},
		{"interference before settings", both(smallBatches, stolen), "preempted", "", ""},
		{"rooftop's own reader", both(stolen, byReader), "observer-effect", "--level", "tensor"},
		{"a limit of CPU time, or another context", both(stolen, func(s *optrace.Summary) { s.HostLoad.Others = time.Second }), "oversubscribed", "", ""},
		{"a trace whose hits are operators' alone", func(s *optrace.Summary) { s.Observer.Expected, s.Observer.HitsPerToken = 0.3, 1600 }, "observer-effect", "--level", "graph"},
		{"a first request", both(cold, func(s *optrace.Summary) { s.Tokens = s.Tokens[:5] }), "", "", ""},
		{"weights that are not mapped", both(cold, func(s *optrace.Summary) { s.Target.Command += " --no-mmap" }), "", "", ""},
		{"settings before another file", both(smallBatches, eightBits), "prefill-batch-too-small", "--ubatch-size", "512"},
		{"figures that hold before all", both(stolen, func(s *optrace.Summary) { s.Observer.Expected = 0.3 }), "observer-effect", "--level", "tensor"},
		{"interference that costs far more than the probes", both(stolen, heldUp(0.3)), "preempted", "", ""},
		{"the same, where the mean token is as the median one", both(stolen, heldUp(0.3), func(s *optrace.Summary) { s.Observer.MeanGraph = 500 * time.Microsecond }), "observer-effect", "--level", "graph"},
		{"Ollama's name", both(oversubscribe, func(s *optrace.Summary) { s.Target.Command = "/usr/local/bin/ollama runner --model x" }), "oversubscribed", "num_thread", "3"},
		{"node-llama-cpp's name", both(oversubscribe, func(s *optrace.Summary) {
			s.Target.Command = "node server.js"
			s.Target.Files = []optrace.File{{Role: "llama", Path: "/app/node_modules/@node-llama-cpp/linux-x64/bins/libllama.so"}}
		}), "oversubscribed", "threads (createContext)", "3"},
		{"no own name", both(oversubscribe, func(s *optrace.Summary) { s.Target.Command = "/opt/mine" }), "oversubscribed", "--threads", "3"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := healthy()
			test.make(s)
			findings, a := Diagnose(s)
			if a.Finding != test.finding || a.Flag != test.flag || a.Value != test.value {
				t.Errorf("%q: %q %q, want %q: %q %q (%s)", a.Finding, a.Flag, a.Value, test.finding, test.flag, test.value, a.Do)
			}
			checkAdvice(t, findings, &a)
		})
	}
}

// heldUp makes the probes take a share of the speed by the median token, and almost nothing of
// the mean one, which waits for a CPU.
func heldUp(expected float64) func(*optrace.Summary) {
	return func(s *optrace.Summary) {
		o := &s.Observer
		o.Expected, o.HitsPerToken, o.CostPerHit, o.GraphTime, o.MeanGraph = expected, 112, time.Microsecond, 300*time.Microsecond, 9*time.Millisecond
	}
}

// TestProbesBesideInterference checks that the probes' cost is given for both tokens, and why
// less detail is not the recommendation.
func TestProbesBesideInterference(t *testing.T) {
	s := healthy()
	stolen(s)
	heldUp(0.25)(s)
	findings, a := Diagnose(s)
	at := slices.IndexFunc(findings, func(f optrace.Finding) bool { return f.ID == "observer-effect" })
	if at < 0 || findings[at].Severity != severityWarn || findings[at].Cost.V > 0.0125 || findings[at].Cost.V < 0.0124 {
		t.Fatalf("%+v", findings)
	}
	if text := spaced(findings[at].Evidence...); !strings.Contains(text, "25 %") || !strings.Contains(text, "median token. The mean token takes 9.00 ms") || !strings.Contains(text, "1.2 % of that") {
		t.Error(text)
	}
	if !strings.Contains(spaced(a.Rejected...), "observer-effect: it costs 1.2 % of the time, preempted costs 36 %") {
		t.Errorf("%q", a.Rejected)
	}
	s.Observer.Windows, s.Observer.MeasuredLow = 20, 0.2
	if _, a := Diagnose(s); a.Finding != "observer-effect" {
		t.Errorf("the measurement covers all of the time: %s", a.Do)
	}
}

// TestAdviceOfAPrefillAlone checks that the advice names what was not judged: no decode was
// seen.
func TestAdviceOfAPrefillAlone(t *testing.T) {
	s := healthy()
	s.Phases, s.Kinds, s.Layers = s.Phases[:1], nil, nil
	_, a := Diagnose(s)
	if !strings.HasPrefix(a.Do, "Change nothing") || !strings.Contains(a.Why, "fewer than 20 decode graphs") {
		t.Errorf("got %q, %q", a.Do, a.Why)
	}
}

func TestAdviceSaysWhoseOptionItIs(t *testing.T) {
	s := healthy()
	oversubscribe(s)
	s.Target.Command = "/opt/mine"
	if _, a := Diagnose(s); !strings.Contains(a.Why, "as in llama.cpp") {
		t.Errorf("the advice does not say whose option it is: %s", a.Why)
	}
	s.Target.Command = "/usr/bin/llama-server"
	if _, a := Diagnose(s); strings.Contains(a.Why, "as in llama.cpp") {
		t.Errorf("a program that is known: %s", a.Why)
	}
}

// TestFindingWithoutRemedy checks that the advice does not deny a finding that has no remedy.
func TestFindingWithoutRemedy(t *testing.T) {
	s := healthy()
	longContext(s)
	s.Peak.From = "seen"
	_, a := Diagnose(s)
	if a.Finding != "" || !strings.Contains(a.Why, "attention-grows") || !strings.Contains(a.Why, "--catalog takes the CPU's data sheet") || strings.Contains(a.Why, "Nothing in this trace") {
		t.Errorf("%s %s", a.Do, a.Why)
	}
}

// TestRoofThatIsNotKnown checks that the advice says what would reveal the peak.
func TestRoofThatIsNotKnown(t *testing.T) {
	s := healthy()
	s.Peak.From = "seen"
	if _, a := Diagnose(s); !strings.Contains(a.Why, "--catalog takes one") {
		t.Errorf("the roof was not asked for: %s", a.Why)
	}
}

func TestColdWeightsThatAreWarmNow(t *testing.T) {
	s := healthy()
	cold(s)
	for i := range s.Tokens[20:] {
		s.Tokens[20+i].Off = optrace.SomeTime(0)
	}
	findings, a := Diagnose(s)
	if len(findings) != 1 || findings[0].Severity != severityInfo || a.Finding != "" {
		t.Errorf("weights that are in memory by now: %+v, %+v", findings, a)
	}
}

func TestWhatWasNotTracedIsNotRuledOut(t *testing.T) {
	s := healthy()
	lanes(s, func(_ int, t *optrace.ThreadRow) { t.Sync, t.Off, t.Preempted = stat.None, stat.None, stat.None })
	findings, a := Diagnose(s)
	if len(findings) != 0 || len(a.Rejected) != 2 {
		t.Errorf("findings %q, rejected %q", ids(findings), a.Rejected)
	}
}

func TestArgument(t *testing.T) {
	for _, c := range []struct {
		command, value string
		found          bool
	}{
		{"llama-server -ctk q8_0", "q8_0", true},
		{"llama-server --cache-type-k=q4_0", "q4_0", true},
		{"llama-server -ctk", "", true},
		{"llama-server -ctk -m x", "", true},
		{"llama-server -ctk -1", "-1", true},
		{"llama-server -ctkx q8_0", "", false},
		{"", "", false},
	} {
		if value, found := argument(c.command, "-ctk", "--cache-type-k"); value != c.value || found != c.found {
			t.Errorf("%q: %q %v", c.command, value, found)
		}
	}
}

// TestAdviceOfFewGraphs checks that no change is advised on the basis of a few graphs: findings
// are shown without their gain.
func TestAdviceOfFewGraphs(t *testing.T) {
	s := healthy()
	stolen(s)
	s.Phases = s.Phases[:1]
	for graphs, want := range map[int]string{8: "", optrace.FewestGraphs - 1: "", optrace.FewestGraphs: "preempted"} {
		s.Phases[0].Graph.Count = graphs
		s.HostLoad.Elapsed = time.Duration(graphs) * s.Phases[0].Graph.Mean
		findings, a := Diagnose(s)
		if len(findings) == 0 || findings[0].ID != "preempted" || a.Finding != want || a.Gain.OK != (want != "") {
			t.Errorf("%d graphs: %q, gain %v, of %+v", graphs, a.Finding, a.Gain, findings)
		}
		if bad := findings[0].Severity == severityBad; bad != (want != "") {
			t.Errorf("%d graphs are called %q: %q", graphs, findings[0].Severity, findings[0].Evidence)
		}
		if early := fmt.Sprintf("Nothing yet: the trace has only %d of 20 graphs.", graphs); want == "" && (a.Do != early || !slices.ContainsFunc(a.Rejected, func(r string) bool { return strings.HasPrefix(r, "preempted: the trace has fewer than 20 graphs") })) {
			t.Errorf("%d graphs: %q, %q", graphs, a.Do, a.Rejected)
		}
	}
}

// TestAdviceOfTooLittle checks that little work is not reported as none: the first seconds of a
// live trace are too early to judge.
func TestAdviceOfTooLittle(t *testing.T) {
	phase := func(name string, graphs int) optrace.PhaseRow {
		return optrace.PhaseRow{Phase: name, Graph: stat.Distribution{Count: graphs}}
	}
	for want, s := range map[string]*optrace.Summary{
		"Nothing: the target computed nothing while the trace ran.": {},
		"Nothing yet: the trace has only 6 of 20 decode graphs.":    {Phases: []optrace.PhaseRow{phase("decode", 6)}, Coverage: optrace.Coverage{Graphs: 6}},
		"Nothing: the trace has neither a decode nor a prefill.":    {Phases: []optrace.PhaseRow{phase("encode", 600)}, Coverage: optrace.Coverage{Graphs: 600}},
		"Nothing: the trace has no complete graph.":                 {Coverage: optrace.Coverage{Calls: 3, Partial: 2}},
		"Change nothing.": {Phases: []optrace.PhaseRow{phase("prefill", 1), phase("decode", 6)}},
	} {
		if _, a := Diagnose(s); a.Do != want || a.Why == "" {
			t.Errorf("%q: %q, want %q", a.Do, a.Why, want)
		}
	}
}

// A refused trace says why nothing is advised.
func TestAdviceOfARefusedTrace(t *testing.T) {
	if _, a := Diagnose(&optrace.Summary{Gaps: []optrace.Gap{{What: GapEverything, Why: "it costs too much"}}}); a.Do != "Nothing: nothing was traced." || !strings.Contains(a.Why, "it costs too much") {
		t.Errorf("%+v", a)
	}
}

// A truncated recording without a graph is not reported as an idle target.
func TestAdviceOfARecordingThatWasCut(t *testing.T) {
	if _, a := Diagnose(&optrace.Summary{Gaps: []optrace.Gap{{What: optrace.GapEnd, Why: "the file is cut short after 3 events"}}}); a.Do != "Nothing: the recording was cut short and holds no graph." || !strings.Contains(a.Why, "after 3 events") {
		t.Errorf("%+v", a)
	}
}
