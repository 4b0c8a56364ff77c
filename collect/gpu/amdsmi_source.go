package gpu

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

const (
	// amdSMIPeriod is the shortest time between two runs of amd-smi, a Python program that
	// takes hundreds of milliseconds to start.
	amdSMIPeriod = 2 * time.Second
	// amdSMIStale is the age from which a reading is discarded: amd-smi is stuck.
	amdSMIStale = 10 * time.Second
)

// amdSMISource reads AMD GPUs by running amd-smi. It is used if the driver's files cannot
// be read.
type amdSMISource struct {
	base
	ask     func(context.Context, ...string) (string, error)
	clock   func() time.Duration
	numbers []int // amd-smi's GPU numbers, by position
	limits  []engine.GPU
	metric  func() (string, error) // runs "amd-smi metric"; canceled when the source closes
	running slot[struct{}]
	stop    context.CancelFunc

	// Guarded by mu.
	answered bool          // amd-smi answered at least once
	at       time.Duration // time of the last answer
	failed   error         // error of the last run
	done     chan struct{} // closed when the last run ends; nil before the first
	started  time.Duration // start of the last run
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
	s := &amdSMISource{ask: ask, clock: clock, running: newSlot[struct{}]()}
	s.notes = []string{untestedAMD}
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
	s.keepAll()
	background, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	s.metric = func() (string, error) { return ask(background, "metric", "--json") }
	return s, nil
}

// runToEnd returns a function that runs a program to its end and returns its output.
func runToEnd(start starter) func(context.Context, ...string) (string, error) {
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

// Read implements [Source]. It returns the last answer with its own time stamp and starts
// amd-smi again if that is old. Only the first read waits for an answer.
func (s *amdSMISource) Read(ctx context.Context) (engine.GPUReading, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(); err != nil {
		return engine.GPUReading{}, err
	}
	s.refresh()
	if done := s.done; !s.answered && done != nil {
		s.mu.Unlock()
		select {
		case <-done:
		case <-ctx.Done():
		}
		s.mu.Lock()
	}
	if !s.answered || s.clock()-s.at > amdSMIStale {
		return engine.GPUReading{}, fmt.Errorf("read GPUs through amd-smi: %w", cmp.Or(s.failed, errStillReading))
	}
	reading, ok := s.reading(s.keep)
	if !ok {
		return engine.GPUReading{}, errors.New("read GPUs through amd-smi: it shows none of them any more")
	}
	reading.T = s.at
	return reading, nil
}

// refresh starts amd-smi if the last run ended and started at least amdSMIPeriod ago. The
// caller holds the mutex.
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
			s.store(rows)
		}
		return struct{}{}, nil
	})
	if running == nil {
		s.done = nil // the last run has not released the slot yet
	}
}

// store records an answer. The caller holds the mutex.
func (s *amdSMISource) store(rows []amdRow) {
	s.answered, s.at = true, s.clock()
	for p, number := range s.numbers {
		now := state{asked: true}
		if i := slices.IndexFunc(rows, func(r amdRow) bool { return r.number == number }); i >= 0 {
			now.gpu, now.why = rows[i].gpu, rows[i].why
		} else {
			now.note = label(s.devices[p]) + " is not in amd-smi's answer any more"
		}
		limit := s.limits[p].Fields[engine.GPUPowerLimitW]
		if now.gpu.Fields[engine.GPUPowerLimitW] = limit; limit.OK {
			now.why[engine.GPUPowerLimitW] = ""
		}
		s.last[p] = now
	}
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

// Close implements [Source]. It ends a running amd-smi.
func (s *amdSMISource) Close() error {
	_ = s.base.Close()
	s.stop()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	if !s.running.seize(timer.C) {
		return fmt.Errorf("close amd-smi: %w", errStillReading)
	}
	return nil
}

// findAMDSMI returns the path of amd-smi: from PATH, else ROCm's.
func findAMDSMI(look func(string) (string, error)) (string, error) {
	names := []string{"amd-smi", "/opt/rocm/bin/amd-smi"}
	for _, n := range names {
		if program, err := look(n); err == nil {
			return program, nil
		}
	}
	return "", fmt.Errorf("%s was not found", strings.Join(names, " or "))
}
