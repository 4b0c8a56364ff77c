package gpu

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

const (
	smiPeriod = 250 * time.Millisecond
	// smiStale is the age from which a row is discarded: nvidia-smi is stuck.
	smiStale = 2 * time.Second
	// The pause before a stream that ended is started again doubles from smiFirstPause to
	// smiLastPause.
	smiFirstPause, smiLastPause = time.Second, 30 * time.Second
	// smiMaxAnswer and smiMaxLine limit the output that is read, in bytes. An answer to a
	// query is a few hundred bytes per GPU.
	smiMaxAnswer, smiMaxLine = 1 << 20, 16 << 10
)

// child is a running nvidia-smi. It is killed when the context of its start ends.
type child struct {
	out  io.Reader
	wait func() error // call it after reading out to the end
}

// starter starts nvidia-smi with arguments.
type starter func(ctx context.Context, args ...string) (*child, error)

// smiSource reads the rows of one nvidia-smi, which runs as long as the source is open.
type smiSource struct {
	base
	start   starter
	clock   func() time.Duration
	columns []column
	listing slot[string]
	stop    context.CancelFunc
	ended   chan struct{} // closed when the stream's goroutine ends

	// Guarded by mu.
	at     []time.Duration // time of the last row of each device
	failed error           // why the stream ended, nil once rows arrive again
}

func openLocalSMI(ctx context.Context, o Options) (Source, error) {
	program, err := findSMI(o.SMIPath)
	if err != nil {
		return nil, err
	}
	source, err := openSMI(ctx, o.Clock, runner(program), os.DirFS("/proc/driver/nvidia/gpus"))
	if err != nil {
		return nil, err
	}
	return source, nil
}

// openSMI lists the GPUs, which gives their first rows and shows which columns this
// nvidia-smi knows, and starts the stream. driver is the driver's directory of GPUs, which has the numbers
// of the device files.
func openSMI(ctx context.Context, clock func() time.Duration, start starter, driver fs.FS) (*smiSource, error) {
	s := &smiSource{start: start, clock: clock, listing: newSlot[string](), ended: make(chan struct{})}
	columns := smiColumns()
	var rows []smiRow
	for {
		output, err := s.query(ctx, "--query-gpu="+columnNames(columns), csvFormat)
		if i, ok := refusedColumn(output, columns); ok {
			columns = withoutSpelling(columns, i)
			continue
		}
		s.columns = columns
		if rows = s.enumerate(output, driver); len(rows) > 0 {
			break
		}
		if first := printable(firstLine(output)); err == nil || first != "nothing" {
			return nil, fmt.Errorf("nvidia-smi says %s", first)
		}
		return nil, err
	}
	s.keepAll()
	s.at = make([]time.Duration, len(s.devices))
	for _, row := range rows {
		s.store(row)
	}
	streaming, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	go s.run(streaming)
	return s, nil
}

const csvFormat = "--format=csv,noheader,nounits"

func columnNames(columns []column) string {
	names := make([]string, len(columns))
	for i, c := range columns {
		names[i] = c.names[0]
	}
	return strings.Join(names, ",")
}

func firstLine(output string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(output), "\n")
	return line
}

// enumerate adds the devices of an answer to a query, and returns their rows.
func (s *smiSource) enumerate(output string, driver fs.FS) (rows []smiRow) {
	for line := range strings.Lines(output) {
		row, ok := parseSMIRow(line, s.columns)
		if !ok {
			if strings.TrimSpace(line) != "" {
				s.notes = append(s.notes, "nvidia-smi says "+printable(line))
			}
			continue
		}
		row.device.Minor = minorOf(driver, row.device.BusID)
		if row.mig {
			s.notes = append(s.notes, label(row.device)+" is in MIG mode, and nvidia-smi reads the whole GPU only")
		}
		s.devices, rows = append(s.devices, row.device), append(rows, row)
	}
	return rows
}

// minorOf returns the number of a GPU's device file, -1 if the driver does not show it.
func minorOf(driver fs.FS, busID string) int {
	if len(busID) < 8 {
		return -1
	}
	// nvidia-smi writes the PCI domain with eight digits, the kernel with four.
	text, err := fs.ReadFile(driver, path.Join(path.Base(busID[4:]), "information"))
	if err != nil {
		return -1
	}
	for line := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(line, "Device Minor:"); ok {
			if n, err := strconv.Atoi(strings.TrimSpace(value)); err == nil {
				return n
			}
		}
	}
	return -1
}

// query runs nvidia-smi to its end and returns its output, which may be an error message.
func (s *smiSource) query(ctx context.Context, args ...string) (string, error) {
	return wait(ctx, s.listing.start(func() (string, error) { return runToEnd(s.start)(ctx, args...) }))
}

// run keeps one nvidia-smi streaming until ctx ends.
func (s *smiSource) run(ctx context.Context) {
	defer close(s.ended)
	pause := smiFirstPause
	for {
		began := s.clock()
		err := s.stream(ctx)
		if ctx.Err() != nil {
			return
		}
		s.mu.Lock()
		s.failed = err
		s.mu.Unlock()
		if s.clock()-began > smiLastPause {
			pause = smiFirstPause
		}
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		pause = min(2*pause, smiLastPause)
	}
}

// stream reads rows until nvidia-smi ends and returns why it ended.
func (s *smiSource) stream(ctx context.Context) (err error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic while reading nvidia-smi: %v", p)
		}
	}()
	c, err := s.start(ctx, "--query-gpu="+columnNames(s.columns), csvFormat, "-lms", strconv.Itoa(int(smiPeriod.Milliseconds())))
	if err != nil {
		return err
	}
	said := "nvidia-smi ended"
	lines := bufio.NewScanner(c.out)
	lines.Buffer(nil, smiMaxLine)
	for lines.Scan() {
		row, ok := parseSMIRow(lines.Text(), s.columns)
		if ok {
			s.store(row)
		} else if strings.TrimSpace(lines.Text()) != "" {
			said = "nvidia-smi says " + printable(lines.Text())
		}
	}
	cancel() // a line that is too long leaves the child running
	if waited := c.wait(); waited != nil {
		said += " (" + printable(waited.Error()) + ")"
	}
	return errors.New(said)
}

func (s *smiSource) store(row smiRow) {
	i := slices.IndexFunc(s.devices, func(d Device) bool { return d.UUID == row.device.UUID })
	if i < 0 {
		return // a GPU added after the source was opened
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[i], s.at[i] = state{gpu: row.gpu, why: row.why, asked: true}, s.clock()
	s.failed = nil
}

// Name implements [Source].
func (s *smiSource) Name() string { return "nvidia-smi" }

// Read implements [Source]. It returns the last row of each device with the time of the
// oldest, without those that are stale.
func (s *smiSource) Read(context.Context) (engine.GPUReading, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ready(); err != nil {
		return engine.GPUReading{}, err
	}
	now, present := s.clock(), 0
	reading, _ := s.reading(s.keep)
	reading.T = now
	for i, p := range s.keep {
		if now-s.at[p] <= smiStale {
			reading.T = min(reading.T, s.at[p])
			present++
			continue
		}
		g := &reading.Devices[i]
		*g = engine.GPU{Index: g.Index, Name: g.Name, UUID: g.UUID}
	}
	if present == 0 {
		reason := s.failed
		if reason == nil {
			reason = fmt.Errorf("nvidia-smi has printed nothing for %v", smiStale)
		}
		return engine.GPUReading{}, fmt.Errorf("read GPUs through nvidia-smi: %w", reason)
	}
	return reading, nil
}

// Processes implements [Source].
func (s *smiSource) Processes(ctx context.Context) (map[string][]int, error) {
	output, err := s.query(ctx, "--query-compute-apps=gpu_uuid,pid", csvFormat)
	held := map[string][]int{}
	for line := range strings.Lines(output) {
		uuid, pid, found := strings.Cut(strings.TrimSpace(line), ", ")
		if n, bad := strconv.Atoi(pid); found && bad == nil {
			held[uuid] = append(held[uuid], n)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("list the processes on the GPUs: %w", err)
	}
	return held, nil
}

// Notes implements [Source].
func (s *smiSource) Notes() []string {
	notes := s.base.Notes()
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock()
	for _, p := range s.keep {
		if now-s.at[p] > smiStale {
			notes = append(notes, fmt.Sprintf("%s: nvidia-smi has not shown it for %v", label(s.devices[p]), (now-s.at[p]).Round(time.Second)))
		}
	}
	return notes
}

// Close implements [Source]. It ends nvidia-smi.
func (s *smiSource) Close() error {
	_ = s.base.Close()
	s.stop()
	timer := time.NewTimer(closeTimeout)
	defer timer.Stop()
	select {
	case <-s.ended:
		return nil
	case <-timer.C:
		return errors.New("close nvidia-smi: it did not end when it was killed")
	}
}
