package frame

import (
	"testing"
	"time"
)

func TestProgress(t *testing.T) {
	for _, c := range []struct {
		elapsed, total time.Duration
		long, short    string
	}{
		{9 * time.Second, 20 * time.Second, "  9 of 20 s", "  9/20 s"},
		{70 * time.Second, 90 * time.Second, " 70 of 90 s", " 70/90 s"},
		{12 * time.Second, 3 * time.Minute, " 0:12 of 3:00", " 0:12/3:00"},
		{64 * time.Second, 3 * time.Minute, " 1:04 of 3:00", " 1:04/3:00"},
		{64 * time.Second, 0, " 1:04", " 1:04"},
		{0, 0, "", ""},
	} {
		g := Stage{Elapsed: c.elapsed, Total: c.total}
		if long, short := g.Progress(true), g.Progress(false); long != c.long || short != c.short {
			t.Errorf("%v of %v is %q and %q, want %q and %q", c.elapsed, c.total, long, short, c.long, c.short)
		}
	}
}
