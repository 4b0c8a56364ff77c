//go:build e2e && linux

package main_test

import (
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/porttest"
	"github.com/rooftop-dev/rooftop/cmd/internal/tmuxtest"
)

// framesVariable names a directory in which the frames of the walk are left.
const framesVariable = "ROOFTOP_E2E_FRAMES"

// walk is a person before the screen, and at the server's own shell.
type walk struct {
	*screen
	t      *testing.T
	at     netip.AddrPort
	server *vllm
}

// frame reports what is seen, with the result and in a file.
func (w *walk) frame(name, text string) {
	w.t.Helper()
	w.t.Logf("%s:\n%s", name, tmuxtest.Boxed(text))
	if dir := os.Getenv(framesVariable); dir != "" {
		if err := os.WriteFile(filepath.Join(dir, strings.ReplaceAll(name, " ", "-")+".txt"), []byte(text), 0o600); err != nil {
			w.t.Error(err)
		}
	}
}

// view looks at another view, reports it, and comes back to the first.
func (w *walk) view(digit, tab, name string) string {
	w.t.Helper()
	now := body(w.Screen())
	w.Press(digit)
	frame := w.AwaitThat("the view "+tab, soon, func(s string) bool { return body(s) != now })
	w.frame(name, frame)
	w.Press("1")
	return frame
}

// restart stops the server and starts it with another number of slots, as
// engineers do. It returns when the server answers.
func (w *walk) restart(slots string) {
	w.t.Helper()
	if w.server != nil {
		w.server.stop()
	}
	w.server = launch(w.t, w.at, nil, "--max-num-seqs", slots)
	w.t.Cleanup(w.server.stop)
}

// shows waits for words in any case.
func (w *walk) shows(within time.Duration, pattern string) string {
	w.t.Helper()
	re := regexp.MustCompile("(?is)" + pattern)
	return w.AwaitThat(pattern, within, re.MatchString)
}

// decision is the question that a change asks which made it worse. The title of its
// panel gives way where a frame is full.
const decision = `revert,?\s+or\s+continue`

var asks = regexp.MustCompile("(?i)" + decision)

// judging is how long the verdict on a change may take: a measurement at its longest,
// as on a host whose neighbours take turns, and what comes before it.
const judging = 7 * time.Minute

// judged waits for the verdict on a change, which is there within half a minute of
// the server on a quiet machine, and says when it came.
func (w *walk) judged(pattern, name string) string {
	w.t.Helper()
	up := time.Now()
	frame := w.shows(judging, pattern)
	w.t.Logf("%s after %.0f s", name, time.Since(up).Seconds())
	w.frame(name, frame)
	return frame
}

// TestE2EWalk is the product's promise: an engineer with a server that has too
// few slots starts rooftop without a flag, does what it says, and sees what that
// brought; then does something that is worse, and goes back. TestE2EScreenContinues
// goes on from there instead.
func TestE2EWalk(t *testing.T) {
	x := openScreen(t, 80, 24)
	w := &walk{screen: x, t: t, at: porttest.Address(t)}
	w.restart("4")
	warmUp(t, w.server.url(), "", chat(32))
	g := offer(t, w.server.url(), "", chat(32))
	w.server.settle(t, 4*time.Second)

	// It finds the server without a flag, and says what limits it: after some 8 s, and
	// later on a host so slow that a request takes twenty.
	began := time.Now()
	x.start()
	frame := x.AwaitThat("concurrency saturation with the number of slots", 60*time.Second, func(s string) bool { return slots(s) != "" })
	t.Logf("concurrency saturation after %.1f s", time.Since(began).Seconds())
	w.frame("first advice", frame)
	// The number may move by a little until the first measurement is complete.
	frame = firm(x)
	few, more := "4", slots(frame)
	w.frame("now with advice", frame)
	w.view("2", "Roofline", "roofline before")
	w.view("4", "Evidence", "evidence")
	w.view("5", "GPU", "gpu and processes")
	if n := number(t, more); n < 32 || n > 64 {
		t.Fatalf("recommended slots %s -> %s, want 32 to 64: those that run and those that wait", few, more)
	}

	// Done as told: noticed, settled, measured, better.
	w.restart(more)
	w.frame("noticed", w.shows(soon, `as recommended`))
	w.judged(`kept: the new baseline.*better`, "better")
	w.view("3", "History", "history after one change")
	w.view("2", "Roofline", "roofline after")

	// Something else, and worse: the screen asks, and r goes back.
	w.restart("2")
	worse := w.judged(`worse.*`+decision, "worse")
	for _, key := range []string{"revert", "continue"} {
		if !strings.Contains(worse, key) {
			t.Errorf("the question does not offer to %s", key)
		}
	}
	x.Press("r")
	w.frame("reverting", x.AwaitThat("the command that goes back", soon, func(s string) bool {
		return !asks.MatchString(s) && strings.Contains(s, "--max-num-seqs "+more)
	}))
	w.restart(more)
	w.shows(judging, `reverted: the baseline is unchanged`)
	w.frame("reverted", w.shows(aWhile, `6 Log +(watching|ready)`))
	history := w.view("3", "History", "history after the revert")
	if !regexp.MustCompile(`(?i)reverted`).MatchString(history) {
		t.Error("the history does not say that the change was reverted")
	}

	w.view("6", "Log", "log")

	x.Press("q")
	left := x.ended(0, 3) // the kept slots hold all clients: nothing is left to change, or a little more of them
	w.frame("final report", left)
	reported(t, x, left)
	g.end(t)
}
