package report

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// dagStyle is neutral: it follows the viewer's light or dark, and is light where a
// viewer has neither.
const dagStyle = `
.paper{fill:#fff}.box{fill:#f6f8fa;stroke:#8c959f}.leaf{fill:#eef2f6;stroke:#b1bac4}.view{stroke-dasharray:4 3}.heat{fill:#e8590c}
.fold{fill:none;stroke:#0a58ca;stroke-width:1.5;stroke-dasharray:8 4}.edge{fill:none;stroke:#6e7781}.weight{stroke:#c4ccd4}.seen{stroke-dasharray:4 3}
.next{stroke:#0a58ca;stroke-dasharray:8 4}.arrow{fill:#6e7781}text{font:11px ui-monospace,Menlo,Consolas,monospace;fill:#1b1f24}.op{font-weight:700}.quiet{fill:#57606a}.name{fill:#0a58ca}
@media (prefers-color-scheme:dark){.paper{fill:#0d1117}.box{fill:#161b22;stroke:#6e7681}.leaf{fill:#12171d;stroke:#484f58}.edge{stroke:#8b949e}.weight{stroke:#3d444d}
.arrow{fill:#8b949e}text{fill:#e6edf3}.quiet{fill:#9da7b3}.fold,.next{stroke:#6cb6ff}.name{fill:#6cb6ff}}
`

// mostDrawn are the boxes that a picture has: more are beyond reading, and -dot has
// them all.
const mostDrawn = 3000

// mostLabel is the most letters of a line in a box; the whole is said when it is
// pointed at.
const mostLabel = 34

// WriteDAGSVG draws a graph as a self-contained picture, laid out in ranks from the top
// to the bottom. Layers in a row that are alike are drawn as one. Boxes are operators,
// dashed ones views, round ones leaves; the warmer a box, the larger its share of the
// time of the phase that s has figures of. s may be nil.
func WriteDAGSVG(w io.Writer, t *optrace.Tables, d *optrace.DAG, s *optrace.Summary) error {
	all := drawingOf(t, d, s)
	total := len(all.nodes)
	g := all.folded()
	left := g.cut(mostDrawn)
	labels := make([][]string, len(g.nodes))
	for i := range g.nodes {
		for _, line := range g.nodes[i].lines(true) {
			labels[i] = append(labels[i], clipped(line, mostLabel))
		}
	}
	p := &dagPainter{g: g, l: g.layout(labels), labels: labels, b: bufio.NewWriter(w), most: g.mostShare()}
	p.head(total, d.Truncated, left)
	p.folds()
	for i := range g.edges {
		p.edge(i)
	}
	for i := range g.nodes {
		p.node(i)
	}
	p.print("</svg>\n")
	return p.b.Flush()
}

// cut leaves out what is beyond the first nodes, and says how many.
func (g *dagDrawing) cut(most int) int {
	left := len(g.nodes) - most
	if left <= 0 {
		return 0
	}
	g.nodes = g.nodes[:most]
	var kept []dagEdge
	for _, e := range g.edges {
		if e.from < most && e.to < most {
			kept = append(kept, e)
		}
	}
	g.edges = kept
	return left
}

// dagPainter draws one graph.
type dagPainter struct {
	g      *dagDrawing
	l      *dagLayout
	labels [][]string
	b      *bufio.Writer
	most   float64
}

func (p *dagPainter) print(format string, args ...any) {
	fmt.Fprintf(p.b, format, args...) // the first error stays in the writer
}

// xmlText is text as an element or an attribute holds it.
func xmlText(s string) string {
	var b bytes.Buffer
	if err := xml.EscapeText(&b, []byte(safe(s))); err != nil {
		return ""
	}
	return strings.ReplaceAll(b.String(), nbsp, "&#160;")
}

func (p *dagPainter) head(total, truncated, left int) {
	desc := plural(total, "node") + " and leaves"
	for _, f := range p.g.groups {
		desc += fmt.Sprintf("; layers %d to %d are alike and drawn as one", f.first, f.last)
	}
	if p.g.phase != "" && p.most > 0 {
		desc += "; warm boxes take most of the time of " + p.g.phase
	}
	if truncated > 0 {
		desc += "; " + plural(truncated, "node") + " could not be read"
	}
	if left > 0 {
		desc += "; " + plural(left, "box") + " more are left out"
	}
	const caption = 22
	width := max(p.l.width, float64(len(desc))*dagLetter+2*dagMargin)
	p.print(`<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 %s %s" width="%s" height="%s">`+"\n",
		coordinate(width), coordinate(p.l.height+caption), coordinate(width), coordinate(p.l.height+caption))
	p.print("<title>Computation graph</title><desc>%s</desc><style>%s</style>\n", xmlText(desc), dagStyle)
	p.print(`<defs><marker id="dag-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="arrow" d="M0 0L8 4L0 8z"/></marker></defs>` + "\n")
	p.print(`<rect class="paper" width="100%%" height="100%%"/><text class="quiet" x="%s" y="%s">%s</text>`+"\n", coordinate(dagMargin), coordinate(p.l.height+caption/2), xmlText(desc))
}

// foldRoom is the space between the frame of a group and its boxes.
const foldRoom = 9

// frame is the place of a group.
func (p *dagPainter) frame(group int) (x0, y0, x1, y1 float64) {
	x0, y0 = p.l.width, p.l.height
	for i := range p.g.nodes {
		if b := &p.l.boxes[i]; p.g.nodes[i].group == group {
			x0, y0 = min(x0, b.x-b.width/2-foldRoom), min(y0, b.y-b.height/2-foldRoom)
			x1, y1 = max(x1, b.x+b.width/2+foldRoom), max(y1, b.y+b.height/2+foldRoom)
		}
	}
	return x0, y0, x1, y1
}

// folds draws a frame around the layers that are drawn as one.
func (p *dagPainter) folds() {
	for k, f := range p.g.groups {
		x0, y0, x1, y1 := p.frame(k)
		if x1 <= x0 {
			continue
		}
		p.print(`<rect class="fold" x="%s" y="%s" width="%s" height="%s" rx="10"/>`, coordinate(x0), coordinate(y0), coordinate(x1-x0), coordinate(y1-y0))
		p.print(`<text class="name op" x="%s" y="%s">× %d (layers %d to %d)</text>`+"\n", coordinate(x0+4), coordinate(y0-4), f.layers, f.first, f.last)
	}
}

// edge draws one edge through the ranks that it passes.
func (p *dagPainter) edge(i int) {
	e := p.g.edges[i]
	class := "edge"
	switch {
	case e.back:
		class += " next"
	case e.view:
		class += " seen"
	case p.g.nodes[e.from].leaf:
		class += " weight"
	}
	path := p.l.paths[i]
	first, last := &p.l.boxes[path[0]], &p.l.boxes[path[len(path)-1]]
	x, y := first.x, first.y+first.height/2
	d := "M" + coordinate(x) + " " + coordinate(y)
	if e.back { // around the right side
		_, _, side, _ := p.frame(p.g.nodes[e.from].group)
		side = max(side, first.x+first.width/2, last.x+last.width/2) + foldRoom
		const bend = 12
		top := last.y - last.height/2
		d += fmt.Sprintf("C%s %s %s %s %s %s", coordinate(x), coordinate(y+2*bend), coordinate(side), coordinate(y+2*bend), coordinate(side), coordinate(y-bend))
		d += fmt.Sprintf("L%s %s", coordinate(side), coordinate(top+bend))
		d += fmt.Sprintf("C%s %s %s %s %s %s", coordinate(side), coordinate(top-2*bend), coordinate(last.x), coordinate(top-2*bend), coordinate(last.x), coordinate(top))
	} else {
		for _, at := range path[1:] {
			b := &p.l.boxes[at]
			top := b.y - b.height/2
			middle := coordinate((y + top) / 2)
			d += fmt.Sprintf("C%s %s %s %s %s %s", coordinate(x), middle, coordinate(b.x), middle, coordinate(b.x), coordinate(top))
			x, y = b.x, b.y+b.height/2
		}
	}
	p.print(`<path class="%s" d="%s" marker-end="url(#dag-arrow)"/>`+"\n", class, d)
}

// node draws one box with its label, and says the whole when it is pointed at.
func (p *dagPainter) node(i int) {
	n, b := &p.g.nodes[i], &p.l.boxes[i]
	class, round := "box", 3.0
	switch {
	case n.leaf:
		class, round = "leaf", b.height/2
	case n.view:
		class += " view"
	}
	place := fmt.Sprintf(`x="%s" y="%s" width="%s" height="%s" rx="%s"`, coordinate(b.x-b.width/2), coordinate(b.y-b.height/2), coordinate(b.width), coordinate(b.height), coordinate(round))
	said := strings.Join(nonEmpty(n.op, n.name, n.shape), ", ")
	if n.times > 1 {
		said += fmt.Sprintf(", and %d more like it", n.times-1)
	}
	if n.share.OK {
		said += ", " + figure.Percent(n.share.V) + " % of the time of " + p.g.phase
	}
	p.print(`<g><title>%s</title><rect class="%s" %s/>`, xmlText(said), class, place)
	if n.share.OK && n.share.V > 0 && p.most > 0 {
		const hottest = .6 // the label stays readable on it
		p.print(`<rect class="heat" %s opacity="%.2f"/>`, place, hottest*min(1, n.share.V/p.most))
	}
	y := b.y - b.height/2 + dagPadding/2 + dagLine - 3
	for k, line := range p.labels[i] {
		kind := "quiet"
		if k == 0 && !n.leaf {
			kind = "op"
		}
		p.print(`<text class="%s" x="%s" y="%s" text-anchor="middle">%s</text>`, kind, coordinate(b.x), coordinate(y), xmlText(line))
		y += dagLine
	}
	p.print("</g>\n")
}
