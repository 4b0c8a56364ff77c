package tui

import (
	"fmt"
	"slices"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// evidenceCells is the maximum width of a line, in cells.
const evidenceCells = 118

// evidence returns the view of all rules with their evidence, all facts with their sources, and
// what could not be read. The filter limits it to matching entries.
func evidence(s *loop.Snapshot, u *frame.Settings, width int) frame.Content {
	return frame.NewListing(u, width, evidenceCells, u.Matching(evidenceSections(s)), "facts")
}

// evidenceSections returns the view's sections without the filter.
func evidenceSections(s *loop.Snapshot) []page.Section {
	d, facts := s.Live, &s.Facts
	if d == nil {
		d = s.Baseline
	}
	rules := page.Section{Title: "Rules", Nodes: []page.Node{page.Prose{Text: page.Toned(page.Muted, "No window has been measured yet.")}}}
	missing, notes := s.Missing, slices.Clone(s.Notes)
	if d != nil {
		rules = tuning.Rules(d, countStates(d))
		rules.Title = "Rules"
		if !s.Attached {
			facts = &d.Facts
		}
	}
	if s.Live != nil {
		notes = append(notes, s.Live.Notes...)
		if len(missing) == 0 {
			missing = s.Live.Missing
		}
	}
	remarks := page.Section{Title: "Notes"}
	for i, n := range notes {
		if !slices.Contains(notes[:i], n) {
			remarks.Add(page.Prose{Text: page.Toned(page.Body, "· "+n)})
		}
	}
	return []page.Section{rules, tuning.FactsSection(facts), tuning.NotRead(missing), remarks}
}

// countStates counts findings by state, in words.
func countStates(d *engine.Diagnosis) string {
	count := map[engine.State]int{}
	for i := range d.Findings {
		count[d.Findings[i].State]++
	}
	return fmt.Sprintf("%d fired, %d not fired, %d suppressed, %d not judged", count[engine.Fired], count[engine.NotFired], count[engine.Suppressed], count[engine.NotEvaluable])
}
