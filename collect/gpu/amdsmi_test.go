package gpu

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

func TestParseAMDMetric(t *testing.T) {
	tests := []struct {
		file string
		want []map[engine.GPUField]float64
	}{
		{"metric-rocm7.json", []map[engine.GPUField]float64{
			{engine.GPUUtil: 0.88, engine.GPUMemUtil: 0.3, engine.GPUPowerW: 542, engine.GPUVRAMTotal: 196592 << 20, engine.GPUVRAMUsed: 121344 << 20,
				engine.GPUTemperatureC: 61, engine.GPUSMClockMHz: 2103, engine.GPUMemClockMHz: 1300, engine.GPUEnergyJ: 48211432.5},
			{},
		}},
		{"metric-rocm6.json", []map[engine.GPUField]float64{
			{engine.GPUUtil: 0.42, engine.GPUMemUtil: 0.01, engine.GPUPowerW: 20, engine.GPUVRAMTotal: 16368 << 20, engine.GPUVRAMUsed: 2 << 30,
				engine.GPUTemperatureC: 45, engine.GPUSMClockMHz: 14},
		}},
	}
	for _, tt := range tests {
		rows, err := parseAMDMetric([]byte(amdFileText(t, tt.file)))
		if err != nil {
			t.Fatalf("%s: %v", tt.file, err)
		}
		var got []map[engine.GPUField]float64
		for i, r := range rows {
			got = append(got, presentFields(r.gpu))
			if r.number != i {
				t.Errorf("%s: number %d, want %d", tt.file, r.number, i)
			}
		}
		if diff := cmp.Diff(tt.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tt.file, diff)
		}
	}
}

func TestParseAMDStatic(t *testing.T) {
	tests := []struct {
		file       string
		want       []Device
		limits     []stat.Opt
		partitions []int
	}{
		{"static-rocm7.json", []Device{
			{Index: 0, Name: "AMD Instinct MI300X", UUID: "GPU-7c9a02f8d1a3b6e4", GI: -1, CI: -1, Minor: -1, BusID: "0000:05:00.0", Driver: "6.14.14", VRAMBytes: stat.Some(196592 << 20)},
			{Index: 1, Name: "AMD Instinct MI300X", UUID: "GPU-7c9a02f8d1a3b6e4", GI: -1, CI: -1, Minor: -1, BusID: "0000:05:00.1", Driver: "6.14.14"},
		}, []stat.Opt{stat.Some(650), stat.None}, []int{0, 1}},
		{"static-rocm6.json", []Device{
			{Index: 0, Name: "Radeon PRO W7700", UUID: "PCI-0000:03:00.0", GI: -1, CI: -1, Minor: -1, BusID: "0000:03:00.0", Driver: "6.8.5", VRAMBytes: stat.Some(16368 << 20)},
		}, []stat.Opt{stat.Some(150)}, []int{0}},
	}
	for _, tt := range tests {
		rows, err := parseAMDStatic([]byte(amdFileText(t, tt.file)))
		if err != nil {
			t.Fatalf("%s: %v", tt.file, err)
		}
		var devices []Device
		var limits []stat.Opt
		var partitions []int
		for _, r := range rows {
			devices, limits, partitions = append(devices, r.device), append(limits, r.gpu.Fields[engine.GPUPowerLimitW]), append(partitions, r.partition)
		}
		if diff := cmp.Diff(tt.want, devices); diff != "" {
			t.Errorf("%s: devices (-want +got):\n%s", tt.file, diff)
		}
		if !slices.Equal(limits, tt.limits) || !slices.Equal(partitions, tt.partitions) {
			t.Errorf("%s: limits %v, partitions %v; want %v, %v", tt.file, limits, partitions, tt.limits, tt.partitions)
		}
	}
}

func TestAMDQuantity(t *testing.T) {
	for _, tt := range []struct {
		name  string
		value any
		want  float64
		unit  string
		ok    bool
	}{
		{"a number", 12.5, 12.5, "", true},
		{"an object", map[string]any{"value": 12.0, "unit": "W"}, 12, "W", true},
		{"an object of text", map[string]any{"value": "12", "unit": "W"}, 12, "W", true},
		{"a text with its unit", "12 W", 12, "W", true},
		{"not available", "N/A", 0, "", false},
		{"an object of what is not available", map[string]any{"value": "N/A", "unit": "W"}, 0, "W", false},
		{"an object in an object", map[string]any{"value": map[string]any{"value": 1.0}}, 0, "", false},
		{"nothing", nil, 0, "", false},
		{"a list", []any{1.0}, 0, "", false},
		{"less than nothing", -1.0, 0, "", false},
		{"infinite", "inf", 0, "", false},
	} {
		if got, unit, ok := quantity(tt.value); got != tt.want || unit != tt.unit || ok != tt.ok {
			t.Errorf("%s: got %v, %q, %v; want %v, %q, %v", tt.name, got, unit, ok, tt.want, tt.unit, tt.ok)
		}
	}
}

func TestAMDEntriesRefuse(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "empty",
		"amd-smi: command failed":    "no JSON",
		"[":                          "read amd-smi's JSON",
		"{\"gpu_data\": 3}":          "read amd-smi's JSON",
		"[]":                         "lists no GPU",
		"{\"gpu_data\": []}":         "lists no GPU",
		"[{\"nic\": 0}]":             "lists no GPU",
		"[{\"gpu\": \"N/A\"}]":       "lists no GPU",
		"WARNING: no group\n[1]":     "read amd-smi's JSON",
		"{\"error\": \"no driver\"}": "lists no GPU",
	} {
		if _, err := amdEntries([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", text, err, want)
		}
	}
}

// FuzzAMDSMI feeds what a program may print to all three parsers: they never
// panic, and what they take is a number that a GPU can have.
func FuzzAMDSMI(f *testing.F) {
	for _, name := range []string{"static-rocm6.json", "static-rocm7.json", "metric-rocm6.json", "metric-rocm7.json", "process-rocm7.json"} {
		f.Add([]byte(amdFileText(f, name)))
	}
	f.Add([]byte(`[{"gpu":1e300,"power":{"socket_power":{"value":-1,"unit":"W"}}}]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		rows, err := parseAMDMetric(text)
		if err != nil && rows != nil {
			t.Error("rows beside an error")
		}
		for _, r := range rows {
			for field, v := range r.gpu.Fields {
				if v.OK && (v.V < 0 || v.V != v.V) {
					t.Errorf("field %d is %v", field, v.V)
				}
				if v.OK == (r.why[field] != "") {
					t.Errorf("field %d: present is %v, and the reason for its absence %q", field, v.OK, r.why[field])
				}
			}
		}
		devices, _ := parseAMDStatic(text)
		for _, d := range devices {
			if d.device.UUID == "" || d.partition < 0 {
				t.Errorf("device %+v of partition %d", d.device, d.partition)
			}
		}
		processes, _ := parseAMDProcesses(text)
		for _, pids := range processes {
			if slices.Min(pids) <= 0 {
				t.Errorf("PIDs %v", pids)
			}
		}
	})
}

// fakeAMDSMI answers from fixtures, and takes its time for a metric.
type fakeAMDSMI struct {
	static, metric, process string
	takes                   time.Duration
	fails                   error
	runs                    int // of metric
}

func (f *fakeAMDSMI) ask(ctx context.Context, args ...string) (string, error) {
	switch args[0] {
	case "static":
		return f.static, nil
	case "process":
		return f.process, nil
	}
	f.runs++
	select {
	case <-time.After(f.takes):
		return f.metric, f.fails
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// amd-smi is slow to start: at 50 ms it is run once every two seconds, and a
// reading carries the time of its answer.
func TestAMDSMISource(t *testing.T) {
	fake := &fakeAMDSMI{static: amdFileText(t, "static-rocm7.json"), metric: amdFileText(t, "metric-rocm7.json"),
		process: amdFileText(t, "process-rocm7.json"), takes: 300 * time.Millisecond}
	synctest.Test(t, func(t *testing.T) {
		clock := sinceStart()
		s, err := openAMDSMI(t.Context(), clock, fake.ask)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Devices()) != 1 || !slices.Contains(s.Notes(), "GPU 1 is partition 1 of a GPU and has no readings of its own") {
			t.Errorf("devices %v, notes %q", s.Devices(), s.Notes())
		}
		moments := map[time.Duration]int{}
		for range 200 {
			r, err := s.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			moments[r.T]++
			if got := r.Devices[0].Fields; got[engine.GPUPowerW] != stat.Some(542) || got[engine.GPUPowerLimitW] != stat.Some(650) {
				t.Fatalf("got %v", presentFields(r.Devices[0]))
			}
			time.Sleep(50 * time.Millisecond)
			synctest.Wait()
		}
		if fake.runs < 4 || fake.runs > 6 || len(moments) < 4 || len(moments) > 6 {
			t.Errorf("amd-smi ran %d times in 10 s and gave %d readings, want about 5", fake.runs, len(moments))
		}
		compareMissing(t, s.Missing(), []string{"limits of GPU clock", "reasons for lower clocks", "DRAM", "PCIe", "NVLink"})
		held, err := s.Processes(t.Context())
		if diff := cmp.Diff(map[string][]int{"GPU-7c9a02f8d1a3b6e4": {4242, 4243}}, held); diff != "" || err != nil {
			t.Errorf("processes: %v (-want +got):\n%s", err, diff)
		}
		// It fails from now on: the last answer serves for a while, not forever.
		fake.fails = errors.New("the driver is gone")
		time.Sleep(5 * time.Second)
		if _, err := s.Read(t.Context()); err != nil {
			t.Errorf("5 s later: %v", err)
		}
		time.Sleep(8 * time.Second)
		if _, err := s.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "the driver is gone") {
			t.Errorf("13 s later: got %v", err)
		}
		time.Sleep(time.Second)
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		if _, err := s.Read(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("after Close: got %v", err)
		}
	})
}

// Close ends an amd-smi that hangs, and a caller that gives up is let go.
func TestAMDSMIStuck(t *testing.T) {
	fake := &fakeAMDSMI{static: amdFileText(t, "static-rocm6.json"), takes: time.Hour}
	synctest.Test(t, func(t *testing.T) {
		s, err := openAMDSMI(t.Context(), sinceStart(), fake.ask)
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := s.Read(ctx); !errors.Is(err, errStillReading) {
			t.Errorf("got %v, want that it is still under way", err)
		}
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
}

// The name of a card that has no file of it comes from amd-smi, which is asked
// once; amd-smi stands in where the driver's files tell nothing.
func TestAMDSMIBesideFiles(t *testing.T) {
	fake := &fakeAMDSMI{static: amdFileText(t, "static-rocm6.json"), metric: amdFileText(t, "metric-rocm6.json")}
	s, err := openAnyAMD(t.Context(), newHand().now, amdFixture(t, "w7700.sysfs"), fake.ask, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := s.Devices()[0]; s.Name() != "amdgpu" || d.Name != "Radeon PRO W7700" || d.Driver != "6.8.5" || d.UUID != "GPU-5f1d8a6c01e2b3d7" || fake.runs != 0 {
		t.Errorf("%s: got %+v after %d runs", s.Name(), d, fake.runs)
	}

	blind := amdFixture(t, "partitioned.sysfs")
	for _, f := range []string{"gpu_busy_percent", "mem_info_vram_used"} {
		delete(blind.MapFS, "sys/class/drm/card0/device/"+f)
	}
	const tells = "the amdgpu driver's files report neither utilization nor memory nor power"
	if _, err := openAnyAMD(t.Context(), newHand().now, blind, fake.ask, nil); err == nil || err.Error() != tells {
		t.Errorf("without a compute driver: got %v", err)
	}
	blind.MapFS[kfdProcesses+"/1/pasid"] = &fstest.MapFile{}
	missing := errors.New("amd-smi was not found")
	if _, err := openAnyAMD(t.Context(), newHand().now, blind, nil, missing); err == nil || err.Error() != tells+"; amd-smi was not found" {
		t.Errorf("without amd-smi: got %v", err)
	}
	s, err = openAnyAMD(t.Context(), newHand().now, blind, fake.ask, nil)
	if err != nil || s.Name() != "amd-smi" {
		t.Errorf("got %v, %v; want amd-smi", s, err)
	}
}

func TestFindAMDSMI(t *testing.T) {
	for _, tt := range []struct{ has, want string }{{"amd-smi", "amd-smi"}, {"/opt/rocm/bin/amd-smi", "/opt/rocm/bin/amd-smi"}, {"", ""}} {
		got, err := findAMDSMI(func(name string) (string, error) {
			if name != tt.has {
				return "", errors.New("not found")
			}
			return name, nil
		})
		if got != tt.want || (err != nil) != (tt.want == "") {
			t.Errorf("with %q: got %q, %v", tt.has, got, err)
		}
	}
}
