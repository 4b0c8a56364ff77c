package catalog

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Hardware is the information that hardware-dependent defaults are derived from. Zero fields are
// unknown.
type Hardware struct {
	Device    string  // "cuda", "rocm" or "cpu"
	VRAMGiB   float64 // memory of one GPU
	GPUName   string
	WorldSize int  // tensor- times pipeline-parallel ranks
	V0        bool // the V0 engine, which 0.11 removed
	APIServer bool // an OpenAI-compatible server, not the offline LLM class
}

// Flag is one argument of an engine.
type Flag struct {
	Name string `yaml:"name"` // "max_num_seqs"
	// Setting is what the argument sets, "" if only this engine has it. vLLM's arguments are
	// their own settings.
	Setting string `yaml:"setting"`
	// Inverted marks a switch that turns its setting off: --disable-radix-cache.
	Inverted bool `yaml:"inverted"`
	// Since and Until are the first and last minor release that have the argument; "" means the
	// oldest and the newest release in the catalog.
	Since string `yaml:"since"`
	Until string `yaml:"until"`
	Note  string `yaml:"note"`
	// Answers reports whether the model's answers may depend on the value.
	Answers bool `yaml:"answers"`
}

type flagFile struct {
	First  release     `yaml:"first"`
	Newest release     `yaml:"newest"`
	Flags  []flagEntry `yaml:"flags"`
}

type flagEntry struct {
	Flag     `yaml:",inline"`
	Defaults []flagDefault `yaml:"defaults"`
	Rules    []flagRule    `yaml:"rules"`
}

// flagDefault is a literal default since a release. Value is "" if the default is unset, an object,
// or decided at start.
type flagDefault struct {
	From  release `yaml:"from"`
	Value string  `yaml:"value"`
}

// flagRule is one case of a default that is decided at start. Absent conditions are always met; the
// first rule with all conditions met applies.
type flagRule struct {
	Engine     string   `yaml:"engine"` // v0
	Device     string   `yaml:"device"` // cpu, gpu
	MinVRAMGiB float64  `yaml:"min_vram_gib"`
	ExceptGPU  string   `yaml:"except_gpu"` // part of a lower-case device name
	APIServer  bool     `yaml:"api_server"`
	From       *release `yaml:"from"`
	Until      *release `yaml:"until"`

	Value    string `yaml:"value"` // "" if no number is known
	PerWorld bool   `yaml:"per_world"`
	Note     string `yaml:"note"`
}

type flagTable struct {
	flagFile
	byName    map[string]int
	bySetting map[string]int
}

func newFlagTable(f flagFile) flagTable {
	t := flagTable{f, make(map[string]int, len(f.Flags)), map[string]int{}}
	for i, e := range f.Flags {
		t.byName[e.Name] = i
		if e.Setting != "" {
			t.bySetting[e.Setting] = i
		}
	}
	return t
}

// Flags returns every engine argument in order of name.
func (g *Engine) Flags() []Flag {
	t := g.flags()
	out := make([]Flag, 0, len(t.Flags))
	for _, e := range t.Flags {
		out = append(out, e.Flag)
	}
	slices.SortFunc(out, func(a, b Flag) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// find returns the entry of an argument, given with underscores or as on the command line, also in
// the negative form of a switch.
func (t flagTable) find(flag string) (flagEntry, bool) {
	name := strings.ReplaceAll(strings.ToLower(strings.TrimLeft(flag, "-")), "-", "_")
	i, ok := t.byName[name]
	if !ok {
		i, ok = t.byName[strings.TrimPrefix(name, "no_")]
	}
	if !ok {
		return flagEntry{}, false
	}
	return t.Flags[i], true
}

// resolve returns the release of a version, at most the newest that the table covers. The note says
// which release the data are from if it is another.
func (t flagTable) resolve(version string) (release, string) {
	r, ok := parseRelease(version)
	switch {
	case !ok:
		return t.Newest, fmt.Sprintf("version %q unknown: as in %s", version, t.Newest)
	case r.compare(t.Newest) > 0:
		return t.Newest, fmt.Sprintf("as in %s, the newest release read", t.Newest)
	case r.compare(t.First) < 0:
		return r, fmt.Sprintf("as in %s, the oldest release read", t.First)
	}
	return r, ""
}

// FlagKnown reports whether a release of the engine has the argument ("max_num_seqs"). note is the
// first or last release that has it, or the release whose data were used for an unknown version.
// The arguments of the front end (host, API key) are not in the catalog and not known.
func (g *Engine) FlagKnown(flag, version string) (known bool, note string) {
	t := g.flags()
	e, ok := t.find(flag)
	if !ok {
		return false, "not an engine argument of " + g.Name + " " + t.First.String() + " to " + t.Newest.String()
	}
	r, note := t.resolve(version)
	if since, ok := parseRelease(e.Since); ok && r.compare(since) < 0 {
		return false, join(note, "since "+e.Since)
	}
	if until, ok := parseRelease(e.Until); ok && r.compare(until) > 0 {
		return false, join(note, "removed after "+e.Until)
	}
	return true, note
}

// has reports whether some release of the engine has a flag, or rooftop proposes to change it.
func (g *Engine) has(flag string) bool {
	head, _, _ := strings.Cut(strings.TrimLeft(flag, "-"), ".")
	_, ok := g.flags().find(head)
	return ok || g.ID == VLLM && strings.ReplaceAll(head, "_", "-") == apiServers
}

// ChangesAnswers reports whether another value of an engine argument may change the model's answers
// to the same prompt. The argument is given as "kv_cache_dtype", "--kv-cache-dtype", or a field of
// one, "speculative_config.model". It returns true for an unknown argument.
func (g *Engine) ChangesAnswers(flag string) bool {
	head, _, _ := strings.Cut(strings.TrimLeft(flag, "-"), ".")
	if strings.ReplaceAll(head, "_", "-") == apiServers {
		return false
	}
	e, ok := g.flags().find(head)
	return !ok || e.Answers
}

// apiServers is the only argument of the front end that rooftop proposes to change; the catalog has
// only engine arguments.
const apiServers = "api-server-count"

func join(notes ...string) string {
	return strings.Join(slices.DeleteFunc(notes, func(s string) bool { return s == "" }), "; ")
}

// FlagDefault returns the default of an argument in a release of the engine on some hardware, as
// text ("256", "0.92", "true", "auto"). ok is false if the release lacks the argument, if the
// default is unset, or if it depends on something unknown in hw; note is the reason.
func (g *Engine) FlagDefault(flag, version string, hw Hardware) (value, note string, ok bool) {
	t := g.flags()
	e, found := t.find(flag)
	known, note := g.FlagKnown(flag, version)
	if !found || !known {
		return "", note, false
	}
	r, _ := t.resolve(version)
	for _, rule := range e.Rules {
		applies, missing := rule.applies(r, t.First, hw)
		if missing != "" {
			return "", join(note, "the default depends on "+missing+", which is unknown"), false
		}
		if !applies {
			continue
		}
		return rule.result(hw, join(note, rule.Note, e.Note))
	}
	for _, d := range slices.Backward(e.Defaults) {
		if r.compare(d.From) >= 0 || d.From == t.First {
			value = d.Value
			break
		}
	}
	if value == "" {
		return "", join(note, cmp.Or(e.Note, "unset by default")), false
	}
	return value, join(note, e.Note), true
}

// applies reports whether the rule's conditions are met. missing is the hardware information that
// is needed to decide but unknown.
func (rule flagRule) applies(r, first release, hw Hardware) (ok bool, missing string) {
	// V1 became the default engine in 0.8.
	v0 := hw.V0 && r.compare(release{0, 11}) < 0 || r.compare(first) < 0
	cpu := hw.Device == "cpu"
	gpu := hw.Device == "cuda" || hw.Device == "rocm" || hw.Device == "" && hw.VRAMGiB > 0
	switch {
	case rule.Engine == "v0" && !v0,
		rule.From != nil && r.compare(*rule.From) < 0,
		rule.Until != nil && r.compare(*rule.Until) > 0,
		rule.APIServer && !hw.APIServer:
		return false, ""
	case rule.Device == "":
		return true, ""
	case !cpu && !gpu && hw.Device != "":
		return false, fmt.Sprintf("the device, and %q has no rule here", hw.Device)
	case !cpu && !gpu:
		return false, "the device"
	case rule.Device == "cpu":
		return cpu, ""
	case !gpu:
		return false, ""
	case rule.MinVRAMGiB == 0:
		return true, ""
	case hw.VRAMGiB <= 0:
		return false, "the memory of the GPU"
	case hw.VRAMGiB < rule.MinVRAMGiB:
		return false, ""
	case rule.ExceptGPU == "":
		return true, ""
	// No A100 has more than 80 GiB, so a name is not needed above that.
	case hw.GPUName == "" && hw.VRAMGiB < 85:
		return false, "the name of the GPU"
	}
	return !strings.Contains(strings.ToLower(hw.GPUName), rule.ExceptGPU), ""
}

// result returns the default that a rule gives, like FlagDefault.
func (rule flagRule) result(hw Hardware, note string) (string, string, bool) {
	if rule.Value == "" {
		return "", note, false
	}
	if !rule.PerWorld {
		return rule.Value, note, true
	}
	each, err := strconv.Atoi(rule.Value)
	if err != nil || hw.WorldSize < 1 {
		return "", join("the default depends on the number of ranks, which is unknown", note), false
	}
	return strconv.Itoa(each * hw.WorldSize), note, true
}
