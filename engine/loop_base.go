package engine

import (
	"math"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// base is what was measured of the kept configuration: what changes are judged
// against. What it holds is replaced and never altered: trials hold on to it.
type base struct {
	lives []verdict.Life // of earlier runs, oldest first, fewer than sideLives
	live  verdict.Life   // of the run that goes on, or went on last
	// again says that live is a further run of what lives are of, and that what the
	// restart between them changed is still to be measured.
	again bool
	busy  stat.Opt
}

// side is all of it.
func (b *base) side() verdict.Side {
	s := verdict.Side{Busy: b.busy, Lives: slices.Clip(b.lives)}
	if len(b.live) > 0 {
		s.Lives = append(s.Lives, b.live)
	}
	return s
}

// further begins another run of the same configuration.
func (b *base) further() {
	if len(b.live) == 0 {
		return
	}
	lives := slices.Concat(b.lives, []verdict.Life{b.live})
	*b = base{lives: lives[max(0, len(lives)-sideLives+1):], again: true}
}

// setBase makes windows all that is known of the kept configuration.
func (l *Loop) setBase(live verdict.Life) {
	l.base = base{live: extended(nil, live, l.plan.Longest), busy: l.starved.share()}
}

// renewal follows how the baseline is renewed while a change is waited for.
type renewal struct {
	from  int           // index of the window that the stretch under way begins with
	since int           // index of the first window of the present baseline
	until time.Duration // end of the baseline
	// doubt is a stretch far from the baseline, which the next has to confirm, with
	// its slices and its first window.
	doubt      *Diagnosis
	doubtLife  verdict.Life
	doubtSince int
}

// heldBack is how many windows at the end never become part of a baseline while
// a change is waited for: a server that is told to stop drains its requests.
const heldBack = 2

// renew adds the stretch that was completed last to the baseline. One that differs
// by more than a verdict used to need is another load, or another state of the
// server: where the next agrees the baseline begins there.
func (l *Loop) renew() {
	r := &l.renewal
	windows := l.life.since(r.from)
	if len(windows) <= heldBack {
		return
	}
	windows = windows[:len(windows)-heldBack]
	part, ok, _ := stretch(windows, l.plan.Measure)
	if !ok {
		return
	}
	r.from = part[len(part)-1].Index + 1
	if slices.ContainsFunc(part, func(w Window) bool { return hangs(&w) }) {
		return // of a server that stands still nothing is learned
	}
	d, more := l.diagnose(part), slicesOf(part)
	b, isFar := &l.base, far(l.seen.Baseline, d)
	if isFar && (r.doubt == nil || far(r.doubt, d)) {
		b.live = extended(b.live, r.doubtLife, l.plan.Longest)
		r.doubt, r.doubtLife, r.doubtSince = d, more, part[0].Index
		return
	}
	if isFar {
		b.lives, b.live, b.again = nil, nil, false
		l.unsure = nil
		r.since = r.doubtSince
	}
	b.live = extended(b.live, slices.Concat(r.doubtLife, more), l.plan.Longest)
	b.busy = l.starved.share()
	r.doubt, r.doubtLife = nil, nil
	r.until = end(part)
	l.seen.Baseline = l.diagnose(l.stretched(r.until))
	l.repeat()
	l.reconsider(d)
	l.proceed()
}

// stretched are the windows of the baseline that are still at hand, up to a time.
func (l *Loop) stretched(until time.Duration) []Window {
	windows := l.life.since(l.renewal.since)
	n := len(windows)
	for n > 1 && end(windows[:n]) > until {
		n--
	}
	return latest(windows[:n], l.plan.Longest)
}

// far says that two measurements differ in throughput by as much as one load does
// from another.
func far(a, b *Diagnosis) bool {
	change := relative(a.Quantity("generation_tokens_per_s").Value, b.Quantity("generation_tokens_per_s").Value)
	return !change.OK || change.V > throughputShift || change.V < -throughputShift
}

// noisy is how many times the precision a measurement of what a restart changes may
// be uncertain by: beyond it the scatter of the load would be taken for it.
const noisy = 2.5

// noiseEnough is how many times the precision it may be uncertain by to end.
const noiseEnough = 1.5

// repeat finds out what a restart changed by chance, once enough was measured of a
// further run of the kept configuration.
func (l *Loop) repeat() {
	b := &l.base
	if !b.again {
		return
	}
	before := verdict.Side{Lives: b.lives[len(b.lives)-1:]}
	after := verdict.Side{Lives: []verdict.Life{b.live}}
	full := lengthOf(b.live) >= l.plan.Longest-l.plan.Measure
	r := verdict.Judge(&before, &after, l.judging(verdict.Touch{}, verdict.Plan{Looks: 1, Last: true}))
	if !full && (!r.Known || r.Direction == NotComparable || r.Measured > noiseEnough*l.precision()) {
		return
	}
	b.again = false
	l.differed(&r, l.apart(before.Lives[0], b.live))
}

// apart is the difference of the logarithms of the throughput of two runs, as a
// verdict takes it: without their warm-up.
func (l *Loop) apart(before, after verdict.Life) stat.Opt {
	b, a := verdict.Side{Lives: []verdict.Life{before}}, verdict.Side{Lives: []verdict.Life{after}}
	r := verdict.Judge(&b, &a, verdict.Plan{Looks: 1, Last: true, Seed: uint64(l.iteration()) + 1})
	if !r.Known {
		return stat.None
	}
	return stat.Some(math.Log1p(r.Effect.Mid))
}

// differed notes what two runs of one configuration differ in.
func (l *Loop) differed(r *verdict.Result, difference stat.Opt) {
	text := "the same settings, measured again"
	switch {
	case r.Direction == NotComparable:
		text += ", says nothing of noise: " + r.Reason
	case !difference.OK:
		text += ", says nothing of noise: its throughput is not known"
	case r.Known && r.Measured > noisy*l.precision():
		text += ": the load scatters too much to tell what the restart changed"
	default:
		ratio := math.Expm1(difference.V)
		l.noise.add(difference.V)
		l.ratios.add(ratio)
		l.tell(LevelInfo, Event{Kind: EventSpread, Iteration: l.iteration(), Log: difference, Text: text + ": output " + figure.Change(ratio) + " % is noise"})
		return
	}
	l.write(LevelInfo, "", text)
}

// precision is the relative difference that matters.
func (l *Loop) precision() float64 {
	if l.plan.Precision > 0 {
		return l.plan.Precision
	}
	return defaultPrecision
}

// defaultPrecision is what engine/verdict takes where a plan has none.
const defaultPrecision = 0.03

// judging fills in what every judgement of this run is by.
func (l *Loop) judging(touch verdict.Touch, p verdict.Plan) verdict.Plan {
	p.Goal, p.Objectives, p.Precision, p.Touch = l.plan.Goal, l.plan.Objectives, l.precision(), touch
	p.Spread = verdict.Widen(slices.Concat(l.plan.Repeats, l.noise.view()))
	p.Seed = uint64(l.iteration()) + 1
	return p
}

// narrow says whether the kept configuration was measured well enough to tell the
// gain that is predicted: a sixth of it is as sure as a verdict on it can become,
// and half the precision is as sure as any needs.
func (l *Loop) narrow(r *Recommendation) bool {
	length := lengthOf(l.base.live)
	if l.off() || length >= l.plan.Longest-l.plan.Measure {
		return true
	}
	hoped := hopedGain(r.Predicted, l.plan.Goal)
	if least := burstCleared(hoped); least > l.plan.Measure && length < least+l.plan.Measure/2 {
		return false
	}
	side := l.base.side()
	return l.own(&side) <= max(l.precision()/2, hoped/6)
}

// burstLong is how long a neighbour's burst may last, which takes up to half of the
// throughput, as engine/verdict reckons.
const burstLong = 40 * time.Second

// burstCleared is for how long a baseline has to be measured so that no burst can be
// the reason for half of a gain, a ratio: the longer the side, the less of it a burst
// takes. What a verdict cuts off as warm-up comes on top.
func burstCleared(gain float64) time.Duration {
	share := 1 - math.Log1p(max(0, gain))/(2*math.Ln2)
	return time.Duration(float64(burstLong) * max(0, share))
}

// own is half the width of the interval about a side by itself, as a ratio; 0 where
// that is not known.
func (l *Loop) own(s *verdict.Side) float64 {
	r := verdict.Judge(s, s, l.judging(verdict.Touch{}, verdict.Plan{Looks: 1, Last: true}))
	if !r.Known {
		return 0
	}
	return r.Measured / math.Sqrt2 // it was held against itself, as if that were another
}

// unknownGain is what a change is measured for of which nothing is predicted: whether
// it brings something large. Something small could not be told from restarts.
const unknownGain = 0.3

// hopedGain is the size of the change of a goal that is predicted: its middle, or
// the middle of what is known of it. 0 where nothing is.
func hopedGain(list []Prediction, goal verdict.Goal) float64 {
	p := predictedGoal(list, goal)
	switch {
	case p == nil || !p.Mid.OK && !p.High.OK:
		return unknownGain
	case p.Mid.OK:
		return math.Abs(p.Mid.V)
	case p.Low.OK && p.High.OK:
		return math.Abs(p.Low.V+p.High.V) / 2
	case p.High.OK:
		return math.Abs(p.High.V) / 4
	}
	return 0
}

// predictedGoal is the prediction of a goal, nil where there is none.
func predictedGoal(list []Prediction, goal verdict.Goal) *Prediction {
	name := "generation_tokens_per_s"
	switch goal {
	case verdict.Latency:
		name = "e2e_mean_s"
	case verdict.Cost:
		name = "usd_per_million_tokens"
	}
	for i := range list {
		if list[i].Metric == name {
			return &list[i]
		}
	}
	return nil
}

// busyShare gathers how long threads of the server waited for a CPU.
type busyShare struct{ sum, n float64 }

func (b *busyShare) share() stat.Opt {
	if b.n == 0 {
		return stat.None
	}
	return stat.Some(b.sum / b.n)
}

// add takes in one reading: the process that waited most.
func (b *busyShare) add(list []Process) {
	most := stat.None
	for i := range list {
		most = most.Max(list[i].RunWait)
	}
	if most.OK {
		b.sum, b.n = b.sum+most.V, b.n+1
	}
}

// unsure is a change that was measured without a verdict: a further start of it
// adds to what is known.
type unsure struct {
	changes []Change
	lives   []verdict.Life
}

// unsureMost bounds how many of them are remembered.
const unsureMost = 4

// earlier are the runs of a change that was measured without a verdict.
func (l *Loop) earlier(changes []Change) []verdict.Life {
	for i := range l.unsure {
		if u := &l.unsure[i]; len(changes) > 0 && alike(u.changes, material(changes)) {
			return u.lives
		}
	}
	return nil
}

// doubted keeps the run of the latest change, of which noise hides what it brought.
func (l *Loop) doubted(it *Iteration) {
	if it.Delta.Direction != Inconclusive || it.Noticed == Unreadable || !it.Delta.Verdict.Known {
		return
	}
	changes := material(it.Changes)
	lives := slices.Concat(l.earlier(changes), []verdict.Life{l.trial.ranLife})
	l.unsure = slices.DeleteFunc(l.unsure, func(u unsure) bool { return alike(u.changes, changes) })
	l.unsure = append(l.unsure, unsure{changes, lives[max(0, len(lives)-sideLives+1):]})
	l.unsure = l.unsure[max(0, len(l.unsure)-unsureMost):]
}
