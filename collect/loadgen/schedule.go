package loadgen

import (
	"math"
	"time"
)

// schedule is the level of a load over time: requests per second, or clients.
type schedule struct {
	phases []Phase
	starts []time.Duration // of each phase
}

func newSchedule(phases []Phase) schedule {
	s := schedule{phases: phases, starts: make([]time.Duration, len(phases))}
	for i := 1; i < len(phases); i++ {
		s.starts[i] = s.starts[i-1] + phases[i-1].Duration
	}
	return s
}

// endless is the end of an unlimited phase.
const endless = time.Duration(math.MaxInt64)

func (s *schedule) end(phase int) time.Duration {
	if s.phases[phase].Duration == 0 {
		return endless
	}
	return s.starts[phase] + s.phases[phase].Duration
}

// at returns the phase at a time, the last phase for times after it.
func (s *schedule) at(t time.Duration) int {
	for i := range s.phases {
		if t < s.end(i) {
			return i
		}
	}
	return len(s.phases) - 1
}

// level returns the level of a phase at a time within it.
func (s *schedule) level(phase int, t time.Duration) float64 {
	p := s.phases[phase]
	if p.Duration == 0 {
		return p.From
	}
	return p.From + (p.To-p.From)*float64(t-s.starts[phase])/float64(p.Duration)
}

// most returns the highest level of all phases.
func (s *schedule) most() float64 {
	most := 0.0
	for _, p := range s.phases {
		most = max(most, p.From, p.To)
	}
	return most
}

// clientsOf rounds a level to whole clients, one half down.
func clientsOf(level float64) int { return int(math.Ceil(level - 0.5)) }

// active returns the first time from t on at which a client, counted from 0, is active. begun is
// how many clients began with it at the start of a phase, and rank its index among them; begun is 0
// if the client was active before, or began on a ramp. ok is false if the client is never active
// again.
func (s *schedule) active(client int, t time.Duration) (at time.Duration, rank, begun int, ok bool) {
	need := float64(client) + 0.5
	for i, p := range s.phases {
		if t >= s.end(i) {
			continue
		}
		from := max(t, s.starts[i])
		if s.level(i, from) > need {
			if from != s.starts[i] {
				return from, 0, 0, true
			}
			before := 0
			if i > 0 {
				before = clientsOf(s.phases[i-1].To)
			}
			if client < before {
				return from, 0, 0, true
			}
			return from, client - before, clientsOf(p.From) - before, true
		}
		if p.To > need && p.Duration > 0 {
			share := (need - p.From) / (p.To - p.From)
			return max(from, s.starts[i]+time.Duration(share*float64(p.Duration))), 0, 0, true
		}
	}
	return 0, 0, 0, false
}

// pacer maps arrivals of unit rate to the schedule's rate: the n-th arrives when the integral of
// the rate reaches its operational time (Çınlar, Introduction to Stochastic Processes, 4.7). Gaps
// keep their variation, and ramps need no steps.
type pacer struct {
	schedule
	phase int
	begun float64 // integral of the rate at the start of the phase
}

// time returns when the integral reaches total, which must not decrease between calls, or false if
// it never does.
func (p *pacer) time(total float64) (time.Duration, bool) {
	for ; p.phase < len(p.phases); p.phase++ {
		phase := p.phases[p.phase]
		rest := total - p.begun
		if phase.Duration == 0 {
			if phase.From <= 0 {
				return 0, false
			}
			return addSeconds(p.starts[p.phase], rest/phase.From)
		}
		seconds := phase.Duration.Seconds()
		whole := (phase.From + phase.To) / 2 * seconds
		if rest >= whole {
			p.begun += whole
			continue
		}
		// Solve From·x + (To-From)/(2·seconds)·x² = rest in the form that is numerically stable for
		// small slopes.
		slope := (phase.To - phase.From) / seconds
		x := 0.0
		if rest > 0 {
			x = 2 * rest / (phase.From + math.Sqrt(max(0, phase.From*phase.From+2*slope*rest)))
		}
		return addSeconds(p.starts[p.phase], min(x, seconds))
	}
	return 0, false
}

// addSeconds returns t plus a number of seconds, or false if that overflows.
func addSeconds(t time.Duration, seconds float64) (time.Duration, bool) {
	if seconds > float64(endless-t)/float64(time.Second)*0.999 {
		return 0, false
	}
	return t + time.Duration(math.Round(seconds*float64(time.Second))), true
}
