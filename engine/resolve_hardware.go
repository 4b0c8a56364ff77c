package engine

import (
	"fmt"
	"strings"

	"github.com/rooftop-dev/rooftop/engine/stat"
)

func (r *resolver) vramGiB() float64 {
	if len(r.in.Devices) > 0 {
		if v := r.in.Devices[0].Fields[GPUVRAMTotal]; v.OK {
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
	f.Engine = Know("vllm", FromMetrics, "")
	if v, _, _ := strings.Cut(r.in.Server.Version, "+"); v != "" {
		f.EngineVersion = Know(v, FromServer, "")
	} else {
		f.EngineVersion = Fact[string]{Note: "the server does not answer /version"}
	}
	f.V0 = Know(false, FromDerived, "")
	if p := r.in.Page; p != nil && (p.Gauges[GaugeSwapped].OK || p.Gauges[GaugeCPUKVUsage].OK) {
		f.V0 = Know(true, FromMetrics, "the page has gauges of the V0 engine")
	}
	switch {
	case r.in.OnCPU, strings.Contains(r.in.Server.Version, "cpu"):
		f.Device = Know("cpu", FromServer, "")
	case len(r.in.Devices) > 0:
		f.Device = Know("cuda", FromGPU, "")
	case r.in.Flags.GPU != "" || r.in.Env.GPU != "":
		f.Device = Know("cuda", FromFlag, "")
	default:
		f.Device = Fact[string]{Note: "no GPU is readable here and the server does not say what it runs on"}
	}
	if text, from, ok := r.discovered("device"); ok && text != "auto" {
		f.Device = Know(text, from, "")
	}
}

func (r *resolver) hardware() {
	f := &r.f
	name, from, vram := r.in.Flags.GPU, FromFlag, 0.0
	if name == "" {
		name, from = r.in.Env.GPU, FromEnv
	}
	if len(r.in.Devices) > 0 {
		seen := r.in.Devices[0].Name
		vram = r.in.Devices[0].Fields[GPUVRAMTotal].Or(0)
		if name == "" {
			name, from = seen, FromGPU
		}
		for _, d := range r.in.Devices[1:] {
			if d.Name != seen {
				r.conflict("the server's GPUs differ: %s and %s; ceilings are those of the first", seen, d.Name)
				break
			}
		}
	}
	if name == "" {
		f.GPUName = Fact[string]{Note: "no GPU readable and no --gpu given"}
		return
	}
	f.GPUName = Know(name, from, "")
	g, err := r.cat.FindGPU(name, vram)
	if err != nil {
		f.GPUName.Note = err.Error()
		return
	}
	f.GPU, f.GPUKnown = g, true
	switch {
	case g.Vendor == "cpu":
		f.Device = Know("cpu", from, "")
	case r.in.OnCPU:
		r.conflict("gpu: %s from rooftop's %s, but the server says that it runs on a CPU: ceilings are those of %s all the same", g.Name, from, g.Name)
	}
	if len(r.in.Devices) > 0 && from != FromGPU {
		if seen, err := r.cat.FindGPU(r.in.Devices[0].Name, vram); err == nil && seen.Name != g.Name {
			r.conflict("gpu: %s from rooftop's %s contradicts the device's own name %s; %s is used", g.Name, from, seen.Name, g.Name)
		}
	}
	if vram > 0 {
		f.GPU.VRAMGiB = vram / (1 << 30)
	}
}

func (r *resolver) parallel() {
	f := &r.f
	f.TensorParallel = override(r, "tensor_parallel_size",
		lookup(r, "tensor_parallel_size", "", asInt), r.in.Flags.TensorParallel, r.in.Env.TensorParallel)
	if !f.TensorParallel.Known {
		f.TensorParallel = Know(1, FromDefault, "assumed: the page does not tell it; give --tensor-parallel-size")
	} else if f.TensorParallel.Source == FromDefault && r.in.Launch == nil {
		f.TensorParallel.Note = "assumed: the page does not tell it; give --tensor-parallel-size"
	}
	f.PipelineParallel = lookup(r, "pipeline_parallel_size", "", asInt)
	if !f.PipelineParallel.Known {
		f.PipelineParallel = Know(1, FromDefault, "assumed")
	}
	f.DataParallel = lookup(r, "data_parallel_size", "", asInt)
	ranks := 1
	if r.in.Page != nil {
		ranks = max(1, len(r.in.Page.Ranks))
	}
	switch {
	case f.DataParallel.Known && f.DataParallel.Source != FromDefault:
		if ranks > 1 && ranks != f.DataParallel.Value {
			f.DataParallel.Note = fmt.Sprintf("this page shows %d of them", ranks)
		}
	case r.in.Page != nil:
		f.DataParallel = Know(ranks, FromMetrics, "engine labels on the page")
	default:
		f.DataParallel = Know(1, FromDefault, "assumed")
	}
	f.ExpertParallel = lookup(r, "enable_expert_parallel", "", asBool)
	if text, from, ok := r.discovered("api_server_count"); ok {
		if n, good := asInt(text); good && n > 0 {
			f.APIServerCount = Know(n, from, "")
		}
	} else if n, ok := r.madeInt("api_server_count"); ok && n > 0 {
		f.APIServerCount = Know(n, FromDerived, madeNote)
	} else if r.launched() {
		// vLLM starts as many front ends as it has data-parallel ranks.
		f.APIServerCount = Know(f.DataParallel.Value, FromDefault, "")
	} else {
		f.APIServerCount = Fact[int]{Note: "the launch command is not readable"}
	}
	f.Ranks = ranks
	if d := len(r.in.Devices); d > 1 && !r.in.GPUsAssumed && !r.launched() && f.TensorParallel.Source == FromDefault && f.PipelineParallel.Source == FromDefault && d%ranks == 0 {
		f.TensorParallel = Know(d/ranks, FromDerived, fmt.Sprintf("the server's processes hold %d GPUs", d))
	}
	// GPUs, price and ceilings are those of the ranks that are measured.
	n := f.TensorParallel.Value * f.PipelineParallel.Value * ranks
	f.GPUCount = Know(n, FromDerived, "tensor x pipeline parallel x ranks on the page")
	if d := len(r.in.Devices); d > 0 && d != n {
		f.GPUCount.Note += fmt.Sprintf("; %d GPUs are read", d)
	}
}

// money settles the price: the person's figure is for the whole server, the
// catalog's is per GPU, times the GPUs used, and an estimate.
func (r *resolver) money() {
	f := &r.f
	for _, given := range []struct {
		v    stat.Opt
		from Source
	}{{r.in.Flags.CostPerHour, FromFlag}, {r.in.Env.CostPerHour, FromEnv}} {
		if given.v.OK {
			f.CostPerHour = Know(given.v.V, given.from, "USD per hour, whole server")
			return
		}
	}
	if !f.GPUKnown || f.GPU.Price == nil {
		f.CostPerHour = Fact[float64]{Note: "no price in the catalog: give --cost-per-hour"}
		return
	}
	per, kind := f.GPU.Price.OnDemandUSD, "on demand"
	if r.in.Spot {
		per, kind = f.GPU.Price.SpotUSD, "spot"
	}
	if per <= 0 {
		f.CostPerHour = Fact[float64]{Note: "no " + kind + " price in the catalog: give --cost-per-hour"}
		return
	}
	f.CostEst = true
	f.CostPerHour = Know(per*float64(f.GPUCount.Value), FromCatalog,
		fmt.Sprintf("(est) %s, %d x $%.2f, as of %s", kind, f.GPUCount.Value, per, f.GPU.Price.AsOf))
}
