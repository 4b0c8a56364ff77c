// Package trace builds the pages of operator traces, with every sentence, label and column of reports and
// documents. It is pure; package page defines the types of pages.
package trace

import (
	"cmp"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/page"
)

// builder builds the sections of one trace.
type builder struct{ s *optrace.Summary }

// Report returns the page of a trace: the recommended change and what the target does now, then every
// figure, the coarse ones first.
func Report(s *optrace.Summary, verbose bool) *page.Page {
	b := &builder{s}
	p := &page.Page{Title: Name(s), Sections: []page.Section{b.subject(), b.incompleteWarning(), b.answer(), b.currentState(), b.coverage(), b.phases()}}
	for _, phase := range phasesByTime(s) {
		p.Sections = append(p.Sections, b.operatorSections(phase)...)
	}
	p.Sections = append(p.Sections, b.threads())
	p.Sections = append(p.Sections, b.allLayers()...)
	p.Sections = append(p.Sections, b.experts(), b.contexts(), b.types(), b.critical(), b.tokens(), backends(s), copies(s), graphs(s))
	p.Sections = append(p.Sections, b.findings(), b.rejected(), b.gaps(), b.footer(verbose))
	return p
}

// Program returns the name of a target's program, or "" if unknown.
func Program(t *optrace.Target) string {
	first, _, _ := strings.Cut(strings.TrimSpace(t.Command), " ")
	if first == "" && t.PID <= 0 && len(t.Files) > 0 {
		first = t.Files[0].Path
	}
	return base(first)
}

// Process returns a target's program with its PID, or "" if neither is known.
func Process(t *optrace.Target) string {
	name := Program(t)
	if t.PID > 0 {
		name = strings.TrimSpace(name + " PID" + figure.NBSP + strconv.Itoa(t.PID))
	}
	return name
}

// Name returns the traced program and model in one line.
func Name(s *optrace.Summary) string {
	t := &s.Target
	return figure.Joined(" · ", cmp.Or(Process(t), "unknown target"), t.Runtime, base(t.Model))
}

// subject returns what was traced.
func (b *builder) subject() page.Section {
	threads := ""
	if n := Threads(b.s); n > 0 {
		threads = figure.Counted(n, "thread")
		if c := b.s.Target.CPUs; c > 0 {
			threads += ", " + figure.Counted(c, "CPU")
		}
		threads = figure.Unbroken(threads)
	}
	return page.Section{ID: "subject", Terminal: true, Nodes: []page.Node{page.Paragraph(page.Toned(page.Strong, figure.Joined(" · ", Name(b.s), threads)))}}
}

// incompleteWarning warns that the recording is incomplete. An empty recording is reported by the answer instead.
func (b *builder) incompleteWarning() page.Section {
	out := page.Section{ID: "cut"}
	if b.s.Empty() {
		return out
	}
	if g := b.gap(optrace.GapEnd); g != nil {
		out.Add(page.Paragraph(page.Mark(page.Warn, "incomplete recording:"), page.Toned(page.Body, " "+g.Why+"; the figures cover what it holds")))
	}
	return out
}

// gap returns the reason why something is not known, or nil.
func (b *builder) gap(what string) *optrace.Gap {
	i := slices.IndexFunc(b.s.Gaps, func(g optrace.Gap) bool { return g.What == what })
	if i < 0 {
		return nil
	}
	return &b.s.Gaps[i]
}

// Threads returns the number of compute threads: those seen, or else those of the machine peak.
func Threads(s *optrace.Summary) int {
	if n := len(s.Threads); n > 0 {
		return n
	}
	return max(0, s.Peak.Threads)
}

// footer repeats the answer, because the page is longer than a screen, and names further output.
func (b *builder) footer(verbose bool) page.Section {
	out := page.Section{ID: "footer", Terminal: true}
	if a := &b.s.Advice; recommends(a) {
		out.Add(page.Paragraph(page.Toned(page.Strong, "do "), page.Toned(page.Accent, a.Do)))
	}
	more := "-v shows every row; --json has all of them"
	if verbose {
		more = "--json writes the same as a document"
	}
	out.Add(page.Paragraph(page.Toned(page.Muted, more)))
	return out
}

// phasesByTime returns the phases of operators, the one with the most time first.
func phasesByTime(s *optrace.Summary) []string {
	times := map[string]time.Duration{}
	var names []string
	for _, rows := range [...][]optrace.OperatorRow{s.Kinds, s.Steps} {
		for i := range rows {
			if !slices.Contains(names, rows[i].Phase) {
				names = append(names, rows[i].Phase)
			}
		}
	}
	for i := range s.Kinds {
		times[s.Kinds[i].Phase] += s.Kinds[i].Time
	}
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(times[b], times[a]) })
	return names
}

// MainPhase returns decode if there is such a phase, or else the phase with the most time.
func MainPhase(s *optrace.Summary) string {
	phases := phasesByTime(s)
	switch {
	case slices.Contains(phases, "decode"):
		return "decode"
	case len(phases) > 0:
		return phases[0]
	}
	return ""
}

// base returns the last part of a path, or "" for an empty path.
func base(p string) string {
	if p == "" {
		return ""
	}
	return path.Base(p)
}

// prefixed returns lead followed by s, or "" if s is empty.
func prefixed(lead, s string) string {
	if s == "" {
		return ""
	}
	return lead + s
}
