package document_test

import (
	"bytes"
	"io"
	"strings"
	"testing"

	"github.com/rooftop-dev/rooftop/cmd/internal/document"
	"github.com/rooftop-dev/rooftop/cmd/internal/render"
	"github.com/rooftop-dev/rooftop/engine/page/tuning"
)

func TestDoctorJSON(t *testing.T) {
	s := schema(t, "doctor.v1.schema.json")
	write := func(d tuning.Doctor) string {
		var b bytes.Buffer
		must(t, document.WriteDoctor(&b, d))
		return b.String()
	}
	full := write(tuning.Doctor{
		Purposes: []tuning.Purpose{{ID: "trace", Commands: "trace a GGML runtime", Can: true, Found: "all is there", Next: "rooftop trace"}},
		Checks: []tuning.Check{
			{For: "server", Name: "endpoint", State: tuning.CheckOK, Found: "answers <quickly>"},
			{Name: "NVML", State: tuning.CheckBad, Found: "fails", Effect: "no GPU reading", Next: "reboot"},
		},
	})
	for name, doc := range map[string]string{"checks": full, "none": write(tuning.Doctor{})} {
		if err := s.Validate(decoded(t, []byte(doc))); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, key := range []string{`"name": "NVML"`, `"state": "bad"`, `"found": "fails"`, `"effect": "no GPU reading"`, `"next": "reboot"`, `"found": "answers <quickly>"`} {
		if !strings.Contains(full, key) {
			t.Errorf("the document lacks %s:\n%s", key, full)
		}
	}
	for from, to := range map[string]string{"rooftop.doctor/v1": "rooftop.doctor/v0", `"state": "bad"`: `"state": "red"`, `"next"`: `"then"`, `"for": "server"`: `"for": "nobody"`, `"can": true`: `"can": "yes"`} {
		if s.Validate(decoded(t, []byte(strings.ReplaceAll(full, from, to)))) == nil {
			t.Errorf("the schema accepts %s", to)
		}
	}
}

// failing is a writer whose pipe is closed.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestWriteErrorsAreReturned(t *testing.T) {
	for name, err := range map[string]error{
		"plain":  WritePlain(failing{}, slots(), render.Options{}),
		"json":   document.WriteDiagnosis(failing{}, slots()),
		"doctor": render.Text(failing{}, tuning.Doctor{Checks: []tuning.Check{{Name: "x"}}}.Page(), render.Options{}),
	} {
		if err == nil {
			t.Errorf("%s: a failed write is not reported", name)
		}
	}
}

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
