package gpu

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

func smiFile(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "smi", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func presentFields(g engine.GPU) map[engine.GPUField]float64 {
	present := map[engine.GPUField]float64{}
	for f, v := range g.Fields {
		if v.OK {
			present[engine.GPUField(f)] = v.V
		}
	}
	return present
}

func TestParseSMIRow(t *testing.T) {
	const mib = 1 << 20
	tests := []struct {
		file     string
		fields   map[engine.GPUField]float64
		throttle stat.Opt
		device   Device
		why      map[engine.GPUField]string
	}{
		{"h100x2.csv", map[engine.GPUField]float64{
			engine.GPUUtil: 0.97, engine.GPUMemUtil: 0.61, engine.GPUPowerW: 612.34, engine.GPUPowerLimitW: 700,
			engine.GPUVRAMTotal: 81559 * mib, engine.GPUVRAMUsed: 71680 * mib, engine.GPUTemperatureC: 64,
			engine.GPUSMClockMHz: 1755, engine.GPUMemClockMHz: 2619,
		}, stat.Some(4), Device{Index: 0, Name: "NVIDIA H100 80GB HBM3", BusID: "00000000:1b:00.0", Driver: "570.133.20", VRAMBytes: stat.Some(81559 * mib)},
			map[engine.GPUField]string{engine.GPUEnergyJ: "nvidia-smi does not report it", engine.GPUDRAMActive: "nvidia-smi does not report it"}},
		{"a100-mig.csv", map[engine.GPUField]float64{
			engine.GPUPowerW: 92.11, engine.GPUPowerLimitW: 400, engine.GPUVRAMTotal: 81920 * mib, engine.GPUVRAMUsed: 20480 * mib,
			engine.GPUTemperatureC: 34, engine.GPUSMClockMHz: 1410, engine.GPUMemClockMHz: 1593,
		}, stat.Some(0), Device{Index: 0, Name: "NVIDIA A100-SXM4-80GB", BusID: "00000000:07:00.0", Driver: "535.230.02", VRAMBytes: stat.Some(81920 * mib)},
			map[engine.GPUField]string{engine.GPUUtil: "nvidia-smi says [N/A]"}},
		{"gb10.csv", map[engine.GPUField]float64{
			engine.GPUUtil: 0.44, engine.GPUMemUtil: 0, engine.GPUPowerW: 38.51, engine.GPUTemperatureC: 61, engine.GPUSMClockMHz: 2405,
		}, stat.Some(0), Device{Index: 0, Name: "NVIDIA GB10", BusID: "0000000f:01:00.0", Driver: "580.95.05"},
			map[engine.GPUField]string{engine.GPUVRAMTotal: "nvidia-smi says [N/A]"}},
		{"units-and-errors.csv", map[engine.GPUField]float64{
			engine.GPUUtil: 0.88, engine.GPUMemUtil: 0.40, engine.GPUPowerW: 285.31, engine.GPUVRAMTotal: 46068 * mib,
			engine.GPUVRAMUsed: 40012 * mib, engine.GPUTemperatureC: 70,
		}, stat.None, Device{Index: 0, Name: "NVIDIA L40S", BusID: "00000000:01:00.0", Driver: "550.54.15", VRAMBytes: stat.Some(46068 * mib)},
			map[engine.GPUField]string{engine.GPUPowerLimitW: "nvidia-smi says [Not Supported]", engine.GPUMemClockMHz: "nvidia-smi says ERR!",
				clockEvents: "nvidia-smi says [Insufficient Permissions]"}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			row, isRow := parseSMIRow(firstLine(smiFile(t, tt.file)), smiColumns())
			if !isRow {
				t.Fatal("not a row")
			}
			if diff := cmp.Diff(tt.fields, presentFields(row.gpu)); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
			if got := (stat.Opt{V: float64(row.gpu.Throttle), OK: row.gpu.ThrottleOK}); got != tt.throttle {
				t.Errorf("reasons: got %v, want %v", got, tt.throttle)
			}
			want := tt.device
			want.GI, want.Minor, want.UUID = -1, -1, row.device.UUID
			if diff := cmp.Diff(want, row.device); diff != "" {
				t.Errorf("device (-want +got):\n%s", diff)
			}
			for f, w := range tt.why {
				if row.why[f] != w {
					t.Errorf("reason for field %d: got %q, want %q", f, row.why[f], w)
				}
			}
		})
	}
}

func FuzzParseSMIRow(f *testing.F) {
	for _, name := range []string{"h100x2.csv", "a100-mig.csv", "gb10.csv", "units-and-errors.csv"} {
		for line := range strings.Lines(smiFile(f, name)) {
			f.Add(line)
		}
	}
	f.Add("Failed to initialize NVML: Driver/library version mismatch")
	columns := smiColumns()
	f.Fuzz(func(t *testing.T, line string) {
		row, isRow := parseSMIRow(line, columns)
		if !isRow {
			return
		}
		if row.gpu.Index < 0 || !strings.HasPrefix(row.gpu.UUID, "GPU-") {
			t.Errorf("a row without a device: %+v", row.gpu)
		}
		for field, v := range row.gpu.Fields {
			if v.OK && !(v.V >= 0) {
				t.Errorf("field %d is %v", field, v.V)
			}
			if v.OK == (row.why[field] != "") {
				t.Errorf("field %d: present is %v, and the reason for its absence %q", field, v.OK, row.why[field])
			}
		}
	})
}

// fakeSMI answers as an nvidia-smi would: queries at once, and one stream that
// the test writes.
type fakeSMI struct {
	answer  func(query string) (string, error)
	mu      sync.Mutex
	streams []*io.PipeWriter
	args    [][]string
}

func (f *fakeSMI) start(ctx context.Context, args ...string) (*child, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.args = append(f.args, args)
	if !slices.Contains(args, "-lms") {
		text, err := f.answer(strings.TrimPrefix(args[0], "--"))
		return &child{out: strings.NewReader(text), wait: func() error { return err }}, nil
	}
	r, w := io.Pipe()
	f.streams = append(f.streams, w)
	context.AfterFunc(ctx, func() { w.CloseWithError(io.EOF) })
	return &child{out: r, wait: func() error { return ctx.Err() }}, nil
}

func (f *fakeSMI) stream(t *testing.T, n int) *io.PipeWriter {
	t.Helper()
	synctest.Wait()
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.streams) <= n {
		t.Fatalf("%d streams were started, want %d", len(f.streams), n+1)
	}
	return f.streams[n]
}

func say(t *testing.T, w *io.PipeWriter, text string) {
	t.Helper()
	if _, err := io.WriteString(w, text); err != nil {
		t.Fatalf("nvidia-smi writes: %v", err)
	}
	synctest.Wait()
}

func sinceStart() func() time.Duration {
	start := time.Now()
	return func() time.Duration { return time.Since(start) }
}

func TestSMIStream(t *testing.T) {
	rows := smiFile(t, "h100x2.csv")
	lines := strings.SplitAfter(rows, "\n")
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeSMI{answer: func(string) (string, error) { return rows, nil }}
		driver := fstest.MapFS{
			"0000:1b:00.0/information": {Data: []byte("Model: \t\t NVIDIA H100\nIRQ: 5\nDevice Minor: \t 3\n")},
			"0000:43:00.0/information": {Data: []byte("Model: \t\t NVIDIA H100\n")},
		}
		s, err := openSMI(t.Context(), sinceStart(), fake.start, driver)
		if err != nil {
			t.Fatal(err)
		}
		var minors []int
		for _, d := range s.Devices() {
			minors = append(minors, d.Minor)
		}
		if diff := cmp.Diff([]int{3, -1}, minors); diff != "" {
			t.Errorf("minors (-want +got):\n%s", diff)
		}

		stream := fake.stream(t, 0)
		time.Sleep(time.Second)
		r, err := s.Read(t.Context())
		if err != nil || !r.Devices[1].Fields[engine.GPUPowerW].OK || r.T != 0 {
			t.Errorf("the rows of the query: got %v, %v", r, err)
		}
		say(t, stream, rows)
		r, err = s.Read(t.Context())
		if err != nil || len(r.Devices) != 2 || r.Devices[1].Fields[engine.GPUPowerW] != stat.Some(71.2) || r.T != time.Second {
			t.Fatalf("first read: got %v, %v", r, err)
		}
		if missing := s.Missing(); len(missing) != 5 || missing[0].What != "limits of GPU clock and temperature" {
			t.Errorf("missing: got %v, want limits, energy, DRAM and tensor use, PCIe, NVLink", missing)
		}

		// The second GPU falls silent: its place stays, empty, and a note says so.
		for range 10 {
			time.Sleep(smiPeriod)
			say(t, stream, lines[0])
		}
		r, err = s.Read(t.Context())
		if err != nil || !r.Devices[0].Fields[engine.GPUUtil].OK || r.Devices[1].Fields[engine.GPUUtil].OK || r.Devices[1].Index != 1 {
			t.Errorf("one silent GPU: got %v, %v", r, err)
		}
		if notes := s.Notes(); len(notes) != 1 || !strings.HasPrefix(notes[0], "GPU 1: nvidia-smi has not shown it") {
			t.Errorf("notes: got %v", notes)
		}

		// The stream ends with a message: the message is the reason, and another
		// stream is started after a pause.
		say(t, stream, "Unable to determine the device handle for GPU0000:43:00.0: GPU is lost.\n")
		stream.Close()
		time.Sleep(900 * time.Millisecond)
		if _, err = s.Read(t.Context()); err != nil {
			t.Errorf("rows of 0.9 s ago: %v", err)
		}
		time.Sleep(1500 * time.Millisecond)
		if _, err = s.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "GPU is lost") {
			t.Errorf("rows of 2.4 s ago: got %v, want the reason", err)
		}
		say(t, fake.stream(t, 1), rows)
		if r, err = s.Read(t.Context()); err != nil || !r.Devices[1].Fields[engine.GPUUtil].OK {
			t.Errorf("after it was started again: got %v, %v", r, err)
		}

		// An endless line does not fill the memory.
		go io.WriteString(fake.stream(t, 1), strings.Repeat("x", 2*smiMaxLine))
		time.Sleep(3 * time.Second)
		fake.stream(t, 2)

		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := s.Read(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("read after close: got %v", err)
		}
		synctest.Wait()
		fake.mu.Lock()
		defer fake.mu.Unlock()
		want := []string{"--query-gpu=" + columnNames(smiColumns()), "--format=csv,noheader,nounits", "-lms", "250"}
		if diff := cmp.Diff(want, fake.args[1]); diff != "" {
			t.Errorf("the stream's command line (-want +got):\n%s", diff)
		}
	})
}

func TestSMIStuck(t *testing.T) {
	rows := smiFile(t, "h100x2.csv")
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeSMI{answer: func(string) (string, error) { return rows, nil }}
		s, err := openSMI(t.Context(), sinceStart(), fake.start, fstest.MapFS{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		time.Sleep(3 * time.Second)
		if _, err := s.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "printed nothing") {
			t.Errorf("silent for 3 s: got %v", err)
		}
	})
}

func TestSMIOpenRefusals(t *testing.T) {
	failed := errors.New("exit status 255")
	tests := []struct {
		name, output string
		err          error
		want         string
	}{
		{"no GPU", "No devices were found\n", failed, "nvidia-smi says No devices were found"},
		{"no driver", "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver. Make sure that the latest NVIDIA driver is installed and running.\n\n", failed, "couldn't communicate with the NVIDIA driver"},
		{"mismatch", "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 570.133\n", failed, "version mismatch"},
		{"nothing", "", failed, "exit status 255"},
		{"nothing, and well", "", nil, "nvidia-smi says nothing"},
		{"a field of another program", `Field "power.moon" is not a valid field to query.`, failed, "power.moon"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			fake := &fakeSMI{answer: func(string) (string, error) { return tt.output, tt.err }}
			s, err := openSMI(t.Context(), sinceStart(), fake.start, fstest.MapFS{})
			if s != nil || err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

// An older nvidia-smi refuses the whole query for one field that it does not
// know: the older spelling is tried, then the query goes without.
func TestSMIOlderFields(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeSMI{answer: func(query string) (string, error) {
			for _, unknown := range []string{"clocks_event_reasons.active", "mig.mode.current"} {
				if strings.Contains(query, unknown) {
					return `Field "` + unknown + `" is not a valid field to query.` + "\n\n", errors.New("exit status 2")
				}
			}
			return "0, GPU-5555, Tesla T4, 00000000:00:1E.0, 418.226.00, 35, 20, 61.02, 70.00, 15109, 9000, 50, 1590, 5000, 0x0000000000000004\n", nil
		}}
		s, err := openSMI(t.Context(), sinceStart(), fake.start, fstest.MapFS{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		asked := columnNames(s.columns)
		if !strings.Contains(asked, "clocks_throttle_reasons.active") || strings.Contains(asked, "mig.mode") {
			t.Errorf("asked for %s", asked)
		}
		say(t, fake.stream(t, 0), "0, GPU-5555, Tesla T4, 00000000:00:1E.0, 418.226.00, 35, 20, 61.02, 70.00, 15109, 9000, 50, 1590, 5000, 0x0000000000000004\n")
		r, err := s.Read(t.Context())
		if err != nil || r.Devices[0].Throttle != 4 || r.Devices[0].Fields[engine.GPUUtil] != stat.Some(0.35) {
			t.Errorf("got %v, %v", r, err)
		}
	})
}

func TestSMIProcessesAndKeep(t *testing.T) {
	rows := smiFile(t, "h100x2.csv")
	synctest.Test(t, func(t *testing.T) {
		fake := &fakeSMI{answer: func(query string) (string, error) {
			if strings.HasPrefix(query, "query-compute-apps") {
				return "GPU-11111111-aaaa-bbbb-cccc-000000000002, 4242\nGPU-11111111-aaaa-bbbb-cccc-000000000002, 4243\nGPU-9, [N/A]\n", nil
			}
			return rows, nil
		}}
		s, err := openSMI(t.Context(), sinceStart(), fake.start, fstest.MapFS{})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		held, err := s.Processes(t.Context())
		if diff := cmp.Diff(map[string][]int{"GPU-11111111-aaaa-bbbb-cccc-000000000002": {4242, 4243}}, held); diff != "" || err != nil {
			t.Errorf("processes: %v (-want +got):\n%s", err, diff)
		}
		say(t, fake.stream(t, 0), rows)
		s.Keep([]int{1})
		r, err := s.Read(t.Context())
		if err != nil || len(r.Devices) != 1 || r.Devices[0].Index != 1 {
			t.Errorf("kept the second: got %v, %v", r, err)
		}
		s.Keep([]int{})
		if _, err := s.Read(t.Context()); !errors.Is(err, collect.ErrNoData) {
			t.Errorf("kept none: got %v", err)
		}
	})
}
