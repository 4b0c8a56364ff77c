package tui

import (
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/tui/cell"
)

// drawEvidence shows every rule with what it rests on, every fact with where it
// came from, and what could not be had. The filter keeps the groups of lines that
// contain it.
func drawEvidence(p cell.Pane, s *engine.Snapshot, u *look) int {
	if s == nil {
		return 0
	}
	p = p.Sub(1, 0, min(p.Width()-2, evidenceCells), p.Height())
	lines := newEvidence(s, u, p.Width()).lines()
	u.page(p, lines, u.scroll[viewEvidence])
	return len(lines)
}

// evidenceCells is how wide a line of text gets.
const evidenceCells = 118

// evidence is the view as groups of lines under headings.
type evidence struct {
	s        *engine.Snapshot
	u        *look
	w        int
	sections []evidenceSection
}

type evidenceSection struct {
	title, note string
	groups      [][]prose
}

func newEvidence(s *engine.Snapshot, u *look, w int) *evidence {
	e := &evidence{s: s, u: u, w: max(1, w)}
	d := s.Live
	if d == nil {
		d = s.Baseline
	}
	e.rules(d)
	e.facts(d)
	e.gaps()
	return e
}

// lines are the groups that the filter lets through, under their headings.
func (e *evidence) lines() []prose {
	u := e.u
	var out []prose
	all, matched := 0, 0
	filter := strings.ToLower(strings.TrimSpace(u.filter))
	for _, section := range e.sections {
		var kept []prose
		for _, g := range section.groups {
			all++
			if filter == "" || strings.Contains(textOf(g), filter) {
				kept = append(kept, g...)
				matched++
			}
		}
		if len(kept) == 0 {
			continue
		}
		if len(out) > 0 {
			out = append(out, nil)
		}
		out = append(append(out, e.heading(section)), kept...)
	}
	if filter == "" {
		return out
	}
	head := u.say(cell.Accent, fmt.Sprintf("%d of %d match %q", matched, all, strings.TrimSpace(u.filter)))
	if matched == 0 {
		head = line(head, u.say(cell.Muted, ": esc clears the filter"))
	}
	return append([]prose{head, nil}, out...)
}

// textOf is a group's text in lower case, as one line, so that words are found
// across the ends of lines.
func textOf(g []prose) string {
	var b strings.Builder
	for _, l := range g {
		for _, s := range l {
			b.WriteString(strings.ReplaceAll(s.text, figure.NBSP, " "))
		}
		b.WriteByte(' ')
	}
	return strings.ToLower(strings.Join(strings.Fields(b.String()), " "))
}

// heading is a section's title in a rule.
func (e *evidence) heading(s evidenceSection) prose {
	u, g := e.u, e.u.glyphs
	title := u.say(cell.Title, " "+s.title+" ")
	note := prose(nil)
	if s.note != "" {
		note = u.say(cell.Muted, " "+s.note+" ")
	}
	fill := e.w - 4 - title.width() - note.width()
	if fill < 2 {
		note, fill = nil, max(0, e.w-4-title.width())
	}
	bar := func(n int) prose { return prose{{cell.Border, strings.Repeat(g.Horizontal, max(0, n))}} }
	return line(bar(2), title, bar(fill), note, bar(2))
}

func (e *evidence) section(title, note string, groups ...[]prose) {
	if len(groups) > 0 {
		e.sections = append(e.sections, evidenceSection{title, note, groups})
	}
}

// para is a paragraph set in by its first line's label.
func (e *evidence) para(label, body prose) []prose {
	lead := label.width()
	var out []prose
	for i, l := range body.wrap(e.w - lead) {
		if i > 0 {
			label = e.u.say(cell.Body, pad(lead))
		}
		out = append(out, line(label, l))
	}
	return out
}

// ruleCells is the column of a rule's state, sign and word.
const ruleCells = 13

func (e *evidence) rules(d *engine.Diagnosis) {
	if d == nil {
		e.section("Rules", "", []prose{e.u.say(cell.Muted, "No window was measured yet.")})
		return
	}
	var groups [][]prose
	count := map[engine.State]int{}
	for i := range d.Findings {
		groups = append(groups, e.rule(d, &d.Findings[i]))
		count[d.Findings[i].State]++
	}
	note := fmt.Sprintf("%d fired, %d not, %d suppressed, %d not judged", count[engine.Fired], count[engine.NotFired], count[engine.Suppressed], count[engine.NotEvaluable])
	e.section("Rules", note, groups...)
}

// rule is one rule: its state, how often it fired, the figure that decided, and
// the evidence.
func (e *evidence) rule(d *engine.Diagnosis, f *engine.Finding) []prose {
	u := e.u
	g := u.gravityOf(f)
	word := g.word
	if f.State == engine.Fired && f.Significant {
		word = "fired"
	}
	indent := u.say(cell.Body, pad(ruleCells))
	state := u.say(g.token, g.sign+figure.NBSP+word)
	state = line(state, u.say(cell.Body, pad(ruleCells-state.width())))
	name := string(f.ID)
	if f.Rule != "" && f.Rule != "beyond" {
		name = f.Rule + ", " + name
	}
	head := line(u.say(cell.Strong, f.Title), u.say(cell.Muted, " ("+name+")"))
	if d.Recommendation != nil && d.Recommendation.Finding == f.ID {
		head = line(head, u.say(cell.Accent, " "+u.glyphs.Arrow+" recommended"))
	}
	out := e.para(state, head)
	how := prose(nil)
	if f.Evaluable > 0 || f.State == engine.Fired {
		how = u.say(cell.Muted, firedIn(f))
	}
	if f.State == engine.Fired {
		how = line(how, u.say(cell.Muted, fmt.Sprintf(", confidence %.2f × impact %.0f = %.2f", f.Confidence, f.Impact, f.Score)))
	}
	if reason := strings.TrimPrefix(f.Reason, firedIn(f)+": "); reason != "" {
		if len(how) > 0 {
			how = line(how, u.say(cell.Muted, ": "))
		}
		how = line(how, u.say(cell.Body, reason))
	}
	if len(how) > 0 {
		out = append(out, e.para(indent, how)...)
	}
	if lacked := strings.Join(f.Missing, ", "); lacked != "" && !strings.Contains(f.Reason, lacked) {
		out = append(out, e.para(indent, u.say(cell.Muted, "lacked "+lacked))...)
	}
	if f.SuppressedBy != "" && !strings.Contains(f.Reason, f.SuppressedBy) {
		out = append(out, e.para(indent, u.say(cell.Muted, "suppressed by "+f.SuppressedBy))...)
	}
	if f.Fix != nil && f.Fix.Withheld != "" {
		out = append(out, e.para(indent, u.say(cell.Muted, "listed, not recommended: "+f.Fix.Withheld))...)
	}
	return append(out, e.figures(indent, f.Evidence)...)
}

// figures are the lines of evidence: name, value with its limit, the sentence and
// where the value came from; in columns where there is room.
func (e *evidence) figures(indent prose, list []engine.Evidence) []prose {
	u := e.u
	names, values := 0, 0
	for _, x := range list {
		names = max(names, cell.Width(x.Name))
		values = max(values, cell.Width(u.spell(held(x))))
	}
	lead := indent.width() + 2 + names + 1 + values + 2
	var out []prose
	for _, x := range list {
		value := u.say(cell.Body, held(x))
		says := u.say(cell.Muted, x.Text)
		if x.Source != "" {
			says = line(says, u.say(cell.Muted, strings.TrimLeft(" ("+sourceWords(x.Source)+")", " ")).spaced(len(x.Text) > 0, u))
		}
		head := line(indent, u.say(cell.Muted, u.glyphs.Info+" "), u.say(cell.Body, x.Name+" "+pad(names-cell.Width(x.Name))), u.say(cell.Body, pad(values-value.width())), value, u.say(cell.Body, "  "))
		if e.w-lead >= 24 {
			out = append(out, e.para(head, says)...)
			continue
		}
		out = append(out, e.para(line(indent, u.say(cell.Muted, u.glyphs.Info+" ")), line(u.say(cell.Body, x.Name+" "), value))...)
		out = append(out, e.para(line(indent, u.say(cell.Body, "  ")), says)...)
	}
	return out
}

// spaced puts a space before a text where something stands before it.
func (p prose) spaced(on bool, u *look) prose {
	if !on {
		return p
	}
	return line(u.say(cell.Body, " "), p)
}

// held is a figure with the limit that it was held against.
func held(x engine.Evidence) string {
	s := figure.Show(finite(x.Value), x.Unit)
	if !number(x.Limit) {
		return s
	}
	op := strings.NewReplacer(">=", "≥", "<=", "≤").Replace(x.Op)
	return s + " " + strings.TrimSpace(op+figure.NBSP+figure.Show(x.Limit, x.Unit))
}

// inColumn is the widest value that stands in a column; a longer one, a command or
// a path, stands under its name.
const inColumn = 24

func (e *evidence) facts(d *engine.Diagnosis) {
	u, f := e.u, &e.s.Facts
	if d != nil && !e.s.Attached {
		f = &d.Facts
	}
	list := factLines(f)
	names, values, sources := 0, 0, 0
	for _, x := range list {
		names = max(names, cell.Width(x.name))
		if n := cell.Width(u.spell(x.value)); n <= inColumn {
			values = max(values, n)
		}
		sources = max(sources, cell.Width(x.source))
	}
	var groups [][]prose
	var unknown []string
	for _, x := range list {
		name := u.say(cell.Muted, x.name+pad(names-cell.Width(x.name))+"  ")
		value := u.say(cell.Strong, x.value)
		switch {
		case x.value == "" && x.note == "":
			unknown = append(unknown, x.name)
		case x.value == "":
			groups = append(groups, e.para(line(name, u.say(cell.Muted, u.glyphs.Dash+"  ")), u.say(cell.Muted, x.note)))
		case value.width() > inColumn || names+values+sources+20 > e.w:
			groups = append(groups, e.para(name, line(value, u.say(cell.Muted, " ("+x.source+noted(x.note)+")"))))
		default:
			head := line(name, value, u.say(cell.Body, pad(values-value.width())+"  "), u.say(cell.Body, x.source+pad(sources-cell.Width(x.source))+"  "))
			groups = append(groups, e.para(head, u.say(cell.Muted, x.note)))
		}
	}
	if len(unknown) > 0 {
		groups = append(groups, e.para(u.say(cell.Muted, u.glyphs.Dash+" not known: "), u.say(cell.Muted, strings.Join(unknown, ", "))))
	}
	e.section("Facts", "what is known without measuring, and from where", groups...)
	var odds [][]prose
	for _, c := range f.Conflicts {
		odds = append(odds, e.para(u.say(cell.Warn, u.glyphs.Warn+figure.NBSP+"conflict  "), u.say(cell.Body, c)))
	}
	e.section("Conflicts", "", odds...)
}

func noted(note string) string {
	if note == "" {
		return ""
	}
	return ": " + note
}

// gaps are what could not be had and what that switches off, and what else a reader
// must know.
func (e *evidence) gaps() {
	u, s := e.u, e.s
	var missing, notes [][]prose
	list, remarks := s.Missing, s.Notes
	if len(list) == 0 && s.Live != nil {
		list = s.Live.Missing
	}
	for _, m := range list {
		body := line(u.say(cell.Strong, m.What), u.say(cell.Body, ": "+m.Reason))
		if m.Effect != "" {
			body = line(body, u.say(cell.Muted, " "+u.glyphs.Arrow+" "+m.Effect))
		}
		missing = append(missing, e.para(u.say(cell.Muted, u.glyphs.Dash+" "), body))
	}
	e.section("Not read", "and what that switches off", missing...)
	seen := map[string]bool{}
	if s.Live != nil {
		remarks = append(remarks[:len(remarks):len(remarks)], s.Live.Notes...)
	}
	for _, n := range remarks {
		if !seen[n] {
			seen[n] = true
			notes = append(notes, e.para(u.say(cell.Muted, u.glyphs.Info+" "), u.say(cell.Body, n)))
		}
	}
	e.section("Notes", "", notes...)
}
