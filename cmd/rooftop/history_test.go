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
	"github.com/rooftop-dev/rooftop/cmd/internal/pastruns"
	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/journal"
	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

// TestHistoryShowsWhatDidNotLast has the journal of a run that was killed after it had returned to the configuration
// before the kept one.
func TestHistoryShowsWhatDidNotLast(t *testing.T) {
	state := t.TempDir()
	s, err := serverdir.OpenStore(serverdir.Root(state), serverdir.Identity{Host: fmt.Sprintf("history-%d.example", os.Getpid()), Port: 8001, URL: "http://localhost:8001"}, "1.0.0")
	must(t, err)
	slots, back := engine.Change{Flag: "--max-num-seqs", From: "4", To: "32"}, engine.Change{Flag: "--max-num-seqs", From: "32", To: "4"}
	for _, r := range []journal.Record{
		{Kind: journal.Begin, Mode: "exec"},
		{Kind: journal.Intent, Iteration: 1, Changes: []engine.Change{slots}},
		{Kind: journal.Stopped}, {Kind: journal.Started}, {Kind: journal.Ready}, {Kind: journal.Verdict, Direction: "better"}, {Kind: journal.Kept},
		{Kind: journal.Intent, Iteration: 1, Changes: []engine.Change{back}},
		{Kind: journal.Stopped}, {Kind: journal.Started}, {Kind: journal.Ready}, {Kind: journal.Kept},
	} {
		must(t, s.Write(r))
	}
	s.Close()
	out, _, _ := call(t, []string{"XDG_STATE_HOME=" + state}, "history", "--json")
	var doc struct{ Runs []struct{ Tried, Kept int } }
	if err := json.Unmarshal([]byte(out), &doc); err != nil || len(doc.Runs) != 1 || doc.Runs[0].Tried != 1 || doc.Runs[0].Kept != 0 {
		t.Errorf("%v: %s", err, out)
	}
}

// A journal and a report belong to the same run if the report says so, regardless of their times: a server started by
// rooftop takes minutes before its session begins, and while rooftop observes one server, another rooftop may be
// killed.
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
			must(t, err)
			must(t, store.Write(journal.Record{Kind: journal.Begin, Mode: "exec"}))
			if c.end {
				must(t, store.End(0, "done"))
			}
			name := ""
			if c.same {
				name = autopilot.RunName(store.Dir(), store.Run())
			}
			must(t, store.Close())
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

// storedRuns returns the environment of a copy of the corpus's state directory, and that directory.
func storedRuns(t *testing.T) (env []string, runs string) {
	t.Helper()
	state := t.TempDir()
	must(t, os.CopyFS(state, os.DirFS(filepath.Join("..", "..", "testdata", "recordings", stateDir))))
	return []string{"XDG_STATE_HOME=" + state}, filepath.Join(state, "rooftop", "runs")
}

// The corpus has reports by name and number, and their formats.
func TestReportOfAStoredRun(t *testing.T) {
	env, runs := storedRuns(t)
	const name = "20260204-190903-tuned"
	tuned, file := filepath.Join(runs, name), filepath.Join(t.TempDir(), "out.html")
	for _, c := range []struct {
		args, want string
		code       cli.ExitCode
	}{
		{tuned, "# rooftop: a run on", cli.ExitDone},
		{filepath.Join(tuned, "report.json") + " --format json", `"schema": "rooftop.run/v1"`, cli.ExitDone},
		{name + " --format html", "<!DOCTYPE html>", cli.ExitDone}, // made from the document
		{"20260204-190904-tuned", "did you mean " + name, cli.ExitUsage},
		{filepath.Join(runs, "gone"), "no such file", cli.ExitError},
		{name + " -o " + file, "", cli.ExitDone},
		{name + " -o " + file, "exists already", cli.ExitUsage},
	} {
		out, errs, code := call(t, env, append([]string{"report"}, strings.Fields(c.args)...)...)
		if code != c.code || !strings.Contains(out+errs, c.want) {
			t.Errorf("report %s: exit %d, want %d with %q:\n%.300s%s", c.args, code, c.code, c.want, out, errs)
		}
	}
	if text, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(text), "<!DOCTYPE html>") {
		t.Errorf("%.40q, %v: the format follows the name of the file", text, err)
	}
	if out, _, code := call(t, env, "__complete", "report", ""); code != cli.ExitDone || !strings.HasPrefix(out, "last\n") || !strings.Contains(out, name) {
		t.Errorf("exit %d: completes\n%s", code, out)
	}
}
