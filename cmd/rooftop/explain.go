package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/reference"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/rules"
)

func newExplain(w *cli.World) *cobra.Command {
	var out cli.Output
	on := catalog.VLLM
	c := newCommand("explain", nil, func(_ *cobra.Command, args []string) error {
		if len(args) == 0 {
			return explainAll(w, &out)
		}
		return explainOne(w, &out, catalog.EngineOf(on), strings.Join(args, " "))
	})
	g := cli.GroupFlags(c)
	var names []string
	for _, e := range catalog.Engines() {
		names = append(names, e.ID)
	}
	cli.Choice(g.Group("Engine"), &on, "engine", catalog.VLLM, "findings and metrics of an `ENGINE`: "+strings.Join(names, ", "), names...)
	out.Register(g, "")
	return g.Done()
}

// word is a word and where it is used.
type word struct {
	engine.Term
	Used   string `json:"used"`
	Others []any  `json:"others,omitempty"` // other meanings of the name
}

// vocabularies returns the words of the loop, then of probes and observations.
func vocabularies() []reference.Vocabulary {
	return []reference.Vocabulary{
		{Used: "rooftop diagnose and tune", Terms: tuning.Terms()},
		{Used: "rooftop probe, observe and load", Terms: capture.Terms()},
	}
}

// words returns the words of all vocabularies.
func words() []word {
	var out []word
	for _, v := range vocabularies() {
		for _, t := range v.Terms {
			out = append(out, word{Term: t, Used: v.Used})
		}
	}
	return out
}

// explained is a metric of the server's page, and the meaning of the same name in rooftop's own
// client.
type explained struct {
	catalog.Metric
	Client []string `json:"client,omitempty"`
	Used   string   `json:"used"`
	Others []any    `json:"others,omitempty"` // other meanings of the name
}

func explainAll(w *cli.World, o *cli.Output) error {
	document := map[string]any{"findings": rules.Explanations(), "terms": words(), "metrics": catalog.EngineOf(catalog.VLLM).Metrics()}
	return cli.Print(w, o, document, cli.Text(func(map[string]any) *page.Page {
		return reference.Index(rules.Explanations(), vocabularies(), catalog.EngineOf(catalog.VLLM).Metrics())
	}), cli.Document)
}

// explainOne explains a finding, all findings of a rule, or every meaning of a word.
func explainOne(w *cli.World, o *cli.Output, on *catalog.Engine, name string) error {
	if found := findingsOf(name); len(found) > 0 {
		for i := range found {
			found[i] = found[i].On(on)
		}
		return cli.Print(w, o, found, func(to io.Writer, found []rules.Explanation, style render.Options) error {
			return separated(to, found, func(e rules.Explanation) error { return render.Text(to, reference.Explanation(e), style) })
		}, func(to io.Writer, found []rules.Explanation) error { return cli.Document(to, found[0]) })
	}
	meanings := meaningsOf(on, name)
	if len(meanings) == 0 {
		meanings = meaningsOfEach(on, strings.Fields(name))
	}
	if len(meanings) == 0 {
		return cli.Usagef("unknown name %q; 'rooftop explain' lists all names%s", name, closest(name))
	}
	return cli.Print(w, o, meanings, func(to io.Writer, list []meaning, style render.Options) error {
		return separated(to, list, func(m meaning) error {
			if len(list) > 1 {
				if err := render.Text(to, reference.UsedBy(m.name, m.used), style); err != nil {
					return err
				}
			}
			return render.Text(to, m.page, style)
		})
	}, func(to io.Writer, list []meaning) error { return cli.Document(to, nested(list)) })
}

// separated writes the items of a list with blank lines between them.
func separated[T any](to io.Writer, list []T, write func(T) error) error {
	for i, item := range list {
		if i > 0 {
			fmt.Fprintln(to)
		}
		if err := write(item); err != nil {
			return err
		}
	}
	return nil
}

// findingsOf returns the finding with a name, or those of a rule: R2 has two.
func findingsOf(name string) (found []rules.Explanation) {
	for _, e := range rules.Explanations() {
		if strings.EqualFold(name, string(e.ID)) {
			return []rules.Explanation{e}
		}
		if strings.EqualFold(name, e.Rule) && e.Rule != "beyond" {
			found = append(found, e)
		}
	}
	return found
}

// metricsPage is where the names of an engine's metrics are used.
func metricsPage(e *catalog.Engine) string {
	return e.Name + "'s page of metrics, which rooftop diagnose and tune read"
}

// meaning is one meaning of a name: a word or a metric.
type meaning struct {
	name string // as it was asked for
	used string
	page *page.Page
	// document returns its JSON form, which includes the other meanings.
	document func(others []any) any
}

// meaningsOf returns the meanings of a name on an engine. Those with that primary name come first.
func meaningsOf(on *catalog.Engine, name string) []meaning {
	var own, aliases []meaning
	add := func(primary bool, m meaning) {
		if primary {
			own = append(own, m)
		} else {
			aliases = append(aliases, m)
		}
	}
	for _, w := range words() {
		primary := sameWord(name, w.Name)
		if primary || slices.ContainsFunc(w.Also, func(also string) bool { return sameWord(name, also) }) {
			add(primary, meaning{name, w.Used, reference.Term(w.Term), func(others []any) any { w.Others = others; return w }})
		}
	}
	if e, m := findMetric(on, name); e != nil {
		metric := explained{Metric: m, Client: capture.OwnTimes(m.Key), Used: metricsPage(e)}
		add(sameWord(name, m.Key), meaning{name, metric.Used, reference.Metric(e, m, metric.Client), func(others []any) any { metric.Others = others; return metric }})
	}
	return append(own, aliases...)
}

// meaningsOfEach returns the meanings of names that stand together, as in "TTFT p99", or nil if one
// of them has none.
func meaningsOfEach(on *catalog.Engine, names []string) (all []meaning) {
	for _, name := range names {
		found := meaningsOf(on, name)
		if len(found) == 0 {
			return nil
		}
		all = append(all, found...)
	}
	return all
}

// nested returns the first meaning, which includes the others.
func nested(meanings []meaning) any {
	var others []any
	for _, m := range meanings[1:] {
		others = append(others, m.document(nil))
	}
	return meanings[0].document(others)
}

// sameWord compares names regardless of their separators: not comparable, not-comparable and
// not_comparable, the form in --json, are equal.
func sameWord(a, b string) bool {
	plain := strings.NewReplacer("-", " ", "_", " ")
	return strings.EqualFold(plain.Replace(strings.TrimLeft(a, "-")), plain.Replace(strings.TrimLeft(b, "-")))
}

// findMetric finds a metric of an engine by its key or by any of its wire names, or else one of another engine by a
// wire name. The engine is nil if there is none.
func findMetric(on *catalog.Engine, name string) (*catalog.Engine, catalog.Metric) {
	for _, e := range append([]*catalog.Engine{on}, catalog.Engines()...) {
		bare := strings.ToLower(name)
		for _, prefix := range e.Families {
			bare = strings.TrimPrefix(strings.TrimPrefix(bare, prefix), strings.ReplaceAll(prefix, ":", "_"))
		}
		for _, m := range e.Metrics() {
			if e == on && bare == m.Key || slices.Contains(m.Names, bare) || slices.Contains(m.Names, bare+"_total") ||
				slices.Contains(m.Names, strings.TrimSuffix(bare, "_total")) {
				return e, m
			}
		}
	}
	return nil, catalog.Metric{}
}

// closest returns a suggestion of names that contain every part of the typed text, as conc-saturation, or, if none
// does, of the one that is spelled most like it.
func closest(name string) string {
	var names, also, near []string
	for _, e := range rules.Explanations() {
		names = append(names, string(e.ID))
	}
	for _, e := range words() {
		names, also = append(names, e.Name), append(also, e.Also...)
	}
	for _, m := range catalog.EngineOf(catalog.VLLM).Metrics() {
		names = append(names, m.Key)
	}
	parts := strings.FieldsFunc(strings.ToLower(name), func(r rune) bool { return strings.ContainsRune("-_ ", r) })
	for _, n := range names {
		if len(parts) > 0 && !slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(strings.ToLower(n), part) }) {
			near = append(near, n)
		}
	}
	if len(near) == 0 {
		return cli.Suggestion(strings.ToLower(name), append(names, also...)...)
	}
	return "; did you mean " + strings.Join(near[:min(4, len(near))], ", ") + "?"
}
