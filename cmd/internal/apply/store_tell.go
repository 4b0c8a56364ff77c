package apply

import (
	"errors"
	"math"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Recorder follows the events of a run and writes into the journal what they say of
// the past: verdicts beside their predictions, differences between starts of one
// configuration, and how the run ended. What is done to the server the hands write
// themselves. It is not safe for concurrent use.
type Recorder struct {
	store Journal
	// Latest is the snapshot to read differences between starts from; nil reads none.
	Latest func() *engine.Snapshot

	advised  engine.Recommendation // the last one told
	made     engine.Recommendation // that of the change under way
	spreads  int                   // written
	finished *engine.Finished
	err      error
}

// NewRecorder returns a recorder that writes to a journal.
func NewRecorder(j Journal) *Recorder { return &Recorder{store: j} }

// Tell takes in an event.
func (r *Recorder) Tell(e engine.Event) {
	switch e.Kind {
	case engine.EventRecommendation:
		if e.Advice != nil {
			r.advised = *e.Advice
		}
	case engine.EventApplying:
		r.made = engine.Recommendation{}
		if e.Change.Flag == r.advised.Flag && e.Change.To == r.advised.To {
			r.made = r.advised
		}
	case engine.EventVerdict:
		r.verdict(&e)
	case engine.EventFinished:
		r.finished = e.Finished
	}
	r.noise()
}

// Finished is how the run ended, nil where it has not.
func (r *Recorder) Finished() *engine.Finished { return r.finished }

// Err is why something could not be written, nil where all was.
func (r *Recorder) Err() error { return r.err }

func (r *Recorder) write(record journal.Record) {
	if err := r.store.Write(record); err != nil {
		r.err = errors.Join(r.err, err)
	}
}

// verdict writes what a change brought beside what was expected of it.
func (r *Recorder) verdict(e *engine.Event) {
	if e.Delta == nil {
		return
	}
	record := journal.Record{
		Kind: journal.Verdict, Iteration: e.Iteration, Text: e.Text, Direction: string(e.Delta.Direction),
		Finding: string(r.made.Finding), Changes: changed(&r.made), Predicted: foretold(r.made.Predicted),
	}
	if e.Advice != nil {
		record.Predicted = foretold(e.Advice.Predicted)
		if e.Advice.Finding != "" {
			record.Finding, record.Changes = string(e.Advice.Finding), changed(e.Advice)
		}
	}
	if v := e.Delta.Verdict; v != nil && v.Known {
		record.Goal = string(v.Goal)
		record.Low, record.Mid, record.High = finite(v.Effect.Low), finite(v.Effect.Mid), finite(v.Effect.High)
	} else if t := e.Delta.Throughput; t.OK {
		record.Goal, record.Mid = string(verdict.Throughput), finite(t.V)
	}
	r.write(record)
	r.made = engine.Recommendation{}
}

// changed lists what a recommendation changes.
func changed(a *engine.Recommendation) []journal.Change {
	if a.Flag == "" {
		return nil
	}
	out := []journal.Change{{Flag: a.Flag, From: a.From, To: a.To}}
	for _, c := range a.Also {
		out = append(out, journal.Change(c))
	}
	return out
}

// foretold spells predictions as records do; those in other units are left out.
func foretold(list []engine.Prediction) []journal.Predicted {
	var out []journal.Predicted
	for _, p := range list {
		if p.Unit == "ratio" || p.Unit == "" {
			out = append(out, journal.Predicted{Metric: p.Metric, Low: optional(p.Low), Mid: optional(p.Mid), High: optional(p.High)})
		}
	}
	return out
}

func optional(v stat.Opt) *float64 {
	if !v.OK {
		return nil
	}
	return finite(v.V)
}

// finite is a number that JSON has.
func finite(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

// noise writes the differences between starts that were measured since.
func (r *Recorder) noise() {
	if r.Latest == nil {
		return
	}
	s := r.Latest()
	if s == nil {
		return
	}
	for ; r.spreads < len(s.Noise); r.spreads++ {
		ratio := s.Noise[r.spreads]
		log := math.Log1p(ratio)
		if finite(log) == nil {
			continue // no output after a start is no repeat
		}
		r.write(journal.Record{Kind: journal.Spread, Log: &log, Text: "the same settings, started again: output " + figure.Change(ratio) + " %"})
	}
}
