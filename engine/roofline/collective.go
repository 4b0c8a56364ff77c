package roofline

import "strings"

// link is the model of one all-reduce among t ranks: seconds(m) = a + m/beta
// (measured on vLLM's custom all-reduce).
type link struct {
	a, eager float64 // s: replayed from a CUDA graph, and launched by the host
	beta     float64 // bytes per second
	pcie     bool    // no direct links: depends on the board's topology
	assumed  bool    // the catalog does not state how the devices are connected
}

// eagerAllReduce is the measured time of a small all-reduce without a graph.
const eagerAllReduce = 21e-6

// linkOf returns the link among t ranks of one node.
func (c *Config) linkOf(t int) link {
	g := &c.GPU
	size := 2 // index of the 8-rank column
	switch {
	case t <= 2:
		size = 0
	case t <= 4:
		size = 1
	}
	if g.Vendor == "cpu" {
		// Ranks of a CPU server share memory: the link between sockets transfers some tens of
		// GB/s, and a barrier takes tens of microseconds.
		return link{a: 30e-6, eager: 30e-6, beta: 20e9, assumed: true}
	}
	direct := g.NVLinkGBs != nil && *g.NVLinkGBs > 0
	fabric := g.NVLinkGBs == nil && strings.Contains(g.Arch, "CDNA")
	if direct || fabric {
		// H100: 4.5, 4.8, 5.3 us and about 100 GB/s over 900 GB/s of links. The
		// A100's 600 GB/s give 85, 60, 55 GB/s: bandwidth follows the links.
		l := link{a: [3]float64{4.5e-6, 4.8e-6, 5.3e-6}[size], eager: eagerAllReduce, beta: 100e9}
		switch {
		case fabric:
			l.assumed = true
		case strings.Contains(g.Arch, "sm80"):
			l.beta = [3]float64{85e9, 60e9, 55e9}[size] * *g.NVLinkGBs / 600
			l.a = 6e-6
		default:
			l.beta *= *g.NVLinkGBs / 900
		}
		return l
	}
	// RTX PRO 6000 on PCIe 5; generation 4 has half the bandwidth. A host whose devices are
	// on different sockets was 5 to 10 times slower.
	l := link{
		a: [3]float64{5e-6, 15e-6, 28e-6}[size], eager: [3]float64{21e-6, 31e-6, 44e-6}[size],
		beta: [3]float64{18e9, 9.5e9, 6.7e9}[size], pcie: true, assumed: g.NVLinkGBs == nil,
	}
	switch {
	case g.PCIeGen == 4 || g.PCIeGen == 0:
		l.beta /= 2
	case g.PCIeGen == 3:
		l.beta /= 4
	}
	return l
}

// allReduce returns the seconds of one all-reduce of m bytes.
func (l link) allReduce(m float64, eager bool) float64 {
	if eager {
		return l.eager + m/l.beta
	}
	return l.a + m/l.beta
}
