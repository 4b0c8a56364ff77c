package tracing

import (
	"bufio"
	"fmt"
	"io"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// WriteDOT writes a graph with all nodes and leaves in the language of Graphviz: boxes are operators, dashed boxes views,
// ellipses leaves (weights and inputs). Colours show the share in the time of the phase that s covers; s may be nil.
// Layers are clusters.
func WriteDOT(w io.Writer, t *optrace.Tables, d *optrace.DAG, s *optrace.Summary) error {
	g := drawingOf(t, d, s)
	b := bufio.NewWriter(w)
	p := func(format string, args ...any) { fmt.Fprintf(b, format, args...) } // b keeps the error
	p("digraph ggml {\n  rankdir=TB;\n  node [shape=box, style=filled, fillcolor=\"#f6f8fa\", fontname=\"monospace\", fontsize=10];\n  edge [color=\"#57606a\"];\n")
	most := g.mostShare()
	layer := -1
	open := func(l int) {
		if layer == l {
			return
		}
		if layer >= 0 {
			p("  }\n")
		}
		if layer = l; l >= 0 {
			// A layer is one cluster even if its nodes are not contiguous.
			p("  subgraph cluster_%d {\n    label=\"layer %d\"; color=\"#d0d7de\";\n", l, l)
		}
	}
	for i := range g.nodes {
		n := &g.nodes[i]
		open(n.layer)
		p("    n%d [label=%s%s];\n", i, dotText(strings.Join(n.lines(), "\n")), dotStyle(n, most))
	}
	open(-1)
	for _, e := range g.edges {
		style := ""
		switch {
		case e.view:
			style = " [style=dashed]"
		case g.nodes[e.from].leaf:
			style = " [color=\"#b1bac4\"]"
		}
		p("  n%d -> n%d%s;\n", e.from, e.to, style)
	}
	p("}\n")
	return b.Flush()
}

// mostShare returns the largest share of a node.
func (g *drawing) mostShare() float64 {
	most := stat.None
	for i := range g.nodes {
		most = most.Max(g.nodes[i].share.Finite())
	}
	return most.V
}

func dotStyle(n *node, most float64) string {
	switch {
	case n.leaf:
		return `, shape=ellipse, fillcolor="#eef2f6"`
	case n.view:
		return `, style="filled,dashed"`
	case n.share.OK && n.share.V > 0 && most > 0:
		return fmt.Sprintf(`, fillcolor="%s"`, warmth(n.share.V/most))
	}
	return ""
}

// warmth returns the fill colour for a share of the largest one.
func warmth(share float64) string {
	mix := func(from, to float64) int { return int(from + (to-from)*min(1, max(0, share)) + .5) }
	return fmt.Sprintf("#%02x%02x%02x", mix(0xf6, 0xf7), mix(0xf8, 0x8f), mix(0xfa, 0x4a))
}

// dotText returns a quoted DOT string. Backslashes and quotes are escaped, and line breaks are kept. Foreign text has no
// control characters at this point.
func dotText(s string) string {
	return `"` + strings.NewReplacer(figure.NBSP, " ", `\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`
}
