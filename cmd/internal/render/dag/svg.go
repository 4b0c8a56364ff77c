package dag

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"

	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/tui/lines"
)

// pictureStyle follows the viewer's light or dark mode; the default is light.
const pictureStyle = `
.paper{fill:#fff}.box{fill:#f6f8fa;stroke:#8c959f}.leaf{fill:#eef2f6;stroke:#b1bac4}.view{stroke-dasharray:4 3}.heat{fill:#e8590c}
.fold{fill:none;stroke:#0a58ca;stroke-width:1.5;stroke-dasharray:8 4}.edge{fill:none;stroke:#6e7781}.weight{stroke:#c4ccd4}.seen{stroke-dasharray:4 3}
.next{stroke:#0a58ca;stroke-dasharray:8 4}.arrow{fill:#6e7781}text{font:11px ui-monospace,Menlo,Consolas,monospace;fill:#1b1f24}.op{font-weight:700}.quiet{fill:#57606a}.name{fill:#0a58ca}
@media (prefers-color-scheme:dark){.paper{fill:#0d1117}.box{fill:#161b22;stroke:#6e7681}.leaf{fill:#12171d;stroke:#484f58}.edge{stroke:#8b949e}.weight{stroke:#3d444d}
.arrow{fill:#8b949e}text{fill:#e6edf3}.quiet{fill:#9da7b3}.fold,.next{stroke:#6cb6ff}.name{fill:#6cb6ff}}
`

// mostDrawn is the largest number of boxes in a picture. Larger graphs are unreadable; -dot writes all nodes.
const mostDrawn = 3000

// mostLabel is the largest number of letters in a line of a box. The tooltip has the full text.
const mostLabel = 34

// WriteSVG draws a graph as a self-contained picture, in ranks from top to bottom. Consecutive equal layers are drawn as
// one. Boxes are operators, dashed boxes views, rounded boxes leaves. Colours show the share in the time of the phase that
// s covers; s may be nil.
func WriteSVG(w io.Writer, t *optrace.Tables, d *optrace.DAG, s *optrace.Summary) error {
	all := drawingOf(t, d, s)
	total := len(all.nodes)
	g := all.folded()
	left := g.truncate(mostDrawn)
	labels := make([][]string, len(g.nodes))
	for i := range g.nodes {
		for _, line := range g.nodes[i].lines(true) {
			labels[i] = append(labels[i], lines.Clip(line, mostLabel))
		}
	}
	p := &painter{g: g, l: g.layout(labels), labels: labels, b: bufio.NewWriter(w), most: g.mostShare()}
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

// truncate keeps the first most nodes with their edges, and returns the number of nodes removed.
func (g *drawing) truncate(most int) int {
	left := len(g.nodes) - most
	if left <= 0 {
		return 0
	}
	g.nodes = g.nodes[:most]
	var kept []edge
	for _, e := range g.edges {
		if e.from < most && e.to < most {
			kept = append(kept, e)
		}
	}
	g.edges = kept
	return left
}

// painter draws one graph.
type painter struct {
	g      *drawing
	l      *layout
	labels [][]string
	b      *bufio.Writer
	most   float64
}

func (p *painter) print(format string, args ...any) {
	fmt.Fprintf(p.b, format, args...) // the writer keeps the first error
}

// xmlText escapes text for an element or an attribute.
func xmlText(s string) string {
	var b bytes.Buffer
	if err := xml.EscapeText(&b, []byte(lines.Safe(s, false))); err != nil {
		return ""
	}
	return strings.ReplaceAll(b.String(), figure.NBSP, "&#160;")
}

func (p *painter) head(total, truncated, left int) {
	desc := figure.Counted(total, "node") + " and leaves"
	for _, f := range p.g.groups {
		desc += fmt.Sprintf("; layers %d to %d are identical and drawn as one", f.first, f.last)
	}
	if p.g.phase != "" && p.most > 0 {
		desc += "; warm boxes take most of the time of " + p.g.phase
	}
	if truncated > 0 {
		desc += "; " + figure.Counted(truncated, "node") + " could not be read"
	}
	if left > 0 {
		desc += "; " + figure.Counted(left, "box") + " more are left out"
	}
	const caption = 22
	width := max(p.l.width, float64(len(desc))*letterWidth+2*margin)
	p.print(`<svg xmlns="http://www.w3.org/2000/svg" role="img" viewBox="0 0 %s %s" width="%s" height="%s">`+"\n",
		render.Coordinate(width), render.Coordinate(p.l.height+caption), render.Coordinate(width), render.Coordinate(p.l.height+caption))
	p.print("<title>Computation graph</title><desc>%s</desc><style>%s</style>\n", xmlText(desc), pictureStyle)
	p.print(`<defs><marker id="dag-arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path class="arrow" d="M0 0L8 4L0 8z"/></marker></defs>` + "\n")
	p.print(`<rect class="paper" width="100%%" height="100%%"/><text class="quiet" x="%s" y="%s">%s</text>`+"\n", render.Coordinate(margin), render.Coordinate(p.l.height+caption/2), xmlText(desc))
}

// foldRoom is the distance between the frame of a group and its boxes.
const foldRoom = 9

// frame returns the corners of a group's frame.
func (p *painter) frame(group int) (x0, y0, x1, y1 float64) {
	x0, y0 = p.l.width, p.l.height
	for i := range p.g.nodes {
		if b := &p.l.boxes[i]; p.g.nodes[i].group == group {
			x0, y0 = min(x0, b.x-b.width/2-foldRoom), min(y0, b.y-b.height/2-foldRoom)
			x1, y1 = max(x1, b.x+b.width/2+foldRoom), max(y1, b.y+b.height/2+foldRoom)
		}
	}
	return x0, y0, x1, y1
}

// folds draws a frame around each group of folded layers.
func (p *painter) folds() {
	for k, f := range p.g.groups {
		x0, y0, x1, y1 := p.frame(k)
		if x1 <= x0 {
			continue
		}
		p.print(`<rect class="fold" x="%s" y="%s" width="%s" height="%s" rx="10"/>`, render.Coordinate(x0), render.Coordinate(y0), render.Coordinate(x1-x0), render.Coordinate(y1-y0))
		p.print(`<text class="name op" x="%s" y="%s">× %d (layers %d to %d)</text>`+"\n", render.Coordinate(x0+4), render.Coordinate(y0-4), f.layers, f.first, f.last)
	}
}

// edge draws one edge through the ranks on its path.
func (p *painter) edge(i int) {
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
	d := "M" + render.Coordinate(x) + " " + render.Coordinate(y)
	if e.back { // around the right side
		_, _, side, _ := p.frame(p.g.nodes[e.from].group)
		side = max(side, first.x+first.width/2, last.x+last.width/2) + foldRoom
		const bend = 12
		top := last.y - last.height/2
		d += fmt.Sprintf("C%s %s %s %s %s %s", render.Coordinate(x), render.Coordinate(y+2*bend), render.Coordinate(side), render.Coordinate(y+2*bend), render.Coordinate(side), render.Coordinate(y-bend))
		d += fmt.Sprintf("L%s %s", render.Coordinate(side), render.Coordinate(top+bend))
		d += fmt.Sprintf("C%s %s %s %s %s %s", render.Coordinate(side), render.Coordinate(top-2*bend), render.Coordinate(last.x), render.Coordinate(top-2*bend), render.Coordinate(last.x), render.Coordinate(top))
	} else {
		for _, at := range path[1:] {
			b := &p.l.boxes[at]
			top := b.y - b.height/2
			middle := render.Coordinate((y + top) / 2)
			d += fmt.Sprintf("C%s %s %s %s %s %s", render.Coordinate(x), middle, render.Coordinate(b.x), middle, render.Coordinate(b.x), render.Coordinate(top))
			x, y = b.x, b.y+b.height/2
		}
	}
	p.print(`<path class="%s" d="%s" marker-end="url(#dag-arrow)"/>`+"\n", class, d)
}

// node draws one box with its label and a tooltip with the full text.
func (p *painter) node(i int) {
	n, b := &p.g.nodes[i], &p.l.boxes[i]
	class, round := "box", 3.0
	switch {
	case n.leaf:
		class, round = "leaf", b.height/2
	case n.view:
		class += " view"
	}
	place := fmt.Sprintf(`x="%s" y="%s" width="%s" height="%s" rx="%s"`, render.Coordinate(b.x-b.width/2), render.Coordinate(b.y-b.height/2), render.Coordinate(b.width), render.Coordinate(b.height), render.Coordinate(round))
	said := figure.Joined(", ", n.op, n.name, n.shape)
	if n.times > 1 {
		said += fmt.Sprintf(", and %d more like it", n.times-1)
	}
	if n.share.OK {
		said += ", " + figure.PercentSign(n.share.V) + " of the time of " + p.g.phase
	}
	p.print(`<g><title>%s</title><rect class="%s" %s/>`, xmlText(said), class, place)
	if n.share.OK && n.share.V > 0 && p.most > 0 {
		const hottest = .6 // limited so that the label stays readable
		p.print(`<rect class="heat" %s opacity="%.2f"/>`, place, hottest*min(1, n.share.V/p.most))
	}
	y := b.y - b.height/2 + padding/2 + lineHeight - 3
	for k, line := range p.labels[i] {
		kind := "quiet"
		if k == 0 && !n.leaf {
			kind = "op"
		}
		p.print(`<text class="%s" x="%s" y="%s" text-anchor="middle">%s</text>`, kind, render.Coordinate(b.x), render.Coordinate(y), xmlText(line))
		y += lineHeight
	}
	p.print("</g>\n")
}
