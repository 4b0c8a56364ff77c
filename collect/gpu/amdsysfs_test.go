package gpu

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// amdTree is a file system of one fixture. It counts what is opened.
type amdTree struct {
	fstest.MapFS
	denied map[string]bool
	opened int
}

func (t *amdTree) Open(name string) (fs.File, error) {
	t.opened++
	if t.denied[name] {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return t.MapFS.Open(name)
}

func (t *amdTree) ReadFile(name string) ([]byte, error) {
	t.opened++
	if t.denied[name] {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrPermission}
	}
	return t.MapFS.ReadFile(name)
}

func amdFixture(t testing.TB, name string) *amdTree {
	t.Helper()
	tree := &amdTree{MapFS: fstest.MapFS{}, denied: map[string]bool{}}
	for line := range strings.Lines(amdFileText(t, name)) {
		line = strings.TrimRight(line, "\n")
		file, value, found := strings.Cut(line, ":")
		if strings.HasPrefix(line, "#") || !found {
			continue
		}
		value = strings.ReplaceAll(strings.TrimPrefix(value, " "), `\n`, "\n")
		tree.MapFS[file] = &fstest.MapFile{Data: []byte(value + "\n")}
		tree.denied[file] = value == "!denied"
	}
	return tree
}

func amdFileText(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "amd", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func openAMDFixture(t *testing.T, name string) *amdSource {
	t.Helper()
	s, err := openAMD(t.Context(), newHand().now, amdFixture(t, name))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func newHand() *hand { return &hand{} }

func TestAMDFiles(t *testing.T) {
	tests := []struct {
		file    string
		devices []Device
		fields  []map[engine.GPUField]float64
		instant bool
		missing []string // topics, with part of the reason
		notes   []string
	}{
		{"mi300x.sysfs", []Device{
			{Index: 0, Name: "AMD Instinct MI300X OAM", UUID: "GPU-7c9a02f8d1a3b6e4", GI: -1, Minor: -1, BusID: "0000:05:00.0", Render: 128, Driver: "6.10.5", VRAMBytes: stat.Some(206141652992)},
			{Index: 1, Name: "AMD Instinct MI300X OAM", UUID: "GPU-e2d0f31c4bbf1c05", GI: -1, Minor: -1, BusID: "0000:26:00.0", Render: 136, Driver: "6.10.5", VRAMBytes: stat.Some(206141652992)},
		}, []map[engine.GPUField]float64{
			{engine.GPUUtil: 0.97, engine.GPUMemUtil: 0.41, engine.GPUPowerW: 612, engine.GPUPowerLimitW: 750, engine.GPUVRAMTotal: 206141652992,
				engine.GPUVRAMUsed: 185527487692, engine.GPUTemperatureC: 63, engine.GPUSMClockMHz: 2100, engine.GPUMemClockMHz: 1300},
			{engine.GPUUtil: 0.12, engine.GPUMemUtil: 0.03, engine.GPUPowerW: 143, engine.GPUPowerLimitW: 750, engine.GPUVRAMTotal: 206141652992,
				engine.GPUVRAMUsed: 297771008, engine.GPUTemperatureC: 41},
		}, true, []string{
			"GPU clocks of GPU 1: the driver has no freq1_input for this GPU",
			"limits of GPU clock", "reasons for lower clocks: AMD's reasons", "GPU energy counter: the driver has no energy1_input", "DRAM and tensor-core use: the amdgpu driver does not report it",
			"PCIe traffic: the amdgpu", "NVLink traffic: the amdgpu",
		}, []string{untestedAMD}},
		{"w7700.sysfs", []Device{
			{Index: 0, Name: "AMD GPU 0x7470", UUID: "GPU-5f1d8a6c01e2b3d7", GI: -1, Minor: -1, BusID: "0000:03:00.0", VRAMBytes: stat.Some(17163091968)},
		}, []map[engine.GPUField]float64{
			{engine.GPUUtil: 0.42, engine.GPUMemUtil: 0.01, engine.GPUPowerW: 61, engine.GPUPowerLimitW: 150, engine.GPUVRAMTotal: 17163091968,
				engine.GPUVRAMUsed: 1 << 30, engine.GPUTemperatureC: 46, engine.GPUSMClockMHz: 2482, engine.GPUMemClockMHz: 1124},
		}, false, []string{"limits of GPU clock", "reasons for lower", "GPU energy", "DRAM", "PCIe", "NVLink"}, []string{untestedAMD}},
		{"partitioned.sysfs", []Device{
			{Index: 0, Name: "AMD Instinct MI300X OAM", UUID: "GPU-7c9a02f8d1a3b6e4", GI: -1, Minor: -1, BusID: "0000:05:00.0", VRAMBytes: stat.Some(206141652992)},
		}, []map[engine.GPUField]float64{
			{engine.GPUUtil: 0.5, engine.GPUVRAMTotal: 206141652992, engine.GPUVRAMUsed: 1 << 30},
		}, false, []string{"memory-controller utilization: the driver has no mem_busy_percent", "GPU power: the amdgpu driver does not", "GPU power limit", "GPU temperature",
			"GPU clocks", "limits of GPU clock", "reasons for lower", "GPU energy", "DRAM", "PCIe", "NVLink"},
			[]string{untestedAMD, "GPU 0 is partitioned (CPX): readings are of the whole GPU"}},
		{"integrated.sysfs", []Device{
			{Index: 0, Name: "AMD GPU 0x164e", UUID: "PCI-0000:0e:00.0", GI: -1, Minor: -1, BusID: "0000:0e:00.0", Render: 128, Integrated: true, VRAMBytes: stat.Some(512 << 20)},
		}, []map[engine.GPUField]float64{
			{engine.GPUUtil: 0, engine.GPUPowerW: 35.051, engine.GPUVRAMTotal: 512 << 20, engine.GPUVRAMUsed: 20 << 20, engine.GPUTemperatureC: 39, engine.GPUSMClockMHz: 600},
		}, true, []string{"memory-controller", "GPU power limit", "GPU clocks: the driver has no freq2_input", "limits of GPU clock", "reasons for lower", "GPU energy", "DRAM", "PCIe", "NVLink"},
			[]string{untestedAMD, "GPU 0 is part of a processor: its power includes the CPU cores, and its VRAM is a part of main memory"}},
		{"denied.sysfs", []Device{
			{Index: 0, Name: "AMD Instinct MI210", UUID: "GPU-9f3e5a7711c0d2b8", GI: -1, Minor: -1, BusID: "0000:05:00.0", VRAMBytes: stat.Some(68702699520)},
		}, []map[engine.GPUField]float64{
			{engine.GPUPowerW: 300, engine.GPUVRAMTotal: 68702699520, engine.GPUVRAMUsed: 68702699520, engine.GPUEnergyJ: 1234.56789},
		}, false, []string{
			"GPU utilization: no permission to read gpu_busy_percent: run rooftop as root, or in the groups video and render",
			"memory-controller utilization: the driver does not answer for mem_busy_percent",
			"GPU power limit: no permission to read power1_cap", "GPU temperature: the driver does not answer for temp1_input",
			"GPU clocks", "limits of GPU clock", "reasons for lower", "DRAM", "PCIe", "NVLink",
		}, []string{untestedAMD}},
	}
	for _, tt := range tests {
		t.Run(tt.file, func(t *testing.T) {
			s := openAMDFixture(t, tt.file)
			if diff := cmp.Diff(tt.devices, s.Devices()); diff != "" {
				t.Errorf("devices (-want +got):\n%s", diff)
			}
			r, err := s.Read(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for i, g := range r.Devices {
				if diff := cmp.Diff(tt.fields[i], presentFields(g)); diff != "" {
					t.Errorf("fields of GPU %d (-want +got):\n%s", i, diff)
				}
				if g.ThrottleOK || g.UUID != tt.devices[i].UUID || g.Name != tt.devices[i].Name {
					t.Errorf("GPU %d: got %+v", i, g)
				}
			}
			compareMissing(t, s.Missing(), tt.missing)
			if diff := cmp.Diff(tt.notes, s.Notes()); diff != "" {
				t.Errorf("notes (-want +got):\n%s", diff)
			}
			if got, want := AveragingOf(s), (Averaging{Window: time.Second, InstantPower: tt.instant}); got != want {
				t.Errorf("averaging: got %+v, want %+v", got, want)
			}
		})
	}
}

// compareMissing wants one entry for each beginning of "what: reason".
func compareMissing(t *testing.T, missing []engine.Missing, want []string) {
	t.Helper()
	var got []string
	for _, m := range missing {
		got = append(got, m.What+": "+m.Reason)
	}
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("missing: got\n%s\nwant beginnings\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAMDKeepAndProcesses(t *testing.T) {
	s := openAMDFixture(t, "mi300x.sysfs")
	held, err := s.Processes(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// 2 MiB on the other GPU are what the runtime takes, and 0 bytes are nothing.
	if diff := cmp.Diff(map[string][]int{"GPU-7c9a02f8d1a3b6e4": {4242}}, held); diff != "" {
		t.Errorf("processes (-want +got):\n%s", diff)
	}
	s.Keep([]int{1})
	r, err := s.Read(t.Context())
	if err != nil || len(r.Devices) != 1 || r.Devices[0].Index != 1 {
		t.Errorf("kept: got %+v, %v", r, err)
	}
	s.Keep([]int{})
	if _, err := s.Read(t.Context()); err == nil {
		t.Error("no GPU is kept, and a reading came")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.Read(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: got %v", err)
	}
}

// A card that goes away keeps its place; a sleeping one is not woken.
func TestAMDLostAndAsleep(t *testing.T) {
	tree := amdFixture(t, "mi300x.sysfs")
	s, err := openAMD(t.Context(), newHand().now, tree)
	if err != nil {
		t.Fatal(err)
	}
	tree.MapFS["sys/class/drm/card2/device/power/runtime_status"] = &fstest.MapFile{Data: []byte("suspended\n")}
	r, err := s.Read(t.Context())
	if err != nil || len(presentFields(r.Devices[0])) != 0 || !r.Devices[1].Fields[engine.GPUPowerW].OK {
		t.Errorf("one sleeps: got %+v, %v", r, err)
	}
	if notes := s.Notes(); !slices.Contains(notes, "GPU 0: "+errAsleep.Error()) {
		t.Errorf("notes: got %q", notes)
	}
	for name := range tree.MapFS {
		if strings.HasPrefix(name, "sys/class/drm/card3/") {
			delete(tree.MapFS, name)
		}
	}
	if _, err := s.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "its files under /sys/class/drm/card3/device are gone") {
		t.Errorf("none is left: got %v", err)
	}
}

// Looking where there is no AMD GPU costs a few file reads.
func TestAMDNotHere(t *testing.T) {
	console := fstest.MapFS{"sys/class/drm/card0/device/vendor": {Data: []byte("0x1a03\n")}, "sys/class/drm/card0-VGA-1/status": {}}
	sleeping := amdFixture(t, "w7700.sysfs")
	sleeping.MapFS["sys/class/drm/card0/device/power/runtime_status"] = &fstest.MapFile{Data: []byte("suspended\n")}
	sleeping.MapFS["sys/class/drm/card0/device/product_name"] = &fstest.MapFile{Data: []byte("Radeon PRO W7700\n")}
	sleeping.MapFS[kfdProcesses+"/1/pasid"] = &fstest.MapFile{}
	for _, tt := range []struct {
		name, want string
		tree       *amdTree
		most       int
	}{
		{"no graphics at all", "no AMD GPU: /sys/class/drm cannot be listed", &amdTree{MapFS: fstest.MapFS{}}, 5},
		{"a console", "no AMD GPU in /sys/class/drm", &amdTree{MapFS: console}, 5},
		{"a GPU that sleeps", errAsleep.Error(), sleeping, 40},
	} {
		s, err := openAMD(t.Context(), newHand().now, tt.tree)
		if s != nil || err == nil || err.Error() != tt.want {
			t.Errorf("%s: got %v, %v; want %q", tt.name, s, err, tt.want)
		}
		if tt.tree.opened > tt.most {
			t.Errorf("%s: %d files were opened, want %d at most", tt.name, tt.tree.opened, tt.most)
		}
	}
}
