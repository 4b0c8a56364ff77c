package verdict

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"time"
)

// sharedLoad is how the load that is common to several servers varies.
type sharedLoad struct {
	drift  float64       // SD of an autoregression of the logarithm of the load
	memory time.Duration // its time constant
	bursts time.Duration // mean time between bursts of requests, 0 none
}

const (
	burstHeight  = 2.5 // factor on the load in a burst
	burstLasting = 8 * time.Second
	uneven       = 0.1 // SD of the logarithm of one server's share of the load, for some five seconds at a time
)

// restless is a load that drifts and has bursts.
var restless = sharedLoad{drift: 0.4, memory: 40 * time.Second, bursts: 30 * time.Second}

// run returns the load of each of n slices.
func (w *sharedLoad) run(r *rand.Rand, n int) []float64 {
	level, out := wander(r, n, w.drift, w.memory), make([]float64, n)
	left := 0.0
	for i := range out {
		if w.bursts > 0 && left <= 0 && r.Float64() < piece.Seconds()/w.bursts.Seconds() {
			left = r.ExpFloat64() * burstLasting.Seconds()
		}
		within := min(left, piece.Seconds())
		left -= within
		out[i] = level[i] * (1 + (burstHeight-1)*within/piece.Seconds())
	}
	return out
}

// wander returns factors whose logarithm is an autoregression.
func wander(r *rand.Rand, n int, sd float64, memory time.Duration) []float64 {
	phi := math.Exp(-piece.Seconds() / max(1e-9, memory.Seconds()))
	out, x := make([]float64, n), sd*r.NormFloat64()
	for i := range out {
		x = phi*x + sd*math.Sqrt(1-phi*phi)*r.NormFloat64()
		out[i] = math.Exp(x)
	}
	return out
}

// behind returns a server's slices behind a balancer with a common load. Its slices begin up to 0.4 s later than those
// of others, and one in fifty is missing.
func behind(r *rand.Rand, v server, load []float64) Incarnation {
	v.common = wander(r, len(load), uneven, 5*time.Second)
	for i := range v.common {
		v.common[i] *= load[i]
	}
	late := time.Duration(r.Int64N(int64(400 * time.Millisecond)))
	var out Incarnation
	for _, s := range v.run(r, time.Duration(len(load))*piece) {
		if r.IntN(50) > 0 {
			s.Start += late
			out = append(out, s)
		}
	}
	return out
}

// until returns the slices that began before a time.
func until(l Incarnation, at time.Duration) Incarnation {
	n := 0
	for n < len(l) && l[n].Start < at-piece/2 {
		n++
	}
	return l[:n]
}

// knowing returns the spread of restarts that is used for a trial, given the siblings.
type knowing func(siblings []Incarnation) Spread

func knowsNone([]Incarnation) Spread              { return Spread{} }
func knowsNothing([]Incarnation) Spread           { return Widen(nil) }
func knowsSiblings(siblings []Incarnation) Spread { return Widen(SiblingDifferences(siblings)) }

// pairedTrial judges a server beside siblings without its change, at the fixed looks, up to the first one that is
// settled.
func pairedTrial(r *rand.Rand, before, after *server, siblings int, w *sharedLoad, knows knowing, p Plan) outcome {
	const longest = 300 * time.Second
	load := w.run(r, int(longest/piece))
	var all []Incarnation
	for range siblings {
		all = append(all, behind(r, *before, load))
	}
	changed := behind(r, *after, load)
	looks := Looks(20*time.Second, longest)
	p.Looks, p.Paired = len(looks), true
	for i, at := range looks {
		p.Look, p.Last = i, i == len(looks)-1
		b := &Side{}
		for _, l := range all {
			b.Incarnations = append(b.Incarnations, until(l, at))
		}
		p.Spread = knows(b.Incarnations)
		if res := Judge(b, &Side{Incarnations: []Incarnation{until(changed, at)}}, p); res.Settled {
			return outcome{Result: res, took: at}
		}
	}
	panic("the last look settles")
}

// bareServer returns a server without histograms.
func bareServer(s shape, n noise, restart float64) server {
	n.restart = restart
	v := usual(s, n)
	v.bare = true
	return v
}

// besideSiblings are the noises of equal servers, and the knowledge about their restarts.
var besideSiblings = []struct {
	name     string
	noise    noise
	siblings int
	restart  float64
	knows    knowing
}{
	{"white, none known", quiet10, 3, 0, knowsNone},
	{"drift 20 s, none known", drifting(20 * time.Second), 3, 0, knowsNone},
	{"drift 60 s, none known", drifting(60 * time.Second), 3, 0, knowsNone},
	{"own bursts, none known", bursting, 3, 0, knowsNone},
	{"white, one sibling, none known", quiet10, 1, 0, knowsNone},
	{"white, 2 %, siblings known", quiet10, 3, 0.02, knowsSiblings},
	{"white, 4 %, nothing known", quiet10, 3, 0.04, knowsNothing},
	{"white, 4 %, siblings known", quiet10, 3, 0.04, knowsSiblings},
	{"drift 20 s, 4 %, siblings known", drifting(20 * time.Second), 3, 0.04, knowsSiblings},
	{"white, 4 %, 7 siblings known", quiet10, 7, 0.04, knowsSiblings},
}

// TestEqualSiblingsAreSeldomDistinguished judges servers beside equal ones under a load common to all: at most one in
// twenty may be called different.
func TestEqualSiblingsAreSeldomDistinguished(t *testing.T) {
	n, table := pairs(20)
	for _, s := range [...]shape{saturated, room, open} {
		wrong, all := 0, 0
		for i, c := range besideSiblings {
			if !table && s != room && i%4 != 1 {
				continue
			}
			t.Run(fmt.Sprintf("%v/%s", s, c.name), func(t *testing.T) {
				server := bareServer(s, c.noise, c.restart)
				got := many(n, 21, func(r *rand.Rand) outcome {
					return pairedTrial(r, &server, &server, c.siblings, &restless, c.knows, Plan{})
				})
				wrong += got.by[Better] + got.by[Worse]
				all += n
				if table {
					t.Logf("%-9v  %-31s  %v", s, c.name, got)
				}
			})
		}
		if t.Logf("%v: %d of %d distinguished", s, wrong, all); float64(wrong) > allowed(all) {
			t.Errorf("%v: %d of %d equal servers are distinguished", s, wrong, all)
		}
	}
}

// TestEffectsAreFoundBesideSiblings plants effects under a common load. Of an effect of 5 % four of five verdicts must be
// right where starts are known not to differ.
func TestEffectsAreFoundBesideSiblings(t *testing.T) {
	n, table := pairs(100)
	gains := []float64{-0.05, 0.05}
	if table {
		gains = []float64{-0.05, 0.05, 0.1, 0.2}
	}
	for _, c := range besideSiblings {
		if !table && c.name != besideSiblings[0].name {
			continue
		}
		for _, gain := range gains {
			before, after := bareServer(room, c.noise, c.restart), bareServer(room, c.noise, c.restart)
			after.speed = 1 + gain
			got := many(n, 22, func(r *rand.Rand) outcome {
				return pairedTrial(r, &before, &after, c.siblings, &restless, c.knows, Plan{})
			})
			t.Logf("%-35s %+5.0f %%  %v", c.name, 100*gain, got)
			right := Better
			if gain < 0 {
				right = Worse
			}
			if c.name == besideSiblings[0].name && got.share(right) < 0.8 {
				t.Errorf("%+.0f %%: %.0f %% are right", 100*gain, 100*got.share(right))
			}
		}
	}
}

// group returns siblings and a server with a gain, for two minutes under a common load.
func group(seed uint64, siblings int, gain float64) (before, after Side) {
	r := rand.New(rand.NewPCG(seed, 24))
	load := restless.run(r, 60)
	v := usual(room, quiet10)
	for range siblings {
		before.Incarnations = append(before.Incarnations, behind(r, v, load))
	}
	v.speed += gain
	after.Incarnations = []Incarnation{behind(r, v, load)}
	return before, after
}

// TestCommonLoadCancels checks that a load that varies for all leaves a narrow interval, and that siblings narrow it
// further.
func TestCommonLoadCancels(t *testing.T) {
	const groups = 10
	var together, one, inTurn, in, inInTurn float64 // half widths
	half := func(r *Result) float64 {
		for _, s := range r.Traffic {
			if s.Name == "requests in" {
				return math.Log1p(s.Change.High) - math.Log1p(s.Change.Mid)
			}
		}
		return math.Inf(1)
	}
	for seed := range uint64(groups) {
		before, after := group(seed, 3, 0.1)
		r := Judge(&before, &after, Plan{Last: true})
		inTurn, inInTurn = inTurn+r.Measured/groups, inInTurn+half(&r)/groups
		r = Judge(&before, &after, Plan{Last: true, Paired: true})
		together, in = together+r.Measured/groups, in+half(&r)/groups
		before.Incarnations = before.Incarnations[:1]
		r = Judge(&before, &after, Plan{Last: true, Paired: true})
		one += r.Measured / groups
	}
	if together > 0.75*inTurn || in > inInTurn/2 || together > 0.9*one {
		t.Errorf("±%.3f beside three siblings, ±%.3f beside one, ±%.3f in turn; requests in ±%.3f and ±%.3f", together, one, inTurn, in, inInTurn)
	}
}

// TestOnlyTheSameTimeIsCompared gives the siblings a past of their own, at half the load.
func TestOnlyTheSameTimeIsCompared(t *testing.T) {
	before, after := group(2, 3, 0)
	want := Judge(&before, &after, Plan{Last: true, Paired: true})
	for i, l := range before.Incarnations {
		var past Incarnation
		for _, s := range l {
			s.Start -= 2 * time.Minute
			s.Tokens, s.Running = s.Tokens.Times(0.5), s.Running.Times(0.5)
			past = append(past, s)
		}
		before.Incarnations[i] = append(past, l...)
	}
	if got := Judge(&before, &after, Plan{Last: true, Paired: true}); got.Effect != want.Effect || got.Steady != want.Steady {
		t.Errorf("%v, with a past of the siblings %v", want.Effect, got.Effect)
	}
	for _, l := range before.Incarnations {
		for i := range l {
			l[i].Start -= time.Hour
		}
	}
	if got := Judge(&before, &after, Plan{Last: true, Paired: true}); got.Direction != Inconclusive || !says(&got, "at the same time") {
		t.Errorf("measured at different times: %s: %s", got.Direction, got.Reason)
	}
}

// TestAWarmUpBesideSiblings starts a server whose first slices are slow, under a load that hides it.
func TestAWarmUpBesideSiblings(t *testing.T) {
	before, after := group(3, 3, 0)
	l := after.Incarnations[0]
	for i := range 12 {
		l[i].Tokens = l[i].Tokens.Times(0.4)
	}
	got := Judge(&before, &after, Plan{Last: true, Paired: true})
	if cut := got.Steady[1].Cut; cut < 10 || cut > 20 || got.Direction != Plateau && got.Direction != Inconclusive || math.Abs(got.Effect.Mid) > 0.03 {
		t.Errorf("cut %d slices: %s: %s", cut, got.Direction, got.Reason)
	}
	if used := got.Steady[0].Used; used > 3*len(l)-3*10 {
		t.Errorf("%d slices of the siblings are judged", used)
	}
}

// TestSiblingsDoNotAddTime judges twenty seconds beside three siblings, a minute of servers in all: a burst of a
// neighbour may last as long.
func TestSiblingsDoNotAddTime(t *testing.T) {
	before, after := group(4, 3, 0.3)
	for _, s := range [...]*Side{&before, &after} {
		for i, l := range s.Incarnations {
			s.Incarnations[i] = l[:10]
		}
	}
	if got := Judge(&before, &after, Plan{Paired: true}); got.Direction != Inconclusive || got.Settled || !says(&got, " s were measured: a burst") {
		t.Errorf("%s, settled %v: %s, needs %q", got.Direction, got.Settled, got.Reason, got.Need)
	}
}

// TestSwappedPairsMirror checks one server beside another both ways.
func TestSwappedPairsMirror(t *testing.T) {
	for seed := range uint64(6) {
		before, after := group(seed, 1, []float64{0, 0.1, 0.3}[seed%3])
		p := Plan{Last: true, Paired: true, Spread: Spread{SD: 0.01}}
		there, back := Judge(&before, &after, p), Judge(&after, &before, p)
		if d := math.Log1p(there.Effect.Mid) + math.Log1p(back.Effect.Mid); math.Abs(d) > 1e-9 || math.Abs(there.Measured-back.Measured) > 1e-9 {
			t.Errorf("%d: %v ±%v and %v ±%v", seed, there.Effect, there.Measured, back.Effect, back.Measured)
		}
	}
}

// TestSiblingDifferences compares the spread that siblings show with the true one.
func TestSiblingDifferences(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 25))
	v := bareServer(room, noise{white: 0.01, restart: 0.1}, 0.1)
	squares, products, n := 0.0, 0.0, 0
	for range 100 {
		load := restless.run(r, 30)
		var siblings []Incarnation
		for range 4 {
			siblings = append(siblings, behind(r, v, load))
		}
		d := SiblingDifferences(siblings)
		if len(d) != 3 {
			t.Fatalf("%d differences of 4 siblings", len(d))
		}
		for i, x := range d {
			squares += x * x / 2
			products += x * d[(i+1)%len(d)] / 2
			n++
		}
		if got := SiblingDifferences(append(siblings, nil)); len(got) != 3 {
			t.Errorf("with an empty one: %v", got)
		}
	}
	if sd := math.Sqrt(squares / float64(n)); math.Abs(sd-0.1) > 0.02 || math.Abs(products) > 0.15*squares {
		t.Errorf("the spread of 10 %% looks like %.1f %%; correlation %.2f", 100*sd, products/squares)
	}
	for _, siblings := range [][]Incarnation{nil, {nil}, {nil, nil}} {
		if got := SiblingDifferences(siblings); len(got) > 0 {
			t.Errorf("%v of nothing", got)
		}
	}
}
