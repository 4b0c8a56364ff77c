package vllmsim

import (
	"math/rand/v2"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/vllmsim/perf"
)

const (
	// emptyStep is what a step without work takes: the engine's loop goes round
	// once to free what ended requests held. Assumed.
	emptyStep = 100 * time.Microsecond
	// A young engine's first steps load kernels and tune them: the first takes
	// warmUp longer, each one after it half as much longer. Assumed; vLLM's own
	// warm-up before it listens takes most of it away.
	warmUp      = 40 * time.Millisecond
	warmUpSteps = 6
)

// rank is one engine with its GPUs.
type rank struct {
	server *Server
	index  int
	engine *core.Engine
	meter  *perf.Meter

	noise   *perf.Noise
	hiccups *rand.PCG

	busy  bool
	began time.Duration
	ends  time.Duration // of the step at hand; never where idle or frozen for good
	wakes time.Duration // when a frozen engine without a step goes on
	work  time.Duration // of the step at hand, without faults
	cost  perf.Breakdown
	steps uint64

	state    core.State // after the last step
	inFlight int        // requests that it has not ended
	// Deliveries that are not on the page yet, the oldest first and, where there is
	// one, the latest: a front end that lags has thousands.
	reports, latest *delivery
}

func newRank(v *Server, index int) *rank {
	s := v.settings
	return &rank{
		server:  v,
		index:   index,
		engine:  core.NewEngine(s.Core(v.sizing.NumBlocks, index)),
		meter:   v.machine.NewMeter(index*max(1, s.TensorParallel), v.sizing),
		noise:   v.machine.NewNoise(index),
		hiccups: stream(s.Seed, forHiccups, uint64(index)),
		ends:    never,
		wakes:   never,
	}
}

// begin starts the next step, if there is something to do and none under way.
func (r *rank) begin(now time.Duration) {
	v := r.server
	if r.busy || v.dead || v.closed {
		return
	}
	if until, frozen := v.frozen(r.index, now); frozen {
		r.wakes = until
		return
	}
	batch, ok := r.engine.Begin(now)
	if !ok {
		return
	}
	r.busy, r.began, r.wakes = true, now, never
	r.cost, r.work = perf.Breakdown{}, emptyStep
	if len(batch.Work) > 0 {
		r.cost = v.machine.Step(&batch)
		r.work = r.noise.Apply(r.cost.Total) + r.extra(now)
	}
	r.schedule()
	// The GPUs are busy for the work alone, however long a frozen engine takes. A
	// fault that is injected during the step shows on them from the next one on.
	slow := v.slowdown(r.index, now, r.ends)
	r.meter.Step(now, min(r.ends, now+time.Duration(float64(r.work)*slow)), r.cost, slow)
}

// extra is what the step that begins now takes beyond its work: of a young
// engine, or by a hiccup.
func (r *rank) extra(now time.Duration) time.Duration {
	var d time.Duration
	if r.steps < warmUpSteps {
		d = warmUp >> r.steps
	}
	r.steps++
	if w := r.server.active(hiccup, r.index, now); w != nil {
		// The longer the step, the likelier.
		const unit = 1 << 53
		if float64(r.hiccups.Uint64()>>11)/unit < r.cost.Total/hiccupEvery.Seconds() {
			d += w.delay
		}
	}
	return d
}

// schedule sets when the step at hand ends, by the faults known now.
func (r *rank) schedule() {
	r.ends = r.server.passed(r.index, r.began, r.work)
}

// complete ends the step at hand and starts the next.
func (r *rank) complete(now time.Duration) {
	v := r.server
	r.busy, r.ends = false, never
	report := r.engine.Complete(now)
	r.state = report.State
	v.balancer.changed = true
	v.publish(now)
	v.take(r, &report, now)
	r.begin(now)
}
