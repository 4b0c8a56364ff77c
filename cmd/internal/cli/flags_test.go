package cli

import (
	"testing"
	"time"
)

func TestFormatTime(t *testing.T) {
	for want, d := range map[string]time.Duration{
		"0s": 0, "250ms": 250 * time.Millisecond, "8s": 8 * time.Second, "10s": 10 * time.Second, "1m30s": 90 * time.Second,
		"10m": 10 * time.Minute, "1h": time.Hour, "10h": 10 * time.Hour, "1h30m": 90 * time.Minute, "1h0m8s": time.Hour + 8*time.Second,
	} {
		if got := FormatTime(d); got != want {
			t.Errorf("%v is %q, want %q", d, got, want)
		}
		if back, err := time.ParseDuration(FormatTime(d)); err != nil || back != d {
			t.Errorf("%q is read as %v: %v", FormatTime(d), back, err)
		}
	}
}
