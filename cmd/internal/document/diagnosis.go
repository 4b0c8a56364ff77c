package document

import (
	"cmp"
	"io"

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

// WriteDiagnosis writes d as one rooftop.diagnosis/v1 document.
func WriteDiagnosis(w io.Writer, d *engine.Diagnosis) error { return Write(w, diagnosis(d)) }

// diagnosis returns d as a rooftop.diagnosis/v1 object, to be embedded in another document; nil is null.
func diagnosis(d *engine.Diagnosis) any {
	if d == nil {
		return nil
	}
	o := Object{
		{"schema", DiagnosisSchema},
		{"rooftop", program{d.Version}},
		{"started", d.Started},
		{"ended", d.Started.Add(d.Duration)},
		{"duration_s", d.Duration},
		{"target", d.Target},
		{"facts", facts(&d.Facts)},
		{"conflicts", d.Facts.Conflicts},
		{"windows", d.Windows},
		{"measured", measured(d)},
		{"ceiling", newCeiling(&d.Ceiling)},
		{"headroom", d.Headroom},
		{"findings", d.Findings},
		{"recommendation", d.Recommendation},
		{"runners", d.Runners},
		{"outcome", d.Outcome},
		{"doubt", d.Doubt},
	}
	if d.Overload != "" { // requests queue and no change helps
		o = append(o, Member{"overload", d.Overload})
	}
	return append(o,
		Member{"condition", conditionOf(d)},
		Member{"gpus", gpus(d.GPUs)},
		Member{"missing", d.Missing},
		Member{"notes", d.Notes},
		Member{"last_raw_window", rawWindow(tuning.LastRaw(d))},
	)
}

// withSource returns a fact with a source of the schema. The schema does not include device and measurement;
// they are described in the note.
func withSource(f tuning.Fact) tuning.Fact {
	switch f.Source {
	case engine.FromGPU:
		f.Source, f.Note = engine.FromServer, cmp.Or(f.Note, "read from the device")
	case engine.FromMeasured:
		f.Source, f.Note = engine.FromDerived, cmp.Or(f.Note, "measured")
	}
	return f
}

func facts(f *engine.Facts) Object {
	o := Object{}
	for _, r := range tuning.Facts(f) {
		if !r.OfTarget {
			o = append(o, Member{r.Name, withSource(r)})
		}
	}
	return o
}

func measured(d *engine.Diagnosis) Object {
	o := Object{}
	for _, q := range tuning.Quantities(d) {
		o = append(o, Member{q.Name, q.Quantity})
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

// rawWindow returns the last window of a run without an evaluable one, nil if there is one.
func rawWindow(w *engine.Window) any {
	if w == nil {
		return nil
	}
	return Object{
		{"evaluable", w.Evaluable},
		{"why", w.Why},
		{"start_s", w.Start},
		{"duration_s", w.Duration},
		{"polls", w.Polls},
		{"failed", w.Failed},
		{"missed", w.Missed},
		{"restarted", w.Restarted},
		{"running", w.Running},
		{"waiting", w.Waiting},
		{"kv_usage", w.KV},
		{"generation_tokens_per_s", w.Rate[engine.CounterGenerationTokens]},
		{"prompt_tokens_per_s", w.Rate[engine.CounterPromptTokens]},
	}
}

// conditionOf returns what is wrong with the server of a diagnosis, nil if nothing is.
func conditionOf(d *engine.Diagnosis) any {
	action := ""
	if f := d.Finding(engine.Stuck); f != nil && f.Fix != nil {
		action = f.Fix.Command
	}
	return condition(d.Condition, action)
}

// condition returns what is wrong with a server and the next step, "" if unknown. It is nil if nothing is wrong.
func condition(c engine.Condition, action string) any {
	if c.State == "" {
		return nil
	}
	// A doubt is why the server may be idle instead; with one it is not unhealthy.
	return Object{{"state", c.State}, {"lasted_s", orNull(max(c.Lasted, 0))}, {"reason", c.Reason}, {"doubt", c.Doubt}, {"action", action}}
}
