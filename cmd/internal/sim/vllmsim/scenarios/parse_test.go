package scenarios

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const valid = `case: S2
name: slots
story: too few slots
server: vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs 16
gpu: NVIDIA L4
load:
  - phases: [{for: 10s, rate: 2.5, to: 4}, {rate: 4}]
    cv: 2
    prompt: lognormal:300,0.6,2000
    output: 10-20
measure: {after: 5s, for: 10s}
truth: {outcome: [recommendation, healthy], finding: concurrency-saturation, kind: flag, flag: --max-num-seqs}
remedy:
  set: {max-num-seqs: 64}
  expect: [tokens_per_s >= 1.5x]
wrong:
  set: {gpu-memory-utilization: 0.95}
  expect: ["tokens_per_s <= 1.05x"]
on:
  - pair: a
  - pair: b
    note: shorter
    measure: {for: 9s}
`

func TestParse(t *testing.T) {
	list, err := Parse("f.yaml", []byte(valid))
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 2 || list[0].Name != "slots/a" || list[1].Name != "slots/b" {
		t.Fatalf("got %d scenarios: %+v", len(list), list)
	}
	want := []Stream{{
		Phases: []Phase{{For: 10 * time.Second, Rate: 2.5, To: 4}, {Rate: 4}},
		CV:     2,
		Prompt: Lengths{Mean: 300, Sigma: 0.6, Most: 2000},
		Output: Lengths{Least: 10, Most: 20},
	}}
	if diff := cmp.Diff(want, list[0].Load); diff != "" {
		t.Errorf("load (-want +got):\n%s", diff)
	}
	// A pair says only what differs.
	if diff := cmp.Diff(Measure{After: 5 * time.Second, For: 9 * time.Second}, list[1].Measure); diff != "" {
		t.Errorf("measure of the second pair (-want +got):\n%s", diff)
	}
	if list[0].Measure.For != 10*time.Second || list[0].Note != "" {
		t.Errorf("the second pair's fields reached the first: %+v", list[0])
	}
	if diff := cmp.Diff([]Flag{{"max-num-seqs", "64"}}, list[0].Remedy.Set); diff != "" {
		t.Errorf("remedy (-want +got):\n%s", diff)
	}
}

// TestTypos: each is one line with file, line and field.
func TestTypos(t *testing.T) {
	for name, tt := range map[string]struct{ old, new, want string }{
		"unknown field":        {"prompt: lognormal", "promt: lognormal", `f.yaml:9: load[0]: "promt" is not a field here`},
		"unknown top field":    {"story:", "storey:", `f.yaml:3: "storey" is not a field here`},
		"in a pair":            {"note: shorter", "nite: shorter", `f.yaml:22: on[1]: "nite" is not a field here`},
		"twice":                {"gpu: NVIDIA L4", "gpu: NVIDIA L4\ngpu: NVIDIA L4", `f.yaml:6: "gpu" is there twice`},
		"duration":             {"after: 5s", "after: 5", `f.yaml:11: measure.after: "5" is not a duration`},
		"number":               {"rate: 2.5", "rate: fast", `f.yaml:7: load[0].phases[0].rate: "fast" is not a number`},
		"length":               {"10-20", "10-", `f.yaml:10: load[0].output: "10-" is not a length`},
		"length upside down":   {"10-20", "20-10", `f.yaml:10: load[0].output: "20-10" is not a length`},
		"expectation":          {"tokens_per_s >= 1.5x", "tokens_per_s up", `f.yaml:15: remedy.expect[0]: "tokens_per_s up" is not an expectation`},
		"operator":             {"tokens_per_s >= 1.5x", "tokens_per_s = 1.5x", `compares with none of`},
		"outcome":              {"recommendation, healthy", "sick", `truth.outcome: "sick" is not one of`},
		"kind":                 {"kind: flag", "kind: flags", `truth.kind: "flags" is not one of`},
		"gpu":                  {"NVIDIA L4", "NVIDIA L5", `on[0].gpu: `},
		"server":               {"vllm serve", "vlm serve", `on[0].server: `},
		"both loops":           {"rate: 2.5", "rate: 2.5, users: 3", `load[0].phases[0]: either rate or users`},
		"open end":             {"{for: 10s, rate", "{rate", `load[0].phases[0].for: missing`},
		"short":                {"for: 9s", "for: 7s", `f.yaml:21: on[1].measure.for: 7s is shorter than 8s`},
		"pair twice":           {"pair: b", "pair: a", `on[1].pair: "a" is there twice`},
		"no change":            {"set: {max-num-seqs: 64}", "why: nothing", `remedy: changes nothing`},
		"flag with dashes":     {"{max-num-seqs: 64}", "{--max-num-seqs: 64}", `f.yaml:14: remedy.set: a flag is its bare name`},
		"case":                 {"case: S2", "case: S25", `case: "S25" is not one of S1 to S24`},
		"broken":               {"case: S2", "case: [", `f.yaml: line `},
		"anchor":               {"prompt: lognormal:300,0.6,2000", "prompt: &a 300", `anchors and aliases are not supported`},
		"second document":      {"  - pair: a\n", "  - pair: a\n---\n", `more than one document`},
		"structure for a word": {"gpu: NVIDIA L4", "gpu: [NVIDIA L4]", `gpu: one value is expected`},
		"word for a structure": {"measure: {after: 5s, for: 10s}", "measure: 10s", `measure: fields are expected`},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Replace(valid, tt.old, tt.new, 1)
			if text == valid {
				t.Fatalf("%q is not in the file", tt.old)
			}
			_, err := Parse("f.yaml", []byte(text))
			if err == nil {
				t.Fatalf("no error, want %q", tt.want)
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got  %v\nwant %s", err, tt.want)
			}
			if !strings.HasPrefix(err.Error(), "f.yaml:") || strings.Contains(err.Error(), "\n") {
				t.Errorf("not one line with the file: %q", err)
			}
		})
	}
}

func TestExpectHolds(t *testing.T) {
	for text, tt := range map[string]struct {
		before, after float64
		want          bool
	}{
		"a >= 1.5x": {100, 150, true},
		"a > 1.5x":  {100, 150, false},
		"a <= 0.1":  {100, 0.1, true},
		"a < 0.5x":  {100, 60, false},
	} {
		var e Expect
		if err := e.parse(text); err != nil {
			t.Fatal(err)
		}
		if got := e.Holds(tt.before, tt.after); got != tt.want {
			t.Errorf("%s of %v and %v: got %v", text, tt.before, tt.after, got)
		}
		if e.String() != text {
			t.Errorf("%s is written %s", text, e)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(valid))
	f.Add([]byte("case: S1\non: [{pair: a}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := Parse("f", data)
		if err != nil && strings.ContainsAny(err.Error(), "\n") {
			t.Errorf("an error of several lines: %q", err)
		}
		for _, s := range list {
			if s.Name == "" || s.Measure.For < minMeasure {
				t.Errorf("accepted: %+v", s)
			}
		}
	})
}
