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

// history is a rooftop.history/v1 object.
type history struct {
	Schema string    `json:"schema"`
	Runs   []pastRun `json:"runs"`
	Story  any       `json:"story,omitempty"`
}

type pastRun struct {
	Number      int                `json:"number"`
	Name        string             `json:"name"`
	Path        string             `json:"path"`
	Source      string             `json:"source"`
	Started     time.Time          `json:"started"`
	Duration    time.Duration      `json:"duration_s" absent:"0"`
	Rooftop     string             `json:"rooftop" absent:""`
	Server      string             `json:"server" absent:""`
	Model       string             `json:"model" absent:""`
	Simulated   bool               `json:"simulated"`
	DryRun      bool               `json:"dry_run"`
	Outcome     tuning.PastOutcome `json:"outcome"`
	Exit        *int               `json:"exit_code"`
	Summary     string             `json:"summary" absent:""`
	Reason      string             `json:"reason" absent:""`
	Tried       int                `json:"tried"`
	Kept        int                `json:"kept"`
	Gain        *interval          `json:"gain"`
	Restarts    int                `json:"restarts"`
	Predictions score              `json:"predictions"`
	Best        string             `json:"best_command" absent:""`
	Changes     []pastChange       `json:"changes"`
}

type score struct {
	Made   int `json:"made"`
	Within int `json:"within"`
}

type pastChange struct {
	Iteration int             `json:"iteration"`
	Changes   []engine.Change `json:"changes"`
	End       string          `json:"end" absent:""`
	Direction string          `json:"direction" absent:""`
	Gain      *interval       `json:"gain"`
	Predicted *interval       `json:"predicted"`
	Reason    string          `json:"reason" absent:""`
}

func newPastRun(r *tuning.PastRun) pastRun {
	out := pastRun{
		Number: r.Number, Name: r.Name, Path: r.Path, Source: "report", Started: r.Started, Duration: max(r.Duration, 0), Rooftop: r.Version, Server: r.Server,
		Model: r.Model, Simulated: r.Simulated, DryRun: r.DryRun, Outcome: r.Outcome, Summary: r.Summary, Reason: r.Reason, Tried: r.Tried(), Kept: r.Kept(),
		Gain: newInterval(r.Gain, r.Low, r.High), Restarts: r.Restarts, Predictions: score{r.Made, r.Within}, Best: r.Best,
	}
	if r.Journal {
		out.Source = "journal"
	}
	if r.Outcome == tuning.PastEnded {
		out.Exit = &r.Exit
	}
	for i := range r.Changes {
		c := &r.Changes[i]
		gain, predicted := newInterval(c.Gain, c.Low, c.High), newInterval(c.Predicted[1], c.Predicted[0], c.Predicted[2])
		out.Changes = append(out.Changes, pastChange{c.N, c.Changes, c.End, c.Direction, gain, predicted, c.Reason})
	}
	return out
}

// WriteHistory writes runs, latest first, as one rooftop.history/v1 document.
func WriteHistory(w io.Writer, runs []tuning.PastRun) error {
	doc := history{Schema: HistorySchema}
	for i := range runs {
		doc.Runs = append(doc.Runs, newPastRun(&runs[i]))
	}
	return Write(w, &doc)
}

// WritePastRun writes one stored run as a rooftop.history/v1 document, including the story of its journal.
func WritePastRun(w io.Writer, r *tuning.PastRun) error {
	return Write(w, &history{Schema: HistorySchema, Runs: []pastRun{newPastRun(r)}, Story: append([]string{}, r.Story...)})
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
