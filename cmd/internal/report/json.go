package report

import (
	"cmp"
	"encoding/json"
	"io"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// DiagnosisSchema names the document that WriteJSON writes.
const DiagnosisSchema = "rooftop.diagnosis/v1"

// WriteJSON writes d as one rooftop.diagnosis/v1 object, indented, with a
// trailing newline. Every key of the interface is always there, in the same
// order; what is absent is null beside its reason.
func WriteJSON(w io.Writer, d *engine.Diagnosis) error {
	return encode(w, Document(d), "  ")
}

// Document returns d as a rooftop.diagnosis/v1 object, to be written by itself
// or inside an event.
func Document(d *engine.Diagnosis) json.Marshaler {
	return object{
		{"schema", DiagnosisSchema},
		{"rooftop", object{{"version", d.Version}}},
		{"started", d.Started.UTC().Format(time.RFC3339Nano)},
		{"ended", d.Started.Add(d.Duration).UTC().Format(time.RFC3339Nano)},
		{"duration_s", d.Duration.Seconds()},
		{"target", clean(d.Target)},
		{"facts", factsObject(&d.Facts)},
		{"conflicts", clean(d.Facts.Conflicts)},
		{"windows", clean(d.Windows)},
		{"measured", measuredObject(d)},
		{"ceiling", ceilingObject(&d.Ceiling)},
		{"findings", clean(d.Findings)},
		{"recommendation", clean(d.Recommendation)},
		{"runners", clean(d.Runners)},
		{"outcome", d.Outcome},
		{"doubt", d.Doubt},
		{"gpus", gpuObjects(d.GPUs)},
		{"missing", clean(d.Missing)},
		{"notes", clean(d.Notes)},
		{"last_raw_window", rawWindow(lastRaw(d))},
	}
}

func factsObject(f *engine.Facts) object {
	var o object
	for _, r := range factRows(f) {
		source, note := wireSource(r.source, r.note)
		o = append(o, member{r.name, object{{"value", r.value}, {"unit", r.unit}, {"source", source}, {"note", note}}})
	}
	return o
}

func measuredObject(d *engine.Diagnosis) object {
	var o object
	for _, q := range quantities(d) {
		v := object{{"value", number(q.Value)}, {"unit", q.Unit}, {"source", q.Source}}
		if q.AtLeast {
			v = append(v, member{"at_least", true})
		}
		if q.Reason != "" {
			v = append(v, member{"reason", q.Reason})
		}
		if q.Note != "" {
			v = append(v, member{"note", q.Note})
		}
		o = append(o, member{q.Name, v})
	}
	return o
}

// ceilingObject never says more than 100 %: an efficiency above one is a model,
// GPU, dtype or TP that was misread, and impossible says so.
func ceilingObject(c *engine.Ceiling) object {
	classic, physical := c.Classic, c.Physical
	if classic != nil && classic.Efficiency.V > 1 {
		copied := *classic
		copied.Efficiency = stat.None
		classic = &copied
	}
	if physical != nil && physical.Efficiency.V > 1 {
		copied := *physical
		copied.Efficiency = stat.None
		physical = &copied
	}
	o := object{{"classic", clean(classic)}, {"physical", clean(physical)}}
	if c.Classic == nil {
		o = append(o, member{"classic_reason", cmp.Or(c.ClassicReason, "not computed")})
	}
	if c.Physical == nil {
		o = append(o, member{"physical_reason", cmp.Or(c.PhysicalReason, "not computed")})
	}
	return append(o, member{"impossible", c.Impossible})
}

func gpuObjects(gpus []engine.GPUSummary) []any {
	list := make([]any, 0, len(gpus))
	for i := range gpus {
		g := &gpus[i]
		o := object{{"index", g.Index}, {"name", g.Name}, {"uuid", g.UUID}}
		for _, r := range readings() {
			v := object{
				{"value", number(r.value(g))}, {"mean", number(g.Mean[r.field])}, {"last", number(g.Last[r.field])},
				{"peak", number(g.Peak[r.field])}, {"unit", r.unit},
			}
			if number(r.value(g)) == nil {
				v = append(v, member{"reason", "not read on this device"})
			}
			o = append(o, member{r.name, v})
		}
		throttle := object{{"value", nil}, {"reason", "not read on this device"}}
		if g.ThrottleOK {
			throttle = object{{"value", throttleReasons(g.Throttle)}, {"mask", g.Throttle}}
		}
		list = append(list, append(o, member{"throttle_reasons", throttle}))
	}
	return list
}

// rawWindow is the last window of a run without an evaluable one, so marked.
func rawWindow(w *engine.Window) any {
	if w == nil {
		return nil
	}
	return object{
		{"evaluable", w.Evaluable},
		{"why", w.Why},
		{"start_s", w.Start.Seconds()},
		{"duration_s", w.Duration.Seconds()},
		{"polls", w.Polls},
		{"failed", w.Failed},
		{"missed", w.Missed},
		{"restarted", w.Restarted},
		{"running", number(w.Running)},
		{"waiting", number(w.Waiting)},
		{"kv_usage", number(w.KV)},
		{"generation_tokens_per_s", number(w.Rate[engine.CounterGenerationTokens])},
		{"prompt_tokens_per_s", number(w.Rate[engine.CounterPromptTokens])},
	}
}
