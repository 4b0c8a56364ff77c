package search

import (
	"fmt"
	"strconv"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/lever"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// relief is a limit that is lifted in a model before other changes are predicted: what limits a server
// together with something else hides the gain from lifting it. Each is lifted alone, so that the number of
// combinations grows with the limits and not with their product.
type relief struct {
	anchor
	why string // a sentence
}

// hiddenCandidates returns changes of two flags, of which one lifts a limit that would keep the other from
// gaining anything.
func (s *Search) hiddenCandidates(a *anchor) []candidate {
	need := lever.NeededSlots(a.d)
	if a.d.Performance == nil || !need.OK {
		return nil
	}
	var out []candidate
	for _, r := range [...]*relief{a.moreServers(), a.wholeSteps()} {
		if r == nil {
			continue
		}
		list := s.largerPools(&r.anchor)
		if r.d.Facts.MaxNumSeqs.Known {
			list = append(list, s.bestSlots(&r.anchor, need.V, func(to int) candidate { return s.slotsAt(&r.anchor, to) })...)
		}
		list = append(list, s.tokenBudgetCandidates(&r.anchor)...)
		list = append(list, s.tensorParallelCandidates(&r.anchor)...)
		for _, c := range list {
			if len(c.Changes()) > 1 {
				c.Why = r.why + " " + c.Why
				out = append(out, c)
			}
		}
	}
	return out
}

// busyFront is the share of a core from which one API server is taken to limit larger batches.
const busyFront = 0.6

// lifted returns the anchor with a change made in its model.
func (a *anchor) lifted(why string, change engine.Change, lift func(f *engine.Facts, m *roofline.Measured)) *relief {
	d, free := *a.d, *a.d.Performance
	d.Performance = &free
	lift(&d.Facts, &free.Measured)
	return &relief{anchor: anchor{d: &d, base: a.base, changes: a.with(change), offset: a.offset}, why: why}
}

// moreServers lifts the limit of a busy API server. It is nil if there is none.
func (a *anchor) moreServers() *relief {
	busy, servers := a.d.Performance.Measured.FrontShare, a.d.Facts.APIServerCount
	if busy.Or(0) < busyFront || !servers.Known || servers.Value != 1 || a.d.Facts.OnCPU() {
		return nil
	}
	free := *a.d.Performance
	free.Measured.FrontShare = stat.None
	most := max(1, free.Throughput(free.Measured.Batch+free.Measured.Waiting.Or(0))/max(1e-9, free.Throughput(free.Measured.Batch)))
	to := lever.ServersFor(1, busy.V*most)
	why := fmt.Sprintf("One API server uses %s of a core, so nothing else helps while it is the only one: both change in one restart.", figure.PercentSign(busy.V))
	return a.lifted(why, lever.APIServers.Change(&a.d.Facts, strconv.Itoa(to)), func(_ *engine.Facts, m *roofline.Measured) {
		m.FrontShare = stat.Some(busy.V / float64(to))
	})
}

// wholeSteps lifts a token budget below vLLM's smallest default. It is nil if the budget is not smaller.
func (a *anchor) wholeSteps() *relief {
	budget := a.d.Facts.MaxNumBatchedTokens
	if !budget.Known || budget.Value >= lever.UsualBudget || !a.d.Facts.ChunkedPrefill.Value {
		return nil
	}
	why := fmt.Sprintf("A step of %d tokens fills up before more requests can run: both change in one restart.", budget.Value)
	return a.lifted(why, lever.TokenBudget.Change(&a.d.Facts, strconv.Itoa(lever.UsualBudget)), func(f *engine.Facts, m *roofline.Measured) {
		m.TokenBudget, f.MaxNumBatchedTokens.Value = stat.Some(lever.UsualBudget), lever.UsualBudget
	})
}
