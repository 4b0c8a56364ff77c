package scenarios

import (
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/settings"
)

// Scenario is one case on one pair of model and hardware.
type Scenario struct {
	Name  string // "seat-capped/8b-a100": the case's name and the pair's
	Case  string // "S2"
	Story string // what happened, for a person
	Note  string // what is special on this pair, "" nothing
	// Server is the whole launch command as an operator would write it.
	Server string
	GPU    string // catalog name of the hardware
	// Startup is the time from the start to health; negative is the simulator's
	// own, from weights and graph capture.
	Startup time.Duration
	Load    []Stream
	Faults  []settings.Fault
	// Restarts are restarts of the server with unchanged flags, since it became
	// healthy.
	Restarts []time.Duration
	Measure  Measure
	Truth    Truth
	Remedy   Change
	Wrong    Change
	// Gap says why rooftop is known to answer this scenario wrongly; "" where it
	// is not. A known miss is a miss.
	Gap string

	File string // it was read from
	Line int    // of its pair
}

// Measure says when rooftop measures, since the server became healthy.
type Measure struct {
	After time.Duration `yaml:"after"` // the load's warm-up
	For   time.Duration `yaml:"for"`   // at least 8 s
}

// Stream is one kind of client, in the terms of `rooftop load`. Streams run side
// by side.
type Stream struct {
	Name   string  `yaml:"name"`   // in metrics "name.ttft_p99_s"; "" where there is one
	Phases []Phase `yaml:"phases"` // all open (rate) or all closed (users)
	// CV is the variation of the gaps of an open loop: 1, the default, is Poisson.
	CV       float64       `yaml:"cv"`
	Prompt   Lengths       `yaml:"prompt"` // tokens, the shared prefix included; of a session, its first turn
	Output   Lengths       `yaml:"output"` // tokens
	Prefix   Prefix        `yaml:"prefix"`
	Turns    int           `yaml:"turns"`    // of one conversation; 0 is 1
	Turn     Lengths       `yaml:"turn"`     // tokens that a later turn adds; absent: as the first
	Think    time.Duration `yaml:"think"`    // between an answer and the next request of a user or conversation
	Cancel   float64       `yaml:"cancel"`   // share of requests whose client goes away in the middle, 0..1
	Deadline time.Duration `yaml:"deadline"` // after which a client goes away; 0 never
	Adapters []string      `yaml:"adapters"` // LoRA adapters asked for, equally; none is the base model
}

// Phase is a stretch of time at one level, or on the way from one to another.
type Phase struct {
	For   time.Duration `yaml:"for"`   // 0: to the end of the run
	Rate  float64       `yaml:"rate"`  // open loop: requests per second
	Users int           `yaml:"users"` // closed loop: requests in flight
	To    float64       `yaml:"to"`    // level at the end of the phase; absent: the same
}

// Closed says that the stream is a closed loop of users.
func (s *Stream) Closed() bool {
	for _, p := range s.Phases {
		if p.Users > 0 {
			return true
		}
	}
	return false
}

// Prefix is the beginning that prompts share.
type Prefix struct {
	Tokens int     `yaml:"tokens"`
	Groups int     `yaml:"groups"` // different ones; 0 is 1
	Zipf   float64 `yaml:"zipf"`   // the i-th is as likely as 1/i^zipf; 0 is equally
}

// Truth is the diagnosis that is right, known from how the scenario was made.
type Truth struct {
	// Outcomes that are right, in the words of the diagnosis.
	Outcomes []string `yaml:"outcome"`
	// Findings of which one must be ranked first among those that fired; none
	// where nothing needs to fire.
	Findings []string `yaml:"finding"`
	// Kinds of recommendation that are right; none where none is asked for.
	Kinds []string `yaml:"kind"`
	Flags []string `yaml:"flag"` // flags of which one is right; none where no flag is
	// Doubt is what the doubt of the outcome not-evaluable has to name, where that
	// outcome is right.
	Doubt string `yaml:"doubt"`
}

// Change is a variant of the scenario and what must come of it.
type Change struct {
	Set    []Flag   `yaml:"set"`    // flags with their new values
	Drop   []string `yaml:"drop"`   // flags taken away
	Load   []Stream `yaml:"load"`   // another load; none is the same
	Mend   bool     `yaml:"mend"`   // without the faults and restarts
	Expect []Expect `yaml:"expect"` // every one must hold
	Why    string   `yaml:"why"`    // by which mechanism
}

// Flag is one engine argument.
type Flag struct{ Name, Value string }

// Empty says that a change changes nothing.
func (c *Change) Empty() bool {
	return len(c.Set) == 0 && len(c.Drop) == 0 && len(c.Load) == 0 && !c.Mend
}

// Arguments returns what the simulated server takes for the scenario with a
// launch command of it, a changed one perhaps: vLLM's own arguments, then the
// hardware and the start-up time. Faults are not among them.
func (s *Scenario) Arguments(command []string) []string {
	const program = 2 // "vllm serve", which Parse makes sure of
	args := append(slices.Clone(command[program:]), "--sim-gpu", s.GPU)
	if s.Startup >= 0 {
		args = append(args, "--sim-startup-time", s.Startup.String())
	}
	return args
}
