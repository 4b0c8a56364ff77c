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

// Limits between the verdicts, as a share of power or memory bandwidth, whichever is larger.
// Published readings agree with them: an H100 with a 7 B model at 24 % of its power "is loafing",
// with a 32 B model at 63 % it "is finally earning its hourly rate" (inferscope, "The profiler had
// to teach me about the hardware").
const (
	loafing = 0.40
	earning = 0.60
)

// mostCards is the maximum number of recommended cards.
const mostCards = 3

// usable is the share of a card's memory that an engine may use: vLLM's default.
const usable = 0.9

// sizing returns whether the hardware is larger than this load needs, and which smaller cards of
// the catalog would be sufficient.
func (d *derivation) sizing(cards []catalog.GPU) Sizing {
	if len(d.gpus) == 0 && !d.facts.GPUKnown {
		return Sizing{Verdict: UnknownSize, Reason: d.noGPU("power")}
	}
	if reason := d.noLoad(); reason != "" {
		return Sizing{Verdict: UnknownSize, Reason: reason}
	}
	power, bandwidth, ceiling := d.value(PowerShare), d.value(BandwidthShare), stat.None
	if !power.OK && bandwidth.OK && !d.bandwidthCounted() {
		// A step bound by compute reads little, but its power shows it.
		ceiling = d.value(CeilingEfficiency)
	}
	use := power.Max(bandwidth).Max(ceiling)
	if !use.OK {
		return Sizing{Verdict: UnknownSize, Reason: "neither power nor memory bandwidth is known"}
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
	s.Text = d.sizeText(&s, power, bandwidth, ceiling)
	return s
}

// noLoad returns why the run does not show what size the server needs: it served nothing, or no GPU
// was involved. It returns "" if it does.
func (d *derivation) noLoad() string {
	switch used := d.tokens.Used; {
	case used.V > 0, !used.OK && d.c.Kind == Observation && d.point.Batch.OK: // requests ran, whatever was counted
	case !used.OK && d.c.Kind == Observation && len(d.c.Pages) > 0:
		return "unknown whether it served requests: " + d.output.Reason
	default:
		return "no output token was counted: an idle server does not show what size it needs"
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
		return fmt.Sprintf("%d of %d GPUs were idle while tokens arrived: the server may use other GPUs", rested, len(d.gpus))
	}
	return ""
}

// bandwidthCounted reports whether the bandwidth share was counted by the GPUs rather than
// estimated.
func (d *derivation) bandwidthCounted() bool {
	return slices.ContainsFunc(d.list, func(q engine.NamedQuantity) bool {
		return q.Name == BandwidthShare && q.Source == engine.Measured
	})
}

func (d *derivation) sizeText(s *Sizing, power, bandwidth, ceiling stat.Opt) string {
	var shares []string
	if power.OK {
		shares = append(shares, figure.PercentSign(power.V)+" of its power")
	}
	if bandwidth.OK {
		share := figure.PercentSign(bandwidth.V) + " of its memory bandwidth"
		if !d.bandwidthCounted() {
			share += " (est)"
		}
		shares = append(shares, share)
	}
	if ceiling.OK {
		shares = append(shares, figure.PercentSign(ceiling.V)+" of the ceiling of this batch (est)")
	}
	name, n := "the GPU", max(1, len(d.gpus))
	switch given := d.facts.GPUName.Source; {
	case len(d.gpus) > 0 && d.gpus[0].Name != "" && (!d.facts.GPUKnown || given == engine.FromFlag || given == engine.FromEnv):
		name = d.gpus[0].Name // the detected name, even if another was given
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
	switch {
	case s.Verdict == OverProvisioned:
		return text + ": it is larger than this load needs; a smaller card, or more concurrent requests, would cost less per token"
	case s.Verdict == Earned && len(s.Smaller) > 0:
		return text + ": it is well used, but not the cheapest for this load" + d.cheaper(s.Smaller)
	case s.Verdict == Earned:
		return text + ": its size fits this load"
	}
	return text + ": it is partly used"
}

// cheaper compares the price of a token on the cheapest of other cards with the current one.
func (d *derivation) cheaper(cards []Card) string {
	card := slices.MinFunc(cards, func(a, b Card) int { return cmp.Compare(a.DollarsPerMTk.V, b.DollarsPerMTk.V) })
	now := stat.Some(d.facts.CostPerHour.Value).Div(d.point.Rate).Times(tokensPerMillion / secondsPerHour)
	a, b := figure.Compared(card.DollarsPerMTk.V, now.V, "USD")
	return fmt.Sprintf(": %s instead of %s for a million tokens on %d x %s (est)", a, b, card.GPUs, card.Name)
}

// atOnce describes a batch size.
func atOnce(batch float64) string {
	if batch < 1.05 {
		return "one request at a time"
	}
	return fmt.Sprintf("%.3g concurrent requests", batch)
}

// smaller returns the cards that hold the model and this batch for less money per hour and per
// token, the cheapest an hour first.
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
		return nil, "no cheaper card in the catalog would cost less per token"
	}
	return list[:min(len(list), mostCards)], ""
}

// card returns the model and this batch on another GPU, as many of it as the weights need, and
// whether it is suitable. The rate is that of the physical model, corrected by the additional time
// of the measured step: as a factor at one end of the range, as a constant at the other.
func (d *derivation) card(g catalog.GPU) (Card, bool) {
	if g.Price == nil || g.Price.OnDemandUSD <= 0 || g.VRAMGiB <= 0 || g.Name == d.config.GPU.Name {
		return Card{}, false
	}
	c := d.config
	c.GPU, c.PP = g, 1
	degree, ok := c.MinTP(usable)
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

// rateOn returns the output tokens per second of another configuration at the same operating point.
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
