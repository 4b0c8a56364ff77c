package vllmsim

import (
	"sort"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
)

// cell identifies a number of a rank that is not a histogram.
type cell uint8

const (
	cellZero cell = iota // always 0: not simulated
	cellOne              // always 1
	cellRunning
	cellWaiting
	cellCapacity
	cellDeferred
	cellKVUsage
	cellQueries
	cellHits
	cellPreemptions
	cellPrompt
	cellComputed // of the prompt tokens, those computed
	cellCached   // of the prompt tokens, those found in the prefix cache
	cellGeneration
	cellStop
	cellLength
	cellError
	numCells
)

// hist identifies a histogram of a rank.
type hist uint8

const (
	histPromptTokens hist = iota
	histGenerationTokens
	histIterationTokens
	histMaxGenerationTokens
	histN
	histMaxTokens
	histTTFT
	histITL
	histTPOT
	histE2E
	histQueue
	histInference
	histPrefill
	histDecode
	histPreemptions
	histPrefillComputed
	numHists
)

// histogram counts observations in the buckets of its ladder, not cumulative; the last bucket is above all
// bounds.
type histogram struct {
	bounds []float64
	counts []float64
	sum    float64
}

func (h *histogram) observe(v float64) {
	h.counts[h.bucket(v)]++
	h.sum += v
}

// bucket returns the index of the first bucket whose bound is not below v, by linear search: most latencies
// of a step are in the lowest bucket.
func (h *histogram) bucket(v float64) int {
	if len(h.bounds) > 0 && v <= h.bounds[0] {
		return 0
	}
	return sort.SearchFloat64s(h.bounds, v)
}

// rank holds the numbers of one engine.
type pageRank struct {
	cells [numCells]float64
	hists [numHists]histogram
	seen  bool // whether a step was observed
}

// init sets a rank's numbers to zero; tokens are the bounds of histograms of tokens.
func (k *pageRank) init(tokens []float64) {
	k.cells[cellOne] = 1
	for _, f := range families() {
		bounds := f.Buckets
		if bounds == nil {
			bounds = tokens
		}
		if f.Kind == histo {
			k.hists[f.Hist] = histogram{bounds: bounds, counts: make([]float64, len(bounds)+1)}
		}
	}
}

// tokenBounds returns the bounds 1, 2, 5, 10, … up to a maximum.
func tokenBounds(most int) (bounds []float64) {
	for scale := 1; ; scale *= 10 {
		for _, m := range [...]int{1, 2, 5} {
			if m*scale > most {
				return bounds
			}
			bounds = append(bounds, float64(m*scale))
		}
	}
}

// observe counts a step as AsyncLLM's output handler and PrometheusStatLogger do
// (vLLM v1/engine/async_llm.py, v1/metrics/stats.py): gauges, lookups and
// preemptions with every step, all else only with steps that had an output.
func (k *pageRank) observe(r *core.Report) {
	k.gauges(&r.State)
	k.cells[cellQueries] += float64(r.PrefixQueries)
	k.cells[cellHits] += float64(r.PrefixHits)
	k.cells[cellPreemptions] += float64(r.Preemptions)

	outputs, tokens := 0, 0
	itl := &k.hists[histITL]
	// Requests of one batch wait for the same steps: most gaps of a step are equal.
	lastGap, lastSeconds, lastBucket := time.Duration(-1), 0.0, 0
	for i := range r.Outputs {
		o := &r.Outputs[i]
		if o.Finish == core.Aborted {
			continue // the client is gone: its outputs do not count
		}
		outputs++
		if o.HasToken {
			tokens++
		}
		gap := o.Gap
		switch {
		case o.First:
			k.first(o.History, r.Ended)
		case !o.HasToken && o.History.FirstToken == 0:
			// A failure before any token is the request's first output.
			k.hists[histTTFT].observe(toSeconds(r.Ended - o.History.Arrival))
		default:
			if !o.HasToken {
				gap = r.Ended - o.History.LastToken
			}
			if gap != lastGap {
				lastGap, lastSeconds = gap, toSeconds(gap)
				lastBucket = itl.bucket(lastSeconds)
			}
			itl.counts[lastBucket]++
			itl.sum += lastSeconds
		}
		if o.Finish != core.NotFinished {
			k.finish(o, r.Ended)
		}
	}
	if outputs == 0 {
		return
	}
	k.cells[cellGeneration] += float64(tokens)
	k.hists[histIterationTokens].observe(float64(r.ComputedPrompt + tokens))
}

func (k *pageRank) gauges(s *core.State) {
	k.cells[cellRunning] = float64(s.Running)
	k.cells[cellWaiting] = float64(s.WaitingCapacity + s.WaitingDeferred)
	k.cells[cellCapacity] = float64(s.WaitingCapacity)
	k.cells[cellDeferred] = float64(s.WaitingDeferred)
	k.cells[cellKVUsage] = s.KVUsage
}

// first counts the whole prompt of a request at its first token.
func (k *pageRank) first(l *core.History, now time.Duration) {
	k.cells[cellPrompt] += float64(l.PromptTokens)
	k.cells[cellCached] += float64(l.CachedTokens)
	k.cells[cellComputed] += float64(l.PromptTokens - l.CachedTokens)
	k.hists[histTTFT].observe(toSeconds(now - l.Arrival))
}

// finish counts a request that ended by itself. The phases are vLLM's: queue from
// the submission to the first scheduling, prefill to the first token, decode to
// the last; preemptions restart none of them.
func (k *pageRank) finish(o *core.Output, now time.Duration) {
	l := o.History
	switch o.Finish {
	case core.Stop:
		k.cells[cellStop]++
	case core.Length:
		k.cells[cellLength]++
	default:
		k.cells[cellError]++
	}
	scheduled, first, last := l.Scheduled, l.FirstToken, l.LastToken
	if scheduled == 0 && !o.HasToken {
		scheduled = now
	}
	if !o.HasToken {
		last = now // an output without a token is an output
		if first == 0 {
			first = now
		}
	}
	decode := toSeconds(last - first)
	tpot := 0.0
	if l.OutputTokens > 1 {
		tpot = decode / float64(l.OutputTokens-1)
	}
	k.hists[histE2E].observe(toSeconds(now - l.Arrival))
	k.hists[histQueue].observe(toSeconds(scheduled - l.Queued))
	k.hists[histPrefill].observe(toSeconds(first - scheduled))
	k.hists[histInference].observe(toSeconds(last - scheduled))
	k.hists[histDecode].observe(decode)
	k.hists[histTPOT].observe(tpot)
	k.hists[histPreemptions].observe(float64(l.Preemptions))
	k.hists[histPrefillComputed].observe(float64(l.PromptTokens - l.CachedTokens))
	k.hists[histPromptTokens].observe(float64(l.PromptTokens))
	k.hists[histGenerationTokens].observe(float64(l.OutputTokens))
	// For requests with n = 1, vLLM observes the actual length, not the requested one.
	k.hists[histMaxGenerationTokens].observe(float64(l.OutputTokens))
	k.hists[histN].observe(1)
	if l.MaxTokens > 0 {
		k.hists[histMaxTokens].observe(float64(l.MaxTokens))
	}
}

func toSeconds(d time.Duration) float64 { return float64(d) / float64(time.Second) }
