package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/apply"
	"github.com/rooftop-dev/rooftop/cmd/internal/report"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/stat"
)

// stored lays out a state directory with three runs: one that ended, with a report;
// one of the same server from its journal, killed; and one that is in both.
func stored(t *testing.T) (env []string) {
	t.Helper()
	state := t.TempDir()
	env = []string{"XDG_STATE_HOME=" + state}
	lookup := variables("XDG_STATE_HOME", state)
	began := time.Now().Add(-48 * time.Hour)
	delta := func(ratio float64, d engine.Direction) *engine.Delta {
		return &engine.Delta{
			Direction: d, Classic: d, Reason: "output moved", ClassicReason: "output moved", Throughput: stat.Some(ratio),
			Metrics: []engine.MetricDelta{{Name: apply.OutputMetric, Change: stat.Some(ratio)}},
		}
	}
	predicted := []engine.Prediction{{Metric: apply.OutputMetric, Unit: "ratio", Low: stat.Some(0.5), Mid: stat.Some(0.7), High: stat.Some(0.9)}}
	snapshot := func(at time.Time, port string) *engine.Snapshot {
		return &engine.Snapshot{
			Started: at, Now: 10 * time.Minute, Version: "1.0.0", Target: engine.Target{URL: "http://127.0.0.1:" + port + "/metrics", Engine: "vllm", Model: "org/Tiny-1B"},
			Phase: engine.PhaseDone, Live: &engine.Diagnosis{}, Baseline: &engine.Diagnosis{},
			Iterations: []engine.Iteration{
				{N: 1, End: engine.IterationKept, Changes: []engine.Change{{Flag: "--max-num-seqs", From: "4", To: "32"}}, Predicted: predicted, Before: &engine.Diagnosis{}, After: &engine.Diagnosis{}, Delta: delta(0.8, engine.Better)},
				{N: 2, End: engine.IterationNoGain, Changes: []engine.Change{{Flag: "--block-size", From: "16", To: "32"}}, Predicted: predicted, Before: &engine.Diagnosis{}, After: &engine.Diagnosis{}, Delta: delta(0.0, engine.Plateau)},
			},
			Finished: &engine.Finished{ExitCode: 0, Reason: "nothing is left to recommend", Gain: stat.Some(0.8), Restarts: 3},
		}
	}
	keep := func(s *engine.Snapshot, journalled string) {
		if _, err := keepRun(lookup, s, journalled); err != nil {
			t.Fatal(err)
		}
	}
	keep(snapshot(began, "8000"), "")
	write := func(port int, end bool) (name string) {
		s, err := apply.OpenStore(apply.Root(state), apply.Identity{Host: "history.example", Port: port, Model: "org/Tiny-1B", URL: "http://localhost:" + []string{"8001", "8002"}[port-8001]}, "1.0.0")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		low, mid := 0.1, 0.2
		records := []journal.Record{
			{Kind: journal.Begin, Mode: "exec", Command: "vllm serve org/Tiny-1B"},
			{Kind: journal.Intent, Iteration: 1, Changes: []journal.Change{{Flag: "--max-num-seqs", From: "4", To: "32"}}, Predicted: []journal.Predicted{{Metric: apply.OutputMetric, Low: &low, Mid: &mid, High: &mid}}},
			{Kind: journal.Stopped}, {Kind: journal.Started}, {Kind: journal.Ready},
			{Kind: journal.Verdict, Direction: "better", Low: &low, Mid: &mid, High: &mid, Goal: "throughput"},
			{Kind: journal.Kept},
			{Kind: journal.Intent, Iteration: 2, Changes: []journal.Change{{Flag: "--block-size", From: "16", To: "32"}}},
		}
		if end {
			records = records[:7]
		}
		for _, r := range records {
			if err := s.Write(r); err != nil {
				t.Fatal(err)
			}
		}
		if end {
			if err := s.End(0, "done"); err != nil {
				t.Fatal(err)
			}
		}
		return runOf(s.Dir(), s.Run())
	}
	keep(snapshot(time.Now().Add(-5*time.Minute), "8001"), write(8001, true))
	write(8002, false)
	return env
}

func TestHistoryListsReportsAndJournals(t *testing.T) {
	env := stored(t)
	out, errs, code := call(t, env, "history", "--json")
	if code != exitDone || errs != "" {
		t.Fatalf("exit %d: %s", code, errs)
	}
	type listed struct {
		Number, Tried, Kept, Restarts int
		Source, Outcome, Model        string
		Exit                          *int `json:"exit_code"`
		Gain                          *struct{ Mid float64 }
		Predictions                   struct{ Made, Within int }
	}
	var doc struct {
		Schema string
		Runs   []listed
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		t.Fatal(err)
	}
	if doc.Schema != report.HistorySchema || len(doc.Runs) != 3 {
		t.Fatalf("schema %q, %d runs; the run that is in a report and in a journal is one\n%s", doc.Schema, len(doc.Runs), out)
	}
	killed, recent, old := doc.Runs[0], doc.Runs[1], doc.Runs[2]
	if killed.Source != "journal" || killed.Outcome != "cut off" || killed.Exit != nil || killed.Tried != 2 || killed.Kept != 1 || killed.Restarts != 1 || killed.Predictions.Made != 1 {
		t.Errorf("the killed run: %+v", killed)
	}
	for _, got := range []listed{recent, old} {
		if got.Source != "report" || got.Exit == nil || *got.Exit != 0 || got.Tried != 2 || got.Kept != 1 || got.Restarts != 3 || got.Gain == nil || got.Predictions.Made != 2 || got.Predictions.Within != 1 {
			t.Errorf("a run with a report: %+v", got)
		}
	}

	page, _, code := call(t, env, "history", "-n", "2")
	if code != exitDone {
		t.Fatalf("exit %d", code)
	}
	for _, want := range []string{"Tiny-1B at localhost:8002", "cut off", "1 of 2", "exit 0", "one run before these: -n 3 lists all"} {
		if !strings.Contains(page, want) {
			t.Errorf("%q is missing in\n%s", want, page)
		}
	}
	for line := range strings.Lines(page) {
		if len([]rune(strings.TrimRight(line, "\n"))) > 80 {
			t.Errorf("wider than a screen: %s", line)
		}
	}
}

// A journal and a report are of one run where the report says so, whatever their
// times: a server that rooftop starts itself takes minutes before the session on it
// begins, and while one rooftop watches a server another may be killed on it.
func TestHistoryTakesForOneRunWhatIsOne(t *testing.T) {
	for _, c := range []struct {
		name    string
		started time.Duration // of the report, from when the journal began
		same    bool
		end     bool // in order
		want    []report.PastOutcome
	}{
		{"a slow start", time.Minute, true, true, []report.PastOutcome{report.PastEnded}},
		{"ended at once by a second signal", time.Minute, true, false, []report.PastOutcome{report.PastCutOff}},
		{"a watcher's report", -time.Minute, false, false, []report.PastOutcome{report.PastCutOff, report.PastEnded}},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := t.TempDir()
			store, err := apply.OpenStore(apply.Root(state), apply.Identity{Host: "history.example", Port: 8001, URL: "http://localhost:8001"}, "1.0.0")
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Write(journal.Record{Kind: journal.Begin, Mode: "exec"}); err != nil {
				t.Fatal(err)
			}
			if c.end {
				if err := store.End(0, "done"); err != nil {
					t.Fatal(err)
				}
			}
			name := ""
			if c.same {
				name = runOf(store.Dir(), store.Run())
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			s := &engine.Snapshot{
				Started: time.Now().Add(c.started), Now: time.Hour, Target: engine.Target{URL: "http://127.0.0.1:8001/metrics"},
				Phase: engine.PhaseDone, Live: &engine.Diagnosis{}, Baseline: &engine.Diagnosis{}, Finished: &engine.Finished{},
			}
			lookup := variables("XDG_STATE_HOME", state)
			if _, err := keepRun(lookup, s, name); err != nil {
				t.Fatal(err)
			}
			runs, unread, err := storedRuns(lookup)
			var got []report.PastOutcome
			for i := range runs {
				got = append(got, runs[i].Outcome)
			}
			if err != nil || unread > 0 || !slices.Equal(got, c.want) {
				t.Errorf("runs %v, want %v (%d unread, %v)", got, c.want, unread, err)
			}
		})
	}
}

func TestHistoryOfNothing(t *testing.T) {
	out, _, code := call(t, []string{"XDG_STATE_HOME=" + t.TempDir()}, "history")
	if code != exitDone || !strings.Contains(out, "No run is stored") {
		t.Errorf("exit %d: %s", code, out)
	}
	out, _, code = call(t, []string{"XDG_STATE_HOME=" + t.TempDir()}, "history", "--json")
	if code != exitDone || !strings.Contains(out, `"runs": []`) {
		t.Errorf("exit %d: %s", code, out)
	}
}

func TestReportOfAStoredRun(t *testing.T) {
	env := stored(t)
	dir, _ := strings.CutPrefix(env[0], "XDG_STATE_HOME=")
	runs, err := filepath.Glob(filepath.Join(dir, "rooftop", "runs", "*"))
	if err != nil || len(runs) != 2 {
		t.Fatalf("runs: %v, %v", runs, err)
	}
	old := filepath.Base(runs[0])
	for name, c := range map[string]struct {
		args []string
		want string
		code exitCode
	}{
		"last, which was killed":   {[]string{"last"}, "This run was cut off", exitDone},
		"by number":                {[]string{"3"}, "# rooftop: a run on org/Tiny-1B", exitDone},
		"by name":                  {[]string{old}, "# rooftop: a run on org/Tiny-1B", exitDone},
		"by the beginning":         {[]string{old[:10]}, "# rooftop: a run on org/Tiny-1B", exitDone},
		"by path":                  {[]string{runs[0]}, "# rooftop: a run on org/Tiny-1B", exitDone},
		"by the path of its file":  {[]string{filepath.Join(runs[0], "report.json"), "--format", "json"}, `"schema": "rooftop.run/v1"`, exitDone},
		"as HTML":                  {[]string{"3", "--format", "html"}, "<!DOCTYPE html>", exitDone},
		"a journal as HTML":        {[]string{"last", "--format", "html"}, "cut off", exitDone},
		"a journal as JSON":        {[]string{"last", "--format", "json"}, `"source": "journal"`, exitDone},
		"no such run":              {[]string{"nonsense"}, "'rooftop history' lists them", exitUsage},
		"a name that is near":      {[]string{old[:12] + "x" + old[13:]}, "did you mean " + old, exitUsage},
		"the beginning of several": {[]string{"20"}, "begins the names of 3 runs", exitUsage},
		"no such format":           {[]string{"last", "--format", "pdf"}, "markdown, json or html", exitUsage},
		"no run":                   {nil, "report needs one RUN", exitUsage},
		"a number beyond":          {[]string{"9999"}, "no run is called", exitUsage},
		"a path that is not there": {[]string{filepath.Join(dir, "gone")}, "no such file", exitError},
	} {
		t.Run(name, func(t *testing.T) {
			out, errs, code := call(t, env, append([]string{"report"}, c.args...)...)
			if code != c.code || !strings.Contains(out+errs, c.want) {
				t.Errorf("exit %d, want %d with %q:\n%s%s", code, c.code, c.want, out[:min(len(out), 300)], errs)
			}
		})
	}
	t.Run("without the file of that format", func(t *testing.T) {
		if err := os.Remove(filepath.Join(runs[0], "report.html")); err != nil {
			t.Fatal(err)
		}
		out, _, code := call(t, env, "report", "3", "--format", "html")
		if code != exitDone || !strings.Contains(out, "--max-num-seqs 4 → 32") {
			t.Errorf("exit %d:\n%s", code, out)
		}
	})
	t.Run("into a file", func(t *testing.T) {
		path := filepath.Join(dir, "out.html")
		if _, errs, code := call(t, env, "report", "3", "-o", path); code != exitDone {
			t.Fatalf("exit %d: %s", code, errs)
		}
		if text, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), "<!DOCTYPE html>") {
			t.Errorf("%.40q, %v: the format follows the name of the file", text, err)
		}
		if _, errs, code := call(t, env, "report", "3", "-o", path); code != exitUsage || !strings.Contains(errs, "exists already") {
			t.Errorf("exit %d: %s", code, errs)
		}
	})
}

func TestRunNamesComplete(t *testing.T) {
	out, _, code := call(t, stored(t), "__complete", "report", "")
	if code != exitDone || !strings.HasPrefix(out, "last\n") || strings.Count(out, "Tiny-1B\t") == 0 {
		t.Errorf("exit %d: %s", code, out)
	}
}
