package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/report"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/rules"
)

func newExplain(w *world) *cobra.Command {
	var out output
	c := &cobra.Command{
		Use:   "explain [FINDING, WORD or METRIC]",
		Short: "A finding's condition, formula and remedy; a metric's meaning",
		Long: `Explains a finding (its condition, thresholds with their source, the formula of
its number, the remedy), a word of the screen (direction, classic, ceiling …) or
a metric (its names by vLLM version, unit, meaning). Words and warnings of
'rooftop probe' (witness, cpu-starved …) and of 'rooftop trace' (roof,
too-few-threads …) are among them. Without a name: the list.`,
		Example: "  rooftop explain seat-saturation\n  rooftop explain R2\n  rooftop explain classic\n  rooftop explain cpu-starved\n  rooftop explain vllm:kv_cache_usage_perc",
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return explainAll(w, &out)
			}
			return explainOne(w, &out, strings.Join(args, " "))
		},
	}
	f := c.Flags()
	f.BoolVar(&out.json, "json", false, "print JSON")
	f.StringVar(&out.color, "color", "auto", "colour: `auto`, always or never")
	f.BoolVar(&out.ascii, "ascii", false, "only ASCII characters")
	return c
}

// terms are the words of the loop, then those of probes and observations, then those of
// traces.
func terms() []engine.Term {
	out := slices.Concat(engine.Terms(), capture.Terms())
	for _, w := range optrace.ExplainWords() {
		out = append(out, engine.Term{Name: w.Name, Also: w.Also, Meaning: w.Meaning})
	}
	return out
}

// explained is a metric of the server's page, beside it what rooftop's own client means
// by the same name.
type explained struct {
	catalog.Metric
	Client []string `json:"client,omitempty"`
}

func explainAll(w *world, o *output) error {
	if o.json {
		return writeJSON(w, map[string]any{"findings": rules.Explanations(), "terms": terms(), "metrics": catalog.Default().Metrics()})
	}
	return report.WriteIndex(w.stdout, rules.Explanations(), terms(), catalog.Default().Metrics(), o.style(w))
}

func explainOne(w *world, o *output, name string) error {
	for _, e := range rules.Explanations() {
		if strings.EqualFold(name, string(e.ID)) || strings.EqualFold(name, e.Rule) && e.Rule != "beyond" {
			if o.json {
				return writeJSON(w, e)
			}
			if err := report.WriteExplanation(w.stdout, e, o.style(w)); err != nil {
				return fail(exitError, err)
			}
			if strings.EqualFold(name, string(e.ID)) {
				return nil
			}
			// R2 has two findings; both are meant.
			return explainRest(w, o, name, e.ID)
		}
	}
	for _, e := range terms() {
		if sameWord(name, e.Name) || slices.ContainsFunc(e.Also, func(also string) bool { return sameWord(name, also) }) {
			if o.json {
				return writeJSON(w, e)
			}
			return report.WriteTerm(w.stdout, e, o.style(w))
		}
	}
	if m, ok := findMetric(name); ok {
		if o.json {
			return writeJSON(w, explained{m, capture.OwnTimes(m.Key)})
		}
		return report.WriteMetric(w.stdout, m, capture.OwnTimes(m.Key), o.style(w))
	}
	return usage("nothing is called %q; 'rooftop explain' lists what is%s", name, closest(name))
}

// sameWord compares as a person does: not comparable, not-comparable and
// not_comparable, the spelling of --json, are one.
func sameWord(a, b string) bool {
	plain := strings.NewReplacer("-", " ", "_", " ")
	return strings.EqualFold(plain.Replace(strings.TrimLeft(a, "-")), plain.Replace(strings.TrimLeft(b, "-")))
}

func explainRest(w *world, o *output, code string, done engine.FindingID) error {
	for _, e := range rules.Explanations() {
		if strings.EqualFold(code, e.Rule) && e.ID != done {
			fmt.Fprintln(w.stdout)
			if err := report.WriteExplanation(w.stdout, e, o.style(w)); err != nil {
				return fail(exitError, err)
			}
		}
	}
	return nil
}

// findMetric finds a metric by its key or by any wire name it ever had.
func findMetric(name string) (catalog.Metric, bool) {
	bare := strings.TrimPrefix(strings.TrimPrefix(strings.ToLower(name), "vllm:"), "vllm_")
	for _, m := range catalog.Default().Metrics() {
		if bare == m.Key || slices.Contains(m.Names, bare) || slices.Contains(m.Names, bare+"_total") ||
			slices.Contains(m.Names, strings.TrimSuffix(bare, "_total")) {
			return m, true
		}
	}
	return catalog.Metric{}, false
}

// closest suggests names that contain what was typed.
func closest(name string) string {
	var near []string
	for _, e := range rules.Explanations() {
		if strings.Contains(string(e.ID), strings.ToLower(name)) {
			near = append(near, string(e.ID))
		}
	}
	for _, e := range terms() {
		if strings.Contains(strings.ToLower(e.Name), strings.ToLower(name)) {
			near = append(near, e.Name)
		}
	}
	for _, m := range catalog.Default().Metrics() {
		if strings.Contains(m.Key, strings.ToLower(name)) {
			near = append(near, m.Key)
		}
	}
	if len(near) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(near[:min(4, len(near))], ", ") + "?"
}

func writeJSON(w *world, v any) error {
	enc := json.NewEncoder(w.stdout)
	enc.SetIndent("", "  ")
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fail(exitError, err)
	}
	return nil
}
