package document

import (
	"cmp"
	"io"
	"time"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// DiagnosisSchema names the document that WriteDiagnosis writes.
const DiagnosisSchema = "rooftop.diagnosis/v1"

// program is the version of rooftop that wrote a document.
type program struct {
	Version string `json:"version"`
}

// diagnosis is a rooftop.diagnosis/v1 object.
type diagnosis struct {
	Schema         string                 `json:"schema"`
	Rooftop        program                `json:"rooftop"`
	Started        time.Time              `json:"started"`
	Ended          time.Time              `json:"ended"`
	Duration       time.Duration          `json:"duration_s"`
	Target         engine.Target          `json:"target"`
	Facts          Object                 `json:"facts"`
	Conflicts      []string               `json:"conflicts"`
	Windows        engine.WindowCounts    `json:"windows"`
	Measured       Object                 `json:"measured"`
	Ceiling        ceiling                `json:"ceiling"`
	Headroom       engine.Headroom        `json:"headroom"`
	Findings       []engine.Finding       `json:"findings"`
	Recommendation *engine.Recommendation `json:"recommendation"`
	Runners        []engine.FindingID     `json:"runners"`
	Outcome        engine.Outcome         `json:"outcome"`
	Doubt          string                 `json:"doubt"`
	Overload       string                 `json:"overload,omitempty"` // only where requests queue and no change helps
	Condition      *condition             `json:"condition"`          // null if nothing is wrong
	GPUs           []Object               `json:"gpus"`
	Missing        []engine.Missing       `json:"missing"`
	Notes          []string               `json:"notes"`
	LastRaw        *rawWindow             `json:"last_raw_window"`
}

// WriteDiagnosis writes d as one rooftop.diagnosis/v1 document.
func WriteDiagnosis(w io.Writer, d *engine.Diagnosis) error { return Write(w, Diagnosis(d)) }

// Diagnosis returns d as a rooftop.diagnosis/v1 object, to be embedded in another document; nil is null.
func Diagnosis(d *engine.Diagnosis) any {
	if d == nil {
		return nil
	}
	return &diagnosis{
		Schema: DiagnosisSchema, Rooftop: program{d.Version}, Started: d.Started, Ended: d.Started.Add(d.Duration), Duration: d.Duration,
		Target: d.Target, Facts: facts(&d.Facts), Conflicts: d.Facts.Conflicts, Windows: d.Windows, Measured: measured(d), Ceiling: newCeiling(&d.Ceiling), Headroom: d.Headroom,
		Findings: d.Findings, Recommendation: d.Recommendation, Runners: d.Runners, Outcome: d.Outcome, Doubt: d.Doubt, Overload: d.Overload, Condition: conditionOf(d), GPUs: gpus(d.GPUs),
		Missing: d.Missing, Notes: d.Notes, LastRaw: newRawWindow(tuning.LastRaw(d)),
	}
}

// factValue is a fact in a document.
type factValue struct {
	Value  any           `json:"value"`
	Unit   string        `json:"unit"`
	Source engine.Source `json:"source" absent:""`
	Note   string        `json:"note"`
}

// newFact returns a fact with a source of the schema. The schema does not include device and measurement;
// they are described in the note.
func newFact(f tuning.Fact) factValue {
	v := factValue{f.Value, f.Unit, f.Source, f.Note}
	switch f.Source {
	case engine.FromGPU:
		v.Source, v.Note = engine.FromServer, cmp.Or(f.Note, "read from the device")
	case engine.FromMeasured:
		v.Source, v.Note = engine.FromDerived, cmp.Or(f.Note, "measured")
	}
	return v
}

func facts(f *engine.Facts) Object {
	o := Object{}
	for _, r := range tuning.Facts(f) {
		if !r.OfTarget {
			o = append(o, Member{r.Name, newFact(r)})
		}
	}
	return o
}

// quantity is a quantity in a document, with its keys in the order of the schema.
type quantity struct {
	Value   stat.Opt      `json:"value"`
	Unit    string        `json:"unit"`
	Source  engine.Origin `json:"source"`
	AtLeast bool          `json:"at_least,omitempty"`
	Reason  string        `json:"reason,omitempty"`
	Note    string        `json:"note,omitempty"`
	Bounds  stat.Bucket   `json:"bounds,omitzero"` // ends of the bucket of a quantile
}

func measured(d *engine.Diagnosis) Object {
	o := Object{}
	for _, q := range tuning.Quantities(d) {
		o = append(o, Member{q.Name, quantity{q.Value, q.Unit, q.Source, q.AtLeast, q.Reason, q.Note, q.Bucket}})
	}
	return o
}

type ceiling struct {
	Classic        *roofline.Classic   `json:"classic"`
	Physical       *roofline.Operating `json:"physical"`
	ClassicReason  string              `json:"classic_reason,omitempty"`
	PhysicalReason string              `json:"physical_reason,omitempty"`
	Impossible     string              `json:"impossible"`
}

// newCeiling returns c without efficiencies above 1. They mean that model, GPU, dtype or TP was misread, as
// stated by impossible.
func newCeiling(c *engine.Ceiling) ceiling {
	out := ceiling{Classic: c.Classic, Physical: c.Physical, Impossible: c.Impossible}
	if c.Classic == nil {
		out.ClassicReason = cmp.Or(c.ClassicReason, "not computed")
	} else if c.Classic.Efficiency.V > 1 {
		classic := *c.Classic
		classic.Efficiency = stat.None
		out.Classic = &classic
	}
	if c.Physical == nil {
		out.PhysicalReason = cmp.Or(c.PhysicalReason, "not computed")
	} else if c.Physical.Efficiency.V > 1 {
		physical := *c.Physical
		physical.Efficiency = stat.None
		out.Physical = &physical
	}
	return out
}

type gpuReading struct {
	Value  stat.Opt `json:"value"`
	Mean   stat.Opt `json:"mean"`
	Last   stat.Opt `json:"last"`
	Peak   stat.Opt `json:"peak"`
	Unit   string   `json:"unit"`
	Reason string   `json:"reason,omitempty"`
}

// unread is the reason for a field of a GPU without a value.
const unread = "not read on this device"

func gpus(list []engine.GPUSummary) []Object {
	var out []Object
	for i := range list {
		g := &list[i]
		o := Object{{"index", g.Index}, {"name", g.Name}, {"uuid", g.UUID}}
		for _, f := range engine.GPUFields() {
			v := gpuReading{Mean: g.Mean[f], Last: g.Last[f], Peak: g.Peak[f], Unit: f.Unit()}
			v.Value, _ = tuning.Reading(g, f)
			if !v.Value.OK {
				v.Reason = unread
			}
			o = append(o, Member{f.Key(), v})
		}
		reasons := Object{{"value", nil}, {"reason", unread}}
		if g.ThrottleOK {
			reasons = Object{{"value", catalog.ThrottleKeys(g.Throttle)}, {"mask", g.Throttle}}
		}
		out = append(out, append(o, Member{"throttle_reasons", reasons}))
	}
	return out
}

// rawWindow is the last window of a run without an evaluable one.
type rawWindow struct {
	Evaluable bool          `json:"evaluable"`
	Why       string        `json:"why"`
	Start     time.Duration `json:"start_s"`
	Duration  time.Duration `json:"duration_s"`
	Polls     int           `json:"polls"`
	Failed    int           `json:"failed"`
	Missed    int           `json:"missed"`
	Restarted bool          `json:"restarted"`
	Running   stat.Opt      `json:"running"`
	Waiting   stat.Opt      `json:"waiting"`
	KV        stat.Opt      `json:"kv_usage"`
	Output    stat.Opt      `json:"generation_tokens_per_s"`
	Prompt    stat.Opt      `json:"prompt_tokens_per_s"`
}

func newRawWindow(w *engine.Window) *rawWindow {
	if w == nil {
		return nil
	}
	return &rawWindow{
		Evaluable: w.Evaluable, Why: w.Why, Start: w.Start, Duration: w.Duration, Polls: w.Polls, Failed: w.Failed, Missed: w.Missed, Restarted: w.Restarted,
		Running: w.Running, Waiting: w.Waiting, KV: w.KV, Output: w.Rate[engine.CounterGenerationTokens], Prompt: w.Rate[engine.CounterPromptTokens],
	}
}

// condition describes what is wrong with a server.
type condition struct {
	State  engine.Illness `json:"state"`
	Lasted stat.Opt       `json:"lasted_s"` // at least
	Reason string         `json:"reason"`
	// Doubt states why the server may be idle instead; with a doubt it is not unhealthy.
	Doubt string `json:"doubt"`
	// Action is the next step, "" if unknown.
	Action string `json:"action"`
}

// conditionOf returns the condition of a diagnosis, nil if nothing is wrong.
func conditionOf(d *engine.Diagnosis) *condition {
	out := newCondition(d.Condition)
	if f := d.Finding(engine.Stuck); out != nil && f != nil && f.Fix != nil {
		out.Action = f.Fix.Command
	}
	return out
}

// newCondition returns a condition without the action, nil if nothing is wrong.
func newCondition(c engine.Condition) *condition {
	if c.State == "" {
		return nil
	}
	return &condition{State: c.State, Lasted: stat.Opt{V: c.Lasted.Seconds(), OK: c.Lasted > 0}, Reason: c.Reason, Doubt: c.Doubt}
}
