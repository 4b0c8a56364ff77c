package capture

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/roofline"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Machine is the knowledge about the server besides the capture.
type Machine struct {
	Facts *engine.Facts // GPU, model, types, price, each with its source
	Cards []catalog.GPU // candidates for a smaller GPU
}

// Names of derived quantities, in the order of a report.
const (
	JoulesPerToken     = "joules_per_token"
	MillijoulesPer     = "millijoules_per_token"
	TokensPerJoule     = "tokens_per_joule"
	DollarsPerMillion  = "usd_per_million_tokens"
	PowerShare         = "power_share"
	BandwidthShare     = "bandwidth_share"
	VRAMShare          = "vram_share"
	OutputRate         = "output_tokens_per_s" // of an observation
	DecodeRate         = "decode_tokens_per_s"
	DecodeBatch        = "decode_batch"
	CeilingAchievable  = "ceiling_achievable_tokens_per_s"
	CeilingIdeal       = "ceiling_ideal_tokens_per_s"
	CeilingEfficiency  = "ceiling_efficiency"
	secondsPerHour     = 3600
	tokensPerMillion   = 1e6
	millijoulesInJoule = 1e3
)

// derivation holds the inputs of derived quantities.
type derivation struct {
	c      *Capture
	tokens Tokens
	output Counted // tokens that the energy and cost are divided by
	gpus   []GPUUsage
	energy Energy
	facts  *engine.Facts
	point  operating
	config roofline.Config
	lacks  []string // unknown inputs of the physical model
	list   []engine.NamedQuantity
}

func (d *derivation) put(name, unit string, source engine.Origin, v stat.Opt, reason, note string) {
	q := engine.Quantity{Value: v, Unit: unit, Source: source, Note: note}
	if !v.OK {
		q.Reason = reason
	}
	d.list = append(d.list, engine.NamedQuantity{Name: name, Quantity: q})
}

// derive computes the energy and cost per token, the share of the hardware that the run used, and
// the ceiling for its batch.
func (c *Capture) derive(tokens Tokens, gpus []GPUUsage, e Energy, m Machine) *derivation {
	d := &derivation{c: c, tokens: tokens, gpus: gpus, energy: e, facts: m.Facts, point: c.operating(tokens)}
	d.config, d.lacks = engine.ReplicaConfig(m.Facts)
	d.output = d.ofAllClients()
	if c.Kind == Observation {
		d.outputRate()
	}
	d.perToken()
	d.shares()
	d.ceiling()
	return d
}

// outputRate adds the output rate by the server's counter.
func (d *derivation) outputRate() {
	rate := stat.None
	if span := d.c.Span().Seconds(); span > 0 {
		rate = d.output.Tokens.Times(1 / span)
	}
	source := engine.Measured
	if d.output.Estimate {
		source = engine.Estimate
	}
	d.put(OutputRate, "tokens/s", source, rate, cmp.Or(d.output.Reason, "the observation has no duration"), cmp.Or(d.output.Note, "the server's counter"))
}

// ofAllClients returns the tokens of all clients, which the server's energy and cost are divided
// by. They are absent, with the reason, if the other clients' tokens are not counted.
func (d *derivation) ofAllClients() Counted {
	switch {
	case d.c.Kind == Observation:
		return d.c.Counted()
	case !d.point.Others:
		return Counted{Tokens: d.tokens.Used}
	case !d.tokens.Counter.OK:
		return Counted{Reason: "other clients used the server, and their tokens are not counted"}
	}
	n := d.c.byCounter(d.tokens.Used.Or(0))
	if n.Reason != "" {
		n.Reason = "other clients used the server, and their tokens are unknown: " + n.Reason
	}
	if n.Note == "" {
		n.Note = "by the server's counter"
	}
	n.Note = "tokens of all clients, " + n.Note
	return n
}

// perToken divides energy and cost by the output tokens only; prompt tokens get no share.
func (d *derivation) perToken() {
	n := &d.output
	source, whose := engine.Derived, ""
	if n.Estimate {
		source = engine.Estimate
	}
	if n.Note != "" {
		whose = "; " + n.Note
	}
	joules := d.energy.Joules.Div(n.Tokens)
	reason, note := d.energy.Reason, ""
	if d.energy.Joules.OK {
		reason = cmp.Or(n.Reason, "no output token was counted")
		note = "by " + d.energy.How + ", prefill included" + whose
	}
	d.put(JoulesPerToken, "J", source, joules, reason, note)
	d.put(MillijoulesPer, "mJ", source, joules.Times(millijoulesInJoule), reason, note)
	d.put(TokensPerJoule, "tokens/J", source, n.Tokens.Div(d.energy.Joules), reason, note)

	cost := d.facts.CostPerHour
	reason = cost.Note
	dollars := stat.None
	if cost.Known {
		reason = cmp.Or(n.Reason, "no output token was counted")
		dollars = stat.Some(cost.Value * d.c.Span().Seconds() / secondsPerHour).Div(n.Tokens).Times(tokensPerMillion)
	}
	note = ""
	if cost.Known {
		note = fmt.Sprintf("at $%.2f an hour, %s", cost.Value, cost.Source)
		if cost.Note != "" {
			note += ": " + cost.Note
		}
		note += whose
	}
	if d.facts.CostEst {
		source = engine.Estimate
	}
	d.put(DollarsPerMillion, "USD", source, dollars, reason, note)
}

// shares adds how much of the devices' capacity the run used.
func (d *derivation) shares() {
	power, reason, note, source := d.powerShare()
	d.put(PowerShare, "ratio", source, power, reason, note)
	bandwidth, reason, note, source := d.bandwidthShare()
	d.put(BandwidthShare, "ratio", source, bandwidth, reason, note)
	used, total := stat.None, stat.None
	for i := range d.gpus {
		f := &d.gpus[i].Fields
		used, total = used.Plus(f[engine.GPUVRAMUsed].Peak), total.Plus(f[engine.GPUVRAMTotal].Mean)
	}
	d.put(VRAMShare, "ratio", engine.Measured, used.Div(total), d.noGPU("VRAM"), "at its peak; vLLM reserves its pool at the start")
}

func (d *derivation) noGPU(what string) string {
	if len(d.gpus) > 0 {
		return "the GPU does not report its " + what
	}
	if d.c.GPUs.Why != "" {
		return d.c.GPUs.Why
	}
	return "no GPU was read"
}

// powerShare returns the mean power of all GPUs divided by their limit.
func (d *derivation) powerShare() (share stat.Opt, reason, note string, source engine.Origin) {
	power, limit := stat.None, stat.None
	source = engine.Measured
	for i := range d.gpus {
		f := &d.gpus[i].Fields
		if p := f[engine.GPUPowerW]; !p.Mean.OK {
			return stat.None, p.Reason, "", source
		}
		power = power.Plus(f[engine.GPUPowerW].Mean)
		if !f[engine.GPUPowerLimitW].Mean.OK {
			source = engine.Estimate
		}
		limit = limit.Plus(f[engine.GPUPowerLimitW].Mean)
	}
	note = "mean power over the enforced limit"
	if source == engine.Estimate {
		limit = stat.None
		if d.facts.GPUKnown && d.facts.GPU.TDPW > 0 {
			limit = stat.Some(d.facts.GPU.TDPW * float64(len(d.gpus)))
			note = "mean power over the catalog's TDP"
		}
	}
	if len(d.gpus) > 0 && power.OK && !limit.OK {
		return stat.None, "the power limit is not readable and not in the catalog", "", source
	}
	return power.Div(limit), d.noGPU("power"), note, source
}

// bandwidthShare returns the used share of the memory bandwidth: measured over the run if the GPU
// counts it, otherwise estimated from what decoding has to read.
func (d *derivation) bandwidthShare() (share stat.Opt, reason, note string, source engine.Origin) {
	sum, n := 0.0, 0
	for i := range d.gpus {
		if active := d.gpus[i].Fields[engine.GPUDRAMActive].Mean; active.OK {
			sum += active.V
			n++
		}
	}
	if n > 0 && n == len(d.gpus) {
		return stat.Some(sum / float64(n)), "", "counted by the GPU over the run", engine.Measured
	}
	if reason := d.noPoint(); reason != "" {
		return stat.None, reason, "", engine.Estimate
	}
	p, busy := d.step()
	batch := d.point.Batch.V
	bytes := busy*d.config.WeightBytes(p.Tokens) + batch*d.config.KVRead(p.Context)
	perSecond := d.replicas() * float64(d.config.TP*d.config.PP) * d.config.GPU.MemBandwidthGBs * 1e9
	used := bytes * d.point.Rate.V / batch / perSecond
	if used > mostShare {
		return stat.None, fmt.Sprintf("at one token per step, decoding would read %.3g times what the memory allows: steps produced several tokens, chunks were delayed on their way, or the model, types or GPU differ", used), "", engine.Estimate
	}
	return stat.Some(used), "", "weights and cache read by decoding, while it decodes", engine.Estimate
}

// mostShare is the largest plausible share of the bandwidth: the bytes read are known to a few
// percent.
const mostShare = 1.1

// noPoint returns why the physical model cannot be compared with the run, "" if it can.
func (d *derivation) noPoint() string {
	switch {
	case len(d.lacks) > 0:
		return fmt.Sprintf("%s not known: give --gpu and --model", strings.Join(d.lacks, " and "))
	case !d.point.Batch.OK || !d.point.Rate.OK:
		return d.point.Reason
	case !d.point.Context.OK:
		return "the prompt length is unknown: the server sends no usage report"
	}
	return ""
}

// replicas returns the number of data-parallel ranks that the requests are spread over.
func (d *derivation) replicas() float64 { return float64(max(1, d.facts.Ranks)) }

// step returns the operating point of one replica for the physical model, and the number of
// replicas that decode.
func (d *derivation) step() (p roofline.Point, busy float64) {
	whole := max(1, d.point.Batch.V)
	busy = min(d.replicas(), whole)
	batch := whole / busy
	return roofline.Point{Batch: batch, Context: d.point.Context.V, Tokens: batch, PerSequence: 1}, busy
}

// ceiling adds the decode rate and what the hardware allows for this batch.
func (d *derivation) ceiling() {
	batchNote := d.point.BatchFrom
	d.put(DecodeBatch, "requests", engine.Derived, d.point.Batch, d.point.Reason, batchNote)
	source, rateNote := engine.Measured, "all sequences, while any decodes"
	switch {
	case d.point.Others:
		source, rateNote = engine.Derived, "assuming that other clients' sequences are as fast as these"
	case d.output.Estimate:
		source, rateNote = engine.Estimate, d.output.Note
	}
	d.put(DecodeRate, "tokens/s", source, d.point.Rate, d.point.Reason, rateNote)
	reason := d.noPoint()
	achievable, ideal, efficiency := stat.None, stat.None, stat.None
	note := ""
	if reason == "" {
		p, busy := d.step()
		s := d.config.Step(p)
		achievable = stat.Some(busy * p.Batch).Div(stat.Some(s.Achievable.Total()))
		ideal = stat.Some(busy * p.Batch).Div(stat.Some(s.Ideal.Total()))
		efficiency = d.point.Rate.Div(ideal)
		note = fmt.Sprintf("%s bound, batch %.3g, %.0f tokens of context", s.Achievable.Binding(), p.Batch, p.Context)
		if n := d.replicas(); n > 1 {
			note += fmt.Sprintf(" on each of %.3g replicas", busy)
		}
	}
	d.put(CeilingAchievable, "tokens/s", engine.Estimate, achievable, reason, note)
	d.put(CeilingIdeal, "tokens/s", engine.Estimate, ideal, reason, "every byte at full bandwidth, without overhead")
	d.put(CeilingEfficiency, "ratio", engine.Estimate, efficiency, reason, "measured decode rate over the ideal one")
}

// value returns a derived quantity by its name, None without it.
func (d *derivation) value(name string) stat.Opt {
	for _, q := range d.list {
		if q.Name == name {
			return q.Value
		}
	}
	return stat.None
}
