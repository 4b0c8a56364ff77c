package loop

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/facts"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Input is an event for the loop: one of the types of this file.
type Input interface{ input() }

// Begin starts a loop. It must be the first input.
type Begin struct{}

// Attached is the reply to Attach if a server answers, with the facts of the server that do not
// come from its page.
type Attached struct {
	Target  engine.Target
	Inputs  facts.Inputs // Page and Devices are taken from the samples
	Missing []engine.Missing
	Notes   []string
	GPUWhy  string // why no GPU is readable, or ""
	// Identity identifies this start of the server by its launch process and the start time of
	// that. It is "" if the process is unreadable; start time and counters are used instead.
	Identity string
	// CanApply and CannotApply override those of the plan, because they depend on the server
	// that was found.
	CanApply    bool
	CannotApply string
}

// AttachFailed is the reply to Attach if there is no readable server. The loop keeps trying.
type AttachFailed struct {
	Why      string
	Starting bool `json:",omitempty"` // a process of the server runs but does not listen yet
	WayCut   bool `json:",omitempty"` // what leads to the server does not answer, which says nothing about the server
}

// Sampled delivers one tick of collection.
type Sampled struct{ Sample *engine.Sample }

// Observed delivers the state of the server's processes, about every two seconds.
type Observed struct {
	Processes []Process
	Problems  []string // processes that failed, in words
	// OthersCPU is the share, 0..1, of the time of the CPU cores that the server may use, which other
	// programs used since the previous reading; absent at the first one, or if unreadable.
	OthersCPU stat.Opt
	Err       string // why nothing could be read
}

// Applied is the reply to Apply: the server was started with the changes, or the error.
type Applied struct {
	Err string
	// Back means that, despite the error, the server runs as before the change: there is
	// nothing to revert.
	Back bool
	// Untouched means that the error occurred before the server was touched: it was not
	// restarted.
	Untouched bool
	// Late means that the start was aborted because it took longer than Apply.Within.
	Late bool
	// Ended is set for a revert: why the previous server had exited by itself, from its log. It
	// is "" if the server was running, or if the reason is unknown.
	Ended string
	// AnswerCheck is the comparison of answers, for a change that may alter them; nil if none was made.
	AnswerCheck *AnswerCheck `json:"Canary"` // its name in recordings
}

// AnswerCheck compares the greedily decoded answers to a fixed set of prompts before and after a
// change.
type AnswerCheck struct {
	Prompts int // prompts sent both times
	Same    int // identical answers
	// Drift is the mean absolute difference of the log probabilities of the tokens up to the
	// first difference; absent if the server reports none.
	Drift stat.Opt
	Why   string // why nothing can be compared, or ""
}

// CanaryStarted is the reply to StartCanary: the canary takes requests.
type CanaryStarted struct {
	Name   string // of the canary: "pod vllm-canary-x7k2"
	Others int    // servers beside it that are measured, at least 1
}

// CanarySampled delivers one tick of collection from the canary, or from a server beside it.
type CanarySampled struct {
	Server int // 0 is the canary, 1 to Others are those beside it
	Sample *engine.Sample
}

// CanaryEnded is the reply to EndCanary, or says that the canary did not start or can no longer be compared.
// The canary is gone, unless Left is set.
type CanaryEnded struct {
	Err    string // why it ended, "" if EndCanary asked for it
	Failed bool   // the canary itself does not serve with its change; otherwise Err says nothing about the change
	Left   bool   // it could not be removed, and Err says why
}

// Noted records something that the session did, such as a report that was written or a file
// that could not be.
type Noted struct {
	Text string
	Bad  bool
	Warn bool `json:",omitempty"` // it affects the measurement, so it is an event too
}

// Ticked reports that a second passed without another input, so that ages and waiting times
// are updated.
type Ticked struct{}

// Pressed is a command entered by the user.
type Pressed struct{ Command Command }

func (Begin) input()         {}
func (Attached) input()      {}
func (AttachFailed) input()  {}
func (Sampled) input()       {}
func (Observed) input()      {}
func (Applied) input()       {}
func (CanaryStarted) input() {}
func (CanarySampled) input() {}
func (CanaryEnded) input()   {}
func (Noted) input()         {}
func (Ticked) input()        {}
func (Pressed) input()       {}

// Command is a request that the user can make of the loop.
type Command uint8

// Commands.
const (
	CommandApply     Command = iota // make the recommended change
	CommandRevert                   // restore the configuration before the change
	CommandContinue                 // accept the running configuration as the new baseline
	CommandSkip                     // recommend another change
	CommandUnskip                   // offer the change that was skipped last again
	CommandRemeasure                // measure the running configuration again
	CommandPause                    // stop reading the server, or resume
	CommandHold                     // pause the autopilot before its next action, or resume it
	CommandQuit
	NumCommands
)

// Process is the latest reading of one process of the server's tree.
type Process struct {
	PID, PPID int
	Role      string // api-server, engine-core, worker, launcher, ...
	Name      string
	State     string        // the scheduler's letter: R, S, D, T, Z
	Age       time.Duration // since its start
	// CPU is the number of cores used since the previous reading. RunWait is the share of time
	// that its threads were runnable but not running. Both are absent at the first reading.
	CPU, RunWait stat.Opt
	RSSBytes     int64
	Threads      int
}
