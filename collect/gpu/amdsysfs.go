package gpu

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// untestedAMD is a note of the AMD source.
const untestedAMD = "AMD GPUs are read according to their documentation; this was never tested on hardware"

// untranslatedThrottle is the reason for absent clock-event reasons. AMD's throttler
// status has other limits (PPT, TDC, several thermal ones), which differ by
// architecture and match no bit of NVML's mask.
const untranslatedThrottle = "AMD's reasons for lower clocks differ from NVML's and are not translated"

const drmClass = "sys/class/drm"

// amdSource reads AMD GPUs from the files of their driver, in a few microseconds a file.
type amdSource struct {
	base
	root  fs.FS
	clock func() time.Duration
	cards []amdCard

	running slot[[]amdOutcome]
	instant []bool // power is instantaneous, by position; guarded by mu
}

// amdOutcome is one read of one card.
type amdOutcome struct {
	gpu     engine.GPU
	why     why
	instant bool  // power is instantaneous
	lost    error // why nothing was read, nil if something was
}

// openAMD opens the GPUs that the amdgpu driver shows in the file system under
// root. Without such a GPU it only lists one directory and reads two small files a
// card.
func openAMD(ctx context.Context, clock func() time.Duration, root fs.FS) (*amdSource, error) {
	s := &amdSource{root: root, clock: clock, running: newSlot[[]amdOutcome]()}
	s.notes = []string{untestedAMD}
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
	s.keepAll()
	s.instant = make([]bool, len(s.devices))
	reading, err := s.Read(ctx)
	switch {
	case errors.Is(err, errAsleep):
		return nil, errAsleep
	case err != nil:
		return nil, err
	case !slices.ContainsFunc(reading.Devices, hasReadings):
		return nil, errors.New("the amdgpu driver's files report neither utilization nor memory nor power")
	}
	return s, nil
}

// errAsleep means that a GPU is suspended.
var errAsleep = errors.New("the GPU sleeps, and reading would wake it")

// hasReadings reports whether a device has any of utilization, used memory and power.
func hasReadings(g engine.GPU) bool {
	return g.Fields[engine.GPUUtil].OK || g.Fields[engine.GPUVRAMUsed].OK || g.Fields[engine.GPUPowerW].OK
}

// Name implements [Source].
func (s *amdSource) Name() string { return "amdgpu" }

// Read implements [Source].
func (s *amdSource) Read(ctx context.Context) (engine.GPUReading, error) {
	began := s.clock()
	s.mu.Lock()
	keep, err := s.keep, s.ready()
	s.mu.Unlock()
	if err != nil {
		return engine.GPUReading{}, err
	}
	outcomes, err := wait(ctx, s.running.start(func() ([]amdOutcome, error) {
		outcomes := make([]amdOutcome, len(keep))
		for i, p := range keep {
			outcomes[i] = s.cards[p].read(s.root)
		}
		return outcomes, nil
	}))
	if err != nil {
		return engine.GPUReading{}, fmt.Errorf("read GPUs from the amdgpu driver: %w", err)
	}
	now := s.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	var failed error
	for i, p := range keep {
		out := &outcomes[i]
		s.instant[p], s.last[p] = out.instant, state{gpu: out.gpu, why: out.why, asked: true}
		if out.lost != nil {
			lost := fmt.Errorf("%s: %w", label(s.devices[p]), out.lost)
			s.last[p].note = lost.Error()
			failed = errors.Join(failed, lost)
		}
	}
	reading, ok := s.reading(keep)
	if !ok {
		return engine.GPUReading{}, fmt.Errorf("read GPUs from the amdgpu driver: %w", failed)
	}
	reading.T, reading.Took = now, now-began
	return reading, nil
}

// averaging returns the averaging of the kept devices. AMD does not document the window of
// its utilization, so a second is assumed.
func (s *amdSource) averaging() Averaging {
	s.mu.Lock()
	defer s.mu.Unlock()
	a := Averaging{Window: averagingWindow, InstantPower: len(s.keep) > 0}
	for _, p := range s.keep {
		a.InstantPower = a.InstantPower && s.instant[p]
	}
	return a
}
