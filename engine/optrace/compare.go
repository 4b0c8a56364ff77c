package optrace

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Comparison is what two traces say of each other: the document
// rooftop.trace-compare/v1 without its name. A is the first trace, B the second; a
// ratio is B over A.
type Comparison struct {
	// Refused says why there is nothing to compare; the rest is empty then.
	Refused []string `json:"refused"`
	// SameRecording says that the two are one: nothing has a verdict then.
	SameRecording bool `json:"same_recording"`
	// Headline is the outcome in one sentence.
	Headline string `json:"headline"`
	// Next is what to do now where that cannot be told, "" where it can.
	Next string `json:"next"`
	// OtherModel says why the two are taken to be of different models, "" where they are
	// not. No figure has a verdict then: the work is not the same.
	OtherModel string `json:"other_model"`
	// Differs are what the two do not share, and what the comparison may so be about.
	Differs []Difference `json:"differs"`
	// Notes are what to know of the figures.
	Notes  []string      `json:"notes"`
	Phases []PhaseChange `json:"phases"`
	// Operators are matched by phase, operator, name without layer and type of weights;
	// those that changed a token's time most come first.
	Operators []OperatorChange `json:"operators"`
	Layers    []LayerChange    `json:"layers"` // by phase and layer
	Threads   ThreadsChange    `json:"threads"`
}

// Difference is something that two traces do not share.
type Difference struct {
	What string `json:"what"`
	A    string `json:"a"`
	B    string `json:"b"`
}

// ChangeWord says which way a figure moved from A to B.
type ChangeWord string

// Words of a comparison.
const (
	ChangeFaster  ChangeWord = "faster"                         // the whole interval is on that side
	ChangeSlower  ChangeWord = "slower"                         // of no change
	ChangeNone    ChangeWord = "no difference beyond the noise" // and the whole interval is within a tenth
	ChangeUnclear ChangeWord = "cannot-tell"                    // the interval holds no change, and changes that matter
)

// Change is a figure on both sides.
type Change struct {
	A     stat.Opt `json:"a"`
	B     stat.Opt `json:"b"`
	Ratio stat.Opt `json:"ratio"`
	// Low and High are the 95 % interval of the ratio: the scatter within each trace, and
	// what two runs of the same differ by. The intervals of all rows together hold with
	// 95 %, so that many rows do not make a change.
	Low    stat.Opt   `json:"ratio_low"`
	High   stat.Opt   `json:"ratio_high"`
	Word   ChangeWord `json:"verdict"` // "" where nothing can be said
	Reason string     `json:"reason"`  // why a value or the verdict is absent
}

// PhaseChange is a phase on both sides.
type PhaseChange struct {
	Phase string `json:"phase"`
	Rate  Change `json:"tokens_per_s"`
	// Shares of the roof of memory that A and B reach.
	OfRoofA stat.Opt `json:"of_roof_a"`
	OfRoofB stat.Opt `json:"of_roof_b"`
	// FirstToken is from the begin of a prefill to that of the decode after it, in
	// seconds, the mean; of prefill alone.
	FirstToken Change `json:"first_token_s"`
}

// OperatorChange is a group of spans on both sides.
type OperatorChange struct {
	Phase string `json:"phase"`
	Op    string `json:"op"`
	Name  string `json:"name"`
	TypeA string `json:"type_a"`
	TypeB string `json:"type_b"`
	// PerToken is its time for each token, in seconds; of a row that one side lacks, 0
	// there.
	PerToken Change `json:"s_per_token"`
	// ShareA and ShareB are its shares of the time of the operators of the phase.
	ShareA stat.Opt `json:"share_a_ratio"`
	ShareB stat.Opt `json:"share_b_ratio"`
	// Of is what the change makes of A's whole time of operators for each token.
	Of stat.Opt `json:"of_token_ratio"`
}

// LayerChange is a layer on both sides, in seconds for each token.
type LayerChange struct {
	Phase    string `json:"phase"`
	Layer    int    `json:"layer"`
	PerToken Change `json:"s_per_token"`
}

// ThreadsChange are the threads of both sides: how many, and the means of what they
// did with the time of graphs.
type ThreadsChange struct {
	// Counts are 0 where no lane was seen.
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
	// betweenRuns is the half width of what two processes of the same model and settings
	// differ by (measured: 8 %), withinRun of two stretches of one process (measured with
	// nothing attached in both: 1 %).
	betweenRuns = 0.08
	withinRun   = 0.01
	// equalWithin is the change, either way, that is still none.
	equalWithin = 0.1
	// probeNoise is by how much the cost of a probe differs from hit to hit, and so the
	// time of an operator: 0.5 to 1.8 µs (measured).
	probeNoise = 0.0000005
	// mostLost bounds the share of a trace that others are taken to have had.
	mostLost = 0.95
	// normalP95 is by how many standard deviations the 95th percentile of normal noise
	// exceeds its median.
	normalP95 = 1.645
	// atOnce is the probability that any interval of a comparison misses.
	atOnce = 0.05
)

// Compare compares trace b with trace a. What differs within the noise is said to be
// no difference. Either may be nil, which is refused.
func Compare(a, b *Summary) *Comparison {
	out := &Comparison{Refused: []string{}, Differs: []Difference{}, Notes: []string{}, Phases: []PhaseChange{}, Operators: []OperatorChange{}, Layers: []LayerChange{}}
	for i, s := range []*Summary{a, b} {
		if s == nil || len(s.Phases) == 0 {
			out.Refused = append(out.Refused, fmt.Sprintf("the %s trace holds no graph that was computed", [...]string{"first", "second"}[i]))
		}
	}
	if len(out.Refused) > 0 {
		out.Headline = "Nothing can be compared: " + out.Refused[0] + "."
		return out
	}
	c := comparing{a: lookAt(a), b: lookAt(b), noise: betweenRuns}
	c.wide = normalOf(c.rows())
	if sameProcess(&a.Target, &b.Target) {
		c.noise = withinRun
	}
	out.Differs = append(out.Differs, c.differs()...)
	out.Notes = append(out.Notes, c.notes()...)
	out.Threads = c.threads()
	for i := range a.Phases {
		pa := &a.Phases[i]
		at := slices.IndexFunc(b.Phases, func(p PhaseRow) bool { return p.Phase == pa.Phase })
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
		if !slices.ContainsFunc(a.Phases, func(p PhaseRow) bool { return p.Phase == b.Phases[i].Phase }) {
			out.Notes = append(out.Notes, "Only the second trace has the phase "+b.Phases[i].Phase+".")
		}
	}
	slices.SortStableFunc(out.Operators, func(x, y OperatorChange) int {
		return cmp.Compare(math.Abs(y.Of.Or(0)), math.Abs(x.Of.Or(0)))
	})
	if out.OtherModel = c.otherModel(); out.OtherModel != "" {
		out.apart()
		slices.SortStableFunc(out.Operators, func(x, y OperatorChange) int {
			return cmp.Compare(y.ShareA.Max(y.ShareB).Or(0), x.ShareA.Max(x.ShareB).Or(0))
		})
	}
	out.Headline, out.Next = headline(out), c.next(out)
	return out
}

// Itself takes every verdict from a comparison of a recording with itself, and says so.
func (c *Comparison) Itself() {
	c.SameRecording, c.Next, c.Notes = true, "", []string{}
	c.Headline = "A and B are the same recording: there is nothing between them that could differ."
	none := func(x *Change) {
		x.Low, x.High, x.Word, x.Reason = stat.None, stat.None, "", "the two are the same recording"
	}
	for i := range c.Phases {
		none(&c.Phases[i].Rate)
		none(&c.Phases[i].FirstToken)
	}
	for i := range c.Operators {
		none(&c.Operators[i].PerToken)
	}
	for i := range c.Layers {
		none(&c.Layers[i].PerToken)
	}
}

// sameProcess says that two traces are of one process that ran on. A PID alone may
// have been given out again; then the files would have to be the same as well.
func sameProcess(a, b *Target) bool {
	return a.PID > 0 && a.PID == b.PID && a.Command == b.Command && slices.Equal(a.Files, b.Files)
}

// comparing is a comparison while it is made.
type comparing struct {
	a, b  *view
	noise float64 // what nothing but another run makes, as a half width
	wide  float64 // by how many standard errors an interval reaches to either side
}

// rows is the number of intervals that the comparison makes at most.
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

// normalOf is by how many standard errors n intervals of normal noise have to reach to
// hold all of it with 95 % (Bonferroni).
func normalOf(n int) float64 {
	return math.Sqrt2 * math.Erfinv(1-atOnce/float64(max(n, 1)))
}

// change is [comparing.interval] with its verdict, or why there is none.
func (c *comparing) change(a, b stat.Opt, sa, sb float64, rate bool, without string) Change {
	out := c.interval(a, b, sa, sb, rate)
	if without != "" && out.Low.OK {
		out.Low, out.High, out.Word, out.Reason = stat.None, stat.None, "", without
	}
	return out
}

// interval is a figure with its interval; sa and sb are relative standard errors of the
// two sides. rate says that more is faster.
func (c *comparing) interval(a, b stat.Opt, sa, sb float64, rate bool) Change {
	out := Change{A: a, B: b}
	switch {
	case !a.OK || !b.OK:
		out.Reason = "one side does not have it"
		return out
	case !(a.V > 0) || !(b.V > 0):
		out.Reason = "one side is not positive"
		return out
	}
	out.Ratio = b.Div(a)
	if math.IsNaN(sa) || math.IsNaN(sb) {
		out.Reason = fmt.Sprintf("one side has fewer than %d of it, or of its graphs, so that its scatter is not known", fewestGraphs)
		return out
	}
	if !finiteNumber(out.Ratio.V) {
		out.Ratio, out.Reason = stat.None, "the two are too far apart"
		return out
	}
	half := math.Sqrt(c.wide*c.wide*(sa*sa+sb*sb) + c.noise*c.noise)
	// A side that others took the CPUs from would have been so much faster without them.
	down, up := c.b.slowedBy(), c.a.slowedBy()
	if rate {
		down, up = up, down
	}
	out.Low, out.High = stat.Some(out.Ratio.V*math.Exp(-half)/down), stat.Some(out.Ratio.V*math.Exp(half)*up)
	out.Word = wordFor(out.Low.V, out.High.V, rate)
	return out
}

// slowedBy is by how much others that took the CPUs away may have slowed a trace at
// most, 1 where nobody did or nothing is known: barriers let every lane wait for the one
// that lost its CPU.
func (v *view) slowedBy() float64 {
	p := v.preempted()
	if !p.ok || p.max < preemptedLimit {
		return 1
	}
	lost := max(p.mean*float64(max(v.lanes, 1)), p.max)
	if v.sync().ok { // else waiting for the lane that lost its CPU looks busy
		lost = v.lostByAll(p)
	}
	return 1 / (1 - min(lost, mostLost))
}

func wordFor(low, high float64, rate bool) ChangeWord {
	switch {
	case low <= 1 && high >= 1 && low >= 1-equalWithin && high <= 1+equalWithin:
		return ChangeNone
	case low <= 1 && high >= 1:
		return ChangeUnclear
	case low > 1 == rate:
		return ChangeFaster
	}
	return ChangeSlower
}

func (c *comparing) phase(a, b *PhaseRow) PhaseChange {
	without := c.untold(a, b)
	out := PhaseChange{
		Phase:   a.Phase,
		Rate:    c.change(a.Rate, b.Rate, c.unsteady(c.a, a.Phase, a.calls()), c.unsteady(c.b, b.Phase, b.calls()), true, without),
		OfRoofA: c.a.phaseOfRoof(a),
		OfRoofB: c.b.phaseOfRoof(b),
	}
	first := func(p *PhaseRow) stat.Opt {
		if p.FirstToken.Count == 0 {
			return stat.None
		}
		return stat.Some(p.FirstToken.Mean.Seconds())
	}
	out.FirstToken = c.change(first(a), first(b), a.FirstToken.scatter(0), b.FirstToken.scatter(0), false, without)
	return out
}

// calls is the distribution of a phase's calls, of its graphs where calls were not seen.
func (p *PhaseRow) calls() *Distribution {
	if p.Call.Count == 0 {
		return &p.Graph
	}
	return &p.Call
}

// phaseOfRoof is the share of the memory's roof that a phase reaches.
func (v *view) phaseOfRoof(p *PhaseRow) stat.Opt {
	roof, ok := v.point(v.lanes)
	if !ok {
		return stat.None
	}
	return p.BytesRate.Div(stat.Some(roof.BytesPerSecond))
}

func (c *comparing) layers(a, b *PhaseRow) []LayerChange {
	var out []LayerChange
	if a.Tokens <= 0 || b.Tokens <= 0 {
		return nil
	}
	without := c.withheld(a, b)
	for i := range c.a.Layers {
		la := &c.a.Layers[i]
		if la.Phase != a.Phase {
			continue
		}
		at := slices.IndexFunc(c.b.Layers, func(l LayerRow) bool { return l.Phase == la.Phase && l.Layer == la.Layer })
		if at < 0 {
			continue
		}
		lb := &c.b.Layers[at]
		out = append(out, LayerChange{Phase: a.Phase, Layer: la.Layer, PerToken: c.change(
			stat.Some(la.Time.Seconds()/float64(a.Tokens)), stat.Some(lb.Time.Seconds()/float64(b.Tokens)),
			c.unsteadyPart(c.a, a, la.Time), c.unsteadyPart(c.b, b, lb.Time), false, without)})
	}
	return out
}

func (c *comparing) threads() ThreadsChange {
	mean := func(s spread) stat.Opt {
		if !s.ok {
			return stat.None
		}
		return stat.Some(s.mean)
	}
	return ThreadsChange{
		CountA: c.a.lanes, CountB: c.b.lanes, BusyA: mean(c.a.busy()), BusyB: mean(c.b.busy()),
		SyncA: mean(c.a.sync()), SyncB: mean(c.b.sync()), PreemptedA: mean(c.a.preempted()), PreemptedB: mean(c.b.preempted()),
	}
}

// headline is the outcome for decode, or for the first phase where there is none.
func headline(c *Comparison) string {
	if c.main() == nil {
		return "Nothing can be compared: the two traces share no phase."
	}
	p := c.main()
	r := &p.Rate
	if c.OtherModel != "" {
		return fmt.Sprintf("Two different models (%s): neither trace is the faster one of the other. %s: %s tokens/s and %s.", c.OtherModel, phaseName(p.Phase), spellRate(r.A), spellRate(r.B))
	}
	interval := fmt.Sprintf("%s → %s tokens/s, ×%s; 95 %% interval ×%s to ×%s", spellThree(r.A.V), spellThree(r.B.V), spellThree(r.Ratio.V), spellThree(r.Low.V), spellThree(r.High.V))
	switch r.Word {
	case ChangeFaster, ChangeSlower:
		return fmt.Sprintf("%s is %s in the second trace (%s).", phaseName(p.Phase), r.Word, interval)
	case ChangeNone:
		return fmt.Sprintf("%s does not differ beyond the noise (%s).", phaseName(p.Phase), interval)
	case ChangeUnclear:
		return fmt.Sprintf("Whether %s differs cannot be told (%s).", p.Phase, interval)
	default:
		return fmt.Sprintf("Whether %s differs cannot be told: %s.", p.Phase, r.Reason)
	}
}

// spellRate is a rate, or that there is none.
func spellRate(o stat.Opt) string {
	if !o.OK {
		return "an unknown number of"
	}
	return spellThree(o.V)
}

func phaseName(phase string) string {
	return map[string]string{"decode": "Decode", "prefill": "Prefill", "encode": "Encode", "unknown": "The phase that is not known"}[phase]
}
