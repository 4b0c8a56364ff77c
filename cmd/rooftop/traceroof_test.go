package main

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
	"github.com/rooftop-dev/rooftop/collect/roof"
	"github.com/rooftop-dev/rooftop/engine/optrace"
)

// steady is a machine whose roof is known; lanes scale to four threads.
func steady(cpu, cpus string) roofing {
	return roofing{
		here: func() (roof.Host, error) { return roof.Host{CPU: cpu, CPUs: cpus, Count: 4, Sockets: 1}, nil },
		now:  func() time.Time { return time.Date(2026, 11, 22, 4, 30, 0, 0, time.UTC) },
		measure: func(_ context.Context, o roof.Options) (optrace.Roof, error) {
			r := optrace.Roof{From: optrace.RoofMeasured, FlopsOf: "f32, AVX2 FMA", Int8Of: "int8, AVX2", Threads: 4, BytesPerSecond: 20e9, FlopsPerSecond: 400e9, Int8PerSecond: 800e9, ByThreads: []optrace.RoofPoint{
				{Threads: 1, BytesPerSecond: 11e9, FlopsPerSecond: 100e9, Int8PerSecond: 200e9}, {Threads: 4, BytesPerSecond: 20e9, FlopsPerSecond: 400e9, Int8PerSecond: 800e9},
			}}
			if o.Threads > 0 {
				r, _ = r.With(o.Threads)
			}
			return r, nil
		},
	}
}

// measuredRoof keeps a machine's roof in a new state directory.
func measuredRoof(t *testing.T, m roofing) (env func(string) (string, bool), printed string) {
	t.Helper()
	env = variables("XDG_STATE_HOME", t.TempDir())
	var out, errs strings.Builder
	if err := runTraceRoof(t.Context(), &world{stdout: &out, stderr: &errs, env: env}, &output{color: "never"}, m); err != nil {
		t.Fatal(err)
	}
	return env, out.String()
}

// roofIn is the roof and the gaps of a trace's document.
func roofIn(t *testing.T, document string) (r optrace.Roof, gaps []string) {
	t.Helper()
	var d struct {
		Roof optrace.Roof  `json:"roof"`
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

// unwrapped is a text without its lines' ends.
func unwrapped(text string) string { return strings.Join(strings.Fields(text), " ") }

// A roof that was measured once is what later traces are judged by, and recordings keep.
func TestRoofThatWasKept(t *testing.T) {
	env, printed := measuredRoof(t, steady("Example CPU 1000", "0-3"))
	for _, want := range []string{"Example CPU 1000", "4 CPUs", "measured", "20.0", "AVX2 FMA", "roof.json"} {
		if !strings.Contains(printed, want) {
			t.Errorf("%q is not in\n%s", want, printed)
		}
	}
	file := filepath.Join(t.TempDir(), "run.jsonl.gz")
	out, errs, code := traceOn(t, steady("Example CPU 1000", "0-3"), env, newDecoder(time.Millisecond, 500), "--json", "--save", file)
	if code != exitDone {
		t.Fatalf("exit code %d: %s", code, errs)
	}
	r, _ := roofIn(t, out)
	if r.From != optrace.RoofMeasured || r.MeasuredOn != "2026-11-22" || r.Threads != 1 || r.BytesPerSecond != 11e9 {
		t.Errorf("the trace's roof: %+v", r)
	}
	text, _, _ := traceOn(t, steady("Example CPU 1000", "0-3"), env, newDecoder(time.Millisecond, 500))
	if !strings.Contains(unwrapped(text), "measured 2026-11-22 on this machine") {
		t.Errorf("the report does not say when it was measured:\n%s", text)
	}
	// On another machine, and without what was kept.
	again, _, _ := traceOn(t, steady("Other", "0"), variables(), nil, file, "--json")
	if got, _ := roofIn(t, again); !cmp.Equal(got, r) {
		t.Errorf("shown again: %+v, want %+v", got, r)
	}
}

// The roof of another machine is not used, and why is said.
func TestRoofOfAnotherMachine(t *testing.T) {
	env, _ := measuredRoof(t, steady("Example CPU 1000", "0-3"))
	for _, c := range []struct{ cpu, cpus, want string }{
		{"Example CPU 2000", "0-3", "another CPU, Example CPU 1000"}, {"Example CPU 1000", "0-1", "other CPUs, 0-3, and rooftop may use 0-1 now"},
	} {
		out, _, _ := traceOn(t, steady(c.cpu, c.cpus), env, newDecoder(time.Millisecond, 500), "--json")
		r, gaps := roofIn(t, out)
		if r.MeasuredOn != "" || r.From == optrace.RoofMeasured || !strings.Contains(strings.Join(gaps, "\n"), c.want) {
			t.Errorf("%s %s: %+v, %q", c.cpu, c.cpus, r, gaps)
		}
	}
}

// What is measured with a trace goes before what was kept, and is kept in its place.
func TestRoofMeasuredWithATrace(t *testing.T) {
	env, _ := measuredRoof(t, steady("Old CPU", "0-3"))
	out, _, _ := traceOn(t, steady("Example CPU 1000", "0-3"), env, newDecoder(time.Millisecond, 500), "--json", "--roof")
	if r, gaps := roofIn(t, out); r.From != optrace.RoofMeasured || r.MeasuredOn != "" || r.Threads != 1 {
		t.Errorf("%+v, %q", r, gaps)
	}
	if k, err := readKeptRoof(env); err != nil || k.CPU != "Example CPU 1000" {
		t.Errorf("kept: %+v, %v", k, err)
	}
	// One that was disturbed is not, and the one before is used.
	busy := steady("Example CPU 1000", "0-3")
	busy.measure = func(context.Context, roof.Options) (optrace.Roof, error) {
		return optrace.Roof{From: optrace.RoofDisturbed, BytesPerSecond: 1e9, Threads: 1}, nil
	}
	out, _, _ = traceOn(t, busy, env, newDecoder(time.Millisecond, 500), "--json", "--roof")
	if r, gaps := roofIn(t, out); r.MeasuredOn != "2026-11-22" || r.BytesPerSecond != 11e9 || !strings.Contains(strings.Join(gaps, "\n"), "other programs had the CPUs") {
		t.Errorf("%+v, %q", r, gaps)
	}
	var text, errs strings.Builder
	err := runTraceRoof(t.Context(), &world{stdout: &text, stderr: &errs, env: variables("XDG_STATE_HOME", t.TempDir())}, &output{color: "never"}, busy)
	var coded *codedError
	if !errors.As(err, &coded) || coded.code != exitNothing || strings.Contains(text.String(), "kept in") {
		t.Errorf("%v:\n%s", err, text.String())
	}
}

func TestRoofThatCannotBeRead(t *testing.T) {
	env, _ := measuredRoof(t, steady("Example CPU 1000", "0-3"))
	path, err := roofPath(env)
	if err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ old, new, want string }{
		{"{", "", "it is no roof"}, {roofSchema, "rooftop.roof/v9", "its schema is"},
		{`"from": "measured"`, `"from": "seen"`, "does not say what was measured"}, {`"bytes_per_s": 20000000000`, `"bytes_per_s": -1`, "no rates"},
		{`"threads": 1`, `"threads": 9`, "not in order"},
	} {
		bad := strings.Replace(string(good), c.old, c.new, 1)
		if err := os.WriteFile(path, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readKeptRoof(env); err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", c.new, err)
		}
		out, _, code := traceOn(t, steady("Example CPU 1000", "0-3"), env, newDecoder(time.Millisecond, 500), "--json")
		if _, gaps := roofIn(t, out); code != exitDone || !strings.Contains(strings.Join(gaps, "\n"), c.want) {
			t.Errorf("%s: exit code %d, gaps %q", c.new, code, gaps)
		}
	}
	if k, err := readKeptRoof(variables()); k != nil || err != nil {
		t.Errorf("no directory: %v, %v", k, err)
	}
}

// FuzzKeptRoof: whatever lies in the file is a roof that can be judged by, or refused.
func FuzzKeptRoof(f *testing.F) {
	f.Add([]byte(`{"schema":"rooftop.roof/v1","cpu":"X","cpus":"0-1","measured":"2026-11-22T04:30:00Z","roof":{"bytes_per_s":1e9,"flops_per_s":1e9,"threads":2,"from":"measured","by_threads":[{"threads":1,"bytes_per_s":1,"flops_per_s":1}]}}`))
	f.Add([]byte(`{"roof":null}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		k, err := parseKeptRoof(text)
		if (k == nil) == (err == nil) {
			t.Fatalf("%v, %v", k, err)
		}
		if k != nil {
			if r, ok := k.Roof.With(k.Roof.Threads); !ok || !r.Known() || r.MeasuredOn == "" {
				t.Errorf("%+v of %s", r, text)
			}
		}
	})
}

// TestRoofByTheCatalog is a machine whose CPU the catalog knows, or a person's file, and
// on which nothing was measured; and one whose name says nothing.
func TestRoofByTheCatalog(t *testing.T) {
	known := steady("AMD EPYC 7763 64-Core Processor", "0-3")
	file := filepath.Join(t.TempDir(), "run.jsonl.gz")
	out, errs, code := traceOn(t, known, variables(), newDecoder(time.Millisecond, 500), "--json", "--save", file)
	r, _ := roofIn(t, out)
	if code != exitDone || r.From != optrace.RoofCatalog || r.Threads != 1 || r.BytesPerSecond != optrace.CatalogCoreRead || !strings.Contains(r.FlopsOf, "EPYC 7003") {
		t.Fatalf("%+v, exit code %d: %s", r, code, errs)
	}
	if text, _, _ := traceOn(t, known, variables(), newDecoder(time.Millisecond, 500)); !strings.Contains(unwrapped(text), "catalog (est)") || !strings.Contains(unwrapped(text), "allows (est)") {
		t.Errorf("the report does not say that its roof is an estimate:\n%s", text)
	}
	// What was measured goes before it, and it goes before the best that was seen.
	env, _ := measuredRoof(t, known)
	out, _, _ = traceOn(t, known, env, newDecoder(time.Millisecond, 500), "--json")
	if r, _ := roofIn(t, out); r.From != optrace.RoofMeasured {
		t.Errorf("measured before: %+v", r)
	}
	hidden := steady("AMD EPYC", "0-3")
	out, _, _ = traceOn(t, hidden, variables(), newDecoder(time.Millisecond, 500), "--json")
	if r, gaps := roofIn(t, out); r.From == optrace.RoofCatalog || !strings.Contains(strings.Join(gaps, "\n"), "names no model") {
		t.Errorf("%+v, %q", r, gaps)
	}
	ours := filepath.Join(t.TempDir(), "ours.yaml")
	if err := os.WriteFile(ours, []byte("cpus:\n  - {name: Our VM, models: [AMD EPYC], vendor: amd, mem_channels: 1, transfer_mt_s: 1600, fp32_flops_per_cycle: 32, max_ghz: 3}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	out, _, _ = traceOn(t, hidden, variables(), newDecoder(time.Millisecond, 500), "--json", "--catalog", ours)
	if r, gaps := roofIn(t, out); r.From != optrace.RoofCatalog || r.BytesPerSecond != optrace.CatalogRead*12.8e9 || r.FlopsPerSecond != 96e9 {
		t.Errorf("a person's file: %+v, %q", r, gaps)
	}
	if _, errs, code := traceOn(t, hidden, variables(), nil, "--catalog", file); code != exitUsage || !strings.Contains(errs, "--catalog") {
		t.Errorf("no catalog: exit code %d: %s", code, errs)
	}
	// A recording keeps its roof, until a file is named that knows its CPU.
	again, _, _ := traceOn(t, hidden, variables(), nil, file, "--json")
	if got, _ := roofIn(t, again); !cmp.Equal(got, r) {
		t.Errorf("shown again: %+v, want %+v", got, r)
	}
}

// A recording whose roof was not measured is judged by the file that one names.
func TestRecordingByTheCatalog(t *testing.T) {
	c, err := catalog.Default().With(strings.NewReader("cpus: [{name: Our VM, models: [AMD EPYC], vendor: amd, mem_channels: 1, transfer_mt_s: 1600}]"), "ours.yaml")
	if err != nil {
		t.Fatal(err)
	}
	o := &traceOptions{catalogFile: "ours.yaml", catalog: c}
	measured := optrace.Roof{BytesPerSecond: 1e9, Threads: 2, From: optrace.RoofMeasured}
	for _, tt := range []struct {
		cpu  string
		roof optrace.Roof
		want string
		gaps int
	}{
		{"AMD EPYC", optrace.Roof{}, optrace.RoofCatalog, 0}, {"AMD EPYC", measured, optrace.RoofMeasured, 0}, {"Other 1", optrace.Roof{}, "", 1},
	} {
		r := &optrace.Recording{Target: optrace.Target{CPU: tt.cpu}, Roof: tt.roof, Events: []optrace.Event{{Kind: optrace.OpBegin, Lanes: 2}}}
		if o.recatalog(r); r.Roof.From != tt.want || len(r.Gaps) != tt.gaps || r.Roof.Known() && r.Roof.Threads != 2 {
			t.Errorf("%s, %q: %+v, %v", tt.cpu, tt.roof.From, r.Roof, r.Gaps)
		}
	}
}
