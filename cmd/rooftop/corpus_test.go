package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rooftop-dev/rooftop/tui/screentest"
)

var update = screentest.Update

// The corpus contains times of day.
func init() { time.Local = time.UTC }

// TestCorpus compares the output of every command with testdata/corpus. A difference is either intended, and then
// written with -update, or a bug.
func TestCorpus(t *testing.T) {
	recordings, err := filepath.Abs(filepath.Join("..", "..", "testdata", "recordings"))
	must(t, err)
	for _, c := range corpusCases() {
		file, err := filepath.Abs(inCorpus(c.name + ".txt"))
		must(t, err)
		t.Run(c.name, func(t *testing.T) {
			p := &player{t: t, dir: t.TempDir(), oneLine: c.name == "refused"}
			p.prepare(&c, recordings)
			t.Chdir(p.dir)
			for _, line := range c.lines {
				p.play(line)
			}
			checkCorpus(t, file, p.normalized())
		})
	}
}

func checkCorpus(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		must(t, os.MkdirAll(filepath.Dir(file), 0o755))
		must(t, os.WriteFile(file, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("%v; -update writes it", err)
	}
	if string(want) != got {
		t.Errorf("unexpected output (-want +got); if it is intended, -update writes it:\n%s", cmp.Diff(strings.Split(string(want), "\n"), strings.Split(got, "\n")))
	}
}

// TestEveryRecordingIsReplayed checks that no recording is kept without a case of the corpus that reads it:
// recordings of older releases must stay readable.
func TestEveryRecordingIsReplayed(t *testing.T) {
	list, err := os.ReadDir(filepath.Join("..", "..", "testdata", "recordings"))
	if err != nil || len(list) < 20 {
		t.Fatalf("%d recordings: %v", len(list), err)
	}
	var lines strings.Builder
	for _, c := range corpusCases() {
		lines.WriteString(strings.Join(c.lines, " ") + " ")
	}
	for _, e := range list {
		// TestRecordingsOfRealServers replays real/; state/ is the state directory of each case. TestCorpusOfDocuments shows traces.
		if !e.IsDir() && !strings.HasPrefix(e.Name(), "trace-") && !strings.Contains(lines.String(), " "+e.Name()+" ") {
			t.Errorf("no case reads %s", e.Name())
		}
	}
}
