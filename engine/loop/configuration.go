package loop

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/facts"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// configuration is the known part of how a server was started.
type configuration struct {
	engine   string                   // ID in the catalog, "" for vLLM
	settings map[string]facts.Setting // nil if the launch is unreadable
	command  string                   // redacted, "" if unknown
	version  string                   // of the engine, "" if unknown
	reported []reportedSetting        // settings reported by page and endpoints
	// ownChanges are this run's changes to an unreadable launch: each flag once, with its value
	// before the run.
	ownChanges []engine.Change
}

// reportedSetting is a setting that a server reports without its launch being read.
type reportedSetting struct{ name, value string }

// configured returns the configuration found by attaching.
func configured(in *facts.Inputs, f *engine.Facts) configuration {
	return configuration{engine: f.Engine.Value, settings: in.Launch, command: in.LaunchText, version: f.EngineVersion.Value, reported: reportedSettings(f)}
}

// SettingsChanged returns the settings that differ between two servers, or two times of one; known is false if a
// launch is not known, so that only what the servers report could be compared.
func SettingsChanged(inBefore *facts.Inputs, before *engine.Facts, inAfter *facts.Inputs, after *engine.Facts) (changes []engine.Change, known bool) {
	was, is := configured(inBefore, before), configured(inAfter, after)
	if was.settings != nil && is.settings != nil {
		return material(changesFrom(was, is)), true
	}
	return reportedChanges(was.reported, is.reported), false
}

// reportedSettings returns the settings that a server's page and endpoints report. Facts from
// other sources are left out, as they would not change with a restart.
func reportedSettings(f *engine.Facts) []reportedSetting {
	var out []reportedSetting
	put := func(name string, from engine.Source, known bool, value any) {
		if known && (from == engine.FromMetrics || from == engine.FromServer) {
			out = append(out, reportedSetting{name, fmt.Sprint(value)})
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
		put("data_parallel_ranks", engine.FromMetrics, true, f.Ranks)
	}
	return out
}

// immaterial are flags that do not affect performance.
var immaterial = [...]string{"--host", "--port", "--root-path", "--uds"}

// changesFrom returns the settings of b that differ from a, sorted by flag. Arguments behind
// facts are compared by value, others as spelled in the launch commands.
func changesFrom(a, b configuration) []engine.Change {
	var out []engine.Change
	if a.settings == nil && b.settings == nil {
		out = ownChangesBetween(a.ownChanges, b.ownChanges)
	}
	for _, name := range facts.LaunchNames {
		from, to := a.settings[name].Value, b.settings[name].Value
		if !engine.SameValue(from, to) {
			if c, ok := engine.SettingChange(catalog.EngineOf(b.engine), name, SettingText(from), SettingText(to)); ok {
				out = append(out, c)
			}
		}
	}
	out = append(out, spelledChanges(a.command, b.command)...)
	if a.version != b.version && a.version != "" && b.version != "" {
		release := engine.Change{Flag: catalog.EngineOf(b.engine).Name, From: a.version, To: b.version}
		if was := catalog.EngineOf(a.engine).Name; was != release.Flag {
			release = engine.Change{Flag: "engine", From: was + " " + a.version, To: release.Flag + " " + b.version}
		}
		out = append(out, release)
	}
	slices.SortStableFunc(out, func(a, b engine.Change) int { return cmp.Compare(a.Flag, b.Flag) })
	return out
}

// spelledChanges returns the changes of arguments and variables that no fact is based on.
func spelledChanges(a, b string) []engine.Change {
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
	var out []engine.Change
	for _, c := range launch.Diff(was, is) {
		head, _, _ := strings.Cut(c.Name, ".")
		if setting, _ := catalog.SettingOf(head); !c.Variable && slices.Contains(facts.LaunchNames[:], setting) {
			continue
		}
		name := c.Name
		if !c.Variable {
			name = engine.FlagName(c.Name)
		}
		out = append(out, engine.Change{Flag: name, From: SettingText(c.From), To: SettingText(c.To)})
	}
	return out
}

// SettingText returns a value of a launch as changes spell it: "on" or "off" for a switch.
func SettingText(value string) string {
	switch value {
	case "true":
		return "on"
	case "false":
		return "off"
	}
	return value
}

// satisfies reports whether the configuration has the setting that a change asks for.
func (c configuration) satisfies(want engine.Change) bool {
	want = want.Canonical()
	s, given := c.settings[engine.ArgumentName(want.Flag)]
	value := SettingText(s.Value)
	switch want.To {
	case "on":
		// Removing the negation turns on a switch whose default is on.
		return value == "on" || !given && want.From == "off"
	case "off":
		return value == "off" || !given && !slices.Contains(onByDefault[:], engine.ArgumentName(want.Flag))
	case "":
		// Turning off a switch that was on is equivalent to leaving it out.
		return !given || value == "off" && want.From == "on" && !slices.Contains(onByDefault[:], engine.ArgumentName(want.Flag))
	}
	return given && engine.SameValue(value, want.To)
}

// includes reports whether the configuration already has the change named by a key (see
// search.Key).
func (c configuration) includes(key string) bool {
	for _, part := range strings.Fields(key) {
		flag, to, ok := strings.Cut(part, "=")
		want := engine.Change{Flag: flag, To: to}
		if !ok || c.settings == nil && !c.hasOwnChange(want) || c.settings != nil && !c.satisfies(want) {
			return false
		}
	}
	return key != ""
}

// material returns the changes that may affect performance.
func material(changes []engine.Change) []engine.Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c engine.Change) bool {
		return slices.Contains(immaterial[:], c.Flag)
	})
}

// restartKind is the classification of a restart.
type restartKind struct {
	Noticed
	changes []engine.Change // relative to the kept configuration
	same    bool            // equal to the configuration before the restart
}

// classifyRestart compares a restarted server with the configuration before and with the kept
// one. advised are the recommended changes, none without a recommendation.
func classifyRestart(kept, running, next configuration, advised []engine.Change) restartKind {
	if kept.settings == nil || next.settings == nil {
		return restartKind{Noticed: Unreadable, changes: reportedChanges(kept.reported, next.reported)}
	}
	t := restartKind{changes: changesFrom(kept, next), same: len(material(changesFrom(running, next))) == 0}
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

// follows reports whether the differences of a configuration are exactly the advised changes.
func (c configuration) follows(differs, advised []engine.Change) bool {
	for _, d := range differs {
		if !slices.ContainsFunc(advised, func(a engine.Change) bool { return a.Flag == d.Flag }) {
			return false
		}
	}
	return len(advised) > 0 && !slices.ContainsFunc(advised, func(a engine.Change) bool { return !c.satisfies(a) })
}

// reportedChanges returns the differences between two lists of reported settings.
func reportedChanges(a, b []reportedSetting) []engine.Change {
	var out []engine.Change
	for _, is := range b {
		i := slices.IndexFunc(a, func(t reportedSetting) bool { return t.name == is.name })
		if i >= 0 && a[i].value != is.value {
			out = append(out, engine.Change{Flag: is.name, From: a[i].value, To: is.value})
		}
	}
	return out
}

// inverses returns the changes that revert others.
func inverses(changes []engine.Change) []engine.Change {
	out := make([]engine.Change, len(changes))
	for i, c := range changes {
		out[i] = c.Inverse()
	}
	return out
}

// onByDefault are the switches that are on, or left to the engine, if they are not given.
// Removing them does not turn them off.
var onByDefault = [...]string{"async_scheduling", "enable_chunked_prefill", "enable_prefix_caching"}

// withSetting returns the launch with a recommended value: "on" and "off" for switches, "" to
// remove the flag. A flag of a config file is changed there, or overridden on the command line.
func withSetting(c *launch.Config, flag, value string) *launch.Config {
	switch {
	case value == "on":
		return c.With(flag, "true")
	case value == "off" && slices.Contains(onByDefault[:], engine.ArgumentName(flag)):
		return c.With(flag, "false")
	case value == "off" || value == "":
		return c.Without(flag)
	}
	return c.With(flag, value)
}

// WithChanges returns the launch with changes made in order.
func WithChanges(c *launch.Config, changes ...engine.Change) *launch.Config {
	for _, change := range changes {
		c = withSetting(c, change.Flag, change.To)
	}
	return c
}

// CommandWithChanges returns a launch command with changes made, or "" if the command is
// unknown or could not be parsed again.
func CommandWithChanges(command string, changes ...engine.Change) string {
	nameless := func(c engine.Change) bool { return c.Flag == "" }
	if command == "" || len(changes) == 0 || slices.ContainsFunc(changes, nameless) {
		return ""
	}
	c, err := launch.ParseCommand(command, nil, nil)
	if err != nil {
		return ""
	}
	return WithChanges(c, changes...).Shell()
}

// configurations are the running and the kept configuration of the server. Trials and baselines
// change them; applying, the autopilot and the connection do where a restart is theirs.
type configurations struct {
	kept             configuration // configuration of the baseline
	running          configuration
	keptIteration    int             // iteration of the kept configuration
	runningIteration int             // iteration of the running configuration, 0 for the first
	notKept          bool            // the running configuration is not the kept one
	ownInPlace       []engine.Change // made by rooftop, in place and not kept
}

// changeInPlace reports whether the running configuration is not the kept one.
func (c *configurations) changeInPlace() bool { return c.notKept }
