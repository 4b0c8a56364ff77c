package apply

import (
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Bounds of what earlier runs say. Fifty differences give a standard deviation to a
// tenth, and more would only make an old driver's or an old release's weigh longer;
// after ninety days the software below a server has usually been replaced.
const (
	pastMost = 50
	pastAge  = 90 * 24 * time.Hour
	// pastStarts are those whose longest counts: files that are cached by now are slow
	// to read once.
	pastStarts = 5
)

// Past is what earlier runs on this server measured, newest first. The directory is
// that of one address, model and set of GPUs: all of it is of the same hardware.
type Past struct {
	// Repeats are differences of log throughput between two starts of one
	// configuration.
	Repeats []float64
	// Foretold are predictions of the output with what came true.
	Foretold []engine.Foretold
	// Start is the longest of the latest restarts, from what was written down before it
	// until the server was ready; 0 where none is known.
	Start time.Duration
}

// Past reads the journal, and the one that was set aside before it.
func (s *Store) Past() (Past, error) {
	records, err := Records(s.dir)
	if err != nil {
		return Past{}, err
	}
	return past(records, s.now()), nil
}

// Records reads the whole journal of a server's directory, oldest first, without
// changing it.
func Records(dir string) ([]journal.Record, error) {
	var all []journal.Record
	for _, name := range []string{earlierName, journalName} {
		f, err := readFile(dir, name)
		if err != nil {
			return nil, err
		}
		all = append(all, f.Records...)
	}
	return all, nil
}

func past(records []journal.Record, now time.Time) Past {
	p := Past{Start: startsTook(records, now)}
	for i := range slices.Backward(records) {
		r := &records[i]
		if now.Sub(r.Time) > pastAge {
			continue
		}
		switch r.Kind {
		case journal.Spread:
			if r.Log != nil && len(p.Repeats) < pastMost {
				p.Repeats = append(p.Repeats, *r.Log)
			}
		case journal.Verdict:
			if f, ok := cameTrue(r); ok && len(p.Foretold) < pastMost {
				p.Foretold = append(p.Foretold, f)
			}
		}
	}
	return p
}

// startsTook is the longest of the latest restarts that led to what they were to. The
// first start of a server of rooftop's own is none: it may download and compile. Nor is
// what a program takes, which may keep the former server up meanwhile.
func startsTook(records []journal.Record, now time.Time) time.Duration {
	var took []time.Duration
	var begun *journal.Record // the restart under way
	ended := -1               // index of the record that ended the latest one
	for i := range records {
		r := &records[i]
		if now.Sub(r.Time) > pastAge {
			continue
		}
		if begun != nil && begun.Run != r.Run {
			begun = nil // it was cut off
		}
		switch r.Kind {
		case journal.Intent:
			if begun = r; r.Mode == modeHook {
				begun = nil
			}
		case journal.Ready, journal.Back:
			if begun != nil {
				took, begun, ended = append(took, r.Time.Sub(begun.Time)), nil, i
			}
		case journal.Failed:
			if begun = nil; ended >= 0 && ended == i-1 {
				took = took[:len(took)-1] // it was a way back
			}
		}
	}
	longest := time.Duration(0)
	for _, t := range took[max(0, len(took)-pastStarts):] {
		longest = max(longest, t)
	}
	return longest
}

// OutputMetric is the metric of a prediction of the output.
const OutputMetric = "generation_tokens_per_s"

// cameTrue is a verdict on the output that a whole prediction stood against. One whose
// traffic had changed says nothing of the prediction.
func cameTrue(r *journal.Record) (engine.Foretold, bool) {
	if r.Goal != string(verdict.Throughput) || r.Mid == nil || r.Direction == string(verdict.NotComparable) {
		return engine.Foretold{}, false
	}
	i := slices.IndexFunc(r.Predicted, func(p journal.Predicted) bool { return p.Metric == OutputMetric })
	if i < 0 {
		return engine.Foretold{}, false
	}
	p := r.Predicted[i]
	if p.Low == nil || p.Mid == nil || p.High == nil {
		return engine.Foretold{}, false
	}
	f := engine.Foretold{Finding: engine.FindingID(r.Finding), Low: *p.Low, Mid: *p.Mid, High: *p.High, Measured: *r.Mid}
	if len(r.Changes) > 0 {
		f.Flag = r.Changes[0].Flag
	}
	return f, true
}

// JournalledRun is one run as the journal of its server tells it.
type JournalledRun struct {
	Dir      string
	Identity Identity
	Running  bool // it is going on
	State    journal.State
	Records  []journal.Record
}

// Runs reads the runs of a server's directory, oldest first, without changing it.
func Runs(dir string) ([]JournalledRun, error) {
	id, err := readIdentity(dir)
	if err != nil {
		return nil, err
	}
	records, err := Records(dir)
	if err != nil {
		return nil, err
	}
	var runs []JournalledRun
	for from := 0; from < len(records); {
		to := from + 1
		for to < len(records) && records[to].Run == records[from].Run {
			to++
		}
		runs = append(runs, JournalledRun{Dir: dir, Identity: id, State: journal.Reduce(records[from:to]), Records: records[from:to]})
		from = to
	}
	if n := len(runs); n > 0 && runs[n-1].State.Open {
		runs[n-1].Running = held(id)
	}
	return runs, nil
}
