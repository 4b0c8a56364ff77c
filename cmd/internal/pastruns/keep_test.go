package pastruns

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/loop"
)

// stateIn returns an environment with a state directory.
func stateIn(dir string) func(string) (string, bool) {
	return func(name string) (string, bool) { return dir, name == "XDG_STATE_HOME" }
}

func measured() *loop.Snapshot {
	return &loop.Snapshot{
		Started:  time.Date(2026, 11, 21, 7, 5, 9, 0, time.Local),
		Target:   engine.Target{Model: "Qwen/Qwen3-8B"},
		Baseline: &engine.Diagnosis{},
	}
}

func TestKeepRun(t *testing.T) {
	state := t.TempDir()
	env := stateIn(state)
	for i, name := range []string{"20261121-070509-Qwen3-8B", "20261121-070509-Qwen3-8B-2"} {
		files, err := Keep(env, measured(), "")
		if err != nil {
			t.Fatal(err)
		}
		dir := filepath.Join(state, "rooftop", "runs", name)
		want := []string{filepath.Join(dir, "report.md"), filepath.Join(dir, "report.json"), filepath.Join(dir, "report.html")}
		if !slices.Equal(files, want) {
			t.Errorf("run %d lies at %q, want %q", i+1, files, want)
		}
		for path, mode := range map[string]os.FileMode{dir: 0o700 | os.ModeDir, filepath.Dir(dir): 0o700 | os.ModeDir, files[0]: 0o600, files[2]: 0o600} {
			info, err := os.Stat(path)
			if err != nil || info.Mode() != mode {
				t.Errorf("%s has mode %v, want %v (%v)", path, info.Mode(), mode, err)
			}
		}
	}
}

func TestKeepRunWithoutAnythingToKeep(t *testing.T) {
	state := t.TempDir()
	s := measured()
	s.Baseline = nil
	files, err := Keep(stateIn(state), s, "")
	left, _ := os.ReadDir(state)
	if err != nil || len(files) > 0 || len(left) > 0 {
		t.Errorf("wrote %q and left %v: %v", files, left, err)
	}
}

func TestReportsNeverOverwrite(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "run.md")
	if err := os.WriteFile(mine, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := write(dir, "run", measured())
	if err != nil || len(files) != 3 || filepath.Base(files[0]) != "run-2.md" {
		t.Errorf("wrote %q: %v", files, err)
	}
	if text, _ := os.ReadFile(mine); string(text) != "mine" {
		t.Errorf("the file that was there now holds %q", text)
	}
	if _, err := write(filepath.Join(dir, "no-such"), "run", measured()); err == nil {
		t.Error("wrote into a directory that is not there")
	}
}

func TestFileName(t *testing.T) {
	for model, want := range map[string]string{
		"Qwen/Qwen3-8B":     "Qwen3-8B",
		"/models/my model/": "",
		"../../etc/passwd":  "passwd",
		"..":                "",
		"модель":            "",
		"a b:c":             "a_b_c",
		"":                  "",

		strings.Repeat("m", 200): strings.Repeat("m", 60),
	} {
		if got := fileName(model); got != want {
			t.Errorf("%q becomes %q, want %q", model, got, want)
		}
	}
}
