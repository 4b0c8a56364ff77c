package engine

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/launch"
)

// configuration is what is known of how a server was started.
type configuration struct {
	settings map[string]Setting // nil where the launch cannot be read
	command  string             // redacted, "" unknown
	version  string             // of the engine, "" unknown
	told     []told             // what page and endpoints tell of it
	// made is what this run changed of a launch that cannot be read, each flag once,
	// from what it was before the run.
	made []Change
}

// told is one thing that a server tells of its configuration without its launch.
type told struct{ name, value string }

// configured takes a configuration from what attaching learned.
func configured(in *Inputs, f *Facts) configuration {
	return configuration{settings: in.Launch, command: in.LaunchText, version: f.EngineVersion.Value, told: tells(f)}
}

// tells lists what a server's page and endpoints say of its configuration: facts
// that come from elsewhere would not move with a restart.
func tells(f *Facts) []told {
	var out []told
	put := func(name string, from Source, known bool, value any) {
		if known && (from == FromMetrics || from == FromServer) {
			out = append(out, told{name, fmt.Sprint(value)})
		}
	}
	put("version", f.EngineVersion.Source, f.EngineVersion.Known, f.EngineVersion.Value)
	put("model", f.Model.Source, f.Model.Known, f.Model.Value)
	put("max_num_seqs", f.MaxNumSeqs.Source, f.MaxNumSeqs.Known, f.MaxNumSeqs.Value)
	put("max_model_len", f.MaxModelLen.Source, f.MaxModelLen.Known, f.MaxModelLen.Value)
	put("num_gpu_blocks", f.NumGPUBlocks.Source, f.NumGPUBlocks.Known, f.NumGPUBlocks.Value)
	put("block_size", f.BlockSize.Source, f.BlockSize.Known, f.BlockSize.Value)
	put("gpu_memory_utilization", f.GPUMemoryUtilization.Source, f.GPUMemoryUtilization.Known, f.GPUMemoryUtilization.Value)
	put("kv_cache_dtype", f.KVCacheDType.Source, f.KVCacheDType.Known, f.KVCacheDType.Value)
	put("enable_prefix_caching", f.PrefixCaching.Source, f.PrefixCaching.Known, f.PrefixCaching.Value)
	if f.Ranks > 0 {
		put("data_parallel_ranks", FromMetrics, true, f.Ranks)
	}
	return out
}

// immaterial are flags whose change leaves the server's performance alone.
var immaterial = [...]string{"--host", "--port", "--root-path", "--uds"}

// changesFrom lists what b sets differently than a, flags by name. Arguments that
// facts are made of are compared by their values; others as the launch commands
// spell them.
func changesFrom(a, b configuration) []Change {
	var out []Change
	if a.settings == nil && b.settings == nil {
		out = madeChanges(a.made, b.made)
	}
	for _, name := range LaunchNames {
		from, to := a.settings[name].Value, b.settings[name].Value
		if !sameValue(from, to) {
			out = append(out, Change{Flag: flagOf(name), From: Shown(from), To: Shown(to)})
		}
	}
	out = append(out, spelledChanges(a.command, b.command)...)
	if a.version != b.version && a.version != "" && b.version != "" {
		out = append(out, Change{Flag: "vLLM", From: a.version, To: b.version})
	}
	slices.SortStableFunc(out, func(a, b Change) int { return cmp.Compare(a.Flag, b.Flag) })
	return out
}

// spelledChanges are those of arguments and variables that no fact is made of.
func spelledChanges(a, b string) []Change {
	if a == b || a == "" || b == "" {
		return nil
	}
	was, err := launch.ParseCommand(a, nil, nil)
	if err != nil {
		return nil
	}
	is, err := launch.ParseCommand(b, nil, nil)
	if err != nil {
		return nil
	}
	var out []Change
	for _, c := range launch.Diff(was, is) {
		head, _, _ := strings.Cut(c.Name, ".")
		if !c.Variable && slices.Contains(LaunchNames[:], head) {
			continue
		}
		name := c.Name
		if !c.Variable {
			name = flagOf(c.Name)
		}
		out = append(out, Change{Flag: name, From: Shown(c.From), To: Shown(c.To)})
	}
	return out
}

// flagOf spells an argument as a flag.
func flagOf(name string) string {
	head, rest, dotted := strings.Cut(name, ".")
	flag := "--" + strings.ReplaceAll(head, "_", "-")
	if dotted {
		flag += "." + rest
	}
	return flag
}

// nameOf is the argument that a flag sets.
func nameOf(flag string) string {
	return strings.ReplaceAll(strings.TrimPrefix(flag, "--"), "-", "_")
}

// Shown spells a value of a launch as changes do: that of a switch as on or off.
func Shown(value string) string {
	switch value {
	case "true":
		return "on"
	case "false":
		return "off"
	}
	return value
}

// sameValue compares two values of an argument: 0.9 is 0.90.
func sameValue(a, b string) bool {
	if a == b {
		return true
	}
	x, errX := strconv.ParseFloat(a, 64)
	y, errY := strconv.ParseFloat(b, 64)
	return errX == nil && errY == nil && x == y
}

// fulfils says whether a configuration has what a change asks for.
func (c configuration) fulfils(want Change) bool {
	s, given := c.settings[nameOf(want.Flag)]
	value := Shown(s.Value)
	switch want.To {
	case "on":
		// A switch that is on by default is on again once its negation is gone.
		return value == "on" || !given && want.From == "off"
	case "off":
		return value == "off" || !given && !slices.Contains(onByDefault[:], nameOf(want.Flag))
	case "":
		// A switch that was on is as good as left out where it is switched off.
		return !given || value == "off" && want.From == "on" && !slices.Contains(onByDefault[:], nameOf(want.Flag))
	}
	return given && sameValue(value, want.To)
}

// has says whether a configuration is the one that a change leads to, named by its
// key (see key): there is nothing to change then.
func (c configuration) has(key string) bool {
	for _, part := range strings.Fields(key) {
		flag, to, ok := strings.Cut(part, "=")
		want := Change{Flag: flag, To: to}
		if !ok || c.settings == nil && !c.wasMade(want) || c.settings != nil && !c.fulfils(want) {
			return false
		}
	}
	return key != ""
}

// material leaves out changes that performance does not follow.
func material(changes []Change) []Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c Change) bool {
		return slices.Contains(immaterial[:], c.Flag)
	})
}

// turn is what a restart turned out to be.
type turn struct {
	Noticed
	changes []Change // against the kept configuration
	same    bool     // as what ran before the restart
}

// noticed compares a server that was restarted with what ran before and with what
// is kept. Advised are the changes that were recommended, none without one.
func noticed(kept, running, next configuration, advised []Change) turn {
	if kept.settings == nil || next.settings == nil {
		return turn{Noticed: Unreadable, changes: toldChanges(kept.told, next.told)}
	}
	t := turn{changes: changesFrom(kept, next), same: len(material(changesFrom(running, next))) == 0}
	differs := material(t.changes)
	switch {
	case len(differs) == 0 && t.same:
		t.Noticed = SameSettings
	case len(differs) == 0:
		t.Noticed = Undone
	case next.follows(differs, advised):
		t.Noticed = AsRecommended
	default:
		t.Noticed = SomethingElse
	}
	return t
}

// follows says whether a configuration that differs by these changes is the one
// that was advised: those, and no others.
func (c configuration) follows(differs, advised []Change) bool {
	for _, d := range differs {
		if !slices.ContainsFunc(advised, func(a Change) bool { return a.Flag == d.Flag }) {
			return false
		}
	}
	return len(advised) > 0 && !slices.ContainsFunc(advised, func(a Change) bool { return !c.fulfils(a) })
}

// toldChanges lists what page and endpoints tell differently.
func toldChanges(a, b []told) []Change {
	var out []Change
	for _, is := range b {
		i := slices.IndexFunc(a, func(t told) bool { return t.name == is.name })
		if i >= 0 && a[i].value != is.value {
			out = append(out, Change{Flag: is.name, From: a[i].value, To: is.value})
		}
	}
	return out
}

// String writes the change as one would say it: "--max-num-seqs 4 → 32",
// "--enforce-eager left out".
func (c Change) String() string {
	switch {
	case c.To == "on" && (c.From == "" || c.From == "off"):
		return c.Flag + " on"
	case c.To == "off" && (c.From == "" || c.From == "on"):
		return c.Flag + " off"
	case c.To == "" && c.From == "on":
		return c.Flag + " left out"
	case c.To == "" && c.From == "off":
		return "--no-" + strings.TrimPrefix(c.Flag, "--") + " left out"
	case c.To == "" && c.From != "":
		return c.Flag + " " + c.From + " left out"
	}
	return c.Flag + " " + cmp.Or(c.From, "unset") + " → " + cmp.Or(c.To, "unset")
}

// listed joins changes to a text.
func listed(changes []Change) string {
	parts := make([]string, len(changes))
	for i, c := range changes {
		parts[i] = c.String()
	}
	return strings.Join(parts, ", ")
}

// inverse is the change back.
func (c Change) inverse() Change { return Change{Flag: c.Flag, From: c.To, To: c.From} }

// inverses are the changes that take others back.
func inverses(changes []Change) []Change {
	out := make([]Change, len(changes))
	for i, c := range changes {
		out[i] = c.inverse()
	}
	return out
}

// onByDefault are the switches that are on, or that the engine decides on, where
// they are not given: leaving them out does not switch them off.
var onByDefault = [...]string{"async_scheduling", "enable_chunked_prefill", "enable_prefix_caching"}

// withSetting returns the launch with a recommended value in place: "on" and
// "off" are those of switches, "" leaves the flag out. A flag of a config file is
// changed there or overridden on the command line.
func withSetting(c *launch.Config, flag, value string) *launch.Config {
	switch {
	case value == "on":
		return c.With(flag, "true")
	case value == "off" && slices.Contains(onByDefault[:], nameOf(flag)):
		return c.With(flag, "false")
	case value == "off" || value == "":
		return c.Without(flag)
	}
	return c.With(flag, value)
}

// Changed returns the launch with changes made to it, in their order.
func Changed(c *launch.Config, changes ...Change) *launch.Config {
	for _, change := range changes {
		c = withSetting(c, change.Flag, change.To)
	}
	return c
}

// ChangedLaunch writes a launch command with changes made to it; "" where the
// command is unknown or would not be read back.
func ChangedLaunch(command string, changes ...Change) string {
	nameless := func(c Change) bool { return c.Flag == "" }
	if command == "" || len(changes) == 0 || slices.ContainsFunc(changes, nameless) {
		return ""
	}
	c, err := launch.ParseCommand(command, nil, nil)
	if err != nil {
		return ""
	}
	return Changed(c, changes...).Shell()
}
