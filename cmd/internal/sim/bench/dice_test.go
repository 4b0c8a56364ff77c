package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// deployment is a model on hardware, with the lengths and the utilization that it can be started with.
type deployment struct {
	name, model, gpu string
	tp, length       int
	utilization      float64 // minimum that leaves room for a pool; 0 if only the default does
}

var deployments = [...]deployment{
	{"8b-l4", "meta-llama/Llama-3.1-8B-Instruct", "NVIDIA L4", 1, 8192, 0},
	{"8b-a100", "meta-llama/Llama-3.1-8B-Instruct", "NVIDIA A100-SXM4-80GB", 1, 32768, 0.5},
	{"8b-h100", "meta-llama/Llama-3.1-8B-Instruct", "NVIDIA H100 80GB HBM3", 1, 32768, 0.5},
	{"7b-a10g", "Qwen/Qwen2.5-7B-Instruct", "NVIDIA A10G", 1, 8192, 0},
	{"32b-h100", "Qwen/Qwen3-32B", "NVIDIA H100 80GB HBM3", 2, 32768, 0.6},
	{"70b-h100", "meta-llama/Llama-3.3-70B-Instruct", "NVIDIA H100 80GB HBM3", 4, 32768, 0.6},
	{"30b-a100", "Qwen/Qwen3-30B-A3B-Instruct-2507", "NVIDIA A100-SXM4-80GB", 1, 32768, 0.8},
	{"235b-h200", "Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", "NVIDIA H200", 4, 32768, 0.6},
	{"r1-b200", "deepseek-ai/DeepSeek-R1", "NVIDIA B200", 8, 32768, 0.8},
}

// Random returns the n-th scenario of a seed: a server with random flags and a random load. Its
// correct diagnosis is unknown, but recommendations for it can be tried.
func Random(seed uint64, n int) settings.Scenario {
	d := dice{rand.New(rand.NewPCG(seed, uint64(n)))}
	p := deployments[d.IntN(len(deployments))]
	return settings.Scenario{
		Name: fmt.Sprintf("random-%d/%s", n, p.name), Case: "-", Story: "random flags and load",
		Server: d.server(&p), GPU: p.gpu, Startup: time.Second,
		Load:    []settings.Stream{d.load(&p)},
		Measure: settings.Measure{After: 90 * time.Second, For: 90 * time.Second},
		File:    "random", Line: n,
	}
}

type dice struct{ *rand.Rand }

func (d dice) chance(p float64) bool { return d.Float64() < p }

// between returns a random number in low..high, uniform on a logarithmic scale.
func (d dice) between(low, high float64) float64 {
	return math.Exp(math.Log(low) + d.Float64()*math.Log(high/low))
}

func (d dice) oneOf(values ...int) int { return values[d.IntN(len(values))] }

func (d dice) server(p *deployment) string {
	s := fmt.Sprintf("vllm serve %s --tensor-parallel-size %d --max-model-len %d", p.model, p.tp, p.length)
	slots := 0
	if d.chance(0.6) {
		slots = d.oneOf(4, 8, 16, 32, 64, 96, 128, 256)
		s += fmt.Sprintf(" --max-num-seqs %d", slots)
	}
	if budget := d.oneOf(256, 512, 1024, 2048, 4096, 8192, 16384); d.chance(0.3) && (slots > 0 || budget >= 1024) {
		s += fmt.Sprintf(" --max-num-batched-tokens %d", max(budget, slots))
	}
	switch u := max(p.utilization, float64(d.oneOf(50, 60, 70, 80))/100); {
	case d.chance(0.25) && p.utilization > 0:
		s += fmt.Sprintf(" --gpu-memory-utilization %v", u)
	case d.chance(0.15) && p.utilization > 0:
		s += fmt.Sprintf(" --num-gpu-blocks-override %d", d.oneOf(2100, 3000, 4000, 8000))
	}
	if d.chance(0.12) {
		s += " --no-enable-prefix-caching"
	}
	if d.chance(0.08) {
		s += " --enforce-eager"
	}
	return s
}

func (d dice) load(p *deployment) settings.Stream {
	prompt, output := int(d.between(40, 6000)), int(d.between(8, 800))
	prompt, output = min(prompt, p.length/4), min(output, p.length/8)
	s := settings.Stream{
		Prompt: settings.Lengths{Mean: float64(prompt), Sigma: 0.4, Most: min(p.length/2, 4*prompt)},
		Output: settings.Lengths{Mean: float64(output), Sigma: 0.5, Most: 4 * output},
	}
	if d.chance(0.4) {
		s.Prompt = settings.Lengths{Least: prompt, Most: prompt + prompt/4}
		s.Prefix = settings.Prefix{Tokens: int(float64(prompt) * (0.3 + 0.6*d.Float64())), Groups: d.oneOf(1, 4, 16, 64, 256)}
	}
	if d.chance(0.3) {
		s.Phases = []settings.Phase{{Rate: d.between(0.2, 40)}}
		return s
	}
	s.Phases = []settings.Phase{{Users: int(d.between(1, 400))}}
	if d.chance(0.3) {
		s.Think = time.Duration(d.IntN(5000)) * time.Millisecond
	}
	return s
}
