package optrace

import (
	"fmt"
	"strconv"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// fullBatch is llama.cpp's default of tokens in one graph (n_ubatch, common.h).
	fullBatch = 512
	// smallBatch is the mean of tokens in a graph below which a prefill is looked at.
	smallBatch = 128
	// splitPrompt are the graphs for each prompt from which on prompts are cut, and not
	// merely short.
	splitPrompt = 2.5
	// fewestPrefills are the graphs of prefills that the means need.
	fewestPrefills = 5
	// belowRidge is the share of the operations per byte that the machine could do, up
	// to which a prefill is bound by memory beyond doubt.
	belowRidge = 0.5
	// prefillMatters is the share of the time of all calls that prefill must have.
	prefillMatters = 0.10
)

// findSmallBatch is prompts that are computed in so small pieces that each reads all
// weights for little work.
func findSmallBatch(v *view) (cause, bool) {
	p := v.prefill
	if p == nil || p.Graph.Count < fewestPrefills || !p.Flops.OK || !p.Bytes.OK || p.Bytes.V <= 0 || p.Tokens <= 0 {
		return cause{}, false
	}
	here, ok := v.point(v.lanes)
	if !ok || here.FlopsPerSecond <= 0 {
		return cause{}, false
	}
	each := float64(p.Tokens) / float64(p.Graph.Count)
	prompts := float64(p.FirstToken.Count)
	if each >= smallBatch || prompts < 1 || float64(p.Graph.Count)/prompts < splitPrompt {
		return cause{}, false
	}
	intensity, ridge := p.Flops.V/p.Bytes.V, here.FlopsPerSecond/here.BytesPerSecond
	if intensity > belowRidge*ridge {
		return cause{}, false
	}
	share := v.timeShare(p)
	if share < prefillMatters {
		return cause{}, false
	}
	// Tokens of a prompt fit into one graph up to its length.
	to := min(fullBatch, float64(p.Tokens)/prompts)
	faster := min(to/each, ridge/intensity)
	whole := 1/(1-share+share/faster) - 1
	r := &remedy{
		kind: remedyFlag, do: fmt.Sprintf("Compute up to %d tokens of a prompt at once.", fullBatch),
		why:   fmt.Sprintf("A graph of %s tokens reads the weights as often as one of %d. Prefill takes %s of the time of calls; it alone may become %.2g times as fast.", spellThree(each), fullBatch, spellPercent(share), faster) + v.names.aside(),
		price: "a larger compute buffer; other sequences wait longer for their next token",
		gain:  gainOf(whole/4, whole/2, whole),
	}
	r.flag, r.value = v.names.spell(optBatch, strconv.Itoa(fullBatch))
	return cause{
		Finding: Finding{ID: "prefill-batch-too-small", Severity: severityWarn, Title: "Prompts are computed in pieces too small", Cost: stat.Some(share * (1 - 1/faster)), Evidence: []string{
			fmt.Sprintf("%d graphs for %.0f prompts, %s tokens in a graph.", p.Graph.Count, prompts, spellThree(each)),
			fmt.Sprintf("They do %s operations for each byte that is moved; this machine could do %s (%s).", spellThree(intensity), spellThree(ridge), v.Roof.From),
		}},
		remedy: r,
	}, true
}

// timeShare is a phase's share of the time of all calls.
func (v *view) timeShare(of *PhaseRow) float64 {
	all := 0.0
	for i := range v.Phases {
		all += v.Phases[i].callSeconds()
	}
	if all <= 0 {
		return 0
	}
	return of.callSeconds() / all
}

// callSeconds is the time of all calls of a phase, of its graphs where calls were not
// seen.
func (p *PhaseRow) callSeconds() float64 {
	d := p.Call
	if d.Count == 0 {
		d = p.Graph
	}
	return d.Mean.Seconds() * float64(d.Count)
}
