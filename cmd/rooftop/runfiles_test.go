package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine"
)

func variables(pairs ...string) func(string) (string, bool) {
	return func(name string) (string, bool) {
		i := slices.Index(pairs, name)
		if i < 0 || i%2 == 1 {
			return "", false
		}
		return pairs[i+1], true
	}
}

func measured() *engine.Snapshot {
	return &engine.Snapshot{
		Started:  time.Date(2026, 11, 21, 7, 5, 9, 0, time.Local),
		Target:   engine.Target{Model: "Qwen/Qwen3-8B"},
		Baseline: &engine.Diagnosis{},
	}
}

func TestKeepRun(t *testing.T) {
	state := t.TempDir()
	env := variables("XDG_STATE_HOME", state, "HOME", t.TempDir())
	for i, name := range []string{"20261121-070509-Qwen3-8B", "20261121-070509-Qwen3-8B-2"} {
		files, err := keepRun(env, measured(), "")
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
	files, err := keepRun(variables("XDG_STATE_HOME", state), s, "")
	left, _ := os.ReadDir(state)
	if err != nil || len(files) > 0 || len(left) > 0 {
		t.Errorf("wrote %q and left %v: %v", files, left, err)
	}
}

func TestStateDir(t *testing.T) {
	for _, c := range []struct {
		name string
		env  func(string) (string, bool)
		want string
	}{
		{"given", variables("XDG_STATE_HOME", "/state", "HOME", "/home/me"), "/state"},
		{"relative", variables("XDG_STATE_HOME", "state", "HOME", "/home/me"), "/home/me/.local/state"},
		{"at home", variables("HOME", "/home/me"), "/home/me/.local/state"},
		{"nowhere", variables(), ""},
	} {
		got, err := stateDir(c.env)
		if got != c.want || (err != nil) != (c.want == "") {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
}

func TestReportsNeverOverwrite(t *testing.T) {
	dir := t.TempDir()
	mine := filepath.Join(dir, "run.md")
	if err := os.WriteFile(mine, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	files, err := writeReports(dir, "run", measured())
	if err != nil || len(files) != 3 || filepath.Base(files[0]) != "run-2.md" {
		t.Errorf("wrote %q: %v", files, err)
	}
	if text, _ := os.ReadFile(mine); string(text) != "mine" {
		t.Errorf("the file that was there now holds %q", text)
	}
	if _, err := writeReports(filepath.Join(dir, "no-such"), "run", measured()); err == nil {
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
