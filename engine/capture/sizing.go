package capture

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Verdicts of a Sizing.
const (
	OverProvisioned = "over-provisioned"
	PartlyUsed      = "partly used"
	Earned          = "earned"
	UnknownSize     = "unknown"
)

// Shares of power or memory bandwidth, whichever is larger, that part the verdicts.
// The readings that were published lie on their sides: an H100 with a 7 B model at
// 24 % of its power "is loafing", with a 32 B model at 63 % it "is finally earning
// its hourly rate" (inferscope, "The profiler had to teach me about the hardware").
const (
	loafing = 0.40
	earning = 0.60
)

// most cards that are named.
const mostCards = 3

// usable is the share of a card's memory that an engine may use: vLLM's default.
const usable = 0.9

// sizing says whether the hardware is larger than this load needs, and which
// smaller card of the catalog would serve it.
func (d *derivation) sizing(cards []catalog.GPU) Sizing {
	if len(d.gpus) == 0 && !d.facts.GPUKnown {
		return Sizing{Verdict: UnknownSize, Reason: d.noGPU("power")}
	}
	if reason := d.noLoad(); reason != "" {
		return Sizing{Verdict: UnknownSize, Reason: reason}
	}
	power, bandwidth, ceiling := d.value(PowerShare), d.value(BandwidthShare), stat.None
	if !power.OK && bandwidth.OK && !d.bandwidthCounted() {
		// A step that is bound by compute reads little: its power would show it.
		ceiling = d.value(CeilingEfficiency)
	}
	use := power.Max(bandwidth).Max(ceiling)
	if !use.OK {
		return Sizing{Verdict: UnknownSize, Reason: "neither its power nor its memory bandwidth is known"}
	}
	var s Sizing
	s.Smaller, s.Reason = d.smaller(cards)
	switch {
	case use.V >= earning:
		s.Verdict = Earned
	case use.V < loafing:
		s.Verdict = OverProvisioned
	default:
		s.Verdict = PartlyUsed
	}
	s.Text = d.sizeText(s.Verdict, power, bandwidth, ceiling)
	return s
}

// noLoad says why the run says nothing of the size that the server needs: it served
// nothing, or GPUs had no part in it; "" where it does.
func (d *derivation) noLoad() string {
	switch used := d.tokens.Used; {
	case used.V > 0, !used.OK && d.c.Kind == Observation && d.point.Batch.OK: // requests ran, whatever was counted
	case !used.OK && d.c.Kind == Observation && len(d.c.Pages) > 0:
		return "whether it served is not known: " + d.output.Reason
	default:
		return "no output token was counted: a server at rest does not show what size it needs"
	}
	if d.facts.Device.Value == "cpu" {
		return "the server runs on a CPU"
	}
	rested := 0
	for i := range d.gpus {
		if util := d.gpus[i].Fields[engine.GPUUtil].Peak; util.OK && util.V <= 0 {
			rested++
		}
	}
	if rested > 0 {
		return fmt.Sprintf("%d of %d GPUs did no work while tokens came: the server may not use what was read", rested, len(d.gpus))
	}
	return ""
}

// bandwidthCounted tells whether the share of the bandwidth is a count of the GPUs' own,
// or an estimate.
func (d *derivation) bandwidthCounted() bool {
	return slices.ContainsFunc(d.list, func(q engine.NamedQuantity) bool {
		return q.Name == BandwidthShare && q.Source == engine.Measured
	})
}

func (d *derivation) sizeText(verdict string, power, bandwidth, ceiling stat.Opt) string {
	var shares []string
	if power.OK {
		shares = append(shares, percent(power.V)+" of its power")
	}
	if bandwidth.OK {
		share := percent(bandwidth.V) + " of its memory bandwidth"
		if !d.bandwidthCounted() {
			share += " (est)"
		}
		shares = append(shares, share)
	}
	if ceiling.OK {
		shares = append(shares, percent(ceiling.V)+" of the ceiling of this batch (est)")
	}
	name, n := "the GPU", max(1, len(d.gpus))
	switch given := d.facts.GPUName.Source; {
	case len(d.gpus) > 0 && d.gpus[0].Name != "" && (!d.facts.GPUKnown || given == engine.FromFlag || given == engine.FromEnv):
		name = d.gpus[0].Name // it is what was read, whatever was given
	case d.facts.GPUKnown:
		name = d.facts.GPU.Name
	}
	if n > 1 {
		name = fmt.Sprintf("%d x %s", n, name)
	}
	text := fmt.Sprintf("%s used %s", name, strings.Join(shares, " and "))
	if d.point.Batch.OK {
		text += " with " + atOnce(d.point.Batch.V)
	}
	switch verdict {
	case OverProvisioned:
		return text + ": it is larger than this load needs; a smaller card, or more requests at once, would be cheaper for each token"
	case Earned:
		return text + ": it earns its price"
	}
	return text + ": it is partly used"
}

func percent(ratio float64) string { return figure.Percent(ratio) + figure.NBSP + "%" }

// atOnce spells a batch.
func atOnce(batch float64) string {
	if batch < 1.05 {
		return "one request at a time"
	}
	return fmt.Sprintf("%.3g requests at once", batch)
}

// smaller lists the cards that hold the model and this batch for less money an hour
// and less for each token, the cheapest first.
func (d *derivation) smaller(cards []catalog.GPU) (list []Card, reason string) {
	if reason := d.noPoint(); reason != "" {
		return nil, reason
	}
	if !d.facts.CostPerHour.Known {
		return nil, d.facts.CostPerHour.Note
	}
	now := stat.Some(d.facts.CostPerHour.Value)
	nowPerToken := now.Div(d.point.Rate)
	for i := range cards {
		card, ok := d.card(cards[i])
		if !ok || card.DollarsPerH.V >= now.V {
			continue
		}
		if per := card.DollarsPerH.Div(card.TokensPerS); !per.OK || per.V >= nowPerToken.V {
			continue
		}
		list = append(list, card)
	}
	slices.SortStableFunc(list, func(a, b Card) int {
		return cmp.Or(cmp.Compare(a.DollarsPerH.V, b.DollarsPerH.V), strings.Compare(a.Name, b.Name))
	})
	if len(list) == 0 {
		return nil, "no cheaper card of the catalog holds it for less a token"
	}
	return list[:min(len(list), mostCards)], ""
}

// card is what the model and this batch would be on another GPU: as many of it as
// the weights need. Its rate is the model's, corrected by what the measured step
// took beyond the model's: as a factor at one end, as a fixed time at the other.
func (d *derivation) card(g catalog.GPU) (Card, bool) {
	if g.Price == nil || g.Price.OnDemandUSD <= 0 || g.VRAMGiB <= 0 || g.Name == d.config.GPU.Name {
		return Card{}, false
	}
	c := d.config
	c.GPU, c.PP = g, 1
	degree, _, ok := c.MinTP(usable)
	if !ok {
		return Card{}, false
	}
	c.TP = degree
	p, _ := d.step()
	if len(c.Check()) > 0 || c.MaxSequences(p.Context, usable) < p.Batch {
		return Card{}, false
	}
	gpus := c.TP * max(1, d.facts.Ranks)
	price := stat.Some(g.Price.OnDemandUSD * float64(gpus))
	card := Card{
		Name: g.Name, GPUs: gpus, DollarsPerH: price, PriceDate: g.Price.AsOf,
		NeedBytes: d.replicas() * (c.TotalWeightBytes() + p.Batch*c.StoredPerSequence(p.Context)),
		VRAMBytes: g.VRAMGiB * (1 << 30) * float64(gpus),
	}
	card.Low, card.TokensPerS, card.High = d.rateOn(c, p)
	card.DollarsPerMTk = price.Div(card.TokensPerS).Times(tokensPerMillion / secondsPerHour)
	return card, true
}

// rateOn is the output tokens per second of another configuration at the same
// point.
func (d *derivation) rateOn(c roofline.Config, p roofline.Point) (low, mid, high stat.Opt) {
	here, there := d.config.Step(p).Achievable.Total(), c.Step(p).Achievable.Total()
	whole := max(1, d.point.Batch.V) // over all replicas
	measured := whole / d.point.Rate.V
	factor, fixed := there*measured/here, there+measured-here
	slow, fast := max(factor, fixed), min(factor, fixed)
	if fast <= 0 {
		fast = slow
	}
	return stat.Some(whole / slow), stat.Some(2 * whole / (slow + fast)), stat.Some(whole / fast)
}
