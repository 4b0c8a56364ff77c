package tui

import (
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/engine/loop"
)

func TestLog(t *testing.T) {
	s := &loop.Snapshot{
		Attached: true, Started: fixtureStart(), Now: 2 * time.Hour, Dropped: 1234,
		Journal: []loop.Entry{
			{T: 62 * time.Second, Level: loop.LevelBad, Text: "the server stopped answering: connection refused"},
			{T: time.Hour + time.Minute, Level: loop.LevelWarn, Text: strings.Repeat("words ", 12) + "end"},
			{T: 2 * time.Hour, Text: "a line\nfeed"},
		},
	}
	got := drawn(journal, s, plainLook(), 80, 8)
	says(t, got, []string{
		"1:02 14:01:02 ✖ bad the server stopped answering: connection refused", "1:01:00 15:01:00 ▲ warn words words", "words end 2:00:00 16:00:00 a line feed",
	}, nil)
	says(t, drawn(journal, &loop.Snapshot{}, plainLook(), 80, 8), []string{"Nothing has happened yet."}, nil)
}
