package report

import (
	"cmp"
	"io"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/capture"
)

// ProbeSchema names the document that WriteProbeJSON writes.
const ProbeSchema = "rooftop.probe/v1"

// Probe is a probe or an observation with its figures, as every writer takes it.
type Probe struct {
	Setup   capture.Setup
	Capture *capture.Capture
	Summary *capture.Summary
}

// WriteProbeJSON writes p as one rooftop.probe/v1 object: its figures indented, the
// capture in a line, since it holds every sample. ReadProbe gives p back. Moments
// are as precise as p's: Capture.Round first keeps a file small.
func WriteProbeJSON(w io.Writer, p *Probe) error {
	c := p.Capture
	return writeMembers(w, object{
		{"schema", ProbeSchema},
		{"kind", c.Kind},
		{"rooftop", object{{"version", p.Setup.Version}}},
		{"started", c.Wall.UTC().Format(time.RFC3339Nano)},
		{"duration_s", c.Span().Seconds()},
		{"ended", known(c.Ended)},
		{"period_s", c.Period.Seconds()},
		{"target", clean(p.Setup.Target)},
		{"request", clean(p.Setup.Request)},
		{"figures", figuresObject(p.Summary)},
		{"missing", clean(c.Missing)},
		{"notes", clean(c.Notes)},
		{"capture", toWire(c)},
	})
}

// figuresObject are the figures of a summary. Quantities are keyed by their names.
func figuresObject(s *capture.Summary) any {
	if s == nil {
		return nil
	}
	derived := object{}
	for _, q := range s.Derived {
		derived = append(derived, member{q.Name, clean(finiteQuantity(q.Quantity))})
	}
	return object{
		{"span_s", s.Span.Seconds()},
		{"quantiles", "nearest rank"},
		{"requests", clean(s.Requests)},
		{"tree", clean(s.Tree)},
		{"gpus", gpuUsageObjects(s.GPUs)},
		{"energy", clean(s.Energy)},
		{"derived", derived},
		{"sizing", clean(s.Sizing)},
		{"warnings", clean(s.Warnings)},
	}
}

func gpuUsageObjects(gpus []capture.GPUUsage) []any {
	list := make([]any, 0, len(gpus))
	for i := range gpus {
		g := &gpus[i]
		fields := object{}
		for _, r := range readings() {
			row := g.Fields[r.field]
			if number(row.Mean) == nil && number(row.Peak) == nil {
				row.Reason = cmp.Or(row.Reason, unread)
			}
			fields = append(fields, member{r.name, clean(row)})
		}
		throttle := object{{"value", nil}, {"mask", nil}, {"reason", unread}}
		if g.ThrottleOK {
			throttle = object{{"value", throttleReasons(g.Throttle)}, {"mask", g.Throttle}}
		}
		list = append(list, object{
			{"index", g.Index}, {"name", g.Name}, {"uuid", g.UUID}, {"fields", fields}, {"throttle_reasons", throttle}, {"energy", clean(g.Energy)},
		})
	}
	return list
}

// unread is why a field of a GPU has no value.
const unread = "not read on this device"

// derived returns a derived figure by its name; absent, with a reason, where there is
// none.
func (p *Probe) derived(name string) engine.Quantity {
	if p.Summary != nil {
		for _, q := range p.Summary.Derived {
			if q.Name == name {
				return finiteQuantity(q.Quantity)
			}
		}
	}
	return engine.Quantity{Reason: "not derived"}
}
