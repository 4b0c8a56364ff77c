//go:build e2e && linux

package main_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// binary builds rooftop once for all tests, beside the test binary, in a directory that go test removes.
var binary = sync.OnceValues(func() (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	path := filepath.Join(filepath.Dir(self), "rooftop-e2e")
	if out, err := exec.Command("go", "build", "-o", path, ".").CombinedOutput(); err != nil {
		return "", fmt.Errorf("build rooftop: %s", out)
	}
	return path, nil
})

// answer is the result of one run of rooftop.
type answer struct {
	code           int
	stdout, stderr []byte
	took           time.Duration
}

// rooftop runs the program and waits for it.
func rooftop(t *testing.T, args ...string) answer {
	t.Helper()
	return begin(t, args...)()
}

// begin starts the program and returns a function that waits for it.
func begin(t *testing.T, args ...string) func() answer {
	t.Helper()
	return beginWith(t, nil, args...)
}

// beginWith is like begin, with additional variables.
func beginWith(t *testing.T, env []string, args ...string) func() answer {
	t.Helper()
	path := built(t)
	var stdout, stderr bytes.Buffer
	cmd := realTime(testContext(t), path, args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "ROOFTOP_") || strings.HasPrefix(v, "VLLM_") })
	cmd.Env = append(cmd.Env, env...)
	began := time.Now()
	if err := cmd.Start(); err != nil {
		t.Fatalf("%s: %v", describe(args), err)
	}
	return func() answer {
		t.Helper()
		var exit *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &exit) {
			t.Fatalf("%s: %v", describe(args), err)
		}
		took := time.Since(began)
		cpu := cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		t.Logf("%s: exit %d after %.1f s, %.2f s of CPU", describe(args), cmd.ProcessState.ExitCode(), took.Seconds(), cpu.Seconds())
		return answer{code: cmd.ProcessState.ExitCode(), stdout: stdout.Bytes(), stderr: stderr.Bytes(), took: took}
	}
}

func describe(args []string) string { return "rooftop " + strings.Join(args, " ") }

// diagnosis is the part of rooftop.diagnosis/v1 that the tests read.
type diagnosis struct {
	Schema  string `json:"schema"`
	Outcome string `json:"outcome"`
	Target  struct {
		Engine  string `json:"engine"`
		Version string `json:"engine_version"`
	} `json:"target"`
	Facts map[string]struct {
		Value  any    `json:"value"`
		Source string `json:"source"`
		Note   string `json:"note"`
	} `json:"facts"`
	Windows struct {
		Collected int `json:"collected"`
		Evaluable int `json:"evaluable"`
		Active    int `json:"active"`
	} `json:"windows"`
	Measured map[string]struct {
		Value  *float64 `json:"value"`
		Reason string   `json:"reason"`
	} `json:"measured"`
	Findings       []finding       `json:"findings"`
	Recommendation *recommendation `json:"recommendation"`
	Condition      *illness        `json:"condition"`
	Missing        []struct {
		What   string `json:"what"`
		Reason string `json:"reason"`
	} `json:"missing"`
	Notes []string `json:"notes"`
}

type finding struct {
	ID          string `json:"id"`
	State       string `json:"state"`
	Significant bool   `json:"significant"`
	Fired       int    `json:"fired"`
	Evaluable   int    `json:"evaluable"`
	Reason      string `json:"reason"`
	Evidence    []struct {
		Name  string   `json:"name"`
		Value *float64 `json:"value"`
	} `json:"evidence"`
}

type illness struct {
	State  string `json:"state"`
	Reason string `json:"reason"`
}

type recommendation struct {
	Finding string `json:"finding"`
	Kind    string `json:"kind"`
	Flag    string `json:"flag"`
	From    string `json:"from"`
	To      string `json:"to"`
	Also    []struct {
		Flag string `json:"flag"`
		From string `json:"from"`
		To   string `json:"to"`
	} `json:"also"`
	Why       string `json:"why"`
	Predicted []struct {
		Metric string   `json:"metric"`
		Unit   string   `json:"unit"`
		Low    *float64 `json:"low"`
		Mid    *float64 `json:"mid"`
		High   *float64 `json:"high"`
	} `json:"predicted"`
}

// diagnose measures a server and reads the document.
func diagnose(t *testing.T, s *vllm, want int, more ...string) diagnosis {
	t.Helper()
	args := append([]string{"diagnose", "--url", s.url() + "/metrics", "--duration", s.slowed(20 * time.Second).Round(time.Second).String(), "--json"}, more...)
	a := rooftop(t, args...)
	if a.code != want {
		t.Errorf("exit code %d, want %d", a.code, want)
	}
	d := parse(t, a)
	t.Log(d.line())
	return d
}

func parse(t *testing.T, a answer) diagnosis {
	t.Helper()
	var d diagnosis
	if err := json.Unmarshal(a.stdout, &d); err != nil {
		t.Fatalf("stdout is no JSON document: %v\nstdout: %.500s\nstderr: %s", err, a.stdout, a.stderr)
	}
	if d.Schema != "rooftop.diagnosis/v1" {
		t.Errorf("schema %q", d.Schema)
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the diagnosis:\n%s\nstderr:\n%s", d.summary(), a.stderr)
		}
	})
	return d
}

// line describes what was found and recommended.
func (d *diagnosis) line() string {
	said := "outcome " + d.Outcome
	for _, f := range d.Findings {
		if f.State == "fired" {
			said += fmt.Sprintf(", %s in %d of %d windows", f.ID, f.Fired, f.Evaluable)
		}
	}
	if r := d.Recommendation; r != nil {
		said += fmt.Sprintf("; %s %s -> %s", r.Flag, r.From, r.To)
	}
	return said
}

// summary helps to see why a case failed.
func (d *diagnosis) summary() string {
	short, err := json.MarshalIndent(map[string]any{
		"outcome": d.Outcome, "condition": d.Condition, "windows": d.Windows, "recommendation": d.Recommendation, "findings": d.Findings,
		"measured": d.Measured, "facts": d.Facts, "missing": d.Missing, "notes": d.Notes,
	}, "", " ")
	if err != nil {
		return err.Error()
	}
	return string(short)
}

// measured returns a quantity that must exist.
func (d *diagnosis) measured(t *testing.T, name string) float64 {
	t.Helper()
	q, ok := d.Measured[name]
	if !ok || q.Value == nil {
		t.Errorf("measured.%s is absent: %s", name, q.Reason)
		return 0
	}
	return *q.Value
}

// between fails unless a quantity exists and is within its limits.
func (d *diagnosis) between(t *testing.T, name string, low, high float64) {
	t.Helper()
	v := d.measured(t, name)
	t.Logf("measured.%s: %v", name, v)
	if v < low || v > high {
		t.Errorf("measured.%s is %v, want %v to %v", name, v, low, high)
	}
}

func (d *diagnosis) finding(t *testing.T, id string) finding {
	t.Helper()
	for _, f := range d.Findings {
		if f.ID == id {
			return f
		}
	}
	t.Errorf("no finding %s", id)
	return finding{}
}

// fired fails unless a finding exists and is persistent.
func (d *diagnosis) fired(t *testing.T, id string) {
	t.Helper()
	if f := d.finding(t, id); f.State != "fired" || !f.Significant {
		t.Errorf("%s: %s in %d of %d windows, significant %v (%s), want fired and significant", id, f.State, f.Fired, f.Evaluable, f.Significant, f.Reason)
	}
}

// recommends fails unless the recommendation is for a finding, of a kind and about a flag.
func (d *diagnosis) recommends(t *testing.T, finding, kind, flag string) recommendation {
	t.Helper()
	r := d.Recommendation
	if r == nil {
		t.Fatalf("no recommendation, outcome %s, want one for %s", d.Outcome, finding)
	}
	if d.Outcome != "recommendation" || r.Finding != finding || r.Kind != kind || r.Flag != flag {
		t.Errorf("outcome %s: %s, kind %s, flag %q, want %s, %s, %q", d.Outcome, r.Finding, r.Kind, r.Flag, finding, kind, flag)
	}
	return *r
}

// fact fails unless a fact has a value from a source.
func (d *diagnosis) fact(t *testing.T, name string, value any, source string) {
	t.Helper()
	f, ok := d.Facts[name]
	if !ok || f.Value != value || f.Source != source {
		t.Errorf("facts.%s is %v from %q (%s), want %v from %q", name, f.Value, f.Source, f.Note, value, source)
	}
}

// must ends a test that got an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func readFile(t testing.TB, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return text
}

// built returns the path of the program under test.
func built(t testing.TB) string {
	t.Helper()
	path, err := binary()
	must(t, err)
	return path
}

// builtByName returns the path of the program under test under the name rooftop.
func builtByName(t testing.TB) string {
	t.Helper()
	path, err := named()
	must(t, err)
	return path
}
