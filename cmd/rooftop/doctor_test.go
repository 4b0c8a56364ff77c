package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/cli"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/collect/ggml"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

// TestTraceIsJudgedByItself checks the advice for tracing: an optional step does not prevent
// tracing, and the first required one is the next step.
func TestTraceIsJudgedByItself(t *testing.T) {
	good := ggml.Rung{Name: "kernel", OK: true, Needed: true, Found: "Linux 6.18"}
	counters := ggml.Rung{Name: "PMU", Found: "none", Missing: "cycles", Next: "run on bare metal"}
	rights := ggml.Rung{Name: "privileges", Needed: true, Found: "user 65534", Missing: "everything", Next: "sudo setcap"}
	ring := ggml.Rung{Name: "ring buffer", Needed: true, Found: "not permitted", Missing: "events", Next: "another"}

	can, steps := traceChecks([]ggml.Rung{good, counters})
	if !can.Can || can.Next != "rooftop trace" || len(steps) != 2 || steps[1].State != tuning.CheckAbsent {
		t.Errorf("a full ladder but for counters: %+v %+v", can, steps)
	}
	cannot, steps := traceChecks([]ggml.Rung{good, counters, rights, ring})
	if cannot.Can || cannot.Next != "sudo setcap" || !strings.Contains(cannot.Found, "privileges (user 65534)") {
		t.Errorf("a ladder without privileges: %+v", cannot)
	}
	for i, want := range []tuning.CheckState{tuning.CheckOK, tuning.CheckAbsent, tuning.CheckBad, tuning.CheckBad} {
		if steps[i].State != want || steps[i].For != tracePurpose {
			t.Errorf("step %s is %s for %q, want %s", steps[i].Name, steps[i].State, steps[i].For, want)
		}
	}
}

// TestNoServerIsNotAFault checks that a machine without a requested server has no fault, and that a
// requested server which does not respond is one.
func TestNoServerIsNotAFault(t *testing.T) {
	why := errors.New("unreachable: connection refused")
	if p, c := unserved(why, false, ""); p.Can || c.State != tuning.CheckAbsent || !strings.Contains(p.Found, "No inference server was found") {
		t.Errorf("none was named: %+v %+v", p, c)
	}
	if p, c := unserved(why, true, ""); p.Can || c.State != tuning.CheckBad || c.Found != why.Error() {
		t.Errorf("one was named: %+v %+v", p, c)
	}
	if _, c := unserved(why, true, "deployment/vllm"); !strings.Contains(c.Next, "kubernetes-role.yaml") || strings.Contains(c.Next, "--url") {
		t.Errorf("a workload was named: %+v", c)
	}
}

// TestWhatIsNotCheckedDoesNotLookWell checks the last line without a fault, with a purpose that cannot be served and without.
func TestWhatIsNotCheckedDoesNotLookWell(t *testing.T) {
	server, check := unserved(errors.New("unreachable"), false, "")
	trace := tuning.Purpose{ID: tracePurpose, Commands: traceCommands, Can: true}
	for want, d := range map[string]tuning.Doctor{
		"▲ not checked: " + serverCommands: {Purposes: []tuning.Purpose{trace, server}, Checks: []tuning.Check{check}},
		"● everything present can be read": {Purposes: []tuning.Purpose{trace}},
	} {
		var b strings.Builder
		if err := render.Text(&b, d.Page(), render.Options{}); err != nil || !strings.HasSuffix(strings.TrimSpace(b.String()), want) {
			t.Errorf("got %v\n%s\nwant %q at the end", err, b.String(), want)
		}
	}
}

// TestDoctorReadsTheHealth checks the line of /health and the exit code for servers whose page answers.
func TestDoctorReadsTheHealth(t *testing.T) {
	for _, tt := range []struct {
		status      int
		state       tuning.CheckState
		found, next string
		code        cli.ExitCode
	}{
		{http.StatusOK, tuning.CheckOK, "ok: /health answers 200, read in ", "", 0},
		{http.StatusServiceUnavailable, tuning.CheckBad, "failed: /health answers 503, read in ", "read the server's log, then restart it", cli.ExitUnhealthy},
		{http.StatusNotFound, tuning.CheckAbsent, "unknown: /health answers 404, read in ", "give the address of the server itself, not of a proxy in front of it", 0},
	} {
		t.Run(http.StatusText(tt.status), func(t *testing.T) {
			mux := http.NewServeMux()
			mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
				fmt.Fprintln(w, `vllm:num_requests_running{model_name="m"} 0`)
			})
			mux.HandleFunc("/health", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(tt.status) })
			s := httptest.NewServer(mux)
			defer s.Close()
			out, stderr, code := call(t, nil, "doctor", "--json", "--url", s.URL)
			var d tuning.Doctor
			if err := json.Unmarshal([]byte(out), &d); err != nil {
				t.Fatalf("%v: %s %s", err, out, stderr)
			}
			i := slices.IndexFunc(d.Checks, func(c tuning.Check) bool { return c.Name == "health" })
			if i < 0 {
				t.Fatalf("no line of the health: %s", out)
			}
			c := d.Checks[i]
			if c.State != tt.state || !strings.HasPrefix(c.Found, tt.found) || c.Next != tt.next || code != tt.code {
				t.Errorf("exit code %d, %+v", code, c)
			}
			if d.Purposes[0].Can != (tt.code == 0) {
				t.Errorf("the server's purpose: %+v", d.Purposes[0])
			}
		})
	}
}
