package binary

import "strings"

// lower are the places of the hooks below the chosen one on the ladder, in its order: a
// function that has a symbol need not be called, and only running it shows.
func lower(parts []part, hook Point) []Place {
	var below []probe
	if hook == PointOp {
		below = oldProbes(parts)
	}
	if hook == PointOp || hook == PointOpOld {
		for _, name := range matching(parts, func(n string) bool { return strings.HasPrefix(n, eachPrefix) && !strings.HasSuffix(n, fusedSuffix) }) {
			below = append(below, probe{PointOpEach, name, need{arguments: 2}})
		}
	}
	var found []Place
	for _, p := range below {
		for i := range parts {
			if place, ok := parts[i].place(p); ok {
				found = append(found, place)
				break
			}
		}
	}
	return found
}
