package proc

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// roleVariable makes the test binary play another program, see [act].
const roleVariable = "ROOFTOP_TEST_SERVER"

func TestMain(m *testing.M) {
	if os.Getenv(roleVariable) == "" {
		os.Exit(m.Run())
	}
	os.Exit(act(os.Getenv(roleVariable)))
}

// TestLiveServerShowsNoSecret finds a child process by its port on the real
// /proc, and prints what was found in every way there is.
func TestLiveServerShowsNoSecret(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(binary)
	cmd.Args = []string{"vllm", "serve", "org/model", "--max-num-seqs", "4", "--api-key", "cmdlinesecret", "--revision", ""}
	cmd.Env = append(os.Environ(), roleVariable+"=1", "VLLM_API_KEY=environmentsecret", "HF_TOKEN=hf_tokensecret", "CUDA_VISIBLE_DEVICES=0,1")
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = stdin.Close()
		_ = cmd.Wait()
	})
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.ParseUint(strings.TrimSpace(line), 10, 16)
	if err != nil {
		t.Fatalf("the child says %q", line)
	}

	f, err := Open("/proc")
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.Discover(addrs(t, "localhost"), nil, uint16(port))
	if err != nil {
		t.Fatal(err)
	}
	if s.LaunchPID != cmd.Process.Pid || len(s.Tree) != 1 || !s.Alive() {
		t.Errorf("launch process %d, tree %v; the child is %d", s.LaunchPID, s.Tree, cmd.Process.Pid)
	}
	if n, _, _ := s.Launch.Int("max_num_seqs"); n != 4 {
		t.Errorf("max_num_seqs = %d, want 4", n)
	}
	if got := s.Launch.Argv(); len(got) != len(cmd.Args) || got[len(got)-1] != "" {
		t.Errorf("argument vector %q, want %q, the empty last one included", got, cmd.Args)
	}
	if h := s.GPUHints(); h.Visible != "0,1" || !h.VisibleSet {
		t.Errorf("GPU hints %+v", h)
	}
	env, err := s.Environ()
	if err != nil || !strings.Contains(strings.Join(env, "\n"), "VLLM_API_KEY=environmentsecret") {
		t.Errorf("the exact environment that a restart needs: %v", err)
	}
	noSecrets(t, s, "cmdlinesecret", "environmentsecret", "hf_tokensecret")
	if s.Env["VLLM_API_KEY"] == "" {
		t.Error("that an API key is set should show")
	}

	servers, err := f.Servers()
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, other := range servers {
		found = found || other.LaunchPID == cmd.Process.Pid && other.Addr.Port() == uint16(port)
	}
	if !found {
		t.Errorf("Servers() = %v, without the child on port %d", servers, port)
	}
}

// TestPermission reads a server of another user: the error names the user and
// what to do, and the command line, which everyone may read, is used.
func TestPermission(t *testing.T) {
	const nobody = 65534
	procs := plain(100, "127.0.0.1:8000", "--max-num-seqs", "12")
	procs = append(procs, plain(200, "127.0.0.1:8001", "--port", "8001", "--config", "/etc/none.yaml")...)
	procs = append(procs, fake{pid: 300, ppid: 1, argv: []string{"nginx"}, listens: []string{"127.0.0.1:80"}})
	for i := range procs {
		procs[i].uid = 4321
	}
	f := mount(t, procs...)
	for _, p := range procs {
		for _, name := range []string{"fd", "environ"} {
			if err := os.Chmod(f.path(p.pid, name), 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Cleanup(func() {
		for _, p := range procs {
			_ = os.Chmod(f.path(p.pid, "fd"), 0o755)
		}
	})
	if os.Geteuid() == 0 {
		// Root may read everything: this thread gives that up for its file
		// accesses.
		if err := os.Chmod(f.root, 0o755); err != nil {
			t.Fatal(err)
		}
		opened(t, f.root)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := syscall.Setfsuid(nobody); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = syscall.Setfsuid(0) }()
	}

	_, err := f.Discover(addrs(t, "localhost"), nil, 80)
	if !errors.Is(err, ErrPermission) || !strings.Contains(err.Error(), "user 4321") || !strings.Contains(err.Error(), "run rooftop as that user or as root") {
		t.Errorf("another program: %v", err)
	}
	s, err := f.Discover(addrs(t, "localhost"), nil, 8000)
	if err != nil {
		t.Fatal(err)
	}
	if n, _, _ := s.Launch.Int("max_num_seqs"); s.LaunchPID != 100 || n != 12 {
		t.Errorf("launch process %d with %d slots, want 100 with 12", s.LaunchPID, n)
	}
	var what []string
	for _, gap := range s.Missing {
		what = append(what, gap.What)
	}
	if got := strings.Join(what, ", "); got != "environment, owner of the listening socket" {
		t.Errorf("missing %s", got)
	}
	servers, err := f.Servers()
	if err != nil {
		t.Fatal(err)
	}
	if len(servers) != 2 || servers[0].LaunchPID != 100 || servers[1].LaunchPID != 200 {
		t.Errorf("Servers() = %v", servers)
	}
}

// opened makes the parents of a test's directory passable for other users.
func opened(t *testing.T, dir string) {
	t.Helper()
	for dir = strings.TrimSuffix(dir, "/"); strings.Contains(dir, "/Test"); dir = dir[:strings.LastIndex(dir, "/")] {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
}
