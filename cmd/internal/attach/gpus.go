package attach

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"strings"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/collect/gpu"
	"github.com/rooftop-dev/rooftop/engine"
)

// dcgmPort is the default port of a DCGM exporter.
const dcgmPort = "9400"

// knownGPU returns a usage error for a --gpu that no catalog has, before any server is
// contacted. It accepts an ambiguous name, because the device's memory may decide it.
func (o *Options) knownGPU() error {
	if o.GPU == "" {
		return nil
	}
	c, _, err := cli.UserCatalog(o.CatalogFile)
	if err != nil {
		return err
	}
	return o.knownIn(c)
}

func (o *Options) knownIn(c *catalog.Catalog) error {
	if _, err := c.FindGPU(o.GPU, 0); o.GPU != "" && errors.Is(err, catalog.ErrUnknown) {
		return cli.Usagef("--gpu: %w", err)
	}
	return nil
}

// OpenGPUs opens a source for the GPUs that the hints show, and records what cannot be
// read, which is a state and no error. It fails only if --dcgm-url is invalid.
func (a *Server) OpenGPUs(ctx context.Context, o *Options, hints collect.GPUHints) error {
	opts := gpu.Options{Clock: a.Clock}
	if a.Client != nil && a.Process == nil && !a.Local() {
		opts.Remote, _ = HostPort(a.Target)
	}
	if a.Workload != nil {
		opts.Remote = "the node of a pod"
	}
	if o.DCGMURL != "" {
		client, err := dcgmClient(o)
		if err != nil {
			return err
		}
		a.release = append(a.release, client.Close)
		opts.DCGM, opts.DCGMURL = gpu.FromClient(client), o.DCGMURL
	}
	source, missing := gpu.Open(ctx, opts)
	a.Header.Missing = append(a.Header.Missing, missing...)
	if source == nil {
		a.Header.GPUWhy = "no GPU is readable"
		return nil
	}
	processes, err := source.Processes(ctx)
	if err != nil && !errors.Is(err, collect.ErrNoData) {
		a.Miss("processes of the GPUs", err.Error(), "other signs decide which GPUs are the server's")
	}
	chosen := gpu.Select(source.Devices(), processes, hints)
	if len(chosen.Positions) == 0 {
		a.Header.GPUWhy = "the server uses no GPU: " + chosen.How
		_ = source.Close()
		return nil
	}
	if err == nil && !chosen.Assumed && !hints.VisibleSet {
		a.Header.Inputs.FreeGPUs = freeGPUs(ctx, source, chosen.Positions, processes)
	}
	source.Keep(chosen.Positions)
	a.GPUs, a.How = source, chosen.How
	a.Header.Inputs.GPUsAssumed = chosen.Assumed
	if chosen.Assumed {
		a.Miss("the server's own GPUs", chosen.How, "GPU readings may include other programs' GPUs")
	}
	return nil
}

// idleMemory is the largest share of a GPU's memory in use while no program uses it: drivers keep a part.
const idleMemory = 0.02

// freeGPUs returns the number of GPUs like the server's that no process uses and whose memory is free, nil if
// they cannot be read. Processes of other containers are not listed, but their memory shows.
func freeGPUs(ctx context.Context, source gpu.Source, own []int, processes map[string][]int) *int {
	reading, err := source.Read(ctx)
	devices := source.Devices()
	if err != nil || len(reading.Devices) != len(devices) {
		return nil
	}
	n := 0
	for i, d := range devices {
		used, total := reading.Devices[i].Fields[engine.GPUVRAMUsed], reading.Devices[i].Fields[engine.GPUVRAMTotal]
		if !slices.Contains(own, i) && !d.MIG() && d.Name == devices[own[0]].Name && len(processes[d.UUID]) == 0 && used.Div(total).Or(1) <= idleMemory {
			n++
		}
	}
	return &n
}

// learnSimulatedGPUs opens a simulated server's devices, which the server itself reports. It
// never uses a driver, because GPUs of this machine are not the server's.
func (a *Server) learnSimulatedGPUs(ctx context.Context, o *Options) error {
	if o.DCGMURL != "" {
		return cli.Usagef("--dcgm-url: the server at %s is simulated, its GPUs are read from it; leave the flag out", a.Target)
	}
	client, err := collect.NewClient(collect.Options{Target: a.Target, CAFile: o.CAFile, UserAgent: "rooftop/" + cli.Version()})
	if err != nil {
		return cli.Usagef("%w", err)
	}
	a.release = append(a.release, client.Close)
	page := a.Target.Base() + simulatedGPUs
	source, missing := gpu.Open(ctx, gpu.Options{
		Clock: a.Clock, Remote: "the simulated server", DCGMURL: page,
		DCGM: func(ctx context.Context) ([]byte, error) {
			return client.Get(ctx, simulatedGPUs, collect.MetricsAccept, nil)
		},
	})
	if ctx.Err() != nil {
		return cli.Interrupted(ctx)
	}
	a.Header.Missing = append(a.Header.Missing, missing...)
	if source == nil {
		a.Header.GPUWhy = "the simulated server's GPUs could not be read"
		return nil
	}
	a.GPUs, a.How = source, "simulated, as "+page+" reports them"
	var state struct {
		Free *int `json:"free_gpus"`
	}
	if body, err := client.Get(ctx, simulatedState, "application/json", nil); err == nil && json.Unmarshal(body, &state) == nil {
		a.Header.Inputs.FreeGPUs = state.Free
	}
	return nil
}

// Paths of a simulated server: its devices, in the format of a DCGM exporter, and its state.
const (
	simulatedGPUs  = "/sim/gpu"
	simulatedState = "/sim/state"
)

// dcgmClient returns a client for a DCGM exporter. It does not send the server's token,
// because the exporter is another service.
func dcgmClient(o *Options) (*collect.Client, error) {
	at := o.DCGMURL
	if !strings.ContainsAny(at, "/:") {
		at = net.JoinHostPort(at, dcgmPort)
	}
	target, err := collect.ParseTarget(at)
	if err != nil {
		return nil, cli.Usagef("--dcgm-url: %w", err)
	}
	client, err := collect.NewClient(collect.Options{Target: target, CAFile: o.CAFile})
	if err != nil {
		return nil, cli.Usagef("--dcgm-url: %w", err)
	}
	return client, nil
}
