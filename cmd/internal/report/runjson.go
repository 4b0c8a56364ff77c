package report

import (
	"bytes"
	"encoding/json"
	"io"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// RunSchema names the document that WriteRunJSON writes.
const RunSchema = "rooftop.run/v1"

// WriteRunJSON writes the whole run as one rooftop.run/v1 object. What is absent is
// null beside its reason.
func WriteRunJSON(w io.Writer, s *engine.Snapshot) error {
	a := account{s}
	_, headline := a.headline()
	doc := object{
		{"schema", RunSchema},
		{"rooftop", object{{"version", s.Version}}},
		{"started", s.Started.UTC().Format(time.RFC3339Nano)},
		{"duration_s", s.Now.Seconds()},
		{"target", clean(s.Target)},
		{"attached", s.Attached},
		{"attach_reason", known(s.AttachWhy)},
		{"phase", phaseNames[min(s.Phase, engine.PhaseDone)]},
		{"summary", headline},
		{"reason", a.reason()},
		{"finished", finishedObject(s.Finished)},
		{"gain", number(a.gain())},
		{"auto", s.Auto},
		{"held", s.Held},
		{"pending", pendingObject(s.Pending)},
		{"limits", limitsObject(&s.Limits)},
		{"score", scoreObject(s.Score)},
		{"trial", trialObject(s.Trial)},
		{"best_command", known(a.best())},
		{"launch", known(s.Launch)},
		{"left", changesArray(a.left())},
		{"left_reason", known(a.undone())},
		{"recommendation", clean(s.Advice)},
		{"recommendation_firm", s.Firm},
		{"recommendation_reason", known(s.Quiet)},
		{"iterations", iterationsArray(s.Iterations)},
		{"noise", numbers(s.Noise)},
		{"baseline", diagnosisOf(s.Baseline)},
		{"baseline_reason", absence(s.Baseline == nil, "no measurement was completed")},
		{"live", diagnosisOf(s.Live)},
		{"live_reason", absence(s.Live == nil, "nothing to judge yet")},
		{"facts", factsObject(&s.Facts)},
		{"missing", clean(s.Missing)},
		{"notes", clean(s.Notes)},
		{"sources", sourcesArray(s.Sources)},
		{"processes", processesArray(s.Processes)},
		{"marks", marksArray(s.Marks)},
		{"journal", journalArray(s.Journal)},
		{"journal_dropped", s.Dropped},
		{"points", pointsObject(s.Points)},
	}
	return writeMembers(w, doc)
}

// writeMembers writes an object a member at a time: all are indented but points and
// capture, which would take a line for each of thousands of numbers.
func writeMembers(w io.Writer, doc object) error {
	var b bytes.Buffer
	for i, m := range doc {
		b.WriteString(map[bool]string{true: "{\n  ", false: ",\n  "}[i == 0])
		var value bytes.Buffer
		if err := encode(&value, m.value, ""); err != nil {
			return err
		}
		b.WriteString(`"` + m.key + `": `)
		if m.key == "points" || m.key == "capture" {
			b.Write(bytes.TrimSpace(value.Bytes()))
			continue
		}
		if err := json.Indent(&b, bytes.TrimSpace(value.Bytes()), "  ", "  "); err != nil {
			return err
		}
	}
	b.WriteString("\n}\n")
	_, err := w.Write(b.Bytes())
	return err
}

// known is a text, null where it is not there.
func known(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// absence is the reason of something that is absent, null where it is there.
func absence(absent bool, why string) any {
	if !absent {
		return nil
	}
	return why
}

// since is a time since the start, null where it has not come.
func since(t time.Duration) any {
	if t <= 0 {
		return nil
	}
	return t.Seconds()
}

func numbers(list []float64) []any {
	out := []any{}
	for _, v := range list {
		out = append(out, number(stat.Some(v)))
	}
	return out
}

func finishedObject(f *engine.Finished) any {
	if f == nil {
		return nil
	}
	return finishedPayload(f)
}

func changesArray(list []engine.Change) []any {
	out := []any{}
	for _, c := range list {
		out = append(out, object{{"flag", c.Flag}, {"from", c.From}, {"to", c.To}})
	}
	return out
}

func iterationsArray(list []engine.Iteration) []any {
	out := []any{}
	for i := range list {
		it := &list[i]
		end := string(it.End)
		if it.End == engine.IterationOpen {
			end = "open"
		}
		o := object{
			{"iteration", it.N},
			{"at_s", it.At.Seconds()},
			{"up_s", since(it.Up)},
			{"settled_s", since(it.Settled)},
			{"end", end},
			{"noticed", known(string(it.Noticed))},
			{"changes", changesArray(it.Changes)},
			{"text", it.Text},
			{"command", known(it.Command)},
			{"predicted", clean(it.Predicted)},
			{"before", summaryOf(it.Before)},
			{"after", summaryOf(it.After)},
			{"load", clean(it.Load)},
			{"downtime_s", since(it.Downtime)},
			{"failure", known(it.Failure)},
			{"canary", canaryObject(it.Canary)},
			{"verdict", verdictOf(it)},
		}
		out = append(out, o)
	}
	return out
}

// verdictOf is where a change led, null before that is known.
func verdictOf(it *engine.Iteration) any {
	if it.Delta == nil {
		return nil
	}
	return verdictPayload(it.Delta, it.Predicted)
}

// summaryOf is what was measured, without findings and facts.
func summaryOf(d *engine.Diagnosis) any {
	if d == nil {
		return nil
	}
	return object{{"duration_s", d.Duration.Seconds()}, {"windows", clean(d.Windows)}, {"outcome", d.Outcome}, {"measured", measuredObject(d)}}
}

func sourcesArray(list []engine.SourceState) []any {
	out := []any{}
	for _, s := range list {
		out = append(out, object{
			{"name", s.Name},
			{"state", freshness[min(s.State, engine.SourceFailing)]},
			{"reason", known(s.Why)},
			{"last_s", since(s.Last)},
			{"took_s", since(s.Took)},
			{"interval_s", since(s.Interval)},
			{"failures", s.Failures},
			{"missed", s.Missed},
		})
	}
	return out
}

func processesArray(list []engine.Process) []any {
	out := []any{}
	for i := range list {
		p := &list[i]
		out = append(out, object{
			{"pid", p.PID},
			{"ppid", p.PPID},
			{"role", p.Role},
			{"name", p.Name},
			{"state", p.State},
			{"age_s", p.Age.Seconds()},
			{"cpu_cores", number(p.CPU)},
			{"run_wait", number(p.RunWait)},
			{"rss_bytes", p.RSSBytes},
			{"threads", p.Threads},
		})
	}
	return out
}

var markNames = [...]string{
	engine.MarkDown: "down", engine.MarkUp: "up", engine.MarkChange: "change", engine.MarkMeasure: "measure", engine.MarkVerdict: "verdict",
}

func marksArray(list []engine.Mark) []any {
	out := []any{}
	for _, m := range list {
		out = append(out, object{{"t_s", m.T.Seconds()}, {"kind", markNames[min(m.Kind, engine.MarkVerdict)]}, {"text", m.Text}})
	}
	return out
}

func journalArray(list []engine.Entry) []any {
	out := []any{}
	for _, e := range list {
		level := levels[min(e.Level, engine.LevelBad)]
		if level == "" {
			level = "info"
		}
		out = append(out, object{{"seq", e.Seq}, {"t_s", e.T.Seconds()}, {"level", level}, {"kind", known(string(e.Kind))}, {"text", e.Text}})
	}
	return out
}

// series are the columns of points: what charts draw, by its name and unit.
var series = []struct {
	name string
	of   func(*engine.Point) stat.Opt
}{
	{"generation_tokens_per_s", func(p *engine.Point) stat.Opt { return p.Tokens }},
	{"prompt_tokens_per_s", func(p *engine.Point) stat.Opt { return p.Prompt }},
	{"requests_per_s", func(p *engine.Point) stat.Opt { return p.Requests }},
	{"running", func(p *engine.Point) stat.Opt { return p.Running }},
	{"waiting", func(p *engine.Point) stat.Opt { return p.Waiting }},
	{"kv_usage_peak", func(p *engine.Point) stat.Opt { return p.KV }},
	{"ttft_p99_s", func(p *engine.Point) stat.Opt { return p.TTFT }},
	{"itl_p99_s", func(p *engine.Point) stat.Opt { return p.ITL }},
	{"gpu_util", func(p *engine.Point) stat.Opt { return p.GPU }},
	{"power_w", func(p *engine.Point) stat.Opt { return p.Power }},
	{"preemptions_per_s", func(p *engine.Point) stat.Opt { return p.Preempted }},
}

// pointsObject is what charts draw, a column a quantity, a row a window.
func pointsObject(list []engine.Point) object {
	times, config := []any{}, []any{}
	for i := range list {
		times, config = append(times, list[i].T.Seconds()), append(config, list[i].Iteration)
	}
	o := object{{"t_s", times}, {"iteration", config}}
	for _, s := range series {
		column := []any{}
		for i := range list {
			column = append(column, number(s.of(&list[i])))
		}
		o = append(o, member{s.name, column})
	}
	return o
}
