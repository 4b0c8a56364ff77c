package gpu

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine"
)

const (
	// amd-smi is a Python program that takes hundreds of milliseconds to start: a
	// reading serves this long, whatever the cadence.
	amdSMIPeriod = 2 * time.Second
	// A reading older than this is none any more: amd-smi is stuck.
	amdSMIStale = 10 * time.Second
)

// amdSMISource reads AMD GPUs by running amd-smi, where the driver's files cannot
// be read.
type amdSMISource struct {
	choice
	ask     func(context.Context, ...string) (string, error)
	clock   func() time.Duration
	numbers []int // amd-smi's own, by position
	limits  []engine.GPU
	notes   []string
	metric  func() (string, error) // runs amd-smi, which ends with the source
	running slot[struct{}]
	stop    context.CancelFunc

	// Guarded by mu.
	rows    []amdRow // of the last answer
	at      time.Duration
	failed  error         // of the last run
	done    chan struct{} // closed when the last run has ended; nil before the first
	started time.Duration // of the last run
}

// openAMDSMI lists the GPUs that amd-smi shows.
func openAMDSMI(ctx context.Context, clock func() time.Duration, ask func(context.Context, ...string) (string, error)) (*amdSMISource, error) {
	text, err := ask(ctx, "static", "--json")
	if err != nil {
		return nil, err
	}
	known, err := parseAMDStatic([]byte(text))
	if err != nil {
		return nil, err
	}
	s := &amdSMISource{ask: ask, clock: clock, running: newSlot[struct{}](), notes: []string{untestedAMD}}
	for _, k := range known {
		if k.partition > 0 {
			s.notes = append(s.notes, fmt.Sprintf("GPU %d is partition %d of a GPU and has no readings of its own", k.number, k.partition))
			continue
		}
		s.devices = append(s.devices, k.device)
		s.numbers = append(s.numbers, k.number)
		s.limits = append(s.limits, k.gpu)
	}
	if len(s.devices) == 0 {
		return nil, errors.New("amd-smi lists no GPU with readings of its own")
	}
	s.keep = kept(nil, len(s.devices))
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	s.metric = func() (string, error) { return ask(life, "metric", "--json") }
	return s, nil
}

// asking runs a program to its end and returns what it printed.
func asking(start starter) func(context.Context, ...string) (string, error) {
	return func(ctx context.Context, args ...string) (string, error) {
		c, err := start(ctx, args...)
		if err != nil {
			return "", err
		}
		text, err := io.ReadAll(io.LimitReader(c.out, smiMaxAnswer))
		return string(text), errors.Join(err, c.wait())
	}
}

// Name implements [Source].
func (s *amdSMISource) Name() string { return "amd-smi" }

// Read implements [Source]: the last answer, stamped with its own time. A new one
// is asked for when that is old, and only the first is waited for.
func (s *amdSMISource) Read(ctx context.Context) (engine.GPUReading, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return engine.GPUReading{}, ErrClosed
	case len(s.keep) == 0:
		return engine.GPUReading{}, fmt.Errorf("no GPU is kept: %w", collect.ErrNoData)
	}
	s.refresh()
	if done := s.done; s.rows == nil && done != nil {
		s.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
		}
		s.mu.Lock()
	}
	if s.rows == nil || s.clock()-s.at > amdSMIStale {
		err := s.failed
		if err == nil {
			err = errStillReading
		}
		return engine.GPUReading{}, fmt.Errorf("read GPUs through amd-smi: %w", err)
	}
	return s.reading()
}

// refresh runs amd-smi where the last run is old and has ended. The caller holds the
// mutex.
func (s *amdSMISource) refresh() {
	if s.done != nil {
		if s.clock()-s.started < amdSMIPeriod {
			return
		}
		select {
		case <-s.done:
		default:
			return
		}
	}
	done := make(chan struct{})
	s.started, s.done = s.clock(), done
	running := s.running.start(func() (struct{}, error) {
		defer close(done)
		text, err := s.metric()
		var rows []amdRow
		if err == nil {
			rows, err = parseAMDMetric([]byte(text))
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.failed = err; err == nil {
			s.rows, s.at = rows, s.clock()
		}
		return struct{}{}, nil
	})
	if running == nil {
		s.done = nil // the last run is just leaving
	}
}

func (s *amdSMISource) reading() (engine.GPUReading, error) {
	reading := engine.GPUReading{T: s.at, Devices: make([]engine.GPU, len(s.keep))}
	present := 0
	for i, p := range s.keep {
		d := &s.devices[p]
		if row := s.row(p); row != nil {
			reading.Devices[i] = row.gpu
			present++
		}
		reading.Devices[i].Fields[engine.GPUPowerLimitW] = s.limits[p].Fields[engine.GPUPowerLimitW]
		reading.Devices[i].Index, reading.Devices[i].Name, reading.Devices[i].UUID = d.Index, d.Name, d.UUID
	}
	if present == 0 {
		return engine.GPUReading{}, errors.New("read GPUs through amd-smi: it shows none of them any more")
	}
	return reading, nil
}

// row is what the last answer says of a device; nil where it has gone.
func (s *amdSMISource) row(position int) *amdRow {
	i := slices.IndexFunc(s.rows, func(r amdRow) bool { return r.number == s.numbers[position] })
	if i < 0 {
		return nil
	}
	return &s.rows[i]
}

// Processes implements [Source].
func (s *amdSMISource) Processes(ctx context.Context) (map[string][]int, error) {
	text, err := s.ask(ctx, "process", "--json")
	if err != nil {
		return nil, fmt.Errorf("list the processes on the GPUs: %w", err)
	}
	byNumber, err := parseAMDProcesses([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("list the processes on the GPUs: %w", err)
	}
	held := map[string][]int{}
	for i, n := range s.numbers {
		held[s.devices[i].UUID] = byNumber[n]
	}
	return held, nil
}

// Missing implements [Source].
func (s *amdSMISource) Missing() []engine.Missing {
	s.mu.Lock()
	defer s.mu.Unlock()
	var labels []string
	var reasons []why
	for _, p := range s.keep {
		row := s.row(p)
		if row == nil {
			continue
		}
		reason := row.why
		if s.limits[p].Fields[engine.GPUPowerLimitW].OK {
			reason[engine.GPUPowerLimitW] = ""
		}
		labels = append(labels, label(s.devices[p]))
		reasons = append(reasons, reason)
	}
	return gaps(labels, reasons)
}

// Notes implements [Source].
func (s *amdSMISource) Notes() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	notes := slices.Clone(s.notes)
	for _, p := range s.keep {
		if s.rows != nil && s.row(p) == nil {
			notes = append(notes, label(s.devices[p])+" is not in amd-smi's answer any more")
		}
	}
	return notes
}

// Close implements [Source]: it ends an amd-smi that runs.
func (s *amdSMISource) Close() error {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	if !s.running.seize(timer.C) {
		return fmt.Errorf("close amd-smi: %w", errStillReading)
	}
	return nil
}

// findAMDSMI returns the amd-smi to run: that of PATH, or ROCm's.
func findAMDSMI(look func(string) (string, error)) (string, error) {
	names := []string{"amd-smi", "/opt/rocm/bin/amd-smi"}
	for _, n := range names {
		if program, err := look(n); err == nil {
			return program, nil
		}
	}
	return "", fmt.Errorf("%s was not found", strings.Join(names, " or "))
}
