package advice

import (
	"fmt"
	"strconv"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// fullBatch is llama.cpp's default of tokens in one graph (n_ubatch, common.h).
	fullBatch = 512
	// smallBatch is the mean number of tokens per graph below which a prefill is checked.
	smallBatch = 128
	// splitPrompt is the number of graphs per prompt from which prompts are split rather than
	// short.
	splitPrompt = 2.5
	// fewestPrefills is the number of prefill graphs that the means need.
	fewestPrefills = 5
	// belowRidge is the share of the operations per byte that the machine could do, up to which
	// memory clearly bounds a prefill.
	belowRidge = 0.5
	// prefillMatters is the least share of prefill in the time of all calls.
	prefillMatters = 0.10
)

// findSmallBatch finds prompts that are computed in such small pieces that each reads all
// weights for little work.
func findSmallBatch(v *subject) *cause {
	p := v.Prefill
	if p == nil || p.Graph.Count < fewestPrefills || !p.Flops.OK || !p.Bytes.OK || p.Bytes.V <= 0 || p.Tokens <= 0 {
		return nil
	}
	here, ok := v.PeakPoint(v.ThreadCount)
	if !ok || here.FlopsPerSecond <= 0 {
		return nil
	}
	each := float64(p.Tokens) / float64(p.Graph.Count)
	prompts := float64(p.FirstToken.Count)
	if each >= smallBatch || prompts < 1 || float64(p.Graph.Count)/prompts < splitPrompt {
		return nil
	}
	intensity, ridge := p.Flops.V/p.Bytes.V, here.FlopsPerSecond/here.BytesPerSecond
	if intensity > belowRidge*ridge {
		return nil
	}
	share := v.timeShare(p)
	if share < prefillMatters {
		return nil
	}
	// A graph takes no more tokens than the prompt has.
	to := min(fullBatch, float64(p.Tokens)/prompts)
	faster := min(to/each, ridge/intensity)
	whole := 1/(1-share+share/faster) - 1
	c := newCause(severityWarn, "Prompts are computed in pieces that are too small", stat.Some(share*(1-1/faster)),
		fmt.Sprintf("%s compute %s, with %s tokens per graph on average.", figure.Counted(p.Graph.Count, "graph"), figure.Counted(prompts, "prompt"), figure.Significant(each)),
		fmt.Sprintf("They do %s operations per byte moved; this machine can do %s (%s).", figure.Significant(intensity), figure.Significant(ridge), v.Peak.From))
	c.remedy = v.setting(optBatch, strconv.Itoa(fullBatch), remedy{
		do:    fmt.Sprintf("Compute up to %d tokens of a prompt at once.", fullBatch),
		why:   fmt.Sprintf("A graph of %s tokens reads the weights as often as one of %d. Prefill takes %s of the time of calls; it alone may become %.2g times as fast.", figure.Significant(each), fullBatch, figure.PercentSign(share), faster),
		price: "a larger compute buffer; other sequences wait longer for their next token",
		gain:  gainOf(whole/4, whole/2, whole),
	})
	return c
}

// timeShare returns a phase's share of the time of all calls.
func (v *subject) timeShare(of *optrace.PhaseRow) float64 {
	all := 0.0
	for i := range v.Phases {
		all += v.Phases[i].CallTimes().TotalSeconds()
	}
	if all <= 0 {
		return 0
	}
	return of.CallTimes().TotalSeconds() / all
}
