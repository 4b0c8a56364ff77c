package report

import (
	"cmp"
	"io"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// WriteTrace writes s as a page of text: the one thing to change and what the target
// does now on the first screen, then every figure, the coarse ones first. No line is
// wider than o.Width cells.
func WriteTrace(w io.Writer, s *optrace.Summary, o Options) error {
	r := &tracePage{page: newPage(w, o), s: s}
	r.subject()
	r.cut()
	r.answer()
	r.glance()
	r.coverage()
	r.phases()
	r.operators()
	r.threads()
	r.layers()
	r.experts()
	r.contexts()
	r.types()
	r.critical()
	r.tokens()
	r.others()
	r.backends()
	r.shapes()
	r.findings()
	r.unknown()
	r.footer()
	return r.flush()
}

// tracePage is one trace on its way to a page.
type tracePage struct {
	*page
	s *optrace.Summary
}

// subject says what was traced.
func (r *tracePage) subject() {
	t := &r.s.Target
	who := base(firstWord(t.Command))
	switch {
	case t.PID > 0:
		who = strings.TrimSpace(who + " PID" + nbsp + strconv.Itoa(t.PID))
	case who == "" && len(t.Files) > 0:
		who = base(t.Files[0].Path)
	}
	model := base(t.Model)
	threads := ""
	if n := computing(r.s); n > 0 {
		threads = plural(n, "thread")
		if t.CPUs > 0 {
			threads += ", " + plural(t.CPUs, "CPU")
		}
		threads = strings.ReplaceAll(threads, " ", nbsp)
	}
	r.para(0, 2, r.text(strong, strings.Join(nonEmpty(cmp.Or(who, "unknown target"), t.Runtime, model, threads), " · ")))
}

// cut says before any figure that the recording has no end; where nothing is in it, the
// answer does.
func (r *tracePage) cut() {
	if r.s.Empty() {
		return
	}
	for _, g := range r.s.Gaps {
		if g.What == optrace.GapEnd {
			r.blank()
			r.para(0, 2, append(text{r.mark(warn, "not whole:")}, r.text(body, " "+g.Why+"; the figures are of what is there")...))
		}
	}
}

// base is the last part of a path, "" of none.
func base(path string) string {
	if path == "" {
		return ""
	}
	return filepath.Base(path)
}

// firstWord is the program of a command line.
func firstWord(command string) string {
	word, _, _ := strings.Cut(strings.TrimSpace(command), " ")
	return word
}

// computing is how many threads compute: the lanes that were seen, else those that
// the roof is of.
func computing(s *optrace.Summary) int {
	if n := len(s.Threads); n > 0 {
		return n
	}
	return max(0, s.Roof.Threads)
}

// footer ends the page with the answer again, since the page is longer than a screen,
// and says where more is.
func (r *tracePage) footer() {
	r.blank()
	if a := &r.s.Advice; asked(a) {
		r.para(0, 2, text{r.span(strong, "do "), r.span(accent, a.Do)})
	}
	more := "-v shows every row; --json has all of them"
	if r.o.Verbose {
		more = "--json has the same as a document"
	}
	r.para(0, 0, r.text(muted, more))
}

// section starts one with its title, and says in the same line what its figures are.
func (r *tracePage) section(title, aside string) { r.heading(title, aside) }

// row writes one line of a section behind its label.
func (r *tracePage) row(label string, t text) {
	r.define(indent, traceColumn, r.text(muted, label), t)
}

// traceColumn is where the text of a labelled row begins.
const traceColumn = 13

// most is how many of n rows are shown: some without -v.
func (r *tracePage) most(n, some int) int {
	if r.o.Verbose {
		return n
	}
	return min(n, some)
}

// left says how many rows are not shown.
func (r *tracePage) left(n int, what string) {
	if n > 0 {
		r.line(indent, r.text(muted, "and "+plural(n, what)+" more (-v)"))
	}
}

// number is the cell of a figure, aligned to the right.
func (r *tracePage) number(s string) cell { return cell{t: r.text(body, s), right: true} }

// column is one column of a table that may be left out where the page is narrow: those
// of the largest rank first, rank 0 never.
type column struct {
	head string
	rank int
	left bool
	of   func(row int) string
	tone tone
}

// grid writes rows of columns, without those for which there is no room or which have
// no value in any row.
func (r *tracePage) grid(rows int, columns []column) {
	columns = slices.DeleteFunc(slices.Clone(columns), func(c column) bool {
		if c.rank == 0 {
			return false
		}
		for i := range rows {
			if v := c.of(i); v != absent && v != "" {
				return false
			}
		}
		return true
	})
	for {
		t := r.gridTable(rows, columns)
		worst := slices.MaxFunc(columns, func(a, b column) int { return cmp.Compare(a.rank, b.rank) })
		if t.natural() > r.width-indent && t.gap != 1 {
			t.gap = 1
		}
		if t.natural() <= r.width-indent || worst.rank == 0 {
			r.table(indent, t)
			return
		}
		at := len(columns) - 1
		for columns[at].rank != worst.rank {
			at--
		}
		columns = slices.Delete(columns, at, at+1)
	}
}

func (r *tracePage) gridTable(rows int, columns []column) *table {
	t := &table{}
	var heads []cell
	for _, c := range columns {
		heads = append(heads, cell{t: r.text(muted, c.head), right: !c.left})
	}
	t.add(heads...)
	for i := range rows {
		var line []cell
		for _, c := range columns {
			line = append(line, cell{t: r.text(c.tone, c.of(i)), right: !c.left})
		}
		t.add(line...)
	}
	return t
}

// levels are the eight heights of a small picture.
func (r *tracePage) levels() []string {
	if r.o.ASCII {
		return []string{"_", ".", ":", "-", "=", "+", "*", "#"}
	}
	return []string{"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"}
}

// level is the height of a share of the full scale; what is not known is a space.
func (r *tracePage) level(share float64, known bool) string {
	if !known || share != share {
		return " "
	}
	levels := r.levels()
	n := len(levels)
	return levels[min(max(int(share*float64(n)), 0), n-1)]
}

// bar draws a share in cells. What is there, however little, is seen.
func (r *tracePage) bar(share stat.Opt, cells int) string {
	v := finite(share)
	if !v.OK || v.V <= 0 {
		return ""
	}
	eighths := int(min(1, v.V)*float64(cells*8) + 0.5)
	if r.o.ASCII {
		return strings.Repeat("#", max(1, (eighths+4)/8))
	}
	parts := []string{"", "▏", "▎", "▍", "▌", "▋", "▊", "▉"}
	eighths = max(1, eighths)
	return strings.Repeat("█", eighths/8) + parts[eighths%8]
}

// percent is a ratio with its sign, or what stands for none.
func percent(o stat.Opt) string { return figure.Show(finite(o), "ratio") }

// inBillions is a rate as a plain number of 10⁹ a second, its unit stands above it.
func inBillions(o stat.Opt) string {
	v := finite(o)
	if !v.OK {
		return absent
	}
	return figure.Significant(v.V / 1e9)
}

// phaseTime is the time of a quantile of a distribution, absent where it is empty.
func phaseTime(d *optrace.Distribution, of func(*optrace.Distribution) float64) string {
	if d.Count <= 0 {
		return absent
	}
	return figure.Show(stat.Some(of(d)), "s")
}

// Quantiles of a distribution, in seconds.
func meanOf(d *optrace.Distribution) float64   { return d.Mean.Seconds() }
func medianOf(d *optrace.Distribution) float64 { return d.P50.Seconds() }
func p95Of(d *optrace.Distribution) float64    { return d.P95.Seconds() }
func p99Of(d *optrace.Distribution) float64    { return d.P99.Seconds() }
func maxOf(d *optrace.Distribution) float64    { return d.Max.Seconds() }
