package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/loop"
	"github.com/rooftop-dev/rooftop/tui/cell"
	"github.com/rooftop-dev/rooftop/tui/frame"
)

func TestLog(t *testing.T) {
	s := &loop.Snapshot{
		Attached: true, Started: fixtureStart(), Now: 2 * time.Hour, Dropped: 1234,
		Journal: []loop.Entry{
			{T: 62 * time.Second, Level: loop.LevelBad, Text: "the server stopped answering: connection refused"},
			{T: 84 * time.Second, Level: loop.LevelGood, Text: "it answers again"},
			{T: time.Hour + time.Minute, Level: loop.LevelWarn, Text: strings.Repeat("words ", 12) + "end"},
			{T: 2 * time.Hour, Text: "a line\nfeed"},
		},
	}
	got := drawn(journal, s, plainLook(), 80, 8)
	want := strings.TrimPrefix(`
 1,234 earlier entries dropped
    1:02  14:01:02  ✖ bad   the server stopped answering: connection refused
    1:24  14:01:24  ● good  it answers again
 1:01:00  15:01:00  ▲ warn  words words words words words words words words
                            words words words words end
 2:00:00  16:00:00  · info  a line feed


`, "\n")
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	// On a narrow screen the wall clock is left out.
	if narrow := drawn(journal, s, plainLook(), 56, 20); strings.Contains(narrow, "14:01") || !strings.Contains(narrow, "✖ bad") {
		t.Errorf("at 56 cells:\n%s", narrow)
	}
	ascii := drawn(journal, s, &frame.Settings{Glyphs: cell.ASCII()}, 80, 8)
	for _, sign := range []string{"x bad", "* good", "! warn"} {
		if !strings.Contains(ascii, sign) {
			t.Errorf("%q is missing in\n%s", sign, ascii)
		}
	}
}

// TestJournalFromAnyLine checks that formatting only the visible lines gives the same lines as
// formatting all.
func TestJournalFromAnyLine(t *testing.T) {
	s := snapshotNamed(t, "long") // entries of several lines, and some let go
	for _, glyphs := range []cell.Glyphs{cell.Unicode(), cell.ASCII()} {
		u := &frame.Settings{Glyphs: glyphs}
		lines := journal(s, u, 66).Lines(0)
		all := strings.Split(drawn(journal, s, u, 66, lines+6), "\n")
		if lines < 2*len(s.Journal) || strings.TrimSpace(all[lines-1]) == "" || strings.TrimSpace(all[lines]) != "" {
			t.Fatalf("%d lines for %d entries", lines, len(s.Journal))
		}
		for first := range lines + 2 {
			got, want := drawnFrom(journal, s, u, 66, 5, first), strings.Join(all[min(first, lines):min(first, lines)+5], "\n")+"\n"
			if got != want {
				t.Errorf("from line %d: got\n%s\nwant\n%s", first, got, want)
			}
		}
	}
}
