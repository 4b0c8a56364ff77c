package simbench

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
)

// Census counts, over many scenarios whose truth nobody wrote down, what rooftop
// recommends and whether that helps: the recommended flag, or of a client's
// remedy the changed load, is tried beside the unchanged run.
type Census struct {
	Advice  string // finding, and what is to be changed; or the outcome
	Count   int
	Tried   int
	Helped  int
	Harmed  int // fewer tokens, or a longer wait, without helping
	Refused int // the server does not start with it
	// Untried counts, by reason, the rows whose advice was not tried.
	Untried map[string]int
}

// harm is the loss from which a change that does not help counts as harmful: of
// tokens per second.
const harm = 0.03

// TakeCensus groups rows by what was recommended, in the order of their names.
// Rows that did not run are a group of their own.
func TakeCensus(rows []Row) []Census {
	groups := map[string]*Census{}
	for i := range rows {
		r := &rows[i]
		name := r.advice()
		g := groups[name]
		if g == nil {
			g = &Census{Advice: name, Untried: map[string]int{}}
			groups[name] = g
		}
		g.Count++
		if r.Untried != "" {
			g.Untried[r.Untried]++
		}
		switch t := &r.Own; {
		case !t.Made:
		case t.Outcome.refused():
			g.Tried++
			g.Refused++
		default:
			g.Tried++
			g.Helped += count(t.Helps())
			g.Harmed += count(!t.Helps() && (t.Throughput < -harm || t.TTFT > helpTTFT))
		}
	}
	var out []Census
	for _, g := range groups {
		out = append(out, *g)
	}
	slices.SortFunc(out, func(a, b Census) int { return cmp.Compare(a.Advice, b.Advice) })
	return out
}

// untried lists why advice was not tried, in the order of the reasons.
func (g *Census) untried() string {
	var parts []string
	for _, why := range slices.Sorted(maps.Keys(g.Untried)) {
		parts = append(parts, fmt.Sprintf("%d: %s", g.Untried[why], why))
	}
	return cmp.Or(strings.Join(parts, "; "), "-")
}

func (r *Row) advice() string {
	if r.Err != nil {
		return "did not run"
	}
	rec := r.Base.Diagnosis.Recommendation
	if rec == nil {
		return string(r.Base.Diagnosis.Outcome)
	}
	return strings.TrimSpace(fmt.Sprintf("%s: %s", rec.Finding, cmp.Or(rec.Flag, string(rec.Kind))))
}

// WriteCensus writes the groups and, one line each, the rows whose change did
// not help; verbose gives these in full.
func WriteCensus(w io.Writer, rows []Row, verbose bool) error {
	var b strings.Builder
	b.WriteString("SIMULATED: every figure comes from rooftop's own simulator, not from hardware.\n\n")
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "RECOMMENDED\tCOUNT\tTRIED\tHELPED\tNO EFFECT\tHARMED\tREFUSED\tNOT TRIED")
	for _, g := range TakeCensus(rows) {
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s\n", g.Advice, g.Count, g.Tried, g.Helped, g.Tried-g.Helped-g.Harmed-g.Refused, g.Harmed, g.Refused, g.untried())
	}
	_ = t.Flush() // a strings.Builder takes everything
	b.WriteByte('\n')
	for i := range rows {
		r := &rows[i]
		switch {
		case r.Err != nil:
			fmt.Fprintf(&b, "%s\n", oneLine(r.Err.Error()))
		case r.Own.Made && !r.Own.Helps() && verbose:
			r.detail(&b)
		case r.Own.Made && !r.Own.Helps():
			fmt.Fprintf(&b, "%s: %s: %s: %s\n", r.Scenario.Name, r.advice(), r.Own.Change, cmp.Or(refusal(&r.Own), r.Own.effect()))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
