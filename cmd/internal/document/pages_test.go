package document_test

import (
	"bytes"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

func TestDoctorGolden(t *testing.T) {
	const setcap = `sudo setcap cap_bpf,cap_perfmon,cap_sys_ptrace+ep "$(command -v rooftop)"`
	checks := []tuning.Check{
		{Name: "endpoint", State: tuning.CheckOK, Found: "http://localhost:8000/metrics answers in 4.1 ms: vLLM 0.32.0, 53 KB"},
		{Name: "process", State: tuning.CheckWarn, Found: "the listener's command line belongs to another user", Effect: "slots are not known: R1 and R5 are not judged", Next: "run rooftop as that user, or give -m"},
		{Name: "NVML", State: tuning.CheckBad, Found: "driver/library version mismatch", Effect: "no GPU reading", Next: "reboot, or reload the kernel module"},
		{Name: "DCGM", State: tuning.CheckAbsent, Found: "no --dcgm-url was given"},
	}
	privileges := tuning.Check{For: "trace", Name: "trace: privileges", State: tuning.CheckBad, Found: "user 65534", Effect: "everything: CAP_BPF and CAP_PERFMON or root", Next: setcap}
	can := tuning.Purpose{ID: "trace", Commands: "trace a GGML runtime", Can: true, Found: "Everything it needs is available.", Next: "rooftop trace --pid PID"}
	cannot := tuning.Purpose{ID: "trace", Commands: "trace a GGML runtime", Found: "First missing: privileges (user 65534).", Next: setcap}
	none := tuning.Purpose{ID: "server", Commands: "tune, diagnose and probe a server", Found: "No inference server was found on this machine, and none was named with --url."}
	var all bytes.Buffer
	for _, c := range []struct {
		name  string
		found tuning.Doctor
	}{
		{"all states", tuning.Doctor{Checks: checks}},
		{"no fault", tuning.Doctor{Checks: checks[:1]}},
		{"a gap", tuning.Doctor{Checks: checks[:2]}},
		{"a fault", tuning.Doctor{Checks: checks[2:3]}},
		{"one of two purposes", tuning.Doctor{Purposes: []tuning.Purpose{can, none}, Checks: checks[:1]}},
		{"no purpose", tuning.Doctor{Purposes: []tuning.Purpose{cannot}, Checks: []tuning.Check{privileges}}},
	} {
		all.WriteString("=== " + c.name + "\n")
		all.WriteString(drawn(t, c.found.Page(), render.Options{Width: 80}))
	}
	checkWidth(t, all.String(), 80)
	golden(t, "doctor", all.String())
}
