package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/facts"
)

// recordedStates is what is true of each kind of recording of a real vLLM: the findings of which one is to be
// recommended, "" where nothing is.
var recordedStates = map[string][]engine.FindingID{
	"slots-few":      {engine.ConcurrencySaturation},
	"slots-few-long": {engine.ConcurrencySaturation},
	"pool-small":     {engine.KVPressure},
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
}

// TestRecordingsOfRealServers replays recordings of real servers of several releases, with a known fault or none,
// as they were and without anything about the launch, and compares the recommendation with what is true.
// The pages have every reading, and of the families those that rooftop reads.
func TestRecordingsOfRealServers(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("..", "..", "testdata", "recordings", "real", "*.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no recordings: %v", err)
	}
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
			got := recommended(t, path)
			confusion[fmt.Sprintf("%-16s %-7s launch: %s", kind, with, got)]++
			if !slices.Contains(want, got) {
				t.Errorf("%s %s, %s launch facts: recommends %q, want one of %q", release, kind, with, got, want)
			}
		}
	}
	for _, row := range slices.Sorted(maps.Keys(confusion)) {
		t.Logf("%s × %d", row, confusion[row])
	}
}

// withoutLaunch removes from a header everything that is known of the server's process.
func withoutLaunch(h *session.Header) {
	h.Inputs = facts.Inputs{Flags: h.Inputs.Flags, Env: h.Inputs.Env, Server: h.Inputs.Server}
}

// recommended returns the finding that a replay recommends to act on, "" if none.
func recommended(t *testing.T, path string) engine.FindingID {
	t.Helper()
	out, errs, _ := call(t, nil, "replay", path, "--json")
	var d struct {
		Recommendation *struct {
			Finding engine.FindingID `json:"finding"`
		} `json:"recommendation"`
	}
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatalf("%s: %v: %s", path, err, errs)
	}
	if d.Recommendation == nil {
		return ""
	}
	return d.Recommendation.Finding
}
