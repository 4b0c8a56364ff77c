package search

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/lever"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// tensorParallelCandidates proposes a larger tensor-parallel degree if the server's machine has idle GPUs for
// it. Others may need this hardware, so an automatic run needs the flag in its allowed
// ones. For a goal of cost, further GPUs never pay.
func (s *Search) tensorParallelCandidates(a *anchor) []candidate {
	f, p := &a.d.Facts, a.d.Performance
	if p == nil || !f.GPUsFree.Known || !f.TensorParallel.Known || f.PipelineParallel.Value > 1 || s.Goal.Metric == verdict.Cost {
		return nil
	}
	now, ranks := f.TensorParallel.Value, max(1, f.DataParallel.Value)
	are := "are"
	if f.GPUsFree.Value == 1 {
		are = "is"
	}
	var list []candidate
	for to := 2 * now; (to-now)*ranks <= f.GPUsFree.Value; to *= 2 {
		if !roofline.HeadsAllow(&p.Config.Model, to) {
			continue
		}
		more := (to - now) * ranks
		c := s.propose(a, lever.GainOfDegree(a.d, to),
			fmt.Sprintf("%s of this machine %s idle: each step is shared by %d GPUs instead of %d, and the KV pool grows.", figure.Counted(float64(f.GPUsFree.Value), "GPU"), are, to, now),
			lever.TensorParallel.Change(&a.d.Facts, strconv.Itoa(to)))
		c.Risk = 2
		c.Costs = append(slices.Clone(c.Costs), figure.Counted(float64(more), "more GPU"))
		c.Rejected = []engine.Rejected{{What: "another replica on the idle GPUs", Why: "may serve more requests in all, but each of them no faster; it needs a load balancer"}}
		list = append(list, c)
	}
	return s.bestOf(list)
}
