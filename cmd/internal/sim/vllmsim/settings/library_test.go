package settings

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// TestLibraryIsWellFormed checks the properties that readers of the files rely on.
func TestLibraryIsWellFormed(t *testing.T) {
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	caseID, name := regexp.MustCompile(`^S([1-9]|1[0-9]|2[0-4])$`), regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*/[a-z0-9.]+(-[a-z0-9]+)*$`)
	seen := map[string]bool{}
	known := func(words, of []string) bool {
		return !slices.ContainsFunc(words, func(w string) bool { return !slices.Contains(of, w) })
	}
	for i := range all {
		s := &all[i]
		_, gpu := catalog.Default().FindGPU(s.GPU, 0)
		_, server := launch.ParseCommand(s.Server, nil, nil)
		change := func(c *Change) bool { return c.Empty() || len(c.Expect) > 0 }
		for what, right := range map[string]bool{
			"case":    caseID.MatchString(s.Case),
			"name":    name.MatchString(s.Name) && !seen[s.Name],
			"story":   s.Story != "",
			"gpu":     gpu == nil,
			"server":  server == nil && strings.HasPrefix(s.Server, "vllm serve "),
			"measure": s.Measure.For >= 8*time.Second,
			"outcome": len(s.Truth.Outcomes) > 0 && known(s.Truth.Outcomes, []string{"recommendation", "healthy", "no-load", "not-evaluable", "unhealthy"}),
			"kind":    known(s.Truth.Kinds, []string{"flag", "client", "host", "hardware"}),
			"remedy":  change(&s.Remedy),
			"wrong":   !s.Wrong.Empty() && change(&s.Wrong),
			"load":    sendable(s.Load) && sendable(s.Remedy.Load) && sendable(s.Wrong.Load),
		} {
			if !right {
				t.Errorf("%s:%d: %s: %s is wrong", s.File, s.Line, s.Name, what)
			}
		}
		seen[s.Name] = true
	}
}

// sendable reports whether every stream has a name of its own, phases of one kind that follow each other, and
// lengths.
func sendable(load []Stream) bool {
	names := map[string]bool{}
	for i := range load {
		s := &load[i]
		if names[s.Name] || len(s.Phases) == 0 || !s.Prompt.Set() || !s.Output.Set() || s.Cancel < 0 || s.Cancel > 1 {
			return false
		}
		names[s.Name] = true
		for j, p := range s.Phases {
			if p.Rate > 0 && s.Closed() || p.For == 0 && j < len(s.Phases)-1 {
				return false
			}
		}
	}
	return true
}

const valid = `case: S2
name: slots
load:
  - phases: [{for: 10s, rate: 2.5, to: 4}, {rate: 4}]
    prompt: lognormal:300,0.6,2000
    output: 10-20
measure: {after: 5s, for: 10s}
truth: {outcome: [recommendation, healthy], kind: flag}
faults: [stall@40s]
remedy:
  set: {max-num-seqs: 64}
  expect: [tokens_per_s >= 1.5x]
on:
  - pair: a
  - pair: b
    note: shorter
    measure: {for: 9s}
    remedy: {set: {max-num-seqs: 32}}
`

// TestParseScenario checks that a pair contains only the differences from its case.
func TestParseScenario(t *testing.T) {
	list, err := ParseScenario("f.yaml", []byte(valid))
	if err != nil || len(list) != 2 {
		t.Fatalf("%d scenarios, %v", len(list), err)
	}
	a, b := &list[0], &list[1]
	load := []Stream{{
		Phases: []Phase{{For: 10 * time.Second, Rate: 2.5, To: 4}, {Rate: 4}},
		Prompt: Lengths{Mean: 300, Sigma: 0.6, Most: 2000},
		Output: Lengths{Least: 10, Most: 20},
	}}
	got := []any{a.Name, b.Name, a.Load, b.Measure, a.Measure.For, a.Note, a.Remedy.Set, b.Remedy.Set, b.Remedy.Expect, a.Truth.Outcomes, b.Truth.Kinds}
	want := []any{
		"slots/a", "slots/b", load, Measure{After: 5 * time.Second, For: 9 * time.Second}, 10 * time.Second, "", Flags{{"max-num-seqs", "64"}},
		Flags{{"max-num-seqs", "32"}}, []Expect{{"tokens_per_s", ">=", 1.5, true}}, Words{"recommendation", "healthy"}, Words{"flag"},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got)\n%s", d)
	}
}

// TestTypos checks that each error is one line with the file and the line.
func TestTypos(t *testing.T) {
	for _, tt := range []struct{ old, new, want string }{
		{"prompt: lognormal", "promt: lognormal", `f.yaml: yaml: unmarshal errors: line 5: field promt not found`},
		{"note: shorter", "nite: shorter", `f.yaml:15: yaml: unmarshal errors: line 2: field nite not found`},
		{"after: 5s", "after: 5 s", "line 7: cannot unmarshal"},
		{"10-20", "20-10", `"20-10" is not a length`},
		{"tokens_per_s >= 1.5x", "tokens_per_s up", `"tokens_per_s up" is not an expectation`},
		{"tokens_per_s >= 1.5x", "tokens_per_s = 1.5x", "compares with none of"},
		{"stall@40s", "fire@40s", "kind one of stall, slow"},
		{"case: S2", "case: [", "f.yaml: yaml: line "},
	} {
		text := strings.Replace(valid, tt.old, tt.new, 1)
		if _, err := ParseScenario("f.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("got  %v\nwant %s", err, tt.want)
		}
	}
}

func FuzzParseScenario(f *testing.F) {
	f.Add([]byte(valid))
	f.Add([]byte("case: S1\non: [{pair: a}]"))
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := ParseScenario("f", data); err != nil && strings.ContainsAny(err.Error(), "\n") {
			t.Errorf("an error of several lines: %q", err)
		}
	})
}
