package advice

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/optrace"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// besideProgram is two threads on two CPUs, one of which another program uses all the time: the
// threads take turns on the other one and preempt each other.
func besideProgram(s *optrace.Summary) {
	s.Target.CPUs = 2
	reads(s, 15e9)
	s.Threads = s.Threads[:2]
	lanes(s, func(_ int, t *optrace.ThreadRow) {
		t.Busy, t.Sync, t.Off, t.Preempted = stat.Some(0.3), stat.Some(0.2), stat.Some(0.5), stat.Some(0.49)
	})
	s.Preempted = optrace.Preempted{Time: optrace.SomeTime(14600 * time.Millisecond)}
	s.HostLoad = &optrace.HostLoad{
		Elapsed: 15 * time.Second, CPUs: 2, Target: 15 * time.Second, Rooftop: 150 * time.Millisecond, Others: 14700 * time.Millisecond, Idle: 150 * time.Millisecond,
		Throttled: stat.Some(0),
	}
}

// TestProgramOnAnotherCPU checks that programs on another CPU of the target are the cause of what
// the threads lose by sharing the remaining CPUs.
func TestProgramOnAnotherCPU(t *testing.T) {
	s := healthy()
	besideProgram(s)
	findings, a := Diagnose(s)
	if !slices.Equal(ids(findings), []string{"preempted"}) || a.Finding != "preempted" || !strings.Contains(a.Do, "nice") {
		t.Fatalf("%q: %s", ids(findings), a.Do)
	}
	if text := spaced(findings[0].Evidence...); !strings.Contains(text, "Other programs used 0.980 of 2 CPUs over the whole trace.") {
		t.Error(text)
	}
	if want := " If that is not possible, 1 thread may be faster than 2 (--threads 1): other programs leave 1.02 of the 2 CPUs."; !strings.HasSuffix(a.Why, want) {
		t.Errorf("fewer threads fit what is left: %s", a.Why)
	}
	if a.Gain.V < freed(0.45) {
		t.Errorf("gain %v, the lanes lose half of the time to it", a.Gain.V)
	}
}

// TestWhatPreemptsThreads distinguishes causes that look the same on the thread's own CPU.
func TestWhatPreemptsThreads(t *testing.T) {
	for _, c := range []struct {
		name    string
		set     func(*optrace.Summary)
		finding string
		do      string // part of the advice
		fewer   bool   // fewer threads are suggested
		says    string // part of the evidence
	}{
		{"another program has the other CPU", func(*optrace.Summary) {}, "preempted", "CPUs of its own", true, ""},
		{"it has half of what they lack", func(s *optrace.Summary) { s.HostLoad.Others = 8 * time.Second }, "preempted", "CPUs of its own", true, ""},
		{"others leave CPUs for all", func(s *optrace.Summary) { s.HostLoad.CPUs = 8 }, "preempted", "CPUs of its own", false, ""},
		{"one thread", func(s *optrace.Summary) { s.Threads = s.Threads[:1] }, "preempted", "CPUs of its own", false, ""},
		{"little is lost", func(s *optrace.Summary) { lanes(s, func(_ int, t *optrace.ThreadRow) { t.Preempted = stat.Some(0.1) }) }, "preempted", "CPUs of its own", false, ""},
		{"the kernel has them", func(s *optrace.Summary) { s.HostLoad.Kernel, s.HostLoad.Others = s.HostLoad.Others, 0 }, "preempted", "Change nothing", false, "Threads of the kernel used 0.980 of 2 CPUs over the whole trace."},
		{"the other CPU was free", func(s *optrace.Summary) { s.HostLoad.Others = 300 * time.Millisecond }, "oversubscribed", "bound to one CPU", false, ""},
		{"they used CPUs mostly between graphs", func(s *optrace.Summary) { s.HostLoad.Elapsed, s.HostLoad.Target = 60*time.Second, 105*time.Second }, "oversubscribed", "bound to one CPU", false, ""},
		{"a CPU was idle", func(s *optrace.Summary) { s.HostLoad.CPUs, s.HostLoad.Idle = 3, 15*time.Second }, "oversubscribed", "bound to one CPU", false, ""},
		{"the kernel has them, and a CPU was idle", func(s *optrace.Summary) {
			s.HostLoad.Kernel, s.HostLoad.Others, s.HostLoad.CPUs, s.HostLoad.Idle = s.HostLoad.Others, 0, 3, 15*time.Second
		}, "oversubscribed", "bound to one CPU", false, ""},
		{"a limit of CPU time, beside a busy program", func(s *optrace.Summary) { s.HostLoad.Throttled, s.HostLoad.CPULimit = stat.Some(13), stat.Some(0.5) }, "oversubscribed", "Raise the limit", false, ""},
		{"the same by its periods", func(s *optrace.Summary) {
			s.HostLoad.Throttled, s.HostLoad.ThrottledPeriods = stat.Some(0.85), stat.Some(0.79)
		}, "oversubscribed", "Raise the limit", false, "stopped it for 850 ms, summed over CPUs, in 79 % of its periods;"},
		{"by its periods alone", func(s *optrace.Summary) {
			s.HostLoad.Throttled, s.HostLoad.ThrottledPeriods = stat.None, stat.Some(0.79)
		}, "oversubscribed", "Raise the limit", false, "The limit of its control group stopped it in 79 % of its periods;"},
		{"a recording without the use of the CPUs", func(s *optrace.Summary) { s.HostLoad = nil }, "oversubscribed", "Trace this process again", false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := healthy()
			besideProgram(s)
			c.set(s)
			findings, a := Diagnose(s)
			if !slices.Equal(ids(findings), []string{c.finding}) || !strings.Contains(a.Do, c.do) || strings.Contains(a.Why, "may be faster") != c.fewer || !strings.Contains(spaced(findings[0].Evidence...), c.says) {
				t.Errorf("%q, %q: %s %s; %q", ids(findings), findings[0].Title, a.Do, a.Why, findings[0].Evidence)
			}
		})
	}
}

// TestWhatTheTracerHadIsACostOfTheTrace checks that rooftop's own CPU time is not evidence
// against other programs, that the remainder is shown without it, and that it is added to the
// cost of the probes.
func TestWhatTheTracerHadIsACostOfTheTrace(t *testing.T) {
	s := healthy()
	s.Threads = s.Threads[:2]
	lanes(s, func(_ int, t *optrace.ThreadRow) { t.Preempted = stat.Some(0.066) })
	s.Observer.Expected, s.Observer.Reader, s.Observer.ReaderTime = 0.02, stat.Some(0.025), 360*time.Millisecond
	s.Preempted = optrace.Preempted{Time: optrace.SomeTime(1080 * time.Millisecond)}
	s.HostLoad = &optrace.HostLoad{Elapsed: 20 * time.Second, CPUs: 4, Target: 29 * time.Second, Others: 51 * time.Second}
	findings, a := Diagnose(s)
	if len(findings) != 1 || a.Finding != "preempted" || math.Abs(findings[0].Cost.V-0.044) > 1e-9 || a.Gain.V > freed(0.044)+1e-9 {
		t.Fatalf("%+v: %s", findings, a.Do)
	}
	text := spaced(findings[0].Evidence...)
	for _, want := range []string{"for 4.4 % of the time of graphs", "the CPU time of rooftop itself is not included"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing from %s", want, text)
		}
	}
	o := s.Observer
	for o.Limit = range map[float64]bool{0.04: true, 0.044: true} {
		if !o.Over() || math.Abs(o.Cost()-0.045) > 1e-9 {
			t.Errorf("%v of the speed is not above %v", o.Cost(), o.Limit)
		}
	}
	if o.Limit = 0.05; o.Over() {
		t.Error("it is above 5 %")
	}
	if o.Windows, o.Measured, o.MeasuredLow, o.Limit = 30, 0.03, 0.02, 0.03; o.Over() || o.Cost() != 0.03 {
		t.Errorf("what was measured holds rooftop's own CPU: %v", o.Cost())
	}
	// Together they cost too much for the figures to be reliable.
	s.Observer.Reader, s.Observer.ReaderTime = stat.Some(0.045), 800*time.Millisecond
	if findings, a := Diagnose(s); len(findings) != 1 || a.Finding != "observer-effect" || !strings.Contains(spaced(findings[0].Evidence...), "4.5 % of the time of graphs: 6.5 % together") {
		t.Errorf("%+v: %s", findings, a.Do)
	}
}
