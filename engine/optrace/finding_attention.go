package optrace

import (
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

const (
	// attentionShare is attention's share of a decode graph, at the longest context seen,
	// from which on it is worth a setting.
	attentionShare = 0.25
	// Attention grows where the longest context is so many times the shortest, and
	// attention there so many times as long.
	contextGrows   = 2
	attentionGrows = 1.5
	// fewestAtLength are the graphs that the mean of a length needs.
	fewestAtLength = 5
	// softMaxShare is the share of SOFT_MAX in the decode time that shows attention in
	// several operators: samplers and routers of mixtures use it for less.
	softMaxShare = 0.01
	// A cache in q8_0 holds 34 bytes for 32 values, one in f16 64 (ggml-common.h).
	cacheQ8 = 34.0 / 64
	// flashAttention is GGML's operator for the whole of attention.
	flashAttention = "FLASH_ATTN_EXT"
)

// findAttention is attention that takes more and more of a token as the context grows.
func findAttention(v *view) (cause, bool) {
	short, long, ok := v.contextEnds()
	if !ok || long.Share.Or(0) < attentionShare || long.Length < contextGrows*short.Length ||
		float64(long.Attention) < attentionGrows*float64(short.Attention) {
		return cause{}, false
	}
	share := long.Share.V
	c := cause{Finding: Finding{ID: "attention-grows", Severity: severityWarn, Title: "Attention grows with the context", Cost: stat.Some(share), Evidence: []string{
		fmt.Sprintf("At a context of %d it takes %s of a graph, %s of it; at %d it took %s.", long.Length, spellTime(long.Attention), spellPercent(share), short.Length, spellTime(short.Attention)),
	}}}
	flash, soft := v.shareOfOp(flashAttention), v.shareOfOp("SOFT_MAX")
	switch {
	case flash == 0 && soft >= softMaxShare:
		c.Evidence = append(c.Evidence, "It runs as several operators (SOFT_MAX and products); there is no FLASH_ATTN_EXT.")
		r := &remedy{
			kind: remedyFlag, do: "Compute attention in one operator (flash attention).",
			why:   "Scores of the whole context are then not written to memory and read back." + v.names.aside(),
			price: "none known for most models; outputs differ in the last digits",
			// At most the time of SOFT_MAX goes away; the products stay.
			gain: gainOf(0, freed(soft)/2, freed(soft)),
		}
		r.flag, r.value = v.names.spell(optFlash, "")
		c.remedy = r
	case flash == 0:
		c.instead = "which operators attention runs as is not known"
	case v.cacheQuantised():
		c.instead = "the cache is quantised already; a shorter context is what is left"
	case !v.readsCache():
		c.instead = v.whyNotCache()
	default:
		c.Evidence = append(c.Evidence, "It runs as one operator already (FLASH_ATTN_EXT): what is left is to read less.")
		r := &remedy{
			kind: remedyFlag, do: "Keep the cache in q8_0.",
			why:   "Attention reads the whole cache for each token, and one in q8_0 has 53 % of the bytes of one in f16." + v.names.aside(),
			price: "a little quality; unpacking costs where attention is not bound by memory",
			gain:  gainOf(0, freed(share*(1-cacheQ8))/2, freed(share*(1-cacheQ8))),
		}
		r.flag, r.value = v.names.spell(optKVType, "q8_0")
		c.remedy = r
	}
	return c, true
}

// readsCache says that attention is held up by reading the cache: in decodes it reads at
// a rate that is near the memory's. Fewer bytes make nothing else faster, and they have
// to be unpacked.
func (v *view) readsCache() bool {
	rate, roof, ok := v.cacheRate()
	return ok && rate >= nearRoof*roof && v.boundOfOp(flashAttention) != BoundCompute
}

// whyNotCache is why a smaller cache is not advised.
func (v *view) whyNotCache() string {
	rate, roof, ok := v.cacheRate()
	switch {
	case v.boundOfOp(flashAttention) == BoundCompute:
		return "attention runs as one operator and is bound by computing, not by reading the cache; a shorter context is what is left"
	case !ok:
		return "whether reading the cache holds attention up is not known without the machine's roof (rooftop trace roof)"
	}
	return fmt.Sprintf("attention reads %s at most, %s of what memory gives: a smaller cache would not make it faster", spellScaled(rate, "B/s"), spellPercent(rate/roof))
}

// cacheRate is what attention reads and writes in a second in decodes, and what the
// memory gives to as many threads; false where one of them is not known.
func (v *view) cacheRate() (rate, roof float64, ok bool) {
	row := v.rowOfOp(flashAttention)
	p, known := v.point(v.lanes)
	if row == nil || !row.BytesRate.OK || !known || p.BytesPerSecond <= 0 {
		return 0, 0, false
	}
	return row.BytesRate.V, p.BytesPerSecond, true
}

// contextEnds are the shortest and the longest context with enough graphs.
func (v *view) contextEnds() (short, long *ContextRow, ok bool) {
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

// shareOfOp is an operator's share of the decode time.
func (v *view) shareOfOp(op string) float64 {
	sum := 0.0
	for i := range v.Kinds {
		if k := &v.Kinds[i]; k.Phase == PhaseDecode.String() && k.Op == op {
			sum += k.Share.Or(0)
		}
	}
	return sum
}

// rowOfOp is the row of an operator in decodes with the largest share, nil where there
// is none.
func (v *view) rowOfOp(op string) *OperatorRow {
	var best *OperatorRow
	for i := range v.Kinds {
		if k := &v.Kinds[i]; k.Phase == PhaseDecode.String() && k.Op == op && (best == nil || k.Share.Or(0) > best.Share.Or(0)) {
			best = k
		}
	}
	return best
}

// boundOfOp is what bounds an operator in decodes.
func (v *view) boundOfOp(op string) Bound {
	if row := v.rowOfOp(op); row != nil {
		return row.Bound
	}
	return BoundUnknown
}

// cacheQuantised says that the command sets another type of the cache than the
// default, f16.
func (v *view) cacheQuantised() bool {
	value, _ := argument(v.Target.Command, "-ctk", "--cache-type-k")
	return Quantised(strings.ToLower(value))
}
