//go:build e2e && linux

package main_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// terminalBudget is how many bytes per second are sent over SSH in a steady state at 80x24.
const terminalBudget = 4 << 10

func TestE2EScreenCost(t *testing.T) {
	server := startSimulated(t)
	x := openScreen(t, 80, 24)
	x.started("Now", "tune", "--url", server.url())
	x.AwaitThat("concurrency saturation with the number of slots", aWhile, func(s string) bool { return slots(s) != "" })
	time.Sleep(25 * time.Second) // until the first measurement is complete

	file := filepath.Join(t.TempDir(), "written")
	x.Pipe(file)
	began := time.Now()
	time.Sleep(40 * time.Second)
	took := time.Since(began).Seconds()
	written, err := os.Stat(file)
	must(t, err)
	rate := float64(written.Size()) / took
	t.Logf("%.0f bytes/s to the terminal (budget %d)", rate, terminalBudget)
	if written.Size() == 0 {
		t.Error("nothing was drawn")
	}
	if rate > terminalBudget {
		t.Errorf("%.0f bytes/s to the terminal, at most %d", rate, terminalBudget)
	}
	x.Press("q")
	x.ended(3)
}
