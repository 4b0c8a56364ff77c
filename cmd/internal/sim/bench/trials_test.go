package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/collect/loadgen"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/longtest"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// unrest is a disturbance of a simulated server: factors of the time of its steps.
type unrest struct {
	white  float64       // SD, independent from second to second
	drift  float64       // SD of an autoregression
	memory time.Duration // its time constant
	bursts time.Duration // mean time between bursts of a neighbour, 0 none
	depth  float64       // share of the pace that a burst takes
}

// course is the configuration of a server start for a trial.
type course struct {
	slots  int
	load   loadgen.Load
	unrest unrest
	factor float64 // on the time of a step: of the start, and of a change
	seed   uint64
}

const (
	trialWarm = 15 * time.Second
	trialPoll = time.Second
	trialStep = time.Second // of the disturbance
)

// trialServer is a server in virtual time, with its measurements so far.
type trialServer struct {
	w        *World
	analysis *session.Analysis
	began    time.Duration
	windows  []engine.Window
	body     []byte
	err      error // of a disturbance
}

// begin starts a server under its load and returns it after the warm-up. length is the maximum length of the
// measurement.
func (c *course) begin(length time.Duration) (*trialServer, error) {
	command, err := launch.Parse(strings.Fields(fmt.Sprintf("vllm serve meta-llama/Llama-3.1-8B-Instruct --max-num-seqs %d --max-model-len 8192", c.slots)), nil, nil)
	if err != nil {
		return nil, err
	}
	sc := &settings.Scenario{GPU: "NVIDIA A100-SXM4-80GB"}
	s, err := Settings(command, sc, c.seed)
	if err != nil {
		return nil, err
	}
	w := NewWorld()
	if err := w.Launch(s); err != nil {
		return nil, err
	}
	healthy, _ := w.Healthy()
	end := healthy + trialWarm + length
	c.load.Seed = c.seed
	if err := w.offer("", c.load, Offering{Origin: healthy, Seed: c.seed, From: healthy, To: end}); err != nil {
		return nil, err
	}
	r := rand.New(rand.NewPCG(c.seed, 99))
	ar, lost := c.unrest.drift*r.NormFloat64(), time.Duration(0)
	live := &trialServer{w: w}
	var disturb func()
	disturb = func() {
		f := c.factor
		if c.unrest.memory > 0 {
			phi := math.Exp(-trialStep.Seconds() / c.unrest.memory.Seconds())
			ar = phi*ar + c.unrest.drift*math.Sqrt(1-phi*phi)*r.NormFloat64()
		}
		f *= math.Exp(ar + c.unrest.white*r.NormFloat64())
		if c.unrest.bursts > 0 && lost <= 0 && r.Float64() < trialStep.Seconds()/c.unrest.bursts.Seconds() {
			lost = time.Duration(r.ExpFloat64() * float64(6*time.Second))
		}
		if lost > 0 {
			f /= 1 - c.unrest.depth
			lost -= trialStep
		}
		if live.err = w.server.Inject(w.now, settings.Fault{Kind: "slow", Factor: f, For: trialStep, Rank: -1}); live.err == nil && w.now < end {
			w.At(w.now+trialStep, disturb)
		}
	}
	w.At(healthy, disturb)
	w.Until(healthy + trialWarm)
	live.began = w.now
	if live.analysis, err = session.NewAnalysis(w.Header(command)); err != nil {
		return nil, err
	}
	return live, live.err
}

// until advances the server to a time since the end of its warm-up.
func (l *trialServer) until(length time.Duration) (_ verdict.Incarnation, err error) {
	for w := l.w; w.now <= l.began+length; w.Until(w.now + trialPoll) {
		if l.body, err = w.Page(l.body[:0]); err != nil {
			return nil, err
		}
		tick := w.now - l.began
		if _, window := l.analysis.Add(&session.Poll{T: tick, PageT: tick + scrapeTook, Took: scrapeTook, Body: string(l.body)}); window != nil && window.Evaluable {
			l.windows = append(l.windows, window.Clone())
		}
	}
	return effect.Slices(l.windows), l.err
}

// trialLoads lists the loads.
var trialLoads = []struct {
	name string
	load loadgen.Load
}{
	{"closed, 16 slots, 32 clients", loadgen.Load{Clients: 32, PromptTokens: loadgen.Between(100, 500), OutputTokens: loadgen.Between(60, 180), IgnoreEOS: true}},
	{"closed, lock-step", loadgen.Load{Clients: 32, Together: true, PromptTokens: loadgen.Fixed(300), OutputTokens: loadgen.Fixed(120), IgnoreEOS: true}},
	{"closed, 12 clients, room", loadgen.Load{Clients: 12, PromptTokens: loadgen.Between(100, 500), OutputTokens: loadgen.Between(60, 180), IgnoreEOS: true}},
	{"open, 4 a second", loadgen.Load{Arrival: loadgen.Poisson, Phases: []loadgen.Phase{{From: 4, To: 4}}, PromptTokens: loadgen.Between(100, 500), OutputTokens: loadgen.Between(60, 180), IgnoreEOS: true}},
}

var unrests = []struct {
	name string
	unrest
}{
	{"white, 3 % in 10 s", unrest{white: 0.03 * math.Sqrt(10)}},
	{"drift 3 %, 20 s", unrest{white: 0.03, drift: 0.03, memory: 20 * time.Second}},
	{"bursts", unrest{white: 0.03, bursts: 40 * time.Second, depth: 0.4}},
}

// trialOf returns the verdict on two courses, with the same looks as the loop.
func trialOf(before, after course, p verdict.Plan) (verdict.Result, time.Duration, error) {
	const known, longest = 120 * time.Second, 300 * time.Second
	one, err := before.begin(known)
	if err != nil {
		return verdict.Result{}, 0, err
	}
	b, err := one.until(known)
	if err != nil {
		return verdict.Result{}, 0, err
	}
	two, err := after.begin(longest)
	if err != nil {
		return verdict.Result{}, 0, err
	}
	looks := verdict.Looks(20*time.Second, longest)
	p.Looks = len(looks)
	for i, at := range looks {
		p.Look, p.Last = i, i == len(looks)-1
		all, err := two.until(at)
		if err != nil {
			return verdict.Result{}, 0, err
		}
		a := all[:min(len(all), int(at/(2*time.Second)))]
		if r := verdict.Judge(&verdict.Side{Incarnations: []verdict.Incarnation{b}}, &verdict.Side{Incarnations: []verdict.Incarnation{a}}, p); r.Settled {
			return r, at, nil
		}
	}
	return verdict.Result{}, 0, fmt.Errorf("no look settled")
}

// TestTrialsOnTheSimulator judges pairs of equal servers, and pairs with a planted effect, on the simulated
// server. SIMBENCH_PAIRS is the number of pairs of each row of the tables; without it the test tries a few.
func TestTrialsOnTheSimulator(t *testing.T) {
	n, err := strconv.Atoi(os.Getenv("SIMBENCH_PAIRS"))
	whole := err == nil
	if !whole {
		n = 1
	}
	wrong, all := 0, 0
	for _, l := range trialLoads {
		for _, u := range unrests {
			for _, restart := range []float64{0, 0.01, 0.04} {
				for _, gain := range []float64{0, -0.05, 0.05, 0.1, 0.2} {
					if !whole && (gain != 0 || restart != 0 || !longtest.Tests && (l.name != trialLoads[0].name || u.bursts == 0)) {
						continue
					}
					name := fmt.Sprintf("%s/%s/restarts %.0f %%/%+.0f %%", l.name, u.name, 100*restart, 100*gain)
					t.Run(name, func(t *testing.T) {
						by, took := trials(t, n, l.load, u.unrest, restart, gain)
						t.Logf("%-70s better %d worse %d plateau %d inconclusive %d not comparable %d of %d, %.0f s", name,
							by[verdict.Better], by[verdict.Worse], by[verdict.Plateau], by[verdict.Inconclusive], by[verdict.NotComparable], n, took/float64(n))
						if gain == 0 {
							wrong += by[verdict.Better] + by[verdict.Worse]
							all += n
						}
					})
				}
			}
		}
	}
	if t.Logf("%d of %d equal pairs distinguished", wrong, all); float64(wrong) > 0.05*float64(all) {
		t.Errorf("%d of %d equal pairs are distinguished", wrong, all)
	}
}

// trials counts the verdicts of n pairs. If restarts do not differ, their spread is known; else it is
// unknown.
func trials(t *testing.T, n int, load loadgen.Load, u unrest, restart, gain float64) (by map[verdict.Direction]int, seconds float64) {
	by = map[verdict.Direction]int{}
	spread := verdict.Spread{}
	if restart > 0 {
		spread = verdict.Widen(nil)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	work := make(chan uint64)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range work {
				r := rand.New(rand.NewPCG(i, 17))
				start := func(seed uint64) course {
					return course{slots: 16, load: load, unrest: u, factor: math.Exp(restart * r.NormFloat64()), seed: seed}
				}
				before, after := start(2*i+1), start(2*i+2)
				after.factor /= 1 + gain
				res, took, err := trialOf(before, after, verdict.Plan{Spread: spread})
				mu.Lock()
				if err != nil {
					t.Error(err)
				}
				by[res.Direction]++
				seconds += took.Seconds()
				mu.Unlock()
			}
		})
	}
	for i := range uint64(n) {
		work <- i
	}
	close(work)
	wg.Wait()
	return by, seconds
}
