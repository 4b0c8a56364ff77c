package bench

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"gopkg.in/yaml.v3"

	"github.com/rooftop-dev/rooftop/cmd/internal/sim/vllmsim/settings"
	"github.com/rooftop-dev/rooftop/collect/loadgen"
	"github.com/rooftop-dev/rooftop/engine"
	"github.com/rooftop-dev/rooftop/engine/launch"
)

// realRun is one configuration of a real server and what it did.
type realRun struct {
	Name     string             `yaml:"name"`
	Fitted   bool               `yaml:"fitted"` // the device description was fitted on it
	Flags    string             `yaml:"flags"`
	Load     realLoad           `yaml:"load"`
	Measured map[string]float64 `yaml:"measured"`
	Fired    []string           `yaml:"fired"` // findings that fired and count, in rank order
}

// realLoad is a closed loop of equal requests.
type realLoad struct {
	Clients int `yaml:"clients"`
	Prompt  int `yaml:"prompt"` // tokens, the shared ones included
	Output  int `yaml:"output"` // tokens
	Shared  int `yaml:"shared"` // tokens
}

// load is the load of rooftop load in the real runs: clients that start at once, so that they stay in lock-step.
func (l *realLoad) load() loadgen.Load {
	return loadgen.Load{
		Clients: l.Clients, Together: true, Seed: 1, IgnoreEOS: true,
		PromptTokens: loadgen.Fixed(l.Prompt), OutputTokens: loadgen.Fixed(l.Output), SharedPrefixTokens: l.Shared,
	}
}

const realDir = "testdata/real-cpu"

func realRuns(t *testing.T) []realRun {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(realDir, "runs.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var runs []realRun
	d := yaml.NewDecoder(strings.NewReader(string(text)))
	d.KnownFields(true)
	if err := d.Decode(&runs); err != nil {
		t.Fatal(err)
	}
	return runs
}

// imitate runs a configuration on the simulated device.
func imitate(t *testing.T, r *realRun) engine.Diagnosis {
	t.Helper()
	const settle, measured = 7 * time.Second, 32 * time.Second
	command, err := launch.Parse(strings.Fields("vllm serve "+realDir+"/model --enforce-eager --no-async-scheduling --block-size 128 "+r.Flags), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	words := command.Argv()
	s, err := settings.Parse(append(words[2:], "--sim-perf-file", realDir+"/device.yaml", "--sim-startup-time", "1s"), os.ReadFile)
	if err != nil {
		t.Fatal(err)
	}
	w := NewWorld()
	if err := w.Launch(s); err != nil {
		t.Fatal(err)
	}
	healthy, _ := w.Healthy()
	if err := w.offer(r.Name, r.Load.load(), Offering{Origin: healthy}); err != nil {
		t.Fatal(err)
	}
	w.Until(healthy + settle)
	o, err := w.observe(w.Header(command), measured, 0)
	if err != nil {
		t.Fatal(err)
	}
	w.Until(healthy + settle + measured)
	return o.diagnose()
}

// The simulator, with a device description fitted on two runs, is compared with the real server in the other runs.
func TestAgainstARealServer(t *testing.T) {
	const tolerance = 0.20
	predicted := 0
	for _, r := range realRuns(t) {
		t.Run(r.Name, func(t *testing.T) {
			d := imitate(t, &r)
			value := func(name string) float64 {
				q := d.Quantity(name)
				if !q.Value.OK {
					return math.NaN()
				}
				return q.Value.V
			}
			tokens, want := value("generation_tokens_per_s"), r.Measured["tokens_per_s"]
			off := tokens/want - 1
			var fired []string
			for _, f := range d.Findings {
				if f.State == engine.Fired && f.Significant {
					fired = append(fired, string(f.ID))
				}
			}
			t.Logf("%-10s tok/s real %6.0f sim %6.0f (%+.0f %%)  ITL %.4f/%.4f  TTFT %.3f/%.3f  preempt/s %.2f/%.2f  hits %.2f/%.2f  %v %v", r.Name, want, tokens, off*100,
				r.Measured["itl_mean_s"], value("itl_mean_s"), r.Measured["ttft_mean_s"], value("ttft_mean_s"),
				r.Measured["preemptions_per_s"], value("preemptions_per_s"), r.Measured["prefix_hit_rate"], value("prefix_hit_rate"), fired, d.Outcome)
			if !(math.Abs(off) <= tolerance) { // NaN is off
				t.Errorf("throughput %.0f tok/s, the real server made %.0f", tokens, want)
			}
			if !r.Fitted {
				predicted++
			}
			if !slices.Equal(fired, r.Fired) {
				t.Errorf("fired %v, on the real server %v", fired, r.Fired)
			}
		})
	}
	if predicted < 4 {
		t.Errorf("%d configurations beside the fitted ones, at least 4", predicted)
	}
}
