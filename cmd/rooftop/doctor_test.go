package main

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/report"
	"github.com/rooftop-dev/rooftop/collect/ggml"
)

// TestTraceIsJudgedByItself holds what a ladder says of a trace: a step that only adds
// something keeps nothing from it, and the first that is needed is the one to take.
func TestTraceIsJudgedByItself(t *testing.T) {
	good := ggml.Rung{Name: "kernel", OK: true, Needed: true, Found: "Linux 6.18"}
	counters := ggml.Rung{Name: "PMU", Found: "none", Missing: "cycles", Next: "run on bare metal"}
	rights := ggml.Rung{Name: "privileges", Needed: true, Found: "user 65534", Missing: "everything", Next: "sudo setcap"}
	ring := ggml.Rung{Name: "ring buffer", Needed: true, Found: "not permitted", Missing: "events", Next: "another"}

	can, steps := traceChecks([]ggml.Rung{good, counters})
	if !can.Can || can.Next != "rooftop trace" || len(steps) != 2 || steps[1].State != report.CheckAbsent {
		t.Errorf("a full ladder but for counters: %+v %+v", can, steps)
	}
	cannot, steps := traceChecks([]ggml.Rung{good, counters, rights, ring})
	if cannot.Can || cannot.Next != "sudo setcap" || !strings.Contains(cannot.Found, "privileges (user 65534)") {
		t.Errorf("a ladder without privileges: %+v", cannot)
	}
	for i, want := range []report.CheckState{report.CheckOK, report.CheckAbsent, report.CheckBad, report.CheckBad} {
		if steps[i].State != want || steps[i].For != tracePurpose {
			t.Errorf("step %s is %s for %q, want %s", steps[i].Name, steps[i].State, steps[i].For, want)
		}
	}
}

// TestNoServerIsNoFault holds that a machine on which nobody looks for a server has no
// fault, and that a server which was named and does not answer is one.
func TestNoServerIsNoFault(t *testing.T) {
	why := errors.New("unreachable: connection refused")
	if p, c := unserved(why, false); p.Can || c.State != report.CheckAbsent || !strings.Contains(p.Found, "No vLLM was found") {
		t.Errorf("none was named: %+v %+v", p, c)
	}
	if p, c := unserved(why, true); p.Can || c.State != report.CheckBad || c.Found != why.Error() {
		t.Errorf("one was named: %+v %+v", p, c)
	}
}

// TestDoctorOfANamedServer holds the exit code and both judgements of a server that does
// not answer.
func TestDoctorOfANamedServer(t *testing.T) {
	const nobody = "http://127.0.0.1:1"
	out, stderr, code := call(t, nil, "doctor", "--json", "--url", nobody)
	var d struct{ Purposes []report.Purpose }
	if err := json.Unmarshal([]byte(out), &d); err != nil {
		t.Fatalf("%v: %s %s", err, out, stderr)
	}
	if code != exitUnreachable || len(d.Purposes) != 2 || d.Purposes[0].ID != serverPurpose || d.Purposes[0].Can {
		t.Errorf("exit code %d, purposes %+v; %s", code, d.Purposes, stderr)
	}
}
