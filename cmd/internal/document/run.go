package document

import (
	"io"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// RunSchema is the schema of the document that WriteRun writes.
const RunSchema = "rooftop.run/v1"

// run is a rooftop.run/v1 object.
type run struct {
	Schema               string                 `json:"schema"`
	Rooftop              program                `json:"rooftop"`
	Started              time.Time              `json:"started"`
	Duration             time.Duration          `json:"duration_s"`
	Target               engine.Target          `json:"target"`
	Attached             bool                   `json:"attached"`
	AttachReason         string                 `json:"attach_reason" absent:""`
	Phase                loop.Phase             `json:"phase"`
	Summary              string                 `json:"summary"`
	Reason               string                 `json:"reason"`
	Finished             *finished              `json:"finished"`
	Gain                 stat.Opt               `json:"gain"`
	Auto                 bool                   `json:"auto"`
	DryRun               bool                   `json:"dry_run"`
	Held                 bool                   `json:"held"`
	Pending              *loop.Pending          `json:"pending"`
	Limits               limits                 `json:"limits"`
	Score                loop.Score             `json:"score"`
	Trial                *trial                 `json:"trial"`
	Best                 string                 `json:"best_command" absent:""`
	Launch               string                 `json:"launch" absent:""`
	Left                 []engine.Change        `json:"left"`
	LeftReason           string                 `json:"left_reason" absent:""`
	Condition            *condition             `json:"condition"` // null if nothing is wrong now
	Recommendation       *engine.Recommendation `json:"recommendation"`
	RecommendationFirm   bool                   `json:"recommendation_firm"`
	Preliminary          string                 `json:"recommendation_preliminary" absent:""`
	RecommendationReason string                 `json:"recommendation_reason" absent:""`
	Iterations           []iteration            `json:"iterations"`
	Noise                []float64              `json:"noise"`
	Baseline             any                    `json:"baseline"`
	BaselineReason       string                 `json:"baseline_reason" absent:""`
	Live                 any                    `json:"live"`
	LiveReason           string                 `json:"live_reason" absent:""`
	Facts                Object                 `json:"facts"`
	Missing              []engine.Missing       `json:"missing"`
	Notes                []string               `json:"notes"`
	Sources              []loop.SourceState     `json:"sources"`
	Processes            []process              `json:"processes"`
	Marks                []loop.Mark            `json:"marks"`
	Journal              []loop.Entry           `json:"journal"`
	JournalDropped       int                    `json:"journal_dropped"`
	Points               Object                 `json:"points" layout:"line"`
}

// WriteRun writes a run as one rooftop.run/v1 document.
func WriteRun(w io.Writer, s *loop.Snapshot) error {
	r := tuning.Run{Snapshot: s}
	_, headline := r.Headline()
	doc := run{
		Schema: RunSchema, Rooftop: program{s.Version}, Started: s.Started, Duration: s.Now, Target: s.Target, Attached: s.Attached, AttachReason: s.AttachWhy,
		Phase: s.Phase, Summary: headline, Reason: r.Reason(), Finished: newFinished(s.Finished), Gain: r.Gain(), Auto: s.Auto, DryRun: s.DryRun, Held: s.Held,
		Limits: newLimits(&s.Limits), Score: s.Score, Trial: newTrial(s.Trial), Best: r.Best(), Launch: s.Launch, Left: r.SettingsLeft(), LeftReason: r.NotReverted(),
		Condition: newCondition(s.Condition), Recommendation: s.Advice, RecommendationFirm: s.Firm, Preliminary: s.Preliminary, RecommendationReason: s.Quiet, Iterations: iterations(s.Iterations), Noise: s.Noise,
		Baseline: Diagnosis(s.Baseline), Live: Diagnosis(s.Live), Facts: facts(&s.Facts), Missing: s.Missing, Notes: s.Notes, Sources: s.Sources,
		Marks: s.Marks, Journal: s.Journal, JournalDropped: s.Dropped, Points: points(s.Points),
	}
	if s.Pending.Text != "" {
		doc.Pending = &s.Pending
	}
	if s.Baseline == nil {
		doc.BaselineReason = "no measurement was completed"
	}
	if s.Live == nil {
		doc.LiveReason = "nothing to judge yet"
	}
	for _, p := range s.Processes {
		doc.Processes = append(doc.Processes, process(p))
	}
	return Write(w, &doc)
}

// process is a loop.Process in documents. loop.Process has no tags, because recordings use its field names.
type process struct {
	PID      int           `json:"pid"`
	PPID     int           `json:"ppid"`
	Role     string        `json:"role"`
	Name     string        `json:"name"`
	State    string        `json:"state"`
	Age      time.Duration `json:"age_s"`
	CPU      stat.Opt      `json:"cpu_cores"`
	RunWait  stat.Opt      `json:"run_wait"`
	RSSBytes int64         `json:"rss_bytes"`
	Threads  int           `json:"threads"`
}

// answerCheck is a loop.AnswerCheck in documents, for the same reason.
type answerCheck struct {
	Prompts int      `json:"prompts"`
	Same    int      `json:"same"`
	Drift   stat.Opt `json:"drift"`
	Why     string   `json:"reason" absent:""`
}

type finished struct {
	ExitCode     int                `json:"exit_code"`
	Reason       string             `json:"reason"`
	Command      string             `json:"command"`
	Gain         stat.Opt           `json:"gain"`
	GainInterval *interval          `json:"gain_interval"`
	Restarts     int                `json:"restarts"`
	Downtime     time.Duration      `json:"downtime_s"`
	Score        loop.Score         `json:"score"`
	Limits       limits             `json:"limits"`
	Remains      []engine.FindingID `json:"remains"`
}

func newFinished(f *loop.Finished) *finished {
	if f == nil {
		return nil
	}
	out := &finished{f.ExitCode, f.Reason, f.Command, f.Gain, knownInterval(f.GainWithin, f.GainKnown), f.Restarts, f.Downtime, f.Score, newLimits(&f.Limits), f.Remains}
	if out.GainInterval != nil {
		out.GainInterval.Level = level
	}
	return out
}

// limits are the limits of an automatic run; null means unlimited.
type limits struct {
	Restarts     int           `json:"restarts" absent:"0"`
	Downtime     time.Duration `json:"downtime_s" absent:"0"`
	Flags        any           `json:"flags"`
	RestartsUsed int           `json:"restarts_used"`
	DowntimeUsed time.Duration `json:"downtime_used_s"`
}

func newLimits(m *loop.Limits) limits {
	out := limits{Restarts: max(m.Restarts, 0), Downtime: max(m.Downtime, 0), RestartsUsed: m.UsedStarts, DowntimeUsed: m.UsedOutages}
	if m.Allow != nil {
		out.Flags = m.Allow
	}
	return out
}

// trial is the current measurement of a change.
type trial struct {
	Iteration int                 `json:"iteration"`
	Looks     []time.Duration     `json:"looks_s"`
	Measured  time.Duration       `json:"measured_s"`
	Results   []*statistical      `json:"results"`
	Predicted []engine.Prediction `json:"predicted"`
}

func newTrial(t *loop.Trial) *trial {
	if t == nil {
		return nil
	}
	out := &trial{Iteration: t.Iteration, Looks: t.Looks, Measured: t.Measured, Predicted: t.Predicted}
	for i := range t.Results {
		out.Results = append(out.Results, newStatistical(&t.Results[i]))
	}
	return out
}

type iteration struct {
	Iteration int                 `json:"iteration"`
	At        time.Duration       `json:"at_s"`
	Up        time.Duration       `json:"up_s" absent:"0"`
	Settled   time.Duration       `json:"settled_s" absent:"0"`
	End       loop.IterationEnd   `json:"end"`
	Noticed   loop.Noticed        `json:"noticed" absent:""`
	Changes   []engine.Change     `json:"changes"`
	Text      string              `json:"text"`
	Command   string              `json:"command" absent:""`
	Predicted []engine.Prediction `json:"predicted"`
	Before    *summary            `json:"before"`
	After     *summary            `json:"after"`
	Load      []string            `json:"load"`
	Downtime  time.Duration       `json:"downtime_s" absent:"0"`
	Failure   string              `json:"failure" absent:""`
	Answers   *answerCheck        `json:"answers"`
	Canary    string              `json:"canary" absent:""`
	Verdict   *judgement          `json:"verdict"`
}

func iterations(list []loop.Iteration) []iteration {
	var out []iteration
	for i := range list {
		it := &list[i]
		o := iteration{
			Iteration: it.N, At: it.At, Up: it.Up, Settled: it.Settled, End: it.End, Noticed: it.Noticed, Changes: it.Changes, Text: it.Text, Command: it.Command,
			Predicted: it.Predicted, Before: newSummary(it.Before), After: newSummary(it.After), Load: it.Load, Downtime: it.Downtime, Failure: it.Failure,
			Answers: (*answerCheck)(it.AnswerCheck), Canary: it.Beside,
		}
		if it.End == loop.IterationOpen {
			o.End = "open"
		}
		if it.Delta != nil {
			o.Verdict = newJudgement(it.Delta, it.Predicted)
		}
		out = append(out, o)
	}
	return out
}

// summary is the measurements without findings and facts.
type summary struct {
	Duration time.Duration       `json:"duration_s"`
	Windows  engine.WindowCounts `json:"windows"`
	Outcome  engine.Outcome      `json:"outcome"`
	Measured Object              `json:"measured"`
}

func newSummary(d *engine.Diagnosis) *summary {
	if d == nil {
		return nil
	}
	return &summary{d.Duration, d.Windows, d.Outcome, measured(d)}
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
	times, config := make([]float64, len(list)), make([]int, len(list))
	for i := range list {
		times[i], config[i] = list[i].T.Seconds(), list[i].Iteration
	}
	o := Object{{"t_s", times}, {"iteration", config}}
	for _, s := range series {
		column := make([]stat.Opt, len(list))
		for i := range list {
			column[i] = s.of(&list[i])
		}
		o = append(o, Member{s.name, column})
	}
	return o
}
