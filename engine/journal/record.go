package journal

import "time"

// Kind is the type of a record.
type Kind string

// Kinds of records, in the order in which a run writes them.
const (
	Begin   Kind = "begin"   // a run: version, mode, identity of the server, its launch
	Intent  Kind = "intent"  // before a change: changes, prediction, launch to come
	Stopped Kind = "stopped" // the server that ran has ended
	Started Kind = "started" // a process was started: PID and start ticks
	Ready   Kind = "ready"   // it answers, with the changes
	Failed  Kind = "failed"  // the change could not be made, and why
	Verdict Kind = "verdict" // what the change brought
	Kept    Kind = "kept"    // the launch that runs is the one to keep
	Back    Kind = "back"    // the kept launch runs again
	Spread  Kind = "spread"  // two starts of one configuration differed by this
	End     Kind = "end"     // the run is over: nothing is under way
	Recover Kind = "recover" // a later rooftop put things right
)

// Process is a process of this machine beyond doubt: PIDs are used again, start
// ticks with them are not.
type Process struct {
	PID   int    `json:"pid"`
	Ticks uint64 `json:"ticks"` // clock ticks since boot
	Boot  string `json:"boot"`  // boot id
}

// Change is one setting with another value.
type Change struct {
	Flag string `json:"flag"`
	From string `json:"from"`
	To   string `json:"to"`
}

// Predicted is what was expected of a change before it was made, as ratios.
type Predicted struct {
	Metric string   `json:"metric"`
	Low    *float64 `json:"low"`
	Mid    *float64 `json:"mid"`
	High   *float64 `json:"high"`
}

// Record is one line of a journal. Which parts are set follows from the kind.
type Record struct {
	Schema string    `json:"schema"` // rooftop.journal/v1
	Seq    int       `json:"seq"`    // from 1, without gaps
	Time   time.Time `json:"time"`
	Run    string    `json:"run"` // names the run: its time and a number
	Kind   Kind      `json:"kind"`
	Text   string    `json:"text,omitempty"` // in a sentence

	Version string   `json:"version,omitempty"` // of rooftop
	Mode    string   `json:"mode,omitempty"`    // exec, attach, hook, simulated
	Server  string   `json:"server,omitempty"`  // URL and model
	Command string   `json:"command,omitempty"` // launch command, redacted
	Process *Process `json:"process,omitempty"`
	// Launch names the file beside the journal that holds an exact launch: argument
	// vector, environment, working directory, limits, and files byte for byte. Only
	// its owner may read it.
	Launch    string      `json:"launch,omitempty"`
	Iteration int         `json:"iteration,omitempty"`
	Revert    bool        `json:"revert,omitempty"`
	Changes   []Change    `json:"changes,omitempty"`
	Predicted []Predicted `json:"predicted,omitempty"`
	Direction string      `json:"direction,omitempty"`
	// Gain is the measured change of the goal, a ratio with its interval.
	Low  *float64 `json:"low,omitempty"`
	Mid  *float64 `json:"mid,omitempty"`
	High *float64 `json:"high,omitempty"`
	// Log is the difference of log throughput of a Spread record.
	Log *float64 `json:"log,omitempty"`
	// Finding and Goal are those of a Verdict record: what the change was made for,
	// and what Low, Mid and High are the change of.
	Finding string `json:"finding,omitempty"`
	Goal    string `json:"goal,omitempty"`
	// Exit is the exit code that a run of an End record came to.
	Exit *int `json:"exit,omitempty"`
}

// Schema names the records.
const Schema = family + "v1"

// family begins the schemas of all journals, those of later rooftops too.
const family = "rooftop.journal/"
