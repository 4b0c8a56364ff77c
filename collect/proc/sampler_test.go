package proc

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine/capture"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// counts are what a made-up process has used: times in ticks, memory in pages.
type counts struct {
	utime, stime, cutime, cstime, threads, pages int
	ppid, start                                  int
	state, comm                                  string
}

// use rewrites the counts of a process in place, so that open descriptors see it.
func use(t *testing.T, f FS, pid int, c counts) {
	t.Helper()
	put(t, f.root, fmt.Sprintf("%d/stat", pid), fmt.Sprintf("%d (%s) %s %d 1 1 0 -1 4194304 %d 0 %d 0 %d %d %d %d 20 0 %d 0 %d 1000 256 0 %s\n",
		pid, or(c.comm, "a (b) c"), or(c.state, "S"), c.ppid, 10*pid, pid, c.utime, c.stime, c.cutime, c.cstime, max(1, c.threads), c.start, strings.Repeat("0 ", 24)))
	put(t, f.root, fmt.Sprintf("%d/statm", pid), fmt.Sprintf("9999 %d 3 4 0 5 0\n", c.pages))
}

// children lists those of a thread.
func children(t *testing.T, f FS, pid, tid int, list string) {
	t.Helper()
	put(t, f.root, fmt.Sprintf("%d/task/%d/children", pid, tid), list)
}

// end takes a process away as the kernel does: open descriptors no longer answer.
func end(t *testing.T, f FS, pid int) {
	t.Helper()
	for _, name := range []string{"stat", "statm"} {
		if err := os.Truncate(f.path(pid, name), 0); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(f.path(pid)); err != nil {
		t.Fatal(err)
	}
}

// clockOf is a clock that a test sets.
func clockOf(now *time.Duration) func() time.Duration { return func() time.Duration { return *now } }

// sampled mounts processes, with counts for each, and starts a sampler at the first.
func sampled(t *testing.T, procs ...fake) (FS, *Sampler, *time.Duration) {
	t.Helper()
	f := mount(t, procs...)
	for _, p := range procs {
		use(t, f, p.pid, counts{ppid: p.ppid, start: p.pid, pages: 10, threads: 1, comm: p.comm})
	}
	now := new(time.Duration)
	s, err := f.NewSampler(procs[0].pid, clockOf(now))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return f, s, now
}

// last is the latest look.
func last(s *Sampler) capture.TreeSample {
	tree := s.Tree()
	return tree.Samples[len(tree.Samples)-1]
}

// pids are those of a look, in order.
func pids(s *Sampler) []int {
	tree := s.Tree()
	var list []int
	for _, p := range last(s).Processes {
		list = append(list, tree.Processes[p.Process].PID)
	}
	return list
}

func TestSamplerReadsAProcess(t *testing.T) {
	f, s, now := sampled(t, fake{pid: 40, ppid: 1, argv: []string{"llama-server"}, comm: "llama-server"})
	use(t, f, 40, counts{ppid: 1, start: 40, utime: 120, stime: 30, cutime: 7, cstime: 3, threads: 52, pages: 300, comm: "llama-server"})
	for tid, n := range map[int]int{40: 10, 41: 5} {
		put(t, f.root, fmt.Sprintf("40/task/%d/schedstat", tid), fmt.Sprintf("1 %d 3\n", n*100_000_000))
		children(t, f, 40, tid, "")
	}
	s.Deep()
	*now = 50 * time.Millisecond
	s.Sample()

	want := capture.ProcessSample{
		CPU: 1500 * time.Millisecond, Reaped: 100 * time.Millisecond, RSSBytes: 300 * int64(os.Getpagesize()), Threads: 52, RunWaitSeconds: stat.Some(1.5),
	}
	tree := s.Tree()
	if diff := cmp.Diff([]capture.ProcessSample{want}, tree.Samples[0].Processes); diff != "" {
		t.Errorf("deep look (-want +got):\n%s", diff)
	}
	want.RunWaitSeconds = stat.None
	if diff := cmp.Diff([]capture.ProcessSample{want}, tree.Samples[1].Processes); diff != "" {
		t.Errorf("cheap look (-want +got):\n%s", diff)
	}
	if p := tree.Processes[0]; p.PID != 40 || p.Ticks != 40 || p.Comm != "llama-server" || p.Role != "server" {
		t.Errorf("process %+v", p)
	}
}

func TestSamplerFollowsTheTree(t *testing.T) {
	f, s, now := sampled(t,
		fake{pid: 10, ppid: 1, argv: []string{"bash", "-c", "x"}, comm: "bash"},
		fake{pid: 11, ppid: 10, argv: []string{"llama-server"}, comm: "llama-server"},
		fake{pid: 12, ppid: 11, argv: []string{"sh"}, comm: "sh"})
	step := func(d time.Duration) {
		*now += d
		s.Sample()
	}
	check := func(what string, want ...int) {
		t.Helper()
		if diff := cmp.Diff(want, slices.Sorted(slices.Values(pids(s)))); diff != "" {
			t.Errorf("%s: processes (-want +got):\n%s", what, diff)
		}
	}
	step(0)
	check("all levels at the first look", 10, 11, 12)

	add := func(pid, ppid, start int) {
		t.Helper()
		fake{pid: pid, ppid: ppid, argv: []string{"sh"}, ticks: start}.put(t, f.root, "")
		use(t, f, pid, counts{ppid: ppid, start: start, comm: "sh", pages: 1})
		children(t, f, pid, pid, "")
	}
	add(20, 11, 500)
	children(t, f, 11, 99, "20") // of another thread than the first
	step(50 * time.Millisecond)
	check("no child is looked for", 10, 11, 12)
	if last(s).Walked {
		t.Error("a cheap look says that it looked for children")
	}
	step(450 * time.Millisecond)
	check("a child of a thread joins", 10, 11, 12, 20)

	end(t, f, 20)
	step(50 * time.Millisecond)
	check("a child leaves", 10, 11, 12)
	if p := s.Tree().Processes[3]; !p.Gone || p.Joined != 500*time.Millisecond || p.Left != 550*time.Millisecond {
		t.Errorf("the child %+v; want it from 500 to 550 ms", p)
	}

	add(20, 11, 900) // the PID again, another process
	step(500 * time.Millisecond)
	check("a PID is used again", 10, 11, 12, 20)
	if n := len(s.Tree().Processes); n != 5 {
		t.Errorf("%d processes were seen; want 5: another start is another process", n)
	}

	// The shell below the server ends, and init takes its child over.
	add(30, 12, 950)
	children(t, f, 12, 12, "30")
	step(500 * time.Millisecond)
	check("a grandchild", 10, 11, 12, 20, 30)
	end(t, f, 12)
	children(t, f, 11, 11, "")
	use(t, f, 30, counts{ppid: 1, start: 950, comm: "sh", pages: 1})
	step(500 * time.Millisecond)
	check("whose parent ended", 10, 11, 20, 30)
	look := last(s)
	if p := look.Processes[3]; p.Parent != p.Process {
		t.Errorf("a process that init took over has the parent %d", p.Parent)
	}

	end(t, f, 10)
	use(t, f, 11, counts{ppid: 1, start: 11, comm: "llama-server", pages: 10})
	step(50 * time.Millisecond)
	check("the root ends, the others live on", 11, 20, 30)
	for _, pid := range []int{11, 20, 30} {
		end(t, f, pid)
	}
	step(50 * time.Millisecond)
	if look := last(s); !strings.Contains(look.Error, "process 10 and all that it started have ended") || look.Processes != nil {
		t.Errorf("with no process left: %+v", look)
	}
}

func TestSamplerSkipsAPIDThatIsAnothers(t *testing.T) {
	f, s, _ := sampled(t, fake{pid: 10, ppid: 1, argv: []string{"a"}}, fake{pid: 11, ppid: 1, argv: []string{"b"}})
	children(t, f, 10, 10, "11 10") // 11 is not its child by now, 10 would be a loop
	s.Sample()
	if diff := cmp.Diff([]int{10}, pids(s)); diff != "" {
		t.Errorf("processes (-want +got):\n%s", diff)
	}
}

func TestSamplerWithoutChildrenFiles(t *testing.T) {
	f, s, _ := sampled(t, fake{pid: 10, ppid: 1, argv: []string{"a"}}, fake{pid: 11, ppid: 10, argv: []string{"b"}}, fake{pid: 12, ppid: 11, argv: []string{"c"}})
	for _, pid := range []int{10, 11, 12} {
		if err := os.Remove(f.path(pid, "task", fmt.Sprint(pid), "children")); err != nil {
			t.Fatal(err)
		}
	}
	s.Sample()
	if diff := cmp.Diff([]int{10, 11, 12}, pids(s)); diff != "" || last(s).Partial {
		t.Errorf("by the parents of all processes (-want +got):\n%s", diff)
	}
}

func TestNewSamplerWithoutProcess(t *testing.T) {
	f := mount(t, fake{pid: 10, ppid: 1, argv: []string{"a"}})
	_, err := f.NewSampler(11, clockOf(new(time.Duration)))
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "--pid") {
		t.Errorf("error %v; want one that is ErrNotFound and says what to do", err)
	}
}

// TestSamplerWithoutBirths has a machine on which no process ever starts, as far as it
// reports.
func TestSamplerWithoutBirths(t *testing.T) {
	f, s, now := sampled(t, fake{pid: 10, ppid: 1, argv: []string{"a"}}, fake{pid: 11, ppid: 1, argv: []string{"b"}})
	s.lastStarted = func() string { return "4711" }
	s.Sample()
	use(t, f, 11, counts{ppid: 10, start: 11}) // root is a subreaper, which takes an orphan over
	children(t, f, 10, 10, "11")
	*now = slowEvery
	s.Sample()
	if diff := cmp.Diff([]int{10}, pids(s)); diff != "" {
		t.Errorf("though no process started (-want +got):\n%s", diff)
	}
	*now = maxWalkInterval + slowEvery
	s.Sample()
	if diff := cmp.Diff([]int{10, 11}, pids(s)); diff != "" {
		t.Errorf("after a while (-want +got):\n%s", diff)
	}
}

// TestSamplerOfAForeignChild has a child whose files do not open, as another user's
// with hidepid.
func TestSamplerOfAForeignChild(t *testing.T) {
	f, s, _ := sampled(t, fake{pid: 10, ppid: 1, argv: []string{"a"}})
	put(t, f.root, "11", "")
	children(t, f, 10, 10, "11 12")
	s.Sample()
	if look := last(s); !look.Partial || look.Error != "" || len(look.Processes) != 1 {
		t.Errorf("look %+v; want one that says it is partial", look)
	}
	children(t, f, 10, 10, "12")
	s.next = 0
	s.Sample()
	if look := last(s); look.Partial {
		t.Errorf("look %+v; a child that ended is none that is hidden", look)
	}
}

func TestSamplerWhoseRootIsUnreadable(t *testing.T) {
	f, s, now := sampled(t, fake{pid: 10, ppid: 1, argv: []string{"a"}}, fake{pid: 11, ppid: 10, argv: []string{"b"}})
	s.Sample()
	put(t, f.root, "10/stat", "10 (a) S what is this")
	*now = 50 * time.Millisecond
	s.Sample()
	if look := last(s); !strings.Contains(look.Error, "process 10") || look.Processes != nil {
		t.Errorf("look %+v; want it to fail", look)
	}
	use(t, f, 10, counts{ppid: 1, start: 10})
	*now = 100 * time.Millisecond
	s.Sample()
	if diff := cmp.Diff([]int{10, 11}, pids(s)); diff != "" || last(s).Error != "" {
		t.Errorf("the next look (-want +got):\n%s", diff)
	}
	if n := len(s.Tree().Processes); n != 2 {
		t.Errorf("%d processes, want the 2 that never left", n)
	}
}

func TestSamplerTellsWhatBeganEarlier(t *testing.T) {
	f, s, now := sampled(t, fake{pid: 10, ppid: 1, argv: []string{"a"}}, fake{pid: 11, ppid: 1, argv: []string{"b"}}, fake{pid: 12, ppid: 1, argv: []string{"c"}})
	put(t, f.root, "uptime", "100.00 1.00\n")
	s.Sample()
	// Half a second later both are children of 10; only one of them is new.
	*now = 500 * time.Millisecond
	put(t, f.root, "uptime", "100.50 1.00\n")
	use(t, f, 11, counts{ppid: 10, start: 9_000})
	use(t, f, 12, counts{ppid: 10, start: 10_020})
	children(t, f, 10, 10, "11 12")
	s.Sample()
	if p := s.Tree().Processes; len(p) != 3 || !p[1].Earlier || p[2].Earlier {
		t.Errorf("processes %+v; want 11 alone to have begun earlier", p)
	}
}

// TestSamplerReadsParentsFirst rests the accounting of ended children on the order
// of reading: also where a process joined before the one that is its parent now.
func TestSamplerReadsParentsFirst(t *testing.T) {
	f, s, now := sampled(t, fake{pid: 10, ppid: 1, argv: []string{"a"}}, fake{pid: 11, ppid: 10, argv: []string{"b"}})
	s.Sample()
	fake{pid: 12, ppid: 10, argv: []string{"subreaper"}}.put(t, f.root, "")
	use(t, f, 12, counts{ppid: 10, start: 900})
	use(t, f, 11, counts{ppid: 12, start: 11})
	children(t, f, 10, 10, "12")
	children(t, f, 12, 12, "11")
	for range 3 {
		*now += slowEvery
		s.Sample()
	}
	if diff := cmp.Diff([]int{10, 12, 11}, pids(s)); diff != "" {
		t.Errorf("order (-want +got):\n%s", diff)
	}
	tree := s.Tree()
	if p := last(s).Processes[2]; tree.Processes[p.Parent].PID != 12 {
		t.Errorf("the parent of 11 is %d, want 12", tree.Processes[p.Parent].PID)
	}
}
