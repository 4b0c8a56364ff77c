package search

import (
	"fmt"
	"math"
	"strconv"

	"github.com/rooftop-dev/rooftop/engine/figure"
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
	need := neededSlots(a.d)
	if a.d.Performance == nil || !need.OK {
		return nil
	}
	var out []candidate
	for _, r := range [...]*relief{s.moreServers(a), wholeSteps(a)} {
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

const (
	// busyFront is the share of a core from which one API server is taken to limit larger batches.
	busyFront = 0.6
	// frontRelief is the share of a core that each API server should use, and mostServers the most to
	// propose.
	frontRelief = 0.5
	mostServers = 8
)

// moreServers lifts the limit of a busy API server. It is nil if there is none.
func (s *Search) moreServers(a *anchor) *relief {
	busy, servers := a.d.Performance.Measured.FrontShare, a.d.Facts.APIServerCount
	if busy.Or(0) < busyFront || !servers.Known || servers.Value != 1 || a.d.Facts.OnCPU() {
		return nil
	}
	free := *a.d.Performance
	free.Measured.FrontShare = stat.None
	most := max(1, free.Throughput(free.Measured.Batch+free.Measured.Waiting.Or(0))/max(1e-9, free.Throughput(free.Measured.Batch)))
	to := min(mostServers, max(2, int(math.Ceil(busy.V*most/frontRelief))))
	free.Measured.FrontShare = stat.Some(busy.V / float64(to))
	d := *a.d
	d.Performance = &free
	return &relief{
		anchor: anchor{d: &d, base: a.base, changes: a.with(a.d.Facts.Change("--api-server-count", "1", strconv.Itoa(to))), offset: a.offset},
		why:    fmt.Sprintf("One API server uses %s of a core, so nothing else helps while it is the only one: both change in one restart.", figure.PercentSign(busy.V)),
	}
}

// wholeSteps lifts a token budget below vLLM's smallest default. It is nil if the budget is not smaller.
func wholeSteps(a *anchor) *relief {
	budget := a.d.Facts.MaxNumBatchedTokens
	if !budget.Known || budget.Value >= usualStep || !a.d.Facts.ChunkedPrefill.Value {
		return nil
	}
	free := *a.d.Performance
	free.Measured.TokenBudget = stat.Some(usualStep)
	d := *a.d
	d.Performance = &free
	d.Facts.MaxNumBatchedTokens.Value = usualStep
	return &relief{
		anchor: anchor{d: &d, base: a.base, changes: a.with(a.d.Facts.Change("--max-num-batched-tokens", strconv.Itoa(budget.Value), strconv.Itoa(usualStep))), offset: a.offset},
		why:    fmt.Sprintf("A step of %d tokens fills up before more requests can run: both change in one restart.", budget.Value),
	}
}
