package loop

import "time"

// lateAfter is the largest age of a fresh reading, in intervals.
const lateAfter = 3

// processInterval is the interval between readings of the server's processes.
const processInterval = 2 * time.Second

// Indexes of the sources in a snapshot.
const (
	sourcePage = iota
	sourceGPU
	sourceProcesses
	numSources
)

// source tracks the state of one source.
type source struct {
	SourceState
	tried time.Duration // time of the last attempt
	begun bool          // there was an attempt
}

func sourcesAtStart() [numSources]source {
	var s [numSources]source
	s[sourcePage].SourceState = SourceState{Name: "metrics", Why: "no server was found yet"}
	s[sourceGPU].SourceState = SourceState{Name: "gpu", Why: "no server was found yet"}
	s[sourceProcesses].SourceState = SourceState{Name: "processes", Why: "no process of the server was read yet"}
	return s
}

// succeeded records a reading that was due at one time and complete at another.
func (s *source) succeeded(at, read, took time.Duration) {
	s.attempt(at)
	s.State, s.Why, s.Last, s.Took, s.Failures = SourceFresh, "", read, took, 0
}

// failed records a failed reading.
func (s *source) failed(at time.Duration, why string) {
	s.attempt(at)
	s.State, s.Why = SourceFailing, why
	s.Failures++
}

func (s *source) attempt(at time.Duration) {
	if s.begun && at > s.tried {
		s.Interval = at - s.tried
	}
	s.begun, s.tried = true, at
}

// markAbsent records that the source does not exist.
func (s *source) markAbsent(why string) {
	s.State, s.Why, s.Failures = SourceAbsent, why, 0
}

// stateAt returns the state at a time, as a good reading ages.
func (s *source) stateAt(now time.Duration) SourceState {
	state := s.SourceState
	if state.State == SourceFresh && s.Interval > 0 && now-s.Last > lateAfter*s.Interval {
		state.State = SourceLate
	}
	return state
}
