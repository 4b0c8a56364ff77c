package proc

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine/launch"
)

const limitsText = `Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max stack size            8388608              unlimited            bytes     
Max open files            1024                 524288               files     
Max realtime priority     0                    0                    
Max things of the future  1                    2                    things    
`

func TestSurroundings(t *testing.T) {
	f := mount(t, fake{pid: 42, cwd: "/srv"}, fake{pid: 43})
	for _, pid := range []string{"42", "43"} {
		put(t, f.root, pid+"/stat", pid+" (vllm) S 7 41 42 0 -1 4194560 1 0 0 0 10 5 0 0 20 -5 3 0 98765 1000 100 0 "+strings.Repeat("0 ", 27))
		put(t, f.root, pid+"/limits", limitsText)
		put(t, f.root, pid+"/oom_score_adj", "-250\n")
		link(t, "/usr/bin/python3.12 (deleted)", f.root, pid, "exe")
	}
	for n, target := range []string{"/dev/null", "pipe:[77]", "/var/log/vllm.log"} {
		link(t, target, f.root, "42/fd", strconv.Itoa(n))
	}
	put(t, f.root, "42/status", "Name:\tvllm\nUmask:\t0027\nUid:\t1000\t1000\t1000\t1000\nGid:\t100\t100\t100\t100\nGroups:\t4 100 \nNSpid:\t42\t1\nCpus_allowed_list:\t0-3,8\nCapBnd:\t0\nNoNewPrivs:\t1\n")
	put(t, f.root, "42/cgroup", "1:name=systemd:/system.slice/vllm.service\n0::/\n")
	put(t, f.root, "43/status", "Uid:\t1000\t0\t0\t0\nGid:\t100\t100\t100\t100\n")
	got, err := f.Surroundings(42)
	if err != nil {
		t.Fatal(err)
	}
	want := Surroundings{
		Exe: "/usr/bin/python3.12", Gone: true, UID: 1000, GID: 100, Groups: []int{4, 100}, Nice: -5, Umask: 0o027,
		Limits:      map[string][2]int64{"cpu": {-1, -1}, "stack": {8388608, -1}, "nofile": {1024, 524288}, "rtprio": {0, 0}},
		OOMScoreAdj: -250, CPUs: "0-3,8", Std: [3]string{"/dev/null", "pipe:[77]", "/var/log/vllm.log"}, PPID: 7, Session: 42,
		Cgroups: []string{"/system.slice/vllm.service", "/"}, InnerPID: 1,
		Confined: map[string]string{"CapBnd": "0", "NoNewPrivs": "1", "root": "/"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("surroundings (-want +got):\n%s", diff)
	}
	if got, err := f.Surroundings(43); err != nil || !got.Mixed || got.Umask != -1 || got.UID != 0 {
		t.Errorf("%+v, %v, want the rights of several users and an unknown mask", got, err)
	}
	if _, err := f.Surroundings(44); !errors.Is(err, ErrNotFound) {
		t.Errorf("error %v, want that there is none", err)
	}
}

func TestHoldersAndTwinsOfThisProcess(t *testing.T) {
	f, err := Open("/proc")
	if err != nil {
		t.Skip("NOT CHECKED: the twins of this test's own process:", err)
	}
	parent, err := f.Find(os.Getppid())
	if err != nil {
		t.Fatal(err)
	}
	argv, err := f.Argv(parent.PID)
	if err != nil {
		t.Skip("NOT CHECKED: the twins of this test's own process:", err)
	}
	if twins := f.Twins(argv); !slices.ContainsFunc(twins, func(p Process) bool { return p.PID == parent.PID && p.Ticks == parent.Ticks }) {
		t.Errorf("process %d is not among those with its command line: %v", parent.PID, twins)
	}
	if up := f.Ancestors(os.Getpid()); len(up) == 0 || up[0].PID != parent.PID {
		t.Errorf("ancestors %v, want %d first", up, parent.PID)
	}
	if kinds := f.Foreign(os.Getpid()); len(kinds) > 0 {
		t.Errorf("this process is foreign to itself: %v", kinds)
	}
}

// TestHolders: servers on one port at different addresses do not take it from each other.
func TestHolders(t *testing.T) {
	f := mount(t, slices.Concat(plain(100, "127.0.0.2:8000"), plain(200, "127.0.0.3:8000"), plain(300, "0.0.0.0:8001"), plain(500, "127.0.0.1:8003"))...)
	// [::]:8002 and [::1]:8003, as /proc/net/tcp6 writes them.
	const line = "   0: %s:%04X 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 %d 1\n"
	put(t, f.root, "net/tcp6", "  sl\n"+fmt.Sprintf(line, strings.Repeat("0", 32), 8002, 9002)+fmt.Sprintf(line, strings.Repeat("0", 24)+"01000000", 8003, 9003))
	link(t, "socket:[9002]", f.path(400), "fd", "10")
	link(t, "socket:[9003]", f.path(600), "fd", "10")
	put(t, f.root, "400/stat", statText(fake{pid: 400, ppid: 1, comm: "vllm", state: "S", ticks: 400}))
	put(t, f.root, "600/stat", statText(fake{pid: 600, ppid: 1, comm: "vllm", state: "S", ticks: 600}))
	for at, want := range map[string][]int{
		"127.0.0.2:8000":          {100},
		"127.0.0.3:8000":          {200},
		"127.0.0.4:8000":          nil,
		"[::ffff:127.0.0.2]:8000": {100},
		"0.0.0.0:8000":            {100, 200},
		"[::]:8000":               {100, 200},
		"[::1]:8000":              nil,
		"127.0.0.2:8001":          {300},
		"[::]:8001":               {300},
		"[::1]:8001":              nil,
		"127.0.0.2:8002":          {400},
		"0.0.0.0:8002":            {400},
		"[::1]:8002":              {400},
		"127.0.0.1:8003":          {500},
		"0.0.0.0:8003":            {500},
		"[::1]:8003":              {600},
		"[::]:8003":               {500, 600},
		"127.0.0.2:9999":          nil,
	} {
		if pids, listening, err := f.Holders(netip.MustParseAddrPort(at)); err != nil || listening != (want != nil) || !slices.Equal(pids, want) {
			t.Errorf("%s is held by %v, %v, %v; want %v", at, pids, listening, err, want)
		}
	}
}

func TestListenAddr(t *testing.T) {
	for flags, want := range map[string]string{
		"":                                "[::]:8000",
		"--host 0.0.0.0":                  "0.0.0.0:8000",
		"--host 127.0.0.2 --port 8001":    "127.0.0.2:8001",
		"--host localhost":                "127.0.0.1:8000",
		"--host [::1]":                    "[::1]:8000",
		"--host gpu-7.example --port 123": "[::]:123",
	} {
		cfg, err := launch.Parse(append([]string{"vllm", "serve", "m"}, strings.Fields(flags)...), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := ListenAddr(cfg); got != netip.MustParseAddrPort(want) {
			t.Errorf("%q listens at %v, want %s", flags, got, want)
		}
	}
}

func TestTwinsOfOtherNamespacesAreNone(t *testing.T) {
	argv := []string{"vllm", "serve", "m"}
	f := mount(t, fake{pid: 10, argv: argv}, fake{pid: 11, argv: argv, netns: "2"}, fake{pid: 12, argv: argv}, fake{pid: 13, argv: argv[:2]}, fake{pid: 14, argv: argv})
	link(t, "pid:[1]", f.root, strconv.Itoa(f.self), "ns/pid")
	link(t, "pid:[2]", f.root, "12", "ns/pid")
	link(t, "pid:[1]", f.root, "14", "ns/pid")
	var pids []int
	for _, p := range f.Twins(argv) {
		pids = append(pids, p.PID)
	}
	// Unreadable parts of process 10 do not exclude it.
	if want := []int{10, 14}; !slices.Equal(pids, want) {
		t.Errorf("twins %v, want %v", pids, want)
	}
}
