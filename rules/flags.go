package rules

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/lever"
)

// flagFix returns the change of a lever from its present value, with a restart as its first cost.
func flagFix(f *engine.Facts, l *lever.Lever, to, why string, costs ...string) *engine.Fix {
	from, _ := l.Now(f)
	return flagFixFrom(f, l, from, to, why, costs...)
}

// flagFixFrom is flagFix from a value of a rank that the run shows, "" if unknown.
func flagFixFrom(f *engine.Facts, l *lever.Lever, from, to, why string, costs ...string) *engine.Fix {
	_, source := l.Now(f)
	return &engine.Fix{
		Kind: engine.KindFlag, Flag: l.Flag, From: from, To: to, Command: setFlag(f, l.Flag, from, to, source),
		Why: why, Costs: slices.Concat([]string{lever.Restart}, l.Costs, costs), Risk: 1,
	}
}

// setFlag describes the change of one flag from and to a rank's values: an edit of the launch
// command or the config file if known, else a restart with the flag.
func setFlag(f *engine.Facts, flag, from, to string, source engine.Source) string {
	from, to = f.FlagValue(flag, from), f.FlagValue(flag, to)
	with := flag
	if to != "" {
		with += " " + to
	}
	command := launchCommand(f)
	switch {
	case source == engine.FromConfig:
		return fmt.Sprintf("set %s: %s in the server's config file (now %s) and restart", strings.TrimPrefix(flag, "--"), to, from)
	case source == engine.FromCmdline && mentions(f.Launch, f.Change(flag, "", "").Flag) && from != "":
		return fmt.Sprintf("in %s change %s %s to %s, and restart", command, flag, from, to)
	case f.Launch != "" && source == engine.FromDefault && from != "":
		return fmt.Sprintf("add %s to %s (now the default, %s) and restart", with, command, from)
	case f.Launch != "":
		return fmt.Sprintf("add %s to %s and restart", with, command)
	case from != "":
		return fmt.Sprintf("restart vLLM with %s (instead of %s)", with, from)
	}
	return "restart vLLM with " + with
}

// launchCommand names the place of the flags.
func launchCommand(f *engine.Facts) string {
	if f.LaunchIn == "" {
		return "the launch command"
	}
	return "the launch command of " + f.LaunchIn
}

// removeFlag describes the removal of a switch.
func removeFlag(f *engine.Facts, flag string) string {
	if mentions(f.Launch, f.Change(flag, "", "").Flag) {
		return fmt.Sprintf("remove %s from %s and restart", flag, launchCommand(f))
	}
	return fmt.Sprintf("restart vLLM without %s", flag)
}

// mentions reports whether a command line has the flag, with dashes or underscores.
func mentions(launch, flag string) bool {
	name := strings.ReplaceAll(strings.TrimPrefix(flag, "--"), "_", "-")
	for _, word := range strings.Fields(launch) {
		word, _, _ = strings.Cut(word, "=")
		if bare, ok := strings.CutPrefix(word, "--"); ok && strings.ReplaceAll(bare, "_", "-") == name {
			return true
		}
	}
	return false
}

// apiServersSince is the first release with --api-server-count, which the catalog of engine
// arguments does not list.
const apiServersSince = "0.9.1"

// flagMissing returns why this server's engine lacks a flag of vLLM's; "" if it has the flag, or if the
// version is unknown and the newest releases have it.
func flagMissing(f *engine.Facts, flag string) string {
	version := f.EngineVersion.Value
	if flag == lever.APIServers.Flag && f.Dialect().ID == catalog.VLLM {
		if f.EngineVersion.Known && engine.OlderThan(version, apiServersSince) {
			return fmt.Sprintf("vLLM %s does not have %s (added in %s)", version, flag, apiServersSince)
		}
		return ""
	}
	g, own := f.Dialect(), f.Change(flag, "", "").Flag
	if own == "" {
		return g.Name + " has no flag for it"
	}
	known, note := g.FlagKnown(own, version)
	if known {
		return ""
	}
	if f.EngineVersion.Known {
		return fmt.Sprintf("%s %s does not have %s: %s", g.Name, version, own, note)
	}
	return own + " is not in the newest releases of " + g.Name + ": " + note
}

// withholdUnknownFlag withholds a fix whose flag this server's release lacks.
func withholdUnknownFlag(f *engine.Facts, fix *engine.Fix) {
	if fix == nil || fix.Kind != engine.KindFlag || fix.Withheld != "" {
		return
	}
	fix.Withheld = flagMissing(f, fix.Flag)
}
