package bench

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// table formats rows, with a summary.
func table(rows []Row) string {
	b := newReport()
	lines := []string{"CASE\tSCENARIO\tTRUTH\tROOFTOP SAYS\tRIGHT\tITS CHANGE\tREMEDY\tWRONG REMEDY\tVIRTUAL\tWALL"}
	for i := range rows {
		lines = append(lines, rows[i].line())
	}
	writeTable(b, lines)
	for i := range rows {
		rows[i].remarks(b)
	}
	b.WriteString(summary(rows))
	return b.String()
}

// newReport begins a report with its warning.
func newReport() *strings.Builder {
	var b strings.Builder
	b.WriteString("SIMULATED: every figure comes from rooftop's own simulator, not from hardware.\n\n")
	return &b
}

// writeTable writes lines whose cells are separated by tabs, and an empty line.
func writeTable(b *strings.Builder, lines []string) {
	t := tabwriter.NewWriter(b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(lines, "\n"))
	_ = t.Flush() // a strings.Builder returns no errors
	b.WriteByte('\n')
}

func (r *Row) line() string {
	sc := &r.Scenario
	if r.Err != nil {
		return fmt.Sprintf("%s\t%s\t%s\tdid not run\t-\t-\t-\t-\t-\t%s", sc.Case, sc.Name, r.truth(), wall(r.Wall))
	}
	says := cmp.Or(r.Answer.Finding, string(r.Base.Diagnosis.Outcome))
	if r.Answer.Advice != "" {
		says += ": " + r.Answer.Advice
	} else if r.Answer.Finding != "" {
		says += " (" + string(r.Base.Diagnosis.Outcome) + ")"
	}
	return strings.Join([]string{
		sc.Case, sc.Name, r.truth(), says, yes(r.Right()), r.own(), r.Remedy.short(), r.Wrong.short(),
		r.Virtual.Round(time.Second).String(), wall(r.Wall),
	}, "\t")
}

func (r *Row) truth() string {
	t := &r.Scenario.Truth
	return cmp.Or(strings.Join(t.Findings, "/"), strings.Join(t.Outcomes, "/"))
}

func yes(ok bool) string {
	if ok {
		return "yes"
	}
	return "NO"
}

func wall(d time.Duration) string { return fmt.Sprintf("%.1fs", d.Seconds()) }

// own formats the trial of rooftop's own recommendation.
func (r *Row) own() string {
	t := &r.Own
	switch {
	case r.Untried != "":
		return "not tried: " + r.Untried
	case !t.Made:
		return "-"
	case t.Outcome.refused():
		return "REFUSED"
	case t.Helps():
		return "helps: " + t.effect()
	}
	return "NO HELP: " + t.effect()
}

// short formats the trial of a scenario's change.
func (t *Trial) short() string {
	switch {
	case !t.Made:
		return "-"
	case t.Outcome.refused():
		return "REFUSED"
	case t.ExpectationsMet():
		return "as expected: " + t.effect()
	}
	return "NOT AS EXPECTED: " + t.effect()
}

func (t *Trial) effect() string {
	return "tok/s " + signedPercent(t.Throughput) + ", TTFT p99 " + signedPercent(t.TTFT)
}

func signedPercent(ratio float64) string {
	switch {
	case !stat.IsFinite(ratio):
		return "-"
	case math.Abs(ratio) >= 9.995:
		return fmt.Sprintf("x%.3g", ratio+1)
	}
	return fmt.Sprintf("%+.0f%%", 100*ratio+0)
}

// remarks writes the lines about a row that is not as expected.
func (r *Row) remarks(b *strings.Builder) {
	if r.Err != nil {
		fmt.Fprintf(b, "%s\n", oneLine(r.Err.Error()))
		return
	}
	if !r.Missed() && !r.Untrue() && r.Scenario.Gap == "" {
		return
	}
	fmt.Fprintf(b, "%s\n", r.Scenario.Name)
	for _, f := range r.Answer.Faults {
		fmt.Fprintf(b, "  answer: %s\n", f)
	}
	if r.Own.Made && !r.Own.Helps() {
		fmt.Fprintf(b, "  its change %s does not help: %s\n", r.Own.Change, cmp.Or(refusal(&r.Own), r.Own.effect()))
	}
	for name, t := range map[string]*Trial{"remedy": &r.Remedy, "wrong remedy": &r.Wrong} {
		for _, c := range t.Checks {
			if !c.Holds {
				fmt.Fprintf(b, "  %s %s: %s does not hold: %s\n", name, t.Change, c.Expect, cmp.Or(refusal(t), fmt.Sprintf("%.4g before, %.4g after", c.Before, c.After)))
			}
		}
	}
	switch {
	case r.Scenario.Gap != "" && r.Missed():
		fmt.Fprintf(b, "  known gap: %s\n", oneLine(r.Scenario.Gap))
	case r.Scenario.Gap != "":
		fmt.Fprintf(b, "  the gap that its file notes is closed: %s\n", oneLine(r.Scenario.Gap))
	}
}

func refusal(t *Trial) string {
	if t.Outcome != nil && t.Outcome.refused() {
		return "the server does not start: " + oneLine(t.Outcome.Refused.Error())
	}
	return ""
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// summary returns a summary of rows.
func summary(rows []Row) string {
	var right, helped, tried, remedies, remediesMet, wrongs, wrongsMet, gaps, failed, surprising int
	var virtual time.Duration
	for i := range rows {
		r := &rows[i]
		virtual += r.Virtual
		surprising += count(r.Surprising())
		failed += count(r.Err != nil)
		right += count(r.Right())
		tried += count(r.Own.Made)
		helped += count(r.Own.Made && r.Own.Helps())
		remedies += count(r.Remedy.Made)
		remediesMet += count(r.Remedy.Made && r.Remedy.ExpectationsMet())
		wrongs += count(r.Wrong.Made)
		wrongsMet += count(r.Wrong.Made && r.Wrong.ExpectationsMet())
		gaps += count(r.Missed() && r.Scenario.Gap != "")
	}
	s := fmt.Sprintf("%d scenarios, %s of server time: diagnosis right in %d, rooftop's own change helped in %d of %d, ", len(rows), virtual.Round(time.Minute), right, helped, tried)
	s += fmt.Sprintf("remedy as expected in %d of %d, wrong remedy did not help in %d of %d; %d known gaps", remediesMet, remedies, wrongsMet, wrongs, gaps)
	if failed > 0 {
		s += fmt.Sprintf("; %d did not run", failed)
	}
	if surprising > 0 {
		s += fmt.Sprintf("; %d not as their files say", surprising)
	}
	return s + "\n"
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}
