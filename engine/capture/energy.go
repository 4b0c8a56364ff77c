package capture

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// How an energy is known.
const (
	fromCounter = "energy counter"
	fromPower   = "integrated power"
)

// counterUpdate is the longest time between two updates of a GPU's own energy
// counter. NVIDIA does not state it; PETSc's manual has 20 ms to 100 ms for newer
// GPUs (PetscLogGpuEnergyMeter), and Zeus has windows shorter than the update
// come out as 0 (release 0.6.1). No shorter run has an energy from it.
const counterUpdate = 100 * time.Millisecond

// An energy whose steps are less certain than largestDoubt is none; one less
// certain than saidDoubt says so.
const largestDoubt, saidDoubt = 0.25, 0.03

// gpuEnergy is what one GPU drew over the run: by its counter where that can be
// trusted, else by integrating its power readings.
func (c *Capture) gpuEnergy(d *gpuReadings) Energy {
	if len(d.fields[engine.GPUEnergyJ]) == 0 {
		return c.integrated(d)
	}
	e := c.counted(d)
	if e.Joules.OK {
		return e
	}
	why := e.Reason
	e = c.integrated(d)
	if !e.Joules.OK {
		e.Reason = why + "; " + e.Reason
	} else {
		e.Reason = why
	}
	return e
}

// counted is the growth of the energy counter from Begin to End.
//
// The counter moves in steps, and a reading may be a step behind. Readings that
// found it moved are therefore taken as points of a curve: they are late by the
// same mean amount at both ends, which the difference does not have. Between two
// of them power is taken as constant; from the begin of the run to the first step
// and from the last to the end, as the mean of the steps between, over no more
// than one update.
func (c *Capture) counted(d *gpuReadings) Energy {
	if c.Span() < counterUpdate {
		return Energy{Reason: fmt.Sprintf("the run of %s is shorter than the energy counter's update of up to %s", rounded(c.Span()), counterUpdate)}
	}
	s := d.fields[engine.GPUEnergyJ]
	pace := d.pace(s)
	// Its last steps before and its first after the run belong to the curve.
	s = s[s.from(c.Begin-maxPaces*pace):s.from(c.End+maxPaces*pace)]
	if slices.ContainsFunc(s.growth(), func(p point) bool { return p.v < 0 }) {
		return Energy{Reason: "the energy counter fell during the run: the driver was reloaded, or the GPU was reset"}
	}
	steps := s.steps()
	update := steps.pace(counterUpdate)
	if stood := s.longestStand(); stood > maxPaces*update && drawsPower(d) {
		return Energy{Reason: fmt.Sprintf("the energy counter stood still for %s while power was drawn", rounded(stood))}
	}
	if len(steps) < 2 {
		return Energy{Reason: "the energy counter moved less than twice during the run"}
	}
	first, last := steps[0], steps[len(steps)-1]
	early, late := first.at-c.Begin, c.End-last.at
	if early > update || late > update {
		return Energy{Reason: fmt.Sprintf("readings of the energy counter leave out %s of the run", rounded(max(early, 0)+max(late, 0)))}
	}
	doubt := min(pace, counterUpdate).Seconds() / (last.at - first.at).Seconds()
	// What lies outside of the steps is only supposed; of a counter that moves seldom
	// that is more than a step's own uncertainty.
	doubt += (max(0, early-counterUpdate) + max(0, late-counterUpdate)).Seconds() / c.Span().Seconds()
	if doubt > largestDoubt {
		return Energy{Reason: "the run is too short for the steps of the energy counter"}
	}
	slope := (last.v - first.v) / (last.at - first.at).Seconds()
	e := Energy{Joules: stat.Some(steps.along(c.End, slope) - steps.along(c.Begin, slope)), How: fromCounter}
	if doubt > saidDoubt {
		e.Reason = fmt.Sprintf("the energy counter moves in steps: ± %.0f %% in a run of %s", 100*doubt, rounded(c.Span()))
	}
	return e
}

// growth is the difference of each reading from the one before.
func (s series) growth() series {
	var growth series
	for i := 1; i < len(s); i++ {
		growth = append(growth, point{s[i].at, s[i].v - s[i-1].v})
	}
	return growth
}

// steps returns the readings that found the counter moved, and the very first
// where the second comes so much later that an update lies between in any case.
func (s series) steps() series {
	var steps series
	if len(s) > 1 && s[1].v != s[0].v && s[1].at-s[0].at > counterUpdate {
		steps = append(steps, s[0])
	}
	for i := 1; i < len(s); i++ {
		if s[i].v != s[i-1].v {
			steps = append(steps, s[i])
		}
	}
	return steps
}

// longestStand is the longest time over which readings show the same value.
func (s series) longestStand() time.Duration {
	var longest time.Duration
	since := 0
	for i := range s {
		if s[i].v != s[since].v {
			since = i
		}
		longest = max(longest, s[i].at-s[since].at)
	}
	return longest
}

// drawsPower reports whether power was seen, or is unknown: a GPU that is
// switched off is the only one whose counter may stand.
func drawsPower(d *gpuReadings) bool {
	power := d.fields[engine.GPUPowerW]
	return len(power) == 0 || power.peak() > 0
}

// along is the value at a moment on the line through the points, and with the
// given slope for each second outside of them.
func (s series) along(at time.Duration, slope float64) float64 {
	first, last := s[0], s[len(s)-1]
	switch {
	case at <= first.at:
		return first.v - slope*(first.at-at).Seconds()
	case at >= last.at:
		return last.v + slope*(at-last.at).Seconds()
	}
	i := s.from(at)
	return lineAt(s[i-1], s[i], at)
}

// integrated is mean power over the run times its length. Where readings leave
// out a part of the run, How says how much they cover.
func (c *Capture) integrated(d *gpuReadings) Energy {
	if len(d.fields[engine.GPUPowerW]) == 0 {
		return Energy{Reason: "no power reading"}
	}
	w := c.window(engine.GPUPowerW, d)
	if !w.mean.OK {
		return Energy{Reason: "power: " + w.reason}
	}
	e := Energy{Joules: w.mean.Times(c.Span().Seconds()), How: fromPower}
	if w.covered < 0.995 {
		e.How = fmt.Sprintf("%s, readings cover %.0f %% of the run", fromPower, 100*w.covered)
	}
	return e
}

// totalEnergy adds up the GPUs. A GPU without an energy leaves the sum without
// one: what the others drew is not what the run drew.
func (c *Capture) totalEnergy(gpus []GPUUsage) Energy {
	if len(gpus) == 0 {
		return Energy{Reason: cmp.Or(c.GPUs.Why, "no GPU was sampled")}
	}
	total := Energy{Joules: stat.Some(0)}
	var hows []string
	for _, g := range gpus {
		if !g.Energy.Joules.OK {
			reason := g.Energy.Reason
			if len(gpus) > 1 {
				reason = fmt.Sprintf("GPU %d: %s", g.Index, reason)
			}
			return Energy{Reason: reason}
		}
		total.Joules = total.Joules.Plus(g.Energy.Joules)
		if !slices.Contains(hows, g.Energy.How) {
			hows = append(hows, g.Energy.How)
		}
		if total.Reason == "" {
			total.Reason = g.Energy.Reason
		}
	}
	total.How = hows[0]
	for _, h := range hows[1:] {
		total.How += " of some GPUs, " + h + " of others"
	}
	return total
}
