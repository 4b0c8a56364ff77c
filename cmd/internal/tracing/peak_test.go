package tracing

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// machineOf is a machine with a CPU of this name, in one socket.
func machineOf(cpu string) func() (host, error) {
	return func() (host, error) { return host{cpu: cpu, sockets: 1}, nil }
}

// roofIn returns the peak and the gaps in a trace's document.
func roofIn(t *testing.T, document string) (r optrace.Peak, gaps []string) {
	t.Helper()
	var d struct {
		Roof optrace.Peak  `json:"machine_peak"`
		Gaps []optrace.Gap `json:"gaps"`
	}
	if err := json.Unmarshal([]byte(document), &d); err != nil {
		t.Fatalf("%v: %.200s", err, document)
	}
	for _, g := range d.Gaps {
		gaps = append(gaps, g.Why)
	}
	return d.Roof, gaps
}

// unwrapped returns a text without line breaks.
func unwrapped(text string) string { return strings.Join(strings.Fields(text), " ") }

// TestRoofByTheCatalog covers a CPU that is in the catalog, or in a user's file, and a CPU with an
// unknown name.
func TestRoofByTheCatalog(t *testing.T) {
	known := machineOf("AMD EPYC 7763 64-Core Processor")
	file := filepath.Join(t.TempDir(), "run.jsonl.gz")
	out, errs, code := traceOn(t, known, variables(), newDecoder(time.Millisecond, 500), "--json", "--save", file)
	r, _ := roofIn(t, out)
	if code != cli.ExitDone || r.From != optrace.PeakCatalog || r.Threads != 1 || r.BytesPerSecond != optrace.CatalogCoreRead || !strings.Contains(r.FlopsOf, "EPYC 7003") {
		t.Fatalf("%+v, exit code %d: %s", r, code, errs)
	}
	if text, _, _ := traceOn(t, known, variables(), newDecoder(time.Millisecond, 500)); !strings.Contains(unwrapped(text), "catalog (est)") || !strings.Contains(unwrapped(text), "allows (est)") {
		t.Errorf("the report does not say that its roof is an estimate:\n%s", text)
	}
	hidden := machineOf("AMD EPYC")
	out, _, _ = traceOn(t, hidden, variables(), newDecoder(time.Millisecond, 500), "--json")
	if r, gaps := roofIn(t, out); r.From == optrace.PeakCatalog || !strings.Contains(strings.Join(gaps, "\n"), "names no model") {
		t.Errorf("%+v, %q", r, gaps)
	}
	ours := filepath.Join(t.TempDir(), "ours.yaml")
	if err := os.WriteFile(ours, []byte("cpus:\n  - {name: Our VM, models: [AMD EPYC], vendor: amd, mem_channels: 1, transfer_mt_s: 1600, fp32_flops_per_cycle: 32, max_ghz: 3}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, _ = traceOn(t, hidden, variables(), newDecoder(time.Millisecond, 500), "--json", "--catalog", ours)
	if r, gaps := roofIn(t, out); r.From != optrace.PeakCatalog || r.BytesPerSecond != optrace.CatalogRead*12.8e9 || r.FlopsPerSecond != 96e9 {
		t.Errorf("the user's file: %+v, %q", r, gaps)
	}
	if _, errs, code := traceOn(t, hidden, variables(), nil, "--catalog", file); code != cli.ExitUsage || !strings.Contains(errs, "--catalog") {
		t.Errorf("no catalog: exit code %d: %s", code, errs)
	}
	// A recording keeps its peak, unless a file with its CPU is named.
	again, _, _ := traceOn(t, hidden, variables(), nil, file, "--json")
	if got, _ := roofIn(t, again); !cmp.Equal(got, r) {
		t.Errorf("shown again: %+v, want %+v", got, r)
	}
}

// A recording without a measured peak is judged by the named file.
func TestRecordingByTheCatalog(t *testing.T) {
	c, err := catalog.Default().With(strings.NewReader("cpus: [{name: Our VM, models: [AMD EPYC], vendor: amd, mem_channels: 1, transfer_mt_s: 1600}]"), "ours.yaml")
	if err != nil {
		t.Fatal(err)
	}
	o := &Options{catalogFile: "ours.yaml", catalog: c}
	measured := optrace.Peak{BytesPerSecond: 1e9, Threads: 2, From: optrace.PeakMeasured}
	for _, tt := range []struct {
		cpu  string
		roof optrace.Peak
		want string
		gaps int
	}{
		{"AMD EPYC", optrace.Peak{}, optrace.PeakCatalog, 0}, {"AMD EPYC", measured, optrace.PeakMeasured, 0}, {"Other 1", optrace.Peak{}, "", 1},
	} {
		r := &optrace.Recording{Target: optrace.Target{CPU: tt.cpu}, Peak: tt.roof, Events: []optrace.Event{{Kind: optrace.OpBegin, Threads: 2}}}
		if o.applyCatalog(r); r.Peak.From != tt.want || len(r.Gaps) != tt.gaps || r.Peak.Known() && r.Peak.Threads != 2 {
			t.Errorf("%s, %q: %+v, %v", tt.cpu, tt.roof.From, r.Peak, r.Gaps)
		}
	}
}
