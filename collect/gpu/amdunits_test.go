package gpu

import (
	"testing"
	"testing/fstest"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

// TestAMDMarksOfAbsence holds that what the library and the firmware write where they
// have no value (the largest number of a type) is not read as one.
func TestAMDMarksOfAbsence(t *testing.T) {
	rows, err := parseAMDMetric([]byte(`[{"gpu": 0,
		"usage": {"gfx_activity": {"value": 65535, "unit": "%"}, "umc_activity": {"value": 101, "unit": "%"}},
		"power": {"socket_power": {"value": 65535, "unit": "W"}, "current_socket_power": {"value": 4294967295, "unit": "W"}, "average_socket_power": {"value": 95, "unit": "W"}},
		"temperature": {"edge": {"value": 65535, "unit": "C"}},
		"clock": {"gfx_0": {"clk": {"value": 4294967295, "unit": "MHz"}}},
		"energy": {"total_energy_consumption": {"value": 18446744073709551615, "unit": "J"}},
		"mem_usage": {"used_vram": {"value": 4294967295, "unit": "MB"}}}]`))
	if err != nil {
		t.Fatal(err)
	}
	got := presentFields(rows[0].gpu)
	if len(got) != 1 || got[engine.GPUPowerW] != 95 {
		t.Errorf("got %v, want the average power alone", got)
	}
	card := amdCard{dir: "d", hwmon: "d/m", temperature: "temp1_input", sclk: "freq1_input", mclk: "freq2_input"}
	out := card.read(fstest.MapFS{
		"d/gpu_busy_percent":   {Data: []byte("65535\n")},
		"d/mem_busy_percent":   {Data: []byte("100\n")},
		"d/m/power1_average":   {Data: []byte("95000000\n")},
		"d/mem_info_vram_used": {Data: []byte("4294967295\n")}, // 4 GiB less a byte: bytes are no 32-bit number
	})
	got = presentFields(out.gpu)
	if len(got) != 3 || got[engine.GPUMemUtil] != 1 || got[engine.GPUPowerW] != 95 || got[engine.GPUVRAMUsed] != 4294967295 {
		t.Errorf("got %v", got)
	}
	if out.why[engine.GPUUtil] == "" {
		t.Error("utilization is absent without a reason")
	}
}

// TestAMDWithoutANameOfItsOwn holds that two GPUs of which neither the id nor the place
// is told stay two.
func TestAMDWithoutANameOfItsOwn(t *testing.T) {
	rows, err := parseAMDStatic([]byte(`[{"gpu": 0, "asic": {"asic_serial": "N/A"}}, {"gpu": 1, "asic": {"asic_serial": "N/A"}}]`))
	if err != nil || rows[0].device.UUID == rows[1].device.UUID {
		t.Errorf("both are %q (%v)", rows[0].device.UUID, err)
	}
	root := fstest.MapFS{}
	for _, card := range []string{"card0", "card1"} {
		root["sys/class/drm/"+card+"/device/vendor"] = &fstest.MapFile{Data: []byte("0x1002")}
		root["sys/class/drm/"+card+"/device/gpu_busy_percent"] = &fstest.MapFile{Data: []byte("5")}
	}
	s, err := openAMD(t.Context(), func() time.Duration { return 0 }, root, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := s.Devices(); len(d) != 2 || d[0].UUID == d[1].UUID {
		t.Errorf("%+v", d)
	}
}
