package catalog

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// Engine is an inference server that rooftop reads and changes: its name and its names for the settings
// that engines share, and its arguments and metrics by release. The settings are named as vLLM's arguments
// ("max_num_seqs"), whatever the engine calls them.
type Engine struct {
	ID   string `yaml:"id"`   // "vllm"
	Name string `yaml:"name"` // "vLLM"
	// Families are the prefixes of its metric families, the usual one first.
	Families []string `yaml:"families"`
	// Words are the words and facts of rooftop's sentences, which are written for vLLM, in this engine's
	// terms. The first that matches applies.
	Words []Word `yaml:"words"`
	// Rules say how this engine does what a rule looks for, by the id of the finding.
	Rules map[string]RuleNote `yaml:"rules"`
	// Divided is the setting of the KV pool that the engine divides among its slots, so that it has to grow with
	// them, and Shared the switch with which they share it; "" for an engine whose slots always do.
	Divided string `yaml:"divided"`
	Shared  string `yaml:"shared"`
	// PoolVariable is the environment variable that sets the size of the KV pool on a CPU, "" if none does.
	PoolVariable string `yaml:"pool_variable"`
	// ByteCache is the value of the KV cache's data type with which it takes one byte, "" if there is none.
	ByteCache string `yaml:"byte_cache"`
	// StaleGauges say when the running gauge of an idle server may be old.
	StaleGauges StaleGauges `yaml:"stale_gauges"`

	flags   func() flagTable
	metrics func() []Metric
	once    sync.Once
	speller *speller // set by once
}

// StaleGauges are the releases of an engine whose gauge of running requests may be old while no step is made.
type StaleGauges struct {
	Before string        `yaml:"before"`  // the release from which it is not; "" for an engine without such a release
	AtMost time.Duration `yaml:"at_most"` // how old it gets; 0: until the next step
	Cached bool          `yaml:"cached"`  // pages that count cached prompt tokens are of newer releases
	Pool   bool          `yaml:"pool"`    // the usage of the pool is exact, and newer than such a gauge
}

// Word is a phrase of rooftop's sentences and its replacement for this engine.
type Word struct {
	From string `yaml:"from"`
	To   string `yaml:"to"`
}

// RuleNote is what is particular about a rule on one engine.
type RuleNote struct {
	// Lacks is the input that this engine does not give, so that the rule is not evaluable; "" if it is.
	Lacks string `yaml:"lacks"`
	// How is one sentence: the mechanism that makes the finding true on this engine.
	How string `yaml:"how"`
}

// VLLM is the ID of vLLM, the engine of everything that names none: recordings before there were several.
const VLLM = "vllm"

// LlamaCPP is the ID of llama.cpp's server.
const LlamaCPP = "llamacpp"

// engines are the embedded engines, in the order in which a page is tried.
var engines = sync.OnceValue(func() []*Engine { return []*Engine{newEngine(VLLM), newEngine("sglang"), newEngine(LlamaCPP)} })

// newEngine returns the engine of embedded files: NAME.yaml, NAME-flags.yaml and NAME-metrics.yaml.
func newEngine(id string) *Engine {
	g := new(Engine)
	load(id, g)
	g.flags = sync.OnceValue(func() flagTable { return newFlagTable(loaded[flagFile](id + "-flags")) })
	g.metrics = sync.OnceValue(func() []Metric { return loaded[struct{ Metrics []Metric }](id + "-metrics").Metrics })
	return g
}

// Engines returns every engine, vLLM first.
func Engines() []*Engine { return slices.Clone(engines()) }

// EngineOf returns an engine by its ID, vLLM for "" and for an unknown one.
func EngineOf(id string) *Engine {
	for _, g := range engines() {
		if g.ID == id {
			return g
		}
	}
	return engines()[0]
}

// Argument returns the engine's name for a setting ("max_num_seqs"); ok is false if it has no such
// argument. An inverted argument turns the setting off.
func (g *Engine) Argument(setting string) (name string, inverted, ok bool) {
	if g.ID == VLLM {
		return setting, false, true
	}
	t := g.flags()
	i, ok := t.bySetting[setting]
	if !ok {
		return "", false, false
	}
	return t.Flags[i].Name, t.Flags[i].Inverted, true
}

// Flag returns the flag of a setting as on the command line, "--max-num-seqs"; "" if the engine has none.
func (g *Engine) Flag(setting string) string {
	name, _, ok := g.Argument(setting)
	if !ok {
		return ""
	}
	return "--" + strings.ReplaceAll(name, "_", "-")
}

// Canonical returns the setting of an argument and its value as vLLM would have it; an argument that only
// this engine has is its own setting.
func (g *Engine) Canonical(argument, value string) (setting, canonical string) {
	e, ok := g.flags().find(argument)
	if g.ID == VLLM || !ok || e.Setting == "" {
		return argument, value
	}
	if e.Inverted {
		value = map[string]string{"true": "false", "false": "true"}[strings.ToLower(value)]
	}
	return e.Setting, value
}

// Default returns the default of a setting as [Engine.FlagDefault] does, as vLLM would have it.
func (g *Engine) Default(setting, version string, hw Hardware) (value, note string, ok bool) {
	name, _, ok := g.Argument(setting)
	if !ok {
		return "", g.Name + " has no such setting", false
	}
	value, note, ok = g.FlagDefault(name, version, hw)
	_, value = g.Canonical(name, value)
	return value, note, ok
}

// SettingOf returns the setting of a flag of any engine ("--max-num-seqs"), the flag's own name if engines
// do not share it, and whether the flag turns it off.
func SettingOf(flag string) (setting string, inverted bool) {
	name := strings.ReplaceAll(strings.TrimLeft(flag, "-"), "-", "_")
	for _, g := range engines()[1:] {
		if e, ok := g.flags().find(name); ok && e.Setting != "" {
			return e.Setting, e.Inverted
		}
	}
	return name, false
}

// ChangesAnswers reports whether another value of a flag may change the model's answers to the same
// prompt. For a flag that several engines have, one that says so is enough. It returns true for an unknown
// flag.
func ChangesAnswers(flag string) bool {
	known := false
	for _, g := range engines() {
		if g.has(flag) {
			if known = true; g.ChangesAnswers(flag) {
				return true
			}
		}
	}
	return !known
}
