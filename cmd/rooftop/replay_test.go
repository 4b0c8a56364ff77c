package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/attach"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/session"
)

// opened returns the lines of a recording.
func opened(t *testing.T, path string) io.Reader {
	t.Helper()
	f, err := os.Open(path)
	must(t, err)
	t.Cleanup(func() { _ = f.Close() })
	z, err := gzip.NewReader(f)
	must(t, err)
	return z
}

// uncompressed returns a writer of a gzip stream that is cheap to write.
func uncompressed(t *testing.T, w io.Writer) *gzip.Writer {
	t.Helper()
	z, err := gzip.NewWriterLevel(w, gzip.NoCompression)
	must(t, err)
	return z
}

// rewritten copies a recording with another header.
func rewritten(t *testing.T, path string, change func(*session.Header)) string {
	t.Helper()
	lines := bufio.NewReader(opened(t, path))
	first, err := lines.ReadBytes('\n')
	must(t, err)
	var head struct {
		Header session.Header `json:"header"`
	}
	must(t, json.Unmarshal(first, &head))
	change(&head.Header)
	if first, err = json.Marshal(head); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	w := uncompressed(t, &b)
	if _, err := w.Write(append(first, '\n')); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(w, lines); err != nil {
		t.Fatal(err)
	}
	must(t, w.Close())
	out := filepath.Join(t.TempDir(), "run.gz")
	must(t, os.WriteFile(out, b.Bytes(), 0o600))
	return out
}

func TestReplayShowsTheRecordedCeiling(t *testing.T) {
	plain := filepath.Join("..", "..", "testdata", "recordings", "slots4-cpu.gz")
	classic := rewritten(t, plain, func(h *session.Header) { h.Ceiling = attach.ClassicCeiling })
	page := func(env []string, args ...string) string {
		out, errs, code := call(t, env, append([]string{"replay"}, args...)...)
		if code != cli.ExitRecommendation {
			t.Fatalf("%v: exit code %d: %s", args, code, errs)
		}
		return out
	}
	wantPhysical, wantClassic := page(nil, plain, "--ceiling", "physical"), page(nil, plain, "--ceiling", "classic")
	if wantPhysical == wantClassic {
		t.Fatal("both ceilings give the same page")
	}
	for _, c := range []struct {
		name, got, want string
	}{
		{"recorded as classic", page(nil, classic), wantClassic},
		{"the flag wins", page(nil, classic, "--ceiling", "physical"), wantPhysical},
		{"the variable wins", page([]string{"ROOFTOP_CEILING=physical"}, classic), wantPhysical},
		{"recorded before it was kept", page(nil, plain), wantPhysical},
	} {
		if c.got != c.want {
			t.Errorf("%s: got\n%s", c.name, c.got)
		}
	}
}

// Facts that could not be read from a recorded server can be given later.
func TestReplayTakesWhatCouldNotBeRead(t *testing.T) {
	plain := filepath.Join("..", "..", "testdata", "recordings", "slots4-cpu.gz")
	type document struct {
		Facts struct {
			Slots struct {
				Value  int    `json:"value"`
				Source string `json:"source"`
			} `json:"max_num_seqs"`
		} `json:"facts"`
		Measured struct {
			Cost struct {
				Value *float64 `json:"value"`
			} `json:"usd_per_million_tokens"`
		} `json:"measured"`
	}
	read := func(env []string, args ...string) (d document) {
		t.Helper()
		out, errs, _ := call(t, env, append([]string{"replay", "--json"}, args...)...)
		if err := json.Unmarshal([]byte(out), &d); err != nil {
			t.Fatalf("%v: %v: %s", args, err, errs)
		}
		return d
	}
	if d := read([]string{"ROOFTOP_COST_PER_HOUR=2", "ROOFTOP_API_KEY_FILE=/nowhere", "ROOFTOP_CATALOG=/nowhere", "ROOFTOP_GPU=none", "ROOFTOP_MAX_NUM_SEQS=many"}, plain); d.Measured.Cost.Value != nil || d.Facts.Slots.Value != 4 {
		t.Errorf("nothing given: cost %v, %d slots", d.Measured.Cost.Value, d.Facts.Slots.Value)
	}
	d := read(nil, plain, "--cost-per-hour", "2", "--max-num-seqs", "5")
	if d.Measured.Cost.Value == nil || d.Facts.Slots.Value != 5 || d.Facts.Slots.Source != "flag" {
		t.Errorf("given: cost %v, slots %+v", d.Measured.Cost.Value, d.Facts.Slots)
	}
	if _, errs, code := call(t, nil, "replay", plain, "--gpu", "L4x"); code != cli.ExitUsage || !strings.Contains(errs, "L4x") {
		t.Errorf("an unknown GPU: exit code %d: %s", code, errs)
	}
}
