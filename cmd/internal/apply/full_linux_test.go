package apply

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/engine/journal"
)

// mounted is a small file system of its own.
func mountedFS(t *testing.T, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := unix.Mount("rooftop", dir, "tmpfs", 0, options); err != nil {
		t.Skipf("NOT CHECKED: a full and a read-only file system; one of the test's own needs root: %v", err)
	}
	t.Cleanup(func() { must(t, unix.Unmount(dir, unix.MNT_DETACH)) })
	return dir
}

// A config file is written before the server is stopped for it.
func TestFullDiskOfTheConfigFile(t *testing.T) {
	l := usual(t, "--config", "server.yaml")
	l.Cwd = mountedFS(t, "size=64k")
	path := filepath.Join(l.Cwd, "server.yaml")
	text := configText + strings.Repeat("# as long as some pages\n", 500)
	old := time.Now().Add(-time.Hour)
	must(t, os.WriteFile(path, []byte(text), 0o644))
	must(t, os.Chtimes(path, old, old))
	s := begun(t, l)
	a := attached(t, s.at, newNotebook(t))
	t.Cleanup(func() { _ = a.down() }) // before its file system goes
	before := stateOf(t, s.at).PID
	fill := filepath.Join(l.Cwd, "fill")
	if err := os.WriteFile(fill, make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	got := a.Apply(t.Context(), slots(4, 8))
	if !got.Back || !strings.Contains(got.Err, "no space left") || !strings.Contains(got.Err, "nothing was touched") || stateOf(t, s.at).PID != before {
		t.Errorf("answer %+v by process %d, want process %d untouched", got, stateOf(t, s.at).PID, before)
	}
	if list := names(t, l.Cwd); len(list) != 2 {
		t.Errorf("left behind: %v", list)
	}
	must(t, os.Remove(fill))
	if got := a.Apply(t.Context(), slots(4, 8)); got.Err != "" || !strings.Contains(stateOf(t, s.at).Config, "max-num-seqs: 8") {
		t.Errorf("with room: %+v", got)
	}
}

// TestFullDiskOfTheJournalAtRecovery fills the disk once the server of the change is being stopped, or the kept one
// is being started.
func TestFullDiskOfTheJournalAtRecovery(t *testing.T) {
	for step, want := range map[string]string{
		"stopping ":    "the server is stopped, and the journal cannot be written in ",
		"starting ":    "the server is stopped, and the journal cannot be written in ",
		"waiting for ": "the server runs as it was, and the journal cannot be written in ",
	} {
		s := newSite(t, "attach", 0)
		s.Root = mountedFS(t, "size=6m")
		s.cutOff(t, func(kept, next string, p *journal.Process) []journal.Record {
			return []journal.Record{foundRunning(kept, nil), intent(next), {Kind: journal.Stopped}, {Kind: journal.Started, Launch: next, Process: p}}
		})
		l := s.survey(t)
		r := Repair{Version: "test", Grace: testGrace, Ready: s.ready(), Progress: func(text string) {
			if strings.HasPrefix(text, step) {
				fillUp(t, l.Dir)
			}
		}}
		err := r.Do(t.Context(), l)
		if err == nil || !strings.HasPrefix(err.Error(), want) || !strings.HasSuffix(err.Error(), "; mend that and run 'rooftop recover' again") || strings.Contains(err.Error(), "touched") {
			t.Errorf("%s: %v", step, err)
		}
		must(t, os.Remove(filepath.Join(l.Dir, "fill")))
		if err := s.repaired(t, s.survey(t)); err != nil {
			t.Errorf("%s: with room: %v", step, err)
		}
	}
}

// fillUp fills the disk so that no record fits, the last page of the journal with it.
func fillUp(t *testing.T, dir string) {
	journal, err := os.OpenFile(filepath.Join(dir, "journal.jsonl"), os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	defer journal.Close()
	info, err := journal.Stat()
	must(t, err)
	page := int64(os.Getpagesize())
	_, err = journal.Write(make([]byte, page-info.Size()%page)) // removed with the record that fails
	must(t, err)
	must(t, os.Remove(filepath.Join(dir, serverdir.ReserveName)))
	if err := os.WriteFile(filepath.Join(dir, "fill"), make([]byte, 8<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
}

// Recover stops nothing either that it could not put back.
func TestFullDiskOfTheConfigFileAtRecovery(t *testing.T) {
	s := newSite(t, "attach", 1)
	s.config = filepath.Join(mountedFS(t, "size=64k"), "server.yaml")
	must(t, os.WriteFile(s.config, []byte(configBytes+strings.Repeat("# as long as some pages\n", 500)), 0o640))
	must(t, os.Remove(filepath.Join(s.dir, "vllm.yaml")))
	must(t, os.Symlink(s.config, filepath.Join(s.dir, "vllm.yaml")))
	s.cutOff(t, func(kept, next string, p *journal.Process) []journal.Record {
		return []journal.Record{foundRunning(kept, nil), intent(next), {Kind: journal.Stopped}, {Kind: journal.Started, Launch: next, Process: p}}
	})
	must(t, os.WriteFile(s.config, []byte("max-num-seqs: 8\n"), 0o640))
	if err := os.WriteFile(filepath.Join(filepath.Dir(s.config), "fill"), make([]byte, 1<<20), 0o600); !errors.Is(err, unix.ENOSPC) {
		t.Fatal(err)
	}
	l := s.survey(t)
	if l.Remedy != PutBack {
		t.Fatalf("remedy %q", l.Remedy)
	}
	if err := s.repaired(t, l); err == nil || !strings.Contains(err.Error(), "no space left") {
		t.Errorf("got %v", err)
	}
	if gone(s.server.Process.Pid) {
		t.Error("the server was stopped")
	}
}
