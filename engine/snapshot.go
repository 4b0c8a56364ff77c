package engine

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Phase says where in the loop a run is.
type Phase uint8

// Phases.
const (
	PhaseAttach    Phase = iota // no server yet: looking, or waiting for one
	PhaseBaseline               // measuring the configuration that runs
	PhaseWaiting                // a recommendation stands, or nothing is left: watching
	PhaseApplying               // rooftop restarts the server
	PhaseDown                   // the server does not answer
	PhaseSettling               // it is back: warm-up, until it is steady
	PhaseMeasuring              // measuring what the change brought
	PhaseWorse                  // worse: revert or continue? nothing goes on until a key
	PhaseReverting              // waiting for the engineer to put back the old settings
	PhaseDone
	NumPhases
)

// Snapshot is everything that there is to see of a run at one moment: what the
// screen draws, and what a report is written from. It is immutable: slices and
// what pointers point to are never changed once handed out.
type Snapshot struct {
	Seq     uint64        // grows with every step that changed something
	Now     time.Duration // since the run began
	Started time.Time     // wall clock at time 0
	Version string        // of rooftop
	Watch   string        // what is looked for while no server answers

	Phase    Phase
	Since    time.Duration // when the phase began
	Progress Progress
	Paused   bool
	// Ask is the question that waits for an answer, "" none: Worse asks.
	Ask string

	Attached  bool   // a server was found at least once
	AttachWhy string // the last failure to attach, "" none
	Target    Target
	Facts     Facts
	Missing   []Missing
	Notes     []string
	GPUWhy    string
	Launch    string // the launch command that runs, redacted, "" unknown
	// Kept is the launch command of the configuration that the baseline was measured
	// with, the way back while another one runs; redacted, "" unknown.
	Kept  string
	Hands bool // rooftop can restart this server itself

	Page      *Page       // the latest, nil before the first
	GPU       *GPUReading // the latest, nil where none is readable
	Processes []Process
	Problems  []string
	Sources   []SourceState // page, GPU, processes: always these three, in this order

	// Live is the diagnosis over the latest windows of the configuration that
	// runs; nil before there is anything to say.
	Live *Diagnosis
	// Baseline is what the next change is judged against, nil while it is measured.
	Baseline *Diagnosis
	// Advice is the recommendation that stands, nil where there is none (yet):
	// that of the baseline, or the best that was not tried or skipped. Firm says
	// that the baseline is complete; before it the advice is one so far.
	Advice *Recommendation
	Firm   bool
	// Quiet says in a sentence why there is no advice: healthy, no load, nothing
	// evaluable, all tried. "" while measuring or where there is one.
	Quiet string

	// Iterations are the changes noticed or made, oldest first; the last may be
	// under way (Delta is nil then).
	Iterations []Iteration
	// Trial is the measurement under way of a change, nil where none is.
	Trial *Trial
	// Auto says that the run needs no keys; Pending is what it is about to do.
	Auto    bool
	Held    bool // autopilot was stopped by CommandHold
	Pending Pending
	Limits  Limits
	Score   Score
	// Noise are the relative differences of output tokens per second between two
	// measurements of one configuration with a restart between them.
	Noise []float64

	Points  []Point // one a window, oldest first, bounded
	Marks   []Mark  // what a time chart marks, oldest first
	Journal []Entry // what happened, oldest first, bounded
	Dropped int     // entries of the journal that were let go

	Can      [NumCommands]Availability
	Finished *Finished
}

// Progress is how far a phase is.
type Progress struct {
	Elapsed, Of time.Duration // Of is 0 where the end is not known
	Text        string        // what it waits for, in words
}

// Availability says whether a command does something now, and why not.
type Availability struct {
	OK  bool
	Why string // in a sentence, where it is not OK
}

// Freshness says how a source is.
type Freshness uint8

// Freshnesses of a source.
const (
	SourceAbsent  Freshness = iota // there is none, and Why says why
	SourceFresh                    // the last reading is at most three intervals old
	SourceLate                     // older than that
	SourceFailing                  // the last reading failed
)

// SourceState is how one source is.
type SourceState struct {
	Name     string // "metrics", "gpu", "processes"
	State    Freshness
	Why      string        // absence, or the last failure
	Last     time.Duration // of the last good reading
	Took     time.Duration // of the last good reading
	Interval time.Duration // between readings; 0 unknown
	Failures int           // in a row
	Missed   int           // ticks that rooftop itself missed so far
}

// IterationEnd says what became of an iteration.
type IterationEnd string

// Ends of an iteration. Open is none yet.
const (
	IterationOpen      IterationEnd = ""
	IterationKept      IterationEnd = "kept"      // better
	IterationReverted  IterationEnd = "reverted"  // put back
	IterationContinued IterationEnd = "continued" // worse, and kept as the new baseline
	IterationNoGain    IterationEnd = "no gain"   // plateau: not kept, folded into the next change
	IterationNoise     IterationEnd = "noise"     // the same settings again: measured noise
	IterationBroken    IterationEnd = "broken"    // the server did not come back, or was changed again before a verdict
)

// Noticed says what was found out about a change.
type Noticed string

// What a restart turned out to be.
const (
	AsRecommended Noticed = "as recommended"
	SomethingElse Noticed = "something else"
	SameSettings  Noticed = "same settings"
	Unreadable    Noticed = "unreadable" // the launch cannot be read
	Undone        Noticed = "undone"     // the settings before the change are back
)

// Iteration is one change with what it brought.
type Iteration struct {
	N       int           // from 1
	At      time.Duration // when the change was noticed or begun
	Up      time.Duration // when the server answered again, 0 not yet
	Settled time.Duration // when it was steady, 0 not yet
	End     IterationEnd

	Noticed Noticed
	Changes []Change // against the configuration before, by flag
	Text    string   // "you changed --max-num-seqs 4 → 32 as recommended"
	Command string   // launch command after the change, redacted, "" unknown
	// Predicted is what was expected, written down before the change; nil where
	// the change was not the recommended one.
	Predicted []Prediction

	Before, After *Diagnosis
	Delta         *Delta // nil before the verdict
	Canary        *Canary
	Downtime      time.Duration // from the last answer before the change to the first after it
	Failure       string        // why it could not be made, or did not last; "" where it was
	// Load lists what differed in the traffic before and after, in words: the
	// delta is not of the change alone where there is anything.
	Load []string
}

// Point is one window as charts draw it. Latencies are in seconds, rates per
// second, usages 0..1. What a window does not have is absent.
type Point struct {
	T          time.Duration // end of the window
	Iteration  int           // configuration that ran: 0 the first
	Tokens     stat.Opt      // output tokens per second
	Prompt     stat.Opt      // prompt tokens per second
	Requests   stat.Opt      // finished per second
	Running    stat.Opt
	Waiting    stat.Opt
	KV         stat.Opt // peak
	TTFT, ITL  stat.Opt // p99
	GPU, Power stat.Opt // utilisation; watts of all GPUs
	Preempted  stat.Opt // per second
}

// Mark is something that a time chart marks.
type Mark struct {
	T    time.Duration
	Kind MarkKind
	Text string
}

// MarkKind says what is marked.
type MarkKind uint8

// Kinds of marks.
const (
	MarkDown    MarkKind = iota // the server stopped answering
	MarkUp                      // it answers again
	MarkChange                  // with other settings
	MarkMeasure                 // a measurement began
	MarkVerdict
)

// Level says how grave an entry of the journal is.
type Level uint8

// Levels.
const (
	LevelInfo Level = iota
	LevelGood
	LevelWarn
	LevelBad
)

// Entry is one line of the journal.
type Entry struct {
	Seq   int
	T     time.Duration
	Level Level
	Kind  EventKind // "" where no event stands behind it
	Noted bool      // the session's word (see Noted): what became of a report
	Text  string
}

// Trial is a change that is being measured: looked at after fixed times, each time
// with a narrower interval.
type Trial struct {
	Iteration int
	Looks     []time.Duration // when it is looked at, since the measurement began
	Measured  time.Duration   // by now
	// Results are the intervals of the looks so far, oldest first.
	Results   []verdict.Result
	Predicted []Prediction // of the change, nil where nothing was predicted
}

// Pending is what an automatic run is about to do, and when. The zero Pending is
// nothing.
type Pending struct {
	Text string        // in a sentence
	At   time.Duration // since the run began
}

// Limits are how far an automatic run may go, with what is used up.
type Limits struct {
	Restarts    int           // at most, ways back among them; 0 is no limit
	Downtime    time.Duration // at most, in all; 0 is no limit
	From, To    time.Duration // time of day between which it may restart; equal is always
	Allow       []string      // flags that it may change; nil is all that do not change answers
	UsedStarts  int
	UsedOutages time.Duration
}

// Score is how well predictions of the goal held.
type Score struct {
	Made   int // predictions whose outcome was measured
	Within int // outcomes between low and high
	// Error is the median of |(1+measured)/(1+mid) - 1|, a ratio: by how much what came
	// was off what was to come; absent without any.
	Error stat.Opt
}
