package bench

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// WriteTable writes rows as a table, followed by a summary.
func WriteTable(w io.Writer, rows []Row) error {
	b := newReport()
	lines := []string{"CASE\tSCENARIO\tTRUTH\tROOFTOP SAYS\tRIGHT\tITS CHANGE\tREMEDY\tWRONG REMEDY\tVIRTUAL\tWALL"}
	for i := range rows {
		lines = append(lines, rows[i].line())
	}
	writeTable(b, lines)
	for i := range rows {
		rows[i].remarks(b)
	}
	b.WriteString(Summary(rows))
	_, err := io.WriteString(w, b.String())
	return err
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
		sc.Case, sc.Name, r.truth(), says, r.right(), r.own(), r.Remedy.short(), r.Wrong.short(),
		r.Virtual.Round(time.Second).String(), wall(r.Wall),
	}, "\t")
}

func (r *Row) truth() string {
	t := &r.Scenario.Truth
	return cmp.Or(strings.Join(t.Findings, "/"), strings.Join(t.Outcomes, "/"))
}

func (r *Row) right() string {
	if !r.Judged() {
		return "-"
	}
	return yes(r.Right())
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
	for _, v := range r.trials()[1:] {
		for _, c := range v.t.Checks {
			if !c.Holds {
				fmt.Fprintf(b, "  %s %s: %s does not hold: %s\n", v.name, v.t.Change, c.Expect, cmp.Or(refusal(v.t), c.figures()))
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

type namedTrial struct {
	name string
	t    *Trial
}

// trials returns the trials of a row: rooftop's own change, which has no checks, then those of the
// scenario.
func (r *Row) trials() []namedTrial {
	return []namedTrial{{"its change", &r.Own}, {"remedy", &r.Remedy}, {"wrong remedy", &r.Wrong}}
}

func refusal(t *Trial) string {
	if t.Outcome != nil && t.Outcome.refused() {
		return "the server does not start: " + oneLine(t.Outcome.Refused.Error())
	}
	return ""
}

func (c *Check) figures() string { return fmt.Sprintf("%.4g before, %.4g after", c.Before, c.After) }

// detail writes all details of a row.
func (r *Row) detail(b *strings.Builder) {
	sc := &r.Scenario
	fmt.Fprintf(b, "%s %s\n  %s\n  on %s: %s\n", sc.Case, sc.Name, oneLine(sc.Story), sc.GPU, sc.Server)
	if sc.Note != "" {
		fmt.Fprintf(b, "  %s\n", oneLine(sc.Note))
	}
	if r.Err != nil {
		fmt.Fprintf(b, "  did not run: %s\n\n", oneLine(r.Err.Error()))
		return
	}
	fmt.Fprintf(b, "  clients: %s\n", r.Base.list(clientMetrics))
	d := &r.Base.Diagnosis
	fmt.Fprintf(b, "  page: %s\n", r.Base.list(pageMetrics))
	fmt.Fprintf(b, "  answer: %s", d.Outcome)
	if d.Doubt != "" {
		fmt.Fprintf(b, " (%s)", oneLine(d.Doubt))
	}
	b.WriteByte('\n')
	for i := range d.Findings {
		f := &d.Findings[i]
		if f.Score == 0 {
			continue
		}
		fmt.Fprintf(b, "    %s %d/%d, score %.3g: %s", f.ID, f.Fired, f.Evaluable, f.Score, f.Reason)
		if f.Fix != nil {
			fmt.Fprintf(b, "; %s", oneLine(f.Fix.Command))
			if f.Fix.Withheld != "" {
				fmt.Fprintf(b, "; withheld: %s", oneLine(f.Fix.Withheld))
			}
		}
		b.WriteByte('\n')
	}
	for _, v := range r.trials() {
		if !v.t.Made {
			continue
		}
		fmt.Fprintf(b, "  %s %s: %s\n", v.name, v.t.Change, cmp.Or(refusal(v.t), v.t.effect()))
		for _, c := range v.t.Checks {
			fmt.Fprintf(b, "    %s: %s (%s)\n", c.Expect, yes(c.Holds), c.figures())
		}
	}
	r.remarks(b)
	b.WriteByte('\n')
}

// Metrics of the clients and of the metrics page that a row shows.
const (
	clientMetrics = "tokens_per_s requests_per_s ttft_p50_s ttft_p99_s itl_p50_s itl_p99_s itl_max_s failed_per_s left_per_s"
	pageMetrics   = "page.running_mean page.waiting_mean page.kv_usage_mean page.kv_usage_peak page.preemptions_per_s " +
		"page.prefix_hit_rate page.step_time_s page.gpu_util page.front_end_mean_s"
)

// list formats the metrics of these names in one line.
func (o *Outcome) list(names string) string {
	var parts []string
	for n := range strings.FieldsSeq(names) {
		if v, ok := o.Metrics[n]; ok {
			parts = append(parts, fmt.Sprintf("%s %.4g", strings.TrimPrefix(n, "page."), v))
		}
	}
	return strings.Join(parts, ", ")
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Summary returns a summary of rows, a few lines.
func Summary(rows []Row) string {
	var judged, right, helped, tried, remedies, remediesMet, wrongs, wrongsMet, gaps, failed, surprising int
	var virtual time.Duration
	for i := range rows {
		r := &rows[i]
		virtual += r.Virtual
		if r.Surprising() {
			surprising++
		}
		if r.Err != nil {
			failed++
			continue
		}
		judged += count(r.Judged())
		right += count(r.Right())
		tried += count(r.Own.Made)
		helped += count(r.Own.Made && r.Own.Helps())
		remedies += count(r.Remedy.Made)
		remediesMet += count(r.Remedy.Made && r.Remedy.ExpectationsMet())
		wrongs += count(r.Wrong.Made)
		wrongsMet += count(r.Wrong.Made && r.Wrong.ExpectationsMet())
		gaps += count(r.Missed() && r.Scenario.Gap != "")
	}
	s := fmt.Sprintf("%d scenarios, %s of server time: ", len(rows), virtual.Round(time.Minute))
	if judged > 0 {
		s += fmt.Sprintf("diagnosis right in %d, ", right)
	}
	s += fmt.Sprintf("rooftop's own change helped in %d of %d", helped, tried)
	if judged > 0 {
		s += fmt.Sprintf(", remedy as expected in %d of %d, wrong remedy did not help in %d of %d; %d known gaps", remediesMet, remedies, wrongsMet, wrongs, gaps)
	}
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
