package probe

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
)

// SLO is what a request has to meet to be a good one; 0 asks nothing. TTFT and
// E2E count from the intended send time.
type SLO struct {
	TTFT time.Duration
	// ITL is met where at most one in a hundred gaps of the request is longer; of
	// fewer than a hundred, none.
	ITL  time.Duration
	TPOT time.Duration
	E2E  time.Duration
}

// IsZero says that there is no objective.
func (s SLO) IsZero() bool { return s == SLO{} }

// met says whether a request that was answered meets all objectives. An objective
// that a request has no value for, the TPOT of a single token, is met.
func (s SLO) met(lag time.Duration, r *Result) bool {
	e2e, ok := r.E2E()
	return ok && !s.missed(lag+e2e, lag, r)
}

// missed says whether a request has missed an objective once it has taken so
// long since its intended time.
func (s SLO) missed(taken, lag time.Duration, r *Result) bool {
	first, ok := r.TTFT()
	if !ok {
		first = taken - lag
	}
	if exceeds(lag+first, s.TTFT) || exceeds(taken, s.E2E) {
		return true
	}
	if tpot, ok := r.TPOT(); ok && exceeds(tpot, s.TPOT) {
		return true
	}
	if s.ITL == 0 || len(r.Chunks) < 2 {
		return false
	}
	long := 0
	for i := 1; i < len(r.Chunks); i++ {
		if r.Chunks[i]-r.Chunks[i-1] > s.ITL {
			long++
		}
	}
	return long > (len(r.Chunks)-1)/100
}

func exceeds(d, limit time.Duration) bool { return limit > 0 && d > limit }

// objectives are the objectives by name, in the order in which they are shown.
func (s *SLO) objectives() []struct {
	name  string
	value *time.Duration
} {
	return []struct {
		name  string
		value *time.Duration
	}{{"ttft", &s.TTFT}, {"itl", &s.ITL}, {"tpot", &s.TPOT}, {"e2e", &s.E2E}}
}

// String returns what ParseSLO reads.
func (s SLO) String() string {
	var parts []string
	for _, o := range s.objectives() {
		if *o.value > 0 {
			parts = append(parts, o.name+"="+o.value.String())
		}
	}
	return strings.Join(parts, ",")
}

// ParseSLO reads objectives as a person writes them: ttft=500ms,itl=60ms.
func ParseSLO(text string) (SLO, error) {
	var s SLO
	var seen []string
	for part := range strings.SplitSeq(text, ",") {
		name, value, _ := strings.Cut(part, "=")
		at := slices.IndexFunc(s.objectives(), func(o struct {
			name  string
			value *time.Duration
		}) bool {
			return o.name == name
		})
		d, err := time.ParseDuration(value)
		if at < 0 || err != nil || d <= 0 || slices.Contains(seen, name) {
			return SLO{}, fmt.Errorf("%q is no objective: give ttft=500ms,itl=60ms,tpot=50ms,e2e=10s or some of them", part)
		}
		*s.objectives()[at].value = d
		seen = append(seen, name)
	}
	return s, nil
}

// Goodput is how many requests met every objective.
type Goodput struct {
	SLO  SLO
	Good int
	// Judged are the good ones and those that missed: answered too late, failed,
	// given up, or cut by the end of the run when they had missed already.
	Judged    int
	PerSecond float64 // good requests
}

// Share is Good of Judged, 0..1; false where nothing was judged.
func (g *Goodput) Share() (float64, bool) {
	if g.Judged == 0 {
		return 0, false
	}
	return float64(g.Good) / float64(g.Judged), true
}

// MarshalJSON writes the objectives that there are in seconds, and the share as
// null where nothing was judged.
func (g Goodput) MarshalJSON() ([]byte, error) {
	seconds := map[string]float64{}
	for _, o := range g.SLO.objectives() {
		if *o.value > 0 {
			seconds[o.name+"_s"] = o.value.Seconds()
		}
	}
	var share *float64
	if v, ok := g.Share(); ok {
		share = &v
	}
	return json.Marshal(struct {
		SLO       map[string]float64 `json:"slo"`
		Good      int                `json:"good"`
		Judged    int                `json:"judged"`
		Share     *float64           `json:"share"`
		PerSecond float64            `json:"requests_per_s"`
	}{seconds, g.Good, g.Judged, share, g.PerSecond})
}
