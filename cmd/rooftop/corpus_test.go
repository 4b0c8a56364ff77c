package main

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/corpus"
	"github.com/rooftop-dev/rooftop/tui/screentest"
)

var update = screentest.Update

// The corpus contains times of day.
func init() { time.Local = time.UTC }

// TestCorpus compares the output of every command with testdata/corpus. A difference is either
// intended, and then written with -update, or a bug.
func TestCorpus(t *testing.T) {
	held, err := filepath.Abs(filepath.Join("..", "..", "testdata", "corpus"))
	if err != nil {
		t.Fatal(err)
	}
	recordings, err := filepath.Abs(filepath.Join("..", "..", "testdata", "recordings"))
	if err != nil {
		t.Fatal(err)
	}
	cases := map[string]bool{}
	for _, c := range corpus.Cases() {
		if c.Heavy {
			continue
		}
		file := filepath.Join(held, filepath.FromSlash(c.Name)+".txt")
		if cases[file] {
			t.Errorf("two cases are called %s", c.Name)
		}
		cases[file] = true
		t.Run(c.Name, func(t *testing.T) {
			dir := t.TempDir()
			if err := c.Prepare(dir, recordings); err != nil {
				t.Fatal(err)
			}
			t.Chdir(dir)
			got, err := c.Play(dir, func(cmd *corpus.Command) int { return inProcess(t, cmd) })
			if errors.Is(err, errors.ErrUnsupported) || errors.Is(err, os.ErrPermission) || c.Width > 0 && errors.Is(err, os.ErrNotExist) {
				t.Skipf("NOT CHECKED: %s: %v", c.Name, err)
			}
			if err != nil {
				t.Fatal(err)
			}
			checkCorpus(t, file, got)
		})
	}
	noOrphans(t, held, cases)
}

// inProcess runs a command line without starting a process.
func inProcess(t *testing.T, cmd *corpus.Command) int {
	t.Helper()
	variables := map[string]string{}
	for _, v := range cmd.Env {
		name, value, _ := strings.Cut(v, "=")
		variables[name] = value
	}
	ctx, stop := context.WithTimeout(t.Context(), corpus.Patience)
	defer stop()
	code := execute(ctx, cli.World{Args: cmd.Args, Stdout: cmd.Stdout, Stderr: cmd.Stderr, Env: func(name string) (string, bool) {
		value, ok := variables[name]
		return value, ok
	}})
	if ctx.Err() != nil {
		t.Errorf("rooftop %s does not end", strings.Join(cmd.Args, " "))
	}
	return int(code)
}

func checkCorpus(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; -update writes it", err)
	}
	if string(want) != got {
		t.Errorf("it prints otherwise (-held +printed); where that is meant, -update writes it:\n%s", cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")))
	}
}

// noOrphans finds files that no case writes any more.
func noOrphans(t *testing.T, held string, cases map[string]bool) {
	t.Helper()
	groups := map[string]bool{}
	for file := range cases {
		groups[filepath.Dir(file)] = true
	}
	for _, dir := range slices.Sorted(maps.Keys(groups)) {
		list, err := filepath.Glob(filepath.Join(dir, "*.txt"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range list {
			switch {
			case cases[file]:
			case *update:
				_ = os.Remove(file)
			default:
				t.Errorf("no case writes %s", file)
			}
		}
	}
}

// TestEveryRecordingIsReplayed checks that no recording is kept without a case of the corpus that reads it:
// those of an older rooftop are to be read for ever.
func TestEveryRecordingIsReplayed(t *testing.T) {
	list, err := os.ReadDir(filepath.Join("..", "..", "testdata", "recordings"))
	if err != nil || len(list) < 20 {
		t.Fatalf("%d recordings: %v", len(list), err)
	}
	var lines strings.Builder
	for _, c := range corpus.Cases() {
		if !c.Heavy {
			lines.WriteString(strings.Join(c.Lines, " ") + " ")
		}
	}
	for _, e := range list {
		// TestRecordingsOfRealServers replays real/; state/ is the state directory of each case. TestCorpusOfDocuments shows traces.
		if !e.IsDir() && !strings.HasPrefix(e.Name(), "trace-") && !strings.Contains(lines.String(), " "+e.Name()+" ") {
			t.Errorf("no case reads %s", e.Name())
		}
	}
}
