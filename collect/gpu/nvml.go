//go:build linux && cgo

package gpu

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine"
)

// nvmlSource reads devices through NVML, with a slot for each device.
type nvmlSource struct {
	base
	lib     library
	clock   func() time.Duration
	units   []*unit
	listing slot[map[string][]int]
}

func newNVMLSource(lib library, clock func() time.Duration) (*nvmlSource, error) {
	s := &nvmlSource{lib: lib, clock: clock, listing: newSlot[map[string][]int]()}
	if err := s.enumerate(); err != nil {
		lib.Shutdown()
		return nil, err
	}
	s.keepAll()
	return s, nil
}

// Name implements [Source].
func (s *nvmlSource) Name() string { return "NVML" }

// Read implements [Source]. It reads the kept devices concurrently; a device that does
// not answer keeps its place, without values.
func (s *nvmlSource) Read(ctx context.Context) (engine.GPUReading, error) {
	began := s.clock()
	s.mu.Lock()
	if err := s.ready(); err != nil {
		s.mu.Unlock()
		return engine.GPUReading{}, err
	}
	keep := s.keep
	running := make([]<-chan answer[outcome], len(keep))
	for i, p := range keep {
		u := s.units[p]
		running[i] = u.slot.start(func() (outcome, error) { return u.read(), nil })
	}
	s.mu.Unlock()

	states := make([]state, len(keep))
	var failed error
	for i, p := range keep {
		out, err := wait(ctx, running[i])
		if err == nil && out.lost != nvml.SUCCESS {
			err = errors.New(reasonText(out.lost))
		}
		states[i] = state{gpu: out.gpu, why: out.why, asked: true}
		if err != nil {
			lost := fmt.Errorf("%s: %w", label(s.devices[p]), err)
			states[i].note = lost.Error()
			failed = errors.Join(failed, lost)
		}
	}
	now := s.clock()
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, p := range keep {
		s.last[p] = states[i]
	}
	reading, ok := s.reading(keep)
	if !ok {
		return engine.GPUReading{}, fmt.Errorf("read GPUs through NVML: %w", failed)
	}
	reading.T, reading.Took = now, now-began
	return reading, nil
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
