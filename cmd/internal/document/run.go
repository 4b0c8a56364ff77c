package document

import (
	"cmp"
	"io"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// RunSchema is the schema of the document that WriteRun writes.
const RunSchema = "rooftop.run/v1"

// WriteRun writes a run as one rooftop.run/v1 document.
func WriteRun(w io.Writer, s *loop.Snapshot) error {
	r := tuning.Run{Snapshot: s}
	_, headline := r.Headline()
	var pending, noBaseline, noLive any
	if s.Pending.Text != "" {
		pending = s.Pending
	}
	if s.Baseline == nil {
		noBaseline = "no measurement was completed"
	}
	if s.Live == nil {
		noLive = "nothing to judge yet"
	}
	return Write(w, Object{
		{"schema", RunSchema},
		{"rooftop", program{s.Version}},
		{"started", s.Started},
		{"duration_s", s.Now},
		{"target", s.Target},
		{"attached", s.Attached},
		{"attach_reason", orNull(s.AttachWhy)},
		{"phase", s.Phase},
		{"summary", headline},
		{"reason", r.Reason()},
		{"finished", finishedOrNull(s.Finished)},
		{"gain", r.Gain()},
		{"auto", s.Auto},
		{"dry_run", s.DryRun},
		{"held", s.Held},
		{"pending", pending},
		{"limits", limits(&s.Limits)},
		{"score", s.Score},
		{"trial", trial(s.Trial)},
		{"best_command", orNull(r.Best())},
		{"launch", orNull(s.Launch)},
		{"left", r.SettingsLeft()},
		{"left_reason", orNull(r.NotReverted())},
		{"condition", condition(s.Condition, "")},
		{"recommendation", s.Advice},
		{"recommendation_firm", s.Firm},
		{"recommendation_preliminary", orNull(s.Preliminary)},
		{"recommendation_reason", orNull(s.Quiet)},
		{"iterations", each(s.Iterations, iteration)},
		{"noise", s.Noise},
		{"baseline", diagnosis(s.Baseline)},
		{"baseline_reason", noBaseline},
		{"live", diagnosis(s.Live)},
		{"live_reason", noLive},
		{"facts", facts(&s.Facts)},
		{"missing", s.Missing},
		{"notes", s.Notes},
		{"sources", s.Sources},
		{"processes", each(s.Processes, process)},
		{"marks", s.Marks},
		{"journal", s.Journal},
		{"journal_dropped", s.Dropped},
	}, Member{"points", points(s.Points)})
}

// process returns a process. loop.Process has no tags, because recordings use its field names.
func process(p *loop.Process) Object {
	return Object{
		{"pid", p.PID},
		{"ppid", p.PPID},
		{"role", p.Role},
		{"name", p.Name},
		{"state", p.State},
		{"age_s", p.Age},
		{"cpu_cores", p.CPU},
		{"run_wait", p.RunWait},
		{"rss_bytes", p.RSSBytes},
		{"threads", p.Threads},
	}
}

// answers returns a check of answers, nil if none was made. loop.AnswerCheck has no tags for the same reason.
func answers(c *loop.AnswerCheck) any {
	if c == nil {
		return nil
	}
	return Object{{"prompts", c.Prompts}, {"same", c.Same}, {"drift", c.Drift}, {"reason", orNull(c.Why)}}
}

func finishedOrNull(f *loop.Finished) any {
	if f == nil {
		return nil
	}
	return finished(f)
}

func finished(f *loop.Finished) Object {
	gain := knownInterval(f.GainWithin, f.GainKnown)
	if gain != nil {
		gain.Level = level
	}
	return Object{
		{"exit_code", f.ExitCode},
		{"reason", f.Reason},
		{"command", f.Command},
		{"gain", f.Gain},
		{"gain_interval", gain},
		{"restarts", f.Restarts},
		{"downtime_s", f.Downtime},
		{"score", f.Score},
		{"limits", limits(&f.Limits)},
		{"remains", f.Remains},
	}
}

// limits returns the limits of an automatic run; null means unlimited.
func limits(m *loop.Limits) Object {
	var flags any
	if m.Allow != nil {
		flags = m.Allow
	}
	return Object{
		{"restarts", orNull(max(m.Restarts, 0))},
		{"downtime_s", orNull(max(m.Downtime, 0))},
		{"flags", flags},
		{"restarts_used", m.UsedStarts},
		{"downtime_used_s", m.UsedOutages},
	}
}

// trial returns the current measurement of a change, nil for none.
func trial(t *loop.Trial) any {
	if t == nil {
		return nil
	}
	return Object{
		{"iteration", t.Iteration},
		{"looks_s", t.Looks},
		{"measured_s", t.Measured},
		{"results", each(t.Results, statistical)},
		{"predicted", t.Predicted},
	}
}

func iteration(it *loop.Iteration) Object {
	var verdict any
	if it.Delta != nil {
		verdict = judgement(it.Delta, it.Predicted)
	}
	return Object{
		{"iteration", it.N},
		{"at_s", it.At},
		{"up_s", orNull(it.Up)},
		{"settled_s", orNull(it.Settled)},
		{"end", cmp.Or(it.End, "open")},
		{"noticed", orNull(it.Noticed)},
		{"changes", it.Changes},
		{"text", it.Text},
		{"command", orNull(it.Command)},
		{"predicted", it.Predicted},
		{"before", summary(it.Before)},
		{"after", summary(it.After)},
		{"load", it.Load},
		{"downtime_s", orNull(it.Downtime)},
		{"failure", orNull(it.Failure)},
		{"answers", answers(it.AnswerCheck)},
		{"canary", orNull(it.Beside)},
		{"verdict", verdict},
	}
}

// summary returns the measurements without findings and facts, nil for none.
func summary(d *engine.Diagnosis) any {
	if d == nil {
		return nil
	}
	return Object{{"duration_s", d.Duration}, {"windows", d.Windows}, {"outcome", d.Outcome}, {"measured", measured(d)}}
}

// series are the columns of points, with name and unit.
var series = []struct {
	name string
	of   func(*loop.Point) stat.Opt
}{
	{"generation_tokens_per_s", func(p *loop.Point) stat.Opt { return p.Tokens }},
	{"prompt_tokens_per_s", func(p *loop.Point) stat.Opt { return p.Prompt }},
	{"requests_per_s", func(p *loop.Point) stat.Opt { return p.Requests }},
	{"running", func(p *loop.Point) stat.Opt { return p.Running }},
	{"waiting", func(p *loop.Point) stat.Opt { return p.Waiting }},
	{"kv_usage_peak", func(p *loop.Point) stat.Opt { return p.KV }},
	{"ttft_p99_s", func(p *loop.Point) stat.Opt { return p.TTFT }},
	{"itl_p99_s", func(p *loop.Point) stat.Opt { return p.ITL }},
	{"gpu_util", func(p *loop.Point) stat.Opt { return p.GPU }},
	{"power_w", func(p *loop.Point) stat.Opt { return p.Power }},
	{"preemptions_per_s", func(p *loop.Point) stat.Opt { return p.Preempted }},
}

// points returns the data of charts: a column for each quantity, a row for each window.
func points(list []loop.Point) Object {
	o := Object{
		{"t_s", each(list, func(p *loop.Point) time.Duration { return p.T })},
		{"iteration", each(list, func(p *loop.Point) int { return p.Iteration })},
	}
	for _, s := range series {
		o = append(o, Member{s.name, each(list, s.of)})
	}
	return o
}
