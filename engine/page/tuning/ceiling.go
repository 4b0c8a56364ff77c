package tuning

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// term is one part of a step's time.
type term struct {
	key, name string
	seconds   float64
	share     stat.Opt // share of the step
}

// terms returns the parts of a step, the longest first.
func terms(t roofline.Terms) []term {
	list := []term{
		{key: "weights", name: "weights", seconds: t.Weights}, {key: "kv", name: "KV reads", seconds: t.KV},
		{key: "compute", name: "compute", seconds: t.Compute + t.Attention},
		{key: "collectives", name: "collectives", seconds: t.Collectives}, {key: "fixed", name: "fixed costs", seconds: t.Fixed},
	}
	for i := range list {
		list[i].share = stat.Some(list[i].seconds).Div(stat.Some(t.Total())).Finite()
	}
	slices.SortStableFunc(list, func(a, b term) int { return cmp.Compare(b.seconds, a.seconds) })
	return list
}

// BoundBy returns a description of the largest term of a step.
func BoundBy(term string) string {
	words := map[string]string{
		"weights": "reading the weights", "kv": "reading the KV cache", "compute": "tensor-core compute", "collectives": "communication between GPUs",
		"fixed": "fixed costs of a step",
	}
	return cmp.Or(words[term], term, "an unknown term")
}

// BindingShare returns the share of the binding term in a step, absent if unknown.
func BindingShare(o *roofline.Operating) stat.Opt {
	for _, t := range terms(o.TermsS) {
		if t.key == o.Binding && t.seconds > 0 {
			return t.share
		}
	}
	return stat.None
}

// stepShares lists the shares of a step's time: "weights 60 %, compute 31 %".
func stepShares(t roofline.Terms) string {
	var shares []string
	for _, x := range terms(t) {
		if x.share.OK && x.share.V >= 0.005 {
			shares = append(shares, x.name+nbsp+figure.PercentSign(x.share.V))
		}
	}
	return strings.Join(shares, ", ")
}

// AchievableShare compares an output with the achievable one, in words: the share if it is below the
// range of the estimate, else that it is within the range or above it, which shows the estimate's
// error. Both parts are empty if either is unknown.
func AchievableShare(output stat.Opt, o *roofline.Operating) (share, words string) {
	ratio := output.Div(o.AchievableTokensPerS).Finite()
	switch {
	case !ratio.OK:
		return "", ""
	case output.V < o.AchievableLower.Or(o.AchievableTokensPerS.V):
		return figure.PercentSign(ratio.V), " of achievable (est)"
	case output.V <= o.AchievableUpper.Or(o.AchievableTokensPerS.V):
		return "within", " achievable (est)"
	}
	return "above", " achievable (est)"
}

// AchievableRange returns the range of the achievable output: "1,270 to 1,900".
func AchievableRange(o *roofline.Operating) string {
	low, high := o.AchievableLower.Finite(), o.AchievableUpper.Finite()
	if !low.OK || !high.OK {
		return figure.Significant(o.AchievableTokensPerS.V)
	}
	return figure.Significant(low.V) + " to " + figure.Significant(high.V)
}

// BestAllowed returns the output of this server, calibrated by its own step, that slots and KV pool allow if it is notably larger than the given
// one; "" otherwise.
func BestAllowed(output stat.Opt, o *roofline.Operating) (rate, words string) {
	if best := o.BestTokensPerS.Div(output).Finite(); !best.OK || best.V <= 1.03 {
		return "", ""
	}
	return figure.Significant(o.BestTokensPerS.V) + nbsp + "tok/s",
		" at " + figure.Count(o.BestBatch.V) + " running (est)"
}

// ceilingFlags names the flags of rooftop that provide the missing inputs of the model, except those
// that the reason already names.
func ceilingFlags(f *engine.Facts, why string) string {
	var flags []string
	if !f.GPUKnown && !f.OnCPU() && !strings.Contains(why, "--gpu") {
		flags = append(flags, "--gpu NAME")
	}
	if !f.ModelKnown && !strings.Contains(why, "--model") {
		flags = append(flags, "--model NAME")
	}
	if len(flags) == 0 {
		return ""
	}
	return " Start rooftop with " + strings.Join(flags, " and ") + "."
}

// NoCeiling returns why there is no ceiling, and which flags provide one.
func NoCeiling(d *engine.Diagnosis) string {
	why := cmp.Or(d.Ceiling.PhysicalReason, "not computed")
	return "No ceiling: " + why + "." + ceilingFlags(&d.Facts, why)
}

// NoCurve returns why there is no roofline, and which flags provide one.
func NoCurve(d *engine.Diagnosis) string {
	if d == nil {
		return "No curve: nothing was measured yet."
	}
	if f := &d.Facts; f.OnCPU() && !f.GPUKnown {
		return "No curve of the hardware: the server runs on a CPU, which the model does not cover. Only measured points are shown."
	}
	why := cmp.Or(d.Ceiling.PhysicalReason, "not computed")
	return "No curve of the hardware: " + why + "." + ceilingFlags(&d.Facts, why)
}

// Slots returns the number of slots of the replicas that are measured: a page need not show all.
func Slots(f *engine.Facts) stat.Opt {
	if !f.MaxNumSeqs.Known {
		return stat.None
	}
	return stat.Some(float64(f.MaxNumSeqs.Value) * float64(max(1, f.Ranks)))
}
