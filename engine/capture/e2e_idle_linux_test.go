//go:build e2e

package capture_test

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/collect/proc"
	"github.com/rooftop-dev/rooftop/engine/capture"
)

// ordinary are programs of any machine that do something for a moment whenever a
// line comes in, and rest otherwise.
var ordinary = [][]string{
	{"awk", "{ s += length($0) } END { print s }"},
	{"gzip", "-c"},
	{"sort"},
	{"dd", "bs=64", "status=none"},
	{"sed", "-u", "s/a/b/"},
	{"cat"},
	{"grep", "-c", "x"},
	{"tr", "a-z", "A-Z"},
	{"md5sum"},
	{"wc"},
	{"cut", "-c1-3"},
	{"bash", "-c", "while read -r line; do n=$((n + 1)); done"},
	{"sh", "-c", "while read -r line; do : ; done"},
	{"perl", "-ne", "$n += length"},
	{"python3", "-c", "import sys\nfor line in sys.stdin: pass"},
	{"bash", "-c", "while read -r line; do /bin/true; done"},
}

// server answers one connection after another in one thread.
const server = `use IO::Socket::INET; $| = 1;
my $s = IO::Socket::INET->new(LocalAddr => '127.0.0.1', Listen => 5) or die;
print $s->sockport, "\n";
while (my $c = $s->accept) { my $line = <$c>; print $c "ok\n"; close $c }`

// TestE2ETreeIdle watches ordinary programs, each busy a few times in two seconds,
// and some that do nothing: the warning is for the latter alone.
func TestE2ETreeIdle(t *testing.T) {
	f, err := proc.Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	origin := time.Now()
	clock := func() time.Duration { return time.Since(origin) }
	type watched struct {
		name    string
		idle    bool
		poke    func()
		sampler *proc.Sampler
	}
	var all []watched
	watch := func(name string, idle bool, pid int, poke func()) {
		s, err := f.NewSampler(pid, clock)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(s.Close)
		all = append(all, watched{name, idle, poke, s})
	}
	busy := 0
	for _, argv := range ordinary {
		if pid, in := start(t, argv); pid != 0 {
			busy++
			watch(strings.Join(argv, " "), false, pid, func() { fmt.Fprintln(in, "a line of input") })
		}
	}
	if pid, poke := startServer(t); pid != 0 {
		busy++
		watch("a server of perl's", false, pid, poke)
	}
	if busy < 10 {
		t.Fatalf("only %d ordinary programs are there", busy)
	}
	for _, argv := range [][]string{{"cat"}, {"sleep", "60"}, {"bash", "-c", "read -r line; exit"}} {
		pid, _ := start(t, argv)
		watch("idle "+argv[0], true, pid, func() {})
	}
	time.Sleep(500 * time.Millisecond) // they are up
	for i := range all {
		all[i].sampler.Deep()
	}
	for n := range 40 {
		time.Sleep(50 * time.Millisecond)
		for i := range all {
			if n%15 == i%15 {
				all[i].poke()
			}
			all[i].sampler.Sample()
		}
	}
	for _, w := range all {
		w.sampler.Deep()
		c := capture.Capture{Kind: capture.Observation, Tree: w.sampler.Tree()}
		got := c.ProcessWarnings()
		if fired := len(got) > 0; fired != w.idle {
			t.Errorf("%s: %v", w.name, got)
		}
		u := c.Tree.Usage(0, clock())
		t.Logf("%-40.40q idle %-5v %5.1f MiB, %2.0f threads, %7.3f ms of CPU", w.name, w.idle, u.Total.RSS.Peak.V/(1<<20), u.Total.Threads.Peak.V, 1e3*u.Total.CPUSeconds.V)
	}
}

// start runs a program with its input in our hands; 0 where it is not there.
func start(t *testing.T, argv []string) (pid int, in io.Writer) {
	t.Helper()
	path, err := exec.LookPath(argv[0])
	if err != nil {
		t.Logf("%s is not here", argv[0])
		return 0, nil
	}
	cmd := exec.Command(path, argv[1:]...)
	w, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = w.Close()
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	return cmd.Process.Pid, w
}

func startServer(t *testing.T) (pid int, poke func()) {
	t.Helper()
	cmd := exec.Command("perl", "-e", server)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Logf("perl is not here: %v", err)
		return 0, nil
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	var port int
	if _, err := fmt.Fscan(out, &port); err != nil {
		t.Fatal(err)
	}
	return cmd.Process.Pid, func() {
		c, err := net.Dial("tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			t.Error(err)
			return
		}
		defer c.Close()
		fmt.Fprintln(c, "hello")
		_, _ = io.ReadAll(c)
	}
}
