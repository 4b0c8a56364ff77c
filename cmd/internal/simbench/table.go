package simbench

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"strings"
	"text/tabwriter"
	"time"
)

// WriteTable writes rows as a table, with a summary under it. verbose adds what
// every change was expected to do and did.
func WriteTable(w io.Writer, rows []Row, verbose bool) error {
	var b strings.Builder
	b.WriteString("SIMULATED: every figure comes from rooftop's own simulator, not from hardware.\n\n")
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "CASE\tSCENARIO\tTRUTH\tROOFTOP SAYS\tRIGHT\tITS CHANGE\tREMEDY\tWRONG REMEDY\tVIRTUAL\tWALL")
	for i := range rows {
		fmt.Fprintln(t, rows[i].line())
	}
	_ = t.Flush() // a strings.Builder takes everything
	b.WriteByte('\n')
	for i := range rows {
		if verbose {
			rows[i].detail(&b)
		} else {
			rows[i].remarks(&b)
		}
	}
	b.WriteString(Summary(rows))
	_, err := io.WriteString(w, b.String())
	return err
}

func (r *Row) line() string {
	sc := &r.Scenario
	if r.Err != nil {
		return fmt.Sprintf("%s\t%s\t%s\tdid not run\t-\t-\t-\t-\t-\t%s", sc.Case, sc.Name, r.truth(), wall(r.Wall))
	}
	says := string(r.Base.Diagnosis.Outcome)
	if r.Answer.Finding != "" {
		says = r.Answer.Finding
	}
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
	out := strings.Join(t.Findings, "/")
	if out == "" {
		out = strings.Join(t.Outcomes, "/")
	}
	return out
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

// own is a trial of rooftop's own recommendation.
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

// short is a trial of a scenario's change.
func (t *Trial) short() string {
	switch {
	case !t.Made:
		return "-"
	case t.Outcome.refused():
		return "REFUSED"
	case t.Held():
		return "held: " + t.effect()
	}
	return "NOT HELD: " + t.effect()
}

func (t *Trial) effect() string {
	return "tok/s " + percent(t.Throughput) + ", TTFT p99 " + percent(t.TTFT)
}

func percent(ratio float64) string {
	switch {
	case math.IsNaN(ratio) || math.IsInf(ratio, 0):
		return "-"
	case math.Abs(ratio) >= 9.995:
		return fmt.Sprintf("x%.3g", ratio+1)
	}
	return fmt.Sprintf("%+.0f%%", 100*ratio+0)
}

// remarks are the lines of a row that is not as it should be.
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
	for _, v := range []struct {
		name string
		t    *Trial
	}{{"remedy", &r.Remedy}, {"wrong remedy", &r.Wrong}} {
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

func refusal(t *Trial) string {
	if t.Outcome != nil && t.Outcome.refused() {
		return "the server does not start: " + oneLine(t.Outcome.Refused.Error())
	}
	return ""
}

func (c *Check) figures() string { return fmt.Sprintf("%.4g before, %.4g after", c.Before, c.After) }

// detail is everything about a row.
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
	fmt.Fprintf(b, "  clients: %s\n", r.Base.clients())
	d := &r.Base.Diagnosis
	fmt.Fprintf(b, "  page: %s\n", r.Base.page())
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
	for _, v := range []struct {
		name string
		t    *Trial
	}{{"its change", &r.Own}, {"remedy", &r.Remedy}, {"wrong remedy", &r.Wrong}} {
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

// clients is what the clients saw, in a line.
func (o *Outcome) clients() string {
	return o.list("tokens_per_s", "requests_per_s", "ttft_p50_s", "ttft_p99_s", "itl_p50_s", "itl_p99_s", "itl_max_s", "failed_per_s", "left_per_s")
}

// page is what the page told, in a line.
func (o *Outcome) page() string {
	return o.list("page.running_mean", "page.waiting_mean", "page.kv_usage_mean", "page.kv_usage_peak", "page.preemptions_per_s", "page.prefix_hit_rate", "page.step_time_s", "page.gpu_util", "page.front_end_mean_s")
}

func (o *Outcome) list(names ...string) string {
	var parts []string
	for _, n := range names {
		if v, ok := o.Metrics[n]; ok {
			parts = append(parts, fmt.Sprintf("%s %.4g", strings.TrimPrefix(n, "page."), v))
		}
	}
	return strings.Join(parts, ", ")
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// Summary says in a few lines what rows came to.
func Summary(rows []Row) string {
	var judged, right, helped, tried, remedies, remediesHeld, wrongs, wrongsHeld, gaps, failed, surprising int
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
		remediesHeld += count(r.Remedy.Made && r.Remedy.Held())
		wrongs += count(r.Wrong.Made)
		wrongsHeld += count(r.Wrong.Made && r.Wrong.Held())
		gaps += count(r.Missed() && r.Scenario.Gap != "")
	}
	s := fmt.Sprintf("%d scenarios, %s of server time: ", len(rows), virtual.Round(time.Minute))
	if judged > 0 {
		s += fmt.Sprintf("diagnosis right in %d, ", right)
	}
	s += fmt.Sprintf("rooftop's own change helped in %d of %d", helped, tried)
	if judged > 0 {
		s += fmt.Sprintf(", remedy held in %d of %d, wrong remedy did not help in %d of %d; %d known gaps", remediesHeld, remedies, wrongsHeld, wrongs, gaps)
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
