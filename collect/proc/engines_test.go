package proc

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rooftop-dev/rooftop/collect"
)

func TestRolesOfEngines(t *testing.T) {
	python := []string{"/usr/bin/python3", "-m", "sglang.launch_server", "--model-path", "M"}
	tgi := []fake{
		{pid: 5, ppid: 1, argv: []string{"/sbin/tini", "--", "/app/tgi"}}, {pid: 6, ppid: 5, argv: []string{"/app/tgi"}}, {pid: 7, ppid: 6, argv: []string{"/app/router"}},
		{pid: 8, ppid: 6, argv: []string{"/app/shard", "0"}},
	}
	tests := []struct {
		name     string
		procs    []fake
		listener int // on the server's port: it is the server, whatever its name
		want     map[int]Role
	}{
		{"vLLM behind a shell", append([]fake{{pid: 5, ppid: 1, argv: []string{"bash", "-c", "vllm serve org/model > log 2>&1"}}},
			func() []fake { p := plain(100, "127.0.0.1:8000"); p[0].ppid = 5; return p }()...),
			0, map[int]Role{5: Launcher, 100: APIServer, 101: ResourceTracker, 102: EngineCore, 103: Worker}},
		{"llama-server behind two shells", []fake{
			{pid: 5, ppid: 1, argv: []string{"bash", "-c", "./run.sh"}}, {pid: 6, ppid: 5, argv: []string{"/bin/sh", "./run.sh"}},
			{pid: 7, ppid: 6, argv: []string{"./llama-server", "-m", "x.gguf"}}, {pid: 8, ppid: 6, argv: []string{"tee", "log"}},
		}, 0, map[int]Role{5: Launcher, 6: Launcher, 7: AllInOne, 8: Other}},
		{"Ollama and its runners", []fake{
			{pid: 5, ppid: 1, argv: []string{"/usr/local/bin/ollama", "serve"}},
			{pid: 6, ppid: 5, argv: []string{"/usr/local/bin/ollama", "runner", "--model", "/m"}},
			{pid: 7, ppid: 5, argv: []string{"/tmp/ollama1/runners/cpu/ollama_llama_server", "--model", "/m"}},
			{pid: 8, ppid: 5, argv: []string{"/usr/lib/ollama/llama-server", "--model", "/m"}},
		}, 0, map[int]Role{5: APIServer, 6: Worker, 7: Worker, 8: Worker}},
		{"SGLang with data parallelism", []fake{
			{pid: 5, ppid: 1, argv: python},
			{pid: 6, ppid: 5, argv: []string{"sglang::data_parallel_controller"}},
			{pid: 7, ppid: 6, argv: []string{"sglang::scheduler_DP0_TP0"}},
			{pid: 8, ppid: 5, argv: []string{"sglang::detokenizer"}},
			{pid: 9, ppid: 5, argv: []string{"/usr/bin/python3", "-c", "from multiprocessing.resource_tracker import main;main(4)"}},
		}, 0, map[int]Role{5: APIServer, 6: Coordinator, 7: EngineCore, 8: Detokenizer, 9: ResourceTracker}},
		{"SGLang's names cut to 15 characters", []fake{
			{pid: 5, ppid: 1, argv: python}, {pid: 7, ppid: 5, comm: "sglang::schedul", argv: []string{""}}, {pid: 8, ppid: 5, comm: "sglang::detoken", argv: []string{""}},
		}, 0, map[int]Role{5: APIServer, 7: EngineCore, 8: Detokenizer}},
		{"an unknown engine in a container", []fake{
			{pid: 5, ppid: 1, argv: []string{"/sbin/tini", "--", "/app/tgi"}}, {pid: 6, ppid: 5, argv: []string{"/app/tgi"}}, {pid: 7, ppid: 6, argv: []string{"/app/shard", "0"}},
		}, 0, map[int]Role{5: Launcher, 6: Program, 7: Other}},
		{"a vLLM worker alone", []fake{{pid: 5, ppid: 1, argv: []string{"VLLM::Worker_TP1"}}}, 0, map[int]Role{5: Worker}},
		{"a sleep", []fake{{pid: 5, ppid: 1, argv: []string{"sleep", "300"}}}, 0, map[int]Role{5: Program}},
		{"a shell alone", []fake{{pid: 5, ppid: 1, argv: []string{"-bash"}}}, 0, map[int]Role{5: Program}},
		{"a build", []fake{
			{pid: 5, ppid: 1, argv: []string{"bash", "-c", "make"}}, {pid: 6, ppid: 5, argv: []string{"make"}}, {pid: 7, ppid: 6, argv: []string{"cc1"}},
		}, 0, map[int]Role{5: Launcher, 6: Program, 7: Other}},
		{"init of a machine", []fake{
			{pid: 1, argv: []string{"/sbin/init"}}, {pid: 6, ppid: 1, argv: []string{"cron"}}, {pid: 7, ppid: 1, argv: []string{"llama-server"}},
		}, 0, map[int]Role{1: Launcher, 6: Other, 7: AllInOne}},
		{"servers by their modules", []fake{
			{pid: 5, ppid: 1, argv: []string{"bash", "-c", "python -m llama_cpp.server"}}, {pid: 6, ppid: 5, argv: []string{"python3", "-m", "llama_cpp.server", "--model", "m"}},
			{pid: 7, ppid: 5, argv: []string{"/venv/bin/python3", "/venv/bin/lmdeploy", "serve", "api_server"}},
		}, 0, map[int]Role{5: Launcher, 6: AllInOne, 7: AllInOne}},
		{"a module of the same name that serves nothing", []fake{{pid: 5, ppid: 1, argv: []string{"python3", "/venv/bin/lmdeploy", "convert"}}}, 0, map[int]Role{5: Program}},
		{"the listener at the top", tgi, 6, map[int]Role{5: Launcher, 6: AllInOne, 7: Other, 8: Other}},
		{"a child listens", tgi, 7, map[int]Role{5: Launcher, 6: Launcher, 7: AllInOne, 8: Other}},
		{"the listener is elsewhere", tgi, 99, map[int]Role{5: Launcher, 6: Program, 7: Other, 8: Other}},
		{"a script listens", []fake{{pid: 5, ppid: 1, argv: []string{"bash", "serve.sh"}}}, 5, map[int]Role{5: AllInOne}},
		{"Ollama listens", []fake{{pid: 5, ppid: 1, argv: []string{"ollama", "serve"}}}, 5, map[int]Role{5: APIServer}},
		{"a vLLM listens", plain(100, "127.0.0.1:8000"), 100, map[int]Role{100: APIServer, 101: ResourceTracker, 102: EngineCore, 103: Worker}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, s, _ := sampled(t, tt.procs...)
			s.Listener(tt.listener)
			s.Sample()
			got := map[int]Role{}
			for _, p := range s.Tree().Processes {
				got[p.PID] = Role(p.Role)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("roles (-want +got):\n%s", diff)
			}
		})
	}
}

// TestRooftopIsLeftOut samples the shell that rooftop was started from.
func TestRooftopIsLeftOut(t *testing.T) {
	const self = 50
	f := mount(t, fake{pid: 5, ppid: 1, argv: []string{"-bash"}}, fake{pid: 6, ppid: 5, argv: []string{"llama-server"}},
		fake{pid: self, ppid: 5, argv: []string{"rooftop", "probe"}}, fake{pid: self + 1, ppid: self, argv: []string{"nvidia-smi"}})
	link(t, strconv.Itoa(os.Getpid()), f.root, "self")
	f.self = self
	for _, pid := range []int{5, 6, self, self + 1} {
		put(t, f.root, strconv.Itoa(pid)+"/statm", "9 9 9 9 0 9 0\n")
	}
	s, err := f.NewSampler(5, func() time.Duration { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Deep()
	if got := pids(s); !slices.Equal(got, []int{5, 6}) || !s.Own() {
		t.Errorf("the tree has %v, own %v", got, s.Own())
	}
	below, err := f.NewSampler(6, func() time.Duration { return 0 })
	if err != nil {
		t.Fatal(err)
	}
	defer below.Close()
	if below.Deep(); below.Own() {
		t.Error("rooftop is not below its neighbour")
	}
}

func TestPIDOfAContainer(t *testing.T) {
	f := mount(t, fake{pid: 10, ppid: 1, argv: []string{"here"}}, fake{pid: 4000, ppid: 1, argv: []string{"vllm"}},
		fake{pid: 5000, ppid: 1, argv: []string{"one"}}, fake{pid: 6000, ppid: 1, argv: []string{"two"}})
	for pid, numbers := range map[string]string{"10": "10", "4000": "4000\t7\t1", "5000": "5000\t9", "6000": "6000\t9"} {
		put(t, f.root, pid+"/status", "Name:\tx\nNStgid:\t"+numbers+"\nNSpid:\t"+numbers+"\nThreads:\t1\n")
	}
	tests := []struct {
		name   string
		number int
		want   int
		says   string
	}{
		{"of this machine", 10, 10, ""},
		{"of a container", 7, 4000, "which is 4000 here"},
		{"of a container within one", 1, 4000, "which is 4000 here"},
		{"of two containers", 9, 0, "--pid 5000 (one), 6000 (two)"},
		{"of none", 77, 0, "pgrep -x"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			pid, note, err := f.PID(tt.number)
			text := note
			if err != nil {
				text = err.Error()
			}
			if pid != tt.want || (pid == 0) != errors.Is(err, ErrNotFound) || !strings.Contains(text, tt.says) || tt.says == "" && text != "" {
				t.Errorf("PID = %d, %q, %v; want %d and %q", pid, note, err, tt.want, tt.says)
			}
		})
	}
}

func TestPortOwner(t *testing.T) {
	behind := plain(100, "127.0.0.1:8000")
	behind[0].ppid = 5
	container := plain(200, "172.17.0.2:8000")
	for i := range container {
		container[i].netns = "77"
	}
	container[0].ppid = 90
	tests := []struct {
		name          string
		procs         []fake
		port          uint16
		listener, top int
		note          string
	}{
		{"a vLLM behind a shell", append([]fake{{pid: 5, ppid: 1, argv: []string{"bash", "-c", "vllm serve org/model"}}}, behind...), 8000, 100, 100, ""},
		{"an API server that vLLM's launcher started", []fake{
			{pid: 60, ppid: 1, argv: []string{"vllm", "serve", "M", "--api-server-count", "2"}},
			{pid: 61, ppid: 60, argv: []string{"VLLM::APIServer_0"}, listens: []string{"127.0.0.1:8000"}},
		}, 8000, 61, 60, ""},
		{"llama-server behind a shell", []fake{
			{pid: 5, ppid: 1, argv: []string{"bash", "-c", "llama-server > log"}}, {pid: 6, ppid: 5, argv: []string{"llama-server"}, listens: []string{"127.0.0.1:8080"}},
		}, 8080, 6, 6, ""},
		{"Ollama", []fake{
			{pid: 5, ppid: 1, argv: []string{"ollama", "serve"}, listens: []string{"127.0.0.1:11434"}}, {pid: 6, ppid: 5, argv: []string{"ollama", "runner"}, listens: []string{"127.0.0.1:40001"}},
		}, 11434, 5, 5, ""},
		{"a vLLM behind Docker's proxy", append([]fake{
			{pid: 90, ppid: 1, argv: []string{"containerd-shim"}}, {pid: 91, ppid: 1, argv: []string{"docker-proxy", "-host-port", "9000", "-container-port", "8000"}, listens: []string{"0.0.0.0:9000"}},
		}, container...), 9000, 200, 200, "in a container"},
		{"any engine behind it", []fake{
			{pid: 91, ppid: 1, argv: []string{"docker-proxy", "-container-port", "8080"}, listens: []string{"0.0.0.0:9000"}},
			{pid: 92, ppid: 1, argv: []string{"tini", "llama-server"}, netns: "8"}, {pid: 93, ppid: 92, argv: []string{"llama-server"}, netns: "8", listens: []string{"172.17.0.2:8080"}},
		}, 9000, 93, 93, "its port there, 8080"},
		{"a proxy whose container cannot be seen", []fake{
			{pid: 91, ppid: 1, argv: []string{"docker-proxy", "-container-port", "8080"}, listens: []string{"0.0.0.0:9000"}},
		}, 9000, 91, 91, "only forwards"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := mount(t, tt.procs...).PortOwner(addrs(t, "localhost"), tt.port)
			if got.Forwards != (tt.note == "only forwards") {
				t.Errorf("Forwards is %v", got.Forwards)
			}
			if err != nil || got.Listener != tt.listener || got.Top != tt.top || !strings.Contains(got.Note, tt.note) || (tt.note == "") != (got.Note == "") {
				t.Errorf("PortOwner = %+v, %v; want %d below %d", got, err, tt.listener, tt.top)
			}
		})
	}
	tunnel := mount(t, fake{pid: 95, ppid: 1, argv: []string{"ssh", "-L", "8000:gpu:8000", "host"}, listens: []string{"127.0.0.1:8000"}})
	if got, err := tunnel.PortOwner(addrs(t, "localhost"), 8000); !errors.Is(err, ErrNotLocal) || !strings.Contains(fmt.Sprint(err), "process 95 (ssh)") {
		t.Errorf("a tunnel's end: %+v, %v", got, err)
	}
	if _, err := mount(t).PortOwner(addrs(t, "localhost"), 1); !errors.Is(err, ErrNotFound) {
		t.Errorf("no process listens: %v", err)
	}
}

// TestGPUHintsOfATree checks that a shell's own environment does not count for what it
// starts.
func TestGPUHintsOfATree(t *testing.T) {
	shell := fake{pid: 5, ppid: 1, argv: []string{"bash", "-c", "CUDA_VISIBLE_DEVICES=1 llama-server"}, env: []string{"CUDA_VISIBLE_DEVICES=0"}}
	server := fake{pid: 6, ppid: 5, argv: []string{"llama-server"}, env: []string{"CUDA_VISIBLE_DEVICES=1"}, fds: []string{"/dev/nvidia1", "/dev/nvidiactl"}}
	worker := fake{pid: 7, ppid: 6, argv: []string{"worker"}, env: []string{"CUDA_VISIBLE_DEVICES=2"}, fds: []string{"/dev/nvidia2"}}
	want := collect.GPUHints{PIDs: []int{5, 6, 7}, Visible: "1", VisibleSet: true, VisibleName: "CUDA_VISIBLE_DEVICES", Minors: []int{1, 2}}
	if diff := cmp.Diff(want, mount(t, shell, server, worker).GPUHints(5)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	server.env = nil
	want.Visible = "2"
	if got := mount(t, shell, server, worker).GPUHints(5); got.Visible != "2" {
		t.Errorf("%+v; the server says nothing, its worker does", got)
	}
	if got := mount(t, shell).GPUHints(77); got.VisibleSet || got.PIDs != nil {
		t.Errorf("%+v of no process", got)
	}
}
