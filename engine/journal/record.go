package journal

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Kind is the type of a record.
type Kind string

// Kinds of records, in the order in which a run writes them.
const (
	Begin    Kind = "begin"   // a run: version, mode, identity of the server, its launch
	Intent   Kind = "intent"  // before a change: changes, prediction, launch to come
	Stopped  Kind = "stopped" // the running server has ended
	Started  Kind = "started" // a process was started: PID and start ticks
	Ready    Kind = "ready"   // the server answers, with the changes
	Failed   Kind = "failed"  // the change failed, and why
	Verdict  Kind = "verdict" // the result of the change
	Kept     Kind = "kept"    // the running launch is the one to keep
	Reverted Kind = "back"    // the kept launch runs again
	Spread   Kind = "spread"  // difference between two starts of one configuration
	End      Kind = "end"     // the run is over, with nothing in progress
	Recover  Kind = "recover" // a later rooftop restored the server
)

// Process identifies a process of this machine. PIDs are reused, but not together with start ticks.
type Process struct {
	PID   int    `json:"pid"`
	Ticks uint64 `json:"ticks"` // clock ticks since boot
	Boot  string `json:"boot"`  // boot ID
}

// Predicted is the prediction of a change before it was made, as ratios.
type Predicted struct {
	Metric string   `json:"metric"`
	Low    stat.Opt `json:"low"`
	Mid    stat.Opt `json:"mid"`
	High   stat.Opt `json:"high"`
}

// Predictions converts predictions to those of a record. It keeps only ratios; values that are not
// finite become absent.
func Predictions(list []engine.Prediction) []Predicted {
	var out []Predicted
	for _, p := range list {
		if p.IsRatio() {
			out = append(out, Predicted{Metric: p.Metric, Low: p.Low.Finite(), Mid: p.Mid.Finite(), High: p.High.Finite()})
		}
	}
	return out
}

// Record is one line of a journal. Its kind determines which fields are set.
type Record struct {
	Schema string    `json:"schema"` // rooftop.journal/v1
	Seq    int       `json:"seq"`    // from 1, without gaps
	Time   time.Time `json:"time"`
	Run    string    `json:"run"` // name of the run: its time and a number
	Kind   Kind      `json:"kind"`
	Text   string    `json:"text,omitempty"` // a sentence

	Version string   `json:"version,omitempty"` // of rooftop
	Mode    string   `json:"mode,omitempty"`    // exec, attach, hook, unit, container, workload, canary, simulated
	Server  string   `json:"server,omitempty"`  // URL and model
	Command string   `json:"command,omitempty"` // launch command, redacted
	Process *Process `json:"process,omitempty"`
	// Launch names the file beside the journal with an exact launch: argument vector, environment,
	// working directory, limits, and the content of files. Only its owner may read it.
	Launch    string          `json:"launch,omitempty"`
	Iteration int             `json:"iteration,omitempty"`
	Revert    bool            `json:"revert,omitempty"`
	Changes   []engine.Change `json:"changes,omitempty"`
	Predicted []Predicted     `json:"predicted,omitempty"`
	Direction string          `json:"direction,omitempty"`
	// Low, Mid and High are the measured change of the goal, a ratio with its interval.
	Low  stat.Opt `json:"low,omitzero"`
	Mid  stat.Opt `json:"mid,omitzero"`
	High stat.Opt `json:"high,omitzero"`
	// Log is the difference in log throughput of a Spread record.
	Log *float64 `json:"log,omitempty"`
	// Finding and Goal belong to a Verdict record: the reason for the change, and the goal to which
	// Low, Mid and High refer.
	Finding string `json:"finding,omitempty"`
	Goal    string `json:"goal,omitempty"`
	// Exit is the exit code of the run in an End record.
	Exit *int `json:"exit,omitempty"`
}

// Schema is the schema of records.
const Schema = family + "v1"

// family is the common prefix of the schemas of all journals, including newer ones.
const family = "rooftop.journal/"
