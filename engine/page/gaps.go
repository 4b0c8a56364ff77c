package page

import (
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
)

// Gaps collects the labels of absent quantities by reason.
type Gaps struct {
	Inset   bool // indent the paragraphs
	reasons []string
	labels  map[string][]string
}

// Add records that the quantity label is absent for a reason. Duplicates are ignored.
func (g *Gaps) Add(label, reason string) {
	if g.labels == nil {
		g.labels = map[string][]string{}
	}
	if g.labels[reason] == nil {
		g.reasons = append(g.reasons, reason)
	}
	if !slices.Contains(g.labels[reason], label) {
		g.labels[reason] = append(g.labels[reason], label)
	}
}

// Nodes returns a paragraph for each reason, in the order of the first Add.
func (g *Gaps) Nodes() []Node {
	var nodes []Node
	for _, reason := range g.reasons {
		nodes = append(nodes, Prose{Inset: g.Inset, Text: Toned(Muted, figure.Absent+" "+strings.Join(g.labels[reason], ", ")+": "+reason)})
	}
	return nodes
}
