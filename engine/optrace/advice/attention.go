package advice

import (
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// attentionShare is attention's share of a decode graph, at the longest context seen, from
	// which it is worth a setting.
	attentionShare = 0.25
	// contextGrows and attentionGrows are the least ratios of the longest context to the
	// shortest, and of attention at these, for attention to count as growing.
	contextGrows   = 2
	attentionGrows = 1.5
	// fewestAtLength is the number of graphs that the mean at a length needs.
	fewestAtLength = 5
	// softMaxShare is the share of SOFT_MAX in the decode time that indicates attention in
	// several operators: samplers and routers of mixtures use it for less.
	softMaxShare = 0.01
	// cacheQ8 is the size of a cache in q8_0 (34 bytes for 32 values) over one in f16 (64
	// bytes), see ggml-common.h.
	cacheQ8 = 34.0 / 64
	// flashAttention is GGML's operator for the whole of attention.
	flashAttention = "FLASH_ATTN_EXT"
)

// findAttention finds attention that takes an increasing share of a token as the context
// grows.
func findAttention(v *subject) *cause {
	short, long, ok := v.contextEnds()
	if !ok || long.Share.Or(0) < attentionShare || long.Length < contextGrows*short.Length ||
		float64(long.Attention) < attentionGrows*float64(short.Attention) {
		return nil
	}
	share := long.Share.V
	c := newCause(severityWarn, "Attention grows with the context", stat.Some(share),
		fmt.Sprintf("With a context of %s it takes %s per graph, %s of it; with %s it took %s.", figure.Counted(long.Length, "token"), figure.Duration(long.Attention), figure.PercentSign(share), figure.Whole(float64(short.Length)), figure.Duration(short.Attention)))
	flash, soft := v.shareOfOp(flashAttention), v.shareOfOp("SOFT_MAX")
	switch {
	case flash == 0 && soft >= softMaxShare:
		c.Evidence = append(c.Evidence, "Attention runs as several operators (SOFT_MAX and products), not as FLASH_ATTN_EXT.")
		c.remedy = v.setting(optFlash, "", remedy{
			do: "Compute attention in one operator (flash attention).", why: "The scores of the whole context are then not written to memory and read back.",
			price: "none known for most models; outputs differ in the last digits",
			// At most the time of SOFT_MAX is saved; the products stay.
			gain: gainOf(0, freed(soft)/2, freed(soft)),
		})
	case flash == 0:
		c.instead = "the operators that compute attention are unknown"
	case v.cacheQuantised():
		c.instead = "the KV cache is already quantised; only a shorter context helps"
	case !v.readsCache():
		c.instead = v.whyNotCache()
	default:
		c.Evidence = append(c.Evidence, "Attention already runs as one operator (FLASH_ATTN_EXT); only reading fewer bytes makes it faster.")
		c.remedy = v.setting(optKVType, "q8_0", remedy{
			do: "Keep the KV cache in q8_0.", why: "Attention reads the whole cache for each token; q8_0 takes 53 % of the bytes of f16.",
			price: "a little quality; unpacking costs time where memory does not bound attention",
			gain:  gainOf(0, freed(share*(1-cacheQ8))/2, freed(share*(1-cacheQ8))),
		})
	}
	return c
}

// readsCache reports whether reading the cache limits attention: in decodes it runs at nearly
// the memory's rate.
func (v *subject) readsCache() bool {
	rate, peak, ok := v.cacheRate()
	return ok && rate >= nearPeak*peak && v.boundOfOp(flashAttention) != optrace.BoundCompute
}

// whyNotCache returns why a smaller cache is not advised.
func (v *subject) whyNotCache() string {
	rate, peak, ok := v.cacheRate()
	switch {
	case v.boundOfOp(flashAttention) == optrace.BoundCompute:
		return "attention runs as one operator and is bound by computing, not by reading the cache; only a shorter context helps"
	case !ok:
		return "whether the cache limits attention is unknown without the machine's peak (--catalog takes the CPU's data sheet)"
	}
	return fmt.Sprintf("attention reads at most %s, %s of the memory bandwidth: a smaller cache would not make it faster", figure.Value(rate, "B/s"), figure.PercentSign(rate/peak))
}

// cacheRate returns the bytes per second that attention moves in decodes, and what memory
// delivers to as many threads; false if either is unknown.
func (v *subject) cacheRate() (rate, peak float64, ok bool) {
	row := v.rowOfOp(flashAttention)
	p, known := v.PeakPoint(v.ThreadCount)
	if row == nil || !row.BytesRate.OK || !known || p.BytesPerSecond <= 0 {
		return 0, 0, false
	}
	return row.BytesRate.V, p.BytesPerSecond, true
}

// contextEnds returns the shortest and the longest context with enough graphs.
func (v *subject) contextEnds() (short, long *optrace.ContextRow, ok bool) {
	for i := range v.Context {
		c := &v.Context[i]
		if c.Graphs < fewestAtLength || c.Length <= 0 {
			continue
		}
		if short == nil {
			short = c
		}
		long = c
	}
	return short, long, short != nil && long != short
}

// shareOfOp returns an operator's share of the decode time.
func (v *subject) shareOfOp(op string) float64 {
	sum := 0.0
	for k := range v.DecodeKinds() {
		if k.Op == op {
			sum += k.Share.Or(0)
		}
	}
	return sum
}

// rowOfOp returns the row of an operator in decodes with the largest share, nil if there is
// none.
func (v *subject) rowOfOp(op string) *optrace.OperatorRow {
	var best *optrace.OperatorRow
	for k := range v.DecodeKinds() {
		if k.Op == op && (best == nil || k.Share.Or(0) > best.Share.Or(0)) {
			best = k
		}
	}
	return best
}

// boundOfOp returns what bounds an operator in decodes.
func (v *subject) boundOfOp(op string) optrace.Bound {
	if row := v.rowOfOp(op); row != nil {
		return row.Bound
	}
	return optrace.BoundUnknown
}

// cacheQuantised reports whether the command sets a quantised type for the cache. The
// default is f16.
func (v *subject) cacheQuantised() bool {
	value, _ := argument(v.Target.Command, "-ctk", "--cache-type-k")
	return optrace.Quantised(strings.ToLower(value))
}
