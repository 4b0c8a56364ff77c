package capture

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Sources of an energy.
const (
	fromCounter = "energy counter"
	fromPower   = "integrated power"
)

// counterUpdate is the longest time between two updates of a GPU's energy counter. NVIDIA does not
// document it; PETSc's manual says 20 ms to 100 ms for newer GPUs (PetscLogGpuEnergyMeter), and
// Zeus reports 0 for windows shorter than an update (release 0.6.1). Runs shorter than this do not
// use the counter.
const counterUpdate = 100 * time.Millisecond

// An energy is dropped if the relative uncertainty from the counter's steps exceeds largestDoubt,
// and has a remark if it exceeds saidDoubt.
const largestDoubt, saidDoubt = 0.25, 0.03

// gpuEnergy returns the energy of one GPU over the run: by its counter if that is reliable,
// otherwise by integrating its power readings.
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

// counted returns the growth of the energy counter from Begin to End.
//
// The counter changes in steps, and a reading may be one step late. Readings in which it changed
// are therefore used as points of a curve: they are late by the same mean delay at both ends, which
// cancels in the difference. Power is constant between two points. Before the first and after the
// last point it is the mean of the steps between, for at most one update.
func (c *Capture) counted(d *gpuReadings) Energy {
	if c.Span() < counterUpdate {
		return Energy{Reason: fmt.Sprintf("the run of %s is shorter than the energy counter's update interval of up to %s", figure.Duration(c.Span()), figure.Duration(counterUpdate))}
	}
	s := d.fields[engine.GPUEnergyJ]
	pace := d.pace(s)
	// The last steps before the run and the first after it belong to the curve.
	s = s[s.from(c.Begin-maxPaces*pace):s.from(c.End+maxPaces*pace)]
	if slices.ContainsFunc(s.growth(), func(p point) bool { return p.v < 0 }) {
		return Energy{Reason: "the energy counter fell during the run: the driver was reloaded, or the GPU was reset"}
	}
	steps := s.steps()
	update := steps.pace(counterUpdate)
	if stood := s.longestStand(); stood > maxPaces*update && drawsPower(d) {
		return Energy{Reason: fmt.Sprintf("the energy counter did not change for %s while power was drawn", figure.Duration(stood))}
	}
	if len(steps) < 2 {
		return Energy{Reason: "the energy counter changed less than twice during the run"}
	}
	first, last := steps[0], steps[len(steps)-1]
	early, late := first.at-c.Begin, c.End-last.at
	if early > update || late > update {
		return Energy{Reason: fmt.Sprintf("readings of the energy counter miss %s of the run", figure.Duration(max(early, 0)+max(late, 0)))}
	}
	doubt := min(pace, counterUpdate).Seconds() / (last.at - first.at).Seconds()
	// The energy outside the steps is extrapolated. For a counter that rarely changes, that is less
	// certain than the steps.
	doubt += (max(0, early-counterUpdate) + max(0, late-counterUpdate)).Seconds() / c.Span().Seconds()
	if doubt > largestDoubt {
		return Energy{Reason: "the run is too short for the step size of the energy counter"}
	}
	slope := (last.v - first.v) / (last.at - first.at).Seconds()
	e := Energy{Joules: stat.Some(steps.along(c.End, slope) - steps.along(c.Begin, slope)), How: fromCounter}
	if doubt > saidDoubt {
		e.Reason = fmt.Sprintf("the energy counter advances in steps: ± %.0f %% in a run of %s", 100*doubt, figure.Duration(c.Span()))
	}
	return e
}

// growth returns the difference of each reading from the previous one.
func (s series) growth() series {
	var growth series
	for i := 1; i < len(s); i++ {
		growth = append(growth, point{s[i].at, s[i].v - s[i-1].v})
	}
	return growth
}

// steps returns the readings in which the counter changed. It includes the very first reading if
// the second is more than an update later.
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

// longestStand returns the longest time without a change of the value.
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

// drawsPower reports whether power was measured, or is unknown: only the counter of a GPU that is
// switched off may stay unchanged.
func drawsPower(d *gpuReadings) bool {
	power := d.fields[engine.GPUPowerW]
	return len(power) == 0 || power.peak() > 0
}

// along returns the value at a time on the line through the points, which continues with the given
// slope per second outside of them.
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

// integrated returns the mean power over the run times its length. If readings do not cover the
// whole run, How has the share that they cover.
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

// totalEnergy returns the sum of all GPUs. It is absent if that of any GPU is.
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
