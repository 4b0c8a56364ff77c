package optrace

import (
	"iter"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// View is a summary with the derived figures that findings use.
type View struct {
	*Summary
	Decode, Prefill *PhaseRow // nil if the phase did not occur often enough
	ThreadCount     int       // threads that compute most graphs
	Graphs          int       // of all phases
	GraphSeconds    float64   // time of these graphs
}

const (
	// presentShare is the share of the time of graphs in which a thread must take part to count
	// as one of the runtime's threads: threads of prefill alone, which --threads-batch adds, do
	// not affect decode.
	presentShare = 0.5
)

// NewView returns the view of a summary.
func NewView(s *Summary) *View {
	v := &View{Summary: s}
	for i := range s.Phases {
		p := &s.Phases[i]
		v.Graphs += p.Graph.Count
		v.GraphSeconds += p.Graph.TotalSeconds()
		switch {
		case p.Phase == PhaseDecode.String() && p.Graph.Count >= FewestGraphs:
			v.Decode = p
		case p.Phase == PhasePrefill.String() && p.Graph.Count > 0:
			v.Prefill = p
		}
	}
	v.EachThread(func(*ThreadRow) { v.ThreadCount++ })
	return v
}

// FewGraphs reports whether there are graphs, but too few to base a change on.
func (v *View) FewGraphs() bool { return v.Graphs > 0 && v.Graphs < FewestGraphs }

// EachThread calls f with each thread that takes part in most graphs.
func (v *View) EachThread(f func(*ThreadRow)) {
	for i := range v.Threads {
		t := &v.Threads[i]
		if there := t.Busy.Plus(t.Sync).Plus(t.Off); !there.OK || there.V >= presentShare {
			f(t)
		}
	}
}

// Spread is the range and the mean of a ratio over the threads.
type Spread struct {
	Min, Mean, Max  float64
	Lowest, Highest int // threads with Min and Max
	OK              bool
}

// Scaled returns the spread with each value multiplied by f.
func (s Spread) Scaled(f float64) Spread {
	s.Min, s.Mean, s.Max = f*s.Min, f*s.Mean, f*s.Max
	return s
}

// Spread returns the range of a figure over the threads, without absent values.
func (v *View) Spread(of func(*ThreadRow) stat.Opt) Spread {
	var s Spread
	n := 0.0
	v.EachThread(func(t *ThreadRow) {
		x := of(t)
		if !x.OK {
			return
		}
		if n == 0 || x.V < s.Min {
			s.Min, s.Lowest = x.V, t.Thread
		}
		if n == 0 || x.V > s.Max {
			s.Max, s.Highest = x.V, t.Thread
		}
		s.Mean += x.V
		n++
	})
	if n > 0 {
		s.Mean, s.OK = s.Mean/n, true
	}
	return s
}

// Barriers returns the share of time in barriers, or that of waiting for other threads where barriers were not traced.
func (v *View) Barriers() Spread { return v.Spread((*ThreadRow).InBarriers) }

// Busy returns the share of time that threads compute operators.
func (v *View) Busy() Spread { return v.Spread(func(t *ThreadRow) stat.Opt { return t.Busy }) }

// PreemptedSpread returns the share of time for which threads were ready without a CPU.
func (v *View) PreemptedSpread() Spread {
	return v.Spread(func(t *ThreadRow) stat.Opt { return t.Preempted })
}

// PreemptedLimit is the share of the time of graphs for which a thread is ready without a CPU
// from which that is a finding. The kernel's own threads and timers take well under 1 %.
const PreemptedLimit = 0.03

// MaxPreempted returns the share of the time of graphs for which the thread that lost most was
// ready without a CPU, absent if it is below [PreemptedLimit] or was not traced.
func MaxPreempted(s *Summary) stat.Opt {
	p := NewView(s).PreemptedSpread()
	if !p.OK || p.Max < PreemptedLimit {
		return stat.None
	}
	return stat.Some(p.Max)
}

// LostByAll returns the most that the threads can lose by what some of them lose: the sum over
// threads, if all wait for each that is off its CPU, but no more than the time that they do not
// compute.
func (v *View) LostByAll(off Spread) float64 {
	most := off.Mean * float64(max(v.ThreadCount, 1))
	if busy := v.Busy(); busy.OK {
		most = min(most, 1-busy.Mean)
	}
	return max(most, off.Max)
}

// PeakPoint returns the machine's peak with n threads, false if it is unknown.
func (v *View) PeakPoint(n int) (PeakPoint, bool) { return v.Peak.Point(n) }

// DecodeKinds iterates over the kinds of operators of decodes.
func (v *View) DecodeKinds() iter.Seq[*OperatorRow] {
	return func(yield func(*OperatorRow) bool) {
		for i := range v.Kinds {
			if k := &v.Kinds[i]; k.Phase == PhaseDecode.String() && !yield(k) {
				return
			}
		}
	}
}

// MemoryShare returns the share of the decode time in operators that memory bounds, absent if
// no bound is known.
func (v *View) MemoryShare() stat.Opt {
	var share stat.Opt
	for k := range v.DecodeKinds() {
		switch {
		case !k.Share.OK || k.Bound == BoundUnknown:
		case k.Bound == BoundMemory:
			share = share.Plus(k.Share)
		default:
			share = share.Plus(stat.Some(0))
		}
	}
	return share
}

// OfPeak returns the rate at which decode reads memory and the peak for as many threads, in
// bytes per second; false if either is unknown.
func (v *View) OfPeak() (achieved, peak float64, ok bool) {
	if v.Decode == nil || !v.Decode.BytesRate.OK {
		return 0, 0, false
	}
	p, ok := v.PeakPoint(v.ThreadCount)
	if !ok {
		return 0, 0, false
	}
	return v.Decode.BytesRate.V, p.BytesPerSecond, true
}
