package optrace

import "testing"

// CheckRoom compares what an assembler keeps with its limits.
func CheckRoom(t *testing.T, a *Assembler) {
	t.Helper()
	room := 0
	for _, g := range a.open {
		for _, w := range g.workers {
			if w != nil {
				room += cap(w.Spans)
			}
		}
	}
	for _, w := range a.loose {
		room += cap(w.Spans)
		if len(w.Spans) > maxLooseSpans {
			t.Fatalf("a loose lane has %d spans", len(w.Spans))
		}
	}
	if room != a.spans {
		t.Fatalf("there is room for %d spans, counted are %d", room, a.spans)
	}
	for what, n := range map[string][2]int{
		"threads": {len(a.threads), maxThreads}, "open graphs": {len(a.open), maxOpenGraphs}, "loose lanes": {len(a.loose), maxLoose},
		"spans": {a.spans, maxOpenSpans + maxOpenSpans/4}, "requests": {len(a.disk), maxRequests},
		"newest DAGs": {len(a.dags.newest), maxNewestDAGs}, "DAGs that are distinguished": {len(a.dags.uneven), maxNewestDAGs}, "DAGs": {len(a.dags.nodes), maxPlaces},
	} {
		if n[0] > n[1] {
			t.Fatalf("%d %s are kept, more than %d", n[0], what, n[1])
		}
	}
}

// Open returns the numbers of graphs and loose compute threads that are open, and the spans that
// there is room for.
func Open(a *Assembler) (graphs, loose, spans int) { return len(a.open), len(a.loose), a.spans }

// CheckOpenLanes compares what the compute threads of open graphs keep with the limits.
func CheckOpenLanes(t *testing.T, a *Assembler) {
	t.Helper()
	for _, g := range a.open {
		for _, w := range g.workers {
			if w != nil && len(w.WakeUps) > maxWakeUps {
				t.Errorf("%d wake-ups of a lane", len(w.WakeUps))
			}
		}
	}
}

// FillTables counts entries of tables as if there was room for n more.
func FillTables(r *Reader, w *Writer, n int) {
	r.entries, w.entries = maxTableEntries-n, maxTableEntries-n
}
