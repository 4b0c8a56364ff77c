package optrace

import (
	"fmt"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// otherSize is the ratio of an operator's work for each token from which on two models
// have other sizes. Shapes give it, so that it differs by what was not seen alone.
const otherSize = 1.1

// quantised is what names of models say of their quantisation: "Q4_K_M", "f16", "mxfp4".
var quantised = regexp.MustCompile(`(?i)[-._ ]?(i?q[0-9]+(_[0-9a-z]+)*|bf16|f16|f32|fp16|mxfp4)\b`)

// otherModel says why the two traces are taken to be of different models, "" where they
// are of one, if quantised otherwise, or where nothing tells. What a model is its
// layers, its experts and the sizes of its weights decide; names only where those of the
// files differ too, since another build may name its operators otherwise.
func (c *comparing) otherModel() string {
	a, b := c.a.Summary, c.b.Summary
	if x, y := countLayers(a), countLayers(b); x > 0 && y > 0 && x != y {
		return fmt.Sprintf("%d layers and %d", x, y)
	}
	named := func(s *Summary) string {
		return strings.ToLower(quantised.ReplaceAllString(path.Base(s.Target.Model), ""))
	}
	otherName := a.Target.Model != "" && b.Target.Model != "" && named(a) != named(b)
	if !shaped(a) || !shaped(b) {
		if otherName {
			return fmt.Sprintf("%s and %s by their names", path.Base(a.Target.Model), path.Base(b.Target.Model))
		}
		return ""
	}
	switch {
	case a.Experts == nil && b.Experts != nil, a.Experts != nil && b.Experts == nil:
		return "one has mixtures of experts"
	case a.Experts != nil && a.Experts.Count > 0 && b.Experts.Count > 0 && a.Experts.Count != b.Experts.Count:
		return fmt.Sprintf("%d experts and %d", a.Experts.Count, b.Experts.Count)
	}
	for i := range a.Phases {
		at := slices.IndexFunc(b.Phases, func(p PhaseRow) bool { return p.Phase == a.Phases[i].Phase })
		if at < 0 {
			continue
		}
		x, y := c.a.products(&a.Phases[i]), c.b.products(&b.Phases[at])
		for _, name := range sorted(x) {
			if other, both := y[name]; both && farApart(x[name], other, otherSize) {
				return fmt.Sprintf("%s has other sizes", name)
			}
			if _, both := y[name]; !both && otherName {
				return fmt.Sprintf("one alone computes %s", name)
			}
		}
	}
	return ""
}

// shaped says that names and shapes of operators were read.
func shaped(s *Summary) bool {
	return slices.ContainsFunc(s.Steps, func(r OperatorRow) bool { return r.Type != "" })
}

// countLayers is the number of layers that were seen, 0 unknown.
func countLayers(s *Summary) int {
	most := -1
	for i := range s.Layers {
		most = max(most, s.Layers[i].Layer)
	}
	return most + 1
}

// products are the operations of each product with weights for a token of its graphs, by
// name: neither the quantisation of the weights changes them nor how many tokens there
// were. The logits are computed of some tokens alone.
func (v *view) products(p *PhaseRow) map[string]float64 {
	if p.Tokens <= 0 || p.Graph.Count <= 0 {
		return nil
	}
	each := float64(p.Tokens) / float64(p.Graph.Count)
	out := map[string]float64{}
	for i := range v.Steps {
		s := &v.Steps[i]
		if s.Phase != p.Phase || !strings.HasPrefix(s.Op, "MUL_MAT") || s.Type == "" || s.Name == "" || s.Name == logits || s.Count <= 0 || !(s.Flops.V > 0) {
			continue
		}
		if flops := s.Flops.V / float64(s.Count) / each; !math.IsInf(flops, 0) {
			out[s.Name] = max(out[s.Name], flops)
		}
	}
	return out
}

// apart takes the verdicts and ratios of operators from a comparison of two models: they
// do not do the same work.
func (c *Comparison) apart() {
	apart := func(x *Change) { *x = Change{A: x.A, B: x.B, Reason: "the two are of different models"} }
	for i := range c.Phases {
		apart(&c.Phases[i].Rate)
		apart(&c.Phases[i].FirstToken)
	}
	for i := range c.Operators {
		apart(&c.Operators[i].PerToken)
		c.Operators[i].Of = stat.None
	}
	c.Layers = []LayerChange{}
}
