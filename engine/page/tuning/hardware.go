package tuning

import (
	"cmp"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// HardwareCeiling is the limits of hardware, without a server.
type HardwareCeiling struct {
	Inputs        []Fact
	Batch         float64
	Classic       *roofline.Classic // nil if it could not be computed
	ClassicReason string
	ClassicMinTP  stat.Opt // least tensor parallelism of the documented rule
	Physical      roofline.CeilingResult
}

// CeilingInputs returns the inputs of a ceiling in a fixed order. sources maps the name of an input to its
// source; an input without an entry is a default.
func CeilingInputs(c roofline.Config, in roofline.CeilingInput, sources map[string]engine.Source) []Fact {
	input := func(name, unit string, value any) Fact {
		return NewFact(name, unit, engine.Know(value, cmp.Or(sources[name], engine.FromDefault), ""))
	}
	return []Fact{
		input("model", "", c.Model.ID),
		input("gpu", "", c.GPU.Name),
		input("tensor_parallel_size", "GPUs", c.TP),
		input("pipeline_parallel_size", "GPUs", c.PP),
		input("weight_dtype", "", string(c.Weight)),
		input("kv_cache_dtype", "", string(c.KV)),
		input("compute_dtype", "", string(c.Compute)),
		input("batch", "req", in.Batch),
		input("context_tokens", "tok", in.Context),
		input("prompt_tokens", "tok", in.Prompt),
		input("gpu_memory_utilization", "ratio", in.Utilization),
		input("enforce_eager", "", c.Eager),
	}
}

// Input returns an input as text without its unit, or "" if there is none.
func (c *HardwareCeiling) Input(name string) string {
	for _, in := range c.Inputs {
		if in.Name == name {
			return in.valueText()
		}
	}
	return ""
}
