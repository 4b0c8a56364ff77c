package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rooftop-dev/rooftop/cmd/internal/report"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/collect/ggml"
	"github.com/rooftop-dev/rooftop/engine"
)

func newDoctor(w *world) *cobra.Command {
	var o options
	c := &cobra.Command{
		Use:   "doctor",
		Short: "What can be read here, what a gap switches off, and what to do",
		Long: `Tries everything that rooftop reads, once, and judges each of its two purposes
by itself: tuning, diagnosing and probing a server (the metrics page, the
launch, the model's shape, the GPUs, the price), and tracing a GGML runtime
(what the kernel and the user allow, step by step). For each step it says what
was found or why not, what the gap switches off, and the one thing to do.

EXIT CODES
  0  one of the two can be done, and a server that was named was reached
  1  any other error
  2  the command line is off
  5  the server that was named or found is unreachable or has no vLLM metrics
     page; or there is no server, and no runtime can be traced either`,
		Example: "  rooftop doctor\n  rooftop doctor --url http://gpu-7:8000 --gpu L40S\n  rooftop doctor --json | jq '.checks[] | select(.state == \"bad\")'",
		Args:    noArgs,
		RunE:    func(c *cobra.Command, _ []string) error { return doctor(c.Context(), w, &o) },
	}
	o.env = w.env
	g := groupFlags(c)
	o.registerServer(g)
	o.registerUnread(g)
	o.output.register(g, "the gaps that matter little")
	g.done()
	return c
}

func doctor(ctx context.Context, w *world, o *options) error {
	if err := o.check(); err != nil {
		return err
	}
	if err := o.knownGPU(); err != nil {
		return err
	}
	target, process, err := findTarget(o)
	if err != nil {
		return err
	}
	tracing, steps := traceChecks(ggml.Ladder())
	server, err := attachTo(ctx, o, target, process, stopwatch())
	var coded *codedError
	if errors.As(err, &coded) && coded.code == exitUnreachable {
		meant := o.url != "" || process != nil
		page, check := unserved(coded.err, meant)
		list := []report.Purpose{page, tracing}
		if tracing.Can && !meant {
			slices.Reverse(list)
		}
		if err := writeDoctor(w, o, report.Doctor{Purposes: list, Checks: append([]report.Check{check}, steps...)}); err != nil {
			return err
		}
		if tracing.Can && !meant {
			return nil
		}
		return exit(exitUnreachable)
	}
	if err != nil {
		return err
	}
	defer server.close()
	checks, err := server.examine(ctx)
	if err != nil {
		return fail(exitError, err)
	}
	if o.verbose {
		checks = append(checks, server.unread(checks)...)
	}
	for i := range checks {
		checks[i].For = serverPurpose
	}
	page := report.Purpose{
		ID: serverPurpose, Commands: serverCommands, Can: checks[0].State != report.CheckBad,
		Found: "A vLLM answers at " + target.Metrics() + ".", Next: "rooftop diagnose --url " + target.Metrics(),
	}
	if !page.Can {
		page.Found, page.Next = checks[0].Found, ""
	}
	return writeDoctor(w, o, report.Doctor{Purposes: []report.Purpose{page, tracing}, Checks: append(checks, steps...)})
}

// What rooftop is wanted for.
const (
	serverPurpose  = "server"
	serverCommands = "tune, diagnose and probe a server"
	tracePurpose   = "trace"
	traceCommands  = "trace a GGML runtime"
)

// unserved is the answer where no vLLM could be read. That nobody named a server and none
// was found is nothing wrong with the machine.
func unserved(why error, meant bool) (report.Purpose, report.Check) {
	p := report.Purpose{ID: serverPurpose, Commands: serverCommands, Found: "No vLLM can be read."}
	c := report.Check{
		For: serverPurpose, Name: "metrics page", State: report.CheckBad, Found: why.Error(),
		Effect: "nothing can be measured", Next: "start the server, or say where it is with --url; 'rooftop probe' takes any server with the OpenAI API",
	}
	if !meant {
		p.Found = "No vLLM was found on this machine, and none was named with --url."
		c.State, c.Effect = report.CheckAbsent, "tune, diagnose and probe have nothing to look at"
	}
	return p, c
}

// traceChecks are the steps to a trace of a GGML runtime on this machine, whatever server
// was looked at, and whether they lead there.
func traceChecks(ladder []ggml.Rung) (report.Purpose, []report.Check) {
	p := report.Purpose{ID: tracePurpose, Commands: traceCommands, Can: true, Found: "All that it needs is there.", Next: "rooftop trace"}
	var list []report.Check
	for _, r := range ladder {
		c := report.Check{For: tracePurpose, Name: "trace: " + r.Name, State: report.CheckOK, Found: r.Found, Effect: r.Missing, Next: r.Next}
		switch {
		case r.OK:
		case r.Needed:
			c.State = report.CheckBad
			if p.Can { // the ladder's order is that in which a person gets over it
				p.Can, p.Found, p.Next = false, "First missing: "+r.Name+" ("+r.Found+").", r.Next
			}
		default:
			c.State = report.CheckAbsent
		}
		list = append(list, c)
	}
	return p, list
}

// writeDoctor prints what was found as asked for.
func writeDoctor(w *world, o *options, d report.Doctor) error {
	show := func() error { return report.WriteDoctor(w.stdout, d, o.style(w)) }
	if o.json {
		show = func() error { return report.WriteDoctorJSON(w.stdout, d) }
	}
	if err := show(); err != nil {
		return fail(exitError, err)
	}
	return nil
}

// unread are the gaps that no check of its own has told.
func (a *attached) unread(told []report.Check) []report.Check {
	var list []report.Check
	for _, m := range a.header.Missing {
		said := func(c report.Check) bool { return c.Name == m.What || c.Found == m.Reason }
		if !slices.ContainsFunc(told, said) {
			list = append(list, report.Check{Name: m.What, State: report.CheckAbsent, Found: m.Reason, Effect: m.Effect})
		}
	}
	return list
}

// examine polls once and says what was found.
func (a *attached) examine(ctx context.Context) ([]report.Check, error) {
	analysis, err := session.NewAnalysis(a.header)
	if err != nil {
		return nil, err
	}
	poll := &session.Poll{}
	began := a.clock()
	body, err := a.pages.Page(ctx, nil)
	poll.Took = a.clock() - began
	if err != nil {
		return nil, err
	}
	poll.Body = string(body)
	var gpuErr error
	if a.gpus != nil {
		reading, err := a.gpus.Read(ctx)
		if gpuErr = err; err == nil {
			poll.GPU = &reading
		}
	}
	sample, _ := analysis.Add(poll)
	f := analysis.Facts()
	checks := []report.Check{a.pageCheck(sample, poll, &f), launchCheck(a, &f), seatsCheck(&f), poolCheck(&f), modelCheck(&f)}
	checks = append(checks, a.gpuChecks(poll.GPU, gpuErr, &f)...)
	return append(checks, priceCheck(&f), a.ceilingCheck(&f)), nil
}

func (a *attached) pageCheck(s *engine.Sample, p *session.Poll, f *engine.Facts) report.Check {
	c := report.Check{Name: "metrics page", State: report.CheckOK}
	if s.Page == nil {
		c.State, c.Found, c.Effect = report.CheckBad, s.PageErr, "nothing can be measured"
		return c
	}
	c.Found = fmt.Sprintf("%s: vLLM %s, model %s, %d KB in %.1f ms", a.target.Metrics(), or(f.EngineVersion.Value, "of unknown version"),
		or(s.Page.Model, "unknown"), len(p.Body)>>10, float64(p.Took.Microseconds())/1000)
	if a.simulated() {
		c.Found += "; SIMULATED: nothing here is hardware"
	}
	if len(s.Page.Notes) > 0 {
		c.State, c.Found = report.CheckWarn, c.Found+"; "+strings.Join(s.Page.Notes, "; ")
	}
	return c
}

func launchCheck(a *attached, f *engine.Facts) report.Check {
	c := report.Check{Name: "launch command", State: report.CheckOK, Found: f.Launch}
	if f.Launch == "" {
		c.State = report.CheckWarn
		c.Found = "not readable"
		for _, m := range a.header.Missing {
			if m.What == "launch command" {
				c.Found = m.Reason
			}
		}
		c.Effect = "flags come from the page, from rooftop's own flags, or are vLLM's defaults"
		c.Next = "run rooftop on the server's machine as its user, or give -m and --tensor-parallel-size"
	}
	return c
}

func seatsCheck(f *engine.Facts) report.Check {
	c := report.Check{Name: "seats (max_num_seqs)", State: report.CheckOK}
	if !f.MaxNumSeqs.Known {
		return report.Check{Name: c.Name, State: report.CheckWarn, Found: f.MaxNumSeqs.Note,
			Effect: "under-batching and seat-saturation cannot be judged", Next: "give -m N"}
	}
	c.Found = fmt.Sprintf("%d, from %s", f.MaxNumSeqs.Value, f.MaxNumSeqs.Source)
	return c
}

func poolCheck(f *engine.Facts) report.Check {
	c := report.Check{Name: "KV pool", State: report.CheckOK}
	if !f.KVCapacityTokens.Known {
		return report.Check{Name: c.Name, State: report.CheckWarn, Found: f.KVCapacityTokens.Note,
			Effect: "how many sequences the pool holds is unknown", Next: "give --gpu and --model, so that it can be estimated"}
	}
	c.Found = fmt.Sprintf("%.0f tokens a rank, from %s (%s)", f.KVCapacityTokens.Value, f.KVCapacityTokens.Source, f.KVCapacityTokens.Note)
	return c
}

func modelCheck(f *engine.Facts) report.Check {
	c := report.Check{Name: "model", State: report.CheckOK}
	if !f.ModelKnown {
		return report.Check{Name: c.Name, State: report.CheckWarn, Found: f.ParamsTotal.Note,
			Effect: "no ceiling, and gains are bounded by measurement alone", Next: "give --model NAME or --model-config FILE"}
	}
	c.Found = fmt.Sprintf("%s, %.3g B parameters, %s weights, %s cache, from %s", f.ModelSpec.ID, f.ModelSpec.TotalParams/1e9,
		f.WeightDType.Value, f.KVCacheDType.Value, f.ModelFrom)
	if f.WeightDType.Source == engine.FromDefault {
		c.State, c.Found = report.CheckWarn, c.Found+"; the weights' type is assumed"
	}
	return c
}

func (a *attached) gpuChecks(r *engine.GPUReading, err error, f *engine.Facts) []report.Check {
	c := report.Check{Name: "GPU", State: report.CheckOK}
	switch {
	case a.gpus == nil:
		c.State, c.Found = report.CheckAbsent, a.header.GPUWhy
		for _, m := range a.header.Missing {
			if m.What == "GPU" {
				c.Found = m.Reason
			}
		}
		c.Effect = "no power, utilisation, memory or clocks; R2 goes by KV usage alone"
		if f.Device.Value == "cpu" {
			return []report.Check{c}
		}
		c.Next = "run rooftop on the GPU's machine, or give --dcgm-url; --gpu NAME is enough for the ceilings"
		return []report.Check{c}
	case err != nil:
		c.State, c.Found, c.Effect = report.CheckBad, err.Error(), "no GPU readings"
		return []report.Check{c}
	}
	var names []string
	for _, d := range r.Devices {
		names = append(names, fmt.Sprintf("%d %s", d.Index, d.Name))
	}
	c.Found = fmt.Sprintf("%s through %s; %s", strings.Join(names, ", "), a.gpus.Name(), a.how)
	if !f.GPUKnown {
		c.State, c.Effect, c.Next = report.CheckWarn, "no ceiling: "+f.GPUName.Note, "describe it in a --catalog file"
	}
	checks := []report.Check{c}
	for _, m := range a.gpus.Missing() {
		checks = append(checks, report.Check{Name: m.What, State: report.CheckAbsent, Found: m.Reason, Effect: m.Effect})
	}
	return checks
}

func priceCheck(f *engine.Facts) report.Check {
	c := report.Check{Name: "price", State: report.CheckOK}
	if !f.CostPerHour.Known {
		return report.Check{Name: c.Name, State: report.CheckAbsent, Found: f.CostPerHour.Note, Effect: "no cost per token", Next: "give --cost-per-hour"}
	}
	c.Found = fmt.Sprintf("$%.2f an hour, from %s %s", f.CostPerHour.Value, f.CostPerHour.Source, f.CostPerHour.Note)
	return c
}

func (a *attached) ceilingCheck(f *engine.Facts) report.Check {
	c := report.Check{Name: "ceilings", State: report.CheckOK, Found: "classic and physical can be computed"}
	if _, missing := engine.ReplicaConfig(f); len(missing) > 0 {
		c.State, c.Found = report.CheckAbsent, "missing: "+strings.Join(missing, ", ")
		c.Effect = "how far the server is from its hardware is unknown"
		c.Next = "give --gpu and --model, or describe the device in a --catalog file"
	}
	return c
}

func or(text, fallback string) string {
	if text == "" {
		return fallback
	}
	return text
}
