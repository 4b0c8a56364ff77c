//go:build e2e && linux

package main_test

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/cmd/internal/gguf"
	"github.com/rooftop-dev/rooftop/cmd/internal/tmuxtest"
)

// TestE2ETraceScreen looks at a real runtime on the screen, as a person would: each
// view, another level, a pause, an export, and the target's end.
func TestE2ETraceScreen(t *testing.T) {
	needsRoot(t)
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("NOT CHECKED: the screen of a trace (there is no tmux)")
	}
	for _, size := range [][2]int{{80, 24}, {120, 30}} {
		t.Run(strconv.Itoa(size[0]), func(t *testing.T) { traceOnScreen(t, size[0], size[1]) })
	}
}

func traceOnScreen(t *testing.T, width, height int) {
	// It is killed here, which is no failure of its own.
	mortal := func(name string, args ...string) *exec.Cmd {
		return exec.Command("sh", append([]string{"-c", `"$@"; exit 0`, "sh", name}, args...)...)
	}
	d := driveAs(t, mortal, runtimes[0], gguf.Mid, 1)
	x := openScreen(t, width, height, "XDG_STATE_HOME="+t.TempDir())
	x.started("waiting", "trace", "--pid", strconv.Itoa(d.pid), "--force", "--level", "tensor")
	for range 8 { // longer than this takes
		d.tell(t, "run 24 1900")
	}
	x.Await("MUL_MAT", soon)
	x.Await("tracing", soon)
	for key, words := range map[string]string{"2": "GFLOP/s", "3": "attention", "4": "thread", "5": "This model is dense", "6": "ggml_cpu_extra_compute_forward"} {
		x.Press(key)
		frame := x.AwaitThat(words+" in view "+key, soon, func(s string) bool { return strings.Contains(s, "["+key+" ") && strings.Contains(s, words) })
		if !strings.Contains(frame, "node PID "+strconv.Itoa(d.pid)) {
			t.Errorf("view %s does not say what is traced:\n%s", key, tmuxtest.Boxed(frame))
		}
	}
	x.Press("1")
	x.Press("-")
	x.Await("detail operator", soon)
	x.Press("p")
	x.Await("PAUSED", soon)
	x.Press("p")
	x.AwaitThat("a trace that goes on", soon, func(s string) bool { return !strings.Contains(s, "PAUSED") })
	x.Press("e")
	x.Await("rooftop-trace-", soon)
	killed := time.Now()
	if err := syscall.Kill(d.pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	x.Await("process "+strconv.Itoa(d.pid)+" has ended", soon)
	t.Logf("its end was on the screen after %v", time.Since(killed).Round(10*time.Millisecond))
	x.Press("q")
	left := x.ended(0)
	for _, want := range []string{"PID " + strconv.Itoa(d.pid), "tok/s", "exported: rooftop-trace-", "has ended"} {
		if !strings.Contains(strings.ReplaceAll(left, "\u00a0", " "), want) {
			t.Errorf("no %q is left:\n%s", want, tmuxtest.Boxed(left))
		}
	}
}
