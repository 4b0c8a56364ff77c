package report

import (
	"bytes"
	"cmp"
	"io"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
)

// Bounds of the report that a screen leaves behind, in lines.
const (
	runLines     = 24
	commandLines = 6 // of a launch command; a longer one is named by its changes
	reasonLines  = 5 // of why it ended: what to do stands at its end
	fewestRows   = 2 // iterations that are always listed
)

// WriteRun writes what a run of the loop came to, in at most a screen of text:
// the best configuration, each iteration in a line, what is left to do, and the
// files that say more.
func WriteRun(w io.Writer, s *engine.Snapshot, files []string, o Options) error {
	r := &runPage{account: account{s}, o: o, files: files}
	top, bottom := r.section(r.head), r.section(r.tail)
	room := runLines - lineCount(top) - lineCount(bottom)
	var b bytes.Buffer
	b.WriteString(top)
	b.WriteString(r.section(func(p *page) { r.rows(p, room-1) }))
	b.WriteString(bottom)
	if r.err != nil {
		return r.err
	}
	_, err := w.Write(b.Bytes())
	return err
}

// runPage is the account of a run on its way to a screen of text.
type runPage struct {
	account
	o     Options
	files []string
	err   error
}

// section draws a part by itself, so that its lines can be counted.
func (r *runPage) section(draw func(*page)) string {
	var b bytes.Buffer
	p := newPage(&b, r.o)
	draw(p)
	if err := p.flush(); err != nil && r.err == nil {
		r.err = err
	}
	return b.String()
}

func lineCount(s string) int { return strings.Count(s, "\n") }

// head says what was tuned and what came of it.
func (r *runPage) head(p *page) {
	s := r.s
	if s.Target.Simulated {
		p.para(0, 2, text{p.mark(warn, Simulated+" server:"), p.span(body, " it shows how rooftop works, not what hardware does")})
	}
	t, headline := r.headline()
	p.para(0, 2, text{p.span(t, cmp.Or(t.symbol(), "●")+nbsp), p.span(strong, headline)})
	about := "looked for " + lasted(s.Now)
	if s.Attached {
		about = served(s.Target) + ", " + lasted(s.Now)
	}
	p.clipped(p.text(muted, about), 2)
	p.clipped(p.text(body, r.reason()), reasonLines)
	if f := s.Finished; f != nil {
		down := ""
		if f.Downtime > 0 {
			down = "the server was down for " + lasted(f.Downtime) + " in all"
		}
		if text := joinSentences(f.Score.Told(), down); text != "" {
			p.clipped(p.text(muted, text), 2)
		}
	}
}

// clipped writes a paragraph in at most so many lines; what does not fit ends in
// an ellipsis.
func (p *page) clipped(t text, most int) {
	for _, l := range p.cut(t, p.width-indent, most) {
		p.raw(indent, l)
	}
}

// cut wraps t into at most so many lines.
func (p *page) cut(t text, cells, most int) []text {
	lines := wrap(t, cells, cells)
	if len(lines) > most {
		lines = lines[:most]
		lines[most-1] = p.ellipsis(lines[most-1], cells)
	}
	return lines
}

// ellipsis ends a line with a mark that something is left out.
func (p *page) ellipsis(line text, cells int) text {
	mark := p.span(muted, "…")
	room := cells - width(mark.s)
	var out text
	for _, s := range line {
		s.s = fit(s.s, room)
		room -= width(s.s)
		out = append(out, s)
	}
	return append(out, mark)
}

// rows lists the iterations in at most so many lines, the latest where there are
// more.
func (r *runPage) rows(p *page, room int) {
	list := r.s.Iterations
	if len(list) == 0 {
		return
	}
	p.blank()
	room -= 2 // that, and the head of the table
	if p.width < narrow {
		room /= 2
	}
	room = max(room, fewestRows)
	if hidden := len(list) - room; hidden > 0 {
		hidden++ // the line that says so
		list = list[min(hidden, len(list)-1):]
		p.line(indent, p.text(muted, plural(len(r.s.Iterations)-len(list), "earlier change")+": in the full report"))
	}
	r.table(p, list)
}

// narrow is the width in cells below which an iteration takes two lines.
const narrow = 72

// table writes iterations, figures first, so that long names stand at the end.
func (r *runPage) table(p *page, list []engine.Iteration) {
	t := &table{}
	t.add(cell{}, cell{}, cell{t: p.text(muted, "output, tok/s"), right: true}, cell{}, cell{})
	for i := range list {
		it := &list[i]
		tone, word := became(it)
		change := ""
		if it.Delta != nil {
			change = changed(effectOf(it))
		}
		before, after := outputs(it)
		t.add(
			cell{t: p.text(muted, strconv.Itoa(it.N)), right: true},
			cell{t: text{p.mark(tone, word)}},
			cell{t: text{p.span(body, rate(before)+nbsp+"→"+nbsp), p.span(strong, rate(after))}, right: true},
			cell{t: p.text(accent, change), right: true},
			cell{t: p.text(body, joinSentences(changeOf(it), it.Failure))},
		)
	}
	cells := p.width - indent
	if p.width < narrow {
		for _, row := range t.rows[1:] {
			var line text
			for _, c := range row {
				line = append(append(line, c.t...), p.span(body, " "))
			}
			p.clipped(line, 2)
		}
		return
	}
	widths := t.columns()
	for _, w := range widths[:len(widths)-1] {
		cells -= w + t.between()
	}
	for _, row := range t.rows {
		if last := &row[len(row)-1]; last.t.width() > cells {
			last.t = p.ellipsis(last.t, cells)
		}
	}
	p.table(indent, t)
}

// rate is an output without its unit.
func rate(q engine.Quantity) string {
	if q.Value.OK {
		return figure.Significant(q.Value.V)
	}
	return absent
}

// tail says what to do: the best command, what is recommended still, what was not
// undone, and where more is.
func (r *runPage) tail(p *page) {
	best := ""
	if len(r.s.Iterations) > 0 { // else it is the one that the reader started
		best = r.best()
		p.blank()
	}
	if best != "" {
		r.command(p, best)
	}
	if left := r.undone(); left != "" {
		p.field("left", append(text{p.mark(bad, "not undone:")}, p.span(body, " "+left)), 3)
	}
	if next := r.next(); next != "" && next != r.reason() {
		p.field("next", p.text(body, next), 3)
	}
	r.where(p)
}

// where names the files of the full report: one whole path, and the names of those
// beside it. A path that is longer than a line is left to the terminal to wrap: cut
// in two it could not be copied.
func (r *runPage) where(p *page) {
	if len(r.files) == 0 {
		return
	}
	first := p.span(accent, r.files[0])
	dir, rest := path.Dir(r.files[0]), text{}
	for _, f := range r.files[1:] {
		if path.Dir(f) == dir {
			f = path.Base(f)
		}
		rest = append(rest, p.span(muted, ", "), p.span(accent, f))
	}
	label := p.text(muted, "report")
	if valueColumn+width(first.s) <= p.width {
		p.define(indent, valueColumn, label, append(text{first}, rest...))
		return
	}
	names := append(text{p.span(accent, path.Base(r.files[0]))}, rest...)
	p.define(indent, valueColumn, label, append(names, p.span(muted, " in")))
	p.raw(0, text{p.span(accent, dir)})
}

// field writes "label  text", the text in at most so many lines.
func (p *page) field(label string, t text, most int) {
	name := p.span(muted, label)
	lead := text{{strings.Repeat(" ", indent), body}, name, {strings.Repeat(" ", valueColumn-indent-width(name.s)), body}}
	for _, l := range p.cut(t, p.width-valueColumn, most) {
		p.raw(0, append(lead, l...))
		lead = text{{strings.Repeat(" ", valueColumn), body}}
	}
}

// command writes the kept launch command so that it can be copied. One that would
// fill the screen is not cut in half: what differs from the first is said instead.
func (r *runPage) command(p *page, best string) {
	whole := r.section(func(p *page) { p.command(valueColumn, best) })
	if lineCount(whole) <= commandLines {
		p.line(indent, p.text(muted, "kept launch command"))
		p.command(valueColumn, best)
		return
	}
	words := "the launch command that it was started with"
	if changes := r.keptChanges(); len(changes) > 0 {
		words += ", with " + spelled(changes...)
	}
	if len(r.files) > 0 {
		words += "; it is in the report"
	}
	p.field("kept", p.text(body, words), 4)
}

// keptChanges lists what the best configuration has beyond the first.
func (a account) keptChanges() []engine.Change {
	var out []engine.Change
	for i := range a.s.Iterations {
		if it := &a.s.Iterations[i]; it.End == engine.IterationKept || it.End == engine.IterationContinued {
			for _, c := range it.Changes { // each stands against the one kept before
				out = fold(out, c)
			}
		}
	}
	return out
}

// fold adds a change to others made before it: of one flag the first From and the
// last To count, and a change that leads back is none.
func fold(list []engine.Change, c engine.Change) []engine.Change {
	i := slices.IndexFunc(list, func(have engine.Change) bool { return have.Flag == c.Flag })
	if i < 0 {
		return append(list, c)
	}
	list[i].To = c.To
	if list[i].To == list[i].From {
		return slices.Delete(list, i, i+1)
	}
	return list
}
