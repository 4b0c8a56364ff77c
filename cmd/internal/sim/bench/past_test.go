package bench

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/session"
	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// scrapedPast returns a scenario as a Prometheus server scrapes it every 15 s: only the pages, without the launch.
func scrapedPast(t *testing.T, sc *settings.Scenario, change *settings.Change, length time.Duration, seed uint64) *loop.Measurement {
	t.Helper()
	var polls []session.Poll
	_, err := Run(sc, change, Options{Seed: seed, For: length, Every: 15 * time.Second, Pages: func(at time.Duration, body []byte) {
		polls = append(polls, session.Poll{T: at, PageT: at, Body: string(body)})
	}})
	if err != nil || len(polls) == 0 {
		t.Fatalf("%s: %v", sc.Name, err)
	}
	first := polls[0].T
	for i := range polls {
		polls[i].T -= first
		polls[i].PageT -= first
	}
	var b bytes.Buffer
	r := session.NewRecorder(&b)
	h := session.Header{Schema: session.RecordingSchema, Version: version, Started: epoch, Target: engine.Target{URL: "gpu-7:8000"}}
	if _, err := session.Examine(h, polls, session.End{Duration: polls[len(polls)-1].T}, version, r); err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	recording, err := session.OpenRecording(&b)
	if err != nil {
		t.Fatal(err)
	}
	p, err := session.Reread(recording, sc.Name, version)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func scenarioNamed(t *testing.T, name string) settings.Scenario {
	t.Helper()
	list, err := settings.Select(name)
	if err != nil || len(list) != 1 {
		t.Fatalf("%s: %d scenarios, %v", name, len(list), err)
	}
	return list[0]
}

// For two ranges that Prometheus scraped, changes are found, and neither an unchanged range nor other traffic is
// called a change.
func TestPastIsCompared(t *testing.T) {
	sc := scenarioNamed(t, "slot-capped/8b-a100")
	longer := slices.Clone(sc.Load)
	longer[0].Output.Least, longer[0].Output.Most = 3*longer[0].Output.Least, 3*longer[0].Output.Most
	const length = 5 * time.Minute
	before, remedied := scrapedPast(t, &sc, nil, length, 1), scrapedPast(t, &sc, &sc.Remedy, length, 2)
	for _, c := range []struct {
		name          string
		before, after *loop.Measurement
		want          []verdict.Direction
		changed       string
	}{
		{"more slots", before, remedied, []verdict.Direction{verdict.Better}, "num_gpu_blocks 29363 → 29240"},
		{"fewer slots", remedied, before, []verdict.Direction{verdict.Worse}, "num_gpu_blocks 29240 → 29363"},
		{"the same", before, scrapedPast(t, &sc, nil, length, 2), []verdict.Direction{verdict.Plateau, verdict.Inconclusive}, ""},
		{"longer answers", before, scrapedPast(t, &sc, &settings.Change{Load: longer}, length, 2), []verdict.Direction{verdict.NotComparable}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := loop.ComparePast(c.before, c.after, verdict.Plan{Goal: verdict.Latency})
			t.Logf("%s: %s", d.Direction, d.Reason)
			if !slices.Contains(c.want, d.Direction) {
				t.Errorf("%s, want %s: %s", d.Direction, c.want, d.Reason)
			}
			changes, known := c.before.Changes(c.after)
			if text := engine.JoinChanges(changes); known || !strings.Contains(text, c.changed) || c.changed == "" && text != "" {
				t.Errorf("changed %q, launch known %v; want %q", text, known, c.changed)
			}
		})
	}
}
