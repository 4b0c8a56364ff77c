package comparison

import (
	"fmt"
	"maps"
	"math"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/compare"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/evidence"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// otherSize is the ratio of an operator's work per token from which two models have different
// sizes. The work follows from shapes, so it differs otherwise only by what was not seen.
const otherSize = 1.1

// quantisation matches the part of a model's name that names its quantisation: "Q4_K_M", "f16",
// "mxfp4".
var quantisation = regexp.MustCompile(`(?i)[-._ ]?(i?q[0-9]+(_[0-9a-z]+)*|bf16|f16|f32|fp16|mxfp4)\b`)

// otherModel returns why the two traces are taken to be of different models, "" if they are of
// one (possibly with another quantisation), or if nothing shows it. Layers, experts and sizes
// of weights decide; names of operators count only if those of the files differ too, because
// another build may name its operators differently.
func (c *comparing) otherModel() string {
	a, b := c.a.Summary, c.b.Summary
	if x, y := countLayers(a), countLayers(b); x > 0 && y > 0 && x != y {
		return fmt.Sprintf("%d and %d layers", x, y)
	}
	named := func(s *optrace.Summary) string {
		return strings.ToLower(quantisation.ReplaceAllString(path.Base(s.Target.Model), ""))
	}
	otherName := a.Target.Model != "" && b.Target.Model != "" && named(a) != named(b)
	if !hasShapes(a) || !hasShapes(b) {
		if otherName {
			return fmt.Sprintf("%s and %s, by their names", path.Base(a.Target.Model), path.Base(b.Target.Model))
		}
		return ""
	}
	switch {
	case a.Experts == nil && b.Experts != nil, a.Experts != nil && b.Experts == nil:
		return "only one has mixtures of experts"
	case a.Experts != nil && a.Experts.Count > 0 && b.Experts.Count > 0 && a.Experts.Count != b.Experts.Count:
		return fmt.Sprintf("%d and %d experts", a.Experts.Count, b.Experts.Count)
	}
	for i := range a.Phases {
		at := slices.IndexFunc(b.Phases, func(p optrace.PhaseRow) bool { return p.Phase == a.Phases[i].Phase })
		if at < 0 {
			continue
		}
		x, y := productFlops(c.a, &a.Phases[i]), productFlops(c.b, &b.Phases[at])
		for _, name := range slices.Sorted(maps.Keys(x)) {
			if other, both := y[name]; both && farApart(x[name], other, otherSize) {
				return fmt.Sprintf("%s has different sizes", name)
			}
			if _, both := y[name]; !both && otherName {
				return fmt.Sprintf("only one computes %s", name)
			}
		}
	}
	return ""
}

// hasShapes reports whether names and shapes of operators were read.
func hasShapes(s *optrace.Summary) bool {
	return slices.ContainsFunc(s.Steps, func(r optrace.OperatorRow) bool { return r.Type != "" })
}

// countLayers returns the number of layers that were seen, 0 if unknown.
func countLayers(s *optrace.Summary) int {
	most := -1
	for i := range s.Layers {
		most = max(most, s.Layers[i].Layer)
	}
	return most + 1
}

// productFlops returns the operations per token of each product with weights, by name: neither the
// type of the weights nor the number of tokens changes them. Logits are excluded, since they
// are computed for some tokens only.
func productFlops(v *evidence.View, p *optrace.PhaseRow) map[string]float64 {
	if p.Tokens <= 0 || p.Graph.Count <= 0 {
		return nil
	}
	each := float64(p.Tokens) / float64(p.Graph.Count)
	out := map[string]float64{}
	for i := range v.Steps {
		s := &v.Steps[i]
		if s.Phase != p.Phase || !strings.HasPrefix(s.Op, "MUL_MAT") || s.Type == "" || s.Name == "" || s.Name == optrace.LogitsName || s.Count <= 0 || !(s.Flops.V > 0) {
			continue
		}
		if flops := s.Flops.V / float64(s.Count) / each; !math.IsInf(flops, 0) {
			out[s.Name] = max(out[s.Name], flops)
		}
	}
	return out
}

// dropVerdicts removes the verdicts and ratios of operators from a comparison of two models, which do
// different work.
func (c *Comparison) dropVerdicts() {
	c.Layers = []LayerChange{}
	c.eachChange(func(x *compare.Change) {
		*x = compare.Change{A: x.A, B: x.B, Reason: "the traces are of different models"}
	})
	for i := range c.Operators {
		c.Operators[i].TokenShare = stat.None
	}
}
