package main

import (
	"context"
	"errors"
	"net"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/gpu"
)

// dcgmPort is where a DCGM exporter listens unless told otherwise.
const dcgmPort = "9400"

// knownGPU refuses a --gpu that no catalog has, before anything is contacted. An
// ambiguous name may still be decided by the device's memory.
func (o *options) knownGPU() error {
	if o.gpu == "" {
		return nil
	}
	c, _, err := userCatalog(o.catalogFile)
	if err != nil {
		return err
	}
	if _, err := c.FindGPU(o.gpu, 0); errors.Is(err, catalog.ErrUnknown) {
		return usage("--gpu: %w", err)
	}
	return nil
}

// learnGPUs opens whatever can read the server's GPUs and keeps those that are
// the server's. None readable is a state, not an error.
func (a *attached) learnGPUs(ctx context.Context, o *options) error {
	var holder gpu.Holder
	if a.process != nil {
		holder = gpu.Holder(a.process.GPUHints())
	}
	return a.openGPUs(ctx, o, holder)
}

// openGPUs keeps the devices of whoever holds them.
func (a *attached) openGPUs(ctx context.Context, o *options, holder gpu.Holder) error {
	opts := gpu.Options{Clock: a.clock}
	if a.client != nil && a.process == nil && !a.local() {
		opts.Remote, _ = splitHostPort(a.target)
	}
	if o.dcgmURL != "" {
		client, err := dcgmClient(o)
		if err != nil {
			return err
		}
		a.release = append(a.release, client.Close)
		opts.DCGM, opts.DCGMURL = gpu.FromClient(client), o.dcgmURL
	}
	source, missing := gpu.Open(ctx, opts)
	a.header.Missing = append(a.header.Missing, missing...)
	if source == nil {
		a.header.GPUWhy = "no GPU is readable"
		return nil
	}
	processes, err := source.Processes(ctx)
	if err != nil && !errors.Is(err, collect.ErrNoData) {
		a.miss("processes of the GPUs", err.Error(), "which GPUs are the server's is told by other signs")
	}
	chosen := gpu.Select(source.Devices(), processes, holder)
	if len(chosen.Positions) == 0 {
		a.header.GPUWhy = "the server uses no GPU: " + chosen.How
		_ = source.Close()
		return nil
	}
	source.Keep(chosen.Positions)
	a.gpus, a.how = source, chosen.How
	a.header.Inputs.GPUsAssumed = chosen.Assumed
	if chosen.Assumed {
		a.miss("the server's own GPUs", chosen.How, "GPU readings may include other programs' GPUs")
	}
	return nil
}

// learnSimulatedGPUs reads a simulated server's devices from the server itself,
// never from a driver: whatever GPUs this machine has are not its own.
func (a *attached) learnSimulatedGPUs(ctx context.Context, o *options) error {
	if o.dcgmURL != "" {
		return usage("--dcgm-url: the server at %s is simulated, its GPUs are read from it; leave the flag out", a.target)
	}
	client, err := collect.NewClient(collect.Options{Target: a.target, CAFile: o.caFile, UserAgent: "rooftop/" + buildVersion()})
	if err != nil {
		return usage("%w", err)
	}
	a.release = append(a.release, client.Close)
	page := a.target.Base() + simulatedGPUs
	source, missing := gpu.Open(ctx, gpu.Options{
		Clock: a.clock, Remote: "the simulated server", DCGMURL: page,
		DCGM: func(ctx context.Context) ([]byte, error) {
			return client.Get(ctx, simulatedGPUs, collect.MetricsAccept, nil)
		},
	})
	if ctx.Err() != nil {
		return interrupted(ctx)
	}
	a.header.Missing = append(a.header.Missing, missing...)
	if source == nil {
		a.header.GPUWhy = "the simulated server's GPUs could not be read"
		return nil
	}
	a.gpus, a.how = source, "simulated, as "+page+" tells them"
	return nil
}

// simulatedGPUs is where a simulated server shows its devices, as a DCGM
// exporter would.
const simulatedGPUs = "/sim/gpu"

// dcgmClient fetches a DCGM exporter's page: it is another address that the
// person gave. The server's token is not for it.
func dcgmClient(o *options) (*collect.Client, error) {
	at := o.dcgmURL
	if !strings.ContainsAny(at, "/:") {
		at = net.JoinHostPort(at, dcgmPort)
	}
	target, err := collect.ParseTarget(at)
	if err != nil {
		return nil, usage("--dcgm-url: %w", err)
	}
	client, err := collect.NewClient(collect.Options{Target: target, CAFile: o.caFile})
	if err != nil {
		return nil, usage("--dcgm-url: %w", err)
	}
	return client, nil
}
