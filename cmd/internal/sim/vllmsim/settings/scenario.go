package settings

import (
	"slices"
	"strconv"
	"time"

	"gopkg.in/yaml.v3"
)

// Scenario is one case on one pair of model and hardware. A file has the fields that all pairs of a case share, and
// those in which a pair differs.
type Scenario struct {
	Name  string `yaml:"name"`  // "slot-capped/8b-a100": the case's name and the pair's; in a file the case's alone
	Case  string `yaml:"case"`  // "S2"
	Story string `yaml:"story"` // description of what happens
	Note  string `yaml:"note"`  // remark about this pair, may be ""
	// Server is the complete launch command.
	Server string `yaml:"server"`
	GPU    string `yaml:"gpu"` // catalog name of the hardware
	GPUs   int    `yaml:"-"`   // GPUs of the machine; 0 is as many as the server uses
	// Startup is the time from the start until the server is healthy; negative means that the
	// simulator computes it from weights and graph capture.
	Startup time.Duration `yaml:"startup"`
	Load    []Stream      `yaml:"load"`
	Faults  []Fault       `yaml:"faults"`
	// Restarts are the times of restarts with unchanged flags, since the server became healthy.
	Restarts []time.Duration `yaml:"restarts"`
	Measure  Measure         `yaml:"measure"`
	Truth    Truth           `yaml:"truth"`
	Remedy   Change          `yaml:"remedy"`
	Wrong    Change          `yaml:"wrong"`
	// Gap is why rooftop is known to diagnose this scenario wrongly; "" if it is not. A known miss
	// still counts as a miss.
	Gap string `yaml:"gap"`

	File string `yaml:"-"` // source file
	Line int    `yaml:"-"` // line of the pair in File
}

// Measure is the time of rooftop's measurement, since the server became healthy.
type Measure struct {
	After time.Duration `yaml:"after"` // the load's warm-up
	For   time.Duration `yaml:"for"`   // at least 8 s
}

// Stream is one kind of client, described like a load of `rooftop load`. Streams run concurrently.
type Stream struct {
	Name   string  `yaml:"name"`   // in metrics "name.ttft_p99_s"; "" where there is one
	Phases []Phase `yaml:"phases"` // all open (rate) or all closed (users)
	// CV is the coefficient of variation of the gaps in an open loop: 1, the default, is Poisson.
	CV       float64       `yaml:"cv"`
	Prompt   Lengths       `yaml:"prompt"` // tokens, including the shared prefix; for a conversation, its first turn
	Output   Lengths       `yaml:"output"` // tokens
	Prefix   Prefix        `yaml:"prefix"`
	Turns    int           `yaml:"turns"`    // of one conversation; 0 means 1
	Think    time.Duration `yaml:"think"`    // between an answer and the next request of a user or conversation
	Cancel   float64       `yaml:"cancel"`   // share of requests that the client cancels in the middle, 0..1
	Deadline time.Duration `yaml:"deadline"` // after which a client cancels; 0 means never
	Adapters []string      `yaml:"adapters"` // requested LoRA adapters, equally likely; none means the base model
}

// Phase is a part of a load with a constant or linearly changing level.
type Phase struct {
	For   time.Duration `yaml:"for"`   // 0 means to the end of the run
	Rate  float64       `yaml:"rate"`  // open loop: requests per second
	Users int           `yaml:"users"` // closed loop: requests in flight
	To    float64       `yaml:"to"`    // level at the end of the phase; if absent, the same
}

// Closed reports whether the stream is a closed loop of users.
func (s *Stream) Closed() bool {
	return slices.ContainsFunc(s.Phases, func(p Phase) bool { return p.Users > 0 })
}

// Prefix is a prefix that prompts share.
type Prefix struct {
	Tokens int `yaml:"tokens"`
	Groups int `yaml:"groups"` // number of different prefixes; 0 means 1
}

// Truth is the correct diagnosis, known from the construction of the scenario.
type Truth struct {
	// Outcomes are the correct outcomes, as named in the diagnosis.
	Outcomes Words `yaml:"outcome"`
	// Findings lists the findings of which one must be ranked first among those that fired; empty if
	// no finding needs to fire.
	Findings Words `yaml:"finding"`
	// Kinds lists the correct kinds of recommendation; empty if none is required.
	Kinds Words `yaml:"kind"`
	Flags Words `yaml:"flag"` // correct flags, of which one suffices; empty if no flag is correct
	// Doubt is the text that the reason of the outcome not-evaluable must contain, if that outcome is
	// correct.
	Doubt string `yaml:"doubt"`
}

// Change is a variant of the scenario with its expected effects.
type Change struct {
	Set    Flags    `yaml:"set"`    // flags with their new values
	Drop   Words    `yaml:"drop"`   // removed flags
	Load   []Stream `yaml:"load"`   // another load; empty means the same
	Mend   bool     `yaml:"mend"`   // remove faults and restarts
	Expect []Expect `yaml:"expect"` // all must be met
	Why    string   `yaml:"why"`    // mechanism of the effect
}

// Flag is one engine argument.
type Flag struct{ Name, Value string }

// Flags are engine arguments in the order of their file, where they are a mapping.
type Flags []Flag

// UnmarshalYAML implements [yaml.Unmarshaler].
func (f *Flags) UnmarshalYAML(n *yaml.Node) error {
	*f = nil
	for i := 0; i+1 < len(n.Content); i += 2 {
		*f = append(*f, Flag{n.Content[i].Value, n.Content[i+1].Value})
	}
	return nil
}

// Words is a list of words; a single word needs no brackets.
type Words []string

// UnmarshalYAML implements [yaml.Unmarshaler].
func (w *Words) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.ScalarNode {
		*w = Words{n.Value}
		return nil
	}
	return n.Decode((*[]string)(w))
}

// Empty reports whether the change has no effect on the scenario.
func (c *Change) Empty() bool {
	return len(c.Set) == 0 && len(c.Drop) == 0 && len(c.Load) == 0 && !c.Mend
}

// Arguments returns the simulated server's arguments for a launch command of the scenario, which may be a
// changed one: vLLM's arguments, then the hardware and the start-up time. They do not include faults.
func (s *Scenario) Arguments(command []string) []string {
	const program = 2 // "vllm serve", which Parse has checked
	args := append(slices.Clone(command[program:]), "--sim-gpu", s.GPU)
	if s.GPUs > 0 {
		args = append(args, "--sim-gpus", strconv.Itoa(s.GPUs))
	}
	if s.Startup >= 0 {
		args = append(args, "--sim-startup-time", s.Startup.String())
	}
	return args
}
