package proc

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine/launch"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

func TestListener(t *testing.T) {
	several := []fake{
		{pid: 100, ppid: 1, argv: []string{"vllm", "serve", "M", "--api-server-count", "2"}, listens: []string{"0.0.0.0:8000"}, ticks: 900},
		{pid: 90, ppid: 100, argv: []string{"VLLM::APIServer_0"}, listens: []string{"0.0.0.0:8000"}},
		{pid: 91, ppid: 100, argv: []string{"VLLM::APIServer_1"}, listens: []string{"0.0.0.0:8000"}},
	}
	tests := []struct {
		name  string
		procs []fake
		host  string
		port  uint16
		want  int
		err   error
	}{
		{"loopback", plain(100, "127.0.0.1:8000"), "localhost", 8000, 100, nil},
		{"all addresses", plain(100, "0.0.0.0:8000"), "localhost", 8000, 100, nil},
		{"one address of several", append(plain(100, "0.0.0.0:8000"), plain(200, "10.0.0.5:8000")...), "10.0.0.5", 8000, 200, nil},
		{"the address on which it does not listen", plain(100, "10.0.0.5:8000"), "127.0.0.1", 8000, 0, ErrNotFound},
		{"the unspecified address means loopback", plain(100, "127.0.0.1:8000"), "0.0.0.0", 8000, 100, nil},
		{"an IPv4 address written as IPv6", plain(100, "127.0.0.1:8000"), "::ffff:127.0.0.1", 8000, 100, nil},
		{"another port", plain(100, "127.0.0.1:8000"), "localhost", 8001, 0, ErrNotFound},
		{"children that share the socket", several, "localhost", 8000, 100, nil},
		{"any program", []fake{{pid: 7, ppid: 1, argv: []string{"nginx"}, listens: []string{"0.0.0.0:80"}}}, "localhost", 80, 7, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pid, err := mount(t, tt.procs...).Listener(addrs(t, tt.host), tt.port)
			if pid != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("Listener = %d, %v; want %d, %v", pid, err, tt.want, tt.err)
			}
		})
	}
}

func TestListenerOnIPv6(t *testing.T) {
	f := mount(t, plain(100, "127.0.0.1:8000")...)
	// ::1 on port 9000, as /proc/net/tcp6 writes it.
	put(t, f.root, "net/tcp6", "  sl\n   0: 00000000000000000000000001000000:2328 00000000000000000000000000000000:0000 0A 00000000:00000000 00:00000000 00000000 0 0 10000 1\n")
	link(t, "socket:[10000]", f.path(102, "fd", "50"))
	for host, want := range map[string]int{"localhost": 102, "::1": 102, "[::1]": 102, "127.0.0.1": 0} {
		if pid, err := f.Listener(addrs(t, host), 9000); pid != want || errors.Is(err, ErrNotFound) != (want == 0) {
			t.Errorf("Listener on %s = %d, %v; want %d", host, pid, err, want)
		}
	}
}

func TestRoles(t *testing.T) {
	launcher := []string{"/usr/bin/python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "M"}
	tests := []struct {
		name  string
		procs []fake
		want  map[int]Role
	}{
		{"0.32", plain(100, "127.0.0.1:8000"), map[int]Role{100: APIServer, 101: ResourceTracker, 102: EngineCore, 103: Worker}},
		{"names cut to 15 characters", []fake{
			{pid: 1, argv: []string{"vllm", "serve", "M"}},
			{pid: 2, ppid: 1, comm: "VLLM::EngineCor", argv: []string{""}},
			{pid: 3, ppid: 2, comm: "VLLM::Worker_TP", argv: []string{""}},
			{pid: 4, ppid: 1, comm: "VLLM::DPCoordin", argv: []string{""}},
		}, map[int]Role{1: APIServer, 2: EngineCore, 3: Worker, 4: Coordinator}},
		{"0.9.2, where the engine core is plain python", []fake{
			{pid: 50, ppid: 1, argv: launcher},
			{pid: 51, ppid: 50, argv: []string{"/usr/bin/python3", "-c", "from multiprocessing.resource_tracker import main;main(9)"}},
			{pid: 52, ppid: 50, argv: launcher, comm: "python3"},
			{pid: 53, ppid: 52, argv: []string{"/usr/bin/python3", "-c", "from multiprocessing.spawn import spawn_main; spawn_main()"}, comm: "pt_main_thread"},
			{pid: 54, ppid: 53, argv: []string{"g++", "-O3", "x.cpp"}},
		}, map[int]Role{50: APIServer, 51: ResourceTracker, 52: EngineCore, 53: Worker, 54: Other}},
		{"several API servers and data parallel", []fake{
			{pid: 60, ppid: 1, argv: []string{"vllm", "serve", "M", "-dp", "2"}},
			{pid: 61, ppid: 60, argv: []string{"VLLM::APIServer_0"}},
			{pid: 62, ppid: 60, argv: []string{"VLLM::APIServer_1"}},
			{pid: 63, ppid: 60, argv: []string{"VLLM::DPCoordinator"}},
			{pid: 64, ppid: 60, argv: []string{"VLLM::EngineCore_DP0"}},
			{pid: 65, ppid: 60, argv: []string{"VLLM::EngineCore_DP1"}},
			{pid: 66, ppid: 64, argv: []string{"VLLM::Worker_TP0_EP0"}},
		}, map[int]Role{60: Launcher, 61: APIServer, 62: APIServer, 63: Coordinator, 64: EngineCore, 65: EngineCore, 66: Worker}},
		{"a prefix of the operator's own", []fake{
			{pid: 70, ppid: 1, argv: []string{"vllm", "serve", "M"}},
			{pid: 71, ppid: 70, argv: []string{"blue::EngineCore"}},
		}, map[int]Role{70: APIServer, 71: EngineCore}},
	}
	for _, tt := range tests {
		for _, childrenFile := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, children listed %v", tt.name, childrenFile), func(t *testing.T) {
				f := mount(t, tt.procs...)
				if !childrenFile {
					for _, p := range tt.procs {
						if err := os.Remove(f.path(p.pid, "task", fmt.Sprint(p.pid), "children")); err != nil {
							t.Fatal(err)
						}
					}
				}
				tree, err := f.Tree(tt.procs[0].pid)
				if err != nil {
					t.Fatal(err)
				}
				got := map[int]Role{}
				for _, p := range tree {
					got[p.PID] = p.Role
				}
				if diff := cmp.Diff(tt.want, got); diff != "" {
					t.Errorf("roles (-want +got):\n%s", diff)
				}
			})
		}
	}
}

func TestDiscover(t *testing.T) {
	work := t.TempDir()
	config := filepath.Join(work, "server.yaml")
	put(t, work, "server.yaml", "max-num-batched-tokens: 4k\nhf-token: filesecret\n")
	old := time.Unix(1_600_000_000, 0)
	if err := os.Chtimes(config, old, old); err != nil {
		t.Fatal(err)
	}
	procs := plain(100, "0.0.0.0:8000", "--config", "server.yaml", "--max-num-seqs", "64", "--api-key", "cmdsecret")
	procs[0].cwd = work
	procs[0].env = []string{"PATH=/bin", "VLLM_API_KEY=envsecret", "HF_TOKEN=hf_x", "AWS_SECRET_ACCESS_KEY=aws", "CUDA_VISIBLE_DEVICES=3", "VLLM_USE_V1=1", "HOME=/root"}
	f := mount(t, procs...)

	s, err := f.Discover(addrs(t, "localhost"), nil, 8000)
	if err != nil {
		t.Fatal(err)
	}
	if s.ListenerPID != 100 || s.LaunchPID != 100 || s.Addr != netip.MustParseAddrPort("0.0.0.0:8000") {
		t.Errorf("listener %d, launch %d, address %s", s.ListenerPID, s.LaunchPID, s.Addr)
	}
	if want := time.Unix(1_700_000_001, 0); !s.Started.Equal(want) {
		t.Errorf("started %s, want %s: boot time and 100 ticks", s.Started, want)
	}
	if n, from, _ := s.Launch.Int("max_num_seqs"); n != 64 || from != launch.Cmdline {
		t.Errorf("max_num_seqs = %d from %s", n, from)
	}
	if n, from, _ := s.Launch.Int("max_num_batched_tokens"); n != 4000 || from != launch.ConfigFile {
		t.Errorf("max_num_batched_tokens = %d from %s", n, from)
	}
	wantEnv := map[string]string{"VLLM_API_KEY": launch.Redacted, "HF_TOKEN": launch.Redacted, "CUDA_VISIBLE_DEVICES": "3", "VLLM_USE_V1": "1", "HOME": "/root"}
	if diff := cmp.Diff(wantEnv, s.Env); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(collect.GPUHints{PIDs: []int{100, 101, 102, 103}, Visible: "3", VisibleSet: true, VisibleName: "CUDA_VISIBLE_DEVICES", Minors: []int{3}, Renders: []int{128}}, s.GPUHints()); diff != "" {
		t.Errorf("GPU hints (-want +got):\n%s", diff)
	}
	if len(s.Missing) > 0 || len(s.Notes) > 0 {
		t.Errorf("missing %v, notes %v; nothing is", s.Missing, s.Notes)
	}
	if s.Identity() != "100@100" || !s.Alive() {
		t.Errorf("identity %s, alive %v", s.Identity(), s.Alive())
	}
	noSecrets(t, s, "cmdsecret", "envsecret", "hf_x", "filesecret", "aws")

	// The file is edited, the server is not restarted.
	now := time.Unix(1_800_000_000, 0)
	if err := os.Chtimes(config, now, now); err != nil {
		t.Fatal(err)
	}
	if s, err = f.Discover(addrs(t, "localhost"), nil, 8000); err != nil || len(s.Notes) != 1 || !strings.Contains(s.Notes[0], "changed after the server started") {
		t.Errorf("notes %v, error %v; want one on the changed file", s.Notes, err)
	}
	// The file is gone, and what that disables is reported.
	if err := os.Remove(config); err != nil {
		t.Fatal(err)
	}
	if s, err = f.Discover(addrs(t, "localhost"), nil, 8000); err != nil || len(s.Missing) != 1 || s.Missing[0].What != "config file server.yaml" {
		t.Errorf("missing %v, error %v; want the config file", s.Missing, err)
	}
}

func TestLaunchProcess(t *testing.T) {
	vllm := []string{"/venv/bin/python3", "/venv/bin/vllm", "serve", "M", "--max-num-seqs", "5"}
	tests := []struct {
		name  string
		procs []fake
		want  int // launch process
		slots int
	}{
		{"behind wrappers", []fake{
			{pid: 10, ppid: 1, argv: []string{"bash", "-c", "vllm serve M --max-num-seqs 7; true"}},
			{pid: 11, ppid: 10, argv: append([]string{"uv", "run"}, vllm...)},
			{pid: 12, ppid: 11, argv: vllm, listens: []string{"0.0.0.0:8000"}},
		}, 12, 5},
		{"the listener renamed itself", []fake{
			{pid: 20, ppid: 1, argv: vllm},
			{pid: 21, ppid: 20, argv: []string{"VLLM::APIServer_0"}, listens: []string{"0.0.0.0:8000"}},
		}, 20, 5},
		{"a forked child has its parent's command line", []fake{
			{pid: 30, ppid: 1, argv: vllm},
			{pid: 31, ppid: 30, argv: vllm, listens: []string{"0.0.0.0:8000"}},
		}, 30, 5},
		{"in a container vLLM is init", []fake{
			{pid: 1, argv: vllm, listens: []string{"0.0.0.0:8000"}},
		}, 1, 5},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s, err := mount(t, tt.procs...).Discover(addrs(t, "localhost"), nil, 8000)
			if err != nil {
				t.Fatal(err)
			}
			if n, _, _ := s.Launch.Int("max_num_seqs"); s.LaunchPID != tt.want || n != tt.slots {
				t.Errorf("launch process %d with %d slots, want %d with %d", s.LaunchPID, n, tt.want, tt.slots)
			}
		})
	}
}

func TestDiscoverFails(t *testing.T) {
	f := mount(t, plain(100, "127.0.0.1:8000")...)
	other := netip.MustParseAddr("192.0.2.7")
	if _, err := f.Discover([]netip.Addr{other}, nil, 8000); !errors.Is(err, ErrNotLocal) || !strings.Contains(err.Error(), "192.0.2.7") {
		t.Errorf("another machine: %v", err)
	}
	if _, err := f.Discover([]netip.Addr{other}, []netip.Addr{other}, 8000); !errors.Is(err, ErrNotFound) {
		t.Errorf("an address of ours where no process listens: %v", err)
	}
	if _, err := f.Discover(addrs(t, "localhost"), nil, 9); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "port 9") {
		t.Errorf("a port where no process listens: %v", err)
	}
	// The socket is there and no process has it: another PID namespace.
	put(t, f.root, "net/tcp", "  sl\n"+tcpLine(t, "127.0.0.1:8100", os.Geteuid()))
	if _, err := f.Discover(addrs(t, "localhost"), nil, 8100); !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), "PID namespace") {
		t.Errorf("a socket of another PID namespace: %v", err)
	}
	if _, err := Open(filepath.Join(f.root, "none")); !errors.Is(err, ErrUnsupported) {
		t.Errorf("no /proc: %v", err)
	}
	if _, err := f.Tree(4242); !errors.Is(err, ErrNotFound) {
		t.Errorf("no process: %v", err)
	}
}

func TestDiscoverWithoutLaunchCommand(t *testing.T) {
	s, err := mount(t,
		fake{pid: 5, ppid: 1, argv: []string{"python3", "serve_my_model.py"}, listens: []string{"0.0.0.0:8000"}},
		fake{pid: 6, ppid: 5, argv: []string{"VLLM::EngineCore"}},
	).Discover(addrs(t, "localhost"), nil, 8000)
	if err != nil {
		t.Fatal(err)
	}
	if s.Launch != nil || len(s.Tree) != 2 || len(s.Missing) != 1 || s.Missing[0].What != "launch command" {
		t.Errorf("launch %v, %d processes, missing %v", s.Launch, len(s.Tree), s.Missing)
	}
	forwarder, err := mount(t, fake{pid: 7, ppid: 1, argv: []string{"socat"}, listens: []string{"0.0.0.0:8000"}}).Discover(addrs(t, "localhost"), nil, 8000)
	if err != nil || forwarder.IsEngine() || !s.IsEngine() {
		t.Errorf("vLLM by its titles: %t; a forwarder is taken for vLLM, or: %v", s.IsEngine(), err)
	}
}

func TestContainers(t *testing.T) {
	inside := fake{pid: 300, ppid: 299, argv: []string{"python3", "-m", "vllm.entrypoints.openai.api_server", "--model", "M", "--config", "c.yaml"}, listens: []string{"0.0.0.0:8000"}, netns: "77", mntns: "78", cwd: "/work"}
	inside.root = t.TempDir()
	put(t, inside.root, "work/c.yaml", "max-num-seqs: 9\n")
	old := time.Unix(1_600_000_000, 0)
	if err := os.Chtimes(filepath.Join(inside.root, "work/c.yaml"), old, old); err != nil {
		t.Fatal(err)
	}
	put(t, inside.root, "models/m/config.json", `{"model_type":"llama"}`)
	outside := filepath.Join(t.TempDir(), "secret.json")
	put(t, filepath.Dir(outside), "secret.json", "{}")
	link(t, outside, inside.root, "evil", "config.json")
	proxy := fake{pid: 400, ppid: 1, argv: []string{"/usr/bin/docker-proxy", "-proto", "tcp", "-host-port", "9000", "-container-ip", "172.17.0.2", "-container-port", "8000"}, listens: []string{"0.0.0.0:9000"}}

	f := mount(t, inside, proxy)
	s, err := f.Discover(addrs(t, "localhost"), nil, 9000)
	if err != nil {
		t.Fatal(err)
	}
	if n, from, _ := s.Launch.Int("max_num_seqs"); s.LaunchPID != 300 || n != 9 || from != launch.ConfigFile || len(s.Notes) != 1 {
		t.Errorf("launch process %d, %d slots from %s, notes %v", s.LaunchPID, n, from, s.Notes)
	}
	if text, at, err := s.ModelConfig("/models/m"); err != nil || string(text) != `{"model_type":"llama"}` || at != "/models/m/config.json" {
		t.Errorf("model config %q at %s, %v", text, at, err)
	}
	if text, _, err := s.ModelConfig("/evil"); err == nil {
		t.Errorf("a link out of the container was followed: %q", text)
	}
	// Without a proxy process the container's own port is tried.
	if s, err := mount(t, inside).Discover(addrs(t, "localhost"), nil, 8000); err != nil || s.LaunchPID != 300 {
		t.Errorf("published without a proxy: %v", err)
	}
	if _, err := mount(t, inside).Discover(addrs(t, "localhost"), nil, 8001); !errors.Is(err, ErrNotFound) {
		t.Errorf("another port: %v", err)
	}
}

func TestServers(t *testing.T) {
	procs := append(plain(200, "0.0.0.0:9000", "--port", "9000"), plain(100, "127.0.0.1:8000")...)
	procs = append(procs,
		fake{pid: 500, ppid: 1, argv: []string{"grep", "-r", "vllm", "serve"}},
		fake{pid: 501, ppid: 1, argv: []string{"bash", "-c", "vllm serve M --port 9000"}, listens: []string{"0.0.0.0:1"}},
		fake{pid: 502, ppid: 1, argv: []string{"vllm", "serve", "starting"}},
		fake{pid: 600, ppid: 1, argv: []string{"python3", "app.py"}, listens: []string{"0.0.0.0:7000", "0.0.0.0:7001"}},
		fake{pid: 601, ppid: 600, argv: []string{"VLLM::EngineCore"}, listens: []string{"127.0.0.1:6000"}},
		fake{pid: 700, ppid: 1, argv: []string{"go", "run", "./cmd/rooftop", "sim", "M", "--port", "8300"}},
		fake{pid: 701, ppid: 700, argv: []string{"/tmp/go-build1/b001/exe/rooftop", "sim", "M", "--port", "8300"}, listens: []string{"127.0.0.1:8300"}},
		fake{pid: 702, ppid: 1, argv: []string{"/usr/bin/rooftop", "sim", "bench"}, listens: []string{"127.0.0.1:8400"}},
		fake{pid: 703, ppid: 1, argv: []string{"rooftop", "load", "--url", "http://127.0.0.1:8300"}, listens: []string{"127.0.0.1:8500"}},
	)
	servers, err := mount(t, procs...).Servers()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range servers {
		got = append(got, fmt.Sprintf("%s %d", s.Addr, s.LaunchPID))
	}
	if diff := cmp.Diff([]string{"0.0.0.0:7000 600", "127.0.0.1:8000 100", "127.0.0.1:8300 701", "0.0.0.0:9000 200"}, got); diff != "" {
		t.Errorf("servers (-want +got):\n%s", diff)
	}
}

func TestHealth(t *testing.T) {
	procs := plain(100, "127.0.0.1:8000")
	f := mount(t, procs...)
	tree, err := f.Tree(100)
	if err != nil {
		t.Fatal(err)
	}
	engine := procs[2]
	engine.comm, engine.ticks = "VLLM::EngineCor", engine.pid
	set := func(change func(*fake)) {
		p := engine
		change(&p)
		put(t, f.root, "102/stat", statText(p))
	}
	tests := []struct {
		name   string
		change func(*fake)
		want   string
	}{
		{"sleeping", func(p *fake) { p.state = "S" }, ""},
		{"waiting for a device", func(p *fake) { p.state = "D" }, ""},
		{"stopped", func(p *fake) { p.state = "T" }, "engine-core 102 is stopped"},
		{"traced", func(p *fake) { p.state = "t" }, "engine-core 102 is traced"},
		{"zombie", func(p *fake) { p.state = "Z" }, "engine-core 102 is dead (zombie)"},
		{"a reused PID", func(p *fake) { p.state, p.ticks = "S", 99 }, "engine-core 102 is gone"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			set(tt.change)
			var got []string
			for _, p := range f.Health(tree) {
				got = append(got, p.String())
			}
			if joined := strings.Join(got, "; "); joined != tt.want {
				t.Errorf("problems %q, want %q", joined, tt.want)
			}
		})
	}
	set(func(p *fake) { p.state = "S" })
	// Python's own helper may come and go.
	if err := os.RemoveAll(f.path(101)); err != nil {
		t.Fatal(err)
	}
	if got := f.Health(tree); len(got) > 0 {
		t.Errorf("without the resource tracker: %v", got)
	}
	if err := os.RemoveAll(f.path(103)); err != nil {
		t.Fatal(err)
	}
	if got := f.Health(tree); len(got) != 1 || got[0].String() != "worker 103 is gone" {
		t.Errorf("without the worker: %v", got)
	}
}

func TestUsage(t *testing.T) {
	f := mount(t, plain(100, "127.0.0.1:8000")...)
	tree, err := f.Tree(100)
	if err != nil {
		t.Fatal(err)
	}
	got, ok := f.Usage(tree[0])
	want := Usage{CPU: 3 * time.Second, RunWait: stat.Some(0.07), RSSBytes: 256 * int64(os.Getpagesize()), Threads: 7}
	if diff := cmp.Diff(want, got); !ok || diff != "" {
		t.Errorf("usage (-want +got):\n%s", diff)
	}
}

func TestModelConfig(t *testing.T) {
	dir := t.TempDir()
	const commit = "0123abc"
	hub := func(home string) string { return filepath.Join(home, "models--org--model") }
	write := func(hubDir, text string) {
		put(t, hub(hubDir), "blobs/1", text)
		put(t, hub(hubDir), "refs/main", commit+"\n")
		link(t, "../../blobs/1", hub(hubDir), "snapshots", commit, "config.json")
	}
	write(filepath.Join(dir, "hub"), "home")
	write(filepath.Join(dir, "cache"), "cache")
	write(filepath.Join(dir, "user/.cache/huggingface/hub"), "user")
	put(t, dir, "cwd/local/config.json", "local")
	put(t, dir, "abs/config.json", "absolute")
	put(t, dir, "big/config.json", strings.Repeat("x", maxModelConfigBytes+1))
	tests := []struct {
		name, model string
		env         []string
		flags       []string
		want        string
	}{
		{"absolute path", dir + "/abs", nil, nil, "absolute"},
		{"path from the working directory", "local", nil, nil, "local"},
		{"dotted path from the working directory", "./local", nil, nil, "local"},
		{"HF_HOME", "org/model", []string{"HF_HOME=" + dir, "HOME=" + dir + "/user"}, nil, "home"},
		{"HF_HUB_CACHE", "org/model", []string{"HF_HUB_CACHE=" + dir + "/cache", "HF_HOME=" + dir}, nil, "cache"},
		{"the user's cache", "org/model", []string{"HOME=" + dir + "/user"}, nil, "user"},
		{"a flag of vLLM", "org/model", nil, []string{"--hf-config-path", dir + "/abs"}, "absolute"},
		{"a revision that is not cached", "org/model", []string{"HF_HOME=" + dir}, []string{"--revision", "v2"}, ""},
		{"a model that is not cached", "org/other", []string{"HF_HOME=" + dir}, nil, ""},
		{"more than any real one", dir + "/big", nil, nil, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			procs := plain(100, "127.0.0.1:8000", tt.flags...)
			procs[0].cwd, procs[0].env = filepath.Join(dir, "cwd"), tt.env
			s, err := mount(t, procs...).Discover(addrs(t, "localhost"), nil, 8000)
			if err != nil {
				t.Fatal(err)
			}
			text, at, err := s.ModelConfig(tt.model)
			if string(text) != tt.want {
				t.Errorf("read %q at %s, %v; want %q", text, at, err, tt.want)
			}
			if tt.want == "" && (!errors.Is(err, ErrNoFile) || !strings.Contains(err.Error(), "--model-config")) {
				t.Errorf("error %v, want one that names --model-config", err)
			}
		})
	}
}

func TestIsLocal(t *testing.T) {
	own := []netip.Addr{netip.MustParseAddr("10.1.2.3"), netip.MustParseAddr("fe80::1")}
	for host, want := range map[string]bool{
		"127.0.0.1": true, "127.8.8.8": true, "::1": true, "0.0.0.0": true, "::ffff:127.0.0.1": true, "10.1.2.3": true, "fe80::1%eth0": true,
		"10.1.2.4": false, "192.0.2.1": false, "2001:db8::1": false,
	} {
		if got := IsLocal(netip.MustParseAddr(host), own); got != want {
			t.Errorf("IsLocal(%s) = %v", host, got)
		}
	}
	for _, name := range []string{"example.com", "", "localhost.example.com", "1.2.3", "gpu-box"} {
		if ips, ok := Addresses(name); ok {
			t.Errorf("Addresses(%q) = %v: that takes a resolver", name, ips)
		}
	}
}

func TestStarting(t *testing.T) {
	serve := func(pid int, words ...string) fake {
		return fake{pid: pid, ppid: 1, argv: append([]string{"python3", "/usr/bin/vllm", "serve", "Qwen/Qwen3-8B"}, words...), uid: pid}
	}
	ports := mount(t, serve(40), serve(50, "--port", "8001"), fake{pid: 60, ppid: 1, argv: []string{"sleep", "8002"}})
	hosts := mount(t, serve(40, "--host", "127.0.0.2"), serve(50, "--host", "127.0.0.3"))
	for _, c := range []struct {
		f    FS
		host string
		port uint16
		want int
	}{
		{ports, "localhost", 8000, 40}, {ports, "localhost", 8001, 50}, {ports, "localhost", 8002, 0},
		{hosts, "127.0.0.2", 8000, 40}, {hosts, "127.0.0.3", 8000, 50}, {hosts, "127.0.0.1", 8000, 0},
		{mount(t, serve(40), serve(41)), "localhost", 8000, 0},
	} {
		if pid, ok := c.f.Starting(addrs(t, c.host), c.port); ok != (c.want > 0) || ok && pid != c.want {
			t.Errorf("%s port %d: process %d, %v; want %d", c.host, c.port, pid, ok, c.want)
		}
	}
}
