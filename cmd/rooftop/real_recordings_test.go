package main

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/facts"
	"github.com/rooftop-dev/rooftop/engine/longtest"
)

// recordedStates is what is true of each kind of recording of a real server: the findings of which one is to be
// recommended, "" where nothing is.
var recordedStates = map[string][]engine.FindingID{
	"slots-few":      {engine.ConcurrencySaturation},
	"slots-few-long": {engine.ConcurrencySaturation},
	"pool-small":     {engine.KVPressure, engine.KVAdmission}, // whether it preempts or admits none
	// Prompts take all of the time of the engine: no larger pool makes it faster (36 tok/s, and 25 with the default pool).
	"pool-admission": {engine.KVPressure, engine.KVAdmission, engine.LowPrefixReuse},
	"prefill-bound":  {"", engine.LowPrefixReuse},
	"cache-off":      {engine.LowPrefixReuse},
	"cache-off-slow": {engine.LowPrefixReuse},
	"budget-small":   {engine.TokenBudget},
	"one-client":     {engine.UnderBatching},
	"few-clients":    {engine.UnderBatching},
	"healthy":        {""},
	"healthy-full":   {""},
	"unique-prompts": {"", engine.LowPrefixReuse}, // nothing in the page tells prompts that differ from prefixes that come late
	"idle":           {""},

	// llama.cpp's server.
	"slots-few-one":    {engine.ConcurrencySaturation},
	"slots-few-auto":   {engine.ConcurrencySaturation}, // --parallel left to the server: four slots that share their context
	"cache-off-moe":    {engine.LowPrefixReuse},
	"healthy-auto":     {""},
	"shared-prefix":    {""},
	"idle-auto":        {""},
	"hung":             {""},                // stopped in the middle
	"pool-small-quick": {engine.KVPressure}, // answers are cut off at a part that is never seen full in all slots at once
	// Eight threads on two cores: no rule tells it, since nothing on the page does.
	"threads-many": {""},

	// SGLang.
	"slots-few-short":      {engine.ConcurrencySaturation},
	"slots-few-open":       {engine.ConcurrencySaturation}, // an open loop, whose queue grows
	"pool-small-long":      {engine.KVPressure, engine.KVAdmission},
	"cache-off-long":       {engine.LowPrefixReuse},
	"unique-prompts-short": {"", engine.LowPrefixReuse},
	"unique-prompts-two":   {"", engine.LowPrefixReuse, engine.UnderBatching}, // two clients of four slots
	"idle-after":           {""},
}

// recordedMisses are the recordings that get another recommendation than the right one without launch facts.
var recordedMisses = map[string]engine.FindingID{
	// --ctx-size is not known: what is left to advise on the small context is other hardware.
	"b11669-pool-small": engine.LowPrefixReuse, "b11669-pool-small-quick": "",
}

// TestRecordingsOfRealServers replays recordings of real servers of several releases, with a known fault or none,
// as they were and without anything about the launch, and compares the recommendation with what is true.
// The pages have every reading, and of the families those that rooftop reads.
func TestRecordingsOfRealServers(t *testing.T) {
	real := filepath.Join("..", "..", "testdata", "recordings", "real")
	vllm, err := filepath.Glob(filepath.Join(real, "*.gz"))
	if err != nil || len(vllm) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	others, err := filepath.Glob(filepath.Join(real, "*", "*.gz")) // a directory for each other engine
	if err != nil || len(others) == 0 {
		t.Fatalf("no recordings of other engines: %v", err)
	}
	files := slices.Concat(vllm, others)
	confusion := map[string]int{}
	for _, file := range files {
		release, kind, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".gz"), "-")
		want, known := recordedStates[kind]
		if !known {
			t.Fatalf("%s: nothing is known of %q", file, kind)
		}
		for _, launched := range []bool{true, false} {
			path, with := file, "with"
			if !launched {
				path, with = rewritten(t, file, withoutLaunch), "without"
			}
			got, _ := recommended(t, path)
			served := "vllm"
			if dir := filepath.Dir(file); dir != real {
				served = filepath.Base(dir)
			}
			confusion[fmt.Sprintf("%-8s %-16s %-7s launch: %s", served, kind, with, got)]++
			want := want
			if miss, known := recordedMisses[release+"-"+kind]; known && !launched {
				want = []engine.FindingID{miss}
			}
			if !slices.Contains(want, got) {
				t.Errorf("%s %s, %s launch facts: recommends %q, want one of %q", release, kind, with, got, want)
			}
		}
	}
	for _, row := range slices.Sorted(maps.Keys(confusion)) {
		t.Logf("%s × %d", row, confusion[row])
	}
}

// TestRecordingsOfRealServersScraped diagnoses the recordings by every few pages alone, as a Prometheus server
// scrapes them. They last 20 s, so that an interval of 2 s leaves ten scrapes, and 5 s four. What the pages cannot
// show may be left open, or be advice to clients, but no flag is recommended that does not help.
func TestRecordingsOfRealServersScraped(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "recordings", "real", "*.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
	direct := make([]engine.FindingID, len(files))
	for i, file := range files {
		direct[i], _ = recommended(t, file)
	}
	intervals := []time.Duration{2 * time.Second}
	if longtest.Tests {
		intervals = append(intervals, time.Second, 5*time.Second)
	}
	for _, every := range intervals {
		t.Run(every.String(), func(t *testing.T) {
			confusion := map[string]int{}
			same := 0
			for i, file := range files {
				release, kind, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".gz"), "-")
				got, fix := recommended(t, scrapedEvery(t, file, every))
				confusion[fmt.Sprintf("%q → %q", direct[i], got)]++
				if direct[i] == got {
					same++
				}
				if fix == engine.KindFlag && !slices.Contains(recordedStates[kind], got) {
					t.Errorf("%s %s: recommends a flag for %q, want one of %q", release, kind, got, recordedStates[kind])
				}
			}
			for _, row := range slices.Sorted(maps.Keys(confusion)) {
				t.Logf("%s × %d", row, confusion[row])
			}
			t.Logf("%d of %d as the direct diagnosis", same, len(files))
		})
	}
}

// scrapedEvery returns a recording with a page every so often, and nothing else.
func scrapedEvery(t *testing.T, path string, every time.Duration) string {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	f, err := os.Open(rewritten(t, path, withoutLaunch))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	lines, next := bufio.NewReader(z), time.Duration(0)
	for {
		text, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			break
		}
		var one struct {
			Poll *session.Poll `json:"poll,omitempty"`
		}
		if err = errors.Join(err, json.Unmarshal(text, &one)); err != nil {
			t.Fatal(err)
		}
		if p := one.Poll; p != nil {
			if p.T < next {
				continue
			}
			next = p.T + every
			p.GPU, p.GPUErr, p.Health, p.Missed = nil, "", nil, 0
			if text, err = json.Marshal(one); err != nil {
				t.Fatal(err)
			}
			text = append(text, '\n')
		}
		if _, err := w.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	thin := filepath.Join(t.TempDir(), "scraped.gz")
	if err := os.WriteFile(thin, out.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	return thin
}

// withoutLaunch removes from a header everything that is known of the server's process.
func withoutLaunch(h *session.Header) {
	h.Inputs = facts.Inputs{Flags: h.Inputs.Flags, Env: h.Inputs.Env, Server: h.Inputs.Server}
}

// recommended returns the finding that a replay recommends to act on and the kind of its remedy, "" if none.
func recommended(t *testing.T, path string) (engine.FindingID, engine.Kind) {
	t.Helper()
	out, errs, _ := call(t, nil, "replay", path, "--json")
	var d struct {
		Recommendation *struct {
			Finding engine.FindingID `json:"finding"`
			Kind    engine.Kind      `json:"kind"`
		} `json:"recommendation"`
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatalf("%s: %v: %s", path, err, errs)
	}
	if d.Recommendation == nil {
		return "", ""
	}
	return d.Recommendation.Finding, d.Recommendation.Kind
}
