package dag

import (
	"cmp"
	"slices"

	"github.com/rooftop-dev/rooftop/tui/cell"
)

// Sizes of a drawn graph in user units. A letter of the label's font, monospace at 11 units, is 0.6 of that wide (0.602 in
// the widest common fonts).
const (
	letterWidth = 6.8
	lineHeight  = 13.0
	padding     = 8.0
	boxGap      = 14.0 // between boxes of a rank
	rankGap     = 30.0
	margin      = 24.0
	edgeRoom    = 8.0 // width of an edge that passes through a rank
)

// box is a position in a layout: of a node, or of an edge that passes through a rank.
type box struct {
	node          int // -1 for an edge
	rank          int
	x, y          float64 // centre
	width, height float64
	up, down      []int // connected boxes in the ranks above and below
}

// layout is the positions of a graph. The boxes of the nodes come first, in order.
type layout struct {
	boxes         []box
	ranks         [][]int
	paths         [][]int // boxes on the path of each edge
	width, height float64
}

// mostPassing is the number of boxes for passing edges above which edges are drawn straight.
const mostPassing = 20_000

// layout assigns nodes to ranks by their longest path, orders each rank by the connected boxes, and moves boxes towards
// these.
func (g *drawing) layout(labels [][]string) *layout {
	l := &layout{boxes: make([]box, len(g.nodes)), paths: make([][]int, len(g.edges))}
	for i, rank := range g.ranks() {
		cells := 0
		for _, s := range labels[i] {
			cells = max(cells, cell.Width(s))
		}
		l.boxes[i] = box{node: i, rank: rank, width: float64(cells)*letterWidth + 2*padding, height: float64(max(1, len(labels[i])))*lineHeight + padding}
	}
	passing := 0
	for i, e := range g.edges {
		l.paths[i] = []int{e.from, e.to}
		span := l.boxes[e.to].rank - l.boxes[e.from].rank
		if e.back || span < 1 {
			continue
		}
		if passing += span - 1; passing <= mostPassing {
			l.paths[i] = l.pass(e.from, e.to)
		}
		for k := 1; k < len(l.paths[i]); k++ {
			a, b := l.paths[i][k-1], l.paths[i][k]
			l.boxes[a].down, l.boxes[b].up = append(l.boxes[a].down, b), append(l.boxes[b].up, a)
		}
	}
	for i := range l.boxes {
		for len(l.ranks) <= l.boxes[i].rank {
			l.ranks = append(l.ranks, nil)
		}
		l.ranks[l.boxes[i].rank] = append(l.ranks[l.boxes[i].rank], i)
	}
	l.order()
	l.place()
	return l
}

// pass adds a box in each rank between two boxes, for an edge.
func (l *layout) pass(from, to int) []int {
	path := []int{from}
	for rank := l.boxes[from].rank + 1; rank < l.boxes[to].rank; rank++ {
		path = append(path, len(l.boxes))
		l.boxes = append(l.boxes, box{node: -1, rank: rank, width: edgeRoom})
	}
	return append(path, to)
}

// ranks returns the length of the longest path to each node. Leaves, and nodes computed from leaves alone, are placed
// directly above the node that uses them.
func (g *drawing) ranks() []int {
	n := len(g.nodes)
	rank, below := make([]int, n), make([]int, n)
	early := make([]bool, n) // computed from leaves alone
	in := make([][]int, n)
	for _, e := range g.edges {
		if !e.back {
			in[e.to] = append(in[e.to], e.from)
		}
	}
	for i := range g.nodes {
		early[i] = true
		below[i] = -1
		for _, from := range in[i] {
			if !g.nodes[from].leaf {
				rank[i] = max(rank[i], rank[from]+1)
				early[i] = early[i] && early[from]
			}
		}
	}
	first := make([]int, len(g.groups)) // first rank of each group
	for i := range first {
		first[i] = -1
	}
	lower := func(from, to int) { // from must be above to
		if r := rank[to] - 1; below[from] < 0 || r < below[from] {
			below[from] = r
		}
	}
	for i := n - 1; i >= 0; i-- {
		if g.nodes[i].leaf {
			continue
		}
		if early[i] && below[i] > rank[i] {
			rank[i] = below[i]
		}
		if k := g.nodes[i].group; k >= 0 && (first[k] < 0 || rank[i] < first[k]) {
			first[k] = rank[i]
		}
		for _, from := range in[i] {
			if !g.nodes[from].leaf {
				lower(from, i)
			}
		}
	}
	for i := range rank {
		rank[i]++ // leave a rank for the leaves of the first node
	}
	g.rankLeaves(rank, below, first)
	return rank
}

// rankLeaves places leaves directly above the nodes that use them. below is their lowest possible rank, first the first
// ranks of the groups.
func (g *drawing) rankLeaves(rank, below, first []int) {
	for _, e := range g.edges {
		from := &g.nodes[e.from]
		if !from.leaf || e.back {
			continue
		}
		r := rank[e.to] - 1
		if k := g.nodes[e.to].group; k >= 0 && from.group != k {
			r = min(r, first[k]) // above the group
		}
		if below[e.from] < 0 || r < below[e.from] {
			below[e.from] = r
		}
	}
	for i := range g.nodes {
		if g.nodes[i].leaf {
			rank[i] = max(0, below[i])
		}
	}
}

// Passes over the ranks. More passes change little.
const (
	orderPasses = 12
	placePasses = 80
)

// order sorts each rank by the mean position of the connected boxes, from top to bottom and back.
func (l *layout) order() {
	at := make([]float64, len(l.boxes))
	for _, rank := range l.ranks {
		for i, b := range rank {
			at[b] = float64(i)
		}
	}
	want := make([]float64, len(l.boxes))
	for pass := range orderPasses {
		for k := range l.ranks {
			rank := l.ranks[k]
			if pass%2 == 1 {
				rank = l.ranks[len(l.ranks)-1-k]
			}
			for _, b := range rank {
				joined := l.boxes[b].up
				if pass%2 == 1 {
					joined = l.boxes[b].down
				}
				want[b] = at[b]
				if len(joined) > 0 {
					want[b] = 0
					for _, other := range joined {
						want[b] += at[other] / float64(len(joined))
					}
				}
			}
			slices.SortStableFunc(rank, func(a, b int) int { return cmp.Compare(want[a], want[b]) })
			for i, b := range rank {
				// Relative to the middle, so that ranks of different lengths are comparable.
				at[b] = float64(i) - float64(len(rank)-1)/2
			}
		}
	}
}

// place moves boxes towards the mean of the connected boxes, in order.
func (l *layout) place() {
	for _, rank := range l.ranks {
		x := 0.0
		for i, b := range rank {
			if i > 0 {
				x += l.minDistance(rank[i-1], b)
			}
			l.boxes[b].x = x
		}
		for _, b := range rank {
			l.boxes[b].x -= x / 2
		}
	}
	for pass := range placePasses {
		for k := range l.ranks {
			if pass%2 == 1 {
				k = len(l.ranks) - 1 - k
			}
			l.placeRank(l.ranks[k])
		}
	}
	least, most := 0.0, 0.0
	for i := range l.boxes {
		b := &l.boxes[i]
		least, most = min(least, b.x-b.width/2), max(most, b.x+b.width/2)
	}
	for i := range l.boxes {
		l.boxes[i].x += margin - least
	}
	y := margin
	for _, rank := range l.ranks {
		height := 0.0
		for _, b := range rank {
			height = max(height, l.boxes[b].height)
		}
		for _, b := range rank {
			l.boxes[b].y = y + height/2
		}
		y += height + rankGap
	}
	l.width, l.height = most-least+2*margin, y-rankGap+margin
}

// minDistance returns the least distance between the centres of two neighbours.
func (l *layout) minDistance(a, b int) float64 {
	return (l.boxes[a].width+l.boxes[b].width)/2 + boxGap
}

// placeRank moves the boxes of one rank towards the mean of the connected boxes. It resolves overlaps once by moving boxes to
// the right and once by moving them to the left, and takes the middle of both.
func (l *layout) placeRank(rank []int) {
	right := make([]float64, len(rank))
	left := make([]float64, len(rank))
	for i, b := range rank {
		box := &l.boxes[b]
		sum, n := 0.0, 0
		for _, list := range [...][]int{box.up, box.down} {
			for _, other := range list {
				sum, n = sum+l.boxes[other].x, n+1
			}
		}
		wish := box.x
		if n > 0 {
			wish = sum / float64(n)
		}
		right[i], left[i] = wish, wish
	}
	for i := range rank {
		if i > 0 {
			right[i] = max(right[i], right[i-1]+l.minDistance(rank[i-1], rank[i]))
		}
	}
	for i := len(rank) - 2; i >= 0; i-- {
		left[i] = min(left[i], left[i+1]-l.minDistance(rank[i], rank[i+1]))
	}
	for i, b := range rank {
		l.boxes[b].x = (right[i] + left[i]) / 2
	}
}
