// Package loop implements the closed loop: attach, measure, recommend, change, measure again,
// keep or revert. It has no clock: inputs carry their time, and it returns actions and
// immutable snapshots.
package loop

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// Action is a request to the program that runs the loop: one of the types of this file.
type Action interface{ action() }

// Attach asks for the server to be found and its facts to be read, after a delay. The reply is
// Attached or AttachFailed.
type Attach struct{ After time.Duration }

// Apply asks for a restart of the server with changes to its running launch. The reply is
// Applied. It is issued only after explicit consent.
type Apply struct {
	Changes []engine.Change
	Revert  bool // the changes undo others: run the kept launch again, unmodified
	// Iteration is the number of the change, Predicted its predicted effect. Both are recorded
	// before the server is touched.
	Iteration int
	Predicted []engine.Prediction
	// Answers marks a change that may alter the model's answers: a fixed set of prompts is sent
	// before and after it.
	Answers bool
	// Within bounds the time from the signal that stops the server (from the first missing
	// answer if a program restarts it) until it is up with the change. A slower start is
	// reverted. 0 sets no bound beyond that of any start.
	Within time.Duration
}

// StartCanary asks for one more copy of the server with changes, beside the others and under the same
// traffic; the server stays as it is. The replies are CanaryStarted or CanaryEnded. It is issued only after
// explicit consent.
type StartCanary struct {
	Changes   []engine.Change
	Iteration int
	Predicted []engine.Prediction
}

// EndCanary asks for the end of the canary. The reply is CanaryEnded.
type EndCanary struct{}

// Emit passes an event to the output and the recording.
type Emit struct{ Event Event }

// Finish ends the run; no action follows it.
type Finish struct{ Finish Finished }

func (Attach) action()      {}
func (Apply) action()       {}
func (StartCanary) action() {}
func (EndCanary) action()   {}
func (Emit) action()        {}
func (Finish) action()      {}

// EventKind is the type of an event (docs/interfaces.md section 5).
type EventKind string

// Kinds of events.
const (
	EventAttached       EventKind = "attached"
	EventWindow         EventKind = "window"
	EventSettling       EventKind = "settling"
	EventTrial          EventKind = "trial"   // the interval so far
	EventPending        EventKind = "pending" // an automatic run's next action, once Took has passed
	EventWaiting        EventKind = "waiting" // what an automatic run waits for, for at most Took
	EventSpread         EventKind = "spread"  // difference Log between two starts of one configuration
	EventMeasured       EventKind = "measured"
	EventDiagnosis      EventKind = "diagnosis"
	EventRecommendation EventKind = "recommendation"
	EventApplying       EventKind = "applying"
	EventCanary         EventKind = "canary" // a copy of the server with the change runs beside others, or is gone
	EventServerDown     EventKind = "server-down"
	EventServerUp       EventKind = "server-up"
	EventUnhealthy      EventKind = "unhealthy" // the server is ill, as Condition says
	EventRecovered      EventKind = "recovered" // it is no longer, after Took
	EventVerdict        EventKind = "verdict"
	EventKept           EventKind = "kept"
	EventReverted       EventKind = "reverted"
	EventContinued      EventKind = "continued"
	EventPaused         EventKind = "paused"
	EventError          EventKind = "error"
	EventFinished       EventKind = "finished"
)

// Event is one step of a run, emitted when it happens. Its kind determines which fields are
// set.
type Event struct {
	T         time.Duration
	Kind      EventKind
	Iteration int    // 0 is the baseline
	Text      string // a sentence
	Target    engine.Target
	Command   string        // launch command, redacted
	Took      time.Duration // duration of a start, a settling period or a measurement
	Window    *engine.Window
	Condition engine.Condition
	Diagnosis *engine.Diagnosis
	Advice    *engine.Recommendation
	// Preliminary is why the advice of a recommendation event is not final yet, as in a
	// snapshot; "" if it is.
	Preliminary string
	Change      engine.Change
	Delta       *effect.Delta
	// Verdict is the current interval of a trial, or the final verdict.
	Verdict     *verdict.Result
	AnswerCheck *AnswerCheck
	// Look is the number of the interim look, from 1, of Looks planned ones. Next is the
	// measuring time until the next look, 0 if there is none.
	Look, Looks int
	Next        time.Duration
	// Log is the difference in the logarithm of output tokens per second, of a spread event.
	Log      stat.Opt
	Finished *Finished
	// Steps and StepsBack list, for the recommendation of a dry run, the steps to make the
	// change and to revert it.
	Steps, StepsBack []string
	// Opened is, for a settling event, the change to be judged; nil if the kept configuration
	// settles.
	Opened *Iteration
}

// Finished is the result of a run.
type Finished struct {
	ExitCode int    // docs/interfaces.md section 2
	Reason   string // a sentence
	Command  string // redacted launch command of the best configuration; "" if unknown
	// Gain is the ratio by which output tokens per second changed from the first baseline to
	// the best configuration, compounded from the verdicts on the kept changes. It is absent if
	// the load explains one of them. GainWithin is its interval, valid if GainKnown is set.
	Gain       stat.Opt
	GainWithin verdict.Interval
	GainKnown  bool
	Restarts   int
	Downtime   time.Duration      // time without an answer because of changes
	Remains    []engine.FindingID // significant findings of the last diagnosis
	Score      Score              // of the predictions of this run
	Limits     Limits             // limits of an automatic run, and how much of them was used
}
