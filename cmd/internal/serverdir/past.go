package serverdir

import (
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/journal"
)

// Limits of the measurements taken from earlier runs. Fifty differences give a standard
// deviation to a tenth, and more would only give results of old drivers and releases
// weight for longer. After ninety days the software of a server has usually been replaced.
const (
	maxPast = 50
	pastAge = 90 * 24 * time.Hour
	// pastStarts is the number of latest restarts of which the longest counts, because the
	// first start reads files that are cached later.
	pastStarts = 5
)

// Past holds the measurements of earlier runs on this server, newest first. A directory
// belongs to one address, model and set of GPUs, so all are from the same hardware.
type Past struct {
	// Repeats are differences of log throughput between two starts of one
	// configuration.
	Repeats []float64
	// Start is the duration of the longest of the latest restarts, from the intent record
	// until the server was ready; 0 if none is known.
	Start time.Duration
}

// Past reads the measurements of earlier runs from the journal and the rotated one.
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
		if r.Kind == journal.Spread && r.Log != nil && len(p.Repeats) < maxPast {
			p.Repeats = append(p.Repeats, *r.Log)
		}
	}
	return p
}

// startsTook returns the longest of the latest successful restarts. It does not count the
// first start of a server that rooftop started, which may download and compile, or
// restarts by a program, which may keep the previous server up meanwhile.
func startsTook(records []journal.Record, now time.Time) time.Duration {
	var took []time.Duration
	var begun *journal.Record // the current restart
	ended := -1               // index of the record that ended the latest one
	for i := range records {
		r := &records[i]
		if now.Sub(r.Time) > pastAge {
			continue
		}
		if begun != nil && begun.Run != r.Run {
			begun = nil // the run was interrupted
		}
		switch r.Kind {
		case journal.Intent:
			if begun = r; r.Mode == ModeHook || r.Mode == ModeCanary {
				begun = nil
			}
		case journal.Ready, journal.Reverted:
			if begun != nil {
				took, begun, ended = append(took, r.Time.Sub(begun.Time)), nil, i
			}
		case journal.Failed:
			if begun = nil; ended >= 0 && ended == i-1 {
				took = took[:len(took)-1] // it was a revert
			}
		}
	}
	longest := time.Duration(0)
	for _, t := range took[max(0, len(took)-pastStarts):] {
		longest = max(longest, t)
	}
	return longest
}

// Modes of runs in which something other than rooftop restarts the server: a program of the user's, a
// unit of systemd, Docker, Kubernetes.
const (
	ModeHook      = "hook"
	ModeUnit      = "unit"
	ModeContainer = "container"
	ModeWorkload  = "workload"
)

// ModeCanary is the mode of the intent of a canary, which restarts nothing.
const ModeCanary = "canary"

// Managed reports whether something other than rooftop restarts the server in runs of a mode.
func Managed(mode string) bool {
	return mode == ModeHook || mode == ModeUnit || mode == ModeContainer || mode == ModeWorkload
}

// OutputMetric is the metric of a prediction of the output.
const OutputMetric = "generation_tokens_per_s"

// JournalledRun is one run in the journal of its server.
type JournalledRun struct {
	Dir      string
	Identity Identity
	Running  bool // the run is in progress
	State    journal.State
	Records  []journal.Record
}

// Runs reads the runs of a server's directory, oldest first, without changing it.
func Runs(dir string) ([]JournalledRun, error) {
	id, err := ReadIdentity(dir)
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
		runs[n-1].Running = Held(id)
	}
	return runs, nil
}
