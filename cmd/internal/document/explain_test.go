package document_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/rules"
)

func TestExplainEverything(t *testing.T) {
	var index bytes.Buffer
	terms := slices.Concat(tuning.Terms(), capture.Terms())
	if err := WriteIndex(&index, rules.Explanations(), []Vocabulary{{Used: "rooftop trace", Terms: terms}}, catalog.EngineOf(catalog.VLLM).Metrics(), Options{Options: render.Options{}}); err != nil {
		t.Fatal(err)
	}
	checkWidth(t, index.String(), 80)
	for _, e := range terms {
		var b bytes.Buffer
		if err := WriteTerm(&b, e, Options{Options: render.Options{}}); err != nil || len(e.Meaning) == 0 {
			t.Errorf("%s: %v", e.Name, err)
		}
		checkWidth(t, b.String(), 80)
	}
	for _, e := range rules.Explanations() {
		t.Run(string(e.ID), func(t *testing.T) {
			if !strings.Contains(index.String(), string(e.ID)) {
				t.Error("it is not in the index")
			}
			for _, columns := range []int{40, 80} {
				var b bytes.Buffer
				if err := WriteExplanation(&b, e, Options{Options: render.Options{Width: columns, ASCII: true}}); err != nil {
					t.Fatal(err)
				}
				checkWidth(t, b.String(), columns)
				flat := strings.Join(strings.Fields(b.String()), "")
				for _, s := range append(append([]string{string(e.ID), e.Rule}, e.Condition...), e.Remedy...) {
					if !strings.Contains(flat, strings.Join(strings.Fields(figure.ASCII(s)), "")) {
						t.Errorf("at %d columns the page lost %q", columns, s)
					}
				}
			}
		})
	}
	for _, m := range catalog.EngineOf(catalog.VLLM).Metrics() {
		t.Run(m.Key, func(t *testing.T) {
			var b bytes.Buffer
			if err := WriteMetric(&b, m, capture.OwnTimes(m.Key), Options{Options: render.Options{}}); err != nil {
				t.Fatal(err)
			}
			checkWidth(t, b.String(), 80)
			for _, n := range m.Names {
				if !strings.Contains(b.String(), "vllm:"+n) {
					t.Errorf("the page lacks the name %s", n)
				}
			}
			own := strings.Contains(b.String(), "rooftop's own client")
			if want := slices.Contains([]string{"ttft", "itl", "tpot", "e2e"}, m.Key); own != want {
				t.Errorf("the page says what rooftop's client means: %v, want %v", own, want)
			}
		})
	}
}

func TestExplanationGolden(t *testing.T) {
	e := rules.Explanation{
		ID: "concurrency-saturation", Rule: "R5", Title: "Concurrency saturation", Group: "slots", Impact: 4,
		Condition:  []string{"running lies within half a request of the slots", "at least 30 % of the requests in the server wait for capacity"},
		Thresholds: []rules.Threshold{{Name: "|running − max_num_seqs|", Op: "<=", Value: .5, Unit: "req", Source: "documented rules"}, {Name: "queued / (running + queued)", Op: ">=", Value: .3, Unit: "ratio", Source: "documented rules"}},
		Formula:    []string{"slots needed = running + queued, rounded up to a size of which vLLM captures a CUDA graph"},
		Gate:       "fired in at least 3 windows and in at least 25 % of those that could be judged",
		Confidence: []string{"0.90 where time to first token and KV usage are both present", "0.60 where one is absent"},
		Remedy:     []string{"KV peak below 80 %: raise --max-num-seqs", "KV peak from 80 %: more KV or a replica"},
		Limits:     []string{"no vLLM release exports max_num_seqs: where the launch command cannot be read, give -m"},
	}
	var b bytes.Buffer
	if err := WriteExplanation(&b, e, Options{Options: render.Options{}}); err != nil {
		t.Fatal(err)
	}
	golden(t, "explanation-80", b.Bytes())
}
