package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/autopilot"
	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/pastruns"
	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/effect"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
	"github.com/rooftop-dev/rooftop/engine/stat"
	"github.com/rooftop-dev/rooftop/engine/verdict"
)

// stored creates a state directory with three runs: one that ended, with a report; one of the same
// server from its journal, killed; and one in both.
func stored(t *testing.T) (env []string) {
	t.Helper()
	state := t.TempDir()
	env = []string{"XDG_STATE_HOME=" + state}
	lookup := variables("XDG_STATE_HOME", state)
	began := time.Now().Add(-48 * time.Hour)
	delta := func(ratio float64, d verdict.Direction) *effect.Delta {
		return &effect.Delta{
			Direction: d, Classic: d, Reason: "output moved", ClassicReason: "output moved", Throughput: stat.Some(ratio),
			Metrics: []effect.MetricDelta{{Name: serverdir.OutputMetric, Change: stat.Some(ratio)}},
		}
	}
	predicted := []engine.Prediction{{Metric: serverdir.OutputMetric, Unit: "ratio", Low: stat.Some(0.5), Mid: stat.Some(0.7), High: stat.Some(0.9)}}
	snapshot := func(at time.Time, port string) *loop.Snapshot {
		return &loop.Snapshot{
			Started: at, Now: 10 * time.Minute, Version: "1.0.0", Target: engine.Target{URL: "http://127.0.0.1:" + port + "/metrics", Engine: "vllm", Model: "org/Tiny-1B"},
			Phase: loop.PhaseDone, Live: &engine.Diagnosis{}, Baseline: &engine.Diagnosis{},
			Iterations: []loop.Iteration{
				{N: 1, End: loop.IterationKept, Changes: []engine.Change{{Flag: "--max-num-seqs", From: "4", To: "32"}}, Predicted: predicted, Before: &engine.Diagnosis{}, After: &engine.Diagnosis{}, Delta: delta(0.8, verdict.Better)},
				{N: 2, End: loop.IterationNoGain, Changes: []engine.Change{{Flag: "--block-size", From: "16", To: "32"}}, Predicted: predicted, Before: &engine.Diagnosis{}, After: &engine.Diagnosis{}, Delta: delta(0.0, verdict.Plateau)},
			},
			Finished: &loop.Finished{ExitCode: 0, Reason: "nothing is left to recommend", Gain: stat.Some(0.8), Restarts: 3},
		}
	}
	keep := func(s *loop.Snapshot, journalled string) {
		if _, err := pastruns.Keep(lookup, s, journalled); err != nil {
			t.Fatal(err)
		}
	}
	keep(snapshot(began, "8000"), "")
	write := func(port int, end bool) (name string) {
		s, err := serverdir.OpenStore(serverdir.Root(state), serverdir.Identity{Host: fmt.Sprintf("history-%d.example", os.Getpid()), Port: port, Model: "org/Tiny-1B", URL: "http://localhost:" + []string{"8001", "8002"}[port-8001]}, "1.0.0")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		low, mid := 0.1, 0.2
		records := []journal.Record{
			{Kind: journal.Begin, Mode: "exec", Command: "vllm serve org/Tiny-1B"},
			{Kind: journal.Intent, Iteration: 1, Changes: []engine.Change{{Flag: "--max-num-seqs", From: "4", To: "32"}}, Predicted: []journal.Predicted{{Metric: serverdir.OutputMetric, Low: &low, Mid: &mid, High: &mid}}},
			{Kind: journal.Stopped}, {Kind: journal.Started}, {Kind: journal.Ready},
			{Kind: journal.Verdict, Direction: "better", Low: &low, Mid: &mid, High: &mid, Goal: "throughput"},
			{Kind: journal.Kept},
			{Kind: journal.Intent, Iteration: 2, Changes: []engine.Change{{Flag: "--block-size", From: "16", To: "32"}}},
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
		return autopilot.RunName(s.Dir(), s.Run())
	}
	keep(snapshot(time.Now().Add(-5*time.Minute), "8001"), write(8001, true))
	write(8002, false)
	return env
}

func TestHistoryListsReportsAndJournals(t *testing.T) {
	env := stored(t)
	out, errs, code := call(t, env, "history", "--json")
	if code != cli.ExitDone || errs != "" {
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
	if doc.Schema != document.HistorySchema || len(doc.Runs) != 3 {
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
	if code != cli.ExitDone {
		t.Fatalf("exit %d", code)
	}
	for _, want := range []string{"Tiny-1B at localhost:8002", "cut off", "1 of 2", "done", "one run before these: -n 3 lists all"} {
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

// TestHistoryShowsWhatDidNotLast has the journal of a run that was killed after it had gone back to the configuration
// before the kept one.
func TestHistoryShowsWhatDidNotLast(t *testing.T) {
	state := t.TempDir()
	s, err := serverdir.OpenStore(serverdir.Root(state), serverdir.Identity{Host: fmt.Sprintf("history-%d.example", os.Getpid()), Port: 8001, URL: "http://localhost:8001"}, "1.0.0")
	if err != nil {
		t.Fatal(err)
	}
	slots, back := engine.Change{Flag: "--max-num-seqs", From: "4", To: "32"}, engine.Change{Flag: "--max-num-seqs", From: "32", To: "4"}
	for _, r := range []journal.Record{
		{Kind: journal.Begin, Mode: "exec"},
		{Kind: journal.Intent, Iteration: 1, Changes: []engine.Change{slots}},
		{Kind: journal.Stopped}, {Kind: journal.Started}, {Kind: journal.Ready}, {Kind: journal.Verdict, Direction: "better"}, {Kind: journal.Kept},
		{Kind: journal.Intent, Iteration: 1, Changes: []engine.Change{back}},
		{Kind: journal.Stopped}, {Kind: journal.Started}, {Kind: journal.Ready}, {Kind: journal.Kept},
	} {
		if err := s.Write(r); err != nil {
			t.Fatal(err)
		}
	}
	s.Close()
	out, _, _ := call(t, []string{"XDG_STATE_HOME=" + state}, "history", "--json")
	var doc struct{ Runs []struct{ Tried, Kept int } }
	if err := json.Unmarshal([]byte(out), &doc); err != nil || len(doc.Runs) != 1 || doc.Runs[0].Tried != 1 || doc.Runs[0].Kept != 0 {
		t.Errorf("%v: %s", err, out)
	}
}

// A journal and a report are of the same run if the report says so, whatever their times: a server
// started by rooftop takes minutes before its session begins, and while one rooftop observes a
// server another may be killed.
func TestHistoryTakesForOneRunWhatIsOne(t *testing.T) {
	for _, c := range []struct {
		name    string
		started time.Duration // of the report, from when the journal began
		same    bool
		end     bool // in order
		want    []tuning.PastOutcome
	}{
		{"a slow start", time.Minute, true, true, []tuning.PastOutcome{tuning.PastEnded}},
		{"ended at once by a second signal", time.Minute, true, false, []tuning.PastOutcome{tuning.PastCutOff}},
		{"a watcher's report", -time.Minute, false, false, []tuning.PastOutcome{tuning.PastCutOff, tuning.PastEnded}},
	} {
		t.Run(c.name, func(t *testing.T) {
			state := t.TempDir()
			store, err := serverdir.OpenStore(serverdir.Root(state), serverdir.Identity{Host: fmt.Sprintf("history-%d.example", os.Getpid()), Port: 8001, URL: "http://localhost:8001"}, "1.0.0")
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
				name = autopilot.RunName(store.Dir(), store.Run())
			}
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			s := &loop.Snapshot{
				Started: time.Now().Add(c.started), Now: time.Hour, Target: engine.Target{URL: "http://127.0.0.1:8001/metrics"},
				Phase: loop.PhaseDone, Live: &engine.Diagnosis{}, Baseline: &engine.Diagnosis{}, Finished: &loop.Finished{},
			}
			lookup := variables("XDG_STATE_HOME", state)
			if _, err := pastruns.Keep(lookup, s, name); err != nil {
				t.Fatal(err)
			}
			stored, err := pastruns.Load(lookup)
			var got []tuning.PastOutcome
			for i := range stored.Runs {
				got = append(got, stored.Runs[i].Outcome)
			}
			if err != nil || stored.Unread > 0 || !slices.Equal(got, c.want) {
				t.Errorf("runs %v, want %v (%d unread, %v)", got, c.want, stored.Unread, err)
			}
		})
	}
}

func TestHistoryOfNothing(t *testing.T) {
	out, _, code := call(t, []string{"XDG_STATE_HOME=" + t.TempDir()}, "history")
	if code != cli.ExitDone || !strings.Contains(out, "No run is stored") {
		t.Errorf("exit %d: %s", code, out)
	}
	out, _, code = call(t, []string{"XDG_STATE_HOME=" + t.TempDir()}, "history", "--json")
	if code != cli.ExitDone || !strings.Contains(out, `"runs": []`) {
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
		code cli.ExitCode
	}{
		"last, which was killed":   {[]string{"last"}, "This run was cut off", cli.ExitDone},
		"by number":                {[]string{"3"}, "# rooftop: a run on org/Tiny-1B", cli.ExitDone},
		"by name":                  {[]string{old}, "# rooftop: a run on org/Tiny-1B", cli.ExitDone},
		"by the beginning":         {[]string{old[:10]}, "# rooftop: a run on org/Tiny-1B", cli.ExitDone},
		"by path":                  {[]string{runs[0]}, "# rooftop: a run on org/Tiny-1B", cli.ExitDone},
		"by the path of its file":  {[]string{filepath.Join(runs[0], "report.json"), "--format", "json"}, `"schema": "rooftop.run/v1"`, cli.ExitDone},
		"as HTML":                  {[]string{"3", "--format", "html"}, "<!DOCTYPE html>", cli.ExitDone},
		"a journal as HTML":        {[]string{"last", "--format", "html"}, "cut off", cli.ExitDone},
		"a journal as JSON":        {[]string{"last", "--format", "json"}, `"source": "journal"`, cli.ExitDone},
		"no such run":              {[]string{"nonsense"}, "'rooftop history' lists them", cli.ExitUsage},
		"a name that is near":      {[]string{old[:12] + "x" + old[13:]}, "did you mean " + old, cli.ExitUsage},
		"the beginning of several": {[]string{"20"}, "begins the names of 3 runs", cli.ExitUsage},
		"no such format":           {[]string{"last", "--format", "pdf"}, "markdown, json or html", cli.ExitUsage},
		"no run":                   {nil, "report takes one RUN, but got 0", cli.ExitUsage},
		"a number beyond":          {[]string{"9999"}, "no run is called", cli.ExitUsage},
		"a path that is not there": {[]string{filepath.Join(dir, "gone")}, "no such file", cli.ExitError},
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
		if code != cli.ExitDone || !strings.Contains(strings.Join(strings.Fields(out), " "), "--max-num-seqs 4 → 32") {
			t.Errorf("exit %d:\n%s", code, out)
		}
	})
	t.Run("into a file", func(t *testing.T) {
		path := filepath.Join(dir, "out.html")
		if _, errs, code := call(t, env, "report", "3", "-o", path); code != cli.ExitDone {
			t.Fatalf("exit %d: %s", code, errs)
		}
		if text, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(text), "<!DOCTYPE html>") {
			t.Errorf("%.40q, %v: the format follows the name of the file", text, err)
		}
		if _, errs, code := call(t, env, "report", "3", "-o", path); code != cli.ExitUsage || !strings.Contains(errs, "exists already") {
			t.Errorf("exit %d: %s", code, errs)
		}
	})
}

func TestRunNamesComplete(t *testing.T) {
	out, _, code := call(t, stored(t), "__complete", "report", "")
	if code != cli.ExitDone || !strings.HasPrefix(out, "last\n") || strings.Count(out, "Tiny-1B\t") == 0 {
		t.Errorf("exit %d: %s", code, out)
	}
}
