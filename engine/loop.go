package engine

import "time"

// Loop is the closed loop as a machine without a clock: attach, measure, name one
// change, wait for it or have it made, let the server settle, measure again,
// compare, keep or go back, and on to the next. Inputs come in with their time;
// out come a snapshot to look at and actions to perform, whose results come back as
// inputs. The same inputs give the same snapshots and actions. It is not safe for
// concurrent use; the snapshots that it hands out are never touched again.
type Loop struct {
	plan LoopPlan
	now  Snapshot
}

// LoopPlan is what a loop is started with.
type LoopPlan struct {
	Started time.Time // wall clock at time 0
	Version string    // of rooftop
	Rules   []Rule
	// Measure is the length of one measurement, at least four windows.
	Measure time.Duration
	// Watch says what is looked for while no server answers: "http://localhost:8000".
	Watch string
	// Hands says whether rooftop can change this server itself; NoHands is why not,
	// in a sentence. Without hands the loop waits for the engineer to restart it.
	Hands   bool
	NoHands string
	// Auto needs no keys: it applies what is recommended, keeps what is better and
	// puts back what is not, and ends when nothing is left. It needs Hands.
	Auto bool
	// Rounds bounds the changes of an Auto loop; 0 is no bound.
	Rounds int
}

// NewLoop returns a loop that has not begun.
func NewLoop(p LoopPlan) *Loop { return &Loop{plan: p} }

// Step takes one input at its time, which never runs backwards, and returns what
// to do about it, in order. Before the first input, Begin starts it.
func (l *Loop) Step(now time.Duration, in Input) []Action { return nil }

// Snapshot is the loop as of the last step. It is immutable.
func (l *Loop) Snapshot() *Snapshot { s := l.now; return &s }
