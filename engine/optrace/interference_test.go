package optrace

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

// crowdedOut is two threads on two CPUs, of which another program has one all the time:
// they take turns on the other, and push each other off it.
func crowdedOut(s *Summary) {
	s.Target.CPUs = 2
	reads(s, 15e9)
	s.Threads = s.Threads[:2]
	lanes(s, func(_ int, t *ThreadRow) {
		t.Busy, t.Sync, t.Off, t.Preempted = stat.Some(0.3), stat.Some(0.2), stat.Some(0.5), stat.Some(0.49)
	})
	s.Others = []OtherRow{{Name: SiblingName, Time: 8 * time.Second, Share: stat.Some(0.45)}, {PID: 31, Name: "engine.test", Time: 600 * time.Millisecond, Share: stat.Some(0.029)}}
	s.PutOff = PutOff{Time: SomeTime(20 * time.Second), OwnCPUs: stat.Some(1.02), Threads: stat.Some(1.01)}
	s.HostLoad = &HostLoad{
		Elapsed: 20 * time.Second, CPUs: 2, Target: 20 * time.Second, Rooftop: 200 * time.Millisecond, Others: 19600 * time.Millisecond, Idle: 200 * time.Millisecond,
		Processes: []ProcessLoad{{PID: 31, Name: "engine.test", Time: 19400 * time.Millisecond}, {PID: 32, Name: "sh", Time: 150 * time.Millisecond}},
		Throttled: stat.Some(0),
	}
}

// TestProgramOnAnotherCPU holds that who has another CPU of the target is named for what
// its threads lose by sharing the rest.
func TestProgramOnAnotherCPU(t *testing.T) {
	s := healthy()
	crowdedOut(s)
	findings, a := Diagnose(s)
	if !slices.Equal(ids(findings), []string{"preempted"}) || a.Finding != "preempted" || !strings.Contains(a.Do, "engine.test (PID 31)") || !strings.Contains(a.Do, "nice") {
		t.Fatalf("%q: %s", ids(findings), a.Do)
	}
	text := strings.Join(findings[0].Evidence, "\n")
	for _, want := range []string{"other threads of the target 40 %, engine.test (PID 31) 3 %", "the target had 1.02 of the 2 CPUs", "engine.test (PID 31) 0.97"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing from %s", want, text)
		}
	}
	if !strings.Contains(findings[0].Evidence[1], "0.97") {
		t.Errorf("a report shows the first two: %q", findings[0].Evidence)
	}
	if want := " Where that cannot be, 1 thread may do better than 2 (--threads 1): others leave 1.02 of the 2 CPUs."; !strings.HasSuffix(a.Why, want) {
		t.Errorf("fewer threads fit what is left: %s", a.Why)
	}
	if a.Gain.V < freed(0.45) {
		t.Errorf("gain %v, the lanes lose half of the time to it", a.Gain.V)
	}
}

// TestFewerThreadsMeanwhile holds that fewer threads are named only where others leave too few
// CPUs for all, and lanes lose much by it.
func TestFewerThreadsMeanwhile(t *testing.T) {
	for name, set := range map[string]func(*Summary){
		"who had the CPUs is not known":    func(s *Summary) { s.HostLoad = nil },
		"others leave CPUs for all":        func(s *Summary) { s.HostLoad.Others = 5 * time.Second },
		"one thread, which cannot be less": func(s *Summary) { s.Threads = s.Threads[:1] },
		"little is lost":                   func(s *Summary) { lanes(s, func(_ int, t *ThreadRow) { t.Preempted = stat.Some(0.1) }) },
	} {
		s := healthy()
		crowdedOut(s)
		set(s)
		if _, a := Diagnose(s); strings.Contains(a.Why, "may do better") {
			t.Errorf("%s: %s", name, a.Why)
		}
	}
}

// TestWhoPutsLanesOff tells causes apart that look alike on the lane's own CPU: a lane that
// is put off, and other programs that had this CPU for next to nothing of it.
func TestWhoPutsLanesOff(t *testing.T) {
	for _, c := range []struct {
		name    string
		set     func(*Summary)
		finding string
		do      string // part of the advice
		not     string
	}{
		{"another program has the other CPU", func(*Summary) {}, "preempted", "engine.test", "limit"},
		{"it did so while nothing was computed alone", func(s *Summary) { s.PutOff.OwnCPUs, s.PutOff.Threads = stat.Some(1.98), stat.Some(2) }, "oversubscribed", "contexts that compute at once", "limit"},
		{"two contexts, and the program has half of what they lack", func(s *Summary) { s.PutOff.Threads = stat.Some(1.7) }, "preempted", "engine.test", ""},
		{"several programs", func(s *Summary) {
			s.HostLoad.Processes = []ProcessLoad{{PID: 41, Name: "compile", Time: 7 * time.Second}, {PID: 42, Name: "link", Time: 6 * time.Second}}
		}, "preempted", "CPUs of its own", "compile"},
		{"programs that have all ended", func(s *Summary) { s.HostLoad.Processes, s.Others = nil, s.Others[:1] }, "preempted", "CPUs of its own", ""},
		{"the other CPU was free", func(s *Summary) { s.HostLoad.Others = 300 * time.Millisecond; s.HostLoad.Processes = nil }, "oversubscribed", "bound to one CPU", "limit"},
		{"it was free, and a limit is not known", func(s *Summary) {
			s.HostLoad.Others, s.HostLoad.Throttled, s.HostLoad.Processes = 300*time.Millisecond, stat.None, nil
		}, "oversubscribed", "or a limit of CPU time", ""},
		{"a limit of CPU time, beside a busy program", func(s *Summary) { s.HostLoad.Throttled, s.HostLoad.CPULimit = stat.Some(18), stat.Some(0.5) }, "oversubscribed", "Raise the limit", "engine.test"},
		{"the same, by its periods, and others have the CPUs then", func(s *Summary) {
			s.HostLoad.Throttled, s.HostLoad.ThrottledPeriods, s.HostLoad.CPULimit = stat.Some(0.85), stat.Some(0.79), stat.Some(0.6)
			s.PutOff.OwnCPUs, s.Others[1].Time = stat.Some(0.36), 15*time.Second
		}, "oversubscribed", "Raise the limit", "engine.test"},
		{"a recording without who had the CPUs", func(s *Summary) { s.HostLoad = nil }, "oversubscribed", "Trace this process again", "limit"},
		{"the same, where the target had them all", func(s *Summary) { s.HostLoad = nil; s.PutOff.OwnCPUs = stat.Some(2) }, "oversubscribed", "contexts that compute at once", "limit"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := healthy()
			crowdedOut(s)
			c.set(s)
			findings, a := Diagnose(s)
			if !slices.Equal(ids(findings), []string{c.finding}) || !strings.Contains(a.Do, c.do) || c.not != "" && strings.Contains(a.Do, c.not) {
				t.Errorf("%q, %q: %s", ids(findings), findings[0].Title, a.Do)
			}
			if text := findings[0].Title + strings.Join(findings[0].Evidence, " "); s.HostLoad == nil && s.PutOff.OwnCPUs.V < 2 && (!strings.Contains(text, "not known") || strings.Contains(text, "not by")) {
				t.Errorf("what was not recorded is claimed: %s", text)
			}
		})
	}
}

// TestOwnReaderIsNoReason holds that what the trace itself takes, and the kernel's threads,
// make no advice to the user, and no gain.
func TestOwnReaderIsNoReason(t *testing.T) {
	s := healthy()
	s.Threads = s.Threads[:1]
	s.Threads[0].Preempted = stat.Some(0.046)
	s.Observer.Reader = stat.Some(0.021)
	s.Others = []OtherRow{{PID: 77, Name: KernelName("kdamond.0"), Share: stat.Some(0.018)}}
	if findings, a := Diagnose(s); len(findings) != 0 || a.Finding != "" || a.Gain.OK {
		t.Errorf("%q: %s %v", ids(findings), a.Do, a.Gain)
	}
	s.Others = append(s.Others, OtherRow{PID: 9, Name: "sh", Share: stat.Some(0.012)})
	if findings, a := Diagnose(s); len(findings) != 0 {
		t.Errorf("without what the tracer had it is less than the limit: %q: %s", ids(findings), a.Do)
	}
	s.Threads[0].Preempted = stat.Some(0.056)
	if _, a := Diagnose(s); !strings.Contains(a.Do, "CPUs of its own") || a.Gain.V > freed(0.0121) {
		t.Errorf("the gain holds what the tracer and the kernel took: %s %v", a.Do, a.Gain)
	}
	s.Threads[0].Preempted, s.Others = stat.Some(0.062), []OtherRow{{PID: 77, Name: KernelName("kdamond.0"), Share: stat.Some(0.04)}}
	if findings, a := Diagnose(s); len(findings) != 1 || !strings.Contains(findings[0].Title, "kernel") || a.Gain.OK {
		t.Errorf("%+v: %s", findings, a.Do)
	}
}

// TestWhatTheTracerHadIsACostOfTheTrace holds that rooftop's own CPU is no evidence against
// others, that what is left is said without it, and that it counts beside the probes.
func TestWhatTheTracerHadIsACostOfTheTrace(t *testing.T) {
	s := healthy()
	s.Threads = s.Threads[:2]
	lanes(s, func(_ int, t *ThreadRow) { t.Preempted = stat.Some(0.066) })
	s.Others = []OtherRow{{Name: SiblingName, Time: 220 * time.Millisecond, Share: stat.Some(0.014)}, {PID: 1, Name: "bash", Time: 420 * time.Millisecond, Share: stat.Some(0.02)}}
	s.Observer.Expected, s.Observer.Reader, s.Observer.ReaderTime = 0.02, stat.Some(0.025), 360*time.Millisecond
	s.PutOff = PutOff{Time: SomeTime(1080 * time.Millisecond), OwnCPUs: stat.Some(2), Threads: stat.Some(1)}
	findings, a := Diagnose(s)
	if len(findings) != 1 || a.Finding != "preempted" || math.Abs(findings[0].Cost.V-0.044) > 1e-9 {
		t.Fatalf("%+v: %s", findings, a.Do)
	}
	text := strings.Join(findings[0].Evidence, " ")
	for _, want := range []string{"for 4.4 % of the time of graphs", "what rooftop itself had is left out", "bash (PID 1) 58 %, other threads of the target 31 %"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing from %s", want, text)
		}
	}
	if strings.Contains(text, OwnName) || a.Gain.V > freed(0.044) {
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
	// Together they cost too much for what the figures tell.
	s.Observer.Reader, s.Observer.ReaderTime = stat.Some(0.045), 800*time.Millisecond
	if findings, a := Diagnose(s); len(findings) != 1 || a.Finding != "observer-effect" || !strings.Contains(strings.Join(findings[0].Evidence, " "), "4.5 % of the time of graphs: 6.5 % together") {
		t.Errorf("%+v: %s", findings, a.Do)
	}
}

// TestCompareSaysWhoAsTheReportDoes holds that "mostly" is more than half, and that a
// comparison names the cause that the report of the trace does.
func TestCompareSaysWhoAsTheReportDoes(t *testing.T) {
	for _, c := range []struct {
		name string
		set  func(*Summary)
		want string
	}{
		{"most of it", crowdedOut, ", mostly by engine.test (PID 31)"},
		{"several", func(s *Summary) {
			stolen(s)
			s.Others = []OtherRow{{PID: 11, Name: "tui.test", Share: stat.Some(0.1)}, {PID: 12, Name: "link", Share: stat.Some(0.09)}, {PID: 13, Name: "vet", Share: stat.Some(0.08)}}
		}, ", the most of any by tui.test (PID 11), 10 %"},
		{"itself", func(s *Summary) { crowdedOut(s); s.PutOff.OwnCPUs = stat.Some(2) }, " by other threads of the target"},
		{"not known", func(s *Summary) { crowdedOut(s); s.HostLoad = nil }, "; by whom is not known"},
		{"the reader", func(s *Summary) {
			s.Threads[2].Preempted, s.Others, s.Observer.Reader = stat.Some(0.06), nil, stat.Some(0.05)
		}, ", the most of any by the reader of the trace, 5 %"},
	} {
		s := healthy()
		c.set(s)
		if got := byWhom(lookAt(s)); got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestTurnsOnOneCPU is the same from events: two lanes on one CPU of two, since who has the
// other is none of ours.
func TestTurnsOnOneCPU(t *testing.T) {
	const own = 100
	events := []Event{
		{Kind: GraphBegin, TID: 1, PID: own, Addr: 0xa, At: 10},
		{Kind: OpBegin, TID: 1, PID: own, Lanes: 2, Addr: 1, At: 20},
		{Kind: SwitchOut, TID: 1, PID: own, At: 30, N: int64(OffPreempted), Addr: own},
		{Kind: SwitchIn, TID: 2, PID: own, At: 30, N: own},
		{Kind: OpBegin, TID: 2, PID: own, Lane: 1, Lanes: 2, Addr: 1, At: 30},
		{Kind: SwitchOut, TID: 2, PID: own, At: 80, N: int64(OffPreempted), Addr: own},
		{Kind: SwitchIn, TID: 1, PID: own, At: 80, N: own},
		{Kind: SwitchOut, TID: 1, PID: own, At: 100, N: int64(OffPreempted), Addr: own},
		{Kind: SwitchIn, TID: 2, PID: own, At: 100, N: own},
		{Kind: SwitchOut, TID: 2, PID: own, At: 110, N: int64(OffBlocked), Addr: own},
		{Kind: SwitchIn, TID: 1, PID: own, At: 110, N: own},
		{Kind: GraphEnd, TID: 1, PID: own, At: 200},
	}
	s := Analyze(&Recording{Events: append([]Event{{Kind: DetailChanged, PID: own, N: int64(LevelSched)}}, events...), End: 200, Detail: LevelSched})
	if p := s.PutOff; p.Time != SomeTime(80) || p.OwnCPUs != stat.Some(1) || p.Threads != stat.Some(1) {
		t.Errorf("while a lane was put off: %+v, want 80ns, 1 CPU and 1 thread", p)
	}
	if len(s.Others) != 1 || s.Others[0].Name != SiblingName || s.Others[0].Time != 80 || s.Others[0].PID != 0 {
		t.Errorf("who had the CPU instead: %+v, want the other lane for 80ns", s.Others)
	}
}
