package bench

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
)

// Fault is a wrong setting of a server.
type Fault string

// Faults that a pair consists of.
const (
	FewSlots          Fault = "slots"           // too few slots for the requests
	SmallPool         Fault = "pool"            // a KV pool that is too small
	CachingOff        Fault = "caching"         // prefix caching off, with a shared prefix
	SmallBudget       Fault = "budget"          // a small token budget of a step
	OneAPIServer      Fault = "api-server"      // one API server, which is saturated
	LowTensorParallel Fault = "tensor-parallel" // fewer GPUs than the machine has
)

// Faults lists all faults.
var Faults = [...]Fault{FewSlots, SmallPool, CachingOff, SmallBudget, OneAPIServer, LowTensorParallel}

// Pair is a server with two faults at once, and the grid of settings that its best is found in.
type Pair struct {
	Faults     [2]Fault
	Seed       uint64
	Deployment string // model and hardware, in short
	Scenario   settings.Scenario
	Bare       string // launch command without the settings of the grid
	Grid       []Axis
	Allow      []string // flags that may change besides pairFlags
}

// Axis is one flag of a grid with its values; "" is the server without the flag.
type Axis struct {
	Flag   string
	Values []string
}

// Pairs returns a server for each pair of faults and each of the seeds first to first+n-1.
func Pairs(first uint64, n int) []Pair {
	var out []Pair
	for i, a := range Faults {
		for _, b := range Faults[i+1:] {
			for s := range uint64(n) {
				out = append(out, NewPair(a, b, first+s))
			}
		}
	}
	return out
}

// NewPair returns a server with two faults; hardware, model, load and the sizes of the faults follow from
// the seed.
func NewPair(a, b Fault, seed uint64) Pair {
	p := &pairDraw{dice: dice{rand.New(rand.NewPCG(seed, uint64(len(a))<<8|uint64(len(b))))}, a: a, b: b}
	p.deploy()
	p.requests()
	flags := p.flags()
	out := Pair{Faults: [2]Fault{a, b}, Seed: seed, Deployment: p.on.name, Bare: p.bare(), Grid: p.grid}
	out.Scenario = settings.Scenario{
		Name: fmt.Sprintf("%s+%s/%d", a, b, seed), Case: "-", Story: "two faults at once",
		Server: strings.Join(append([]string{out.Bare}, flags...), " "), GPU: p.on.gpu, Startup: 5 * time.Second,
		GPUs:    p.machine(),
		Load:    []settings.Stream{p.stream},
		Measure: settings.Measure{After: 30 * time.Second, For: 60 * time.Second},
		File:    "pairs", Line: int(seed),
	}
	return out
}

// pairDraw draws a server with two faults.
type pairDraw struct {
	dice
	a, b           Fault
	on             deployment
	users          int
	prompt, output int
	stream         settings.Stream
	grid           []Axis
}

func (p *pairDraw) has(f Fault) bool { return p.a == f || p.b == f }

var (
	pairDeployments = []deployment{
		{"8b-a100", "meta-llama/Llama-3.1-8B-Instruct", "NVIDIA A100-SXM4-80GB", 1, 0, 0},
		{"8b-h100", "meta-llama/Llama-3.1-8B-Instruct", "NVIDIA H100 80GB HBM3", 1, 0, 0},
		{"32b-h100", "Qwen/Qwen3-32B", "NVIDIA H100 80GB HBM3", 2, 0, 0},
		{"70b-h100", "meta-llama/Llama-3.3-70B-Instruct", "NVIDIA H100 80GB HBM3", 4, 0, 0},
		{"30b-a100", "Qwen/Qwen3-30B-A3B-Instruct-2507", "NVIDIA A100-SXM4-80GB", 1, 0, 0},
	}
	// fastDeployments generate more tokens than one API server delivers.
	fastDeployments = []deployment{
		{"0.6b-h100", "Qwen/Qwen3-0.6B", "NVIDIA H100 80GB HBM3", 1, 0, 0},
	}
	// splitDeployments have a degree below that of their machine.
	splitDeployments = []deployment{
		{"8b-h100", "meta-llama/Llama-3.1-8B-Instruct", "NVIDIA H100 80GB HBM3", 1, 0, 0},
		{"32b-h100", "Qwen/Qwen3-32B", "NVIDIA H100 80GB HBM3", 2, 0, 0},
		{"70b-h100", "meta-llama/Llama-3.3-70B-Instruct", "NVIDIA H100 80GB HBM3", 4, 0, 0},
	}
)

func (p *pairDraw) deploy() {
	list := pairDeployments
	switch {
	case p.has(LowTensorParallel) && p.has(OneAPIServer):
		list = splitDeployments[:1]
	case p.has(LowTensorParallel):
		list = splitDeployments
	case p.has(OneAPIServer):
		list = fastDeployments
	}
	p.on = list[p.IntN(len(list))]
}

// requests draws the load.
func (p *pairDraw) requests() {
	users, prompt, output := [2]float64{24, 160}, [2]float64{150, 1500}, [2]float64{60, 500}
	switch {
	case p.has(OneAPIServer) && p.has(CachingOff):
		users, prompt, output = [2]float64{48, 128}, [2]float64{6000, 14000}, [2]float64{4, 16}
	case p.has(OneAPIServer) && p.has(LowTensorParallel):
		users, prompt, output = [2]float64{300, 500}, [2]float64{50, 200}, [2]float64{150, 300}
	case p.has(OneAPIServer):
		users, prompt, output = [2]float64{160, 320}, [2]float64{100, 400}, [2]float64{100, 300}
	case p.has(CachingOff):
		users, prompt, output = [2]float64{24, 96}, [2]float64{1500, 5000}, [2]float64{30, 150}
	case p.has(SmallBudget):
		users, prompt, output = [2]float64{24, 120}, [2]float64{500, 2000}, [2]float64{60, 200}
	}
	draw := func(r [2]float64) int { return int(p.between(r[0], r[1])) }
	p.users, p.prompt, p.output = draw(users), draw(prompt), draw(output)
	p.stream = settings.Stream{
		Phases: []settings.Phase{{Users: p.users}},
		Prompt: settings.Lengths{Mean: float64(p.prompt), Sigma: 0.3, Most: 2 * p.prompt},
		Output: settings.Lengths{Mean: float64(p.output), Sigma: 0.4, Most: 3 * p.output},
	}
	if p.has(CachingOff) {
		p.stream.Prompt = settings.Lengths{Least: p.prompt, Most: p.prompt * 11 / 10}
		p.stream.Prefix = settings.Prefix{Tokens: int(float64(p.prompt) * (0.7 + 0.25*p.Float64())), Groups: p.oneOf(1, 2, 4)}
	}
}

// length returns the context length, which every request fits in.
func (p *pairDraw) length() int {
	n := 1024
	for n < 2*p.prompt+3*p.output+16 {
		n *= 2
	}
	return n
}

// machine returns the GPUs of the machine: idle ones only beside a low degree.
func (p *pairDraw) machine() int {
	if p.has(LowTensorParallel) {
		return min(8, 4*p.on.tp)
	}
	return 0
}

func (p *pairDraw) bare() string {
	text := fmt.Sprintf("vllm serve %s --max-model-len %d", p.on.model, p.length())
	if !p.has(LowTensorParallel) && p.on.tp > 1 {
		text += fmt.Sprintf(" --tensor-parallel-size %d", p.on.tp)
	}
	return text
}

// axis adds a flag to the grid, with its wrong value first, and returns the flag with that value.
func (p *pairDraw) axis(flag string, values ...string) string {
	p.grid = append(p.grid, Axis{flag, values})
	if values[0] == "" {
		return ""
	}
	return strings.TrimSpace(flag + " " + values[0])
}

// set is the value of a switch that is given.
const set = " "

// flags draws the wrong settings, and the grid that they are a part of.
func (p *pairDraw) flags() []string {
	var out []string
	add := func(text string) {
		if text != "" {
			out = append(out, text)
		}
	}
	budget := p.oneOf(128, 256)
	if p.has(SmallBudget) {
		add(p.axis("--max-num-batched-tokens", texts(budget, 512, 1024, 2048, 8192)...))
	}
	eights := func(n int) int { return (n + 7) / 8 * 8 }
	switch few := max(2, int(float64(p.users)/p.between(3, 12))); {
	case p.has(FewSlots):
		few = min(few, budget)
		add(p.axis("--max-num-seqs", texts(few, 2*few, eights(p.users/2), eights(p.users), eights(2*p.users))...))
	case p.has(SmallBudget):
		add(fmt.Sprintf("--max-num-seqs %d", min(budget, eights(p.users))))
	}
	if p.has(SmallPool) {
		blocks := max(p.length()/16+1, int(float64(p.users*(p.prompt+p.output))*p.between(0.15, 0.4)/16))
		add(p.axis("--num-gpu-blocks-override", append(texts(blocks, 2*blocks, 4*blocks), "")...))
	}
	if p.has(CachingOff) {
		add(p.axis("--no-enable-prefix-caching", set, ""))
	}
	if p.has(OneAPIServer) {
		add(p.axis("--api-server-count", "", "2", "4"))
	}
	if p.has(LowTensorParallel) {
		add(p.axis("--tensor-parallel-size", slices.Compact(texts(p.on.tp, 2*p.on.tp, p.machine()))...))
	}
	return out
}

func texts(values ...int) []string {
	var out []string
	for _, v := range values {
		out = append(out, strconv.Itoa(v))
	}
	return out
}

// Points returns the launch command of every combination of a pair's grid.
func (p *Pair) Points() []string {
	out := []string{p.Bare}
	for _, a := range p.Grid {
		var next []string
		for _, head := range out {
			for _, v := range a.Values {
				if v == "" {
					next = append(next, head)
				} else {
					next = append(next, strings.TrimSpace(head+" "+a.Flag+" "+v))
				}
			}
		}
		out = next
	}
	return out
}
