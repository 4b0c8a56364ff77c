package vllmsim

import (
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/core"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/perf"
)

const (
	// emptyStep is the time of a step without work, in which the engine's loop frees the blocks of
	// ended requests. Assumed.
	emptyStep = 100 * time.Microsecond
	// warmUp is the additional time of the first step, in which kernels are loaded and tuned; it
	// halves with each further step. Assumed; vLLM's own warm-up before it listens does most of this.
	warmUp      = 40 * time.Millisecond
	warmUpSteps = 6
)

// rank is one engine with its GPUs.
type rank struct {
	server *Server
	index  int
	engine *core.Engine
	meter  *perf.Meter

	noise *perf.Noise

	busy  bool
	began time.Duration
	ends  time.Duration // end of the current step; never if idle or frozen forever
	wakes time.Duration // when a frozen engine without a step continues
	work  time.Duration // time of the current step without faults
	cost  perf.Breakdown
	steps uint64

	state    core.State // after the last step
	inFlight int        // requests that have not ended
	// The list of deliveries that are not on the page yet, from oldest to latest: a front end that
	// lags has thousands.
	reports, latest *delivery
}

func newRank(v *Server, index int) *rank {
	s := v.settings
	return &rank{
		server: v,
		index:  index,
		engine: core.NewEngine(s.Core(v.sizing.NumBlocks, index)),
		meter:  v.machine.NewMeter(index*max(1, s.TensorParallel), v.sizing),
		noise:  v.machine.NewNoise(index),
		ends:   Never,
		wakes:  Never,
	}
}

// begin starts the next step if there is something to do and no step is running.
func (r *rank) begin(now time.Duration) {
	v := r.server
	if r.busy || v.dead {
		return
	}
	if until, frozen := v.faults.frozen(r.index, now); frozen {
		r.wakes = until
		return
	}
	batch, ok := r.engine.Begin(now)
	if !ok {
		return
	}
	r.busy, r.began, r.wakes = true, now, Never
	r.cost, r.work = perf.Breakdown{}, emptyStep
	if len(batch.Work) > 0 {
		r.cost = v.machine.Step(&batch)
		r.work = r.noise.Apply(r.cost.Total) + r.extra()
	}
	r.schedule()
	// The GPUs are busy only during the work, not while the engine is frozen. A fault that is
	// injected during the step affects them from the next step on.
	slow := v.faults.slowdown(r.index, now, r.ends)
	r.meter.Step(now, min(r.ends, now+time.Duration(float64(r.work)*slow)), r.cost, slow)
}

// extra returns the additional time of the step that begins, by the warm-up.
func (r *rank) extra() time.Duration {
	if r.steps >= warmUpSteps {
		return 0
	}
	r.steps++
	return warmUp >> (r.steps - 1)
}

// schedule sets the end of the current step from the faults known now.
func (r *rank) schedule() {
	r.ends = r.server.faults.passed(r.index, r.began, r.work)
}

// complete ends the current step and starts the next one.
func (r *rank) complete(now time.Duration) {
	v := r.server
	r.busy, r.ends = false, Never
	report := r.engine.Complete(now)
	r.state = report.State
	v.balancer.changed = true
	v.publish(now)
	v.dispatch(r, &report, now)
	r.begin(now)
}
