package rules

import (
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
)

// Scenarios are small text files under testdata that describe a server, its windows, and the
// expected findings. testdata/README.md describes their syntax.

// TestScenarios runs every case of every testdata/*.scenario file.
func TestScenarios(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.scenario"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenario files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".scenario"), func(t *testing.T) {
			cases, err := readScenarios(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, c := range cases {
				t.Run(c.name, c.run)
			}
		})
	}
}

// scenario is one case of a file.
type scenario struct {
	name    string
	quiet   bool // readings and facts that are not listed are those of a healthy server
	facts   engine.Facts
	windows []engine.Window
	expects []expectation
}

// expectation is one line about the diagnosis that must be true.
type expectation struct {
	line  int
	words []string
}

func (c *scenario) diagnose() engine.Diagnosis {
	return engine.Diagnose(engine.Request{Facts: c.facts, Windows: c.windows, Rules: All(), Duration: time.Duration(len(c.windows)) * scenarioWindow})
}

func (c *scenario) run(t *testing.T) {
	d := c.diagnose()
	for i := range d.Findings {
		checkEvidence(t, &d.Findings[i])
	}
	for _, e := range c.expects {
		check := checkExpectation
		if e.words[0] == "check" {
			check = c.firstWindow
		}
		if err := check(&d, e.words); err != nil {
			t.Errorf("line %d: %v", e.line, err)
		}
	}
	if t.Failed() {
		for _, f := range d.Findings {
			t.Logf("%-18s %-13s sig=%-5t %d/%d c=%.2f i=%.0f  %s", f.ID, f.State, f.Significant, f.Fired, f.Evaluable, f.Confidence, f.Impact, f.Reason)
			if f.Fix != nil {
				t.Logf("    %s %s -> %s: %s | withheld %q | %v", f.Fix.Flag, f.Fix.From, f.Fix.To, f.Fix.Why, f.Fix.Withheld, f.Fix.Predicted)
			}
		}
	}
}

// firstWindow returns an error if a rule's check of the first window has another state.
func (c *scenario) firstWindow(_ *engine.Diagnosis, words []string) error {
	for _, r := range All() {
		if string(r.ID) != words[1] {
			continue
		}
		got := r.Check(&c.windows[0], &c.facts)
		why := strings.ReplaceAll(got.Sentence(), figure.NBSP, " ")
		if string(got.State) != words[2] || got.Why == "" || len(words) > 3 && !strings.Contains(why, words[3]) {
			return fmt.Errorf("%s: %s, %q, want %q", r.ID, got.State, why, words[2:])
		}
		return nil
	}
	return fmt.Errorf("no rule %q", words[1])
}

// checkEvidence reports evidence that contradicts itself: a value that is not on the stated side of
// its limit.
func checkEvidence(t *testing.T, f *engine.Finding) {
	t.Helper()
	for _, e := range f.Evidence {
		if !e.Value.OK || !e.Limit.OK {
			continue
		}
		v, l := e.Value.V, e.Limit.V
		if holds, known := map[string]bool{"<": v < l, "<=": v <= l, ">": v > l, ">=": v >= l}[e.Op]; known && !holds {
			t.Errorf("%s: evidence %s: %v %s %v does not hold: %s", f.ID, e.Name, v, e.Op, l, e.Text)
		}
	}
}

// checkExpectation returns an error if the diagnosis does not match an expectation.
func checkExpectation(d *engine.Diagnosis, words []string) error {
	switch words[0] {
	case "outcome":
		if string(d.Outcome) != words[1] {
			return fmt.Errorf("outcome %s, want %s", d.Outcome, words[1])
		}
		for _, want := range words[2:] {
			if !strings.Contains(strings.ReplaceAll(d.Doubt, figure.NBSP, " "), strings.TrimPrefix(want, "doubt=")) {
				return fmt.Errorf("doubt %q, want it to contain %q", d.Doubt, want)
			}
		}
		return nil
	case "recommend":
		got := "none"
		if d.Recommendation != nil {
			got = string(d.Recommendation.Finding)
		}
		if got != words[1] {
			return fmt.Errorf("recommends %s, want %s", got, words[1])
		}
		return nil
	case "expect":
		for i := range d.Findings {
			if string(d.Findings[i].ID) == words[1] {
				return findingHolds(&d.Findings[i], words[2:])
			}
		}
		return fmt.Errorf("no finding %q", words[1])
	}
	return fmt.Errorf("unknown line %q", words[0])
}

func findingHolds(f *engine.Finding, words []string) error {
	fix := f.Fix
	if fix == nil {
		fix = &engine.Fix{}
	}
	text := map[string]string{
		"flag": fix.Flag, "from": fix.From, "to": fix.To, "kind": string(fix.Kind), "by": f.SuppressedBy, "title": f.Title,
		"impact": fmt.Sprint(f.Impact), "confidence": strconv.FormatFloat(f.Confidence, 'f', 2, 64),
		"profile": string(f.Profile.State), "fired": strconv.Itoa(f.Fired), "judged": strconv.Itoa(f.Judged), "evaluable": strconv.Itoa(f.Evaluable),
	}
	contains := map[string]string{
		"profile_reason": f.Profile.Reason, "reason": f.Reason, "command": fix.Command, "why": fix.Why, "withheld": fix.Withheld,
		"missing": strings.Join(f.Missing, "; "), "costs": strings.Join(fix.Costs, "; "),
		"rejected": fmt.Sprint(fix.Rejected), "evidence": fmt.Sprint(f.Evidence), "predicted": fmt.Sprint(fix.Predicted),
	}
	for _, w := range words {
		k, want, isPair := strings.Cut(w, "=")
		switch {
		case !isPair && w == "significant":
			if !f.Significant {
				return fmt.Errorf("%s is not significant (%d of %d)", f.ID, f.Fired, f.Evaluable)
			}
		case !isPair && w == "insignificant":
			if f.Significant {
				return fmt.Errorf("%s is significant (%d of %d)", f.ID, f.Fired, f.Evaluable)
			}
		case !isPair && w == "recommendable":
			if fix.Withheld != "" || f.Fix == nil {
				return fmt.Errorf("%s is withheld: %q", f.ID, fix.Withheld)
			}
		case !isPair:
			if string(f.State) != w {
				return fmt.Errorf("%s is %s (%s), want %s", f.ID, f.State, f.Reason, w)
			}
		default:
			if got, ok := contains[k]; ok {
				if !strings.Contains(strings.ReplaceAll(got, figure.NBSP, " "), want) || (want == "" && got != "") {
					return fmt.Errorf("%s %s is %q, want it to contain %q", f.ID, k, got, want)
				}
			} else if got, ok := text[k]; !ok || got != want {
				return fmt.Errorf("%s %s is %q, want %q", f.ID, k, got, want)
			}
		}
	}
	return nil
}
