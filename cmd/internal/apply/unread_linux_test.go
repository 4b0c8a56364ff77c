package apply

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/launcher"
	"github.com/rooftop-dev/rooftop/cmd/internal/serverdir"
	"github.com/rooftop-dev/rooftop/engine/journal"
)

// journalled leaves the directory of a server with a launch and a journal of these
// records, which are then altered.
func journalled(t *testing.T, root string, id serverdir.Identity, alter func(lines [][]byte) [][]byte, records ...journal.Record) (dir string) {
	t.Helper()
	s, err := serverdir.OpenStore(root, id, "test")
	must(t, err)
	name, err := s.Keep(&launcher.Launch{Argv: []string{"vllm", "serve", "m"}, Env: []string{"HF_TOKEN=hf_secret"}})
	must(t, err)
	for _, r := range records {
		if r.Kind == journal.Begin || r.Kind == journal.Intent {
			r.Launch = name
		}
		write(t, s, r)
	}
	must(t, s.Release())
	path := filepath.Join(s.Dir(), "journal.jsonl")
	text, err := os.ReadFile(path)
	must(t, err)
	must(t, os.WriteFile(path, bytes.Join(alter(slices.Collect(bytes.Lines(text))), nil), 0o600))
	return s.Dir()
}

func newerLines(from, to int) func([][]byte) [][]byte {
	return func(lines [][]byte) [][]byte {
		for i := from; i < to; i++ {
			lines[i] = bytes.Replace(lines[i], []byte("journal/v1"), []byte("journal/v2"), 1)
		}
		return lines
	}
}

func damagedLine(n int) func([][]byte) [][]byte {
	return func(lines [][]byte) [][]byte {
		lines[n] = append([]byte("\x00\x00"), lines[n][2:]...)
		return lines
	}
}

// What the journal does not tell is not taken for what is to run, and the only copy of
// a launch stays.
func TestAJournalThatCannotBeReadStopsEverything(t *testing.T) {
	run := []journal.Record{{Kind: journal.Begin, Mode: "exec"}, {Kind: journal.Intent}, {Kind: journal.Ready}, {Kind: journal.Kept}, {Kind: journal.Intent}, {Kind: journal.Stopped}}
	ended := []journal.Record{{Kind: journal.Begin, Mode: "exec"}, {Kind: journal.End}}
	for name, c := range map[string]struct {
		alter   func([][]byte) [][]byte
		records []journal.Record
		want    string
	}{
		"all of a newer rooftop":                    {newerLines(0, 6), run, "lines 1 to 6 of "},
		"a newer rooftop behind an end":             {newerLines(2, 4), slices.Concat(ended, ended), "lines 3 to 4 of "},
		"what was kept is damaged":                  {damagedLine(3), run, "line 4 of "},
		"the end is damaged":                        {damagedLine(1), ended, "line 2 of "},
		"emptied":                                   {func([][]byte) [][]byte { return nil }, run, "holds no record"},
		"one line of nothing, without a line break": {func([][]byte) [][]byte { return [][]byte{make([]byte, 64)} }, run, "holds no record"},
	} {
		t.Run(name, func(t *testing.T) {
			root, id := t.TempDir(), server(t)
			dir := journalled(t, root, id, c.alter, c.records...)
			must(t, os.WriteFile(filepath.Join(dir, "x"+".tmp"), nil, 0o600))
			before := listing(t, dir)
			list, err := Survey(root)
			if err != nil || len(list) != 1 || list[0].Remedy != Impossible || !list[0].Unread {
				t.Fatalf("surveyed %+v, %v", list, err)
			}
			if why := list[0].Why; !strings.Contains(why, c.want) || !strings.Contains(why, "--leave") || strings.Contains(why, "newer") != strings.Contains(name, "newer") {
				t.Errorf("why %q, want %q", why, c.want)
			}
			said(t, list[0].Found, ".json starts vllm serve m")
			must(t, serverdir.Tidy(root))
			other := id
			other.Model = "another" // known by less, or more: another directory
			for _, id := range []serverdir.Identity{id, other} {
				var unread *serverdir.UnreadError
				if _, err := serverdir.OpenStore(root, id, ""); !errors.As(err, &unread) || strings.Contains(err.Error(), "\n") {
					t.Errorf("a run on it: %v", err)
				}
			}
			if err := new(Repair).Do(t.Context(), &list[0]); err == nil {
				t.Error("it was put right")
			}
			if after := listing(t, dir); withoutLock(after) != withoutLock(before) {
				t.Errorf("before:\n%safter:\n%s", before, after)
			}
			// The user who has put it right says so.
			must(t, (&Repair{Version: "test"}).Abandon(&list[0]))
			if left := serverdir.Launches(dir); len(left) > 0 {
				t.Errorf("left behind: %v", left)
			}
			if list, err := Survey(root); err != nil || len(list) != 0 {
				t.Errorf("afterwards: %+v, %v", list, err)
			}
			open(t, root, id)
		})
	}
}

// withoutLock leaves out the lock, in which everyone who looks writes a name.
func withoutLock(list string) string {
	var out []string
	for line := range strings.Lines(list) {
		if !strings.Contains(line, string(filepath.Separator)+"lock"+" ") {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

func TestAMissingJournalBesideLaunches(t *testing.T) {
	root, id := t.TempDir(), server(t)
	dir := journalled(t, root, id, func(lines [][]byte) [][]byte { return lines }, journal.Record{Kind: journal.Begin})
	must(t, os.Remove(filepath.Join(dir, "journal.jsonl")))
	list, err := Survey(root)
	if err != nil || len(list) != 1 || list[0].Remedy != Impossible {
		t.Fatalf("surveyed %+v, %v", list, err)
	}
	must(t, serverdir.Tidy(root))
	if len(serverdir.Launches(dir)) != 1 {
		t.Error("the launch is gone")
	}
}

// Damage to a run that is over hides nothing that is to run.
func TestDamageBeforeAnEndStopsNothing(t *testing.T) {
	root, id := t.TempDir(), server(t)
	dir := journalled(t, root, id, damagedLine(1), journal.Record{Kind: journal.Begin}, journal.Record{Kind: journal.Verdict}, journal.Record{Kind: journal.End})
	if list, err := Survey(root); err != nil || len(list) != 0 {
		t.Errorf("surveyed %+v, %v", list, err)
	}
	must(t, serverdir.Tidy(root))
	if left := serverdir.Launches(dir); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
	list, err := serverdir.Unread(root)
	if err != nil || len(list) != 1 || list[0].Path != filepath.Join(dir, "journal.jsonl") || !slices.Equal(list[0].Lines, []int{2}) {
		t.Errorf("unread %v, %v", list, err)
	}
	open(t, root, id)
}
