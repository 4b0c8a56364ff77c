package engine

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Action is something to be done: one of the types of this file.
type Action interface{ action() }

// Attach asks to find the server and to learn what can be known of it, After some
// time. Attached or AttachFailed answers.
type Attach struct{ After time.Duration }

// Apply asks to restart the server with changes made to the launch that it runs
// with. Applied answers. It is only asked for after an explicit yes.
type Apply struct {
	Changes []Change
	Revert  bool // these changes undo others: the kept launch is to run again, exactly
	// Iteration is the number of the change, Predicted what is expected of it: both
	// are written down before anything is touched.
	Iteration int
	Predicted []Prediction
	// Answers says that the change may alter what the model answers: canary prompts
	// are asked before and after it.
	Answers bool
	// Within bounds the time from when the server that runs is told to end, or, where a
	// program restarts it, from when nobody answers, until it is up with the change; one
	// that takes longer is put back. 0 is no bound but that of a start.
	Within time.Duration
}

// Tell hands over an event for those who follow the run line by line.
type Tell struct{ Event Event }

// Finish ends the run; nothing is done after it.
type Finish struct{ Finish Finished }

func (Attach) action() {}
func (Apply) action()  {}
func (Tell) action()   {}
func (Finish) action() {}

// Change is one setting of a launch with another value. From is "" where it was
// not given, To is "" where it is to be left out, a switch that is off by default as
// well; "on" and "off" are those of switches: the bare flag, and its --no- form.
type Change struct {
	Flag string `json:"flag"`
	From string `json:"from"`
	To   string `json:"to"`
}

// EventKind is the type of an event, as interfaces.md section 5 names it.
type EventKind string

// Kinds of events.
const (
	EventAttached       EventKind = "attached"
	EventWindow         EventKind = "window"
	EventSettling       EventKind = "settling"
	EventTrial          EventKind = "trial"   // the interval so far
	EventPending        EventKind = "pending" // what an automatic run does once Took has passed
	EventWaiting        EventKind = "waiting" // what an automatic run waits for, Took at most
	EventSpread         EventKind = "spread"  // two starts of one configuration differed by Log
	EventMeasured       EventKind = "measured"
	EventDiagnosis      EventKind = "diagnosis"
	EventRecommendation EventKind = "recommendation"
	EventApplying       EventKind = "applying"
	EventServerDown     EventKind = "server-down"
	EventServerUp       EventKind = "server-up"
	EventVerdict        EventKind = "verdict"
	EventKept           EventKind = "kept"
	EventReverted       EventKind = "reverted"
	EventContinued      EventKind = "continued"
	EventPaused         EventKind = "paused"
	EventError          EventKind = "error"
	EventFinished       EventKind = "finished"
)

// Event is one step of a run, told as it happens. Which parts are set follows
// from the kind.
type Event struct {
	T         time.Duration
	Kind      EventKind
	Iteration int    // 0 is the baseline
	Text      string // in a sentence
	Target    Target
	Command   string        // launch command, redacted
	Took      time.Duration // of a start, a settling, a measurement
	Window    *Window
	Diagnosis *Diagnosis
	Advice    *Recommendation
	Change    Change
	Delta     *Delta
	// Verdict is the interval so far, of a trial under way, or that of a verdict.
	Verdict *verdict.Result
	Canary  *Canary
	// Look is the number of this look of a trial, from 1, of Looks planned ones; Next is
	// how much longer it is measured until the one after it, 0 where none follows.
	Look, Looks int
	Next        time.Duration
	// Log is the difference of the logarithm of output tokens per second of a spread.
	Log      stat.Opt
	Finished *Finished
	// Steps and StepsBack say, with a recommendation of a dry run, what would be done
	// to make the change and to take it back, one step each.
	Steps, StepsBack []string
	// Opened is the change that is to be judged, of a settling; nil where the kept
	// configuration settles.
	Opened *Iteration
}

// Finished is how a run ended.
type Finished struct {
	ExitCode int    // interfaces.md section 2
	Reason   string // in a sentence
	Command  string // launch command of the best configuration, redacted; "" unknown
	// Gain is the change of output tokens per second from the first baseline to the
	// best configuration, a ratio, as the verdicts on the kept changes compound;
	// absent where the load explains one of them. GainWithin is its interval, where
	// GainKnown.
	Gain       stat.Opt
	GainWithin verdict.Interval
	GainKnown  bool
	Restarts   int
	Downtime   time.Duration // in which the server did not answer because of changes
	Remains    []FindingID   // significant findings of the last diagnosis
	Score      Score         // of the predictions of this run
	Limits     Limits        // how far an automatic run was allowed to go, and how far it went
}
