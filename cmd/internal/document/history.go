package document

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// HistorySchema is the schema of the document that WriteHistory writes.
const HistorySchema = "rooftop.history/v1"

// pastRun returns a stored run.
func pastRun(r *tuning.PastRun) Object {
	source := "report"
	if r.Journal {
		source = "journal"
	}
	var exit any
	if r.Outcome == tuning.PastEnded {
		exit = r.Exit
	}
	return Object{
		{"number", r.Number},
		{"name", r.Name},
		{"path", r.Path},
		{"source", source},
		{"started", r.Started},
		{"duration_s", orNull(max(r.Duration, 0))},
		{"rooftop", orNull(r.Version)},
		{"server", orNull(r.Server)},
		{"model", orNull(r.Model)},
		{"simulated", r.Simulated},
		{"dry_run", r.DryRun},
		{"outcome", r.Outcome},
		{"exit_code", exit},
		{"summary", orNull(r.Summary)},
		{"reason", orNull(r.Reason)},
		{"tried", r.Tried()},
		{"kept", r.Kept()},
		{"gain", newInterval(r.Gain, r.Low, r.High)},
		{"restarts", r.Restarts},
		{"predictions", Object{{"made", r.Made}, {"within", r.Within}}},
		{"best_command", orNull(r.Best)},
		{"changes", each(r.Changes, pastChange)},
	}
}

func pastChange(c *tuning.PastChange) Object {
	return Object{
		{"iteration", c.N},
		{"changes", c.Changes},
		{"end", orNull(c.End)},
		{"direction", orNull(c.Direction)},
		{"gain", newInterval(c.Gain, c.Low, c.High)},
		{"predicted", newInterval(c.Predicted[1], c.Predicted[0], c.Predicted[2])},
		{"reason", orNull(c.Reason)},
	}
}

// WriteHistory writes runs, latest first, as one rooftop.history/v1 document.
func WriteHistory(w io.Writer, runs []tuning.PastRun) error {
	return Write(w, Object{{"schema", HistorySchema}, {"runs", each(runs, pastRun)}})
}

// WritePastRun writes one stored run as a rooftop.history/v1 document, including the story of its journal.
func WritePastRun(w io.Writer, r *tuning.PastRun) error {
	return Write(w, Object{{"schema", HistorySchema}, {"runs", []Object{pastRun(r)}}, {"story", r.Story}})
}

// storedRun is the part of a rooftop.run/v1 document that ReadRun needs.
type storedRun struct {
	Schema   string
	Rooftop  program
	Started  time.Time
	Duration float64 `json:"duration_s"`
	Target   engine.Target
	Summary  string
	Reason   string
	DryRun   bool `json:"dry_run"`
	Gain     stat.Opt
	Best     string `json:"best_command"`
	Finished *struct {
		Exit     int            `json:"exit_code"`
		Interval storedInterval `json:"gain_interval"`
		Restarts int
	}
	Iterations []storedIteration
}

type storedIteration struct {
	Iteration int
	End       string
	Changes   []engine.Change
	Predicted []engine.Prediction
	Verdict   *struct {
		Direction string
		Reason    string
		Classic   struct {
			Throughput stat.Opt `json:"throughput_delta_pct"`
		}
		Statistical *struct {
			Effect storedInterval `json:"effect"`
		}
		Predictions []predictedMetric
	}
}

// storedInterval is an interval of a run report.
type storedInterval struct{ Low, Mid, High stat.Opt }

// ReadRun reads the summary of a rooftop.run/v1 document. It fails if data is not such a document.
func ReadRun(data []byte) (tuning.PastRun, error) {
	var doc storedRun
	if err := json.Unmarshal(data, &doc); err != nil {
		return tuning.PastRun{}, fmt.Errorf("not a run report: %w", err)
	}
	if doc.Schema != RunSchema {
		return tuning.PastRun{}, errors.New("not a run report: its schema is " + strconv.Quote(doc.Schema) + ", not " + RunSchema)
	}
	r := tuning.PastRun{
		Started: doc.Started, Duration: time.Duration(doc.Duration * float64(time.Second)), Version: doc.Rooftop.Version,
		Server: doc.Target.URL, Model: doc.Target.Model, Simulated: doc.Target.Simulated, DryRun: doc.DryRun,
		Outcome: tuning.PastEnded, Summary: doc.Summary, Reason: doc.Reason, Gain: doc.Gain, Best: doc.Best,
	}
	if f := doc.Finished; f != nil {
		r.Exit, r.Restarts, r.Low, r.High = f.Exit, f.Restarts, f.Interval.Low, f.Interval.High
	}
	for i := range doc.Iterations {
		it := &doc.Iterations[i]
		r.Changes = append(r.Changes, it.past())
		if within := it.withinPrediction(); within != nil {
			r.Made++
			if *within {
				r.Within++
			}
		}
	}
	return r, nil
}

func (it *storedIteration) past() tuning.PastChange {
	c := tuning.PastChange{N: it.Iteration, Changes: it.Changes, End: it.End}
	for _, p := range it.Predicted {
		if p.Metric == tuning.Output {
			c.Predicted = [3]stat.Opt{p.Low, p.Mid, p.High}
		}
	}
	if v := it.Verdict; v != nil {
		c.Direction, c.Reason = v.Direction, v.Reason
		c.Gain = v.Classic.Throughput.Times(0.01)
		if s := v.Statistical; s != nil && s.Effect.Mid.OK {
			c.Gain, c.Low, c.High = s.Effect.Mid, s.Effect.Low, s.Effect.High
		}
	}
	return c
}

// withinPrediction returns whether the output was within its predicted range, or nil if unknown.
func (it *storedIteration) withinPrediction() *bool {
	if it.Verdict == nil {
		return nil
	}
	for _, p := range it.Verdict.Predictions {
		if p.Metric == tuning.Output {
			return p.Held
		}
	}
	return nil
}
