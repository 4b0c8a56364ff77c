package engine

// Restarted reports whether the server was restarted between pages a and b: its start time
// moved, every series was created again, or several counters fell together. A single falling
// counter is a fault of that counter.
func Restarted(a, b *Page) bool {
	if a.StartTime.OK && b.StartTime.OK {
		return b.StartTime.V-a.StartTime.V > 0.5
	}
	if a.Created.OK && b.Created.OK {
		return b.Created.V-a.Created.V > 0.5
	}
	fell, counted := 0, 0
	look := func(before, after float64) {
		if before <= 0 {
			return
		}
		counted++
		if after < before {
			fell++
		}
	}
	for c := range a.Counters {
		if a.Counters[c].OK && b.Counters[c].OK {
			look(a.Counters[c].V, b.Counters[c].V)
		}
	}
	for h := range a.Hists {
		if a.Hists[h].OK && b.Hists[h].OK {
			look(a.Hists[h].Count, b.Hists[h].Count)
		}
	}
	return fell >= 2 && 2*fell >= counted
}
