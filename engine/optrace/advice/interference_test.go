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
	s.Others = []optrace.OtherRow{{Name: optrace.SiblingName, Time: 8 * time.Second, Share: stat.Some(0.45)}, {PID: 31, Name: "engine.test", Time: 600 * time.Millisecond, Share: stat.Some(0.029)}}
	s.Preempted = optrace.Preempted{Time: optrace.SomeTime(20 * time.Second), OwnCPUs: stat.Some(1.02), Threads: stat.Some(1.01)}
	s.HostLoad = &optrace.HostLoad{
		Elapsed: 20 * time.Second, CPUs: 2, Target: 20 * time.Second, Rooftop: 200 * time.Millisecond, Others: 19600 * time.Millisecond, Idle: 200 * time.Millisecond,
		Processes: []optrace.ProcessLoad{{PID: 31, Name: "engine.test", Time: 19400 * time.Millisecond}, {PID: 32, Name: "sh", Time: 150 * time.Millisecond}},
		Throttled: stat.Some(0),
	}
}

// TestProgramOnAnotherCPU checks that a program on another CPU of the target is named for what
// the threads lose by sharing the remaining CPUs.
func TestProgramOnAnotherCPU(t *testing.T) {
	s := healthy()
	besideProgram(s)
	findings, a := Diagnose(s)
	if !slices.Equal(ids(findings), []string{"preempted"}) || a.Finding != "preempted" || !strings.Contains(a.Do, "engine.test (PID 31)") || !strings.Contains(a.Do, "nice") {
		t.Fatalf("%q: %s", ids(findings), a.Do)
	}
	text := spaced(findings[0].Evidence...)
	for _, want := range []string{"other threads of the target 40 %, engine.test (PID 31) 3 %", "the target had 1.02 of the 2 CPUs", "engine.test (PID 31) 0.97"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing from %s", want, text)
		}
	}
	if !strings.Contains(findings[0].Evidence[1], "0.97") {
		t.Errorf("a report shows the first two: %q", findings[0].Evidence)
	}
	if want := " If that is not possible, 1 thread may be faster than 2 (--threads 1): other programs leave 1.02 of the 2 CPUs."; !strings.HasSuffix(a.Why, want) {
		t.Errorf("fewer threads fit what is left: %s", a.Why)
	}
	if a.Gain.V < freed(0.45) {
		t.Errorf("gain %v, the lanes lose half of the time to it", a.Gain.V)
	}
}

// TestFewerThreadsMeanwhile checks that fewer threads are suggested only if other programs
// leave too few CPUs for all, and the threads lose much.
func TestFewerThreadsMeanwhile(t *testing.T) {
	for name, set := range map[string]func(*optrace.Summary){
		"who had the CPUs is not known":    func(s *optrace.Summary) { s.HostLoad = nil },
		"others leave CPUs for all":        func(s *optrace.Summary) { s.HostLoad.Others = 5 * time.Second },
		"one thread, which cannot be less": func(s *optrace.Summary) { s.Threads = s.Threads[:1] },
		"little is lost":                   func(s *optrace.Summary) { lanes(s, func(_ int, t *optrace.ThreadRow) { t.Preempted = stat.Some(0.1) }) },
	} {
		s := healthy()
		besideProgram(s)
		set(s)
		if _, a := Diagnose(s); strings.Contains(a.Why, "may be faster") {
			t.Errorf("%s: %s", name, a.Why)
		}
	}
}

// TestWhoPutsLanesOff distinguishes causes that look the same on the thread's own CPU: the
// thread is preempted, and other programs had this CPU for almost none of the time.
func TestWhoPutsLanesOff(t *testing.T) {
	for _, c := range []struct {
		name    string
		set     func(*optrace.Summary)
		finding string
		do      string // part of the advice
		not     string
	}{
		{"another program has the other CPU", func(*optrace.Summary) {}, "preempted", "engine.test", "limit"},
		{"it did so while nothing was computed alone", func(s *optrace.Summary) { s.Preempted.OwnCPUs, s.Preempted.Threads = stat.Some(1.98), stat.Some(2) }, "oversubscribed", "contexts that compute at the same time", "limit"},
		{"two contexts, and the program has half of what they lack", func(s *optrace.Summary) { s.Preempted.Threads = stat.Some(1.7) }, "preempted", "engine.test", ""},
		{"several programs", func(s *optrace.Summary) {
			s.HostLoad.Processes = []optrace.ProcessLoad{{PID: 41, Name: "compile", Time: 7 * time.Second}, {PID: 42, Name: "link", Time: 6 * time.Second}}
		}, "preempted", "CPUs of its own", "compile"},
		{"programs that have all ended", func(s *optrace.Summary) { s.HostLoad.Processes, s.Others = nil, s.Others[:1] }, "preempted", "CPUs of its own", ""},
		{"the other CPU was free", func(s *optrace.Summary) { s.HostLoad.Others = 300 * time.Millisecond; s.HostLoad.Processes = nil }, "oversubscribed", "bound to one CPU", "limit"},
		{"it was free, and a limit is not known", func(s *optrace.Summary) {
			s.HostLoad.Others, s.HostLoad.Throttled, s.HostLoad.Processes = 300*time.Millisecond, stat.None, nil
		}, "oversubscribed", "or a limit of CPU time", ""},
		{"a limit of CPU time, beside a busy program", func(s *optrace.Summary) { s.HostLoad.Throttled, s.HostLoad.CPULimit = stat.Some(18), stat.Some(0.5) }, "oversubscribed", "Raise the limit", "engine.test"},
		{"the same, by its periods, and others have the CPUs then", func(s *optrace.Summary) {
			s.HostLoad.Throttled, s.HostLoad.ThrottledPeriods, s.HostLoad.CPULimit = stat.Some(0.85), stat.Some(0.79), stat.Some(0.6)
			s.Preempted.OwnCPUs, s.Others[1].Time = stat.Some(0.36), 15*time.Second
		}, "oversubscribed", "Raise the limit", "engine.test"},
		{"a recording without who had the CPUs", func(s *optrace.Summary) { s.HostLoad = nil }, "oversubscribed", "Trace this process again", "limit"},
		{"the same, where the target had them all", func(s *optrace.Summary) { s.HostLoad = nil; s.Preempted.OwnCPUs = stat.Some(2) }, "oversubscribed", "contexts that compute at the same time", "limit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := healthy()
			besideProgram(s)
			c.set(s)
			findings, a := Diagnose(s)
			if !slices.Equal(ids(findings), []string{c.finding}) || !strings.Contains(a.Do, c.do) || c.not != "" && strings.Contains(a.Do, c.not) {
				t.Errorf("%q, %q: %s", ids(findings), findings[0].Title, a.Do)
			}
			if text := findings[0].Title + spaced(findings[0].Evidence...); s.HostLoad == nil && s.Preempted.OwnCPUs.V < 2 && (!strings.Contains(text, "unknown") || strings.Contains(text, "not by")) {
				t.Errorf("what was not recorded is claimed: %s", text)
			}
		})
	}
}

// TestOwnReaderIsNoReason checks that the CPU time of the trace itself, and of kernel threads,
// leads to no advice and no gain.
func TestOwnReaderIsNoReason(t *testing.T) {
	s := healthy()
	s.Threads = s.Threads[:1]
	s.Threads[0].Preempted = stat.Some(0.046)
	s.Observer.Reader = stat.Some(0.021)
	s.Others = []optrace.OtherRow{{PID: 77, Name: optrace.KernelName("kdamond.0"), Share: stat.Some(0.018)}}
	if findings, a := Diagnose(s); len(findings) != 0 || a.Finding != "" || a.Gain.OK {
		t.Errorf("%q: %s %v", ids(findings), a.Do, a.Gain)
	}
	s.Others = append(s.Others, optrace.OtherRow{PID: 9, Name: "sh", Share: stat.Some(0.012)})
	if findings, a := Diagnose(s); len(findings) != 0 {
		t.Errorf("without what the tracer had it is less than the limit: %q: %s", ids(findings), a.Do)
	}
	s.Threads[0].Preempted = stat.Some(0.056)
	if _, a := Diagnose(s); !strings.Contains(a.Do, "CPUs of its own") || a.Gain.V > freed(0.0121) {
		t.Errorf("the gain holds what the tracer and the kernel took: %s %v", a.Do, a.Gain)
	}
	s.Threads[0].Preempted, s.Others = stat.Some(0.062), []optrace.OtherRow{{PID: 77, Name: optrace.KernelName("kdamond.0"), Share: stat.Some(0.04)}}
	if findings, a := Diagnose(s); len(findings) != 1 || !strings.Contains(findings[0].Title, "kernel") || a.Gain.OK {
		t.Errorf("%+v: %s", findings, a.Do)
	}
}

// TestWhatTheTracerHadIsACostOfTheTrace checks that rooftop's own CPU time is not evidence
// against other processes, that the remainder is shown without it, and that it is added to the
// cost of the probes.
func TestWhatTheTracerHadIsACostOfTheTrace(t *testing.T) {
	s := healthy()
	s.Threads = s.Threads[:2]
	lanes(s, func(_ int, t *optrace.ThreadRow) { t.Preempted = stat.Some(0.066) })
	s.Others = []optrace.OtherRow{{Name: optrace.SiblingName, Time: 220 * time.Millisecond, Share: stat.Some(0.014)}, {PID: 1, Name: "bash", Time: 420 * time.Millisecond, Share: stat.Some(0.02)}}
	s.Observer.Expected, s.Observer.Reader, s.Observer.ReaderTime = 0.02, stat.Some(0.025), 360*time.Millisecond
	s.Preempted = optrace.Preempted{Time: optrace.SomeTime(1080 * time.Millisecond), OwnCPUs: stat.Some(2), Threads: stat.Some(1)}
	findings, a := Diagnose(s)
	if len(findings) != 1 || a.Finding != "preempted" || math.Abs(findings[0].Cost.V-0.044) > 1e-9 {
		t.Fatalf("%+v: %s", findings, a.Do)
	}
	text := spaced(findings[0].Evidence...)
	for _, want := range []string{"for 4.4 % of the time of graphs", "the CPU time of rooftop itself is not included", "bash (PID 1) 58 %, other threads of the target 31 %"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing from %s", want, text)
		}
	}
	if strings.Contains(text, optrace.OwnName) || a.Gain.V > freed(0.044) {
		t.Errorf("%s; %s: %v", text, a.Do, a.Gain)
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
