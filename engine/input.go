package engine

import (
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Input is something that happened: one of the types of this file.
type Input interface{ input() }

// Begin starts a loop; it is its first input.
type Begin struct{}

// Attached answers Attach: a server answers, and this is what is known of it
// beside what its page will tell.
type Attached struct {
	Target  Target
	Inputs  Inputs // Page and Devices are filled in from the samples
	Missing []Missing
	Notes   []string
	GPUWhy  string // why no GPU is readable, "" where one is
	// Identity tells this run of the server from the next: launch process and its
	// start. "" where the process is not readable; start time and counters tell then.
	Identity string
	// Hands and NoHands overrule those of the plan: what can be changed depends on
	// the server that was found.
	Hands   bool
	NoHands string
}

// AttachFailed answers Attach: no server, or none that can be read. The loop goes
// on looking.
type AttachFailed struct{ Why string }

// Sampled is one tick of collection.
type Sampled struct{ Sample *Sample }

// Observed is what the server's processes are doing, about every two seconds.
type Observed struct {
	Processes []Process
	Problems  []string // processes that no longer do their part, in words
	Err       string   // why nothing could be read
}

// Applied answers Apply: the server was started with the changes, or why not.
type Applied struct {
	Err string
	// Back says that after an error the server runs as it did before the change:
	// nothing is left to be put back.
	Back bool
	// Untouched says that after an error nothing had been done to the server: it runs
	// on as it did, without a restart.
	Untouched bool
	// Late says that the start was cut short because it took longer than Apply.Within.
	Late bool
	// Ended says, of a way back, why the server that ran until then had ended by
	// itself: from its log. "" where it ran, or nothing is known.
	Ended string
	// Canary is what the answers to fixed prompts show of a change that may alter
	// them; nil where none were asked.
	Canary *Canary
}

// Canary compares the answers to a fixed set of prompts before a change and after
// it, greedily decoded.
type Canary struct {
	Prompts int // asked both times
	Same    int // answered with exactly the same text
	// Drift is the mean absolute difference of the log probabilities of the tokens
	// up to the first that differs; absent where the server gives none.
	Drift stat.Opt
	Why   string // why nothing can be compared, "" where it can
}

// Noted is something that the session did and the journal keeps: a report that
// was written, a file that could not be.
type Noted struct {
	Text string
	Bad  bool
}

// Ticked says that a second passed in which nothing else happened: what is shown
// grows older, and what waits has waited longer.
type Ticked struct{}

// Pressed is a command of the person at the keys.
type Pressed struct{ Command Command }

func (Begin) input()        {}
func (Attached) input()     {}
func (AttachFailed) input() {}
func (Sampled) input()      {}
func (Observed) input()     {}
func (Applied) input()      {}
func (Noted) input()        {}
func (Ticked) input()       {}
func (Pressed) input()      {}

// Command is what a person can tell the loop.
type Command uint8

// Commands. Quit ends the loop; during a change it first says what would be left.
const (
	CommandApply     Command = iota // make the recommended change
	CommandRevert                   // go back to the configuration before
	CommandContinue                 // take the present configuration as the new baseline
	CommandSkip                     // another recommendation, please
	CommandRemeasure                // measure the present configuration anew
	CommandPause                    // stop reading the server, or go on
	CommandHold                     // autopilot: stop before the next act, or go on
	CommandQuit
	NumCommands
)

// Process is one process of the server's tree as it was read last.
type Process struct {
	PID, PPID int
	Role      string // api-server, engine-core, worker, launcher, ...
	Name      string
	State     string        // scheduler's letter: R, S, D, T, Z
	Age       time.Duration // since it was started
	// CPU is cores used since the reading before, RunWait the share of time that
	// its threads were ready and did not run; absent at the first reading.
	CPU, RunWait stat.Opt
	RSSBytes     int64
	Threads      int
}
