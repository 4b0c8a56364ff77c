package gpu

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/collect"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// exporter serves pages from memory.
type exporter struct {
	page string
	err  error
}

func (e *exporter) fetch(context.Context) ([]byte, error) { return []byte(e.page), e.err }

func dcgmFile(t testing.TB, name string) *exporter {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "dcgm", name))
	if err != nil {
		t.Fatal(err)
	}
	return &exporter{page: string(text)}
}

// hand is a session clock that a test sets.
type hand struct{ at time.Duration }

func (h *hand) now() time.Duration { return h.at }

func openPage(t *testing.T, e *exporter, node string) (Source, *hand) {
	t.Helper()
	clock := &hand{}
	s, err := openDCGM(t.Context(), Options{Clock: clock.now, DCGM: e.fetch, Remote: node})
	if err != nil {
		t.Fatal(err)
	}
	s.(*dcgmSource).renewed = true // as of an exporter whose values have changed since
	return s, clock
}

func TestDCGMReads(t *testing.T) {
	const mib = 1 << 20
	s, clock := openPage(t, dcgmFile(t, "h100x2.prom"), "")
	clock.at = 250 * time.Millisecond
	r, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := map[engine.GPUField]float64{
		engine.GPUUtil: 0.97, engine.GPUMemUtil: 0.61, engine.GPUPowerW: 612.345, engine.GPUPowerLimitW: 700,
		engine.GPUVRAMTotal: (71680 + 9307 + 572) * mib, engine.GPUVRAMUsed: 71680 * mib, engine.GPUTemperatureC: 64,
		engine.GPUSMClockMHz: 1755, engine.GPUSMClockMaxMHz: 1980, engine.GPUTemperatureLimitC: 87, engine.GPUMemClockMHz: 2619, engine.GPUEnergyJ: 123_456_789,
		engine.GPUDRAMActive: 0.715, engine.GPUTensorUtil: 0.1225, engine.GPUSMActive: 0.93125,
		engine.GPUPCIeTxBps: 3 * mib, engine.GPUPCIeRxBps: 2 * mib, engine.GPUNVLinkTxBps: 40 * mib, engine.GPUNVLinkRxBps: 41 * mib,
	}
	if diff := cmp.Diff(want, presentFields(r.Devices[0])); diff != "" {
		t.Errorf("fields (-want +got):\n%s", diff)
	}
	if g := r.Devices[1]; g.Throttle != 1 || !g.ThrottleOK || g.Fields[engine.GPUUtil] != stat.Some(0) {
		t.Errorf("the idle GPU: got reasons %#x and utilization %v, want 0x1 and a measured 0", g.Throttle, g.Fields[engine.GPUUtil])
	}
	devices := []Device{
		{Index: 0, Name: "NVIDIA H100 80GB HBM3", UUID: "GPU-11111111-aaaa-bbbb-cccc-000000000001", GI: -1, Minor: 0,
			VRAMBytes: stat.Some(81559 * mib), BusID: "00000000:1b:00.0", Driver: "550.90.07"},
		{Index: 1, Name: "NVIDIA H100 80GB HBM3", UUID: "GPU-11111111-aaaa-bbbb-cccc-000000000002", GI: -1, Minor: 1,
			VRAMBytes: stat.Some(81559 * mib), BusID: "00000000:43:00.0", Driver: "550.90.07"},
	}
	if diff := cmp.Diff(devices, s.Devices()); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
	if missing := s.Missing(); len(missing) > 0 {
		t.Errorf("missing: got %v, want nothing", missing)
	}
	if diff := cmp.Diff([]string{"GPU 1: the driver's last error on it is XID 94"}, s.Notes()); diff != "" {
		t.Errorf("notes (-want +got):\n%s", diff)
	}
	if _, err := s.Processes(t.Context()); !errors.Is(err, collect.ErrNoData) {
		t.Errorf("processes: got %v, want no data", err)
	}
}

func TestDCGMMIG(t *testing.T) {
	const mib = 1 << 20
	s, _ := openPage(t, dcgmFile(t, "a100-mig.prom"), "")
	var names []string
	for _, d := range s.Devices() {
		names = append(names, d.UUID+" "+d.Name)
	}
	wantNames := []string{
		"MIG-GPU-22222222-aaaa-bbbb-cccc-000000000001/1 NVIDIA A100-SXM4-80GB MIG 3g.40gb",
		"MIG-GPU-22222222-aaaa-bbbb-cccc-000000000001/2 NVIDIA A100-SXM4-80GB MIG 4g.40gb",
		"GPU-22222222-aaaa-bbbb-cccc-000000000002 NVIDIA A100-SXM4-80GB",
	}
	if diff := cmp.Diff(wantNames, names); diff != "" {
		t.Errorf("devices (-want +got):\n%s", diff)
	}
	r, err := s.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := []map[engine.GPUField]float64{
		{engine.GPUUtil: 0.42, engine.GPUVRAMTotal: 40192 * mib, engine.GPUVRAMUsed: 20192 * mib, engine.GPUTemperatureC: 34,
			engine.GPUSMClockMHz: 1410, engine.GPUMemClockMHz: 1593, engine.GPUDRAMActive: 0.3},
		{engine.GPUUtil: 0, engine.GPUVRAMTotal: 40192 * mib, engine.GPUVRAMUsed: 0, engine.GPUTemperatureC: 34,
			engine.GPUSMClockMHz: 1410, engine.GPUMemClockMHz: 1593, engine.GPUDRAMActive: 0},
		{engine.GPUUtil: 0.8, engine.GPUPowerW: 301.5, engine.GPUEnergyJ: 7000, engine.GPUVRAMTotal: 81000 * mib, engine.GPUVRAMUsed: 60000 * mib,
			engine.GPUTemperatureC: 50, engine.GPUSMClockMHz: 1275, engine.GPUMemClockMHz: 1593},
	}
	for i := range want {
		if diff := cmp.Diff(want[i], presentFields(r.Devices[i])); diff != "" {
			t.Errorf("device %d (-want +got):\n%s", i, diff)
		}
	}
	byWhat := map[string]string{}
	for _, m := range s.Missing() {
		byWhat[m.What] = m.Reason
	}
	wantWhy := map[string]string{
		"GPU power of GPU 0 slice 1, GPU 0 slice 2": "DCGM measures the whole GPU only, and this is a MIG slice of it",
		"GPU power limit of GPU 1":                  "the page has no DCGM_FI_DEV_ENFORCED_POWER_LIMIT: add it to the exporter's counters file",
		"limits of GPU clock and temperature":       "the page has no DCGM_FI_DEV_MAX_SM_CLOCK: add it to the exporter's counters file",
		"reasons for lower clocks":                  "the page has no DCGM_FI_DEV_CLOCKS_EVENT_REASONS: add it to the exporter's counters file",
	}
	for what, reason := range wantWhy {
		if byWhat[what] != reason {
			t.Errorf("missing %q: got %q, want %q", what, byWhat[what], reason)
		}
	}
}

func TestDCGMNodes(t *testing.T) {
	page := dcgmFile(t, "two-nodes.prom")
	for _, node := range []string{"node-b", "NODE-B.cluster.local"} {
		s, _ := openPage(t, page, node)
		r, err := s.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		want := map[engine.GPUField]float64{engine.GPUUtil: 0.9, engine.GPUPowerW: 300}
		if diff := cmp.Diff(want, presentFields(r.Devices[0])); diff != "" || len(r.Devices) != 1 {
			t.Errorf("node %s, %d devices (-want +got):\n%s", node, len(r.Devices), diff)
		}
		if len(s.Notes()) > 0 || s.Devices()[0].Host != "" {
			t.Errorf("node %s: notes %v, host %q; want neither", node, s.Notes(), s.Devices()[0].Host)
		}
	}
	for _, node := range []string{"", "node-c", "10.0.0.7"} {
		s, _ := openPage(t, page, node)
		if len(s.Devices()) != 2 || len(s.Notes()) != 1 || !strings.Contains(s.Notes()[0], "node-a.cluster.local, node-b.cluster.local") {
			t.Errorf("node %q: got %v, notes %v; want both nodes and a note", node, s.Devices(), s.Notes())
		}
		r, err := s.Read(t.Context())
		if err != nil || r.Devices[0].Fields[engine.GPUUtil] != stat.Some(0.1) || r.Devices[0].Fields[engine.GPUPowerW].OK {
			t.Errorf("node %q: got %v, %v; want node a first, without its blank power", node, r, err)
		}
	}
}

// The exporter prints values that it sampled earlier: a reading is as old as
// they are, and the user learns what to do about it.
func TestDCGMOldValues(t *testing.T) {
	e := dcgmFile(t, "h100x2.prom")
	s, clock := openPage(t, e, "")
	s.(*dcgmSource).renewed = false
	var energy stat.Opt
	read := func(at time.Duration) time.Duration {
		t.Helper()
		clock.at = at
		r, err := s.Read(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		energy = r.Devices[0].Fields[engine.GPUEnergyJ]
		return r.T
	}
	if got := read(500 * time.Millisecond); got != 0 {
		t.Errorf("the same values: stamped %v, want when they were first seen", got)
	}
	if len(s.Missing()) > 0 {
		t.Errorf("after half a second: missing %v", s.Missing())
	}
	if got := read(20 * time.Second); got != 0 {
		t.Errorf("the same values after 20 s: stamped %v, want 0", got)
	}
	missing := s.Missing()
	if len(missing) != 2 || missing[0].What != "GPU energy counter" || missing[1].What != "fresh GPU readings" || !strings.Contains(missing[1].Reason, "20s") || !strings.Contains(missing[1].Effect, "DCGM_EXPORTER_INTERVAL") {
		t.Errorf("missing: got %v, want the age and the exporter's interval", missing)
	}
	if got, want := AveragingOf(s), (Averaging{Window: 21 * time.Second}); got != want {
		t.Errorf("averaging: got %+v, want %+v, the second and the age", got, want)
	}
	e.page = strings.ReplaceAll(e.page, "123456789000", "123456999000")
	if energy.OK {
		t.Errorf("energy of the first page: got %v, want none: its age is unknown", energy)
	}
	if got := read(21 * time.Second); got != 21*time.Second || energy != stat.Some(123_456_999) {
		t.Errorf("new values: stamped %v with %v J, want 21 s and the counter", got, energy)
	}
}

func TestDCGMRefusals(t *testing.T) {
	e := dcgmFile(t, "h100x2.prom")
	s, _ := openPage(t, e, "")
	good := e.page

	e.page = strings.ReplaceAll(good, "GPU-11111111-aaaa-bbbb-cccc-000000000002", "GPU-other")
	r, err := s.Read(t.Context())
	if err != nil || len(r.Devices) != 2 || r.Devices[1].Fields[engine.GPUUtil].OK || r.Devices[1].Index != 1 {
		t.Errorf("a GPU that left: got %v, %v; want its place, empty", r, err)
	}
	if notes := s.Notes(); len(notes) != 1 || notes[0] != "GPU 1 is no longer on the page" {
		t.Errorf("notes: got %v", notes)
	}
	for name, page := range map[string]string{
		"another exporter": "node_cpu_seconds_total 5\n",
		"HTML":             "<html></html>\n",
		"cut short":        good[:len(good)-30],
		"empty":            "",
	} {
		e.page = page
		if r, err := s.Read(t.Context()); err == nil {
			t.Errorf("%s: got %v, want an error", name, r)
		}
		if _, err := openDCGM(t.Context(), Options{Clock: (&hand{}).now, DCGM: e.fetch}); err == nil {
			t.Errorf("%s: opened", name)
		}
	}
	e.page, e.err = good, errors.New("connection refused")
	if _, err := s.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("no answer: got %v", err)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := s.Read(t.Context()); !errors.Is(err, ErrClosed) {
		t.Errorf("read after close: got %v", err)
	}
}

func FuzzDCGMPage(f *testing.F) {
	for _, name := range []string{"h100x2.prom", "a100-mig.prom", "two-nodes.prom"} {
		f.Add([]byte(dcgmFile(f, name).page))
	}
	f.Add([]byte("DCGM_FI_DEV_GPU_UTIL{gpu=\"0\",UUID=\"GPU-1\"} NaN\n"))
	f.Fuzz(func(t *testing.T, page []byte) {
		rows, err := newDCGMReader().rows(page)
		if err != nil {
			return
		}
		for i, r := range rows {
			if r.device.UUID == "" || r.device.Index < 0 {
				t.Errorf("row %d has no device: %+v", i, r.device)
			}
			for field, v := range r.gpu.Fields {
				if v.OK && !(v.V >= 0 && v.V < 1<<68) {
					t.Errorf("row %d: field %d is %v", i, field, v.V)
				}
				if v.OK == (r.why[field] != "") {
					t.Errorf("row %d: field %d present is %v, and the reason for its absence %q", i, field, v.OK, r.why[field])
				}
			}
		}
	})
}

// TestDCGMOddPages reads pages that another exporter than NVIDIA's may write. Each has a GPU at 50 % and 300 W.
func TestDCGMOddPages(t *testing.T) {
	const util, power = "DCGM_FI_DEV_GPU_UTIL", "DCGM_FI_DEV_POWER_USAGE"
	const gpu = `{gpu="0",UUID="GPU-1",modelName="NVIDIA H100 80GB HBM3"}`
	for _, c := range []struct{ name, page, lacks, why string }{
		{"plain", util + gpu + " 50\n" + power + gpu + " 300\n", "", ""},
		{"OpenMetrics, exemplar, timestamp", "# TYPE x gauge\n" + util + gpu + " 50 1395066363.5\n" + power + gpu + " 300 # {a=\"}\"} 1\n# EOF\n", "", ""},
		{"carriage returns and exponents", util + gpu + " 5E1\r\n" + power + gpu + " 3e+2\r\n# EOF\r\n", "", ""},
		{"another order of labels, empty ones", util + `{ modelName="NVIDIA H100 80GB HBM3", pod="", uuid="GPU-1", gpu="0", }` + " 50\n" + power + gpu + " 300\n", "", ""},
		{"quoted names", `{"` + util + `",gpu="0",UUID="GPU-1"} 50` + "\n" + `{ "` + power + `" , gpu="0", UUID="GPU-1"} 300` + "\n", "", ""},
		{"twice, and of two pods", util + gpu + " 50\n" + util + gpu + " 70\n" + power + `{gpu="0",UUID="GPU-1",pod="a"} 300` + "\n" + power + `{gpu="0",UUID="GPU-1",pod="b"} 300` + "\n", "", ""},
		{"series of no device", util + gpu + " 50\n" + util + `{gpu="x",UUID="GPU-2"} 1` + "\n" + util + `{gpu="0"} 1` + "\n" + util + " 1\n" + power + gpu + " 300\n", "", ""},
		{"NaN", util + gpu + " NaN\n" + power + gpu + " 300\n", util, "no " + util},
		{"infinite", util + gpu + " +Inf\n" + power + gpu + " 300\n", util, "no " + util},
		{"negative", util + gpu + " 50\n" + power + gpu + " -1\n", power, "no " + power},
		{"blank", util + gpu + " 50\n" + power + gpu + " 1.8446744073709552e+19\n", power, "no " + power},
		{"no percentage", util + gpu + " 65535\n" + power + gpu + " 300\n", util, util + " is 65535"},
		{"in place of no percentage", util + gpu + " 65535\nDCGM_FI_PROF_GR_ENGINE_ACTIVE" + gpu + " 0.5\n" + power + gpu + " 300\n", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := openPage(t, &exporter{page: c.page}, "")
			r, err := s.Read(t.Context())
			if err != nil || len(r.Devices) != 1 {
				t.Fatalf("%d devices: %v", len(r.Devices), err)
			}
			want := map[engine.GPUField]float64{engine.GPUUtil: 0.5, engine.GPUPowerW: 300}
			switch c.lacks {
			case util:
				delete(want, engine.GPUUtil)
			case power:
				delete(want, engine.GPUPowerW)
			}
			if diff := cmp.Diff(want, presentFields(r.Devices[0])); diff != "" {
				t.Errorf("fields (-want +got):\n%s", diff)
			}
			found := false
			for _, m := range s.Missing() {
				found = found || strings.Contains(m.Reason, c.why)
			}
			if !found {
				t.Errorf("missing %v, want the reason %q", s.Missing(), c.why)
			}
		})
	}
}
