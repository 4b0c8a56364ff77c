package engine

import "time"

// lateAfter is how many intervals old a reading may be and still be fresh.
const lateAfter = 3

// processInterval is how often the server's processes are read.
const processInterval = 2 * time.Second

// Places of the sources in a snapshot.
const (
	sourcePage = iota
	sourceGPU
	sourceProcesses
	numSources
)

// source follows how one source is.
type source struct {
	SourceState
	tried time.Duration // of the last attempt, good or not
	begun bool          // there was an attempt
}

func sourcesAtStart() [numSources]source {
	var s [numSources]source
	s[sourcePage].SourceState = SourceState{Name: "metrics", Why: "no server was found yet"}
	s[sourceGPU].SourceState = SourceState{Name: "gpu", Why: "no server was found yet"}
	s[sourceProcesses].SourceState = SourceState{Name: "processes", Why: "no process of the server was read yet"}
	return s
}

// good notes a reading: at is when it was due, read when it was complete.
func (s *source) good(at, read, took time.Duration) {
	s.attempt(at)
	s.State, s.Why, s.Last, s.Took, s.Failures = SourceFresh, "", read, took, 0
}

// bad notes a reading that failed.
func (s *source) bad(at time.Duration, why string) {
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

// absent says that there is no such source.
func (s *source) absent(why string) {
	s.State, s.Why, s.Failures = SourceAbsent, why, 0
}

// at is the state as of now: a good reading ages.
func (s *source) at(now time.Duration) SourceState {
	state := s.SourceState
	if state.State == SourceFresh && s.Interval > 0 && now-s.Last > lateAfter*s.Interval {
		state.State = SourceLate
	}
	return state
}
