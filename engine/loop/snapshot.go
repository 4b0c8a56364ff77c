package loop

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Phase is the part of the loop that a run is in.
type Phase uint8

// Phases.
const (
	PhaseAttach    Phase = iota // looking for a server
	PhaseBaseline               // measuring the running configuration
	PhaseWaiting                // a recommendation is ready, or none is left
	PhaseApplying               // rooftop restarts the server
	PhaseDown                   // the server does not answer
	PhaseSettling               // the server is back and warms up until it is steady
	PhaseMeasuring              // measuring a change
	PhaseWorse                  // worse: waiting for the user to revert or continue
	PhaseReverting              // waiting for the engineer to restore the old settings
	PhaseCanary                 // trying a change on one more copy of the server
	PhaseDone
	NumPhases
)

// Snapshot is the complete visible state of a run at one moment, for screen and reports. It is
// immutable, including its slices and the values behind its pointers.
type Snapshot struct {
	Seq     uint64        // increases with every step that changed something
	Now     time.Duration // since the run began
	Started time.Time     // wall clock at time 0
	Version string        // of rooftop
	Watch   string        // the server that rooftop looks for while none answers

	Phase    Phase
	Since    time.Duration // start of the phase
	Progress Progress
	Paused   bool
	// Ask is the pending question, "" if none; only PhaseWorse asks.
	Ask string

	Attached  bool   // a server was found at least once
	AttachWhy string // the last failure to attach, or ""
	Starting  bool   // the server does not answer because it is starting
	Target    engine.Target
	Facts     engine.Facts
	Missing   []engine.Missing
	Notes     []string
	GPUWhy    string
	Launch    string // running launch command, redacted, "" if unknown
	// Kept is the launch command of the baseline's configuration, to which a revert leads;
	// redacted, "" if unknown.
	Kept     string
	CanApply bool // rooftop can restart this server itself
	// RevertsFirst means that a run that is ended now reverts to the kept configuration first.
	RevertsFirst bool

	// Condition is what is wrong with the server now; the zero condition if nothing is. While it
	// is ill, nothing is recommended and Quiet says why.
	Condition engine.Condition
	// Silence is a remark on a server that may be hung; "" if it makes progress, or is ill.
	Silence string
	// UnlessRecovers is what the run does about an ill server that does not recover, and when: "the run
	// ends after 2 min"; "" if it waits, or nothing is wrong.
	UnlessRecovers string

	Page      *engine.Page       // latest page, nil before the first
	GPU       *engine.GPUReading // latest reading, nil if none is readable
	Processes []Process
	Problems  []string
	Sources   []SourceState // page, GPU and processes, always in this order

	// Live is the diagnosis over the latest windows of the running configuration, nil before
	// the first.
	Live *engine.Diagnosis
	// Baseline is the diagnosis that the next change is judged against, nil while it is measured.
	Baseline *engine.Diagnosis
	// Advice is the current recommendation, nil if there is none: that of the baseline, or the
	// best that was neither tried nor skipped. Firm is set once the measurement behind it is
	// complete; before that the advice is preliminary, and Preliminary is why, as the end of a
	// sentence ("until the baseline is complete"). Firm is also set without advice.
	Advice      *engine.Recommendation
	Firm        bool
	Preliminary string
	// Quiet is a sentence on why there is no advice, such as healthy, no load, nothing
	// evaluable, or all tried. It is "" while measuring and if there is advice.
	Quiet string

	// Iterations are the changes noticed or made, oldest first. The last may be in progress; its
	// Delta is then nil.
	Iterations []Iteration
	// RunningIteration is the number of the change that led to the running configuration, 0 for the first
	// configuration. Points have it too.
	RunningIteration int
	// Trial is the current measurement of a change, or nil.
	Trial *Trial
	// Auto marks an automatic run; Pending is its next action.
	Auto    bool
	DryRun  bool // the run changes nothing
	Held    bool // paused by CommandHold
	Pending Pending
	Limits  Limits
	Score   Score
	// Noise are the relative differences in output tokens per second between two measurements
	// of one configuration with a restart between them.
	Noise []float64

	Points  []Point // one for each window, oldest first, bounded
	Marks   []Mark  // marks of time charts, oldest first
	Journal []Entry // oldest first, bounded
	Dropped int     // journal entries that were dropped

	Objectives []verdict.Objective // limits on latencies that the run was given

	Can      [NumCommands]Availability
	Finished *Finished
}

// Progress is the progress of a phase.
type Progress struct {
	Elapsed, Total time.Duration // Total is 0 if unknown
	Text           string        // what the phase waits for, in words
}

// Availability is whether a command is available, and why not.
type Availability struct {
	OK  bool
	Why string // a sentence, unless OK
}

// Freshness is the state of a source.
type Freshness uint8

// Freshnesses of a source.
const (
	SourceAbsent  Freshness = iota // the source does not exist; Why says why
	SourceFresh                    // the last reading is at most three intervals old
	SourceLate                     // older than that
	SourceFailing                  // the last reading failed
)

// SourceState is the state of one source.
type SourceState struct {
	Name     string        `json:"name"` // "metrics", "gpu", "processes"
	State    Freshness     `json:"state"`
	Why      string        `json:"reason,omitzero"`     // why it is absent, or the last failure
	Last     time.Duration `json:"last_s,omitzero"`     // time of the last good reading
	Took     time.Duration `json:"took_s,omitzero"`     // duration of the last good reading
	Interval time.Duration `json:"interval_s,omitzero"` // between readings; 0 if unknown
	Failures int           `json:"failures"`            // consecutive
	Missed   int           `json:"missed"`              // ticks that rooftop missed so far
}

// IterationEnd is the outcome of an iteration.
type IterationEnd string

// Outcomes of an iteration. IterationOpen has none yet.
const (
	IterationOpen      IterationEnd = ""
	IterationKept      IterationEnd = "kept"      // better
	IterationReverted  IterationEnd = "reverted"  // the previous settings run again
	IterationContinued IterationEnd = "continued" // worse, and kept as the new baseline
	IterationNoGain    IterationEnd = "no gain"   // plateau: not kept, reverted by the next change
	IterationNoise     IterationEnd = "noise"     // unchanged settings: measured noise
	IterationBroken    IterationEnd = "broken"    // the server did not come back, or was changed again before a verdict
)

// Noticed is the classification of a restart.
type Noticed string

// Classifications of a restart.
const (
	AsRecommended Noticed = "as recommended"
	SomethingElse Noticed = "something else"
	SameSettings  Noticed = "same settings"
	Unreadable    Noticed = "unreadable" // the launch cannot be read
	Undone        Noticed = "undone"     // the settings before the change are back
)

// Iteration is one change and its result.
type Iteration struct {
	N       int           // from 1
	At      time.Duration // when the change was noticed or started
	Up      time.Duration // when the server answered again, 0 if it has not
	Settled time.Duration // when the server was steady, 0 if it is not
	End     IterationEnd

	Noticed Noticed
	Changes []engine.Change // relative to the previous configuration, by flag
	Text    string          // "you changed --max-num-seqs 4 → 32 as recommended"
	Command string          // launch command after the change, redacted, "" if unknown
	// Predicted is the prediction recorded before the change; nil if the change was not the
	// recommended one.
	Predicted []engine.Prediction

	Before, After *engine.Diagnosis
	Delta         *effect.Delta // nil before the verdict
	AnswerCheck   *AnswerCheck
	Downtime      time.Duration // from the last answer before the change to the first after it
	Failure       string        // why the change failed or did not last, or ""
	// Beside is the verdict on the change as a canary beside other servers, in words, or "".
	Beside string
	// Load lists the differences in the traffic before and after, in words. If there are any,
	// the delta is not due to the change alone.
	Load []string
}

// Point is one window as a data point of charts. Latencies are in seconds, rates per second,
// usages 0..1. Missing values are absent.
type Point struct {
	T         time.Duration // end of the window
	Iteration int           // running configuration, 0 for the first
	Tokens    stat.Opt      // output tokens per second
	Prompt    stat.Opt      // prompt tokens per second
	Requests  stat.Opt      // finished per second
	Running   stat.Opt
	Waiting   stat.Opt
	KV        stat.Opt // peak
	TTFT, ITL stat.Opt // p99
	// TTFTBucket and ITLBucket are the histogram buckets of TTFT and ITL, zero without one.
	TTFTBucket, ITLBucket stat.Bucket
	GPU, Power            stat.Opt // utilization; watts of all GPUs
	// Temperature is that of the hottest GPU in degrees Celsius, Clock the SM clock of the slowest in MHz.
	Temperature, Clock stat.Opt
	Preempted          stat.Opt // per second
}

// Mark is a labelled moment of a time chart.
type Mark struct {
	T    time.Duration `json:"t_s"`
	Kind MarkKind      `json:"kind"`
	Text string        `json:"text"`
}

// MarkKind is the kind of a mark.
type MarkKind uint8

// Kinds of marks.
const (
	MarkDown    MarkKind = iota // the server stopped answering
	MarkUp                      // it answers again
	MarkChange                  // with other settings
	MarkMeasure                 // a measurement began
	MarkVerdict
)

// Level is the severity of a journal entry.
type Level uint8

// Levels.
const (
	LevelInfo Level = iota
	LevelGood
	LevelWarn
	LevelBad
)

// Entry is one entry of the journal.
type Entry struct {
	Seq   int           `json:"seq"`
	T     time.Duration `json:"t_s"`
	Level Level         `json:"level"`
	Kind  EventKind     `json:"kind,omitzero"` // "" without an event
	Noted bool          `json:"-"`             // from the session (see Noted), such as a written report
	Text  string        `json:"text"`
}

// Trial is a change that is being measured. It is evaluated at fixed times, each time with a
// narrower interval.
type Trial struct {
	Iteration int
	Looks     []time.Duration // times of the looks, since the start of the measurement
	Measured  time.Duration   // measured so far
	// Results are the results of the looks so far, oldest first.
	Results   []verdict.Result
	Predicted []engine.Prediction // prediction of the change, or nil
}

// Pending is the next action of an automatic run and its time. The zero Pending is none.
type Pending struct {
	Text string        `json:"text"` // a sentence
	At   time.Duration `json:"at_s"` // since the run began
}

// Limits are the limits of an automatic run, and how much of them was used.
type Limits struct {
	Restarts    int           // including reverts; 0 is unlimited
	Downtime    time.Duration // in total; 0 is unlimited
	Allow       []string      // flags that may be changed; nil is all that do not alter answers
	UsedStarts  int
	UsedOutages time.Duration
}

// Score is the quality of the predictions of the goal.
type Score struct {
	Made   int `json:"made"`   // predictions with a measured outcome
	Within int `json:"within"` // outcomes between low and high
	// Error is the median of |(1+measured)/(1+mid) - 1|, a ratio; absent without outcomes.
	Error stat.Opt `json:"median_error"`
}
