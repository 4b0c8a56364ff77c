//go:build e2e && linux

package main_test

import (
	le "encoding/binary"
	"encoding/json"
	"net"
	"net/http/httptest"
	"net/http/httputil"
	neturl "net/url"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/porttest"
	"github.com/rooftop-dev/rooftop/collect/loadgen"
	"github.com/rooftop-dev/rooftop/collect/proc"
)

// signalEngine sends a signal to the process that schedules, which is not the one that answers.
func (s *vllm) signalEngine(t *testing.T, signal syscall.Signal) {
	t.Helper()
	i := -1
	server := serving(t, s.at)
	if server != nil {
		i = slices.IndexFunc(server.Tree, func(p proc.Process) bool { return p.Role == proc.EngineCore })
	}
	if i < 0 {
		t.Fatalf("no engine is found behind %v: %+v", s.at, server)
	}
	if err := syscall.Kill(server.Tree[i].PID, signal); err != nil {
		t.Fatalf("%v to the engine: %v", signal, err)
	}
}

// fallsIll measures a server whose engine gets a signal after 6 s.
func (s *vllm) fallsIll(t *testing.T, signal syscall.Signal, long time.Duration, state string) {
	t.Helper()
	wait := begin(t, "diagnose", "--url", s.url()+"/metrics", "--duration", long.String(), "--json")
	time.Sleep(6 * time.Second)
	s.signalEngine(t, signal)
	a := wait()
	d := parse(t, a)
	if d.Condition == nil || d.Condition.State != state || d.Outcome != "unhealthy" || a.code != 6 {
		t.Errorf("%v to the engine: condition %+v, outcome %s, exit code %d, want %s and 6", signal, d.Condition, d.Outcome, a.code, state)
	}
	if d.Recommendation != nil {
		t.Errorf("a server whose engine got a %v is advised: %+v", signal, d.Recommendation)
	}
}

// TestE2EIllEngine: an engine that hangs, recovers and dies, watched by a run that ends by itself two
// minutes later. The next servers are measured meanwhile.
func TestE2EIllEngine(t *testing.T) {
	load := chat(11)
	s := launch(t, porttest.Address(t), []string{"VLLM_KEEP_ALIVE_ON_ENGINE_DEATH=1"}, "--max-num-seqs", "3")
	t.Cleanup(s.stop)
	warmUp(t, s.url(), "", load)
	g := offer(t, s.url(), "", load)
	s.settle(t, time.Second)
	watches := beginWith(t, []string{"XDG_STATE_HOME=" + t.TempDir()}, "tune", "--auto", "--json", "--no-report", "--url", s.url())
	s.fallsIll(t, syscall.SIGSTOP, 32*time.Second, "hung")
	s.signalEngine(t, syscall.SIGCONT)
	s.settle(t, 5*time.Second)
	s.fallsIll(t, syscall.SIGKILL, 14*time.Second, "dead")
	g.end(t)

	for _, c := range hiddenLimits {
		t.Run(c.name, c.diagnosed)
	}

	list := watches().ended(t, 6)
	var story []string
	advised := false
	for _, e := range list {
		switch e.Type {
		case "unhealthy":
			advised = false
			if e.Condition.State != "failing" { // a dead engine's requests may fail before its death is certain
				story = append(story, e.Type+" "+e.Condition.State)
			}
		case "recovered", "finished":
			if advised {
				t.Errorf("advice before %s at %.0f s, while the engine is ill", e.Type, e.T)
			}
			story = append(story, e.Type)
		case "recommendation":
			advised = true
		}
	}
	if want := []string{"unhealthy hung", "recovered", "unhealthy dead", "finished"}; !slices.Equal(story, want) {
		t.Errorf("the run tells %q, want %q", story, want)
	}
}

// hiddenLimit is a limit that neither slots nor the KV pool show.
type hiddenLimit struct {
	name     string
	flags    []string
	load     loadgen.Load
	adapters []string // that the server has
	remote   bool     // its launch cannot be read

	finding, flag string
	least, most   int    // what is recommended
	size          string // evidence that has the limit of now
	low, high     float64
}

var hiddenLimits = []hiddenLimit{
	{
		name: "adapters over max-loras", flags: []string{"--enable-lora", "--max-loras", "1", "--max-lora-rank", "8"}, adapters: []string{"law", "sql", "tax"},
		load:    loadgen.Load{Clients: 9, PromptTokens: loadgen.Fixed(120), OutputTokens: loadgen.Fixed(48), Style: loadgen.Characters, Seed: 8},
		finding: "lora-slots", flag: "--max-loras", least: 3, most: 3, size: "lora_adapters", low: 3, high: 3,
	},
	{
		name: "token budget, launch unknown", flags: []string{"--max-num-batched-tokens", "256"}, remote: true,
		load:    loadgen.Load{Clients: 20, PromptTokens: loadgen.Fixed(1300), OutputTokens: loadgen.Fixed(12), Style: loadgen.Characters, Stagger: 2 * time.Second, Seed: 9},
		finding: "token-budget", flag: "--max-num-batched-tokens", least: 1024, most: 8192, size: "step_tokens", low: 200, high: 300,
	},
}

func (c *hiddenLimit) diagnosed(t *testing.T) {
	flags := c.flags
	if len(c.adapters) > 0 {
		flags = append(slices.Clone(flags), "--lora-modules")
	}
	for _, name := range c.adapters {
		flags = append(flags, name+"="+writeAdapter(t, name))
		c.load.Adapters = append(c.load.Adapters, loadgen.Weighted{Model: name, Weight: 1})
	}
	s := startServer(t, porttest.Address(t), flags...)
	warmUp(t, s.url(), "", c.load)
	g := offer(t, s.url(), "", c.load)
	s.settle(t, 4*time.Second)
	seen := *s
	if c.remote {
		proxy := &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(&neturl.URL{Scheme: "http", Host: s.at.String()})
		}}
		forwarder := httptest.NewServer(proxy)
		defer forwarder.Close()
		seen.at = forwarder.Listener.Addr().(*net.TCPAddr).AddrPort()
	}
	d := diagnose(t, &seen, 3)
	g.end(t)
	d.fired(t, c.finding)
	r := d.recommends(t, c.finding, "flag", c.flag)
	if to := number(t, r.To); to < c.least || to > c.most {
		t.Errorf("recommended %s %s, want %d to %d", r.Flag, r.To, c.least, c.most)
	}
	for _, e := range d.finding(t, c.finding).Evidence {
		if e.Name == c.size && e.Value != nil && *e.Value >= c.low && *e.Value <= c.high {
			return
		}
	}
	t.Errorf("no evidence %s of %v to %v", c.size, c.low, c.high)
}

// writeAdapter writes a LoRA adapter of rank 8 for the model of .ci/make-model.py, all zeros, and returns
// its directory.
func writeAdapter(t *testing.T, name string) string {
	t.Helper()
	const rank, width = 8, 512
	config := map[string]any{"peft_type": "LORA", "r": rank, "lora_alpha": rank, "bias": "none", "target_modules": []string{"o_proj"}, "base_model_name_or_path": name}
	at := "base_model.model.model.layers.0.self_attn.o_proj."
	size := 2 * rank * width
	tensors := map[string]any{
		at + "lora_A.weight": map[string]any{"dtype": "BF16", "shape": []int{rank, width}, "data_offsets": []int{0, size}},
		at + "lora_B.weight": map[string]any{"dtype": "BF16", "shape": []int{width, rank}, "data_offsets": []int{size, 2 * size}},
	}
	dir := t.TempDir()
	files := map[string][]byte{}
	for file, v := range map[string]any{"adapter_config.json": config, "adapter_model.safetensors": tensors} {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		files[file] = text
	}
	header := files["adapter_model.safetensors"]
	files["adapter_model.safetensors"] = slices.Concat(le.LittleEndian.AppendUint64(nil, uint64(len(header))), header, make([]byte, 2*size))
	for file, content := range files {
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
