package attach

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/figure"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

// Unexamined returns checks for the missing facts that none of the given checks covers.
func (a *Server) Unexamined(checks []tuning.Check) []tuning.Check {
	var list []tuning.Check
	for _, m := range a.Header.Missing {
		covered := func(c tuning.Check) bool { return c.Name == m.What || c.Found == m.Reason }
		if !slices.ContainsFunc(checks, covered) {
			list = append(list, tuning.Check{Name: m.What, State: tuning.CheckAbsent, Found: m.Reason, Effect: m.Effect})
		}
	}
	return list
}

// HealthCheck is the name of the check of the engine's health.
const HealthCheck = "health"

// Examine polls the server once and returns a check for each kind of fact.
func (a *Server) Examine(ctx context.Context) ([]tuning.Check, error) {
	analysis, err := session.NewAnalysis(a.Header)
	if err != nil {
		return nil, err
	}
	poll := &session.Poll{}
	began := a.Clock()
	body, err := a.Pages.Page(ctx, nil)
	poll.Took = a.Clock() - began
	if err != nil {
		return nil, err
	}
	poll.Body = string(body)
	var gpuErr error
	if a.GPUs != nil {
		reading, err := a.GPUs.Read(ctx)
		if gpuErr = err; err == nil {
			poll.GPU = &reading
		}
	}
	sample, _ := analysis.Add(poll)
	f := analysis.Facts()
	began = a.Clock()
	health := a.Health()(ctx)
	checks := []tuning.Check{a.pageCheck(sample, poll, &f), healthCheck(&health, a.Clock()-began), launchCheck(a, &f), slotsCheck(&f), poolCheck(&f), modelCheck(&f)}
	checks = append(checks, a.gpuChecks(poll.GPU, gpuErr, &f)...)
	return append(checks, priceCheck(&f), a.ceilingCheck(&f)), nil
}

func (a *Server) pageCheck(s *engine.Sample, p *session.Poll, f *engine.Facts) tuning.Check {
	c := tuning.Check{Name: "metrics page", State: tuning.CheckOK}
	if s.Page == nil {
		c.State, c.Found, c.Effect = tuning.CheckBad, s.PageErr, "nothing can be measured"
		return c
	}
	c.Found = fmt.Sprintf("%s: %s %s, model %s, %s in %s", a.Target.Metrics(), f.Dialect().Name, cmp.Or(f.EngineVersion.Value, "of unknown version"),
		cmp.Or(s.Page.Model, "unknown"), figure.Bytes(float64(len(p.Body))), figure.Duration(p.Took))
	if a.Simulated() {
		c.Found += "; SIMULATED: nothing here is hardware"
	}
	if len(s.Page.Notes) > 0 {
		c.State, c.Found = tuning.CheckWarn, c.Found+"; "+strings.Join(s.Page.Notes, "; ")
	}
	return c
}

func launchCheck(a *Server, f *engine.Facts) tuning.Check {
	why, _ := a.missing(launchCommand)
	return found(launchCommand, f.Launch != "", f.Launch, tuning.Check{State: tuning.CheckWarn, Found: cmp.Or(why, "not readable"),
		Effect: engine.WithoutLaunch, Next: "run rooftop on the server's machine as its user, or give -m and --tensor-parallel-size"})
}

// healthCheck returns the check of one health reading, which took the given time.
func healthCheck(h *engine.Health, took time.Duration) tuning.Check {
	c := tuning.Check{Name: HealthCheck, State: tuning.CheckOK}
	what := cmp.Or(h.Why, "/health answers 200")
	switch h.State {
	case engine.HealthFailed:
		c.State, c.Effect = tuning.CheckBad, "the engine is dead: requests fail, and nothing is recommended"
		c.Next = "read the server's log, then restart it"
	case engine.HealthOK:
		if h.Why != "" {
			c.State, c.Next = tuning.CheckWarn, "resume that process, or restart the server"
		}
	default:
		c.State, c.Effect = tuning.CheckAbsent, "a dead engine is noticed only by counters that stop and by failed requests"
		c.Next = "give the address of the server itself, not of a proxy in front of it"
	}
	c.Found = fmt.Sprintf("%s: %s, read in %s", cmp.Or(string(h.State), "unknown"), what, figure.Duration(took))
	return c
}

// found returns a check that is OK with a text if ok is true, else the check lacking.
func found(name string, ok bool, text string, lacking tuning.Check) tuning.Check {
	if ok {
		return tuning.Check{Name: name, State: tuning.CheckOK, Found: text}
	}
	lacking.Name = name
	return lacking
}

func slotsCheck(f *engine.Facts) tuning.Check {
	text := fmt.Sprintf("%d, from %s", f.MaxNumSeqs.Value, f.MaxNumSeqs.Source)
	return found("slots (max_num_seqs)", f.MaxNumSeqs.Known, text, tuning.Check{State: tuning.CheckWarn, Found: f.MaxNumSeqs.Note,
		Effect: "under-batching and concurrency-saturation cannot be judged", Next: "give -m N"})
}

func poolCheck(f *engine.Facts) tuning.Check {
	kv := &f.KVCapacityTokens
	return found("KV pool", kv.Known, fmt.Sprintf("%s tokens a rank, from %s (%s)", figure.Whole(kv.Value), kv.Source, kv.Note), tuning.Check{State: tuning.CheckWarn,
		Found: kv.Note, Effect: "how many sequences the pool holds is unknown", Next: "give --gpu and --model to estimate it"})
}

func modelCheck(f *engine.Facts) tuning.Check {
	c := tuning.Check{Name: "model", State: tuning.CheckOK}
	if !f.ModelKnown {
		return tuning.Check{Name: c.Name, State: tuning.CheckWarn, Found: f.ParamsTotal.Note,
			Effect: "no ceiling, and gains are bounded by measurement alone", Next: "give --model NAME or --model-config FILE"}
	}
	c.Found = fmt.Sprintf("%s, %.3g B parameters, %s weights, %s cache, from %s", f.ModelSpec.ID, f.ModelSpec.TotalParams/1e9,
		f.WeightDType.Value, f.KVCacheDType.Value, f.ModelFrom)
	if f.WeightDType.Source == engine.FromDefault {
		c.State, c.Found = tuning.CheckWarn, c.Found+"; the weights' type is assumed"
	}
	return c
}

func (a *Server) gpuChecks(r *engine.GPUReading, err error, f *engine.Facts) []tuning.Check {
	c := tuning.Check{Name: "GPU", State: tuning.CheckOK}
	switch {
	case a.GPUs == nil:
		c.State, c.Found = tuning.CheckAbsent, a.Header.GPUWhy
		if why, missing := a.missing("GPU"); missing {
			c.Found = why
		}
		c.Effect = "no power, utilization, memory or clocks; R2 relies on KV usage alone"
		if f.Device.Value == "cpu" {
			return []tuning.Check{c}
		}
		c.Next = "run rooftop on the GPU's machine, or give --dcgm-url; --gpu NAME is enough for the ceilings"
		return []tuning.Check{c}
	case err != nil:
		c.State, c.Found, c.Effect = tuning.CheckBad, err.Error(), "no GPU readings"
		return []tuning.Check{c}
	}
	var names []string
	for _, d := range r.Devices {
		names = append(names, fmt.Sprintf("%d %s", d.Index, d.Name))
	}
	c.Found = fmt.Sprintf("%s through %s; %s", strings.Join(names, ", "), a.GPUs.Name(), a.How)
	if !f.GPUKnown {
		c.State, c.Effect, c.Next = tuning.CheckWarn, "no ceiling: "+f.GPUName.Note, "describe it in a --catalog file"
	}
	checks := []tuning.Check{c}
	for _, m := range a.GPUs.Missing() {
		checks = append(checks, tuning.Check{Name: m.What, State: tuning.CheckAbsent, Found: m.Reason, Effect: m.Effect})
	}
	return checks
}

func priceCheck(f *engine.Facts) tuning.Check {
	text := fmt.Sprintf("%s an hour, from %s %s", figure.Dollars(f.CostPerHour.Value), f.CostPerHour.Source, f.CostPerHour.Note)
	return found("price", f.CostPerHour.Known, text,
		tuning.Check{State: tuning.CheckAbsent, Found: f.CostPerHour.Note, Effect: "no cost per token", Next: "give --cost-per-hour"})
}

func (a *Server) ceilingCheck(f *engine.Facts) tuning.Check {
	c := tuning.Check{Name: "ceilings", State: tuning.CheckOK, Found: "the PROFILE and physical ceilings can be computed"}
	if _, missing := engine.ReplicaConfig(f); len(missing) > 0 {
		c.State, c.Found = tuning.CheckAbsent, "missing: "+strings.Join(missing, ", ")
		c.Effect = "how far the server is from its hardware is unknown"
		c.Next = "give --gpu and --model, or describe the device in a --catalog file"
	}
	return c
}
