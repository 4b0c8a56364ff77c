// Package facts resolves the facts of a server from its launch, its own answers and the catalog, each
// with its source.
package facts

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/engine"
)

func (r *resolver) vramGiB() float64 {
	if len(r.in.Devices) > 0 {
		if v := r.in.Devices[0].Fields[engine.GPUVRAMTotal]; v.OK {
			return v.V / (1 << 30)
		}
	}
	if r.f.GPUKnown {
		return r.f.GPU.VRAMGiB
	}
	return 0
}

func (r *resolver) engine() {
	f := &r.f
	f.Engine = engine.Know(r.eng.ID, engine.FromMetrics, "")
	if v, _, _ := strings.Cut(r.in.Server.Version, "+"); v != "" {
		f.EngineVersion = engine.Know(v, engine.FromServer, "")
	} else {
		f.EngineVersion = engine.Fact[string]{Note: "the server does not answer /version"}
	}
	f.V0 = engine.Know(false, engine.FromDerived, "")
	if p := r.in.Page; r.eng.ID == catalog.VLLM && p != nil && (p.Gauges[engine.GaugeSwapped].OK || p.Gauges[engine.GaugeCPUKVUsage].OK) {
		f.V0 = engine.Know(true, engine.FromMetrics, "the page has gauges of the V0 engine")
	}
	switch {
	case r.in.OnCPU, strings.Contains(r.in.Server.Version, "cpu"):
		f.Device = engine.Know("cpu", engine.FromServer, "")
	case len(r.in.Devices) > 0:
		f.Device = engine.Know("cuda", engine.FromGPU, "")
	case r.in.Flags.GPU != "" || r.in.Env.GPU != "":
		f.Device = engine.Know("cuda", engine.FromFlag, "")
	default:
		f.Device = engine.Fact[string]{Note: "no GPU is readable here and the server does not say what it runs on"}
	}
	if text, from, ok := r.discovered("device"); ok && text != "auto" {
		f.Device = engine.Know(text, from, "")
	}
}

func (r *resolver) hardware() {
	f := &r.f
	name, from := given(r.in.Flags.GPU, r.in.Env.GPU)
	vram := 0.0
	if len(r.in.Devices) > 0 {
		seen := r.in.Devices[0].Name
		vram = r.in.Devices[0].Fields[engine.GPUVRAMTotal].Or(0)
		if name == "" {
			name, from = seen, engine.FromGPU
		}
		for _, d := range r.in.Devices[1:] {
			if d.Name != seen {
				r.conflict("the server's GPUs differ: %s and %s; ceilings are those of the first", seen, d.Name)
				break
			}
		}
	}
	note := ""
	if name == "" {
		name, from, note = r.in.NodeGPU, engine.FromConfig, "label "+r.in.NodeGPULabel
	}
	if name == "" {
		f.GPUName = engine.Fact[string]{Note: "no GPU readable and no --gpu given"}
		return
	}
	f.GPUName = engine.Know(name, from, note)
	g, err := r.cat.FindGPU(name, vram)
	var several *catalog.AmbiguousError
	if errors.As(err, &several) && len(r.in.Devices) > 0 { // "H100" of a flag is the H100 that is read
		if seen, e := r.cat.FindGPU(r.in.Devices[0].Name, vram); e == nil && slices.Contains(several.Candidates, seen.Name) {
			g, err = seen, nil
		}
	}
	if err != nil {
		f.GPUName.Note = err.Error()
		if from != engine.FromGPU {
			r.conflict("%v; without it there is no ceiling", err)
		}
		return
	}
	f.GPU, f.GPUKnown = g, true
	switch {
	case g.Vendor == "cpu":
		f.Device = engine.Know("cpu", from, "")
	case r.in.OnCPU:
		r.conflict("gpu: %s from rooftop's %s, but the server says that it runs on a CPU: the ceilings are still those of %s", g.Name, from, g.Name)
	}
	if len(r.in.Devices) > 0 && from != engine.FromGPU {
		if seen, err := r.cat.FindGPU(r.in.Devices[0].Name, vram); err == nil && seen.Name != g.Name {
			r.conflict("gpu: %s from rooftop's %s contradicts the device's own name %s; %s is used", g.Name, from, seen.Name, g.Name)
		}
	}
	if vram > 0 {
		f.GPU.VRAMGiB = vram / (1 << 30)
	}
}

const tensorParallelAssumed = "assumed: not on the metrics page; give --tensor-parallel-size"

func (r *resolver) parallel() {
	f := &r.f
	f.TensorParallel = override(r, "tensor_parallel_size",
		lookup(r, "tensor_parallel_size", "", asInt), r.in.Flags.TensorParallel, r.in.Env.TensorParallel)
	if !f.TensorParallel.Known {
		f.TensorParallel = engine.Know(1, engine.FromDefault, tensorParallelAssumed)
	} else if f.TensorParallel.Source == engine.FromDefault && r.in.Launch == nil {
		f.TensorParallel.Note = tensorParallelAssumed
	}
	f.PipelineParallel = lookup(r, "pipeline_parallel_size", "", asInt)
	if !f.PipelineParallel.Known {
		f.PipelineParallel = engine.Know(1, engine.FromDefault, "assumed")
	}
	f.DataParallel = lookup(r, "data_parallel_size", "", asInt)
	ranks := 1
	if r.in.Page != nil {
		ranks = max(1, len(r.in.Page.Ranks))
	}
	switch {
	case f.DataParallel.Known && f.DataParallel.Source != engine.FromDefault:
		if r.in.Page != nil && ranks != f.DataParallel.Value {
			f.DataParallel.Note = fmt.Sprintf("this page shows %d of them", ranks)
		}
	case r.in.Page != nil:
		f.DataParallel = engine.Know(ranks, engine.FromMetrics, "engine labels on the page")
	default:
		f.DataParallel = engine.Know(1, engine.FromDefault, "assumed")
	}
	f.ExpertParallel = lookup(r, "enable_expert_parallel", "", asBool)
	r.attentionRanks()
	if n, ok := r.discoveredInt("api_server_count"); ok {
		f.APIServerCount = n
	} else if n, ok := r.madeInt("api_server_count"); ok && n > 0 {
		f.APIServerCount = engine.Know(n, engine.FromDerived, madeNote)
	} else if r.launched() {
		f.APIServerCount = engine.Know(r.usualAPIServers(), engine.FromDefault, "")
	} else {
		f.APIServerCount = engine.Fact[int]{Note: "the launch command is not readable"}
	}
	f.Ranks = ranks
	if d := len(r.in.Devices); d > 1 && !r.in.GPUsAssumed && !r.launched() && f.TensorParallel.Source == engine.FromDefault && f.PipelineParallel.Source == engine.FromDefault && d%ranks == 0 {
		f.TensorParallel = engine.Know(d/ranks, engine.FromDerived, fmt.Sprintf("the server's processes hold %d GPUs", d))
	}
	if n := r.in.PodGPUs; n > 0 && !r.launched() && f.TensorParallel.Source == engine.FromDefault && f.PipelineParallel.Source == engine.FromDefault && n%ranks == 0 {
		f.TensorParallel = engine.Know(n/ranks, engine.FromDerived, fmt.Sprintf("GPUs of the server's pod: %d", n))
	}
	f.GPUsFree = engine.Fact[int]{Note: "it is not known which other GPUs of its machine are idle"}
	if n := r.in.FreeGPUs; n != nil {
		f.GPUsFree = engine.Know(*n, engine.FromGPU, "")
	}
	// GPUs, price and ceilings are those of the measured ranks.
	n := f.TensorParallel.Value * f.PipelineParallel.Value * ranks
	f.GPUCount = engine.Know(n, engine.FromDerived, "tensor x pipeline parallel x ranks on the page")
	switch read, pod := len(r.in.Devices), r.in.PodGPUs; {
	case read > 0 && read != n:
		f.GPUCount.Note += fmt.Sprintf("; %d GPUs are read", read)
	case read == 0 && pod > 0 && pod != n:
		f.GPUCount.Note += fmt.Sprintf("; the server's pod has %d GPUs", pod)
	}
}

// usualAPIServers returns how many API servers answer at the server's address unless the launch says it. vllm serve
// starts as many as the data-parallel ranks that they balance: all, those of this machine (hybrid), or one (external);
// the module starts one (entrypoints/cli/serve.py and openai/api_server.py of 0.32), and so do other engines.
func (r *resolver) usualAPIServers() int {
	switch {
	case r.eng.ID != catalog.VLLM, strings.Contains(r.in.LaunchText, "api_server"):
		return 1
	case r.in.Page == nil:
		return r.f.DataParallel.Value
	}
	return max(1, len(r.in.Page.Ranks))
}

// attentionRanks resolves SGLang's attention data parallelism: --attn-dp-size, before it --dp-size with
// --enable-dp-attention. Its ranks are parts of one tensor-parallel group, each with a scheduler and a pool of its own;
// their experts are spread over all of them (srt/runtime_context.py of 0.5.23).
func (r *resolver) attentionRanks() {
	f := &r.f
	n, _ := r.discoveredInt("attn_dp_size")
	if text, _, _ := r.discovered("enable_dp_attention"); n.Value < 2 && text == "true" {
		n, _ = r.discoveredInt("data_parallel_size")
	}
	if n.Value < 2 {
		return
	}
	f.DividedBy, f.DataParallel = n.Value, n
	tp := &f.TensorParallel
	note := fmt.Sprintf("%d GPUs shared by %d attention ranks", tp.Value, n.Value)
	tp.Value, tp.Note = max(1, tp.Value/n.Value), note
	f.ExpertParallel = engine.Know(true, n.Source, note)
}

// perRank returns the part of one rank in a number that the server divides among its ranks.
func (r *resolver) perRank(fact engine.Fact[int]) engine.Fact[int] {
	if n := r.f.DividedBy; n > 1 && fact.Known && fact.Value > 0 {
		fact.Note = strings.TrimPrefix(fmt.Sprintf("%s; %d divided among %d ranks", fact.Note, fact.Value, n), "; ")
		fact.Value = max(1, fact.Value/n)
	}
	return fact
}

// withholdGPU leaves a GPU that the user did not name with its name alone if the tensor parallelism is only assumed: a
// ceiling and a price of one GPU would be those of another server. Defaults of the scheduler depend on the kind of GPU,
// and not on their number.
func (r *resolver) withholdGPU() {
	f := &r.f
	if !f.GPUKnown || f.GPUName.Source != engine.FromConfig || f.TensorParallel.Source != engine.FromDefault || r.launched() {
		return
	}
	const why = "the number of these GPUs that the server uses is not known: give --tensor-parallel-size"
	f.GPU, f.GPUKnown = catalog.GPU{}, false
	f.GPUName.Note += "; " + why + ", --gpu is not needed"
	f.GPUCount = engine.Fact[int]{Note: why}
}

// money resolves the price. A price given by the user is for the whole server. A catalog price is an
// estimate: per GPU, times the GPUs used.
func (r *resolver) money() {
	f := &r.f
	if said, from := given(r.in.Flags.CostPerHour, r.in.Env.CostPerHour); said.OK {
		f.CostPerHour = engine.Know(said.V, from, "USD per hour, whole server")
		return
	}
	if !f.GPUCount.Known {
		f.CostPerHour = engine.Fact[float64]{Note: f.GPUCount.Note + " or --cost-per-hour"}
		return
	}
	if !f.GPUKnown || f.GPU.Price == nil {
		f.CostPerHour = engine.Fact[float64]{Note: "no price in the catalog: give --cost-per-hour"}
		return
	}
	per, kind := f.GPU.Price.OnDemandUSD, "on demand"
	if r.in.Spot {
		per, kind = f.GPU.Price.SpotUSD, "spot"
	}
	if per <= 0 {
		f.CostPerHour = engine.Fact[float64]{Note: "no " + kind + " price in the catalog: give --cost-per-hour"}
		return
	}
	f.CostEst = true
	f.CostPerHour = engine.Know(per*float64(f.GPUCount.Value), engine.FromCatalog,
		fmt.Sprintf("(est) %s, %d x $%.2f, as of %s", kind, f.GPUCount.Value, per, f.GPU.Price.AsOf))
}
