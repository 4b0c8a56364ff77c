package facts

import (
	"strconv"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// FromLaunch returns the settings of a launch configuration that facts are derived from, by the names of
// the catalog. For a server that was started without any it returns an empty map, not nil: nil means that
// the launch is unknown, an empty map that the defaults apply.
func FromLaunch(c *launch.Config) map[string]Setting {
	g, out := catalog.EngineOf(c.Engine()), map[string]Setting{}
	for _, setting := range LaunchNames {
		name, _, known := g.Argument(setting)
		value, from, ok := c.Value(name)
		if !known || !ok {
			continue
		}
		if n, _, ok := c.Int(name); ok {
			value = strconv.Itoa(n) // vLLM also accepts 16K and 32k
		}
		if setting, value = g.Canonical(name, value); value != "" {
			out[setting] = Setting{Value: value, Source: sources[from]}
		}
	}
	return out
}

var sources = map[launch.Source]engine.Source{
	launch.Cmdline:    engine.FromCmdline,
	launch.ConfigFile: engine.FromConfig,
	launch.Env:        engine.FromEnv,
}
