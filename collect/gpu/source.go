package gpu

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Device holds the constant properties of a GPU, or of one MIG slice of a GPU.
type Device struct {
	Index     int      // of the GPU in the driver's order (PCI bus order); a slice has its GPU's
	Name      string   // as the driver reports it
	UUID      string   // "GPU-…", or "MIG-…" for a slice
	Parent    string   // UUID of the GPU that a MIG slice belongs to, "" for a whole GPU
	GI        int      // GPU instance id of a MIG slice, -1 if unknown or not a slice
	VRAMBytes stat.Opt // of the slice if the device is one
	BusID     string   // "00000000:0a:00.0", lower case; "" if unknown
	Minor     int      // N of /dev/nvidiaN, -1 if unknown
	Host      string   // the node if a page covers several; "" is this machine
	Driver    string   // the driver's version, "" if unknown
	Render    int      // N of /dev/dri/renderDN, 0 if unknown
	// Integrated is true if the GPU is part of a processor and shares main memory.
	Integrated bool
}

// MIG reports whether the device is a slice of a GPU.
func (d Device) MIG() bool { return d.Parent != "" }

// Source reads GPUs. Its methods may be called concurrently.
type Source interface {
	// Name returns the interface that is read: "NVML", "nvidia-smi", "DCGM exporter"
	// or "amdgpu" (the driver's files).
	Name() string
	// Devices lists every device, in an order that does not change.
	Devices() []Device
	// Keep restricts later reads to the devices at these positions of Devices,
	// in this order; nil is all.
	Keep(positions []int)
	// Read returns one reading of the kept devices, each at its place. Values that a
	// device does not report are absent. Read fails if no device answered, and returns
	// when ctx ends even if the driver is stuck.
	Read(ctx context.Context) (engine.GPUReading, error)
	// Processes returns the PIDs that use each device, by device UUID; they are the host's
	// PIDs, or absent inside a container. The error wraps collect.ErrNoData if the source
	// cannot list processes.
	Processes(ctx context.Context) (map[string][]int, error)
	// Missing lists what the kept devices have not reported so far, why, and what that
	// switches off.
	Missing() []engine.Missing
	// Notes lists facts about the devices that a user must know: a lost device, a MIG
	// slice, an outdated page.
	Notes() []string
	// Close releases the source, which must not be used afterwards.
	Close() error
}

// ErrClosed is returned by methods of a closed source.
var ErrClosed = errors.New("gpu source is closed")

// Options says where GPUs may be read. The zero value reads this machine.
type Options struct {
	// Clock returns the time since the start of the session, the time stamp of readings.
	// nil counts from the call of Open.
	Clock func() time.Duration
	// Remote is the server's host if that is not this machine, whose local drivers then
	// do not count. It selects the rows of a DCGM exporter's page with several nodes.
	Remote string
	// DCGM fetches a DCGM exporter's page, nil if there is none; DCGMURL is its name in
	// messages.
	DCGM    Fetch
	DCGMURL string
	// SMIPath is the nvidia-smi to run; "" searches PATH and the usual places.
	SMIPath string
}

// openTimeout limits the opening of a source. NVML initialises GPUs that no process uses
// if no persistence daemon runs, which takes seconds.
const openTimeout = 15 * time.Second

// closeTimeout is how long Close waits for a running read. A read takes milliseconds;
// Close abandons a longer one.
const closeTimeout = 500 * time.Millisecond

// attempt is one way to read GPUs.
type attempt struct {
	name string
	open func(context.Context) (Source, error)
}

// Open returns the first source that works, in the order DCGM exporter (if its page was
// given), NVML, nvidia-smi, AMD; nil if none does. It lists the sources that failed,
// with what that switches off and the step to take.
func Open(ctx context.Context, o Options) (Source, []engine.Missing) {
	if o.Clock == nil {
		start := time.Now()
		o.Clock = func() time.Duration { return time.Since(start) }
	}
	return open(ctx, o, []attempt{
		{"NVML", func(ctx context.Context) (Source, error) { return openLocalNVML(ctx, o.Clock) }},
		{"nvidia-smi", func(ctx context.Context) (Source, error) { return openLocalSMI(ctx, o) }},
		{"AMD", func(ctx context.Context) (Source, error) { return openLocalAMD(ctx, o.Clock) }},
	})
}

func open(ctx context.Context, o Options, local []attempt) (Source, []engine.Missing) {
	var failed []attempt
	var reasons []string
	var missing []engine.Missing
	attempts := local
	if o.Remote != "" {
		attempts = nil
	}
	if o.DCGM != nil {
		dcgm := attempt{"DCGM exporter", func(ctx context.Context) (Source, error) { return openDCGM(ctx, o) }}
		attempts = append([]attempt{dcgm}, attempts...)
	}
	for _, a := range attempts {
		ctx, cancel := context.WithTimeout(ctx, openTimeout)
		source, err := a.open(ctx)
		cancel()
		if err == nil {
			for i, f := range failed {
				missing = append(missing, engine.Missing{What: f.name, Reason: reasons[i], Effect: insteadOf(f.name, a.name)})
			}
			return source, missing
		}
		failed = append(failed, a)
		reasons = append(reasons, err.Error())
	}
	return nil, []engine.Missing{unreadable(o, failed, reasons)}
}

// insteadOf returns the effect of reading the source used instead of the one that failed.
func insteadOf(failed, used string) string {
	if failed == "NVML" && used == "nvidia-smi" {
		return "switches off the energy counter, DRAM and tensor-core use, PCIe and NVLink traffic; nvidia-smi is read instead"
	}
	if used == "AMD" {
		return "switches off NVIDIA GPUs, if there are any; AMD's are read instead"
	}
	return "switches off nothing: " + used + " is read instead"
}

// unreadable returns the Missing for the case that no GPU can be read.
func unreadable(o Options, failed []attempt, reasons []string) engine.Missing {
	const effect = "switches off GPU utilization, power, tokens per watt, VRAM, clocks and the power-limit rule; "
	var why []string
	for i, f := range failed {
		why = append(why, f.name+": "+reasons[i])
	}
	m := engine.Missing{What: "GPU", Reason: strings.Join(why, "; ")}
	switch {
	case o.Remote != "" && o.DCGM == nil:
		m.Reason = "the server runs on " + o.Remote + ", and this machine's GPUs are not its own"
		m.Effect = effect + "pass --dcgm-url with the page of that node's DCGM exporter, or run rooftop there; name the GPU with --gpu for the ceilings"
	case o.Remote != "":
		m.Effect = effect + "check --dcgm-url, or run rooftop on " + o.Remote + "; name the GPU with --gpu for the ceilings"
	default:
		m.Effect = effect + "if the server has a GPU, name it with --gpu for the ceilings, or pass --dcgm-url"
	}
	return m
}
