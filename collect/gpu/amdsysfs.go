package gpu

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine"
)

// untestedAMD is said of every AMD device.
const untestedAMD = "AMD GPUs are read as their documentation says, and were never tested on hardware"

// AMD's throttler status counts limits of other kinds (PPT, TDC, several thermal
// ones), per architecture; none of them is a bit of NVML's mask.
const untranslatedThrottle = "AMD's reasons for lower clocks are others than NVML's, and are not translated"

const drmClass = "sys/class/drm"

// amdSource reads AMD GPUs from the files of their driver, which takes a few
// microseconds a file.
type amdSource struct {
	choice
	root  fs.FS
	clock func() time.Duration
	cards []amdCard
	ask   func(context.Context, ...string) (string, error) // amd-smi; nil where it is not here
	notes []string

	reading slot[[]amdOutcome]

	// Guarded by mu.
	last  []amdOutcome
	asked []bool
}

// amdOutcome is one read of one card.
type amdOutcome struct {
	gpu     engine.GPU
	why     why
	instant bool   // its power is of an instant
	lost    string // why nothing was read, "" it was
}

// openAMD opens the GPUs that the amdgpu driver shows in the file system under
// root. Where none is there, it has cost the listing of one directory and two
// small files a card. amd-smi is asked once, for the names that the driver does
// not know.
func openAMD(ctx context.Context, clock func() time.Duration, root fs.FS, ask func(context.Context, ...string) (string, error)) (*amdSource, error) {
	s := &amdSource{root: root, clock: clock, ask: ask, reading: newSlot[[]amdOutcome](), notes: []string{untestedAMD}}
	cards, err := amdCards(root)
	if err != nil {
		return nil, err
	}
	version := readText(root, "sys/module/amdgpu/version")
	for i, c := range cards {
		d := c.describe(root, i)
		d.Driver = version
		s.cards, s.devices = append(s.cards, c), append(s.devices, d)
		if mode := readText(root, path.Join(c.dir, "current_compute_partition")); mode != "" && mode != "SPX" {
			s.notes = append(s.notes, fmt.Sprintf("%s is partitioned (%s): readings are of the whole GPU", label(d), mode))
		}
		if d.Integrated {
			s.notes = append(s.notes, label(d)+" is part of a processor: its power includes the CPU cores, and its VRAM is a part of main memory")
		}
	}
	s.keep = kept(nil, len(s.devices))
	s.last = make([]amdOutcome, len(s.devices))
	s.asked = make([]bool, len(s.devices))
	s.learnNames(ctx)
	reading, err := s.Read(ctx)
	switch {
	case slices.ContainsFunc(s.last, func(o amdOutcome) bool { return o.lost == asleep }) && err != nil:
		return nil, errAsleep
	case err != nil:
		return nil, err
	case !slices.ContainsFunc(reading.Devices, tellsSomething):
		return nil, errors.New("the amdgpu driver's files tell neither utilisation nor memory nor power")
	}
	return s, nil
}

// asleep is said of a GPU that is suspended.
const asleep = "the GPU sleeps, and reading would wake it"

var errAsleep = errors.New(asleep)

// tellsSomething reports whether a reading is worth a source.
func tellsSomething(g engine.GPU) bool {
	return g.Fields[engine.GPUUtil].OK || g.Fields[engine.GPUVRAMUsed].OK || g.Fields[engine.GPUPowerW].OK
}

// Naming a card is not worth more of the time in which a source must open:
// amd-smi is a Python program that may take seconds on eight GPUs.
const amdNamesTimeout = 5 * time.Second

// learnNames asks amd-smi for what consumer cards have no file of.
func (s *amdSource) learnNames(ctx context.Context) {
	nameless := func(d Device) bool { return strings.HasPrefix(d.Name, amdNameless) }
	if s.ask == nil || !slices.ContainsFunc(s.devices, nameless) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, amdNamesTimeout)
	defer cancel()
	text, err := s.ask(ctx, "static", "--json")
	if err != nil {
		return
	}
	known, err := parseAMDStatic([]byte(text))
	if err != nil {
		s.notes = append(s.notes, "amd-smi: "+printable(err.Error()))
		return
	}
	for i := range s.devices {
		d := &s.devices[i]
		for _, k := range known {
			if k.device.BusID != d.BusID || d.BusID == "" {
				continue
			}
			if nameless(*d) && k.device.Name != "" {
				d.Name = k.device.Name
			}
			if d.Driver == "" {
				d.Driver = k.device.Driver
			}
		}
	}
}

// Name implements [Source].
func (s *amdSource) Name() string { return "amdgpu" }

// Read implements [Source].
func (s *amdSource) Read(ctx context.Context) (engine.GPUReading, error) {
	began := s.clock()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return engine.GPUReading{}, ErrClosed
	}
	keep := s.keep
	s.mu.Unlock()
	if len(keep) == 0 {
		return engine.GPUReading{}, fmt.Errorf("no GPU is kept: %w", collect.ErrNoData)
	}
	outcomes, err := wait(ctx, s.reading.start(func() ([]amdOutcome, error) {
		outcomes := make([]amdOutcome, len(keep))
		for i, p := range keep {
			outcomes[i] = s.cards[p].read(s.root)
		}
		return outcomes, nil
	}))
	if err != nil {
		return engine.GPUReading{}, fmt.Errorf("read GPUs from the amdgpu driver: %w", err)
	}
	reading := engine.GPUReading{T: s.clock(), Devices: make([]engine.GPU, len(keep))}
	reading.Took = reading.T - began
	var failed error
	s.mu.Lock()
	defer s.mu.Unlock()
	lost := 0
	for i, p := range keep {
		d := &s.devices[p]
		s.last[p], s.asked[p] = outcomes[i], true
		reading.Devices[i] = outcomes[i].gpu
		reading.Devices[i].Index, reading.Devices[i].Name, reading.Devices[i].UUID = d.Index, d.Name, d.UUID
		if outcomes[i].lost != "" {
			lost++
			failed = errors.Join(failed, fmt.Errorf("%s: %s", label(*d), outcomes[i].lost))
		}
	}
	if lost == len(keep) {
		return engine.GPUReading{}, fmt.Errorf("read GPUs from the amdgpu driver: %w", failed)
	}
	return reading, nil
}

// averaging says whether power is of an instant; over what the firmware averages
// utilisation is not documented, so a second is assumed.
func (s *amdSource) averaging() Averaging {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := Averaging{Window: averagingWindow, InstantPower: len(s.keep) > 0}
	for _, p := range s.keep {
		a.InstantPower = a.InstantPower && s.last[p].instant
	}
	return a
}

// Missing implements [Source].
func (s *amdSource) Missing() []engine.Missing {
	s.mu.Lock()
	defer s.mu.Unlock()
	var labels []string
	var reasons []why
	for _, p := range s.keep {
		if s.asked[p] && s.last[p].lost == "" {
			labels = append(labels, label(s.devices[p]))
			reasons = append(reasons, s.last[p].why)
		}
	}
	return gaps(labels, reasons)
}

// Notes implements [Source].
func (s *amdSource) Notes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	notes := slices.Clone(s.notes)
	for _, p := range s.keep {
		if s.last[p].lost != "" {
			notes = append(notes, label(s.devices[p])+": "+s.last[p].lost)
		}
	}
	return notes
}

// Close implements [Source].
func (s *amdSource) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}
