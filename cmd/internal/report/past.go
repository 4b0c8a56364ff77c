package report

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// PastRun is a run that is over, or that was cut off, as far as what is stored of it
// tells.
type PastRun struct {
	Number  int    // in the history, 1 the latest
	Name    string // of the directory, or of the run in a journal
	Path    string // directory of its files
	Journal bool   // the journal of a server is all that is left of it

	Started   time.Time
	Duration  time.Duration // 0 unknown
	Version   string        // of rooftop
	Server    string        // URL
	Model     string
	Simulated bool

	Outcome  PastOutcome
	Exit     int // where Outcome is PastEnded
	Restarts int
	Summary  string // the headline
	Reason   string
	Best     string // launch command of what was kept, redacted
	Changes  []PastChange

	Gain         stat.Opt // of the goal, a ratio
	Low, High    stat.Opt // of its interval
	Made, Within int      // predictions of the goal that were measured, and those that held
	Story        []string // what a journal says, one line a record
}

// PastOutcome says how a run ended.
type PastOutcome string

// Outcomes of a run.
const (
	PastEnded     PastOutcome = "ended"
	PastRunning   PastOutcome = "running"   // it is going on
	PastCutOff    PastOutcome = "cut off"   // it was killed, and what it left is not put right
	PastRecovered PastOutcome = "recovered" // it was killed, and put right
)

// PastChange is a change of a past run.
type PastChange struct {
	N         int
	Changes   []engine.Change
	End       string // kept, reverted, no gain, noise, broken; "" not known
	Direction string // of the verdict, "" none
	Gain      stat.Opt
	Low, High stat.Opt
	// Foretold is what was predicted of the output; absent ends are unknown.
	Foretold [3]stat.Opt
	Reason   string
}

// Tried is how many changes were made; starts with the same settings are none.
func (r *PastRun) Tried() int {
	n := 0
	for i := range r.Changes {
		if r.Changes[i].End != string(engine.IterationNoise) {
			n++
		}
	}
	return n
}

// Kept is how many of them stayed.
func (r *PastRun) Kept() int {
	n := 0
	for i := range r.Changes {
		if end := engine.IterationEnd(r.Changes[i].End); end == engine.IterationKept || end == engine.IterationContinued {
			n++
		}
	}
	return n
}

// storedRun is what is read back of a rooftop.run/v1 document.
type storedRun struct {
	Schema   string
	Rooftop  struct{ Version string }
	Started  time.Time
	Duration float64 `json:"duration_s"`
	Target   struct {
		URL, Model string
		Simulated  bool
	}
	Summary    string
	Reason     string
	Gain       *float64
	Best       *string `json:"best_command"`
	Finished   *storedEnd
	Iterations []storedIteration
}

type storedEnd struct {
	Exit     int            `json:"exit_code"`
	Interval storedInterval `json:"gain_interval"`
	Restarts int
}

type storedIteration struct {
	Iteration int
	End       string
	Changes   []engine.Change
	Predicted []storedPrediction
	Verdict   *struct {
		Direction string
		Reason    string
		Classic   struct {
			Throughput *float64 `json:"throughput_delta_pct"`
		}
		Statistical *struct {
			Effect storedInterval `json:"effect"`
		}
		Predictions []storedPrediction
	}
}

type storedPrediction struct {
	Metric         string
	Low, Mid, High *float64
	Measured       *float64
	Held           *bool
}

// storedInterval is an interval in any of the spellings that run/v1 has had: an
// object with low, mid and high, a pair, or null.
type storedInterval struct{ Low, Mid, High *float64 }

// UnmarshalJSON implements json.Unmarshaler.
func (i *storedInterval) UnmarshalJSON(data []byte) error {
	var pair []*float64
	if json.Unmarshal(data, &pair) == nil {
		if len(pair) == 2 {
			i.Low, i.High = pair[0], pair[1]
		}
		return nil
	}
	type bare storedInterval
	var o bare
	if json.Unmarshal(data, &o) == nil {
		*i = storedInterval(o)
	}
	return nil // what is spelled otherwise is not known
}

// ReadRun reads back what a rooftop.run/v1 document says in short.
func ReadRun(data []byte) (PastRun, error) {
	var doc storedRun
	if err := json.Unmarshal(data, &doc); err != nil {
		return PastRun{}, fmt.Errorf("not a report of a run: %w", err)
	}
	if doc.Schema != RunSchema {
		return PastRun{}, errors.New("not a report of a run: its schema is " + strconv.Quote(doc.Schema) + ", not " + RunSchema)
	}
	r := PastRun{
		Started: doc.Started, Duration: time.Duration(doc.Duration * float64(time.Second)), Version: doc.Rooftop.Version,
		Server: doc.Target.URL, Model: doc.Target.Model, Simulated: doc.Target.Simulated,
		Outcome: PastEnded, Summary: doc.Summary, Reason: doc.Reason, Gain: opt(doc.Gain),
	}
	if doc.Best != nil {
		r.Best = *doc.Best
	}
	if f := doc.Finished; f != nil {
		r.Exit, r.Restarts, r.Low, r.High = f.Exit, f.Restarts, opt(f.Interval.Low), opt(f.Interval.High)
	}
	for i := range doc.Iterations {
		r.Changes = append(r.Changes, doc.Iterations[i].past())
	}
	for i := range doc.Iterations {
		if held := doc.Iterations[i].held(); held != nil {
			r.Made++
			if *held {
				r.Within++
			}
		}
	}
	return r, nil
}

func opt(v *float64) stat.Opt {
	if v == nil {
		return stat.None
	}
	return stat.Some(*v)
}

func (it *storedIteration) past() PastChange {
	c := PastChange{N: it.Iteration, Changes: it.Changes, End: it.End}
	for _, p := range it.Predicted {
		if p.Metric == outputName {
			c.Foretold = [3]stat.Opt{opt(p.Low), opt(p.Mid), opt(p.High)}
		}
	}
	if v := it.Verdict; v != nil {
		c.Direction, c.Reason = v.Direction, v.Reason
		c.Gain = opt(v.Classic.Throughput).Times(0.01)
		if s := v.Statistical; s != nil && s.Effect.Mid != nil {
			c.Gain, c.Low, c.High = opt(s.Effect.Mid), opt(s.Effect.Low), opt(s.Effect.High)
		}
	}
	return c
}

// outputName is what predictions of the output are named by.
const outputName = "generation_tokens_per_s"

// held says whether the prediction of the output came true, nil where nothing tells.
func (it *storedIteration) held() *bool {
	if it.Verdict == nil {
		return nil
	}
	for _, p := range it.Verdict.Predictions {
		if p.Metric == outputName {
			return p.Held
		}
	}
	return nil
}
