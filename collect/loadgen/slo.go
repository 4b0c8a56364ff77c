package loadgen

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// SLO has the objectives of a request; 0 is no objective. TTFT and E2E count from the intended send
// time.
type SLO struct {
	E2E time.Duration `json:"e2e_s,omitempty"`
	// ITL is met if at most one in a hundred gaps of the request is longer; with fewer than a
	// hundred, none may be.
	ITL  time.Duration `json:"itl_s,omitempty"`
	TPOT time.Duration `json:"tpot_s,omitempty"`
	TTFT time.Duration `json:"ttft_s,omitempty"`
}

// IsZero reports whether there is no objective.
func (s SLO) IsZero() bool { return s == SLO{} }

// met reports whether an answered request meets all objectives. An objective without a value, such
// as the TPOT of a single token, is met.
func (s SLO) met(lag time.Duration, r *capture.Request) bool {
	e2e, ok := r.E2E()
	return ok && !s.missed(lag+e2e, lag, r)
}

// missed reports whether a request has already missed an objective. taken is the time since its
// intended send time.
func (s SLO) missed(taken, lag time.Duration, r *capture.Request) bool {
	first, ok := r.TTFT()
	if !ok {
		first = taken - lag
	}
	if exceeds(lag+first, s.TTFT) || exceeds(taken, s.E2E) {
		return true
	}
	if tpot, ok := r.TPOT(r.CountedTokens()); ok && exceeds(tpot, s.TPOT) {
		return true
	}
	if s.ITL == 0 || len(r.Chunks) < 2 {
		return false
	}
	long := 0
	for i := 1; i < len(r.Chunks); i++ {
		if r.Chunks[i].At-r.Chunks[i-1].At > s.ITL {
			long++
		}
	}
	return long > (len(r.Chunks)-1)/100
}

func exceeds(d, limit time.Duration) bool { return limit > 0 && d > limit }

// objective is a limit with its name in the text form.
type objective struct {
	name  string
	value *time.Duration
}

// objectives returns the objectives in display order.
func (s *SLO) objectives() []objective {
	return []objective{{"ttft", &s.TTFT}, {"itl", &s.ITL}, {"tpot", &s.TPOT}, {"e2e", &s.E2E}}
}

// String returns the text form that ParseSLO accepts.
func (s SLO) String() string {
	var parts []string
	for _, o := range s.objectives() {
		if *o.value > 0 {
			parts = append(parts, o.name+"="+o.value.String())
		}
	}
	return strings.Join(parts, ",")
}

// ParseSLO parses objectives such as ttft=500ms,itl=60ms.
func ParseSLO(text string) (SLO, error) {
	var s SLO
	var seen []string
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		at := slices.IndexFunc(s.objectives(), func(o objective) bool { return o.name == name })
		d, err := time.ParseDuration(value)
		if at < 0 || err != nil || d <= 0 || slices.Contains(seen, name) {
			return SLO{}, fmt.Errorf("%q is not an objective: give ttft=500ms,itl=60ms,tpot=50ms,e2e=10s or some of them", part)
		}
		*s.objectives()[at].value = d
		seen = append(seen, name)
	}
	return s, nil
}

// Goodput counts the requests that met every objective.
type Goodput struct {
	SLO  SLO `json:"slo"`
	Good int `json:"good"`
	// Judged counts the good requests and those that missed: answered too late, failed, given up,
	// or cut off by the end of the run after they had missed.
	Judged    int      `json:"judged"`
	Share     stat.Opt `json:"share"`          // Good of Judged, 0..1
	PerSecond float64  `json:"requests_per_s"` // good requests
}
