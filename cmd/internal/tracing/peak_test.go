package tracing

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/catalog"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/collect/machinepeak"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// steady is a machine with a known peak; rates scale to four threads.
func steady(cpu, cpus string) peakMeter {
	return peakMeter{
		here: func() (machinepeak.Host, error) {
			return machinepeak.Host{CPU: cpu, CPUs: cpus, Count: 4, Sockets: 1}, nil
		},
		now: func() time.Time { return time.Date(2026, 11, 22, 4, 30, 0, 0, time.UTC) },
		measure: func(_ context.Context, o machinepeak.Options) (optrace.Peak, error) {
			r := optrace.Peak{From: optrace.PeakMeasured, FlopsOf: "f32, AVX2 FMA", Int8Of: "int8, AVX2", Threads: 4, BytesPerSecond: 20e9, FlopsPerSecond: 400e9, Int8PerSecond: 800e9, ByThreads: []optrace.PeakPoint{
				{Threads: 1, BytesPerSecond: 11e9, FlopsPerSecond: 100e9, Int8PerSecond: 200e9}, {Threads: 4, BytesPerSecond: 20e9, FlopsPerSecond: 400e9, Int8PerSecond: 800e9},
			}}
			if o.Threads > 0 {
				r, _ = r.WithThreads(o.Threads)
			}
			return r, nil
		},
	}
}

// measuredRoof stores a machine's peak in a new state directory.
func measuredRoof(t *testing.T, m peakMeter) (env func(string) (string, bool), printed string) {
	t.Helper()
	env = variables("XDG_STATE_HOME", t.TempDir())
	var out, errs strings.Builder
	if err := measurePeak(t.Context(), &cli.World{Stdout: &out, Stderr: &errs, Env: env}, &cli.Output{Color: "never"}, m); err != nil {
		t.Fatal(err)
	}
	return env, out.String()
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

// Later traces are compared with a peak that was measured once, and recordings keep it.
func TestRoofThatWasKept(t *testing.T) {
	env, printed := measuredRoof(t, steady("Example CPU 1000", "0-3"))
	for _, want := range []string{"Example CPU 1000", "4 CPUs", "measured", "20.0", "AVX2 FMA", "roof.json"} {
		if !strings.Contains(printed, want) {
			t.Errorf("%q is not in\n%s", want, printed)
		}
	}
	file := filepath.Join(t.TempDir(), "run.jsonl.gz")
	out, errs, code := traceOn(t, steady("Example CPU 1000", "0-3"), env, newDecoder(time.Millisecond, 500), "--json", "--save", file)
	if code != cli.ExitDone {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	r, _ := roofIn(t, out)
	if r.From != optrace.PeakMeasured || r.MeasuredOn != "2026-11-22" || r.Threads != 1 || r.BytesPerSecond != 11e9 {
		t.Errorf("the trace's roof: %+v", r)
	}
	text, _, _ := traceOn(t, steady("Example CPU 1000", "0-3"), env, newDecoder(time.Millisecond, 500))
	if !strings.Contains(unwrapped(text), "measured 2026-11-22 on this machine") {
		t.Errorf("the report does not say when it was measured:\n%s", text)
	}
	// On another machine, and without the stored peak.
	again, _, _ := traceOn(t, steady("Other", "0"), variables(), nil, file, "--json")
	if got, _ := roofIn(t, again); !cmp.Equal(got, r) {
		t.Errorf("shown again: %+v, want %+v", got, r)
	}
}

// The peak of another machine is not used, and the reason is given.
func TestRoofOfAnotherMachine(t *testing.T) {
	env, _ := measuredRoof(t, steady("Example CPU 1000", "0-3"))
	for _, c := range []struct{ cpu, cpus, want string }{
		{"Example CPU 2000", "0-3", "another CPU, Example CPU 1000"}, {"Example CPU 1000", "0-1", "other CPUs, 0-3, and rooftop may use 0-1 now"},
	} {
		out, _, _ := traceOn(t, steady(c.cpu, c.cpus), env, newDecoder(time.Millisecond, 500), "--json")
		r, gaps := roofIn(t, out)
		if r.MeasuredOn != "" || r.From == optrace.PeakMeasured || !strings.Contains(strings.Join(gaps, "\n"), c.want) {
			t.Errorf("%s %s: %+v, %q", c.cpu, c.cpus, r, gaps)
		}
	}
}

// A peak measured with a trace takes precedence over the stored one, and replaces it.
func TestRoofMeasuredWithATrace(t *testing.T) {
	env, _ := measuredRoof(t, steady("Old CPU", "0-3"))
	out, _, _ := traceOn(t, steady("Example CPU 1000", "0-3"), env, newDecoder(time.Millisecond, 500), "--json", "--roof")
	if r, gaps := roofIn(t, out); r.From != optrace.PeakMeasured || r.MeasuredOn != "" || r.Threads != 1 {
		t.Errorf("%+v, %q", r, gaps)
	}
	if k, err := readKeptPeak(env); err != nil || k.CPU != "Example CPU 1000" {
		t.Errorf("kept: %+v, %v", k, err)
	}
	// A disturbed one does not, and the previous one is used.
	busy := steady("Example CPU 1000", "0-3")
	busy.measure = func(context.Context, machinepeak.Options) (optrace.Peak, error) {
		return optrace.Peak{From: optrace.PeakDisturbed, BytesPerSecond: 1e9, Threads: 1}, nil
	}
	out, _, _ = traceOn(t, busy, env, newDecoder(time.Millisecond, 500), "--json", "--roof")
	if r, gaps := roofIn(t, out); r.MeasuredOn != "2026-11-22" || r.BytesPerSecond != 11e9 || !strings.Contains(strings.Join(gaps, "\n"), "other programs had the CPUs") {
		t.Errorf("%+v, %q", r, gaps)
	}
	var text, errs strings.Builder
	err := measurePeak(t.Context(), &cli.World{Stdout: &text, Stderr: &errs, Env: variables("XDG_STATE_HOME", t.TempDir())}, &cli.Output{Color: "never"}, busy)
	var coded *cli.CodedError
	if !errors.As(err, &coded) || coded.Code != cli.ExitNothing || strings.Contains(text.String(), "kept in") {
		t.Errorf("%v:\n%s", err, text.String())
	}
}

func TestRoofThatCannotBeRead(t *testing.T) {
	env, _ := measuredRoof(t, steady("Example CPU 1000", "0-3"))
	path, err := keptPeakPath(env)
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"{", "", "not a machine peak"}, {keptPeakSchema, "rooftop.roof/v9", "its schema is"},
		{`"from": "measured"`, `"from": "seen"`, "lacks what was measured"}, {`"bytes_per_s": 20000000000`, `"bytes_per_s": -1`, "rates are invalid"},
		{`"threads": 1`, `"threads": 9`, "not in order"},
	} {
		bad := strings.Replace(string(good), c.old, c.new, 1)
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readKeptPeak(env); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", c.new, err)
		}
		out, _, code := traceOn(t, steady("Example CPU 1000", "0-3"), env, newDecoder(time.Millisecond, 500), "--json")
		if _, gaps := roofIn(t, out); code != cli.ExitDone || !strings.Contains(strings.Join(gaps, "\n"), c.want) {
			t.Errorf("%s: exit code %d, gaps %q", c.new, code, gaps)
		}
	}
	if k, err := readKeptPeak(variables()); k != nil || err != nil {
		t.Errorf("no directory: %v, %v", k, err)
	}
}

// FuzzKeptRoof checks that any file is either a valid peak or rejected.
func FuzzKeptRoof(f *testing.F) {
	f.Add([]byte(`{"schema":"rooftop.roof/v1","cpu":"X","cpus":"0-1","measured":"2026-11-22T04:30:00Z","roof":{"bytes_per_s":1e9,"flops_per_s":1e9,"threads":2,"from":"measured","by_threads":[{"threads":1,"bytes_per_s":1,"flops_per_s":1}]}}`))
	f.Add([]byte(`{"roof":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		k, err := parseKeptPeak(text)
		if (k == nil) == (err == nil) {
			t.Fatalf("%v, %v", k, err)
		}
		if k != nil {
			if r, ok := k.Roof.WithThreads(k.Roof.Threads); !ok || !r.Known() || r.MeasuredOn == "" {
				t.Errorf("%+v of %s", r, text)
			}
		}
	})
}

// TestRoofByTheCatalog covers a CPU that is in the catalog, or in a user's file, on a machine
// without a measured peak; and a CPU with an unknown name.
func TestRoofByTheCatalog(t *testing.T) {
	known := steady("AMD EPYC 7763 64-Core Processor", "0-3")
	file := filepath.Join(t.TempDir(), "run.jsonl.gz")
	out, errs, code := traceOn(t, known, variables(), newDecoder(time.Millisecond, 500), "--json", "--save", file)
	r, _ := roofIn(t, out)
	if code != cli.ExitDone || r.From != optrace.PeakCatalog || r.Threads != 1 || r.BytesPerSecond != optrace.CatalogCoreRead || !strings.Contains(r.FlopsOf, "EPYC 7003") {
		t.Fatalf("%+v, exit code %d: %s", r, code, errs)
	}
	if text, _, _ := traceOn(t, known, variables(), newDecoder(time.Millisecond, 500)); !strings.Contains(unwrapped(text), "catalog (est)") || !strings.Contains(unwrapped(text), "allows (est)") {
		t.Errorf("the report does not say that its roof is an estimate:\n%s", text)
	}
	// A measured peak takes precedence over the catalog, and the catalog over the best observed
	// rate.
	env, _ := measuredRoof(t, known)
	out, _, _ = traceOn(t, known, env, newDecoder(time.Millisecond, 500), "--json")
	if r, _ := roofIn(t, out); r.From != optrace.PeakMeasured {
		t.Errorf("measured before: %+v", r)
	}
	hidden := steady("AMD EPYC", "0-3")
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
		t.Errorf("a person's file: %+v, %q", r, gaps)
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
