package bench

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Census counts one recommendation over many scenarios without a known truth, and how often it
// helps: the recommended flag, or the changed load of a client-side remedy, is compared with the
// unchanged run.
type Census struct {
	Advice  string `json:"advice"` // finding and change, or the outcome
	Count   int    `json:"count"`
	Tried   int    `json:"tried"`
	Helped  int    `json:"helped"`
	Harmed  int    `json:"harmed"`  // fewer tokens, or a longer wait, without helping
	Refused int    `json:"refused"` // the server does not start with it
	// Untried counts the rows whose recommendation was not tried, by reason.
	Untried map[string]int `json:"untried"`
}

// harm is the relative loss of tokens per second from which a change that does not help counts as
// harmful.
const harm = 0.03

// TakeCensus groups rows by recommendation, ordered by name. Rows that did not run form a separate
// group.
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

// untried returns the reasons why recommendations were not tried, in alphabetical order.
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

// WriteCensus writes the groups, and one line for each row whose change did not help; with verbose,
// all details of these rows.
func WriteCensus(w io.Writer, rows []Row, verbose bool) error {
	b := newReport()
	lines := []string{"RECOMMENDED\tCOUNT\tTRIED\tHELPED\tNO EFFECT\tHARMED\tREFUSED\tNOT TRIED"}
	for _, g := range TakeCensus(rows) {
		lines = append(lines, fmt.Sprintf("%s\t%d\t%d\t%d\t%d\t%d\t%d\t%s",
			g.Advice, g.Count, g.Tried, g.Helped, g.Tried-g.Helped-g.Harmed-g.Refused, g.Harmed, g.Refused, g.untried()))
	}
	writeTable(b, lines)
	for i := range rows {
		r := &rows[i]
		switch {
		case r.Err != nil:
			fmt.Fprintf(b, "%s\n", oneLine(r.Err.Error()))
		case r.Own.Made && !r.Own.Helps() && verbose:
			r.detail(b)
		case r.Own.Made && !r.Own.Helps():
			fmt.Fprintf(b, "%s: %s: %s: %s\n", r.Scenario.Name, r.advice(), r.Own.Change, cmp.Or(refusal(&r.Own), r.Own.effect()))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}
