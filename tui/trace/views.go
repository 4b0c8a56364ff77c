package trace

import (
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/page"
	"github.com/rooftop-dev/rooftop/engine/page/trace"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

// tableCells is the maximum width of views with text and figures.
const tableCells = 150

// sections returns the contents of the current view, which is not Now.
func (v *snapshot) sections() []page.Section {
	now := *v.s // with the current level of detail and its overhead
	now.Observer = *v.observer()
	if v.live.Detail != 0 {
		now.Coverage.Detail = v.live.Detail.String()
	}
	switch v.u.View {
	case viewOperators:
		return v.operators()
	case viewLayers:
		return orReason(trace.Layers(v.s, v.phase), v.phaseTitle()+": no layers", v.noLayers())
	case viewThreads:
		return orReason(trace.ThreadSections(&now, &v.live.Graph), "Threads", v.noLanes())
	case viewExperts:
		return orReason([]page.Section{trace.Experts(v.s)}, "Experts", v.noExperts())
	}
	return trace.Details(&now)
}

// orReason returns list or, if its first section is empty, the list with that section replaced by
// the reason.
func orReason(list []page.Section, title, why string) []page.Section {
	if len(list) > 0 && len(list[0].Nodes) > 0 {
		return list
	}
	first := page.Section{Title: title, Nodes: []page.Node{page.Prose{Text: page.Toned(page.Muted, why)}}}
	if len(list) == 0 {
		return []page.Section{first}
	}
	return append([]page.Section{first}, list[1:]...)
}

// operators returns the table of operators, and the rest of the phase's time.
func (v *snapshot) operators() []page.Section {
	filter := strings.TrimSpace(v.u.Filter)
	table, rest := trace.Operators(v.s, v.phase, trace.OperatorOrder{Names: v.set.names, Filter: filter, Key: v.set.order, Least: v.set.least})
	kind := "by kind"
	if v.set.names {
		kind = "by name"
	}
	first := page.Section{Title: v.phaseTitle() + ": " + kind, Note: v.covered()}
	if filter != "" {
		n := len(table.Rows)
		found := fmt.Sprintf("%s match%s %q", figure.Counted(n, "operator"), map[bool]string{true: "es"}[n == 1], filter)
		first.Add(page.Prose{Text: page.Join(page.Toned(page.Accent, found), page.Toned(page.Muted, ": esc clears the filter"))})
	}
	if len(table.Rows) == 0 && filter == "" {
		first.Add(page.Prose{Text: page.Toned(page.Muted, v.noOperators())})
	}
	first.Add(table)
	return append([]page.Section{first}, rest...)
}

// scroll draws the current view from the line that the user scrolled to.
func (v *snapshot) scroll(p cell.Pane) frame.Extent {
	most := tableCells
	if v.u.View == viewLayers || v.u.View == viewThreads || v.u.View == viewExperts {
		most = p.Width()
	}
	l := frame.NewListing(v.u, p.Width(), most)
	list := v.sections()
	if v.u.View != viewOperators { // whose table is filtered by operators
		list = frame.Matching(list, strings.TrimSpace(v.u.Filter))
	}
	l.Sections(list)
	return frame.Scrolled(p, v.u, l)
}

// noOperators explains why a trace shows no operators.
func (v *snapshot) noOperators() string {
	switch l := v.live; {
	case l.Detail != 0 && l.Detail&optrace.DetailOperator == 0:
		return "No operator is traced at this level of detail: + traces them."
	case len(v.s.Phases) == 0:
		return "No complete call has been traced yet."
	}
	return "No operator was traced in this phase: view 6 says what is missing."
}

func (v *snapshot) noLayers() string {
	switch {
	case v.withheld():
		return "Layers are identified by tensor names, which are withheld: " + figure.Stopped(v.s.Target.Withheld)
	case len(v.s.Kinds) == 0:
		return v.noOperators()
	}
	return "No tensor of this phase has a name that ends with the number of a layer."
}

func (v *snapshot) noLanes() string {
	if v.live.Detail&optrace.DetailOperator == 0 && v.live.Detail != 0 {
		return "Threads are identified by their operators: press + to trace them."
	}
	return "No whole decode graph was traced yet."
}

func (v *snapshot) noExperts() string {
	switch {
	case v.live.Detail != 0 && v.live.Detail&optrace.DetailExperts == 0:
		return "The choices of experts are not traced at this level of detail: + traces them."
	case len(v.s.Kinds) == 0:
		return v.noOperators()
	case v.withheld():
		return "Mixture-of-experts layers are identified by operator names, which are withheld: " + figure.Stopped(v.s.Target.Withheld)
	}
	return "This model is dense: no graph so far routes to experts."
}

// withheld reports whether names of operators and tensors are unavailable.
func (v *snapshot) withheld() bool { return !v.s.Target.Verified && v.s.Target.Withheld != "" }
