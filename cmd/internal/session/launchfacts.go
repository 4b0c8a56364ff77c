package session

import (
	"strconv"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// Settings reads the engine arguments that facts are made of out of a launch
// configuration. It returns an empty map, not nil, for a server that was
// started with none: its defaults are then certain.
func Settings(c *launch.Config) map[string]engine.Setting {
	out := map[string]engine.Setting{}
	for _, name := range engine.LaunchNames {
		value, from, ok := c.Value(name)
		if !ok {
			continue
		}
		if n, _, ok := c.Int(name); ok {
			value = strconv.Itoa(n) // vLLM reads 16K and 32k too
		}
		out[name] = engine.Setting{Value: value, Source: sources[from]}
	}
	return out
}

var sources = map[launch.Source]engine.Source{
	launch.Cmdline:    engine.FromCmdline,
	launch.ConfigFile: engine.FromConfig,
	launch.Env:        engine.FromEnv,
}
