package tally

import (
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

func tensor(name, format string, ne ...int64) optrace.Tensor {
	t := optrace.Tensor{Name: name, Type: format, NE: [4]int64{1, 1, 1, 1}}
	copy(t.NE[:], ne)
	return t
}

func sites(cheap bool) []optrace.Site {
	return []optrace.Site{{Symbol: "ggml_cpu_extra_compute_forward", Cheap: cheap}, {Symbol: "ggml_compute_forward_rms_norm_mul_fused", Cheap: cheap},
		{Symbol: "ggml_graph_compute", Cheap: true}, {Symbol: "ggml_barrier", Cheap: cheap}, {Symbol: "llama_decode", Cheap: true}}
}
