package apply

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/engine/journal"
)

// What was written beside a file takes its place as it is, where it is all of it.
func TestWhatWasStagedIsRenamed(t *testing.T) {
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	for name, c := range map[string]struct {
		meddle func(t *testing.T, temp string)
		same   bool // what was staged is what lies there
	}{
		"as it was":    {func(*testing.T, string) {}, true},
		"gone":         {func(t *testing.T, temp string) { must(t, os.Remove(temp)) }, false},
		"other bytes":  {func(t *testing.T, temp string) { must(t, os.WriteFile(temp, []byte("other"), 0)) }, false},
		"another mode": {func(t *testing.T, temp string) { must(t, os.Chmod(temp, 0o666)) }, false},
		"another time": {func(t *testing.T, temp string) { must(t, os.Chtimes(temp, old.Add(1), old.Add(1))) }, false},
		"someone else": {func(t *testing.T, temp string) {
			must(t, os.Rename(temp, temp+"2"))
			must(t, os.Symlink(temp+"2", temp))
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "server.yaml")
			must(t, os.WriteFile(path, []byte("before"), 0o600))
			f := launcher.File{Path: path, Mode: 0o640, Data: []byte("after"), Time: old, UID: os.Geteuid(), GID: os.Getegid()}
			must(t, f.Stage())
			if text, err := os.ReadFile(path); err != nil || string(text) != "before" {
				t.Fatalf("staged over %q, %v", text, err)
			}
			staged, err := os.Lstat(launcher.StagedPath(path))
			must(t, err)
			must(t, os.Link(launcher.StagedPath(path), path+".held")) // its number is not used again
			c.meddle(t, launcher.StagedPath(path))
			must(t, f.Replace())
			info, err := os.Lstat(path)
			must(t, err)
			have, err := launcher.ReadFile(path)
			if err != nil || !f.Equal(&have) || !info.Mode().IsRegular() {
				t.Errorf("it is %+v (%v), %v", have, info.Mode(), err)
			}
			if os.SameFile(staged, info) != c.same {
				t.Errorf("what was staged lies there: %v, want %v", !c.same, c.same)
			}
		})
	}
}

// configured is a server with a config file of its own directory.
func configured(t *testing.T) (a *Attach, n *notebook, at netip.AddrPort, path string) {
	t.Helper()
	l := usual(t, "--config", "server.yaml")
	path = filepath.Join(l.Cwd, "server.yaml")
	old := time.Now().Add(-time.Hour)
	must(t, os.WriteFile(path, []byte(configText), 0o644))
	must(t, os.Chtimes(path, old, old))
	s := begun(t, l)
	n = newNotebook(t)
	return attached(t, s.at, n), n, s.at, path
}

func TestAConfigFileThatCannotBeWrittenStopsNoServer(t *testing.T) {
	t.Parallel()
	a, n, at, path := configured(t)
	before := stateOf(t, at).PID
	must(t, os.MkdirAll(filepath.Join(launcher.StagedPath(path), "in the way"), 0o700))
	got := a.Apply(t.Context(), slots(4, 8))
	if !got.Back || !strings.Contains(got.Err, "nothing was touched") || stateOf(t, at).PID != before {
		t.Errorf("answer %+v by process %d, want process %d untouched", got, stateOf(t, at).PID, before)
	}
	for _, r := range n.records {
		if r.Kind != journal.Begin {
			t.Errorf("record %q of what was not begun", r.Kind)
		}
	}
}

// TestAnEditDuringAStartIsKept edits the file after it was checked: while a server stops for a change, and while
// it is put back after a start that failed.
func TestAnEditDuringAStartIsKept(t *testing.T) {
	t.Parallel()
	const edit = "max-num-seqs: 5 # of someone else\n"
	for step, to := range map[string]int{"stopping ": 8, "putting the server back: ": slotsRefused} {
		a, n, at, path := configured(t)
		edited := false
		a.plan.Progress = func(text string) {
			if strings.HasPrefix(text, step) && !edited {
				edited = true
				must(t, os.WriteFile(path, []byte(edit), 0o644))
			}
		}
		if got := a.Apply(t.Context(), slots(4, to)); got.Err != "" && !got.Back {
			t.Errorf("%s: %+v", step, got)
		}
		stateOf(t, at)
		if kept, err := os.ReadFile(filepath.Join(n.dir, "found")); err != nil || string(kept) != edit {
			t.Errorf("%s: kept %q, %v, want the edit", step, kept, err)
		}
	}
}

// TestARevertCopiesAnEdit that was made while a change is on trial, and names the copy.
func TestARevertCopiesAnEdit(t *testing.T) {
	t.Parallel()
	a, n, at, path := configured(t)
	mustApply(t, a, slots(4, 8))
	const edit = "max-num-seqs: 5 # of someone else\n"
	must(t, os.WriteFile(path, []byte(edit), 0o644))
	if got := a.Apply(t.Context(), slots(4, 16)); !strings.Contains(got.Err, "someone else changed") {
		t.Errorf("a change: %+v, want it refused", got)
	}
	mustApply(t, a, back())
	copied := filepath.Join(n.dir, "found")
	if kept, err := os.ReadFile(copied); err != nil || string(kept) != edit || stateOf(t, at).Config != configText {
		t.Errorf("kept %q, %v, and the server reads %q", kept, err, stateOf(t, at).Config)
	}
	said(t, a.Notes(), "a copy of it is "+copied)
}

// TestARevertKeepsTheModeOfAConfigFile that someone closed to others while a change was on trial.
func TestARevertKeepsTheModeOfAConfigFile(t *testing.T) {
	t.Parallel()
	a, _, at, path := configured(t)
	mustApply(t, a, slots(4, 8))
	must(t, os.Chmod(path, 0o600))
	mustApply(t, a, back())
	if info, err := os.Stat(path); err != nil || info.Mode() != 0o600 || stateOf(t, at).Config != configText {
		t.Errorf("mode %v, %v, with %q", info.Mode(), err, stateOf(t, at).Config)
	}
}

// TestARevertWritesAMissingConfigFile, as 'rooftop recover' does.
func TestARevertWritesAMissingConfigFile(t *testing.T) {
	t.Parallel()
	a, _, _, path := configured(t)
	if got := a.Apply(t.Context(), slots(4, 8)); got.Err != "" {
		t.Fatal(got.Err)
	}
	must(t, os.Remove(path))
	if got := a.Apply(t.Context(), back()); got.Err != "" {
		t.Errorf("answer %+v", got)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != configText {
		t.Errorf("%q, %v", text, err)
	}
}

func TestNothingIsLeftBesideAConfigFile(t *testing.T) {
	t.Parallel()
	a, n, _, path := configured(t)
	dir := filepath.Dir(path)
	before := listing(t, dir)
	a.Steps(slots(4, 8))
	if after := listing(t, dir); after != before {
		t.Errorf("to say the steps touched the directory:\n%sbefore:\n%s", after, before)
	}
	n.full = journal.Intent
	if got := a.Apply(t.Context(), slots(4, 8)); got.Err == "" {
		t.Error("a change was made that could not be written down")
	}
	if list := names(t, dir); len(list) != 1 {
		t.Errorf("left behind: %v", list)
	}
}

// A run that was killed while it wrote a config file leaves it half-written beside,
// whatever becomes of the server.
func TestWhatWasStagedIsRemovedHoweverARunIsPutRight(t *testing.T) {
	repair := func(t *testing.T, s *site) { must(t, s.repaired(t, s.survey(t))) }
	for name, do := range map[string]func(t *testing.T, s *site){
		"before the intent": repair,
		"someone else's file": func(t *testing.T, s *site) {
			must(t, os.WriteFile(s.config, []byte("max-num-seqs: 99\n"), 0o640))
			repair(t, s)
		},
		"left": func(t *testing.T, s *site) { must(t, (&Repair{Version: "test"}).Abandon(s.survey(t))) },
	} {
		t.Run(name, func(t *testing.T) {
			s := newSite(t, "attach", 1)
			s.cutOff(t, func(kept, _ string, p *journal.Process) []journal.Record {
				return []journal.Record{foundRunning(kept, p)}
			})
			must(t, os.WriteFile(launcher.StagedPath(s.config), []byte("max-num"), 0o600))
			do(t, s)
			s.clean(t, "afterwards")
		})
	}
}
