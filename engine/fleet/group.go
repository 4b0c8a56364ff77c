package fleet

import "github.com/rooftop-dev/rooftop/engine/stat"

// By is what servers are grouped by.
type By uint8

// Groupings of servers.
const (
	ByModel By = iota
	ByDeployment
	NumBys
)

// String returns what the groups are, as a heading: "model".
func (b By) String() string { return [...]string{"model", "deployment"}[b%NumBys] }

// Of returns the name of the group of a server, "" if it is unknown.
func (b By) Of(s *Server) string {
	if b == ByDeployment {
		return s.Deployment
	}
	return s.Target.Model
}

// Group is the servers of one model or deployment, in the order of their list.
type Group struct {
	Name    string // "" of servers whose model or deployment is unknown
	Servers []Server
}

// Groups returns the groups of a list, in the order of their first servers.
func Groups(list []Server, by By) []Group {
	var out []Group
	index := map[string]int{}
	for i := range list {
		name := by.Of(&list[i])
		at, found := index[name]
		if !found {
			at = len(out)
			index[name] = at
			out = append(out, Group{Name: name})
		}
		out[at].Servers = append(out[at].Servers, list[i])
	}
	return out
}

// Count returns the number of servers of a list that meet a condition.
func Count(list []Server, is func(*Server) bool) int {
	n := 0
	for i := range list {
		if is(&list[i]) {
			n++
		}
	}
	return n
}

// Sum adds up a figure of the servers of a list that have it, absent if none has. It leaves
// out ill servers, whose means are from before.
func Sum(list []Server, quantity string) stat.Opt {
	total := stat.None
	for i := range list {
		if v := list[i].Current(quantity); v.OK {
			total = stat.Some(total.Or(0) + v.V)
		}
	}
	return total
}

// Current returns a measured quantity of a server, absent if the server is ill: its mean is from before.
func (s *Server) Current(quantity string) stat.Opt {
	if s.Condition.Ill() {
		return stat.None
	}
	return s.Quantity(quantity).Value
}

// Waste adds up what the servers of a list waste, absent if none has a price and a change. The bounds are those
// of all changes at once.
func Waste(list []Server) Span {
	var total Span
	add := func(to *stat.Opt, v stat.Opt) {
		if v.OK {
			*to = stat.Some(to.Or(0) + v.V)
		}
	}
	for i := range list {
		w := list[i].Waste()
		add(&total.Low, w.Low)
		add(&total.Mid, w.Mid)
		add(&total.High, w.High)
	}
	return total
}

// Findings returns what is uneven among the servers of the group.
func (g *Group) Findings() []Finding { return Findings(g.Servers) }
