package proc

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const limitsText = `Limit                     Soft Limit           Hard Limit           Units     
Max cpu time              unlimited            unlimited            seconds   
Max stack size            8388608              unlimited            bytes     
Max open files            1024                 524288               files     
Max realtime priority     0                    0                    
Max things of the future  1                    2                    things    
`

func TestParseLimits(t *testing.T) {
	want := map[string][2]int64{"cpu": {-1, -1}, "stack": {8388608, -1}, "nofile": {1024, 524288}, "rtprio": {0, 0}}
	if diff := cmp.Diff(want, parseLimits(limitsText)); diff != "" {
		t.Errorf("limits (-want +got):\n%s", diff)
	}
}

// process writes the files of one process below a directory.
func processFiles(t *testing.T, root string, pid int, status, cgroup string) {
	t.Helper()
	dir := filepath.Join(root, fmt.Sprint(pid))
	if err := os.MkdirAll(filepath.Join(dir, "fd"), 0o755); err != nil {
		t.Fatal(err)
	}
	stat := fmt.Sprintf("%d (vllm) S 7 41 42 0 -1 4194560 1 0 0 0 10 5 0 0 20 -5 3 0 98765 1000 100 18446744073709551615 1 1 0 0 0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0", pid)
	for name, text := range map[string]string{"stat": stat, "status": status, "cgroup": cgroup, "limits": limitsText, "oom_score_adj": "-250\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for name, target := range map[string]string{
		"exe": "/usr/bin/python3.12 (deleted)", "cwd": "/srv", "fd/0": "/dev/null", "fd/1": "pipe:[77]", "fd/2": "/var/log/vllm.log",
	} {
		if err := os.Symlink(target, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
}

func TestSurroundings(t *testing.T) {
	root := t.TempDir()
	if err := os.WriteFile(filepath.Join(root, "stat"), []byte("btime 1700000000\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	processFiles(t, root, 42, "Name:\tvllm\nUmask:\t0027\nUid:\t1000\t1000\t1000\t1000\nGid:\t100\t100\t100\t100\nGroups:\t4 100 \nNSpid:\t42\t1\nCpus_allowed_list:\t0-3,8\n",
		"1:name=systemd:/system.slice/vllm.service\n0::/\n")
	processFiles(t, root, 43, "Uid:\t1000\t0\t0\t0\nGid:\t100\t100\t100\t100\n", "")
	f, err := Open(root)
	if err != nil {
		t.Fatal(err)
	}
	got, err := f.Surroundings(42)
	if err != nil {
		t.Fatal(err)
	}
	want := Surroundings{
		Exe: "/usr/bin/python3.12", Gone: true, UID: 1000, GID: 100, Groups: []int{4, 100}, Limits: parseLimits(limitsText), Nice: -5, Umask: 0o027,
		OOMScoreAdj: -250, CPUs: "0-3,8", Std: [3]string{"/dev/null", "pipe:[77]", "/var/log/vllm.log"}, PPID: 7, Session: 42,
		Cgroups: []string{"/system.slice/vllm.service", "/"}, InnerPID: 1,
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
	found := false
	for _, p := range f.Twins(argv) {
		found = found || p.PID == parent.PID && p.Ticks == parent.Ticks
	}
	if !found {
		t.Errorf("process %d is not among those with its command line", parent.PID)
	}
	up := f.Ancestors(os.Getpid())
	if len(up) == 0 || up[0].PID != parent.PID {
		t.Errorf("ancestors %v, want %d first", up, parent.PID)
	}
	if kinds := f.Foreign(os.Getpid()); len(kinds) > 0 {
		t.Errorf("this process is foreign to itself: %v", kinds)
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
	// What of process 10 cannot be read is not held against it.
	if want := []int{10, 14}; !slices.Equal(pids, want) {
		t.Errorf("twins %v, want %v", pids, want)
	}
}
