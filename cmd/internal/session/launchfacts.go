package session

import (
	"strconv"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/facts"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Settings returns the engine arguments of a launch configuration that facts are derived from, by
// name. For a server that was started without any it returns an empty map, not nil: nil means that
// the launch is unknown, an empty map that the defaults apply.
func Settings(c *launch.Config) map[string]facts.Setting {
	out := map[string]facts.Setting{}
	for _, name := range facts.LaunchNames {
		value, from, ok := c.Value(name)
		if !ok {
			continue
		}
		if n, _, ok := c.Int(name); ok {
			value = strconv.Itoa(n) // vLLM also accepts 16K and 32k
		}
		out[name] = facts.Setting{Value: value, Source: sources[from]}
	}
	return out
}

var sources = map[launch.Source]engine.Source{
	launch.Cmdline:    engine.FromCmdline,
	launch.ConfigFile: engine.FromConfig,
	launch.Env:        engine.FromEnv,
}
