package serverdir

import (
	"errors"
	"math"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Writer appends records to a journal.
type Writer interface {
	Write(r journal.Record) error
}

// Recorder writes results from the events of a run to the journal: verdicts with their
// predictions, and differences between starts of one configuration. The applier records
// what is done to the server. A Recorder is not safe for concurrent use.
type Recorder struct {
	store Writer
	// Latest returns the snapshot with the differences between starts; nil writes none.
	Latest func() *loop.Snapshot

	advised engine.Recommendation // the latest recommendation
	made    engine.Recommendation // the recommendation of the current change
	number  int                   // of the current change
	spreads int                   // number of differences written
	err     error
}

// NewRecorder returns a recorder that writes to a journal.
func NewRecorder(j Writer) *Recorder { return &Recorder{store: j} }

// Tell processes an event.
func (r *Recorder) Tell(e loop.Event) {
	switch e.Kind {
	case loop.EventRecommendation:
		if e.Advice != nil {
			r.advised = *e.Advice
		}
	case loop.EventApplying, loop.EventCanary:
		r.made, r.number = engine.Recommendation{}, e.Iteration
		if e.Change.Flag == r.advised.Flag && e.Change.To == r.advised.To {
			r.made = r.advised
		}
	case loop.EventVerdict:
		r.verdict(&e)
	}
	r.noise()
}

// Err returns the errors of all writes so far, joined; nil if all succeeded.
func (r *Recorder) Err() error { return r.err }

func (r *Recorder) write(record journal.Record) {
	if err := r.store.Write(record); err != nil {
		r.err = errors.Join(r.err, err)
	}
}

// verdict writes the result of a change and its prediction.
func (r *Recorder) verdict(e *loop.Event) {
	if e.Delta == nil {
		return
	}
	if e.Iteration != r.number { // it is on a change that someone else made
		r.made = engine.Recommendation{}
	}
	record := journal.Record{
		Kind: journal.Verdict, Iteration: e.Iteration, Text: e.Text, Direction: string(e.Delta.Direction),
		Finding: string(r.made.Finding), Changes: changed(&r.made), Predicted: journal.Predictions(r.made.Predicted),
	}
	if e.Advice != nil {
		record.Predicted = journal.Predictions(e.Advice.Predicted)
		if e.Advice.Finding != "" {
			record.Finding, record.Changes = string(e.Advice.Finding), changed(e.Advice)
		}
	}
	if v := e.Delta.Verdict; v != nil && v.Known {
		record.Goal = string(v.Goal)
		record.Low, record.Mid, record.High = stat.Some(v.Effect.Low).Finite(), stat.Some(v.Effect.Mid).Finite(), stat.Some(v.Effect.High).Finite()
	} else if t := e.Delta.Throughput; t.OK {
		record.Goal, record.Mid = string(verdict.Throughput), t.Finite()
	}
	r.write(record)
	r.made = engine.Recommendation{}
}

// changed lists what a recommendation changes.
func changed(a *engine.Recommendation) []engine.Change {
	if a.Flag == "" {
		return nil
	}
	return a.Changes()
}

// noise writes the differences between starts measured since the last call.
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
		if !stat.IsFinite(log) {
			continue // a start without output has no finite ratio
		}
		r.write(journal.Record{Kind: journal.Spread, Log: &log, Text: "the same settings, started again: output " + figure.Change(ratio) + " %"})
	}
}
