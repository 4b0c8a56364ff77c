//go:build e2e && linux

package main_test

import (
	"encoding/json"
	"os/exec"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/rooftop-dev/rooftop/collect/loadgen"
)

// captured is the part of a document of probe and observe that these tests read.
type captured struct {
	begin, end time.Time // of the run
	cpu        float64   // seconds
	rssPeak    float64   // bytes
	warnings   []string  // IDs
	whole      int       // answers
	samples    int       // of processes
}

// capturedBy is the one place that knows the document's fields (rooftop.probe/v1).
func capturedBy(t *testing.T, a answer) captured {
	t.Helper()
	if a.code != 0 {
		t.Fatalf("exit code %d: %s", a.code, a.stderr)
	}
	var d struct {
		Schema  string
		Started time.Time // the wall clock at the origin that the moments count from
		Capture struct {
			Begin float64 `json:"begin_s"`
			End   float64 `json:"end_s"`
		}
		Figures struct {
			Requests struct{ Whole int }
			Tree     struct {
				Samples int
				Total   struct {
					CPU float64                `json:"cpu_s"`
					RSS struct{ Peak float64 } `json:"rss_bytes"`
				}
			}
			Warnings []struct{ ID string }
		}
	}
	if err := json.Unmarshal(a.stdout, &d); err != nil {
		t.Fatalf("%v:\n%s", err, a.stdout)
	}
	seconds := func(s float64) time.Time { return d.Started.Add(time.Duration(s * float64(time.Second))) }
	tree := d.Figures.Tree
	c := captured{
		begin: seconds(d.Capture.Begin), end: seconds(d.Capture.End),
		cpu: tree.Total.CPU, rssPeak: tree.Total.RSS.Peak,
		whole: d.Figures.Requests.Whole, samples: tree.Samples,
	}
	if d.Schema != "rooftop.probe/v1" || !c.end.After(c.begin) || c.samples == 0 {
		t.Fatalf("the document is of schema %q, its run from %v to %v, with %d samples of processes", d.Schema, c.begin, c.end, c.samples)
	}
	for _, w := range d.Figures.Warnings {
		c.warnings = append(c.warnings, w.ID)
	}
	return c
}

// TestE2EProbe gives rooftop the shell's PID and no flag for processes: the result must be that of the servers
// started by the shell, whose figures E2ETree checks.
func TestE2EProbe(t *testing.T) {
	for _, start := range []func(*testing.T, string) *engine{startLlamaCPP, startVLLM} {
		e := start(t, behind)
		load := loadgen.Load{Clients: 4, PromptTokens: loadgen.Fixed(100), OutputTokens: loadgen.Between(100, 300), Style: loadgen.Characters, Seed: 1}
		warmUp(t, e.url(), "", load)
		serves := func(t *testing.T, c captured) {
			t.Helper()
			if seconds := c.end.Sub(c.begin).Seconds(); c.cpu < seconds/4 || c.rssPeak < 50<<20 {
				t.Errorf("the tree used %.2f s of CPU in %.1f s, and %.1f MiB: it is not the server's", c.cpu, seconds, c.rssPeak/(1<<20))
			}
			if slices.Contains(c.warnings, "idle-pid") || slices.Contains(c.warnings, "wrong-tree") {
				t.Errorf("warnings %v on a tree that serves", c.warnings)
			}
		}
		t.Run(e.name+"/observe", func(t *testing.T) {
			g := offer(t, e.url(), "", load)
			time.Sleep(e.slowed(3 * time.Second))
			serves(t, capturedBy(t, rooftop(t, "observe", "-u", e.url(), "--pid", strconv.Itoa(e.wrapper), "--duration", "10s", "--json")))
			if g.end(t).Errors > 0 {
				t.Error("requests failed while rooftop looked on")
			}
		})
		t.Run(e.name+"/probe", func(t *testing.T) {
			c := capturedBy(t, rooftop(t, "probe", "-u", e.url(), "--pid", strconv.Itoa(e.wrapper), "--prompt", "Tell me about rooftops.",
				"--max-tokens", "200", "--repeat", "12", "--concurrency", "2", "--json"))
			serves(t, c)
			if c.whole != 12 {
				t.Errorf("%d whole answers, want 12", c.whole)
			}
		})
		e.stop() // the next one shall have the machine to itself
	}
}

// TestE2EIdlePID checks that a PID that does nothing causes a warning, and that ordinary programs that do something
// do not.
func TestE2EIdlePID(t *testing.T) {
	e := startLlamaCPP(t, behind)
	warned := func(t *testing.T, pid int) bool {
		t.Helper()
		a := rooftop(t, "observe", "-u", e.url(), "--pid", strconv.Itoa(pid), "--duration", "2s", "--json")
		return slices.Contains(capturedBy(t, a).warnings, "idle-pid")
	}
	t.Run("idle", func(t *testing.T) {
		if !warned(t, program(t, "exec sleep 600")) {
			t.Error("no warning of a process that sleeps")
		}
	})
	// Small programs of one thread, each busy in a different way: all the time, for a fraction of it, or only through
	// children.
	for _, script := range []string{
		`while :; do :; done`,
		`exec yes > /dev/null`,
		`exec cat /dev/zero > /dev/null`,
		`exec sha256sum /dev/zero`,
		`exec gzip -c /dev/zero > /dev/null`,
		`exec awk 'BEGIN { while (1) i++ }'`,
		`exec dd if=/dev/urandom of=/dev/null bs=64k status=none`,
		`exec od -v /dev/zero > /dev/null`,
		`while :; do find /usr/lib -name '*.so' > /dev/null; done`,
		`while :; do sleep 0.05; for i in 1 2 3 4 5 6 7 8 9; do echo $i; done > /dev/null; done`,
		`while :; do sort /etc/services /etc/passwd > /dev/null 2>&1; done`,
	} {
		t.Run(script, func(t *testing.T) {
			if warned(t, program(t, script)) {
				t.Error("called idle")
			}
		})
	}
}

// program runs a shell script until the end of the test and returns its PID.
func program(t *testing.T, script string) int {
	t.Helper()
	cmd := exec.Command("bash", "-c", script)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(t, cmd.Start())
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	return cmd.Process.Pid
}
