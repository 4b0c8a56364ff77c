package gpu

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// Device is what stays the same about one GPU, or about one MIG slice of a GPU.
type Device struct {
	Index     int      // of the GPU in the driver's order (PCI bus order); a slice has its GPU's
	Name      string   // as the driver reports it
	UUID      string   // "GPU-…", or "MIG-…" for a slice
	Parent    string   // UUID of the GPU that a MIG slice belongs to, "" for a whole GPU
	GI, CI    int      // instance ids of a MIG slice, -1 where unknown or not a slice
	VRAMBytes stat.Opt // of the slice where it is one
	BusID     string   // "00000000:0a:00.0", lower case; "" unknown
	Minor     int      // N of /dev/nvidiaN, -1 unknown
	Host      string   // the node, where a page covers several; "" is this machine
	Driver    string   // the driver's version, "" unknown
	Render    int      // N of /dev/dri/renderDN, 0 unknown
	// Integrated says that it is part of a processor and shares main memory.
	Integrated bool
}

// MIG reports whether the device is a slice of a GPU.
func (d Device) MIG() bool { return d.Parent != "" }

// Source reads GPUs. Its methods may be called from several goroutines.
type Source interface {
	// Name says what is read: "NVML", "nvidia-smi", "DCGM exporter", "amdgpu" (the
	// driver's files), "amd-smi".
	Name() string
	// Devices lists every device, in an order that does not change.
	Devices() []Device
	// Keep restricts later reads to the devices at these positions of Devices,
	// in this order; nil is all.
	Keep(positions []int)
	// Read returns one reading of the kept devices, each at its place: what a
	// device could not tell is absent. It fails where no device answered, and
	// returns when ctx ends even where the driver does not.
	Read(ctx context.Context) (engine.GPUReading, error)
	// Processes returns the PIDs that hold each device, by the UUID of the
	// device; they are the host's PIDs, or absent inside a container. It wraps
	// collect.ErrNoData where the source cannot tell.
	Processes(ctx context.Context) (map[string][]int, error)
	// Missing says what the kept devices could not tell so far, why, and what
	// that switches off.
	Missing() []engine.Missing
	// Notes says what a reader must know about the devices: one that is lost,
	// one that is only a slice, a page that is old.
	Notes() []string
	// Close frees what Open took. The source must not be used after it.
	Close() error
}

// ErrClosed is returned by a source that was closed.
var ErrClosed = errors.New("gpu source is closed")

// Options says where GPUs may be read. The zero value and a Clock is this
// machine.
type Options struct {
	// Clock returns the time since the start of the session; readings are
	// stamped with it. It is required.
	Clock func() time.Duration
	// Remote names the server's host where that is not this machine: its GPUs
	// are not the ones that a local driver shows.
	Remote string
	// DCGM, where set, fetches a DCGM exporter's page; DCGMURL names it in
	// messages.
	DCGM    Fetch
	DCGMURL string
	// NodeName picks the rows of one node where the page covers several; it is
	// Remote unless set.
	NodeName string
	// SMIPath is the nvidia-smi to run; "" looks in PATH and the usual places.
	SMIPath string
}

// Opening NVML initialises the GPUs where no process holds them and no
// persistence daemon runs, which takes seconds.
const openTimeout = 15 * time.Second

// A read takes milliseconds, so Close waits for one that is under way; one that
// is stuck is left to the driver.
const closeTimeout = 500 * time.Millisecond

// attempt is one way to read GPUs.
type attempt struct {
	name string
	open func(context.Context) (Source, error)
}

// Open returns the first source that works, of the DCGM exporter where its page
// was given, NVML, nvidia-smi and AMD's; nil where none does. What could not be used is
// listed with what that switches off and the one thing to do.
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

// insteadOf says what it costs that another source is read than the one that
// failed.
func insteadOf(failed, used string) string {
	if failed == "NVML" && used == "nvidia-smi" {
		return "switches off the energy counter, DRAM and tensor-core use, PCIe and NVLink traffic: nvidia-smi is read instead"
	}
	if used == "AMD" {
		return "switches off NVIDIA GPUs, where there are any: AMD's are read instead"
	}
	return "switches off nothing: " + used + " is read instead"
}

// unreadable describes the state in which no GPU can be read.
func unreadable(o Options, failed []attempt, reasons []string) engine.Missing {
	const effect = "switches off GPU utilisation, power, tokens per watt, VRAM, clocks and the power-limit rule; "
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
		m.Effect = effect + "where the server has a GPU, name it with --gpu for the ceilings, or pass --dcgm-url"
	}
	return m
}
