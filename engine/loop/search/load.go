package search

import (
	"math"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// OtherLoad is the factor from which a load counts as different from that of a trial.
const OtherLoad = 2.0

// Load is the demand on a server during a measurement. The zero Load is unknown.
type Load struct {
	demand         stat.Opt // requests in the server
	prompt, output stat.Opt // mean tokens of a request
}

// LoadOf returns the load of a diagnosis; nil gives an unknown load.
func LoadOf(d *engine.Diagnosis) Load {
	if d == nil {
		return Load{}
	}
	return Load{
		demand: Demand(d),
		prompt: d.Quantity("prompt_tokens_mean").Value, output: d.Quantity("output_tokens_mean").Value,
	}
}

// Near reports whether the load of a diagnosis is within a factor of this one. Values that are
// unknown on either side are ignored.
func (l Load) Near(d *engine.Diagnosis, factor float64) bool {
	now := LoadOf(d)
	other := func(then, now stat.Opt) bool {
		return then.OK && now.OK && then.V > 0 && now.V > 0 && math.Abs(math.Log(now.V/then.V)) > math.Log(factor)
	}
	return !other(l.demand, now.demand) && !other(l.prompt, now.prompt) && !other(l.output, now.output)
}

// Demand returns the mean number of requests in the server, running and waiting.
func Demand(d *engine.Diagnosis) stat.Opt {
	return d.Quantity("running_mean").Value.Plus(d.Quantity("waiting_mean").Value)
}
