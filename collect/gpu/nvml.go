//go:build linux && cgo

package gpu

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine"
)

// nvmlSource reads devices through NVML, each in a slot of its own.
type nvmlSource struct {
	choice
	lib     library
	clock   func() time.Duration
	units   []*unit
	listing slot[map[string][]int]
	notes   []string // of the start

	questions *[numProbes]question

	// Guarded by mu.
	turns  int           // of PCIe, so far
	turnAt time.Duration // when the next is due
	last   []answered    // of each unit, by position
}

// answered is what a unit's last read left to say.
type answered struct {
	asked bool
	why   why
	note  string
}

func newNVMLSource(lib library, clock func() time.Duration) (*nvmlSource, error) {
	s := &nvmlSource{lib: lib, clock: clock, listing: newSlot[map[string][]int](), questions: questions()}
	if err := s.enumerate(); err != nil {
		lib.Shutdown()
		return nil, err
	}
	s.keep = kept(nil, len(s.devices))
	s.last = make([]answered, len(s.devices))
	return s, nil
}

// Name implements [Source].
func (s *nvmlSource) Name() string { return "NVML" }

// Read implements [Source]. The kept devices are read side by side; one that
// does not answer keeps its place, without values.
func (s *nvmlSource) Read(ctx context.Context) (engine.GPUReading, error) {
	began := s.clock()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return engine.GPUReading{}, ErrClosed
	}
	keep, turn := s.keep, s.turn(began)
	running := make([]<-chan answer[outcome], len(keep))
	for i, p := range keep {
		u := s.units[p]
		pcie := pcieNone
		if turn >= 0 {
			pcie = turnOf(turn, i, len(keep))
		}
		running[i] = u.slot.start(func() (outcome, error) { return u.read(pcie), nil })
	}
	s.mu.Unlock()

	reading := engine.GPUReading{Devices: make([]engine.GPU, len(keep))}
	said := make([]answered, len(keep))
	var failed error
	silent := 0
	for i, p := range keep {
		d := &s.devices[p]
		out, err := wait(ctx, running[i])
		if err == nil && out.lost != nvml.SUCCESS {
			err = errors.New(reasonText(out.lost))
		}
		said[i] = answered{asked: true, why: out.why}
		reading.Devices[i] = out.gpu
		reading.Devices[i].Index, reading.Devices[i].Name, reading.Devices[i].UUID = d.Index, d.Name, d.UUID
		if err != nil {
			silent++
			said[i].note = label(*d) + ": " + err.Error()
			failed = errors.Join(failed, fmt.Errorf("%s: %w", label(*d), err))
		}
	}
	reading.T = s.clock()
	reading.Took = reading.T - began

	s.mu.Lock()
	for i, p := range keep {
		s.last[p] = said[i]
	}
	s.mu.Unlock()
	if silent == len(keep) {
		if len(keep) == 0 {
			return engine.GPUReading{}, fmt.Errorf("no GPU is kept: %w", collect.ErrNoData)
		}
		return engine.GPUReading{}, fmt.Errorf("read GPUs through NVML: %w", failed)
	}
	return reading, nil
}

// turn is the turn of PCIe that a read has; -1 while none is due. The caller
// holds the mutex.
func (s *nvmlSource) turn(now time.Duration) int {
	if now < s.turnAt {
		return -1
	}
	// A tick that comes a little early is no reason to wait for the next.
	s.turnAt = now + pciePeriod*9/10
	s.turns++
	return s.turns - 1
}

// Processes implements [Source].
func (s *nvmlSource) Processes(ctx context.Context) (map[string][]int, error) {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil, ErrClosed
	}
	listing := s.listing.start(s.processes)
	s.mu.Unlock()
	held, err := wait(ctx, listing)
	if err != nil {
		return nil, fmt.Errorf("list the processes on the GPUs: %w", err)
	}
	return held, nil
}

func (s *nvmlSource) processes() (map[string][]int, error) {
	held := map[string][]int{}
	var refused nvml.Return
	for i, u := range s.units {
		pids, ret := u.processes()
		if ret != nvml.SUCCESS {
			refused = ret
			continue
		}
		held[s.devices[i].UUID] = pids
	}
	if len(held) == 0 {
		return nil, fmt.Errorf("%s: %w", reasonText(refused), collect.ErrNoData)
	}
	return held, nil
}

// Missing implements [Source].
func (s *nvmlSource) Missing() []engine.Missing {
	s.mu.Lock()
	defer s.mu.Unlock()
	var labels []string
	var reasons []why
	for _, p := range s.keep {
		if s.last[p].asked && s.last[p].note == "" {
			labels = append(labels, label(s.devices[p]))
			reasons = append(reasons, s.last[p].why)
		}
	}
	return gaps(labels, reasons)
}

// Notes implements [Source].
func (s *nvmlSource) Notes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	notes := slices.Clone(s.notes)
	for _, p := range s.keep {
		if s.last[p].note != "" {
			notes = append(notes, s.last[p].note)
		}
	}
	return notes
}

// Close implements [Source].
func (s *nvmlSource) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()

	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	free := s.listing.seize(timer.C)
	for _, u := range s.units {
		free = free && u.slot.seize(timer.C)
	}
	if !free {
		return fmt.Errorf("close NVML: %w", errStillReading)
	}
	for _, u := range s.units {
		u.gpm.free()
	}
	if ret := s.lib.Shutdown(); ret != nvml.SUCCESS {
		return fmt.Errorf("close NVML: %s", reasonText(ret))
	}
	return nil
}
