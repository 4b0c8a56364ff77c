// Package comparison compares two traces.
package comparison

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/compare"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/optrace/evidence"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Comparison is the comparison of two traces: the document rooftop.trace-compare/v1 without its
// schema. A is the first trace, B the second; a ratio is B over A.
type Comparison struct {
	// Refused are the reasons why nothing can be compared; everything else is empty then.
	Refused []string `json:"refused"`
	// SameRecording reports whether both are the same recording: nothing has a verdict then.
	SameRecording bool `json:"same_recording"`
	// Headline is the outcome in one sentence.
	Headline string `json:"headline"`
	// Next is the next step if the outcome is unresolved, "" if it is not.
	Next string `json:"next"`
	// OtherModel says why the two are taken to be of different models, "" if they are not. No
	// figure has a verdict then, since the work differs.
	OtherModel string `json:"other_model"`
	// Differs are the differences in setup, which may cause a change of the figures.
	Differs []compare.Difference `json:"differs"`
	// Notes are limitations of the figures.
	Notes  []string      `json:"notes"`
	Phases []PhaseChange `json:"phases"`
	// Operators are matched by phase, operator, name without layer and type of weights; those
	// that changed a token's time most come first.
	Operators []OperatorChange `json:"operators"`
	Layers    []LayerChange    `json:"layers"` // by phase and layer
	Threads   ThreadsChange    `json:"threads"`
}

// PhaseChange is a phase in both traces.
type PhaseChange struct {
	Phase string         `json:"phase"`
	Rate  compare.Change `json:"tokens_per_s"`
	// OfPeakA and OfPeakB are the shares of the memory's peak that A and B reach.
	OfPeakA stat.Opt `json:"of_peak_a"`
	OfPeakB stat.Opt `json:"of_peak_b"`
	// FirstToken is the mean time from the start of a prefill to that of the decode after it,
	// in seconds; absent for other phases.
	FirstToken compare.Change `json:"first_token_s"`
}

// OperatorChange is a group of spans in both traces.
type OperatorChange struct {
	Phase string `json:"phase"`
	Op    string `json:"op"`
	Name  string `json:"name"`
	TypeA string `json:"type_a"`
	TypeB string `json:"type_b"`
	// PerToken is its time per token, in seconds; 0 on a side that lacks the row.
	PerToken compare.Change `json:"s_per_token"`
	// ShareA and ShareB are its shares of the time of the phase's operators.
	ShareA stat.Opt `json:"share_a_ratio"`
	ShareB stat.Opt `json:"share_b_ratio"`
	// TokenShare is the change of PerToken over A's time of all operators per token.
	TokenShare stat.Opt `json:"of_token_ratio"`
}

// LayerChange is a layer in both traces, in seconds per token.
type LayerChange struct {
	Phase    string         `json:"phase"`
	Layer    int            `json:"layer"`
	PerToken compare.Change `json:"s_per_token"`
}

// ThreadsChange is the number of threads in both traces, and the means over threads of what
// they did with the time of graphs.
type ThreadsChange struct {
	// CountA and CountB are 0 if no thread was seen.
	CountA     int      `json:"count_a" absent:"0"`
	CountB     int      `json:"count_b" absent:"0"`
	BusyA      stat.Opt `json:"busy_a"`
	BusyB      stat.Opt `json:"busy_b"`
	SyncA      stat.Opt `json:"sync_a"`
	SyncB      stat.Opt `json:"sync_b"`
	PreemptedA stat.Opt `json:"preempted_a"`
	PreemptedB stat.Opt `json:"preempted_b"`
}

const (
	// betweenRuns is the half width of the difference between two processes with the same model
	// and settings (measured: 8 %), withinRun that between two stretches of one process
	// (measured with nothing attached in both: 1 %).
	betweenRuns = 0.08
	withinRun   = 0.01
	// probeNoise is by how much the cost of a probe varies from hit to hit, and so the time of
	// an operator, in seconds: 0.5 to 1.8 µs (measured).
	probeNoise = 0.0000005
	// mostLost bounds the share of a trace that other programs are assumed to have taken.
	mostLost = 0.95
	// normalP95 is by how many standard deviations the 95th percentile of normal noise
	// exceeds its median.
	normalP95 = 1.645
	// familyError is the probability that any interval of a comparison misses the true value.
	familyError = 0.05
)

// Compare compares trace b with trace a. A difference within the noise gets no verdict. A trace
// that is nil or has no phase is refused.
func Compare(a, b *optrace.Summary) *Comparison {
	out := &Comparison{Refused: []string{}, Differs: []compare.Difference{}, Notes: []string{}, Phases: []PhaseChange{}, Operators: []OperatorChange{}, Layers: []LayerChange{}}
	for i, s := range []*optrace.Summary{a, b} {
		if s == nil || len(s.Phases) == 0 {
			out.Refused = append(out.Refused, "the "+sideNames[i]+" trace has no graph")
		}
	}
	if len(out.Refused) > 0 {
		out.Headline = "Nothing can be compared: " + out.Refused[0] + "."
		return out
	}
	c := comparing{a: evidence.NewView(a), b: evidence.NewView(b), noise: betweenRuns}
	c.width = intervalWidth(c.rows())
	if sameProcess(&a.Target, &b.Target) {
		c.noise = withinRun
	}
	out.Differs = append(out.Differs, c.differs()...)
	out.Notes = append(out.Notes, c.notes()...)
	out.Threads = c.threads()
	for i := range a.Phases {
		pa := &a.Phases[i]
		at := slices.IndexFunc(b.Phases, func(p optrace.PhaseRow) bool { return p.Phase == pa.Phase })
		if at < 0 {
			out.Notes = append(out.Notes, "Only the first trace has the phase "+pa.Phase+".")
			continue
		}
		pb := &b.Phases[at]
		out.Phases = append(out.Phases, c.phase(pa, pb))
		out.Operators = append(out.Operators, c.operators(pa, pb)...)
		out.Layers = append(out.Layers, c.layers(pa, pb)...)
	}
	for i := range b.Phases {
		if !slices.ContainsFunc(a.Phases, func(p optrace.PhaseRow) bool { return p.Phase == b.Phases[i].Phase }) {
			out.Notes = append(out.Notes, "Only the second trace has the phase "+b.Phases[i].Phase+".")
		}
	}
	slices.SortStableFunc(out.Operators, func(x, y OperatorChange) int {
		return cmp.Compare(math.Abs(y.TokenShare.Or(0)), math.Abs(x.TokenShare.Or(0)))
	})
	if out.OtherModel = c.otherModel(); out.OtherModel != "" {
		out.dropVerdicts()
		slices.SortStableFunc(out.Operators, func(x, y OperatorChange) int {
			return cmp.Compare(y.ShareA.Max(y.ShareB).Or(0), x.ShareA.Max(x.ShareB).Or(0))
		})
	}
	out.Headline, out.Next = headline(out), c.nextStep(out)
	return out
}

// SameTrace withholds every verdict, because both traces are the same recording.
func (c *Comparison) SameTrace() {
	c.SameRecording, c.Next, c.Notes = true, "", []string{}
	c.Headline = "A and B are the same recording: they cannot differ."
	c.eachChange(func(x *compare.Change) { x.Withhold("both are the same recording") })
}

// eachChange calls do with each figure that is compared.
func (c *Comparison) eachChange(do func(*compare.Change)) {
	for i := range c.Phases {
		do(&c.Phases[i].Rate)
		do(&c.Phases[i].FirstToken)
	}
	for i := range c.Operators {
		do(&c.Operators[i].PerToken)
	}
	for i := range c.Layers {
		do(&c.Layers[i].PerToken)
	}
}

// sameProcess reports whether two traces are of one process. Since PIDs are reused, the
// commands and mapped files must match too.
func sameProcess(a, b *optrace.Target) bool {
	return a.PID > 0 && a.PID == b.PID && a.Command == b.Command && slices.Equal(a.Files, b.Files)
}

// comparing is a comparison in progress.
type comparing struct {
	a, b  *evidence.View
	noise float64 // half width of the difference between two runs with the same settings
	width float64 // half width of an interval, in standard errors
}

// rows returns the largest number of intervals that the comparison can make.
func (c *comparing) rows() int {
	n := 0
	for i := range c.a.Phases {
		phase := c.a.Phases[i].Phase
		n += 2 + len(rowsOf(c.a, phase)) // the rate and the first token
		for j := range c.a.Layers {
			if c.a.Layers[j].Phase == phase {
				n++
			}
		}
	}
	return n
}

// intervalWidth returns the half width, in standard errors, that n intervals of normal noise need to
// include all true values with 95 % (Bonferroni).
func intervalWidth(n int) float64 {
	return math.Sqrt2 * math.Erfinv(1-familyError/float64(max(n, 1)))
}

// change is like interval, but withholds the verdict for the reason without, unless that is "".
func (c *comparing) change(a, b stat.Opt, sa, sb float64, rate bool, without string) compare.Change {
	out := c.interval(a, b, sa, sb, rate)
	if without != "" && out.Low.OK {
		out.Withhold(without)
	}
	return out
}

// interval returns the change from a to b with its interval. sa and sb are the relative
// standard errors of the two sides, NaN if unknown. rate says that more is faster.
func (c *comparing) interval(a, b stat.Opt, sa, sb float64, rate bool) compare.Change {
	out := compare.New(a, b)
	if !out.Ratio.OK {
		return out
	}
	if math.IsNaN(sa) || math.IsNaN(sb) {
		out.Reason = fmt.Sprintf("one side has fewer than %d samples or graphs, so its scatter is unknown", optrace.FewestGraphs)
		return out
	}
	if !stat.IsFinite(out.Ratio.V) {
		out.Ratio, out.Reason = stat.None, "the values are too far apart"
		return out
	}
	half := math.Sqrt(c.width*c.width*(sa*sa+sb*sb) + c.noise*c.noise)
	// A side that lost CPUs to other processes could have been faster by this factor.
	down, up := slowedBy(c.b), slowedBy(c.a)
	if rate {
		down, up = up, down
	}
	out.SetInterval(out.Ratio.V*math.Exp(-half)/down, out.Ratio.V*math.Exp(half)*up, rate)
	return out
}

// slowedBy returns the largest factor by which other processes may have slowed a trace, 1 if
// none did or nothing is known: at a barrier, every thread waits for the one that lost its CPU.
func slowedBy(v *evidence.View) float64 {
	p := v.PreemptedSpread()
	if !p.OK || p.Max < evidence.PreemptedLimit {
		return 1
	}
	lost := max(p.Mean*float64(max(v.ThreadCount, 1)), p.Max)
	if v.Sync().OK { // otherwise waiting for the thread that lost its CPU looks busy
		lost = v.LostByAll(p)
	}
	return 1 / (1 - min(lost, mostLost))
}

func (c *comparing) phase(a, b *optrace.PhaseRow) PhaseChange {
	without := c.whyNoVerdict(a, b)
	out := PhaseChange{
		Phase:   a.Phase,
		Rate:    c.change(a.Rate, b.Rate, c.phaseError(c.a, a.Phase, a.CallTimes()), c.phaseError(c.b, b.Phase, b.CallTimes()), true, without),
		OfPeakA: phaseOfPeak(c.a, a),
		OfPeakB: phaseOfPeak(c.b, b),
	}
	first := func(p *optrace.PhaseRow) stat.Opt {
		if p.FirstToken.Count == 0 {
			return stat.None
		}
		return stat.Some(p.FirstToken.Mean.Seconds())
	}
	out.FirstToken = c.change(first(a), first(b), relativeError(&a.FirstToken, 0), relativeError(&b.FirstToken, 0), false, without)
	return out
}

// phaseOfPeak returns the share of the memory's peak that a phase reaches, absent if unknown.
func phaseOfPeak(v *evidence.View, p *optrace.PhaseRow) stat.Opt {
	peak, ok := v.PeakPoint(v.ThreadCount)
	if !ok {
		return stat.None
	}
	return p.BytesRate.Div(stat.Some(peak.BytesPerSecond))
}

func (c *comparing) layers(a, b *optrace.PhaseRow) []LayerChange {
	var out []LayerChange
	if a.Tokens <= 0 || b.Tokens <= 0 {
		return nil
	}
	without := c.whyNoOperatorVerdict(a, b)
	for i := range c.a.Layers {
		la := &c.a.Layers[i]
		if la.Phase != a.Phase {
			continue
		}
		at := slices.IndexFunc(c.b.Layers, func(l optrace.LayerRow) bool { return l.Phase == la.Phase && l.Layer == la.Layer })
		if at < 0 {
			continue
		}
		lb := &c.b.Layers[at]
		out = append(out, LayerChange{Phase: a.Phase, Layer: la.Layer, PerToken: c.change(
			stat.Some(la.Time.Seconds()/float64(a.Tokens)), stat.Some(lb.Time.Seconds()/float64(b.Tokens)),
			c.partError(c.a, a, la.Time), c.partError(c.b, b, lb.Time), false, without)})
	}
	return out
}

func (c *comparing) threads() ThreadsChange {
	mean := func(s evidence.Spread) stat.Opt {
		if !s.OK {
			return stat.None
		}
		return stat.Some(s.Mean)
	}
	return ThreadsChange{
		CountA: c.a.ThreadCount, CountB: c.b.ThreadCount, BusyA: mean(c.a.Busy()), BusyB: mean(c.b.Busy()),
		SyncA: mean(c.a.Sync()), SyncB: mean(c.b.Sync()), PreemptedA: mean(c.a.PreemptedSpread()), PreemptedB: mean(c.b.PreemptedSpread()),
	}
}

// headline describes the outcome for the main phase.
func headline(c *Comparison) string {
	if c.mainPhase() == nil {
		return "Nothing can be compared: the two traces share no phase."
	}
	p := c.mainPhase()
	r := &p.Rate
	if c.OtherModel != "" {
		return fmt.Sprintf("The traces are of different models (%s), so neither is called faster. %s: %s tokens/s and %s.", c.OtherModel, phaseName(p.Phase), spellRate(r.A), spellRate(r.B))
	}
	interval := fmt.Sprintf("%s → %s tokens/s, ×%s; 95 %% interval ×%s to ×%s", figure.Significant(r.A.V), figure.Significant(r.B.V), figure.Significant(r.Ratio.V), figure.Significant(r.Low.V), figure.Significant(r.High.V))
	switch r.Verdict {
	case compare.Faster, compare.Slower:
		return fmt.Sprintf("%s is %s in the second trace (%s).", phaseName(p.Phase), r.Verdict, interval)
	case compare.Equal:
		return fmt.Sprintf("%s does not differ beyond the noise (%s).", phaseName(p.Phase), interval)
	case compare.Unresolved:
		return fmt.Sprintf("%s: unresolved (%s).", phaseName(p.Phase), interval)
	default:
		return fmt.Sprintf("%s: unresolved, %s.", phaseName(p.Phase), r.Reason)
	}
}

// spellRate formats a rate, "unknown" if it is absent.
func spellRate(o stat.Opt) string {
	if !o.OK {
		return "unknown"
	}
	return figure.Significant(o.V)
}

func phaseName(phase string) string {
	return map[string]string{"decode": "Decode", "prefill": "Prefill", "encode": "Encode", "unknown": "The unknown phase"}[phase]
}
