package binary

// lower returns the places of the hooks below the given one, in the order of preference: a
// function with a symbol is not necessarily called, which only running it shows.
func lower(parts []part, hook Point) []Place {
	var below []probe
	if hook == PointOp {
		below = oldProbes(parts)
	}
	if hook == PointOp || hook == PointOpOld {
		below = append(below, eachProbes(parts)...)
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
