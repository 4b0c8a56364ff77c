package optrace

import (
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// view is a summary as the checks look at it.
type view struct {
	*Summary
	decode, prefill *PhaseRow // nil where the phase did not occur often enough
	lanes           int       // threads that compute most graphs
	graphs          int       // of all phases
	names           dialect
}

const (
	// fewestGraphs are the graphs of a phase below which nothing is said about it: a
	// median and a p95 of fewer do not hold.
	fewestGraphs = 20
	// presentShare is the share of the time of graphs that a lane has to be there for
	// to count as one of the runtime's threads: lanes of a prefill alone, which
	// --threads-batch adds, do not decide what decode does.
	presentShare = 0.5
)

func lookAt(s *Summary) *view {
	v := &view{Summary: s, names: dialectOf(&s.Target)}
	for i := range s.Phases {
		p := &s.Phases[i]
		v.graphs += p.Graph.Count
		switch {
		case p.Phase == PhaseDecode.String() && p.Graph.Count >= fewestGraphs:
			v.decode = p
		case p.Phase == PhasePrefill.String() && p.Graph.Count > 0:
			v.prefill = p
		}
	}
	for i := range s.Threads {
		t := &s.Threads[i]
		there := t.Busy.Plus(t.Sync).Plus(t.Off)
		if !there.OK || there.V >= presentShare {
			v.lanes++
		}
	}
	return v
}

// few says that there are graphs, and not enough of them to change anything by.
func (v *view) few() bool { return v.graphs > 0 && v.graphs < fewestGraphs }

// present calls f with each lane that takes part in most graphs.
func (v *view) present(f func(*ThreadRow)) {
	for i := range v.Threads {
		t := &v.Threads[i]
		if there := t.Busy.Plus(t.Sync).Plus(t.Off); !there.OK || there.V >= presentShare {
			f(t)
		}
	}
}

// spread is a ratio over the lanes.
type spread struct {
	min, mean, max float64
	least, most    int // lanes
	ok             bool
}

// times is the spread of so much of each.
func (s spread) times(f float64) spread {
	s.min, s.mean, s.max = f*s.min, f*s.mean, f*s.max
	return s
}

func (v *view) over(of func(*ThreadRow) stat.Opt) spread {
	var s spread
	n := 0.0
	v.present(func(t *ThreadRow) {
		x := of(t)
		if !x.OK {
			return
		}
		if n == 0 || x.V < s.min {
			s.min, s.least = x.V, t.Lane
		}
		if n == 0 || x.V > s.max {
			s.max, s.most = x.V, t.Lane
		}
		s.mean += x.V
		n++
	})
	if n > 0 {
		s.mean, s.ok = s.mean/n, true
	}
	return s
}

func (v *view) sync() spread { return v.over(func(t *ThreadRow) stat.Opt { return t.Sync }) }

// barriers is the time in barriers. Documents that do not tell it apart have it as Sync.
func (v *view) barriers() spread { return v.over((*ThreadRow).barriers) }

func (t *ThreadRow) barriers() stat.Opt {
	if t.Barriers.OK {
		return t.Barriers
	}
	return t.Sync
}

func (v *view) busy() spread { return v.over(func(t *ThreadRow) stat.Opt { return t.Busy }) }
func (v *view) off() spread  { return v.over(func(t *ThreadRow) stat.Opt { return t.Off }) }
func (v *view) preempted() spread {
	return v.over(func(t *ThreadRow) stat.Opt {
		if t.LostCPU.OK {
			return t.LostCPU
		}
		return t.Preempted
	})
}

// point is the roof with n threads, false where it is not known.
func (v *view) point(n int) (RoofPoint, bool) { return v.Roof.Point(n) }

// memoryShare is the share of the decode time in operators that memory bounds.
func (v *view) memoryShare() stat.Opt {
	sum, known := 0.0, false
	for i := range v.Kinds {
		k := &v.Kinds[i]
		if k.Phase != PhaseDecode.String() || !k.Share.OK || k.Bound == BoundUnknown {
			continue
		}
		known = true
		if k.Bound == BoundMemory {
			sum += k.Share.V
		}
	}
	if !known {
		return stat.None
	}
	return stat.Some(sum)
}

// ofRoof is the share of the memory roof of its threads that decode reaches.
func (v *view) ofRoof() (achieved, roof float64, ok bool) {
	if v.decode == nil || !v.decode.BytesRate.OK {
		return 0, 0, false
	}
	p, ok := v.point(v.lanes)
	if !ok {
		return 0, 0, false
	}
	return v.decode.BytesRate.V, p.BytesPerSecond, true
}
