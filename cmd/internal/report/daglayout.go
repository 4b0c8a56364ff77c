package report

import (
	"cmp"
	"slices"
)

// Sizes of a drawn graph, in user units. A letter of the label's font, monospace of 11
// units, takes 0.6 of them (0.602 in the widest common ones).
const (
	dagLetter   = 6.8
	dagLine     = 13.0
	dagPadding  = 8.0
	dagBetween  = 14.0 // boxes of a rank
	dagRankGap  = 30.0
	dagMargin   = 24.0
	dagEdgeRoom = 8.0 // of an edge that passes a rank
)

// dagBox is a place in a layout: a node's, or that of an edge that passes a rank.
type dagBox struct {
	node          int // -1 of an edge
	rank          int
	x, y          float64 // of the middle
	width, height float64
	up, down      []int // boxes in the ranks above and below that it is joined to
}

// dagLayout has the boxes of the nodes first, in their order.
type dagLayout struct {
	boxes         []dagBox
	ranks         [][]int
	paths         [][]int // of each edge: the boxes that it goes through
	width, height float64
}

// mostPassing are the places of passing edges beyond which edges are drawn straight.
const mostPassing = 20_000

// layout places nodes in ranks by the longest path to them, orders each rank by what its
// boxes are joined to, and moves boxes towards it.
func (g *dagDrawing) layout(labels [][]string) *dagLayout {
	l := &dagLayout{boxes: make([]dagBox, len(g.nodes)), paths: make([][]int, len(g.edges))}
	for i, rank := range g.ranks() {
		cells := 0
		for _, s := range labels[i] {
			cells = max(cells, width(s))
		}
		l.boxes[i] = dagBox{node: i, rank: rank, width: float64(cells)*dagLetter + 2*dagPadding, height: float64(max(1, len(labels[i])))*dagLine + dagPadding}
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

// pass puts a box into each rank between two.
func (l *dagLayout) pass(from, to int) []int {
	path := []int{from}
	for rank := l.boxes[from].rank + 1; rank < l.boxes[to].rank; rank++ {
		path = append(path, len(l.boxes))
		l.boxes = append(l.boxes, dagBox{node: -1, rank: rank, width: dagEdgeRoom})
	}
	return append(path, to)
}

// ranks are the lengths of the longest paths to the nodes. What is computed of leaves
// alone stands right above what uses it, and so do leaves.
func (g *dagDrawing) ranks() []int {
	n := len(g.nodes)
	rank, below := make([]int, n), make([]int, n)
	early := make([]bool, n) // computed of leaves alone
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
	first := make([]int, len(g.groups)) // the first rank of each group
	for i := range first {
		first[i] = -1
	}
	lower := func(from, to int) { // from stands above to
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
		rank[i]++ // a rank for the leaves of the first
	}
	for _, e := range g.edges {
		from := &g.nodes[e.from]
		if !from.leaf || e.back {
			continue
		}
		r := rank[e.to] - 1
		if k := g.nodes[e.to].group; k >= 0 && from.group != k {
			r = min(r, first[k]) // above the box of the group
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
	return rank
}

// Passes over the ranks. More change little.
const (
	orderPasses = 12
	placePasses = 80
)

// order sorts each rank by the mean place of what its boxes are joined to, from the top
// to the bottom and back.
func (l *dagLayout) order() {
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
				// Relative to the middle, so that ranks of unlike length fit.
				at[b] = float64(i) - float64(len(rank)-1)/2
			}
		}
	}
}

// place moves boxes towards the mean of what they are joined to, in their order.
func (l *dagLayout) place() {
	for _, rank := range l.ranks {
		x := 0.0
		for i, b := range rank {
			if i > 0 {
				x += l.apart(rank[i-1], b)
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
			l.settle(l.ranks[k])
		}
	}
	least, most := 0.0, 0.0
	for i := range l.boxes {
		b := &l.boxes[i]
		least, most = min(least, b.x-b.width/2), max(most, b.x+b.width/2)
	}
	for i := range l.boxes {
		l.boxes[i].x += dagMargin - least
	}
	y := dagMargin
	for _, rank := range l.ranks {
		height := 0.0
		for _, b := range rank {
			height = max(height, l.boxes[b].height)
		}
		for _, b := range rank {
			l.boxes[b].y = y + height/2
		}
		y += height + dagRankGap
	}
	l.width, l.height = most-least+2*dagMargin, y-dagRankGap+dagMargin
}

// apart is the least distance between the middles of two neighbours.
func (l *dagLayout) apart(a, b int) float64 {
	return (l.boxes[a].width+l.boxes[b].width)/2 + dagBetween
}

// settle moves the boxes of one rank: once as far left as their order lets them follow
// their wishes, once as far right, and then to the middle of both.
func (l *dagLayout) settle(rank []int) {
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
			right[i] = max(right[i], right[i-1]+l.apart(rank[i-1], rank[i]))
		}
	}
	for i := len(rank) - 2; i >= 0; i-- {
		left[i] = min(left[i], left[i+1]-l.apart(rank[i], rank[i+1]))
	}
	for i, b := range rank {
		l.boxes[b].x = (right[i] + left[i]) / 2
	}
}
