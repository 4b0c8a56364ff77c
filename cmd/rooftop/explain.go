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
too-few-threads …) are among them. A word that means several things is explained
with where it does each. Without a name: the list.`,
		Example: "  rooftop explain seat-saturation\n  rooftop explain R2\n  rooftop explain classic\n  rooftop explain cpu-starved\n  rooftop explain tok/s\n  rooftop explain vllm:kv_cache_usage_perc",
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

// word is a word with where it is used.
type word struct {
	engine.Term
	Used   string `json:"used"`
	Others []any  `json:"others,omitempty"` // what else the name means, elsewhere
}

// vocabularies are the words of the loop, then those of probes and observations, then
// those of traces.
func vocabularies() []report.Vocabulary {
	traces := report.Vocabulary{Used: "rooftop trace"}
	for _, w := range optrace.ExplainWords() {
		traces.Terms = append(traces.Terms, engine.Term{Name: w.Name, Also: w.Also, Meaning: w.Meaning})
	}
	return []report.Vocabulary{
		{Used: "rooftop diagnose and tune", Terms: engine.Terms()},
		{Used: "rooftop probe, observe and load", Terms: capture.Terms()},
		traces,
	}
}

// words are those of all vocabularies.
func words() []word {
	var out []word
	for _, v := range vocabularies() {
		for _, t := range v.Terms {
			out = append(out, word{Term: t, Used: v.Used})
		}
	}
	return out
}

// explained is a metric of the server's page, beside it what rooftop's own client means
// by the same name.
type explained struct {
	catalog.Metric
	Client []string `json:"client,omitempty"`
	Used   string   `json:"used"`
	Others []any    `json:"others,omitempty"` // what else the name means, elsewhere
}

func explainAll(w *world, o *output) error {
	if o.json {
		return writeJSON(w, map[string]any{"findings": rules.Explanations(), "terms": words(), "metrics": catalog.Default().Metrics()})
	}
	return report.WriteIndex(w.stdout, rules.Explanations(), vocabularies(), catalog.Default().Metrics(), o.style(w))
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
	meanings := meaningsOf(name)
	switch {
	case len(meanings) == 0:
		return usage("nothing is called %q; 'rooftop explain' lists what is%s", name, closest(name))
	case o.json:
		return writeJSON(w, nested(meanings))
	case len(meanings) == 1:
		return meanings[0].write(w, o)
	}
	for i := range meanings {
		if i > 0 {
			fmt.Fprintln(w.stdout)
		}
		if err := report.WriteUsed(w.stdout, name, meanings[i].used(), o.style(w)); err != nil {
			return fail(exitError, err)
		}
		if err := meanings[i].write(w, o); err != nil {
			return fail(exitError, err)
		}
	}
	return nil
}

// meaning is one of the things that a name stands for: a word, or a metric.
type meaning struct {
	word   *word
	metric *explained
	own    bool // the name is its own, and not another one for it
}

// meaningsOf are the meanings of a name, those first that it is the own name of.
func meaningsOf(name string) []meaning {
	var out []meaning
	for _, e := range words() {
		own := sameWord(name, e.Name)
		if own || slices.ContainsFunc(e.Also, func(also string) bool { return sameWord(name, also) }) {
			out = append(out, meaning{word: &e, own: own})
		}
	}
	if m, ok := findMetric(name); ok {
		out = append(out, meaning{metric: &explained{Metric: m, Client: capture.OwnTimes(m.Key), Used: "vLLM's page of metrics, which rooftop diagnose and tune read"}, own: sameWord(name, m.Key)})
	}
	slices.SortStableFunc(out, func(a, b meaning) int {
		switch {
		case a.own == b.own:
			return 0
		case a.own:
			return -1
		}
		return 1
	})
	return out
}

func (m *meaning) used() string {
	if m.word != nil {
		return m.word.Used
	}
	return m.metric.Used
}

func (m *meaning) write(w *world, o *output) error {
	if m.word != nil {
		return report.WriteTerm(w.stdout, m.word.Term, o.style(w))
	}
	return report.WriteMetric(w.stdout, m.metric.Metric, m.metric.Client, o.style(w))
}

// nested is the first meaning, which has the others in it.
func nested(meanings []meaning) any {
	var others []any
	for i := len(meanings) - 1; i > 0; i-- {
		others = append([]any{meanings[i].object(nil)}, others...)
	}
	return meanings[0].object(others)
}

func (m *meaning) object(others []any) any {
	if m.word != nil {
		w := *m.word
		w.Others = others
		return w
	}
	metric := *m.metric
	metric.Others = others
	return metric
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
	for _, e := range words() {
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
