package capture

import (
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/figure"
)

// TestEndings covers a vLLM behind a shell with a helper, llama.cpp, and Ollama with its runners,
// some of which end. The run lasts from 1 s to 5 s.
func TestEndings(t *testing.T) {
	const ms = time.Millisecond
	const s = figure.NBSP + "s"
	gone := func(at time.Duration, pids ...int) func(*Capture) {
		return func(c *Capture) {
			for i := range c.Tree.Processes {
				for _, pid := range pids {
					if p := &c.Tree.Processes[i]; p.PID == pid {
						p.Gone, p.Left = true, at
						at += 50 * ms
					}
				}
			}
		}
	}
	vllm := []Process{
		{PID: 5, PPID: 1, Comm: "bash", Role: "launcher"}, {PID: 100, PPID: 5, Comm: "vllm", Role: "api-server"}, {PID: 101, PPID: 100, Comm: "python3", Role: "resource-tracker"},
		{PID: 102, PPID: 100, Comm: "VLLM::EngineCor", Title: "VLLM::EngineCore", Role: "engine-core"}, {PID: 103, PPID: 102, Comm: "VLLM::Worker", Role: "worker"},
		{PID: 104, PPID: 102, Comm: "python3", Role: "worker", Joined: 2 * time.Second}, // a compiler's, by its place
	}
	llama := []Process{{PID: 8, PPID: 1, Comm: "llama-server", Role: "server"}, {PID: 9, PPID: 8, Comm: "sh", Role: "other"}}
	ollama := []Process{{PID: 20, PPID: 1, Comm: "ollama", Role: "api-server"}, {PID: 21, PPID: 20, Comm: "ollama", Role: "worker"}}
	program := []Process{{PID: 30, PPID: 1, Comm: "make", Role: "program"}, {PID: 31, PPID: 30, Comm: "cc1", Role: "other"}}
	tests := []struct {
		name string
		tree []Process
		do   func(*Capture)
		says []string // nil fires nothing
	}{
		{"no process ends", vllm, func(*Capture) {}, nil},
		{"helpers that come and go", vllm, gone(3*time.Second, 101, 104), nil},
		{"a shell around it ends", vllm, gone(3*time.Second, 5), nil},
		{"a shell with all that it started", program, func(c *Capture) {
			c.Tree.Processes[0].Role, c.Tree.Processes[1].Role = "launcher", "program"
			gone(3*time.Second, 30, 31)(c)
		}, []string{"launcher 30 (make) ended"}},
		{"the server", llama, gone(3960*ms, 8), []string{"server 8 (llama-server) ended 2.96" + s + " after the first send: ", "dmesg"}},
		{"its helper", llama, gone(2*time.Second, 9), nil},
		{"the engine core, then the rest", vllm, gone(4500*ms, 102, 103), []string{"engine-core 102 (VLLM::EngineCore) ended 3.50" + s + " after the first send, and 1 more"}},
		{"found late, and there before", vllm, func(c *Capture) {
			c.Tree.Processes[5].Earlier = true
			gone(3*time.Second, 104)(c)
		}, []string{"worker 104 (python3) ended"}},
		{"seen after the last byte", llama, gone(5040*ms, 8), []string{"ended 4.04" + s + " after the first send"}},
		{"before a request was sent", llama, gone(900*ms, 8), []string{"ended before the first send"}},
		{"a model that Ollama unloads", ollama, gone(3*time.Second, 21), nil},
		{"a runner that crashes", ollama, func(c *Capture) {
			c.Requests = []Request{{Error: "the stream broke"}}
			gone(3*time.Second, 21)(c)
		}, []string{"worker 21 (ollama) ended 2"}},
		{"the program that is watched", program, func(c *Capture) {
			c.Kind = Observation
			gone(3*time.Second, 30, 31)(c)
		}, []string{"program 30 (make) ended 2.00" + s + " after the window began: "}},
		{"the listener, whatever its role", llama, func(c *Capture) {
			c.Tree.Listener.PID = 9
			gone(3*time.Second, 9)(c)
		}, []string{"other 9 (sh) ended"}},
		{"dead, and not reaped", llama, func(c *Capture) {
			for k, threads := range []int{9, 9, 0, 0} {
				c.Tree.Samples = append(c.Tree.Samples, TreeSample{At: time.Duration(k+1) * time.Second, Processes: []ProcessSample{{Process: 0, Threads: threads}, {Process: 1, Threads: 1}}})
			}
			gone(5*time.Second, 8)(c) // in the end it is
		}, []string{"server 8 (llama-server) ended 2.00" + s + " after"}},
		{"dead from the first look on", llama, func(c *Capture) {
			c.Tree.Samples = []TreeSample{{Processes: []ProcessSample{{}}}, {At: time.Second, Processes: []ProcessSample{{}}}}
		}, nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := Capture{Kind: Probe, Begin: time.Second, End: 5 * time.Second, Tree: Tree{Root: tt.tree[0].PID, Processes: append([]Process(nil), tt.tree...)}}
			tt.do(&c)
			want := []string{"server-ended"}
			if tt.says == nil {
				want = nil
			}
			checkWarnings(t, endings(&c), want, tt.says)
		})
	}
}
