package glossary

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// TestExplainWords checks that each word has one meaning among those of traces.
func TestExplainWords(t *testing.T) {
	of := map[string]string{}
	add := func(name string, also []string) {
		for _, word := range append([]string{name}, also...) {
			word = strings.ToLower(word)
			if of[word] != "" {
				t.Errorf("%q leads to %q and to %q", word, of[word], name)
			}
			of[word] = name
		}
	}
	for _, e := range Terms() {
		add(e.Name, e.Also)
		if len(e.Meaning) == 0 {
			t.Errorf("%s has no meaning", e.Name)
		}
		for _, line := range e.Meaning {
			if strings.Contains(line, "%!") || line == "" {
				t.Errorf("%s: %q", e.Name, line)
			}
		}
	}
}

// TestWordsOfTheScreenAreExplained checks that the terms of the screen and the report are in
// the glossary.
func TestWordsOfTheScreenAreExplained(t *testing.T) {
	known := map[string]bool{}
	for _, e := range Terms() {
		for _, word := range append([]string{e.Name}, e.Also...) {
			known[word] = true
		}
	}
	for _, word := range []string{"operator", "tensor", "sched", "barriers", "graph", "wake-up", "expert", "splits", "interference", "levels", "lane", "lanes",
		"tok/s", "time to first token", "first token", "TTFT", "between calls", "moved", "call", "unknown", "coverage", "observer", "partial", "hook",
		"of roof", "roof share", "type", "copies", "leaves", "views", "DAG", "switches", "lost", "skew", "flash_attn_ext", "best that was seen", "waiting", "of median", "start", "synchronisation"} {
		if !known[word] {
			t.Errorf("explain does not know %q", word)
		}
	}
	for _, level := range strings.Split(optrace.LevelWords(), ", ") {
		if !known[level] {
			t.Errorf("explain does not know the level %q", level)
		}
	}
}

// TestWhatAHitCostsIsSaidAlike checks that the cost of a probe, its explanation and the
// expected cost per token agree.
func TestWhatAHitCostsIsSaidAlike(t *testing.T) {
	var words string
	for _, w := range Terms() {
		if w.Name == "observer effect" {
			words = strings.Join(w.Meaning, " ")
		}
	}
	for _, cheap := range []bool{true, false} {
		s := optrace.Site{Symbol: "llama_decode", Cheap: cheap, Cost: 350}
		hot, cold := s.HitCost()
		for _, d := range []time.Duration{hot, cold} {
			if !strings.Contains(words, figure.Duration(d)) {
				t.Errorf("%v is not explained: %s", d, words)
			}
		}
		if o := optrace.Expect(optrace.Expectation{Detail: optrace.DetailToken, GraphTime: 9 * time.Millisecond, Sites: []optrace.Site{s}}); hot >= cold || o.CostPerHit != cold {
			t.Errorf("a hit costs %v to %v, %v is expected", hot, cold, o.CostPerHit)
		}
	}
	barrier := optrace.Site{Symbol: "ggml_barrier", Cheap: true}
	if hot, cold := barrier.HitCost(); hot != optrace.BarrierHit || cold != optrace.BarrierHit {
		t.Errorf("a barrier's costs %v to %v", hot, cold)
	}
}
