package rules

import (
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
)

// priceRestart is what every change of a flag costs.
const priceRestart = "one restart: no request is served while the model loads and warms up"

// setFlag writes the change of one flag in the way the server was launched: an
// edit of its command line or config file where that is known, else a restart
// with the flag. from is the present value, "" where it is not known.
func setFlag(f *engine.Facts, flag, from, to string, source engine.Source) string {
	with := flag
	if to != "" {
		with += " " + to
	}
	switch {
	case source == engine.FromConfig:
		return fmt.Sprintf("set %s: %s in the server's config file (now %s) and restart", strings.TrimPrefix(flag, "--"), to, from)
	case source == engine.FromCmdline && mentions(f.Launch, flag) && from != "":
		return fmt.Sprintf("in the launch command change %s %s to %s, and restart", flag, from, to)
	case f.Launch != "" && source == engine.FromDefault && from != "":
		return fmt.Sprintf("add %s to the launch command (now the default, %s) and restart", with, from)
	case f.Launch != "":
		return fmt.Sprintf("add %s to the launch command and restart", with)
	case from != "":
		return fmt.Sprintf("restart vLLM with %s (instead of %s)", with, from)
	}
	return "restart vLLM with " + with
}

// dropFlag writes the removal of a switch.
func dropFlag(f *engine.Facts, flag string) string {
	if mentions(f.Launch, flag) {
		return fmt.Sprintf("remove %s from the launch command and restart", flag)
	}
	return fmt.Sprintf("restart vLLM without %s", flag)
}

// mentions says whether a command line has the flag, in either spelling.
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

// onCPU says whether the model itself runs on a CPU.
func onCPU(f *engine.Facts) bool { return f.Device.Known && f.Device.Value == "cpu" }

// apiServersSince is the first release with --api-server-count, an argument of
// the front end, which the catalog of engine arguments does not list.
const apiServersSince = "0.9.1"

// flagMissing says why this server's vLLM does not have a flag; "" where it has
// it, or where the version is not known and the newest releases have it.
func flagMissing(f *engine.Facts, flag string) string {
	version := f.EngineVersion.Value
	if flag == "--api-server-count" {
		if f.EngineVersion.Known && olderThan(version, apiServersSince) {
			return fmt.Sprintf("vLLM %s does not have %s: since %s", version, flag, apiServersSince)
		}
		return ""
	}
	known, note := catalog.Default().FlagKnown(flag, version)
	if known {
		return ""
	}
	if f.EngineVersion.Known {
		return fmt.Sprintf("vLLM %s does not have %s: %s", version, flag, note)
	}
	return flag + " is not in the newest releases of vLLM: " + note
}

// withholdUnknownFlag keeps a fix from being recommended whose flag this
// server's release does not have.
func withholdUnknownFlag(f *engine.Facts, fix *engine.Fix) {
	if fix == nil || fix.Kind != engine.KindFlag || fix.Withheld != "" {
		return
	}
	fix.Withheld = flagMissing(f, fix.Flag)
}
